"""Which category and which whole number to change: the mixed-integer part of a nearest point, under weighted ℓ1 or ℓ∞.

HiGHS decides the discrete features; its answer holds only to about 1e-7, so the continuous ones are placed by
`nearest_on_plane` afterwards, with the discrete ones fixed.
"""

from __future__ import annotations

import math

import numpy as np

from overexplain.errors import SolverFailed
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.domain import Domain
from overexplain.geometry.norms import Lp
from overexplain.oracles.nearest import nearest_on_plane

ATTEMPTS = 8
"""How often the gap is widened where a discrete choice reaches the plane only within the solver's tolerance."""

SOLVER_TOLERANCE = 1e-6
"""How far a solver's answer may miss its constraints, with progress and costs scaled to about 1."""

SOLVED, INFEASIBLE = 0, 2
"""What scipy's `milp` says of a problem it solved, and of one that has no solution."""


def nearest_mixed(
    normal: FloatArray,
    offset: float,
    x: FloatArray,
    side: int,
    domain: Domain,
    frozen: IntArray,
    q: float,
    weights: FloatArray,
) -> FloatArray | None:
    """The z of `domain` nearest to x with side·(normal·z − offset) ≤ 0, features in `frozen` as in x; None if there is none.

    On the plane itself wherever a continuous feature has to move; otherwise where the categories lead.
    """
    scale = float(np.abs(normal).max())
    gap = side * (float(normal @ x) - offset) / scale
    if gap <= 0:
        return x.copy()
    moves = np.setdiff1d(domain.continuous, frozen)
    answer = _by_continuous_features(normal, offset, x, domain, moves, q, weights)
    discrete = np.setdiff1d(np.setdiff1d(np.arange(len(x)), domain.continuous), frozen)
    if not len(discrete):
        return answer
    if answer is not None and Lp(q)(weights * (answer - x)) <= weights[discrete].min():
        return answer  # no category and no whole number changes for less
    progress = -side * normal / scale
    widened, best, shortest = gap, None, math.inf
    for _ in range(ATTEMPTS):
        choice = _discrete_step(progress, widened, x, domain, frozen, q, weights)
        if choice is None:
            return best
        step, bound = choice
        z = x + step
        answer = z
        if side * (float(normal @ z) - offset) > 0:
            answer = _by_continuous_features(normal, offset, z, domain, moves, q, weights)
        length = math.inf if answer is None else Lp(q)(weights * (answer - x))
        if length < shortest:
            best, shortest = answer, length
        if shortest <= bound + SOLVER_TOLERANCE * (1 + bound):
            return best
        # This choice falls short of the plane by less than the solver sees, and by more than can be made up: ask for more.
        widened += max(gap, 1.0) * SOLVER_TOLERANCE
    raise SolverFailed(f"no choice of categories is best for sure after {ATTEMPTS} attempts; scale the features")


def _by_continuous_features(
    normal: FloatArray, offset: float, x: FloatArray, domain: Domain, moves: IntArray, q: float, weights: FloatArray
) -> FloatArray | None:
    """The nearest point of the plane that differs from x in the features `moves` only; None if there is none in the domain."""
    low, high = x.copy(), x.copy()
    low[moves], high[moves] = domain.low[moves], domain.high[moves]
    return nearest_on_plane(normal, offset, x, low, high, q, weights)


def _discrete_step(
    progress: FloatArray, gap: float, x: FloatArray, domain: Domain, frozen: IntArray, q: float, weights: FloatArray
) -> tuple[FloatArray, float] | None:
    """(discrete changes, cost) of a cheapest step with progress·step ≥ gap, the changes 0 elsewhere; None if there is no such step.

    Variables: how far each feature goes up and how far down, and for ℓ∞ the longest weighted step.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    p = len(x)
    room = np.concatenate([domain.high - x, x - domain.low])
    grouped = np.array([i for group in domain.groups for i in group], dtype=np.int64)
    room[grouped], room[p + grouped] = 1.0 - x[grouped], x[grouped]
    room[np.concatenate([frozen, p + frozen])] = 0.0
    whole = np.zeros(p)
    whole[grouped], whole[list(domain.integers)] = 1.0, 1.0
    rows = [np.concatenate([progress, -progress])]
    least, most = [gap], [math.inf]
    for group in domain.groups:
        members = np.zeros(p)
        members[list(group)] = 1.0
        rows.append(np.concatenate([members, -members]))
        least.append(0.0)
        most.append(0.0)
    matrix, both = np.array(rows), np.concatenate([weights, weights])
    if q == 1:
        cost, kinds = both, np.concatenate([whole, whole])
    else:
        paired = np.hstack([np.diag(weights), np.diag(weights), -np.ones((p, 1))])
        matrix = np.vstack([np.hstack([matrix, np.zeros((len(matrix), 1))]), paired])
        least, most = least + [-math.inf] * p, most + [0.0] * p
        cost, kinds = np.append(np.zeros(2 * p), 1.0), np.concatenate([whole, whole, [0.0]])
        room = np.append(room, math.inf)
    for presolve in (True, False):  # which alone may end in "infeasible or unbounded"
        found = milp(
            cost / cost.max(),
            integrality=kinds,
            bounds=Bounds(np.zeros(len(room)), np.maximum(room, 0.0)),
            constraints=LinearConstraint(matrix, least, most),
            options={"mip_rel_gap": 0.0, "presolve": presolve},
        )
        if found.status == INFEASIBLE:
            return None
        if found.status == SOLVED:
            changes = np.round(found.x[:p]) - np.round(found.x[p : 2 * p])
            return np.where(whole > 0, changes, 0.0), float(found.fun * cost.max())
    raise SolverFailed(f"the mixed-integer solver gave up: {found.message}")
