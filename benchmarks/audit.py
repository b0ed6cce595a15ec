"""Where the time of an audit goes: 10,000 cases of 30 features, all services, two processes; and what the demo prints.

python benchmarks/audit.py [--demo]

The curve is measured against the obvious alternatives in the same run: reading the log anew after every number of answers, and
settling every case with two linear programs (scipy's HiGHS). Those take hours, so they are timed on a sample and multiplied up.
Writes results/audit.json, results/audit.md and results/demo.txt; with --demo only the last.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from certify import machine
from scipy.optimize import linprog

import overexplain as ox
from overexplain.auditing.determining.curves import checkpoints, determined_curve, first_order
from overexplain.auditing.units import Units
from overexplain.auditing.workers import one_thread
from overexplain.geometry.arrays import FloatArray

RESULTS = Path(__file__).parent / "results"
CASES, FEATURES, SEED = 10_000, 30, 0
ORDERS, JUDGED = 20, 500
SERVICES = ("l1", "l1; robust=l2:0.1")
ROUNDED = "l1; rounded:2"
SAMPLE = 12
"""Cases that the per-case linear programs are timed on."""


def example() -> tuple[ox.LinearModel, FloatArray]:
    """A logistic regression on synthetic cases."""
    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegression

    rows, target = make_classification(
        CASES, FEATURES, n_informative=20, n_redundant=0, class_sep=0.7, random_state=SEED
    )
    model = ox.load_model(LogisticRegression(max_iter=1000).fit(rows, target))
    return model, np.asarray(rows, dtype=np.float64)


def timed_audit(model: ox.LinearModel, rows: FloatArray) -> tuple[ox.AuditReport, list[tuple[str, float]], float]:
    """The report, the seconds of every step, and of all."""
    marks: list[tuple[str, float]] = []

    def note(doing: str, done: int, total: int) -> None:
        marks.append((f"{doing} {done}/{total}" if total > 1 else doing, time.perf_counter()))

    start = time.perf_counter()
    report = ox.audit(
        model, rows, SERVICES, standardize=True, orders=ORDERS, judged=JUDGED, seed=SEED, workers=2, progress=note
    )
    end = time.perf_counter()
    ends = [moment for _, moment in marks[1:]] + [end]
    steps = [(name, after - at) for (name, at), after in zip(marks, ends, strict=True)]
    return report, steps, end - start


def alternatives(model: ox.LinearModel, rows: FloatArray) -> dict[str, float]:
    """Seconds for the curve of the l1 service, the naive ways: sampled and multiplied up."""
    numbers = checkpoints(FEATURES, len(rows))
    service = ox.Service.parse("l1")
    order = first_order(model, rows, service, answers=numbers, orders=1, judged=JUDGED, rng=SEED)
    some = numbers[:: max(1, len(numbers) // 6)]
    start = time.perf_counter()
    for k in some:
        ox.Knowledge(order.log(k), threads=1).certify(order.judged)
    engine = (time.perf_counter() - start) / len(some) * len(numbers) * ORDERS
    start = time.perf_counter()
    for k in some:
        for case in order.judged[: SAMPLE // 6 or 1]:
            both_programs(order.log(k), case)
    tried = len(some) * (SAMPLE // 6 or 1)
    programs = (time.perf_counter() - start) / tried * len(numbers) * JUDGED * ORDERS
    return {"certify_at_every_number": engine, "linear_programs": programs}


def rounded_service(model: ox.LinearModel, rows: FloatArray) -> float:
    """Seconds that the curve of a service with rounded answers would add, two processes: from two orders, multiplied up."""
    units = Units.standard(rows)
    start = time.perf_counter()
    with one_thread():
        determined_curve(
            units.model(model), units.into(rows), ox.Service.parse(ROUNDED), "s1",
            answers=checkpoints(FEATURES, len(rows)), orders=2, judged=JUDGED, rng=SEED,
        )  # fmt: skip
    return (time.perf_counter() - start) / 2 * ORDERS / 2


def both_programs(log: ox.QueryLog, case: FloatArray) -> tuple[bool, bool]:
    """Whether a model that fits labels and explanations can say Yes to a case, and No: two linear programs over (a, b).

    What an outsider would write down first: labels are half-spaces, explanations lie on the plane, |a_i| ≤ 1.
    """
    p = len(case)
    asked, labels, answers = log.points, log.labels, log.explanations
    sides = -labels[:, None] * np.hstack([asked, -np.ones((len(asked), 1))])
    planes = np.hstack([answers, -np.ones((len(answers), 1))])
    query = np.append(case, -1.0)
    limits = [(-1.0, 1.0)] * p + [(None, None)]
    found = [
        linprog(
            sign * query, A_ub=sides, b_ub=np.zeros(len(sides)), A_eq=planes, b_eq=np.zeros(len(planes)), bounds=limits
        )
        for sign in (1.0, -1.0)
    ]
    return bool(found[1].status == 0 and -found[1].fun > 0), bool(found[0].status == 0 and found[0].fun < 0)


def demo() -> tuple[str, float]:
    """What the demo prints, and its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        command = [sys.executable, "-m", "overexplain", "demo"]
        text = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout
        return text, time.perf_counter() - start


