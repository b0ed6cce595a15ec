/* The page: what is clicked, pressed and dragged becomes a session, and a session becomes what is shown. */
"use strict";

(() => {
  const {cone, service, session, drawing, words} = overexplain;
  const part = id => document.getElementById(id);
  const plane = part("plane");
  const MIDDLE = Math.floor(service.SIZE / 2), NARROWEST = 160;
  const NOTHING = "Nothing is asked any more.", MOVED = "The line was moved, and every question asked anew.";

  let now = session.fresh(words.STORY_SEED);
  let cursor = [MIDDLE, MIDDLE], dragging = null, to = null, step = null;
  let known = cone.everything(), given = [], writing = 0, written = -Infinity;

  // What is shown.

  /** Change a text, unless it stands there already: screen readers would read it again. */
  function say(id, text) {
    if (part(id).textContent !== String(text)) { part(id).textContent = text; }
  }

  function show() {
    const model = session.model(now), isShown = part("show").checked;
    given = session.answers(now);
    known = session.knowledge(given);
    const isKnown = cone.isKnown(known), found = drawing.regions(known);
    say("asked", given.length);
    say("asked-label", given.length === 1 ? "answer so far" : "answers so far");
    say("asked-kinds", words.kinds(given));
    part("share").firstChild.data = words.percent(found.share);
    say("share-parts", `Yes on ${words.percent(found.shares.yes)} %, No on ${words.percent(found.shares.no)} %`);
    say("known", isKnown ? "known" : "open");
    part("known").classList.toggle("acc", isKnown);
    say("known-line", isKnown ? words.inequality(model) : words.open(given));
    part("undo").disabled = part("reset").disabled = !given.length;
    part("seed").value = now.seed;
    part("norms").hidden = !part("ask-cf").checked;
    part("moving").hidden = !isShown;
    const [least, most] = service.offsets(model.turn);
    Object.assign(part("turn"), {max: service.DIRECTIONS.length - 1, value: model.turn});
    Object.assign(part("shift"), {min: least, max: most, value: model.b});
    part("rows").replaceChildren(...given.map(row));
    tellStep();
    to = drawing.scale(Math.max(NARROWEST, Math.min(608, plane.parentElement.clientWidth)));
    const cross = plane.matches(":focus-visible") ? cursor : null;
    drawing.draw(plane, to, {given, found, known: isKnown, model, shown: isShown, cursor: cross});
    return {found, isKnown};
  }

  function row(answer, k) {
    const made = document.createElement("tr");
    const cells = [
      k + 1, words.point(...answer.at), words.side(answer.label), answer.norm ? words.DISTANCES[answer.norm] : "–",
      answer.image ? words.point(...answer.image) : "–",
    ];
    cells.forEach((text, i) => {
      const cell = document.createElement(i ? "td" : "th");
      if (!i) { cell.scope = "row"; }
      cell.textContent = text;
      made.append(cell);
    });
    return made;
  }

  function tellStep() {
    const told = step === null ? null : words.STORY[step];
    say("told-title", told ? told.title : "On your own");
    say("told", told ? told.text : words.ALONE);
    part("steps").querySelectorAll("button").forEach((button, k) => {
      if (k === step) { button.setAttribute("aria-current", "step"); } else { button.removeAttribute("aria-current"); }
    });
  }

  /** Show a changed session, put it into the address, and say what was learned. */
  function change(changed, said) {
    now = changed;
    const {found, isKnown} = show();
    say("learned", said === undefined ? words.learned(given, found, isKnown) : said);
    write();
  }

  /** Put the session into the address: at once, but not with every move of a pointer, which browsers refuse. */
  function write() {
    clearTimeout(writing);
    const wait = written + 150 - performance.now();
    if (wait > 0) { writing = setTimeout(write, wait); return; }
    written = performance.now();
    history.replaceState(null, "", session.written(now));
  }

  const own = (changed, said) => { step = null; change(changed, said); };

  // What is asked.

  function ask(at) {
    if (now.questions.length >= session.MOST_QUESTIONS) {
      say("learned", `${session.MOST_QUESTIONS} answers are enough: start again, or undo.`);
      return;
    }
    const kind = part("ask-label").checked ? "label" : document.querySelector("input[name=norm]:checked").value;
    cursor = at;
    own({...now, questions: [...now.questions, {ask: kind, at}]});
    tellHere(at);
  }

  function undo() {
    if (!now.questions.length) { return; }
    own({...now, questions: now.questions.slice(0, -1)}, now.questions.length === 1 ? NOTHING : undefined);
  }

  const tellHere = at => say("here", words.here(at, cone.verdict(known, at)));

  const inside = steps => steps.map(i => Math.max(0, Math.min(drawing.LAST, Math.round(i))));

  function position(event) {
    const box = plane.getBoundingClientRect(), ratio = to.width / box.width;
    return to.back((event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio);
  }

  const isNear = steps => steps.every(i => i > -1 && i < drawing.LAST + 1);

  plane.addEventListener("click", event => {
    const steps = position(event);
    if (!event.target.closest(".grip") && isNear(steps)) { ask(inside(steps)); }
  });
  plane.addEventListener("keydown", event => {
    const far = event.shiftKey ? 5 : 1;
    const moves = {ArrowLeft: [-far, 0], ArrowRight: [far, 0], ArrowUp: [0, far], ArrowDown: [0, -far]};
    if (event.ctrlKey || event.altKey || event.metaKey) { return; }
    if (moves[event.key]) {
      cursor = inside(cursor.map((i, k) => i + moves[event.key][k]));
      show();
      tellHere(cursor);
    } else if (event.key === "Enter" || event.key === " ") {
      ask(cursor);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      undo();
    } else {
      return;
    }
    event.preventDefault();
  });
  plane.addEventListener("focus", () => { show(); });
  plane.addEventListener("blur", () => { show(); });

  // The hidden line, moved.

  function place(turn, b) {
    const [least, most] = service.offsets(turn);
    own({...now, line: service.line(turn, Math.max(least, Math.min(most, Math.round(b))))}, MOVED);
  }

  /** Turn the line about a point. */
  function turnAbout([x, y], turn) {
    const [p, q] = service.DIRECTIONS[turn];
    place(turn, p * x + q * y);
  }

  function middle(model) {
    const [one, other] = drawing.crossing(model);
    return [(one[0] + other[0]) / 2, (one[1] + other[1]) / 2];
  }

  /** The direction nearest to that of the line from `pivot` to the pointer, its Yes on the side where it is now. */
  function towards(model, pivot, [x, y]) {
    const u = x - pivot[0], v = y - pivot[1], [p, q] = model.a, turns = p * v - q * u < 0 ? -1 : 1;
    const wanted = Math.atan2(-turns * u, turns * v);
    const off = ([r, s]) => 1 - Math.cos(Math.atan2(s, r) - wanted);
    return service.DIRECTIONS.reduce((best, d, k) => (off(d) < off(service.DIRECTIONS[best]) ? k : best), 0);
  }

  plane.addEventListener("pointerdown", event => {
    const grip = event.target.closest(".grip");
    if (!grip) { return; }
    dragging = {pivot: grip.classList.contains("turn") ? middle(session.model(now)) : null};
    plane.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  plane.addEventListener("pointermove", event => {
    const model = session.model(now), steps = position(event);
    if (!dragging) {
      if (event.pointerType === "mouse" && isNear(steps)) { tellHere(inside(steps)); }
      return;
    }
    if (dragging.pivot) {
      turnAbout(dragging.pivot, towards(model, dragging.pivot, steps));
    } else {
      place(model.turn, model.a[0] * steps[0] + model.a[1] * steps[1]);
    }
  });
  for (const end of ["pointerup", "pointercancel"]) {
    plane.addEventListener(end, event => {
      if (dragging) { plane.releasePointerCapture(event.pointerId); }
      setTimeout(() => { dragging = null; }); // after the click that ends the drag
    });
  }
  plane.addEventListener("click", event => { if (dragging) { event.stopImmediatePropagation(); } }, true);
  part("turn").addEventListener("input", event => turnAbout(middle(session.model(now)), +event.target.value));
  part("shift").addEventListener("input", event => place(session.model(now).turn, +event.target.value));

  // Buttons, the address, files.

  part("undo").addEventListener("click", undo);
  part("reset").addEventListener("click", () => own({...now, questions: []}, NOTHING));
  const another = seed => own(session.fresh(seed), `A new hidden line, number ${seed}. Nothing is asked yet.`);
  part("redraw").addEventListener("click", () => another((now.seed + 1) % (session.MOST_SEED + 1)));
  part("seed").addEventListener("change", event => {
    const wanted = Number(event.target.value);
    if (Number.isInteger(wanted) && wanted >= 0 && wanted <= session.MOST_SEED && event.target.value !== "") {
      another(wanted);
    } else {
      event.target.value = now.seed;
      say("learned", `A line number is a whole number from 0 to ${session.MOST_SEED}.`);
    }
  });
  for (const choice of document.querySelectorAll("input[name=ask], #show")) { choice.addEventListener("change", show); }

  function save(text, name, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], {type}));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  part("save-log").addEventListener("click", () => save(session.logText(given), "interactive.jsonl", "application/jsonl"));
  part("save-verdicts").addEventListener("click", () => save(session.verdictText(known), "interactive-verdicts.json", "application/json"));

  function tell(k) {
    step = k;
    change({...session.fresh(words.STORY_SEED), questions: words.STORY[k].questions});
  }

  words.STORY.forEach((told, k) => {
    const button = document.createElement("button"), item = document.createElement("li"), name = document.createElement("span");
    button.type = "button";
    name.className = "unseen";
    name.textContent = `: ${told.name}`;
    button.append(String(k + 1), name);
    button.addEventListener("click", () => tell(k));
    item.append(button);
    part("steps").append(item);
  });
  part("next").addEventListener("click", () => tell(step === null ? 0 : (step + 1) % words.STORY.length));

  /** Show the session that the part of an address behind # holds. */
  function open(written) {
    const found = session.read(written);
    if (found) { return own(found); }
    if (!written.includes("=")) { return tell(0); }
    return own(session.fresh(words.STORY_SEED), "The address of this page is no session; here is a fresh one.");
  }

  addEventListener("hashchange", event => {
    const {hash} = new URL(event.newURL); // the address itself may have moved on
    if (hash.includes("=")) { open(hash); } // else it is a place on the page
  });
  new ResizeObserver(show).observe(plane.parentElement);
  overexplain.play = session.play;
  open(location.hash);
})();
