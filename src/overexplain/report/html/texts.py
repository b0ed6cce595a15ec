"""Texts from outside, made harmless to look at: bounded, on one line, and unable to turn what follows around.

Escaping for HTML is not done here: the templates and `shapes.py` do it for every text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from overexplain.auditing.audit_report import AuditedService, AuditReport, Defence
from overexplain.report.audit_text import tidy

LONGEST = 200
"""Characters of a text from outside that are shown; the JSON block has it whole."""
LONGER = {"command": 2_000}
EXACT = frozenset({"grid", "proof"})
"""Parts of a report that are shown to the last character, or not shown as text."""

_FROM_RIGHT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_RUN_FROM_RIGHT = re.compile(f"[{_FROM_RIGHT}](?:[^A-Za-z0-9]*[{_FROM_RIGHT}])*")
_WIDTHS = {
    0.29: "'ijlIJ", 0.32: " ,.", 0.35: "/:;\\|f", 0.39: "-()[]t", 0.42: "!rℓ", 0.47: '"', 0.5: "*_`–", 0.53: "sz?", 0.56: "cL",
    0.6: "FkvxyP", 0.62: "TYaoe", 0.64: "ESbdghnpqu$0123456789{}", 0.66: "K", 0.69: "AVBRXZ", 0.73: "CU", 0.77: "HNDG",
    0.8: "&OQ", 0.85: "w#+<=>^~×−∞", 0.87: "M", 0.96: "%m", 1.0: "W@…",
}  # fmt: skip
_WIDTH_OF = {letter: width for width, letters in _WIDTHS.items() for letter in letters}


def presentable(report: AuditReport) -> AuditReport:
    """The report with every text from outside made fit to be shown; ordinary texts stay as they are."""
    shown: AuditReport = _presentable(report, LONGEST)
    return shown


def _presentable(part: Any, longest: int) -> Any:
    if isinstance(part, str):
        return tidy(part, longest)
    if isinstance(part, tuple):
        return tuple(_presentable(each, longest) for each in part)
    if isinstance(part, dict):
        return {tidy(key, longest): _presentable(value, longest) for key, value in part.items()}
    if is_dataclass(part) and not isinstance(part, type):
        names = [field.name for field in fields(part) if field.name not in EXACT]
        shown = {name: _presentable(getattr(part, name), LONGER.get(name, longest)) for name in names}
        if isinstance(part, AuditedService | Defence):
            shown["name"] = with_symbols(shown["name"])
        return replace(part, **shown)
    return part


def with_symbols(name: str) -> str:
    """A name with a capital and with the letter that mathematics writes for distances.

    >>> with_symbols("sum of changes (l1), robust linf 0.1")
    'Sum of changes (ℓ1), robust ℓ∞ 0.1'
    """
    written = re.sub(r"\bl(1|2|inf)\b", lambda found: "ℓ" + found[1].replace("inf", "∞"), name)
    return written[:1].upper() + written[1:]


def brief(names: Sequence[str]) -> list[str]:
    """The names by their symbols, where they have one and stay apart: 'Sum of changes (ℓ1), rounded' as 'ℓ1, rounded'.

    >>> brief(["Sum of changes (ℓ1)", "Decisions only", "Nearest (ℓ1)", "Straight line (ℓ2), rounded"])
    ['Sum of changes (ℓ1)', 'Decisions only', 'Nearest (ℓ1)', 'ℓ2, rounded']
    """
    symbols = [re.sub(r"^[^()]*\(([^()]{1,12})\)", r"\1", name) for name in names]
    return [symbol if symbols.count(symbol) == 1 else name for symbol, name in zip(symbols, names, strict=True)]


def isolated(text: str) -> str:
    r"""The text with marks around what is written from right to left, so that its neighbours keep their places.

    >>> isolated("plain"), isolated("שלום 3").encode("unicode-escape")
    ('plain', b'\\u2068\\u05e9\\u05dc\\u05d5\\u05dd\\u2069 3')
    """
    return text if text.isascii() else _RUN_FROM_RIGHT.sub("\u2068\\g<0>\u2069", text)


def glued(text: str) -> str:
    """The text with its numbers and their percent signs on one line."""
    return re.sub(r"(?<=\d) %", "\u00a0%", text)


def width_of(text: str, size: float = 13.0, bold: bool = False) -> float:
    """A width in pixels that the text is not likely to exceed, even in a wide font.

    >>> 155 < width_of("Nearest real case shown") < 170
    True
    """
    return size * (1.12 if bold else 1.0) * sum(_letter_width(letter) for letter in text)


def _letter_width(letter: str) -> float:
    if letter in _WIDTH_OF:
        return _WIDTH_OF[letter]
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Cf", "Mn", "Me"):
        return 0.0
    return 1.4 if unicodedata.east_asian_width(letter) in "WF" or ord(letter) > 0xFFFF else 0.8


def shortened(text: str, width: float, size: float = 13.0, bold: bool = False) -> str:
    """The text if it fits into so many pixels, else its beginning with an ellipsis.

    >>> shortened("Nearest real case shown", 120), shortened("short", 120)
    ('Nearest real ca…', 'short')
    """
    if width_of(text, size, bold) <= width:
        return text
    room, end = width - width_of("…", size, bold), 0
    for letter in text:
        room -= width_of(letter, size, bold)
        if room < 0:
            break
        end += 1
    return text[: max(end, 1)].rstrip() + "…"
