"""Draws the tutorial's pictures with the library: python docs/figures/tutorial.py [--check]

One service all along: Yes where income + 2 · savings ≥ 2. Every coloured point is certified by `Knowledge` from the answers that
the picture shows; `--check` writes nothing and fails if a picture would change.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from panels import Panel, ball, grid_points, picture

import overexplain as ox

FOLDER = Path(__file__).parent
REACH, PER_UNIT = 4.0, 16
MODEL = ox.Hyperplane([1.0, 2.0], 2.0)
FIRST, SECOND = (-1.5, -1.0), (2.0, 2.0)
"""Two people who ask: one is answered No, the other Yes."""

MARKS = "Square: answered No. Circle: answered Yes."
AREAS = f"{MARKS} Hatched: not known."
HIDDEN = (MODEL, "model")


def service(distance: str, robustness: str | None = None, radius: float = 0.0) -> ox.ModelOracle:
    """The lender, who explains by this distance."""
    return ox.ModelOracle(MODEL, ox.Mechanism(distance, robustness=robustness, radius=radius))


def answered(
    lender: ox.ModelOracle, explained: Sequence[Sequence[float]] = (), labelled: Sequence[Sequence[float]] = ()
) -> tuple[ox.QueryLog, Panel]:
    """The log of these questions, and a panel that shows what it gives away."""
    log = ox.QueryLog(mechanism=lender.mechanism)
    marks, steps, outlines = [], [], []
    for point in np.array(explained, dtype=float).reshape(-1, 2):
        answer, label = lender.explain(point), lender.classify(point)
        assert answer is not None
        log.add_explanation(point, answer, label=label)
        marks.append((point, int(label)))
        steps.append((point, answer))
        if lender.mechanism.radius and lender.mechanism.robustness is not None:
            outlines.append(ball(answer.tolist(), lender.mechanism.robustness.spec, lender.mechanism.radius))
    for point in np.array(labelled, dtype=float).reshape(-1, 2):
        log.add_label(point, lender.classify(point))
        marks.append((point, int(lender.classify(point))))
    known = ox.Knowledge(log, robust="exact")
    codes = known.certify(grid_points(REACH, PER_UNIT)).codes.copy()
    for label in (ox.YES, ox.NO):
        if (codes == label).sum() == 1:  # an area of one point is its mark
            codes[codes == label] = 0
    line: list[tuple[ox.Hyperplane, str]] = [(MODEL, "known")] if known.pinned_down else []
    return log, Panel("", REACH, codes, marks, steps, outlines, line)


def titled(panel: Panel, title: str) -> Panel:
    """The panel under a title."""
    return replace(panel, title=title)


def asking() -> str:
    """The service: two people are answered, one of them asks why."""
    lender, no = service("l1"), np.array(FIRST)
    answer = lender.explain(no)
    assert answer is not None
    panels = [
        Panel(
            "What the service knows", REACH, planes=[HIDDEN],
            notes=[((-3.6, -3.2), "No: too little of both"), ((-0.9, 3.0), "Yes: enough of both")],
        ),
        Panel(
            "What it says", REACH, marks=[(no, ox.NO), (np.array(SECOND), ox.YES)],
            notes=[((-3.5, -2.1), "“No.”  “Why?”"), ((1.3, 2.5), "“Yes.”")],
        ),
        Panel(
            "How it explains", REACH, marks=[(no, ox.NO)], steps=[(no, answer)],
            notes=[((-3.5, -2.1), "“Here you would"), ((-3.5, -2.6), "have got a Yes.”")],
        ),
    ]  # fmt: skip
    about = "A line parts Yes from No; the service does not show it. It answers questions, and explains a No by the nearest Yes."
    key = f"{MARKS} Across: income. Up: savings. Dashed: the line nobody is shown."
    return picture("A service that decides and explains", about, panels, 3, key)


def parts_of_an_answer() -> str:
    """The three things that one l1 answer says about the line."""
    lender, asked = service("l1"), np.array(FIRST)
    answer = lender.explain(asked)
    assert answer is not None
    reach = float(np.abs(answer - asked).sum())
    through = [_line(slope, answer) for slope in ((1, 3), (1, 0.4), (-0.6, 1), (0.2, 1))]
    # Lines through the answer that keep out of the ball: as steep in the other feature as in this one at most.
    missing = [_line(slope, answer) for slope in ((-0.95, 1), (-0.4, 1), (0.4, 1), (0.95, 1))]
    _, panel = answered(lender, [FIRST])
    rim = ball(FIRST, "l1", reach)
    step = [(asked, answer)]
    panels = [
        Panel("1  A point of the line", REACH, None, [(asked, ox.NO)], step, (), [(p, "other") for p in through]),
        Panel("2  Nobody nearer is a Yes", REACH, None, [(asked, ox.NO)], step, [rim], [(p, "other") for p in missing]),
        Panel("3  So these are settled", REACH, panel.codes, panel.marks, panel.steps, [rim]),
    ]
    about = (
        "The line passes through the answer. It does not enter the diamond of all points nearer than the answer. "
        "What every such line agrees on is settled: a wedge of No and a wedge of Yes."
    )
    key = f"{AREAS} Arrow: the explanation. Dotted: lines that still fit."
    return picture("What one answer says", about, panels, 3, key)


def _line(normal: Sequence[float], point: np.ndarray) -> ox.Hyperplane:
    """The line with this normal through the point."""
    return ox.Hyperplane(normal, float(np.dot(normal, point)))


def growing() -> str:
    """A label, an explanation, another label, another explanation: known."""
    lender = service("l1")
    steps = [
        ("One label", (), (FIRST,)),
        ("One explanation", (FIRST,), ()),
        ("… and four labels", (FIRST,), (SECOND, (2.0, -1.5), (-3.0, 2.0), (3.0, -0.2))),
        ("Two explanations", (FIRST, SECOND), ()),
    ]
    panels = [titled(answered(lender, explained, labelled)[1], title) for title, explained, labelled in steps]
    about = (
        "One label settles next to nothing. One explanation settles two wedges. Four labels more narrow the rest. "
        "A second explanation settles everything."
    )
    return picture("The regions grow with every answer", about, panels, 4, f"{AREAS} Arrow: an explanation.")


def three_distances() -> str:
    """One answer to the same question under each distance."""
    names = {"l1": "Sum of changes (l1)", "l2": "Straight line (l2)", "linf": "Largest change (linf)"}
    panels = []
    for distance, name in names.items():
        lender = service(distance)
        log, panel = answered(lender, [FIRST])
        size = float(ox.norm(distance)(log.explanations[0] - log.points[0]))
        panels.append(replace(panel, title=name, outlines=[ball(FIRST, distance, size)]))
    about = (
        "A diamond and a square touch the line with a corner, so that many lines fit. A circle touches only one line: "
        "the model is known after a single answer."
    )
    return picture("One answer, three distances", about, panels, 3, f"{AREAS} Outline: all points that are nearer.")


def labels_only() -> str:
    """Labels alone, 5, 20 and 80 of them."""
    rng = np.random.default_rng(5)
    asked = rng.uniform(-3.8, 3.8, size=(80, 2)).round(1)
    panels = []
    for count in (5, 20, 80):
        _, panel = answered(service("l1"), labelled=asked[:count].tolist())
        panels.append(titled(panel, f"{count} labels"))
    about = "With labels alone the unknown strip gets narrower, but never vanishes."
    return picture("A service that does not explain", about, panels, 3, AREAS)


def robust() -> str:
    """A plain and a robust answer to the same question."""
    panels = []
    for title, lender in (
        ("Plain", service("l1")),
        ("Robust: a ball is safe", service("l1", "l2", 0.8)),
        ("Two robust answers", service("l1", "l2", 0.8)),
    ):
        asked = [FIRST, SECOND] if title.startswith("Two") else [FIRST]
        panels.append(titled(answered(lender, asked)[1], title))
    about = (
        "A robust answer lies behind the line, with a ball around it that is Yes as a whole. One settles more in some places "
        "and less in others; two settle everything, as two plain ones do."
    )
    return picture("Robust explanations", about, panels, 3, f"{AREAS} Circle around an answer: its ball.")


def a_proof() -> str:
    """Why a point is certainly No: it is a mixture of the points of three people who were denied."""
    denied = [(-3.0, -1.0), (1.0, -2.5), (0.0, 0.5)]
    point = (-1.25, -1.0)
    _, panel = answered(service("l1"), labelled=[*denied, (2.5, 2.0)])
    triangle = np.array(denied)
    panels = [
        Panel("Three denials", REACH, None, panel.marks, outlines=[triangle], notes=[(point, "x")]),
        replace(panel, title="All that four labels settle", outlines=[triangle], notes=[(point, "x")]),
    ]
    about = (
        "Whoever lies inside the triangle of three people who were denied would be denied: no line leaves all three on one "
        "side and that point on the other."
    )
    return picture("A proof", about, panels, 2, AREAS)


PICTURES: dict[str, Callable[[], str]] = {
    "tutorial-asking": asking,
    "tutorial-answer": parts_of_an_answer,
    "tutorial-grow": growing,
    "tutorial-distances": three_distances,
    "tutorial-labels": labels_only,
    "tutorial-robust": robust,
    "tutorial-proof": a_proof,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a picture would change")
    wanted = parser.parse_args()
    for name, draw in PICTURES.items():
        path, text = FOLDER / f"{name}.svg", draw()
        if wanted.check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            sys.exit(f"{path.name} is not what this script draws: python docs/figures/tutorial.py")
        if not wanted.check:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
