"""A service as its owner describes it, and the oracle that answers so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from overexplain.errors import InvalidInput, UnsupportedNorm
from overexplain.geometry.arrays import FloatArray, as_generator
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import norm
from overexplain.models.linear import LinearModel
from overexplain.oracles.degradations import Workshop, degrade
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.imitations import imitate
from overexplain.oracles.protocol import Oracle
from overexplain.oracles.wrappers import LabelsOnly

LABELS = "labels"
"""The description of a service that gives decisions and explains nothing."""

_FORM = '"l1", "l1; robust=l2:0.1", "l1; robust=l2:0.1; secret", "l2; rounded:2", "imitate=nice", "labels"'


@dataclass(frozen=True)
class Service:
    """How a service answers, what it publishes of that, and what is wrong with it.

    mechanism  the terms it answers by; None: it gives labels only (or is an imitation)
    published  the terms it tells the asker; None: the same
    name       what its owner calls it; None: nothing but what it does
    degrade    what is done to its answers, in turn: "rounded:2", "one-sided", … (`oracles.degradations`)
    imitate    one of `IMITATIONS`, in place of a mechanism

    >>> Service.parse("l1; robust=l2:0.1; rounded:3")
    Service('l1; robust=l2:0.1; rounded:3')
    """

    mechanism: Mechanism | None
    published: Mechanism | None = None
    name: str | None = None
    degrade: tuple[str, ...] = ()
    imitate: str | None = None

    @property
    def explains(self) -> bool:
        """False if it gives decisions only."""
        return self.mechanism is not None or self.imitate is not None

    @property
    def is_plain(self) -> bool:
        """True if its answers are what its mechanism says, untouched."""
        return self.imitate is None and not self.degrade

    @property
    def spec(self) -> str:
        """The description that `parse` reads; norms with numbers of their own are only named."""
        if self.imitate is not None:
            parts = [f"imitate={self.imitate}"]
        elif self.mechanism is None:
            parts = [LABELS]
        else:
            parts = [Mechanism(self.mechanism.distance).describe()]
            if not self.mechanism.is_plain:
                ball = Mechanism(self.mechanism.robustness).describe()
                parts.append(f"robust={ball}:{self.mechanism.radius!r}")
            if self.published is not None and self.published.radius is None:
                parts.append("secret")
        return "; ".join([*parts, *self.degrade])

    def __repr__(self) -> str:
        return f"Service({self.spec!r})"

    def degraded(self, *specs: str) -> Service:
        """The same service, degraded further."""
        return replace(self, degrade=(*self.degrade, *specs))

    def oracle(
        self,
        model: LinearModel,
        rows: FloatArray | None = None,
        rng: int | np.random.Generator | None = None,
        ties: Any = "first",
    ) -> Any:
        """Who answers: the model's own service or the imitation, degraded in the order given.

        rows  what imitations and answers that are rows take them from
        """
        chance = as_generator(rng)
        if self.imitate is not None:
            if rows is None:
                raise InvalidInput(f"the imitation {self.imitate!r} needs data (--data): such services learn from rows")
            service: Oracle = imitate(self.imitate, model.hyperplane, rows, chance)
        elif self.mechanism is None:
            return LabelsOnly(ModelOracle(model.hyperplane, Mechanism("l2")))
        else:
            service = ModelOracle(model.hyperplane, self.mechanism, ties, chance, self.published)
        workshop = Workshop(model.features, model.dimension, rows, chance)
        for spec in self.degrade:
            service = degrade(service, spec, workshop)
        return service

    @staticmethod
    def parse(text: str) -> Service:
        """The service that a line describes.

        It begins with a distance, `labels` or `imitate=NAME`. Then, divided by semicolons: `robust=NORM:RADIUS`, `secret` (the
        radius is not told), `name=…`, and what is wrong with its answers (`rounded:2`, …).
        """
        first, *parts = [part.strip() for part in text.split(";")]
        service = _begun(first, text)
        for part in parts:
            key, _, value = (piece.strip() for piece in part.partition("="))
            if key == "robust":
                service = _robust(service, value, text)
            elif part == "secret":
                service = _secret(service, text)
            elif key == "name" and value:
                service = replace(service, name=value)
            elif part and service.explains:
                service = service.degraded(part.replace("=", ":", 1))
            else:
                raise InvalidInput(f"service {text!r}: {part!r} cannot be read; write it as {_FORM}")
        return service


def _begun(first: str, text: str) -> Service:
    if first == LABELS:
        return Service(None)
    if first.startswith("imitate=") and first != "imitate=":
        return Service(None, imitate=first.partition("=")[2].strip())
    try:
        return Service(Mechanism(first))
    except UnsupportedNorm as error:
        raise InvalidInput(f"service {text!r}: {error}. Write a service as {_FORM}") from None


def _robust(service: Service, value: str, text: str) -> Service:
    ball, _, radius = value.rpartition(":")  # a norm's own name may have a colon
    try:
        number = float(radius)
    except ValueError:
        number = -1.0
    if service.mechanism is None or not ball or number < 0:
        raise InvalidInput(f"service {text!r}: a margin is written robust=NORM:RADIUS after a distance, e.g. {_FORM}")
    try:
        return replace(service, mechanism=_with_ball(service.mechanism, ball, number))
    except InvalidInput as error:
        raise InvalidInput(f"service {text!r}: {error}") from None


def _with_ball(mechanism: Mechanism, ball: str, radius: float) -> Mechanism:
    """The mechanism with a ball of that norm and radius around its answers."""
    return replace(mechanism, robustness=norm(ball), radius=radius)


def _secret(service: Service, text: str) -> Service:
    if service.mechanism is None or service.mechanism.is_plain:
        raise InvalidInput(f"service {text!r}: secret is the radius of robust=NORM:RADIUS, which must stand before it")
    return replace(service, published=replace(service.mechanism, radius=None))
