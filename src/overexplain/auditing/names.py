"""What a service is called: plain words first, the symbol in brackets; and in 26 ASCII characters, for a table."""

from __future__ import annotations

import math
from typing import Final

from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import GroupMax, GroupNorm, Lp, Mahalanobis, Norm, Weighted
from overexplain.oracles.services import Service

SHORT: Final = 26
"""Characters of a service's name in a table of 80 columns."""

_LP = {1.0: "sum of changes (l1)", 2.0: "straight line (l2)", math.inf: "largest change (linf)"}


def distance_in_words(norm: Norm | None) -> str:
    """A distance for people: 'sum of changes (l1)'.

    >>> from overexplain.geometry.norms import norm
    >>> distance_in_words(norm("linf")), distance_in_words(norm("lp:1.5"))
    ('largest change (linf)', 'between l1 and l2 (lp:1.5)')
    """
    match norm:
        case None:
            return "unknown distance"
        case Lp():
            between = "l1 and l2" if norm.q < 2 else "l2 and linf"
            return _LP.get(norm.q, f"between {between} ({norm.spec})")
        case Weighted():
            return f"weighted {distance_in_words(norm.norm)}"
        case Mahalanobis():
            return "correlated changes (mahalanobis)"
        case GroupNorm():
            return "sum over groups (group)"
        case GroupMax():
            return "largest group (group-max)"
        case _:
            return Mechanism(norm).describe()


def service_in_words(mechanism: Mechanism) -> str:
    """A service's terms for people.

    >>> service_in_words(Mechanism("l1", robustness="l2", radius=0.1))
    'sum of changes (l1), robust l2 0.1'
    >>> service_in_words(Mechanism("l2", radius=None))
    'straight line (l2), secret radius'
    """
    words = [distance_in_words(mechanism.distance)]
    if mechanism.radius is None:
        words.append("secret radius")
    elif not mechanism.is_plain:
        words.append(f"robust {Mechanism(mechanism.robustness).describe()} {mechanism.radius:g}")
    if mechanism.domain is not None:
        words.append(mechanism.domain.describe())
    return ", ".join(words)


def degradation_in_words(spec: str) -> str:
    """What is done to answers, for people.

    >>> degradation_in_words("rounded:2"), degradation_in_words("suboptimal:0.1"), degradation_in_words("one-sided")
    ('rounded to 2 decimals', 'random, up to 10 % too long', 'only the denied are told')
    """
    name, *values = [part.strip() for part in spec.split(":")]
    first = values[0] if values else ""
    match name:
        case "rounded":
            return f"rounded to {first} decimal{'s' * (first != '1')}" if first.isdigit() and first != "0" else spec
        case "float32":
            return "in single precision (float32)"
        case "noisy":
            return f"with noise of {first}"
        case "suboptimal":
            return f"random, up to {100 * float(first):.3g} % too long"
        case "overshoot":
            return f"past the boundary by {'up to ' * ('uniform' in values)}{first}"
        case "random-radius":
            return f"random margin up to {first}{', fixed for each case' * ('keyed' in values)}"
        case "nearest-row":
            return "nearest real case shown"
        case "switching":
            return f"distance changes each time ({first.replace(',', ', ')})"
        case "one-sided":
            return "only the approved are told" if first.lower() == "yes" else "only the denied are told"
        case "immutable":
            return "some features never change"
        case "sparse":
            return f"at most {first} features change"
        case "boxed":
            return f"inside {first} to {values[-1]}"
        case _:
            return spec


def name_of(service: Service) -> str:
    """The service in words.

    >>> name_of(Service.parse("l1; robust=l2:0.1; rounded:2")), name_of(Service.parse("labels"))
    ('sum of changes (l1), robust l2 0.1, rounded to 2 decimals', 'decisions only')
    """
    if service.imitate is not None:
        words = f"imitation of {service.imitate}"
    elif service.mechanism is None:
        return "decisions only"
    else:
        words = service_in_words(service.published or service.mechanism)
    return ", ".join([words, *map(degradation_in_words, service.degrade)])


def short_name_of(service: Service) -> str:
    """The service in at most 26 ASCII characters.

    >>> short_name_of(Service.parse("l1; robust=l2:0.1")), short_name_of(Service.parse("l2"))
    ('l1, robust l2 0.1', 'straight line (l2)')
    """
    brief = service.spec.replace("; ", ", ").replace("robust=", "robust ").replace(":", " ")
    for text in (service.name, name_of(service), brief):
        if text is not None and text.isascii() and text.isprintable() and len(text) <= SHORT:
            return text
    plain = "".join(c if c.isascii() and c.isprintable() else "?" for c in service.name or brief)
    return plain if len(plain) <= SHORT else plain[: SHORT - 3] + "..."
