"""Every number a reader sees is the JSON's: charts are measured in the browser, tables and read-outs are read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from audit_sample import edge_reports, sample_report
from overexplain.auditing.audit_report import AuditReport, Curve
from overexplain.report.words import counted, percent, share_range
from system.browser import DESKTOP, PHONE, opened, table, written

pytestmark = pytest.mark.system
HALF_A_PIXEL = 0.5


CASES = ["sample", "halves", "twelve services", "huge counts", "only decisions", "one feature", "demo"]


def of_two_hundred() -> AuditReport:
    """The sample with shares that end in half a percent: rounded in one way everywhere."""
    curve = sample_report().curves[0]
    median = tuple((1 + 2 * min(i, 99)) / 200 for i in range(len(curve.answers)))
    changed = replace(curve, judged=200, median=median, low=median, high=median, highest=median, first=median)
    return sample_report(curves=(changed, *sample_report().curves[1:]))


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A report, and its page: what is seen is compared with the JSON that the page itself carries."""
    if request.param == "demo":
        given, file = None, request.getfixturevalue("demo")
    else:
        given = of_two_hundred() if request.param == "halves" else edge_reports().get(request.param, sample_report())
        file = written(given, tmp_path_factory.mktemp("numbers"))
    with opened(browser, file) as seen:
        report = AuditReport.from_json(seen.page.locator("#report-data").evaluate("e => e.textContent"))
        assert given is None or report == given
        yield report, seen.page
        assert seen.violations() == []
        seen.assert_quiet()


# Charts --------------------------------------------------------------------------------------------------------------

# Lines of a chart as the browser has them, in pixels of the drawing; `pixel` is how large one is on the screen.
_LINES = """svg => ({
    pixel: svg.getScreenCTM().a,
    frame: Object.fromEntries(["left", "right", "top", "bottom", "max"].map(edge => [edge, Number(svg.dataset[edge])])),
    lines: [...svg.querySelectorAll("polyline[data-service]")].map(line => ({
        id: line.dataset.service, points: [...line.points].map(p => [p.x, p.y]),
    })),
    band: [...svg.querySelectorAll("polygon.band")].map(band => [...band.points].map(p => [p.x, p.y])),
    ticks: [...svg.querySelectorAll("text.c")].map(text => {  // the text may stand a little aside, its tick may not
        const x = text.x.baseVal[0].value, marks = [...svg.querySelectorAll("line.ax")].filter(e => e.getBBox().width === 0);
        const places = marks.map(mark => mark.x1.baseVal.value);
        return [text.textContent, places.reduce((best, at) => Math.abs(at - x) < Math.abs(best - x) ? at : best)];
    }),
    levels: [...svg.querySelectorAll("text.m.e")].map(text => [text.textContent, text.getBBox().y + text.getBBox().height / 2]),
})"""


def places(frame: dict[str, float], answers: Any, shares: Any) -> np.ndarray:
    """Where these values belong in the drawing, computed from its frame alone."""
    across = np.log(np.asarray(answers, dtype=float)) / math.log(frame["max"])
    x = frame["left"] + across * (frame["right"] - frame["left"])
    y = frame["bottom"] - np.asarray(shares) * (frame["bottom"] - frame["top"])
    return np.column_stack([x, y])


def assert_drawn(points: list[list[float]], wanted: np.ndarray) -> None:
    """Every corner of the line is one of the values, and every value lies on the line, to half a pixel."""
    drawn = np.array(points)
    distances = np.abs(drawn[:, None, :] - wanted[None, :, :]).max(axis=2)
    assert distances.min(axis=1).max() <= HALF_A_PIXEL
    assert np.all(np.diff(drawn[:, 0]) > 0)
    assert np.abs(np.interp(wanted[:, 0], drawn[:, 0], drawn[:, 1]) - wanted[:, 1]).max() <= HALF_A_PIXEL


def curves_of(report: AuditReport, kind: str) -> dict[str, Curve]:
    """The lines that a chart of this kind must have, by the id that each carries."""
    if kind == "curve":
        return {curve.service: curve for curve in report.curves if curve.population == "all"}
    ours = {"all": report.curve_of(report.audited.id), "denied": report.curve_of(report.audited.id, "denied")}
    return {name: curve for name, curve in ours.items() if curve} if ours["denied"] else {}


