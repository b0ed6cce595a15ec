"""How many targeted explanations rebuild a classifier of several classes, beside a softmax surrogate trained on as many answers.

    python benchmarks/multiclass.py [--quick] [--results DIRECTORY] [--check]

Random models (seeded): weights ~ N(0, 1), intercepts ~ N(0, ¼). All labels count: finding the classes, walking to boundaries,
checking answers. The surrogate is a softmax regression (scikit-learn, features standardised) trained on as many labels of random
points and as many explanations, labelled with their target, as our attack used, then on ten times as many. Agreement is on 2,000
points ~ N(0, 4). Real models are logistic regressions fitted to data that ship with scikit-learn, agreement is on the data; the
attacker has its rows as examples. Results go to benchmarks/results/multiclass.* and docs/multiclass.md; a quick run only prints
them. --check: fail if docs/multiclass.md quotes other numbers than were recorded.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from certify import machine, one_thread
from numpy.typing import NDArray
from quoting import described, quoted

from overexplain.extraction.multiclass.extract import extract_multiclass
from overexplain.geometry.argmax import ArgmaxModel
from overexplain.models.load import load_multiclass
from overexplain.oracles.multiclass import ArgmaxOracle

FloatArray = NDArray[np.float64]
ROOT = Path(__file__).parent
DOCS = ROOT.parent / "docs/multiclass.md"
SIZES = tuple((classes, features) for features in (10, 30, 100) for classes in (3, 5, 10, 20))
POINTS = (("l1", 3, 10), ("l1", 5, 10), ("linf", 5, 10), ("l1", 10, 30))
MODELS = 8
FEWER = 3
"""Models for the rows of the table where one model takes hundreds of explanations."""


@dataclass(frozen=True)
class Surrogate:
    """The worst and the mean of a surrogate: agreement, and its error (radians)."""

    agreement: float
    worst_agreement: float
    error: float


@dataclass(frozen=True)
class Cell:
    """One size: mean numbers of explanations and labels, errors of all models, agreement of the worst one."""

    name: str
    distance: str
    classes: int
    features: int
    models: int
    floor: int
    explanations: float
    most: int
    labels: float
    error: float
    worst: float
    agreement: float
    false_bounds: int
    seconds: float
    same: Surrogate
    tenfold: Surrogate


def drawn(classes: int, features: int, seed: int) -> ArgmaxModel:
    """A random model."""
    rng = np.random.default_rng(seed)
    return ArgmaxModel(rng.normal(size=(classes, features)), 0.5 * rng.normal(size=classes))


def floor_of(distance: str, classes: int, features: int) -> int:
    """Unknowns by what an answer shows: p numbers under l2, where nothing less is possible, one equation under others."""
    unknowns = (classes - 1) * (features + 1) - 1
    return -(-unknowns // features) if distance == "l2" else unknowns


def surrogate(oracle: ArgmaxOracle, rows: FloatArray, labels: int, explanations: int, seed: int) -> ArgmaxModel | None:
    """A softmax regression trained on answers; None if they have fewer classes than the model."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(seed)
    points = rows[rng.integers(len(rows), size=labels)]
    said = oracle.classify(points)
    answers, targets = [], []
    for x in rows[rng.integers(len(rows), size=explanations)]:
        target = int(rng.integers(oracle.classes))
        answer = oracle.explain(x, target)
        if answer is not None:
            answers.append(answer)
            targets.append(target)
    every = np.concatenate([said, np.array(targets, dtype=np.int64)])
    if len(np.unique(every)) < oracle.classes:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = make_pipeline(StandardScaler(), LogisticRegression(C=100.0, max_iter=300))
        fitted.fit(np.vstack([points, *answers]), every)
    return load_multiclass(fitted).argmax


def judged(copies: list[ArgmaxModel | None], models: list[ArgmaxModel], tests: list[FloatArray]) -> Surrogate:
    """Copies beside the models they stand for; one that could not be trained agrees nowhere."""
    agreements = [
        0.0 if copy is None else float(np.mean(copy.labels(rows) == model.labels(rows)))
        for copy, model, rows in zip(copies, models, tests, strict=True)
    ]
    errors = [np.pi if copy is None else copy.distance_to(model) for copy, model in zip(copies, models, strict=True)]
    return Surrogate(float(np.mean(agreements)), min(agreements), float(np.median(errors)))


