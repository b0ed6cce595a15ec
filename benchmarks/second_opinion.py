"""Is a decision determined by some answers? A program for every case, from the definition of a consistent model alone.

docs/theory/consistent.md says which models could have given an answer; nothing of `overexplain.knowledge` is used here. The model
that gave the answers is known, so that a case is determined if no consistent model says otherwise than that one.

labels     R·z ≥ 0 with a row for every label: a linear program. What it finds is checked: a case is open because of a model
           whose labels are told by float64 with its rounding paid for, and determined because ±(x, −1) is a sum of rows with
           weights ≥ 0, in rational numbers
l1, linf   Proposition 2 makes the models of length 1 a polytope: under l1 the entry that answers move is ±1 and no other is
           larger; under linf the signs are those of the moves; and y(a·x − b) is the length of the move, up to τ. The moves'
           lengths fix all but a subspace, in which a linear program is solved; its dual, with τ and rounding paid for, bounds
           what a model can say, its optimum is such a model
l2         a is within the angle asin(τ/‖w‖) of the move w: closed form

None: too close for this program. Then nothing is said about the case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

FloatArray = NDArray[np.float64]
Opinion = bool | None
ROUNDING = 2.0**-40
"""The u of τ = u·(‖x‖ + ‖x'‖)."""
NEARLY = 1.005
"""What is nearer to a change than this, relatively, is too close under l2."""
TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10, "presolve": False}


def opinions(
    kind: str,
    asked: FloatArray,
    labels: NDArray[Any],
    answers: FloatArray | None,
    truth: FloatArray,
    points: FloatArray,
) -> list[Opinion]:
    """For every point whether its label by `truth` = (a, b) is that of all models which fit the answers."""
    if answers is None:
        labelled = Labelled(asked, labels, truth)
        return [labelled.determines(x) for x in points]
    if kind == "l2":
        return euclidean(asked, labels, answers, truth, points)
    polytope = polytope_of(kind, asked, labels, answers, truth)
    return [None if polytope is None else polytope.determines(x) for x in points]


def off(left: FloatArray, right: FloatArray) -> FloatArray:
    """How far float64 may be from left·right, and more."""
    return np.asarray(2.0**-52 * (left.shape[-1] + 8) * (np.abs(left) @ np.abs(right)) + 1e-300)


class Labelled:
    """The cone of models that give the labels; columns are scaled to 1."""

    def __init__(self, asked: FloatArray, labels: NDArray[Any], truth: FloatArray) -> None:
        self.labels = labels
        self.exact = np.hstack([asked, -np.ones((len(asked), 1))]) * labels[:, None]
        self.scale = np.maximum(np.abs(self.exact).max(axis=0), 1e-300)
        self.rows = self.exact / self.scale
        self.truth = truth * self.scale / np.abs(truth * self.scale).max()

    def determines(self, x: FloatArray) -> Opinion:
        query = np.append(x, -1.0)
        side = 1.0 if query @ (self.truth / self.scale) >= 0 else -1.0
        scaled = side * query / self.scale
        rows = self.rows / np.abs(self.rows).max(axis=1)[:, None]
        size = np.abs(scaled).max()
        best = linprog(scaled / size, -rows, np.zeros(len(rows)), bounds=(-1.0, 1.0), options=TIGHT)
        if best.status != 0:
            return None
        if best.fun < -1e-9 and self._denies(best.x, scaled):
            return False
        return True if self._is_sum(side, query) else None

    def _denies(self, model: FloatArray, query: FloatArray) -> bool:
        """Is the model, moved towards the true one by as little as helps, on the right side of all rows, and denies the query?"""
        for share in 10.0 ** np.arange(-12.0, -1.0):
            near = model + share * self.truth
            denied, held = query @ near, self.rows @ near
            if denied < -off(query, near) and (held > off(self.rows, near)).all():
                return True
        return False

    def _is_sum(self, side: float, query: FloatArray) -> bool:
        """Is the query a sum of rows with weights ≥ 0, in rationals? A No needs a row that is strict."""
        target = side * query / self.scale
        found = linprog(np.ones(len(self.rows)), A_eq=self.rows.T, b_eq=target, options=TIGHT)
        if found.status != 0:
            return False
        chosen = np.flatnonzero(found.x > 1e-13 * found.x.max(initial=0.0))
        weights = rational_weights(self.exact[chosen], side * query)
        if weights is None or any(weight < 0 for weight in weights):
            return False
        return side > 0 or any(w > 0 and self.labels[i] < 0 for i, w in zip(chosen, weights, strict=True))


