"""`load_model` and `load_multiclass`: the doors for stored and fitted models, of Yes and No and of several classes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overexplain.errors import InvalidInput, UnsupportedModel
from overexplain.geometry.argmax import ArgmaxModel
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.models.coefficients import from_dict, naming, read_coefficients
from overexplain.models.linear import LinearModel
from overexplain.models.multiclass import MulticlassModel, from_linear, multiclass_of, read_multiclass

if TYPE_CHECKING:
    from overexplain.models.sandbox import Stored
    from overexplain.models.sniff import Kind

READ = "coefficient files (.json, .csv), scikit-learn models as .skops, ONNX files (.onnx)"


def load_model(object_or_path: Any, *, threshold: float | None = None, allow_pickle: bool = False) -> LinearModel:
    """The linear model in a file, a dict, a fitted scikit-learn classifier or statsmodels results.

    object_or_path  a path: coefficient files (.json, .csv), .skops, .onnx. What a file is, its content says before its
                    name; nothing stored is executed. Or a dict of the entries of a coefficient file, a fitted binary linear
                    classifier of scikit-learn (also at the end of a Pipeline), the results of a logit or probit fit of
                    statsmodels, a LinearModel or a Hyperplane
    threshold       Yes from this probability on, instead of the model's own cut; needs a logistic model
    allow_pickle    also read pickles (.pkl, .joblib): opening one runs whatever code is in it, only for files of your own

    On the plane itself the answer is Yes; scikit-learn's `predict` says No there.

    >>> model = load_model({"coefficients": {"age": 0.5, "debts": -2.0}, "intercept": -10.0})
    >>> model.features, model.hyperplane.label([30.0, 2.0])
    (('age', 'debts'), 1)
    """
    model = object_or_path
    if isinstance(model, (str, os.PathLike)):
        return _from_file(Path(os.fsdecode(model)), threshold, allow_pickle)
    if isinstance(model, Hyperplane):
        model = LinearModel(model, source="hyperplane")
    if isinstance(model, LinearModel):
        return model if threshold is None else model.with_threshold(threshold)
    if isinstance(model, Mapping):
        return replace(from_dict(model, threshold), source="coefficients")
    if isinstance(model, ArgmaxModel | MulticlassModel):
        raise UnsupportedModel(
            f"{type(model).__name__}: several classes, needed is a model of Yes and No; load_multiclass, audit_multiclass and "
            "extract_multiclass are for several classes"
        )
    packages = {cls.__module__.partition(".")[0] for cls in type(model).__mro__}
    if "statsmodels" in packages:
        from overexplain.models.statsmodels import from_statsmodels

        return from_statsmodels(model, threshold)
    if hasattr(model, "coef_") or "sklearn" in packages:
        from overexplain.models.sklearn import from_sklearn
        from overexplain.models.sklearn_multiclass import is_one_for_each

        if is_one_for_each(model):
            raise UnsupportedModel(f"the {type(model).__name__} has a score for each class: use load_multiclass")
        return from_sklearn(model, threshold)
    raise UnsupportedModel(
        f"a {type(model).__name__} is not a model that can be read; give a file ({READ}), a dict, "
        "a fitted linear classifier of scikit-learn, statsmodels results, a LinearModel or a Hyperplane"
    )


def load_multiclass(object_or_path: Any, *, allow_pickle: bool = False) -> MulticlassModel:
    """The linear model of several classes in a file, a dict or a fitted scikit-learn classifier; one of Yes and No has two.

    object_or_path  a path: a coefficient file (.json) with scores, .skops, .onnx, or what `load_model` reads. Or a dict of
                    the entries of a coefficient file, a fitted linear classifier of scikit-learn with one score for each class
                    (logistic regression, LinearSVC, ridge, SGD, perceptron, discriminant analysis, OneVsRestClassifier over
                    such; also at the end of a Pipeline), an ArgmaxModel, or whatever else `load_model` takes
    allow_pickle    also read pickles (.pkl, .joblib): opening one runs whatever code is in it, only for files of your own

    >>> rows = [{"class": "low", "coefficients": {"age": -1}, "intercept": 2}, {"class": "high", "coefficients": {"age": 1},
    ...         "intercept": 0}, {"class": "middle", "coefficients": {"age": 0}, "intercept": 3}]
    >>> model = load_multiclass({"scores": rows})
    >>> model.features, model.classes[model.argmax.label([2.0])]
    (('age',), 'middle')
    """
    model = object_or_path
    if isinstance(model, (str, os.PathLike)):
        return stored_multiclass(Path(os.fsdecode(model)), allow_pickle).model
    if isinstance(model, MulticlassModel):
        return model
    if isinstance(model, ArgmaxModel):
        return MulticlassModel(model, source="scores")
    if isinstance(model, Mapping):
        with naming("the model dict"):
            return replace(multiclass_of(model), source="coefficients")
    packages = {cls.__module__.partition(".")[0] for cls in type(model).__mro__}
    if "statsmodels" not in packages and (hasattr(model, "coef_") or "sklearn" in packages):
        from overexplain.models.sklearn_multiclass import multiclass_from_sklearn

        return multiclass_from_sklearn(model)
    return from_linear(load_model(model))


def stored_multiclass(path: Path, allow_pickle: bool = False) -> Stored[MulticlassModel]:
    """As `load_multiclass` of a file, with what its reader has to say about it."""
    from overexplain.models.sandbox import Stored

    kind = _kind(path, allow_pickle)
    if kind == "json":
        return Stored(read_multiclass(path))
    if kind == "skops":
        from overexplain.models.skops import stored_multiclass_skops

        return stored_multiclass_skops(path)
    if kind == "onnx":
        from overexplain.models.onnx import stored_multiclass_onnx

        return stored_multiclass_onnx(path)
    if kind == "pickle" and allow_pickle:
        from overexplain.models.pickles import stored_multiclass_pickle

        return stored_multiclass_pickle(path)
    return Stored(from_linear(_from_file(path, None, allow_pickle)))


def _kind(path: Path, allow_pickle: bool) -> Kind:
    """What kind of file it is, by its content; a pickle that is not allowed is one whether it is there or not."""
    from overexplain.models.sniff import first_bytes, sniff

    try:
        return sniff(first_bytes(path), path)
    except InvalidInput:
        kind = sniff(b"", path)
        if kind != "pickle" or allow_pickle:
            raise
        return kind


def _from_file(path: Path, threshold: float | None, allow_pickle: bool) -> LinearModel:
    kind = _kind(path, allow_pickle)
    if kind == "json":
        return read_coefficients(path, threshold)
    if kind == "csv":
        from overexplain.models.coefficients_csv import read_coefficient_table

        return read_coefficient_table(path, threshold)
    if kind == "skops":
        from overexplain.models.skops import read_skops

        return read_skops(path, threshold)
    if kind == "onnx":
        from overexplain.models.onnx import read_onnx

        return read_onnx(path, threshold)
    if kind == "pickle":
        from overexplain.models.pickles import read_pickle

        return read_pickle(path, threshold, allow_pickle)
    raise UnsupportedModel(
        f"{path}: neither its content nor its ending {path.suffix!r} is known; read are {READ}. "
        "A fitted scikit-learn model can be given as an object, and stored with load_model(model).save('model.json')"
    )
