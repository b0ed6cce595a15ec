"""Services that are not perfect: rounded, noisy, too long, past the boundary, from a list, or failing.

Each is made from an oracle by wrapping and can be wrapped again. `mechanism` is what such a service would publish,
`published=` overrides it; randomness comes from `rng`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal, final, get_args

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray, as_generator, as_point_or_rows, as_rows
from overexplain.geometry.hyperplane import NO, YES
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import FLOAT64_ANSWER
from overexplain.geometry.norms import Norm, l2, norm
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.protocol import Oracle, checked_explanation
from overexplain.oracles.wrapper import Wrapper, altered, one_by_one, terms_of

Rng = int | np.random.Generator | None
Failure = Literal["none", "empty", "nan", "echo", "raise", "no flip"]

CANDIDATES = 64
"""How many random points `Suboptimal` tries before it stretches the optimal step instead."""


MOST_DECIMALS = 300
"""No float64 has more."""


@final
class Rounded(Wrapper):
    """Explanations rounded to `decimals` places; the published tolerance says by how much they can be off.

    >>> from overexplain.geometry.hyperplane import Hyperplane
    >>> service = Rounded(ModelOracle(Hyperplane([3.0, 4.0], 2.0), Mechanism("l2")), 1)
    >>> service.explain([0.0, 0.0]), round(service.mechanism.tolerance, 3)
    (array([0.2, 0.3]), 0.071)
    """

    def __init__(self, oracle: Oracle, decimals: int, *, published: Mechanism | None = None) -> None:
        terms = terms_of(oracle, "Rounded")
        if isinstance(decimals, bool) or not isinstance(decimals, int | np.integer):
            raise InvalidInput(f"decimals must be a whole number, got {decimals!r}")
        if abs(decimals) > MOST_DECIMALS:
            raise InvalidInput(f"decimals must lie between -{MOST_DECIMALS} and {MOST_DECIMALS}, got {decimals}")
        self.decimals = int(decimals)
        if terms.distance is None:
            own = replace_terms(terms, slack=None)  # a tolerance has no unit without a distance
        else:
            # The rounded decimal is itself rounded to float64: a millionth more covers that.
            half = np.full(oracle.dimension, 0.5 * 10.0**-self.decimals * (1 + 2.0**-20))
            own = replace_terms(terms, tolerance=(terms.tolerance or 0.0) + float(terms.distance(half)))
        super().__init__(oracle, own if published is None else published)

    def explain(self, x: ArrayLike) -> Any:
        """The wrapped oracle's explanation, rounded."""
        return altered(self.wrapped, x, lambda _, answers: np.round(answers, self.decimals))


@final
class Float32(Wrapper):
    """Explanations rounded to float32, as many services do; the terms say nothing about it."""

    def explain(self, x: ArrayLike) -> Any:
        """The wrapped oracle's explanation with float32's 24 bits."""
        return altered(self.wrapped, x, lambda _, answers: answers.astype(np.float32).astype(np.float64))


@final
class Noisy(Wrapper):
    """Explanations plus Gaussian noise of standard deviation `scale` in every entry: half of them do not flip the label."""

    def __init__(self, oracle: Oracle, scale: float, *, rng: Rng = None, published: Mechanism | None = None) -> None:
        own = Mechanism(terms_of(oracle, "Noisy").distance, slack=None)
        self.scale = _not_negative(scale, "scale")
        self._rng = as_generator(rng)
        super().__init__(oracle, own if published is None else published)

    def explain(self, x: ArrayLike) -> Any:
        """The wrapped oracle's explanation, blurred anew at each question."""
        return altered(self.wrapped, x, lambda _, answers: answers + self._rng.normal(0.0, self.scale, answers.shape))


