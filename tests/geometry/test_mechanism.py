"""The published terms of a service."""

from __future__ import annotations

import math

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
