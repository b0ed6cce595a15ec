"""What robust counterfactuals of real models give away, and how fast, beside a cone program for each point and SCIP.

    python benchmarks/robust_tables.py [--tables german_credit,adult] [--answers l1/l2,linf/l2] [--logs 20,100]
                                       [--levels shared,exact] [--seconds 3] [--limit 8] [--dry] [--check]

Tables, models and draws are those of certify.py; answers are the library's own, with balls of a tenth of the median distance from
the plane. All methods see the same points in one process, and every claim is held against the model that gave the answers. Results
go to benchmarks/results/robust_tables.* and docs/robust.md after every cell; rows of earlier runs stay until they are measured
again. --check: fail if a page says something else than was recorded.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from certify import MANY, Asked, Clock, NoEnd, listed, machine, one_thread
from certify_data import TABLES, Work, available, drawn, gaussian, size, table
from certify_page import NAMES
from quoting import quoted, short
from robust import Given, answers_of, by_cvxpy, by_scip, compare, shares, spread_over

import overexplain as ox

RESULTS = Path(__file__).parent / "results"
DOCS = Path(__file__).parent.parent / "docs" / "robust.md"
ANSWERS = ("l1/l2", "linf/l2", "l1/linf", "linf/l1")
LOGS = (20, 100, 400)
LEVELS = ("shared", "exact")
SAMPLE, SCIP_SAMPLE = 200, 8
"""Points that the other solvers are asked about, at most."""
SCIP_FEATURES = 40
COMPILING = 60.0
"""Seconds that compiling loops may take, once."""


@dataclass(frozen=True)
class Row:
    """One cell. Microseconds are of one thread's processor time, for a point; None where nothing was measured."""

    name: str
    answers: str
    log: int
    level: str
    features: int
    points: int
    cone_micro: float | None
    cone_points: int
    differ: int | None
    """Points of the sample where the cone program (it knows less than the level "exact") or SCIP says otherwise."""
    scip_micro: float | None
    scip_points: int
    limit: float
    machine: dict[str, str]
    counts: dict[str, int] | None = None
    """None: `certify` did not end."""
    wrong: int | None = None
    micro: float | None = None
    fit_ms: float | None = None
    few_micro: float | None = None
    few_undecided: int | None = None
    proof_ms: float | None = None
    proofs: int = 0
    proofs_failed: int = 0

    @property
    def cell(self) -> tuple[str, str, int, str]:
        """What is measured again in its place."""
        return self.name, self.answers, self.log, self.level


class AskedAt(Asked):
    """A log of robust answers, read at one level."""

    def __init__(self, work: Work, limit: float, level: Any) -> None:
        super().__init__(work, limit)
        self.level = level

    def known(self) -> ox.Knowledge:
        """The log, read anew."""
        return ox.Knowledge(self.log, robust=self.level, time_limit=self.limit, threads=1)


def measure(work: Work, levels: list[str], clock: Clock, limit: float) -> Iterator[Row]:
    """All figures of the levels of one cell; the other solvers are asked once."""
    found: dict[str, tuple[dict[str, Any], Any]] = {}
    for level in levels:
        try:
            found[level] = AskedAt(work, limit, level).measured(clock)
        except NoEnd:
            found[level] = {}, None
    given = Given(table(work.name).plane, work.log(), work.points)
    nothing = np.zeros(len(work.points), dtype=np.int8)
    codes = next((codes for _, codes in reversed(found.values()) if codes is not None), nothing)
    sample = spread_over(codes, SAMPLE)
    cone = answers_of(by_cvxpy(given.log), given, sample, clock.seconds)
    scip = None
    if work.points.shape[1] <= SCIP_FEATURES:
        scip = answers_of(by_scip(given.log), given, sample[:SCIP_SAMPLE], clock.seconds)
    for level, (figures, codes) in found.items():
        differ = None
        if codes is not None:
            differ = compare(codes, cone, weaker=level == "exact").differ + compare(codes, scip).differ
        yield Row(
            name=work.name, answers=work.answers, log=len(work.asked), level=level, features=work.points.shape[1],
            points=len(work.points), cone_micro=1e6 * cone.seconds, cone_points=len(cone.codes), differ=differ,
            scip_micro=None if scip is None else 1e6 * scip.seconds, scip_points=0 if scip is None else len(scip.codes),
            limit=limit, machine=machine(), **figures,
        )  # fmt: skip


def ratio(rival: float | None, ours: float | None) -> str:
    """How many times as long the other one takes."""
    return "–" if rival is None or ours is None else short(rival / ours)


def line(row: Row) -> list[str]:
    """A row of the table."""
    counts = row.counts
    verdicts = ["no end", "", ""] if counts is None else [shares(counts), str(counts["UNDECIDED"]), str(row.wrong)]
    times = [None if v is None else short(v) for v in (row.micro, row.fit_ms, row.few_micro, row.proof_ms)]
    return [
        NAMES[row.name], row.answers, str(row.log), row.level, *verdicts, *(v or "–" for v in times),
        short(row.cone_micro or 0.0), ratio(row.cone_micro, row.micro), ratio(row.cone_micro, row.few_micro),
        ratio(row.scip_micro, row.micro), "–" if row.differ is None else str(row.differ),
        f"{row.proofs_failed} of {row.proofs + row.proofs_failed}" if row.proofs_failed else "",
    ]  # fmt: skip


