"""Numbers and sentences that every rendering shares."""

from __future__ import annotations

import math

from overexplain.auditing.determined import RobustUse


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


def share_range(share: float, at_most: float | None = None) -> str:
    """A share that is known from below only, because some cases were not settled; as it is if nothing was left open.

    >>> share_range(0.12, 1.0), share_range(0.12, 0.12), share_range(0.004, 0.1), share_range(0.0, 0.301)
    ('≥ 12 %', '12 %', '> 0 %', '0–31 %')
    """
    if at_most is None or at_most <= share:
        return percent(share)
    if share == 0:
        return f"0–{min(100, math.ceil(100 * at_most))} %"
    return "> 0 %" if share < 0.01 else f"≥ {math.floor(100 * share)} %"


def in_words(text: str) -> str:
    """The signs of a range as they are read in a sentence.

    >>> in_words("≥ 12 %"), in_words("0–31 %"), in_words("> 0 %"), in_words("12 %")
    ('at least 12 %', '0 to 31 %', 'more than 0 %', '12 %')
    """
    return text.replace("≥", "at least").replace("> ", "more than ").replace("–", " to ")


def in_ascii(text: str) -> str:
    """The signs of a range as every terminal has them.

    >>> in_ascii("≥ 12 %"), in_ascii("0–31 %")
    ('>= 12 %', '0-31 %')
    """
    return text.replace("≥", ">=").replace("–", "-")


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
