"""Logs that are hardly any, and numbers at the ends of float64."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import overexplain as ox
from definition import exact
from exact_lp import verdict
from overexplain.errors import InvalidInput, OverexplainError, SolverFailed
from prover_logs import seeds

ENDS = (0.0, 1.0, -1.0, 3.0, 0.1, 1 / 3, 1e-16, 1e16, 1e-150, 1e150, -1e150, 2.0**500, 1e-300, 2.0**-1060, 5e-324)


def labelled(points: object, labels: object) -> ox.QueryLog:
    log = ox.QueryLog()
    log.add_label(points, labels)  # type: ignore[arg-type]
    return log


def check(log: ox.QueryLog, points: np.ndarray, *, proofs: bool = True) -> list[int]:
    """The verdicts, all of them true."""
    rows = [
        [*(int(s) * v for v in exact(x)), Fraction(-int(s))]
        for x, s in zip(log.points.tolist(), log.labels, strict=True)
    ]
    verdicts = ox.Knowledge(log, threads=1).certify(points)
    for i, x in enumerate(verdicts.points.tolist()):
        true = verdict(rows, (log.labels < 0).tolist(), [*exact(x), Fraction(-1)])
        assert verdicts.codes[i] == true, (x, true, log.points.tolist(), log.labels.tolist())
        if proofs or true:
            verdicts.proof(i).verify(log)
    return [int(code) for code in verdicts.codes]


def test_hardly_any_rows() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 2.0], [1e-300, 0.0]])
    assert ox.Knowledge(ox.QueryLog()).certify(points).codes.tolist() == [0] * 4
    assert ox.Knowledge(labelled([[1.0, 0.0]], [1])).certify(np.zeros((0, 2))).codes.tolist() == []
    for label in (1, -1):
        assert check(labelled([[0.0, 0.0]], [label]), points) == [label, 0, 0, 0]
        assert check(labelled([[1.0, 0.0]] * 5, [label] * 5), points) == [0, label, 0, 0]
    assert check(labelled([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]], [1, 1, 1]), points)[:2] == [1, 1]
    assert check(labelled([[0.0], [0.0], [2.0]], [1, 1, -1]), np.array([[-1.0], [0.5], [3.0]])) == [1, 0, -1]


def test_constant_columns() -> None:
    log = labelled([[7.0, 0.1, 0.0], [7.0, 0.1, 1.0], [7.0, 0.1, 1.0]], [-1, 1, 1])
    points = np.array([[7.0, 0.1, 2.0], [7.0, 0.1, -1.0], [7.0, 0.1, 0.5], [7.0, 0.2, 2.0], [8.0, 0.1, 2.0]])
    assert check(log, points) == [1, -1, 0, 0, 0]


def test_the_ends_of_float64() -> None:
    """Labels, and no verdict false or left open; a model of more bits than the checker reads may have no written form."""
    for seed in seeds(60):
        rng = np.random.default_rng([seed, 17])
        p, n = int(rng.integers(1, 4)), int(rng.integers(1, 6))
        values = rng.choice(ENDS, int(rng.integers(2, 6)))
        X = rng.choice(values, (n, p))
        normal = [Fraction(float(v)) for v in rng.choice([1.0, -1.0, 2.0, 1e150, 1e-150], p)]
        offset = Fraction(float(rng.choice(values)))
        said = [sum((a * v for a, v in zip(normal, exact(x), strict=True)), -offset) for x in X]
        log = labelled(X, [1 if v >= 0 else -1 for v in said])
        points = np.vstack([rng.choice([*ENDS, 1e300, -1e300, 1e-310], (5, p)), X, X[:2] * (1 + 2.0**-50)])
        try:
            check(log, points, proofs=False)
        except SolverFailed as error:
            assert "differ too much in size" in str(error) or "too long" in str(error), seed


@pytest.mark.parametrize("scale", [2.0**k for k in (-498, -332, -66, 66, 332, 498)])
@pytest.mark.parametrize("name", ["l1", "linf", "l2"])
def test_explanations_far_from_1(name: str, scale: float) -> None:
    """The same log in other units: nothing that the true model denies, whatever can still be told."""
    rng = np.random.default_rng(18)
    plane = ox.Hyperplane([1.0, -2.0], 0.5)
    service = ox.ModelOracle(plane, ox.Mechanism(name))
    X = rng.standard_normal((4, 2))
    images = np.asarray(service.explain(X))
    log = ox.QueryLog()
    log.add_explanation(X * scale, images * scale, label=plane.labels(X), mechanism=ox.Mechanism(name))
    model = exact(plane.normal), Fraction(0.5) * Fraction(scale)
    points = np.vstack([rng.standard_normal((8, 2)), images + 1e-9, X])
    try:
        codes = ox.Knowledge(log, time_limit=0.2, threads=1).certify(points * scale).codes
    except OverexplainError as error:
        assert "in size" in str(error) or "contradict" not in str(error)
        return
    for x, code in zip((points * scale).tolist(), codes, strict=True):
        said = sum((a * v for a, v in zip(model[0], exact(x), strict=True)), -model[1])
        assert code not in (1, -1) or (said >= 0) == (code > 0), x


def test_what_is_no_number_never_arrives() -> None:
    knowledge = ox.Knowledge(labelled([[0.0], [1.0]], [-1, 1]), threads=1)
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(InvalidInput):
            knowledge.certify([[bad]])
        with pytest.raises(InvalidInput):
            labelled([[bad]], [1])
    with pytest.raises(InvalidInput):
        ox.QueryLog().add_explanation([0.0], [np.inf], label=1, mechanism=ox.Mechanism("l1"))
    with pytest.raises(InvalidInput):
        ox.Knowledge(labelled([[1e200], [0.0]], [1, -1]))


def test_answers_that_are_their_questions() -> None:
    """x' = x: the point is on the plane, to within the tolerance; one at the origin has none, and a = 0 is no model."""
    for name in ("l1", "linf", "l2"):
        for x in ([0.0, 0.0], [1.0, 2.0]):
            log = ox.QueryLog()
            log.add_explanation(x, x, label=1, mechanism=ox.Mechanism(name))
            verdicts = ox.Knowledge(log, time_limit=0.5, threads=1).certify([x, [3.0, 3.0], [-3.0, 1.0]])
            assert verdicts.codes[0] in (1, 2)
            assert set(verdicts.codes[1:].tolist()) <= {0, 3}
            verdicts.proof(0).verify(log)


def test_columns_of_very_different_size() -> None:
    """A denormal beside 10¹⁵⁰, queries of 1 in the unit of the denormal."""
    log = labelled([[0.0, 1e150], [5e-324, 0.0]], [1, -1])
    check(log, np.array([[1.0, 1e150], [5e-324, 1e-300], [1e150, 1e150], [-1.0, 2e150]]), proofs=False)
