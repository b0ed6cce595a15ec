"""How fast logs are read and written, next to pandas reading the same files.

    python benchmarks/logs.py [--quick] [--results DIRECTORY] [--check]

A million requests of 10 features, three in ten explained, by 100,000 clients. `read_log` checks every value and makes a log; pandas
makes a frame of the same file, and checks nothing. Each is measured in a process of its own, in turn, three times; the middle one
counts. Results go to benchmarks/results/logs.*, a quick run only prints them. --check: fail if docs/logs.md quotes other numbers
than were recorded.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from certify import machine
from quoting import described, peak, quoted

import overexplain as ox

ROOT = Path(__file__).parent
DOCS = ROOT.parent / "docs/logs.md"
KINDS = (".parquet", ".jsonl", ".csv")
REPEATS = 3


@dataclass(frozen=True)
class Read:
    """One file: its size, and the seconds and memory (MB; of the arrays, and the most while reading) it took."""

    kind: str
    rows: int
    features: int
    megabytes: float
    written: float
    ours: float
    pandas: float | None
    careful: float | None
    arrays: float
    peak: float


def made(rows: int, p: int) -> ox.QueryLog:
    """A log of normal points."""
    rng = np.random.default_rng([rows, p])
    plane = ox.Hyperplane(rng.normal(size=p), 0.3)
    mechanism = ox.Mechanism("l1")
    log = ox.QueryLog([f"feature {i}" for i in range(p)])
    points = rng.normal(size=(rows, p))
    answers = ox.ModelOracle(plane, mechanism).explain(points)
    answers[rng.random(rows) >= 0.3] = np.nan
    names = [f"client {k}" for k in rng.integers(max(1, rows // 10), size=rows).tolist()]
    log.add_explanation(points, answers, plane.labels(points), mechanism, client=names, time=1.7e9 + np.arange(rows))
    return log


def _work(what: str, path: Path, pipe: Any) -> None:
    from overexplain.log.files import read_log
    from overexplain.log.jsonl import formats
    from overexplain.log.tables import csv_fast

    if what == "pandas":
        import pandas as pd

        readers = {
            ".csv": pd.read_csv,
            ".parquet": pd.read_parquet,
            ".jsonl": lambda name: pd.read_json(name, lines=True),
        }
        read: Any = readers[path.suffix]
    else:
        read = read_log
        csv_fast.WORTH_LOADING = 0
        if what == "careful":
            formats.FEW = csv_fast.FEW = sys.maxsize
    read(path.with_name("small" + path.suffix))  # loads what is needed, which is not counted
    before, start = peak(), time.perf_counter()
    found = read(path)
    seconds = time.perf_counter() - start
    arrays = 0.0 if what == "pandas" else sum(column.nbytes for column in found._buffers.values()) / 2**20
    pipe.send((seconds, arrays, peak() - before))


def measured(what: str, path: Path) -> tuple[float, float, float]:
    """(seconds, MB of the log's arrays, MB more than before) in a process of its own."""
    ours, theirs = multiprocessing.Pipe()
    work = multiprocessing.get_context("spawn").Process(target=_work, args=(what, path, theirs))
    work.start()
    theirs.close()
    found: tuple[float, float, float] = ours.recv()
    work.join()
    return found


def reads(quick: bool, folder: Path) -> Iterator[Read]:
    """Every kind of file at a million rows, then growth in rows and in features."""
    many = 50_000 if quick else 1_000_000
    for rows, p in ((many, 10), (many // 10, 10), (many // 10, 100)):
        log = made(rows, p)
        for kind in KINDS:
            path = folder / f"log{kind}"
            made(100, p).save(folder / f"small{kind}")
            start = time.perf_counter()
            log.save(path)
            written = time.perf_counter() - start
            ours, theirs = [], []
            for _ in range(1 if quick else REPEATS):
                ours.append(measured("ours", path))
                theirs.append(measured("pandas", path)[0])
            slow = None if kind == ".parquet" or rows == many else measured("careful", path)[0]
            middle = statistics.median(seconds for seconds, _, _ in ours)
            size = path.stat().st_size / 2**20
            _, arrays, peak = ours[0]
            yield Read(kind[1:], rows, p, size, written, middle, statistics.median(theirs), slow, arrays, peak)
            path.unlink()


def markdown(found: dict[str, Any]) -> str:
    """The table."""
    lines = [
        "| file | requests | features | MB | read (s) | pandas (s) | pandas / read | line by line (s) | written (s) | log (MB) "
        "| peak (MB) |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for r in found["reads"]:
        careful = "" if r["careful"] is None else f"{r['careful']:.1f}"
        lines.append(
            f"| {r['kind']} | {r['rows']:,} | {r['features']} | {r['megabytes']:.0f} | {r['ours']:.2f} | {r['pandas']:.2f} | "
            f"{r['pandas'] / r['ours']:.2f} | {careful} | {r['written']:.1f} | {r['arrays']:.0f} | {r['peak']:.0f} |"
        )
    return "\n".join([*lines, "", described(found["machine"])])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    options = parser.parse_args()
    recorded = options.results / "logs.json"
    if options.check:
        found = json.loads(recorded.read_text(encoding="utf-8"))
        page = DOCS.read_text(encoding="utf-8")
        sys.exit(
            0 if quoted(markdown(found), page, "logs.py") == page else "docs/logs.md does not quote what was recorded"
        )
    found = {"reads": [], "machine": machine()}
    with tempfile.TemporaryDirectory() as folder:
        for entry in reads(options.quick, Path(folder)):
            found["reads"].append(asdict(entry))
            print(entry, flush=True)
    text = markdown(found)
    print(text)
    if options.quick:
        return
    recorded.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (options.results / "logs.md").write_text(f"# Reading and writing logs, measured\n\n{text}\n", encoding="utf-8")
    DOCS.write_text(quoted(text, DOCS.read_text(encoding="utf-8"), "logs.py"), encoding="utf-8")


if __name__ == "__main__":
    main()
