"""Drawings: texts never touch or leave the drawing, areas cover their cells and no others."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial import Delaunay

from audit_sample import edge_reports, sample_report
from html_reader import REPORTS, Node, read, rows_of, tree
from overexplain.report.audit_markdown import render_markdown
from overexplain.report.html.curve_chart import curve_charts
from overexplain.report.html.outline import outline
from overexplain.report.html.page import render_html
from overexplain.report.html.placement import Name, place_names
from overexplain.report.html.scales import Scale, compact, counts_up_to, decades_around, round_steps, spaced
from overexplain.report.html.texts import LONGEST, presentable, shortened, tidy, width_of


def boxes_of(drawing: Node) -> list[tuple[str, tuple[float, float, float, float]]]:
    """The texts of a drawing with the room that they take in a wide font."""
    size = 12.5 if "narrow" in drawing.classes else 13.0
    boxes = []
    for text in drawing.all("text"):
        bold = bool(text.classes & {"b", "ty", "tn"})
        width, x, y = width_of(text.text, size, bold), float(text.get("x")), float(text.get("y"))
        left = x - width if "e" in text.classes else x - width / 2 if "c" in text.classes else x
        boxes.append((text.text, (left, y - 10.5, left + width, y + 3)))
    return boxes


@pytest.mark.parametrize("name", list(REPORTS))
def test_no_two_texts_of_a_drawing_touch_and_none_leaves_it(name: str) -> None:
    for drawing in tree(name).all("svg"):
        if "aria-hidden" in drawing.attributes:
            continue
        width, height = (float(side) for side in drawing.get("viewbox").split()[2:])
        boxes = boxes_of(drawing)
        for words, (left, top, right, bottom) in boxes:
            assert left > -8, words
            assert right < width + 8, words
            assert top > -2, words
            assert bottom < height + 2, words
        for (a, one), (b, other) in itertools.combinations(boxes, 2):
            apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
            assert apart, f"{a!r} touches {b!r}"


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 12])
@pytest.mark.parametrize("together", [True, False])
def test_names_of_lines_that_end_together_find_places(count: int, together: bool) -> None:
    whole = sample_report()
    services = tuple(
        replace(whole.services[0], id=f"s{i}", name=f"Service number {i} of them") for i in range(1, count + 1)
    )
    shape = whole.curves[0]
    curves = tuple(
        replace(
            shape,
            service=f"s{i}",
            median=shape.median if together else tuple(min(1.0, s * (0.4 + i / 20)) for s in shape.median),
        )
        for i in range(1, count + 1)
    )
    for chart in curve_charts(replace(whole, services=services, curves=curves)):
        drawing = read(chart).one("svg")
        named = [words for words, _ in boxes_of(drawing) if words.startswith("Ser")]
        assert len(named) == count
        assert sum(words.endswith(", audited") for words in named) == 1
        for (_, one), (_, other) in itertools.combinations(boxes_of(drawing), 2):
            assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def test_a_name_stands_at_its_line_or_has_a_leader_to_it() -> None:
    rising = tuple((x, 300 - x / 2) for x in range(50, 500, 10))
    falling = tuple((x, 50 + x / 2) for x in range(50, 500, 10))
    for placed, line in zip(
        place_names([Name("up", rising), Name("down", falling)], (0, 0, 600, 350), 200), (rising, falling), strict=True
    ):
        left, top, right, bottom = placed.box
        away = min(np.hypot(max(left - x, x - right, 0), max(top - y, y - bottom, 0)) for x, y in line)
        assert placed.leader is not None or away < 16
        if placed.leader is not None:
            assert min(np.hypot(placed.leader[1][0] - x, placed.leader[1][1] - y) for x, y in line) < 8


def test_names_are_shortened_and_then_left_out_where_there_is_no_room() -> None:
    line = ((0.0, 10.0), (100.0, 10.0))
    (placed,) = place_names(
        [Name("a name that is much too long for it", line, suffix=", audited")], (0, 0, 120, 40), 110
    )
    assert placed.words.endswith("…, audited")
    assert place_names([Name("wide name", line)], (0, 0, 10, 10), 200) == []


@pytest.mark.parametrize("seed", range(25))
def test_an_outline_covers_its_cells_and_no_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(3, 30, size=2)
    row, column = np.indices((rows, columns))
    mask = np.ones((rows, columns), dtype=bool)
    for _ in range(rng.integers(1, 4)):
        a, b, c = rng.normal(size=3) * (1, 1, 5)
        mask &= a * (row - rows / 2) + b * (column - columns / 2) <= c
    if seed % 3 == 0 and mask.any():  # a hole, as a limit leaves one
        mask[tuple(rng.choice(np.argwhere(mask)))] = False
    covered = np.zeros_like(mask)
    for shape in outline(mask):
        corners = np.array(shape, dtype=float)
        if np.linalg.matrix_rank(corners - corners[0]) == 2:
            inside = Delaunay(corners).find_simplex(np.stack([row, column], axis=-1).reshape(-1, 2), tol=1e-9) >= 0
            covered |= inside.reshape(mask.shape)
        else:
            (r1, c1), (r2, c2) = corners.min(axis=0), corners.max(axis=0)
            between = (row >= r1) & (row <= r2) & (column >= c1) & (column <= c2)
            direction = corners[-1] - corners[0]
            covered |= between & ((row - corners[0][0]) * direction[1] == (column - corners[0][1]) * direction[0])
    assert np.array_equal(covered, mask)


def test_a_map_paints_the_middle_of_a_cell_only_in_its_own_colour() -> None:
    drawings = [svg for svg in tree("sample").all("svg") if "data-yes" in svg.attributes]
    panels = [panel for one in sample_report().maps for panel in one.panels]
    for drawing, panel in zip(drawings, panels, strict=True):
        left, right, top, bottom = (float(drawing.get(f"data-{edge}")) for edge in ("left", "right", "top", "bottom"))
        letters = np.array([list(row) for row in panel.grid])
        cells = np.stack(np.meshgrid(np.linspace(left, right, 41), np.linspace(top, bottom, 41)), axis=-1)
        painted = {letter: np.zeros(letters.shape, dtype=bool) for letter in "YN"}
        for area in [*drawing.all("path", class_="grown"), *drawing.all("polygon")]:
            letter = {"ry": "Y", "rn": "N"}.get(next(iter(area.classes & {"ry", "rn"}), ""), "")
            if letter:
                painted[letter] |= inside_of(area, cells)
        for letter, mask in painted.items():
            assert (mask == (letters == letter))[letters != "="].all(), (
                f"{letter} with {panel.explanations} explanations"
            )


def test_cells_that_a_limit_left_unsettled_are_dotted_not_hatched_as_unknown() -> None:
    report = sample_report()
    one = report.maps[0]
    grid = tuple(row.replace(".", "?") for row in one.panels[0].grid)
    share = sum(row.count("?") for row in grid) / sum(map(len, grid))
    panel = replace(one.panels[0], grid=grid, unknown=share, undecided=share)
    changed = replace(report, maps=(replace(one, panels=(panel, *one.panels[1:])), *report.maps[1:]))
    page = read(render_html(changed))
    first = next(svg for svg in page.all("svg") if "data-yes" in svg.attributes)
    dots = [bar for bar in first.all("rect") if (bar.attributes.get("fill") or "").endswith("d)")]
    assert len(dots) >= len(grid)
    assert "not settled" in first.one("title").text
    cells = rows_of(page.one("table", id="t-map"))[0][1]
    assert [cell.text.startswith("≥ ") for cell in cells[2:4]] == [True, True]
    assert cells[4].text.startswith("0–")
    assert float(cells[5].get("data-value")) == share
    text = render_markdown(changed)
    assert "| Not settled |" in text
    assert "| Not settled |" not in render_markdown(report)


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def inside_of(area: Node, cells: np.ndarray) -> np.ndarray:
    """Which cells' middles a shape paints, its border included; by half planes, since it is convex."""
    text = (
        area.get("d").strip("Mz").replace("L", " ") if "d" in area.attributes else area.get("points").replace(",", " ")
    )
    corners = np.array(text.split(), dtype=float).reshape(-1, 2)
    border = float(area.attributes.get("stroke-width") or 0) / 2
    way = np.roll(corners, -1, axis=0) - corners
    turn = np.sign(cross(way, np.roll(way, -1, axis=0)).sum())
    side = turn * cross(way, cells[:, :, None] - corners) / np.linalg.norm(way, axis=1)
    within = (side >= -1e-6).all(axis=-1)
    along = np.clip(((cells[:, :, None] - corners) * way).sum(-1) / (way * way).sum(-1), 0, 1)
    near = np.linalg.norm(cells[:, :, None] - corners - along[..., None] * way, axis=-1).min(axis=-1) <= border
    return within | near


