"""Models that gave robust answers, s = ‖a‖* and all: one nonlinear equation a ball, beside what is linear.

Everything linear is kept by staying in the core, between models that keep it. Along a segment from a model with s ≥ ‖a‖* to one
with s ≤ ‖a‖* there is one with equality; near such a model Newton's method finds it. In float64 to the last digits, which is far
within the tolerance of float64 answers; without a tolerance, exactly, if the norm has flat sides.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import final

import numpy as np
from scipy.optimize import brentq

from overexplain.errors import SolverFailed
from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.core import Core
from overexplain.knowledge.facts import Facts, OffPlane, Secret, Steepest
from overexplain.knowledge.inside import ROOM, Inside
from overexplain.knowledge.program import Program
from overexplain.knowledge.rational_norms import exact_maximizer
from overexplain.knowledge.shells import own_lengths
from overexplain.knowledge.ties import Model

ROUNDS = 12
"""Linear programs that one search for a model with s ≤ ‖a‖* may take."""


@final
class Strict:
    """Turns models of what is linear into models with s = ‖a‖*."""

    def __init__(self, facts: Facts, core: Core, program: Program) -> None:
        self._facts, self._core, self._program = facts, core, program
        self._balls = own_lengths(facts)
        self._duals = [ball.dual for ball, _ in self._balls]
        self.inside = Inside(facts, core)
        self._labels = facts.queries()
        up = np.append(np.zeros(facts.dimension), 1.0)
        way = core.coordinates(up) if core.basis.shape[1] else np.zeros(0)
        self._lift = way if np.abs(core.basis @ way - up).max(initial=1.0 - len(way)) <= 1e-12 else None

    @property
    def is_linear(self) -> bool:
        """True if there is no such equation: plain answers, secret radii, N1 = N2."""
        return not self._balls

    def gaps(self, w: FloatArray) -> FloatArray:
        """‖a‖* − s for every ball, relative to ‖a‖*; s is what the reference answer says."""
        found = []
        for (_, fact), dual in zip(self._balls, self._duals, strict=True):
            size = float(dual(w[:-1]))
            found.append((size - float(fact.behind @ w) / fact.radius) / (size or 1.0))
        return np.array(found)

    def fits(self, w: FloatArray) -> bool:
        """True if the model keeps the facts as far as float64 can tell: what fails here need not be checked in rationals."""
        if not np.isfinite(w).all() or not w[:-1].any() or (self._labels @ w < 0).any():
            return False
        lengths = {norm: float(norm.dual(w[:-1])) for norm in self._facts.norms}
        for fact in self._facts.explained:
            if isinstance(fact, Steepest):
                along = -fact.side * float(fact.step @ w[:-1])
                if along < fact.steepness * lengths[fact.norm] * (1 - 1e-14) - 1e-15 * fact.length * lengths[fact.norm]:
                    return False
            elif isinstance(fact, OffPlane) and fact.norm is not None and not isinstance(fact.ball, Secret):
                off = float(fact.behind @ w) - fact.radius * lengths[fact.ball]
                room = 1.01 * fact.tolerance * lengths[fact.norm] + 1e-14 * float(np.abs(fact.behind) @ np.abs(w))
                if off < -room or (fact.tight and off > room):
                    return False
        return True

    def between(self, inner: FloatArray, outer: FloatArray) -> FloatArray | None:
        """The model on the segment with s = ‖a‖*; inner has s ≥ ‖a‖*, outer s ≤ ‖a‖* (one ball only)."""
        inner, outer = (self._core.basis @ self._core.coordinates(w) for w in (inner, outer))
        low, high = (float(self.gaps(w)[0]) for w in (inner, outer))
        if low > 0 or high < 0:
            return None
        if low == 0 or high == 0:
            return inner if low == 0 else outer
        share = brentq(lambda v: float(self.gaps((1 - v) * inner + v * outer)[0]), 0.0, 1.0, xtol=1e-16, rtol=1e-15)
        return np.asarray((1 - share) * inner + share * outer)

    def pulled(self, w: FloatArray) -> FloatArray | None:
        """The model near w with s = ‖a‖* for every ball, by Newton's method in the core."""
        u = self._core.coordinates(w)
        for _ in range(8):
            w = self._core.basis @ u
            if not w[:-1].any():
                return None
            gaps, slopes = self.gaps(w), self._slopes(w)
            if not np.isfinite(gaps).all():
                return None
            if np.abs(gaps).max(initial=0.0) <= 4e-16:
                break
            if len(gaps) == 1:
                # By the offset alone if the core leaves it free: that breaks nothing about the direction of a.
                way = slopes[0] if self._lift is None else self._lift
                rise = float(slopes[0] @ way)
                u = u - way * (gaps[0] / rise) if rise else u
            else:
                u = u - np.linalg.pinv(slopes, rcond=1e-10) @ gaps
        return w if np.abs(self.gaps(w)).max(initial=0.0) <= 1e-9 else None

    def _slopes(self, w: FloatArray) -> FloatArray:
        """How the gaps change along the core; what is only rounding there, since the core has the equality, is 0."""
        rows = []
        for ball, fact in self._balls:
            size = float(ball.dual(w[:-1])) or 1.0
            up, down = np.append(ball.maximizer(w[:-1]), 0.0), fact.behind / fact.radius
            slope = (up - down) @ self._core.basis
            slope[np.abs(slope) <= 1e-9 * (np.abs(up) + np.abs(down)) @ np.abs(self._core.basis)] = 0.0
            rows.append(slope / size)
        return np.array(rows).reshape(len(rows), self._core.basis.shape[1])

    def outward(self, start: FloatArray, claim: FloatArray | None, room: float) -> FloatArray | None:
        """A model with s ≤ ‖a‖* that keeps everything linear, and claim·(a, b) ≤ −room·t; None if none is found.

        ‖a‖* is convex: each round maximises its slope at the last model, less s, which never makes it smaller.
        """
        if len(self._balls) != 1 or not self.inside.applies:
            return None
        ball, fact = self._balls[0]
        most = -np.inf
        a = start[:-1]
        for _ in range(ROUNDS):
            g = np.asarray(ball.maximizer(a)) if a.any() else a
            try:
                w = self.inside.beyond(fact.behind / fact.radius - np.append(g, 0.0), claim, room)
            except SolverFailed:
                break
            gap = float(self.gaps(w)[0])
            if gap <= most + 1e-6:
                break
            if gap >= 0:
                return w
            most, a = gap, w[:-1]
        return None

    def deepest(self, beyond: FloatArray, target: FloatArray) -> FloatArray:
        """The model with the least target·(a, b) among those that one with s ≤ ‖a‖* shows: s is at most the slope of ‖a‖* there."""
        ball, fact = self._balls[0]
        g = np.append(ball.maximizer(beyond[:-1]), 0.0)
        try:
            return self.inside.beyond(target, fact.behind / fact.radius - g, ROOM)
        except SolverFailed:
            return beyond

    def fitted(self, w: FloatArray) -> FloatArray:
        """The model near w that keeps all equalities best, each in units of its tolerance (Gauss–Newton).

        Where answers pin a model down more than once, the core alone would meet some of them exactly and others not well enough.
        """
        linear = [e for e in self._core.equalities if e.width > 0]
        off = [f for f in self._facts.off_plane if f.tight and f.tolerance > 0 and not isinstance(f.ball, Secret)]
        for _ in range(8):
            rows = [e.row / e.width for e in linear]
            gaps = [float(e.row @ w) / e.width for e in linear]
            for fact in off:
                assert not isinstance(fact.ball, Secret)
                s = float(fact.ball.dual(w[:-1]))
                slope = fact.behind - fact.radius * np.append(fact.ball.maximizer(w[:-1]), 0.0)
                rows.append(slope / fact.tolerance)
                gaps.append((float(fact.behind @ w) - fact.radius * s) / fact.tolerance)
            if not rows:
                break
            scale = np.ldexp(1.0, self._program.exponents)
            left, right = np.array(rows) * scale, np.array(gaps)
            if not (np.isfinite(left).all() and np.isfinite(right).all()):
                break
            step = np.linalg.lstsq(left, right, rcond=1e-15)[0] * scale
            w = w - (step - w * float(step @ w) / float(w @ w))  # its size is free
        return w

    def shown(self, x: FloatArray | None = None) -> Iterator[FloatArray]:
        """The models that single steps under smooth distances show; with a secret radius, those whose planes pass just by x."""
        for fact in self._facts.explained:
            if isinstance(fact, Steepest) and fact.norm.is_smooth:
                normal = -fact.side * np.asarray(fact.norm.gradient(fact.step))
                behind = next((f for f in self._facts.off_plane if f.row == fact.row), None)
                if behind is not None and not isinstance(behind.ball, Secret):
                    reach = behind.radius * float(behind.ball.dual(normal))
                    yield np.append(normal, float(normal @ fact.explanation) + fact.side * reach)
                elif behind is not None and x is not None:
                    far = float(normal @ (x - fact.explanation))
                    for share in (1e-9, -1e-9, 1e-6, -1e-6, 1e-3, -1e-3, 0.1, -0.1):
                        yield np.append(normal, float(normal @ x) + share * (abs(far) + fact.length))
                elif behind is not None:
                    for share in (0.5, 0.1, 0.9, 0.01, 0.99):
                        yield np.append(normal, float(normal @ (fact.explanation - share * fact.step)))

    # In rationals.

    def exact(self, w: FloatArray) -> Model | None:
        """The model in the core at w, its s corrected to the last digit where the norm is flat and the answers exact."""
        u = self._core.coordinates(w / max(np.abs(w).max(), 1e-300))
        model = self._core.model(u)
        if len(self._balls) != 1 or self._balls[0][1].tolerance:
            return model
        ball, fact = self._balls[0]
        top = exact_maximizer(ball, model[0])
        if top is None:
            return model
        row = [v / top[1] for v in top[0]]
        share = fact.side / Fraction(fact.radius)
        row = [v + share * Fraction(x) for v, x in zip(row, fact.explanation.tolist(), strict=True)] + [-share]
        slope = self._slopes(self._core.basis @ u)[0]
        if not slope.any() or not np.isfinite(slope).all():
            return model
        way = self._core.model(slope / np.abs(slope).max())

        def at(m: Model) -> Fraction:
            return sum((a * b for a, b in zip(row, (*m[0], m[1]), strict=True)), Fraction(0))

        if at(way) == 0:
            return model
        share = at(model) / at(way)
        return [a - share * b for a, b in zip(model[0], way[0], strict=True)], model[1] - share * way[1]
