"""What one robust answer gives away, for every pair of l1, linf, l2 and the ball's l1, l2, linf: docs/robust-regions.svg.

The counterpart of the paper's figure of robust regions, with data of our own. Along a row the ball's norm changes the regions, but
not how many answers rebuild the model (which is counted, too, by asking the same service).

python benchmarks/robust_figure.py [--check]      --check: fail if the picture would say something else
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import overexplain as ox
from overexplain.auditing.slices import Slice, take_slice
from overexplain.knowledge.verdicts import Verdict
from overexplain.report.svg import LIGHT
from overexplain.report.words import percent

PICTURE = Path(__file__).parent.parent / "docs" / "robust-regions.svg"
DISTANCES, BALLS = ("l1", "linf", "l2"), ("l1", "l2", "linf")
MODEL = ox.Hyperplane([1.0, 2.0], 4.0)
QUESTION, RADIUS = [0.0, 0.0], 1.0
RANGES = ((-3.5, 5.5), (-3.0, 6.0))
SIZE = (241, 241)
FILLS = {Verdict.YES: "yes-area", Verdict.NO: "no-area"}
TITLE = "One robust answer each: the ball's norm changes the regions, not the number of answers"
KEY = "Square: a question, answered No. Arrow: its robust explanation, with its ball. Hatched: open. Dashed: the model."
Cells = dict[tuple[str, str], tuple[Slice, int]]


def regions(distance: str, ball: str) -> tuple[Slice, int]:
    """What one No and its robust explanation determine, and how many explanations rebuild the model."""
    terms = ox.Mechanism(distance, robustness=ball, radius=RADIUS)
    service = ox.ModelOracle(MODEL, terms)
    log = ox.QueryLog(mechanism=terms)
    log.add_explanation(QUESTION, service.explain(np.array(QUESTION)), label=service.classify(np.array(QUESTION)))
    found = ox.extract(service, rng=0)
    if not found.hyperplane.is_equivalent(MODEL, 1e-8):
        raise SystemExit(f"the model was not rebuilt under {terms.describe()}")
    return take_slice(ox.Knowledge(log), log, (0, 1), size=SIZE, ranges=RANGES), found.spent.explanations


def caption(found: Slice) -> str:
    """E.g. "Yes 20 %, No 28 %"."""
    yes, no = (percent(found.share(verdict)) for verdict in (Verdict.YES, Verdict.NO))
    return f"Yes {yes}, No {no}"


def needed(cells: Cells, distance: str) -> str:
    """E.g. "2 answers rebuild the model"; the numbers of all balls where they differ."""
    counts = list(dict.fromkeys(cells[distance, ball][1] for ball in BALLS))
    verb = "answer rebuilds" if counts == [1] else "answers rebuild"
    return f"{' or '.join(map(str, counts))} {verb} the model"


def draw(cells: Cells, path: Path) -> None:
    """One panel a pair: areas, the answer as an arrow with its ball, the model's plane dashed."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams |= {"svg.hashsalt": "robust-regions", "svg.fonttype": "none", "hatch.linewidth": 0.6}
    figure = Figure(figsize=(9, 9.9), layout="constrained", facecolor=LIGHT["bg"])
    axes: Any = figure.subplots(len(DISTANCES), len(BALLS), sharex=True, sharey=True)
    for i, distance in enumerate(DISTANCES):
        for j, ball in enumerate(BALLS):
            _panel(axes[i, j], cells[distance, ball][0])
            head = f"ball {ball}: " if i == 0 else ""
            axes[i, j].set_title(head + caption(cells[distance, ball][0]), fontsize=10, color=LIGHT["ink"])
        axes[i, 0].set_ylabel(f"distance {distance}\n{needed(cells, distance)}", size=10)
    figure.suptitle(TITLE, x=0.01, ha="left", size=12, weight="bold")
    figure.text(0.01, -0.02, KEY, size=10, color=LIGHT["mute"])
    figure.savefig(path, metadata={"Date": None, "Title": TITLE}, bbox_inches="tight", pad_inches=0.1)


def _panel(axes: Any, found: Slice) -> None:
    from matplotlib.colors import to_rgba

    across, up = found.across.values, found.up.values
    axes.set_facecolor(LIGHT["bg"])
    axes.patch.set(hatch="////", edgecolor=LIGHT["hatch"], linewidth=0)  # open, unless an area covers it
    areas = np.zeros((*found.codes.shape, 4))
    for verdict, colour in FILLS.items():
        areas[found.codes == verdict] = to_rgba(LIGHT[colour])
    axes.imshow(areas, extent=(across[0], across[-1], up[0], up[-1]), origin="lower", interpolation="none")
    (outline,), (question,), (answer,) = found.balls, found.asked, found.explanations
    axes.plot(*np.vstack([outline, outline[:1]]).T, color=LIGHT["ink"], linewidth=1)
    arrow = {"arrowstyle": "-|>", "color": LIGHT["ink"], "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", answer, question, arrowprops=arrow)
    axes.plot(*question, marker="s", color=LIGHT["no"])
    level = (MODEL.offset - MODEL.normal[0] * across) / MODEL.normal[1]
    axes.plot(across, level, color=LIGHT["mute"], linestyle=(0, (4, 4)), linewidth=0.8)
    axes.set(xlim=RANGES[0], ylim=RANGES[1], aspect="equal")
    for word, at in (("Yes", (2.2, 5.4)), ("No", (-2.6, -2.4))):
        axes.text(*at, word, color=LIGHT[word.lower()], weight="bold", ha="center", va="center")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if docs/ holds another picture")
    wanted = parser.parse_args()
    cells = {(distance, ball): regions(distance, ball) for distance in DISTANCES for ball in BALLS}
    said = [needed(cells, distance) for distance in DISTANCES] + [caption(found) for found, _ in cells.values()]
    for (distance, ball), (found, _) in cells.items():
        print(f"distance {distance:4} ball {ball:4}  {caption(found)}; {needed(cells, distance)}")
    if wanted.check:
        text = PICTURE.read_text(encoding="utf-8")
        if missing := [words for words in said if words not in text]:
            sys.exit(f"{PICTURE.name} does not say {missing[0]!r}: python benchmarks/robust_figure.py")
    else:
        draw(cells, PICTURE)


if __name__ == "__main__":
    main()