@pytest.mark.parametrize("kind", ["curve", "pooled"])
@pytest.mark.parametrize(("width", "drawing"), [(DESKTOP, "wide"), (PHONE, "narrow")])
def test_charts_have_the_numbers_of_the_json(
    case: tuple[AuditReport, Page], kind: str, width: int, drawing: str
) -> None:
    report, page = case
    wanted = curves_of(report, kind)
    page.set_viewport_size({"width": width, "height": 900})
    chart = page.locator(f"svg.{kind}.{drawing}")
    assert chart.count() == (1 if wanted else 0)
    if not wanted:
        return
    other = "narrow" if drawing == "wide" else "wide"
    assert chart.is_visible()
    assert not page.locator(f"svg.{kind}.{other}").is_visible()
    read = chart.evaluate(_LINES)
    assert 0.99 < read["pixel"] < 1.01
    frame = read["frame"]
    assert frame["max"] == max(2, *(curve.answers[-1] for curve in wanted.values()))
    assert sorted(line["id"] for line in read["lines"]) == sorted(wanted)
    for line in read["lines"]:
        curve = wanted[line["id"]]
        assert_drawn(line["points"], places(frame, curve.answers, curve.median))
    main = wanted[report.audited.id if kind == "curve" else "denied"]
    band = np.vstack([places(frame, main.answers, main.high), places(frame, main.answers, main.low)[::-1]])
    if len(main.answers) > 1:
        np.testing.assert_allclose(read["band"][0], band, atol=HALF_A_PIXEL)
    ticks = [(float(words.replace(",", "")), x) for words, x in read["ticks"]]
    assert len(ticks) >= 2
    for value, x in ticks:
        assert abs(places(frame, [value], [0])[0, 0] - x) <= HALF_A_PIXEL
    levels = [(words, y) for words, y in read["levels"] if words.removesuffix(" %").isdecimal()]
    assert len(levels) == 6
    for words, y in levels:  # the middle of the figure's box, not of its ink
        assert abs(places(frame, [1], [float(words.removesuffix(" %")) / 100])[0, 1] - y) <= 4


# Rows of marks on a log axis: where the browser has them, row by row from the top, and the ticks that say what the places mean.
_ROWS = """svg => {
    const middle = e => { const b = e.getBBox(); return [b.x + b.width / 2, b.y + b.height / 2, b.x + b.width]; };
    const rows = new Map();
    for (const axis of svg.querySelectorAll("line.rowl")) {
        const y = axis.y1.baseVal.value;
        if (!rows.has(y)) { rows.set(y, {axes: [], marks: []}); }
        rows.get(y).axes.push([axis.x1.baseVal.value, axis.x2.baseVal.value]);
    }
    for (const mark of svg.querySelectorAll("circle, path.dia, path.pt, path.hol, line.tick")) {
        const [x, y, right] = middle(mark);
        const row = rows.get([...rows.keys()].find(at => Math.abs(at - y) < 0.6));
        if (row) {
            const kind = mark.classList[0] + (mark.localName === "path" && mark.classList[0] !== "dia" ? " past" : "");
            row.marks.push([kind, kind.endsWith("past") ? right : x]);
        }
    }
    const lines = [...svg.querySelectorAll("line.g")].map(line => line.x1.baseVal.value);
    const nearest = x => lines.reduce((best, at) => Math.abs(at - x) < Math.abs(best - x) ? at : best);
    const ticks = [...svg.querySelectorAll("text.c")].map(text => [text.textContent, nearest(text.x.baseVal[0].value)]);
    return {rows: [...rows.entries()].sort((a, b) => a[0] - b[0]).map(([, row]) => row), ticks};
}"""


def ruler(read: dict[str, Any], axis: list[float], logarithmic: bool = True) -> Any:
    """The place of a value on that axis, worked out from the first and the last tick; all others must agree."""
    units = {"×": 1.0, "%": 0.01}
    ticks = []
    for words, x in read["ticks"]:
        if axis[0] - 5 <= x <= axis[1] + 5:
            plain = words.replace(",", "").strip()
            unit = units.get(plain[-1], 1.0)
            ticks.append((float(plain.rstrip("×% ")) * unit, x))
    assert len(ticks) >= 2
    scale = math.log if logarithmic else float
    (low, left), *_, (high, right) = sorted(ticks)

    def place(value: float) -> float:
        return left + (scale(value) - scale(low)) / (scale(high) - scale(low)) * (right - left)

    for value, x in ticks:
        assert abs(place(value) - x) <= HALF_A_PIXEL
    return place


