"""What the prover promises: proofs and models behind every verdict, the same verdicts whatever else is asked, nothing loosened."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import overexplain as ox
from campaigning import denied
from definition import Definition
from overexplain.errors import SolverFailed
from overexplain.knowledge import engine
from prover_logs import COLUMNS, PROMISES, consistent_models, mixed, seeds

LINEAR = ("label", "valid")
OPEN = 3


def prover_codes(knowledge: ox.Knowledge, points: np.ndarray) -> Any:
    assert knowledge._known.prover is not None
    return knowledge._known.prover.codes(points)


@pytest.mark.parametrize("kind", COLUMNS)
def test_verdicts_rest_on_proofs_and_models(kind: str) -> None:
    """YES, NO and BOUNDARY have proofs that the checker accepts, UNKNOWN has two models that the definition admits, and no
    consistent model denies any of it."""
    counts = {1: 0, -1: 0, 0: 0}
    for seed in seeds(5):
        made = mixed(seed, PROMISES, 4 if seed % 2 else 2, (kind,))
        known = Definition(made.log)
        if known.judge(*made.model) is False:
            continue
        knowledge = ox.Knowledge(made.log, time_limit=0.2, threads=1)
        if knowledge._known.prover is None:
            continue
        codes = prover_codes(knowledge, made.points)
        models = list(consistent_models(made, known, 6))
        for i, (x, code) in enumerate(zip(made.points.tolist(), codes.tolist(), strict=True)):
            if code == OPEN:
                continue
            if code == 0 and next(knowledge._known.prover.settle(made.points[i], code), None) is None:
                continue  # a model known to floats may be forgotten; a certain verdict's proof may not
            assert not any(denied(code, model, x) for model in models), (seed, x, code)
            counts[code] = counts.get(code, 0) + 1
            proof = knowledge.prove(x, ox.Verdict(code))
            proof.verify(made.log)
            if isinstance(proof, ox.Disagreement) and counts[0] % 4 == 0:
                for model, yes in ((proof.yes, True), (proof.no, False)):
                    assert known.judge(tuple(model.normal), model.offset) is not False, (seed, x)
                    assert (model.margin(x) >= 0) == yes
    assert min(counts[1], counts[-1]) > 10
    assert counts[0] > 3


def test_labels_and_valid_answers_leave_nothing_open() -> None:
    for seed in seeds(24):
        made = mixed(seed, LINEAR)
        assert OPEN not in ox.Knowledge(made.log, threads=1).certify(made.points).codes, seed


@pytest.mark.parametrize("promises", [LINEAR, PROMISES])
def test_a_verdict_depends_on_facts_and_point_alone(promises: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Not on order, neighbours, earlier questions, threads or compiled loops. (What has lengths in it may stay open.)"""
    for seed in seeds(6):
        made = mixed(seed, promises)
        knowledge = ox.Knowledge(made.log, time_limit=0.2, threads=1)
        if knowledge._known.prover is None:
            continue
        ready, points, rng = knowledge._known.prover, made.points, made.rng
        once = ready.fork().codes(points)
        order = rng.permutation(len(points))
        shuffled = np.empty_like(once)
        shuffled[order] = ready.fork().codes(points[order])
        alone = np.concatenate([ready.fork().codes(x[None, :]) for x in points[:12]])
        taught = ready.fork()
        taught.codes(rng.standard_normal((40, points.shape[1])) * np.abs(points).max(axis=0))
        taught.codes(points[::-1])
        many = ready.fork().codes(np.repeat(points, 20, axis=0))[::20]
        for other in (shuffled, alone, taught.codes(points), many, pickle.loads(pickle.dumps(ready)).codes(points)):
            here = once[: len(other)]
            told = (here != OPEN) & (other != OPEN)
            assert (here == other)[told].all(), seed
            assert promises is not LINEAR or told.all(), seed
    monkeypatch.setattr(engine, "BLOCK", 8)
    threaded = ox.Knowledge(made.log, time_limit=0.2, threads=3).certify(points).codes
    told = (once != OPEN) & (threaded != OPEN)
    assert (once == threaded)[told].all()


