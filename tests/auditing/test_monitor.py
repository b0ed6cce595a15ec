"""`monitor`: who knows how much, since when; held against recovery of every prefix, numpy's ranks, and linear programs."""

from __future__ import annotations

import json
import math
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from scipy.optimize import linprog

from overexplain.auditing.monitoring import monitor_report
from overexplain.auditing.monitoring.gates import gated
from overexplain.auditing.monitoring.monitor import monitor
from overexplain.auditing.monitoring.monitor_report import MonitorReport
from overexplain.auditing.monitoring.rank import Directions, Scale, levels, ranks
from overexplain.auditing.monitoring.recoverable import recovered
from overexplain.auditing.monitoring.rows import gathered, in_memory
from overexplain.auditing.monitoring.usual import population, scale_of
from overexplain.errors import DimensionMismatch, InconsistentLog, InvalidInput
from overexplain.extraction.extract import extract
from overexplain.extraction.recover import recover
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.knowledge.engine import Knowledge
from overexplain.log.querylog import QueryLog
from overexplain.models.linear import LinearModel
from overexplain.oracles.constrained import OneHot
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.wrappers import LabelsOnly
from overexplain.report.monitored import print_monitored
from overexplain.report.terminal import terminal

SCHEMA = Path(__file__).parents[2] / "docs/schemas/monitor.schema.json"
ROBUST = Mechanism("l1", robustness="l2", radius=0.3)


def drawn(p: int, seed: int) -> Hyperplane:
    rng = np.random.default_rng([p, seed])
    return Hyperplane(rng.normal(size=p), float(rng.normal()))


def asked(
    plane: Hyperplane,
    terms: Mechanism | list[Mechanism],
    rows: int,
    clients: int,
    seed: int = 0,
    explained: float = 0.4,
    published: Mechanism | None = None,
) -> QueryLog:
    """Ordinary clients ask in turn; some of their questions are explained."""
    rng = np.random.default_rng(seed)
    services = [ModelOracle(plane, m, published=published) for m in (terms if isinstance(terms, list) else [terms])]
    log = QueryLog()
    for i in range(rows):
        x, who, when = rng.normal(size=plane.dimension), f"c{rng.integers(clients)}", 1.7e9 + i
        if rng.random() < explained:
            service = services[i % len(services)]
            log.add_explanation(x, service.explain(x), plane.label(x), service.mechanism, client=who, time=when)
        else:
            log.add_label(x, plane.label(x), client=who, time=when)
    return log


def rows_of(log: QueryLog, rows: list[int]) -> QueryLog:
    """Some rows, added one by one."""
    part = QueryLog(log.features)
    for row in (log[i] for i in rows):
        if row.explanation is None:
            part.add_label(row.point, row.label)
        else:
            part.add_explanation(row.point, row.explanation, row.label, row.mechanism)
    return part


def first_recovered(log: QueryLog, rows: list[int]) -> int | None:
    """The first of the rows at which `recover` finds one model, trying every prefix."""
    for count in range(1, len(rows) + 1):
        if recover(rows_of(log, rows[:count]), orient=False) is not None:
            return rows[count - 1]
    return None


@pytest.mark.parametrize(
    ("terms", "published"),
    [
        (Mechanism("l1"), None),
        (Mechanism("linf"), None),
        (Mechanism("l2"), None),
        (ROBUST, None),
        (ROBUST, Mechanism("l1", radius=None)),
        ([Mechanism("l1"), Mechanism("linf"), ROBUST], None),
        (Mechanism({"norm": "weighted", "base": "l1", "weights": [1.0, 2.0, 0.5, 3.0]}), None),
    ],
)
def test_the_model_is_known_from_the_row_at_which_every_prefix_recovers(terms, published) -> None:
    for seed in range(2):
        log = asked(drawn(4, seed), terms, 40, 6, seed, published=published)
        report = monitor(log, detail=6)
        when = report.pooled.recoverable_at
        expected = first_recovered(log, list(range(len(log))))
        assert (None if when is None else when.row) == expected
        assert expected is not None
        assert report.pooled.known == "exactly"
        assert when.requests == expected + 1
        assert when.explanations == np.count_nonzero(log.status[: expected + 1] == 1)
        for client in report.clients:
            own = [i for i in range(len(log)) if log.clients[i] == client.client]
            alone = first_recovered(log, own)
            found = client.exposure.recoverable_at if client.exposure.known == "exactly" else None
            assert (None if found is None else found.row) == alone
            assert client.exposure.requests == len(own)
        assert report.alone == sum(client.exposure.known == "exactly" for client in report.clients)