def test_scales() -> None:
    log = Scale(1, 1000, 0, 300, is_log=True)
    assert [log(v) for v in (1, 10, 100, 1000, 0, 5000)] == pytest.approx([0, 100, 200, 300, 0, 300])
    assert Scale(5, 5, 10, 20)(5) == 10
    assert counts_up_to(2, (1, 2, 5)) == [1, 2]
    assert decades_around(999, 1001) == (100, 10_000)
    for low, high in ((0.9, 1.0), (1, 1.0001), (0, 1), (1, 7.3), (1, 1e9)):
        steps = round_steps(low, high)
        assert 1 <= len(steps) <= 4
        assert all(low - 1e-9 <= step <= high + 1e-9 for step in steps)
    assert compact(-1234.5) == "−1,230"
    ticks = spaced([1, 1000, 1_000_000], ["1", "1,000", "1,000,000"], Scale(1, 1e6, 0, 300, is_log=True), limit=310)
    assert ticks[-1].middle + width_of("1,000,000") / 2 <= 310


def test_texts_are_cut_to_fit() -> None:
    for text in ("income", "w" * 500, "日本語" * 40, "👩‍👩‍👧" * 20, "שלום " * 40):
        for width in (40, 120, 300):
            assert width_of(shortened(text, width)) <= max(width, width_of(text[0] + "…"))
    sample = sample_report()
    assert presentable(sample) == sample
    for name, report in edge_reports().items():
        shown = presentable(report)
        assert all(len(feature) <= LONGEST for feature in shown.subject.features), name
        assert presentable(shown) == shown
        assert shown.maps == () or shown.maps[0].panels == report.maps[0].panels
    assert tidy("x" * 10_000, LONGEST).endswith("…")