def total(rows: list[Row]) -> str:
    """All cells in a sentence."""
    settled = [row for row in rows if row.counts is not None and row.micro is not None and row.cone_micro is not None]
    if not settled:
        return "not measured yet."
    every, undecided = sum(r.points for r in settled), sum(r.counts["UNDECIDED"] for r in settled if r.counts)
    faster = [row.cone_micro / row.micro for row in settled if row.cone_micro and row.micro]
    return (
        f"{len(rows)} cells, of which {len(rows) - len(settled)} did not end; {every:,} points: "
        f"{sum(r.wrong or 0 for r in settled)} wrong, {undecided} undecided, {sum(r.differ or 0 for r in settled)} differ; "
        f"{short(min(faster))} to {short(max(faster))} × as fast as the cone program, median {short(statistics.median(faster))}."
    )


def in_docs(rows: list[Row]) -> str:
    """What docs/robust.md quotes: the level "exact", all tables, a sentence for both levels."""
    head = (
        "| table | norms | answers | certain / unknown / undecided % | µs a point | cone program µs | × | × with fit |"
    )
    text = [head, "|---|---|--:|" + "--:|" * 5]
    for row in rows:
        if row.level == "exact":
            cells = line(row)
            text.append("| " + " | ".join([*cells[:3], cells[4], cells[7], *cells[11:14]]) + " |")
    return "\n".join([*text, "", *(f"`{level}`: {total([r for r in rows if r.level == level])}  " for level in LEVELS)])


def page(rows: list[Row]) -> str:
    """The results in Markdown."""
    on = sorted({", ".join(f"{k} {v}" for k, v in row.machine.items() if k != "load") for row in rows})
    head = (
        "| table | norms | answers | level | certain / unknown / undecided % | undecided | wrong | µs a point | fit ms | "
        "µs, fit and 300 points | ms a proof | cone program µs | × | × with fit | SCIP × | differ | no proof |"
    )
    rule = "|---|---|--:|---|" + "--:|" * (head.count("|") - 5)
    text = [
        "# Robust counterfactuals of real models",
        "",
        f"Written by `make bench-robust`. Measured on: {'; '.join(on)}. The machine was shared with other work.",
        "All times are processor time of one thread; medians of at most three. A log's rows and the points asked about (up to",
        "30,000) are disjoint draws of one table; models are logistic regressions. *cone program*: the convex set of the level",
        "`shared` as one parametrised problem (cvxpy, Clarabel), two optima for each of up to 200 points; it and the library's",
        "loops are compiled before the clock starts. *SCIP*: the strict problem, s = ‖a‖* and all, for up to 8. *wrong*: claims",
        "that the model which gave the answers contradicts; *differ*: points of the samples where another solver says otherwise",
        "(optima within 1e-6 of zero left out). *no proof*: certain verdicts, of those asked, for which no written proof was",
        "found.",
        "",
        head,
        rule,
        *("| " + " | ".join(line(row)) + " |" for row in rows),
    ]
    text += ["", *(f"`{level}`: {total([r for r in rows if r.level == level])}  " for level in LEVELS)]
    return "\n".join(text) + "\n"


class Recorded:
    """What was measured so far; `dry`: nothing is written."""

    def __init__(self, folder: Path, dry: bool) -> None:
        self.folder, self.dry = folder, dry
        path = folder / "robust_tables.json"
        self.rows = [Row(**row) for row in json.loads(path.read_text(encoding="utf-8"))] if path.exists() else []

    def add(self, row: Row) -> None:
        """Put a row in its place, instead of an earlier one of the same cell."""
        rows = [other for other in self.rows if other.cell != row.cell]
        order = (TABLES.index, ANSWERS.index, int, LEVELS.index)
        self.rows = sorted([*rows, row], key=lambda r: [place(v) for place, v in zip(order, r.cell, strict=True)])  # type: ignore[operator]
        if not self.dry:
            (self.folder / "robust_tables.json").write_text(
                json.dumps([asdict(r) for r in self.rows], indent=1) + "\n", encoding="utf-8"
            )
            for path, text in self.pages().items():
                path.write_text(text, encoding="utf-8")

    def pages(self) -> dict[Path, str]:
        """What the pages should say; docs/robust.md quotes only what is recorded in the project."""
        found = {self.folder / "robust_tables.md": page(self.rows)}
        if self.folder == RESULTS:
            found[DOCS] = quoted(in_docs(self.rows), DOCS.read_text(encoding="utf-8"), "robust_tables.py")
        return found


def main() -> None:
    """Measure, print as it goes, write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=listed(list(TABLES)), default=None)
    parser.add_argument("--answers", type=listed(list(ANSWERS)), default=list(ANSWERS))
    parser.add_argument("--logs", type=listed([str(log) for log in LOGS]), default=[str(log) for log in LOGS])
    parser.add_argument("--levels", type=listed(list(LEVELS)), default=list(LEVELS))
    parser.add_argument("--repeats", type=int, default=3, help="medians of so many, if --seconds allow")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each method in each cell")
    parser.add_argument("--limit", type=float, default=8.0, help="time_limit of Knowledge; what is left is UNDECIDED")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the results go")
    parser.add_argument("--dry", action="store_true", help="print only")
    parser.add_argument("--check", action="store_true", help="only compare the pages with what was recorded")
    options = parser.parse_args()
    recorded, clock = Recorded(options.results, options.dry), Clock(options.repeats, options.seconds)
    if options.check:
        stale = [path.name for path, text in recorded.pages().items() if path.read_text(encoding="utf-8") != text]
        sys.exit(f"{', '.join(stale)}: not what benchmarks/results/robust_tables.json says" if stale else None)
    one_thread()
    Asked(gaussian(10, 500, MANY), COMPILING).warm()
    tables = options.tables or [name for name in available() if name != "scorecard"]
    for name in tables:
        for answers in options.answers:
            for log in dict.fromkeys(size(name, answers, int(log)) for log in options.logs):
                assert log is not None
                for row in measure(drawn(name, answers, log), options.levels, clock, options.limit):
                    recorded.add(row)
                    print(" | ".join(line(row)), flush=True)


if __name__ == "__main__":
    main()
