"""Draws the paper's figures, and the tutorial's, with the library: python docs/figures/write.py [--check]

Every coloured point is certified by `Knowledge` at the data of `paper_cases`; `--check` writes nothing and fails if a picture would
change. What each picture shows beside the paper's caption: docs/paper-figures.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from panels import Panel, ball, grid_points, hull, picture
from paper_cases import (
    CF_EXAMPLE,
    COUNTERFACTUALS,
    DEFINITIONS,
    LABELLED_NO,
    LABELLED_YES,
    RCF_EXAMPLE,
    ROBUST_CASES,
    Example,
    RobustCase,
    counterfactual,
    factuals,
)
from tutorial import PICTURES as TUTORIAL

import overexplain as ox

FOLDER = Path(__file__).parent
REACH, PER_UNIT = 4.0, 16
"""The square of the regions' figures, and how many points of its grid a unit has."""

ROBUST_REACH, ROBUST_PER_UNIT, EXAMPLE_PER_UNIT = 3.0, 16, 8
NAMES = {"l1": "ℓ1", "l2": "ℓ2", "linf": "ℓ∞"}
MARKS = "Square: answered No. Circle: answered Yes."
AREAS = f"{MARKS} Hatched: two models that fit disagree."


def codes(log: ox.QueryLog, reach: float, per_unit: int) -> np.ndarray:
    """The verdicts on the grid. Answers are known to float64's rounding, so that no point lies exactly on a rim."""
    return ox.Knowledge(log, robust="exact").certify(grid_points(reach, per_unit)).codes


def definitions() -> str:
    """fig:defs."""
    case = DEFINITIONS
    asked = np.array(case.asked)
    plain, robust = (case.service(radius).explain(asked) for radius in (0.0, case.radius))
    panels = [
        Panel("Factual", 3.0, marks=[(asked, ox.NO)], planes=[(case.model, "model")], notes=[((-2.7, -1.8), "x is a No")]),
        Panel(
            "Counterfactual", 3.0, marks=[(asked, ox.NO)], steps=[(asked, plain)], planes=[(case.model, "model")],
            notes=[((plain + 0.2).tolist(), "on the plane")],
        ),
        Panel(
            "Robust counterfactual", 3.0, marks=[(asked, ox.NO)], steps=[(asked, robust)],
            outlines=[ball(robust.tolist(), "l2", case.radius)], planes=[(case.model, "model")],
            notes=[((0.1, -1.2), "its ball touches"), ((0.1, -1.65), "the plane")],
        ),
    ]  # fmt: skip
    about = "A No point; the nearest point of the plane; the nearest point whose whole ball lies across the plane."
    return picture("The three kinds of query", about, panels, 3, f"{MARKS} Dashed: the model's plane.")


def regions_of_factuals() -> str:
    """fig:ex_rgns_F."""
    marks = [(np.array(x), ox.NO) for x in LABELLED_NO] + [(np.array(x), ox.YES) for x in LABELLED_YES]
    panel = Panel("Six labels", REACH, codes(factuals(), REACH, PER_UNIT), marks)
    about = "Both certain areas reach beyond the convex hull of their points, away from those of the other class."
    return picture("What six labels determine", about, [panel, *_hulls()], 2, AREAS)


def _hulls() -> list[Panel]:
    """The hulls alone, for comparison."""
    marks = [(np.array(x), ox.NO) for x in LABELLED_NO] + [(np.array(x), ox.YES) for x in LABELLED_YES]
    rims = [hull(np.array(points)) for points in (LABELLED_NO, LABELLED_YES)]
    return [Panel("Their convex hulls alone", REACH, marks=marks, outlines=rims)]


def regions_of_counterfactuals() -> str:
    """fig:ex_rgns_CF."""
    panels = []
    for distance, end in COUNTERFACTUALS.items():
        answer = np.array(end)
        log = counterfactual(distance)
        found = codes(log, REACH, PER_UNIT)
        known = [(ox.Hyperplane(answer, float(answer @ answer)), "known")] if distance == "l2" else []
        panels.append(
            Panel(f"N1 = {NAMES[distance]}", REACH, found, [(-answer, ox.NO)], [(-answer, answer)], planes=known)
        )
    about = "l1 and linf leave two opposite wedges open at the answer; under l2 the plane is known and nothing is open."
    return picture("What one counterfactual determines", about, panels, 3, f"{AREAS} Arrow: its counterfactual.")