def rational_weights(rows: FloatArray, target: FloatArray) -> list[Any] | None:
    """Weights with Σ w_i·rows_i = target, exactly; None if there are none."""
    from flint import fmpq, fmpq_mat

    count, size = rows.shape
    entries = [[*column, value] for column, value in zip(rows.T.tolist(), target.tolist(), strict=True)]
    ratios = [fmpq(*float(v).as_integer_ratio()) for line in entries for v in line]
    reduced, rank = fmpq_mat(size, count + 1, ratios).rref()
    weights = [fmpq(0)] * count
    for i in range(rank):
        pivot = next(j for j in range(count + 1) if reduced[i, j] != 0)
        if pivot == count:
            return None
        weights[pivot] = reduced[i, count]
    return weights


@dataclass(frozen=True, eq=False)
class Polytope:
    """Models of length 1, as z·scale near the true one: z₀ + free·u + lift·e with |e| ≤ thin, entries between low and high."""

    truth: FloatArray
    scale: FloatArray
    free: FloatArray
    lift: FloatArray
    thin: FloatArray
    low: FloatArray
    high: FloatArray
    rows: FloatArray
    kept: FloatArray
    """What `rows` may say beyond what the true model says, either way: a model that stays within has given the answers."""

    def determines(self, x: FloatArray) -> Opinion:
        query = np.append(x, -1.0) / self.scale
        value = float(query @ self.truth)
        side = 1.0 if value >= 0 else -1.0
        rounding = float(off(query, np.abs(self.truth) + 1.0))
        room = np.abs(self.lift) @ self.thin
        strays = float(np.abs(query @ self.lift) @ self.thin)
        if not self.free.shape[1]:
            return True if side * value > strays + rounding else None
        goal, part = side * (query @ self.free), self.free[:-1]
        size = max(float(np.abs(goal).max()), 1e-300)
        low, high = self.low - self.truth[:-1] - room[:-1], self.high - self.truth[:-1] + room[:-1]
        best = linprog(
            goal / size, np.vstack([part, -part]), np.concatenate([high, -low]), bounds=(None, None), options=TIGHT
        )
        if best.status != 0:
            return None
        prices = np.maximum(-np.asarray(best.ineqlin.marginals), 0.0)
        above, below = prices[: len(part)], prices[len(part) :]
        missed = np.abs(goal / size + part.T @ (above - below)).sum() + off(part.T, above + below).sum()
        far = np.linalg.norm(np.append(high - low, 2 * (high - low).sum()))  # the first row says how far b is
        least = size * float(below @ low - above @ high - missed * far)
        if side * value + least - strays - rounding > 0:
            return True
        return False if self._denies(self.free @ best.x, query, side) else None

    def _denies(self, way: FloatArray, query: FloatArray, side: float) -> bool:
        """Does the model that far along the way, but within all limits, deny the true one's label, and give the same answers?"""
        step = way[:-1]
        rooms = np.where(step > 0, self.high - self.truth[:-1], self.truth[:-1] - self.low)
        moves = np.abs(step) > 1e-14 * np.abs(step).max(initial=0.0)
        moves &= rooms > 0  # an entry that is fixed stays
        share = min(1.0, float((rooms[moves] / np.abs(step[moves])).min(initial=1.0))) * (1 - 1e-12)
        model = self.truth + share * np.append(np.where(moves, step, 0.0), way[-1])
        says, kept = side * float(query @ model), np.abs(self.rows @ (model - self.truth))
        return bool(says < -off(query, model) and (kept + off(self.rows, np.abs(model)) <= self.kept).all())


