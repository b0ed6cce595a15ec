"""A service of several classes: which class, and what would have to change to get a given other one."""

from __future__ import annotations

from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import InvalidInput, NotFinite, UnsupportedNorm
from overexplain.geometry.argmax import ArgmaxModel, as_class
from overexplain.geometry.arrays import FloatArray, as_point, as_point_or_rows
from overexplain.geometry.mechanism import Mechanism
from overexplain.oracles.cells import EMPTY, Cell, cell_solver


@runtime_checkable
class MulticlassOracle(Protocol):
    """A service with two verbs: `classify(x)` gives a class, 0 … classes − 1 (rows: an array), and `explain(x, target)` the
    nearest point that gets the class `target` (or ties for it), or None if there is none."""

    @property
    def dimension(self) -> int:
        """The number of features."""

    @property
    def classes(self) -> int:
        """The number of classes."""

    @property
    def mechanism(self) -> Mechanism | None:
        """The published terms; None for a service that only gives labels."""

    def classify(self, x: Any, /) -> Any:
        """The class."""

    def explain(self, x: Any, target: int, /) -> Any:
        """The explanation towards `target`, or None."""


@final
class ArgmaxOracle:
    """Answers exactly for `model`: the nearest point, in the mechanism's distance, at which no class beats the target.

    Distances: l2, weighted l2 and Mahalanobis; l1, linf, their weighted forms, and norms given by corners or faces.
    `published` is what the asker is shown, e.g. an unknown distance.

    >>> model = ArgmaxModel([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], [0.0, 0.0, 0.0])
    >>> service = ArgmaxOracle(model, "l2")
    >>> service.classify([3.0, 1.0]), service.explain([3.0, 1.0], 1).round(9).tolist()
    (0, [2.0, 2.0])
    """

    def __init__(
        self, model: ArgmaxModel, mechanism: Mechanism | str = "l2", published: Mechanism | None = None
    ) -> None:
        model = getattr(model, "argmax", model)  # a loaded model carries one
        if not isinstance(model, ArgmaxModel):
            raise InvalidInput(
                f"an ArgmaxOracle answers for an ArgmaxModel or a loaded model, got {type(model).__name__}: "
                "load_multiclass reads fitted classifiers and files"
            )
        if not isinstance(mechanism, Mechanism):
            mechanism = Mechanism(mechanism)
        if mechanism.distance is None:
            raise InvalidInput(
                "an ArgmaxOracle answers by its mechanism, so the distance must be known to it; "
                "hide it from the asker with published=Mechanism(None)"
            )
        if mechanism.domain is not None:
            raise InvalidInput("an ArgmaxOracle answers with any point of R^p, so its mechanism has no domain")
        if not mechanism.is_plain:
            raise UnsupportedNorm(
                "robust counterfactuals between several classes are not computed: leave the radius at 0"
            )
        mechanism.fits(model.dimension)
        self._model = model
        self._published = mechanism if published is None else published
        self._solve = cell_solver(mechanism.distance, model.dimension)
        self._cells: dict[int, Cell | None] = {}

    @property
    def dimension(self) -> int:
        """The number of features."""
        return self._model.dimension

    @property
    def classes(self) -> int:
        """The number of classes."""
        return self._model.classes

    @property
    def model(self) -> ArgmaxModel:
        """The model itself: for wrappers that need it, not for those who ask."""
        return self._model

    @property
    def mechanism(self) -> Mechanism:
        """The published terms."""
        return self._published

    def classify(self, x: ArrayLike) -> Any:
        """The class: an int for a point, an int array for rows."""
        points = as_point_or_rows(x, self.dimension)
        return self._model.label(points) if points.ndim == 1 else self._model.labels(points)

    def explain(self, x: ArrayLike, target: int) -> FloatArray | None:
        """The nearest point at which `target` is best or ties for it (x itself if it is so there); None if there is none."""
        point = as_point(x, self.dimension)
        target = as_class(target, self.classes, "target")
        if target not in self._cells:
            self._cells[target] = Cell.of(self._model, target)
        cell = self._cells[target]
        if cell is EMPTY:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            answer = self._solve(cell, point)
        if not np.isfinite(answer).all():
            raise NotFinite("an explanation would be too far away for float64; scale the features or the intercepts")
        return answer
