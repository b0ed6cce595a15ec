"""A stored model, of Yes and No or of several classes: whichever it is, or the one that a command is for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from overexplain.errors import InvalidInput, UnsupportedModel
from overexplain.models.coefficients import SeveralClasses
from overexplain.models.linear import LinearModel
from overexplain.models.load import load_model, load_multiclass, stored_multiclass
from overexplain.models.multiclass import MulticlassModel

if TYPE_CHECKING:
    from overexplain.models.sandbox import Stored


def load_any(path: Path, threshold: float | None, allow_pickle: bool) -> LinearModel | MulticlassModel:
    """The model in a file: of Yes and No, or with a score for each class."""
    try:
        return load_model(path, threshold=threshold, allow_pickle=allow_pickle)
    except SeveralClasses:
        return several_classes(path, threshold, allow_pickle)


def several_classes(path: Path, threshold: float | None, allow_pickle: bool) -> MulticlassModel:
    """The model in a file that has a score for each class; InvalidInput says what is wrong with it, or with a threshold."""
    return stored_several_classes(path, threshold, allow_pickle).model


def stored_several_classes(path: Path, threshold: float | None, allow_pickle: bool) -> Stored[MulticlassModel]:
    """As `several_classes`, with what there is to say about the file."""
    found = stored_multiclass(path, allow_pickle)
    if threshold is not None:
        raise InvalidInput(f"{path} has {found.model.argmax.classes} classes: --threshold is for models of Yes and No")
    return found


def load_yes_or_no(path: Path, *, threshold: float | None = None, allow_pickle: bool = False) -> LinearModel:
    """The model in a file, for commands that know Yes and No only: others are refused in the words of the command line."""
    try:
        return load_model(path, threshold=threshold, allow_pickle=allow_pickle)
    except SeveralClasses:
        count = load_multiclass(path, allow_pickle=allow_pickle).argmax.classes  # a broken file is told what is broken
    if count == 2:
        raise UnsupportedModel(
            f"{path} has a score for each of its 2 classes: this command is for models of Yes and No with one score. Write the "
            "second score minus the first as coefficients and intercept; `overexplain audit` and `overexplain model inspect` "
            "read the file as it is"
        )
    raise UnsupportedModel(
        f"{path} has {count} classes: this command is for models of two classes (Yes and No); `overexplain audit` and "
        "`overexplain model inspect` read models of several classes"
    )