def needed(explanations: int | None, labels: int | None) -> int | None:
    """The count that is quoted: a single decision beside explanations only says which side is Yes."""
    if explanations is None or labels is None:
        return None
    return explanations if explanations and labels <= 1 else explanations + labels


@pytest.mark.parametrize(("width", "drawing"), [(DESKTOP, "wide"), (PHONE, "narrow")])
def test_the_chart_of_answers_until_known_has_them(case: tuple[AuditReport, Page], width: int, drawing: str) -> None:
    report, page = case
    page.set_viewport_size({"width": width, "height": 900})
    chart = page.locator(f"svg.known.{drawing}")
    assert chart.is_visible()
    read = chart.evaluate(_ROWS)
    rows = [row for row in map(report.known_of, (service.id for service in report.services)) if row]
    assert len(read["rows"]) == len(rows)
    place = ruler(read, read["rows"][0]["axes"][0])
    for row, drawn in zip(rows, read["rows"], strict=True):
        paper = needed(row.paper_explanations, row.paper_labels)
        wanted = {"pt": needed(row.explanations, row.labels), "tick": row.minimum, "dia": paper}
        assert sorted(kind for kind, _ in drawn["marks"]) == sorted(k for k, v in wanted.items() if v is not None)
        for kind, x in drawn["marks"]:
            assert abs(x - place(wanted[kind])) <= HALF_A_PIXEL, (row.service, kind)


@pytest.mark.parametrize(("width", "drawing"), [(DESKTOP, "wide"), (PHONE, "narrow")])
def test_the_chart_of_defences_has_their_numbers(case: tuple[AuditReport, Page], width: int, drawing: str) -> None:
    report, page = case
    page.set_viewport_size({"width": width, "height": 900})
    chart = page.locator(f"svg.defences.{drawing}")
    assert chart.count() == (report.defences is not None)
    if report.defences is None:
        return
    read = chart.evaluate(_ROWS)
    axes = sorted(read["rows"][0]["axes"])
    attacker = ruler(read, axes[0])
    assert len(read["rows"]) == len(report.defences.rows)
    for row, drawn in zip(report.defences.rows, read["rows"], strict=True):
        ours = [(kind, x) for kind, x in drawn["marks"] if x <= axes[0][1] + 8]
        solid, hollow = row.explained.requests, row.with_labels.requests
        if solid == hollow:  # one mark stands for both
            assert len(ours) == 1
        for kind, x in ours:
            cost = solid if kind.startswith("pt") else hollow
            assert kind.endswith("past") == (cost is None)
            if cost is not None:
                assert abs(x - attacker(cost)) <= HALF_A_PIXEL, (row.id, kind)
        if drawing == "wide" and report.defences.rows[0].length is not None:
            for axis, value in ((axes[1], row.length), (axes[2], row.invalid)):
                place = ruler(read, axis, logarithmic=False)
                at = [x for _, x in drawn["marks"] if axis[0] - 1 <= x <= axis[1] + 1]
                assert len(at) == 1
                assert abs(at[0] - place(value)) <= HALF_A_PIXEL, row.id


