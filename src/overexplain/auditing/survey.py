"""What it takes an outsider to rebuild one model, service by service."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from overexplain.auditing.rebuilt import compare
from overexplain.errors import InvalidInput
from overexplain.extraction.extract import extract
from overexplain.extraction.result import Spent
from overexplain.geometry.arrays import as_rows
from overexplain.geometry.hyperplane import YES, Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.models.linear import LinearModel
from overexplain.oracles.exact import ModelOracle


@dataclass(frozen=True)
class Service:
    """A service to try: it answers by `mechanism` and tells the asker `published` (by default the same).

    `name` is what its owner calls it, for people; None: nothing but the mechanism.
    """

    mechanism: Mechanism
    published: Mechanism | None = None
    name: str | None = None


@dataclass(frozen=True)
class SurveyRow:
    """What rebuilding the model took under one service, and how good the result is.

    mechanism                   the published terms
    name                        what the owner calls the service, if anything
    answers, labels             explanations and labels spent
    paper_answers, paper_labels the same for the paper's own procedure, run against the same service;
                                None if the paper treats no such service (secret radius)
    minimum                     explanations that no method can do without; None if the distance is not known
    angle_error                 radians between the normals, found and true
    error_bound                 the bound on it that the extraction gave; None if it gave none
    agreement                   share of the held-out rows that both models label alike
    constant_agreement          the share that is right if every row gets the model's more common label
    """

    mechanism: Mechanism
    name: str | None
    answers: int
    labels: int
    paper_answers: int | None
    paper_labels: int | None
    minimum: int | None
    angle_error: float
    error_bound: float | None
    agreement: float
    constant_agreement: float

    @property
    def service(self) -> str:
        """A short text that says which service this is."""
        return self.mechanism.describe()

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return {
            "service": self.service,
            "name": self.name,
            "mechanism": self.mechanism.to_dict(),
            "answers": self.answers,
            "labels": self.labels,
            "paper_answers": self.paper_answers,
            "paper_labels": self.paper_labels,
            "proven_minimum": self.minimum,
            "angle_error": self.angle_error,
            "error_bound": self.error_bound,
            "agreement": self.agreement,
            "constant_agreement": self.constant_agreement,
        }


def survey(
    model: LinearModel,
    holdout: ArrayLike,
    mechanisms: Iterable[Mechanism | Service],
    *,
    rng: int | np.random.Generator | None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[SurveyRow, ...]:
    """One row per service: the model is rebuilt from the service's answers alone, then held against the original.

    holdout   rows on which the two models' labels are compared
    progress  called with (services done, services in all)

    >>> rows = survey(LinearModel(Hyperplane([3.0, 4.0], 10.0)), [[0.0, 0.0], [5.0, 5.0]], [Mechanism("l1")], rng=0)
    >>> rows[0].answers, rows[0].minimum, rows[0].paper_answers, rows[0].agreement, rows[0].constant_agreement
    (2, 2, 3, 1.0, 0.5)
    """
    points = as_rows(holdout, model.dimension, "holdout")
    if len(points) == 0:
        raise InvalidInput("holdout has no rows; agreement needs at least one to be measured on")
    services = [entry if isinstance(entry, Service) else Service(entry) for entry in mechanisms]
    rows = []
    for service, own in zip(services, np.random.default_rng(rng).spawn(len(services)), strict=True):
        rows.append(_row(model.hyperplane, points, service, own))
        if progress is not None:
            progress(len(rows), len(services))
    return tuple(rows)


def _row(truth: Hyperplane, points: Any, service: Service, rng: np.random.Generator) -> SurveyRow:
    oracle = ModelOracle(truth, service.mechanism, published=service.published)
    terms = oracle.mechanism
    found = extract(oracle, rng=rng)
    assert found.log is not None  # record=True
    rebuilt = compare(found, truth, terms, found.log)
    paper = _as_printed(oracle, rng)
    labels = truth.labels(points)
    yes = int((labels == YES).sum())
    return SurveyRow(
        mechanism=terms,
        name=service.name,
        answers=found.spent.explanations,
        labels=found.spent.labels,
        paper_answers=None if paper is None else paper.explanations,
        paper_labels=None if paper is None else paper.labels,
        minimum=rebuilt.minimum,
        angle_error=rebuilt.angle_error,
        error_bound=found.error_bound,
        agreement=float(np.mean(found.hyperplane.labels(points) == labels)),
        constant_agreement=max(yes, len(points) - yes) / len(points),
    )


def _as_printed(oracle: ModelOracle, rng: np.random.Generator) -> Spent | None:
    """What the paper's procedure spends on the same service; None if it treats no such service."""
    if oracle.mechanism.distance is None or oracle.mechanism.radius is None:
        return None
    return extract(oracle, strategy="paper", rng=rng).spent
