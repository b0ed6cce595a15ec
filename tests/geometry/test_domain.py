"""Which inputs a service takes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import overexplain as ox
from overexplain.geometry.domain import Domain
from strategies import examples


@st.composite
def domains(draw: st.DrawFn) -> Domain:
    """Up to three one-hot groups, whole numbers and continuous features in any order; limits on no, one or both sides."""
    sizes = draw(st.lists(st.integers(2, 4), max_size=3))
    whole, free = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    p = sum(sizes) + whole + free
    if p == 0:
        return Domain(1)
    order = np.random.default_rng(draw(st.integers(0, 999))).permutation(p).tolist()
    groups = [[order.pop() for _ in range(size)] for size in sizes]
    low, high = np.full(p, -np.inf), np.full(p, np.inf)
    for i in order:
        edge = draw(st.floats(-50, 50).map(lambda x: round(x, 1)))
        if draw(st.booleans()):
            low[i] = edge
        if draw(st.booleans()):
            high[i] = edge + draw(st.sampled_from([1.0, 1.5, 30.0]))
    return Domain(p, low, high, groups, order[:whole])


def taken(domain: Domain, x: np.ndarray) -> bool:
    """The definition, entry by entry."""
    inside = all(domain.low[i] <= x[i] <= domain.high[i] for i in range(domain.dimension))
    one_hot = all(sorted(x[list(group)].tolist()) == [0.0] * (len(group) - 1) + [1.0] for group in domain.groups)
    return inside and one_hot and all(float(x[i]).is_integer() for i in domain.integers)


@examples(60)
@given(domains(), st.integers(0, 999))
def test_samples_lie_in_the_domain_and_points_are_judged_by_the_definition(domain: Domain, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = domain.sample(rng, 20)
    assert rows.shape == (20, domain.dimension)
    for row in rows:
        assert taken(domain, row)
        assert domain.contains(row)
        spoiled = row.copy()
        spoiled[rng.integers(len(row))] += rng.choice([-100.0, 0.5, 1.0, 100.0])
        assert domain.contains(spoiled) == taken(domain, spoiled)
    domain.refuse(rows)
    discrete = {i for group in domain.groups for i in group} | set(domain.integers)
    assert sorted(discrete | set(domain.continuous.tolist())) == list(range(domain.dimension))
    assert not discrete & set(domain.continuous.tolist())


def test_samples_reach_every_category_and_every_whole_number() -> None:
    domain = Domain(5, low=[-1.5, 0, 0, 0, 2.0], high=[2.5, 1, 1, 1, 3.0], groups=[[1, 2, 3]], integers=[0])
    rows = domain.sample(0, 400)
    assert set(rows[:, 0]) == {-1.0, 0.0, 1.0, 2.0}
    assert rows[:, 1:4].sum(axis=0).min() > 80
    assert 2.0 <= rows[:, 4].min() < 2.05 < 2.95 < rows[:, 4].max() <= 3.0
    assert np.array_equal(rows, domain.sample(0, 400))
    assert domain.sample(0, 0).shape == (0, 5)


@pytest.mark.parametrize(
    ("x", "words"),
    [
        ([-0.1, 1.0, 0.0, 0.0], "feature 0 must lie between 0.0 and 5.0, got -0.1"),
        ([0.0, 1.0, 1.0, 0.0], r"exactly one of the features \[1, 2\] must be 1"),
        ([0.0, 0.0, 0.0, 0.0], r"exactly one of the features \[1, 2\] must be 1"),
        ([0.0, 0.5, 0.5, 0.0], r"and the others 0, got \[0.5, 0.5\]"),
        ([0.0, 1.0, 0.0, 0.5], "feature 3 must be a whole number, got 0.5"),
    ],
)
def test_refusals_name_what_is_wrong(x: list[float], words: str) -> None:
    domain = Domain(4, low=0.0, high=5.0, groups=[[2, 1]], integers=[3])
    with pytest.raises(ox.InvalidInput, match=words):
        domain.refuse(x)
    with pytest.raises(ox.InvalidInput, match=r"row 1: .*" + words):
        domain.refuse([[0.0, 1.0, 0.0, 4.0], x])
    assert not domain.contains(x)
    with pytest.raises(ox.DimensionMismatch):
        domain.contains([0.0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"dimension": 0}, "at least 1"),
        ({"dimension": True}, "at least 1"),
        ({"dimension": 2, "low": [0.0, 1.0, 2.0]}, "low must be a number or 2 numbers"),
        ({"dimension": 2, "low": np.nan}, "low must be numbers"),
        ({"dimension": 2, "low": np.inf}, "low must be numbers"),
        ({"dimension": 2, "high": -np.inf}, "high must be numbers"),
        ({"dimension": 2, "low": [0.0, 2.0], "high": 1.0}, "feature 1 has low 2.0 above high 1.0"),
        ({"dimension": 2, "groups": [[0]]}, "at least two features"),
        ({"dimension": 3, "groups": [[0, 1], [1, 2]]}, "feature 1 stands in two groups"),
        ({"dimension": 3, "groups": [[0, 1]], "integers": [1]}, "feature 1 stands in two groups, or in a group and"),
        ({"dimension": 3, "groups": [[0, 3]]}, "from 0 to 2"),
        ({"dimension": 3, "groups": [[0, 0]]}, "twice"),
        ({"dimension": 3, "groups": [0, 1]}, "list of feature numbers"),
        ({"dimension": 3, "groups": 7}, "lists of feature numbers"),
        ({"dimension": 3, "integers": ["a"]}, "list of feature numbers"),
        ({"dimension": 3, "groups": [[0, 1]], "high": 0.5}, "limits exclude 0 or 1"),
        ({"dimension": 1, "integers": [0], "low": 0.2, "high": 0.8}, "no whole number between 0.2 and 0.8"),
    ],
)
def test_contradictions_are_refused(arguments: dict, words: str) -> None:
    with pytest.raises(ox.InvalidInput, match=words):
        Domain(**arguments)


def test_equal_domains_are_equal_and_nothing_in_them_changes() -> None:
    limits = np.array([0.0, 1.0])
    one, other = Domain(2, limits, 9.0), Domain(2, [0.0, 1.0], [9.0, 9.0])
    assert one == other
    assert hash(one) == hash(other)
    assert one != Domain(2, 0.0, 9.0)
    assert one != "a box"
    limits[0] = 5.0
    assert one.low[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        one.low[0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.dimension = 3  # type: ignore[misc]
