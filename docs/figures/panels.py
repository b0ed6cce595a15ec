"""Panels of an SVG picture: areas that are certain, questions, answers, balls and planes; light and dark, never by colour alone.

An area is drawn as the convex hull of points that were certified one by one. The set of points at which every consistent model says
Yes (or No) is convex, so nothing is coloured that was not proved.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

import numpy as np

import overexplain as ox
from overexplain.report.svg import DARK, LIGHT

SIDE, GAP, HEAD, LINE, LETTER = 210, 18, 24, 18, 6.9
"""Sizes in pixels: a panel, the space between two, its title above, a line of the key below all, one of its letters."""

Array = np.ndarray


@dataclass(frozen=True)
class Panel:
    """One square of a picture.

    reach      it shows the square from −reach to reach
    codes      verdicts on the grid `grid_points(reach, …)`; None: no areas
    marks      (point, label): a square for No, a circle for Yes
    steps      (from, to): an arrow
    outlines   closed curves, such as balls
    planes     (plane, class): "model" dashed, "other" dotted, "known" solid
    notes      (point, text)
    """

    title: str
    reach: float
    codes: Array | None = None
    marks: Sequence[tuple[Array, int]] = ()
    steps: Sequence[tuple[Array, Array]] = ()
    outlines: Sequence[Array] = ()
    planes: Sequence[tuple[ox.Hyperplane, str]] = ()
    notes: Sequence[tuple[Sequence[float], str]] = field(default=())


def grid_points(reach: float, per_unit: int) -> Array:
    """All points of the square, `per_unit` along a unit, first coordinate fastest."""
    axis = np.arange(-round(reach * per_unit), round(reach * per_unit) + 1) / per_unit
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def hull(points: Array) -> Array:
    """The corners of the convex hull, counterclockwise.

    >>> hull(np.array([[0.0, 0], [1, 0], [2, 0], [2, 2], [1, 1]])).tolist()
    [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0]]
    """
    ordered = sorted(set(map(tuple, points.tolist())))
    if len(ordered) < 3:
        return np.array(ordered)

    def half(rows: Iterable[tuple[float, ...]]) -> list[tuple[float, ...]]:
        kept: list[tuple[float, ...]] = []
        for row in rows:
            while len(kept) > 1 and _turn(kept[-2], kept[-1], row) <= 0:
                kept.pop()
            kept.append(row)
        return kept[:-1]

    return np.array(half(ordered) + half(reversed(ordered)))


def ball(centre: Sequence[float], norm: str, radius: float) -> Array:
    """The rim of a ball; corners of ℓ1 and ℓ∞ are among its points."""
    angles = np.arange(64) * (math.tau / 64)
    rim = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    corners: Array = radius * rim / ox.norm(norm)(rim)[:, None]
    moved: Array = np.array(centre) + (corners if norm == "l2" else hull(corners.round(12)))
    return moved


def picture(title: str, about: str, panels: Sequence[Panel], columns: int, key: str) -> str:
    """The panels in rows of `columns`, with a title for screen readers and a key below: a whole SVG document."""
    rows = -(-len(panels) // columns)
    width = GAP + columns * (SIDE + GAP)
    lines = textwrap.wrap(key, int((width - 2 * GAP) / LETTER))
    bottom = rows * (HEAD + SIDE + GAP) + GAP
    height = bottom + LINE * len(lines) + GAP
    parts = []
    for i, panel in enumerate(panels):
        row, column = divmod(i, columns)
        place = f"translate({GAP + column * (SIDE + GAP)} {GAP + row * (HEAD + SIDE + GAP) + HEAD})"
        parts.append(f'<g transform="{place}">{"".join(_panel(panel))}</g>')
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'role="img" aria-labelledby="title about">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="about">{escape(about)}</desc>',
            f"<style>{_STYLE}</style>",
            _PATTERN,
            f'<clipPath id="square"><rect width="{SIDE}" height="{SIDE}"/></clipPath>',
            f'<rect class="paper" width="{width}" height="{height}"/>',
            *parts,
            *(
                f'<text class="mute" x="{GAP}" y="{bottom + LINE * (i + 0.6):g}">{escape(line)}</text>'
                for i, line in enumerate(lines)
            ),
            "</svg>",
            "",
        ]
    )


def areas(panel: Panel, per_unit: int) -> dict[int, Array]:
    """The corners of the certain areas, by verdict: +1 Yes, −1 No."""
    if panel.codes is None:
        return {}
    points = grid_points(panel.reach, per_unit)
    return {code: hull(points[panel.codes == code]) for code in (ox.YES, ox.NO) if (panel.codes == code).any()}


def _turn(a: Sequence[float], b: Sequence[float], c: Sequence[float]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _panel(panel: Panel) -> list[str]:
    open_or_blank = "open" if panel.codes is not None else "paper"
    parts = [
        f'<text class="name" x="0" y="-8">{escape(panel.title)}</text>',
        f'<rect class="{open_or_blank}" width="{SIDE}" height="{SIDE}"/>',
        '<g clip-path="url(#square)">',
    ]
    if panel.codes is not None:
        per_unit = round((math.isqrt(len(panel.codes)) - 1) / (2 * panel.reach))
        corners = areas(panel, per_unit)
        parts += [_path(panel, rim, "yes" if code == ox.YES else "no") for code, rim in corners.items()]
        parts += [_word(panel, rim, code) for code, rim in corners.items()]
    parts += [_path(panel, _crossing(plane, panel.reach), kind, closed=False) for plane, kind in panel.planes]
    parts += [_path(panel, rim, "ball") for rim in panel.outlines]
    for start, end in panel.steps:
        parts += _arrow(_at(panel, start), _at(panel, end))
    parts += [_mark(_at(panel, point), label) for point, label in panel.marks]
    for spot, words in panel.notes:
        x, y = _at(panel, spot)
        parts.append(f'<text class="note" x="{_n(x)}" y="{_n(y)}">{escape(words)}</text>')
    return [*parts, "</g>", f'<rect class="frame" width="{SIDE}" height="{SIDE}"/>']


def _at(panel: Panel, point: Sequence[float] | Array) -> tuple[float, float]:
    x, y = (float(v) / panel.reach for v in point)
    return (1 + x) / 2 * SIDE, (1 - y) / 2 * SIDE


def _path(panel: Panel, points: Array, kind: str, *, closed: bool = True) -> str:
    steps = " ".join(f"{_n(x)} {_n(y)}" for x, y in (_at(panel, point) for point in points))
    return f'<path class="{kind}" d="M{steps}{"z" if closed else ""}"/>'


def _word(panel: Panel, rim: Array, code: int) -> str:
    """The area's name, off the middle of the panel, where the arrows are."""
    x, y = _at(panel, 0.55 * rim.mean(axis=0) + 0.45 * rim[np.abs(rim).sum(axis=1).argmax()])
    x, y = (min(max(v, 22.0), SIDE - 16.0) for v in (x, y))
    kind, word = ("yes", "Yes") if code == ox.YES else ("no", "No")
    return f'<text class="area {kind}-text" x="{_n(x)}" y="{_n(y)}">{word}</text>'


