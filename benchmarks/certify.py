"""How long `Knowledge.certify` takes for a point, beside linear programs, on real tables and on Gaussian data.

    python benchmarks/certify.py [--tables german_credit,adult] [--answers labels,l1] [--logs 20,100] [--cells 10/500,30/5000]
                                 [--proofs [adult]] [--growth] [--seconds 3] [--limit 8] [--dry] [--check]

Without --tables, --cells, --proofs and --growth: all tables, all Gaussian cells and the growth. german_credit,
taiwan_credit_default and adult are CSV files in the directory named by OVEREXPLAIN_DATA; without them breast_cancer (scikit-learn)
and a generated scorecard remain. certify_data.py says how rows are encoded and drawn. All methods see the same points in one
process, and every claim is held against the model that gave the answers. Results go to benchmarks/results/certify.*, README.md and
docs/regions.md after every cell; rows of earlier runs stay until they are measured again. --check: fail if a page quotes other
numbers than were recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from certify_data import ANSWERS, GAUSSIAN, LOGS, TABLES, Work, available, drawn, gaussian, table, works
from certify_page import FEW, PROVED_LOG, PROVED_POINTS, ProofRow, Row, in_docs, in_readme, line, page, proof_line
from certify_rivals import by_cvxpy, by_linprog
from growth_plot import draw
from numpy.typing import NDArray
from quoting import quoted

import overexplain as ox
from overexplain.errors import SolverFailed

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
GROWTH = {
    "features, 2000 labels, 10 000 points": [(p, 2000, 10_000) for p in (2, 5, 10, 20, 30, 40, 60)],
    "labels, 10 features, 100 000 points": [(10, n, 100_000) for n in (50, 500, 5000, 50_000)],
    "points, 10 features, 500 labels": [(10, 500, count) for count in (100, 1000, 10_000, 100_000, 1_000_000)],
}
PROOFS, MOST_FEATURES = 50, 40
"""Proofs timed in a cell, and the most features of cells where they are."""
PATIENCE, COMPILING = 6, 60.0
"""What takes so many times its limit by the clock, and as many seconds as compiling may take, does not keep to the limit: it is
stopped."""

MANY = 4000
"""Points from which on loops are compiled."""


class NoEnd(BaseException):
    """A call went on long after its limit; no Exception, or whoever asks again after a failed attempt would catch it."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise NoEnd after so many seconds by the clock."""

    def over(*_: object) -> None:
        raise NoEnd

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Clock:
    """Medians of processor time, repeated as long as `seconds` allow; a first run, which may compile, is not counted."""

    def __init__(self, repeats: int, seconds: float) -> None:
        self.repeats, self.seconds = repeats, seconds

    def __call__(self, prepared: Callable[[], Callable[[], object]]) -> float:
        """Median for what `prepared` makes; it is made anew each time, untimed."""
        prepared()()
        taken: list[float] = []
        while len(taken) < self.repeats and sum(taken) < self.seconds:
            run = prepared()
            begin = time.process_time()
            run()
            taken.append(time.process_time() - begin)
        return max(statistics.median(taken), 1e-9)


