"""A slice as letters and as pictures: golden text, valid and accessible XML, every number in words as well."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from overexplain.auditing.determined import RobustUse
from overexplain.auditing.slices import Axis, Slice
from overexplain.errors import InvalidInput
from overexplain.knowledge.verdicts import Verdict
from overexplain.report.areas import middle, runs
from overexplain.report.png import write_png
from overexplain.report.slices import letters, print_slice, ticks
from overexplain.report.svg import MOST_MARKS, svg_of
from overexplain.report.terminal import terminal

NAN = float("nan")
SVG = "{http://www.w3.org/2000/svg}"
CODES = [  # the lowest row first
    [-1, -1, -1, 0, 0, 1],
    [-1, -1, 0, 0, 1, 1],
    [-1, 2, 3, 1, 1, 1],
]
SLICE = Slice(
    across=Axis(2, "income", np.linspace(0.0, 50.0, 6)),
    up=Axis(0, "age", np.linspace(20.0, 60.0, 3)),
    codes=np.array(CODES, dtype=np.int8),
    base=np.array([1.0, 2.5, 3.0, -4.0]),
    names=("age", "years", "income", "debts"),
    centred=True,
    asked=np.array([[50.0, 20.0], [2.0, 59.0], [24.0, 38.0], [999.0, 20.0], [11.0, 41.0], [12.0, 41.0]]),
    labels=np.array([1, -1, 0, 1, 1, -1], dtype=np.int8),
    explanations=np.array([[31.0, 20.0], [NAN, NAN], [NAN, NAN], [30.0, 20.0], [NAN, NAN], [NAN, NAN]]),
    rows=9,
    oriented=True,
)
GOLDEN = """\
The log determines at least 66 % of this slice.
Held at the median of the log's points: years = 2.5, debts = -4.
6 of the log's 9 points lie in this plane.
6 % are not settled, by a limit or by rounding: they may be determined, too.

age
   +------+
60 |x=?YYY|
40 |N&*.YY|
20 |NNN+.o|
   +------+
   0  30 50
     income

