"""Results of statsmodels become a hyperplane: Logit, Probit and binomial GLM, fitted to arrays, frames or formulas.

A constant column folds into the offset. With a formula the features are the columns of the data: plain numbers, and
categories, whose contrasts (of any coding) become one weight for each category. The result must agree with the results'
own `predict` on many points. statsmodels itself is never imported here.
"""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from overexplain.errors import NotFinite, OverexplainError, UnsupportedModel, ZeroNormal
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.models.additive import Additive, Table, group_names
from overexplain.models.linear import LinearModel

AGREEMENT: Final = 1e-9
"""How far the plane's probability and the original's may differ: many roundings."""

_CONSTANTS = ("const", "Intercept")
_POINTS = 256
_READ = "read are Logit, Probit and GLM with the family Binomial and a logit or probit link"


def from_statsmodels(results: Any, threshold: float | None = None) -> LinearModel:
    """The linear model that fitted results of statsmodels are: Yes where P ≥ ½, or ≥ `threshold` (logit only)."""
    model: Any = getattr(results, "model", results)
    link = _link(results, model)
    weights = np.asarray(results.params, dtype=np.float64).ravel()
    if not np.isfinite(weights).all():
        raise NotFinite(f"a coefficient of the {_class(results)} is not finite; the fit did not succeed")
    names = list(model.exog_names)
    if len(weights) != len(names):
        raise UnsupportedModel(f"the {_class(results)} has {len(weights)} parameters for {len(names)} columns; {_READ}")
    specification = getattr(model.data, "model_spec", getattr(model.data, "design_info", None))
    score = _score(model, weights) if specification is None else _formula(specification, weights)
    columns, features, normal = score.laid_out(_input_names(model, specification))
    if not normal.any():
        raise ZeroNormal(f"every coefficient of the {_class(results)} is zero: all points get the same answer")
    named = LinearModel(
        Hyperplane.from_intercept(normal, score.constant),
        features if specification is not None or _has_names(model) else None,
        classes=("0", "1") if _is_binary(model) else None,
        link="logistic" if link == "logit" else "none",
        columns=columns if score.tables else None,
        source=f"statsmodels {_class(model)}",
    )
    _compare(results, named, score, link, specification)
    if threshold is None:
        return named
    if link != "logit":
        raise UnsupportedModel(f"a probability threshold ({threshold}) needs a logit link; a probit model is cut at ½")
    return named.with_threshold(threshold)


def _link(results: Any, model: Any) -> str:
    """Logit or probit; raises for everything else."""
    kind = next((cls.__name__ for cls in type(model).__mro__ if cls.__module__.startswith("statsmodels.")), None)
    if not hasattr(results, "params"):
        raise UnsupportedModel(f"a {_class(results)} is not fitted; call fit() and give the results")
    if getattr(model, "_has_offset", False) or getattr(model, "_has_exposure", False):
        raise UnsupportedModel(f"the {_class(model)} has an offset or exposure, an input of its own; fit it without")
    if getattr(model, "offset", None) is not None and np.any(np.asarray(model.offset) != 0):
        raise UnsupportedModel(f"the {_class(model)} has an offset, an input of its own; fit it without")
    if kind in ("Logit", "Probit"):
        return str(kind).lower()
    if kind == "GLM":
        family, link = type(model.family).__name__, type(model.family.link).__name__
        if family == "Binomial" and link in ("Logit", "Probit"):
            return link.lower()
        raise UnsupportedModel(f"a GLM with the family {family} and the link {link} is no linear classifier; {_READ}")
    raise UnsupportedModel(f"{_class(model)} of statsmodels is not on the list of linear classifiers; {_READ}")


def _score(model: Any, weights: FloatArray) -> Additive:
    """The score over the columns of the design, the constant one folded in."""
    constant = _constant(model)
    keep = np.arange(len(weights)) != (-1 if constant is None else constant[0])
    intercept = 0.0 if constant is None else float(weights[constant[0]] * constant[1])
    score = Additive.of(weights[keep], intercept, AGREEMENT)
    design = getattr(model, "exog", None)
    if design is None:
        return score
    design = np.asarray(design, dtype=np.float64)[:, keep]
    spread = design.std(axis=0)
    return replace(score, centre=design.mean(axis=0), spread=np.where(spread > 0, spread, 1.0))


def _constant(model: Any) -> tuple[int, float] | None:
    """(position, value) of the constant column, if there is one."""
    position = getattr(model.data, "const_idx", None)
    if position is None:
        position = next((k for k, name in enumerate(model.exog_names) if name in _CONSTANTS), None)
    if position is None:
        return None
    design = getattr(model, "exog", None)
    return int(position), 1.0 if design is None else float(np.asarray(design)[0, position])


