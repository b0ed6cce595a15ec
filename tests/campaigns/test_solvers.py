"""Bounds on models rebuilt from solvers' answers: planes, solvers, distances, margins, starts and accuracies at random."""

from __future__ import annotations

import numpy as np

import overexplain as ox
from campaigning import Tally, campaign
from overexplain.errors import OverexplainError
from solver_services import DISTANCES, MARGINS, SOLVERS, SolverService, errors_of

CASES = 12


def case(seed: int, tally: Tally) -> None:
    """One service, one extraction: what it claims against the truth."""
    rng = np.random.default_rng([seed, 20])
    p = int(rng.integers(2, 12))
    sizes = 10.0 ** rng.uniform(-2, 2, p) if rng.random() < 0.3 else np.ones(p)
    plane = ox.Hyperplane(sizes * rng.normal(size=p), rng.normal() * 10 ** rng.uniform(-1, 1))
    distance, solver = str(rng.choice(DISTANCES)), str(rng.choice(SOLVERS))
    service = SolverService(
        plane, distance, solver, float(rng.choice(MARGINS)), labels=rng.random() < 0.5, one_sided=rng.random() < 0.3
    )
    if rng.random() < 0.1:
        service.mechanism, distance = ox.Mechanism(None), "l2"
    start = rng.normal(size=p) * 10 ** rng.uniform(-1, 2) if rng.random() < 0.4 else None
    accuracy = float(10 ** rng.uniform(-8, -1)) if rng.random() < 0.7 else None
    try:
        found = ox.extract(service, accuracy=accuracy, start=start, budget=1500, rng=seed)
    except OverexplainError:
        tally.add("refused")
        return
    tally.add("confirmation", found.spent.confirmation)
    if found.error_bound is None:
        tally.add("without a bound")
        return
    tally.add("bounds")
    angle, offset = errors_of(found, plane, distance)
    if angle > found.error_bound:
        tally.fail(seed, f"{distance}, {solver}: the angle is {angle:.3g} off, {found.error_bound:.3g} was claimed")
    tally.add("offsets", found.offset_bound is not None)
    if found.offset_bound is not None and offset > found.offset_bound:
        tally.fail(seed, f"{distance}, {solver}: the offset is {offset:.3g} off, {found.offset_bound:.3g} was claimed")


def test_bounds_on_models_behind_solvers() -> None:
    assert campaign(case, CASES).counts["bounds"] >= CASES // 2
