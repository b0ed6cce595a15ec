"""One point, settled with a proof, for logs with robust counterfactuals.

Certain: one cone program finds weights and Hölder terms, which are repaired to add up exactly (`terms`). Open: its model, and one
on the other side of s = ‖a‖*, have one between them that could have given every answer (`strict`). What neither settles, and
`robust="exact"` asks for, is decided by cases (`search`). Only what the checker accepts is believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import final

import numpy as np

from overexplain.errors import SolverFailed
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.knowledge.belief import Belief
from overexplain.knowledge.checker import Answer, Branch, Branched, Term
from overexplain.knowledge.core import find_core
from overexplain.knowledge.enclosures import Evidence, Vector
from overexplain.knowledge.exact import ONE
from overexplain.knowledge.facts import Facts, OffPlane, OnPlane, Secret, Steepest
from overexplain.knowledge.opponents import Opponents, unit
from overexplain.knowledge.program import Program, Solution
from overexplain.knowledge.search import Search
from overexplain.knowledge.settle import UNDECIDED, Settled, own_label
from overexplain.knowledge.smooth import steepest_weight
from overexplain.knowledge.strict import Strict
from overexplain.knowledge.terms import TermMaker
from overexplain.knowledge.ties import Exact, Model, Ties, as_floats, says
from overexplain.knowledge.verdicts import Verdict


@final
class RobustSettler:
    """Settles points. `level` are the facts that certificates may use, `facts` all there are: models must keep those.

    `weaker` are facts of weaker levels: a solver may find its way with less where more leaves it no room.
    """

    def __init__(
        self,
        answers: Mapping[int, Answer],
        level: Facts,
        facts: Facts,
        evidence: Evidence,
        deadline: float | None,
        by_cases: bool,
        weaker: Sequence[Facts] = (),
        relative_to: Vector | None = None,
    ) -> None:
        self.answers, self.evidence, self.by_cases = answers, evidence, by_cases
        self._weaker = weaker
        belief = Belief(answers, evidence, relative_to)
        self.proves, self.keeps = belief.proves, belief.keeps
        self.facts = facts
        self.program = Program(level)
        self.maker = TermMaker(self.program, answers, evidence)
        self.whole = self.program if level is facts else Program(facts)
        self.core = find_core(facts, -self.whole.exponents)
        self.strict = Strict(facts, self.core, self.whole)
        self.centre: Model | None = None
        self.models = Opponents(self.strict, self.whole)
        self._deadline = deadline
        self._own = own_label(facts)

    def limit(self, deadline: float | None) -> None:
        """Stop at this time (time.monotonic)."""
        self._deadline = deadline

    # The log as a whole.

    def find_centre(self, centre: Model | None = None) -> bool:
        """True if a consistent model is known, or found between those that cone programs find."""
        if centre is not None:
            self.centre, self.models.centre = centre, as_floats(centre)
            return True
        return any(map(self._is_centre, self.models.first_models([])))

    def _is_centre(self, w: FloatArray) -> bool:
        """True if w, as it is or corrected, keeps every fact: then it is the centre."""
        if not np.isfinite(w).all() or not w[:-1].any():
            return False
        for found in (self.strict.exact(w), _as_it_is(w), _as_it_is(self.strict.fitted(w))):
            if self.keeps(found):
                assert found is not None
                self.centre, self.models.centre = found, as_floats(found)
                return True
        return False

    def look_further(self) -> Branched | None:
        """Looks for a consistent model by cases; the proof that there is none, if they show that."""
        if not self.search.applies:
            return None
        outcome = self.search.explore(self._deadline)
        if outcome.beyond is not None:
            beyond = unit(outcome.beyond)
            pulled = self.strict.pulled(beyond)
            inner = [] if pulled is None else [pulled]
            for w in chain(inner, [beyond], self.models.made_strict(beyond)):
                if self._is_centre(w):
                    return None
        branches = outcome.branches
        return branches if branches is not None and self.proves((), None, YES, branches=branches) else None

    # One point.

    def settle(self, x: FloatArray) -> Settled:
        """The verdict on a point and its proof."""
        point = tuple(Fraction(float(v)) for v in x)
        own = self._own.get(point)
        if own is not None:
            label = self.answers[own].label
            terms = (Term("side", ONE, own),)
            if label and self.proves(terms, point, label):
                return Settled(Verdict(label), terms)
        signs: tuple[int, ...] = (YES, NO)
        if self.centre is not None:
            signs = (YES,) if says(self.centre, point) >= 0 else (NO,)
        settled = self._by_one_step(point, x)
        for sign in signs:
            if settled is None:
                settled = self._claim(point, x, sign)
        return UNDECIDED if settled is None else settled

    def _by_one_step(self, point: Exact, x: FloatArray) -> Settled | None:
        """Settled by one answer under a smooth distance: its step shows the direction of a, and with it s."""
        steps = {f.row: f for f in self.program.facts.explained if isinstance(f, Steepest) and f.norm.is_smooth}
        for fact in self.program.facts.off_plane:
            step = steps.get(fact.row)
            if step is None or not fact.tight or isinstance(fact.ball, Secret):
                continue
            way, gradient = -fact.side, np.asarray(step.norm.gradient(step.step))
            touch = (1 - 2.0**-40) * np.asarray(fact.ball.maximizer(gradient))
            beyond = replace(step, explanation=fact.explanation - fact.radius * touch)
            sign, kappa = steepest_weight(beyond, x)
            if sign == way:
                reach = [-way * Fraction(fact.radius) * Fraction(float(v)) for v in touch]
                terms = [Term("plane", ONE, fact.row), self.maker.holder(fact.ball, reach)]
            elif sign:
                kappa = steepest_weight(step, x)[1]
                terms = [Term("plane", ONE, fact.row, sign=-1), *self.maker.reach_at_most(fact, way * gradient)]
            settled = None if not sign else self._with_step(terms, step, kappa, point, sign)
            if settled is not None:
                return settled
        return None

    def _with_step(self, terms: list[Term], step: Steepest, kappa: float, point: Exact, sign: int) -> Settled | None:
        """The terms, a multiple of the step, and a Hölder term for the rest, if the checker accepts them."""
        terms = [*terms, Term("steepest", Fraction(kappa), step.row)]
        rest = self.maker.missing(terms, [sign * v for v in (*point, Fraction(-1))])
        if rest[-1]:
            return None
        return self._accepted([*terms, self.maker.holder(step.norm, rest[:-1])], point, sign, self.maker)

    def _claim(self, point: Exact, x: FloatArray, sign: int) -> Settled | None:
        target = sign * np.append(x, -1.0)
        there = self.models.against(target)
        is_open = there is not None and float(target @ there) < 0 and self.centre is not None
        settled = None
        if not is_open or self.whole is not self.program:  # (a weaker set may still prove less than the model shows)
            settled = self._proved(target, point, sign)
        if settled is None and there is not None and is_open:
            settled = self._open(self.models.opponents(there, target), point, sign)
            if settled is None:
                settled = self._open(self.models.more_opponents(there, target), point, sign)
            if settled is None and self._is_shown:
                settled = self._open(self.strict.shown(x), point, sign, as_it_is=True)
            if settled is None and self.whole is self.program and self._is_shown:
                # A core that is only nearly right may show a model that is none.
                settled = self._proved(target, point, sign)
            if settled is None and self.by_cases and self.search.applies:
                settled = self._by_cases(there, target, point, x, sign)
        if settled is None and not (is_open and self.search.applies):
            settled = self._proved_by_less(target, point, sign)
        if settled is None and self.centre is not None and (self.strict.is_linear or not is_open):
            settled = self._tied(point, sign)
        return settled

    @cached_property
    def _is_shown(self) -> bool:
        """True if a smooth distance shows the direction of a, but only as well as a tolerance's root."""
        return any(isinstance(fact, Steepest) and fact.norm.is_smooth for fact in self.facts.explained)

    def _proved(self, target: FloatArray, point: Exact, sign: int) -> Settled | None:
        """Settled by weights that a cone program finds, or, where models have no room, linear ones."""
        return self._weighed(self.program, self.maker, target, point, sign)

    def _proved_by_less(self, target: FloatArray, point: Exact, sign: int) -> Settled | None:
        """The same with the facts of a weaker level."""
        for program, maker in self._weaker_programs:
            settled = self._weighed(program, maker, target, point, sign)
            if settled is not None:
                return settled
        return None

    @cached_property
    def _weaker_programs(self) -> list[tuple[Program, TermMaker]]:
        programs = [Program(facts) for facts in self._weaker]
        return [(program, TermMaker(program, self.answers, self.evidence)) for program in programs]

    def _weighed(
        self, program: Program, maker: TermMaker, target: FloatArray, point: Exact, sign: int
    ) -> Settled | None:
        for solve in (program.solve, lambda target: self._by_columns(program, target)):
            try:
                solution = solve(target)
            except SolverFailed:
                continue
            if solution.value <= -1e-9 * solution.scale:
                return None
            terms = maker.repaired(solution, point, sign)
            settled = None if terms is None else self._accepted(terms, point, sign, maker)
            if settled is not None and (solution.value > 1e-9 * solution.scale or not self._is_exact):
                return settled
        return None

    def _by_columns(self, program: Program, target: FloatArray) -> Solution:
        """The program with Hölder columns, those at the best model against the claim first."""
        there = self.models.against(target)
        if there is not None:
            for number, norm in enumerate(program.norms):
                program.add_direction(number, -np.asarray(norm.maximizer(there[:-1])))
        return program.solve_by_columns(target, 1e-6)

    def _tied(self, point: Exact, sign: int) -> Settled | None:
        """Settled by the program in rationals: what hangs on an exact zero."""
        self.ties.deadline = self._deadline
        try:
            first = self.ties.find(point, sign)
            second = self.ties.find(point, -sign)
        except SolverFailed:
            return None
        if isinstance(first, list) and isinstance(second, list):
            yes, no = (first, second) if sign == YES else (second, first)
            if not self.proves(no, point, NO) and self.proves(yes, point, Verdict.BOUNDARY, no):
                return Settled(Verdict.BOUNDARY, tuple(yes), tuple(no))
        if isinstance(first, list) and self.proves(first, point, sign):
            return Settled(Verdict(sign), tuple(first))
        if isinstance(first, tuple) and self.centre is not None:
            for exponent in (-120, -60, -30, -12, -4, 0):  # a model of the closed cone, moved into it
                model = _mixed(first, self.centre, Fraction(2) ** exponent)
                if (says(model, point) >= 0) != (sign == YES) and self.keeps(model):
                    return self._disagreement(model, sign)
        return None

    def _disagreement(self, other: Model, sign: int) -> Settled:
        """The centre, which says `sign`, and a model that says otherwise."""
        assert self.centre is not None
        models = (self.centre, other) if sign == YES else (other, self.centre)
        return Settled(Verdict.UNKNOWN, yes=models[0], no=models[1])

    @cached_property
    def _is_exact(self) -> bool:
        """True if some answer has no tolerance: then a point may lie on the plane of every model."""
        return any(fact.tolerance == 0 for fact in self.facts.explained if isinstance(fact, OnPlane | OffPlane))

    @cached_property
    def ties(self) -> Ties:
        """The program in rationals."""
        return Ties(self.program, self.maker, self._deadline)

    @cached_property
    def search(self) -> Search:
        """The search by cases."""
        maker = self.maker if self.whole is self.program else TermMaker(self.whole, self.answers, self.evidence)
        return Search(self.facts, self.whole, maker)

    def _by_cases(
        self, there: FloatArray, target: FloatArray, point: Exact, x: FloatArray, sign: int
    ) -> Settled | None:
        outcome = self.search.decide(x, point, sign, self._deadline)
        if outcome.branches is not None and self.proves((), point, sign, branches=outcome.branches):
            return Settled(Verdict(sign), branches=outcome.branches)
        if outcome.beyond is None:
            return None
        beyond = unit(outcome.beyond)
        return self._open(
            chain(self.models.near(beyond, target), self.models.between(there, beyond, target)), point, sign
        )

    def _open(
        self, candidates: Iterator[FloatArray], point: Exact, sign: int, as_it_is: bool = False
    ) -> Settled | None:
        """Two models, if one among the candidates keeps every fact and disagrees with the centre."""
        for w in candidates:
            if not self.strict.fits(w):
                continue
            found = _as_it_is(w) if as_it_is else self.strict.exact(w)
            if found is not None and (says(found, point) >= 0) != (sign == YES) and self.keeps(found):
                return self._disagreement(found, sign)
        return None

    def _accepted(self, terms: list[Term], point: Exact, sign: int, maker: TermMaker) -> Settled | None:
        """What the terms prove: by themselves, or with the box that steps leave."""
        if self.proves(terms, point, sign):
            return Settled(Verdict(sign), tuple(terms))
        if not maker.bounds or not any(term.fact == "chord" for term in terms):
            return None
        branch = Branch((Term("denied", ONE), *terms), maker.bounds)  # chords of the box that steps leave
        branches = Branched(maker.unit_row, branch)
        return Settled(Verdict(sign), branches=branches) if self.proves((), point, sign, branches=branches) else None

    def interval(self, x: FloatArray) -> tuple[float, float]:
        """(least, greatest) signed distance of a point from the planes of the convex set; decided cases are left out."""
        ends = []
        for sign in (YES, NO):
            target = sign * np.append(x, -1.0)
            there = self.models.against(target)
            if there is None or self.whole.conic is None:
                raise SolverFailed("no model of the convex set was found, or nothing tells its size")
            ends.append(sign * float(target @ there) / float(self.models.unit_norm.dual(there[:-1])))
        return ends[0], ends[1]


def _mixed(model: Model, centre: Model, share: Fraction) -> Model:
    pairs = zip((*model[0], model[1]), (*centre[0], centre[1]), strict=True)
    mixed = [a + share * b for a, b in pairs]
    return mixed[:-1], mixed[-1]


def _as_it_is(w: FloatArray) -> Model:
    exact = [Fraction(float(v)) for v in w]
    return exact[:-1], exact[-1]
