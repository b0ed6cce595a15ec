"""Models against a claim: where to look for one that could have given every answer and says otherwise than the centre.

What comes out are candidates in float64; whoever asked has them checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import final

import numpy as np

from overexplain.errors import SolverFailed
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.norm import Norm
from overexplain.knowledge.program import Program
from overexplain.knowledge.strict import Strict

SHARES = (0.0, 1e-7, 1e-5, 1e-3, 0.03, 0.2)
"""How far a model is moved towards the centre, until it keeps what is not strict with room to spare."""

NEAR = 1e-3
"""A model whose s differs from ‖a‖* by more than this, relatively, is not worth correcting on the spot."""

KEPT = 64
"""Models with s ≤ ‖a‖* that are tried for the next points, too."""

LEAST = 1e-6
"""How much of the room below the plane, that a model leaves a point, one beyond it must leave as well."""


@final
class Opponents:
    """Candidates for models of a log; `program` has all its facts, `centre` is a model that is known to fit, once there is one."""

    def __init__(self, strict: Strict, program: Program) -> None:
        self.strict, self._program = strict, program
        self.centre = np.zeros(0)
        self._outer = np.zeros((0, program.facts.dimension + 1))

    def first_models(self, inside: list[FloatArray]) -> Iterator[FloatArray]:
        """Models to begin with: from some inside, from what smooth steps show, and between those that cone programs find."""
        for w in chain(inside, self.strict.shown()):
            yield from self.made_strict(w)
        rng = np.random.default_rng(0)
        inner: list[FloatArray] = []
        outer: list[FloatArray] = []
        size = np.ldexp(1.0, -self._program.exponents)
        for _ in range(2 * self._program.facts.dimension + 8):
            target = rng.normal(size=self._program.facts.dimension + 1) * size
            found = self.against(target)
            if found is None:
                return
            inner.append(found)
            middle = np.mean(inner, axis=0)
            yield from self.made_strict(middle)
            yield from self.made_strict(inner[-1])
            beyond = None if self.strict.is_linear else self.strict.outward(rng.normal(size=len(target)), None, 0.0)
            if beyond is not None:
                outer.append(unit(beyond))
            # Between any of the ones and any of the others there is a model; those from the middle have the most room.
            for w in (middle, inner[-1]):
                for other in [*outer, np.mean(outer, axis=0)] if outer else []:
                    between = self.strict.between(w, other)
                    if between is not None:
                        yield between

    def made_strict(self, w: FloatArray) -> Iterator[FloatArray]:
        """Models with s = ‖a‖* near w, or between w and a model beyond."""
        if self.strict.is_linear:
            yield w
            return
        pulled = self.strict.pulled(w)
        yield w if pulled is None else pulled
        gaps = self.strict.gaps(w)
        if len(gaps) > 1:
            return
        if gaps[0] > 0:
            within = self.against(self._program.facts.off_plane[0].behind)
            if within is None:
                return
            ends = (within, w)
        else:
            beyond = self.strict.outward(w, None, 0.0)
            if beyond is None:
                return
            ends = (w, unit(beyond))
        found = self.strict.between(*ends)
        if found is not None:
            yield found

    def opponents(self, there: FloatArray, target: FloatArray) -> Iterator[FloatArray]:
        """Models on the other side of the point than the centre, s = ‖a‖* and all, moved towards the centre more and more."""
        yield from self.near(there, target)
        if self.strict.is_linear or len(self.strict.gaps(there)) > 1 or self._program.conic is None:
            return
        yield from self._with_others(there, target)
        yield from self._found_outward(there, there, target)

    def more_opponents(self, there: FloatArray, target: FloatArray) -> Iterator[FloatArray]:
        """The same, looked for from where the search for other points ended: ‖a‖* − s has more than one peak."""
        yield from self._with_others(there, target)
        if len(self._outer):
            yield from self._found_outward(self._nearest(target), there, target)

    def _with_others(self, there: FloatArray, target: FloatArray) -> Iterator[FloatArray]:
        """Models that one beyond, which another point needed, shows."""
        if len(self._outer) and target @ self._nearest(target) < 0:
            yield from self.between(there, self._nearest(target), target)

    def _nearest(self, target: FloatArray) -> FloatArray:
        """The model beyond that says the most against a claim."""
        return np.asarray(self._outer[np.argmin(self._outer @ target)])

    def _found_outward(self, start: FloatArray, there: FloatArray, target: FloatArray) -> Iterator[FloatArray]:
        """Models between one of the convex set and those that a search for models beyond finds."""
        if not there[:-1].any():
            return
        depth = abs(float(target @ there)) / float(self.unit_norm.dual(there[:-1]))
        beyond = self.strict.outward(start, target, LEAST * depth)
        if beyond is None:
            return
        deepest = self.strict.deepest(beyond, target)
        for share in (0.0, 0.5, 1.0):
            outer = unit((1 - share) * deepest + share * beyond)
            self._outer = np.vstack([self._outer, outer])[-KEPT:]
            yield from self.between(there, outer, target)

    def against(self, target: FloatArray) -> FloatArray | None:
        """The model of the convex set that says the most against a claim; None if none is found."""
        inside = self.strict.inside
        try:
            if inside.applies and inside.is_round:
                return unit(inside.least(target))
            return unit(self._program.solve(target).model)
        except SolverFailed:
            pass
        try:  # of a larger set, without s ≥ ‖a‖*: it may leave open what is certain, but not the other way round
            return unit(inside.least(target)) if inside.applies and not inside.is_round else None
        except SolverFailed:
            return None

    @property
    def unit_norm(self) -> Norm:
        """The norm in which models of cone programs have the length 1."""
        assert self._program.conic is not None
        return self._program.norms[self._program.conic.unit]

    def near(self, there: FloatArray, target: FloatArray) -> Iterator[FloatArray]:
        """Models near one that keeps what is linear, if s is near ‖a‖* there."""
        if np.abs(self.strict.gaps(there)).max(initial=0.0) > NEAR:
            return
        for share in SHARES:
            w = (1 - share) * there + share * self.centre
            if target @ w >= 0:
                return
            pulled = w if self.strict.is_linear else self.strict.pulled(w)
            if pulled is not None and target @ pulled < 0:
                yield pulled

    def between(self, inner: FloatArray, outer: FloatArray, target: FloatArray) -> Iterator[FloatArray]:
        """Models with s = ‖a‖* between one with more and one with less, nearer and nearer to the centre."""
        for share in SHARES:
            ends = [(1 - share) * w + share * self.centre for w in (inner, outer)]
            if max(target @ w for w in ends) >= 0:
                return
            found = self.strict.between(*ends)
            if found is not None:
                yield found


def unit(w: FloatArray) -> FloatArray:
    """The model scaled: its largest entry is 1."""
    return np.asarray(w / max(np.abs(w).max(), 1e-300))
