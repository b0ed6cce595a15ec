"""What services are called: true, readable, and short enough for a table."""

from __future__ import annotations

import pytest

from overexplain.auditing.names import SHORT, degradation_in_words, name_of, short_name_of
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import GroupNorm, Mahalanobis, Weighted, l1, l2
from overexplain.oracles.degradations import DEGRADATIONS
from overexplain.oracles.imitations import IMITATIONS
from overexplain.oracles.services import Service

VALUES = {"boxed": ":-3:3", "immutable": ":age", "sparse": ":2", "switching": ":l1,linf", "rounded": ":2"}


@pytest.mark.parametrize("name", sorted(DEGRADATIONS))
def test_every_degradation_has_a_name(name) -> None:
    spec = name + VALUES.get(name, ":0.25" if DEGRADATIONS[name].least else "")
    words = degradation_in_words(spec)
    assert words
    if name not in ("flaky", "monotone"):
        assert words != spec
    service = Service.parse(f"l1; {spec}")
    assert name_of(service).endswith(words)


def test_every_service_has_a_short_name_of_its_own() -> None:
    lines = ["l1", "l2", "linf", "lp:1.5", "labels", "l1; robust=l2:0.1", "l1; robust=l2:0.1; secret", "l1; rounded:1"]
    lines += ["l1; nearest-row", "l2; random-radius:0.3:keyed", *(f"imitate={name}" for name in IMITATIONS)]
    shorts = [short_name_of(Service.parse(line)) for line in lines]
    assert all(short.isascii() and short.isprintable() and 0 < len(short) <= SHORT for short in shorts)
    assert len(set(shorts)) == len(lines)


def test_the_secret_is_not_in_the_name() -> None:
    service = Service.parse("l1; robust=l2:0.125; secret")
    assert "0.125" not in name_of(service)


@pytest.mark.parametrize("name", ["ünïcödé", "a" * 500, "\x1b[31mred", "[bold]x[/]", "line\nbreak"])
def test_names_of_the_owner_are_made_to_fit(name) -> None:
    short = short_name_of(Service(Mechanism(l1), name=name))
    assert short.isascii()
    assert short.isprintable()
    assert len(short) <= SHORT


def test_other_distances() -> None:
    assert name_of(Service(Mechanism(Weighted(l1, [1.0, 2.0])))) == "weighted sum of changes (l1)"
    assert (
        name_of(Service(Mechanism(Mahalanobis([[1.0]]), l2, 0.5))) == "correlated changes (mahalanobis), robust l2 0.5"
    )
    assert "group" in name_of(Service(Mechanism(GroupNorm(((0,), (1,))))))
