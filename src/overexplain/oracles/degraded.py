"""Services whose answers are not perfect: rounded, noisy, too long, past the boundary, from a list.

Each is made from an oracle by wrapping and can be wrapped again. `mechanism` is what such a service would publish,
`published=` overrides it; randomness comes from `rng`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray, as_generator, as_rows
from overexplain.geometry.domain import Domain
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import FLOAT64_ANSWER
from overexplain.geometry.norms import Norm, l2, norm
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.protocol import Oracle
from overexplain.oracles.wrapper import Wrapper, altered, one_by_one, terms_of

Rng = int | np.random.Generator | None

CANDIDATES = 64
"""How many random points are tried where one with certain properties is wanted."""


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
        half = 0.5 * 10.0**-self.decimals
        if terms.distance is None:
            own = replace(
                terms, slack=None, tolerance=half
            )  # which has no unit without a distance: nothing is promised
        else:
            # The rounded decimal is itself rounded to float64: a millionth more covers that.
            off = float(terms.distance(np.full(oracle.dimension, half * (1 + 2.0**-20))))
            own = replace(terms, tolerance=(terms.tolerance or 0.0) + off)
            if decimals < 0 and terms.domain is not None and len(terms.domain.continuous) < oracle.dimension:
                own = replace(own, distance=None, slack=None)  # whole numbers were rounded, too: nothing is promised
        super().__init__(oracle, published, own)

    def explain(self, x: ArrayLike) -> Any:
        """The wrapped oracle's explanation, rounded."""
        return altered(self.wrapped, x, lambda _, answers: np.round(answers, self.decimals))


@final
class Float32(Wrapper):
    """Explanations rounded to float32, as many services do; the terms say nothing about it."""

    def __init__(self, oracle: Oracle, published: Mechanism | None = None) -> None:
        super().__init__(oracle, published)
        self.closed_form = False

    def explain(self, x: ArrayLike) -> Any:
        """The wrapped oracle's explanation with float32's 24 bits."""
        return altered(self.wrapped, x, lambda _, answers: answers.astype(np.float32).astype(np.float64))


@final
class Noisy(Wrapper):
    """Explanations plus Gaussian noise of standard deviation `scale` in every entry: half of them do not flip the label."""

    def __init__(self, oracle: Oracle, scale: float, *, rng: Rng = None, published: Mechanism | None = None) -> None:
        own = _flips(terms_of(oracle, "Noisy"))
        self.scale = not_negative(scale, "scale")
        self._rng = as_generator(rng)
        super().__init__(oracle, published, own)

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
        self.slack = not_negative(slack, "slack")
        self._distance, self._may_leave_the_line = terms.distance, terms.is_plain
        self._rng = as_generator(rng)
        # (1 + its own slack)(1 + slack) − 1: the oracle inside may already be too long.
        total = None if terms.slack is None else terms.slack + self.slack + terms.slack * self.slack
        super().__init__(oracle, published, replace(terms, slack=total))

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
        self.amount, self.law, self._rng = not_negative(amount, "amount"), law, as_generator(rng)
        own = _flips(terms)
        if law == "constant" and terms.distance is not None and terms.slack == 0:
            own = replace(terms, robustness=None, radius=None, domain=_left(terms.domain))
        super().__init__(oracle, published, own)

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
        self.radius, self.law, self.keyed = not_negative(radius, "radius"), law, bool(keyed)
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
        super().__init__(oracle, published, _flips(terms))

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
        domain = None if terms is None else terms.domain
        own = Mechanism(self._distance, slack=None, domain=domain)
        super().__init__(oracle, published, own)

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
        own = Mechanism(None, terms.robustness, terms.radius, terms.tolerance, domain=terms.domain)
        super().__init__(oracle, published, own)

    def explain(self, x: ArrayLike) -> Any:
        """The nearest point under one of the distances."""
        return one_by_one(
            lambda row: self._services[int(self._rng.integers(len(self._services)))].explain(row), x, self.dimension
        )


def _flips(terms: Mechanism) -> Mechanism:
    """What is left of the terms if answers were moved after they were chosen, and only flip the label."""
    return Mechanism(terms.distance, slack=None, domain=_left(terms.domain))


def _left(domain: Domain | None) -> Domain | None:
    """The domain of answers that were moved after they were chosen from `domain`: they keep none of its limits."""
    return None if domain is None else Domain(domain.dimension)


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


def not_negative(value: Any, name: str) -> float:
    """The value as a finite number of at least 0; InvalidInput if it is none."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if isinstance(value, bool) or not (np.isfinite(number) and number >= 0):
        raise InvalidInput(f"{name} must be a number, not negative, got {value!r}")
    return number
