"""Every number that is drawn, as tables: the value itself is in `data-value`, its range in `data-low` and `data-high`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from overexplain.auditing.audit_report import AuditReport, Cost, Curve, Panel, Question
from overexplain.auditing.findings import paper_needed
from overexplain.report.audit_sections import map_columns, median_range, panel_shares
from overexplain.report.audit_words import service_name
from overexplain.report.html.defence_chart import times
from overexplain.report.html.known_chart import NOT_FOUND, NOT_KNOWN, NOT_TREATED
from overexplain.report.words import counted, percent, small

ANSWERED = {1: "Yes", -1: "No"}


@dataclass(frozen=True)
class Cell:
    """A cell: its words, a smaller note after them, and the numbers behind them."""

    words: str
    note: str = ""
    data: dict[str, str] = field(default_factory=dict)
    is_prose: bool = False


@dataclass(frozen=True)
class Row:
    """A row: its name and its cells; the audited service's row stands out."""

    name: str
    cells: tuple[Cell, ...]
    is_audited: bool = False
    id: str = ""


@dataclass(frozen=True)
class Table:
    """A table with its id, what it is called for who cannot see it, its caption, and its columns (the first names the rows)."""

    id: str
    label: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    services: tuple[str, ...] = ()
    """Ids of the services that the columns after the first belong to."""


def curve_table(report: AuditReport) -> Table:
    """The shares determined, a row per number of answers and a column per service."""
    curves = {s.id: report.curve_of(s.id) for s in report.services}
    measured = [(report.service(id), curve) for id, curve in curves.items() if curve is not None]
    answers = sorted({n for _, curve in measured for n in curve.answers})
    rows = tuple(Row(f"{n:,}", tuple(_share(curve, n) for _, curve in measured), id=str(n)) for n in answers)
    caption = "Median share of decisions determined; after it, where it differs, the range that holds 8 of 10 orders of asking"
    caption += ". ≥, or a range where it could be nothing: a limit left the rest unsettled" * any(
        curve.undecided for _, curve in measured
    )
    columns = ("Answers", *(service_name(service) for service, _ in measured))
    ids = tuple(service.id for service, _ in measured)
    return Table("t-curve", "Share of decisions determined, table", caption, columns, rows, ids)


def pooled_table(report: AuditReport) -> Table:
    """The shares that pooled letters of the denied determine."""
    curve = report.curve_of(report.audited.id, "denied")
    rows = () if curve is None else tuple(Row(f"{n:,}", (_share(curve, n),), id=str(n)) for n in curve.answers)
    caption = "Median share of decisions determined by letters to those denied, and the range that holds 8 of 10 orders"
    caption += ". ≥, or a range where it could be nothing: a limit left the rest unsettled" * bool(
        curve is not None and curve.undecided
    )
    return Table("t-pooled", "Pooled letters, table", caption, ("Letters", "Determined"), rows)


def _share(curve: Curve, answers: int) -> Cell:
    if answers not in curve.answers:
        return Cell("–")
    at = curve.answers.index(answers)
    numbers = {"value": curve.median, "low": curve.low, "high": curve.high, "highest": curve.highest}
    if curve.undecided:
        numbers["at-most"] = curve.median_ceiling
    data = {name: repr(shares[at]) for name, shares in numbers.items()}
    low, high = percent(curve.low[at]), percent(curve.high_ceiling[at])
    note = "" if low == high else f"{low.removesuffix(' %')}–{high.removesuffix(' %')}"
    words = median_range(curve, at)
    return Cell(words, "" if f"{note} %" == words else note, data)


def map_table(report: AuditReport) -> Table:
    """The shares of every map."""
    shares = map_columns(report)
    rows = tuple(
        Row(
            f"{one.across}, {one.up}",
            (
                _count(panel.decisions),
                _count(panel.explanations),
                *(Cell(words, data={"value": repr(share)}) for words, share in _panel_cells(panel)[: len(shares)]),
            ),
        )
        for one in report.maps
        for panel in one.panels
    )
    columns = ("Features", "Decisions", "Explanations", *shares)
    return Table("t-map", "Map shares, table", "Share of each map that is determined or unknown", columns, rows)


def _panel_cells(panel: Panel) -> list[tuple[str, float]]:
    unknown = max(0.0, panel.unknown - panel.undecided)
    return list(zip(panel_shares(panel), (panel.yes, panel.no, unknown, panel.undecided), strict=True))


def points_table(report: AuditReport) -> Table:
    """The made-up questions of all maps."""
    rows = tuple(
        Row(f"Map {i}, question {j}", _question(asked))
        for i, one in enumerate(report.maps, 1)
        for j, asked in enumerate(one.questions, 1)
    )
    caption = "The made-up questions of the maps, and the cases that explanations named"
    columns = ("Question", "Across", "Up", "Decision", "Explanation: across", "Explanation: up")
    return Table("t-points", "Questions of the maps, table", caption, columns, rows)


def _question(asked: Question) -> tuple[Cell, ...]:
    led = asked.explanation
    to = (Cell("not asked"),) * 2 if led is None else tuple(_value(value) for value in led)
    return (_value(asked.x), _value(asked.y), Cell(ANSWERED[asked.label], data={"value": str(asked.label)}), *to)


def _value(value: float) -> Cell:
    return Cell(f"{value:.6g}", data={"value": repr(value)})


def _count(
    count: int | None, otherwise: str = "–", note: str = "", more: Mapping[str, int | None] | None = None
) -> Cell:
    numbers = {"value": count, **(more or {})}
    data = {name: "" if number is None else str(number) for name, number in numbers.items()}
    return Cell(otherwise if count is None else f"{count:,}", note, data)