def polytope_of(
    kind: str, asked: FloatArray, labels: NDArray[Any], answers: FloatArray, truth: FloatArray
) -> Polytope | None:
    """The models of length 1 that could have given the answers; None where Proposition 2 is not this simple."""
    p, y = asked.shape[1], labels.astype(np.float64)
    order, dual = (1, np.inf) if kind == "l1" else (np.inf, 1)
    moves = answers - asked
    size = np.abs(moves).max(axis=1)
    tau = ROUNDING * sum(np.linalg.norm(part, order, axis=1) for part in (asked, answers))
    model = truth / np.linalg.norm(truth[:-1], dual)
    if (size <= 4 * tau).any():
        return None
    if kind == "l1":
        moved = np.abs(moves).argmax(axis=1)
        if (np.count_nonzero(moves, axis=1) != 1).any() or len(set(moved.tolist())) != 1:
            return None
        fixed = np.eye(p + 1)[moved[0]]
        low, high = -np.ones(p), np.ones(p)
        if abs(fixed @ model) != 1:
            return None
    else:
        signs = -y[:, None] * np.sign(moves)
        if (signs != signs[0]).any() or (
            np.abs(np.abs(moves) - size[:, None])[:, signs[0] != 0] > tau[:, None] / 2
        ).any():
            return None
        fixed = np.append(signs[0], 0.0)
        low, high = np.minimum(signs[0], 0.0), np.maximum(signs[0], 0.0)
    said = y * (np.hstack([asked, -np.ones((len(asked), 1))]) @ model)
    least = np.abs(moves).min(axis=1, where=moves != 0, initial=np.inf)
    before = np.maximum(np.abs(said - size), np.abs(said - least))  # of τ, spent by the true model itself
    scale = np.append(np.maximum(np.abs(np.vstack([asked, answers])).max(axis=0), 1e-300), 1.0)
    scale[:-1] = np.where(scale[:-1] > 1e-300, scale[:-1], 1.0)
    rows = np.hstack([asked, -np.ones((len(asked), 1))]) / scale
    if (before + off(rows, np.abs(model * scale)) > tau).any():
        return None
    every = np.vstack([rows, fixed / scale])
    lengths = np.linalg.norm(every, axis=1)
    left, values, right = np.linalg.svd(every / lengths[:, None])
    gap = values[(values > 1e-13 * values[0]) & (values < 1e-8 * values[0])]
    if len(gap):
        return None
    rank = int(np.sum(values >= 1e-8 * values[0]))
    lift = right[:rank].T @ (left[:, :rank] / values[:rank]).T / lengths
    thin = np.append(2 * tau, 1e-15) + off(every, np.abs(model * scale))
    return Polytope(
        model * scale, scale, right[rank:].T, lift, thin, low * scale[:-1], high * scale[:-1], rows, tau - before
    )


def euclidean(
    asked: FloatArray, labels: NDArray[Any], answers: FloatArray, truth: FloatArray, points: FloatArray
) -> list[Opinion]:
    """By the answer that says most; of a single answer it is all that is known.

    With u the direction of the move w, away from the label, and t = 1: a·q − b = a·(q − x) + y·R, where
    (R − ‖w‖·cos)² + (‖w‖·sin)² ≤ τ² for the angle between a and u. So it is u·(q − x) + y·‖w‖, give or take τ·√(1 + (d/‖w‖)²),
    d the part of q − x across u.
    """
    moves = answers - asked
    size = np.linalg.norm(moves, axis=1)
    tau = ROUNDING * (np.linalg.norm(asked, axis=1) + np.linalg.norm(answers, axis=1))
    usable = size > 1000 * tau  # such a disc is as good as what it is on the sphere
    length = np.where(usable, size, 1.0)
    way = -labels[:, None] * moves / length[:, None]
    found: list[Opinion] = []
    for q in points:
        side = 1.0 if q @ truth[:-1] >= truth[-1] else -1.0
        apart = q - asked
        along = (way * apart).sum(axis=1)
        across = np.linalg.norm(apart - along[:, None] * way, axis=1)
        middle, reach = side * (along + labels * size), tau * np.hypot(1.0, across / length)
        if (usable & (middle > NEARLY * reach)).any():
            found.append(True)
        else:
            found.append(False if len(moves) == 1 and usable[0] and NEARLY * middle[0] < reach[0] else None)
    return found