def test_answers_of_a_domain_lie_on_the_boundary_only_if_continuous_features_led_there() -> None:
    plane = Hyperplane([1.0, -2.0, 9.0, 0.0], 4.3)
    service = OneHot(ModelOracle(plane, "l1"), [[2, 3]], low=-1.5, high=1.5)
    cases = service.domain.sample(1, 60)
    answers = service.explain(cases)
    told = ~np.isnan(answers).all(axis=1)
    log = QueryLog(mechanism=service.mechanism)
    log.add_explanation(cases[told], answers[told], plane.labels(cases[told]), client="ann")
    with ExitStack() as files:
        rows = gathered(iter([log]), "client", None, files)
        found = levels(rows)
        assert set(found.tolist()) == {0, -1}
        assert np.abs(plane.margin(answers[told][found == 0])) == pytest.approx(0.0, abs=1e-12)
        assert (np.abs(plane.margin(answers[told][found == -1])) > 1e-6).any()
        told_together = recovered(rows, np.arange(len(rows)), found, Scale(np.zeros(4), np.ones(4)))
        assert told_together.plane is None  # as answers of R^p they would contradict each other
        assert 0 < told_together.rank < 3


def test_tied_answers_show_the_model_before_the_rank_is_complete() -> None:
    plane = Hyperplane([1.0, 1.0, 1.0, 0.5], 0.2)  # three features tie under l1
    service = ModelOracle(plane, Mechanism("l1"), ties="random", rng=0)
    log = QueryLog(mechanism=service.mechanism)
    for x in np.random.default_rng(1).normal(size=(6, 4)):
        log.add_explanation(x, service.explain(x), plane.label(x), client="ann")
    report = monitor(log)
    when = report.pooled.recoverable_at
    assert when is not None
    assert when.row == first_recovered(log, list(range(6))) == 1  # two answers are no four points


@pytest.mark.parametrize("p", [2, 5, 9])
def test_ranks_are_those_of_numpy_for_any_planes_and_repeated_answers(p: int) -> None:
    rng = np.random.default_rng(p)
    log = asked(drawn(p, 0), [Mechanism("l1"), ROBUST, Mechanism("l1", radius=None)][:2], 400, 30, p, explained=0.8)
    for x, who in zip(
        rng.normal(size=(40, p)), rng.integers(30, size=40), strict=True
    ):  # answers that are all the same
        log.add_explanation(x, np.ones(p) * drawn(p, 0).offset, drawn(p, 0).label(x), Mechanism("l1"), client=f"c{who}")
    rows = in_memory(log, "client", None)
    planes, scale = levels(rows), scale_of(rows.points(np.arange(len(rows))))
    found = ranks(rows, planes, scale, rows.by_client()[0])
    whole = Directions(p)
    for c, name in enumerate(rows.clients):
        own = [i for i in range(len(log)) if log.clients[i] == name and planes[i] >= 0]
        differences = [np.zeros(p)]
        for plane in set(planes[own].tolist()):
            same = [log.explanations[i] for i in own if planes[i] == plane]
            differences += [z - same[0] for z in same]
        assert found[c] == min(np.linalg.matrix_rank(np.array(differences), tol=1e-9), p - 1), name
        one = Directions(p)
        one.add(scale(log.explanations[own]), planes[own])
        assert one.rank == found[c]
        whole.add(scale(log.explanations[own]), planes[own])
    assert whole.is_complete
    assert len(set(found.tolist())) > 1 or p == 2


def test_the_determined_share_is_that_of_the_clients_own_rows() -> None:
    log = asked(drawn(4, 7), Mechanism("l1"), 120, 10, 3, explained=0.15)
    reference = np.random.default_rng(9).normal(size=(40, 4))
    report = monitor(log, reference=reference, detail=10)
    assert report.reference == "given"
    open_ones = 0
    for client in report.clients:
        own = [i for i in range(len(log)) if log.clients[i] == client.client]
        share = Knowledge(rows_of(log, own)).share(reference)
        assert client.exposure.determined == pytest.approx(share)
        assert client.exposure.judged == 40
        open_ones += 0 < share < 1
    assert open_ones >= 5  # or this test would say little


def test_reference_points_from_the_log_are_held_out_and_never_a_clients_own() -> None:
    log = asked(drawn(3, 1), Mechanism("l1"), 300, 10, 1, explained=0.0)
    report = monitor(log, detail=10)
    assert (report.reference, report.reference_points) == ("held out", 60)  # a fifth
    # Every question was answered: nothing held out would mean that all of them are certain.
    assert report.pooled.determined is not None
    assert 0.5 < report.pooled.determined < 1
    assert report.pooled.proved_from == 240
    assert all(40 <= client.exposure.judged < 60 for client in report.clients)
    assert sum(60 - client.exposure.judged for client in report.clients) == 60  # each is one client's own


