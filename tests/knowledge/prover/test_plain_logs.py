"""Logs without robust counterfactuals: the prover decides them alone, also those that leave it little to go by."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import overexplain as ox
from overexplain.errors import SolverFailed
from overexplain.knowledge.prover.linear import OPEN

UNKNOWN, BOUNDARY = ox.Verdict.UNKNOWN, ox.Verdict.BOUNDARY


def checked(log: ox.QueryLog, verdicts: ox.Verdicts) -> None:
    """Every verdict that was given has a proof that holds for the log."""
    for i in np.flatnonzero(verdicts.codes != OPEN):
        proof = verdicts.proof(int(i))
        proof.verify(log)
        if isinstance(proof, ox.Disagreement):
            x = verdicts.points[i]
            assert proof.yes.margin(x) >= Fraction(0) > proof.no.margin(x)


@pytest.fixture(autouse=True)
def _no_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever turns to the cases that robust counterfactuals take fails."""

    def refuse(*_: object) -> None:
        raise AssertionError("a plain log needs no cases")

    monkeypatch.setattr("overexplain.knowledge.prover.branch_and_bound.BranchAndBound", refuse)


def test_very_many_labels_in_many_dimensions() -> None:
    rng = np.random.default_rng(3)
    normal, points = rng.standard_normal(64), rng.standard_normal((1400, 64))
    log = ox.QueryLog()
    log.add_label(points, np.where(points @ normal >= 0.1, 1, -1))
    asked = rng.standard_normal((24, 64))
    verdicts = ox.Knowledge(log, threads=1).certify(asked)
    assert not (verdicts.codes == OPEN).any()
    assert len(set(verdicts.codes.tolist())) == 3
    sure = np.abs(verdicts.codes) == 1
    assert (np.sign(asked[sure] @ normal - 0.1) == verdicts.codes[sure]).all()
    checked(log, verdicts)


def test_points_between_whole_numbers_need_no_rationals() -> None:
    rng = np.random.default_rng(0)
    points = rng.integers(-6, 7, (80, 3)).astype(float)
    log = ox.QueryLog()
    log.add_label(points, np.where(points @ [1.0, 2.0, -1.0] >= 0.5, 1, -1))
    asked = rng.uniform(-6, 6, (300, 3))
    prover = ox.Knowledge(log, threads=1)._known.prover
    assert prover is not None
    assert (prover.linear.look(asked) != OPEN).all()


@pytest.mark.parametrize("slack", [0.0, 0.5])
@pytest.mark.parametrize("tolerance", [0.0, None, 0.25])
def test_rows_without_a_side_leave_models_of_every_case(slack: float, tolerance: float | None) -> None:
    log = ox.QueryLog(mechanism=ox.Mechanism("linf", tolerance=tolerance, slack=slack))
    log.add_explanation([0.0, 0.0], [1.0, 0.0])
    log.add_label([1.0, 9.0], 1)  # on the plane of either case, or near it
    knowledge = ox.Knowledge(log)
    verdicts = knowledge.certify([[0.0, 0.0], [3.0, 0.0], [1.0, 9.0]])
    assert verdicts.codes.tolist() == [UNKNOWN, UNKNOWN, 1]
    assert knowledge.is_consistent
    checked(log, verdicts)


def test_many_rows_without_a_side() -> None:
    log = ox.QueryLog(mechanism=ox.Mechanism("l1", tolerance=0.1, slack=0.5))
    for k in range(7):
        log.add_explanation([3.0 * k, 0.0], [3.0 * k, 1.0 + k])
    log.add_label([0.0, -50.0], -1)
    knowledge = ox.Knowledge(log, time_limit=20)
    verdicts = knowledge.certify([[0.0, 30.0], [0.0, -60.0], [4.0, 1.0]])
    checked(log, verdicts)
    assert knowledge.witness() is not None


def test_a_log_of_nothing_but_rows_without_a_side() -> None:
    log = ox.QueryLog(mechanism=ox.Mechanism("l1", tolerance=0.1, slack=0.5))
    log.add_explanation([0.0, 0.0], [1.0, 0.0])
    verdicts = ox.Knowledge(log).certify([[0.0, 0.0], [1.0, 1.0]])
    assert verdicts.codes.tolist() == [UNKNOWN, UNKNOWN]
    checked(log, verdicts)


def test_what_is_certain_is_proved_although_no_model_is_known() -> None:
    """ℓ3 without tolerance: a direction with irrational entries, which no rational model has."""
    normal = np.array([1.0, 2.0])
    log = ox.QueryLog(mechanism=ox.Mechanism(ox.Lp(3.0), tolerance=0.0))
    log.add_explanation([4.0, 4.0], [3.0, 2.0], label=1)
    log.add_label([[9.0, 9.0], [-9.0, -9.0]], [1, -1])
    knowledge = ox.Knowledge(log)
    assert not knowledge.is_consistent
    verdicts = knowledge.certify([[20.0, 20.0], [-20.0, -20.0], [9.0, 9.0], [3.0, 2.0]])
    assert verdicts.codes.tolist() == [1, -1, 1, BOUNDARY]
    assert (np.sign(np.array([[20.0, 20.0], [-20.0, -20.0]]) @ normal - 7) == verdicts.codes[:2]).all()
    checked(log, verdicts)
    with pytest.raises(SolverFailed):
        knowledge.witness()


def test_a_domain_that_leaves_constants_alone() -> None:
    domain = ox.Domain(1, low=np.zeros(1), high=np.full(1, 3.0))
    log = ox.QueryLog(mechanism=ox.Mechanism("linf", tolerance=0.0, domain=domain))
    log.add_explanation([2.0], [1.0], label=1)
    log.add_explanation([3.0], [0.5], label=1)
    knowledge = ox.Knowledge(log)
    verdicts = knowledge.certify([[0.0], [1.0], [2.0]])
    assert verdicts.codes.tolist() == [BOUNDARY, BOUNDARY, 1]
    assert not knowledge.is_consistent
    checked(log, verdicts)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_the_terms(seed: int) -> None:
    """No plain log needs more than the prover, and what is said of it is proved."""
    rng = np.random.default_rng(seed)
    norms = ("l1", "l2", "linf", ox.Lp(3.0), None)
    for norm, tolerance, slack in itertools.product(norms, (0.0, None, 0.5), (0.0, 0.5, None)):
        log = ox.QueryLog(mechanism=ox.Mechanism(norm, tolerance=tolerance, slack=slack))
        for _ in range(int(rng.integers(1, 4))):
            x, answer = rng.integers(-3, 4, (2, 2)).astype(float)
            log.add_explanation(x, answer, label=[None, 1, -1][int(rng.integers(3))])
        try:
            verdicts = ox.Knowledge(log, time_limit=0.3, threads=1).certify(rng.uniform(-4, 4, (3, 2)))
        except ox.InconsistentLog as none:
            assert none.proof is not None
            none.proof.verify(log)
        else:
            checked(log, verdicts)


def test_models_of_a_log_that_says_nothing_have_a_normal() -> None:
    log = ox.QueryLog()
    log.add_explanation([[1.0, -3.0]], [[1.0, -0.5]], mechanism=ox.Mechanism(None, domain=ox.Domain(2)))
    verdicts = ox.Knowledge(log).certify([[0.0, 0.0], [1.0, -3.0]])
    assert verdicts.counts()["UNKNOWN"] == 2
    for i in range(2):
        shown = verdicts.proof(i)
        assert any(shown.yes.normal)
        assert any(shown.no.normal)
        shown.verify(log)