def _crossing(plane: ox.Hyperplane, reach: float) -> Array:
    """Two points of a line, both outside of the square."""
    along = np.array([-plane.normal[1], plane.normal[0]]) / np.linalg.norm(plane.normal)
    foot = plane.normal * plane.offset / (plane.normal @ plane.normal)
    return np.array([foot - 3 * reach * along, foot + 3 * reach * along])


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> list[str]:
    length = math.dist(start, end)
    if length < 1:
        return []
    ux, uy = ((b - a) / length for a, b in zip(start, end, strict=True))
    back = (end[0] - 7 * ux, end[1] - 7 * uy)
    head = [(back[0] - 3 * uy, back[1] + 3 * ux), end, (back[0] + 3 * uy, back[1] - 3 * ux)]
    corners = " ".join(f"{_n(x)} {_n(y)}" for x, y in head)
    line = f"M{_n(start[0])} {_n(start[1])} {_n(back[0])} {_n(back[1])}"
    return [f'<path class="arrow" d="{line}"/>', f'<path class="head" d="M{corners}z"/>']


def _mark(at: tuple[float, float], label: int) -> str:
    x, y = at
    if label == ox.YES:
        return f'<circle class="yes-mark" cx="{_n(x)}" cy="{_n(y)}" r="5"/>'
    return f'<rect class="no-mark" x="{_n(x - 4.5)}" y="{_n(y - 4.5)}" width="9" height="9"/>'


def _n(number: float) -> str:
    """A coordinate to a tenth of a pixel, without needless zeros."""
    return f"{round(number, 1) + 0.0:g}"


def _colours(c: dict[str, str]) -> str:
    return (
        f"text{{fill:{c['ink']}}}.mute{{fill:{c['mute']}}}.paper{{fill:{c['bg']}}}.frame{{stroke:{c['mute']}}}"
        f".yes{{fill:{c['yes-area']}}}.no{{fill:{c['no-area']}}}.hatch{{stroke:{c['hatch']}}}"
        f".yes-mark{{fill:{c['yes']};stroke:{c['bg']}}}.no-mark{{fill:{c['no']};stroke:{c['bg']}}}"
        f".arrow,.ball,.known{{stroke:{c['ink']}}}.model,.other{{stroke:{c['mute']}}}.head{{fill:{c['ink']}}}"
        f".yes-text{{fill:{c['yes']}}}.no-text{{fill:{c['no']}}}"
    )


_STYLE = (
    'text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}'
    ".name,.area{font-weight:650}.area{text-anchor:middle}.note{font-size:12px}"
    ".frame,.arrow,.ball,.model,.other,.known{fill:none}.arrow{stroke-width:1.5}.open{fill:url(#open)}"
    ".model{stroke-dasharray:6 4;stroke-width:1.5}.other{stroke-dasharray:1.5 3;stroke-width:1.5}.known{stroke-width:1.5}"
    f"{_colours(LIGHT)}@media (prefers-color-scheme:dark){{{_colours(DARK)}}}"
)
_PATTERN = (
    '<defs><pattern id="open" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect class="paper" width="7" height="7"/><line class="hatch" x1="3.5" y1="0" x2="3.5" y2="7"/></pattern></defs>'
)