def farthest(points: np.ndarray, labels: np.ndarray, equal: np.ndarray, truth: np.ndarray, tries: int = 80) -> float:
    """The largest angle from `truth` that random linear programs over consistent models find."""
    rng, p, worst = np.random.default_rng(0), points.shape[1], 0.0
    rows = -labels[:, None] * np.column_stack([points, -np.ones(len(points))])
    for goal in rng.normal(size=(tries, p + 1)):
        found = linprog(
            goal,
            A_ub=rows,
            b_ub=np.zeros(len(rows)),
            A_eq=np.vstack([np.append(truth, 0.0), equal]),
            b_eq=np.append(float(truth @ truth), np.zeros(len(equal))),
            bounds=(None, None),
        )
        if found.status == 0:
            a = found.x[:p]
            worst = max(worst, math.acos(min(1.0, float(a @ truth) / np.linalg.norm(a) / np.linalg.norm(truth))))
    return worst


@pytest.mark.parametrize(("p", "explained"), [(2, 0), (3, 0), (3, 2), (4, 3)])
def test_no_model_that_fits_is_farther_than_the_angle(p: int, explained: int) -> None:
    plane = Hyperplane(drawn(p, 5).normal, 0.1)
    log = asked(plane, Mechanism("l1"), 150, 1, p, explained=0.0)
    service = ModelOracle(plane, Mechanism("l1"))
    for x in np.random.default_rng(8).normal(size=(explained, p)):
        log.add_explanation(x, service.explain(x), plane.label(x), service.mechanism, client="c0")
    report = monitor(log, model=plane)
    rows = in_memory(log, "client", None)
    scale = scale_of(rows.points(population(rows, np.random.default_rng(0))))
    equal = [np.append(scale(z), -1.0) for z in log.explanations[log.explained]]
    truth = plane.normal * scale.spread
    seen = farthest(scale(log.points), log.labels, np.array(equal).reshape(-1, p + 1), truth / np.linalg.norm(truth))
    assert report.pooled.angle is not None
    assert seen > 0
    assert seen <= report.pooled.angle * (1 + 1e-9)
    assert report.pooled.angle <= 12 * seen  # and not just any bound
    assert report.pooled.rank == max(0, explained - 1)


def test_one_who_asks_labels_only_comes_close_and_when_is_found() -> None:
    plane = drawn(4, 2)
    log = asked(plane, Mechanism("l1"), 300, 30, explained=0.0)
    labels = extract(LabelsOnly(ModelOracle(plane, "l1")), accuracy=1e-4, bounds=5.0, rng=0).log
    assert labels is not None
    start = len(log)
    log.add_label(labels.points, labels.labels, client="eve")
    report = monitor(log, model=plane)
    eve = report.clients[0]
    assert (eve.client, eve.exposure.known, eve.exposure.rank) == ("eve", "closely", 0)
    assert eve.exposure.angle is not None
    assert eve.exposure.angle < 1e-3
    when = eve.exposure.recoverable_at
    assert when is not None
    assert start < when.row < len(log)
    assert (when.requests, when.clients, when.time) == (when.row - start + 1, 1, None)
    # A little before that row the same questions leave models that are not close.
    before = rows_of(log, list(range(start)))
    few = int(0.9 * when.requests)
    before.add_label(labels.points[:few], labels.labels[:few], client="eve")
    assert all(client.exposure.known == "partly" for client in monitor(before, model=plane).clients)
    assert all(client.exposure.known == "partly" for client in report.clients[1:])
    assert "boundary" in eve.alarms
    # What is certain by the angle is so by proofs, and it is most of it.
    own = QueryLog()
    own.add_label(labels.points, labels.labels)
    reference = np.random.default_rng(3).normal(size=(60, 4))
    exposed = monitor(own, model=plane, reference=reference).pooled
    proved = Knowledge(own).share(reference)
    assert exposed.determined is not None
    assert 0.9 < exposed.determined <= proved


