"""Maps: what is coloured is certain, the line is the model's, nothing of the data is shown, the proof adds up."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from overexplain.auditing.audit_report import Map, Question
from overexplain.auditing.maps import CELLS, draw_maps
from overexplain.auditing.units import Units
from overexplain.auditing.worked_proof import worked_proof
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import GroupNorm, Mahalanobis, Weighted, l1, l2
from overexplain.models.linear import LinearModel
from overexplain.oracles.services import Service

NAMES = ("age", "income", "debts", "years")
MODEL = LinearModel(Hyperplane([0.05, 0.0004, -0.003, 0.2], 14.0), NAMES)
RNG = np.random.default_rng(3)
ROWS = np.column_stack(
    [RNG.normal(45, 12, 300), RNG.normal(30_000, 9_000, 300), RNG.normal(900, 400, 300), RNG.integers(0, 20, 300) * 1.0]
)


@cache
def maps(
    service: str | Service = "l1", standardize: bool = True, count: int = 3, seed: int = 0, model: LinearModel = MODEL
):
    given = Service.parse(service) if isinstance(service, str) else service
    units = Units.standard(ROWS) if standardize else Units.own(4)
    return draw_maps(model, ROWS, given, units, count, np.random.default_rng(seed))


def cells(drawn: Map):
    """(x, y, letter) of every cell, per panel."""
    xs, ys = np.linspace(*drawn.x_range, CELLS), np.linspace(*drawn.y_range, CELLS)
    for panel in drawn.panels:
        yield panel, [(x, y, panel.grid[CELLS - 1 - i][j]) for i, y in enumerate(ys) for j, x in enumerate(xs)]


def held_plane(drawn: Map) -> Hyperplane:
    """The model in the map's plane, from the outside: the other features are at their medians."""
    pair = [NAMES.index(drawn.across), NAMES.index(drawn.up)]
    rest = [i for i in range(4) if i not in pair]
    normal = MODEL.hyperplane.normal
    return Hyperplane(normal[pair], MODEL.hyperplane.offset - float(normal[rest] @ np.median(ROWS[:, rest], axis=0)))


@pytest.mark.parametrize(
    "service", ["l1", "l2", "linf; robust=l2:0.1", "l1; rounded:1", "l2; robust=l1:0.2; secret", "labels"]
)
def test_no_certain_cell_contradicts_the_model_and_more_answers_say_more(service) -> None:
    for drawn in maps(service):
        plane, before = held_plane(drawn), None
        for panel, found in cells(drawn):
            labels = plane.labels(np.array([cell[:2] for cell in found]))
            letters = np.array([cell[2] for cell in found])
            assert (labels[letters == "Y"] == 1).all()
            assert (labels[letters == "N"] == -1).all()
            assert panel.yes == np.mean(letters == "Y")
            assert panel.no == np.mean(letters == "N")
            assert panel.yes + panel.no + panel.unknown == pytest.approx(1)
            if before is not None:
                assert (letters == before)[(before != ".") & (before != "?")].all()
            assert panel.undecided == np.mean(letters == "?")
            before = letters


def test_two_explanations_of_a_sum_of_changes_close_the_map_one_of_a_straight_line_does() -> None:
    assert [panel.explanations for panel in maps("l1")[0].panels] == [0, 1, 2]
    assert maps("l1")[0].panels[2].unknown < 0.02 < maps("l1")[0].panels[0].unknown
    assert maps("l2")[0].panels[1].unknown < 0.02
    assert [panel.explanations for panel in maps("labels")[0].panels] == [0]


def test_questions_are_made_up_have_few_digits_and_lie_on_both_sides() -> None:
    for drawn in maps():
        plane = held_plane(drawn)
        assert len(drawn.questions) == 12
        assert {q.label for q in drawn.questions} == {1, -1}
        for i, q in enumerate(drawn.questions):
            assert q.label == plane.label([q.x, q.y])
            assert drawn.x_range[0] < q.x < drawn.x_range[1]
            assert drawn.y_range[0] < q.y < drawn.y_range[1]
            assert len(f"{q.x:g}") <= 7
            assert (q.explanation is not None) == (i < 2)
            if q.explanation is not None:  # an exact explanation lies on the line
                assert plane.margin([q.explanation]) == pytest.approx(0, abs=1e-9)
        asked = np.array([[q.x, q.y] for q in drawn.questions])
        pair = [NAMES.index(drawn.across), NAMES.index(drawn.up)]
        assert not (asked[:, None] == ROWS[None][..., pair]).all(axis=2).any()


def test_the_line_is_the_models_own() -> None:
    for drawn in maps():
        (x1, y1), (x2, y2) = drawn.line
        margins = held_plane(drawn).margin([[x1, y1], [x2, y2]])
        assert np.abs(margins).max() < 1e-9 * MODEL.hyperplane.offset
        assert (x1, y1) != (x2, y2)


