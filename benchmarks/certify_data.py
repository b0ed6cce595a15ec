"""What `benchmarks/certify.py` asks about: real tables with a logistic regression each, a generated scorecard, and Gaussian points.

Columns are in their own units, categories one-hot; the model is fitted on standardised numbers and folded back, as an audit does
it (`load_model`). Only breast_cancer is standardised. A log's rows, the points asked about and those that everything is warmed up
with are disjoint draws of one table.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import overexplain as ox

FloatArray = NDArray[np.float64]
Labels = NDArray[np.int8]
TARGETS = {"german_credit": "GoodCustomer", "taiwan_credit_default": "NoDefaultNextMonth", "adult": "income"}
"""Files in the directory named by OVEREXPLAIN_DATA, and the column that their models predict."""
TABLES = (*TARGETS, "breast_cancer", "scorecard")
ANSWERS = ("labels", "l1", "linf", "l2")
LOGS = (20, 100, 400, 5000)
LONG, LONG_TABLES = 5000, ("taiwan_credit_default", "adult", "scorecard")
"""A log of so many answers has labels only, and is drawn from tables that are large enough."""
WHOLE = len(TABLES) * len(ANSWERS) * (len(LOGS) - 1) + len(LONG_TABLES)
"""Cells of all tables."""
MOST_POINTS = 30_000
RADIUS = 0.1
MOST_OTHERS = 1000
GAUSSIAN = {
    "5/500": 1_000_000,
    "10/500": 400_000,
    "10/5000": 1_000_000,
    "30/500": 40_000,
    "30/5000": 200_000,
    "100/500": 20_000,
    "100/5000": 3_000,
}
"""features/labels -> points asked"""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows and the model that decides them."""

    rows: FloatArray
    plane: ox.Hyperplane


@dataclass(frozen=True, eq=False)
class Work:
    """A log, and points to ask about with their labels by the model that gave the answers."""

    name: str
    answers: str
    asked: FloatArray
    labels: Labels
    explained: FloatArray | None
    points: FloatArray
    truth: Labels
    others: FloatArray
    """Points like those asked about, but none of them: what is made on first use is made for these."""
    terms: ox.Mechanism | None = None
    """Those of the explanations."""

    def log(self) -> ox.QueryLog:
        """What was asked and answered."""
        log = ox.QueryLog()
        if self.explained is None:
            log.add_label(self.asked, self.labels)
        else:
            log.add_explanation(self.asked, self.explained, label=self.labels, mechanism=self.terms)
        return log


def available() -> list[str]:
    """The tables at hand."""
    return [name for name in TABLES if name not in TARGETS or _path(name).exists()]


@lru_cache(maxsize=2)
def table(name: str) -> Table:
    """The table of this name with its model."""
    if name == "breast_cancer":
        return _breast_cancer()
    frame, outcome = _scorecard() if name == "scorecard" else _read(name)
    return _fitted(frame, outcome)