@final
class Suboptimal(Wrapper):
    """A random point on the other side, at most 1 + `slack` times as far away as the optimal one.

    Points are drawn around the optimal step and kept if the wrapped oracle's label and distance say that they qualify; where
    none of them does, or where a whole ball has to lie across (radius > 0), the optimal step is stretched instead. Of the
    constraints that the oracle inside may have it knows the `domain` only.
    """

    def __init__(self, oracle: Oracle, slack: float, *, rng: Rng = None, published: Mechanism | None = None) -> None:
        terms = terms_of(oracle, "Suboptimal")
        if terms.distance is None:
            raise InvalidInput("Suboptimal needs to know the distance: the oracle inside publishes none")
        self.slack = _not_negative(slack, "slack")
        self._distance, self._may_leave_the_line = terms.distance, terms.is_plain
        self._rng = as_generator(rng)
        # (1 + its own slack)(1 + slack) − 1: the oracle inside may already be too long.
        total = None if terms.slack is None else terms.slack + self.slack + terms.slack * self.slack
        super().__init__(oracle, replace_terms(terms, slack=total) if published is None else published)

    def explain(self, x: ArrayLike) -> Any:
        """A random valid explanation, not the shortest."""
        return altered(self.wrapped, x, self._loosen)

    def _loosen(self, questions: FloatArray, answers: FloatArray) -> FloatArray:
        return np.array([self._draw(x, z) for x, z in zip(questions, answers, strict=True)]).reshape(answers.shape)

    def _draw(self, x: FloatArray, optimal: FloatArray) -> FloatArray:
        step = optimal - x
        length = float(self._distance(step))
        if length == 0 or self.slack == 0:
            return optimal
        if self._may_leave_the_line:
            sideways = self._rng.normal(size=(CANDIDATES, len(x)))
            sideways *= length / self._distance(sideways)[:, None]
            # A smooth distance leaves room for √(2·slack) sideways, a polyhedral one for about slack: try all sizes.
            size = self._rng.random(CANDIDATES) * (2 * self.slack + self.slack**2) ** self._rng.uniform(
                0.5, 1.0, CANDIDATES
            )
            stretch = 1 + self.slack * self._rng.random(CANDIDATES)
            candidates = x + stretch[:, None] * step + size[:, None] * sideways
            short = candidates[self._distance(candidates - x) <= (1 + self.slack) * length]
            short = np.array([z for z in short if self._takes(z)])
            if len(short):
                valid = short[np.asarray(self.wrapped.classify(short)) != self.wrapped.classify(x)]
                if len(valid):
                    return np.asarray(valid[0])
        stretched = np.asarray(x + step * (1 + self.slack * self._rng.random()))
        return stretched if self._takes(stretched) else optimal


@final
class Overshoot(Wrapper):
    """Explanations that go on past the boundary along their own step: by `amount` in the distance, or by U(0, amount).

    A constant overshoot is a robust counterfactual with a secret radius, and is published as that. (If the oracle inside
    publishes no distance, l2 measures the amount.)
    """

    def __init__(
        self,
        oracle: Oracle,
        amount: float,
        law: Literal["constant", "uniform"] = "constant",
        *,
        rng: Rng = None,
        published: Mechanism | None = None,
    ) -> None:
        terms = terms_of(oracle, "Overshoot")
        if law not in ("constant", "uniform"):
            raise InvalidInput(f'law must be "constant" or "uniform", got {law!r}')
        self.amount, self.law, self._rng = _not_negative(amount, "amount"), law, as_generator(rng)
        own = Mechanism(terms.distance, slack=None)
        if law == "constant" and terms.distance is not None and terms.slack == 0:
            own = Mechanism(terms.distance, robustness=None, radius=None, tolerance=terms.tolerance)
        super().__init__(oracle, own if published is None else published)

    def explain(self, x: ArrayLike) -> Any:
        """The wrapped oracle's explanation, taken further."""
        return altered(self.wrapped, x, self._go_on)

    def _go_on(self, questions: FloatArray, answers: FloatArray) -> FloatArray:
        share = 1.0 if self.law == "constant" else self._rng.random((len(answers), 1))
        return np.asarray(answers + self.amount * share * _outward(self.wrapped, questions, answers))


