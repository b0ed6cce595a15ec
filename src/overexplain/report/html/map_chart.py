"""Maps of two features: areas where every fitting model agrees, the hatched rest, the questions asked and where advice leads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from overexplain.auditing.audit_report import Map, Panel, Question
from overexplain.geometry.arrays import BoolArray, FloatArray
from overexplain.report.areas import middle, runs
from overexplain.report.audit_sections import panel_shares
from overexplain.report.html.outline import outline
from overexplain.report.html.scales import Scale, compact
from overexplain.report.html.shapes import (
    Point,
    circle,
    dots,
    element,
    hatch,
    line,
    number,
    picture,
    points,
    rectangle,
    text,
)
from overexplain.report.html.texts import shortened, width_of

WIDTH, HEIGHT, TOP, BOTTOM, RIGHT = 280.0, 304.0, 26.0, 260.0, 274.0
MOST_MARKS = 200
"""Questions that are drawn; more would hide the areas."""


def map_panel(shown: Map, panel: Panel, id: str) -> str:
    """One map after some answers."""
    ticks_up = [compact(value) for value in _three(shown.y_range)]
    left = max(30.0, *(width_of(words) + 8 for words in ticks_up))
    across, up = Scale(*shown.x_range, left, RIGHT), Scale(*shown.y_range, BOTTOM, TOP)
    letters = np.array([list(row) for row in panel.grid])
    width, height = RIGHT - left, BOTTOM - TOP
    window = rectangle((left, TOP), width, height)
    patterns = hatch(f"{id}h") + (dots(f"{id}d") if "?" in letters else "")
    parts = [element("defs", patterns + element("clipPath", window, id=f"{id}c"))]
    parts.append(rectangle((left, TOP), width, height, fill=f"url(#{id}h)"))
    areas = "".join([*_areas(letters, shown, across, up), *_open_cells(letters == "?", left, f"url(#{id}d)")])
    parts.append(element("g", areas, clip_path=f"url(#{id}c)"))
    if shown.line is not None:
        ends = [(across(x), up(y)) for x, y in shown.line]
        parts.append(line(ends[0], ends[1], "true" if set(".?") & set("".join(panel.grid)) else "edge"))
    parts.append(rectangle((left, TOP), width, height, "fr"))
    for question in shown.questions[: min(panel.explanations, MOST_MARKS)]:
        if question.explanation is not None:
            parts += _arrow(
                (across(question.x), up(question.y)), (across(question.explanation[0]), up(question.explanation[1]))
            )
    parts += [_mark(question, across, up) for question in shown.questions[: min(panel.decisions, MOST_MARKS)]]
    for letter, word, style in (("Y", "Yes", "ty c halo"), ("N", "No", "tn c halo")):
        spot = middle(letters == letter, least=max(2, letters.shape[0] // 14))
        if spot is not None:
            row, column = spot
            place = _free(
                left + width * column / (letters.shape[1] - 1),
                TOP + height * row / (letters.shape[0] - 1),
                shown,
                across,
                up,
            )
            parts.append(text(place[0], place[1] + 4.5, word, style))
    parts += _axes(shown, ticks_up, left)
    yes, no, unknown, unsettled = panel_shares(panel)
    shares = f"Determined Yes {yes}, determined No {no}, unknown {unknown}"
    shares += f", not settled {unsettled}" * bool(panel.undecided)
    about = f"{shown.across} across, {shown.up} up. {shares} of the map."
    data = {"data_explanations": str(panel.explanations)}
    edges = {"left": left, "right": RIGHT, "top": TOP, "bottom": BOTTOM}
    data |= {f"data_{name}": number(edge) for name, edge in edges.items()}
    data |= {f"data_{name}": repr(getattr(panel, name)) for name in ("yes", "no", "unknown")}
    return picture(parts, (WIDTH, HEIGHT), about, f"{id}t", "", **data)


def _three(ends: tuple[float, float]) -> tuple[float, float, float]:
    low, high = ends
    return low, low + (high - low) / 2, high


def _areas(letters: NDArray[np.str_], shown: Map, across: Scale, up: Scale) -> list[str]:
    """Where the answer is certain: both sides of the line if that is everywhere, else shapes around the cells."""
    if shown.line is not None and set("YN") <= set(letters.flat) <= set("YN="):
        halves = _halves(letters, [(across(x), up(y)) for x, y in shown.line], across.start)
        if halves:
            return halves
    return [_area(letters == letter, style, across.start) for letter, style in (("Y", "ry"), ("N", "rn"), ("=", "hb"))]


def _open_cells(mask: BoolArray, left: float, fill: str) -> list[str]:
    """The cells that a limit left unsettled, as bars of the width of their cells."""
    places = _places(mask.shape, left)
    width, height = (RIGHT - left) / max(mask.shape[1] - 1, 1), (BOTTOM - TOP) / max(mask.shape[0] - 1, 1)
    drawn = []
    for row, start, stop in runs(mask):
        x, y = places[row, start]
        corner = float(x) - width / 2, float(y) - height / 2
        drawn.append(rectangle(corner, width * (stop - start), height, fill=fill))
    return drawn


def _halves(letters: NDArray[np.str_], ends: list[Point], left: float) -> list[str]:
    """The map cut in two along the line; nothing if a cell does not lie on its answer's side."""
    (x1, y1), (x2, y2) = ends
    places = _places(letters.shape, left)
    side = (x2 - x1) * (places[..., 1] - y1) - (y2 - y1) * (places[..., 0] - x1)
    yes = np.sign(side[letters == "Y"].sum())
    if (side[letters == "Y"] * yes < -1e-6).any() or (side[letters == "N"] * yes > 1e-6).any():
        return []
    far = 4 * WIDTH * np.array([x2 - x1, y2 - y1]) / max(float(np.hypot(x2 - x1, y2 - y1)), 1e-9)
    aside = yes * np.array([-far[1], far[0]])
    border = np.array([np.array(ends[0]) - far, np.array(ends[1]) + far])
    drawn = []
    for style, way in (("rn", -aside), ("ry", aside)):
        corners = [(float(x), float(y)) for x, y in (*border, *(border[::-1] + way))]
        drawn.append(element("polygon", class_=style, points=points(corners)))
    return drawn


