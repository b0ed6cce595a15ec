"""Facts with lengths in them: what explanations give away, as far as floats can prove it (docs/theory/ties.md).

Ties are substituted first. Equalities that are thin and sharp are taken as exact by the search (the *core* is what they
leave), all else are rows; the search asks for *room*, a share of t that the proof may cost, more or less of it until a
proof or two models turn up. A point whose verdict hangs on the tolerances themselves is searched for in *slab
coordinates*, in which the place of each plane in its slab is an unknown of its own. Proofs are believed if
`lengths.Payer` says so, models if the `Keeper` admits them, whatever the search did.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import final

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.knowledge.checker import Answer
from overexplain.knowledge.enclosures import Evidence
from overexplain.knowledge.prover.batch import HELD
from overexplain.knowledge.prover.blocks import Block
from overexplain.knowledge.prover.cone import NoInterior, gamma
from overexplain.knowledge.prover.keeper import Keeper, Model
from overexplain.knowledge.prover.lengths import usable
from overexplain.knowledge.prover.likely import likely_models, shown_models
from overexplain.knowledge.prover.linear import OPEN, LinearProver
from overexplain.knowledge.prover.pinned import Pinned, pin
from overexplain.knowledge.prover.reduction import BOUNDARY
from overexplain.knowledge.prover.rows import Rows
from overexplain.knowledge.prover.stage import Asked, Proof, Rooms, Stage
from overexplain.knowledge.prover.strict import Strict, Together, strict_of, together_of
from overexplain.knowledge.smooth import smooth_codes

UNKNOWN = 0
ATTEMPTS = 14
FEW_FITTED = 4
"""Refused models that get another offset, where only rationals can tell."""
FEW_POINTS = 32
"""Points for which a model through the point itself is looked for."""
KNOWN, SOME = 2048, 64
"""Models that are kept, and how many of them are shown to points before a search."""
ROUNDS, GROUP = 4, 16
"""Rounds of cuts before the optima of robust claims are asked for, and so many at a time."""
VOLLEYS, VOLLEY = 3, 256
"""Rays that are sent against claims."""
SPREAD, PLACES = 64, (1e-3, 0.05, 0.95, 0.999)
"""Known models whose offsets are moved, and where to between the least and the largest that is left to them."""
BESIDE = 0.05
"""How much of a known model is in one that others are looked for from: the worst are where lengths change hands."""
SHARES = (0.02, 0.2, 0.5, 0.8, 0.95)
"""How far refused models are moved towards the centre."""


@final
class Prover(Rows):
    """Decides points for a log with lengths; codes are 1, −1, 0 or OPEN (3). `hint`: models (a, b), rows, that may fit it;
    `linear`: a prover of what it says without lengths; `is_for_proofs`: no models are looked for;
    `is_branched`: proofs may have bounds."""

    def __init__(
        self,
        blocks: Sequence[Block],
        answers: Mapping[int, Answer],
        evidence: Evidence,
        hint: FloatArray | None = None,
        linear: LinearProver | None = None,
        *,
        is_for_proofs: bool = False,
        is_branched: bool = True,
    ) -> None:
        self.linear, self.is_for_proofs = linear, is_for_proofs
        super().__init__(blocks, is_branched=is_branched)
        self.keeper = Keeper(blocks, self.ties, answers, evidence)
        self.known, self._learned = np.zeros((0, self.p + 1)), 0
        self._tries_centre = hint is None or self.keeper.is_quick  # else rationals would: too slow for a hint
        if hint is not None and self.keeper.is_quick:
            self._learn(hint[self.keeper.kept(hint)])
        self.strict: Strict | None = None
        self.together: Together | None = None
        self.fit()
        if self._tries_centre and self.core is not None:
            self.admit(self.core.centre[None, :])
        if not is_for_proofs:
            self.strict, self.together = strict_of(self, blocks), together_of(self, blocks)
        if self.strict is not None:
            self.strict.pull()
            self._keep(self.strict.at_first())
            if not len(self.known):
                self._keep(self.strict.pushed())
        elif self.together is not None:
            self._keep(self.together.at_first())
        if not len(self.known) and not is_for_proofs:
            self._try_steps()
        self._first_known = self.known
        self._first: Prover | None = None
        self._first = self.fork()

    def first(self) -> Prover:
        """A copy as it was before any point was asked about."""
        before = self if self._first is None else self._first
        twin = before.fork()
        twin._first = before
        return twin

    def pristine(self) -> Prover:
        """A copy without the models and sets of rows that points taught; cuts stay, but for robust rows."""
        if self._first is not None and self.strict is not None:
            return self._first.pristine()
        twin = self.fork()
        twin.known, twin.slab = self._first_known, None
        return twin

    def fork(self) -> Prover:
        """A copy that learns for itself."""
        twin = object.__new__(Prover)
        twin.__dict__.update(self.__dict__)
        twin.core = None if self.core is None else self.core.fork()
        twin.slab = None if self.slab is None else self.slab.fork()
        twin.linear = None if self.linear is None else self.linear.fork()
        twin.strict = None if self.strict is None else self.strict.fork(twin)
        twin.together = None if self.together is None else self.together.fork(twin)
        return twin

    # Models.

    @cached_property
    def _is_curved(self) -> bool:
        """True if some length of a ball is its own: models near the linear facts need not keep it."""
        return any(block.is_robust and block.ball != block.number for block in self.blocks)

    def _keep(self, models: FloatArray) -> None:
        """Those of the models of the unknowns that the Keeper admits become known."""
        if not len(models):
            return
        found = self.keeper.snap(models)
        kept = self.keeper.kept(found)
        if not kept.all():
            found[~kept] = self.keeper.fitted(found[~kept])
            kept[~kept] = self.keeper.kept(found[~kept])
        self._learn(found[kept])

    def admit(self, models: FloatArray) -> BoolArray:
        """True for models of the unknowns that the Keeper admits; they join the known ones."""
        if self.is_for_proofs:
            return np.zeros(len(models), dtype=np.bool_)
        found = self.keeper.snap(models)
        kept = self.keeper.kept(found)
        self._learn(found[kept])
        refused = np.flatnonzero(~kept)[: None if self.keeper.is_quick else FEW_FITTED]
        if len(refused):
            fitted = self.keeper.fitted(found[refused])
            also = self.keeper.kept(fitted)
            self._learn(fitted[also])
            kept[refused[also]] = True
        if self.strict is not None and not kept.all():
            self._keep(self.strict.crossings.near(models[~kept]))
        elif self.together is not None and not kept.all():
            self._keep(self.together.near(models[~kept]))
        return kept

    def _learn(self, models: FloatArray) -> None:
        if len(models):
            self._learned += len(models)
            if len(self.known) + len(models) > KNOWN:
                self.known = self.known[::2]
            # By a power of two: what was admitted is not rounded.
            self.known = np.vstack(
                [self.known, np.ldexp(models, -np.frexp(np.abs(models).max(axis=1, keepdims=True))[1])]
            )

    def _spread(self) -> None:
        """Known models with their planes moved as far as the rows allow, to either side."""
        for place in PLACES:
            moved = self.keeper.fitted(self.known[-(SPREAD if self.keeper.is_quick else 2) :], place)
            self._learn(moved[self.keeper.kept(moved)])

    def _try_steps(self) -> None:
        """Models that steps show, with offsets that the rows leave them; or likely ones."""
        for models in shown_models(self.blocks, self.smooth_steps):
            for place in (None, 0.5):
                fitted = self.keeper.fitted(models, place)
                kept = self.keeper.kept(fitted)
                self._learn(fitted[kept])
                if kept.any():
                    break
        if not len(self.known):
            self._try_likely(self.centre)

    def _try_likely(self, model: FloatArray) -> None:
        """Models near one of the unknowns whose own answers are the logged ones, and others between them and a known one."""
        middle = self.known[:1] / np.abs(self.known[:1]).max(initial=1e-300)
        start = self.ties.outer(model[None, :])[0]
        start = start / max(np.abs(start).max(), 1e-300) + BESIDE * middle.sum(axis=0)
        for likely in chain([start], likely_models(self.blocks, start)):
            own = likely / max(np.abs(likely).max(), 1e-300)
            found = np.vstack([own, *((1 - share) * own + share * middle for share in (1e-3, *SHARES))])
            found = self.keeper.fitted(found)
            kept = self.keeper.kept(found)
            self._learn(found[kept])
            if kept.any():
                return

    def _try_harder(self, stage: Stage, models: FloatArray) -> int:
        """Models that were refused: moved towards the middle; cuts where a length is too short for them. How many cuts."""
        some = models[:64]
        middle = stage.centre / np.abs(stage.centre).max()
        for share in SHARES:
            self.admit(some / np.abs(some).max(axis=1, keepdims=True) * (1 - share) + share * middle)
        return self.cut(np.vstack([some, middle[None, :]]))

    def sides(self, x: FloatArray) -> tuple[int, ...]:
        """The sides that a point may be on for certain: those of the known models, either if there are none."""
        said = self.known @ np.append(x, -1.0)
        return tuple(side for side in (1, -1) if not len(said) or (side * said > 0).any())

    def admit_near(self, model: FloatArray) -> None:
        """A model of the unknowns, and others between it and the middle."""
        middle = self.centre / max(float(np.abs(self.centre).max()), 1e-300)
        own = model / max(float(np.abs(model).max()), 1e-300)
        kept = self.admit(np.array([(1 - share) * own + share * middle for share in (0.0, 1e-6, 1e-3, *SHARES)]))
        if not kept.any() and not self.is_for_proofs:
            self._try_likely(model)

    # Points.

    @np.errstate(all="ignore")
    def look(self, X: FloatArray, deadline: float | None = None) -> NDArray[np.int8]:
        """A code for every point; what cannot be told is OPEN."""
        codes = np.full(len(X), OPEN, dtype=np.int8)
        self._by_smooth_steps(X, codes)
        if self.pinned is not None:
            left = np.flatnonzero(codes == OPEN)
            codes[left] = self.pinned.codes(X[left])
        asked = Asked(X, self.ties, self.centre)
        self._take_sides(asked)
        self._by_known(asked, codes, SOME)
        self._by_search(asked, codes)
        self._by_known(asked, codes)
        self._aim(asked, codes)
        self._rooms(asked, codes, "core", deadline)
        self._by_optimum(asked, codes, deadline)
        if (codes == OPEN).any() and self.linear is not None:
            left = np.flatnonzero(codes == OPEN)
            said = self.linear.look(X[left])
            sure = (np.abs(said) == 1) | (said == BOUNDARY)
            codes[left[sure]] = said[sure]
        if (codes == OPEN).any() and len(self.used) and self.strict is None:
            self._rooms(asked, codes, "slab", deadline)
        if (codes == OPEN).any() and len(self.known):
            self._spread()
            self._by_known(asked, codes)
        for i in np.flatnonzero(codes == OPEN)[: 0 if self._is_curved else FEW_POINTS]:
            if codes[i] == OPEN and not is_late(deadline):
                self.admit(self.through(X[i]))
                self._by_known(asked, codes)
        return codes

    def _by_smooth_steps(self, X: FloatArray, codes: NDArray[np.int8]) -> None:
        for step in self.smooth_steps:
            left = np.flatnonzero(codes == OPEN)
            if not len(left):
                return
            codes[left] = smooth_codes(step, X[left])

    @cached_property
    def pinned(self) -> Pinned | None:
        """The closed form, where one model alone is left, or nearly."""
        return pin(self.ties, self.norms, self.p, self.scale, self.null, self.back, self.equal, self.payer.anchor)

    # The search.

    def by_known(self, X: FloatArray, codes: NDArray[np.int8]) -> None:
        """UNKNOWN where two admitted models disagree."""
        self._by_known(Asked(X, self.ties, self.centre), codes)

    def _by_known(self, asked: Asked, codes: NDArray[np.int8], most: int | None = None) -> None:
        todo = np.flatnonzero(codes == OPEN)
        left = min(self._learned - asked.shown, len(self.known))
        new = self.known[len(self.known) - left :][:most]
        if len(new) and len(todo):
            asked.show(new, todo)
        asked.shown = self._learned - left + len(new)
        codes[todo[asked.is_yes[todo] & asked.is_no[todo]]] = UNKNOWN

    def _by_search(self, asked: Asked, codes: NDArray[np.int8]) -> None:
        """One search, where that is less than showing all known models to all points."""
        todo = np.flatnonzero(codes == OPEN)
        if self.core is None or len(self.known) <= SOME or not len(todo):
            return
        rooms = self._new_rooms(asked, self.core, "core")
        models = self._searched(asked, codes, todo, self.core, rooms.room[todo], self.payer.payers[0])[2]
        if len(models):
            self.admit(models)

    def _rooms(self, asked: Asked, codes: NDArray[np.int8], name: str, deadline: float | None) -> None:
        """Search with room to pay for widths and rounding, more or less of it until a proof or two models turn up."""
        self._by_known(asked, codes)
        todo = np.flatnonzero(codes == OPEN)
        if not len(todo):
            return
        stage = self.stage(name)
        if stage is None:
            return
        rooms = self._new_rooms(asked, stage, name)
        for attempt in range(ATTEMPTS):
            payer, cuts = self.payer.payers[attempt % len(self.payer.payers)], 0
            if self.strict is None or attempt < ROUNDS:
                held, beta = self._attempt(asked, codes, todo, stage, rooms.room[todo], payer)
                cuts = self._new_cuts
            else:  # other room, but no more cuts: `_by_optimum` knows better ones
                held, beta, _ = self._searched(asked, codes, todo, stage, rooms.room[todo], payer)
            open_ = codes[todo] == OPEN
            todo, held, beta = todo[open_], held[open_], beta[open_]
            self._by_known(asked, codes)
            open_ = codes[todo] == OPEN
            todo, held, beta = todo[open_], held[open_], beta[open_]
            if not len(todo) or is_late(deadline):
                return
            if cuts and attempt < ATTEMPTS - 2:
                self._refit()
                self._take_sides(asked)
                stage = self.stage(name)
                if stage is None:
                    return
                rooms = self._new_rooms(asked, stage, name)
            else:
                todo = rooms.narrow(todo, held, beta)
                if not len(todo):
                    return

    def _aim(self, asked: Asked, codes: NDArray[np.int8]) -> None:
        """Send rays against the claims that are open."""
        for _ in range(VOLLEYS):
            left = np.flatnonzero(codes == OPEN)[:VOLLEY]
            if self.strict is None or self.core is None or not len(left):
                return
            self._keep(self.strict.sent(-(asked.inner[left] * asked.sign[left, None]) @ self.core.lift))
            self._by_known(asked, codes)

    def _by_optimum(self, asked: Asked, codes: NDArray[np.int8], deadline: float | None) -> None:
        """Claims that rounds of cuts leave open, some at a time: where each is least, and what that teaches about the others."""
        tried = np.zeros(len(codes), dtype=bool)
        while self.strict is not None and self.core is not None and not is_late(deadline):
            left = np.flatnonzero((codes == OPEN) & ~tried)[:GROUP]
            if not len(left):
                return
            tried[left] = True
            models, has_cut = self.strict.by_optima(asked.inner[left] * asked.sign[left, None])
            self._keep(models)
            self._by_known(asked, codes)
            if has_cut:
                self._refit()
                self._take_sides(asked)
            self._search_again(asked, codes, self.core)

    def _search_again(self, asked: Asked, codes: NDArray[np.int8], core: Stage) -> None:
        """One more search for what is open, without further cuts."""
        todo = np.flatnonzero(codes == OPEN)
        rooms = self._new_rooms(asked, core, "core")
        for _ in range(ROUNDS):
            if not len(todo):
                return
            held, beta, _ = self._searched(asked, codes, todo, core, rooms.room[todo], self.payer.payers[0])
            open_ = codes[todo] == OPEN
            todo = rooms.narrow(todo[open_], held[open_], beta[open_])

    def _refit(self) -> None:
        """With the new cuts, unless floats cannot see the inside any more."""
        self.refit()
        if self._tries_centre and self.core is not None:
            self.admit(self.core.centre[None, :])

    def _take_sides(self, asked: Asked) -> None:
        """Ask for the sides of a model that is known, else for those of the middle of the rows, which need not be one."""
        asked.side_with(self.centre)
        if self.strict is not None and len(self.known):
            asked.sign = np.where(asked.queries @ self.known[0] >= 0, 1.0, -1.0)

    def _new_rooms(self, asked: Asked, stage: Stage, name: str) -> Rooms:
        at = len(self.ties.free) + 1 + self.payer.payers[0]
        least = 16 * (np.abs(asked.inner @ self.equal.back) @ self.equal.width)
        least += 1e-12 * np.abs(asked.inner * self.scale).sum(axis=1)
        said = np.abs(asked.inner @ stage.centre) / max(abs(float(stage.centre[at])), 1e-300)
        return Rooms.in_core(said, least) if name == "core" else Rooms(1e-2 * said, 1e-12 * said)

    def _attempt(
        self, asked: Asked, codes: NDArray[np.int8], todo: IntArray, stage: Stage, room: FloatArray, payer: int
    ) -> tuple[BoolArray, FloatArray]:
        """One search; (which were held, their β or 0). Codes of what is proved are set, models that are admitted become known."""
        held, beta, models = self._searched(asked, codes, todo, stage, room, payer)
        self._new_cuts = 0
        if len(models):
            kept = self.admit(models)
            if not kept.all():
                self._new_cuts = self._try_harder(stage, models[~kept])
        if self.strict is not None:
            left = todo[codes[todo] == OPEN]
            claims = asked.inner[left] * asked.sign[left, None]
            self._keep(self.strict.loosely(claims))
            self._keep(self.strict.crossings.against(claims))
        return held, beta

    def _searched(
        self, asked: Asked, codes: NDArray[np.int8], todo: IntArray, stage: Stage, room: FloatArray, payer: int
    ) -> tuple[BoolArray, FloatArray, FloatArray]:
        """(which were held, their β or 0, models that were found); codes of what is proved are set."""
        sign = asked.sign[todo]
        targets = asked.inner[todo] * sign[:, None]
        aims = targets.copy()
        aims[:, len(self.ties.free) + 1 + payer] -= room
        found, rows, weights, models = stage.search(aims)
        held = found == HELD
        beta = np.zeros(len(todo))
        if held.any():
            omega = self.payer.weights_of(aims[held], rows[held], weights[held])
            beta[held] = self.payer.beta(targets[held], asked.sizes[todo[held]], rows[held], weights[held], omega)
            sure = held & (beta > 0)
            codes[todo[sure]] = sign[sure]
        return held, beta, models

    def stage(self, name: str) -> Stage | None:
        if name == "core" or self.core is None:
            return self.core
        if self.slab is None:
            try:
                self.slab = self.in_slabs(self.used, self.null, self.back)
                self.admit(self.slab.centre[None, :])
            except NoInterior:
                self.slab = self.core
        return self.slab

    # One point.

    def prove(self, x: FloatArray, code: int) -> Proof | None:
        """Weights that prove a certain verdict; None if the search does not find them again."""
        asked = Asked(x[None, :], self.ties, self.centre)
        for name in ("core", "slab") if len(self.used) else ("core",):
            stage = self.stage(name)
            if stage is None:
                return None
            rooms = self._new_rooms(asked, stage, name)
            asked.sign[0] = code
            todo = np.zeros(1, dtype=np.int64)
            for attempt in range(2 * ATTEMPTS):
                payer = self.payer.payers[attempt % len(self.payer.payers)]
                targets = asked.inner * code
                aims = targets.copy()
                aims[:, len(self.ties.free) + 1 + payer] -= rooms.room
                found, rows, weights, _ = stage.search(aims)
                held, beta = found == HELD, np.zeros(1)
                if held[0]:
                    omega = self.payer.weights_of(aims, rows, weights)
                    beta = self.payer.beta(targets, asked.sizes, rows, weights, omega)
                    if beta[0] > 0:
                        used = usable(rows, weights)[0] > 0
                        return Proof(code, rows[0][used], weights[0][used], omega[0], float(beta[0]))
                if not len(rooms.narrow(todo, held, beta)):
                    break
        return None

    def models(self, x: FloatArray) -> tuple[Model, Model] | None:
        """(a known model that says Yes, one that says No), in rationals; None if there are none."""
        query = np.append(x, -1.0)
        said = self.known @ query
        clear = said / np.maximum(gamma(self.p + 8) * (np.abs(self.known) @ np.abs(query)), 1e-300)
        if not len(said) or not clear.max() > 1 or not clear.min() < -1:
            return None
        yes, no = (self.keeper.exactly(self.known[k]) for k in (int(clear.argmax()), int(clear.argmin())))
        return yes, no


def is_late(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline
