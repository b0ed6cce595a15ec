"""Audits of real tables: how long they take, and where; what they leave undecided; and whether another program says the same.

    python benchmarks/audit_tables.py [--tables german_credit,adult] [--encodings raw,one-hot] [--sample 40] [--quick]
                                      [--results DIRECTORY] [--check]

OVEREXPLAIN_DATA names the directory with german_credit.csv, taiwan_credit_default.csv and adult.csv; breast_cancer comes with
scikit-learn. A logistic regression each, categories as numbers (raw), the same in standard deviations (standardised), or with
categories and small whole numbers as flags (one-hot). One process, seconds of its processor. Every audit is the default one of l1,
with l2, linf and labels beside it: 20 orders, 500 judged cases in each;
comparing defences is ended after a minute. Then, in the first order of every service and at five
numbers of answers, `second_opinion` is asked about some of the judged cases, one by one. Results go to
benchmarks/results/audit_tables.* and docs/audit.md as they come, in the place of earlier ones of the same table and encoding; a
quick run (two orders, few cases) only prints them. --check: fail if the page quotes other numbers than were recorded.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from certify import machine, one_thread
from numpy.typing import NDArray
from quoting import described, quoted
from second_opinion import opinions

import overexplain as ox
from overexplain.auditing.audit_report import Quota
from overexplain.auditing.defending.defences import compare_defences
from overexplain.auditing.determining.curves import checkpoints, first_order, look
from overexplain.auditing.units import Units
from overexplain.report.render import render

FloatArray = NDArray[np.float64]
ROOT = Path(__file__).parent
DOCS = ROOT.parent / "docs/audit.md"
TARGETS = {"german_credit": "GoodCustomer", "taiwan_credit_default": "NoDefaultNextMonth", "adult": "income"}
NAMES = {
    "german_credit": "German",
    "taiwan_credit_default": "Taiwan",
    "adult": "Adult",
    "breast_cancer": "breast_cancer",
}
ENCODINGS = ("raw", "standardised", "one-hot")
SERVICES = ("labels", "l1", "linf", "l2")
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
DEFENCES, MOST_SECONDS = "comparing defences", 60
FEW = range(3, 9)
"""A column of so many different whole numbers is one of categories, if it is one-hot."""


@dataclass
class Service:
    """The curve of one service: its seconds, what it leaves undecided, what was counted wrong, and the second opinion.

    numbers  numbers of answers at which the second program was asked; shares: of the whole curve's first order there
    same, other, untold  cases of which it says the same; the other; nothing, because they are too close for it
    """

    seconds: float
    undecided: float
    wrong: int
    numbers: list[int] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    same: int = 0
    other: int = 0
    untold: int = 0


@dataclass
class Audit:
    """One table in one encoding: its size, the seconds of every part, and its services."""

    table: str
    encoding: str
    cases: int
    features: int
    parts: dict[str, float]
    services: dict[str, Service]
    mismatches: list[dict[str, Any]] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """All of it."""
        return sum(self.parts.values())


def available() -> list[str]:
    """The tables at hand."""
    return [name for name in NAMES if name not in TARGETS or _path(name).exists()]


def encodings(name: str) -> tuple[str, ...]:
    """Those that a table has: measurements have no categories."""
    return ENCODINGS[:2] if name == "breast_cancer" else ENCODINGS


def read(name: str, encoding: str) -> tuple[ox.LinearModel, FloatArray]:
    """A model with its cases."""
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    if name == "breast_cancer":
        from sklearn.datasets import load_breast_cancer

        frame, outcome = load_breast_cancer(return_X_y=True, as_frame=True)
    else:
        frame = pd.read_csv(_path(name))
        target = frame.pop(TARGETS[name])
        outcome = target == target.max()
    words = [column for column in frame.columns if not pd.api.types.is_numeric_dtype(frame[column])]
    grouped: list[str] = []
    if encoding == "one-hot":
        few = [column for column in frame.columns if column not in words and frame[column].nunique() in FEW]
        grouped = [*words, *few]
        frame[few] = frame[few].astype(str)
    else:
        for column in words:
            frame[column] = frame[column].astype("category").cat.codes.astype(float)
    others = [column for column in frame.columns if column not in grouped]
    encoder = make_column_transformer((StandardScaler(), others), (OneHotEncoder(), grouped))
    fitted = make_pipeline(encoder, LogisticRegression(max_iter=3000)).fit(frame, outcome)
    model = ox.load_model(fitted)
    return model, np.asarray(model.encode(frame) if grouped else frame, dtype=np.float64)


def _path(name: str) -> Path:
    return Path(os.environ.get("OVEREXPLAIN_DATA") or "no directory named") / f"{name}.csv"


class Clock:
    """The seconds of this process since the last look, by the name of what was done."""

    def __init__(self) -> None:
        self.parts: defaultdict[str, float] = defaultdict(float)
        self.doing, self._since = "read and fit", time.process_time()

    def turn(self, doing: str) -> None:
        """What was done ends here."""
        now = time.process_time()
        self.parts[self.doing] += now - self._since
        self.doing, self._since = doing, now


def audited(name: str, encoding: str, orders: int, judged: int, sample: int) -> Audit:
    """An audit, by its parts, and the second opinion."""
    clock = Clock()
    model, rows = read(name, encoding)
    standardize = encoding == "standardised"
    clock.turn("prepare")

    def note(doing: str, done: int, *_: int) -> None:
        clock.turn(f"{doing} {done}" if doing.startswith("counting") else doing)

    report = ox.audit(
        model, rows, ("l1",), standardize=standardize, orders=orders, judged=judged, defences=False, progress=note
    )
    clock.turn("write the page")
    render(report, Path("audit.html"))
    clock.turn("")
    units = Units.standard(rows) if standardize else Units.own(model.dimension)
    clock.parts[DEFENCES] = defences_seconds(units.model(model), units.into(rows), report.quotas[0])
    specs = {service.id: service.spec for service in report.services}
    services, parts = {}, dict(clock.parts)
    for i, curve in enumerate(report.curves):
        seconds = parts.pop(f"counting what is determined {i}")
        spec = specs[curve.service] if curve.population == "all" else "denied"
        services[spec] = Service(seconds, curve.undecided, curve.wrong)
        parts[f"curve of {spec}"] = seconds
    found = Audit(name, encoding, len(rows), model.dimension, parts, services)
    numbers = checkpoints(model.dimension, len(rows))
    for curve in report.curves:
        if curve.population == "all":
            spec = specs[curve.service]
            order = first_order(
                units.model(model), units.into(rows), ox.Service.parse(spec),
                answers=numbers, orders=orders, judged=judged, rng=0,
            )  # fmt: skip
            compare(found, spec, order, curve.answers, curve.first, sample)
    return found


def defences_seconds(model: ox.LinearModel, cases: FloatArray, allowed: Quota) -> float:
    """Seconds that an audit's comparison of defences takes, in a process of its own that is ended after MOST_SECONDS of them."""
    fork = multiprocessing.get_context("fork")
    mine, other = fork.Pipe(duplex=False)
    child = fork.Process(target=_defend, args=(model, cases, allowed, other))
    child.start()
    other.close()
    try:
        return float(mine.recv())
    except EOFError:
        return float(MOST_SECONDS)
    finally:
        child.join()


