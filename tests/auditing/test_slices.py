"""A slice holds the verdicts of exactly the points it says it is of."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from overexplain.auditing import slices
from overexplain.auditing.determined import Determined
from overexplain.auditing.slices import take_slice, with_areas
from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite
from overexplain.geometry.mechanism import Mechanism
from overexplain.knowledge.engine import Knowledge
from overexplain.knowledge.verdicts import Verdict
from overexplain.log.querylog import QueryLog

POINTS = [[0.0, 10.0, 1.0], [4.0, 30.0, 0.0], [2.0, 20.0, 0.0], [1.0, 20.0, 1.0]]


@dataclass
class Answered:
    codes: np.ndarray

    def __len__(self) -> int:
        return len(self.codes)


@dataclass
class Stand:
    """Says Yes where x0 + x2 ≥ 2, else unknown, and remembers what it was asked."""

    blocks: list[np.ndarray] = field(default_factory=list)
    oriented: bool = True

    def certify(self, blocks: Any) -> Any:
        for block in blocks:
            self.blocks.append(block)
            yield Answered((block[:, 0] + block[:, 2] >= 2).astype(np.int8))


@pytest.fixture
def log() -> QueryLog:
    log = QueryLog(features=["a", "b", "c"])
    log.add_label(POINTS, [1, -1, 1, 1])
    log.add_explanation([3.0, 20.0, 7.0], [9.0, 20.0, 7.0], label=-1)
    log.add_explanation([3.0, 20.0, 5.0], [3.0, 21.0, 5.0])
    return log


@pytest.mark.parametrize("numbers", [1, 24, 10**6])
def test_every_code_is_that_of_its_point_however_large_the_blocks_are(numbers, log, monkeypatch) -> None:
    monkeypatch.setattr(slices, "MOST_NUMBERS", numbers)
    knowledge, steps = Stand(), []
    found = take_slice(
        knowledge, log, (2, 0), [9.0, 20.0, 9.0], (5, 3), ((0.0, 1.0), (0.0, 2.0)), lambda *s: steps.append(s)
    )
    assert found.codes.shape == (3, 5)
    for i, up in enumerate(found.up.values):
        for j, across in enumerate(found.across.values):
            assert found.codes[i, j] == (up + across >= 2)
    asked = np.concatenate(knowledge.blocks)
    assert asked.shape == (15, 3)
    assert (asked[:, 1] == 20).all()
    assert steps[-1] == (15, 15)
    assert max(len(block) for block in knowledge.blocks) <= max(5, numbers // 3)
    assert found.share(Verdict.YES) == np.mean(found.codes == 1)
    assert (found.held, found.centred) == ((("b", 20.0),), False)


def test_by_default_it_goes_through_the_medians_and_a_little_past_the_points(log) -> None:
    found = take_slice(Stand(), log, (0, 2), size=(3, 3))
    assert found.base.tolist() == [2.0, 20.0, 1.0]  # the lower of two middle values
    assert found.across.values.tolist() == pytest.approx([-0.45, 4.5, 9.45])  # explanations count
    assert found.up.values.tolist() == pytest.approx([-0.35, 3.5, 7.35])
    assert found.centred


def test_a_feature_that_never_varied_still_has_a_range() -> None:
    log = QueryLog()
    log.add_label([[0.0, -3.0], [0.0, -3.0]], [1, 1])
    found = take_slice(Stand(), _wider(log), (0, 1), size=(2, 2))
    assert found.across.values.tolist() == [-1.0, 1.0]
    assert found.up.values.tolist() == [-4.5, -1.5]
    assert found.across.name == "x0"


def _wider(log: QueryLog) -> QueryLog:
    """The log with a third feature, for the stand."""
    wide = QueryLog()
    wide.add_label(np.column_stack([log.points, np.zeros(len(log))]), log.labels)
    return wide


def test_only_questions_and_explanations_in_the_plane_are_shown(log) -> None:
    found = take_slice(Stand(), log, (0, 2), [0.0, 20.0, 0.0], size=(2, 2))
    assert found.asked.tolist() == [[2.0, 0.0], [1.0, 1.0], [3.0, 7.0], [3.0, 5.0]]
    assert found.labels.tolist() == [1, 1, -1, 0]
    np.testing.assert_array_equal(found.explanations, [[np.nan] * 2, [np.nan] * 2, [9.0, 7.0], [np.nan] * 2])
    assert found.rows == 6
    entry = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert entry["asked"][2] == {"at": [3.0, 7.0], "label": -1, "explanation": [9.0, 7.0]}
    assert entry["asked"][3] == {"at": [3.0, 5.0], "label": None, "explanation": None}
    assert (entry["held"], entry["log_rows"], entry["up"]["name"]) == ({"b": 20.0}, 6, "c")
    assert sum(entry["shares"].values()) == 1


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"features": (1, 1)}, DimensionMismatch),
        ({"features": (0, 3)}, DimensionMismatch),
        ({"features": (-1, 0)}, DimensionMismatch),
        ({"size": (1, 5)}, InvalidInput),
        ({"at": [1.0, 2.0]}, DimensionMismatch),
        ({"at": [1.0, 2.0, np.nan]}, NotFinite),
    ],
)
def test_what_is_no_slice_is_refused(options, error, log) -> None:
    with pytest.raises(error):
        take_slice(Stand(), log, **({"features": (0, 1)} | options))


def test_a_picture_has_the_borders_of_the_regions_and_the_grid_agrees() -> None:
    log = QueryLog()
    log.add_label([[0.0, 0.0], [1.0, 4.0], [4.0, 1.0], [5.0, 5.0]], [-1, -1, 1, 1])
    knowledge = Knowledge(log)
    found = take_slice(knowledge, log, (0, 1), size=(21, 21))
    assert found.areas is None
    drawn = with_areas(found, knowledge)
    assert drawn.areas is not None
    for verdict, corners in drawn.areas.items():
        assert (corners >= [found.box[0][0], found.box[1][0]]).all()
        assert (corners <= [found.box[0][1], found.box[1][1]]).all()
        steps = np.roll(corners, -1, axis=0) - corners
        grid = np.stack(np.meshgrid(found.across.values, found.up.values), axis=-1)
        way = grid[..., None, :] - corners
        depth = (steps[:, 0] * way[..., 1] - steps[:, 1] * way[..., 0]).min(axis=-1)
        assert (depth[found.codes == verdict] > -1e-9).all()
        assert (depth[found.codes != verdict] < 1e-9).all()


def test_a_picture_of_robust_answers_has_the_grid_alone() -> None:
    log = QueryLog(mechanism=Mechanism("l1", robustness="l2", radius=0.1))
    log.add_label([[1.0, 1.0], [5.0, 1.0]], [-1, 1])
    log.add_explanation([[1.0, 2.0]], [[3.5, 2.0]], label=[-1])
    found = take_slice(Knowledge(log), log, (0, 1), size=(3, 3))
    assert with_areas(found, Knowledge(log)) is found


def test_an_empty_log_has_no_slices() -> None:
    with pytest.raises(InvalidInput):
        take_slice(Stand(), QueryLog(features=["a", "b"]), (0, 1))


def test_determined_counts_yes_and_no_only() -> None:
    counts = {"YES": 3, "NO": 1, "UNKNOWN": 2, "BOUNDARY": 1, "UNDECIDED": 1}
    found = Determined(counts, 5, 4, 1, True, False, proofs=7)
    assert (found.points, found.share, found.share_of("UNKNOWN")) == (8, 0.5, 0.25)
    assert json.loads(json.dumps(found.to_dict())) == {
        "points": 8,
        "counts": counts,
        "determined": 0.5,
        "oriented": True,
        "pinned_down": False,
        "proofs": 7,
        "log": {"rows": 5, "labels": 4, "explanations": 1},
    }
    assert Determined({}, 0, 0, 0, True, False).share is None
