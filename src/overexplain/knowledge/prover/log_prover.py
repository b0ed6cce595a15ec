"""The prover of a log: verdicts on many points, and what settles one of them in the checker's words."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from overexplain.errors import SolverFailed
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.knowledge.checker import Answer, Term
from overexplain.knowledge.enclosures import Evidence
from overexplain.knowledge.facts import LEVELS, Robust
from overexplain.knowledge.prover.blocks import Block, eased
from overexplain.knowledge.prover.cone import NoInterior
from overexplain.knowledge.prover.facts import Ties
from overexplain.knowledge.prover.last_resorts import LastResorts, Settlement, find_first
from overexplain.knowledge.prover.linear import OPEN, LinearProver
from overexplain.knowledge.prover.models import MIXED, Models, clearest, mixed
from overexplain.knowledge.prover.near_enough import NearEnough
from overexplain.knowledge.prover.one_point import Evidence as Settling
from overexplain.knowledge.prover.one_point import decide, settle
from overexplain.knowledge.prover.program import by_program, interval
from overexplain.knowledge.prover.prover import UNKNOWN, Prover, is_late
from overexplain.knowledge.prover.rationals import OutOfTime
from overexplain.knowledge.prover.reduction import BOUNDARY, Contradiction, Model
from overexplain.knowledge.prover.statements import read_statements
from overexplain.knowledge.prover.written import branched, by_one_step, terms_of
from overexplain.log.extremes import BEYOND_FLOAT64

__all__ = ["Contradiction", "LogProver"]

LARGEST = 1e300
"""Entries of points beyond which nothing is claimed."""
FEW = 64
"""Points for which a program is solved if the search leaves them open."""
SHARP = 1e-9
"""A step under a smooth distance whose direction is known to within this leaves one model alone."""


@final
class LogProver:
    """Decides points for the rows in `blocks`; `answers` are the log's rows in exact numbers, sides filled in.

    known    models (a, b), rows, that may fit: where they do, the search may begin with them. No verdict depends on them
    assumed  a row whose label was assumed: Yes and No may be exchanged
    level    how much of robust answers proofs may use; models keep all of it

    Raises Contradiction if linear facts contradict each other. Where floats see no model of facts with lengths, what follows from
    the others is still certain; no point is called UNKNOWN as long as no model is known.
    """

    @np.errstate(all="ignore")
    def __init__(
        self,
        blocks: Sequence[Block],
        answers: Mapping[int, Answer],
        evidence: Evidence,
        known: FloatArray | None = None,
        *,
        assumed: int | None = None,
        level: Robust = "exact",
    ) -> None:
        self.answers, self.evidence, self._blocks = answers, evidence, tuple(blocks)
        self._lock, self._assumed, swapped = threading.RLock(), assumed, assumed is not None
        self._measured: Prover | None = None
        self._cases: tuple[LogProver, ...] | None = None
        constants = all(block.is_confined for block in blocks)
        self._linear: LinearProver | None = None
        is_measured = any(block.is_measured for block in blocks)
        if not is_measured or any(_says_more(block) for block in blocks):
            self._read_linear(swapped, constants)
        if is_measured:
            try:
                self._measured = Prover(blocks, answers, evidence, known, self._linear)
                find_first(self._measured)
            except (NoInterior, np.linalg.LinAlgError, *BEYOND_FLOAT64):
                if self._linear is None:
                    self._read_linear(swapped, constants)
        self._weaker: Prover | None = None
        self._is_exact = is_measured and level == "exact" and any(block.is_robust for block in blocks)
        self._used = list(blocks)  # by proofs
        if level in LEVELS[:2] and any(block.is_robust for block in blocks):
            self._used = [replace(block, level=level) for block in blocks]
            with suppress(NoInterior, np.linalg.LinAlgError, *BEYOND_FLOAT64):
                self._weaker = Prover(self._used, answers, evidence, linear=self._linear, is_for_proofs=True)
        # What has no tolerance, a domain or no side is not all in the facts that are searched: models are held to the log.
        self._is_told = not is_measured and not any(b.is_confined and b.answers is not None for b in blocks)
        self._is_told &= not any(block.is_off_plane and not block.is_listed for block in blocks)
        self._pool = Models(answers, evidence)
        self._last: LastResorts | None = None
        """What proofs may use, for points that the search leaves open; `_whole`: all that the log says."""
        if self._measured is not None:
            self._last = LastResorts(self._weaker or self._measured, answers, evidence, assumed)
            self._whole = self._last
            if self._weaker is not None:
                self._whole = LastResorts(self._measured, answers, evidence, assumed)

    def _read_linear(self, swapped: bool, constants: bool) -> None:
        self._said = read_statements(self._blocks, self.answers, swapped=swapped, constants=constants)
        self._linear = LinearProver(self._said.facts)
        self._near_enough = NearEnough(self._blocks, self.answers, self._said, self._linear)

    def with_cases(self, cases: Sequence[LogProver]) -> LogProver:
        """The same for a log with rows that have no side: proofs do not rest on them, and models, of the `cases`, too, are held to
        the whole log."""
        twin = self.fork()
        twin._cases, twin._is_told = tuple(cases), False
        vars(twin).pop("centre", None)
        return twin

    @property
    def _is_mixed(self) -> bool:
        """True if models have to be held to the log one by one: the search does not know all that it says."""
        is_whole = self._cases is None and self._measured is not None and self._measured.keeper.is_quick
        return not self._is_told and not (is_whole and self._measured is not None and len(self._measured.known))

    @cached_property
    def centre(self) -> Model | None:
        """A model that fits the log, if one is known."""
        if self._is_told:
            return self.linear.centre
        prover = self._measured
        found = [] if prover is None else [prover.keeper.exactly(model) for model in prover.known[:4]]
        for linear in self._linears:
            found += [linear.centre, *self._near_enough.beside(linear.centre)]
        found += [case.centre for case in self._cases or () if case.centre is not None]
        return next((model for model in found if any(model[0]) and self._pool.admits(model)), None)

    @property
    def first(self) -> Model | None:
        """The first model that was found, which the Keeper admitted: rationals are not asked about it once more."""
        if self._cases is None and self._measured is not None and len(self._measured.known):
            return self._measured.keeper.exactly(self._measured.known[0])
        return self.centre

    @property
    def _linears(self) -> list[LinearProver]:
        """The provers of what has no length in it: by the facts of the checker, and by all that models have to keep."""
        if self._linear is None:
            return []
        narrowed = self._near_enough.narrowed
        return [self._linear] if narrowed is None else [self._linear, narrowed]

    @property
    def linear(self) -> LinearProver:
        """The prover of the facts without lengths, of a log that has such."""
        assert self._linear is not None
        return self._linear

    @property
    def is_consistent(self) -> bool:
        """True if a model that fits the log is known."""
        if self._is_told and self.linear.is_centre_kept:
            return True
        if self._cases is None and self._measured is not None and len(self._measured.known):
            return True
        return self.centre is not None

    @property
    def pinned_down(self) -> bool:
        """True if the log leaves a single model, up to the tolerance of its answers."""
        prover = self._measured
        if prover is None:
            return self.linear.reduction.size == 1
        if any(1 - step.steepness / step.length < SHARP for step in prover.smooth_steps):
            return True
        models = prover.ties.outer(prover.null.T)
        return bool(prover.null.shape[1]) and int(np.linalg.matrix_rank(models / np.abs(models).max())) == 1

    def fork(self) -> LogProver:
        """A copy that learns for itself."""
        twin = object.__new__(LogProver)
        twin.__dict__.update(self.__dict__)
        twin._lock = threading.RLock()
        twin._linear = None if self._linear is None else self._linear.fork()
        twin._measured = None if self._measured is None else self._measured.fork()
        twin._weaker = None if self._weaker is None else self._weaker.fork()
        twin._pool = self._pool.fork()
        twin._cases = None if self._cases is None else tuple(case.fork() for case in self._cases)
        if vars(twin).get("_eased") is not None:
            vars(twin)["_eased"] = vars(twin)["_eased"].fork()
        twin._take_resorts()
        return twin

    def prepared(self) -> LogProver:
        """A copy with nothing that points taught it."""
        twin = self.fork()
        twin._measured = None if self._measured is None else self._measured.first()
        twin._weaker = None if self._weaker is None else self._weaker.first()
        twin._pool = Models(self.answers, self.evidence)
        vars(twin).pop("_eased", None)
        twin._take_resorts()
        return twin

    def _take_resorts(self) -> None:
        """Copies of the last resorts, about the provers that this one has."""
        if self._last is not None and self._measured is not None:
            self._last = self._last.fork(self._weaker or self._measured)
            self._whole = self._last if self._weaker is None else self._whole.fork(self._measured)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())

    @property
    def known(self) -> FloatArray:
        """Models (a, b), rows, that were found so far: rounded, so they have to be held to the log again."""
        if self._measured is not None:
            return self._measured.known
        linear = self.linear
        if linear.cone is None or linear.batch is None:
            return np.zeros((0, linear.rows.shape[1]))
        models = np.vstack([linear.cone.centre[None, :], linear.cone.models(linear.batch.models)])
        return linear.coding.models(linear.reduction.outer(models))

    @property
    def ties(self) -> Ties | None:
        """What makes models in floats exact ones, if there are lengths."""
        return None if self._measured is None else self._measured.ties

    @np.errstate(all="ignore")
    def opponents(self, X: FloatArray, most: int) -> list[Model]:
        """Models of the rows, no more than so many: those that say most clearly that points are on one side or on the other."""
        if self._measured is not None:
            known = self._measured.known
            queries = np.hstack([X, -np.ones((len(X), 1))])
            return [self._measured.keeper.exactly(known[k]) for k in clearest(queries, known, most)]
        return self.linear.opponents(X, most)

    # Points. One caller at a time: the search learns.

    @np.errstate(all="ignore")
    def codes(self, X: FloatArray, deadline: float | None = None, *, has_cases: bool = True) -> NDArray[np.int8]:
        """A code for every point; OPEN where neither a proof nor two models were found. `has_cases`: also by proofs by cases."""
        with self._lock:
            if self._measured is None:
                codes = decide(self.linear, X, deadline)
            else:
                codes = self._measured.look(X, deadline)
                if self._weaker is not None:
                    self._by_less(self._weaker, X, codes, deadline)
                self._by_easing(X, codes, deadline)
                if self._is_exact and has_cases:
                    self._by_cases(X, codes, deadline)
                if self._weaker is None:
                    self._by_program(self._measured, X, codes, deadline)
                    self._by_rationals(X, codes, deadline)
            for i in np.flatnonzero((codes == BOUNDARY) | (codes == OPEN)):
                row = self._own_row(X[i])
                codes[i] = codes[i] if row is None else self.answers[row].label or codes[i]
            if self._measured is not None:  # sums with such numbers overflow: nothing could be written down about them
                codes[~(np.abs(X) < LARGEST).all(axis=1)] = OPEN
            if self._is_mixed:
                self._confirm(X, codes, deadline)
            return codes

    def interval(self, x: FloatArray) -> tuple[float, float]:
        """How far, at least and at most, a point lies on the Yes side, by all that robust answers say but s ≤ ‖a‖*."""
        with self._lock:
            prover = self._weaker or self._measured
            if prover is None:
                raise SolverFailed("the log's robust answers tell no lengths")
            return interval(prover, x)

    @cached_property
    def _eased(self) -> Prover | None:
        """A prover of the same rows under wider terms, if these leave models so little room that floats do not see it.

        Whatever is certain under wider terms is certain.
        """
        assert self._measured is not None
        is_blind = self._measured.core is None or not len(self._measured.known)
        blocks = [eased(block, is_blind) for block in self._used]
        if all(new is old for new, old in zip(blocks, self._used, strict=True)):
            return None
        try:
            return Prover(blocks, self.answers, self.evidence, is_for_proofs=True)
        except (NoInterior, np.linalg.LinAlgError):
            return None

    def _by_less(self, weaker: Prover, X: FloatArray, codes: NDArray[np.int8], deadline: float | None) -> None:
        """What is certain by all that answers say is OPEN unless it is by what may be used."""
        assert self._measured is not None
        is_blind = self._measured.core is None or not len(self._measured.known)
        left = np.flatnonzero(codes == OPEN)[: None if is_blind else FEW]
        asked = np.sort(np.append(np.flatnonzero(np.abs(codes) == 1), left))
        whole = codes[asked]
        codes[asked] = OPEN
        said = weaker.look(X[asked], deadline)
        for i, code, less in zip(asked, whole, said, strict=True):
            sides = (1, -1) if code == OPEN else (int(code),)
            codes[i] = less if less in sides else self._last_of.side(X[i], sides, deadline)

    @property
    def _last_of(self) -> LastResorts:
        assert self._last is not None
        return self._last

    def _by_easing(self, X: FloatArray, codes: NDArray[np.int8], deadline: float | None) -> None:
        """Certain where wider terms say so."""
        left = np.flatnonzero(codes == OPEN)
        if len(left) and self._eased is not None:
            said = self._eased.look(X[left], deadline)
            sure = np.abs(said) == 1
            codes[left[sure]] = said[sure]

    def _by_program(self, prover: Prover, X: FloatArray, codes: NDArray[np.int8], deadline: float | None) -> None:
        """One linear program for each point that the search leaves open; all if it sees no inside, or no model, else a few."""
        left = np.flatnonzero(codes == OPEN)
        for i in left if prover.core is None or not len(prover.known) else left[:FEW]:
            if codes[i] != OPEN or is_late(deadline):
                continue
            codes[i] = self._last_of.side(X[i], prover.sides(X[i]), deadline)
            prover.by_known(X, codes)

    def _by_cases(self, X: FloatArray, codes: NDArray[np.int8], deadline: float | None) -> None:
        """Certain by cases, or UNKNOWN by a model that these show, for points that no convex set settles."""
        prover = self._measured
        assert prover is not None
        for i in np.flatnonzero(codes == OPEN):
            if codes[i] != OPEN:
                continue
            for sign in prover.sides(X[i]):
                if self._last_of.branches(X[i], sign, deadline) is not None:
                    codes[i] = sign
                    break
            prover.by_known(X, codes)

    def _by_rationals(self, X: FloatArray, codes: NDArray[np.int8], deadline: float | None) -> None:
        """Certain where facts without lengths say so, for points that floats leave open: all if no model is known, else a few."""
        if self._linear is None or self._measured is None:
            return
        left = np.flatnonzero(codes == OPEN)
        for i in left[:FEW] if len(self._measured.known) else left:
            try:
                code = settle(self._linear, X[i], deadline).code
            except OutOfTime:
                return
            if code in (YES, NO, BOUNDARY):
                codes[i] = code

    def _confirm(self, X: FloatArray, codes: NDArray[np.int8], deadline: float | None) -> None:
        """UNKNOWN only where two models that were held to the whole log disagree, each of them by its definition."""
        if self._measured is None or self._cases is not None:
            codes[codes == UNKNOWN] = OPEN
        for i in np.flatnonzero(codes == OPEN):
            if is_late(deadline):
                return
            if self._pool.disagree(X[i]) is None:
                for models in self._candidates(X[i], deadline):
                    self._pool.learn(models)
            if self._pool.disagree(X[i]) is not None:
                codes[i] = UNKNOWN

    def _candidates(self, x: FloatArray, deadline: float | None) -> Iterator[Sequence[Model]]:
        """Models that may disagree about a point: the centre, those of the cases, and those of the linear facts."""
        if self.centre is not None:
            yield [self.centre]
        for case in self._cases or ():
            assert case.centre is not None
            yield [case.centre]
            if case.codes(x[None, :], deadline)[0] == UNKNOWN:
                yield from (found.models for found in case.settle(x, UNKNOWN, deadline) if found.models is not None)
        shown = None if self._measured is None else self._measured.models(x)
        if shown is not None:
            yield shown
        for linear in self._linears:
            try:
                found = settle(linear, x, deadline)
            except OutOfTime:
                return
            if found.models is not None:
                yield found.models
                if self.centre is not None:
                    yield [mixed(model, self.centre, share) for model in found.models for share in MIXED]
                yield from (list(self._near_enough.beside(model)) for model in found.models)
        if self._measured is not None and not len(self._measured.known):
            yield self._whole.models(x, deadline)

    @np.errstate(all="ignore")
    def settle(self, x: FloatArray, code: int | None, deadline: float | None = None) -> Iterator[Settlement]:
        """What may settle a point, best first; floats believe it, the checker is still to be asked.

        Models and sets of rows that other points taught take no part, but for an UNKNOWN that is shown by no others;
        cuts, and which rows are searched, stay. `code`: the verdict, if it is known.
        """
        row = self._own_row(x)
        if row is not None:
            label = self.answers[row].label
            assert label is not None
            yield Settlement(label, (Term("side", Fraction(1), row),))
        if self._measured is None:
            yield from self._of_linear(settle(self.linear, x, deadline))
        else:
            yield from self._of_measured(x, code, deadline)
        if self._is_mixed and code in (None, UNKNOWN):
            with self._lock:
                self._confirm(x[None, :], np.full(1, OPEN, dtype=np.int8), deadline)
                models = self._pool.disagree(x)
            if models is not None:
                yield Settlement(UNKNOWN, models=models)

    def _of_measured(self, x: FloatArray, code: int | None, deadline: float | None) -> Iterator[Settlement]:
        assert self._measured is not None
        with self._lock:
            prover = self._measured.pristine()
        if code is None:
            code = int(prover.look(x[None, :], deadline)[0])
        if abs(code) == 1:
            if prover.strict is not None:  # cuts for this point; then those that others asked for
                prover.look(x[None, :], deadline)
            yield from self._certain(prover, x, code)
            yield from self._certain(self._measured, x, code)
            return
        if code == OPEN:  # what is left to programs and to cases, which may show models
            for sign in prover.sides(x):
                yield from self._certain(prover, x, sign)
        elif code == UNKNOWN:
            prover.look(x[None, :], deadline)
        if code in (OPEN, UNKNOWN):
            for known in (prover, self._measured):  # those found for this point; or for others, too
                models = known.models(x)
                if models is not None:
                    yield Settlement(UNKNOWN, models=models)
        elif code == BOUNDARY:
            if self._linear is not None:
                yield from self._of_linear(settle(self._linear, x, deadline))
            yield from self._last_of.exactly(x, deadline)

    def _own_row(self, x: FloatArray) -> int | None:
        """The row that labels the point itself: it keeps its label, on the plane, too, unless that is a matter of naming."""
        row = self._own_rows.get((x + 0.0).tobytes())
        return row if self._assumed in (None, row) else None

    @cached_property
    def _own_rows(self) -> dict[bytes, int]:
        found: dict[bytes, int] = {}
        for block in self._blocks:
            for x, row, side in zip(block.points, block.rows, block.sides, strict=True):
                key = (x + 0.0).tobytes()
                if side and (key not in found or row == self._assumed):
                    found[key] = int(row)
        return found

    def _certain(self, prover: Prover, x: FloatArray, code: int) -> Iterator[Settlement]:
        for step in prover.smooth_steps:
            radius = next((b.radius for b in prover.blocks if b.is_robust and step.row in b.rows), None)
            terms = by_one_step(self.answers, step, x, code, radius)
            if terms is not None:
                yield Settlement(code, tuple(terms))
        used = self._weaker or prover
        for asked, find in ((used, Prover.prove), (self._eased, Prover.prove), (used, by_program)):
            shown = None if asked is None else find(asked, x, code)
            proof = shown[0] if isinstance(shown, tuple) else shown
            if asked is not None and proof is not None:
                for terms in terms_of(asked, self.answers, self.evidence, x, proof):
                    branches = branched(asked, self.answers, self.evidence, terms)
                    yield Settlement(code, () if branches else tuple(terms), branches=branches)
        if prover.linear is not None:
            for found in self._of_linear(settle(prover.linear, x)):
                if found.code == code:
                    yield found
        yield from (found for found in self._last_of.exactly(x, None) if found.code == code)
        if self._is_exact:
            branches = self._last_of.fork(prover).branches(x, code, None)
            if branches is not None:
                yield Settlement(code, branches=branches)

    def _of_linear(self, found: Settling) -> Iterator[Settlement]:
        if found.models is not None:
            yield Settlement(UNKNOWN, models=found.models)
        else:
            terms = self._said.terms(found.weights or {}, found.both)
            yield Settlement(found.code, tuple(terms), tuple(self._said.terms(found.reverse or {})))


def _says_more(block: Block) -> bool:
    """True if some of what the rows say has no length in it: labels, and where answers without tolerance lie."""
    return not block.is_measured or block.has_bare_sides or not block.tolerance.any()
