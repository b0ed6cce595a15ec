"""A slice as an SVG picture: no dependency, readable by screen readers, light and dark, never by colour alone."""

from __future__ import annotations

import textwrap
import unicodedata
from xml.sax.saxutils import escape

import numpy as np

from overexplain.auditing.slices import Slice
from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.verdicts import Verdict
from overexplain.report.areas import middle, runs
from overexplain.report.slices import BALL, LETTERS, finding, premises, share_of, ticks

WIDTH, PLOT, LEFT, RIGHT = 640, 484, 84, 72
LINE = 19
WRAP = 72
MOST_MARKS = 1_000
"""Asked points that are drawn; more would hide the areas and make the file large."""

CLASSES = {
    Verdict.YES: "yes",
    Verdict.NO: "no",
    Verdict.UNKNOWN: "unknown",
    Verdict.BOUNDARY: "boundary",
    Verdict.UNDECIDED: "undecided",
}
LIGHT = {
    "bg": "#fcfcfa", "ink": "#1b1d21", "mute": "#585e67", "rule": "#dfe0dc", "hatch": "#989da5",
    "yes": "#115e9a", "yes-area": "#cfe2f1", "no": "#9e4403", "no-area": "#f8ddc4",
}  # fmt: skip
DARK = {
    "bg": "#15171a", "ink": "#ecedee", "mute": "#a5abb4", "rule": "#32363c", "hatch": "#7d838d",
    "yes": "#74b9f0", "yes-area": "#17374f", "no": "#f3a662", "no-area": "#4d2e12",
}  # fmt: skip


