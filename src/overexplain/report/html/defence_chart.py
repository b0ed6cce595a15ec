"""Defences compared in aligned rows: what each costs the attacker, and the applicant. A value past the limit is an arrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from overexplain.auditing.audit_report import AuditReport, Cost, Defence, Defences
from overexplain.auditing.findings import BY_QUOTA
from overexplain.report.html.scales import Scale, Tick, compact, decades_around, round_steps, spaced
from overexplain.report.html.shapes import circle, element, line, picture, pointer, text
from overexplain.report.html.texts import shortened, width_of
from overexplain.report.words import percent

ABOUT = "Defences: answers the attacker needs, how much longer the advice becomes, share of invalid advice; numbers in the table."
NAMES, ATTACKER, LENGTH, INVALID = 230.0, (262.0, 470.0), (582.0, 662.0), (746.0, 824.0)
"""Where the columns begin and end; each leaves room on its right for the longest number."""

AS_GOOD_AS_ONE = 0.99
"""Lengths between this and 1 are below 1 by rounding: the axis begins at 1 all the same."""

WIDTH = 880.0
"""Of the whole drawing."""


def defence_charts(report: AuditReport) -> list[str]:
    """The chart, wide and narrow; nothing if no defence was tried."""
    defences = report.defences
    return [_wide(defences), _narrow(defences)] if defences is not None and defences.rows else []


def times(length: float | None) -> str:
    """A length as a multiple of the shortest.

    >>> times(1.0), times(250.0), times(1e6), times(None)
    ('1.00×', '250×', '1e+06×', 'not measured')
    """
    if length is None:
        return "not measured"
    return f"{length:.2f}×" if length < 100 else f"{length:.0f}×" if length < 10_000 else f"{length:.0e}×"


@dataclass(frozen=True)
class Mark:
    """A cost with its place on the axis; past the limit: at the axis' end."""

    place: float
    words: str
    is_past: bool


def _mark(row: Defence, cost: Cost, scale: Scale, limit: int) -> Mark:
    requests = cost.requests
    if requests is None:
        return Mark(scale.end, "stopped" if row.id == BY_QUOTA else f"over {limit:,}", True)
    return Mark(scale(requests), f"{requests:,}", False)


def _scale(defences: Defences, start: float, end: float) -> tuple[Scale, list[Tick]]:
    counts = [c.requests for row in defences.rows for c in (row.explained, row.with_labels) if c.requests is not None]
    low, _ = decades_around(min([*counts, defences.limit]), 1)
    scale = Scale(low, max([*counts, defences.limit, 2 * low]), start, end, is_log=True)
    decades = [low * 10**k for k in range(12) if low * 10**k <= scale.high]
    ends = decades if len(decades) > 1 else [low, int(scale.high)]  # one tick alone cannot be read
    return scale, spaced(ends, [f"{count:,}" for count in ends], scale)


def _costs(row: Defence, defences: Defences, scale: Scale, y: float, accent: bool) -> tuple[str, Mark, Mark]:
    """The two marks of the attacker's axis, without their texts."""
    solid, hollow = (_mark(row, cost, scale, defences.limit) for cost in (row.explained, row.with_labels))
    style = " acc" if accent else ""
    parts = [line((scale.start, y), (scale.end, y), "rowl")]
    if solid.place != hollow.place:
        ends = sorted((solid.place, hollow.place))
        parts.append(line((ends[0], y), (ends[1], y), "span"))
    parts.append(_drawn(solid, y, 6, f"pt{style}"))
    if solid != hollow:
        parts.append(_drawn(hollow, y, 5, "hol"))
    return element("g", "".join(parts), data_defence=row.id), solid, hollow


def _drawn(mark: Mark, y: float, radius: float, style: str) -> str:
    if mark.is_past:
        return pointer((mark.place + 6, y), style, data_value="")
    return circle((mark.place, y), radius, style, data_value=mark.words.replace(",", ""))


def _labels(solid: Mark, hollow: Mark, y: float, style: str) -> list[str]:
    """The texts of two marks: the left one's on its left, the right one's on its right."""
    right = text(solid.place + 12, y + 4.5, solid.words, f"halo {style}".strip())
    if solid == hollow:
        return [right]
    if hollow.place <= solid.place:
        return [right, text(hollow.place - 11, y + 4.5, hollow.words, "m e halo")]
    return [
        text(solid.place - 11, y + 4.5, solid.words, f"e halo {style}".strip()),
        text(hollow.place + 12, y + 4.5, hollow.words, "m halo"),
    ]