def size(name: str, answers: str, log: int) -> int | None:
    """How many rows a log of nominally `log` answers has: at most half of the table; None if there is no such cell."""
    if log >= LONG and (answers != "labels" or name not in LONG_TABLES):
        return None
    return min(log, len(table(name).rows) // 2)


def drawn(name: str, answers: str, log: int, most: int = MOST_POINTS) -> Work:
    """A log of `log` rows of a table, and points among the others: at most `most`."""
    rows, plane = table(name).rows, table(name).plane
    order = np.random.default_rng(0).permutation(len(rows))
    asked, left = rows[order[:log]], rows[order[log:]]
    spare = min(MOST_OTHERS, len(left) // 10)
    points = np.ascontiguousarray(left[:-spare][:most])
    return _work(name, answers, plane, asked, points, left[-spare:])


def gaussian(p: int, n: int, count: int, seed: int = 1) -> Work:
    """Labels of a random classifier at 0.3 from the middle of Gaussian data."""
    rng = np.random.default_rng(seed)
    plane = ox.Hyperplane(normal := rng.standard_normal(p), 0.3 * float(np.linalg.norm(normal)))
    asked, points, others = (rng.standard_normal((rows, p)) for rows in (n, count, MOST_OTHERS))
    return _work(f"{p}/{n}", "labels", plane, asked, points, others)


def works(tables: list[str], answers: list[str], logs: list[int]) -> Iterator[Work]:
    """The cells of real data, one after the other."""
    for name in tables:
        for kind in answers:
            found = (size(name, kind, log) for log in logs)
            for length in dict.fromkeys(length for length in found if length is not None):
                yield drawn(name, kind, length)


def _work(
    name: str, answers: str, plane: ox.Hyperplane, asked: FloatArray, points: FloatArray, others: FloatArray
) -> Work:
    terms = None if answers == "labels" else _terms(answers, plane, asked)
    explained = None if terms is None else np.asarray(ox.ModelOracle(plane, terms).explain(asked))
    return Work(name, answers, asked, plane.labels(asked), explained, points, plane.labels(points), others, terms)


def _terms(answers: str, plane: ox.Hyperplane, asked: FloatArray) -> ox.Mechanism:
    """A distance; or distance/ball, whose radius is a tenth of the median distance of the points from the plane."""
    distance, _, ball = answers.partition("/")
    if not ball:
        return ox.Mechanism(distance)
    far = np.abs(plane.margin(asked)) / float(ox.norm(distance).dual(plane.normal))
    return ox.Mechanism(distance, robustness=ball, radius=RADIUS * float(np.median(far)))


def _path(name: str) -> Path:
    directory = os.environ.get("OVEREXPLAIN_DATA")
    return Path(directory or "no directory named") / f"{name}.csv"


def _read(name: str) -> tuple[Any, Any]:
    """(columns, outcome) of a CSV."""
    import pandas as pd

    if not _path(name).exists():
        raise SystemExit(f"{name}.csv is not in the directory named by OVEREXPLAIN_DATA")
    frame = pd.read_csv(_path(name))
    outcome = frame.pop(TARGETS[name])
    return frame, outcome == outcome.max()


def _fitted(frame: Any, outcome: Any) -> Table:
    """A logistic regression on standardised numbers and one-hot categories, in the units of the columns."""
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numeric = [column for column in frame.columns if pd.api.types.is_numeric_dtype(frame[column])]
    categorical = [column for column in frame.columns if column not in numeric]
    encoder = make_column_transformer((StandardScaler(), numeric), (OneHotEncoder(), categorical))
    model = ox.load_model(make_pipeline(encoder, LogisticRegression(max_iter=2000)).fit(frame, outcome))
    return Table(np.asarray(model.encode(frame), dtype=np.float64), model.hyperplane)


def _breast_cancer() -> Table:
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    rows, outcome = load_breast_cancer(return_X_y=True)
    rows = StandardScaler().fit_transform(rows)
    model = LogisticRegression(max_iter=2000).fit(rows, outcome)
    return Table(rows, ox.Hyperplane.from_intercept(model.coef_[0], float(model.intercept_[0])))


def _scorecard(count: int = 40_000) -> tuple[Any, Any]:
    """(columns, outcome) of a made-up lender: bins 0 … k, flags, categories, whole amounts, all leaning on one hidden worth."""
    import pandas as pd

    rng = np.random.default_rng(2026)
    worth = rng.standard_normal(count)

    def leaning(share: float) -> FloatArray:
        return np.asarray(share * worth + math.sqrt(1 - share**2) * rng.standard_normal(count))

    columns: dict[str, Any] = {}
    for k in (3, 4, 5, 6, 9):
        columns[f"bin_0_to_{k}"] = np.clip(np.floor((k + 1) * (0.5 + leaning(0.5) / 5)), 0, k).astype(int)
    for number, limit in enumerate((-1.5, -0.5, 0.0, 0.8, 1.6)):
        columns[f"flag_{number}"] = (leaning(0.4) > limit).astype(int)
    for group, values in (("purpose", 6), ("home", 4), ("work", 5)):
        scores = leaning(0.3)[:, None] * np.linspace(-1, 1, values) + rng.gumbel(size=(count, values))
        columns[group] = np.array([f"{group}_{value}" for value in range(values)])[np.argmax(scores, axis=1)]
    columns["income"] = 50 * np.round(np.exp(7.6 + 0.45 * leaning(0.5)) / 50)
    columns["loan"] = 100 * np.round(np.exp(8.2 + 0.8 * leaning(-0.2)) / 100)
    columns["months"] = 6 * rng.integers(1, 13, size=count)
    columns["age"] = np.clip(np.round(42 + 12 * leaning(0.2)), 18, 85)
    return pd.DataFrame(columns), worth + 0.7 * rng.logistic(size=count) > -0.5