def _defend(model: ox.LinearModel, cases: FloatArray, allowed: Quota, told: Connection) -> None:
    start = time.process_time()
    limit = int(start) + MOST_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    chance = np.random.default_rng(0).spawn(2)[1]  # an audit's first is for rebuilding the model
    quota = None if allowed.is_unsettled else allowed
    compare_defences(model, cases, ox.Service.parse("l1"), "s1", rng=chance, quota=quota)
    told.send(time.process_time() - start)


def compare(found: Audit, spec: str, order: Any, numbers: tuple[int, ...], curve: Any, sample: int) -> None:
    """What the other program says at five numbers of answers about the first judged cases of an order."""
    seen, service = look(order, numbers), found.services[spec]
    if not np.array_equal(seen.shares(), curve):
        found.mismatches.append({"service": spec, "what": "the first order's shares are not those of the curve"})
    for index in chosen(seen.shares()):
        k = numbers[index]
        service.numbers.append(k)
        service.shares.append(float(seen.shares()[index]))
        answers = None if order.explanations is None else order.explanations[:k]
        said = opinions(spec, order.asked[:k], order.labels[:k], answers, order.truth, order.judged[:sample])
        for case, other in enumerate(said):
            own = bool(seen.first[case] <= index)
            service.same += other is own
            service.untold += other is None
            service.other += other is (not own)
            if other is (not own):
                found.mismatches.append({"service": spec, "answers": k, "case": case, "audit": own, "second": other})