def svg_of(found: Slice) -> str:
    """The picture of a slice, a whole SVG document."""
    head = [finding(found), *(line for sentence in premises(found) for line in textwrap.wrap(sentence, WRAP))]
    top = 34 + LINE * len(head) + 8
    rows, columns = found.codes.shape
    place = _Place(found, top)
    parts = [_text(LEFT, 34, head[0], "title")]
    parts += [_text(LEFT, 34 + LINE * (k + 1), line, "mute") for k, line in enumerate(head[1:])]
    parts += [_text(LEFT, top + 6, _shortened(found.up.name), "up")]
    parts += [f'<rect class="ground" x="{LEFT}" y="{place.top}" width="{PLOT}" height="{PLOT}"/>']
    parts += _areas(found, place)
    parts += [f'<rect class="frame" x="{LEFT}" y="{place.top}" width="{PLOT}" height="{PLOT}"/>']
    parts += [_ball(outline, place) for outline in found.balls[:MOST_MARKS]]
    parts += _marks(found, place)
    for verdict in (Verdict.YES, Verdict.NO):
        spot = middle(found.codes == verdict, least=min(rows, columns) // 16)
        if spot is not None:
            word = "Yes" if verdict == Verdict.YES else "No"
            for kind in ("halo", "text"):  # first a halo: an arrow may run through the word
                parts.append(_text(*place.of_cell(*spot), word, f"name {CLASSES[verdict]}-{kind}"))
    parts += _axes(found, place)
    key, bottom = _key(found, place.top + PLOT + 72)
    parts += key
    shares = ", ".join(f"{LETTERS[v][1]} {share_of(found, v)}" for v in Verdict if found.share(v))
    about = f"{_plain(found.across.name)} across, {_plain(found.up.name)} up. {shares}. {' '.join(premises(found))}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom}" width="{WIDTH}" height="{bottom}" '
            'role="img" aria-labelledby="map-title map-about">',
            f'<title id="map-title">{_escaped(finding(found))}</title>',
            f'<desc id="map-about">{_escaped(about)}</desc>',
            f"<style>{_style()}</style>",
            _PATTERNS,
            f'<clipPath id="plot"><rect x="{LEFT}" y="{place.top}" width="{PLOT}" height="{PLOT}"/></clipPath>',
            f'<rect class="paper" width="{WIDTH}" height="{bottom}"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


class _Place:
    """Where the grid's points are in the picture."""

    def __init__(self, found: Slice, top: float) -> None:
        self.found = found
        self.top = top + 18
        rows, columns = found.codes.shape
        self.cell = (PLOT / columns, PLOT / rows)

    def of_cell(self, row: float, column: float) -> tuple[float, float]:
        """The middle of a cell; row 0 is the lowest."""
        return LEFT + (column + 0.5) * self.cell[0], self.top + PLOT - (row + 0.5) * self.cell[1]

    def anywhere(self, point: FloatArray) -> tuple[float, float]:
        """Where a point (across, up) is, or would be."""
        across, up = self.found.across, self.found.up
        return self.of_cell(
            float((point[1] - up.values[0]) / up.step), float((point[0] - across.values[0]) / across.step)
        )

    def of(self, point: FloatArray) -> tuple[float, float] | None:
        """Where a point (across, up) is; None outside of the picture, and for NaN."""
        x, y = self.anywhere(point)
        return (x, y) if LEFT <= x <= LEFT + PLOT and self.top <= y <= self.top + PLOT else None


def _areas(found: Slice, place: _Place) -> list[str]:
    """Every verdict's area: that of certain points by its corners, where they are known, else cell by cell."""
    if found.areas is None:
        return [_area(found.codes == verdict, name, place) for verdict, name in CLASSES.items()]
    ground = f'<rect class="unknown" x="{LEFT}" y="{place.top}" width="{PLOT}" height="{PLOT}"/>'
    drawn = [_area(found.codes == v, CLASSES[v], place) for v in (Verdict.UNDECIDED, Verdict.BOUNDARY)]
    for verdict, corners in found.areas.items():
        if len(corners) > 2:
            border = "L".join(f"{_n(x)} {_n(y)}" for x, y in map(place.anywhere, corners))
            drawn.append(f'<path class="{CLASSES[verdict]} exact" d="M{border}z"/>')
        else:  # a point or a segment would not be seen
            drawn.append(_area(found.codes == verdict, CLASSES[verdict], place))
    return [ground, *drawn]


def _area(mask: np.ndarray, name: str, place: _Place) -> str:
    width, height = place.cell
    bars = []
    for row, start, stop in runs(mask):
        x, y = LEFT + start * width, place.top + PLOT - (row + 1) * height
        bars.append(f"M{_n(x)} {_n(y)}h{_n((stop - start) * width)}v{_n(height)}h{_n((start - stop) * width)}z")
    return f'<path class="{name}" d="{"".join(bars)}"/>' if bars else ""


def _ball(outline: FloatArray, place: _Place) -> str:
    """The ball around a robust explanation, cut off where the picture ends."""
    corners = "L".join(f"{_n(x)} {_n(y)}" for x, y in map(place.anywhere, outline))
    return f'<path class="ball" clip-path="url(#plot)" d="M{corners}z"/>'


def _marks(found: Slice, place: _Place) -> list[str]:
    """Asked points, circle or square by their label, and arrows to their explanations."""
    arrows: list[str] = []
    marks: list[str] = []
    for point, label, explanation in zip(found.asked, found.labels, found.explanations, strict=True):
        if len(marks) == MOST_MARKS:
            break
        here, there = place.of(point), place.of(explanation)
        if here is not None and there is not None:
            arrows.append(_arrow(here, there))
        if here is not None:
            marks.append(_mark(*here, int(label)))
    return arrows + marks


def _mark(x: float, y: float, label: int) -> str:
    if label > 0:
        return f'<circle class="yes-mark" cx="{_n(x)}" cy="{_n(y)}" r="5"/>'
    if label < 0:
        return f'<rect class="no-mark" x="{_n(x - 4.5)}" y="{_n(y - 4.5)}" width="9" height="9"/>'
    return f'<path class="open-mark" d="M{_n(x)} {_n(y - 6)}l6 6l-6 6l-6 -6z"/>'


def _arrow(here: tuple[float, float], there: tuple[float, float]) -> str:
    (x0, y0), (x1, y1) = here, there
    length = float(np.hypot(x1 - x0, y1 - y0))
    if length < 1:
        return ""
    u, v = (x1 - x0) / length, (y1 - y0) / length
    x, y = x1 - 7 * u, y1 - 7 * v
    head = f"M{_n(x1)} {_n(y1)}L{_n(x - 3.5 * v)} {_n(y + 3.5 * u)}L{_n(x + 3.5 * v)} {_n(y - 3.5 * u)}z"
    line = f'<path class="arrow" d="M{_n(x0)} {_n(y0)}L{_n(x)} {_n(y)}"/>' if length > 7 else ""
    return f'{line}<path class="head" d="{head}"/>'


def _axes(found: Slice, place: _Place) -> list[str]:
    rows, columns = found.codes.shape
    parts = []
    for text, column in zip(ticks(found.across), (0, columns // 2, columns - 1), strict=True):
        parts.append(_text(place.of_cell(0, column)[0], place.top + PLOT + 20, text, "mute centre"))
    for text, row in zip(ticks(found.up), (0, rows // 2, rows - 1), strict=True):
        parts.append(_text(LEFT - 8, place.of_cell(row, 0)[1] + 4.5, text, "mute end"))
    return [*parts, _text(LEFT + PLOT, place.top + PLOT + 42, _shortened(found.across.name), "end")]


def _key(found: Slice, top: float) -> tuple[list[str], int]:
    """What the areas (left) and the marks (right) mean, and where the picture ends."""
    areas, others = [], []
    for verdict, name in CLASSES.items():
        if found.share(verdict):
            words = f"{LETTERS[verdict][1]}, {share_of(found, verdict)} of this slice"
            areas.append((f'<rect class="{name} swatch" x="0" y="-11" width="22" height="14"/>', words))
    marks = {1: "asked, answered Yes", -1: "asked, answered No", 0: "asked, label not known"}
    others += [(_mark(11, -4, label), words) for label, words in marks.items() if (found.labels == label).any()]
    if np.isfinite(found.explanations).any():
        others.append((_arrow((0, -4), (22, -4)), "from a question to its explanation"))
    if found.balls:
        others.append(('<path class="ball" d="M3 -4a8 8 0 1 0 16 0a8 8 0 1 0 -16 0z"/>', BALL))
    if len(found.asked) > MOST_MARKS:
        others.append(("", f"{MOST_MARKS:,} of {len(found.asked):,} questions are drawn"))
    parts = []
    for x, entries in ((LEFT, areas), (LEFT + 244, others)):
        for k, (sign, words) in enumerate(entries):
            place = f"translate({_n(x)} {_n(top + 24 * k)})"
            parts.append(f'<g transform="{place}">{sign}{_text(32, 0, words, "")}</g>')
    return parts, round(top + 24 * max(len(areas), len(others)) + 8)


def _text(x: float, y: float, words: str, names: str) -> str:
    kind = f' class="{names}"' if names else ""
    return f'<text{kind} x="{_n(x)}" y="{_n(y)}">{_escaped(words)}</text>'


def _n(number: float) -> str:
    """A coordinate to a hundredth, without needless zeros."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _plain(text: str) -> str:
    """The text without what XML does not allow, and without what turns its neighbours around."""
    odd = ("Cc", "Cf", "Cn", "Cs", "Zl", "Zp")
    return "".join(" " if unicodedata.category(letter) in odd else letter for letter in text)


def _escaped(text: str) -> str:
    return escape(_plain(text))


def _shortened(name: str, most: int = 56) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def _style() -> str:
    light, dark = _colours(LIGHT), _colours(DARK)
    return f"{_SHAPES}{light}@media (prefers-color-scheme:dark){{{dark}}}"


def _colours(c: dict[str, str]) -> str:
    return (
        f"text{{fill:{c['ink']}}}.mute{{fill:{c['mute']}}}.paper,.ground{{fill:{c['bg']}}}.frame{{stroke:{c['rule']}}}"
        f".yes{{fill:{c['yes-area']}}}.no{{fill:{c['no-area']}}}.boundary{{fill:{c['ink']}}}"
        f".hatch{{stroke:{c['hatch']}}}.dot{{fill:{c['hatch']}}}.swatch{{stroke:{c['rule']}}}"
        f".yes-mark{{fill:{c['yes']};stroke:{c['bg']}}}.no-mark{{fill:{c['no']};stroke:{c['bg']}}}"
        f".open-mark{{fill:{c['bg']};stroke:{c['ink']}}}.arrow,.ball{{stroke:{c['ink']}}}.head{{fill:{c['ink']}}}"
        f".yes-text{{fill:{c['yes']}}}.no-text{{fill:{c['no']}}}"
        f".yes-halo{{stroke:{c['yes-area']}}}.no-halo{{stroke:{c['no-area']}}}"
    )


_SHAPES = (
    'text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;'
    "font-variant-numeric:tabular-nums}.title{font-size:17px;font-weight:650}.name{font-weight:650;font-size:15px}"
    ".end{text-anchor:end}.centre,.name{text-anchor:middle}.frame{fill:none}.arrow{fill:none;stroke-width:1.5}"
    ".ball{fill:none;stroke-dasharray:4 3}.yes-halo,.no-halo{stroke-width:5px;stroke-linejoin:round}"
    ".unknown{fill:url(#unknown)}.undecided{fill:url(#undecided)}path{shape-rendering:auto}"
    ".yes,.no,.boundary{shape-rendering:crispEdges}.exact{shape-rendering:auto}"
)
_PATTERNS = (
    '<defs><pattern id="unknown" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect class="paper" width="7" height="7"/><line class="hatch" x1="3.5" y1="0" x2="3.5" y2="7"/></pattern>'
    '<pattern id="undecided" width="6" height="6" patternUnits="userSpaceOnUse">'
    '<rect class="paper" width="6" height="6"/><circle class="dot" cx="3" cy="3" r="1"/></pattern></defs>'
)
