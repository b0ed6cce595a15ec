"""How long it takes to read a long log for what it gives away, beside one pass over its arrays and one QR of them.

    python benchmarks/long_logs.py [--data lognormal,adult] [--answers labels,l1] [--features 10 21] [--rows 1000 10000]
                                   [--limit 600] [--dry] [--check]

Answers are the library's own. A cell is read, and certifies 1,000 other points, in a process of its own that ends at the limit.
Seconds are of one thread's processor time; what is imported and compiled before is not counted. *Arrays once* is one
matrix-vector product with the points (and one with the explanations), *QR* that of the points. *Peak* is what reading and
certifying add to the process. Generated points are whole-number lognormal (as amounts are) or Gaussian; real ones are those of
certify.py (OVEREXPLAIN_DATA names the directory of the CSV files), categories one-hot, with as many rows as there are. Results go
to benchmarks/results/long_logs.* and docs/theory/long-logs.md after every cell, in the place of what was measured there before;
--dry: they are only printed. --check: fail if a page says something else than was recorded.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from certify import listed, machine, one_thread
from certify_data import TARGETS, available, table
from numpy.typing import NDArray
from quoting import described, peak, quoted, short

import overexplain as ox

FloatArray = NDArray[np.float64]
RESULTS = Path(__file__).parent / "results"
DOCS = Path(__file__).parent.parent / "docs" / "theory" / "long-logs.md"
LONG = 100_000
"""Rows of generated logs from which on the page in docs has them."""
GENERATED = ("lognormal", "gaussian")
ANSWERS = ("labels", "l1", "linf", "l2", "robust", "rounded")
FEATURES, ROWS = (10, 21, 50), (1_000, 10_000, 100_000, 1_000_000)
ASKED = 1_000
"""Points certified."""
WARM = 60
"""Rows of the log on which everything is compiled."""


@dataclass(frozen=True)
class Cell:
    """One log; `features` and `rows` are those of the table where the data are real."""

    data: str
    answers: str
    features: int
    rows: int


@dataclass(frozen=True)
class Read:
    """Seconds, and megabytes; None: not within the limit."""

    arrays: float | None = None
    qr: float | None = None
    read: float | None = None
    certified: float | None = None
    peak: float | None = None
    size: float | None = None
    undecided: int | None = None
    wrong: int | None = None
    failed: str | None = None
    """What was raised."""


def drawn(cell: Cell) -> tuple[FloatArray, FloatArray, ox.Hyperplane]:
    """(points of the log, other points to certify, the model)."""
    rng = np.random.default_rng([cell.rows, cell.features])
    if cell.data in TARGETS:
        found = table(cell.data)
        rows = found.rows[rng.permutation(len(found.rows))]
        return rows[: cell.rows], rows[cell.rows :][:ASKED], found.plane
    points: FloatArray = rng.standard_normal((cell.rows + ASKED, cell.features))
    if cell.data == "lognormal":
        points = np.asarray(np.round(np.exp(4 + points)), dtype=np.float64)
    normal = rng.standard_normal(cell.features) / points[:1000].std(axis=0)
    plane = ox.Hyperplane(normal, float(np.median(points[:1000] @ normal)))
    return points[: cell.rows], points[cell.rows :], plane


def answered(points: FloatArray, plane: ox.Hyperplane, answers: str) -> ox.QueryLog:
    """The points with what a service answered."""
    log = ox.QueryLog()
    if answers == "labels":
        log.add_label(points, plane.labels(points))
        return log
    terms = ox.Mechanism(answers) if answers in ("l1", "linf", "l2") else ox.Mechanism("l1")
    service: Any = ox.ModelOracle(plane, terms)
    if answers == "robust":
        far = np.abs(plane.margin(points[:1000])) / float(ox.norm("l1").dual(plane.normal))
        service = ox.ModelOracle(plane, ox.Mechanism("l1", robustness="l2", radius=0.1 * float(np.median(far))))
    if answers == "rounded":
        service = ox.Rounded(service, 1)
    explanations = np.asarray(service.explain(points))
    log.add_explanation(points, explanations, plane.labels(points), service.mechanism)
    return log


def processor(work: Any) -> float:
    """Processor time of the quickest of three."""
    found = []
    for _ in range(3):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def _measure(cell: Cell, pipe: Any) -> None:
    points, others, plane = drawn(cell)
    log = answered(points, plane, cell.answers)
    columns = [log.points] if cell.answers == "labels" else [log.points, log.explanations]
    arrays = processor(lambda: [column @ plane.normal for column in columns])
    pipe.send(found := Read(arrays, processor(lambda: np.linalg.qr(log.points, mode="r"))))
    del points
    ox.Knowledge(answered(log.points[:WARM].copy(), plane, cell.answers), threads=1).certify(others[:WARM])
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak is that of now
    before, start = peak(), time.process_time()
    try:
        knowledge = ox.Knowledge(log, threads=1)
        read = time.process_time() - start
        codes = knowledge.certify(others).codes
    except ox.OverexplainError as error:
        pipe.send(Read(found.arrays, found.qr, failed=f"{type(error).__name__}: {error}"[:200]))
        return
    certified = time.process_time() - start - read
    truth, counts = plane.labels(others), Counter(codes.tolist())
    wrong = int(np.count_nonzero((np.abs(codes) == 1) & (codes != truth)))
    size = sum(column.nbytes for column in columns) / 2**20
    undecided = counts[int(ox.Verdict.UNDECIDED)]
    pipe.send(Read(found.arrays, found.qr, read, certified, peak() - before, size, undecided, wrong))


def measured(cell: Cell, limit: float) -> Read:
    """One cell in a process of its own."""
    ours, theirs = multiprocessing.Pipe()
    work = multiprocessing.get_context("spawn").Process(target=_measure, args=(cell, theirs))
    work.start()
    theirs.close()
    found = Read(failed="ended without a word")
    try:
        found = ours.recv()
        if ours.poll(limit):
            found = ours.recv()
    except EOFError:  # the system ended it: no memory
        found = Read(found.arrays, found.qr, failed="ended without a word")
    work.terminate()
    work.join()
    return found


def cells(data: list[str], answers: list[str], features: list[int], rows: list[int]) -> Iterator[Cell]:
    """What is to be measured, the quick ones first."""
    for name in data:
        if name in GENERATED:
            yield from (Cell(name, kind, p, n) for n in rows for p in features for kind in answers)
        else:
            count = len(table(name).rows)
            length, p = count - min(ASKED, 3 * count // 10), table(name).rows.shape[1]
            yield from (Cell(name, kind, p, length) for kind in answers)


def markdown(found: dict[str, Any]) -> str:
    """The table."""
    seconds = ("read (s)", "certify 1,000 (s)", "arrays once (s)", "one QR (s)", "read / arrays")
    heads = ["data", "answers", "features", "rows", *seconds, "peak (MB)", "arrays (MB)", "undecided", "wrong"]
    lines = ["| " + " | ".join(heads) + " |", "|---|---|" + "--:|" * (len(heads) - 2)]
    lines += ["| " + " | ".join(line(r)) + " |" for r in found["cells"]]
    return "\n".join([*lines, "", described(found["machine"])])


def line(r: dict[str, Any]) -> list[str]:
    """A row of it."""
    first = [r["data"], r["answers"], str(r["features"]), f"{r['rows']:,}"]
    once = ["" if r[key] is None else short(r[key]) for key in ("arrays", "qr")]
    if r["read"] is None:
        return [*first, r["failed"] or f"> {r['limit']:.0f}", "", *once, "", "", "", "", ""]
    sizes = f"{r['read'] / max(r['arrays'], 1e-6):.0f}", f"{r['peak']:.0f}", f"{r['size']:.0f}"
    return [*first, short(r["read"]), short(r["certified"]), *once, *sizes, str(r["undecided"]), str(r["wrong"])]


def in_docs(found: dict[str, Any]) -> str:
    """The long ones, and the real ones."""
    return markdown(found | {"cells": [r for r in found["cells"] if r["rows"] >= LONG or r["data"] in TARGETS]})


def pages(found: dict[str, Any]) -> dict[Path, str]:
    """What the pages should say."""
    return {
        RESULTS / "long_logs.md": f"# Long logs, read\n\n{markdown(found)}\n",
        DOCS: quoted(in_docs(found), DOCS.read_text(encoding="utf-8"), "long_logs.py"),
    }


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser()
    everything = [*GENERATED, *(name for name in available() if name in TARGETS)]
    parser.add_argument("--data", type=listed(everything), default=everything)
    parser.add_argument("--answers", type=listed(list(ANSWERS)), default=list(ANSWERS))
    parser.add_argument("--features", type=int, nargs="+", default=list(FEATURES))
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument(
        "--limit", type=float, default=600.0, help="seconds of a cell, besides those that its log takes to make"
    )
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    recorded = RESULTS / "long_logs.json"
    kept: dict[str, Any] = json.loads(recorded.read_text(encoding="utf-8")) if recorded.exists() else {"cells": []}
    if options.check:
        stale = [path.name for path, text in pages(kept).items() if path.read_text(encoding="utf-8") != text]
        sys.exit(f"{', '.join(stale)}: not what benchmarks/results/long_logs.json says" if stale else None)
    by_cell = {(r["data"], r["answers"], r["features"], r["rows"]): r for r in kept["cells"]}
    for cell in cells(options.data, options.answers, options.features, options.rows):
        entry = asdict(cell) | asdict(measured(cell, options.limit)) | {"limit": options.limit}
        by_cell[tuple(asdict(cell).values())] = entry
        print(entry, flush=True)
        found = {"cells": list(by_cell.values()), "machine": machine()}
        if not options.dry:
            recorded.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            for path, text in pages(found).items():
                path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
