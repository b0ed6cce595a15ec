"""How many answers valid cases need, by rank: against what `Knowledge` and `recover` make of such answers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import overexplain as ox
from overexplain.auditing.span import _reduced, _residues, span_of
from overexplain.oracles.services import Service

GROUPS = ((2, 3, 4), (5, 6, 7))
"""Two numbers and two columns of three categories: 8 features, of which valid cases differ in 6."""


def valid_cases(count: int, rng: np.random.Generator) -> np.ndarray:
    rows = np.zeros((count, 8))
    rows[:, :2] = rng.integers(-40, 40, (count, 2)) / 4
    for group in GROUPS:
        rows[np.arange(count), rng.choice(group, count)] = 1
    return rows


def model(largest: int, rng: np.random.Generator) -> ox.Hyperplane:
    normal = rng.uniform(0.2, 1.0, 8) * rng.choice([-1.0, 1.0], 8)
    normal[largest] = 1.5
    return ox.Hyperplane(normal, float(normal @ valid_cases(1, rng)[0]) + 0.3)


def independent(answers: np.ndarray, count: int) -> list[int]:
    """The first rows whose answers, lifted, are independent: found by floats, as anybody would."""
    kept: list[int] = []
    for i in range(len(answers)):
        tried = np.column_stack([answers[[*kept, i]], np.ones(len(kept) + 1)])
        if np.linalg.matrix_rank(tried) == len(tried):
            kept.append(i)
        if len(kept) == count:
            break
    return kept


@pytest.mark.parametrize(("spec", "largest", "needed"), [("l1", 0, 6), ("l1", 3, 7), ("linf", 0, 7), ("l1", 7, 7)])
@pytest.mark.parametrize("seed", range(3))
def test_so_many_answers_determine_every_valid_case_and_fewer_do_not(
    spec: str, largest: int, needed: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    plane, cases = model(largest, rng), valid_cases(400, rng)
    span = span_of(cases, GROUPS)
    assert (span.dimension, span.source) == (6, "categories")
    assert span.answers(Service.parse(spec), plane, np.ones(8)) == needed
    service = ox.ModelOracle(plane, spec)
    answers = service.explain(cases)
    # No more than that many of all answers are independent; a quarter of a unit moves cases off the plane.
    assert len(independent(answers, 8)) == needed
    chosen = independent(answers, needed)
    margins = plane.margin(cases)
    judged = cases[np.abs(margins) > 1e-6]
    for asked, all_determined in ((chosen, True), (chosen[:-1], False)):
        log = ox.QueryLog(mechanism=service.mechanism)
        log.add_explanation(cases[asked], answers[asked], service.classify(cases[asked]))
        assert ox.recover(log) is None, "the plane itself is not known"
        found = ox.Knowledge(log).certify(judged).codes
        assert (found[np.abs(found) == 1] == plane.labels(judged)[np.abs(found) == 1]).all()
        if all_determined:
            assert (found == plane.labels(judged)).all()
        else:  # some valid case close to the plane is open: a first number that makes its margin small
            near = cases.copy()
            near[:, 0] -= (margins - 1e-3 * np.sign(margins)) / plane.normal[0]
            assert (np.abs(ox.Knowledge(log).certify(near).codes) != 1).any()


def test_what_data_do_not_have_is_counted_by_the_data() -> None:
    rng = np.random.default_rng(0)
    cases = valid_cases(400, rng)
    assert span_of(cases).source == "cases"  # nobody says which columns are categories
    assert span_of(cases).dimension == 6
    never = cases[cases[:, 4] == 0]
    assert (span_of(never, GROUPS).dimension, span_of(never, GROUPS).source) == (5, "cases")
    few = span_of(cases[:9], GROUPS)  # too few to say more than the categories do
    assert (few.dimension, few.source) == (6, "categories")
    assert span_of(cases[:9]) is None
    assert span_of(rng.normal(size=(100, 3))) is None  # full rank
    zeros = np.vstack([cases, np.zeros(8)])  # a row without a category: that column is no group
    assert span_of(zeros, GROUPS).dimension == 7


def test_units_change_the_count_as_they_change_the_answers() -> None:
    """Two categories of equal spread move against each other under linf: that stays among valid cases."""
    rng = np.random.default_rng(1)
    rows = np.zeros((200, 3))
    rows[:, 0] = rng.integers(0, 100, 200)
    rows[np.arange(200), rng.integers(1, 3, 200)] = 1
    span, linf = span_of(rows, ((1, 2),)), Service.parse("linf")
    assert span.dimension == 2
    assert span.answers(linf, ox.Hyperplane([1.0, 2.0, -3.0], 0.5), np.ones(3)) == 2
    assert span.answers(linf, ox.Hyperplane([1.0, 2.0, 3.0], 0.5), np.ones(3)) == 3
    assert span.answers(linf, ox.Hyperplane([1.0, 2.0, -3.0], 0.5), np.array([1.0, 0.5, 0.25])) == 3


@pytest.mark.parametrize("spec", ["l2", "labels", "l1; robust=l2:0.1", "l1; rounded:2", "l1; one-sided"])
def test_only_exact_plain_answers_are_counted(spec: str) -> None:
    span = span_of(valid_cases(100, np.random.default_rng(0)), GROUPS)
    assert span.answers(Service.parse(spec), model(0, np.random.default_rng(1)), np.ones(8)) is None


def test_ranks_are_those_of_exact_fractions() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        factors = rng.integers(-9, 9, (12, 4)) @ rng.integers(-9, 9, (4, 7))
        rows = factors * 2.0 ** rng.integers(-60, 60, 7)  # scaling columns keeps the rank
        assert len(_reduced(_residues(rows))) == _exact_rank(rows)


def _exact_rank(rows: np.ndarray) -> int:
    left, rank = [[Fraction(float(x)) for x in row] for row in rows], 0
    for column in range(rows.shape[1]):
        pivot = next((row for row in left[rank:] if row[column]), None)
        if pivot is None:
            continue
        left.remove(pivot)
        left.insert(rank, pivot)
        for row in left[rank + 1 :]:
            share = row[column] / pivot[column]
            row[:] = [x - share * y for x, y in zip(row, pivot, strict=True)]
        rank += 1
    return rank
