"""How many labels rebuild a linear model, beside what no method can do without.

    python benchmarks/labels.py [--quick] [--results DIRECTORY]

Random linear models (seeded): normal ~ N(0, I), offset 0.3 ‖normal‖ N(0, 1). All labels count: finding two different ones,
asking again, confirming. Bounded modes and Lowd–Meek ask inside the ball of radius 2√p around 0, "far" anywhere. Results go to
benchmarks/results/labels.*; a quick run, which takes half a minute, only prints them.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from certify import machine, one_thread
from numpy.typing import NDArray

import overexplain as ox
from overexplain.extraction.box import Ball, Box
from overexplain.extraction.labels.floors import box_floor, information_bound, joint_bound, predicted_labels
from overexplain.extraction.labels.labels import Rough, extract_by_labels
from overexplain.extraction.labels.lowd_meek import extract_by_lowd_meek
from overexplain.extraction.result import Extraction
from overexplain.extraction.session import Session

FloatArray = NDArray[np.float64]

ROOT = Path(__file__).parent
METHODS = ("anchor", "lift", "far", "Lowd–Meek")
FEATURES = (10, 30, 100)
ACCURACIES = (1e-3, 1e-6, 1e-9)
GUESSES = (0.3, 0.1, 1e-2, 1e-4)


@dataclass(frozen=True)
class Measured:
    """Labels of one method (mean and most), and the worst of: error/bound, bound/accuracy, error/accuracy."""

    labels: float
    most: int
    error_by_bound: float | None
    bound_by_accuracy: float | None
    error_by_accuracy: float
    false_bounds: int


@dataclass(frozen=True)
class Cell:
    """One number of features and accuracy: the floors, and every method on the same models."""

    features: int
    accuracy: float
    models: int
    information: float
    box: float
    joint: float
    """Mean over the models: the offset is uniform on the first bracket seen along the normal."""
    predicted: float
    methods: dict[str, Measured]


@dataclass(frozen=True)
class Warm:
    """Labels with a guess of the normal, at accuracy 1e-6."""

    features: int
    angle: float
    labels: float
    predicted: float
    cold: float
    false_bounds: int


def drawn(p: int, seed: int) -> tuple[ox.Hyperplane, np.random.Generator]:
    """A model, and the generator that goes on after it: all methods see the same pair first."""
    rng = np.random.default_rng([p, seed, 2026])
    normal = rng.standard_normal(p)
    return ox.Hyperplane(normal, 0.3 * float(np.linalg.norm(normal)) * float(rng.standard_normal())), rng


def run(
    plane: ox.Hyperplane, method: str, accuracy: float, rng: np.random.Generator, rough: Rough | None = None
) -> Extraction:
    """One extraction with an exact service."""
    p = plane.dimension
    session = Session(ox.ModelOracle(plane, ox.Mechanism("l2")), record=False)
    start = np.zeros(p)
    ball = Ball(start, 2 * math.sqrt(p))
    if method == "Lowd–Meek":
        return extract_by_lowd_meek(session, accuracy, start, ball, rng)
    return extract_by_labels(
        session, accuracy, start, Box.of(None, p) if method == "far" else ball, rng, method, rough=rough
    )


def summed(planes: list[ox.Hyperplane], found: list[Extraction], accuracy: float) -> Measured:
    """What one method did over all models."""
    errors = [each.hyperplane.angle_to(plane) for plane, each in zip(planes, found, strict=True)]
    bounds = [each.error_bound for each in found if each.error_bound is not None]
    proved = len(bounds) == len(found)
    return Measured(
        labels=float(np.mean([each.spent.labels for each in found])),
        most=max(each.spent.labels for each in found),
        error_by_bound=max(e / b for e, b in zip(errors, bounds, strict=True)) if proved else None,
        bound_by_accuracy=max(bounds) / accuracy if proved else None,
        error_by_accuracy=max(errors) / accuracy,
        false_bounds=sum(e > b for e, b in zip(errors, bounds, strict=True)) if proved else 0,
    )


def first_half_width(plane: ox.Hyperplane, rng: np.random.Generator) -> float:
    """Half of the first bracket along the normal: the search starts at 0 and goes √p away from it."""
    step = rng.standard_normal(plane.dimension)
    return max(abs(float(plane.normal @ step)), abs(plane.offset)) / float(np.linalg.norm(plane.normal)) / 2


def measure(p: int, accuracy: float, models: int) -> Cell:
    """All methods on the same models."""
    planes = [drawn(p, seed)[0] for seed in range(models)]
    methods = {
        method: summed(
            planes, [run(plane, method, accuracy, drawn(p, seed)[1]) for seed, plane in enumerate(planes)], accuracy
        )
        for method in METHODS
    }
    joint = [
        joint_bound(p, accuracy, first_half_width(plane, drawn(p, seed)[1]), 2 * math.sqrt(p))
        for seed, plane in enumerate(planes)
    ]
    floors = information_bound(p, accuracy), box_floor(p, accuracy), float(np.mean(joint))
    return Cell(p, accuracy, models, *floors, predicted_labels(p, accuracy), methods)


def measure_warm(p: int, angle: float, models: int, accuracy: float = 1e-6) -> Warm:
    """Labels with a guess exactly `angle` away from the normal."""
    counts, false = [], 0
    for seed in range(models):
        plane, rng = drawn(p, seed)
        normal = plane.normal / np.linalg.norm(plane.normal)
        aside = rng.standard_normal(p)
        aside -= float(aside @ normal) * normal
        guess = math.cos(angle) * normal + math.sin(angle) * aside / np.linalg.norm(aside)
        found = run(plane, "anchor" if p < 100 else "lift", accuracy, rng, Rough(guess, angle))
        counts.append(found.spent.labels)
        false += found.hyperplane.angle_to(plane) > (found.error_bound or math.inf)
    law = predicted_labels(p, accuracy, angle)
    return Warm(p, angle, float(np.mean(counts)), law, predicted_labels(p, accuracy), false)


def table(head: str, rows: list[list[str]]) -> list[str]:
    """A Markdown table."""
    return [head, "|--:|" + "--:|" * (head.count("|") - 2), *("| " + " | ".join(row) + " |" for row in rows)]


def cell_row(cell: Cell) -> list[str]:
    """One line of the first table."""
    counts = [
        f"{cell.methods[m].labels:.1f} (×{cell.methods[m].labels / cell.information:.3f}, ≤ {cell.methods[m].most})"
        for m in METHODS
    ]
    bounds = [c.error_by_bound for c in cell.methods.values() if c.error_by_bound is not None]
    floors = [f"{value:.0f}" for value in (cell.information, cell.box, cell.joint)]
    false = sum(c.false_bounds for c in cell.methods.values())
    by_lowd_meek = f"{cell.methods['Lowd–Meek'].error_by_accuracy:.2f}"
    return [
        str(cell.features),
        f"{cell.accuracy:.0e}",
        *floors,
        *counts,
        f"{max(bounds):.2f}",
        str(false),
        by_lowd_meek,
    ]


def page(cells: list[Cell], warm: list[Warm]) -> str:
    """The results in Markdown."""
    on = ", ".join(f"{key} {value}" for key, value in machine().items() if key != "load")
    head = "| p | accuracy | information bound | box floor | joint bound | anchor | lift | far | Lowd–Meek | error / bound | "
    text = [
        "# Labels only: how many",
        "",
        f"Written by `benchmarks/labels.py`. Measured with: {on}.",
        f"Mean of {cells[0].models} Gaussian models (× the information bound, and the most of any). *anchor*, *lift* and",
        "*Lowd–Meek* ask inside the ball of radius 2√p around 0, *far* anywhere. All labels count. *information bound*: for the",
        "normal alone;",
        "*box floor*: for methods whose cells are boxes; *joint bound*: with the offset, which must be learnt inside a ball.",
        "*error / bound*: the largest true angle as a share of the proved `error_bound`; *false*: bounds that were not true;",
        "*Lowd–Meek*'s error (last column, in units of the accuracy, worst model) is not proved.",
        "",
        *table(head + "false | Lowd–Meek error |", [cell_row(cell) for cell in cells]),
        "",
        "## With a guess of the normal",
        "",
        "Accuracy 1e-6; the guess is *angle* off. *law*: `predicted_labels`.",
        "",
        *table(
            "| p | angle | labels | law | without a guess | false |",
            [
                [
                    str(w.features),
                    f"{w.angle:g}",
                    f"{w.labels:.1f}",
                    f"{w.predicted:.0f}",
                    f"{w.cold:.0f}",
                    str(w.false_bounds),
                ]
                for w in warm
            ],
        ),
    ]
    return "\n".join(text) + "\n"


def main() -> None:
    """Measure, print as it goes, write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="half a minute: fewer sizes and models, no results written"
    )
    parser.add_argument("--results", type=Path, help="where the results go")
    options = parser.parse_args()
    one_thread()
    begin = time.perf_counter()
    features, models = (FEATURES[:2], 4) if options.quick else (FEATURES, 20)
    cells: list[Cell] = []
    for p in features:
        for accuracy in ACCURACIES:
            cells.append(measure(p, accuracy, models))
            print(" | ".join(cell_row(cells[-1])), flush=True)
    warm = [measure_warm(p, angle, models) for p in features for angle in GUESSES]
    print(page(cells, warm))
    print(f"{time.perf_counter() - begin:.0f} s by the clock, {time.process_time():.0f} s of the processor")
    results = options.results or (None if options.quick else ROOT / "results")
    if results is not None:
        results.mkdir(parents=True, exist_ok=True)
        found = {"machine": machine(), "cells": [asdict(c) for c in cells], "warm": [asdict(w) for w in warm]}
        (results / "labels.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        (results / "labels.md").write_text(page(cells, warm), encoding="utf-8")


if __name__ == "__main__":
    main()
