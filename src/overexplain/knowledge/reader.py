"""Reads a log of any length: a few rows decide, all others are held against what these say.

What the *working* rows prove is true of the log, and rows that contradict each other do so in it. What they leave open is open for
the log only if two models that disagree keep all of its rows; a row that a model breaks joins the working ones, and the point is
asked again (docs/theory/long-logs.md). So nothing that chooses rows has to be right: a bad choice costs time.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.knowledge.checker import Answer, Term
from overexplain.knowledge.evidence import Finder
from overexplain.knowledge.facts import Robust
from overexplain.knowledge.prover.all_rows import PIECE, AllRows, Shown
from overexplain.knowledge.prover.cone import gamma
from overexplain.knowledge.prover.last_resorts import Settlement
from overexplain.knowledge.prover.linear import OPEN
from overexplain.knowledge.prover.models import mixed
from overexplain.knowledge.prover.prover import UNKNOWN, is_late
from overexplain.knowledge.prover.rationals import OutOfTime
from overexplain.knowledge.prover.reduction import Model
from overexplain.knowledge.working import Working
from overexplain.log.extremes import BEYOND_FLOAT64
from overexplain.log.querylog import QueryLog, Status

LONG = 10_000
"""Logs that are no longer than this are read as a whole."""
FIRST, EACH = 256, 8
"""Rows that are read at first, and so many of each kind; the part that is read doubles."""
UNSIDED = 32
"""Explanations without a label among them: a proof of each one's side is looked for."""
AFFORDED = 10
"""How many times more rows are read if fewer show no model."""
ROUNDS = 64
"""How often rows may join while a log is read."""
DIRECTIONS = 2
"""Rows that join for one model while a log is read: for each of its numbers."""
LAZY, ASKED, JOINED = 6, 16, 4
"""Rounds without a new verdict after which points are left, models that are held in each, and rows that join for each of these."""
EXACT = 4
"""Points for which models are looked for in rationals, where floats show none."""
POOL = 512
"""Models that are kept."""
INSIDE = 0.99
"""How far a model is drawn from the middle, as a share of how far it could be."""


