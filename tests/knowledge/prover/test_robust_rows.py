"""Robust rows in the prover: on tables of whole numbers, flags and groups as on Gaussian data, every verdict has its proof."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import overexplain as ox
from overexplain.knowledge.prover import balls, branch_and_bound, core_program, optimum, program, strict, upper_bounds
from overexplain.knowledge.prover import prover as search
from overexplain.knowledge.prover.optimum import Optimum
from prover_logs import column_values

PAIRS = ["l1/l2", "linf/l2", "l1/linf", "linf/l1", "l1/l1", "l2/l1", "l2/l2", "l2/linf"]
YES, NO, UNKNOWN, UNDECIDED = ox.Verdict.YES, ox.Verdict.NO, ox.Verdict.UNKNOWN, ox.Verdict.UNDECIDED


def made(
    pair: str, kind: str, answers: int, seed: int = 0, p: int = 6, **terms: Any
) -> tuple[ox.QueryLog, np.ndarray, Any]:
    """A log of robust answers of a service, points that were not asked, and its plane."""
    rng = np.random.default_rng([seed, answers])
    rows = column_values(rng, kind, 80, p)
    normal = rng.standard_normal(p)
    plane = ox.Hyperplane(normal, float(np.median(rows @ normal)) + 0.01)
    distance, ball = pair.split("/")
    mechanism = ox.Mechanism(distance, robustness=ball, radius=0.2)
    log = ox.QueryLog()
    asked, points = rows[:answers], rows[40:]
    log.add_explanation(
        asked,
        ox.ModelOracle(plane, mechanism).explain(asked),
        label=plane.labels(asked),
        mechanism=ox.Mechanism(distance, robustness=ball, **{"radius": 0.2, **terms}),
    )
    return log, points, plane


@pytest.mark.parametrize("kind", ["gauss", "grid", "flags", "onehot", "scaled"])
@pytest.mark.parametrize("pair", PAIRS)
def test_every_verdict_has_a_proof_by_the_prover(pair: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for answers in (1, 4, 8):
        log, points, plane = made(pair, kind, answers)
        knowledge = ox.Knowledge(log, threads=1)
        prover = knowledge._known.prover
        assert prover is not None
        codes = prover.codes(points)
        sure = np.abs(codes) == 1
        assert (codes[sure] == plane.labels(points)[sure]).all()
        for i in np.flatnonzero(codes != UNDECIDED)[::5]:
            proof = knowledge.prove(points[i], ox.Verdict(int(codes[i])))
            assert proof is not None, (answers, i, codes[i])
            proof.verify(log)
        if answers == 8 and pair != "l2/linf":
            assert (codes != UNDECIDED).mean() > 0.9


def on_the_relaxed_set(log: ox.QueryLog, x: np.ndarray, ball: str) -> tuple[float, float]:
    """The least and the largest a·x − b over t = 1, s ≥ ‖a‖* and what answers under ℓ1 say with s ≤ √p or p: Clarabel's word."""
    p, terms = log.dimension, log.mechanisms[0]
    a, b, s = cp.Variable(p), cp.Variable(), cp.Variable()
    held = [cp.norm(a, "inf") <= 1, cp.norm(a, 2 if ball == "l2" else 1) <= s, s <= (p**0.5 if ball == "l2" else p)]
    for z, answer, y in zip(log.points, log.explanations, log.labels, strict=True):
        w = answer - z
        length = float(np.abs(w).sum())
        held += [a @ answer - b == -float(y) * terms.radius * s, -float(y) * (a @ w) >= length * (1 - 1e-12)]
        held += [float(y) * (a @ z - b) >= 0]
    ends = []
    for sign in (1, -1):
        problem = cp.Problem(cp.Minimize(sign * (a @ x - b)), held)
        problem.solve(solver=cp.CLARABEL)
        ends.append(sign * float(problem.value))
    return ends[0], ends[1]


