"""The models that all attacks are after: logistic regressions on data sets that ship with scikit-learn, made up, or at hand as CSV.

Half of the rows train, others are held out. Columns are in units of their spread; text columns are 0/1, or one-hot if they have
more than two values. All attacks ask inside the data's box: from the 1st to the 99th percentile of every column of the training
rows, all numbers between them counting as possible. (The whole range would be the corners: 99.7 % of it is No for breast_cancer.)
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import overexplain as ox

FloatArray = NDArray[np.float64]
SYNTHETIC = (10, 30, 100)
MOST_ROWS = 4000
"""Rows of a long table that a model is trained on."""
HELD_OUT = 2000
"""Rows that agreement is measured on, at most; and as many uniform points of the box."""
RARE = 0.02
"""Columns in which fewer rows differ from the commonest value are left out: half of the rows might all be the same."""


@dataclass(frozen=True, eq=False)
class World:
    """One model: `plane` is where its log-odds are 0, and normal·x − offset are the log-odds."""

    name: str
    plane: ox.Hyperplane
    train: FloatArray
    held_out: FloatArray
    in_box: FloatArray

    @property
    def box(self) -> tuple[FloatArray, FloatArray]:
        """Where questions are asked."""
        return box_of(self.train)


def names() -> list[str]:
    """The data sets: breast_cancer, synthetic ones, and every CSV in the directory named by OVEREXPLAIN_DATA."""
    directory = os.environ.get("OVEREXPLAIN_DATA")
    tables = [path.stem for path in sorted(Path(directory).glob("*.csv"))] if directory else []
    return ["breast_cancer", *(f"synthetic {p}" for p in SYNTHETIC), *tables]


@lru_cache(maxsize=4)
def world(name: str, seed: int) -> World:
    """The data set of this name, split and trained by this seed."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split

    rows, outcome = _table(name, seed)
    rows = rows[:, [_varies(column) for column in rows.T]]
    train, held_out, known, _ = train_test_split(
        rows, outcome, train_size=min(MOST_ROWS, len(rows) // 2), random_state=seed, stratify=outcome
    )
    middle, spread = train.mean(axis=0), train.std(axis=0)
    train, held_out = (train - middle) / spread, (held_out[:HELD_OUT] - middle) / spread
    model = LogisticRegression(max_iter=1000).fit(train, known)
    plane = ox.Hyperplane.from_intercept(model.coef_[0], float(model.intercept_[0]))
    low, high = box_of(train)
    in_box = np.random.default_rng([seed, len(low)]).uniform(low, high, (HELD_OUT, len(low)))
    return World(name, plane, train, held_out, in_box)


def box_of(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """From the 1st to the 99th percentile of every column."""
    low, high = np.quantile(rows, [0.01, 0.99], axis=0)
    return low, high


def _varies(column: FloatArray) -> bool:
    """True if enough rows differ from the commonest value for any half of them to show it."""
    counts = np.unique(column, return_counts=True)[1]
    return bool(len(column) - counts.max() >= RARE * len(column))


def _table(name: str, seed: int) -> tuple[FloatArray, NDArray[np.bool_]]:
    if name == "breast_cancer":
        from sklearn.datasets import load_breast_cancer

        rows, outcome = load_breast_cancer(return_X_y=True)
        return rows, outcome == 1
    if name.startswith("synthetic"):
        return synthetic(int(name.split()[1]), seed)
    return read_csv(Path(os.environ["OVEREXPLAIN_DATA"]) / f"{name}.csv")


def synthetic(p: int, seed: int) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Gaussian rows whose outcome follows a random linear model, with noise."""
    rng = np.random.default_rng([p, seed, 2026])
    normal = rng.standard_normal(p) / np.sqrt(p)
    rows = rng.standard_normal((3000, p))
    score = rows @ normal - 0.3 * float(rng.standard_normal())
    return rows, score + 0.3 * rng.standard_normal(len(rows)) >= 0


def read_csv(path: Path) -> tuple[FloatArray, NDArray[np.bool_]]:
    """(features, outcome) of a CSV: the outcome is the first column if that has two values, else the last."""
    import pandas as pd

    frame: Any = pd.read_csv(path)
    target = frame.columns[0] if frame.iloc[:, 0].nunique() == 2 else frame.columns[-1]
    outcome = frame[target].to_numpy() == frame[target].max()
    columns: list[FloatArray] = []
    for name in frame.columns.drop(target):
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            columns.append(column.to_numpy(dtype=np.float64)[:, None])
            continue
        codes, values = pd.factorize(column, sort=True)
        columns.append(np.eye(len(values))[codes] if len(values) > 2 else codes[:, None].astype(np.float64))
    return np.hstack(columns), outcome
