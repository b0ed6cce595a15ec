"""Logs of which a few rows decide: the same verdicts as from all of their rows, and the false row among those that are named."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import overexplain as ox
from conftest import SOAK
from overexplain.knowledge import reader
from overexplain.knowledge.reader import Reader

UNDECIDED = ox.Verdict.UNDECIDED
TERMS: dict[str, ox.Mechanism | None] = {
    "labels": None,
    "l1": ox.Mechanism("l1"),
    "l2": ox.Mechanism("l2"),
    "linf": ox.Mechanism("linf"),
    "weighted": ox.Mechanism(ox.Weighted(ox.norm("l1"), [1.0, 2.5, 0.7])),
    "mahalanobis": ox.Mechanism(ox.Mahalanobis([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 3.0]])),
    "groups": ox.Mechanism(ox.GroupNorm([[0], [1, 2]])),
    "polyhedral": ox.Mechanism(ox.Polyhedral(np.vstack([np.eye(3), -np.eye(3)]))),
    "exact": ox.Mechanism("l1", tolerance=0.0),
    "rounded l1": ox.Mechanism("l1", tolerance=0.3),
    "rounded l2": ox.Mechanism("l2", tolerance=0.2),
    "slack": ox.Mechanism("l1", slack=0.2),
    "slack and tolerance": ox.Mechanism("l2", slack=0.1, tolerance=0.05),
    "valid": ox.Mechanism("l2", slack=None),
    "robust, one norm": ox.Mechanism("l1", robustness="l1", radius=0.3),
    "robust, two norms": ox.Mechanism("l1", robustness="l2", radius=0.3),
    "secret radius": ox.Mechanism("l1", robustness="l1", radius=None),
}
PLAIN = ("labels", "l1", "l2", "linf", "weighted", "exact")
"""Kinds of which all that the log leaves open is found to be."""
SLOW = ("mahalanobis", "groups", "polyhedral")
"""Kinds whose models are held in rationals alone: few rows need not show one."""


class Made:
    """A log of one kind, or of several, and the plane that gave it: whole numbers, half of the logs with a one-hot group."""

    def __init__(self, seed: int, kinds: tuple[str, ...], rows: int, *, labelled: float = 1.0, p: int = 3) -> None:
        self.rng = np.random.default_rng(seed)
        X = self.rng.integers(-9, 10, (rows, p)).astype(float)
        if seed % 2:
            X[:, :2] = np.eye(2)[self.rng.integers(0, 2, rows)]
        normal = self.rng.choice([-1.0, 1.0], p) * self.rng.permutation([4.0, *(1.0,) * (p - 2), 0.0])
        self.plane = ox.Hyperplane(normal, float(np.median(X @ normal)) + 0.5)
        self.X, self.Y = X, self.plane.labels(X)
        self.log = ox.QueryLog()
        for kind, own in zip(kinds, np.array_split(self.rng.permutation(rows), len(kinds)), strict=True):
            self._give(TERMS[kind], own, labelled)

    def _give(self, terms: ox.Mechanism | None, own: np.ndarray, labelled: float) -> None:
        if terms is None:
            self.log.add_label(self.X[own], self.Y[own])
            return
        radius = 0.25 if terms.radius is None else terms.radius
        service = ox.ModelOracle(self.plane, ox.Mechanism(terms.distance, terms.robustness, radius))
        answers, x = np.array(service.explain(self.X[own])), self.X[own]
        if terms.tolerance:
            off = self.rng.standard_normal(answers.shape)
            answers += off * (0.9 * terms.tolerance * self.rng.random(len(own)) / terms.distance(off))[:, None]
        if terms.slack is None or terms.slack:
            answers = x + (answers - x) * (1 + (terms.slack or 1.0) * self.rng.uniform(0.01, 0.9, (len(own), 1)))
        labels = [int(y) if self.rng.random() < labelled else None for y in self.Y[own]]
        self.log.add_explanation(x, answers, label=labels, mechanism=terms)

    def asked(self, count: int) -> np.ndarray:
        """Logged points, others, and some that are very near the plane."""
        a, b = np.asarray(self.plane.normal), float(self.plane.offset)
        found = self.X[self.rng.integers(0, len(self.X), count)]
        found = found + self.rng.standard_normal(found.shape) * self.rng.choice([0.0, 0.5, 3.0], (count, 1))
        near = self.rng.random(count) < 0.34
        shift = 10.0 ** self.rng.uniform(-12, -2, count) * self.rng.choice([-1, 1], count) - (found @ a - b)
        return np.where(near[:, None], found + np.outer(shift / (a @ a), a), found)


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Sets from how many rows on logs are long, and how many rows of them are read at first."""

    def set_limits(long: int, rows: int) -> None:
        monkeypatch.setattr(reader, "LONG", long)
        monkeypatch.setattr(reader, "FIRST", rows)
        monkeypatch.setattr(reader, "EACH", 1)

    return set_limits