def known_table(report: AuditReport) -> Table:
    """What rebuilding takes, per service."""
    ranked = any(known.valid is not None for known in report.known)
    rows = []
    for service in report.services:
        known = report.known_of(service.id)
        if known is None:
            continue
        several = known.low != known.high and known.low is not None and known.high is not None
        note = f"{known.low:,}–{known.high:,}" if several else ""
        of = {"information bound": "bits", "theorem": "", None: ""}[known.minimum_is]
        cells = (
            _count(known.answers, NOT_FOUND, note, {"low": known.low, "high": known.high}),
            _count(known.explanations),
            _count(known.labels),
            _count(known.computed, NOT_KNOWN),
            _count(known.minimum, NOT_KNOWN, of),
            *([_count(known.valid)] if ranked else []),
            _count(
                paper_needed(known),
                NOT_TREATED,
                more={"explanations": known.paper_explanations, "decisions": known.paper_labels},
            ),
            Cell(small(known.angle_error), data=_data(known.angle_error)),
            Cell(small(known.error_bound), data=_data(known.error_bound)),
            Cell("–" if known.agreement is None else percent(known.agreement), data=_data(known.agreement)),
            Cell(known.method if known.failed is None else f"failed: {known.failed}", is_prose=True),
        )
        is_audited = service is report.audited
        rows.append(Row(f"{service_name(service)}{', audited' * is_audited}", cells, is_audited, service.id))
    columns = (
        "Service",
        "Needed",
        "Explanations",
        "Decisions",
        "Computed",
        "Proven minimum",
        *["Valid cases, by rank"] * ranked,
        "Paper",
        "Angle error",
        "Provable bound",
        "Decided alike",
        "Method",
    )
    caption = "Answers until the model is known; errors in radians. A minimum marked “bits” is the information bound"
    return Table("t-known", "Answers until the model is known, table", caption, columns, tuple(rows))


def _data(value: float | None) -> dict[str, str]:
    return {"value": "" if value is None else repr(value)}


def defence_table(report: AuditReport) -> Table:
    """What each defence costs, and whom."""
    found = report.defences
    rows = []
    for i, row in enumerate(found.rows if found is not None else ()):
        limit = found.limit if found is not None else 0
        cells = (
            _cost(row.explained, limit),
            _cost(row.with_labels, limit),
            Cell(times(row.length), data=_data(row.length)),
            Cell("not measured" if row.invalid is None else percent(row.invalid), data=_data(row.invalid)),
            Cell(percent(row.unanswered), data=_data(row.unanswered)),
            Cell("yes" if row.shows_rows else "no"),
        )
        rows.append(Row(row.name, cells, i == 0, row.id))
    columns = (
        "Defence",
        "Attacker sees explanations",
        "can also ask decisions",
        "Length of the change",
        "Invalid advice",
        "No advice",
        "Shows real cases",
    )
    caption = (
        "Attacker: explanations + decisions until the copied direction is close enough. “Provable”: the attacker knows that it is; "
        "elsewhere only the owner can see it. Applicant: medians and shares over the cases"
    )
    return Table("t-defences", "Defences compared, table", caption, columns, tuple(rows))


def _cost(cost: Cost, limit: int) -> Cell:
    error = "" if cost.error is None else f"error {small(cost.error)}"
    data = {"limit": limit, "explanations": cost.explanations, "decisions": cost.labels}
    if cost.requests is None:
        return _count(None, f"not within {limit:,}", error, data)
    by = "provable" if cost.certified else error
    split = f"{cost.explanations:,} + {cost.labels:,}" if cost.explanations and cost.labels else ""
    return _count(cost.requests, note=", ".join(filter(None, (split, by))), more=data)


def proof_table(report: AuditReport) -> Table:
    """The worked proof as a sum."""
    proof = report.proof
    if proof is None or not report.maps:
        return Table("t-proof", "Worked proof, table", "", (), ())
    rows = tuple(
        Row(
            f"Question {row.question}, answered {ANSWERED[row.label]}",
            (Cell(_signed(row.weight), data={"value": row.weight}), Cell(row.x), Cell(row.y)),
        )
        for row in proof.rows
    )
    total = Row("Sum: the case in question", (Cell("1", data={"value": "1"}), Cell(proof.x), Cell(proof.y)), True)
    own, other = ("Yes", "No") if proof.label > 0 else ("No", "Yes")
    side = "reach" if proof.label > 0 else "lie below"
    caption = (
        f"Weights times answered cases add up to the case in question. {own} cases count positive, {other} cases negative, "
        f"so its score must {side} the threshold"
    )
    columns = ("Answered case", "Weight", report.maps[0].across, report.maps[0].up)
    return Table("t-proof", "Worked proof, table", caption, columns, (*rows, total))


def _signed(weight: str) -> str:
    return f"− {weight.removeprefix('-')}" if weight.startswith("-") else f"+ {weight}"


def tables_of(report: AuditReport) -> dict[str, Table]:
    """All tables by their ids' second part."""
    made: Sequence[Table] = (
        curve_table(report),
        pooled_table(report),
        map_table(report),
        points_table(report),
        known_table(report),
        defence_table(report),
        proof_table(report),
    )
    return {table.id.removeprefix("t-"): table for table in made}


def panel_words(decisions: int, explanations: int) -> tuple[str, str]:
    """The name of a map's drawing, and how it was asked.

    >>> panel_words(12, 1)
    ('12 decisions, 1 explanation', 'The first question was explained, too.')
    """
    if explanations == 0:
        return counted(decisions, "decision"), "Only Yes or No was answered."
    which = "question was" if explanations == 1 else f"{explanations:,} questions were"
    name = f"{counted(decisions, 'decision')}, {counted(explanations, 'explanation')}"
    return name, f"The first {which} explained, too."