def test_adding_rows_never_loosens() -> None:
    for seed in seeds(8):
        made = mixed(seed, LINEAR if seed % 2 else PROMISES, 4)
        half = ox.QueryLog()
        rows = list(made.log)
        for row in rows[: (len(rows) + 1) // 2]:
            half.add_label(row.point, row.label) if row.explanation is None else half.add_explanation(
                row.point, row.explanation, label=row.label, mechanism=row.mechanism
            )
        knowledge = ox.Knowledge(half, time_limit=0.2, threads=1)
        for row in rows[(len(rows) + 1) // 2 :]:
            before = knowledge.certify(made.points)
            knowledge.add(row.point, row.label, row.explanation, row.mechanism)
            after = knowledge.certify(made.points)
            certain = np.abs(before.codes) == 1
            told = certain & ((after.codes != OPEN) if seed % 2 == 0 else True)
            # What was Yes may turn out to lie on every plane.
            same = (after.codes == before.codes) | ((before.codes == 1) & (after.codes == 2))
            assert same[told].all(), seed


def test_two_threads_on_one_knowledge() -> None:
    """They ask different questions at once, small and large; every answer is that of one who asks alone."""
    rng = np.random.default_rng(5)
    X = rng.integers(-4, 5, (60, 4)).astype(float)
    plane = ox.Hyperplane([1.0, -2.0, 0.5, 1.0], 0.5)
    labels = ox.QueryLog()
    labels.add_label(X, plane.labels(X))
    both = ox.QueryLog()
    both.add_label(X[:20], plane.labels(X[:20]))
    service = ox.ModelOracle(plane, ox.Mechanism("linf"))
    both.add_explanation(X[20:22], service.explain(X[20:22]), label=plane.labels(X[20:22]), mechanism=service.mechanism)
    for log in (labels, both):
        asked = [rng.integers(-6, 7, (n, 4)).astype(float) for n in (400, 3, 400, 50, 1, 400, 120, 400)]
        alone = [prover_codes(ox.Knowledge(log, threads=1), points) for points in asked]
        for _ in range(3):
            shared = ox.Knowledge(log, threads=1)
            grown = ox.Knowledge(log, threads=1)
            grown.add(X[0], int(plane.label(X[0])))  # knows the same, by the same prover
            with ThreadPoolExecutor(4) as pool:
                said = list(pool.map(lambda points: prover_codes(shared, points), asked))  # noqa: B023
                pool.map(lambda points: prover_codes(grown, points), asked)  # noqa: B023
            for own, other in zip(alone, said, strict=True):
                told = (own != OPEN) & (other != OPEN)
                assert (own == other)[told].all()


def test_forks_share_nothing_that_learns() -> None:
    for seed in seeds(12):
        made = mixed(seed, PROMISES)
        knowledge = ox.Knowledge(made.log, time_limit=0.2, threads=1)
        ready = knowledge._known.prover
        if ready is None:
            continue
        ready.codes(made.points)
        twin = ready.fork()
        assert twin._lock is not ready._lock
        for one, other in ((ready._linear, twin._linear), (ready._measured, twin._measured)):
            if one is None or other is None:
                continue
            inner = [
                (getattr(a, name, None), getattr(b, name, None))
                for name in ("batch", "core", "slab", "linear")
                for a, b in ((one, other),)
            ]
            assert not any(a is b for a, b in inner if a is not None), seed
        copied = pickle.loads(pickle.dumps(knowledge))
        told = (copied.certify(made.points[:5]).codes != OPEN) & (knowledge.certify(made.points[:5]).codes != OPEN)
        assert (copied.certify(made.points[:5]).codes == knowledge.certify(made.points[:5]).codes)[told].all(), seed


def test_what_has_proved_by_cases_can_be_copied_and_sent() -> None:
    """Its programs belong to one thread and one process: a copy makes its own."""
    log = ox.QueryLog(mechanism=ox.Mechanism("l1", robustness="l2", radius=1.0))
    log.add_explanation([-2, -0.25], [-2, 2.75], label=-1)
    log.add_label([[-1.75, 1.5], [1, -1]], [1, -1])
    points = np.array([[x, y] for x in np.linspace(-4.01, 4, 22) for y in np.linspace(-3.02, 4, 19)])
    knowledge = ox.Knowledge(log, robust="exact", threads=1)
    codes = knowledge.certify(points).codes
    own = knowledge._known.prover._last
    assert own._cases is not None
    for twin in (knowledge.fork(), knowledge.prepared(), pickle.loads(pickle.dumps(knowledge))):
        there = twin._known.prover._last
        assert there._cases is None
        assert twin.certify(points).codes.tolist() == codes.tolist()
        assert there._cases is not own._cases


def test_a_point_on_every_plane_has_a_proof() -> None:
    """Merely valid answers that are their own questions: equalities that no label states; a label of its own comes first."""
    terms = ox.Mechanism("l2", slack=None)
    log = ox.QueryLog()
    log.add_explanation([[1.0, 2.0], [3.0, 0.0]], [[1.0, 2.0], [3.0, 0.0]], label=[1, 1], mechanism=terms)
    log.add_label([5.0, 5.0], 1)
    verdicts = ox.Knowledge(log, threads=1).certify([[1.0, 2.0], [2.0, 1.0], [4.0, -1.0], [6.0, 6.0], [-1.0, 0.0]])
    assert verdicts.codes.tolist() == [1, 2, 2, 1, -1]
    for i in range(5):
        verdicts.proof(i).verify(log)


def test_a_no_that_only_0_denies_has_a_proof() -> None:
    """Weak facts, and others that cancel each other: none is strict, but together only a = 0 keeps them at 0."""
    terms = ox.Mechanism("l2", slack=None)
    log = ox.QueryLog()
    log.add_explanation([0.0, 0.0], [0.0, 0.0], label=1, mechanism=terms)
    log.add_explanation([1.0, 1.0], [-0.75, -0.5], label=1, mechanism=terms)
    verdicts = ox.Knowledge(log, threads=1).certify([[-2.5, -2.0], [-0.75, -0.5]])
    assert verdicts.codes.tolist() == [-1, 0]
    for i in range(2):
        verdicts.proof(i).verify(log)


def test_weighted_l2_answers_have_written_proofs() -> None:
    """Entries of the direction cost d_i each, in the proof as in the search."""
    rng = np.random.default_rng(35)
    for _ in range(6):
        weights = rng.uniform(0.2, 5.0, 2)
        plane = ox.Hyperplane(rng.standard_normal(2), 0.25)
        service = ox.ModelOracle(plane, ox.Mechanism(ox.Weighted(ox.l2, weights)))
        X = rng.standard_normal((3, 2))
        log = ox.QueryLog()
        log.add_explanation(X, service.explain(X), label=plane.labels(X), mechanism=service.mechanism)
        points = np.vstack([log.explanations + rng.standard_normal((3, 2)) * 1e-10, rng.standard_normal((6, 2)) * 100])
        knowledge = ox.Knowledge(log, time_limit=0.2, threads=1)
        codes = prover_codes(knowledge, points)
        for x, code in zip(points, codes.tolist(), strict=True):
            if code in (1, -1):
                knowledge.prove(x, ox.Verdict(code)).verify(log)


def test_no_proof_is_made_up() -> None:
    log = ox.QueryLog()
    log.add_label([[0.0], [1.0]], [-1, 1])
    knowledge = ox.Knowledge(log, threads=1)
    with pytest.raises(SolverFailed):
        knowledge.prove([0.5], ox.Verdict.YES)
    proof = knowledge.prove([0.5])
    assert isinstance(proof, ox.Disagreement)
    assert proof.yes.margin([0.5]) >= Fraction(0) > proof.no.margin([0.5])


@pytest.mark.parametrize("level", ["perspective", "shared", "exact"])
def test_prepared_knowledge_forgets_what_points_taught(level: Any) -> None:
    """Cuts and models that other points asked for: what one point is told after them is what it is told alone."""
    rng = np.random.default_rng(5)
    plane, ball = ox.Hyperplane([1.0, -0.5, 0.25], 0.2), ox.Weighted(ox.l2, [1.0, 2.0, 0.5])
    terms = ox.Mechanism("lp:3", robustness=ball, radius=0.2, slack=0.1)
    asked = rng.normal(size=(4, 3))
    log = ox.QueryLog(mechanism=terms)
    log.add_explanation(asked, ox.ModelOracle(plane, terms).explain(asked), label=plane.labels(asked))
    points = rng.normal(size=(12, 3))
    knowledge = ox.Knowledge(log, robust=level, threads=1)
    cuts = len(knowledge._known.prover._measured.cuts)
    alone = [knowledge.prepared().fork().certify(x).codes[0] for x in points]
    knowledge.certify(rng.normal(size=(60, 3)))
    knowledge.certify(points)
    assert [knowledge.prepared().fork().certify(x).codes[0] for x in points] == alone
    assert len(knowledge._known.prover._measured.cuts) > cuts
    assert len(knowledge.prepared()._known.prover._measured.cuts) == cuts
