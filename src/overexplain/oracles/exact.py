"""The exact service: optimal (robust) counterfactuals of a known model, in closed form, for every norm."""

from __future__ import annotations

from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import InvalidInput, NotFinite
from overexplain.geometry.arrays import FloatArray, as_generator, as_point_or_rows
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.models.linear import LinearModel


@final
class ModelOracle:
    """Answers for `hyperplane` (or a loaded model) by `mechanism`: x' = x + d·v, v a maximizer of normal·v over N1's unit ball and

        d = (offset − normal·x − label·ρ·‖normal‖*_N2) / ‖normal‖*_N1

    (lem:CF_direction, lem:RCF_direction). Where several points are optimal, ``ties="first"`` always moves along the same v,
    ``"random"`` draws one of them each time. `published` is what the asker is shown, e.g. with a secret radius.

    >>> oracle = ModelOracle(Hyperplane([2.0, -1.0], 3.0), Mechanism("linf"))
    >>> oracle.classify([3.0, 0.0]), oracle.explain([3.0, 0.0])
    (1, array([2., 1.]))
    """

    closed_form = True

    def __init__(
        self,
        hyperplane: Hyperplane | LinearModel,
        mechanism: Mechanism | str,
        ties: Literal["first", "random"] = "first",
        rng: int | np.random.Generator | None = None,
        published: Mechanism | None = None,
    ) -> None:
        if isinstance(hyperplane, LinearModel):
            hyperplane = hyperplane.hyperplane
        if not isinstance(hyperplane, Hyperplane):
            raise InvalidInput(
                f"a ModelOracle answers for a Hyperplane or a loaded model, got {type(hyperplane).__name__}: ox.load_model reads "
                "fitted classifiers and files"
            )
        if not isinstance(mechanism, Mechanism):
            mechanism = Mechanism(mechanism)
        if mechanism.distance is None or mechanism.radius is None:
            raise InvalidInput(
                "a ModelOracle answers by its mechanism, so distance and radius must be known to it; "
                "hide them from the asker with published=Mechanism(...)"
            )
        if mechanism.domain is not None:
            raise InvalidInput(
                "a ModelOracle answers with any point of R^p, so its mechanism has no domain; OneHot and Boxed around it choose "
                "from one"
            )
        if ties not in ("first", "random"):
            raise InvalidInput(f'ties must be "first" or "random", got {ties!r}')
        mechanism.fits(hyperplane.dimension)
        self._plane = hyperplane
        self._published = mechanism if published is None else published
        self._rng = as_generator(rng)
        # Scaled to ‖normal‖* = 1, so that no later product depends on the scale of the model.
        scaled = np.ldexp(hyperplane.normal, -hyperplane._exponent)
        length = self._length = float(mechanism.distance.dual(scaled))
        normal: FloatArray = scaled / length
        with np.errstate(over="ignore"):
            offset = float(np.ldexp(hyperplane.offset, -hyperplane._exponent) / length)
        if not np.isfinite(offset):
            raise NotFinite("the plane is too far away for float64: offset / ‖normal‖* overflows; scale the features")
        self._reach = 0.0
        if mechanism.radius > 0 and mechanism.robustness is not None:
            self._reach = mechanism.radius * float(mechanism.robustness.dual(normal))
        self._direction = mechanism.distance.maximizer(normal)
        face = mechanism.distance.face(normal) if ties == "random" else None
        self._face = None if face is None or face.is_point else face

    @property
    def dimension(self) -> int:
        """The number of features."""
        return self._plane.dimension

    @property
    def hyperplane(self) -> Hyperplane:
        """The model itself: for wrappers that need it, not for those who ask."""
        return self._plane

    @property
    def mechanism(self) -> Mechanism:
        """The published terms."""
        return self._published

    def classify(self, x: ArrayLike) -> Any:
        """+1 (Yes) or −1 (No): an int for a point, an int8 array for rows."""
        return self._side(as_point_or_rows(x, self.dimension))

    def explain(self, x: ArrayLike) -> FloatArray:
        """The nearest point on the other side of the plane, with the whole robustness ball if there is one."""
        points = as_point_or_rows(x, self.dimension)
        with np.errstate(over="ignore", invalid="ignore"):
            # `classify` and this must see x on the same side.
            distance = -self._plane._scaled_margin(points) / self._length - self._side(points) * self._reach
            if points.ndim == 1:
                answers = np.asarray(points + distance * self._draw())
            else:
                directions = self._direction if self._face is None else np.array([self._draw() for _ in points])
                answers = np.asarray(points + distance[:, None] * directions)
        if not np.isfinite(answers).all():
            raise NotFinite(
                "an explanation would be too far away for float64; scale the features or the model's offset"
            )
        return answers

    def _side(self, points: FloatArray) -> Any:
        return self._plane.label(points) if points.ndim == 1 else self._plane.labels(points)

    def _draw(self) -> FloatArray:
        return self._direction if self._face is None else self._face.sample(self._rng)
