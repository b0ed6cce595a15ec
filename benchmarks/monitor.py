"""The monitor on a million rows, how often its alarms are false, and how soon they see real attackers.

    python benchmarks/monitor.py [--quick] [--results DIRECTORY] [--check]

Honest clients ask about rows of real data (datasets that ship with scikit-learn), a little changed so that no two are equal, in
three ways: any rows; rows of one kind each (a client's questions come from one of 20 clusters); and any rows, where three in ten
follow the advice they get and ask again. Attackers are the extractions of this package, their questions behind those of 200
honest clients, or (`--only planted`) among a million of ten thousand. Results go to benchmarks/results/monitor.*, a quick run only
prints them. --check: fail if docs/monitor.md quotes other numbers than were recorded.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from certify import machine
from numpy.typing import NDArray
from quoting import described, peak, quoted

import overexplain as ox
from overexplain.auditing.monitoring.monitor import monitor
from overexplain.auditing.monitoring.monitor_report import KINDS

FloatArray = NDArray[np.float64]
ROOT = Path(__file__).parent
DOCS = ROOT.parent / "docs/monitor.md"
L1 = ox.Mechanism("l1")
PLANTED_BLOCK = 16_384
SECONDS = 1_767_225_600.0


@dataclass(frozen=True)
class Size:
    """One long log: time and the largest memory of the process, and of one that only imports."""

    rows: int
    features: int
    clients: int
    source: str
    seconds: float
    megabytes: float
    before: float


@dataclass(frozen=True)
class False_:
    """Honest clients of one kind: how many there were, and how many set off each alarm."""

    data: str
    honest: str
    questions: int
    clients: int
    alarmed: dict[str, int]


@dataclass(frozen=True)
class Delay:
    """One attack: its requests, those after which each alarm fired (None: not), and those after which it knew the model."""

    data: str
    attack: str
    requests: int
    fired: dict[str, int | None]
    known: int | None


@dataclass(frozen=True)
class Planted:
    """One attacker among the clients of a long log: the request at which each alarm fired, and whether the monitor's list of the
    most exposed clients has it. `known` is the request after which its own answers leave one model, or close ones.
    """

    attack: str
    requests: int
    fired: dict[str, int | None]
    listed: bool
    known: int | None


@dataclass(frozen=True)
class Search:
    """A long log with attackers in it: what monitoring took, and how many others set off an alarm."""

    rows: int
    clients: int
    explanations: int
    seconds: float
    megabytes: float
    others: int
    attackers: list[Planted]


def datasets() -> dict[str, tuple[FloatArray, ox.Hyperplane]]:
    """Real rows in units of their spread, and a logistic regression on them."""
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
    from sklearn.linear_model import LogisticRegression

    cancer, diabetes, digits = (load(return_X_y=True) for load in (load_breast_cancer, load_diabetes, load_digits))
    found = {}
    for name, (x, y) in {
        "breast cancer": cancer,
        "diabetes": (diabetes[0], diabetes[1] > np.median(diabetes[1])),
        "digits": (digits[0][:, digits[0].std(axis=0) > 0.5], digits[1] % 2),
    }.items():
        scaled = (x - x.mean(axis=0)) / x.std(axis=0)
        model = LogisticRegression(max_iter=2000).fit(scaled, y)
        found[name] = scaled, ox.Hyperplane.from_intercept(model.coef_[0], float(model.intercept_[0]))
    return found


def honest(rows: FloatArray, plane: ox.Hyperplane, kind: str, clients: int, each: int, rng: Any) -> ox.QueryLog:
    """A log of honest clients who ask in turn; three in ten questions are explained."""
    from sklearn.cluster import KMeans

    service = ox.ModelOracle(plane, L1)
    groups = KMeans(20, n_init=1, random_state=0).fit_predict(rows) if kind == "one kind each" else None
    own = [np.arange(len(rows)) if groups is None else np.flatnonzero(groups == k % 20) for k in range(clients)]
    log = ox.QueryLog(mechanism=L1)
    points, who = [], []
    for k in range(clients):
        chosen = rows[rng.choice(own[k], each)]
        points.append(chosen + 0.05 * rng.normal(size=chosen.shape))
        who += [f"client {k}"] * each
    order = rng.permutation(clients * each)
    asked = np.vstack(points)[order]
    names = np.array(who)[order]
    answers, labels = service.explain(asked), plane.labels(asked)
    explained = rng.random(len(asked)) < 0.3
    answers[~explained] = np.nan
    log.add_explanation(asked, answers, labels, client=names.tolist(), time=SECONDS + np.arange(len(asked)))
    if kind == "follow advice":
        again = np.flatnonzero(explained)
        again = again[rng.random(len(again)) < 0.3]
        log.add_label(answers[again], plane.labels(answers[again]), client=names[again].tolist(), time=SECONDS + 1e6)
    return log


def false_alarms(quick: bool) -> Iterator[False_]:
    """Honest clients of every kind, 10 and 100 questions each."""
    for data, (rows, plane) in datasets().items():
        for kind in ("any rows", "one kind each", "follow advice"):
            for each, clients in ((10, 1000), (100, 300)) if not quick else ((10, 200),):
                rng = np.random.default_rng([each, len(rows), 7])
                report = monitor(honest(rows, plane, kind, clients, each, rng), model=plane, detail=0)
                yield False_(
                    data,
                    kind,
                    each,
                    clients,
                    {k: report.alarm_counts[k] for k in KINDS if k not in ("volume", "holds-model")},
                )


def resubmitting(service: Any, rows: FloatArray, rng: Any, pairs: int) -> ox.QueryLog:
    """DualCF: about a row, then about its explanation, from which a surrogate would be trained."""
    log = ox.QueryLog(mechanism=service.mechanism)
    for x in rows[rng.choice(len(rows), pairs, replace=False)]:
        z = service.explain(x)
        log.add_explanation(x, z)
        log.add_explanation(z, service.explain(z))
    return log


def attacks(rows: FloatArray, plane: ox.Hyperplane, rng: Any) -> Iterator[tuple[str, ox.QueryLog | None]]:
    """What each attacker asked, and was answered."""
    service = ox.ModelOracle(plane, L1)
    near = (rows.min(axis=0), rows.max(axis=0))
    labels: Any = ox.LabelsOnly(service)
    p = rows.shape[1]
    yield "labels, inside the data's range", ox.extract(labels, bounds=near, start=rows[0], rng=0).log
    yield "labels, anywhere", ox.extract(labels, strategy="labels-far", rng=0).log
    yield "l1 explanations (cone)", ox.extract(service, rng=0).log
    yield "l1 explanations of honest rows", _honest_questions(service, rows, rng, p)
    sloppy = ox.Recorded(ox.Suboptimal(service, 0.2, rng=0))
    ox.extract(sloppy, strategy="chain", rng=0)
    yield "chain (answers 20 % too long)", sloppy.log
    yield "pairs as in DualCF", resubmitting(service, rows, rng, 2 * p)


def _honest_questions(service: Any, rows: FloatArray, rng: Any, p: int) -> ox.QueryLog:
    log = ox.QueryLog(mechanism=service.mechanism)
    for x in rows[rng.choice(len(rows), p, replace=False)] + 0.05 * rng.normal(size=(p, p)):
        log.add_explanation(x, service.explain(x))
    return log


def delays() -> Iterator[Delay]:
    """Every attack on two datasets (10 and 30 features), behind 200 honest clients."""
    known = datasets()
    for data in ("diabetes", "breast cancer"):
        rows, plane = known[data]
        rng = np.random.default_rng(len(rows))
        for name, answers in attacks(rows, plane, rng):
            assert answers is not None
            log = honest(rows, plane, "any rows", 200, 10, np.random.default_rng(1))
            start = len(log)
            for row in answers:
                label = plane.label(row.point)
                if row.explanation is None:
                    log.add_label(row.point, label, client="attacker")
                else:
                    log.add_explanation(row.point, row.explanation, label, row.mechanism, client="attacker")
            report = monitor(log, model=plane, detail=1)
            fired: dict[str, int | None] = dict.fromkeys((k for k in KINDS if k not in ("volume", "holds-model")), None)
            for alarm in report.alarms:
                if alarm.client == "attacker" and alarm.kind in fired:
                    fired[alarm.kind] = alarm.row - start + 1
            own = next((c.exposure for c in report.clients if c.client == "attacker"), None)
            when = None if own is None else own.recoverable_at
            yield Delay(data, name, len(answers), fired, None if when is None else when.requests)


def planted_log(rows: int, clients: int, attackers: dict[str, ox.QueryLog]) -> Iterator[ox.QueryLog]:
    """Honest clients who ask about rows of diabetes in turn, one answer in 25 explained; between them attackers, one by one."""
    data, plane = datasets()["diabetes"]
    service, rng = ox.ModelOracle(plane, L1), np.random.default_rng(rows)
    waiting = list(attackers.items())
    every = max(1, rows // PLANTED_BLOCK // (len(waiting) + 1))
    for k, start in enumerate(range(0, rows, PLANTED_BLOCK)):
        if k % every == every - 1 and waiting:
            name, answers = waiting.pop()
            log = ox.QueryLog(mechanism=answers.mechanism or L1)
            labels = plane.labels(answers.points)
            log.add_explanation(answers.points, answers.explanations, labels, client=name, time=SECONDS + start)
            yield log
        numbers = np.arange(start, min(start + PLANTED_BLOCK, rows))
        points = data[rng.choice(len(data), len(numbers))] + 0.05 * rng.normal(size=(len(numbers), data.shape[1]))
        explanations = service.explain(points)
        explanations[(numbers // clients + numbers) % 25 != 0] = np.nan
        log = ox.QueryLog(mechanism=L1)
        names = [f"client {k}" for k in (numbers % clients).tolist()]
        log.add_explanation(points, explanations, plane.labels(points), client=names, time=SECONDS + numbers)
        yield log


def _search(rows: int, clients: int, pipe: Any) -> None:
    data, plane = datasets()["diabetes"]
    exact = {name: log for name, log in attacks(data, plane, np.random.default_rng(0)) if log}
    start = time.perf_counter()
    report = monitor(planted_log(rows, clients, exact), model=plane, detail=20)
    seconds, found = time.perf_counter() - start, []
    for name, log in exact.items():
        fired: dict[str, int | None] = dict.fromkeys(k for k in KINDS if k != "volume")
        for alarm in report.alarms:
            if alarm.client == name and alarm.kind in fired:
                fired[alarm.kind] = alarm.requests
        own = next((c.exposure for c in report.clients if c.client == name), None)
        when = None if own is None else own.recoverable_at
        found.append(Planted(name, len(log), fired, own is not None, None if when is None else when.requests))
    others = report.alarmed - sum(any(one.fired.values()) for one in found)
    pipe.send(Search(report.log.rows, clients, report.log.explanations, seconds, peak(), others, found))


def searches(quick: bool) -> Iterator[Search]:
    """A million requests of ten thousand clients, measured in a process of its own."""
    ours, theirs = multiprocessing.Pipe()
    size = (100_000, 1_000) if quick else (1_000_000, 10_000)
    work = multiprocessing.get_context("spawn").Process(target=_search, args=(*size, theirs))
    work.start()
    theirs.close()
    yield ours.recv()
    work.join()


def long_log(rows: int, p: int, clients: int) -> Iterator[ox.QueryLog]:
    """A log of any length, block by block: normal points, three in ten explained."""
    rng = np.random.default_rng([p, clients])
    plane = long_plane(p)
    service = ox.ModelOracle(plane, L1)
    for start in range(0, rows, 16_384):
        count = min(16_384, rows - start)
        points = rng.normal(size=(count, p))
        answers = service.explain(points)
        answers[rng.random(count) >= 0.3] = np.nan
        names = [f"client {k}" for k in rng.integers(clients, size=count).tolist()]
        log = ox.QueryLog(mechanism=L1)
        times = SECONDS + start + np.arange(count)
        log.add_explanation(points, answers, plane.labels(points), client=names, time=times)
        yield log


def long_plane(p: int) -> ox.Hyperplane:
    """The model behind a long log."""
    return ox.Hyperplane(np.random.default_rng(p).normal(size=p), 0.3)


def _measure(rows: int, p: int, clients: int, path: Path | None, pipe: Any) -> None:
    before, start = peak(), time.perf_counter()
    monitor(long_log(rows, p, clients) if path is None else path, model=long_plane(p))
    pipe.send((time.perf_counter() - start, peak(), before))


def sized(rows: int, p: int, clients: int, path: Path | None = None) -> Size:
    """Measured in a process of its own, whose memory is nothing else's."""
    ours, theirs = multiprocessing.Pipe()
    # Not a copy of this process: that would start with this one's memory.
    work = multiprocessing.get_context("spawn").Process(target=_measure, args=(rows, p, clients, path, theirs))
    work.start()
    seconds, peak, before = ours.recv()
    work.join()
    return Size(rows, p, clients, "blocks" if path is None else path.suffix.lstrip("."), seconds, peak, before)


