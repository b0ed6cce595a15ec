"""How many points a second `Knowledge` certifies, beside one linear program per point and side, and one matrix-vector product.

    python benchmarks/certify.py [--cells 10/500 30/5000] [--repeats 5] [--seconds 3] [--dry]

Labels of a Gaussian linear classifier and Gaussian points; cells are features/labels. All methods see the same points in one run,
and every claim is held against the model that gave the labels. Real data: breast_cancer (scikit-learn) and every CSV in the
directory named by OVEREXPLAIN_DATA. Results go to benchmarks/results/certify.{json,md}.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from growth_plot import draw
from numpy.typing import NDArray
from scipy.optimize import linprog

import overexplain as ox

FloatArray = NDArray[np.float64]
RESULTS = Path(__file__).parent / "results"
CELLS = {
    "5/500": 1_000_000,
    "10/500": 400_000,
    "10/5000": 1_000_000,
    "30/500": 40_000,
    "30/5000": 200_000,
    "100/500": 20_000,
    "100/5000": 3_000,
}
"""features/labels -> points asked"""
GROWTH = {
    "features, 2000 labels, 10 000 points": [(p, 2000, 10_000) for p in (2, 5, 10, 20, 30, 40, 60)],
    "labels, 10 features, 100 000 points": [(10, n, 100_000) for n in (50, 500, 5000, 50_000)],
    "points, 10 features, 500 labels": [(10, 500, count) for count in (100, 1000, 10_000, 100_000, 1_000_000)],
}
FEW = 100
"""Points of the column that includes the fit."""
SHARED = 2 * 16_384
"""From so many points on, two threads have a block each."""


@dataclass(frozen=True)
class Work:
    """A labelled table to learn from, points to ask about, and their labels by the model that gave the others."""

    name: str
    table: FloatArray
    labels: NDArray[np.int8]
    points: FloatArray
    truth: NDArray[np.int8]
    others: FloatArray
    """Points like those asked about, but none of them: what is made on first use is made for these."""

    def log(self) -> ox.QueryLog:
        """The table as a log of labels."""
        log = ox.QueryLog()
        log.add_label(self.table, self.labels)
        return log

    def rows(self) -> FloatArray:
        """The labels as a cone g·(a, b) ≤ 0, for those who solve linear programs."""
        return np.hstack([self.table, -np.ones((len(self.table), 1))]) * -self.labels[:, None]


@dataclass(frozen=True)
class Row:
    """One cell. Rates are points per second of one thread's processor time, but `two_threads` and `wall` of the clock."""

    name: str
    features: int
    labels: int
    points: int
    counts: dict[str, int]
    wrong: int
    """Claims that the model which gave the labels contradicts."""
    linprog: float
    linprog_points: int
    disagreements: int
    """Points where linprog says otherwise, of those that are not undecided."""
    cvxpy: float
    ours: float
    wall: float
    two_threads: float
    few: float
    """100 points, reading the log included."""
    product: float
    left_open: int
    """Points that only the exact step can settle."""


def gaussian(p: int, n: int, count: int, seed: int = 1) -> Work:
    """A random classifier at 0.3 from the middle of Gaussian data."""
    rng = np.random.default_rng(seed)
    model = ox.Hyperplane(normal := rng.standard_normal(p), 0.3 * float(np.linalg.norm(normal)))
    table, points, others = (rng.standard_normal((rows, p)) for rows in (n, count, 1000))
    return Work(f"{p}/{n}", table, model.labels(table), points, model.labels(points), others)


