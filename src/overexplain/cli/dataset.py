"""The cases of an audit: all rows of a file, or of larger data, a folder of Parquet files too, a sample of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from overexplain.cli.main import say
from overexplain.cli.points import open_points
from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray
from overexplain.models.linear import LinearModel
from overexplain.models.multiclass import MulticlassModel
from overexplain.scale.parts import block_rows, open_dataset
from overexplain.scale.sample import Sampled, draw

MOST_CASES = 100_000
"""Of data with more rows so many are drawn at random."""


def read_sample(path: Path, model: LinearModel | MulticlassModel, seed: int) -> Sampled:
    """The rows of a data file or folder, by feature name, or a sample of them; one pass, memory for the sample and a block."""
    if model.features is None and model.columns is None:
        say(f"note: the model names no features: the columns of {path} are taken in their order")
    found = draw(_blocks(path, model), model.dimension, MOST_CASES, seed)
    if not found.total:
        raise InvalidInput(f"{path}: no rows")
    return found


def _blocks(path: Path, model: LinearModel | MulticlassModel) -> Iterator[FloatArray]:
    if path.is_dir():
        dataset = open_dataset(path, model.features, model.dimension, model.columns)
        for block in dataset.blocks(0, dataset.rows, block_rows(model.dimension)):
            yield block.points
        return
    with open_points(path, model.features, model.dimension, model.columns) as points:
        for found in points.blocks:
            yield found.points