@final
class RandomRadius(Wrapper):
    """Robust explanations whose radius is drawn anew for every question: U(0, radius), or radius·Beta(3, 1).

    With ``keyed=True`` the radius is derived from the question and a secret key, so that asking again gives the same answer.
    The ball is one of the distance itself unless `robustness` says otherwise, for which the model inside is needed.
    """

    def __init__(
        self,
        oracle: Oracle,
        radius: float,
        robustness: Norm | str | None = None,
        law: Literal["uniform", "beta"] = "uniform",
        keyed: bool = False,
        *,
        rng: Rng = None,
        published: Mechanism | None = None,
    ) -> None:
        terms = terms_of(oracle, "RandomRadius")
        if law not in ("uniform", "beta"):
            raise InvalidInput(f'law must be "uniform" or "beta", got {law!r}')
        self.radius, self.law, self.keyed = _not_negative(radius, "radius"), law, bool(keyed)
        self._rng = as_generator(rng)
        self._key = self._rng.bytes(32)
        self._stretch = 1.0  # how far along the step, in the distance, one unit of the ball's radius reaches
        ball = None if robustness is None else norm(robustness)
        if ball is not None and ball != terms.distance:
            if not isinstance(oracle, ModelOracle) or terms.distance is None:
                raise InvalidInput(
                    "a ball of another norm than the distance needs the model: wrap a ModelOracle that publishes its distance"
                )
            normal = oracle.hyperplane.normal / np.abs(oracle.hyperplane.normal).max()
            self._stretch = float(ball.dual(normal)) / float(terms.distance.dual(normal))
        super().__init__(oracle, Mechanism(terms.distance, slack=None) if published is None else published)

    def explain(self, x: ArrayLike) -> Any:
        """The wrapped oracle's explanation, taken further by the radius drawn for this question."""
        return altered(self.wrapped, x, self._go_on)

    def _go_on(self, questions: FloatArray, answers: FloatArray) -> FloatArray:
        radii = np.array([self._radius(x) for x in questions]).reshape(-1, 1)
        return np.asarray(answers + radii * self._stretch * _outward(self.wrapped, questions, answers))

    def _radius(self, x: FloatArray) -> float:
        rng = self._rng
        if self.keyed:
            digest = hashlib.blake2b((x + 0.0).tobytes(), key=self._key, digest_size=16).digest()  # −0.0 is 0.0
            rng = np.random.default_rng(int.from_bytes(digest))
        return self.radius * (rng.random() if self.law == "uniform" else rng.beta(3, 1))


@final
class NearestRow(Wrapper):
    """The nearest of some `rows` with the other label, in the published distance (l2 if there is none); None without such a row."""

    def __init__(self, oracle: Oracle, rows: ArrayLike, *, published: Mechanism | None = None) -> None:
        terms = oracle.mechanism
        self.rows = as_rows(rows, oracle.dimension, "rows").copy()
        self._labels = np.asarray(oracle.classify(self.rows.copy())).reshape(len(self.rows))
        self._distance = l2 if terms is None or terms.distance is None else terms.distance
        super().__init__(oracle, Mechanism(self._distance, slack=None) if published is None else published)

    def explain(self, x: ArrayLike) -> Any:
        """The row that explains x."""
        return one_by_one(self._nearest, x, self.dimension)

    def _nearest(self, x: FloatArray) -> FloatArray | None:
        across = self.rows[self._labels != self.wrapped.classify(x)]
        return across[int(np.argmin(self._distance(across - x)))].copy() if len(across) else None


@final
class SwitchingNorm(Wrapper):
    """Optimal explanations under a distance drawn anew from `distances` for every question."""

    def __init__(
        self,
        oracle: ModelOracle,
        distances: Sequence[Norm | str],
        *,
        rng: Rng = None,
        published: Mechanism | None = None,
    ) -> None:
        if not isinstance(oracle, ModelOracle):
            raise InvalidInput(
                "SwitchingNorm needs the model: put it around a ModelOracle, and other wrappers around it"
            )
        terms = terms_of(oracle, "SwitchingNorm")
        if terms.radius is None:
            raise InvalidInput("SwitchingNorm needs the radius: hide it with published= here, not in the ModelOracle")
        if isinstance(distances, str) or not len(distances):
            raise InvalidInput(f"distances must be a list of norms, got {distances!r}")
        self._rng = as_generator(rng)
        self._services = [
            ModelOracle(oracle.hyperplane, Mechanism(norm(each), terms.robustness, terms.radius)) for each in distances
        ]
        own = Mechanism(None, terms.robustness, terms.radius, terms.tolerance)
        super().__init__(oracle, own if published is None else published)

    def explain(self, x: ArrayLike) -> Any:
        """The nearest point under one of the distances."""
        return one_by_one(
            lambda row: self._services[int(self._rng.integers(len(self._services)))].explain(row), x, self.dimension
        )


