/* The plane as a drawing: regions, answers, lines. Drawn in pixels of the page, so that text never shrinks with it. */
"use strict";

overexplain.drawing = (() => {
  const {cone, service} = overexplain;
  const LAST = service.SIZE - 1, LEFT = 44, RIGHT = 10, TOP = 10, BOTTOM = 40;
  const TICKS = [0, 10, 20, 30];

  function element(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) { made.setAttribute(key, value); }
    if (text !== undefined) { made.textContent = text; }
    return made;
  }

  /** How grid steps become pixels in a drawing of this width, and back. */
  function scale(width) {
    const side = width - LEFT - RIGHT, step = side / LAST;
    return {
      width, height: side + TOP + BOTTOM, side, step,
      x: i => LEFT + i * step,
      y: j => TOP + side - j * step,
      back: (x, y) => [(x - LEFT) / step, (TOP + side - y) / step],
    };
  }

  /** The part of a convex polygon with p·x + q·y ≥ r. */
  function clipped(polygon, [p, q, r]) {
    const at = ([x, y]) => p * x + q * y - r, kept = [];
    polygon.forEach((one, i) => {
      const next = polygon[(i + 1) % polygon.length], here = at(one), there = at(next);
      if (here >= 0) { kept.push(one); }
      if ((here > 0 && there < 0) || (here < 0 && there > 0)) {
        const t = here / (here - there);
        kept.push([one[0] + t * (next[0] - one[0]), one[1] + t * (next[1] - one[1])]);
      }
    });
    return kept;
  }

  const BOX = [[0, 0], [LAST, 0], [LAST, LAST], [0, LAST]];

  function area(polygon) {
    return Math.abs(polygon.reduce((sum, [x, y], i) => {
      const [u, v] = polygon[(i + 1) % polygon.length];
      return sum + x * v - u * y;
    }, 0)) / 2;
  }

  /** The parts of the box that are certain, each a convex polygon, and their shares of it. */
  function regions(known) {
    const rows = cone.generators(known).map(g => {
      const size = g.reduce((most, x) => (x > most ? x : -x > most ? -x : most), 1n);
      return g.map(x => Number(x) / Number(size));
    });
    const yes = rows.reduce(clipped, BOX), no = rows.reduce((left, row) => clipped(left, row.map(x => -x)), BOX);
    const whole = LAST * LAST, settle = share => (share < 1e-12 ? 0 : share > 1 - 1e-12 ? 1 : share);
    const shares = {yes: settle(area(yes) / whole), no: settle(area(no) / whole)};
    return {yes, no, shares, share: cone.isKnown(known) ? 1 : settle(shares.yes + shares.no)};
  }

  /** The two points where the line a·x = b enters and leaves the box (the same one twice at a corner). */
  function crossing({a: [p, q], b}) {
    const met = [];
    for (const edge of [0, LAST]) {
      if (q) { met.push([edge, (b - p * edge) / q]); }
      if (p) { met.push([(b - q * edge) / p, edge]); }
    }
    const ends = met.filter(point => point.every(i => i >= 0 && i <= LAST));
    const far = ends.reduce((best, one) => (distance(one, ends[0]) > distance(best, ends[0]) ? one : best), ends[0]);
    return [ends[0], far];
  }

  const distance = ([x, y], [u, v]) => Math.hypot(x - u, y - v);

  const centre = polygon => [0, 1].map(k => polygon.reduce((sum, point) => sum + point[k], 0) / polygon.length);

  function axes(to) {
    const parts = [element("rect", {class: "fr", x: to.x(0), y: to.y(LAST), width: to.side, height: to.side})];
    for (const tick of TICKS) {
      const i = tick / service.UNIT;
      parts.push(element("line", {class: "ax", x1: to.x(i), x2: to.x(i), y1: to.y(0), y2: to.y(0) + 4}));
      parts.push(element("text", {class: "m c", x: to.x(i), y: to.y(0) + 18}, tick));
      parts.push(element("line", {class: "ax", x1: to.x(0) - 4, x2: to.x(0), y1: to.y(i), y2: to.y(i)}));
      parts.push(element("text", {class: "m e", x: to.x(0) - 7, y: to.y(i) + (tick ? 4 : 0)}, tick));
    }
    parts.push(element("text", {class: "m e", x: to.x(LAST), y: to.y(0) + 35}, "first feature"));
    parts.push(element("text", {class: "m e", transform: `translate(11 ${to.y(LAST)}) rotate(-90)`}, "second feature"));
    return parts;
  }

  function mark(to, {at: [i, j], label}, last) {
    const x = to.x(i), y = to.y(j), ring = last ? " last" : "";
    return label > 0
      ? element("circle", {class: "py pp" + ring, cx: x, cy: y, r: 6})
      : element("rect", {class: "pn pp" + ring, x: x - 5.5, y: y - 5.5, width: 11, height: 11});
  }

  function arrow(to, {at: [i, j], image: [u, v, d]}) {
    const x = to.x(u / d), y = to.y(v / d);
    return [
      element("line", {class: "arr", x1: to.x(i), y1: to.y(j), x2: x, y2: y}),
      element("path", {class: "dia", d: `M${x} ${y - 5}l5 5-5 5-5-5Z`}),
    ];
  }

  function region(to, polygon, name, share, words) {
    if (polygon.length < 3 || !share) { return []; }
    const parts = [element("polygon", {class: name, points: polygon.map(([x, y]) => `${to.x(x)},${to.y(y)}`).join(" ")})];
    const [x, y] = centre(polygon);
    if (share > 0.06) { // else there is no room for it
      parts.push(element("text", {class: `${name === "ry" ? "ty" : "tn"} c halo`, x: to.x(x), y: to.y(y)}, words));
    }
    return parts;
  }

  function straight(to, ends, name) {
    return element("line", {class: name, x1: to.x(ends[0][0]), y1: to.y(ends[0][1]), x2: to.x(ends[1][0]), y2: to.y(ends[1][1])});
  }

  /** Draw all of it; `shown` is the hidden line or null, `cursor` where the cross stands or null. */
  function draw(svg, to, {given, found, known, model, shown, cursor}) {
    svg.setAttribute("viewBox", `0 0 ${to.width} ${to.height}`);
    const box = {x: to.x(0), y: to.y(LAST), width: to.side, height: to.side};
    for (const [key, value] of Object.entries(box)) { document.getElementById("inside-box").setAttribute(key, value); }
    const within = element("g", {"clip-path": "url(#inside)"}), ends = shown || known ? crossing(model) : null;
    within.append(element("rect", {class: "hb", ...box}), element("rect", {fill: "url(#hatch)", ...box}));
    within.append(...region(to, found.yes, "ry", found.shares.yes, "certain Yes"));
    within.append(...region(to, found.no, "rn", found.shares.no, "certain No"));
    if (ends) { within.append(straight(to, ends, known ? "edge" : "true")); }
    given.filter(answer => answer.image).forEach(answer => within.append(...arrow(to, answer)));
    const marks = given.map((answer, k) => mark(to, answer, k === given.length - 1));
    const parts = [...axes(to), within, ...marks];
    if (shown) {
      const far = ends[1][1] > ends[0][1] ? ends[1] : ends[0];
      parts.push(straight(to, ends, "grip shift"));
      parts.push(element("circle", {class: "grip turn", cx: to.x(far[0]), cy: to.y(far[1]), r: 9}));
    }
    if (cursor) {
      const x = to.x(cursor[0]), y = to.y(cursor[1]);
      parts.push(element("path", {class: "cross", d: `M${x - 13} ${y}h9M${x + 4} ${y}h9M${x} ${y - 13}v9M${x} ${y + 4}v9`}));
    }
    document.getElementById("drawn").replaceChildren(...parts);
  }

  return {LAST, scale, regions, crossing, draw};
})();