# A map as the browser has it: for every grid value the areas it is well inside of, and those it is inside of or touches, to half
# a pixel (areas may have corners in grid values); and where questions are marked, in shares of the frame.
_MAP = """(svg, [rows, columns]) => {
    const frame = svg.querySelector("rect.fr").getBBox(), at = svg.createSVGPoint(), inside = [], painted = [];
    const areas = [["Y", ".ry"], ["N", ".rn"]].map(([letter, style]) => [letter, [...svg.querySelectorAll(style)]]);
    const bordered = new Set([...svg.querySelectorAll(".ry, .rn")].filter(shape => getComputedStyle(shape).stroke !== "none"));
    const around = [...Array(8).keys()].map(k => [Math.cos(k * Math.PI / 4) / 2, Math.sin(k * Math.PI / 4) / 2]);
    const filled = (shape, x, y) => { at.x = x; at.y = y; return shape.isPointInFill(at); };
    const onBorder = (shape, x, y) => { at.x = x; at.y = y; return bordered.has(shape) && shape.isPointInStroke(at); };
    const letters = found => found.map(([letter]) => letter).join("");
    for (let i = 0; i < rows; i++) {
        for (let j = 0; j < columns; j++) {
            const x = frame.x + frame.width * j / (columns - 1), y = frame.y + frame.height * i / (rows - 1);
            const hits = areas.map(([letter, shapes]) => [
                letter,
                around.map(([dx, dy]) => shapes.some(shape => filled(shape, x + dx, y + dy))),
                shapes.some(shape => onBorder(shape, x, y)),
            ]);
            inside.push(letters(hits.filter(([, near]) => near.every(hit => hit))));
            painted.push(letters(hits.filter(([, near, border]) => border || near.some(hit => hit))));
        }
    }
    const place = e => { const b = e.getBBox();
        return [(b.x + b.width / 2 - frame.x) / frame.width, 1 - (b.y + b.height / 2 - frame.y) / frame.height]; };
    const [yes, no] = ["circle.py", "rect.pn"].map(marks => [...svg.querySelectorAll(marks)].map(place));
    return {inside, painted, yes, no, arrows: svg.querySelectorAll("path.arh").length, size: frame.width};
}"""


def assert_areas(grid: tuple[str, ...], inside: list[str], painted: list[str]) -> None:
    """Every determined grid value is painted as what it is; an unknown one as nothing, nor anything around it."""
    letters = np.array([list(row) for row in grid])
    unknown = np.pad(letters == ".", 1, constant_values=True)
    rows, columns = letters.shape
    shifts = [(i, j) for i in range(3) for j in range(3)]
    far = np.all([unknown[i : i + rows, j : j + columns] for i, j in shifts], axis=0)
    for letter, alone, well, some in zip(letters.ravel(), far.ravel(), inside, painted, strict=True):
        assert letter not in "YN" or letter in some
        assert letter == "=" or well in ("", letter)
        assert not alone or some == ""


@pytest.mark.parametrize("case", ["sample", "huge counts", "demo"], indirect=True)
def test_maps_have_the_areas_and_questions_of_the_json(case: tuple[AuditReport, Page]) -> None:
    report, page = case
    page.set_viewport_size({"width": DESKTOP, "height": 900})
    assert page.locator(".maps").count() == len(report.maps)
    for i, one in enumerate(report.maps):
        if len(report.maps) > 1:
            page.locator("#maps label").nth(i).click()
        drawings = page.locator(".maps").nth(i).locator("svg")
        assert drawings.count() == len(one.panels)
        for drawing, panel in zip(drawings.all(), one.panels, strict=True):
            read = drawing.evaluate(_MAP, [len(panel.grid), len(panel.grid[0])])
            assert_areas(panel.grid, read["inside"], read["painted"])
            for label, drawn in ((1, read["yes"]), (-1, read["no"])):
                asked = [q for q in one.questions[: panel.decisions] if q.label == label]
                (left, right), (low, high) = one.x_range, one.y_range
                wanted = [[(q.x - left) / (right - left), (q.y - low) / (high - low)] for q in asked]
                np.testing.assert_allclose(drawn, wanted, atol=HALF_A_PIXEL / read["size"])
            assert read["arrows"] == panel.explanations


# Tables --------------------------------------------------------------------------------------------------------------


def values(rows: list[list[dict[str, Any]]], name: str = "value") -> list[list[Any]]:
    """The numbers of the cells, row by row; the heads of the rows left out, None where a cell has no number."""
    return [[None if cell.get(name, "") == "" else cell[name] for cell in row if not cell["heads"]] for row in rows]


