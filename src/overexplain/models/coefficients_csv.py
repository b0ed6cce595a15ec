"""Coefficients as a table: one row for each feature and one for the intercept, as scorecards are exported.

The columns are found by their names: the feature (or nothing at all, as data frames write it), its coefficient, and, for
scorecards with categories, the category. Others, such as standard errors, are left alone. Without a line of names the
first two columns are meant. Yes where the sum of coefficients·x and intercept is 0 or more; a threshold on the
probability, if the caller gives one, says that this sum is the log-odds.
"""

from __future__ import annotations

import csv
import os
import reprlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from overexplain.errors import InvalidInput, NotFinite, ZeroNormal
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.models.coefficients import LARGEST, as_number, naming
from overexplain.models.columns import Column, feature_name
from overexplain.models.linear import LinearModel
from overexplain.models.sniff import read_bounded

SOURCE: Final = "coefficient table"
INTERCEPTS: Final = ("intercept", "(intercept)", "const", "constant", "_cons", "bias")

_FEATURE = ("feature", "features", "name", "names", "variable", "term", "characteristic", "predictor", "")
_COEFFICIENT = (
    "coefficient",
    "coefficients",
    "coef",
    "coef.",
    "coeff",
    "weight",
    "weights",
    "estimate",
    "points",
    "beta",
)
_CATEGORY = ("category", "level", "attribute", "value")


@dataclass(frozen=True)
class _Entry:
    """One line: the coefficient of a feature, or of one category of it."""

    line: int
    name: str
    category: str | None
    coefficient: float

    @property
    def is_intercept(self) -> bool:
        return self.category is None and self.name.lower() in INTERCEPTS


def read_coefficient_table(path: str | os.PathLike[str], threshold: float | None = None) -> LinearModel:
    """The model in a CSV file of features and coefficients; `threshold` cuts at a probability instead of at score 0."""
    path = Path(path)
    content = read_bounded(path, LARGEST)
    with naming(path):
        return _model(_entries(_records(content)), threshold)


def _model(entries: list[_Entry], threshold: float | None) -> LinearModel:
    intercepts = [entry for entry in entries if entry.is_intercept]
    terms = [entry for entry in entries if not entry.is_intercept]
    if not intercepts:
        raise InvalidInput("no row for the intercept; add one called intercept (0 if there is none)")
    _refuse_repetition(intercepts, terms)
    if not terms:
        raise InvalidInput("only the intercept is there; a model has at least one feature")
    if not any(entry.coefficient for entry in terms):
        raise ZeroNormal("every coefficient is zero: all points would get the same answer, there is no plane")
    features = [entry.name if entry.category is None else feature_name(entry.name, entry.category) for entry in terms]
    plane = Hyperplane.from_intercept([entry.coefficient for entry in terms], intercepts[0].coefficient)
    columns = _columns(terms) if any(entry.category is not None for entry in terms) else None
    model = LinearModel(plane, tuple(features), columns=columns, source=SOURCE)
    return model if threshold is None else replace(model, link="logistic").with_threshold(threshold)


def _columns(terms: list[_Entry]) -> tuple[Column, ...]:
    categories: dict[str, list[str]] = {}
    for entry in terms:
        categories.setdefault(entry.name, [])
        if entry.category is not None:
            categories[entry.name].append(entry.category)
    return tuple(Column(name, tuple(known) or None) for name, known in categories.items())


def _refuse_repetition(intercepts: list[_Entry], terms: list[_Entry]) -> None:
    if len(intercepts) > 1:
        raise InvalidInput(
            f"line {intercepts[1].line}: {intercepts[1].name!r} is a second intercept, after line {intercepts[0].line}"
        )
    seen: dict[tuple[str, str | None], int] = {}
    plain: dict[str, bool] = {}
    for entry in terms:
        key = (entry.name, entry.category)
        if key in seen:
            what = entry.name if entry.category is None else feature_name(entry.name, entry.category)
            raise InvalidInput(f"line {entry.line}: {what!r} is there twice, after line {seen[key]}; keep one")
        seen[key] = entry.line
        if plain.setdefault(entry.name, entry.category is None) != (entry.category is None):
            raise InvalidInput(f"line {entry.line}: {entry.name!r} has a coefficient with and one without category")


def _records(content: bytes) -> list[tuple[int, list[str]]]:
    """(line, cells) of every record that is not blank."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"not UTF-8 text (byte {error.start}); save the file as UTF-8") from None
    if "\0" in text:
        raise InvalidInput("not a CSV file: it has NUL characters")
    lines = text.splitlines(keepends=True)
    first = next((line for line in lines if line.strip()), "")
    delimiter = next((mark for mark in ",;\t" if mark in first), ",")
    reader, records, before = csv.reader(lines, delimiter=delimiter, strict=True), [], 0
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                records.append((before + 1, [cell.strip() for cell in cells]))
            before = reader.line_num
    except csv.Error as error:
        raise InvalidInput(f"line {before + 1}: not CSV: {error}") from None
    if not records:
        raise InvalidInput("the file is empty; it needs a row for each feature and one for the intercept")
    return records


def _entries(records: list[tuple[int, list[str]]]) -> list[_Entry]:
    line, first = records[0]
    if len(first) < 2:
        raise InvalidInput(f"line {line}: one column; a feature and its coefficient are needed, separated by a comma")
    feature, category, coefficient = 0, None, 1
    if _is_header(first):
        names = [cell.lower() for cell in first]
        feature, coefficient = _find(_FEATURE, names, 0), _find(_COEFFICIENT, names, 1)
        category = next((k for k, name in enumerate(names) if name in _CATEGORY and k != feature), None)
        records = records[1:]
    elif len(first) > 2:
        raise InvalidInput(f"line {line}: {len(first)} columns without names; add a first line: feature,coefficient")
    entries = []
    for line, cells in records:
        if len(cells) != len(first):
            raise InvalidInput(f"line {line}: {len(cells)} columns where the first line has {len(first)}")
        if not cells[feature]:
            raise InvalidInput(f"line {line}: the name of the feature is missing")
        of = None if category is None else cells[category] or None
        number = _number(cells[coefficient], f"line {line}: the coefficient of {cells[feature]!r}")
        entries.append(_Entry(line, cells[feature], of, number))
    return entries


def _is_header(cells: list[str]) -> bool:
    """True if the first line has names: its last column has no number, or its first is empty, as in ",0"."""
    return not cells[0] or not any(_is_number(cell) for cell in cells[1:])


def _find(spellings: tuple[str, ...], names: list[str], otherwise: int) -> int:
    """Which column has one of these names; if none has, and there are two columns, it is known anyway."""
    found = [k for k, name in enumerate(names) if name in spellings]
    if not found and len(names) > 2:
        known = ", ".join(name for name in spellings if name)
        raise InvalidInput(f"no column is called {known}; the first line has {', '.join(map(repr, names[:8]))}")
    return found[0] if found else otherwise


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _number(cell: str, what: str) -> float:
    if not cell:
        raise InvalidInput(f"{what} is missing")
    if not _is_number(cell) or "_" in cell:
        hint = "; write a point, not a comma, in numbers" if "," in cell else ""
        raise InvalidInput(f"{what} is {reprlib.repr(cell)}, which is not a number{hint}")
    try:
        return as_number(float(cell), what)
    except NotFinite:
        raise NotFinite(f"{what} is {cell}; only finite numbers can be used") from None