Y certain Yes >= 33 %   N certain No >= 33 %   . unknown >= 22 %
= on the boundary >= 5 %   ? undecided 6 %   o asked, answered Yes
x asked, answered No   * asked, label not known
& both asked, answered Yes and No   + an explanation
"""


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "TERM"):
        monkeypatch.delenv(name, raising=False)


def text_of(found: Slice) -> str:
    page = io.StringIO()
    print_slice(found, terminal(page))
    return page.getvalue()


def grid_of(codes: np.ndarray) -> Slice:
    """A slice with these codes, without any points."""
    rows, columns = codes.shape
    none = np.empty((0, 2))
    across, up = Axis(2, "income", np.linspace(0.0, 1.0, columns)), Axis(0, "age", np.linspace(0.0, 1.0, rows))
    labels = np.empty(0, dtype=np.int8)
    return replace(SLICE, across=across, up=up, codes=codes, asked=none, explanations=none, labels=labels)


def test_the_grid_of_letters() -> None:
    assert text_of(SLICE) == GOLDEN


def test_colours_are_there_only_on_a_terminal_and_say_nothing_new(monkeypatch) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    screen = Screen()
    print_slice(SLICE, terminal(screen))
    assert "\x1b[" in screen.getvalue()
    import re

    assert re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue()) == GOLDEN
    monkeypatch.setenv("NO_COLOR", "1")
    quiet = Screen()
    print_slice(SLICE, terminal(quiet))
    assert quiet.getvalue() == GOLDEN


def test_only_what_is_there_is_explained() -> None:
    text = text_of(grid_of(np.ones((31, 61), dtype=np.int8)))
    assert text.endswith("\n\nY certain Yes 100 %\n")
    assert "unknown" not in text
    assert all(len(line) <= 80 and line == line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize("values", [(1e9, 1e9 + 1e-3), (-1.23456e-300, 9.8765e300), (0.1234567, 0.1234568)])
def test_it_fits_80_columns_whatever_the_numbers_and_names_are(values) -> None:
    found = grid_of(np.zeros((31, 61), dtype=np.int8))
    axis = Axis(0, "a name " * 30 + "\x1b\n", np.linspace(*values, 31))
    wide = replace(found, up=axis, across=replace(axis, values=np.linspace(*values, 61)))
    assert all(len(line) <= 80 for line in text_of(wide).splitlines() if not line.startswith("Held"))
    assert "\x1b" not in text_of(wide)


def test_a_grid_that_is_too_wide_is_refused_with_what_would_fit() -> None:
    with pytest.raises(InvalidInput, match=r"100 columns .* terminal of 80; at most 7\d do.*map.svg"):
        text_of(grid_of(np.zeros((3, 100), dtype=np.int8)))


def test_what_robust_rows_leave_open_and_rest_on_is_said() -> None:
    use = RobustUse("shared", explanations=3, balls=("l1", "l2"), secret=1, leaves_open=True)
    text = " ".join(text_of(replace(SLICE, robust=use)).split())
    assert "6 % are not settled: the convex set of --robust shared, or a limit, leaves them open;" in text
    assert "have 2 norms (l1, l2): each has a length of its own" in text
    assert "Radius secret for 1 of 3: what is used is that answers of one service lie equally far" in text
    exact = replace(use, level="exact", balls=("l1",), secret=0, leaves_open=False)
    text = " ".join(text_of(replace(SLICE, robust=exact)).split())
    assert "6 % are not settled: a limit of time, of cases or of rounding was hit." in text
    assert "norms" not in text
    assert "Radius" not in text
    settled = replace(grid_of(np.ones((3, 5), dtype=np.int8)), robust=use)
    assert "not settled" not in text_of(settled)
    assert "at least" not in text_of(settled)


def test_balls_are_drawn_inside_the_plot_only() -> None:
    around = np.column_stack([31 + 40 * np.cos(np.arange(6)), 20 + 5 * np.sin(np.arange(6))])  # most of it is outside
    page = ElementTree.fromstring(svg_of(replace(SLICE, balls=(around,))))
    ball, sample = page.find(f"{SVG}path[@class='ball']"), page.findall(f".//{SVG}g/{SVG}path[@class='ball']")
    assert ball.get("clip-path") == "url(#plot)"
    assert ball.get("d").count("L") == 5
    assert len(sample) == 1
    assert "its ball: all of it gets that answer" in [element.text for element in page.iter(SVG + "text")]
    assert "ball" not in [path.get("class") for path in ElementTree.fromstring(svg_of(SLICE)).iter(SVG + "path")]


def test_many_held_features_are_not_all_named_and_no_label_is_said() -> None:
    names, base = tuple(f"f{i}" for i in range(40)), np.arange(40.0)
    text = text_of(replace(SLICE, names=names, base=base, oriented=False, centred=False))
    assert "Held at the point given: f1 = 1, f3 = 3, f4 = 4, f5 = 5, f6 = 6, f7 = 7 and 32" in text
    assert "The log has no label: Yes and No may be exchanged" in text


def test_a_slice_of_all_features_holds_none() -> None:
    text = text_of(replace(SLICE, names=("age", "income"), base=np.zeros(2), across=replace(SLICE.across, feature=1)))
    assert "Held" not in text
    assert "lie in this plane" not in text


def test_points_go_to_the_nearest_cell_and_stay_out_if_they_are_out() -> None:
    found = grid_of(np.zeros((3, 5), dtype=np.int8))  # steps of 1/2 up and 1/4 across
    points = np.array([[0.124, 0.0], [0.126, 0.0], [-0.13, 0.0], [1.0, 1.24], [1.0, 1.26], [NAN, NAN]])
    marked = replace(found, asked=points, labels=np.ones(6, dtype=np.int8), explanations=np.full((6, 2), NAN))
    assert letters(marked) == ["....o", ".....", "oo..."]


def test_ticks_have_the_digits_it_takes() -> None:
    assert ticks(Axis(0, "x", np.linspace(0, 100, 5))) == ("0", "50", "100")
    assert ticks(Axis(0, "x", np.linspace(1000, 1001, 5))) == ("1000", "1000.5", "1001")
    assert ticks(Axis(0, "x", np.linspace(-2.16, 2.97, 61))) == ("-2.16", "0.405", "2.97")


def test_the_middle_value_stands_beside_its_own_row() -> None:
    lines = text_of(grid_of(np.zeros((4, 5), dtype=np.int8))).splitlines()
    start = next(i for i, line in enumerate(lines) if "+-----+" in line)
    assert [line[:5].strip() for line in lines[start + 1 : start + 5]] == ["1", "0.667", "", "0"]


def test_areas_are_bars_and_their_middle_is_inside() -> None:
    mask = np.array([[1, 1, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1]], dtype=bool)
    assert runs(mask) == [(0, 0, 2), (0, 3, 4), (2, 0, 4)]
    ring = np.ones((9, 9), dtype=bool)
    ring[3:6, 3:6] = False
    row, column = middle(ring, 1)
    assert ring[row, column]
    assert middle(ring, 2) is None
    assert middle(np.zeros((3, 3), dtype=bool), 0) is None


def test_svg_is_valid_accessible_and_says_every_number_in_words() -> None:
    page = ElementTree.fromstring(svg_of(SLICE))
    assert page.tag == SVG + "svg"
    assert page.get("role") == "img"
    described = [page.find(f".//*[@id='{name}']") for name in page.get("aria-labelledby").split()]
    assert [element.tag for element in described] == [SVG + "title", SVG + "desc"]
    assert described[0].text == "The log determines at least 66 % of this slice."
    assert described[1].text.startswith(
        "income across, age up. certain Yes ≥ 33 %, certain No ≥ 33 %, unknown ≥ 22 %, "
    )
    words = [element.text for element in page.iter(SVG + "text")]
    assert {"age", "income", "0", "60", "unknown, ≥ 22 % of this slice", "asked, label not known"} <= set(words)
    assert not page.findall(".//*[@style]")


def test_svg_draws_every_cell_once_and_every_mark_that_is_inside() -> None:
    page = ElementTree.fromstring(svg_of(SLICE))
    paths = {path.get("class"): path.get("d").count("M") for path in page.findall(SVG + "path")}
    assert {k: v for k, v in paths.items() if k in ("yes", "no", "unknown", "boundary", "undecided")} == {
        "yes": 3, "no": 3, "unknown": 2, "boundary": 1, "undecided": 1,
    }  # fmt: skip
    assert len(page.findall(SVG + "circle")) == 2  # answered Yes, less the one far outside
    assert len(page.findall(f"{SVG}rect[@class='no-mark']")) == 2
    assert len(page.findall(f"{SVG}path[@class='head']")) == 1
    assert len(page.findall(f"{SVG}path[@class='open-mark']")) == 1


def test_areas_whose_borders_are_known_are_drawn_by_them(tmp_path) -> None:
    border = np.array([[20.0, 20.0], [50.0, 30.0], [30.0, 60.0]])
    found = replace(SLICE, areas={Verdict.YES: border, Verdict.NO: np.zeros((0, 2))})
    page = ElementTree.fromstring(svg_of(found))
    paths = {path.get("class"): path.get("d") for path in page.findall(SVG + "path")}
    assert paths["yes exact"].count("L") == 2
    assert paths["no"].count("M") == 3  # a border of no corners: the cells
    assert len(page.findall(f"{SVG}rect[@class='unknown']")) == 1  # the ground of all
    low, high = page.find(f"{SVG}rect[@class='frame']").get("x"), paths["yes exact"][1:].split("L")[0].split()[0]
    assert float(low) < float(high) < float(low) + 484
    write_png(found, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_svg_of_hostile_names_is_still_xml() -> None:
    name = 'a<b>&"c\x00\x1b\ud800 ' + "long " * 40
    hostile = replace(SLICE, up=replace(SLICE.up, name=name), names=(name, "y", "i", "]]>"))
    text = svg_of(hostile)
    ElementTree.fromstring(text.encode())
    assert "a&lt;b&gt;&amp;" in text


def test_svg_names_areas_that_are_large_enough_and_draws_not_too_many_marks() -> None:
    codes = np.ones((40, 40), dtype=np.int8)
    codes[:, 20:] = -1
    many = np.full((MOST_MARKS + 5, 2), 0.5)
    labels = np.ones(len(many), dtype=np.int8)
    found = replace(grid_of(codes), asked=many, labels=labels, explanations=np.full(many.shape, NAN))
    page = ElementTree.fromstring(svg_of(found))
    words = [element.text for element in page.iter(SVG + "text")]
    assert {"Yes", "No", "1,000 of 1,005 questions are drawn"} <= set(words)
    assert len(page.findall(SVG + "circle")) == MOST_MARKS


def test_the_same_slice_gives_the_same_bytes(tmp_path) -> None:
    assert svg_of(SLICE) == svg_of(SLICE)
    for name in ("a.png", "b.png"):
        write_png(replace(SLICE, up=replace(SLICE.up, name="$x$ \u4e2d")), tmp_path / name)
    first, second = ((tmp_path / name).read_bytes() for name in ("a.png", "b.png"))
    assert first.startswith(b"\x89PNG")
    assert first == second


def test_png_without_matplotlib_names_the_extra(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InvalidInput, match=r"overexplain\[plot\]"):
        write_png(SLICE, tmp_path / "x.png")
