"""Numbers that are never rounded to a claim, and services in plain words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overexplain.auditing.names import distance_in_words, service_in_words
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import GroupNorm, Mahalanobis, Polyhedral, Weighted, l1, l2, linf, norm
from overexplain.report.words import counted, percent, small


@given(st.floats(0, 1))
def test_0_and_100_percent_only_when_exact(share) -> None:
    text = percent(share)
    assert (text == "0 %") == (share == 0)
    assert (text == "100 %") == (share == 1)
    assert len(text) <= 5


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (1e-9, "<1 %"),
        (0.0099, "<1 %"),
        (0.01, "1 %"),
        (0.619, "62 %"),
        (0.99, "99 %"),
        (0.9949, ">99 %"),
        (1 - 1e-16, ">99 %"),
    ],
)
def test_percent(share, text) -> None:
    assert percent(share) == text


def test_counted() -> None:
    assert [counted(n, "answer") for n in (0, 1, 2, 1500)] == ["0 answers", "1 answer", "2 answers", "1,500 answers"]


def test_small_is_0_only_when_exact() -> None:
    assert (small(0.0), small(5e-324), small(None)) == ("0", "5e-324", "-")


@pytest.mark.parametrize(
    ("distance", "words"),
    [
        (l1, "sum of changes (l1)"),
        (l2, "straight line (l2)"),
        (linf, "largest change (linf)"),
        (norm("lp:1.5"), "between l1 and l2 (lp:1.5)"),
        (norm("lp:3"), "between l2 and linf (lp:3.0)"),
        (Weighted(l1, [1.0, 2.0]), "weighted sum of changes (l1)"),
        (Mahalanobis([[2.0, 0.0], [0.0, 1.0]]), "correlated changes (mahalanobis)"),
        (GroupNorm(((0, 1), (2,))), "sum over groups (group)"),
        (GroupNorm(((0, 1), (2,))).dual, "largest group (group-max)"),
        (Polyhedral([[1, 0], [-1, 0], [0, 1], [0, -1]]), "polyhedral"),
        (None, "unknown distance"),
    ],
)
def test_distance_in_words(distance, words) -> None:
    assert distance_in_words(distance) == words


def test_service_in_words() -> None:
    assert service_in_words(Mechanism(l1)) == "sum of changes (l1)"
    assert service_in_words(Mechanism(linf, l1, 0.5)) == "largest change (linf), robust l1 0.5"
    assert service_in_words(Mechanism(l2, l2, None)) == "straight line (l2), secret radius"