def test_sybils_know_together_what_none_knows_alone() -> None:
    plane = drawn(6, 4)
    service = ModelOracle(plane, "linf")
    log = QueryLog(mechanism=service.mechanism)
    for i, x in enumerate(np.random.default_rng(0).normal(size=(9, 6))):
        log.add_explanation(x, service.explain(x), plane.label(x), client=f"sybil {i}", time=1_772_619_753 + i)
    report = monitor(log)
    when = report.pooled.recoverable_at
    assert when is not None
    assert (when.row, when.explanations, when.clients, when.time) == (5, 6, 6, "2026-03-04T10:22:38Z")
    assert report.alone == 0
    assert all(client.exposure.known == "partly" for client in report.clients)
    assert (report.log.first, report.log.last) == ("2026-03-04T10:22:33Z", "2026-03-04T10:22:41Z")


def test_inexact_answers_are_no_boundary_points() -> None:
    plane = drawn(4, 3)
    service = ModelOracle(plane, "l1")
    for terms in (Mechanism("l1", tolerance=0.01), Mechanism("l1", slack=0.1), Mechanism(None, slack=None)):
        log = QueryLog(mechanism=terms)
        for x in np.random.default_rng(2).normal(size=(30, 4)):
            answer = x + 1.05 * (service.explain(x) - x) if terms.slack != 0 else service.explain(x).round(3)
            log.add_explanation(x, answer, plane.label(x))
        report = monitor(log, model=plane)
        assert (report.pooled.exact, report.pooled.rank, report.alone) == (0, 0, 0)
        assert report.pooled.known != "exactly"


def test_terms_are_for_explanations_that_state_none() -> None:
    plane = drawn(3, 3)
    service = ModelOracle(plane, "l1")
    log = QueryLog()
    for x in np.random.default_rng(2).normal(size=(8, 3)):
        log.add_explanation(x, service.explain(x), plane.label(x))
    assert (monitor(log).log.unstated, monitor(log).pooled.known) == (8, "partly")
    stated = monitor(log, terms=Mechanism("l1"))
    assert (stated.log.unstated, stated.pooled.known) == (0, "exactly")


def test_contradictions_name_rows_and_clients() -> None:
    plane = drawn(3, 0)
    log = asked(plane, Mechanism("l1"), 60, 5)
    far = plane.normal * (plane.offset + 5) / float(plane.normal @ plane.normal)
    log.add_label(far, -1, client="mallory")
    with pytest.raises(InconsistentLog, match=r"rows 60 \(client 'mallory'\)") as caught:
        monitor(log)
    assert caught.value.rows == (60,)
    with pytest.raises(
        InconsistentLog, match=r"the given model did not give the answers in rows 60 \(client 'mallory'\)"
    ):
        monitor(log, model=plane)
    with pytest.raises(InconsistentLog, match="the given model did not give"):
        monitor(asked(plane, Mechanism("l1"), 60, 5), model=plane.flipped())
    wrong = QueryLog()  # labels alone: shown by the proof
    wrong.add_label([[0.0], [1.0], [2.0]], [1, -1, 1], client=["a", "b", "c"])
    with pytest.raises(InconsistentLog, match="client 'b'") as caught:
        monitor(wrong, reference=[[0.5]])
    assert caught.value.proof is not None
    rounded = QueryLog(mechanism=Mechanism("l1"))
    service = ModelOracle(plane, "l1")
    for x in np.random.default_rng(2).normal(size=(30, 3)):
        rounded.add_explanation(x, service.explain(x).round(2), plane.label(x))
    with pytest.raises(InconsistentLog, match="rounded"):
        monitor(rounded)


def test_clients_without_names_strange_names_and_none_at_all() -> None:
    plane = drawn(2, 0)
    log = QueryLog()
    names = [None, "\u202eevil\x1b[31m", "x" * 10_000 + "a", "x" * 10_000 + "b", "\ud800", "<b>{{7*7}}</b>"]
    for i, x in enumerate(np.random.default_rng(0).normal(size=(60, 2))):
        log.add_label(x, plane.label(x), client=names[i % 6])
    report = monitor(log)
    found = {client.client for client in report.clients}
    assert len(found) == report.log.clients == 6
    assert {"(no client)", "\u202eevil\x1b[31m", "<b>{{7*7}}</b>"} < found
    assert max(map(len, found)) <= 120
    assert MonitorReport.from_json(report.to_json()) == report
    together = monitor(log, by=None)
    assert (together.log.clients, together.clients[0].client) == (1, "(no client)")
    assert together.clients[0].exposure == together.pooled


