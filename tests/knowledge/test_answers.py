"""A log's rows in exact numbers: under which terms each is read, and that only what is needed is converted."""

from __future__ import annotations

from fractions import Fraction as F
from pathlib import Path

import numpy as np
import pytest

import overexplain as ox
from overexplain.knowledge import answers
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.checker import FLOAT64_ANSWER, Answer


def one(mechanism: ox.Mechanism | None, tolerance: float | None = None) -> Answer:
    log = ox.QueryLog()
    log.add_explanation([0.5, 0.0], [1.5, 0.0], label=-1, mechanism=mechanism)
    return answers_of(log, tolerance)[0]


def test_a_row_is_read_under_its_own_terms() -> None:
    half, image = (F(1, 2), F(0)), (F(3, 2), F(0))
    assert one(None) == Answer(half, -1)
    assert one(ox.Mechanism("l1")) == Answer(half, -1, image, "l1", None, F(0))
    assert one(ox.Mechanism("l1", tolerance=0.1, slack=0.5)) == Answer(half, -1, image, "l1", F(0.1), F(1, 2))
    assert one(ox.Mechanism("l1", slack=None)) == Answer(half, -1, image, "l1", None, None)
    assert one(ox.Mechanism(None, tolerance=0.0)) == Answer(half, -1, image, None, F(0), F(0))
    assert one(ox.Mechanism("l1", tolerance=0.1), 0.0) == Answer(half, -1, image, "l1", F(0), F(0))


def test_a_robust_row_is_read_under_its_own_terms() -> None:
    half, image = (F(1, 2), F(0)), (F(3, 2), F(0))
    robust = Answer(half, -1, image, "l1", None, F(0), robustness="l2", radius=F(0.1))
    assert one(ox.Mechanism("l1", "l2", 0.1)) == robust
    assert robust.reach == ("l2", F(0.1))
    secret = one(ox.Mechanism("l1", "l2", None))
    assert secret == Answer(half, -1, image, "l1", None, F(0), robustness="l2", radius=None)
    assert secret.reach == ({"norm": "secret", "distance": "l1", "robustness": "l2"}, 1)
    unknown = one(ox.Mechanism(None, radius=None, tolerance=0.0))
    assert unknown.reach == ({"norm": "secret", "distance": None, "robustness": None}, 1)
    plain = one(ox.Mechanism("l1", "l2", 0.0))
    assert (plain.is_plain, plain.robustness, plain.reach) == (True, None, None)


def test_the_rounding_of_a_badly_conditioned_norm_is_its_own() -> None:
    norm = ox.Mahalanobis([[1.0, 0.0], [0.0, 1e9]])
    assert one(ox.Mechanism(norm)).rounding == F(norm.answer_rounding) > FLOAT64_ANSWER
    assert one(ox.Mechanism("l2")).rounding == one(ox.Mechanism("l2", norm, 0.0)).rounding == FLOAT64_ANSWER
    assert one(ox.Mechanism("l2", norm, 0.5)).rounding == one(ox.Mechanism(norm, "l2", 0.5)).rounding > FLOAT64_ANSWER
    far = Answer((F(0), F(0)), -1, (F(0), F(1)), norm.spec, rounding=F(norm.answer_rounding))
    from overexplain.knowledge.enclosures import no_evidence
    from overexplain.knowledge.promises import promise

    tolerance = promise(far, no_evidence).tolerance
    assert float(tolerance) == pytest.approx(norm.answer_rounding * norm([0.0, 1.0]), rel=1e-9)


class Own(ox.Norm):
    dual = face = None

    def __call__(self, x: object) -> float:
        return 2 * float(np.abs(x).sum())


@pytest.mark.parametrize(
    "terms",
    [
        ox.Mechanism(Own()),
        ox.Mechanism(Own(), tolerance=0.0),
        ox.Mechanism("l1", Own(), 0.1),
        ox.Mechanism("l1", Own(), None),
        ox.Mechanism(Own(), "l2", 0.1),
    ],
)
def test_a_norm_of_the_users_own_is_refused_by_name(terms: ox.Mechanism) -> None:
    with pytest.raises(ox.UnsupportedNorm, match="Own is a norm of your own"):
        one(terms)
    log = ox.QueryLog(mechanism=terms)
    log.add_explanation([0.0, 0.0], [1.0, 0.0], label=-1)
    with pytest.raises(ox.UnsupportedNorm, match="Own is a norm of your own"):
        ox.Knowledge(log)


@pytest.mark.parametrize("tolerance", [-1.0, float("nan"), float("inf")])
def test_a_tolerance_is_a_number(tolerance: float) -> None:
    with pytest.raises(ox.InvalidInput, match="a number ≥ 0"):
        answers_of(ox.QueryLog(), tolerance)


def test_it_is_a_mapping_of_the_rows_there_are() -> None:
    log = ox.QueryLog()
    log.add_label([[0.0], [1.0]], [-1, 1])
    found = answers_of(log)
    assert (len(found), list(found), found[1].label) == (2, [0, 1], 1)
    assert 1 in found
    for row in (-1, 2, True, 0.0, "0", None):
        assert row not in found
        with pytest.raises(KeyError):
            found[row]
    log.add_label([2.0], 1)
    assert 2 in found


def test_only_the_rows_asked_for_are_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    log = ox.QueryLog()
    log.add_label(np.arange(200_000.0).reshape(-1, 2), np.ones(100_000))
    converted = []
    original = answers.exact
    monkeypatch.setattr(answers, "exact", lambda x: (converted.append(1), original(x))[1])
    found = answers_of(log)
    for row in (5, 99_999, 5, 5):
        assert found[row].point == (F(2 * row), F(2 * row + 1))
    assert len(converted) == 2


def test_an_explanation_without_terms_of_its_own_counts_for_its_label(tmp_path: Path) -> None:
    """A label's terms are those of the log, an explanation's are its own: a file may leave them out of a row."""
    file, domain = tmp_path / "log.jsonl", ox.Domain(2, integers=[0])
    log = ox.QueryLog(mechanism=ox.Mechanism("l1", domain=domain))
    log.add_explanation([0.0, 0.0], [1.0, 0.0], label=-1)
    log.add_label([0.0, 1.0], -1)
    log.save(file)
    file.write_text(file.read_text(encoding="utf-8").replace(', "m": 0', ""), encoding="utf-8")
    read = ox.QueryLog.load(file)
    assert read.mechanism == log.mechanism
    silent, label = answers_of(read).values()
    assert (silent.explanation, silent.is_used, silent.is_confined, label.is_confined) == (None, False, False, True)
