"""A log from a file and what it gives away, for every command that reads one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from overexplain.cli.log_files import load_log, under_terms, warn_of_whole_moves
from overexplain.cli.main import say
from overexplain.cli.output import bar
from overexplain.cli.terms import Terms
from overexplain.errors import InconsistentLog, InvalidInput
from overexplain.knowledge.engine import Knowledge
from overexplain.knowledge.facts import Robust
from overexplain.log.querylog import QueryLog
from overexplain.log.terms import without_terms
from overexplain.report.words import counted

MOST_ROWS = 20


def read_log(path: Path, terms: Terms, mapping: Sequence[str] = ()) -> tuple[QueryLog, int]:
    """The log in a file, under these terms where it states none, and its number of features."""
    mechanism = terms.mechanism
    log = load_log(path, mapping, mechanism)
    if log.dimension is None or len(log) == 0:
        raise InvalidInput(f"{path} has no rows: there is nothing to learn from")
    bare = without_terms(log)
    if mechanism is not None:
        return under_terms(log, mechanism, path), log.dimension
    if bare:
        said = "its terms; it is" if bare == 1 else "their terms; they are"
        says = "says" if bare == 1 else "say"
        say(
            f"note: {counted(bare, 'explanation')} in {path} {says} nothing of {said} not used (--distance states them)"
        )
    return log, log.dimension


def what_is_known(log: QueryLog, path: Path, robust: Robust, time_limit: float | None) -> Knowledge:
    """What the log gives away; a log that contradicts itself raises with its rows and the proof in one line."""
    warn_of_whole_moves(log, path)
    try:
        with bar(f"working out what {counted(len(log), 'row')} give away"):
            knowledge = Knowledge(log, robust, time_limit=time_limit)
    except InconsistentLog as error:
        if error.proof is None:
            raise
        found = (
            f"{path}: no linear model fits rows {_rows(error.rows)} (counted from 0) together: {error.proof}. Either a label "
            "is wrong, or the explanations are rounded or not the nearest (the log's mechanism must say so: tolerance, slack), "
            "or the distance is another one, or the model changed or is not linear"
        )
        raise InconsistentLog(found, rows=error.rows, proof=error.proof) from None
    if not knowledge.is_consistent:
        say(f"note: {path}: no model that fits every answer was found, and no proof that there is none")
    return knowledge


def refuse_to_overwrite(read: Sequence[Path], written: Sequence[Path], names: str) -> None:
    """Raise if a file to write is there already, or if two of them all are the same file."""
    for path in written:
        if path.exists():
            raise InvalidInput(f"{path}: exists already; it is not written over, give another name or remove it")
    files = [path.resolve() for path in written]
    if len(set(files)) < len(files) or set(files) & {path.resolve() for path in read}:
        raise InvalidInput(f"{names} must be different files")


def _rows(rows: Sequence[int]) -> str:
    shown = ", ".join(map(str, rows[:MOST_ROWS]))
    return shown if len(rows) <= MOST_ROWS else f"{shown} and {len(rows) - MOST_ROWS} more"