def test_json_fits_the_published_schema_and_comes_back_equal() -> None:
    report = monitor(asked(drawn(3, 0), Mechanism("l1"), 250, 12))
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert schema == monitor_report.json_schema()
    jsonschema.validate(json.loads(report.to_json()), schema)
    assert MonitorReport.from_json(report.to_json()) == report
    assert report.to_json() == monitor(asked(drawn(3, 0), Mechanism("l1"), 250, 12)).to_json()
    with pytest.raises(InvalidInput, match="newer"):
        MonitorReport.from_json(report.to_json().replace('"version": 1', '"version": 2'))
    with pytest.raises(InvalidInput, match="not a monitor report"):
        MonitorReport.from_json("{}")


def test_every_field_says_what_it_is() -> None:
    defs = monitor_report.json_schema()["$defs"]
    silent = [
        f"{name}.{field}"
        for name, entry in defs.items()
        for field, told in entry.get("properties", {}).items()
        if "description" not in json.dumps(told) and "$ref" not in json.dumps(told)
    ]
    plain = {"Gate.passed", "MonitorReport.format", "MonitorReport.version", "Provenance.overexplain", "Provenance.python",
             "Provenance.seed"}  # fmt: skip
    assert set(silent) <= plain


def test_a_model_with_names_is_put_into_the_logs_order() -> None:
    plane = Hyperplane([1.0, -2.0, 3.0], 0.5)
    log = QueryLog(features=["c", "a", "b"])
    points = np.random.default_rng(0).normal(size=(50, 3))
    log.add_label(points, plane.labels(points[:, [1, 2, 0]]))
    assert monitor(log, model=LinearModel(plane, features=("a", "b", "c"))).compared_with == "model"
    with pytest.raises(InvalidInput, match="different features"):
        monitor(log, model=LinearModel(plane, features=("a", "b", "d")))


def test_bad_input_is_refused() -> None:
    log = asked(drawn(2, 0), Mechanism("l1"), 5, 2)
    for wrong, message in (
        ({"by": "colour"}, "by is"),
        ({"detail": -1}, "detail"),
        ({"detail": True}, "detail"),
        ({"quota": 0}, "quota"),
        ({"model": Hyperplane([1.0], 0.0)}, "the model has 1 features"),
        ({"model": "m.json"}, "load_model"),
        ({"reference": np.zeros((0, 2))}, "no rows"),
    ):
        with pytest.raises(InvalidInput, match=message):
            monitor(log, **wrong)
    with pytest.raises(DimensionMismatch):
        monitor(log, reference=[[1.0]])
    for nothing in (QueryLog(), iter([]), iter([QueryLog()])):
        with pytest.raises(InvalidInput, match="no rows"):
            monitor(nothing)
    with pytest.raises(InvalidInput, match="iterator of QueryLogs"):
        monitor(7)
    with pytest.raises(InvalidInput, match="iterator of QueryLogs"):
        monitor(iter([1]))
    with pytest.raises(DimensionMismatch, match="row 5"):
        monitor(iter([log, asked(drawn(3, 0), Mechanism("l1"), 5, 2)]))


def test_rows_in_a_temporary_file_are_those_in_memory() -> None:
    log = asked(drawn(3, 0), [Mechanism("l1"), ROBUST], 100, 7)
    rng = np.random.default_rng(0)
    cuts = [0, 1, 30, 30, 77, 100]
    blocks = (rows_of(log, list(range(a, b))) for a, b in pairwise(cuts))
    with ExitStack() as files:
        spooled, whole = gathered(blocks, None, None, files), in_memory(log, None, None)
        for _ in range(20):
            some = rng.integers(100, size=rng.integers(0, 60))
            assert np.array_equal(spooled.points(some), log.points[some])
            assert np.array_equal(spooled.explanations(some), log.explanations[some], equal_nan=True)
            one, other = spooled.log_of(some), whole.log_of(some)
            assert np.array_equal(one.explanations, other.explanations, equal_nan=True)
            assert [one.mechanism_of(i) for i in range(len(one))] == [other.mechanism_of(i) for i in range(len(other))]


def test_requests_without_a_client_that_give_the_model_away_pass_no_gate(capsys) -> None:
    """Whether one client sent them all, nobody knows: the gate does not pass, and the text does not say that none could."""
    log = QueryLog(mechanism=Mechanism("l1"))
    plane = drawn(3, 0)
    service = ModelOracle(plane, "l1")
    for x in np.random.default_rng(0).normal(size=(20, 3)):
        log.add_explanation(x, service.explain(x), plane.label(x))
    report = gated(monitor(log), ["client-recoverable"])
    assert report.clients[0].exposure.known == "exactly"
    assert not report.gates[0].passed
    print_monitored(report, terminal())
    out = " ".join(capsys.readouterr().out.split())
    assert "whether one client sent them all, the log does not say" in out
    assert "No client's own explanations" not in out
