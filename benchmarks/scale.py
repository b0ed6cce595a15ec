"""How long verdicts on a data set take, and how much memory, from 10^5 rows to as many as the machine allows.

    python benchmarks/scale.py [--quick] [--results DIRECTORY] [--check]

A log of 500 labels of a model with 10 features; rows of normal numbers in Parquet files of at most 5,000,000, in row groups of
65,536. Every run is a process of its own. *seconds* are by the clock, *processor* is the time that all its processes had of the
processor, which other work on the machine does not change much; *memory* is the most that its largest process had. Larger sizes
are left out if the one before says that they would take more than five minutes or more than half of the free disk. Results go to
benchmarks/results/scale.* and docs/scale.md, a quick run only prints them. --check: fail if docs/scale.md quotes other numbers
than were recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from certify import machine
from quoting import described, peak, quoted

import overexplain as ox
from overexplain.scale.certify import certify_dataset

ROOT = Path(__file__).parent
DOCS = ROOT.parent / "docs/scale.md"
FEATURES = 10
LABELS = 500
FILE_ROWS = 5_000_000
GROUP_ROWS = 2**16
SIZES = (100_000, 1_000_000, 10_000_000, 100_000_000)
LONGEST = 300.0
BILLION = 10**9


def made_log() -> ox.QueryLog:
    """The labels."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(LABELS, FEATURES))
    log = ox.QueryLog(features=[f"f{i}" for i in range(FEATURES)])
    log.add_label(points, ox.Hyperplane(rng.normal(size=FEATURES), 0.3).labels(points))
    return log


