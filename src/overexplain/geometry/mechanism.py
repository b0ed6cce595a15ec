"""The published terms of an explanation service."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite, UnsupportedNorm
from overexplain.geometry.domain import Domain
from overexplain.geometry.norms import Norm, norm

_TERMS = ("distance", "robustness", "radius", "tolerance", "slack", "domain")


@dataclass(frozen=True, init=False)
class Mechanism:
    """How a service explains: the nearest point in `distance` that flips the label, for a whole ball if `radius` > 0.

    distance    N1; None: not known
    robustness  N2, the norm of the ball that must lie on the other side; None: plain counterfactuals (or unknown)
    radius      ρ, the radius of that ball; None: secret
    tolerance   how far (in `distance`) an answer may lie from the optimum it stands for; None: float64 rounding; 0.0: exact
    slack       the optimum may be exceeded by this factor: ‖x'−x‖ ≤ (1 + slack)·optimum; None: only the label flips
    domain      which inputs are valid, if answers are chosen from a part of them only: whole numbers, categories, a box,
                features that may not move; None: from all of R^p

    Norms may be given by name.

    >>> Mechanism("l1", robustness="l2", radius=0.1)
    Mechanism(distance=Lp(q=1.0), robustness=Lp(q=2.0), radius=0.1, tolerance=None, slack=0.0, domain=None)
    >>> Mechanism("l1", domain=Domain(3, groups=[[1, 2]])).describe()
    'l1, 1 category'
    """

    distance: Norm | None
    robustness: Norm | None
    radius: float | None
    tolerance: float | None
    slack: float | None
    domain: Domain | None

    def __init__(
        self,
        distance: Norm | str | dict[str, Any] | None,
        robustness: Norm | str | dict[str, Any] | None = None,
        radius: float | None = 0.0,
        tolerance: float | None = None,
        slack: float | None = 0.0,
        domain: Domain | None = None,
    ) -> None:
        for name, given in (("distance", distance), ("robustness", robustness)):
            object.__setattr__(self, name, None if given is None else norm(given))
        for name, number in (("radius", radius), ("tolerance", tolerance), ("slack", slack)):
            object.__setattr__(self, name, None if number is None else _not_negative(number, name))
        if self.radius is not None and self.radius > 0 and self.robustness is None:
            raise InvalidInput(
                f"radius {self.radius} needs a robustness norm: which ball must lie on the other side? "
                'E.g. Mechanism("l1", robustness="l2", radius=0.1)'
            )
        if domain is not None and not isinstance(domain, Domain):
            raise InvalidInput(f"domain must be a Domain or None (all of R^p), got {domain!r}")
        object.__setattr__(self, "domain", domain)
        if domain is not None:
            self.fits(domain.dimension)

    @property
    def is_plain(self) -> bool:
        """True if answers are plain counterfactuals: on the plane itself."""
        return self.radius == 0.0

    def fits(self, dimension: int) -> None:
        """Raise DimensionMismatch if a norm or the domain was made for another number of features."""
        for name in ("distance", "robustness"):
            made_for = getattr(getattr(self, name), "dimension", None)
            if made_for is not None and made_for != dimension:
                raise DimensionMismatch(f"the {name} norm is made for {made_for} features, the model has {dimension}")
        if self.domain is not None and self.domain.dimension != dimension:
            raise DimensionMismatch(f"the domain has {self.domain.dimension} features, the model has {dimension}")

    def describe(self) -> str:
        """A short text for people: 'l1', 'linf, robust l1 0.5', 'l1, robust (radius secret)', 'l1, 2 categories, in a box'."""
        said = ["unknown distance" if self.distance is None else _name(self.distance)]
        if self.radius is None:
            said.append("robust (radius secret)")
        elif not self.is_plain:
            said.append(f"robust {_name(self.robustness)} {self.radius:g}")
        if self.domain is not None:
            said.append(self.domain.describe())
        return ", ".join(said)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form; `from_dict` reads it back. A domain is in it only if there is one."""
        written = {
            "distance": None if self.distance is None else _readable(self.distance),
            "robustness": None if self.robustness is None else _readable(self.robustness),
            "radius": self.radius,
            "tolerance": self.tolerance,
            "slack": self.slack,
        }
        return written if self.domain is None else {**written, "domain": self.domain.to_dict()}

    @classmethod
    def from_dict(cls, terms: dict[str, Any]) -> Mechanism:
        """The mechanism written by `to_dict`; terms left out keep their default."""
        if not isinstance(terms, dict):
            raise InvalidInput(f"a mechanism is an object with the entry 'distance', got {terms!r}")
        unknown = sorted(set(terms) - set(_TERMS))
        if unknown or "distance" not in terms:
            wrong = f"unknown {', '.join(unknown)}" if unknown else "'distance' is missing"
            raise InvalidInput(f"a mechanism has {', '.join(_TERMS)}: {wrong}")
        domain = terms.get("domain")
        return cls(**{**terms, "domain": None if domain is None else Domain.from_dict(domain)})


def _readable(n: Norm) -> Any:
    """The norm's written form, if it can be read back."""
    norm(n.spec)
    return n.spec


def _name(n: Norm | None) -> str:
    try:
        spec = None if n is None else n.spec
    except UnsupportedNorm:  # a norm of the user's own
        spec = type(n).__name__
    return spec["norm"] if isinstance(spec, dict) else str(spec)


def _not_negative(value: Any, name: str) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must be a number or None, got {value!r}") from None
    if not math.isfinite(number):
        raise NotFinite(f"{name} must be a finite number, got {value!r}")
    if number < 0:
        raise InvalidInput(f"{name} must not be negative, got {number}")
    return number
