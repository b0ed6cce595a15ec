"""Numbers and services in words that fit a table: plain words first, the symbol in brackets."""

from __future__ import annotations

import math

from overexplain.auditing.determined import RobustUse
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import GroupMax, GroupNorm, Lp, Mahalanobis, Norm, Weighted

_LP = {1.0: "sum of changes (l1)", 2.0: "straight line (l2)", math.inf: "largest change (linf)"}


def percent(share: float) -> str:
    """A share as whole percent; 0 % and 100 % only when exact.

    >>> percent(0.0), percent(0.004), percent(0.62), percent(0.999), percent(1.0)
    ('0 %', '<1 %', '62 %', '>99 %', '100 %')
    """
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    if share < 0.01:
        return "<1 %"
    return ">99 %" if share > 0.99 else f"{100 * share:.0f} %"


def counted(number: int, noun: str) -> str:
    """A number with its noun: '1 answer', '2 answers', '1,500 answers'."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def small(number: float | None, digits: int = 0) -> str:
    """A small number in short scientific form; '0' only when exact, '-' for None.

    >>> small(8.4e-17), small(0.0), small(None), small(0.000123456, 2)
    ('8e-17', '0', '-', '1.23e-04')
    """
    if number is None:
        return "-"
    return f"{number:.{digits}e}" if number else "0"


def distance_in_words(norm: Norm | None) -> str:
    """A distance for people: 'sum of changes (l1)'.

    >>> from overexplain.geometry.norms import norm
    >>> distance_in_words(norm("linf")), distance_in_words(norm("lp:1.5"))
    ('largest change (linf)', 'between l1 and l2 (lp:1.5)')
    """
    match norm:
        case None:
            return "unknown distance"
        case Lp():
            between = "l1 and l2" if norm.q < 2 else "l2 and linf"
            return _LP.get(norm.q, f"between {between} ({norm.spec})")
        case Weighted():
            return f"weighted {distance_in_words(norm.norm)}"
        case Mahalanobis():
            return "correlated changes (mahalanobis)"
        case GroupNorm():
            return "sum over groups (group)"
        case GroupMax():
            return "largest group (group-max)"
        case _:
            return Mechanism(norm).describe()


def service_in_words(mechanism: Mechanism) -> str:
    """A service for people.

    >>> service_in_words(Mechanism("l1", robustness="l2", radius=0.1))
    'sum of changes (l1), robust l2 0.1'
    >>> service_in_words(Mechanism("l2", radius=None))
    'straight line (l2), secret radius'
    """
    words = distance_in_words(mechanism.distance)
    if mechanism.radius is None:
        return f"{words}, secret radius"
    if mechanism.is_plain:
        return words
    ball = Mechanism(mechanism.robustness).describe()
    return f"{words}, robust {ball} {mechanism.radius:g}"


def robust_in_words(use: RobustUse | None) -> list[str]:
    """What to keep in mind about a log's robust explanations; nothing if all balls have one norm and a known radius."""
    if use is None:
        return []
    sentences = []
    if len(use.balls) > 1:
        sentences.append(
            f"The balls of robust explanations have {len(use.balls)} norms ({', '.join(use.balls)}): each has a length of its "
            "own, and even --robust exact may leave points undecided."
        )
    if use.secret:
        several = "" if use.secret == use.explanations else f" for {use.secret:,} of {use.explanations:,}"
        sentences.append(
            f"Radius secret{several}: what is used is that answers of one service lie equally far behind the plane."
        )
    return sentences


def undecided_in_words(share: float, use: RobustUse | None) -> str:
    """Why a share of the points is undecided, and what to do about it.

    >>> undecided_in_words(0.25, None)
    '25 % are not settled, by a limit or by rounding: they may be determined, too.'
    """
    if use is None:
        return f"{percent(share)} are not settled, by a limit or by rounding: they may be determined, too."
    if use.leaves_open:
        open_by = f"the convex set of --robust {use.level}, or a limit, leaves them open; --robust exact decides more"
        return f"{percent(share)} are not settled: {open_by}."
    return f"{percent(share)} are not settled: a limit of time, of cases or of rounding was hit."
