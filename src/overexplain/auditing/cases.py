"""The cases of an audit: rows in the order of the model's features."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray, as_rows
from overexplain.log.rows import as_numbers, in_order
from overexplain.models.linear import LinearModel
from overexplain.models.multiclass import MulticlassModel

LEAST_CASES: Final = 10


def as_cases(data: Any, model: LinearModel | MulticlassModel) -> FloatArray:
    """Rows, or a frame with columns of the model's names, as rows; too few of them are refused."""
    rows = data if isinstance(data, np.ndarray | list | tuple) else in_order(data, model.features, "data", "the model")
    cases = as_rows(as_numbers(rows, "data"), model.dimension, "data")
    if len(cases) < LEAST_CASES:
        raise InvalidInput(
            f"data has {len(cases)} cases; an audit needs at least {LEAST_CASES} to say anything about them"
        )
    return cases