def real(most: int = 500) -> Iterator[Work]:
    """Logistic regressions on tables at hand, in their own units: `most` rows labelled, or half of them, the others asked."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    tables = {"breast_cancer": load_breast_cancer(return_X_y=True)}
    directory = os.environ.get("OVEREXPLAIN_DATA")
    for path in sorted(Path(directory).glob("*.csv")) if directory else []:
        tables[path.stem] = read_table(path)
    for name, (table, outcome) in tables.items():
        scaler = StandardScaler().fit(table)
        fitted = LogisticRegression(max_iter=500).fit(scaler.transform(table), outcome)
        said = np.where(fitted.decision_function(scaler.transform(table)) >= 0, ox.YES, ox.NO).astype(np.int8)
        order = np.random.default_rng(0).permutation(len(table))
        labels = min(most, len(table) // 2)
        learn, ask = order[:labels], order[labels:]
        # A small table has no rows to spare: points between two of its own stand in.
        others = (table[ask[:most]] + table[np.roll(ask, 1)[:most]]) / 2
        asked = np.ascontiguousarray(table[ask])
        yield Work(name, table[learn], said[learn], asked, said[ask], others)


def read_table(path: Path) -> tuple[FloatArray, NDArray[np.bool_]]:
    """(features, outcome) of a CSV: the outcome is the first column if that has two values, else the last."""
    import pandas as pd

    frame: Any = pd.read_csv(path)
    for column in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[column]):
            codes = pd.factorize(frame[column], sort=True)[0]
            frame[column] = codes if codes.max() <= 1 else np.nan  # two values are a number, more are not
    frame = frame.dropna(axis="columns")
    target = frame.columns[0] if frame.iloc[:, 0].nunique() == 2 else frame.columns[-1]
    outcome = frame[target].to_numpy() == frame[target].max()
    return frame.drop(columns=target).to_numpy(dtype=np.float64), outcome


def by_linprog(work: Work, seconds: float) -> tuple[float, list[int]]:
    """(points per second, codes of the first points): is the query, or its negative, a combination of the rows?"""
    columns, nothing = np.ascontiguousarray(work.rows().T), np.zeros(len(work.table))

    def code(query: FloatArray) -> int:
        if linprog(nothing, A_eq=columns, b_eq=query, method="highs").status == 0:
            return ox.NO
        return ox.YES if linprog(nothing, A_eq=columns, b_eq=-query, method="highs").status == 0 else 0

    return one_by_one(work, seconds, code)


def by_cvxpy(work: Work, seconds: float) -> tuple[float, list[int]]:
    """The same with a cvxpy problem per point and side and its default solver."""
    import cvxpy as cp

    columns = np.ascontiguousarray(work.rows().T)

    def code(query: FloatArray) -> int:
        for sign in (ox.NO, ox.YES):
            weights: Any = cp.Variable(len(work.table), nonneg=True)
            problem: Any = cp.Problem(cp.Minimize(0), [columns @ weights == -sign * query])
            with warnings.catch_warnings(), contextlib.suppress(cp.SolverError):  # it gives up on some raw units
                warnings.simplefilter("ignore")
                problem.solve()
            if problem.status == cp.OPTIMAL:
                return sign
        return 0

    return one_by_one(work, seconds, code)


def one_by_one(work: Work, seconds: float, code: Callable[[FloatArray], int]) -> tuple[float, list[int]]:
    """(points per second, codes), one point after the other until the time is up."""
    codes: list[int] = []
    begin = time.process_time()
    for x in work.points:
        codes.append(code(np.append(x, -1.0)))
        if time.process_time() - begin > seconds:
            break
    return len(codes) / (time.process_time() - begin), codes


def timed(repeats: int, prepared: Callable[[], Callable[[], object]]) -> tuple[float, float]:
    """Median (processor seconds, wall seconds) of what `prepared` makes; it is made anew each time, untimed."""
    taken = []
    for _ in range(repeats):
        run = prepared()
        cpu, wall = time.process_time(), time.perf_counter()
        run()
        taken.append((time.process_time() - cpu, time.perf_counter() - wall))
    return max(statistics.median(t[0] for t in taken), 1e-9), max(statistics.median(t[1] for t in taken), 1e-9)


def known(log: ox.QueryLog, threads: int = 1, time_limit: float = 0.0) -> ox.Knowledge:
    """What the log says; without time for the exact step, what floats cannot settle stays undecided."""
    return ox.Knowledge(log, time_limit=time_limit, threads=threads)


def measure(work: Work, repeats: int, seconds: float, limit: float) -> Row:
    """All figures of one cell. The exact step gets `limit` seconds, apart, for what floats leave open."""
    count, few, log = len(work.points), work.points[:FEW], work.log()

    def asked(threads: int) -> Callable[[], object]:
        knowledge = known(log, threads)
        knowledge.certify(work.others)
        return lambda: knowledge.certify(work.points)

    asked(1)  # compiles
    verdicts = known(log).certify(work.points)
    left_open = verdicts.counts()["UNDECIDED"]
    if left_open:
        verdicts = known(log, time_limit=limit).certify(work.points)
    codes = verdicts.codes
    linear, expected = by_linprog(work, seconds)
    compared = codes[: len(expected)]
    cpu, wall = timed(repeats, lambda: asked(1))
    _, both = timed(repeats, lambda: asked(2))
    with_fit, _ = timed(repeats, lambda: lambda: known(log).certify(few))
    normal = np.ones(work.points.shape[1])
    product, _ = timed(repeats, lambda: lambda: work.points @ normal)
    return Row(
        name=work.name,
        features=work.points.shape[1],
        labels=len(work.table),
        points=count,
        counts=verdicts.counts(),
        wrong=int(np.count_nonzero(((codes == ox.YES) | (codes == ox.NO)) & (codes != work.truth))),
        linprog=linear,
        linprog_points=len(expected),
        disagreements=int(np.count_nonzero((compared != expected) & (compared != ox.Verdict.UNDECIDED))),
        cvxpy=by_cvxpy(work, seconds / 2)[0],
        ours=count / cpu,
        wall=count / wall,
        two_threads=count / both,
        few=len(few) / with_fit,
        product=count / product,
        left_open=left_open,
    )


def grow(work: Work, repeats: int) -> dict[str, float]:
    """Processor seconds to read the log and, at once after that, to ask about all points: nothing is made beforehand."""
    log = work.log()
    known(log).certify(work.points)  # compiles
    fit, _ = timed(repeats, lambda: lambda: known(log))

    def asked() -> Callable[[], object]:
        knowledge = known(log)
        return lambda: knowledge.certify(work.points)

    ask, _ = timed(repeats, asked)
    return {"features": work.table.shape[1], "labels": len(log), "points": len(work.points), "fit": fit, "ask": ask}


def machine() -> dict[str, str]:
    """What the figures were measured on; no names of hosts or people."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return {
        "cpu": cpu,
        "cores": str(sum(line.startswith("processor") for line in lines)),
        "load": f"{os.getloadavg()[0]:.1f}",
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def short(value: float) -> str:
    """Three digits and a unit."""
    for limit, unit in ((1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g}{unit}"
    return f"{value:.3g}"


HEADER = (
    "| cell | points | unknown | ours /s | × linprog | × cvxpy | 2 threads: × 1 | "
    f"{FEW} points with fit: × linprog | product / ours | linprog /s | cvxpy /s | differ from linprog | wrong |"
)
RULE = "|---|" + "--:|" * (HEADER.count("|") - 2)


def line(r: Row) -> str:
    """One row of the table."""
    cells = [r.name, short(r.points), f"{r.counts['UNKNOWN'] / r.points:.1%}"]
    cells += [short(v) for v in (r.ours, r.ours / r.linprog, r.ours / r.cvxpy)]
    cells.append(short(r.two_threads / r.wall) if r.points >= SHARED else "–")
    cells += [short(v) for v in (r.few / r.linprog, r.product / r.ours, r.linprog, r.cvxpy)]
    return "| " + " | ".join([*cells, f"{r.disagreements} of {r.linprog_points}", str(r.wrong)]) + " |"


def open_line(r: Row) -> str:
    """What the exact step did."""
    settled = r.left_open - r.counts["UNDECIDED"]
    return f"| {r.name} | {r.features} | {r.labels} | {r.points:,} | {r.left_open:,} | {settled:,} | {r.counts['UNDECIDED']:,} |"


def page(rows: list[Row], real_rows: list[Row], growth: dict[str, list[dict[str, float]]], options: Any) -> str:
    """The results in Markdown."""
    on = ", ".join(f"{key} {value}" for key, value in machine().items())
    text = [
        "# Certified regions: points per second",
        "",
        f"Written by `make bench-certify`. Measured on: {on}.",
        "The machine was shared with other work: rates and ratios are of processor time of one thread; only *2 threads* is",
        "by the clock, shows what was free, and is left out where one block holds the points.",
        "",
        f"Cells are features/labels; the log has labels only. Median of {options.repeats}. *ours*: `Knowledge.certify`, a",
        "rigorous bound behind every verdict; reading the log and what is made on first use are left out, none of the",
        f"points was asked about before. *{FEW} points with fit*: reading the log included. *linprog*, *cvxpy*: a feasibility",
        "program per point and side, HiGHS and cvxpy's default solver, on the first points. *product*: one matrix-vector",
        "product over the points. *wrong*: claims that the model which gave the labels contradicts.",
        "",
        HEADER,
        RULE,
        *map(line, rows),
        "",
        "## Growth",
        "",
        f"Processor seconds, median of {min(3, options.repeats)}: *fit* reads the log, *ask* is the first call after it.",
        "",
        "![processor seconds by features, labels and points](certify.svg)",
    ]
    for name, cells in growth.items():
        text += [
            "",
            f"By {name}:",
            "",
            "| features | labels | points | fit s | ask s | points /s |",
            "|--:|" + "--:|" * 5,
        ]
        for c in cells:
            numbers = [f"{c[key]:,.0f}" for key in ("features", "labels", "points")]
            text.append(
                "| " + " | ".join([*numbers, short(c["fit"]), short(c["ask"]), short(c["points"] / c["ask"])]) + " |"
            )
    text += [
        "",
        "## Real data",
        "",
        "Labels of a logistic regression, 500 rows (or half) labelled, all others asked about, columns in their own units. Whole",
        f"numbers tie, and ties are left to exact arithmetic, which had {options.limit:g} s a table and is not in the rates.",
        "linprog claims ties within its tolerance; undecided points are not compared with it.",
        "",
        HEADER,
        RULE,
        *map(line, real_rows),
        "",
        "| data | features | labels | points | left to the exact step | settled by it | undecided |",
        "|---|" + "--:|" * 6,
        *(open_line(r) for r in real_rows),
    ]
    return "\n".join(text) + "\n"


def one_thread() -> None:
    """Start again with one thread per library: the threads of this benchmark are its own."""
    variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    if any(os.environ.get(variable) != "1" for variable in variables):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | dict.fromkeys(variables, "1"))