def regions_of_robust_counterfactuals() -> str:
    """fig:RCF_norms, and the two pairs it leaves out."""
    panels = []
    for name, case in ROBUST_CASES.items():
        asked, answer = np.array(case.asked), np.array(case.answer)
        pair = f"N1 = {NAMES[case.distance]}, N2 = {NAMES[case.robustness]}"
        if "paper" in name:
            pair += " (added)"
        found = codes(case.log(), ROBUST_REACH, ROBUST_PER_UNIT)
        rim = ball(case.answer, case.robustness, case.radius)
        planes = [(_plane_of_a_smooth_answer(case), "known")] if case.distance == "l2" else []
        panels.append(Panel(pair, ROBUST_REACH, found, [(asked, ox.NO)], [(asked, answer)], [rim], planes))
    about = "The No area is a cone under l1 and linf; the Yes area contains the ball. Under l2 nothing is open."
    key = f"{AREAS} Arrow: its robust counterfactual, with its ball."
    return picture("What one robust counterfactual determines", about, panels, 3, key)


def _plane_of_a_smooth_answer(case: RobustCase) -> ox.Hyperplane:
    """The plane behind an answer under ℓ2: a = w, b = a·x' − ρ‖a‖* (E8)."""
    normal = np.subtract(case.answer, case.asked)
    return ox.Hyperplane(normal, float(normal @ case.answer - case.radius * ox.norm(case.robustness).dual(normal)))


def example_of_counterfactuals() -> str:
    """fig:CF_Example_2D."""
    about = "Two counterfactuals under linf lie on the plane and determine it."
    return _example("Algorithm 1 in two dimensions", about, CF_EXAMPLE)


def example_of_robust_counterfactuals() -> str:
    """fig:RCF_Example_2D."""
    about = (
        "Two robust counterfactuals lie at the same depth behind the plane, on either side. A second plane solves the "
        "same equations and calls one question No that the model calls Yes."
    )
    return _example("The robust example, and its second root", about, RCF_EXAMPLE)


def _example(title: str, about: str, case: Example) -> str:
    """One panel after every answer: what is certain by then, and in the last the plane that was found."""
    service = ox.ModelOracle(case.model, case.mechanism)
    asked = [np.array(x) for x in case.asked]
    answers = [service.explain(x) for x in asked]
    ball_norm = case.mechanism.robustness.spec if case.mechanism.robustness else None
    panels = []
    for n in range(1, len(asked) + 1):
        log = ox.QueryLog(mechanism=case.mechanism)
        log.add_explanation(asked[:n], answers[:n], case.model.labels(np.array(asked[:n])))
        found = codes(log, REACH, EXAMPLE_PER_UNIT)
        steps = list(zip(asked[:n], answers[:n], strict=True))
        rims = [ball(x.tolist(), str(ball_norm), case.mechanism.radius or 0.0) for x in answers[:n] if ball_norm]
        marks = [(x, int(case.model.label(x))) for x in asked[:n]]
        panels.append(Panel(f"After answer {n}", REACH, found, marks, steps, rims, _found(case, n)))
    key = f"{AREAS} Arrow: the answer. Line: the plane that was found."
    if case.second_root is not None:
        key += " Dotted: the other solution of the equations."
    return picture(title, about, panels, len(panels), key)


def _found(case: Example, answers: int) -> list[tuple[ox.Hyperplane, str]]:
    if answers < len(case.asked):
        return []
    return [(case.model, "known"), *([(case.second_root, "other")] if case.second_root else [])]


PICTURES: dict[str, Callable[[], str]] = {
    "definitions": definitions,
    "regions-factual": regions_of_factuals,
    "regions-counterfactual": regions_of_counterfactuals,
    "regions-robust": regions_of_robust_counterfactuals,
    "example-counterfactual": example_of_counterfactuals,
    "example-robust": example_of_robust_counterfactuals,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a picture would change")
    wanted = parser.parse_args()
    for name, draw in (PICTURES | TUTORIAL).items():
        path = FOLDER / f"{name}.svg"
        text = draw()
        if wanted.check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            sys.exit(f"{path.name} is not what this script draws: python docs/figures/write.py")
        if not wanted.check:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
