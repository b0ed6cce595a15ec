"""Numbers and outside names inside sentences: counts in words, percentages that stay apart, names that cannot break a line."""

from __future__ import annotations

import unicodedata

from overexplain.report.words import percent

LONGEST_NAME = 60

_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_TENS = {30: "thirty", 40: "forty", 50: "fifty", 60: "sixty", 70: "seventy", 80: "eighty", 90: "ninety"}


def number_in_words(number: int) -> str:
    """A count as people write it: words up to twenty and for tens, else digits.

    >>> number_in_words(13), number_in_words(30), number_in_words(31), number_in_words(1500)
    ('thirteen', 'thirty', '31', '1,500')
    """
    if 0 <= number < len(_SMALL):
        return _SMALL[number]
    return _TENS.get(number, f"{number:,}")


def several(number: int, noun: str) -> str:
    """A count in words with its noun.

    >>> several(1, "answer"), several(30, "decision")
    ('one answer', 'thirty decisions')
    """
    return f"{number_in_words(number)} {noun}{'s' * (number != 1)}"


def capital(sentence: str) -> str:
    """The sentence with a capital letter at its beginning."""
    return sentence[:1].upper() + sentence[1:]


def inside(name: str) -> str:
    """A name as it stands inside a sentence: its capital is dropped unless it is an abbreviation.

    >>> inside("Sum of changes (ℓ1)"), inside("ℓ1, rounded"), inside("DiCE")
    ('sum of changes (ℓ1)', 'ℓ1, rounded', 'DiCE')
    """
    first, _, _ = name.partition(" ")
    return name[:1].lower() + name[1:] if first[1:].islower() or len(first) == 1 else name


def tidy(name: str, longest: int = LONGEST_NAME) -> str:
    """A name from outside on one line: no control or direction characters, at most `longest` long.

    >>> tidy("one\\ntwo"), tidy("a\\u202eb"), tidy("  "), tidy("abcdef", 4)
    ('one two', 'ab', '(no name)', 'abc…')
    """
    head = name[: 20 * longest]  # more can only be cut off; keeps ten thousand characters from being read
    spaced = (" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in head)
    kept = (c for c in spaced if unicodedata.category(c) not in ("Cf", "Cs", "Cn"))
    text = " ".join("".join(kept).split())
    if not text:
        return "(no name)"
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def exact_percent(share: float) -> str:
    """A bound that somebody set, in full.

    >>> exact_percent(0.6), exact_percent(0.125)
    ('60 %', '12.5 %')
    """
    return f"{100 * share:.10g} %"


def percent_beside(share: float, bound: float) -> str:
    """A share with as many decimals as it takes to be told from a bound; 0 % and 100 % only when exact.

    >>> percent_beside(0.72, 0.6), percent_beside(0.598, 0.6), percent_beside(0.60004, 0.6), percent_beside(0.6, 0.6)
    ('72 %', '59.8 %', '60.004 %', '60 %')
    """
    if share == bound:
        return exact_percent(share)
    if round(100 * share) != 100 * bound and abs(share - bound) >= 0.005:
        return percent(share)
    for digits in range(1, 12):
        text = f"{100 * share:.{digits}f}"
        looks_like = {float(f"{100 * bound:.10g}")} | ({0.0, 100.0} if 0 < share < 1 else set())
        if float(text) not in looks_like:
            return f"{text} %"
    return f"{'more' if share > bound else 'less'} than {exact_percent(bound)}"


def percent_range(low: float, high: float) -> str:
    """A range of shares: '67 to 77 %'.

    >>> percent_range(0.67, 0.77), percent_range(0.0, 0.004), percent_range(1.0, 1.0)
    ('67 to 77 %', '0 to <1 %', '100 %')
    """
    first, last = percent(low), percent(high)
    return last if first == last else f"{first.removesuffix(' %')} to {last}"


def angle(radians: float) -> str:
    """An angle in plain decimals where that is short.

    >>> angle(0.001), angle(1e-6), angle(3.14e-13)
    ('0.001 radian', '0.000001 radian', '3e-13 radian')
    """
    return f"{f'{radians:.7f}'.rstrip('0') if radians >= 1e-6 else f'{radians:.0e}'} radian"
