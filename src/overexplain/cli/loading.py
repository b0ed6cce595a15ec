"""A stored model, of Yes and No or of several classes, whichever it is."""

from __future__ import annotations

from pathlib import Path

from overexplain.errors import InvalidInput, UnsupportedModel
from overexplain.models.linear import LinearModel
from overexplain.models.load import load_model, load_multiclass
from overexplain.models.multiclass import MulticlassModel


def load_any(path: Path, threshold: float | None, allow_pickle: bool) -> LinearModel | MulticlassModel:
    """The model in a file: of Yes and No, else of several classes; if it is neither, the first error is told."""
    try:
        return load_model(path, threshold=threshold, allow_pickle=allow_pickle)
    except UnsupportedModel as refused:
        found = several_classes(path, allow_pickle)
        if found is None:
            raise
        if threshold is not None:
            raise InvalidInput(
                f"{path} has {found.argmax.classes} classes: --threshold is for models of Yes and No"
            ) from refused
        return found


def several_classes(path: Path, allow_pickle: bool) -> MulticlassModel | None:
    """The model of three or more classes in a file; None if it holds none."""
    try:
        found = load_multiclass(path, allow_pickle=allow_pickle)
    except InvalidInput:
        return None
    return found if found.argmax.classes > 2 else None
