"""The published terms of a service."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

import overexplain as ox


def test_norms_by_name_and_round_trip() -> None:
    terms = ox.Mechanism("l1", robustness="lp:3", radius=0.5, tolerance=1e-3, slack=None)
    assert terms.distance is ox.l1
    assert terms.robustness == ox.Lp(3)
    assert ox.Mechanism.from_dict(terms.to_dict()) == terms
    assert ox.Mechanism.from_dict({"distance": "l2"}) == ox.Mechanism("l2")
    assert ox.Mechanism(None).distance is None


def test_description() -> None:
    assert ox.Mechanism("l1").describe() == "l1"
    assert ox.Mechanism("linf", robustness="l1", radius=0.5).describe() == "linf, robust l1 0.5"
    assert ox.Mechanism("l1", radius=None).describe() == "l1, robust (radius secret)"
    assert ox.Mechanism(ox.Weighted(ox.l1, [1.0])).describe() == "weighted"
    assert ox.Mechanism(None).describe() == "unknown distance"


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: ox.Mechanism("l1", radius=1.0), ox.InvalidInput, "needs a robustness norm"),
        (
            lambda: ox.Mechanism("l1", robustness="l1", radius=-1.0),
            ox.InvalidInput,
            "radius must not be negative, got -1",
        ),
        (lambda: ox.Mechanism("l1", tolerance=-1e-3), ox.InvalidInput, "tolerance must not be negative"),
        (lambda: ox.Mechanism("l1", slack=-0.1), ox.InvalidInput, "slack must not be negative"),
        (lambda: ox.Mechanism("l1", robustness="l1", radius=math.nan), ox.NotFinite, "radius must be a finite number"),
        (lambda: ox.Mechanism("l1", robustness="l1", radius=True), ox.NotFinite, "finite number, got True"),
        (lambda: ox.Mechanism("l1", slack=10**400), ox.InvalidInput, "slack must be a number"),
        (lambda: ox.Mechanism("l1", slack="much"), ox.InvalidInput, "slack must be a number"),
        (lambda: ox.Mechanism("l9"), ox.UnsupportedNorm, "unknown norm 'l9'"),
        (lambda: ox.Mechanism.from_dict({"distance": "l1", "raduis": 1}), ox.InvalidInput, "unknown raduis"),
        (lambda: ox.Mechanism.from_dict({}), ox.InvalidInput, "'distance' is missing"),
        (lambda: ox.Mechanism.from_dict([]), ox.InvalidInput, "an object"),
        (lambda: ox.Mechanism(ox.Weighted(ox.l1, [1.0, 2.0])).fits(3), ox.DimensionMismatch, "made for 2 features"),
    ],
)
def test_bad_terms_are_refused(make: object, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make()  # type: ignore[operator]


BOX = ox.Domain(3, low=[0.0, -math.inf, 0.0], high=9.5, integers=[1])
CARS = ox.Domain(5, groups=[[1, 2], [3, 4]], integers=[0])


def test_a_domain_is_a_part_of_the_terms() -> None:
    terms = ox.Mechanism("l1", slack=0.5, domain=BOX)
    assert terms.domain is BOX
    again = ox.Mechanism("l1", slack=0.5, domain=ox.Domain(3, [-0.0, -math.inf, 0.0], [9.5] * 3, integers=[1]))
    assert (again == terms, hash(again) == hash(terms)) == (True, True)
    others = [
        ox.Mechanism("l1", slack=0.5, domain=domain) for domain in (None, ox.Domain(3), ox.Domain(3, integers=[1]))
    ]
    assert len({terms, again, *others}) == 4
    assert replace(terms, tolerance=0.1).domain == BOX
    for domain in (BOX, CARS, ox.Domain(1)):
        told = ox.Mechanism(None, domain=domain)
        assert ox.Mechanism.from_dict(json.loads(json.dumps(told.to_dict()))) == told
    assert ox.Mechanism.from_dict({"distance": "l1", "domain": None}) == ox.Mechanism("l1")


def test_terms_without_a_domain_are_written_as_they_were() -> None:
    written = '{"distance": "l1", "robustness": null, "radius": 0.0, "tolerance": null, "slack": 0.0}'
    assert json.dumps(ox.Mechanism("l1").to_dict()) == written
    assert json.dumps(ox.Mechanism("l1", domain=BOX).to_dict()["domain"]) == (
        '{"dimension": 3, "low": [0.0, null, 0.0], "high": [9.5, 9.5, 9.5], "groups": [], "integers": [1]}'
    )


def test_a_domain_in_words() -> None:
    assert ox.Mechanism("l1", domain=BOX).describe() == "l1, 1 whole number, in a box"
    assert ox.Mechanism("linf", radius=None, domain=CARS).describe() == (
        "linf, robust (radius secret), 1 whole number, 2 categories"
    )
    assert ox.Mechanism(None, domain=ox.Domain(2)).describe() == "unknown distance, constrained"
    # The limits 0 and 1 of a category say nothing new.
    assert ox.Domain(2, 0.0, 1.0, groups=[[0, 1]]).describe() == "1 category"


@pytest.mark.parametrize(
    ("domain", "says"),
    [
        ([], "a domain is an object with the entry 'dimension', got []"),
        ("box", "a domain is an object"),
        (True, "a domain is an object"),
        ({}, "'dimension' is missing"),
        ({"dimension": 2, "lows": 0}, "unknown lows"),
        ({"dimension": True}, "dimension must be a whole number from 1 to 1,000,000, got True"),
        ({"dimension": 2.0}, "dimension must be a whole number"),
        ({"dimension": 0}, "dimension must be a whole number"),
        ({"dimension": 10**12}, "dimension must be a whole number from 1 to 1,000,000"),
        ({"dimension": 10**5000}, "got a number of many digits"),
        ({"dimension": 2, "low": "0"}, "domain: low must be a finite number, or null for no limit, got '0'"),
        ({"dimension": 2, "low": True}, "domain: low must be a finite number"),
        ({"dimension": 2, "low": [0.0]}, "domain: low must be one number or null for each of the 2 features, got 1"),
        ({"dimension": 2, "low": [0.0, [0.0]]}, r"domain: low[1] must be a finite number"),
        ({"dimension": 2, "high": [None, math.nan]}, "domain: high[1] must be a finite number"),
        ({"dimension": 2, "high": math.inf}, "domain: high must be a finite number"),
        (
            {"dimension": 2, "high": 10**400},
            "domain: high must be a finite number, or null for no limit, got a number of many",
        ),
        ({"dimension": 2, "low": 1, "high": 0}, "feature 0 has low 1.0 above high 0.0"),
        ({"dimension": 2, "groups": {"a": [0, 1]}}, "domain: groups must be a list of lists of feature numbers"),
        ({"dimension": 2, "groups": [[0, 1], "ab"]}, "domain: groups[1] must be a list of feature numbers, got 'ab'"),
        ({"dimension": 2, "groups": [[0, True]]}, "domain: groups[0] must be a list of feature numbers"),
        ({"dimension": 2, "groups": [[0, 2]]}, "must name features from 0 to 1"),
        ({"dimension": 3, "groups": [[0, 1], [1, 2]]}, "feature 1 stands in two groups"),
        ({"dimension": 2, "integers": [0.0]}, "domain: integers must be a list of feature numbers, got [0.0]"),
        ({"dimension": 2, "integers": None}, "domain: integers must be a list of feature numbers, got None"),
        ({"dimension": 2, "integers": [-1]}, "must name features from 0 to 1"),
        ({"dimension": 2, "integers": [0, 0]}, "names a feature twice"),
    ],
)
def test_a_domain_that_is_none_is_refused_by_its_entry(domain: Any, says: str) -> None:
    with pytest.raises(ox.InvalidInput) as caught:
        ox.Mechanism.from_dict({"distance": "l1", "domain": domain})
    assert says in str(caught.value)


def test_a_domain_must_fit_the_rest() -> None:
    with pytest.raises(ox.InvalidInput, match="domain must be a Domain or None"):
        ox.Mechanism("l1", domain={"dimension": 2})  # type: ignore[arg-type]
    with pytest.raises(ox.DimensionMismatch, match="the domain has 3 features, the model has 2"):
        ox.Mechanism("l1", domain=BOX).fits(2)
    with pytest.raises(ox.DimensionMismatch, match="made for 2 features"):
        ox.Mechanism(ox.Weighted(ox.l1, [1.0, 2.0]), domain=BOX)


def test_many_groups_are_read_at_once() -> None:
    groups = [[i, i + 1] for i in range(0, 100_000, 2)]
    assert len(ox.Domain.from_dict({"dimension": 100_000, "groups": groups}).groups) == 50_000
