/* The service that is asked: a hidden line, and exact answers about it.

Points lie on a grid of 41 by 41, numbered from 0. Lines come from a list of directions such that the nearest point of every line
to every grid point, under each of the three distances, is a fraction whose denominator divides STEP · 2^k. One step of the grid
is STEP / 2^21, so every answer is a float64 without rounding, and what is proved from it here holds for the library, too. */
"use strict";

overexplain.service = (() => {
  const SIZE = 41, STEP = 2018835, UNIT = STEP / 2 ** 21;
  const NORMS = ["l1", "l2", "linf"];
  const OCTANT = [
    [0, 1], [1, 17], [1, 13], [1, 12], [1, 8], [1, 5], [1, 4], [1, 3], [2, 5], [3, 7], [1, 2], [3, 5], [2, 3], [7, 9], [11, 13],
    [6, 7], [8, 9], [1, 1],
  ];

  const DIRECTIONS = [...new Map(
    OCTANT.flatMap(([p, q]) => [[p, q], [q, p]])
      .flatMap(([p, q]) => [[p, q], [-p, q], [p, -q], [-p, -q]].map(v => v.map(x => x + 0 || 0)))
      .map(v => [v.join(), v]),
  ).values()].sort((u, v) => Math.atan2(u[1], u[0]) - Math.atan2(v[1], v[0]));

  /** Numbers in [0, 1) that depend on the seed alone (a 32-bit counter, well mixed). */
  function numbers(seed) {
    let state = seed >>> 0;
    return () => {
      state = (state + 0x9e3779b9) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
      mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
      return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
    };
  }

  /** The hidden line of a seed: {turn, a, b}, through a grid point well inside the box. */
  function drawn(seed) {
    const next = numbers(seed), turn = Math.floor(next() * DIRECTIONS.length);
    const [p, q] = DIRECTIONS[turn], through = [0, 1].map(() => 10 + Math.floor(next() * (SIZE - 20)));
    return {turn, a: [p, q], b: p * through[0] + q * through[1]};
  }

  /** The offsets for which a line of this direction meets the box: [least, most]. */
  function offsets(turn) {
    const far = DIRECTIONS[turn].map(x => x * (SIZE - 1));
    return [far.reduce((s, x) => s + Math.min(0, x), 0), far.reduce((s, x) => s + Math.max(0, x), 0)];
  }

  const line = (turn, b) => ({turn, a: DIRECTIONS[turn], b});

  /** 1 (Yes) where a·x ≥ b, else −1. */
  const label = (model, [i, j]) => (model.a[0] * i + model.a[1] * j >= model.b ? 1 : -1);

  /** The nearest point of the line as whole numbers [u, v, d]: (u/d, v/d). Where several are nearest, always the same one. */
  function nearest(model, norm, [i, j]) {
    const [p, q] = model.a, gap = model.b - p * i - q * j;
    if (norm === "l2") {
      const d = p * p + q * q;
      return [i * d + p * gap, j * d + q * gap, d];
    }
    if (norm === "linf") {
      const d = Math.abs(p) + Math.abs(q);
      return [i * d + Math.sign(p) * gap, j * d + Math.sign(q) * gap, d];
    }
    const first = Math.abs(p) >= Math.abs(q), d = Math.max(Math.abs(p), Math.abs(q));
    return first ? [i * d + Math.sign(p) * gap, j * d, d] : [i * d, j * d + Math.sign(q) * gap, d];
  }

  /** The answer to {ask: "label" or a distance, at: [i, j]}. */
  function answer(model, {ask, at}) {
    const given = {at, label: label(model, at)};
    return ask === "label" ? given : {...given, norm: ask, image: nearest(model, ask, at)};
  }

  /** A coordinate in the features' own unit, exactly: u/d steps. */
  const value = (u, d = 1) => u * STEP / d / 2 ** 21;

  return {SIZE, STEP, UNIT, NORMS, DIRECTIONS, drawn, offsets, line, label, nearest, answer, value};
})();
