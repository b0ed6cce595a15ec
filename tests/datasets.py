"""Data sets for tests of `scale`: rows of any kind, stored in files and row groups of any size."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import QueryLog
from overexplain.oracles.exact import ModelOracle

FEATURES = ("income", "age", "debts")
MODEL = Hyperplane([1.0, 0.5, -1.5], 0.25)


def labels(count: int = 40, seed: int = 0) -> QueryLog:
    """A log of labels of the model."""
    points = np.random.default_rng(seed).normal(size=(count, 3)).round(3)
    log = QueryLog(features=FEATURES)
    log.add_label(points, MODEL.labels(points))
    return log


def robust(count: int = 3, seed: int = 0) -> QueryLog:
    """A log of labels and robust counterfactuals, about which batches of points teach each other."""
    terms = Mechanism("l1", robustness="l2", radius=0.4)
    service = ModelOracle(MODEL, terms)
    log = QueryLog(features=FEATURES, mechanism=terms)
    points = np.random.default_rng(seed).normal(size=(count, 3)).round(3)
    log.add_explanation(points, service.explain(points), label=service.classify(points))
    return log


def write_model(path: Path) -> None:
    """Store the model."""
    coefficients = dict(zip(FEATURES, MODEL.normal.tolist(), strict=True))
    path.write_text(json.dumps({"intercept": -MODEL.offset, "coefficients": coefficients}))


def people(count: int, seed: int = 1) -> np.ndarray:
    """Rows, some of them twice."""
    rows = np.random.default_rng(seed).normal(size=(count, 3)).round(2)
    rows[count // 2] = rows[0]
    return rows


def store(
    folder: Path,
    rows: np.ndarray,
    files: Sequence[int],
    group: int = 50,
    key: bool = True,
    names: Sequence[str] = FEATURES,
) -> Path:
    """The rows in Parquet files with so many rows each, in row groups of at most `group` rows."""
    folder.mkdir(parents=True, exist_ok=True)
    assert sum(files) == len(rows)
    first = 0
    for number, count in enumerate(files):
        some = rows[first : first + count]
        columns = {name: some[:, k] for k, name in enumerate(names)}
        if key:
            columns = {"id": np.array([f"n{i}" for i in range(first, first + count)], dtype=object)} | columns
        table = pa.table(
            {name: pa.array(values, pa.string() if name == "id" else None) for name, values in columns.items()}
        )
        pq.write_table(table, folder / f"people-{number:03}.parquet", row_group_size=group)
        first += count
    return folder


def verdicts(output: Path) -> pa.Table:
    """All verdicts of a run, in order."""
    tables = [pq.read_table(path) for path in sorted(output.glob("part-*.parquet"))]
    return pa.concat_tables([table.cast(tables[0].schema) for table in tables])


def named(output: Path) -> list[str]:
    """The names of all verdicts of a run, in order."""
    return verdicts(output).column("verdict").cast(pa.string()).to_pylist()


def written(*folders: Path) -> dict[str, bytes]:
    """Every file of verdicts and proofs, byte for byte."""
    return {path.name: path.read_bytes() for folder in folders for path in sorted(folder.glob("part-*"))}


def proofs_by_row(folder: Path) -> dict[int, str]:
    """Every proof of a run by the row it is about."""
    lines = [line for path in sorted(folder.glob("part-*.jsonl")) for line in path.read_text().splitlines()]
    return {json.loads(line)["row"]: line for line in lines}
