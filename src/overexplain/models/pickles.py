"""Pickles and joblib files: refused with the line that converts them, or opened, if asked for, in a child process."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from overexplain.errors import UnsupportedModel
from overexplain.models.linear import LinearModel
from overexplain.models.multiclass import MulticlassModel
from overexplain.models.sandbox import LARGEST_FILE, Stored, read_in_child, read_multiclass_in_child
from overexplain.models.sniff import read_bounded, shown

_NOTE: Final = "a pickle was run, because it was allowed; keep the coefficient file instead (-o model.json)"


def read_pickle(
    path: str | os.PathLike[str], threshold: float | None = None, allow_pickle: bool = False
) -> LinearModel:
    """The linear model in a pickle or joblib file, if that is allowed; `threshold` replaces its own cut.

    A pickle is a program. With `allow_pickle` it is run in a child process with an empty environment and bounds on
    memory and time, which sends back numbers only; it may still do what its user may do, so allow it for files you made.
    """
    return stored_pickle(path, threshold, allow_pickle).model


def stored_multiclass_pickle(path: str | os.PathLike[str]) -> Stored[MulticlassModel]:
    """The linear model of several classes (or of two) in a pickle or joblib file, which is run in a child process."""
    stored = read_multiclass_in_child("pickle", read_bounded(path, LARGEST_FILE), path)
    return replace(stored, notes=(*stored.notes, _NOTE))


def stored_pickle(
    path: str | os.PathLike[str], threshold: float | None = None, allow_pickle: bool = False
) -> Stored[LinearModel]:
    """As `read_pickle`, with what there is to say about the file."""
    if not allow_pickle:
        raise UnsupportedModel(
            f"{shown(path)}: a pickle runs code when it is opened, so it is not read here. "
            f"If you trust the file, convert it once: {conversion(Path(os.fsdecode(path)))}"
        )
    stored = read_in_child("pickle", read_bounded(path, LARGEST_FILE), path, threshold)
    return replace(stored, notes=(*stored.notes, _NOTE))


def conversion(path: Path) -> str:
    """The shell command that turns a pickle into a coefficient file."""
    # A file name from elsewhere must not become a command when the line is pasted into a shell.
    plain = path if re.fullmatch(r"[\w./ :-]+", path.as_posix()) else Path("model.joblib")
    pickled, target = plain.as_posix(), plain.with_suffix(".json").as_posix()
    return f"python -c \"import joblib, overexplain as ox; ox.load_model(joblib.load('{pickled}')).save('{target}')\""


def open_pickle(content: bytes, raise_fence: Callable[..., None]) -> Any:
    """The object in the bytes of a pickle, compressed or not; only for the child process."""
    import io

    import joblib

    raise_fence(unpickling=True)
    return joblib.load(io.BytesIO(content))
