"""Points and rays that generate a certain region: the paper's `thm:rgn_factuals` and `thm:region-CF`, read off the log.

Every answer says of some points p that y·(a·p − b) ≥ r·‖a‖*: of a point that was asked about with r = 0, of one that was
explained with r the length of the step, of the answer itself with r = 0, for both sides if it is an optimum. That is a ball
around p on side y. The balls of the verdict's side generate the region, together with rays from every ball of the other side
to every one of its own (docs/theory/regions.md, Theorem 8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray, frozen
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import Norm
from overexplain.knowledge.known import Known
from overexplain.knowledge.prover.blocks import Block
from overexplain.knowledge.prover.linear import LinearProver
from overexplain.knowledge.prover.one_point import decide
from overexplain.knowledge.prover.reduction import LinearFacts
from overexplain.knowledge.solvers import highs_of, run_highs
from overexplain.knowledge.verdicts import Verdict

MOST_NUMBERS = 2**27
"""Numbers in all rays: there is one for each point of either side."""
IMPLIED = -1e-9
"""A row that cannot be broken by more than this while others hold is held to be implied, until exact numbers are asked."""


@final
@dataclass(frozen=True, eq=False)
class Generators:
    """The region's closure is all x = Σ v_i·points_i + Σ f_j·rays_j + Σ_k d_k with v, f ≥ 0, Σ v_i = 1 and, for every distance k,
    ‖d_k‖ ≤ Σ v_i·radii_ik + Σ f_j·ray_radii_jk: the hull of balls, and the cone of balls. Without distances d is 0.

    points     (n, p)            radii      (n, K), below 0: what a tolerance takes from the others
    rows       (n,) in the log
    rays       (m, p)            ray_radii  (m, K)
    ray_rows   (m, 2): the row that is for the verdict, the row that is against it
    norms      the K distances
    is_whole   False: answers have a tolerance, and only a part of the region is generated. Radii are rounded down
    """

    points: FloatArray
    radii: FloatArray
    rows: IntArray
    rays: FloatArray
    ray_radii: FloatArray
    ray_rows: IntArray
    norms: tuple[Norm, ...]
    is_whole: bool


def why_not_plain(known: Known) -> str | None:
    """Why a log's regions have no finite description, if so."""
    log = known.log
    if known.sides.assumed:
        return "the log has no label, and verdicts are about having the label of one row"
    for row in log.explained[log.explained < known.rows].tolist():
        terms = log.mechanism_of(row) or Mechanism(None)
        if not terms.is_plain:
            return f"row {row} is a robust answer, whose depth behind the plane depends on the model's two lengths"
        if terms.domain is not None:
            return f"row {row} was chosen from a domain, whose answers say less than a distance does"
        if known.sides.labels[row] == 0:
            return f"the side of row {row} is not known, so that its answer is about one of two cases"
    return None


def generators_of(known: Known, verdict: Verdict, needed_only: bool) -> Generators:
    """The generators of a log's region; InvalidInput, with the reason, if it has no such description."""
    reason = why_not_plain(known)
    if reason is not None:
        raise InvalidInput(f"no generators: {reason}")
    said = Said(known)
    if needed_only and not said.norms and len(said.points):
        said.keep(_needed(said))
    own, other = (np.flatnonzero(said.sides == side) for side in (int(verdict), -int(verdict)))
    p = said.points.shape[1]
    if len(own) * len(other) * max(p, 1) > MOST_NUMBERS:
        raise InvalidInput(
            f"{len(own)} points times {len(other)} of the other side are too many rays to list; try needed_only"
        )
    first, second = (pair.ravel() for pair in np.meshgrid(own, other, indexing="ij"))
    return Generators(
        points=frozen(said.points[own]),
        radii=frozen(said.radii[own]),
        rows=said.rows[own],
        rays=frozen(said.points[first] - said.points[second]),
        ray_radii=frozen(said.radii[first] + said.radii[second]),
        ray_rows=np.column_stack([said.rows[first], said.rows[second]]),
        norms=said.norms,
        is_whole=said.is_whole,
    )