@final
class Reader:
    """What a log says; raises InconsistentLog if no model fits it. `earlier` is what was read of the log before rows were added."""

    def __init__(
        self,
        log: QueryLog,
        answers: Mapping[int, Answer],
        tolerance: float | None,
        robust: Robust,
        earlier: Reader | None = None,
    ) -> None:
        self._log, self._answers, self._tolerance, self._robust = log, answers, tolerance, robust
        self.pool: tuple[Shown, ...] = ()
        """Models that keep every row, of a log that is not read as a whole."""
        self._count = len(log)
        self._first: tuple[Working, tuple[Shown, ...]]
        """The working rows and the models before any point was asked about."""
        if earlier is not None and not earlier.is_whole and self._reads_on(earlier):
            return
        self.working = self._start(earlier)
        if not self.is_whole:
            self._read()
        self._first = self.working, self.pool

    def _start(self, earlier: Reader | None) -> Working:
        """The rows to begin with."""
        log, before, prover = self._log, None if earlier is None else earlier._first[0], None
        if len(log) <= LONG:
            rows = np.arange(len(log))
            prover = earlier.working.prover if earlier is not None and self._adds_nothing(earlier) else None
        else:
            rows = _first_rows(log) if before is None else before.rows
        return Working(log, rows, self._answers, self._tolerance, self._robust, before, prover)

    def _reads_on(self, earlier: Reader) -> bool:
        """True if a model that was found before any point was asked about keeps the rows added: nothing else is read again."""
        if earlier.working.sides.assumed:
            return False  # a label may have come
        held = earlier._over(self._log, self._answers).held(earlier.pool, earlier._count, self._count)
        self.pool = tuple(model for model, one in zip(earlier.pool, held, strict=True) if not len(one.broken))
        first: tuple[Shown, ...] = tuple(model for model in earlier._first[1] if model in self.pool)
        self.working = earlier.working.after(self._log, self._answers)
        self._first = earlier._first[0].after(self._log, self._answers), first
        return bool(first)

    def _adds_nothing(self, earlier: Reader) -> bool:
        """True if the rows added are labels that were certain already: the cone stays as it is."""
        log, new = self._log, slice(earlier._count, len(self._log))
        if (log.status[new] == Status.ASKED).any() or not log.labels[new].all():
            return False
        return bool(np.array_equal(earlier.codes(np.array(log.points[new]), None), log.labels[new]))

    # All rows.

    @property
    def is_whole(self) -> bool:
        """True if every row is a working one."""
        return len(self.working.rows) == self._count

    @property
    def is_consistent(self) -> bool:
        """True if a model that fits every row is known."""
        return self.working.prover.is_consistent if self.is_whole else bool(self.pool)

    @property
    def centre(self) -> Model | None:
        """A model that fits every row, if one is known."""
        if self.is_whole:
            return self.working.prover.centre
        return self.pool[0].exact if self.pool else None

    @cached_property
    def _rows(self) -> AllRows:
        return self._over(self._log, self._answers)

    def _over(self, log: QueryLog, answers: Mapping[int, Answer]) -> AllRows:
        """All rows of a log, by the lengths of the working ones."""
        return AllRows(log, answers, self._tolerance, Finder(), self.working.numbers)

    def _join(self, rows: Sequence[IntArray], *, is_doubted: bool = True) -> bool:
        """True if some of the rows are new: they are working ones now."""
        every = np.unique(np.concatenate([self.working.rows, *rows]))
        if len(every) == len(self.working.rows):
            return False
        self.working = Working(
            self._log, every, self._answers, self._tolerance, self._robust, self.working, is_doubted=is_doubted
        )
        vars(self).pop("_rows", None)
        return True

    def _read(self) -> None:
        """Find a model that keeps every row: the middle one of the working rows, which those join that it breaks."""
        low, high, most = 0, min(FIRST, self._count), DIRECTIONS * (self._log.points.shape[1] + 1)
        for _ in range(ROUNDS):
            model, broken = self.working.centre, np.zeros(0, dtype=np.int64)
            while model is not None and low < high and not len(broken):
                broken = self._rows.held([model], low, high)[0].broken[:most]
                if not len(broken):
                    low, high = high, min(2 * high, self._count)
            if self.is_whole or (model is not None and not len(broken)):
                self.pool = () if model is None else (model,)
                return
            is_new = self._join([broken])
            if not is_new and not self._join([self._more()], is_doubted=False):
                return
            low = 0

    def _more(self) -> IntArray:
        """Rows that may show a model where the working ones do not."""
        return np.arange(min(2 * len(self.working.rows), AFFORDED * LONG, self._count))

    # Points.

    @np.errstate(all="ignore")
    def codes(self, X: FloatArray, deadline: float | None) -> NDArray[np.int8]:
        """A code for every point; OPEN where neither a proof nor two models were found."""
        codes = self.working.prover.codes(X, deadline)
        if self.is_whole:
            return codes
        for i in np.flatnonzero(np.abs(codes) != 1):
            codes[i] = self._own_label(X[i]) or codes[i]
        sure, idle = np.zeros(len(X), dtype=bool), 0
        while True:
            left = np.flatnonzero(((codes == UNKNOWN) | (codes == OPEN)) & ~sure)
            sure[left] = self._are_open(X[left])
            still = left[~sure[left]]
            idle = idle + 1 if len(still) == len(left) else 0
            if not len(still) or idle > LAZY or is_late(deadline):
                break
            count = len(self.pool)
            joined = self._join(self._broken(X[still], X[still[codes[still] == UNKNOWN]], deadline))
            if joined:
                codes[still] = self.working.prover.codes(X[still], deadline)
            elif len(self.pool) == count:
                break
        codes[(codes == UNKNOWN) & ~sure] = OPEN
        codes[sure] = UNKNOWN
        return codes

    def _said(self, X: FloatArray) -> FloatArray:
        """What models that keep every row say of points, in units of its rounding."""
        if not self.pool:
            return np.zeros((len(X), 1))
        models = np.array([model.floats for model in self.pool])
        queries = np.hstack([X, -np.ones((len(X), 1))])
        off = gamma(X.shape[1] + 8) * (np.abs(queries) @ np.abs(models).T)
        return np.asarray(queries @ models.T / np.maximum(off, 1e-300))

    def _are_open(self, X: FloatArray) -> BoolArray:
        """True where two models that keep every row disagree, for certain."""
        said = self._said(X)
        return np.asarray((said > 1).any(axis=1) & (said < -1).any(axis=1))

    def _broken(self, X: FloatArray, unknown: FloatArray, deadline: float | None) -> list[IntArray]:
        """Rows that models which the working ones leave break; those that keep every row, drawn to the middle if need be, are in
        the pool from now on."""
        middle = self.working.centre
        asked = [] if middle is None else [middle]
        asked += self._opponents(X) or self._exact_opponents(unknown, deadline)
        if not asked:
            return []
        held = self._rows.held(asked, 0, self._count)
        kept = [model for model, one in zip(asked, held, strict=True) if not len(one.broken)]
        drawn = []
        if middle is not None and not len(held[0].broken):
            for model, one in zip(asked[1:], held[1:], strict=True):
                share = INSIDE * one.share
                if len(one.broken) and share > 0 and model.ties is middle.ties:
                    drawn.append(Shown.of(mixed(middle.exact, model.exact, Fraction(share)), model.ties))
        queries = np.hstack([X, -np.ones((len(X), 1))])
        drawn = [m for m in drawn if ((queries @ m.floats > 0) != (queries @ asked[0].floats > 0)).any()]
        again = self._rows.held(drawn, 0, self._count) if drawn else []
        kept += [model for model, one in zip(drawn, again, strict=True) if not len(one.broken)]
        new = tuple(model for model in kept if model not in self.pool)
        self.pool = (*self.pool[: POOL - len(new)], *new)
        return [one.broken[:JOINED] for one in held]

    def _opponents(self, X: FloatArray) -> list[Shown]:
        """Models of the working rows that say most clearly on which sides points may be."""
        said = {tuple(model.floats.tolist()) for model in self.pool}
        found = [model for model in self.working.prover.opponents(X, ASKED) if any(model[0])]
        models = [Shown.of(model, self.working.ties) for model in found]
        return [model for model in models if tuple(model.floats.tolist()) not in said]

    def _exact_opponents(self, X: FloatArray, deadline: float | None) -> list[Shown]:
        """Models that show the first points to be open, by rationals if need be."""
        found: list[Shown] = []
        with suppress(OutOfTime, *BEYOND_FLOAT64):
            for x in X[:EXACT]:
                pairs = (one.models for one in self.working.prover.settle(x, UNKNOWN, deadline))
                pair = next((pair for pair in pairs if pair is not None), ())
                found += [Shown.of(model, self.working.ties) for model in pair]
        return found

    # One point.

    def settle(self, x: FloatArray, code: int | None, deadline: float | None) -> Iterator[Settlement]:
        """What may settle a point, best first; floats believe it, the checker is still to be asked."""
        if self.is_whole:
            yield from self.working.prover.settle(x, code, deadline)
            return
        row = self._own_row(x)
        if row is not None:
            yield Settlement(int(self._log.labels[row]), (Term("side", Fraction(1), row),))
        code = int(self.codes(x[None, :], deadline)[0]) if code is None or code == UNKNOWN else code
        if code != UNKNOWN:
            yield from self.working.prover.settle(x, code, deadline)
        elif self._are_open(x[None, :])[0]:
            said = self._said(x[None, :])[0]
            yes, no = self.pool[int(said.argmax())], self.pool[int(said.argmin())]
            yield Settlement(UNKNOWN, models=(yes.exact, no.exact))

    def _own_label(self, x: FloatArray) -> int:
        row = self._own_row(x)
        return 0 if row is None else int(self._log.labels[row])

    def _own_row(self, x: FloatArray) -> int | None:
        """The row that labels the point itself."""
        keys, rows = self._own_rows
        key = _keys(x[None, :])[0]
        alike = rows[np.searchsorted(keys, key) : np.searchsorted(keys, key, side="right")]
        return next((row for row in alike.tolist() if (self._log.points[row] == x).all()), None)

    @cached_property
    def _own_rows(self) -> tuple[NDArray[np.uint64], IntArray]:
        """A number for every labelled point, in order, and its row."""
        rows = np.flatnonzero(self._log.labels[: self._count])
        pieces = (_keys(self._log.points[rows[i : i + PIECE]]) for i in range(0, len(rows), PIECE))
        keys = np.concatenate([np.zeros(0, dtype=np.uint64), *pieces])
        order = np.argsort(keys, kind="stable")
        return keys[order], rows[order]

    # Copies.

    def fork(self) -> Reader:
        """A copy that learns for itself."""
        twin = copy.copy(self)
        twin.working = self.working.fork()
        return twin

    def prepared(self) -> Reader:
        """A copy with nothing that points taught it."""
        twin = copy.copy(self)
        vars(twin).pop("_rows", None)
        twin.working, twin.pool = self._first[0].prepared(), self._first[1]
        return twin


def _first_rows(log: QueryLog) -> IntArray:
    """The first rows, few of them without a label, and some of each kind."""
    free = (log.labels == 0) & (log.status == Status.ASKED)
    kinds = [log.mechanism_ids == number for number in range(len(log.mechanisms))]
    kinds += [log.labels == label for label in (1, -1)]
    some = [np.flatnonzero(~free)[:FIRST], np.flatnonzero(free)[:UNSIDED]]
    return np.unique(np.concatenate([*some, *(np.flatnonzero(kind)[:EACH] for kind in kinds)]))


def _keys(points: FloatArray) -> NDArray[np.uint64]:
    """A number for every point, the same for equal ones."""
    bits = (points + 0.0).view(np.uint64)
    odd = np.arange(1, 2 * points.shape[1], 2, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray(((bits ^ (bits >> np.uint64(29))) * odd).sum(axis=1))
