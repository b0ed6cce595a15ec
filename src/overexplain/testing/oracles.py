"""`check_oracle`: does a service keep the contract of an Oracle, and the terms it publishes?"""

from __future__ import annotations

from typing import Any

import numpy as np

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import Norm
from overexplain.oracles.protocol import Oracle, checked_explanation, checked_label, offers


def check_oracle(
    oracle: Oracle, points: Any = None, rng: int | np.random.Generator = 0, n: int = 12, optimal: bool = True
) -> None:
    """None if `oracle` keeps its contract at `points` (n random ones if none are given); an AssertionError that says why if not.

    Shape: ±1 labels, explanations with as many entries or None, the same for a batch of rows, inputs left untouched.
    Terms (with ``optimal=True`` and slack 0): all questions are about one plane, so the distances of explanations are affine on
    each side and the steps of one side are steepest together, ‖w + w'‖ = ‖w‖ + ‖w'‖.

    >>> from overexplain.geometry.hyperplane import Hyperplane
    >>> from overexplain.oracles.exact import ModelOracle
    >>> check_oracle(ModelOracle(Hyperplane([1.0, 2.0], 3.0), Mechanism("l1")))
    """
    p = oracle.dimension
    assert p == int(p) >= 1, f"dimension must be a positive int, got {p!r}"
    generator = np.random.default_rng(rng)
    rows = generator.normal(size=(n, p)) * 3 if points is None else np.asarray(points, dtype=np.float64)
    mechanism = oracle.mechanism
    assert mechanism is None or isinstance(mechanism, Mechanism), (
        f"mechanism must be a Mechanism or None, got {mechanism!r}"
    )
    can_label, can_explain = offers(oracle, "classify"), offers(oracle, "explain")
    assert can_label or can_explain, "an oracle defines classify, explain, or both"
    labels = _labels(oracle, rows) if can_label else None
    if not can_explain:
        assert mechanism is None, "an oracle that cannot explain has mechanism = None"
        return
    assert mechanism is not None, "an oracle that explains publishes a Mechanism"
    answers = _explanations(oracle, rows)
    if optimal and mechanism.slack == 0 and mechanism.distance is not None:
        _steepest(mechanism.distance, mechanism, rows, answers, labels)


def _labels(oracle: Oracle, rows: FloatArray) -> FloatArray:
    before = rows.copy()
    singles = [checked_label(oracle.classify(row)) for row in rows]
    batch = np.asarray(oracle.classify(rows))
    assert batch.shape == (len(rows),), (
        f"classify must give one label per row, got shape {batch.shape} for {len(rows)} rows"
    )
    assert batch.tolist() == singles, "classify says something else for a batch than for its rows one by one"
    assert np.array_equal(rows, before), "classify changed its input"
    return np.array(singles, dtype=np.float64)


def _explanations(oracle: Oracle, rows: FloatArray) -> list[FloatArray | None]:
    before = rows.copy()
    singles = [checked_explanation(oracle.explain(row), oracle.dimension) for row in rows]
    batch = np.asarray(oracle.explain(rows), dtype=np.float64)
    assert batch.shape == rows.shape, f"explain must give one row per row, got shape {batch.shape} for {rows.shape}"
    for i, (single, row) in enumerate(zip(singles, batch, strict=True)):
        given = checked_explanation(row, oracle.dimension)
        assert (single is None) == (given is None), (
            f"row {i} has an explanation alone but not in a batch, or the reverse"
        )
    assert np.array_equal(rows, before), "explain changed its input"
    return singles


def _steepest(
    norm: Norm, mechanism: Mechanism, rows: FloatArray, answers: list[FloatArray | None], labels: FloatArray | None
) -> None:
    steps: dict[int, list[FloatArray]] = {YES: [], NO: []}
    for i, (row, answer) in enumerate(zip(rows, answers, strict=True)):
        if answer is None:
            continue
        step, size = answer - row, float(norm(row)) + float(norm(answer))
        if labels is not None and float(norm(step)) > 1e-6 * size + (mechanism.tolerance or 0.0):
            steps[int(labels[i])].append(step)
    for side, same in steps.items():
        for step in same[1:]:
            together = float(norm(step + same[0]))
            apart = float(norm(step)) + float(norm(same[0]))
            allowed = 1e-8 * apart + 4 * (mechanism.tolerance or 0.0)
            assert together >= apart - allowed, (
                f"explanations of two {'Yes' if side == YES else 'No'} points are not optimal under {norm!r} together: "
                f"‖w + w'‖ = {together:.9g} < ‖w‖ + ‖w'‖ = {apart:.9g}; declare slack or another distance"
            )