def _wide(defences: Defences) -> str:
    bottom = 70.0 + 38 * len(defences.rows)
    attacker, ticks = _scale(defences, *ATTACKER)
    lengths = [row.length for row in defences.rows if row.length is not None]
    most = max([2.0, *lengths])
    least = min([1.0, *lengths])
    length = Scale(1.0 if least > AS_GOOD_AS_ONE else least, most, *LENGTH)
    invalid = Scale(0, max([0.5, *(row.invalid for row in defences.rows if row.invalid is not None)]), *INVALID)
    steps = sorted({length.low, *round_steps(length.low, most)})
    ticks += spaced(steps, [f"{compact(step)}×" for step in steps], length)
    steps = [share for share in (0.0, 0.25, 0.5, 0.75, 1.0) if share <= invalid.high]
    ticks += spaced(steps, [percent(share) for share in steps], invalid, gap=5)
    parts = []
    for tick in ticks:
        parts += [line((tick.place, 64), (tick.place, bottom), "g"), text(tick.middle, bottom + 18, tick.words, "m c")]
    parts += [text(ATTACKER[0], 14, "Attacker: answers needed (log scale)", "b")]
    parts += [circle((ATTACKER[0] + 6, 34), 5.5, "pt"), text(ATTACKER[0] + 18, 38.5, "sees explanations")]
    parts += [circle((ATTACKER[0] + 150, 34), 5, "hol"), text(ATTACKER[0] + 162, 38.5, "can also ask decisions")]
    parts += [text(LENGTH[0], 14, "Applicant: length", "b"), text(LENGTH[0], 38.5, "1× is the shortest", "m")]
    parts += [text(INVALID[0], 14, "Applicant: invalid", "b"), text(INVALID[0], 38.5, "advice that fails", "m")]
    for i, row in enumerate(defences.rows):
        y, accent = 89.0 + 38 * i, i == 0
        style = "a b" if accent else ""
        marks, solid, hollow = _costs(row, defences, attacker, y, accent)
        parts += [marks, *_labels(solid, hollow, y, style)]
        left = min(
            mark.place - 19 - width_of(mark.words) for mark in (solid, hollow)
        )  # a count may stand before the axis
        parts.append(text(0, y + 4.5, shortened(row.name, min(NAMES, left), bold=accent), style))
        share = "not measured" if row.invalid is None else percent(row.invalid)
        none = f", {percent(row.unanswered)} none" if row.unanswered else ""
        if row.invalid is not None and invalid(row.invalid) + 11 + width_of(share + none) < WIDTH:
            share += none
        parts += _dot(length, row.length, times(row.length), y, accent)
        parts += _dot(invalid, row.invalid, share, y, accent)
    return picture(parts, (WIDTH, bottom + 30), ABOUT, "defences-title-wide", "wide defences", **attacker.as_data())


def _dot(scale: Scale, value: float | None, words: str, y: float, accent: bool) -> list[str]:
    row = line((scale.start, y), (scale.end, y), "rowl")
    if value is None:
        return [row, text(scale.start, y + 4.5, words, "m halo")]
    dot = circle((scale(value), y), 5, "pt acc" if accent else "pt")
    return [row, dot, text(scale(value) + 11, y + 4.5, words, "halo a b" if accent else "halo")]


def _narrow(defences: Defences) -> str:
    bottom = 46.0 + 66 * len(defences.rows)
    scale, ticks = _scale(defences, 54.0, 252.0)
    parts: list[str] = []
    for tick in ticks:
        parts += [line((tick.place, 40), (tick.place, bottom), "g"), text(tick.middle, bottom + 18, tick.words, "m c")]
    parts += [
        text(0, 12, "Attacker: answers needed (log scale)", "b"),
        circle((6, 28), 5, "pt"),
        text(17, 32, "sees explanations"),
    ]
    parts += [circle((158, 28), 4.5, "hol"), text(169, 32, "can also ask decisions")]
    for i, row in enumerate(defences.rows):
        y, accent = 81.0 + 66 * i, i == 0
        parts.append(text(0, y - 15, shortened(row.name, 350, 12.5, accent), "a b" if accent else ""))
        marks, solid, hollow = _costs(row, defences, scale, y, accent)
        parts += [marks, *_labels(solid, hollow, y, "a b" if accent else "")]
        parts.append(text(0, y + 23, shortened(_price(row), 356, 12.5), "m halo"))
    return picture(parts, (358, bottom + 30), ABOUT, "defences-title-narrow", "narrow defences", **scale.as_data())


def _price(row: Defence) -> str:
    """What the applicant pays, in a line."""
    said: Sequence[str] = (
        f"{times(row.length)} as long" if row.length is not None else "",
        f"{percent(row.invalid)} invalid" if row.invalid is not None else "",
        f"{percent(row.unanswered)} unanswered" if row.unanswered else "",
    )
    return ", ".join(filter(None, said)) or "price not measured"