class Asked:
    """What a log of a cell says, through the public interface alone, in one thread."""

    def __init__(self, work: Work, limit: float) -> None:
        self.work, self.limit, self.log = work, limit, work.log()

    @property
    def patience(self) -> float:
        """Seconds by the clock after which something does not end."""
        return COMPILING + PATIENCE * self.limit

    def known(self) -> ox.Knowledge:
        """The log, read anew."""
        return ox.Knowledge(self.log, time_limit=self.limit, threads=1)

    def warm(self) -> ox.Knowledge:
        """Read, and asked about other points."""
        knowledge = self.known()
        knowledge.certify(self.work.others)
        knowledge.certify(
            np.repeat(self.work.others, -(-MANY // len(self.work.others)), axis=0)
        )  # compiles, or loads, loops
        return knowledge

    def measured(self, clock: Clock) -> tuple[dict[str, Any], NDArray[np.int8]]:
        """(figures of a row, codes of the points); raises NoEnd."""
        points, few = self.work.points, self.work.points[:FEW]
        every: list[ox.Verdicts] = []
        some: list[ox.Verdicts] = []

        def steady() -> Callable[[], object]:
            knowledge = self.warm()
            return lambda: every.append(knowledge.certify(points))

        with within(self.patience):
            seconds = clock(steady)
        with within(self.patience):
            fit = clock(lambda: self.known)
            with_fit = clock(lambda: lambda: some.append(self.known().certify(few)))
        verdicts = every[-1]
        figures = {
            "counts": verdicts.counts(),
            "wrong": wrong(verdicts.codes, self.work.truth),
            "micro": a_point(seconds, verdicts),
            "fit_ms": 1e3 * fit,
            "few_micro": a_point(with_fit, some[-1]),
            "few_undecided": some[-1].counts()["UNDECIDED"],
        }
        return figures | self.proved(verdicts, clock.seconds), verdicts.codes

    def proved(self, verdicts: ox.Verdicts, seconds: float) -> dict[str, Any]:
        """How long proofs of certain points take."""
        certain = np.flatnonzero(np.abs(verdicts.codes) == 1)
        if not len(certain) or verdicts.points.shape[1] > MOST_FEATURES:
            return {}
        chosen = certain[np.unique(np.linspace(0, len(certain) - 1, PROOFS).astype(int))]
        taken, failed = proofs(verdicts, chosen, seconds, self.patience)
        middle = 1e3 * statistics.median(taken) if taken else None
        return {"proof_ms": middle, "proofs": len(taken), "proofs_failed": failed}


def proofs(verdicts: ox.Verdicts, chosen: NDArray[np.intp], seconds: float, patience: float) -> tuple[list[float], int]:
    """(processor seconds of each proof, how many were not found), until the time is up. A proof checks itself."""
    taken: list[float] = []
    failed, start = 0, time.process_time()
    for i in chosen:
        begin = time.process_time()
        try:
            with within(patience):
                verdicts.proof(int(i))
            taken.append(time.process_time() - begin)
        except (NoEnd, SolverFailed):
            failed += 1
        if time.process_time() - start > seconds:
            break
    return taken, failed


def wrong(codes: NDArray[np.int8], truth: NDArray[np.int8]) -> int:
    """Claims that the exact labels of the model which gave the answers contradict; on the plane is a Yes."""
    said = np.where(codes == ox.Verdict.BOUNDARY, ox.YES, codes)
    return int(np.count_nonzero((np.abs(said) == 1) & (said != truth)))


def differing(codes: NDArray[np.int8], expected: list[int]) -> int:
    """Points, of those that are not UNDECIDED, where another says otherwise."""
    ours = codes[: len(expected)]
    said = np.where(ours == ox.Verdict.BOUNDARY, ox.YES, ours)
    return int(np.count_nonzero((said != expected) & (ours != ox.Verdict.UNDECIDED)))


def a_point(seconds: float, verdicts: ox.Verdicts) -> float | None:
    """Microseconds for each point that was settled."""
    settled = len(verdicts) - verdicts.counts()["UNDECIDED"]
    return 1e6 * seconds / settled if settled else None


def measure(work: Work, clock: Clock, limit: float) -> Row:
    """All figures of one cell."""
    try:
        ours, codes = Asked(work, limit).measured(clock)
    except NoEnd:
        ours, codes = {}, None
    linear = by_linprog(work, clock.seconds)
    normal = np.ones(work.points.shape[1])
    return Row(
        name=work.name,
        answers=work.answers,
        log=len(work.asked),
        features=work.points.shape[1],
        points=len(work.points),
        linprog_micro=None if linear is None else 1e6 * linear.seconds,
        linprog_points=0 if linear is None else len(linear.codes),
        differ=None if linear is None or codes is None else differing(codes, linear.codes),
        cvxpy_micro=1e6 * by_cvxpy(work, clock.seconds / 2).seconds,
        product_micro=1e6 * clock(lambda: lambda: work.points @ normal) / len(work.points),
        limit=limit,
        machine=machine(),
        **ours,
    )


def measure_proofs(name: str, limit: float, longest: float) -> ProofRow:
    """A long log of labels and a proof of every verdict, as far as `longest` seconds go; raises NoEnd."""
    asked = Asked(drawn(name, "labels", PROVED_LOG, PROVED_POINTS), limit)
    with within(asked.patience):
        asked.known().certify(asked.work.points)  # compiles
    with within(asked.patience):
        begin = time.process_time()
        knowledge = asked.known()
        fitted = time.process_time()
        verdicts = knowledge.certify(asked.work.points)
        certified = time.process_time()
    counts = verdicts.counts()
    settled = np.flatnonzero(verdicts.codes != ox.Verdict.UNDECIDED)
    taken, failed = proofs(verdicts, settled, longest, asked.patience)
    return ProofRow(
        name=name,
        features=verdicts.points.shape[1],
        log=PROVED_LOG,
        points=len(verdicts),
        counts=counts,
        fit_s=fitted - begin,
        certify_s=certified - fitted,
        proofs_s=time.process_time() - certified,
        proofs=len(taken),
        proofs_failed=failed,
        proof_ms=1e3 * statistics.median(taken) if taken else None,
        longest_s=longest,
        machine=machine(),
    )


def grow(work: Work, clock: Clock) -> dict[str, float]:
    """Processor seconds to read the log and, at once after that, to ask about all points: nothing is made beforehand."""
    asked = Asked(work, 0.0)

    def ask() -> Callable[[], object]:
        knowledge = asked.known()
        return lambda: knowledge.certify(work.points)

    sizes = {"features": work.points.shape[1], "labels": len(work.asked), "points": len(work.points)}
    return sizes | {"fit": clock(lambda: asked.known), "ask": clock(ask)}


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


def one_thread() -> None:
    """Start again with one thread per library: the threads of this benchmark are its own."""
    variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    if any(os.environ.get(variable) != "1" for variable in variables):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | dict.fromkeys(variables, "1"))


class Recorded:
    """What was measured so far, in a directory; `dry`: nothing is written."""

    def __init__(self, folder: Path, dry: bool = False) -> None:
        self.folder, self.dry = folder, dry
        path = folder / "certify.json"
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        self.real = [Row(**row) for row in found.get("real", [])]
        self.gaussian = [Row(**row) for row in found.get("gaussian", [])]
        self.proofs = [ProofRow(**row) for row in found.get("proofs", [])]
        self.growth: dict[str, Any] = found.get("growth", {})

    def add(self, row: Row) -> None:
        """Put a row in its place, instead of an earlier one of the same cell."""
        is_real = row.name in TABLES
        rows = [other for other in (self.real if is_real else self.gaussian) if other.cell != row.cell]
        if is_real:
            self.real = sorted([*rows, row], key=lambda r: (TABLES.index(r.name), ANSWERS.index(r.answers), r.log))
        else:
            self.gaussian = sorted([*rows, row], key=lambda r: list(GAUSSIAN).index(r.name))
        self.write()

    def add_proofs(self, row: ProofRow) -> None:
        """The same for a row of proofs."""
        rows = [other for other in self.proofs if other.name != row.name]
        self.proofs = sorted([*rows, row], key=lambda r: TABLES.index(r.name))
        self.write()

    def add_growth(self, by: dict[str, list[dict[str, float]]]) -> None:
        """All of the growth, and its picture."""
        self.growth = {"machine": machine(), "by": by}
        self.write()
        if not self.dry:
            draw(by, self.folder / "certify.svg")

    def pages(self) -> dict[Path, str]:
        """What the pages should say; those outside of the results quote only what is recorded in the project."""
        found = {self.folder / "certify.md": page(self.real, self.gaussian, self.growth, self.proofs)}
        if self.folder == RESULTS:
            said_in = {
                ROOT / "README.md": in_readme(self.real),
                ROOT / "docs/regions.md": in_docs(self.real, self.gaussian),
            }
            for path, said in said_in.items():
                found[path] = quoted(said, path.read_text(encoding="utf-8"), "certify.py")
        return found

    def write(self) -> None:
        """All of it."""
        if self.dry:
            return
        self.folder.mkdir(exist_ok=True)
        found = {
            "real": [asdict(row) for row in self.real],
            "gaussian": [asdict(row) for row in self.gaussian],
            "growth": self.growth,
            "proofs": [asdict(row) for row in self.proofs],
        }
        (self.folder / "certify.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        for path, text in self.pages().items():
            path.write_text(text, encoding="utf-8")


def listed(known: list[str]) -> Callable[[str], list[str]]:
    """An option that names some of what is known, with commas between, or all."""

    def read(text: str) -> list[str]:
        chosen = known if text == "all" else text.split(",")
        if unknown := [name for name in chosen if name not in known]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(known)}")
        return chosen

    return read


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options; everything but proofs if no part is chosen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tables, answers, logs = listed(list(TABLES)), listed(list(ANSWERS)), listed([str(log) for log in LOGS])
    parser.add_argument("--tables", type=tables, help="real data and the scorecard")
    parser.add_argument("--answers", type=answers, default=list(ANSWERS), help="in the logs of the tables")
    parser.add_argument("--logs", type=logs, default=[str(log) for log in LOGS], help="answers in a log of the tables")
    parser.add_argument("--cells", type=listed(list(GAUSSIAN)), help="Gaussian cells, features/labels")
    parser.add_argument(
        "--proofs", type=tables, nargs="?", const=list(TABLES), help="a long log, a proof of every verdict"
    )
    parser.add_argument("--growth", action="store_true", help="by features, labels and points, on Gaussian data")
    parser.add_argument("--repeats", type=int, default=3, help="medians of so many, if --seconds allow")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each method in each cell; half of it for cvxpy")
    parser.add_argument("--limit", type=float, default=8.0, help="time_limit of Knowledge; what is left is UNDECIDED")
    parser.add_argument("--proof-seconds", type=float, default=120.0, help="for the proofs of --proofs, in each table")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the results go")
    parser.add_argument("--dry", action="store_true", help="print only")
    parser.add_argument("--check", action="store_true", help="only compare the pages with what was recorded")
    options = parser.parse_args(arguments)
    if options.tables is None and options.cells is None and options.proofs is None and not options.growth:
        options.tables, options.cells, options.growth = available(), list(GAUSSIAN), True
    return options


def check(recorded: Recorded) -> str | None:
    """Which pages say something else than was recorded."""
    stale = [path.name for path, text in recorded.pages().items() if path.read_text(encoding="utf-8") != text]
    return f"{', '.join(stale)}: not what benchmarks/results/certify.json says" if stale else None


def main() -> None:
    """Measure, print as it goes, write the results."""
    options = parsed()
    recorded = Recorded(options.results, options.dry)
    if options.check:
        sys.exit(check(recorded))
    one_thread()
    clock = Clock(options.repeats, options.seconds)
    cells = [[int(part) for part in name.split("/")] for name in options.cells or []]
    for work in works(options.tables or [], options.answers, [int(log) for log in options.logs]):
        recorded.add(row := measure(work, clock, options.limit))
        print(line(row), flush=True)
    for p, n in cells:
        recorded.add(row := measure(gaussian(p, n, GAUSSIAN[f"{p}/{n}"]), clock, options.limit))
        print(line(row), flush=True)
    if options.growth:
        recorded.add_growth({name: [grow(gaussian(*cell), clock) for cell in by] for name, by in GROWTH.items()})
    for name in options.proofs or []:
        if name in available() and len(table(name).rows) >= PROVED_LOG + 2 * PROVED_POINTS:
            recorded.add_proofs(proved := measure_proofs(name, options.limit, options.proof_seconds))
            print(proof_line(proved), flush=True)


if __name__ == "__main__":
    main()
