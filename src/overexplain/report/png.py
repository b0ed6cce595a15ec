"""A slice as a PNG picture, by matplotlib (the extra `plot`)."""

from __future__ import annotations

import importlib
import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from overexplain.auditing.slices import Slice
from overexplain.errors import InvalidInput
from overexplain.knowledge.verdicts import Verdict
from overexplain.report.areas import middle, runs
from overexplain.report.slices import BALL, LETTERS, finding, premises, share_of
from overexplain.report.svg import LIGHT, MOST_MARKS, WRAP

FILLS = {
    Verdict.UNKNOWN: (LIGHT["bg"], "////"),
    Verdict.UNDECIDED: (LIGHT["bg"], "...."),
    Verdict.BOUNDARY: (LIGHT["ink"], None),
    Verdict.YES: (LIGHT["yes-area"], None),
    Verdict.NO: (LIGHT["no-area"], None),
}
MARKS = {
    1: ("o", "yes", "asked, answered Yes"),
    -1: ("s", "no", "asked, answered No"),
    0: ("D", "mute", "asked, label not known"),
}


def write_png(found: Slice, path: Path) -> None:
    """Write the picture of a slice to `path`."""
    try:
        figures = importlib.import_module("matplotlib.figure")
        effects = importlib.import_module("matplotlib.patheffects")
        patches = importlib.import_module("matplotlib.patches")
        paths = importlib.import_module("matplotlib.path")
    except ImportError:
        raise InvalidInput('PNG pictures need matplotlib: pip install "overexplain[plot]"; SVG needs nothing') from None
    figure = figures.Figure(figsize=(7, 7.6), dpi=160, facecolor=LIGHT["bg"], layout="constrained")
    axes = figure.add_subplot(facecolor=LIGHT["bg"])
    for verdict, (fill, hatch) in FILLS.items():
        if found.share(verdict):
            axes.add_patch(
                patches.PathPatch(
                    paths.Path(*_outline(found, verdict)),
                    facecolor=fill,
                    hatch=hatch,
                    edgecolor=LIGHT["hatch"] if hatch else fill,
                    linewidth=0,
                    label=f"{LETTERS[verdict][1]}, {share_of(found, verdict)} of this slice",
                )
            )
    for k, outline in enumerate(found.balls[:MOST_MARKS]):
        style = {"fill": False, "edgecolor": LIGHT["ink"], "linestyle": "--", "label": None if k else BALL}
        axes.add_patch(patches.Polygon(outline, closed=True, **style))
    _draw_marks(axes, found)
    for verdict, word in ((Verdict.YES, "Yes"), (Verdict.NO, "No")):
        spot = middle(found.codes == verdict, least=min(found.codes.shape) // 16)
        if spot is not None:
            at = (found.across.values[spot[1]], found.up.values[spot[0]])
            halo = [effects.withStroke(linewidth=4, foreground=LIGHT[f"{word.lower()}-area"])]
            style = {"weight": "bold", "size": 12, "ha": "center", "va": "center", "path_effects": halo}
            axes.text(*at, word, color=LIGHT[word.lower()], **style)
    axes.set_xlim(found.across.values[0] - found.across.step / 2, found.across.values[-1] + found.across.step / 2)
    axes.set_ylim(found.up.values[0] - found.up.step / 2, found.up.values[-1] + found.up.step / 2)
    axes.set_xlabel(_literal(found.across.name))
    axes.set_ylabel(_literal(found.up.name))
    figure.suptitle(finding(found), x=0.02, ha="left", weight="bold")
    lines = [line for sentence in premises(found) for line in textwrap.wrap(sentence, WRAP)]
    axes.set_title(_literal("\n".join(lines)), loc="left", size=9, color=LIGHT["mute"])
    figure.legend(loc="outside lower left", ncols=2, frameon=False)
    with warnings.catch_warnings():
        # A name in letters that the font lacks is drawn as boxes: still a picture.
        warnings.filterwarnings("ignore", "Glyph")
        figure.savefig(path, format="png", metadata={"Title": finding(found), "Software": None})


def _outline(found: Slice, verdict: Verdict) -> tuple[Any, Any]:
    """An area as the corners and codes of one path: by its border where that is known, else by bars."""
    across, up = found.across, found.up
    corners, codes = [], []
    if found.areas is not None and verdict == Verdict.UNKNOWN:  # the ground that the certain areas lie on
        (left, right), (low, high) = found.box
        corners = [(left, low), (right, low), (right, high), (left, high), (left, low)]
        return np.array(corners), np.array([1, 2, 2, 2, 79], dtype=np.uint8)
    if found.areas is not None and len(found.areas.get(verdict, ())) > 2:
        border = found.areas[verdict]
        return np.vstack([border, border[:1]]), np.array([1, *[2] * (len(border) - 1), 79], dtype=np.uint8)
    for row, start, stop in runs(found.codes == verdict):
        left, right = (across.values[0] + (k - 0.5) * across.step for k in (start, stop))
        low, high = (up.values[0] + (k - 0.5) * up.step for k in (row, row + 1))
        corners += [(left, low), (right, low), (right, high), (left, high), (left, low)]
        codes += [1, 2, 2, 2, 79]  # move, line, line, line, close
    return np.array(corners), np.array(codes, dtype=np.uint8)


def _draw_marks(axes: Any, found: Slice) -> None:
    asked, labels, answers = (values[:MOST_MARKS] for values in (found.asked, found.labels, found.explanations))
    for point, answer in zip(asked, answers, strict=True):
        if np.isfinite(answer).all():
            style = {"arrowstyle": "-|>", "color": LIGHT["ink"], "shrinkA": 0, "shrinkB": 0}
            axes.annotate("", answer, point, arrowprops=style, in_layout=False)
    if np.isfinite(answers).any():
        axes.plot([], [], color=LIGHT["ink"], marker=">", label="from a question to its explanation")
    for label, (marker, colour, words) in MARKS.items():
        some = asked[labels == label]
        if len(some):
            style = {"marker": marker, "color": LIGHT[colour], "edgecolors": LIGHT["bg"], "zorder": 3}
            axes.scatter(some[:, 0], some[:, 1], s=40, label=words, **style)


def _literal(text: str) -> str:
    """The text with the sign that would begin a formula taken literally."""
    return text.replace("$", r"\$")