def test_the_feature_that_matters_most_is_on_every_map() -> None:
    importance = np.abs(MODEL.hyperplane.normal) * ROWS.std(axis=0)
    first, *others = [NAMES[i] for i in np.argsort(-importance)]
    assert [drawn.across for drawn in maps()] == [first] * 3
    assert [drawn.up for drawn in maps()] == others
    assert len(maps(count=1)) == 1
    assert maps(count=0) == ()


def test_a_line_far_from_all_cases_is_not_drawn_and_one_feature_has_no_map() -> None:
    assert maps(model=replace(MODEL, hyperplane=Hyperplane(MODEL.hyperplane.normal, 1e6))) == ()
    single = LinearModel(Hyperplane([1.0], 0.0))
    assert draw_maps(single, ROWS[:, :1], Service.parse("l1"), Units.own(1), 3, np.random.default_rng(0)) == ()


def test_every_distance_draws_and_those_that_cannot_be_cut_down_show_decisions() -> None:
    std = ROWS.std(axis=0)
    weighted = Service(Mechanism(Weighted(l1, 1 / std)))
    assert [p.explanations for p in maps(weighted, standardize=False)[0].panels] == [0, 1, 2]
    matrix = np.diag(1 / std**2)
    assert [
        p.explanations for p in maps(Service(Mechanism(Mahalanobis(matrix), l2, 0.1)), standardize=False)[0].panels
    ] == [0, 1, 2]
    groups = Service(Mechanism(GroupNorm(((0, 1), (2, 3)))))
    assert [p.explanations for p in maps(groups)[0].panels] == [0]
    assert [p.explanations for p in maps("imitate=nice")[0].panels] == [0]


def test_without_names_features_are_numbered() -> None:
    assert {name[0] for drawn in maps(model=replace(MODEL, features=None)) for name in (drawn.across, drawn.up)} == {
        "x"
    }


def test_a_seed_repeats_the_maps_and_another_changes_them() -> None:
    assert maps(seed=1) == maps.__wrapped__(seed=1)
    assert maps(seed=1)[0].questions != maps(seed=2)[0].questions


# The worked proof.


@pytest.mark.parametrize("seed", range(5))
def test_the_worked_proof_adds_up_in_fractions_and_its_signs_are_right(seed) -> None:
    drawn = maps(seed=seed)[0]
    proof = worked_proof(drawn)
    assert proof is not None
    weights = [Fraction(row.weight) for row in proof.rows]
    assert sum(weights) == 1
    assert sum(w * Fraction(row.x) for w, row in zip(weights, proof.rows, strict=True)) == Fraction(proof.x)
    assert sum(w * Fraction(row.y) for w, row in zip(weights, proof.rows, strict=True)) == Fraction(proof.y)
    for weight, row in zip(weights, proof.rows, strict=True):
        asked = drawn.questions[row.question - 1]
        assert (weight > 0) == (row.label == proof.label)
        assert (Fraction(row.x), Fraction(row.y), row.label) == (
            Fraction(repr(asked.x)),
            Fraction(repr(asked.y)),
            asked.label,
        )
    assert held_plane(drawn).label([float(proof.x), float(proof.y)]) == proof.label
    assert drawn.x_range[0] < float(proof.x) < drawn.x_range[1]
    assert drawn.y_range[0] < float(proof.y) < drawn.y_range[1]


def test_no_proof_is_made_up_where_all_answers_are_alike() -> None:
    drawn = maps()[0]
    same = tuple(Question(q.x, q.y, 1, None) for q in drawn.questions)
    assert worked_proof(replace(drawn, questions=same)) is None


# Units.


def test_units_keep_every_decision_and_come_back() -> None:
    units = Units.standard(ROWS)
    assert (units.model(MODEL).hyperplane.labels(units.into(ROWS)) == MODEL.hyperplane.labels(ROWS)).all()
    np.testing.assert_allclose(units.back(units.into(ROWS)), ROWS, rtol=1e-12)
    np.testing.assert_allclose(units.into(ROWS).std(axis=0), 1.0)


def test_a_column_that_never_varies_keeps_its_unit() -> None:
    units = Units.standard(np.column_stack([np.full(20, 7.0), np.arange(20.0)]))
    assert units.scale[0] == 1.0
    assert units.centre[0] == 7.0


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e290])
def test_tiny_and_huge_weights_draw_the_same_maps(size) -> None:
    plane = Hyperplane(MODEL.hyperplane.normal * size, MODEL.hyperplane.offset * size)
    assert [drawn.panels for drawn in maps(model=replace(MODEL, hyperplane=plane), count=1)] == [
        maps(count=1)[0].panels
    ]
