"""What it takes an outsider who chooses the questions to rebuild a model: computed beforehand, and carried out."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from overexplain.auditing.agreement import agreement
from overexplain.auditing.audit_report import UntilKnown
from overexplain.auditing.rebuilt import Rebuilt, compare
from overexplain.auditing.units import around
from overexplain.errors import ExtractionFailed, OverexplainError
from overexplain.extraction.extract import extract
from overexplain.extraction.labels.floors import information_bound, predicted_labels
from overexplain.extraction.predicted import cone_dimension
from overexplain.extraction.result import Extraction, Spent
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.models.linear import LinearModel
from overexplain.oracles.services import Service

ACCURACY: Final = 1e-6
"""To this angle, in radians, decisions alone are to find the model; exact explanations find it to rounding."""

RUNS: Final = 3

SAME: Final = 0.99
"""A copy that decides fewer of the cases alike is not the model, however small the angle."""


def until_known(
    model: LinearModel,
    rows: FloatArray,
    service: Service,
    id: str,
    *,
    rng: np.random.Generator,
    accuracy: float = ACCURACY,
    runs: int = RUNS,
) -> UntilKnown:
    """What rebuilding the model takes under a service: the median of a few runs beside theory, the minimum and the paper.

    >>> model = LinearModel(Hyperplane([3.0, 4.0, 1.0], 10.0))
    >>> rows = np.random.default_rng(0).normal(3.0, 1.0, (50, 3))
    >>> found = until_known(model, rows, Service.parse("l1"), "s1", rng=np.random.default_rng(0))
    >>> found.computed, found.explanations, found.labels, found.minimum, found.paper_explanations
    (3, 3, 1, 3, 4)
    """
    box = around(rows)
    tried = [_try(model, rows, service, accuracy, box, own) for own in rng.spawn(runs)]
    done = sorted((run for run in tried if isinstance(run, Rebuilt)), key=lambda run: run.found.spent.requests)
    # The published procedure asks wherever it likes: it is run from a start of its own, with no limits.
    paper = _as_printed(service.oracle(model, rows, rng), service, model.hyperplane, accuracy, rng)
    median = done[(len(done) - 1) // 2] if 2 * len(done) > runs else None
    minimum, minimum_is = _minimum(service, median, model.dimension, accuracy)
    same = None if median is None else median.agreement
    return UntilKnown(
        service=id,
        computed=_computed(service, model.hyperplane, accuracy),
        explanations=None if median is None else median.found.spent.explanations,
        labels=None if median is None else median.found.spent.labels,
        low=done[0].found.spent.requests if done else None,
        high=done[-1].found.spent.requests if done else None,
        runs=runs,
        minimum=minimum,
        minimum_is=minimum_is,
        paper_explanations=None if paper is None else paper.explanations,
        paper_labels=None if paper is None else paper.labels,
        accuracy=None if service.is_plain and service.explains else accuracy,
        method="" if median is None else median.found.method,
        angle_error=None if median is None else median.angle_error,
        error_bound=None if median is None else median.found.error_bound,
        agreement=None if same is None else same.share,
        constant_agreement=agreement(model.hyperplane, model.hyperplane, rows).floor,
        failed=None if median is not None else next(str(run) for run in tried if not isinstance(run, Rebuilt)),
    )


def _try(
    model: LinearModel,
    rows: FloatArray,
    service: Service,
    accuracy: float,
    box: tuple[FloatArray, FloatArray],
    rng: np.random.Generator,
) -> Rebuilt | OverexplainError:
    oracle = service.oracle(model, rows, rng)
    try:
        exact = service.is_plain and service.explains
        found = _by_theorem(oracle, rows, rng) if exact else _proved(oracle, accuracy, box, rng)
    except OverexplainError as error:
        return error
    rebuilt = compare(found, model.hyperplane, oracle.mechanism, found.log, rows)
    assert rebuilt.agreement is not None
    if rebuilt.agreement.share < SAME:
        return ExtractionFailed(
            f"the rebuilt model decides only {rebuilt.agreement.share:.0%} of the cases alike: the features' scales differ too "
            "much for float64; count in standard deviations (--standardize)"
        )
    return rebuilt


def _by_theorem(oracle: Any, rows: FloatArray, rng: np.random.Generator) -> Extraction:
    """What the theorems take; where the usual start, 0, lies on the plane, from a case: that saves what was asked in vain."""
    found = extract(oracle, rng=rng)
    if found.spent.labels <= 1:
        return found
    again = extract(oracle, start=rows[int(rng.integers(len(rows)))], rng=rng)
    return min(found, again, key=lambda one: one.spent.requests)


def _proved(oracle: Any, accuracy: float, box: tuple[FloatArray, FloatArray], rng: np.random.Generator) -> Extraction:
    """The cheapest way whose own bound reaches the accuracy: whoever cannot tell how good his copy is goes on asking."""
    failure: OverexplainError | None = None
    proved: list[Extraction] = []
    for strategy in ("auto", "warm", "labels"):
        try:
            found = extract(oracle, strategy=strategy, accuracy=accuracy, bounds=box, rng=rng)
        except OverexplainError as error:
            failure = failure or error
            continue
        if found.error_bound is not None and found.error_bound <= accuracy:
            proved.append(found)
    if not proved:
        raise failure or ExtractionFailed(f"no way led to an angle that is proved to be within {accuracy:g} rad")
    return min(proved, key=lambda found: found.spent.requests)


def _as_printed(
    oracle: Any, service: Service, truth: Hyperplane, accuracy: float, rng: np.random.Generator
) -> Spent | None:
    """What the paper's procedure spends on the same service; None if it treats no such service."""
    terms: Mechanism | None = oracle.mechanism
    if not service.is_plain or (terms is not None and (terms.distance is None or terms.radius is None)):
        return None
    try:
        if terms is not None:
            found = extract(oracle, strategy="paper", rng=rng)
            return found.spent if found.hyperplane.same_plane(truth, accuracy) else None
        # For decisions alone the paper refers to Lowd and Meek, whose accuracy is that of single weights.
        for share in (1.0, 1e-1, 1e-2, 1e-3):
            found = extract(oracle, strategy="lowd-meek", accuracy=accuracy * share, rng=rng)
            if found.hyperplane.angle_to(truth) <= accuracy:
                return found.spent
    except OverexplainError:
        return None
    return None


def _computed(service: Service, plane: Hyperplane, accuracy: float) -> int | None:
    """Answers that theory predicts before any is asked: dim span K (Theorems A and C), or what labels take; None: no theorem."""
    if not service.explains:
        return math.ceil(predicted_labels(plane.dimension, accuracy))
    if not service.is_plain or service.mechanism is None or service.mechanism.distance is None:
        return None
    published = service.published or service.mechanism
    if published.distance is None:
        return None
    return cone_dimension(service.mechanism, plane) + int(published.radius is None)


def _minimum(service: Service, median: Rebuilt | None, dimension: int, accuracy: float) -> tuple[int | None, Any]:
    if not service.explains:
        return math.ceil(information_bound(dimension, accuracy)), "information bound"
    if service.is_plain and median is not None and median.minimum is not None:
        terms = service.published or service.mechanism
        if terms is not None and terms.distance is not None and terms.distance.is_smooth:
            return 1 + int(terms.radius is None), "theorem"  # however close to a corner: Theorem B needs one answer
        return median.minimum, "theorem"
    return None, None