def read_by(knowledge: ox.Knowledge) -> Reader:
    found = knowledge._known.reader
    assert found is not None
    return found


KINDS = [*((kind,) for kind in TERMS), ("labels", "l1", "rounded l2"), ("linf", "valid", "slack", "l2")]


@pytest.mark.parametrize("kinds", KINDS, ids=" and ".join)
def test_a_few_rows_decide_as_all_of_them_do(kinds: tuple[str, ...], first: Callable[[int, int], None]) -> None:
    fewer = asked = lost = 0
    for seed in range((1 if kinds[0] in SLOW else 4) * (SOAK or 1)):
        made = Made(seed, kinds, 30 if kinds[0] in (*SLOW, "slack") else 60)
        X = made.asked(20)
        whole = ox.Knowledge(made.log, threads=1)
        first(20, 6)
        part = ox.Knowledge(made.log, threads=1)
        assert part.is_consistent or not whole.is_consistent or kinds[0] in SLOW
        found, expected = part.certify(X), whole.certify(X)
        first(10_000, 512)
        differs = (found.codes != expected.codes) & (found.codes != UNDECIDED) & (expected.codes != UNDECIDED)
        assert not differs.any(), (seed, X[differs])
        lost += np.count_nonzero((found.codes == UNDECIDED) & (expected.codes != UNDECIDED))
        asked += len(X)
        fewer += len(read_by(part).working.rows) < len(made.log)
        for i in range(0, len(X), 7):
            if found.codes[i] != UNDECIDED:
                found.proof(i).verify(made.log)
    assert lost <= (0 if set(kinds) <= set(PLAIN) else asked // 20)
    assert fewer


@pytest.mark.parametrize("kind", ["l1", "l2", "rounded l1"])
@pytest.mark.parametrize("labelled", [0.0, 0.5])
def test_rows_without_labels(kind: str, labelled: float, first: Callable[[int, int], None]) -> None:
    for seed in range(3):
        made = Made(seed, (kind,), 16, labelled=labelled)
        X = made.asked(10)
        expected = ox.Knowledge(made.log, threads=1).certify(X).codes
        first(20, 6)
        found = ox.Knowledge(made.log, threads=1).certify(X).codes
        first(10_000, 512)
        assert ((found == expected) | (found == UNDECIDED) | (expected == UNDECIDED)).all(), seed


@pytest.mark.parametrize("kind", ["labels", "l1", "rounded l2", "robust, two norms", "secret radius"])
def test_reading_on_is_reading_at_once(kind: str, first: Callable[[int, int], None]) -> None:
    first(20, 6)
    for seed in range(3):
        made = Made(seed, (kind,), 80)
        X, log = made.asked(20), made.log
        start = ox.QueryLog(mechanism=TERMS[kind])
        grown = ox.Knowledge(start, threads=1)
        for rows in np.split(np.arange(80), [3, 20, 21, 60]):
            if kind == "labels":
                grown.add(log.points[rows], log.labels[rows])
            else:
                grown.add(log.points[rows], log.labels[rows], log.explanations[rows])
            grown.certify(X[:3])
        found, expected = grown.certify(X).codes, ox.Knowledge(log, threads=1).certify(X).codes
        assert ((found == expected) | (found == UNDECIDED) | (expected == UNDECIDED)).all(), seed
        assert len(grown.log) == 80
        assert len(read_by(grown).working.rows) < 80
        assert grown.prepared().certify(X).codes.tolist() == grown.prepared().certify(X).codes.tolist()


def test_what_is_added_to_a_long_log_is_all_that_is_read(
    first: Callable[[int, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    first(20, 6)
    made = Made(2, ("l1",), 300)
    log = ox.QueryLog(mechanism=TERMS["l1"])
    log.add_explanation(made.log.points[:290], made.log.explanations[:290], label=made.log.labels[:290])
    knowledge = ox.Knowledge(log, threads=1)
    read: list[tuple[int, int]] = []
    held = reader.AllRows.held
    monkeypatch.setattr(
        reader.AllRows,
        "held",
        lambda self, models, low, high: read.append((low, high)) or held(self, models, low, high),
    )
    knowledge.add(made.log.points[290:], made.log.labels[290:], made.log.explanations[290:])
    assert read == [(290, 300)]
    assert knowledge.is_consistent


# Contradictions.

PLACES = {"first": 0, "middle": 10_000, "last": 19_999}


def spoilt(made: Made, kind: str, row: int, by: float | None) -> ox.QueryLog:
    """The log in order with one false row: its label is the other one, or its answer is off by a share of its step."""
    answers, labels = np.full_like(made.X, np.nan), made.Y.copy()
    log, terms = ox.QueryLog(mechanism=TERMS[kind]), TERMS[kind]
    if terms is not None:
        answers = np.array(ox.ModelOracle(made.plane, terms).explain(made.X))
    if by is None:
        labels[row] = -labels[row]
    else:
        answers[row] += by * (answers[row] - made.X[row])
    if terms is None:
        log.add_label(made.X, labels)
    else:
        log.add_explanation(made.X, answers, label=labels)
    return log


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("kind", ["labels", "l1", "linf", "l2"])
def test_a_false_row_of_a_long_log_is_named(kind: str, where: str) -> None:
    made, row = Made(0, ("labels",), 20_000, p=6), PLACES[where]
    for by in (None,) if kind == "labels" else (None, 1e-3, 1e-6, 1e-9):
        log = spoilt(made, kind, row, by)
        with pytest.raises(ox.InconsistentLog) as caught:
            ox.Knowledge(log, threads=1)
        named = caught.value.rows
        assert row in named, by
        assert len(named) <= (2 if kind == "l2" or (kind != "labels" and by is None) else 8)
        caught.value.proof.verify(log)
        if by == 1e-9 and kind != "l2":
            continue  # too little for floats to find a model of the others each time: the message then says so
        assert "at most" not in str(caught.value)
        for left_out in named[:3]:
            rows = [other for other in named if other != left_out]
            rest = ox.QueryLog(mechanism=TERMS[kind])
            if kind == "labels":
                rest.add_label(log.points[rows], log.labels[rows])
            else:
                rest.add_explanation(log.points[rows], log.explanations[rows], label=log.labels[rows])
            assert ox.Knowledge(rest, threads=1).is_consistent


def test_no_honest_long_log_is_contradictory() -> None:
    made = Made(1, ("l1", "l2", "linf", "labels", "rounded l2"), 15_000, p=3)
    knowledge = ox.Knowledge(made.log, threads=1)
    assert knowledge.is_consistent
    assert len(read_by(knowledge).working.rows) < 2000
    X = made.asked(50)
    codes = knowledge.certify(X).codes
    sure = np.abs(codes) == 1
    assert sure.sum() > 25
    assert (made.plane.labels(X[sure]) == codes[sure]).all()


def test_an_addition_that_contradicts_a_long_log_changes_nothing(first: Callable[[int, int], None]) -> None:
    first(20, 6)
    made = Made(0, ("l2",), 200)
    knowledge, x = ox.Knowledge(made.log, threads=1), made.X[:1]
    with pytest.raises(ox.InconsistentLog) as caught:
        knowledge.add(x, -made.plane.labels(x))
    assert 200 in caught.value.rows
    assert len(knowledge.log) == 200
    assert knowledge.certify(x).codes.tolist() == made.plane.labels(x).tolist()
    knowledge.add(x, made.plane.labels(x))
    assert len(knowledge.log) == 201


def test_rows_that_are_not_shown_to_be_needed_are_at_most_those(monkeypatch: pytest.MonkeyPatch) -> None:
    log = ox.QueryLog()
    log.add_label([[0.0], [1.0], [2.0]], [1, -1, 1])
    with pytest.raises(ox.InconsistentLog, match="log: rows 0, 1, 2 contradict"):
        ox.Knowledge(log)
    monkeypatch.setattr("overexplain.knowledge.prover.contradictions._is_consistent", lambda *_: False)
    with pytest.raises(ox.InconsistentLog, match="log: at most these rows 0, 1, 2 contradict"):
        ox.Knowledge(log)
