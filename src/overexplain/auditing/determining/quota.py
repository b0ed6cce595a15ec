"""How many answers may be given before more than a wanted share of decisions is determined."""

from __future__ import annotations

from overexplain.auditing.audit_report import Curve, Quota
from overexplain.errors import InvalidInput


def quota(curve: Curve, target: float, adaptive: int | None) -> Quota:
    """The largest number of answers looked at up to which no order can have gone over the target; 0 if the first one may have.

    What a limit left unsettled counts as determined: where only that goes over the target, the quota `is_unsettled`. Between two
    numbers that were looked at only the smaller is claimed. adaptive: the answers that give everything away to someone who chooses
    the questions; no quota for ordinary cases protects against that.
    """
    if not 0 < target < 1:
        raise InvalidInput(f"target is a share between 0 and 1, got {target!r}")
    within = 0
    while within < len(curve.answers) and curve.ceiling[within] <= target:
        within += 1
    return Quota(
        service=curve.service,
        target=float(target),
        answers=curve.answers[within - 1] if within else 0,
        is_limit=within == len(curve.answers),
        highest=curve.highest[within - 1] if within else 0.0,
        beyond=curve.highest[within] if within < len(curve.answers) else None,
        orders=curve.orders,
        adaptive=adaptive,
    )


def possible_quota(quota: Quota, curve: Curve | None) -> int:
    """The largest number of answers that may keep every order at or under the target; `quota.answers` are sure to."""
    if curve is None or not quota.is_unsettled:
        return quota.answers
    within = sum(share <= quota.target for share in curve.highest)  # shares rise
    return curve.answers[within - 1] if within else 0
