"""The audited service in units of its own data, so that what is measured does not depend on the units it came in.

Everything is divided by one power of two next to the features' standard deviation: not a digit changes, angles stay what they are,
and "two decimals" or "a noise of 0.1" mean the same for any data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from overexplain.auditing.units import around
from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray, as_point_or_rows, as_rows
from overexplain.geometry.domain import Domain
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import Norm, l2
from overexplain.models.linear import LinearModel
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.protocol import Oracle
from overexplain.oracles.services import Service
from overexplain.oracles.wrapper import Wrapper


@dataclass(frozen=True, eq=False)
class Setting:
    """A service, its model and its cases, in the data's own unit; made by `setting_of`.

    unit       what one here is in the units given: a power of two next to the median standard deviation
    plane      the model, its largest coefficient 1
    rows       the cases
    low, high  where questions may be asked
    distance   the service's own; ℓ2 if it publishes none
    typical    median distance of the cases from the plane
    """

    service: Service
    model: LinearModel
    given: FloatArray
    unit: float
    plane: Hyperplane
    rows: FloatArray
    low: FloatArray
    high: FloatArray
    distance: Norm
    typical: float

    @property
    def dimension(self) -> int:
        """The number of features."""
        return self.plane.dimension

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Where questions may be asked, as `extract` takes it."""
        return self.low, self.high

    def shortest(self, points: FloatArray) -> FloatArray:
        """How far every point is from the plane, in the service's distance."""
        return np.asarray(np.abs(np.asarray(self.plane.margin(points))) / float(self.distance.dual(self.plane.normal)))

    def oracle(self, rng: np.random.Generator) -> Any:
        """The service as it is, without a defence."""
        if self.service.is_plain and self.service.mechanism is not None:
            published = None if self.service.published is None else scaled(self.service.published, self.unit)
            return ModelOracle(self.plane, self.mechanism, "first", rng, published)
        return Rescaled(self.service.oracle(self.model, self.given, rng), self.unit)

    @property
    def mechanism(self) -> Mechanism:
        """The terms that the service answers by; InvalidInput if it is not a model's own, untouched."""
        if not self.service.is_plain or self.service.mechanism is None:
            raise InvalidInput(f"{self.service!r} does not answer by a mechanism of its own")
        return scaled(self.service.mechanism, self.unit)

    def model_oracle(self, mechanism: Mechanism, published: Mechanism | None = None) -> ModelOracle:
        """The same model answering by other terms."""
        return ModelOracle(self.plane, mechanism, published=published)


def setting_of(model: LinearModel, rows: ArrayLike, service: Service) -> Setting:
    """The setting of a service that answers for `model`, its cases being `rows`."""
    given = as_rows(rows, model.dimension, "rows")
    if len(given) < 2:
        raise InvalidInput(f"defences are compared on cases: at least 2 rows are needed, got {len(given)}")
    if not service.explains:
        raise InvalidInput("this service gives decisions only: there are no explanations to defend")
    unit = _unit(given)
    oracle = service.oracle(model, given, 0)
    domain: Domain | None = getattr(oracle, "domain", None)
    told = None if oracle.mechanism is None else oracle.mechanism.domain
    if any(inputs is not None and (inputs.groups or inputs.integers) for inputs in (domain, told)):
        unit = 1.0  # whole numbers and categories have no other unit
    inside, scale = given / unit, float(np.abs(model.hyperplane.normal).max())
    plane = Hyperplane(model.hyperplane.normal / scale, model.hyperplane.offset / scale / unit)
    low, high = around(inside)
    if domain is not None:
        low, high = np.maximum(low, domain.low / unit), np.minimum(high, domain.high / unit)
        low, high = np.where(low < high, low, domain.low / unit), np.where(low < high, high, domain.high / unit)
    terms = service.mechanism or oracle.mechanism
    distance = l2 if terms is None or terms.distance is None else terms.distance
    found = Setting(service, model, given, unit, plane, inside, low, high, distance, 0.0)
    return replace(found, typical=float(np.median(found.shortest(inside))))


def _unit(rows: FloatArray) -> float:
    """The power of two next to the median standard deviation; of constant data, next to its size."""
    largest = float(np.abs(rows).max())
    if largest == 0:
        return 1.0
    spread = (rows / largest).std(axis=0)
    moving = spread[spread > 0]
    return float(2.0 ** round(math.log2(float(np.median(moving)) if len(moving) else 1.0) + math.log2(largest)))


def scaled(terms: Mechanism, unit: float) -> Mechanism:
    """The terms with all lengths divided by `unit`."""
    radius = None if terms.radius is None else terms.radius / unit
    tolerance = None if terms.tolerance is None else terms.tolerance / unit
    domain = _scaled_inputs(terms.domain, unit)
    return Mechanism(terms.distance, terms.robustness, radius, tolerance, terms.slack, domain)


def _scaled_inputs(domain: Domain | None, unit: float) -> Domain | None:
    """The domain with its limits divided by `unit`, which is 1 if there are whole numbers or categories."""
    if domain is None or unit == 1:
        return domain
    return Domain(domain.dimension, domain.low / unit, domain.high / unit)


@final
class Rescaled(Wrapper):
    """The wrapped oracle, asked and answering in multiples of `unit`."""

    def __init__(self, oracle: Oracle, unit: float) -> None:
        self.unit = unit
        terms = oracle.mechanism
        super().__init__(oracle, own=None if terms is None else scaled(terms, unit))

    @property
    def domain(self) -> Domain | None:
        """Which inputs the service takes, in this unit."""
        return _scaled_inputs(getattr(self.wrapped, "domain", None), self.unit)

    def classify(self, x: ArrayLike) -> Any:
        """The wrapped oracle's label."""
        return self.wrapped.classify(as_point_or_rows(x, self.dimension) * self.unit)

    def explain(self, x: ArrayLike) -> Any:
        """The wrapped oracle's explanation, in this unit."""
        answer = self.wrapped.explain(as_point_or_rows(x, self.dimension) * self.unit)
        return None if answer is None else np.asarray(answer, dtype=np.float64) / self.unit
