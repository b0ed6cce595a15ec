"""`overexplain demo`: a real model, real data, the whole audit, one HTML file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import typer

from overexplain.auditing.audit import audit
from overexplain.cli.audit import write_reports
from overexplain.cli.output import bar, processors
from overexplain.geometry.arrays import FloatArray
from overexplain.models.linear import LinearModel
from overexplain.models.load import load_model

DATA = "scikit-learn's breast_cancer data"
SERVICES = ("l1", "l1; robust=l2:0.1")
ORDERS = 10
ANSWERS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 31, 50, 100, 200, 400)
REPORT = Path("overexplain-report.html")


@dataclass(frozen=True)
class Example:
    """A fitted model in the features' own units, and the cases it decides."""

    model: LinearModel
    cases: FloatArray


def run_demo(seed: int, output: Path, as_json: bool) -> None:
    """Train, audit, write the report, print it."""
    with bar("training a model") as show:
        example = train(seed)
        report = audit(
            example.model,
            example.cases,
            SERVICES,
            orders=ORDERS,
            answers=ANSWERS,
            standardize=True,
            name=DATA,
            seed=seed,
            command=f"overexplain demo --seed {seed}",
            workers=processors(example.cases.size),
            progress=show,
        )
    write_reports(report, [output])
    if as_json:
        typer.echo(report.to_json())
        return
    from overexplain.report.audit_terminal import print_audit
    from overexplain.report.terminal import print_text, terminal

    console = terminal()
    print_text(
        f"A logistic regression on {DATA}: {len(example.cases):,} cases, {example.model.dimension} features, counted in "
        "standard deviations. What do its explanations give away?",
        console,
    )
    console.print()
    print_audit(report, console)
    console.print()
    console.print(f"report: {output} (opens offline)", soft_wrap=True)
    console.print("next:   overexplain audit --help     (the same for a model of yours)")


def train(seed: int) -> Example:
    """A logistic regression on scaled features, fitted to 70 % of the cases, with the scaling folded into its coefficients."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    data = load_breast_cancer()
    rows, _, target, _ = train_test_split(
        data.data, data.target, test_size=0.3, random_state=seed, stratify=data.target
    )
    model = load_model(make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(rows, target))
    no, yes = map(str, data.target_names)
    return Example(replace(model, features=tuple(map(str, data.feature_names)), classes=(no, yes)), data.data)
