"""`load_model`: the one door for stored and fitted models."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from overexplain.errors import UnsupportedModel
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.models.coefficients import from_dict, read_coefficients
from overexplain.models.linear import LinearModel

_PICKLES = frozenset({".pkl", ".pickle", ".joblib"})


def load_model(object_or_path: Any, *, threshold: float | None = None) -> LinearModel:
    """The linear model in a file, a dict or a fitted scikit-learn classifier; nothing stored is ever executed.

    object_or_path  the path of a coefficient file (.json), a dict of its entries, a fitted binary linear classifier of
                    scikit-learn (also behind scalers in a Pipeline), a LinearModel or a Hyperplane
    threshold       Yes from this probability on, instead of the model's own cut; needs a logistic model

    On the plane itself the answer is Yes; scikit-learn's `predict` says No there.

    >>> model = load_model({"coefficients": {"age": 0.5, "debts": -2.0}, "intercept": -10.0})
    >>> model.features, model.hyperplane.label([30.0, 2.0])
    (('age', 'debts'), 1)
    """
    model = object_or_path
    if isinstance(model, (str, os.PathLike)):
        return _from_file(Path(os.fsdecode(model)), threshold)
    if isinstance(model, Hyperplane):
        model = LinearModel(model)
    if isinstance(model, LinearModel):
        return model if threshold is None else model.with_threshold(threshold)
    if isinstance(model, Mapping):
        return from_dict(model, threshold)
    if hasattr(model, "coef_") or any(cls.__module__.partition(".")[0] == "sklearn" for cls in type(model).__mro__):
        from overexplain.models.sklearn import from_sklearn

        return from_sklearn(model, threshold)
    raise UnsupportedModel(
        f"a {type(model).__name__} is not a model that can be read; give a coefficient file (.json), a dict, "
        "a fitted linear classifier of scikit-learn, a LinearModel or a Hyperplane"
    )


def _from_file(path: Path, threshold: float | None) -> LinearModel:
    if path.suffix.lower() == ".json":
        return read_coefficients(path, threshold)
    if _PICKLES.intersection(suffix.lower() for suffix in path.suffixes):
        raise UnsupportedModel(
            f"{path}: a pickle runs code when it is opened, so it is not read here. "
            f"If you trust the file, convert it once: {_conversion(path)}"
        )
    raise UnsupportedModel(
        f"{path}: the ending {path.suffix!r} is not known; read are coefficient files (.json). "
        "A fitted scikit-learn model can be given as an object, and stored with load_model(model).save('model.json')"
    )


def _conversion(path: Path) -> str:
    """The shell command that turns a pickle into a coefficient file."""
    # A file name from elsewhere must not become a command when the line is pasted into a shell.
    plain = path if re.fullmatch(r"[\w./ :-]+", path.as_posix()) else Path("model.joblib")
    pickled, target = plain.as_posix(), plain.with_suffix(".json").as_posix()
    return f"python -c \"import joblib, overexplain as ox; ox.load_model(joblib.load('{pickled}')).save('{target}')\""
