"""A rebuilt model held against the true one, and against the least number of answers anyone could have needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from overexplain.auditing.agreement import Agreement, agreement
from overexplain.errors import DimensionMismatch, InvalidInput
from overexplain.extraction.precision import NEAR, entry_errors
from overexplain.extraction.result import Extraction
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import Norm
from overexplain.geometry.norms import l2
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import differences
from overexplain.models.linear import LinearModel


@dataclass(frozen=True)
class Rebuilt:
    """An extraction and how far it is from the truth.

    found           the extraction
    mechanism       the terms the service published; None: it gives labels only
    minimum         explanations that no method can do without (Theorems A and C); None if the distance is not known
    angle_error     radians between the normals, found and true
    offset_error    difference of the offsets, both models scaled to ‖normal‖* = 1 (‖·‖₂ if the distance is unknown);
                    None if a feature's share in it cannot be told from the feature's own coefficient
    agreement       how often both say the same at given points, beside what a constant answer reaches; None without points

    Directions that no answer can reveal (`found.unidentified`) are left out of the comparison. An extraction that asked no label
    does not know which side is Yes: it is then compared with the side that fits.
    """

    found: Extraction
    mechanism: Mechanism | None
    minimum: int | None
    angle_error: float
    offset_error: float | None
    agreement: Agreement | None = None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return {
            "service": "labels only" if self.mechanism is None else self.mechanism.describe(),
            "mechanism": None if self.mechanism is None else self.mechanism.to_dict(),
            **self.found.to_dict(),
            "proven_minimum": self.minimum,
            "angle_error": self.angle_error,
            "offset_error": self.offset_error,
            "agreement": None if self.agreement is None else asdict(self.agreement),
        }


def compare(
    found: Extraction,
    truth: Hyperplane,
    mechanism: Mechanism | None,
    log: QueryLog | None,
    points: FloatArray | None = None,
) -> Rebuilt:
    """The extraction beside the true model; `log` holds the answers spent on it, `points` are decisions to compare."""
    plane = found.hyperplane
    if not found.oriented and plane.angle_to(truth) > math.pi / 2:
        plane = plane.flipped()
    length = l2 if mechanism is None or mechanism.distance is None else mechanism.distance.dual
    shown, true = (_revealed(h, found.unidentified) for h in (plane, truth))
    offset = _scaled_offset(shown, length) - _scaled_offset(true, length)
    return Rebuilt(
        found=found,
        mechanism=mechanism,
        minimum=None if mechanism is None or log is None else proven_minimum(log, mechanism),
        angle_error=shown.angle_to(true),
        offset_error=None if any(map(_is_axis, found.unidentified)) else abs(offset),
        agreement=None if points is None else agreement(plane, truth, points),
    )


def in_order_of(features: Sequence[str] | None, dimension: int, truth: LinearModel) -> Hyperplane:
    """The true model's plane, its features in this order: by name where both have names, else as they stand.

    >>> in_order_of(["b", "a"], 2, LinearModel(Hyperplane([1.0, 2.0], 3.0), ("a", "b"))).normal.tolist()
    [2.0, 1.0]
    """
    if truth.features is None or features is None:
        if truth.dimension != dimension:
            raise DimensionMismatch(f"the model has {truth.dimension:,} features, the service has {dimension:,}")
        return truth.hyperplane
    if wrong := differences(truth.features, features):
        raise InvalidInput(f"the model has other features than the service; {wrong}")
    order = [truth.features.index(name) for name in features]
    return Hyperplane(truth.hyperplane.normal[order], truth.hyperplane.offset)


def _revealed(plane: Hyperplane, unidentified: FloatArray) -> Hyperplane:
    """The plane without the directions that no answer can reveal.

    A one-hot group's direction u = (1, …, 1)/√L has the product 1/√L with every valid input, so that (a + u, b + 1/√L) is the
    same classifier: leaving u out of a moves the offset by the mean of the group's entries.
    """
    if len(unidentified) == 0:
        return plane
    basis = np.linalg.qr(unidentified.T)[0].T
    moved = sum(float(row @ plane.normal) * float(row.max()) for row in unidentified if not _is_axis(row))
    return Hyperplane(plane.normal - basis.T @ (basis @ plane.normal), plane.offset - moved)


def _is_axis(direction: FloatArray) -> bool:
    return int(np.count_nonzero(direction)) == 1


def proven_minimum(log: QueryLog, mechanism: Mechanism) -> int | None:
    """The explanations no method can do without: dim span K(w), one more if the radius is secret; None if not known.

    It is known for answers chosen from all of R^p only.

    w is the step of the first logged answer that lies off its question, so the number fits what the service happened to
    show: tied answers reveal more. An answer that is its own question says that there is no radius.

    >>> log = QueryLog(mechanism=Mechanism("l1"))
    >>> _ = log.add_explanation([0.0, 0.0, 0.0], [0.0, 2.0, 0.0])
    >>> proven_minimum(log, Mechanism("l1")), proven_minimum(log, Mechanism("l2"))
    (3, 1)
    """
    norm = mechanism.distance
    if norm is None or mechanism.domain is not None or mechanism.slack != 0 or len(log.explained) == 0:
        return None
    is_plain = False
    for i in log.explained:
        x, answer = log.points[i], log.explanations[i]
        step = answer - x
        if float(norm(step)) > NEAR * (float(norm(x)) + float(norm(answer))):
            errors = entry_errors(norm, mechanism.tolerance, x, answer) if mechanism.tolerance else None
            return norm.normal_cone(step, errors).dimension + int(mechanism.radius is None and not is_plain)
        is_plain = is_plain or not np.any(step)
    return 1  # with one feature a point of the plane is the model


def _scaled_offset(plane: Hyperplane, dual: Norm) -> float:
    return plane.offset / float(dual(plane.normal))
