"""Answers until the model is known: a row per service with what was needed, the proven minimum, and the paper's count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from overexplain.auditing.audit_report import AuditReport
from overexplain.auditing.findings import paper_needed
from overexplain.report.audit_words import service_name
from overexplain.report.html.scales import Scale, Tick, decades_around, spaced
from overexplain.report.html.shapes import circle, diamond, element, line, picture, text
from overexplain.report.html.texts import shortened, width_of

ABOUT = "Answers until the model is known, per service, with the proven minimum and the paper's count; numbers in the table."
NOT_FOUND, NOT_KNOWN, NOT_TREATED = "not found", "not known", "not covered"


@dataclass(frozen=True)
class Row:
    """The three counts of a service; None where there is none."""

    id: str
    name: str
    is_audited: bool
    needed: int | None
    minimum: int | None
    paper: int | None

    def within(self, width: float, size: float = 13.0) -> str:
        """Its name in so many pixels; what stays in any case is that it is the audited one."""
        suffix = ", audited" * self.is_audited
        return shortened(self.name, width - width_of(suffix, size, True), size, self.is_audited) + suffix

    @property
    def counts(self) -> list[int]:
        """Those that exist."""
        return [count for count in (self.needed, self.minimum, self.paper) if count is not None]


def known_rows(report: AuditReport) -> list[Row]:
    """The rows of the chart, the services in the report's order."""
    rows = []
    for service in report.services:
        known = report.known_of(service.id)
        if known is not None:
            rows.append(
                Row(
                    service.id,
                    service_name(service),
                    service is report.audited,
                    known.answers,
                    known.minimum,
                    paper_needed(known),
                )
            )
    return rows


def known_charts(report: AuditReport) -> list[str]:
    """The chart, wide and narrow; nothing if nothing was tried."""
    rows = known_rows(report)
    return [_wide(rows), _narrow(rows)] if rows else []


def _scale(rows: Sequence[Row], start: float, end: float) -> tuple[Scale, list[Tick]]:
    counts = [count for row in rows for count in row.counts] or [1]
    low, high = decades_around(1, max(counts))
    scale = Scale(low, high, start, end, is_log=True)
    decades = [10**k for k in range(len(str(high)))]
    return scale, spaced(decades, [f"{count:,}" for count in decades], scale)


def _marks(row: Row, scale: Scale, y: float, half: float) -> str:
    """The three marks of a row, with their values."""
    parts = [line((scale.start, y), (scale.end, y), "rowl")]
    places = [scale(count) for count in row.counts]
    if places and max(places) > min(places):
        parts.append(line((min(places), y), (max(places), y), "span"))
    if row.paper is not None:
        together = row.needed is not None and abs(scale(row.paper) - scale(row.needed)) < 6
        parts.append(diamond((scale(row.paper), y), 10 if together else 7.5, "dia", data_value=str(row.paper)))
    if row.minimum is not None:
        parts.append(
            line((scale(row.minimum), y - half), (scale(row.minimum), y + half), "tick", data_value=str(row.minimum))
        )
    if row.needed is not None:
        parts.append(
            circle((scale(row.needed), y), 5.5, "pt acc" if row.is_audited else "pt", data_value=str(row.needed))
        )
    return element("g", "".join(parts), data_service=row.id)


def _count(count: int | None, otherwise: str) -> str:
    return otherwise if count is None else f"{count:,}"


def _wide(rows: Sequence[Row]) -> str:
    start, end, columns = 314.0, 596.0, (690.0, 785.0, 880.0)
    bottom = 46.0 + 40 * len(rows)
    scale, ticks = _scale(rows, start, end)
    parts = []
    for tick in ticks:
        parts += [line((tick.place, 40), (tick.place, bottom), "g"), text(tick.middle, bottom + 18, tick.words, "m c")]
    parts += [text(start, 20.5, "answers (log scale)", "m")]
    parts += [circle((columns[0] - 68, 16), 5.5, "pt"), text(columns[0], 20.5, "needed", "b e")]
    parts += [line((columns[1] - 74, 9), (columns[1] - 74, 23), "tick"), text(columns[1], 20.5, "minimum", "e")]
    parts += [diamond((columns[2] - 54, 16), 6.5, "dia"), text(columns[2], 20.5, "paper", "e")]
    for i, row in enumerate(rows):
        y, accent = 66.0 + 40 * i, "a" if row.is_audited else ""
        parts.append(text(0, y + 4.5, row.within(start - 24), "a b" if accent else ""))
        parts.append(_marks(row, scale, y, 14))
        texts = (_count(row.needed, NOT_FOUND), _count(row.minimum, NOT_KNOWN), _count(row.paper, NOT_TREATED))
        for x, words, count in zip(columns, texts, (row.needed, row.minimum, row.paper), strict=True):
            style = "m e" if count is None else f"e {accent} {'b' if x == columns[0] else ''}".strip()
            parts.append(text(x, y + 4.5, words, style))
    return picture(parts, (880, bottom + 30), ABOUT, "known-title-wide", "wide known", **scale.as_data())


def _narrow(rows: Sequence[Row]) -> str:
    bottom = 30.0 + 58 * len(rows)
    scale, ticks = _scale(rows, 12.0, 276.0)
    parts = []
    for tick in ticks:
        parts += [line((tick.place, 24), (tick.place, bottom), "g"), text(tick.middle, bottom + 18, tick.words, "m c")]
    parts += [
        circle((6, 10), 5, "pt"),
        text(17, 14, "needed"),
        line((86, 3), (86, 17), "tick"),
        text(95, 14, "minimum"),
    ]
    parts += [diamond((178, 10), 6, "dia"), text(190, 14, "paper"), text(358, 14, "log scale", "m e")]
    for i, row in enumerate(rows):
        y, accent = 71.0 + 58 * i, row.is_audited
        parts.append(text(0, y - 17, row.within(350, 12.5), "a b" if accent else ""))
        parts.append(_marks(row, scale, y, 11))
        style = "m e" if row.needed is None else f"b e {'a' if accent else ''}".strip()
        parts.append(text(358, y + 4.5, _count(row.needed, NOT_FOUND), style))
    return picture(parts, (358, bottom + 30), ABOUT, "known-title-narrow", "narrow known", **scale.as_data())
