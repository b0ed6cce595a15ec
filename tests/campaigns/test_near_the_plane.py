"""Certain verdicts at points 10⁻¹⁰ to 10⁻³ from the true plane: the true model, exactly, must not deny them."""

from __future__ import annotations

import numpy as np

import overexplain as ox
from campaigning import Honest, Tally, assumed_point, campaign, check_verdicts, honest_log, opened
from definition import Definition
from strategies import NORMS

GOAL = "certain"
MODES = ("plain", "robust", "same", "secret")
POINTS = 16


def near(made: Honest) -> np.ndarray:
    """Points beside the plane, beside answers on it and, for robust answers, beside where their balls touch it."""
    rng, normal, offset = made.rng, made.plane.normal, made.plane.offset
    log = made.log
    bases = [rng.normal(size=(6, len(normal))) * 3]
    for i in log.explained[:3]:
        row = log[int(i)]
        step = row.explanation - row.point
        length = float(row.mechanism.distance(step))
        reach = row.mechanism.radius or 0.0
        bases.append([row.explanation - (reach / length if length else 0.0) * step, row.explanation])
    base = np.vstack(bases)
    base = base[rng.integers(len(base), size=POINTS)]
    foot = base - ((base @ normal - offset) / (normal @ normal))[:, None] * normal
    size = np.maximum(np.abs(foot).max(axis=1), 1.0)
    away = rng.choice([-1.0, 1.0], POINTS) * 10 ** rng.uniform(-10, -3, POINTS) * size
    return foot + away[:, None] * normal / np.linalg.norm(normal)


def case(seed: int, tally: Tally) -> None:
    rng = np.random.default_rng([seed, 7])
    mode, norm = MODES[seed % 4], NORMS[seed // 4 % len(NORMS)]
    most = 2 if norm in ("polyhedral", "facets") and mode != "plain" else 3
    made = honest_log(seed, [mode], most, 0.1, [norm], labels=1, explained=int(rng.integers(1, 5)))
    known = Definition(made.log)
    knowledge = opened(seed, tally, made, known)
    if knowledge is None or not known.judge(*made.model):
        return
    verdicts = knowledge.certify(near(made))
    certain = int(np.isin(verdicts.codes, (ox.Verdict.YES, ox.Verdict.NO, ox.Verdict.BOUNDARY)).sum())
    tally.add("certain", certain)
    tally.add(f"certain, {mode}", certain)
    check_verdicts(seed, tally, made.log, verdicts, [made.model], assumed_point(knowledge))


def test_no_certain_verdict_beside_the_plane_is_false() -> None:
    assert campaign(case, 64).counts[GOAL] > 100
