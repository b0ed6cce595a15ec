"""The strict problem of robust counterfactuals, solved to global optimality by SCIP: a second opinion on "exact" verdicts.

It knows nothing of the engine: the models of a log are written down once more, from the definition, with s = ‖a‖*_N2 as the one
equation that is not linear. All explanations of a log share N1, a (weighted) ℓ1 or ℓ∞; N2 is a (weighted) ℓ1, ℓ2, ℓ3 or ℓ∞.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pyscipopt import Model, quicksum

import overexplain as ox

NEARLY = 1e-9
"""What is this close to 0, or to the largest, relatively, counts as such: the data are rounded."""


@dataclass(frozen=True)
class Extreme:
    """The largest (sense 1) or smallest (sense −1) a·x − b over all consistent models with ‖a‖*_N1 = 1, and a model that has it."""

    value: float
    normal: np.ndarray
    offset: float


def strict_extreme(log: ox.QueryLog, x, sense: int) -> Extreme | None:
    """The extreme of a·x − b, and where it is attained; None if no model fits the log."""
    scip, a, b = _program(log)
    value = quicksum(float(v) * u for v, u in zip(x, a, strict=True)) - b
    scip.setObjective(value, "maximize" if sense > 0 else "minimize")
    scip.optimize()
    status = scip.getStatus()
    if status == "infeasible":
        return None
    assert status == "optimal", status
    normal = np.array([scip.getVal(u) for u in a])
    return Extreme(float(scip.getObjVal()), normal, float(scip.getVal(b)))


def power_and_weights(norm: ox.Norm, p: int) -> tuple[float, np.ndarray]:
    """(q, weights) of a weighted ℓq."""
    return (norm.norm.q, np.array(norm.weights)) if isinstance(norm, ox.Weighted) else (norm.q, np.ones(p))


def _program(log: ox.QueryLog):
    """The consistent models of a log: labels (closed), K(w), the planes, and s for each N2."""
    rows = [log[int(j)] for j in log.explained]
    p = log.dimension
    q1, d = power_and_weights(rows[0].mechanism.distance, p)
    assert all(row.mechanism.distance == rows[0].mechanism.distance for row in rows)
    scip = Model()
    scip.hideOutput()
    for name, setting in {
        "numerics/feastol": 1e-9,
        "limits/gap": 0.0,
        "limits/absgap": 1e-9,
        "limits/time": 30.0,
    }.items():
        scip.setParam(name, setting)
    a = [scip.addVar(lb=-float(v), ub=float(v)) for v in d]  # |a_i| ≤ ‖e_i‖_N1·‖a‖*_N1
    b = scip.addVar(lb=None, ub=None)
    lengths: dict[ox.Norm, object] = {}

    def margin(x):
        return quicksum(float(v) * u for v, u in zip(x, a, strict=True)) - b

    for row in (log[i] for i in range(len(log))):
        if row.label is not None:
            scip.addCons(row.label * margin(row.point) >= 0)
    for row in rows:
        side = -row.label
        _add_cone(scip, a, side, row.explanation - row.point, q1, d)
        reach = 0.0
        if row.mechanism.radius:
            ball = row.mechanism.robustness
            if ball not in lengths:
                lengths[ball] = _add_length(scip, a, d, *power_and_weights(ball, p))
            reach = row.mechanism.radius * lengths[ball]
        scip.addCons(side * margin(row.explanation) == reach)
    return scip, a, b


def _add_cone(scip, a, side, w, q, d) -> None:
    """side·a ∈ K(w) and ‖a‖*_N1 = 1."""
    moved = d * np.abs(w)
    if q == 1:
        for i in np.flatnonzero(moved > NEARLY * moved.sum()):
            scip.addCons(a[i] == float(side * np.sign(w[i]) * d[i]))
        return
    assert q == np.inf, "N1 is ℓ1 or ℓ∞"
    farthest = moved >= (1 - NEARLY) * moved.max()
    for i in range(len(w)):
        if farthest[i]:
            scip.addCons(float(side * np.sign(w[i])) * a[i] >= 0)
        else:
            scip.addCons(a[i] == 0)
    scip.addCons(quicksum(float(side * np.sign(w[i]) / d[i]) * a[i] for i in np.flatnonzero(farthest)) == 1)


def _add_length(scip, a, d, q, e):
    """A variable s = ‖a/e‖ in the dual of ℓq, as an equation."""
    top = d / e  # |a_i|/e_i is at most this
    s = scip.addVar(lb=0.0, ub=float(top.sum()))
    parts = [(1 / float(e[i])) * a[i] for i in range(len(a))]
    if q == 2:
        scip.addCons(quicksum(part * part for part in parts) == s * s)
        return s
    sizes = [_add_size(scip, part, float(most)) for part, most in zip(parts, top, strict=True)]
    if q == np.inf:
        scip.addCons(quicksum(sizes) == s)
    elif q == 1:
        chosen = [scip.addVar(vtype="B") for _ in sizes]
        scip.addCons(quicksum(chosen) == 1)
        for size, pick in zip(sizes, chosen, strict=True):
            scip.addCons(s >= size)
            scip.addCons(s <= size + float(top.max()) * (1 - pick))
    else:
        dual = q / (q - 1)
        scip.addCons(quicksum(size**dual for size in sizes) == s**dual)
    return s


def _add_size(scip, part, most):
    """A variable u = |part| ≤ most, by one binary."""
    u, negative = scip.addVar(lb=0.0, ub=most), scip.addVar(vtype="B")
    scip.addCons(u >= part)
    scip.addCons(u >= -part)
    scip.addCons(u <= part + 2 * most * negative)
    scip.addCons(u <= -part + 2 * most * (1 - negative))
    return u
