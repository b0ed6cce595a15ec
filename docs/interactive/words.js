/* What the page says: numbers, sentences, and the story in five steps. */
"use strict";

overexplain.words = (() => {
  const {service} = overexplain;
  const DISTANCES = {l1: "sum of changes (ℓ1)", l2: "straight line (ℓ2)", linf: "largest change (ℓ∞)"};
  const VERDICTS = {1: "certain Yes", [-1]: "certain No", 0: "unknown", 2: "on the line itself, which is a Yes"};

  /** A share in percent; 0 and 100 only where they are exact. */
  function percent(share) {
    const rounded = Math.round(share * 100);
    if (share > 0 && rounded === 0) { return "<1"; }
    return share < 1 && rounded === 100 ? ">99" : String(rounded);
  }

  const number = x => String(Math.round(x * 100) / 100);
  const point = (u, v, d = 1) => `(${number(service.value(u, d))}, ${number(service.value(v, d))})`;
  const counted = (n, one) => `${n} ${one}${n === 1 ? "" : "s"}`;
  const side = label => (label > 0 ? "Yes" : "No");

  function kinds(given) {
    if (!given.length) { return "nothing asked yet"; }
    const explained = given.filter(answer => answer.image).length, plain = given.length - explained;
    const parts = [];
    if (plain) { parts.push(counted(plain, "decision")); }
    if (explained) { parts.push(`${counted(explained, "decision")} with a counterfactual`); }
    return parts.join(", ");
  }

  const open = given => (given.length ? "more than one line fits all answers" : "any line could be the one");

  const ALONE = "Choose what to ask for and click into the plane. How many answers does it take until the model is known?";

  /** The inequality of a model, in the features' own unit. */
  function inequality({a: [p, q], b}) {
    const terms = [[p, "x₁"], [q, "x₂"]].filter(([c]) => c), shown = terms.map(([c, name], k) => {
      const size = Math.abs(c) === 1 ? name : `${Math.abs(c)}·${name}`;
      return k ? `${c < 0 ? "−" : "+"} ${size}` : `${c < 0 ? "−" : ""}${size}`;
    });
    return `Yes where ${shown.join(" ")} ≥ ${number(service.value(b)).replace("-", "−")}`;
  }

  /** What the last answer said and how much is certain now. */
  function learned(given, found, isKnown) {
    if (!given.length) { return ""; }
    const last = given[given.length - 1];
    const change = last.image ? ` It would have to be ${point(...last.image)}.` : "";
    const sum = isKnown
      ? "One line is left: the model is known, and with it every decision."
      : `Certain now: Yes on ${percent(found.shares.yes)} % of the box, No on ${percent(found.shares.no)} %.`;
    return `${point(...last.at)} is a ${side(last.label)}.${change} ${sum}`;
  }

  const here = (at, verdict) => `${point(...at)}: ${VERDICTS[verdict]}`;

  const labels = places => places.map(at => ({ask: "label", at}));

  const STORY = [
    {
      name: "one decision",
      title: "One decision determines one point",
      text: "Somebody asked about one point and was told No. Lines of every direction still fit: nothing else is certain, not even next to it.",
      questions: labels([[9, 24]]),
    },
    {
      name: "twelve decisions",
      title: "Decisions alone say little",
      text: "Between two points that are a No, all is No; behind them, seen from a Yes, too. Twelve decisions leave a band open, and no number of them closes it for good.",
      questions: labels([[9, 24], [31, 12], [20, 31], [15, 5], [36, 27], [4, 36], [26, 20], [12, 14], [28, 36], [38, 4], [21, 10], [17, 22]]),
    },
    {
      name: "one ℓ1 answer",
      title: "“Change this one feature” determines two wedges",
      text: "Asked what would have to change, a service that keeps the sum of changes small (ℓ1) names the one feature that counts most. The line passes through the point it shows, at most 45° off a right angle to that step.",
      questions: [{ask: "l1", at: [9, 24]}],
    },
    {
      name: "two ℓ1 answers",
      title: "Two points make a line",
      text: "The second answer shows a second point of the line. With two features two answers are all it takes; with p features it is p.",
      questions: [{ask: "l1", at: [9, 24]}, {ask: "l1", at: [30, 8]}],
    },
    {
      name: "one ℓ2 answer",
      title: "One straight-line answer gives everything away",
      text: "The straight way (ℓ2) to the line meets it at a right angle. So one answer shows a point of the line and its direction: the model is known, however many features there are.",
      questions: [{ask: "l2", at: [9, 24]}],
    },
  ];
  const STORY_SEED = 8;

  return {DISTANCES, STORY, STORY_SEED, ALONE, open, percent, point, counted, side, kinds, inequality, learned, here};
})();
