"""Alarms: each held against a slow count of the same thing; attackers set them off, ordinary clients do not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from overexplain.auditing.monitoring.alarms import LEAST, RARE, far_limit, near_limit, repeated_explanations
from overexplain.auditing.monitoring.monitor import monitor
from overexplain.auditing.monitoring.monitor_report import Alarm, MonitorReport
from overexplain.auditing.monitoring.rows import in_memory
from overexplain.auditing.monitoring.usual import measured, scale_of
from overexplain.extraction.extract import extract
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import QueryLog
from overexplain.oracles.degraded import Suboptimal
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.wrappers import LabelsOnly, Recorded

P = 5
PLANE = Hyperplane([1.0, -0.5, 2.0, 0.3, -1.0], 0.2)
L1 = Mechanism("l1")


def honest(clients: int = 60, each: int = 8, seed: int = 0, terms: Mechanism = L1, explained: float = 0.0) -> QueryLog:
    """Ordinary clients, in turn."""
    rng = np.random.default_rng(seed)
    service = ModelOracle(PLANE, L1)
    log = QueryLog(mechanism=terms)
    for i in range(clients * each):
        x = rng.normal(size=P)
        if rng.random() < explained:
            log.add_explanation(x, service.explain(x), PLANE.label(x), client=f"c{i % clients}", time=1e9 + i)
        else:
            log.add_label(x, PLANE.label(x), client=f"c{i % clients}", time=1e9 + i)
    return log


def attacked(log: QueryLog, answers: QueryLog | None, client: str = "eve") -> QueryLog:
    """The log, and behind it what an attacker asked; the service tells the decision with every explanation."""
    assert answers is not None
    for row in answers:
        if row.explanation is None:
            log.add_label(row.point, PLANE.label(row.point), client=client)
        else:
            log.add_explanation(row.point, row.explanation, PLANE.label(row.point), row.mechanism, client=client)
    return log


def alarm_of(report: MonitorReport, kind: str, client: str = "eve") -> Alarm | None:
    return next((a for a in report.alarms if (a.kind, a.client) == (kind, client)), None)


def binomial_tail(count: int, asked: int, share: float) -> float:
    """P(at least `count` of `asked`), summed term by term."""
    return sum(math.comb(asked, k) * share**k * (1 - share) ** (asked - k) for k in range(count, asked + 1))


def test_ordinary_clients_set_off_nothing() -> None:
    for seed in range(3):
        assert monitor(honest(seed=seed), model=PLANE, detail=0, quota=100).alarms == ()


@pytest.mark.parametrize("known", [True, False])
def test_bisection_is_seen_by_its_nearness_to_the_boundary(known: bool) -> None:
    answers = extract(LabelsOnly(ModelOracle(PLANE, L1)), accuracy=1e-5, bounds=4.0, rng=0).log
    log = attacked(honest(), answers)
    start = 480
    report = monitor(log, model=PLANE if known else None, detail=0)
    assert report.yardstick.margins == ("model" if known else "fitted")
    alarm = alarm_of(report, "boundary")
    assert alarm is not None
    assert alarm.row - start < 40 or not known
    assert alarm.limit is not None
    if not known:
        return
    # The same by hand, question by question: the limit is a quantile of the others' first questions.
    rows = in_memory(log, "client", None)
    scale = scale_of(np.vstack([log.points[:start], log.points[start : start + 32]]))  # 2,000 // 61 of each client
    size = float(np.linalg.norm(PLANE.normal * scale.spread))
    margins = np.abs(PLANE.margin(log.points)) / size
    limit = float(np.quantile(margins[:start], 0.01))
    assert alarm.limit == pytest.approx(limit)
    usual = float(np.mean(margins[:start] < limit))  # 5 of 480
    assert alarm.usual == pytest.approx(usual)
    near = asked = 0
    seen = set()
    for row in range(start, len(rows)):
        if log.points[row].tobytes() in seen:
            continue
        seen.add(log.points[row].tobytes())
        asked, near = asked + 1, near + int(margins[row] < limit)
        if margins[row] < limit and near >= LEAST["boundary"] and binomial_tail(near, asked, usual) <= RARE:
            break
    assert (alarm.row, alarm.requests, alarm.count) == (row, asked, near)
    assert alarm.chance == pytest.approx(binomial_tail(near, asked, usual))
    assert {a.client for a in report.alarms} == {"eve"}


def test_far_questions_are_seen_even_if_none_is_near_the_boundary() -> None:
    rng = np.random.default_rng(1)
    far = 1e4 * rng.normal(size=(9, P))
    log = honest()
    log.add_label(far, PLANE.labels(far), client="eve")
    report = monitor(log, model=PLANE, detail=0)
    alarm = alarm_of(report, "far-out")
    assert alarm is not None
    assert (alarm.row, alarm.count, alarm.requests, alarm.total) == (482, 3, 3, 9)
    assert alarm.chance is not None
    assert alarm.chance <= RARE
    assert [a.client for a in report.alarms] == ["eve"]


def test_chains_are_seen_by_their_resubmitted_explanations() -> None:
    service = Recorded(Suboptimal(ModelOracle(PLANE, L1), 0.3, rng=0))
    extract(service, strategy="chain", rng=0)
    log = attacked(honest(explained=0.3, terms=Mechanism("l1", slack=0.3)), service.log)
    report = monitor(log, model=PLANE, detail=0)
    alarm = alarm_of(report, "own-explanations")
    assert alarm is not None
    assert alarm.row - 480 < 25
    assert alarm.usual == pytest.approx(0.02)
    assert {a.client for a in report.alarms} == {"eve"}


def test_explanations_handed_to_another_client_are_seen() -> None:
    log = honest(explained=0.2)
    service = ModelOracle(PLANE, L1)
    rng = np.random.default_rng(3)
    for k in range(6):  # one asks, the next asks about the answer
        x = rng.normal(size=P)
        z = service.explain(x)
        log.add_explanation(x, z, PLANE.label(x), client=f"helper {k}")
        log.add_explanation(z, service.explain(z), PLANE.label(z), client="eve")
    report = monitor(log, model=PLANE, detail=0)
    alarm = alarm_of(report, "foreign-explanations")
    assert alarm is not None
    assert (alarm.count, alarm.requests, alarm.total) == (3, 3, 6)
    assert alarm_of(report, "own-explanations") is None


def test_following_the_advice_now_and_then_is_no_attack() -> None:
    log = honest(explained=0.3)
    service = ModelOracle(PLANE, L1)
    for row in [row for row in log if row.explanation is not None][::4]:
        follow = row.explanation + 1e-3 * (row.explanation - row.point)
        log.add_label(follow, service.classify(follow), client=row.client)
        log.add_label(row.explanation, service.classify(row.explanation), client=row.client)
    report = monitor(log, model=PLANE, detail=0)
    assert report.alarm_counts["own-explanations"] == report.alarm_counts["foreign-explanations"] == 0


def test_repeats_are_those_found_by_comparing_every_pair() -> None:
    rng = np.random.default_rng(5)
    log = QueryLog(mechanism=L1)
    pool = [rng.normal(size=2) for _ in range(12)]
    for _ in range(300):
        x = pool[rng.integers(len(pool))]
        z = pool[rng.integers(len(pool))] if rng.random() < 0.2 else rng.normal(size=2)
        log.add_explanation(x, z, client=f"c{rng.integers(6)}")
    rows = in_memory(log, "client", None)
    seen = measured(rows, scale_of(np.array(log.points)), None)
    own, foreign = repeated_explanations(rows, seen)
    for i in range(len(log)):
        givers = {
            log.clients[j]
            for j in range(i)
            if np.array_equal(log.explanations[j], log.points[i])
            and not np.array_equal(log.explanations[j], log.points[j])
        }
        assert own[i] == (log.clients[i] in givers)
        assert foreign[i] == (bool(givers) and log.clients[i] not in givers)
    assert own.any()
    assert foreign.any()


def test_nearly_the_same_point_counts_as_the_same() -> None:
    rng = np.random.default_rng(5)
    points = rng.normal(size=(500, P))
    log = QueryLog(mechanism=L1)
    log.add_explanation(points, points + 1.0, client="eve")
    near = points + 1.0 + 1e-9 * rng.normal(size=points.shape)
    log.add_explanation(near, near + 1.0, client="eve")
    other = points + 1.0 + 1e-2 * rng.normal(size=points.shape)
    log.add_explanation(other, other + 1.0, client="eve")
    rows = in_memory(log, "client", None)
    own, _ = repeated_explanations(rows, measured(rows, scale_of(points), None))
    assert own[:500].sum() == 0
    assert own[500:1000].sum() >= 498
    assert own[1000:].sum() == 0


def test_volume_warns_at_four_fifths_of_the_quota() -> None:
    log = honest(clients=60, each=8)
    report = monitor(log, detail=0, quota=10)
    assert report.alarm_counts["volume"] == report.alarmed == 60
    assert (report.alarms[0].client, report.alarms[0].row, report.alarms[0].count) == ("c0", 7 * 60, 8)
    assert report.yardstick.not_evaluated == ()
    assert monitor(log, detail=0, quota=11).alarm_counts["volume"] == 0
    assert "volume" in monitor(log, detail=0).yardstick.not_evaluated


def test_asking_the_same_again_and_again_counts_once() -> None:
    log = honest()
    on = PLANE.normal * PLANE.offset / float(PLANE.normal @ PLANE.normal)
    for _ in range(50):
        log.add_label(on, PLANE.label(on), client="ann")
    assert alarm_of(monitor(log, model=PLANE, detail=0), "boundary", "ann") is None


def test_with_too_few_others_nothing_is_called_unusual() -> None:
    log = honest(clients=10, each=10)
    report = monitor(log, model=PLANE, detail=0)
    assert report.yardstick.population is None
    assert report.yardstick.not_evaluated == ("boundary", "far-out", "volume")
    assert (report.yardstick.near, report.yardstick.far) == (None, None)
    # One client alone is no population; reference points are.
    lonely = attacked(QueryLog(), extract(LabelsOnly(ModelOracle(PLANE, L1)), accuracy=1e-5, bounds=4.0, rng=0).log)
    assert monitor(lonely, model=PLANE, detail=0).alarms == ()
    usual = np.random.default_rng(0).normal(size=(400, P))
    found = monitor(lonely, model=PLANE, reference=usual, detail=0)
    assert found.yardstick.population == "reference"
    assert alarm_of(found, "boundary") is not None


def test_limits_are_quantiles_of_others() -> None:
    values = np.arange(1.0, 1001.0)
    limit, share = near_limit(values)
    assert (limit, share) == (pytest.approx(10.99), 0.01)
    limit, share = far_limit(values)
    assert limit == pytest.approx(3 * 990.01)
    assert share == pytest.approx(1 / 1000)
