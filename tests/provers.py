"""Proofs made by a linear program, for tests of what checks them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction as F

import numpy as np
from scipy.optimize import linprog

import overexplain as ox
from overexplain.knowledge.checker import Answer, Term, fact_of


def exact(x: object) -> tuple[F, ...]:
    return tuple(F(float(v)) for v in np.asarray(x, dtype=float))


def float_proof(log: dict[int, Answer], x: np.ndarray, verdict: int, norm: ox.Norm) -> list[Term] | None:
    """Weights that maximise the right side, by HiGHS, as terms; None if there are none. ℓ1 and ℓ∞ distances only."""
    p = len(x)
    columns: list[tuple[np.ndarray, float, Term]] = []
    for i, answer in log.items():
        point, y = np.array(answer.point, dtype=float), answer.label
        if answer.explanation is None:
            columns.append((np.append(y * point, -y), 0.0, Term("side", F(0), i)))
            continue
        image = np.array(answer.explanation, dtype=float)
        step = image - point
        tau = 2.0**-40 * (norm(point) + norm(image))
        columns.append((np.append(y * point, -y), norm(step) - tau, Term("side", F(0), i)))
        columns.append((np.append(-y * step, 0), norm(step) - 2 * tau, Term("steepest", F(0), i)))
        columns += [(s * np.append(image, -1), -tau, Term("plane", F(0), i, sign=s)) for s in (1, -1)]
    spec = norm.spec
    cross, cube = np.vstack([np.eye(p), -np.eye(p)]), np.array(list(itertools.product([-1.0, 1.0], repeat=p)))
    corners = cross if spec == "l1" else cube
    columns += [(np.append(u, 0), -1.0, Term("hoelder", F(0), vector=exact(u), distance=spec)) for u in corners]
    matrix = np.array([left for left, _, _ in columns]).T
    gains = np.array([gain for _, gain, _ in columns])
    found = linprog(-gains, A_eq=matrix, b_eq=verdict * np.append(x, -1), bounds=(0, 1e6), method="highs")
    if found.status != 0 or -found.fun < 1e-9:
        return None
    terms = [replace(t, weight=F(max(0.0, w))) for w, (_, _, t) in zip(found.x, columns, strict=True) if w > 0]
    return absorb(log, terms, x, verdict, spec)


def absorb(log: dict[int, Answer], terms: list[Term], x: np.ndarray, verdict: int, spec: object) -> list[Term]:
    """Pay for the rounding of the weights: what is missing in the last entry by a plane fact, the rest by Hölder."""
    missing = [verdict * v for v in (*exact(x), F(-1))]
    for term in terms:
        missing = [m - term.weight * v for m, v in zip(missing, fact_of(log, term).left, strict=True)]
    row = next(i for i, answer in log.items() if answer.explanation is not None)
    plane = Term("plane", abs(missing[-1]), row, sign=-1 if missing[-1] > 0 else 1)
    missing = [m - plane.weight * v for m, v in zip(missing, fact_of(log, plane).left, strict=True)]
    return [*terms, plane, Term("hoelder", F(1), vector=tuple(missing[:-1]), distance=spec)]
