"""A linear model as this package sees it: a hyperplane, and what its owner calls things."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, final

from overexplain._texts import is_unicode
from overexplain.errors import DimensionMismatch, InvalidInput, UnsupportedModel
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.domain import Domain
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.models.columns import Column, check_columns, domain_of, encode

Link = Literal["logistic", "none"]


@final
@dataclass(frozen=True)
class LinearModel:
    """A binary linear classifier with its names.

    hyperplane  says Yes where the model decides for the positive class
    features    the names of the columns, in order; None: not known
    threshold   the probability threshold folded into the offset; None: the cut is on the raw score
    classes     (name of No, name of Yes) as text; None: not known
    link        "logistic": P(Yes) = σ(normal·x − offset + logit(threshold)), where a threshold of None counts as ½;
                "none": the score says nothing about probabilities. Left out: "logistic" if there is a threshold
    columns     the raw columns that the features are made from, where some are categories or may be missing; None: the
                features are the columns
    source      what it was read from ("LogisticRegression", "coefficient file"); a note: not compared, not saved

    >>> model = LinearModel(Hyperplane([0.5, -2.0], 1.0), features=("income", "debts"), classes=("denied", "granted"))
    >>> model.dimension, model.threshold, model.link
    (2, None, 'none')
    """

    hyperplane: Hyperplane
    features: tuple[str, ...] | None = None
    threshold: float | None = None
    classes: tuple[str, str] | None = None
    link: Link | None = None
    columns: tuple[Column, ...] | None = None
    source: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.hyperplane, Hyperplane):
            raise InvalidInput(f"hyperplane must be a Hyperplane, got {type(self.hyperplane).__name__}")
        if self.features is not None:
            features = as_names(self.features, "features")
            if len(features) != self.dimension:
                raise DimensionMismatch(f"{len(features)} features are named, there are {self.dimension} coefficients")
            object.__setattr__(self, "features", features)
        if self.columns is not None:
            object.__setattr__(self, "columns", check_columns(self.columns, self.features))
        if self.classes is not None:
            classes = as_names(self.classes, "classes")
            if len(classes) != 2:
                raise InvalidInput(f"classes must be two names, that of No and that of Yes, got {list(classes)}")
            object.__setattr__(self, "classes", classes)
        if self.threshold is not None:
            object.__setattr__(self, "threshold", as_probability(self.threshold))
        if self.link is None:
            object.__setattr__(self, "link", "none" if self.threshold is None else "logistic")
        if self.link not in ("logistic", "none"):
            raise InvalidInput(f'link must be "logistic" or "none", got {self.link!r}')
        if self.threshold is not None and self.link == "none":
            raise InvalidInput('a probability threshold needs link "logistic"; a cut on the raw score is a cutoff')

    @property
    def dimension(self) -> int:
        """The number of features."""
        return self.hyperplane.dimension

    @cached_property
    def domain(self) -> Domain | None:
        """The rows that the categories can give: one-hot groups; None if no column has categories."""
        return None if self.columns is None or self.features is None else domain_of(self.columns, self.features)

    def encode(self, data: Any) -> FloatArray:
        """The rows of features of a data frame, or of a mapping of names to columns; other columns are left alone.

        >>> model = LinearModel(Hyperplane([1.0, 2.0, 3.0], 0.0), ("age", "sex=f", "sex=m"),
        ...                     columns=(Column("age"), Column("sex", ("f", "m"))))
        >>> model.encode({"sex": ["m", "f"], "age": [40, 50], "name": ["Jo", "Al"]}).tolist()
        [[40.0, 0.0, 1.0], [50.0, 1.0, 0.0]]
        """
        if self.features is None:
            raise InvalidInput("this model has no names of features to find the columns by; give rows of numbers")
        columns = [Column(name) for name in self.features] if self.columns is None else self.columns
        return encode(columns, self.features, data)

    def with_threshold(self, threshold: float) -> LinearModel:
        """The same model cut at another probability: Yes where P(Yes) ≥ threshold, so where score ≥ logit(threshold).

        >>> LinearModel(Hyperplane([1.0], 0.0), threshold=0.5).with_threshold(0.75).hyperplane.offset == math.log(3)
        True
        """
        threshold = as_probability(threshold)
        if self.link != "logistic":
            raise UnsupportedModel(
                f"threshold {threshold} asks for probabilities, and this model's score is not known to give any "
                '(its link is "none"); leave the threshold out, or declare link "logistic" if P = 1/(1 + exp(-score))'
            )
        if threshold == self.threshold:
            return self
        folded = 0.0 if self.threshold is None else logit(self.threshold)
        moved = Hyperplane(self.hyperplane.normal, self.hyperplane.offset - folded + logit(threshold))
        return replace(self, hyperplane=moved, threshold=threshold)

    def with_cutoff(self, cutoff: float) -> LinearModel:
        """The model with its plane moved to where the margin was `cutoff`; its probabilities are then not known."""
        if cutoff == 0:
            return self
        moved = Hyperplane(self.hyperplane.normal, self.hyperplane.offset + cutoff)
        return replace(self, hyperplane=moved, threshold=None, link="none")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the coefficient JSON that `load_model` reads back bit for bit; the file is whole or not there."""
        from overexplain.models.coefficients import write_coefficients

        write_coefficients(self, path)


def logit(probability: float) -> float:
    """The score at which the logistic function has this value: log(p / (1 − p))."""
    return math.log(probability / (1 - probability))


def as_probability(value: Any, name: str = "threshold") -> float:
    """The value as a float strictly between 0 and 1; raises InvalidInput."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < float(value) < 1:
        raise InvalidInput(f"{name} must be a probability strictly between 0 and 1, got {value!r}")
    return float(value)


def as_names(values: Any, key: str) -> tuple[str, ...]:
    """The names as a tuple of texts, if each stands there once."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InvalidInput(f"{key} must be a list of names, got {values!r}")
    seen = set()
    for i, value in enumerate(values):
        if not isinstance(value, str):
            raise InvalidInput(f"{key}[{i}] must be a text, got {value!r}")
        if not is_unicode(value):
            raise InvalidInput(f"{key}[{i}] is no Unicode text: {value!r} has half of a surrogate pair; rename it")
        if value in seen:
            raise InvalidInput(f"{key} has the name {value!r} twice; every name must be its own")
        seen.add(value)
    return tuple(str(value) for value in values)