@pytest.mark.parametrize("kind", ["gauss", "onehot"])
@pytest.mark.parametrize("ball", ["l2", "linf"])
def test_what_a_cone_program_shows_is_certain_and_the_other_way_round(ball: str, kind: str) -> None:
    log, points, _ = made(f"l1/{ball}", kind, 4, p=5)
    codes = ox.Knowledge(log, threads=1)._known.prover.codes(points)
    compared = 0
    for x, code in zip(points[::3], codes[::3], strict=True):
        low, high = on_the_relaxed_set(log, x, ball)
        if min(abs(low), abs(high)) < 1e-6:
            continue
        compared += 1
        if low > 0 or high < 0:
            assert code == (YES if low > 0 else NO)
        elif code in (YES, NO):
            raise AssertionError(f"{x} is called certain, and the relaxed set reaches from {low} to {high}")
    assert compared > 5


def test_a_secret_radius_is_one_for_all_rows() -> None:
    for kind in ("gauss", "onehot"):
        log, points, plane = made("l1/l2", kind, 8, radius=None)
        verdicts = ox.Knowledge(log, threads=1).certify(points)
        sure = np.abs(verdicts.codes) == 1
        assert sure.any()
        assert (verdicts.codes[sure] == plane.labels(points)[sure]).all()
        for i in range(0, len(points), 6):
            if verdicts.codes[i] != UNDECIDED:
                verdicts.proof(i).verify(log)


def test_rows_of_both_kinds_and_two_radii_determine_the_length() -> None:
    """Theorem 2 (i) of the notes on robust rows: two signed radii make s a linear form, and nothing stays open."""
    log, points, plane = made("l1/l2", "onehot", 8, p=7)
    plain = ox.Mechanism("l1")
    x = points[:3]
    log.add_explanation(x, ox.ModelOracle(plane, plain).explain(x), label=plane.labels(x), mechanism=plain)
    verdicts = ox.Knowledge(log, threads=1).certify(points)
    assert not (verdicts.codes == UNDECIDED).any()
    assert verdicts.proof(5).verify(log) is None


