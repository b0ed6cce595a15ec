"""One point, settled with a proof: the slow and exact way, for ties and for whoever asks why.

A float64 program suggests weights or a model; both are turned into rationals, repaired where rounding left a gap that a Hölder
term can pay for, and believed only if the checker accepts them. Where the suggestion fails because the answer hangs on an exact
zero, the same program is solved in rationals.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import final

import numpy as np

from overexplain.errors import SolverFailed
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.knowledge.belief import Belief
from overexplain.knowledge.checker import Answer, Branched, Term
from overexplain.knowledge.core import Core
from overexplain.knowledge.enclosures import Evidence, Vector
from overexplain.knowledge.exact import ONE, ZERO
from overexplain.knowledge.facts import Facts, OnPlane, Steepest
from overexplain.knowledge.program import Program, Solution
from overexplain.knowledge.smooth import smooth_facts, steepest_weight
from overexplain.knowledge.terms import TermMaker
from overexplain.knowledge.ties import Exact, Model, Ties, says
from overexplain.knowledge.verdicts import Verdict
from overexplain.log.extremes import BEYOND_FLOAT64


@dataclass(frozen=True)
class Settled:
    """A verdict and what proves it: terms (and the reverse, on the plane), branches, or two models; nothing if undecided.

    `is_turned`: which side is Yes is a matter of naming, and `no` calls it the other way round.
    """

    verdict: Verdict
    terms: tuple[Term, ...] = ()
    reverse: tuple[Term, ...] = ()
    yes: Model | None = None
    no: Model | None = None
    branches: Branched | None = None
    is_turned: bool = False


CLOSER = (
    ZERO,
    *(Fraction(2) ** k for k in (-50, -40, -30, -22, -16, -11, -7, -4, -2, -1)),
    *(1 - Fraction(2) ** k for k in (-2, -3, -5)),
)
"""Shares of the centre in a model that is moved towards it; the last ones only where tolerances leave models little room."""

NEARLY = 10

LOOSE = 1e-9
"""A tolerance above this share of its step is more than rounding."""

UNDECIDED = Settled(Verdict.UNDECIDED)


def is_loose(facts: Facts) -> bool:
    """True if some tolerance is more than rounding: then facts leave models that would have answered differently."""
    return any(isinstance(f, Steepest) and f.tolerance > LOOSE * f.length for f in facts.explained)


def own_label(facts: Facts) -> dict[Exact, int]:
    """The row that labels a point, by the point."""
    index = {tuple(map(Fraction, facts.points[k].tolist())): int(row) for k, row in enumerate(facts.rows)}
    for fact in facts.explained:
        if hasattr(fact, "side") and hasattr(fact, "point"):
            index.setdefault(tuple(map(Fraction, fact.point.tolist())), fact.row)
    return index


@final
class Settler:
    """Settles points for one set of facts. `answers` are the same rows in exact numbers, sides filled in."""

    def __init__(
        self,
        answers: Mapping[int, Answer],
        facts: Facts,
        core: Core,
        program: Program,
        evidence: Evidence,
        deadline: float | None,
        relative_to: Vector | None = None,
    ) -> None:
        self.answers, self.facts, self.core, self.program = answers, facts, core, program
        self.evidence, self.relative_to = evidence, relative_to
        belief = Belief(answers, evidence, relative_to)
        self.proves, self.keeps = belief.proves, belief.keeps
        self._belief, self._is_loose = belief, is_loose(facts)
        self.maker = TermMaker(program, answers, evidence)
        self.ties = Ties(program, self.maker, deadline, (NO,) if relative_to is None else (NO, YES))
        self.centre: Model | None = None
        self.suggest: Callable[[FloatArray], Model | None] = lambda _: None

    # The log as a whole.

    def find_centre(self, suggestion: Model | None) -> bool:
        """True if a consistent model is known, the suggested one or one found by the exact step."""
        for found in chain([suggestion], self._middles(), self._likely() if self._is_loose else ()):
            if self.keeps(found):
                self.centre = found
                return True
            if found is not None and (moved := self._fitted(found)) is not None:
                self.centre = moved
                return True
        try:
            for outcome in self._exact_models():
                if self.keeps(outcome):
                    self.centre = outcome
                    return True
        except SolverFailed:
            pass
        return False

    def _exact_models(self) -> Iterator[Model]:
        """Models of the closed cone by the exact step. Where no fact is strict, 0 is one: then models that lean to either side."""
        outcome = self.ties.find(None, 1)
        if not isinstance(outcome, tuple):
            return
        yield outcome
        if any(outcome[0]):
            return
        size = self.facts.dimension
        for i in range(size):
            for side in (1, -1):
                lean = [Fraction(side * (i == k)) for k in range(size + 1)]
                leaning = self.ties.find(None, 1, lean)
                if isinstance(leaning, tuple):
                    yield leaning

    def _middles(self) -> Iterator[Model]:
        """Models that keep the facts in float64, as they are and moved into the core."""
        try:
            for careful in (True, False):
                model, _ = self.program.middle(careful)
                exact = [Fraction(float(v)) for v in model]
                if any(exact[:-1]):
                    yield exact[:-1], exact[-1]
                    yield self.core.model(self.core.coordinates(model / np.abs(model).max()))
            for fact in smooth_facts(self.facts):
                normal = -fact.side * np.asarray(fact.norm.gradient(fact.step))
                shown = np.append(normal, normal @ fact.explanation)
                yield self.core.model(self.core.coordinates(shown / np.abs(shown).max()))
        except (SolverFailed, np.linalg.LinAlgError, OverflowError, ValueError):
            return

    def _fitted(self, model: Model, point: Exact | None = None, label: int = 0) -> Model | None:
        """The model with another offset, where tolerances leave facts that a model may keep without having answered so."""
        return self._belief.fitted(model, point, label) if self._is_loose else None

    def _likely(self) -> Iterator[Model]:
        """Models whose own answers are near the logged ones: first in the mean, then the farthest of them."""
        from scipy.optimize import least_squares

        steps = [f for f in self.facts.explained if isinstance(f, Steepest) and f.tolerance > 0]

        def apart(z: FloatArray, power: int) -> FloatArray:
            rows = []
            for fact in steps:
                far = fact.side * (z[:-1] @ fact.point - z[-1]) / float(fact.norm.dual(z[:-1]))
                answer = fact.point - fact.side * far * np.asarray(fact.norm.maximizer(z[:-1]))
                rest = (fact.explanation - answer) / fact.tolerance
                rows.append(rest * float(fact.norm(rest)) ** power)
            return np.concatenate(rows)

        try:
            z = self.program.middle()[0]
            for power in (0, 1, 3, 7):
                if not z[:-1].any():
                    return
                with np.errstate(all="ignore"):  # what overflows is no model, and is not believed
                    z = least_squares(apart, z / np.linalg.norm(z[:-1]), args=(power,), max_nfev=100).x
                exact = [Fraction(float(v)) for v in z]
                yield exact[:-1], exact[-1]
        except (SolverFailed, np.linalg.LinAlgError, ValueError, OverflowError, ZeroDivisionError):
            return

    def contradiction(self) -> list[Term] | None:
        """Terms that prove that no model gave these answers, if they can be found."""
        try:
            outcome = self.ties.find(None, 1)
        except SolverFailed:
            return None
        if isinstance(outcome, list) and self.proves(outcome, None, 1):
            return outcome
        return None

    # One point.

    def settle(self, x: FloatArray, suggest: bool = True) -> Settled:
        """The verdict on a point and its proof; without `suggest` the fast side is not asked again."""
        point = tuple(Fraction(float(v)) for v in x)
        own = self._own_label(point)
        if own is not None:
            return own
        stages: list[Callable[[], Settled | None]] = [lambda: self._by_one_step(point, x)]
        if self.centre is None:  # irrational lengths and no tolerance: no model can be checked, a certificate can
            stages += [lambda: self._by_float(point, x, YES), lambda: self._by_float(point, x, NO)]
            stages += [lambda: self._by_exact(point, YES), lambda: self._by_exact(point, NO)]
        else:
            sign = YES if says(self.centre, point) >= 0 else NO
            if suggest:
                stages.append(lambda: self._by_suggestion(point, x, sign))
            stages += [
                lambda: self._by_float(point, x, sign),
                lambda: self._by_nudging(point),
                lambda: self._by_tilting(point, x, sign),
                lambda: self._by_exact(point, sign),
            ]
        for stage in stages:
            if self.ties.deadline is not None and time.monotonic() > self.ties.deadline:
                break
            try:
                settled = stage()
            except (SolverFailed, *BEYOND_FLOAT64):
                continue
            if settled is not None:
                return settled
        return UNDECIDED

    def _by_one_step(self, point: Exact, x: FloatArray) -> Settled | None:
        """Settled by one explanation under a smooth distance: its plane, its step, and a Hölder term for the rest."""
        for fact in smooth_facts(self.facts):
            sign, kappa = steepest_weight(fact, x)
            if sign == 0:
                continue
            step = [-fact.side * Fraction(kappa) * w for w in fact.exact_step]
            apart = [sign * (a - Fraction(b)) for a, b in zip(point, fact.explanation.tolist(), strict=True)]
            terms = [
                Term("plane", ONE, fact.row, sign=sign),
                Term("steepest", Fraction(kappa), fact.row),
                Term("hoelder", ONE, fact.row, vector=tuple(a - b for a, b in zip(apart, step, strict=True))),
            ]
            if self.proves(terms, point, sign):
                return Settled(Verdict(sign), tuple(terms))
        return None

    def limit(self, deadline: float | None) -> None:
        """Stop at this time (time.monotonic)."""
        self.ties.deadline = deadline

    def _by_suggestion(self, point: Exact, x: FloatArray, sign: int) -> Settled | None:
        """Settled if the fast side knows a model on the other side than the centre."""
        other = self.suggest(x)
        if other is None:
            return None
        other = self._towards_centre(other, point, sign)
        return None if other is None else self._disagreement(point, sign, other)

    def _own_label(self, point: Exact) -> Settled | None:
        """A labelled point keeps its label."""
        row = self._logged.get(point)
        if row is None:
            return None
        label = self.answers[row].label
        term = Term("side", ONE, row)
        evidence = (term,)
        return Settled(Verdict(label), evidence) if label and self.proves(evidence, point, label) else None

    @property
    def _logged(self) -> dict[Exact, int]:
        if not hasattr(self, "_index"):
            self._index = own_label(self.facts)
        return self._index

    def _by_float(self, point: Exact, x: FloatArray, sign: int) -> Settled | None:
        """Settled by a float64 program and a repair, if there is room for one."""
        target = sign * np.append(x, -1.0)
        solution = self.program.solve(target, good_enough=1e-6)
        if solution.value < -1e-9 * solution.scale:
            other = self._opponent(solution, point, sign)
            if other is not None:
                return self._disagreement(point, sign, other)
            return None
        terms = self.maker.repaired(solution, point, sign)
        if terms is None or not self.proves(terms, point, sign):
            return None
        if any(isinstance(f, OnPlane) for f in self.facts.explained) and solution.value <= 1e-9 * solution.scale:
            return None  # so close that the point may lie on the plane: the exact step says
        return Settled(Verdict(sign), tuple(terms))

    def _disagreement(self, point: Exact, sign: int, other: Model) -> Settled:
        assert self.centre is not None
        models = (self.centre, other) if sign == YES else (other, self.centre)
        return Settled(Verdict.UNKNOWN, yes=models[0], no=models[1])

    def _opponent(self, solution: Solution, point: Exact, sign: int) -> Model | None:
        """A consistent model on the other side than the centre, between it and the one the program found."""
        if self.centre is None:
            return None
        try:
            there = self.core.model(self.core.coordinates(solution.model / max(np.abs(solution.model).max(), 1e-300)))
        except (np.linalg.LinAlgError, ValueError, OverflowError):
            return None
        return self._towards_centre(there, point, sign)

    def _size(self, model: Model) -> Fraction:
        """The largest entry of a model in the units of the data."""
        scale = [Fraction(v) for v in self.core.scale.tolist()]
        return max(abs(v) * s for v, s in zip((*model[0], model[1]), scale, strict=True)) or ONE

    def _towards_centre(self, there: Model, point: Exact, sign: int) -> Model | None:
        """The given model, moved towards the centre until it keeps every fact, if it still disagrees with the centre then."""
        assert self.centre is not None
        size, other = self._size(self.centre), self._size(there)
        here = [v / size for v in (*self.centre[0], self.centre[1])]
        for share in CLOSER if self._is_loose else CLOSER[:NEARLY]:
            mixed = [share * a + (1 - share) * b / other for a, b in zip(here, (*there[0], there[1]), strict=True)]
            model = (mixed[:-1], mixed[-1])
            said = says(model, point)
            if (said >= 0 if sign == YES else said < 0) or not any(model[0]):
                break
            if self.keeps(model):
                return model
            if (moved := self._fitted(model, point, -sign)) is not None:
                return moved
        return None

    # The exact step.

    def _by_exact(self, point: Exact, sign: int) -> Settled | None:
        """Settled by the program in rationals."""
        first = self.ties.find(point, sign)
        touching = self.ties.touching
        if isinstance(first, tuple) and self.centre is None:
            return None
        if isinstance(first, tuple):
            other = self._mixed(first, point, sign)
            return None if other is None else self._disagreement(point, sign, other)
        second = self.ties.find(point, -sign)
        if isinstance(second, list) and self._is_zero(first, second, point, sign):
            terms, reverse = (first, second) if sign == YES else (second, first)
            if self.proves(terms, point, Verdict.BOUNDARY, reverse):
                return Settled(Verdict.BOUNDARY, tuple(terms), tuple(reverse))
        if self.proves(first, point, sign):
            return Settled(Verdict(sign), tuple(first))
        # Not strict: some consistent model has the point on its plane, and the prices of the program are one.
        if sign in self.ties.strict and self.centre is not None:
            for model in chain([touching], self.ties.leaning(point, sign)):
                if model is None or says(model, point) != 0 or not self.keeps(model):
                    continue
                if sign == NO:
                    return self._disagreement(point, sign, model)
                # The other way round it has the point on its plane, too, and so on another side than the row that is taken as Yes.
                assert self.relative_to is not None
                if says(model, self.relative_to) > 0:
                    turned = ([-v for v in model[0]], -model[1])
                    return Settled(Verdict.UNKNOWN, yes=self.centre, no=turned, is_turned=True)
        return None

    def _is_zero(self, first: list[Term], second: list[Term], point: Exact, sign: int) -> bool:
        yes, no = (first, second) if sign == YES else (second, first)
        return not self.proves(no, point, NO) and bool(yes)

    def _mixed(self, model: Model, point: Exact, sign: int) -> Model | None:
        """A model of the closed cone, moved into it: No holds strictly."""
        assert self.centre is not None
        for exponent in (0, -4, -12, -30, -60, -120):
            share = Fraction(2) ** exponent
            mixed = [
                a + share * b for a, b in zip((*model[0], model[1]), (*self.centre[0], self.centre[1]), strict=True)
            ]
            candidate = (mixed[:-1], mixed[-1])
            said = says(candidate, point)
            if (said < 0 if sign == YES else said >= 0) and self.keeps(candidate):
                return candidate
            if (moved := self._fitted(candidate, point, -sign)) is not None:
                return moved
        return None

    def _by_tilting(self, point: Exact, x: FloatArray, sign: int) -> Settled | None:
        """Settled for a point in the band of a smooth step: an optimum elsewhere within its tolerance shows another model."""
        for fact in smooth_facts(self.facts):
            apart = x - fact.explanation
            far = float(fact.norm(apart))
            for share in (0.9, 0.5, 0.2, 0.05) if far > 0 and fact.tolerance > 0 else ():
                for way in (share, -share):
                    step = fact.step + way * fact.tolerance / far * apart
                    normal = -fact.side * np.asarray(fact.norm.gradient(step))
                    exact = [Fraction(float(v)) for v in normal]
                    through = sum(
                        (a * Fraction(v) for a, v in zip(exact, fact.explanation.tolist(), strict=True)), ZERO
                    )
                    model = (exact, through)
                    if (says(model, point) >= 0) != (sign == YES) and self.keeps(model):
                        return self._disagreement(point, sign, model)
        return None

    def _by_nudging(self, point: Exact) -> Settled | None:
        """Settled for a point inside the slab of an explanation: shift the centre's plane a little to either side."""
        assert self.centre is not None
        tolerances = [f.tolerance for f in self.facts.explained if isinstance(f, OnPlane)]
        if not tolerances or min(tolerances) == 0:
            return None
        normal = self.centre[0]
        lengths = [float(norm.dual(np.array([float(v) for v in normal]))) for norm in self.facts.norms]
        for share in (0.9, 0.5, 0.25):
            shift = Fraction(share * min(tolerances) * min(lengths))
            low, high = (normal, self.centre[1] - shift), (normal, self.centre[1] + shift)
            if says(low, point) >= 0 > says(high, point) and self.keeps(low) and self.keeps(high):
                return Settled(Verdict.UNKNOWN, yes=low, no=high)
        return None