def main() -> None:
    """Measure, print as it goes, write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", nargs="*", default=list(CELLS), choices=list(CELLS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="spent on linprog in each cell, half of it on cvxpy")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of the exact step for each real table")
    parser.add_argument("--dry", action="store_true", help="print only, and only the cells")
    options = parser.parse_args()
    one_thread()

    def measured(work: Work) -> Row:
        row = measure(work, options.repeats, options.seconds, options.limit)
        print(line(row), flush=True)
        return row

    print(HEADER)
    sizes = [[int(part) for part in name.split("/")] for name in options.cells]
    rows = [measured(gaussian(p, n, CELLS[f"{p}/{n}"])) for p, n in sizes]
    if options.dry:
        return
    growth = {
        name: [grow(gaussian(*cell), min(3, options.repeats)) for cell in cells] for name, cells in GROWTH.items()
    }
    real_rows = [measured(work) for work in real()]
    RESULTS.mkdir(exist_ok=True)
    found = {
        "machine": machine(),
        "limit": options.limit,
        "cells": [asdict(r) for r in rows],
        "growth": growth,
        "real": [asdict(r) for r in real_rows],
    }
    (RESULTS / "certify.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (RESULTS / "certify.md").write_text(page(rows, real_rows, growth, options), encoding="utf-8")
    draw(growth, RESULTS / "certify.svg")


if __name__ == "__main__":
    main()