def _formula(specification: Any, weights: FloatArray) -> Additive:
    """The score over the columns that a formula names."""
    if not hasattr(specification, "factor_infos"):
        raise UnsupportedModel("only formulas read by patsy can be taken apart; fit the model to a data frame instead")
    names = _formula_names(specification)
    score = Additive.nothing(len(names), 0.0, 0.0, AGREEMENT)
    for term in specification.terms:
        own = weights[specification.term_slices[term]]
        if not term.factors:
            score = replace(score, constant=float(own[0]), size=np.append(score.size[:-1], abs(own[0])))
            continue
        factor = term.factors[0]
        place = np.array([names.index(_column(term))])
        info = specification.factor_infos[factor]
        if info.type == "categorical":
            contrasts = specification.term_codings[term][0].contrast_matrices[factor].matrix
            values = np.array(info.categories, dtype=object)
            groups = np.arange(len(values))
            table = Table(values, groups, contrasts @ own, group_names(values, groups, None))
            size = float((np.abs(contrasts) @ np.abs(own)).max())
            part = replace(Additive.nothing(1, 0.0, size, 0.0), tables={0: table})
        elif len(own) == 1:
            part = Additive.of(own, 0.0, 0.0)
        else:
            raise UnsupportedModel(f"the term {term.name()!r} of the formula is several columns; {_ADVICE}")
        score = score.plus(part, place, term.name())
    return score


_ADVICE = "only plain columns and categories can be read: compute the column in the data and fit again"


def _column(term: Any) -> str:
    """The column of the data that a term is: age, Q("net income"), C(colour, Sum)."""
    code = term.factors[0].code if len(term.factors) == 1 else ""
    inner = re.fullmatch(r"C\((.+?)(?:,.*)?\)", code)
    code = code if inner is None else inner[1]
    quoted = re.fullmatch(r"""Q\((["'])(.*)\1\)""", code)
    if quoted is not None:
        return quoted[2]
    if not code.isidentifier():
        raise UnsupportedModel(f"the term {term.name()!r} of the formula is computed from the columns; {_ADVICE}")
    return code


def _formula_names(specification: Any) -> list[str]:
    return list(dict.fromkeys(_column(term) for term in specification.terms if term.factors))


def _input_names(model: Any, specification: Any) -> tuple[str, ...]:
    if specification is not None:
        return tuple(_formula_names(specification))
    constant = _constant(model)
    skip = -1 if constant is None else constant[0]
    return tuple(str(name) for k, name in enumerate(model.exog_names) if k != skip)


def _compare(results: Any, model: LinearModel, score: Additive, link: str, specification: Any) -> None:
    """Raise UnsupportedModel unless the model gives the probabilities of the results' own `predict`."""
    rng = np.random.default_rng(0)
    numbers = score.centre + score.spread * rng.uniform(-3, 3, (_POINTS, score.count))
    inputs: Any
    if specification is None:
        inputs, rows = _design(results.model, numbers), numbers
    else:
        names = _formula_names(specification)
        values: list[Any] = [numbers[:, k] for k in range(score.count)]
        for k, table in score.tables.items():
            values[k] = table.values[rng.integers(len(table.values), size=_POINTS)]
            if score.used[k]:
                numbers[:, k] = values[k]
        columns = dict(zip(names, values, strict=True))
        inputs = importlib.import_module("pandas").DataFrame(columns).infer_objects()
        rows = model.encode(columns)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            original = np.asarray(results.predict(inputs), dtype=np.float64)
    except OverexplainError:
        raise
    except Exception as error:
        raise UnsupportedModel(f"predict of the {_class(results)} fails on {_POINTS} points: {error}") from error
    margin = model.hyperplane.margin(rows)
    tolerance = AGREEMENT * (1 + (np.abs(numbers) + np.abs(score.centre)) @ score.size[:-1] + score.size[-1])
    wrong = np.abs(_probability(link)(margin) - original) > tolerance
    if original.shape != margin.shape or wrong.any():
        raise UnsupportedModel(
            f"the plane read from the {_class(results)} contradicts its own predict on {int(wrong.sum())} of {_POINTS} "
            "points; write its coefficients to a JSON file"
        )


def _design(model: Any, numbers: FloatArray) -> FloatArray:
    """The numbers with the constant column where it belongs."""
    constant = _constant(model)
    return numbers if constant is None else np.insert(numbers, constant[0], constant[1], axis=1)


def _probability(link: str) -> Callable[[FloatArray], FloatArray]:
    if link == "logit":
        return lambda margin: 0.5 * (1 + np.tanh(margin / 2))
    from scipy.special import ndtr

    return lambda margin: np.asarray(ndtr(margin))


def _has_names(model: Any) -> bool:
    """True if the columns were named by the user: for arrays statsmodels makes names up."""
    design = getattr(model.data, "orig_exog", None)
    return hasattr(design, "columns") if design is not None else type(model.data).__name__ == "PandasData"


def _is_binary(model: Any) -> bool:
    outcomes = getattr(model, "endog", None)
    return outcomes is not None and bool(np.isin(np.unique(outcomes), (0.0, 1.0)).all())


def _class(thing: Any) -> str:
    return type(thing).__name__.removesuffix("Wrapper")
