"""`overexplain certify`: which decisions does a log already determine? Every answer with its proof, if wanted."""

from __future__ import annotations

import csv
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from overexplain._files import replacing
from overexplain.auditing.determined import Determined, robust_use
from overexplain.cli.logs import read_log, refuse_to_overwrite, what_is_known
from overexplain.cli.main import say
from overexplain.cli.output import bar, print_json
from overexplain.cli.points import PointsFile, open_points
from overexplain.cli.terms import Terms
from overexplain.errors import InvalidInput, SolverFailed
from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.facts import Robust
from overexplain.knowledge.verdicts import Verdict
from overexplain.log.tables.text_cells import safe_cells
from overexplain.log.terms import without_terms
from overexplain.report.words import counted
from overexplain.scale.columns import listed

if TYPE_CHECKING:
    from overexplain.knowledge.engine import Knowledge
    from overexplain.knowledge.verdicts import Verdicts

NAMES = {int(verdict): verdict.name for verdict in Verdict}
OWN = ("row", "verdict")
"""The columns of the file of verdicts, besides the one that tells the points apart."""

PROOFS_BETWEEN_SIGNS_OF_LIFE = 100


@dataclass(frozen=True)
class Request:
    """What the command line asked for."""

    log: Path
    points: Path
    output: Path | None
    proofs: Path | None
    terms: Terms
    mapping: tuple[str, ...]
    robust: Robust
    time_limit: float | None
    as_json: bool


def run_certify(request: Request) -> None:
    """Read, certify block by block, write, print; a file is written whole or not at all."""
    for path, ending, what in ((request.output, ".csv", "verdicts"), (request.proofs, ".jsonl", "proofs")):
        if path is not None and path.suffix.lower() not in ("", ending):
            raise InvalidInput(
                f"{path}: {what} are written to a {ending} file, or about a folder of points to a folder"
            )
    written = [path for path in (request.output, request.proofs) if path is not None]
    refuse_to_overwrite([request.log, request.points], written, "LOG, POINTS, --output and --proofs")
    log, dimension = read_log(request.log, request.terms, request.mapping)
    with open_points(request.points, log.features, dimension) as points:
        say_what_is_not_used(points.extras, points.key, points.unmatched, request)
        knowledge = what_is_known(log, request.log, request.robust, request.time_limit)
        counts, proofs = write_verdicts(knowledge, points, request.output, request.proofs)
    found = Determined(
        counts={verdict.name: counts[verdict.name] for verdict in Verdict},
        rows=len(log),
        labels=int((log.labels != 0).sum()),
        explanations=len(log.explained) - without_terms(log),
        oriented=knowledge.oriented,
        pinned_down=knowledge.pinned_down,
        proofs=None if request.proofs is None else proofs,
        robust=robust_use(log, request.robust),
    )
    tell(found, request)


def tell(found: Determined, request: Request) -> None:
    """Print what was found, and the command that checks it."""
    if request.as_json:
        print_json(found.to_dict())
        return
    from overexplain.report.certified import print_determined, print_files
    from overexplain.report.terminal import terminal

    console = terminal()
    print_determined(found, console)
    print_files(request.output, request.proofs, _check(request), console)


def _check(request: Request) -> list[str]:
    """The command that checks what was written."""
    command = ["overexplain", "verify", str(request.proofs), str(request.log)]
    if request.output is not None:
        command += ["--verdicts", str(request.output), "--points", str(request.points)]
    return command + request.terms.options + [word for text in request.mapping for word in ("--map", text)]


def write_verdicts(
    knowledge: Knowledge, points: PointsFile, output: Path | None, proofs: Path | None
) -> tuple[Counter[str], int]:
    """The number of points by verdict, and of proofs, once the files asked for are written."""
    counts: Counter[str] = Counter()
    proved = unproved = 0
    with ExitStack() as files, bar("certifying") as show:
        verdict_file = _opened(files, output)
        proof_file = _opened(files, proofs)
        key = _kept(points.key)
        if verdict_file is not None:
            write_rows(verdict_file, [OWN if key is None else (OWN[0], key, OWN[1])])
        for first, verdicts, keys in _blocks(knowledge, points):
            numbers = range(first, first + len(verdicts))
            if verdict_file is not None:
                names = [NAMES[code] for code in verdicts.codes.tolist()]
                columns = (numbers, names) if key is None or keys is None else (numbers, keys, names)
                write_rows(verdict_file, zip(*columns, strict=True))
            if proof_file is not None:
                for i, number in enumerate(numbers):
                    if verdicts.codes[i] != Verdict.UNDECIDED:
                        try:
                            proof_file.write(verdicts.proof(i).to_json(row=number) + "\n")
                            proved += 1
                        except SolverFailed:  # the verdict stands on its float64 proof; `verify` will miss this one
                            unproved += 1
                    if i % PROOFS_BETWEEN_SIGNS_OF_LIFE == 0:
                        show(f"proving, {number:,} points done", *points.progress())
            counts.update(verdicts.counts())
            show(f"certifying, {counts.total():,} points done", *points.progress())
    if unproved:
        say(f"note: {counted(unproved, 'verdict')} could not be written as a proof in rational numbers")
    return counts, proved


def _blocks(knowledge: Knowledge, points: PointsFile) -> Iterator[tuple[int, Verdicts, Sequence[str] | None]]:
    """The number of a block's first point, its verdicts, and its points' keys."""
    waiting: deque[Sequence[str] | None] = deque()  # of blocks handed out and not yet certified: it may take several

    def rows() -> Iterator[FloatArray]:
        for block in points.blocks:
            waiting.append(block.keys)
            yield block.points

    first = 0
    for verdicts in knowledge.certify(rows()):
        yield first, verdicts, waiting.popleft()
        first += len(verdicts)


def _opened(files: ExitStack, path: Path | None) -> IO[str] | None:
    """A file to write text to, which takes its place when everything has been written."""
    if path is None:
        return None
    beside = files.enter_context(replacing(path, private=True))
    return files.enter_context(beside.open("w", encoding="utf-8", newline=""))


def write_rows(file: IO[str], rows: Iterable[Iterable[object]]) -> None:
    """Write rows of a CSV file: numbers with every digit, texts such that no spreadsheet takes them for formulas."""
    csv.writer(file, lineterminator="\n").writerows(map(safe_cells, rows))


def _kept(key: str | None) -> str | None:
    """The column that is written beside the verdicts, unless its name means something else there."""
    return None if key in OWN else key


def say_what_is_not_used(extras: Sequence[str], key: str | None, unmatched: Sequence[str], request: Request) -> None:
    """Say which columns of the points are no features, and what becomes of them."""
    if unmatched:
        say(f"note: {request.log} has no names of features: the columns {listed(unmatched)} are taken in this order")
    if not extras:
        return
    key = _kept(key)
    if key is not None and request.output is not None:
        say(f"note: {request.points}: {key!r} is no feature; it is kept in {request.output}")
    else:
        verb = "is no feature and is" if len(extras) == 1 else "are no features and are"
        say(f"note: {request.points}: {listed(extras)} {verb} not used")