def chosen(shares: FloatArray) -> list[int]:
    """Five numbers of answers: where the shares are nearest to these, and others in between where that is fewer."""
    picked = {int(np.abs(shares - share).argmin()) for share in SHARES}
    spread = [round(i) for i in np.linspace(0, len(shares) - 1, 5)]
    rest = [i for i in [*spread, *range(len(shares))] if i not in picked]
    return sorted([*picked, *dict.fromkeys(rest)][:5])


def markdown(found: dict[str, Any]) -> str:
    """The tables."""
    audits = [Audit(**entry | {"services": _services(entry)}) for entry in found["audits"]]
    others = ("read and fit", "rebuilding the model", DEFENCES)
    lines = [
        "| table | cases × features | read, fit | rebuild | curves: labels | l1 | l1, denied | linf | l2 | defences | rest | all |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for audit in audits:
        curves = [audit.services.get(spec) for spec in ("labels", "l1", "denied", "linf", "l2")]
        told = [audit.parts.get(name, 0.0) for name in others]
        rest = audit.seconds - sum(told) - sum(curve.seconds for curve in curves if curve)
        over = "> " if told[2] >= MOST_SECONDS else ""
        cells = [
            f"{NAMES[audit.table]}, {audit.encoding}", f"{audit.cases:,} × {audit.features}",
            *(f"{seconds:.1f}" for seconds in told[:2]),
            *("" if curve is None else f"{curve.seconds:.1f}" for curve in curves),
            f"{over}{told[2]:.1f}", f"{rest:.1f}", f"**{over}{audit.seconds:.1f}**",
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "| table | service | undecided | answers | determined, first order | second program: same | other | too close |",
        "|---|---|--:|---|---|--:|--:|--:|",
    ]
    for audit in audits:
        for spec in SERVICES:
            service = audit.services[spec]
            shares = ", ".join(f"{100 * share:.0f} %" for share in service.shares)
            lines.append(
                f"| {NAMES[audit.table]}, {audit.encoding} | {spec} | {100 * service.undecided:.3g} % "
                f"| {', '.join(map(str, service.numbers))} | {shares} | {service.same} | {service.other} | {service.untold} |"
            )
    return "\n".join(lines)


def _services(entry: dict[str, Any]) -> dict[str, Service]:
    return {spec: Service(**one) for spec, one in entry["services"].items()}


def write(found: dict[str, Any], folder: Path) -> None:
    """All of it."""
    folder.mkdir(exist_ok=True)
    (folder / "audit_tables.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    text = f"{markdown(found)}\n\n{described(found['machine'])}"
    (folder / "audit_tables.md").write_text(f"# Audits of real tables, in seconds\n\n{text}\n", encoding="utf-8")
    if folder == ROOT / "results":
        DOCS.write_text(quoted(text, DOCS.read_text(encoding="utf-8"), "audit_tables.py"), encoding="utf-8")


def main() -> None:
    """Measure, print as it goes, write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=partial(str.split, sep=","), default=list(NAMES))
    parser.add_argument("--encodings", type=partial(str.split, sep=","), default=list(ENCODINGS))
    parser.add_argument("--sample", type=int, default=40, help="cases that the second program is asked about")
    parser.add_argument("--quick", action="store_true", help="two orders of 60 cases, no results written")
    parser.add_argument("--check", action="store_true", help="only compare docs/audit.md with what was recorded")
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="where the results go")
    options = parser.parse_args()
    recorded = options.results / "audit_tables.json"
    found = json.loads(recorded.read_text(encoding="utf-8")) if recorded.exists() else {"audits": []}
    if options.check:
        page = DOCS.read_text(encoding="utf-8")
        text = f"{markdown(found)}\n\n{described(found['machine'])}"
        sys.exit(
            0 if quoted(text, page, "audit_tables.py") == page else "docs/audit.md does not quote what was recorded"
        )
    one_thread()
    places = [(name, encoding) for name in NAMES for encoding in encodings(name)]
    for name, encoding in places:
        if name not in options.tables or encoding not in options.encodings or name not in available():
            continue
        audit = audited(name, encoding, *((2, 60) if options.quick else (20, 500)), options.sample)
        print(json.dumps(asdict(audit)), flush=True)
        if options.quick:
            continue
        rest = [one for one in found["audits"] if (one["table"], one["encoding"]) != (name, encoding)]
        audits = sorted([*rest, asdict(audit)], key=lambda one: places.index((one["table"], one["encoding"])))
        found = {"machine": machine(), "audits": audits}
        write(found, options.results)


if __name__ == "__main__":
    main()