def write_rows(folder: Path, rows: int) -> None:
    """Normal rows, file by file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    for number, first in enumerate(range(0, rows, FILE_ROWS)):
        path = folder / f"part-{number:04}.parquet"
        count = min(FILE_ROWS, rows - first)
        rng = np.random.default_rng([7, number])
        schema = pa.schema([(f"f{i}", pa.float64()) for i in range(FEATURES)])
        with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
            for start in range(0, count, GROUP_ROWS):
                some = rng.normal(size=(FEATURES, min(GROUP_ROWS, count - start)))
                writer.write_table(pa.table(list(some), schema=schema))


def one(folder: Path, workers: int | None, part_rows: int | None) -> dict[str, Any]:
    """One run, in this process; what it took."""
    knowledge = ox.Knowledge(made_log())
    knowledge.certify(np.zeros((5_000, FEATURES)))  # the compiled loops are loaded
    largest = [0.0]
    over = threading.Event()

    def watch() -> None:
        import psutil

        while not over.wait(1.0):  # looking at all processes takes time of its own
            for child in psutil.Process().children(recursive=True):
                try:
                    largest[0] = max(largest[0], child.memory_info().rss / 2**20)
                except psutil.Error:
                    continue

    watcher = threading.Thread(target=watch, daemon=True)
    if workers is not None:
        watcher.start()
    output = folder.with_name("verdicts")
    began, used = time.perf_counter(), processor()
    done = certify_dataset(knowledge, folder, output, workers=workers, part_rows=part_rows)
    seconds, used = time.perf_counter() - began, processor() - used
    over.set()
    shutil.rmtree(output)
    return {
        "rows": done.determined.points,
        "workers": workers,
        "parts": done.parts,
        "seconds": seconds,
        "processor": used,
        "memory": max(largest[0], 0.0) if workers is not None else peak(),
        "unknown": done.determined.share_of("UNKNOWN"),
    }


def processor() -> float:
    """Seconds that this process and its children, as far as they have ended, had of the processor."""
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in found)


def measured(folder: Path, workers: int | None, part_rows: int | None = None) -> dict[str, Any]:
    """The same in a process of its own."""
    command = [
        sys.executable,
        __file__,
        "--one",
        str(folder),
        "--workers",
        str(workers or 0),
        "--part",
        str(part_rows or 0),
    ]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=3600)
    found: dict[str, Any] = json.loads(run.stdout)
    print(found, flush=True)
    return found


def runs(quick: bool, place: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """("run" or "cut", what it took) of everything that is measured."""
    longest = 0.0
    for rows in SIZES[:1] if quick else SIZES:
        before = shutil.disk_usage(place).free
        if longest * 10 > LONGEST or rows * FEATURES * 8 > before / 2:
            return
        folder = place / f"rows-{rows}"
        write_rows(folder, rows)
        found = measured(folder, None)
        longest = found["seconds"]
        yield "run", found
        if rows in SIZES[1:3] or quick:
            for workers in (1, 2):
                yield "run", measured(folder, workers)
        if rows == SIZES[1] or quick:
            for part in (2**16, 2**18, 2**20):
                yield "cut", measured(folder, None, part)
        shutil.rmtree(folder)


def extrapolated(found: dict[str, Any]) -> dict[str, float]:
    """Processor seconds a further row takes, at least and at most of all sizes measured, and 10^9 rows would take then."""
    alone = [(run["rows"], run["processor"]) for run in found["runs"] if run["workers"] is None]
    rates = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(alone)] or [alone[0][1] / alone[0][0]]
    return {
        "largest": alone[-1][0],
        "low": min(rates),
        "high": max(rates),
        "hours_low": min(rates) * BILLION / 3600,
        "hours_high": max(rates) * BILLION / 3600,
    }


def markdown(found: dict[str, Any]) -> str:
    """The tables."""
    lines = [
        "| rows | how | parts | seconds | processor (s) | rows a processor second | memory (MB) |",
        "|--:|---|--:|--:|--:|--:|--:|",
    ]
    for run in found["runs"]:
        how = (
            "one process, threads"
            if run["workers"] is None
            else f"Dask, {run['workers']} worker{'s' * (run['workers'] > 1)}"
        )
        lines.append(
            f"| {run['rows']:,} | {how} | {run['parts']} | {run['seconds']:.1f} | {run['processor']:.1f} | "
            f"{run['rows'] / run['processor']:,.0f} | {run['memory']:.0f} |"
        )
    lines += [
        "",
        "The same rows in parts of different size, in one process:",
        "",
        "| rows | parts | processor (s) |",
        "|--:|--:|--:|",
    ]
    lines += [f"| {run['rows']:,} | {run['parts']} | {run['processor']:.2f} |" for run in found["cuts"]]
    far = found["extrapolated"]
    share = found["runs"][0]["unknown"]
    lines += [
        "",
        f"To 10⁹ rows, not measured: the largest size is {far['largest']:,}. From each size to the next a further row took "
        f"{1e6 * far['low']:.2f} to {1e6 * far['high']:.2f} µs of a processor, so 10⁹ rows take 10⁹ times that, from "
        f"{60 * far['hours_low']:.0f} to {60 * far['hours_high']:.0f} minutes of one core, and if w workers share them evenly a "
        "w-th of it, as long as the disk keeps up with 80 GB. Memory is that of a block for every thread, whatever the size. What "
        "was not measured: more than two workers, more than one machine, a file system over a network, other logs. How hard rows "
        "are "
        f"matters most: here {100 * share:.0f} % are unknown.",
        "",
        described(found["machine"]),
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--part", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(one(options.one, options.workers or None, options.part or None)))
        return
    recorded = options.results / "scale.json"
    if options.check:
        found = json.loads(recorded.read_text(encoding="utf-8"))
        page = DOCS.read_text(encoding="utf-8")
        sys.exit(
            0 if quoted(markdown(found), page, "scale.py") == page else "docs/scale.md does not quote what was recorded"
        )
    found = {"runs": [], "cuts": [], "machine": machine()}
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        for kind, entry in runs(options.quick, Path(folder)):
            found["runs" if kind == "run" else "cuts"].append(entry)
    found["extrapolated"] = extrapolated(found)
    text = markdown(found)
    print(text)
    if options.quick:
        return
    recorded.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    title = "# Verdicts on data sets: rows per second and memory"
    (options.results / "scale.md").write_text(
        f"{title}\n\nWritten by `make bench-scale`.\n\n{text}\n", encoding="utf-8"
    )
    DOCS.write_text(quoted(text, DOCS.read_text(encoding="utf-8"), "scale.py"), encoding="utf-8")


if __name__ == "__main__":
    main()