def sizes(quick: bool, folder: Path) -> Iterator[Size]:
    """A million rows as blocks, and as a file."""
    rows = 100_000 if quick else 1_000_000
    for p in (10, 30):
        for clients in (rows // 10, 1):
            yield sized(rows, p, clients)
    path = folder / "monitor-benchmark.jsonl"
    try:
        write(path, long_log(rows, 10, rows // 10))
        yield sized(rows, 10, rows // 10, path)
    finally:
        path.unlink(missing_ok=True)


def write(path: Path, blocks: Iterator[ox.QueryLog]) -> None:
    """A log file of all blocks."""
    from overexplain.log.jsonl.formats import JsonlWriter

    path.unlink(missing_ok=True)
    writer = JsonlWriter(path)
    for block in blocks:
        for row in block:
            writer.write(row)
    writer.close()


def markdown(found: dict[str, Any]) -> str:
    """The tables."""
    sizes_, false_, delays_ = found["sizes"], found["false"], found["delays"]
    lines = [
        "| requests | features | clients | read from | seconds | peak memory (MB) |",
        "|--:|--:|--:|---|--:|--:|",
        *(
            f"| {s['rows']:,} | {s['features']} | {s['clients']:,} | {s['source']} | {s['seconds']:.0f} | {s['megabytes']:.0f} |"
            for s in sizes_
        ),
        "",
        f"Memory includes {max((s['before'] for s in sizes_), default=0):.0f} MB that the process needs before it reads anything.",
        "",
        "False alarms: honest clients that set one off, of all.",
        "",
        "| data | honest clients | questions each | near boundary | far out | own advice | others' advice |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for f in false_:
        cells = " | ".join(f"{f['alarmed'][k]} / {f['clients']}" for k in KINDS if k not in ("volume", "holds-model"))
        lines.append(f"| {f['data']} | {f['honest']} | {f['questions']} | {cells} |")
    lines += [
        "",
        "Attackers: the request at which each alarm fired, of all requests (-: not), and the one from which on the attacker's own "
        "answers leave one model, or only close ones.",
        "",
        "| data | attack | requests | near boundary | far out | own advice | others' advice | model known at |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for d in delays_:
        cells = " | ".join(str(d["fired"][k] or "-") for k in KINDS if k not in ("volume", "holds-model"))
        lines.append(f"| {d['data']} | {d['attack']} | {d['requests']} | {cells} | {d['known'] or '-'} |")
    for s in found.get("planted", []):
        lines += [
            "",
            f"Attackers among the {s['clients']:,} clients of {s['rows']:,} requests with {s['explanations']:,} explanations "
            f"(diabetes), read in {s['seconds']:.0f} s with {s['megabytes']:.0f} MB: the request at which each alarm fired, and "
            f"whether the attacker is among the 20 clients that are shown. Of the others {s['others']:,} set off an alarm.",
            "",
            "| attack | requests | near boundary | far out | own advice | others' advice | holds the model | model known at "
            "| shown |",
            "|---|--:|--:|--:|--:|--:|--:|--:|---|",
        ]
        for one in s["attackers"]:
            kinds = [*(k for k in KINDS if k not in ("volume", "holds-model")), "holds-model"]
            cells = " | ".join(str(one["fired"][k] or "-") for k in kinds)
            shown = "yes" if one["listed"] else "no"
            lines.append(f"| {one['attack']} | {one['requests']} | {cells} | {one['known'] or '-'} | {shown} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", choices=("sizes", "false", "delays", "planted"), help="keep the other recorded parts")
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    options = parser.parse_args()
    recorded = options.results / "monitor.json"
    if options.check:
        found = json.loads(recorded.read_text(encoding="utf-8"))
        page = DOCS.read_text(encoding="utf-8")
        sys.exit(
            0
            if quoted(markdown(found), page, "monitor.py") == page
            else "docs/monitor.md does not quote what was recorded"
        )
    parts: dict[str, Callable[[], Iterator[Any]]] = {
        "false": lambda: false_alarms(options.quick),
        "delays": delays,
        "sizes": lambda: sizes(options.quick, options.results),
        "planted": lambda: searches(options.quick),
    }
    found = json.loads(recorded.read_text(encoding="utf-8")) if options.only else {}
    for name, measure in parts.items():
        if options.only in (None, name):
            found[name] = []
            for entry in measure():
                found[name].append(asdict(entry))
                print(entry, flush=True)
    found["machine"] = machine()
    text = markdown(found)
    print(text)
    if options.quick:
        return
    recorded.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (options.results / "monitor.md").write_text(
        f"# The monitor, measured\n\n{text}\n\n{described(found['machine'])}\n", encoding="utf-8"
    )
    DOCS.write_text(quoted(text, DOCS.read_text(encoding="utf-8"), "monitor.py"), encoding="utf-8")


if __name__ == "__main__":
    main()
