"""The steps before a scikit-learn classifier, folded into its score from the back; read from fitted attributes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from overexplain.errors import DimensionMismatch, UnsupportedModel
from overexplain.geometry.arrays import FloatArray, IntArray, as_point
from overexplain.models.additive import Additive, Table, group_names
from overexplain.models.columns import as_value
from overexplain.models.sklearn_parts import SCALERS, STEPS, class_of, flatten, kind_of

SINGLE: Final = 1e-5
"""How exactly a step that computes in float32 does so, relative to the terms of its sums."""

_ADVICE = {
    "FunctionTransformer": "what its function computes cannot be read",
    "OrdinalEncoder": "its numbers have no scale; use a OneHotEncoder",
    "Normalizer": "dividing every row by its length is not linear",
}


def fold(steps: Sequence[tuple[str, Any]], score: Additive) -> Additive:
    """The score over the columns that the first step takes, where `score` is the one over what the last gives."""
    for place, step in reversed(steps):
        score = _before(step, place, score)
    return score


def _before(step: Any, place: str, score: Additive) -> Additive:
    kind = kind_of(step)
    reader, fitted = _READERS.get(str(kind), (None, ""))
    if reader is None:
        why = next((_ADVICE[cls.__name__] for cls in type(step).__mro__ if cls.__name__ in _ADVICE), "")
        raise UnsupportedModel(
            f"step {place!r} is a {class_of(step)}{f': {why}' if why else ''}: only steps that are linear column by "
            f"column or as a whole can be folded in ({', '.join(STEPS)}). "
            "Transform the data beforehand and give the steps after it as the model"
        )
    if not hasattr(step, fitted):
        raise UnsupportedModel(f"step {place!r} ({class_of(step)}) is not fitted; call fit first")
    return reader(step, place, score)


def _numbers_only(step: Any, place: str, score: Additive) -> None:
    if score.tables:
        raise UnsupportedModel(
            f"step {place!r} ({class_of(step)}) computes numbers that a OneHotEncoder after it takes for categories; "
            "encode the columns as they are in the data"
        )


def _scaler(step: Any, place: str, score: Additive) -> Additive:
    _numbers_only(step, place, score)
    if getattr(step, "clip", False):
        raise UnsupportedModel(f"step {place!r} ({class_of(step)}) clips, which is not linear; it needs clip=False")

    def vector(attribute: str) -> FloatArray:
        return as_point(getattr(step, attribute), score.count, f"{attribute} of step {place!r}")

    kind = str(kind_of(step))
    if kind == "MinMaxScaler":
        return score.before_scaling(vector("scale_"), vector("min_"))
    centred, centre, scaled = {
        "StandardScaler": (getattr(step, "with_mean", False), "mean_", getattr(step, "with_std", False)),
        "RobustScaler": (getattr(step, "with_centering", False), "center_", getattr(step, "with_scaling", False)),
    }.get(kind, (False, "", True))
    multiplier = 1 / vector("scale_") if scaled else np.ones(score.count)
    return score.before_scaling(multiplier, -vector(centre) * multiplier if centred else np.zeros(score.count))


def _pca(step: Any, place: str, score: Additive) -> Additive:
    _numbers_only(step, place, score)
    rows = np.asarray(step.components_, dtype=np.float64)
    variance = as_point(step.explained_variance_, name=f"explained_variance_ of step {place!r}")
    if rows.ndim != 2 or len(rows) != score.count or len(variance) != score.count:
        raise DimensionMismatch(
            f"step {place!r} (PCA) gives {len(rows)} columns, what comes after takes {score.count}; fit them together"
        )
    centre = as_point(step.mean_, rows.shape[1], f"mean_ of step {place!r}")
    spread = np.sqrt(variance @ rows**2)
    if step.whiten:
        least = np.finfo(np.asarray(step.explained_variance_).dtype).eps
        rows = rows / np.maximum(np.sqrt(variance), least)[:, None]
    if np.asarray(step.components_).dtype == np.float32:
        score = replace(score, accuracy=max(score.accuracy, SINGLE))
    return score.before_rotation(rows, centre, spread)


def _imputer(step: Any, place: str, score: Additive) -> Additive:
    """The identity where nothing is missing; what it puts where something is, is kept."""
    if step.add_indicator:
        raise UnsupportedModel(f"step {place!r} ({class_of(step)}) adds columns; it needs add_indicator=False")
    statistics = np.asarray(step.statistics_, dtype=object)
    kept = np.arange(len(statistics))
    if len(kept) != score.count:  # columns without any value are dropped
        kept = np.array([k for k in kept if as_value(statistics[k]) is not None], dtype=np.int64)
    if len(kept) != score.count:
        raise DimensionMismatch(f"step {place!r} ({class_of(step)}) gives {len(kept)} columns, needed {score.count}")
    marker = as_value(step.missing_values)
    if marker is not None and score.used.any():
        raise UnsupportedModel(
            f"step {place!r} ({class_of(step)}) takes {marker!r} for a missing number, which is not linear; "
            "it needs missing_values=nan"
        )
    fill = [float(statistics[k]) if used else math.nan for k, used in zip(kept, score.used, strict=True)]
    tables = {k: table.also(step.missing_values, statistics[kept[k]]) for k, table in score.tables.items()}
    before = Additive.nothing(len(statistics), score.constant, score.size[-1], score.accuracy)
    score = replace(score, constant=0.0, size=np.append(score.size[:-1], 0.0), fill=np.array(fill), tables=tables)
    return before.plus(score, kept, place)


def _one_hot(step: Any, place: str, score: Additive) -> Additive:
    _numbers_only(step, place, score)
    drops = getattr(step, "drop_idx_", None)
    infrequent = getattr(step, "infrequent_categories_", None)
    n, first = len(step.categories_), 0
    tables, constant_size = {}, score.size[-1]
    for k, values in enumerate(step.categories_):
        rare = () if infrequent is None or infrequent[k] is None else infrequent[k]
        drop = None if drops is None else drops[k]
        groups, outputs, last = _groups(values, rare, None if drop is None else int(drop))
        weights = np.zeros(len(outputs))  # a dropped category adds nothing
        there = outputs >= 0
        if first + int(there.sum()) > score.count:
            raise DimensionMismatch(f"step {place!r} ({class_of(step)}) gives more columns than the next one takes")
        weights[there] = score.weights[first : first + int(there.sum())][outputs[there]]
        constant_size += float(score.size[first : first + int(there.sum())].max(initial=0.0))
        first += int(there.sum())
        dropped = int(np.flatnonzero(~there)[0]) if not there.all() else -1
        unknown = {"error": None, "ignore": dropped}.get(step.handle_unknown, dropped if last is None else last)
        tables[k] = Table(values, groups, weights, group_names(values, groups, last), unknown)
    if first != score.count:
        raise DimensionMismatch(f"step {place!r} ({class_of(step)}) gives {first} columns, needed {score.count}")
    return replace(Additive.nothing(n, score.constant, constant_size, score.accuracy), tables=tables)


def _groups(values: Any, rare: Any, drop: int | None) -> tuple[IntArray, IntArray, int | None]:
    """(group of each value, output of each group, −1 if it is dropped, and the group of the rare ones)."""
    together = {as_value(value) for value in rare}
    is_rare = np.array([as_value(value) in together for value in values], dtype=bool)
    groups = np.where(is_rare, int((~is_rare).sum()), np.cumsum(~is_rare) - 1).astype(np.int64)
    outputs = np.arange(int(groups.max()) + 1)
    if drop is not None:
        outputs = np.where(outputs == groups[drop], -1, outputs - (outputs > groups[drop]))
    return groups, outputs, int(groups[is_rare][0]) if is_rare.any() else None


def _columns(step: Any, place: str, score: Additive) -> Additive:
    before = Additive.nothing(step.n_features_in_, score.constant, score.size[-1], score.accuracy)
    names = getattr(step, "feature_names_in_", None)
    weights = step.transformer_weights or {}
    for name, inner, chosen in step.transformers_:
        positions = _positions(chosen, step.n_features_in_, names)
        if (isinstance(inner, str) and inner == "drop") or not len(positions):
            continue
        part = score.part(step.output_indices_[name])
        if name in weights:
            part = part.before_scaling(np.full(part.count, float(weights[name])), np.zeros(part.count))
        part = fold(list(flatten([(name, inner)], f"{place}/")), part)
        if part.count != len(positions):
            raise DimensionMismatch(f"step '{place}/{name}' takes {part.count} columns, {len(positions)} are chosen")
        before = before.plus(part, positions, f"{place}/{name}")
    return before


def _positions(chosen: Any, count: int, names: Any) -> IntArray:
    """The numbers of the columns that a ColumnTransformer's step takes: given by number, name, slice or mask."""
    if isinstance(chosen, slice):
        start = _place(chosen.start, names) if isinstance(chosen.start, str) else chosen.start
        stop = _place(chosen.stop, names) + 1 if isinstance(chosen.stop, str) else chosen.stop  # a name is included
        return np.arange(count)[start : stop : chosen.step]
    listed = list(np.atleast_1d(np.asarray(chosen, dtype=object)))
    if listed and all(isinstance(entry, bool | np.bool_) for entry in listed):
        return np.flatnonzero(np.array(listed, dtype=bool))
    numbers = [_place(entry, names) if isinstance(entry, str) else int(entry) for entry in listed]
    return np.array([number % count for number in numbers], dtype=np.int64)


def _place(name: str, names: Any) -> int:
    found = [] if names is None else [k for k, known in enumerate(names) if known == name]
    if not found:
        raise UnsupportedModel(f"a ColumnTransformer takes the column {name!r}, which it was not fitted with")
    return found[0]


_READERS: dict[str, tuple[Callable[[Any, str, Additive], Additive], str]] = {
    **dict.fromkeys(SCALERS, (_scaler, "scale_")),
    "PCA": (_pca, "components_"),
    "SimpleImputer": (_imputer, "statistics_"),
    "OneHotEncoder": (_one_hot, "categories_"),
    "ColumnTransformer": (_columns, "transformers_"),
}
"""Class → how it is folded in, and the attribute that a fitted one has."""