def measured(
    name: str, distance: str, models: list[ArgmaxModel], pools: list[FloatArray], tests: list[FloatArray], given: bool
) -> Cell:
    """All models attacked by us and by surrogates; `given`: we have the pool's rows as examples."""
    begin = time.perf_counter()
    oracles = [ArgmaxOracle(model, distance) for model in models]
    founds = [
        extract_multiclass(oracle, examples=pool if given else None, rng=seed)
        for seed, (oracle, pool) in enumerate(zip(oracles, pools, strict=True))
    ]
    seconds = (time.perf_counter() - begin) / len(models)
    errors = [found.model.distance_to(model) for found, model in zip(founds, models, strict=True)]
    bounds = [found.error_bound for found in founds]
    copies: dict[int, list[ArgmaxModel | None]] = {
        factor: [
            surrogate(oracle, pool, factor * found.spent.labels, factor * found.spent.explanations, seed)
            for seed, (oracle, pool, found) in enumerate(zip(oracles, pools, founds, strict=True))
        ]
        for factor in (1, 10)
    }
    model = models[0]
    return Cell(
        name=name,
        distance=distance,
        classes=model.classes,
        features=model.dimension,
        models=len(models),
        floor=floor_of(distance, model.classes, model.dimension),
        explanations=float(np.mean([found.spent.explanations for found in founds])),
        most=max(found.spent.explanations for found in founds),
        labels=float(np.mean([found.spent.labels for found in founds])),
        error=float(np.median(errors)),
        worst=max(errors),
        agreement=min(
            float(np.mean(found.model.labels(rows) == model.labels(rows)))
            for found, model, rows in zip(founds, models, tests, strict=True)
        ),
        false_bounds=sum(bound is not None and bound < error for bound, error in zip(bounds, errors, strict=True)),
        seconds=seconds,
        same=judged(copies[1], models, tests),
        tenfold=judged(copies[10], models, tests),
    )


def random_cell(distance: str, classes: int, features: int, count: int) -> Cell:
    """Random models of one size; the surrogate sees points of the distribution that agreement is measured on."""
    models = [drawn(classes, features, seed) for seed in range(count)]
    pools = [2 * np.random.default_rng(1000 + seed).normal(size=(40_000, features)) for seed in range(count)]
    tests = [2 * np.random.default_rng(2000 + seed).normal(size=(2000, features)) for seed in range(count)]
    return measured("random", distance, models, pools, tests, given=False)


def real_cells() -> Iterator[Cell]:
    """Logistic regressions on data that ship with scikit-learn, features as they come."""
    from sklearn.datasets import load_digits, load_iris, load_wine
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    for name, data in (("iris", load_iris()), ("wine", load_wine()), ("digits", load_digits())):
        fitted = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(data.data, data.target)
        model = load_multiclass(fitted).argmax
        yield measured(name, "l2", [model], [data.data], [data.data], given=True)


def cells(quick: bool) -> Iterator[Cell]:
    """Every row of the table."""
    for classes, features in SIZES[:3] if quick else SIZES:
        yield random_cell("l2", classes, features, 2 if quick else MODELS)
    yield from real_cells()
    for distance, classes, features in POINTS[:1] if quick else POINTS:
        yield random_cell(distance, classes, features, 2 if quick else FEWER)


def markdown(found: dict[str, Any]) -> str:
    """The table."""
    lines = [
        "| model | distance | K | p | needed | explanations (most) | labels | error median / worst | agreement (worst) | "
        "surrogate, as many answers: agreement, error | ten times as many |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for c in found["cells"]:
        copies = " | ".join(f"{c[k]['agreement']:.1%}, {c[k]['error']:.1g}" for k in ("same", "tenfold"))
        name = f"{c['models']} random" if c["name"] == "random" else c["name"]
        lines.append(
            f"| {name} | {c['distance']} | {c['classes']} | {c['features']} | {c['floor']} | "
            f"{c['explanations']:.1f} ({c['most']}) | {c['labels']:.0f} | "
            f"{c['error']:.0e} / {c['worst']:.0e} | {c['agreement']:.2%} | {copies} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, print as it goes, write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few sizes and models, no results written")
    parser.add_argument("--check", action="store_true", help="only compare docs/multiclass.md with what was recorded")
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="where the results go")
    options = parser.parse_args()
    recorded = options.results / "multiclass.json"
    if options.check:
        page = DOCS.read_text(encoding="utf-8")
        found = json.loads(recorded.read_text(encoding="utf-8"))
        right = quoted(markdown(found), page, "multiclass.py") == page
        sys.exit(0 if right else "docs/multiclass.md does not quote what was recorded")
    one_thread()
    found = {"machine": machine(), "cells": []}
    for cell in cells(options.quick):
        found["cells"].append(asdict(cell))
        print(cell, flush=True)
    text = markdown(found)
    print(text)
    if options.quick:
        return
    recorded.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    page = f"# Several classes, measured\n\n{text}\n\n{described(found['machine'])}\n"
    (options.results / "multiclass.md").write_text(page, encoding="utf-8")
    DOCS.write_text(quoted(text, DOCS.read_text(encoding="utf-8"), "multiclass.py"), encoding="utf-8")


if __name__ == "__main__":
    main()
