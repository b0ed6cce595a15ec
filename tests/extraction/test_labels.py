"""Labels only: how many are needed, where they are asked, and what happens if the service contradicts itself."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

import overexplain as ox
from overexplain.errors import BrokenPromise, BudgetExhausted, ExtractionFailed, InvalidInput
from overexplain.extraction.box import Ball, Box
from overexplain.extraction.labels.floors import information_bound, predicted_labels
from overexplain.extraction.labels.labels import Rough, extract_by_labels
from overexplain.extraction.labels.lowd_meek import extract_by_lowd_meek
from overexplain.extraction.session import Session


class Labels:
    """A service that only labels; `flip` of its answers are wrong."""

    mechanism = None

    def __init__(self, plane: ox.Hyperplane, flip: float = 0.0, rng: np.random.Generator | None = None) -> None:
        self.plane, self.dimension, self.flip, self.rng = plane, plane.dimension, flip, rng
        self.points: list[np.ndarray] = []

    def classify(self, x: np.ndarray) -> int:
        self.points.append(np.array(x))
        wrong = self.rng is not None and self.rng.random() < self.flip
        return -self.plane.label(x) if wrong else self.plane.label(x)


def gaussian(p: int, rng: np.random.Generator) -> ox.Hyperplane:
    normal = rng.standard_normal(p)
    return ox.Hyperplane(normal, 0.3 * float(np.linalg.norm(normal)) * float(rng.standard_normal()))


def everything(p: int) -> Box:
    return Box.of(None, p)


def mean_labels(p: int, accuracy: float, mode: str | None, models: int) -> float:
    counts = []
    for seed in range(models):
        rng = np.random.default_rng([p, seed])
        service = Labels(gaussian(p, rng))
        where = everything(p) if mode == "far" else Ball(np.zeros(p), 2 * math.sqrt(p))
        found = extract_by_labels(Session(service, record=False), accuracy, np.zeros(p), where, rng, mode)
        assert found.hyperplane.angle_to(service.plane) <= found.error_bound <= accuracy
        assert len(service.points) == found.spent.labels
        counts.append(found.spent.labels)
    return float(np.mean(counts))


@pytest.mark.parametrize(
    ("p", "mode", "models", "most"),
    [(10, None, 20, 1.25), (30, None, 20, 1.15), (100, None, 3, 1.10), (10, "far", 20, 1.10), (30, "far", 20, 1.08)]
    + [(100, "far", 3, 1.08)],
)
def test_labels_against_the_information_bound(p: int, mode: str | None, models: int, most: float) -> None:
    assert mean_labels(p, 1e-6, mode, models) <= most * information_bound(p, 1e-6)


@pytest.mark.parametrize("p", [10, 30])
def test_predicted_labels_are_about_right(p: int) -> None:
    for accuracy in (1e-3, 1e-9):
        assert mean_labels(p, accuracy, None, 4) == pytest.approx(predicted_labels(p, accuracy), rel=0.05)


@pytest.mark.parametrize("angle", [0.3, 1e-2, 1e-4, 1e-7])
@pytest.mark.parametrize("mode", ["anchor", "lift"])
def test_a_guess_saves_labels(angle: float, mode: str) -> None:
    p, accuracy, counts = 20, 1e-6, []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        plane = gaussian(p, rng)
        normal = plane.normal / np.linalg.norm(plane.normal)
        aside = rng.standard_normal(p)
        aside -= (aside @ normal) * normal
        guess = math.cos(angle) * normal + math.sin(angle) * aside / np.linalg.norm(aside)
        session, where = Session(Labels(plane)), Ball(np.zeros(p), 2 * math.sqrt(p))
        found = extract_by_labels(session, accuracy, np.zeros(p), where, rng, mode, rough=Rough(guess, angle))
        assert plane.angle_to(found.hyperplane) <= found.error_bound <= accuracy
        counts.append(found.spent.labels)
    law = p * max(0.0, math.log2(angle / accuracy)) + 2 * p + math.log2(200 * math.sqrt(p) / accuracy)
    assert np.mean(counts) <= 1.1 * law
    assert np.mean(counts) == pytest.approx(predicted_labels(p, accuracy, angle), rel=0.1)


def test_a_known_pair_is_used() -> None:
    rng = np.random.default_rng(3)
    plane = gaussian(8, rng)
    normal = plane.normal / np.linalg.norm(plane.normal)
    on_plane = normal * plane.offset / np.linalg.norm(plane.normal)
    pair = (on_plane - 1e-3 * normal, on_plane + 2e-3 * normal)
    for mode in ("anchor", "lift", "far"):
        service = Labels(plane)
        found = extract_by_labels(Session(service), 1e-6, np.zeros(8), everything(8), rng, mode, pair)
        assert found.hyperplane.angle_to(plane) <= found.error_bound <= 1e-6
    guess = Rough(normal + 0.01 * rng.standard_normal(8), 0.03)
    found = extract_by_labels(Session(Labels(plane)), 1e-6, np.zeros(8), everything(8), rng, "anchor", pair, guess)
    assert found.spent.labels < 0.85 * predicted_labels(8, 1e-6)


def test_what_a_result_says() -> None:
    plane = ox.Hyperplane([3.0, -4.0, 0.0], 10.0)
    session = Session(Labels(plane))
    found = extract_by_labels(session, 1e-6, np.zeros(3), everything(3), np.random.default_rng(0), "far")
    assert found.method == "labels only: quantile-coded threshold bisection (far)"
    assert found.oriented
    assert not found.exact
    assert found.radius is None
    assert found.unidentified.shape == (0, 3)
    assert np.linalg.norm(found.hyperplane.normal) == pytest.approx(1.0)
    assert any("offset" in note and "half" in note for note in found.assumptions)
    assert len(found.log) == found.spent.labels == found.spent.requests


def test_too_fine_an_accuracy_is_answered_honestly() -> None:
    for mode in ("anchor", "lift", "far"):
        service = Labels(gaussian(6, np.random.default_rng(1)))
        found = extract_by_labels(
            Session(service, 3000), 1e-17, np.zeros(6), everything(6), np.random.default_rng(2), mode
        )
        assert service.plane.angle_to(found.hyperplane) <= found.error_bound
        assert 1e-17 < found.error_bound < 1e-10
        assert any("float64 has too few digits" in note for note in found.assumptions)


def test_one_feature() -> None:
    for normal, offset in ((2.0, 3.0), (-0.5, 1e3), (1.0, 0.0)):
        plane = ox.Hyperplane([normal], offset)
        for where in (everything(1), Box.of(([-1e4], [1e4]), 1)):
            found = extract_by_labels(Session(Labels(plane)), 1e-9, np.zeros(1), where, np.random.default_rng(0))
            assert found.hyperplane.angle_to(plane) == 0 < found.error_bound
            assert abs(found.hyperplane.offset - offset / abs(normal)) <= found.offset_bound <= 1e-4


def test_a_guess_along_the_plane_is_replaced() -> None:
    plane = ox.Hyperplane([1.0, 1e-9, 0.0], 0.0)
    pair = (np.array([-1e-12, -1.0, 0.0]), np.array([1e-12, 1.0, 0.5]))
    for mode in ("anchor", "lift", "far"):
        found = extract_by_labels(
            Session(Labels(plane)), 1e-6, np.zeros(3), everything(3), np.random.default_rng(0), mode, pair
        )
        assert found.hyperplane.angle_to(plane) <= found.error_bound <= 1e-6


def test_no_room_is_answered_honestly() -> None:
    """The plane touches the box in a corner: nothing can be asked along it."""
    for seed in range(5):
        plane, where = ox.Hyperplane([1.0, 1.0], 2.0), Box.of((-1.0, 1.0), 2)
        pair = (np.array([0.9, 0.9]), np.array([1.0, 1.0]))
        session = Session(Labels(plane), 500)
        found = extract_by_labels(session, 1e-6, np.zeros(2), where, np.random.default_rng(seed), None, pair)
        assert found.hyperplane.angle_to(plane) <= found.error_bound


def test_budget() -> None:
    plane = gaussian(5, np.random.default_rng(0))
    needed = extract_by_labels(
        Session(Labels(plane)), 1e-4, np.zeros(5), everything(5), np.random.default_rng(1)
    ).spent.labels
    for budget in (0, 1, 5, needed - 1):
        service = Labels(plane)
        session = Session(service, budget)
        with pytest.raises(BudgetExhausted):
            extract_by_labels(session, 1e-4, np.zeros(5), everything(5), np.random.default_rng(1))
        assert len(service.points) == budget == len(session.log)
    extract_by_labels(Session(Labels(plane), needed), 1e-4, np.zeros(5), everything(5), np.random.default_rng(1))


def test_bad_requests() -> None:
    session = Session(Labels(ox.Hyperplane([1.0, 1.0], 0.5)))
    with pytest.raises(InvalidInput, match="mode"):
        extract_by_labels(session, 1e-3, np.zeros(2), everything(2), np.random.default_rng(0), "near")
    with pytest.raises(InvalidInput, match="bounds"):
        extract_by_labels(session, 1e-3, np.zeros(2), Ball(np.zeros(2), 1.0), np.random.default_rng(0), "far")


@pytest.mark.parametrize(
    "where", [everything(4), Ball(np.zeros(4), 3.0), Box.of((-1.0, 2.0), 4)], ids=["all", "ball", "box"]
)
def test_a_constant_service_is_reported(where: Box | Ball) -> None:
    for answer in (1e-9, -1e-9):
        session = Session(Labels(ox.Hyperplane([0.0, answer, 0.0, 0.0], -1e6 * abs(answer))), 1000)
        if where.is_everything:
            session._oracle.plane = ox.Hyperplane([0.0, 1e-9, 0.0, 0.0], -1e6)
        for extract in (extract_by_labels, extract_by_lowd_meek):
            with pytest.raises(ExtractionFailed, match="labels were Yes"):
                extract(session, 1e-3, np.zeros(4), where, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("rate", "seeds", "false_share"), [(0.01, 30, 0.15), (0.05, 12, 0.15), (0.2, 12, 0.05), (0.5, 16, 0.15)]
)
def test_flipped_labels_are_reported(rate: float, seeds: int, false_share: float) -> None:
    """Not always: a flip among the last few labels of a coordinate shows in no other label.

    Measured on other seeds: with flips of 1 % 15 of 300 runs, with 5 % 5 of 120 runs end with a bound that is not true; a coin
    passes the 3 or 5 confirmations one time in 8 or 32. The limits leave room for small samples.
    """
    outcomes: Counter[str] = Counter()
    for mode in ("anchor", "lift", "far"):
        for seed in range(seeds):
            rng = np.random.default_rng([seed, 9])
            service = Labels(gaussian(6, rng), rate, rng)
            where = everything(6) if mode == "far" else Ball(np.zeros(6), 5.0)
            try:
                found = extract_by_labels(Session(service, 2000), 1e-5, np.zeros(6), where, rng, mode)
            except (BrokenPromise, ExtractionFailed) as error:
                outcomes["reported"] += 1
                if isinstance(error, BrokenPromise):
                    assert error.fact == "OneHyperplane"
                    assert 0 <= error.row < len(service.points)
            else:
                outcomes["true" if found.hyperplane.angle_to(service.plane) <= found.error_bound else "false"] += 1
    assert outcomes["false"] <= false_share * 3 * seeds
    assert outcomes["reported"] >= (0.4 if rate == 0.01 else 1 - false_share) * 3 * seeds  # at 1 % a third sees no flip


@pytest.mark.parametrize("p", [1, 2, 10, 30])
@pytest.mark.parametrize("bounded", [False, True])
def test_lowd_meek(p: int, bounded: bool) -> None:
    for seed in range(5):
        rng = np.random.default_rng([p, seed])
        service = Labels(gaussian(p, rng))
        where = [everything(p), Ball(np.zeros(p), 2 * math.sqrt(p)), Box.of((-3.0, 2.5), p)][bounded * (1 + seed % 2)]
        found = extract_by_lowd_meek(Session(service), 1e-4, np.zeros(p), where, rng)
        assert found.hyperplane.angle_to(service.plane) < 3e-4
        assert abs(found.hyperplane.offset - service.plane.offset / np.linalg.norm(service.plane.normal)) < 2e-3
        assert found.error_bound is None
        assert all(where.contains(x) for x in service.points)


def test_lowd_meek_with_zeros_and_a_given_pair() -> None:
    plane = ox.Hyperplane([0.0, 2.0, 0.0, -1.0], 0.5)
    pair = (np.array([9.0, -1.0, 5.0, 3.0]), np.array([-9.0, 4.0, 1.0, 0.0]))
    found = extract_by_lowd_meek(
        Session(Labels(plane)), 1e-5, np.zeros(4), everything(4), np.random.default_rng(0), pair
    )
    assert found.hyperplane.angle_to(plane) < 1e-5