def written(found: dict[str, Any]) -> str:
    """The results in Markdown."""
    curve = next(s["seconds"] for s in found["steps"] if s["step"].startswith("counting what is determined 0/"))
    engine, programs = found["alternatives"]["certify_at_every_number"], found["alternatives"]["linear_programs"]
    services = ", ".join(f"`{spec}`" for spec in found["services"])
    size = f"{found['cases']:,} cases, {found['features']} features, {found['orders']} orders"
    told = (
        f"The curve of the audited service took {curve:.1f} s.",
        "The same shares from `Knowledge(log).certify(cases)` after every number of answers take about",
        f"{engine:,.0f} s ({engine / curve:,.0f} times as long), and two linear programs per case and number about",
        f"{programs:,.0f} s ({programs / curve:,.0f} times), and prove nothing: both timed on a sample in the same run, on one",
        "thread, and multiplied up.",
    )
    lines = [
        "# The audit: where the time goes",
        "",
        f"{size}, {found['judged']} cases judged in each, two processes. Services: {services}.",
        f"Measured on {found['machine']['cpu']}, {found['machine']['cores']} cores, load {found['machine']['load']}.",
        "",
        "| step | seconds |",
        "|---|--:|",
        *(f"| {step['step']} | {step['seconds']:.1f} |" for step in found["steps"] if step["seconds"] >= 0.05),
        f"| **all** | **{found['seconds']:.1f}** |",
        "",
        *told,
        "",
        f"Answers that are not exact take longer: `{ROUNDED}` would add about {found['rounded_seconds']:.0f} s "
        "(two orders, multiplied up).",
        f"`overexplain demo`: {found['demo_seconds']:.0f} s.",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    """Measure and record."""
    text, demo_seconds = demo()
    (RESULTS / "demo.txt").write_text(text, encoding="utf-8")
    if "--demo" in sys.argv[1:]:
        return 0
    model, rows = example()
    report, steps, seconds = timed_audit(model, rows)
    found = {
        "machine": machine(),
        "cases": CASES,
        "features": FEATURES,
        "orders": ORDERS,
        "judged": report.curves[0].judged,
        "services": [service.spec for service in report.services],
        "seconds": seconds,
        "steps": [{"step": name, "seconds": taken} for name, taken in steps],
        "alternatives": alternatives(model, rows),
        "rounded_seconds": rounded_service(model, rows),
        "demo_seconds": demo_seconds,
        "wrong": sum(curve.wrong for curve in report.curves),
    }
    (RESULTS / "audit.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (RESULTS / "audit.md").write_text(written(found), encoding="utf-8")
    print(written(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
