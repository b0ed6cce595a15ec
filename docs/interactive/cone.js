/* What answers say about the hidden model, without rounding.

A model is w = (a1, a2, b): Yes where a·x ≥ b. Every answer is a few conditions row·w ≥ 0 or row·w = 0, so the models that fit are
a cone, kept here by what generates it: extreme rays, and lines where it has no end. A point's verdict is read off the signs of
a·x − b on them. All numbers are BigInt. */
"use strict";

window.overexplain = window.overexplain || {};

overexplain.cone = (() => {
  const YES = 1, NO = -1, UNKNOWN = 0, BOUNDARY = 2;

  const dot = (u, v) => u[0] * v[0] + u[1] * v[1] + u[2] * v[2];
  const minus = v => v.map(x => -x);
  const abs = x => (x < 0n ? -x : x);
  const sign = x => (x > 0n ? 1n : x < 0n ? -1n : 0n);

  function primitive(v) {
    let factor = 0n;
    for (let x of v.map(abs)) {
      while (x) { [factor, x] = [x, factor % x]; }
    }
    return factor > 1n ? v.map(x => x / factor) : v;
  }

  const mix = (m, u, n, v) => primitive(u.map((x, i) => m * x + n * v[i]));

  /** All of R³: nothing is known. */
  function everything() {
    return {lines: [[1n, 0n, 0n], [0n, 1n, 0n], [0n, 0n, 1n]], rays: [], rows: [], no: [], labels: new Map()};
  }

  /** The part of the cone with row·w ≥ 0, or = 0 (double description method). */
  function cut(cone, row, isEquality) {
    const tilted = cone.lines.find(line => dot(row, line) !== 0n);
    let lines = cone.lines, rays;
    if (tilted) { // everything else slides along this line into row·w = 0; what is left of the line is a ray
      const pivot = dot(row, tilted) > 0n ? tilted : minus(tilted), slope = dot(row, pivot);
      const slide = v => mix(slope, v, -dot(row, v), pivot);
      lines = cone.lines.filter(line => line !== tilted).map(slide);
      rays = cone.rays.map(slide);
      if (!isEquality) { rays.push(pivot); }
    } else {
      const values = cone.rays.map(ray => dot(row, ray));
      if (values.every(value => value === 0n || (value > 0n && !isEquality))) { return cone; } // it says nothing new
      rays = cone.rays.filter((_, i) => values[i] === 0n || (values[i] > 0n && !isEquality));
      cone.rays.forEach((above, i) => cone.rays.forEach((below, j) => {
        if (values[i] > 0n && values[j] < 0n) { rays.push(mix(values[i], below, -values[j], above)); }
      }));
    }
    const rows = [...cone.rows, row];
    return {...cone, lines, rays: extreme(rays, rows), rows};
  }

  /** The rays that no others generate: one that is a sum of others has every row tight that they have in common. */
  function extreme(rays, rows) {
    let left = [...new Map(rays.filter(ray => ray.some(Boolean)).map(ray => [ray.join(), ray])).values()]
      .map(ray => ({ray, tight: rows.map(row => dot(row, ray) === 0n)}));
    for (const one of [...left]) {
      const within = other => other !== one && one.tight.every((is, i) => !is || other.tight[i]);
      if (left.some(within)) { left = left.filter(kept => kept !== one); }
    }
    return left.map(kept => kept.ray);
  }

  /** What must hold of a if the shortest way from a point on side y leads along w: −y·a lies in the normal cone of w. */
  function steepest(norm, side, w) {
    const s = -side, equal = [], closed = [], [u, v] = w, along = [s * sign(u), s * sign(v)];
    if (u === 0n && v === 0n) { return {equal, closed}; }
    if (norm === "l2") { // a is a multiple of w
      equal.push([v, -u, 0n]);
      closed.push([s * u, s * v, 0n]);
    } else if (norm === "l1") { // |a_i| is largest where w moves
      if (u && v) { equal.push([along[0], -along[1], 0n]); }
      for (const t of [1n, -1n]) { closed.push(u ? [along[0], v ? 0n : t, 0n] : [t, along[1], 0n]); }
    } else { // linf: a is 0 off the largest moves, and of their sign on them
      const most = abs(u) > abs(v) ? abs(u) : abs(v);
      [u, v].forEach((move, i) => {
        const row = [0n, 0n, 0n];
        row[i] = abs(move) === most ? along[i] : 1n;
        (abs(move) === most ? closed : equal).push(row);
      });
    }
    return {equal, closed};
  }

  /** The cone after one more answer {at: [i, j], label, norm?, image?: [u, v, d]}; the image is (u/d, v/d). */
  function learn(cone, answer) {
    const [i, j] = answer.at.map(BigInt), y = BigInt(answer.label), own = [y * i, y * j, -y];
    let known = cut(cone, own, false);
    if (answer.image) {
      const [u, v, d] = answer.image.map(BigInt);
      const {equal, closed} = steepest(answer.norm, y, [u - i * d, v - j * d]);
      for (const row of [[u, v, -d], ...equal]) { known = cut(known, row, true); }
      for (const row of closed) { known = cut(known, row, false); }
    }
    const labels = new Map(cone.labels).set(answer.at.join(), answer.label);
    return {...known, no: answer.label === NO ? [...cone.no, own] : cone.no, labels};
  }

  const generators = cone => [...cone.rays, ...cone.lines, ...cone.lines.map(minus)];

  /** True if some combination of these generators is a model that fits: a ≠ 0, and strictly on its side at every No. */
  function holdsModel(cone, parts) {
    return parts.some(g => g[0] || g[1]) && cone.no.every(row => parts.some(g => dot(row, g) > 0n));
  }

  /** What every model that fits says at the point (i, j): YES, NO, UNKNOWN if they disagree, BOUNDARY if it is on all their lines.

  A point that was asked about keeps its label. A value of a·x − b above or below 0 is taken by a model that fits if a generator
  takes it; 0 is taken if the face of the generators that take it holds a model. */
  function verdict(cone, at) {
    const own = cone.labels.get(at.join());
    if (own) { return own; }
    const query = [BigInt(at[0]), BigInt(at[1]), -1n], all = generators(cone), values = all.map(g => dot(query, g));
    const above = values.some(value => value > 0n), below = values.some(value => value < 0n);
    if (above && below) { return UNKNOWN; }
    if (!below) { return above ? YES : BOUNDARY; }
    return holdsModel(cone, all.filter((_, i) => values[i] === 0n)) ? UNKNOWN : NO;
  }

  /** True if one model is left. */
  const isKnown = cone => cone.rays.length === 1 && cone.lines.length === 0;

  return {YES, NO, UNKNOWN, BOUNDARY, everything, learn, verdict, generators, isKnown, primitive};
})();
