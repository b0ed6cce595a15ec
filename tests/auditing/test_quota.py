"""A quota is the largest number that was looked at before any order goes over the target."""

from __future__ import annotations

from dataclasses import replace

import pytest

from overexplain.auditing.audit_report import Curve
from overexplain.auditing.determining.quota import quota
from overexplain.errors import InvalidInput

NUMBERS = (1, 5, 10, 30)
CURVE = Curve(
    service="s2", population="all", answers=NUMBERS, median=(0.0, 0.1, 0.4, 1.0), low=(0.0, 0.0, 0.3, 1.0),
    high=(0.0, 0.2, 0.5, 1.0), highest=(0.05, 0.25, 0.5, 1.0), first=(0.0, 0.1, 0.4, 1.0), orders=20, judged=100,
    askable=400, known_at=30, wrong=0, undecided=0.0, terms_broken=0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("target", "answers", "highest", "beyond"),
    [(0.6, 10, 0.5, 1.0), (0.5, 10, 0.5, 1.0), (0.49, 5, 0.25, 0.5), (0.05, 1, 0.05, 0.25), (0.01, 0, 0.0, 0.05)],
)
def test_the_highest_order_decides(target, answers, highest, beyond) -> None:
    found = quota(CURVE, target, adaptive=30)
    assert (found.answers, found.highest, found.beyond, found.is_limit) == (answers, highest, beyond, False)
    assert (found.service, found.target, found.orders, found.adaptive) == ("s2", target, 20, 30)


def test_a_curve_that_never_goes_over_has_no_quota_beyond_what_was_tried() -> None:
    low = replace(CURVE, highest=(0.0, 0.0, 0.1, 0.2))
    found = quota(low, 0.6, adaptive=None)
    assert (found.answers, found.is_limit, found.beyond, found.highest) == (30, True, None, 0.2)


def test_what_comes_after_the_first_excess_does_not_count() -> None:
    odd = replace(CURVE, highest=(0.0, 0.7, 0.1, 0.1))
    assert quota(odd, 0.6, adaptive=None).answers == 1


@pytest.mark.parametrize("target", [0.0, 1.0, -1.0, 60, float("nan")])
def test_a_target_is_a_share(target) -> None:
    with pytest.raises(InvalidInput, match="target is a share between 0 and 1"):
        quota(CURVE, target, adaptive=None)
