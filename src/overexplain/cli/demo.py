"""`overexplain demo`: a real model, every kind of service, what each of them gives away."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from overexplain.auditing.survey import Service, survey
from overexplain.cli.output import bar, print_json
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import GroupNorm, Mahalanobis, Weighted, l1, l2, linf, norm
from overexplain.models.linear import LinearModel
from overexplain.models.load import load_model

RADIUS = 0.001
"""In the features' own units: moves this model's log-odds by a few tenths."""

DATA = "breast_cancer"


@dataclass(frozen=True)
class Example:
    """A fitted model in the features' own units, and the rows it was and was not fitted on."""

    model: LinearModel
    train: FloatArray
    holdout: FloatArray


def run_demo(seed: int, as_json: bool) -> None:
    """Train, rebuild under every service, print."""
    with bar("training a model") as show:
        example = train(seed)
        rows = survey(
            example.model,
            example.holdout,
            services(example.train),
            rng=seed,
            progress=lambda done, total: show("rebuilding it", done, total),
        )
    if as_json:
        about = {"data": DATA, "features": example.model.dimension, "seed": seed}
        sizes = {"train_rows": len(example.train), "heldout_rows": len(example.holdout)}
        print_json({"model": about | sizes, "rows": [row.to_dict() for row in rows]})
        return
    from overexplain.report.terminal import print_survey, print_text, terminal

    console = terminal()
    print_text(
        f"The model: a logistic regression on {example.model.dimension} features, fitted to {len(example.train)} rows "
        f"of scikit-learn's {DATA} data; {len(example.holdout)} rows are held out. An outsider asks a service for "
        "explanations (the nearest point that gets the other label) and rebuilds the model from them.",
        console,
    )
    console.print()
    print_survey(rows, console)
    console.print()
    console.print("next: overexplain extract --help     (the same for a model of yours)")


def train(seed: int) -> Example:
    """A logistic regression on scaled features, with the scaling folded into its coefficients."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    data = load_breast_cancer()
    rows, holdout, target, _ = train_test_split(
        data.data, data.target, test_size=0.3, random_state=seed, stratify=data.target
    )
    model = load_model(make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(rows, target))
    no, yes = map(str, data.target_names)
    return Example(replace(model, features=tuple(map(str, data.feature_names)), classes=(no, yes)), rows, holdout)


def services(train: FloatArray) -> list[Service]:
    """Every kind of service: smooth, polyhedral, weighted, correlated and grouped distances; robust; secret radii."""
    precision = np.linalg.inv(np.cov(train, rowvar=False))
    ten = train.shape[1] // 3  # measurements: their means, then their standard errors, then their worst values
    groups = tuple((i, i + ten, i + 2 * ten) for i in range(ten))
    plain = [Mechanism(norm(name)) for name in ("l2", "lp:1.5", "l1", "linf")]
    robust = [Mechanism(distance, ball, RADIUS) for distance, ball in ((l1, l2), (linf, l1), (l2, linf))]
    secret = [Mechanism(distance, l2, RADIUS) for distance in (l1, l2)]
    return [
        *map(Service, plain),
        Service(Mechanism(Weighted(l1, 1 / train.std(axis=0))), name="changes in standard deviations (l1)"),
        Service(Mechanism(Mahalanobis((precision + precision.T) / 2))),
        Service(Mechanism(GroupNorm(groups)), name="one measurement at a time (group)"),
        *map(Service, robust),
        *(Service(mechanism, published=replace(mechanism, radius=None)) for mechanism in secret),
    ]
