/* A session: a hidden line and the questions asked so far. Everything else, down to the files it is saved as, follows from them. */
"use strict";

overexplain.session = (() => {
  const {cone, service} = overexplain;
  const NAMES = {1: "YES", [-1]: "NO", 0: "UNKNOWN", 2: "BOUNDARY"};
  const MOST_QUESTIONS = 200, MOST_SEED = 2 ** 32 - 1;
  const FEATURES = ["first", "second"];

  const fresh = seed => ({seed, line: null, questions: []});

  /** The hidden line: the seed's, unless the reader moved it. */
  const model = session => session.line || service.drawn(session.seed);

  const answers = session => session.questions.map(question => service.answer(model(session), question));

  const knowledge = given => given.reduce(cone.learn, cone.everything());

  /** The verdicts of a cone on the whole grid: a row for every value of the second feature, from the lowest. */
  function grid(known) {
    const steps = [...Array(service.SIZE).keys()];
    return steps.map(j => steps.map(i => cone.verdict(known, [i, j])));
  }

  /** The log as JSON Lines, as `overexplain.QueryLog.load` reads it. */
  function logText(given) {
    const header = {format: "overexplain-log", version: 1, dimension: 2, features: FEATURES, mechanism: null};
    const lines = [header], defined = [];
    for (const {at, label, norm, image} of given) {
      const row = {x: at.map(i => service.value(i)), y: label};
      if (image) {
        if (!defined.includes(norm)) {
          defined.push(norm);
          lines.push({mechanism: {distance: norm, robustness: null, radius: 0, tolerance: 0, slack: 0}});
        }
        row.cf = image.slice(0, 2).map(u => service.value(u, image[2]));
        row.m = defined.indexOf(norm);
      }
      lines.push(row);
    }
    return lines.map(line => JSON.stringify(line) + "\n").join("");
  }

  /** The verdicts on the grid as JSON. */
  function verdictText(known) {
    const values = [...Array(service.SIZE).keys()].map(i => service.value(i));
    const verdicts = grid(known).map(row => row.map(code => NAMES[code]));
    const about = "verdicts[j][i] is about the point (first[i], second[j])";
    return JSON.stringify({format: "overexplain-verdict-grid", version: 1, about, first: values, second: values, verdicts}) + "\n";
  }

  /** The session as the part of the address behind #. */
  function written({seed, line, questions}) {
    const parts = [`seed=${seed}`];
    if (line) { parts.push(`line=${line.turn}.${line.b}`); }
    if (questions.length) { parts.push(`asked=${questions.map(({ask, at}) => [ask, ...at].join(".")).join("_")}`); }
    return "#" + parts.join("&");
  }

  /** The session that `written` wrote; null if the text is not one. */
  function read(text) {
    const parts = text.replace(/^#/, "").split("&").map(part => part.split("="));
    const fields = Object.fromEntries(parts);
    if (parts.some(([key, value]) => !["seed", "line", "asked"].includes(key) || value === undefined)) { return null; }
    if (parts.length !== Object.keys(fields).length || !/^\d{1,10}$/.test(fields.seed) || +fields.seed > MOST_SEED) { return null; }
    const session = fresh(+fields.seed);
    if (fields.line !== undefined) {
      if (!/^\d{1,3}\.-?\d{1,4}$/.test(fields.line)) { return null; }
      const [turn, b] = fields.line.split(".").map(Number);
      if (turn >= service.DIRECTIONS.length) { return null; }
      const [least, most] = service.offsets(turn);
      if (b < least || b > most) { return null; }
      session.line = service.line(turn, b);
    }
    for (const asked of fields.asked === undefined ? [] : fields.asked.split("_")) {
      const found = /^(label|l1|l2|linf)\.(\d{1,2})\.(\d{1,2})$/.exec(asked);
      const at = found && [+found[2], +found[3]];
      if (!at || at.some(i => i >= service.SIZE)) { return null; }
      session.questions.push({ask: found[1], at});
    }
    return session.questions.length > MOST_QUESTIONS ? null : session;
  }

  /** A whole session at once: its log, the verdict on every grid point, and whether the model is known. */
  function play(session) {
    const given = answers(session), known = knowledge(given);
    return {log: logText(given), verdicts: grid(known), known: cone.isKnown(known), file: verdictText(known), hash: written(session)};
  }

  return {NAMES, MOST_QUESTIONS, MOST_SEED, fresh, model, answers, knowledge, grid, logText, verdictText, written, read, play};
})();
