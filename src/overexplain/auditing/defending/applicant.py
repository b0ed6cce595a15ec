"""What a defence costs the people who get the explanations: longer changes, advice that does not work, no answer at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from overexplain.auditing.defending.explanations_only import ExplanationsOnly
from overexplain.auditing.defending.setting import Setting
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import YES
from overexplain.oracles.protocol import Oracle

ON_THE_PLANE = 1e-9
"""An answer this near to the plane, relative to the terms of normal·x, gets a decision by rounding: it counts as valid."""


@dataclass(frozen=True)
class Price:
    """See the fields of the same name in `Defence`; shares from 0 to 1."""

    length: float | None
    invalid: float | None
    unanswered: float


def price(setting: Setting, oracle: Oracle, cases: FloatArray) -> Price:
    """What the people in `cases` get: one answer each.

    The length is measured in the service's own distance, against the nearest point with the other decision.
    """
    answers = ExplanationsOnly(oracle).answers(cases)
    given = np.isfinite(answers).all(axis=1)
    unanswered = 1 - float(given.mean())
    if not given.any():
        return Price(None, None, unanswered)
    cases, answers = cases[given], answers[given]
    plane = setting.plane
    sides = np.where(plane.labels(cases) == YES, 1.0, -1.0)
    behind = sides * np.asarray(plane.margin(answers))
    invalid = behind > ON_THE_PLANE * _terms(setting, answers)
    shortest = setting.shortest(cases)
    away = np.abs(np.asarray(plane.margin(cases))) > ON_THE_PLANE * _terms(setting, cases)
    ratios = np.asarray(setting.distance(answers[away] - cases[away])) / shortest[away]
    return Price(float(np.median(ratios)) if len(ratios) else None, float(invalid.mean()), unanswered)


def _terms(setting: Setting, points: FloatArray) -> FloatArray:
    """Σ |normal_i x_i| + |offset| for every point: what rounding is relative to."""
    return np.asarray(np.abs(points) @ np.abs(setting.plane.normal) + abs(setting.plane.offset))