def _places(shape: tuple[int, ...], left: float) -> FloatArray:
    """The middles of the cells: the grid's values go from edge to edge."""
    rows, columns = shape
    x = left + (RIGHT - left) * np.arange(columns) / max(columns - 1, 1)
    y = TOP + (BOTTOM - TOP) * np.arange(rows) / max(rows - 1, 1)
    return np.stack(np.meshgrid(x, y), axis=-1)


def _area(mask: BoolArray, style: str, left: float) -> str:
    """The cells of a mask, as shapes around their middles with a border that reaches no other cell's middle."""
    places = _places(mask.shape, left)
    shapes = [np.array([places[row, column] for row, column in shape]) for shape in outline(mask)]
    if not shapes:
        return ""
    cell = (RIGHT - left) / max(mask.shape[1] - 1, 1)
    reach = min(cell / 2, 0.8 * min(float(_away(shape, places[~mask]).min(initial=np.inf)) for shape in shapes))
    path = "".join("M" + "L".join(f"{number(x)} {number(y)}" for x, y in shape) + "z" for shape in shapes)
    return element("path", class_=f"{style} grown", d=path, stroke_width=number(2 * reach))


def _away(shape: FloatArray, places: FloatArray) -> FloatArray:
    """How far each place is from the border of a shape."""
    start, step = shape, np.roll(shape, -1, axis=0) - shape
    length = np.maximum((step * step).sum(axis=1), 1e-12)
    way = places[:, None] - start
    share = np.clip((way * step).sum(axis=2) / length, 0, 1)[..., None]
    distances: FloatArray = np.hypot(*(way - share * step).transpose(2, 0, 1)).min(axis=1)
    return distances


def _arrow(start: Point, end: Point) -> list[str]:
    """From a question to the case its explanation names."""
    step = np.array(end) - np.array(start)
    length = float(np.hypot(*step))
    if length < 1:
        return []
    along = step / length
    aside = np.array([-along[1], along[0]]) * 4.5
    foot = np.array(end) - 9 * along
    corners = [f"{number(x)} {number(y)}" for x, y in (end, foot + aside, foot - aside)]
    shaft = [line(start, (float(foot[0]), float(foot[1])), "arr")] if length > 9 else []
    return [*shaft, element("path", class_="arh", d=f"M{corners[0]}L{corners[1]}L{corners[2]}z")]


def _mark(question: Question, across: Scale, up: Scale) -> str:
    x, y = across(question.x), up(question.y)
    return circle((x, y), 5.5, "py pp") if question.label > 0 else rectangle((x - 5, y - 5), 10, 10, "pn pp")


def _free(x: float, y: float, shown: Map, across: Scale, up: Scale) -> Point:
    """The place nearest to the middle of an area where no question is drawn under its name."""
    asked = np.array([(across(q.x), up(q.y)) for q in shown.questions]).reshape(-1, 2)
    steps = [(dx, dy) for dy in (0, -14, 14, -28, 28) for dx in (0, -18, 18, -36, 36)]
    for dx, dy in sorted(steps, key=lambda step: float(np.hypot(*step))):
        away = np.abs(asked - (x + dx, y + dy))
        if not ((away[:, 0] < 22) & (away[:, 1] < 15)).any():
            return x + dx, y + dy
    return x, y


def _axes(shown: Map, ticks_up: list[str], left: float) -> list[str]:
    places = ((left, ""), ((left + RIGHT) / 2, " c"), (RIGHT, " e"))
    texts = [compact(value) for value in _three(shown.x_range)]
    room = (RIGHT - left - 16) / 3
    keep = [words if width_of(words) <= room else "" for words in texts]
    parts = [text(x, 277, words, f"m{style}") for (x, style), words in zip(places, keep, strict=True) if words]
    heights = (BOTTOM, (TOP + BOTTOM) / 2 + 4.5, TOP + 11)
    parts += [text(left - 6, y, words, "m e") for y, words in zip(heights, ticks_up, strict=True)]
    return [
        *parts,
        text(0, 13, shortened(shown.up, WIDTH - 6)),
        text(RIGHT, 298, shortened(shown.across, RIGHT - 4), "e"),
    ]