@final
class Said:
    """What every answer says: points (n, p), their sides, radii (n, K), whether the side is strict, and the log's rows.

    `is_linear`: it is all that the answers say, and no length is in it.
    """

    def __init__(self, known: Known) -> None:
        log, labels = known.log, np.asarray(known.sides.labels, dtype=np.int64)
        self.is_whole = True
        self._parts: list[tuple[FloatArray, IntArray, FloatArray, int, IntArray, BoolArray]] = []
        norms: dict[Norm, int] = {}
        told = np.flatnonzero(labels) if log.dimension is not None else np.zeros(0, dtype=np.int64)
        points = log.points if log.dimension is not None else np.zeros((0, 0))
        explained = np.isin(told, log.explained)
        for number, terms in enumerate(log.mechanisms):
            rows = told[explained & (log.mechanism_ids[told] == number)]
            if len(rows):
                own = (
                    terms
                    if known.tolerance is None
                    else Mechanism(terms.distance, None, 0.0, known.tolerance, terms.slack)
                )
                self._explained(own, rows, points[rows], labels[rows], log.explanations[rows], norms)
        rest = told[~explained]
        self._add(points[rest], labels[rest], np.zeros(len(rest)), -1, rest, labels[rest] < 0)
        self.norms = tuple(norms)
        self.points = np.vstack([part[0] for part in self._parts])
        self.sides = np.concatenate([part[1] for part in self._parts])
        self.radii = np.zeros((len(self.points), len(norms)))
        start = 0
        for part in self._parts:
            stop = start + len(part[0])
            if part[3] >= 0:
                self.radii[start:stop, part[3]] = part[2]
            start = stop
        self.rows = np.concatenate([part[4] for part in self._parts])
        self.strict = np.concatenate([part[5] for part in self._parts])

    def _add(
        self, points: FloatArray, sides: IntArray, radii: FloatArray, norm: int, rows: IntArray, strict: BoolArray
    ) -> None:
        self._parts.append((points, sides, radii, norm, rows, strict))

    def _explained(
        self,
        terms: Mechanism,
        rows: IntArray,
        points: FloatArray,
        sides: IntArray,
        answers: FloatArray,
        norms: dict[Norm, int],
    ) -> None:
        weak = np.zeros(len(rows), dtype=bool)
        nothing = np.zeros(len(rows))
        if terms.slack is None:  # merely valid: the point itself was served, unless a tolerance says otherwise
            self._add(points, sides, nothing, -1, rows, sides < 0)
            if not terms.tolerance:
                self._add(answers, -sides, nothing, -1, rows, weak)
            elif terms.distance is not None:
                self.is_whole = False
                self._add(
                    answers, -sides, nothing - terms.tolerance, norms.setdefault(terms.distance, len(norms)), rows, weak
                )
            return
        if (
            terms.distance is None
        ):  # some norm: an answer is across, an optimum on the plane; with a tolerance it says nothing
            self._add(points, sides, nothing, -1, rows, sides < 0)
            if terms.tolerance == 0.0:
                self.is_whole &= terms.slack == 0.0
                for side in (1, -1) if terms.slack == 0.0 else (-1,):
                    self._add(answers, side * sides, nothing, -1, rows, weak)
            return
        norm = norms.setdefault(terms.distance, len(norms))
        block = Block(rows, points, sides, terms, answers, norm)
        off = block.tolerance
        self.is_whole &= not off.any()
        radii = np.maximum(block.lengths[0] - off, 0.0) / (1 + terms.slack) * (1 - 2.0**-50)
        self._add(points, sides, radii, norm, rows, sides < 0)
        for side in (1, -1) if terms.slack == 0.0 else (-1,):
            self._add(answers, side * sides, -off, norm, rows, weak)

    @property
    def is_linear(self) -> bool:
        return self.is_whole and not self.norms

    def keep(self, chosen: IntArray) -> None:
        """Only some of it."""
        for name in ("points", "sides", "radii", "rows", "strict"):
            setattr(self, name, getattr(self, name)[chosen])


def _needed(said: Said) -> IntArray:
    """Facts without those that the others imply: floats propose, the prover of those kept has to agree."""
    facts = np.hstack([said.points, -np.ones((len(said.points), 1))]) * said.sides[:, None]
    scale = np.abs(facts).max(axis=0)
    scaled = facts / np.where(scale > 0, scale, 1.0)
    kept = np.sort(np.unique(np.hstack([facts, said.strict[:, None]]), axis=0, return_index=True)[1])
    n, size = len(kept), facts.shape[1]
    low, high = np.full(size, -np.inf), np.full(size, np.inf)
    highs = highs_of(scaled[kept], np.zeros(size), (low, high), (np.zeros(n), np.full(n, np.inf)))
    implied = np.zeros(n, dtype=bool)
    numbers = np.arange(size, dtype=np.int32)
    for k in range(n):
        highs.changeColsCost(size, numbers, scaled[kept[k]])
        highs.changeRowBounds(k, -1.0, np.inf)
        implied[k] = run_highs(highs) == "optimal" and highs.getObjectiveValue() > IMPLIED
        # A row that is implied is out for good: of two that imply each other one stays.
        highs.changeRowBounds(k, -np.inf if implied[k] else 0.0, np.inf)
    chosen, left = kept[~implied], kept[implied]
    while len(left):
        prover = LinearProver(LinearFacts(said.points[chosen], said.sides[chosen], said.strict[chosen]))
        lost = left[decide(prover, said.points[left]) != said.sides[left]]
        if not len(lost):
            break
        chosen, left = np.sort(np.append(chosen, lost)), np.setdiff1d(left, lost)
    return np.asarray(chosen, dtype=np.int64)
