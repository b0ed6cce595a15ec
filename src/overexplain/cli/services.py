"""The service that a command line describes, and the rows of its data file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from overexplain.cli.points import open_points
from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.mechanism import Mechanism
from overexplain.models.linear import LinearModel
from overexplain.oracles.services import Service

MOST_ROWS = 100_000
"""No more rows of a data file are kept in memory."""


def described(
    distance: str | None,
    robustness: str | None,
    radius: float | None,
    secret_radius: bool,
    imitate: str | None,
    degrade: tuple[str, ...],
) -> Service:
    """The service of --distance, --robustness, --radius, --secret-radius, --imitate and --degrade."""
    if imitate is not None:
        return Service(None, degrade=degrade, imitate=imitate)
    mechanism = Mechanism(distance or "l2", robustness, radius or 0.0)
    return Service(mechanism, replace(mechanism, radius=None) if secret_radius else None, degrade=degrade)


def read_rows(path: Path, model: LinearModel) -> FloatArray:
    """The rows of a data file, by feature name; those beyond `MOST_ROWS` are left out."""
    blocks, count = [], 0
    with open_points(path, model.features, model.dimension, model.columns) as points:
        for block in points.blocks:
            blocks.append(block.points[: max(0, MOST_ROWS - count)])
            count += len(block.points)
    if not count:
        raise InvalidInput(f"{path}: no rows")
    return np.concatenate(blocks)
