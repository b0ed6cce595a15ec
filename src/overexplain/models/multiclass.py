"""A linear model of several classes as this package sees it: scores, and what its owner calls things.

Its coefficient file is that of a model of Yes and No, with a list of scores in place of the one::

    {
      "format": "overexplain-model", "version": 1,      both may be left out
      "features": ["age", "income"],                    optional
      "scores": [                                       one for each class, two or more
        {"class": "low", "coefficients": [0.3, -1.5], "intercept": -1.2},
        {"class": "high", "coefficients": {"age": 0.1, "income": 2}, "intercept": 0}, …
      ],
      "columns": [{"name": "age"}, …]                   optional: the raw columns that the features are made from
    }

The class of an input is the one with the largest score, the first of them if scores tie. Names of classes may be left out, all
or none.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np

from overexplain.errors import DimensionMismatch, InvalidInput
from overexplain.geometry.argmax import ArgmaxModel
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.domain import Domain
from overexplain.models.coefficients import (
    LARGEST,
    SOURCE,
    as_number,
    check_keys,
    check_version,
    coefficients_of,
    column_entries,
    columns_of,
    from_entries,
    naming,
    parse,
    write_entries,
)
from overexplain.models.columns import Column, check_columns, domain_of, encode
from overexplain.models.linear import LinearModel, as_names
from overexplain.models.schema import FORMAT, MULTICLASS_ENTRIES, SCORE_ENTRIES, VERSION
from overexplain.models.sniff import read_bounded


@final
@dataclass(frozen=True)
class MulticlassModel:
    """A linear classifier of several classes with its names.

    argmax    which class, by number
    features  the names of the columns, in order; None: not known
    classes   the names of the classes, in order, as text; None: not known
    columns   the raw columns that the features are made from, where some are categories or may be missing; None: the features
              are the columns
    source    what it was read from; a note: not compared, not saved

    >>> model = MulticlassModel(ArgmaxModel([[1.0], [0.0], [-1.0]], [0.0, 0.5, 0.0]), classes=("high", "middle", "low"))
    >>> [model.classes[k] for k in model.argmax.labels([[2.0], [0.0], [-2.0]])]
    ['high', 'middle', 'low']
    """

    argmax: ArgmaxModel
    features: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None
    columns: tuple[Column, ...] | None = None
    source: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.argmax, ArgmaxModel):
            raise InvalidInput(f"argmax must be an ArgmaxModel, got {type(self.argmax).__name__}")
        if self.features is not None:
            features = as_names(self.features, "features")
            if len(features) != self.dimension:
                raise DimensionMismatch(f"{len(features)} features are named, there are {self.dimension} coefficients")
            object.__setattr__(self, "features", features)
        if self.columns is not None:
            object.__setattr__(self, "columns", check_columns(self.columns, self.features))
        if self.classes is not None:
            classes = as_names(self.classes, "classes")
            if len(classes) != self.argmax.classes:
                raise DimensionMismatch(f"{len(classes)} classes are named, there are {self.argmax.classes} scores")
            object.__setattr__(self, "classes", classes)

    @property
    def dimension(self) -> int:
        """The number of features."""
        return self.argmax.dimension

    @cached_property
    def domain(self) -> Domain | None:
        """The rows that the categories can give: one-hot groups; None if no column has categories."""
        return None if self.columns is None or self.features is None else domain_of(self.columns, self.features)

    def encode(self, data: Any) -> FloatArray:
        """The rows of features of a data frame, or of a mapping of names to columns; other columns are left alone."""
        if self.features is None:
            raise InvalidInput("this model has no names of features to find the columns by; give rows of numbers")
        columns = [Column(name) for name in self.features] if self.columns is None else self.columns
        return encode(columns, self.features, data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the coefficient JSON that `load_multiclass` reads back bit for bit; the file is whole or not there."""
        write_entries(to_entries(self), path)


def from_linear(model: LinearModel) -> MulticlassModel:
    """A model of Yes and No as one of two classes: No has the score 0, Yes normal·x − offset."""
    plane = model.hyperplane
    argmax = ArgmaxModel(np.vstack([np.zeros(plane.dimension), plane.normal]), [0.0, -plane.offset])
    return MulticlassModel(argmax, model.features, model.classes, model.columns, model.source)


def read_multiclass(path: str | os.PathLike[str]) -> MulticlassModel:
    """The model in a coefficient file, of several classes or of two."""
    path = Path(path)
    content = read_bounded(path, LARGEST)
    with naming(path):
        return replace(multiclass_of(parse(content)), source=SOURCE)


def multiclass_of(entries: Any) -> MulticlassModel:
    """The model of the entries of a coefficient file, which may also be those of a model of Yes and No."""
    if not isinstance(entries, Mapping) or "scores" not in entries:
        return from_linear(from_entries(entries, None))
    check_keys(entries, tuple(MULTICLASS_ENTRIES))
    check_version(entries)
    features, scores = entries.get("features"), entries["scores"]
    if not isinstance(scores, (list, tuple)) or not all(isinstance(score, Mapping) for score in scores):
        raise InvalidInput(f"scores must be a list of objects, one for each class, got {reprlib.repr(scores)}")
    if len(scores) < 2:
        raise InvalidInput(f"scores must have an entry for each of at least two classes, got {len(scores)}")
    rows: list[list[float]] = []
    intercepts = []
    for i, score in enumerate(scores):
        with naming(f"scores[{i}]"):
            check_keys(score, tuple(SCORE_ENTRIES))
            for key in ("coefficients", "intercept"):
                if score.get(key) is None:
                    raise InvalidInput(f"the key {key!r} is missing (write 0 if there is none)")
            names, row = coefficients_of({"features": features, "coefficients": score["coefficients"]})
            features = names if features is None else features
            if rows and len(row) != len(rows[0]):
                raise DimensionMismatch(f"{len(row)} coefficients, the first class has {len(rows[0])}")
            rows.append(row)
            intercepts.append(as_number(score["intercept"], "intercept"))
    named = [score.get("class") for score in scores]
    classes: Any = None if all(name is None for name in named) else named
    return MulticlassModel(ArgmaxModel(rows, intercepts), features, classes, columns_of(entries.get("columns")))


def to_entries(model: MulticlassModel) -> dict[str, Any]:
    """The entries of the coefficient file of a model, ready for JSON."""
    scores = []
    for k in range(model.argmax.classes):
        named = {} if model.classes is None else {"class": model.classes[k]}
        row = {"coefficients": model.argmax.weights[k].tolist(), "intercept": float(model.argmax.intercepts[k])}
        scores.append(named | row)
    entries = {
        "format": FORMAT,
        "version": VERSION,
        "features": None if model.features is None else list(model.features),
        "scores": scores,
        "columns": None if model.columns is None else [column_entries(column) for column in model.columns],
    }
    return {key: value for key, value in entries.items() if value is not None}