def test_solvers_that_lie_decide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the cone program and the pushes say is advice: with nonsense in its place no verdict is false."""
    log, points, plane = made("linf/l2", "gauss", 4)
    rng = np.random.default_rng(0)

    def least(self: Optimum, target: np.ndarray) -> Any:
        v = rng.standard_normal(6)
        return rng.standard_normal(len(target)), v

    monkeypatch.setattr(Optimum, "least", least)
    monkeypatch.setattr(Optimum, "outward", lambda self, start, *rest: rng.standard_normal(len(start)))
    monkeypatch.setattr(search, "ROUNDS", 1)
    found = ox.Knowledge(log, threads=1)._known.prover.codes(points)
    monkeypatch.undo()
    honest = ox.Knowledge(log, threads=1)._known.prover.codes(points)
    clash = (found != honest) & (found != UNDECIDED) & (honest != UNDECIDED)
    assert not clash.any()
    sure = np.abs(found) == 1
    assert (found[sure] == plane.labels(points)[sure]).all()


NONSENSE: list[tuple[Any, str, Any]] = [
    *((strict, "INSIDE", v) for v in (0.0, 2.0)),
    *((strict, "NEARER", v) for v in (-5.0, 0.9)),
    *((strict, "ROOM", v) for v in (-1.0, 0.9)),
    *((strict, "PULLS", v) for v in (0, 1)),
    (strict, "LOOSE", 0),
    (strict, "STARTS", 0),
    *((balls, "STEPS_BETWEEN", v) for v in (0, 3)),
    *((balls, "LEVEL", v) for v in (0.0, 0.5)),
    *((balls, "SHY", v) for v in (0.0, 2.0)),
    (balls, "KEPT", 1),
    (balls, "OTHERS", 0),
    (balls, "STEPS", 1),
    *((optimum, "FEASIBLE", v) for v in (0.0, 1e9)),
    *((core_program, "WIDEST", v) for v in (1e-3, 1e12)),
    (optimum, "PUSHES", 0),
    (search, "ROUNDS", 1),
    (search, "GROUP", 1),
    (search, "VOLLEYS", 0),
    *((branch_and_bound, "MOST_LEAVES", v) for v in (0, 3)),
    *((branch_and_bound, "CLOSE", v) for v in (0.0, 0.5)),
    *((branch_and_bound, "BENT", v) for v in (-1.0, 0.0, 2.0)),
    *((branch_and_bound, "LOOSER", v) for v in (0.0, 0.3)),
    (branch_and_bound, "PLACES", 1),
    *((upper_bounds, "LONGER", v) for v in (0.0, 2.0)),
    (upper_bounds, "RANK", 0.5),
]


def test_constants_decide_nothing_about_robust_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = [made(pair, kind, 4) for pair in ("l1/l2", "linf/l1") for kind in ("gauss", "onehot")]
    honest = [ox.Knowledge(log, threads=1)._known.prover.codes(points) for log, points, _ in logs]
    for module, name, value in NONSENSE:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            for (log, points, plane), own in zip(logs, honest, strict=True):
                codes = ox.Knowledge(log, threads=1)._known.prover.codes(points)
                decided = (codes != UNDECIDED) & (own != UNDECIDED)
                assert (codes == own)[decided].all(), (name, value)
                sure = np.abs(codes) == 1
                assert (codes[sure] == plane.labels(points)[sure]).all(), (name, value)


def test_more_answers_never_know_less() -> None:
    codes = []
    for answers in (3, 5, 8):
        log, _, _ = made("l1/l2", "onehot", 8, seed=4)
        first = ox.QueryLog(mechanism=log.mechanisms[0])
        first.add_explanation(log.points[:answers], log.explanations[:answers], label=log.labels[:answers])
        points = column_values(np.random.default_rng(1), "onehot", 40, 6)
        codes.append(ox.Knowledge(first, threads=1).certify(points).codes)
    for before, after in pairwise(codes):
        sure = np.abs(before) == 1
        assert (after[sure] == before[sure]).all()


def test_a_length_is_bounded_by_that_of_its_own_distance() -> None:
    """Two distances with balls of one norm: what bounds s in the one says nothing about the other."""
    scaled = {"norm": "weighted", "base": "l1", "weights": [0.7, 0.7, 0.7]}
    log, x = ox.QueryLog(), np.array([2.0, 0.0, 0.0])
    for distance, radius in ((scaled, 2.0), ("l1", 1.0)):
        terms = ox.Mechanism(distance, robustness="l2", radius=radius)  # type: ignore[arg-type]
        log.add_explanation(x, [-radius * 3**0.5, 0.0, 0.0], label=1, mechanism=terms)
    points = np.array([[-0.3, 0.0, 0.0], [-0.4, 0.0, 0.0], [-0.1, 0.0, 0.0], [0.3, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    truth = ox.Hyperplane([1.0, 1.0, 1.0], 0.0).labels(points)  # one that could have given both answers
    for level in ("paper", "perspective", "shared", "exact"):
        codes = ox.Knowledge(log, robust=level).certify(points).codes  # type: ignore[arg-type]
        sure = np.abs(codes) == 1
        assert (codes[sure] == truth[sure]).all(), level


@pytest.mark.parametrize("tolerance", [None, 0.0])
@pytest.mark.parametrize("distance", ["l2", "lp:3"])
def test_touching_points_prove_what_they_decide(distance: str, tolerance: float | None) -> None:
    rng, terms = np.random.default_rng(1), ox.Mechanism(distance, robustness=distance, radius=0.2, tolerance=tolerance)
    plane = ox.Hyperplane([1.0, -2.0, 0.5], 0.3)
    made = ox.ModelOracle(plane, ox.Mechanism(distance, robustness=distance, radius=0.2))
    for count in (1, 2):
        log, asked = ox.QueryLog(), 2 * rng.standard_normal((count, 3))
        exact = np.round(asked * 4) / 4
        log.add_explanation(exact, made.explain(exact), label=plane.labels(exact), mechanism=terms)
        try:
            knowledge = ox.Knowledge(log)
        except ox.InconsistentLog:  # computed answers need not be exact
            continue
        prover, points = knowledge._known.prover, 2 * rng.standard_normal((30, 3))
        assert prover is not None
        codes = prover.codes(points)
        for i in np.flatnonzero(np.abs(codes) == 1):
            proof = knowledge.prove(points[i], ox.Verdict(int(codes[i])))
            assert proof is not None, (i, codes[i])


def test_two_balls_in_one_log_leave_no_verdict_without_a_proof() -> None:
    plane, rng = ox.Hyperplane([0.4, -1.1], 0.2), np.random.default_rng(3)
    weighted = {"norm": "weighted", "base": "l2", "weights": [1.5, 0.9]}
    log = ox.QueryLog()
    for terms in (
        ox.Mechanism("l2", robustness="linf", radius=3.0),
        ox.Mechanism(weighted, robustness="l1", radius=1.0),
    ):  # type: ignore[arg-type]
        x = 2 * rng.standard_normal(2)
        log.add_explanation(x, ox.ModelOracle(plane, terms).explain(x), label=int(plane.label(x)), mechanism=terms)
    knowledge, points = ox.Knowledge(log), 2 * rng.standard_normal((60, 2))
    prover = knowledge._known.prover
    assert prover is not None
    codes = prover.codes(points)
    sure = np.flatnonzero(np.abs(codes) == 1)
    assert len(sure) > 10
    for i in sure[::3]:
        assert knowledge.prove(points[i], ox.Verdict(int(codes[i]))) is not None


@pytest.mark.parametrize("pair", ["l1/l2", "linf/l1", "l2/linf", "l1/lp:3"])
def test_between_a_model_with_more_of_s_and_one_with_less_lies_one_with_s_as_long_as_a(pair: str) -> None:
    log, _, _ = made(pair, "onehot", 4)
    prover = ox.Knowledge(log, threads=1)._known.prover
    assert prover is not None
    assert prover._measured is not None
    assert prover._measured.strict is not None
    crossings = prover._measured.strict.crossings
    rng = np.random.default_rng(0)
    models = rng.standard_normal((400, crossings._ties.size)) * np.exp(4 * rng.standard_normal((400, 1)))
    models[:, crossings.unit] = 1.0
    models[:, crossings.column] = 3 * np.exp(2 * rng.standard_normal(400))
    more, less = models[crossings.excess(models) >= 0], models[crossings.excess(models) < 0]
    count = min(len(more), len(less))
    assert count > 50
    found = crossings.between(more[:count], less[:count])
    size = np.abs(np.hstack([more[:count], less[:count]])).max(axis=1)
    assert (np.abs(crossings.excess(found)) <= 2.0**-40 * size).all()
    rest = crossings.excess(found + 1e-6 * (less[:count] - found))
    assert (rest < 0).all()


@pytest.mark.parametrize("kind", ["gauss", "grid", "flags"])
def test_answers_of_two_balls_have_models_that_are_as_long_as_both_say(kind: str) -> None:
    rng = np.random.default_rng(3)
    rows = column_values(rng, kind, 60, 5)
    normal = rng.standard_normal(5)
    plane = ox.Hyperplane(normal, float(np.median(rows @ normal)) + 0.01)
    log = ox.QueryLog()
    for i, ball in enumerate(["l2", "linf", "l2"]):
        mechanism = ox.Mechanism("l1", robustness=ball, radius=0.1)
        asked = rows[i : i + 1]
        answer = ox.ModelOracle(plane, mechanism).explain(asked)
        log.add_explanation(asked, answer, label=plane.labels(asked), mechanism=mechanism)
    verdicts = ox.Knowledge(log, threads=1).certify(rows[10:])
    sure = np.abs(verdicts.codes) == 1
    assert (verdicts.codes[sure] == plane.labels(rows[10:])[sure]).all()
    unknown = np.flatnonzero(verdicts.codes == UNKNOWN)
    assert len(unknown) > 5
    prover = ox.Knowledge(log, threads=1)._known.prover
    assert prover is not None
    assert prover._measured is not None
    together = prover._measured.together
    assert together is not None
    odd = np.full((3, prover._measured.ties.size), [[np.nan], [1e308], [0.0]])
    odd[1:, together._crossings[0].unit] = 1e-320, 1.0
    assert np.isfinite(together.near(odd)).all()
    for i in unknown[:5]:
        verdicts.proof(int(i)).verify(log)


def test_a_claim_whose_terms_are_all_0_is_left_to_rationals() -> None:
    log, points, _ = made("linf/l2", "flags", 2)
    prover = ox.Knowledge(log, threads=1)._known.prover
    assert prover is not None
    assert prover._measured is not None
    nothing = program.Found(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(prover._measured.ties.size), 0.0)
    assert program.is_tied(prover._measured, points[0], nothing)