def test_tables_have_the_numbers_of_the_json(case: tuple[AuditReport, Page]) -> None:
    report, page = case
    curves = [report.curve_of(service.id) for service in report.services]
    shown = [curve for curve in curves if curve]
    answers = sorted({n for curve in shown for n in curve.answers})
    rows = table(page, "t-curve")
    assert [int(row[0]["text"].replace(",", "")) for row in rows] == answers
    for name, field in (("value", "median"), ("low", "low"), ("high", "high"), ("highest", "highest")):
        shares = [dict(zip(curve.answers, getattr(curve, field), strict=True)) for curve in shown]
        assert values(rows, name) == [[share.get(n) for share in shares] for n in answers]
    pooled = report.curve_of(report.audited.id, "denied")
    if pooled:
        assert values(table(page, "t-pooled")) == [[share] for share in pooled.median]
    known = [row for row in map(report.known_of, (service.id for service in report.services)) if row]
    assert values(table(page, "t-known")) == [
        [
            needed(row.explanations, row.labels),
            row.explanations,
            row.labels,
            row.computed,
            row.minimum,
            needed(row.paper_explanations, row.paper_labels),
            row.angle_error,
            row.error_bound,
            row.agreement,
            None,
        ]
        for row in known
    ]


def test_tables_of_maps_defences_and_the_proof_have_the_numbers(case: tuple[AuditReport, Page]) -> None:
    report, page = case
    panels = [panel for one in report.maps for panel in one.panels]
    assert values(table(page, "t-map")) == [[p.decisions, p.explanations, p.yes, p.no, p.unknown] for p in panels]
    questions = [question for one in report.maps for question in one.questions]
    assert values(table(page, "t-points")) == [[q.x, q.y, q.label, *(q.explanation or (None, None))] for q in questions]
    rows = report.defences.rows if report.defences else ()
    assert values(table(page, "t-defences")) == [
        [r.explained.requests, r.with_labels.requests, r.length, r.invalid, r.unanswered, None] for r in rows
    ]
    for name, part in (("explanations", "explanations"), ("decisions", "labels")):
        split = [[getattr(cost, part) for cost in (row.explained, row.with_labels)] for row in rows]
        assert [row[:2] for row in values(table(page, "t-defences"), name)] == split
    proof = table(page, "t-proof")
    if report.proof is None:
        assert proof == []
        return
    cells = [[cell["text"] for cell in row[2:]] for row in proof]
    assert cells == [*([row.x, row.y] for row in report.proof.rows), [report.proof.x, report.proof.y]]
    weights = [Fraction(str(row[1]["value"])) for row in proof]
    assert weights[:-1] == [Fraction(row.weight) for row in report.proof.rows]
    for column in (0, 1):  # the sum that the reader is invited to redo
        terms = [weight * Fraction(row[column]) for weight, row in zip(weights, cells, strict=True)]
        assert sum(terms[:-1]) == terms[-1]
    assert sum(weights[:-1]) == 1


def test_the_three_numbers_are_those_of_the_audited_service(case: tuple[AuditReport, Page]) -> None:
    report, page = case
    read = page.locator("[data-name]").evaluate_all(
        "all => all.map(e => [Number(e.dataset.value), e.querySelector('.n').textContent.replace(/\\s/g, '')])"
    )
    known, curve, quota = (find(report.audited.id) for find in (report.known_of, report.curve_of, report.quota_of))
    wanted = []
    if known:
        count = needed(known.explanations, known.labels)
        wanted.append([count, f"{count:,}"])
    if curve and (at := curve.at(report.headline)) is not None:
        wanted.append([curve.median[at], percent(curve.median[at]).replace(" ", "")])
    if quota:
        wanted.append([quota.answers, f"{quota.answers:,}"])
    assert read == wanted


@pytest.mark.parametrize("case", ["halves", "huge counts", "demo"], indirect=True)
def test_the_readout_says_what_the_table_says(case: tuple[AuditReport, Page]) -> None:
    report, page = case
    page.set_viewport_size({"width": DESKTOP, "height": 900})
    rows = table(page, "t-curve")
    slider = page.locator("#readout-k")
    slider.focus()
    for i, row in enumerate(rows):
        slider.press("ArrowRight" if i else "Home")
        answers = int(row[0]["text"].replace(",", ""))
        assert page.locator("#readout-label").inner_text() == f"After {counted(answers, 'answer')}"
        said = page.locator("#readout-out b").evaluate_all("all => all.map(e => e.textContent)")
        for cell, words in zip(row[1:], said, strict=True):
            if "value" in cell:
                share = share_range(cell["value"], cell.get("atMost"))
                assert words.replace("\u00a0", " ").startswith(share), (answers, words)
                assert cell["text"].replace("\u00a0", " ").startswith(share), (answers, cell)
    assert len(rows) == len({n for curve in report.curves if curve.population == "all" for n in curve.answers})
