"""What can be wrong with a service, in writing: 'rounded:2', 'one-sided', 'random-radius:0.3:keyed'."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.oracles import constrained, degraded, silent
from overexplain.oracles.protocol import Oracle


@dataclass(frozen=True, eq=False)
class Workshop:
    """What wrapping needs besides the oracle: names of features, rows of data, and chance."""

    features: Sequence[str] | None
    dimension: int
    rows: FloatArray | None
    rng: np.random.Generator


@dataclass(frozen=True)
class Degradation:
    """One way to degrade: how it is written, and how it wraps an oracle."""

    form: str
    least: int
    most: int
    wrap: Callable[[Oracle, list[str], Workshop], Oracle]


def degrade(oracle: Oracle, spec: str, workshop: Workshop) -> Oracle:
    """The oracle wrapped as `spec` says: a name, then its values, divided by colons.

    >>> from overexplain.geometry.hyperplane import Hyperplane
    >>> from overexplain.oracles.exact import ModelOracle
    >>> tools = Workshop(("age", "income"), 2, None, np.random.default_rng(0))
    >>> service = ModelOracle(Hyperplane([1.0, 2.0], 1.0), "l2")
    >>> degrade(degrade(service, "immutable:age", tools), "rounded:1", tools).explain([0.25, 0.0])
    array([0.2, 0.4])
    """
    name, *values = [part.strip() for part in spec.split(":")]
    known = DEGRADATIONS.get(name.lower())
    if known is None:
        raise InvalidInput(f"degrade {spec!r}: unknown; known are {', '.join(d.form for d in DEGRADATIONS.values())}")
    if not known.least <= len(values) <= known.most or "" in values:
        raise InvalidInput(f"degrade {spec!r}: write it as {known.form}")
    try:
        return known.wrap(oracle, values, workshop)
    except InvalidInput as error:
        raise type(error)(f"degrade {spec!r}: {error}") from None


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInput(f"{text!r} is no number")
    return number


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(f"{text!r} is no whole number") from None


def _word(text: str, words: Sequence[str]) -> str:
    if text not in words:
        raise InvalidInput(f"{text!r} is none of {', '.join(words)}")
    return text


def _features(text: str, workshop: Workshop) -> list[int]:
    """Feature numbers, given as numbers (from 0) or names, divided by commas."""
    found = []
    for part in (part.strip() for part in text.split(",")):
        if workshop.features is not None and part in workshop.features:
            found.append(list(workshop.features).index(part))
        elif part.isascii() and part.isdigit() and int(part) < workshop.dimension:
            found.append(int(part))
        else:
            known = "" if workshop.features is None else f", called {', '.join(workshop.features[:6])} …"
            raise InvalidInput(f"no feature {part!r}; there are {workshop.dimension}, numbered from 0{known}")
    return found


def _overshoot(oracle: Oracle, values: list[str], workshop: Workshop) -> Oracle:
    law: Any = _word(values[1], ("constant", "uniform")) if len(values) > 1 else "constant"
    return degraded.Overshoot(oracle, _number(values[0]), law, rng=workshop.rng)


def _random_radius(oracle: Oracle, values: list[str], workshop: Workshop) -> Oracle:
    words = [_word(word, ("uniform", "beta", "keyed")) for word in values[1:]]
    law: Any = "beta" if "beta" in words else "uniform"
    return degraded.RandomRadius(oracle, _number(values[0]), law=law, keyed="keyed" in words, rng=workshop.rng)


def _nearest_row(oracle: Oracle, _: list[str], workshop: Workshop) -> Oracle:
    if workshop.rows is None:
        raise InvalidInput("answers come from rows: give them with --data")
    return degraded.NearestRow(oracle, workshop.rows)


def _one_sided(oracle: Oracle, values: list[str], _: Workshop) -> Oracle:
    side = _word(values[0].lower(), ("no", "yes")) if values else "no"
    return silent.OneSided(oracle, YES if side == "yes" else NO)


def _flaky(oracle: Oracle, values: list[str], workshop: Workshop) -> Oracle:
    spelling: Any = values[1] if len(values) > 1 else "none"
    return silent.Flaky(oracle, _number(values[0]), spelling, rng=workshop.rng)


def _switching(oracle: Any, values: list[str], workshop: Workshop) -> Oracle:
    # lp:1.5 has the colon that divides values: only names without one are read here.
    return degraded.SwitchingNorm(oracle, [name.strip() for name in values[0].split(",")], rng=workshop.rng)


DEGRADATIONS = {
    "rounded": Degradation("rounded:DECIMALS", 1, 1, lambda o, v, _: degraded.Rounded(o, _whole(v[0]))),
    "float32": Degradation("float32", 0, 0, lambda o, *_: degraded.Float32(o)),
    "noisy": Degradation("noisy:SCALE", 1, 1, lambda o, v, w: degraded.Noisy(o, _number(v[0]), rng=w.rng)),
    "suboptimal": Degradation(
        "suboptimal:SLACK", 1, 1, lambda o, v, w: degraded.Suboptimal(o, _number(v[0]), rng=w.rng)
    ),
    "overshoot": Degradation("overshoot:AMOUNT[:uniform]", 1, 2, _overshoot),
    "random-radius": Degradation("random-radius:RADIUS[:beta][:keyed]", 1, 3, _random_radius),
    "nearest-row": Degradation("nearest-row", 0, 0, _nearest_row),
    "switching": Degradation("switching:NORM,NORM", 1, 1, _switching),
    "flaky": Degradation("flaky:RATE[:none|empty|nan|echo|raise|no flip]", 1, 2, _flaky),
    "one-sided": Degradation("one-sided[:yes]", 0, 1, _one_sided),
    "boxed": Degradation("boxed:LOW:HIGH", 2, 2, lambda o, v, _: constrained.Boxed(o, _number(v[0]), _number(v[1]))),
    "immutable": Degradation(
        "immutable:FEATURE,FEATURE", 1, 1, lambda o, v, w: constrained.Immutable(o, _features(v[0], w))
    ),
    "sparse": Degradation("sparse:K", 1, 1, lambda o, v, _: constrained.Sparse(o, _whole(v[0]))),
    "monotone": Degradation("monotone", 0, 0, lambda o, *_: constrained.Monotone(o)),
}
