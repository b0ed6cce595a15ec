"""`check_oracle`: does a service keep the contract of an Oracle, and the terms it publishes?"""

from __future__ import annotations

from typing import Any

import numpy as np

from overexplain.errors import OverexplainError
from overexplain.extraction.extract import extract
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import Norm
from overexplain.oracles.protocol import Oracle, checked_explanation, checked_label, offers


def check_oracle(
    oracle: Oracle, points: Any = None, rng: int | np.random.Generator = 0, n: int = 12, optimal: bool = True
) -> None:
    """None if `oracle` keeps its contract at `points` (n random ones if none are given); an AssertionError that says why if not.

    Shape: ±1 labels, explanations with as many entries or None, the same for a batch of rows, inputs left untouched.
    Terms (with ``optimal=True``, slack 0, a known distance, no domain): a model is rebuilt by what the service declares, and every
    label and explanation at the points must be what that model would give: the distance, the direction, the side.

    >>> from overexplain.geometry.hyperplane import Hyperplane
    >>> from overexplain.oracles.exact import ModelOracle
    >>> check_oracle(ModelOracle(Hyperplane([1.0, 2.0], 3.0), Mechanism("l1")))
    """
    try:
        _check(oracle, points, np.random.default_rng(rng), n, optimal)
    except OverexplainError as error:
        raise AssertionError(f"{type(error).__name__}: {error}") from error


def _check(oracle: Oracle, points: Any, rng: np.random.Generator, n: int, optimal: bool) -> None:
    p = getattr(oracle, "dimension", None)
    assert isinstance(p, int | np.integer), f"dimension must be a positive int, got {p!r}"
    assert p >= 1, f"dimension must be a positive int, got {p!r}"
    rows = rng.normal(size=(n, p)) * 3 if points is None else np.asarray(points, dtype=np.float64)
    mechanism = getattr(oracle, "mechanism", None)
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
    if optimal and mechanism.slack == 0 and mechanism.distance is not None and mechanism.domain is None:
        _terms(oracle, mechanism.distance, mechanism, rows, answers, labels)


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


def _terms(
    oracle: Oracle,
    norm: Norm,
    mechanism: Mechanism,
    rows: FloatArray,
    answers: list[FloatArray | None],
    labels: FloatArray | None,
) -> None:
    """Every answer must be what the model rebuilt by the declared terms would give."""
    found = extract(oracle, strategy="cone", rng=0, confirm=0)  # held against the answers at the points instead
    plane, allowed = found.hyperplane, 4 * (mechanism.tolerance or 0.0)
    reach: float | None = 0.0
    if mechanism.radius is None or mechanism.radius > 0:
        known = mechanism.robustness is not None and found.radius is not None
        reach = found.radius * float(mechanism.robustness.dual(plane.normal)) if known else None  # type: ignore[operator, union-attr]
    for i, (row, answer) in enumerate(zip(rows, answers, strict=True)):
        margin = plane.margin(row)
        size = float(norm(row)) + abs(plane.offset) + (reach or 0.0)
        slack = 1e-6 * size + allowed
        if labels is not None and abs(margin) > slack:
            assert labels[i] * margin > 0 or not found.oriented, (
                f"row {i}: the label is not that of the model explained"
            )
        if answer is None:
            continue
        step = answer - row
        length = float(norm(step))
        toward = abs(float(plane.normal @ step))
        assert length <= toward + slack, (
            f"row {i}: the explanation is not optimal under {norm!r}: its length is {length:.6g}, but it comes only {toward:.6g} "
            "closer to the plane that the other answers give; another distance, or a slack, would have to be declared"
        )
        if reach is not None:
            wanted = abs(margin) + reach
            assert abs(length - wanted) <= slack, (
                f"row {i}: the explanation is {length:.6g} away, the declared terms say {wanted:.6g}; "
                "if the service rounds, declare the tolerance"
            )
            crossed = plane.margin(answer) * margin
            assert crossed <= slack * size, f"row {i}: the explanation stays on the side of its question"
