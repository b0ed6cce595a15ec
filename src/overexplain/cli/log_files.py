"""A log from a file of any kind, and which of its columns is what, as a command line says it (`--map`)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from overexplain.cli.main import say
from overexplain.cli.output import bar
from overexplain.errors import InvalidInput
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.files import read_log
from overexplain.log.querylog import QueryLog
from overexplain.log.terms import with_terms, without_terms
from overexplain.log.whole_moves import whole_moves_in_words

KINDS = {
    ".jsonl": "JSON Lines",
    ".csv": "CSV",
    ".parquet": "Parquet",
    ".json": "DiCE JSON, version 2",
    ".sqlite": "a run (SQLite)",
}
"""How the names of logs end, and what they then are."""


def load_log(path: Path, mapping: Sequence[str] = (), mechanism: Mechanism | None = None) -> QueryLog:
    """The log in a file of any kind, after saying what its reader has to say.

    `mechanism` is put in place of what a file of DiCE is taken to promise, which otherwise is only that labels flip.
    """
    replaced = mechanism if path.suffix.lower() == ".json" else None
    with warnings.catch_warnings(record=True) as caught, bar("reading") as show:
        warnings.simplefilter("always")
        columns = read_mapping(mapping)
        log = read_log(path, mapping=columns, mechanism=replaced, seen=lambda *read: show("reading", *read))
    for warning in caught:
        say(f"note: {warning.message}")
    return log


def under_terms(log: QueryLog, mechanism: Mechanism, path: Path) -> QueryLog:
    """The log, with these terms where it states none; if it states all of them, that is said."""
    if not without_terms(log) and mechanism not in log.mechanisms:
        say(f"note: every explanation in {path} states its own terms; those given are not used")
    return with_terms(log, mechanism)


def warn_of_whole_moves(log: QueryLog, path: Path) -> None:
    """Say which features answers moved by whole numbers only, although their terms allow any number."""
    if found := whole_moves_in_words(log):
        say(f"warning: {path}: {found}")


def read_mapping(texts: Sequence[str]) -> dict[str, Any] | None:
    """Which column is what: 'client=client_id,y=decision'; several columns are separated by +: 'x=age+income'.

    >>> read_mapping(["client=client_id,y=decision", "x=age+income"])
    {'client': 'client_id', 'y': 'decision', 'x': ['age', 'income']}
    """
    found: dict[str, Any] = {}
    for part in (part for text in texts for part in text.split(",")):
        key, equals, name = (piece.strip() for piece in part.partition("="))
        if not (key and equals and name):
            raise InvalidInput(f"--map takes what=column, e.g. client=client_id,y=decision; got {part[:60]!r}")
        if key in found:
            raise InvalidInput(f"--map says twice what {key} is")
        found[key] = name.split("+") if key in ("x", "cf", "explanation") else name
    return found or None
