"""Every number of the report is in a table, and every drawing can be read back to it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from audit_sample import sample_report
from html_reader import REPORTS, Node, rows_of, tree
from overexplain.auditing.audit_report import AuditReport, Cost
from overexplain.auditing.findings import paper_needed

CALM = [name for name in REPORTS if "hostile" not in name]
each_report = pytest.mark.parametrize("name", [*CALM, "hostile: script"])


def table(name: str, id: str) -> list[tuple[str, list[Node]]]:
    return rows_of(tree(name).one("table", id=id))


def number(cell: Node, which: str = "value") -> float | None:
    text = cell.get(f"data-{which}")
    return float(text) if text else None


@each_report
def test_the_table_of_the_curve_has_every_share(name: str) -> None:
    report = REPORTS[name]
    for population, id in (("all", "t-curve"), ("denied", "t-pooled")):
        services = report.services if population == "all" else report.services[:1]
        curves = [curve for s in services if (curve := report.curve_of(s.id, population)) is not None]
        if not curves:
            continue
        rows = table(name, id)
        assert [int(row.replace(",", "")) for row, _ in rows] == sorted({n for c in curves for n in c.answers})
        for k, curve in enumerate(curves):
            cells = [cells[k] for row, cells in rows if int(row.replace(",", "")) in curve.answers]
            for which, shares in (
                ("value", curve.median),
                ("low", curve.low),
                ("high", curve.high),
                ("highest", curve.highest),
            ):
                assert [number(cell, which) for cell in cells] == list(shares)


@each_report
def test_the_lines_have_the_shares_of_the_report(name: str) -> None:
    report = REPORTS[name]
    if not report.curves:
        return
    for kind in ("curve", "pooled"):
        for drawing in tree(name).all("svg", class_=kind):
            left, right, top, bottom, most = (
                float(drawing.get(f"data-{e}")) for e in ("left", "right", "top", "bottom", "max")
            )
            for line in drawing.all("polyline"):
                id = line.get("data-service")
                curve = report.curve_of(id) if kind == "curve" else report.curve_of(report.audited.id, id)
                assert curve is not None
                points = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
                assert len(points) == len(curve.answers)
                for (x, y), n, share in zip(points, curve.answers, curve.median, strict=True):
                    assert abs(x - (left + math.log(n) / math.log(most) * (right - left))) <= 0.06
                    assert abs(y - (bottom - share * (bottom - top))) <= 0.06


def test_the_band_is_the_range_of_the_audited_service() -> None:
    drawing = next(svg for svg in tree("sample").all("svg", class_="curve") if "wide" in svg.classes)
    curve = sample_report().curves[0]
    heights = [float(point.split(",")[1]) for point in drawing.one("polygon", class_="band").get("points").split()]
    top, bottom = float(drawing.get("data-top")), float(drawing.get("data-bottom"))
    expected = [bottom - share * (bottom - top) for share in (*curve.high, *curve.low[::-1])]
    assert heights == pytest.approx(expected, abs=0.06)


@each_report
def test_what_it_takes_is_in_the_table_and_the_drawing(name: str) -> None:
    report = REPORTS[name]
    if not report.known:
        assert not tree(name).all("table", id="t-known")
        return
    rows = tree(name).one("table", id="t-known").one("tbody").all("tr")
    assert [row.one("th").get("data-id") for row in rows] == [known.service for known in report.known]
    for row, known in zip(rows, report.known, strict=True):
        cells = row.all("td")
        values = (
            *(
                known.answers,
                known.explanations,
                known.labels,
                known.computed,
                known.minimum,
                paper_needed(known),
            ),
            *(known.angle_error, known.error_bound, known.agreement),
        )
        assert [number(cell) for cell in cells[:9]] == list(values)
        assert (number(cells[0], "low"), number(cells[0], "high")) == (known.low, known.high)
        for drawing in tree(name).all("svg", class_="known"):
            row_of_marks = drawing.one("g", data_service=known.service)
            drawn = [
                [number(mark) for mark in row_of_marks.walk() if style in mark.classes] for style in ("tick", "dia")
            ]
            assert drawn == [[v] if v is not None else [] for v in (known.minimum, paper_needed(known))]
            dots = row_of_marks.all("circle")
            assert [number(dot) for dot in dots] == [v for v in [known.answers] if v is not None]
            for dot in dots:
                assert abs(float(dot.get("cx")) - on_log_axis(drawing, number(dot))) <= 0.06


def on_log_axis(drawing: Node, value: float | None) -> float:
    left, right, low, high = (float(drawing.get(f"data-{end}")) for end in ("left", "right", "low", "high"))
    assert value is not None
    return left + math.log(value / low) / math.log(high / low) * (right - left)


@each_report
def test_defences_are_in_the_table_and_the_drawing(name: str) -> None:
    defences = REPORTS[name].defences
    if defences is None:
        assert not tree(name).all("table", id="t-defences")
        return
    rows = tree(name).one("table", id="t-defences").one("tbody").all("tr")
    assert [row.one("th").get("data-id") for row in rows] == [defence.id for defence in defences.rows]
    for row, defence in zip(rows, defences.rows, strict=True):
        cells = row.all("td")
        expected = (
            defence.explained.requests,
            defence.with_labels.requests,
            defence.length,
            defence.invalid,
            defence.unanswered,
        )
        assert [number(cell) for cell in cells[:5]] == list(expected)
        for cell, cost in zip(cells, (defence.explained, defence.with_labels), strict=False):
            assert_cost(cell, cost, defences.limit)
        for drawing in tree(name).all("svg", class_="defences"):
            marks = [
                mark for mark in drawing.one("g", data_defence=defence.id).walk() if "data-value" in mark.attributes
            ]
            assert {number(mark) for mark in marks} == {defence.explained.requests, defence.with_labels.requests}
            for mark in marks:
                if number(mark) is None:
                    assert mark.tag == "path"  # an arrow, never a dot
                else:
                    assert abs(float(mark.get("cx")) - on_log_axis(drawing, number(mark))) <= 0.06


def assert_cost(cell: Node, cost: Cost, limit: int) -> None:
    assert number(cell, "limit") == limit
    assert (number(cell, "explanations"), number(cell, "decisions")) == (cost.explanations, cost.labels)
    assert (f"not within {limit:,}" in cell.text) == (cost.requests is None)


@each_report
def test_maps_are_in_the_tables_and_their_drawings(name: str) -> None:
    report = REPORTS[name]
    if not report.maps:
        assert not tree(name).all("table", id="t-map")
        return
    panels = [panel for one in report.maps for panel in one.panels]
    for (_, cells), panel in zip(table(name, "t-map"), panels, strict=True):
        expected = (panel.decisions, panel.explanations, panel.yes, panel.no, panel.unknown)
        assert [number(cell) for cell in cells] == list(expected)
    asked = [question for one in report.maps for question in one.questions]
    for (_, cells), question in zip(table(name, "t-points"), asked, strict=True):
        to = question.explanation or ()
        assert [number(cell) for cell in cells if "data-value" in cell.attributes] == [
            question.x,
            question.y,
            question.label,
            *to,
        ]
    drawings = [svg for svg in tree(name).all("svg") if "data-yes" in svg.attributes]
    assert [tuple(number(svg, share) for share in ("yes", "no", "unknown")) for svg in drawings] == [
        (panel.yes, panel.no, panel.unknown) for panel in panels
    ]
    both = [(one, panel) for one in report.maps for panel in one.panels]
    for drawing, (one, panel) in zip(drawings, both, strict=True):
        left, right, top, bottom = (float(drawing.get(f"data-{edge}")) for edge in ("left", "right", "top", "bottom"))
        dots = [(float(c.get("cx")), float(c.get("cy"))) for c in drawing.all("circle", class_="py")]
        squares = [(float(r.get("x")) + 5, float(r.get("y")) + 5) for r in drawing.all("rect", class_="pn")]
        places = [
            (
                left + (q.x - one.x_range[0]) / (one.x_range[1] - one.x_range[0]) * (right - left),
                bottom - (q.y - one.y_range[0]) / (one.y_range[1] - one.y_range[0]) * (bottom - top),
            )
            for q in one.questions
        ]
        for label, drawn in ((1, dots), (-1, squares)):
            meant = [place for place, q in zip(places, one.questions, strict=True) if q.label == label]
            assert np.array(drawn) == pytest.approx(np.array(meant), abs=0.11)
        assert len(drawing.all("path", class_="arh")) == panel.explanations


def test_the_worked_proof_adds_up() -> None:
    report = sample_report()
    *terms, total = table("sample", "t-proof")
    assert len(terms) == len(report.proof.rows)
    weights = [Fraction(cells[0].get("data-value")) for _, cells in terms]
    for column, value in ((1, report.proof.x), (2, report.proof.y)):
        added = sum(w * Fraction(cells[column].text) for w, (_, cells) in zip(weights, terms, strict=True))
        assert added == Fraction(total[1][column].text) == Fraction(value)
    assert sum(weights) == 1
    assert all((("No" in row) == (weight > 0)) for (row, _), weight in zip(terms, weights, strict=True))


def test_the_sample_fits_together() -> None:
    report: AuditReport = sample_report()
    for one in report.maps:
        for panel in one.panels:
            letters = "".join(panel.grid)
            assert (panel.yes, panel.no) == (letters.count("Y") / len(letters), letters.count("N") / len(letters))
            assert panel.unknown == pytest.approx(1 - panel.yes - panel.no)
    for quota in report.quotas:
        curve = report.curve_of(quota.service)
        assert curve is not None
        under = [n for n, share in zip(curve.answers, curve.highest, strict=True) if share <= quota.target]
        assert quota.answers == max(under, default=0)