@final
class Flaky(Wrapper):
    """A service that fails to explain a share `rate` of the questions, in the spelling `failure`:

    "none" (None), "empty" ([]), "nan" (an all-NaN row), "echo" (the question), "raise" (an exception) or "no flip" (a point that
    moved but stays on the question's side). In a batch the first three are all-NaN rows. The terms say nothing about it, but that
    points which do not flip the label are no optimal ones (slack=None).
    """

    def __init__(
        self,
        oracle: Oracle,
        rate: float,
        failure: Failure = "none",
        *,
        rng: Rng = None,
        published: Mechanism | None = None,
    ) -> None:
        terms = terms_of(oracle, "Flaky")
        self.rate = _not_negative(rate, "rate")
        if self.rate > 1:
            raise InvalidInput(f"rate is a share between 0 and 1, got {rate!r}")
        if failure not in get_args(Failure):
            raise InvalidInput(f"failure must be one of {', '.join(get_args(Failure))}, got {failure!r}")
        self.failure = failure
        self._rng = as_generator(rng)
        if published is None and failure == "no flip":
            published = replace_terms(terms, slack=None)
        super().__init__(oracle, published)

    def explain(self, x: ArrayLike) -> Any:
        """The wrapped oracle's explanation, or a failure."""
        points = as_point_or_rows(x, self.dimension)
        if points.ndim == 1:
            return self._fail(points.copy()) if self._rng.random() < self.rate else self.wrapped.explain(points.copy())
        failed = self._rng.random(len(points)) < self.rate
        if failed.any() and self.failure == "raise":
            self._fail(points[int(failed.argmax())])
        rows = np.full(points.shape, np.nan)
        if not failed.all():
            rows[~failed] = self.wrapped.explain(points[~failed])
        if self.failure in ("echo", "no flip"):
            for i in np.flatnonzero(failed):
                given = self._fail(points[i].copy())
                if given is not None:
                    rows[i] = given
        return rows

    def _fail(self, x: FloatArray) -> Any:
        if self.failure == "raise":
            raise RuntimeError("no counterfactual found")
        answers: dict[str, Any] = {"none": None, "empty": [], "nan": np.full(len(x), np.nan), "echo": x}
        return answers[self.failure] if self.failure in answers else self._same_side(x)

    def _same_side(self, x: FloatArray) -> FloatArray | None:
        """A point short of the boundary on the way to the true explanation, or one further away from it."""
        answer = checked_explanation(self.wrapped.explain(x.copy()), self.dimension)
        if answer is None:
            return None
        label = self.wrapped.classify(x)
        moved = x + np.array([[0.9], [0.5], [0.1], [-0.5]]) * (answer - x)
        if self.domain is not None:
            moved = np.vstack([moved, self.domain.sample(self._rng, CANDIDATES)])
        return next((z for z in moved if self._takes(z) and self.wrapped.classify(z) == label), x)


@final
class OneSided(Wrapper):
    """Explains only questions that are answered with the label `side` (the denied, unless said otherwise); None for the others."""

    def __init__(self, oracle: Oracle, side: int = NO, *, published: Mechanism | None = None) -> None:
        terms_of(oracle, "OneSided")
        if side not in (YES, NO):
            raise InvalidInput(f"side must be +1 (Yes) or -1 (No), got {side!r}")
        self.side = int(side)
        super().__init__(oracle, published)

    def explain(self, x: ArrayLike) -> Any:
        """The wrapped oracle's explanation, if the question is on the side that gets one."""
        points = as_point_or_rows(x, self.dimension)
        if points.ndim == 1:
            return self.wrapped.explain(points.copy()) if self.wrapped.classify(points.copy()) == self.side else None
        rows = np.full(points.shape, np.nan)
        served = np.asarray(self.wrapped.classify(points.copy())) == self.side
        if served.any():
            rows[served] = self.wrapped.explain(points[served])
        return rows


def replace_terms(terms: Mechanism, **changes: Any) -> Mechanism:
    """The same terms but for `changes`."""
    kept = {name: getattr(terms, name) for name in ("distance", "robustness", "radius", "tolerance", "slack")}
    return Mechanism(**(kept | changes))


def _outward(oracle: Oracle, questions: FloatArray, answers: FloatArray) -> FloatArray:
    """The steps from questions to answers at length 1 in the distance; where there was no step, the model's if it is known."""
    terms = terms_of(oracle, "a wrapper that goes on along the step")
    distance = l2 if terms.distance is None else terms.distance
    steps = answers - questions
    lengths = np.asarray(distance(steps)).reshape(-1, 1)
    # A step of the size of rounding errors has no direction of its own.
    known = lengths > FLOAT64_ANSWER * np.asarray(distance(questions) + distance(answers)).reshape(-1, 1)
    fallback = np.zeros_like(steps)
    if isinstance(oracle, ModelOracle) and not known.all():
        normal = oracle.hyperplane.normal / np.abs(oracle.hyperplane.normal).max()
        fallback = -np.asarray(oracle.classify(questions)).reshape(-1, 1) * distance.maximizer(normal)
    return np.where(known, steps / np.where(known, lengths, 1.0), fallback)


def _not_negative(value: Any, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if isinstance(value, bool) or not (np.isfinite(number) and number >= 0):
        raise InvalidInput(f"{name} must be a number, not negative, got {value!r}")
    return number
