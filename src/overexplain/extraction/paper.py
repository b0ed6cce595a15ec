"""The paper's own procedures with the paper's own counts, corrected where a printed formula is wrong (docs/errata.md, E8–E11, E26).

Kept for comparison: Theorems A–C need fewer answers and no p × p matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from overexplain.errors import ExtractionFailed, InvalidInput
from overexplain.extraction.result import Extraction
from overexplain.extraction.session import Session
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import YES, Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import Norm

ON_PLANE = 1e-9
"""An answer this close to its question, relative to both, is the question itself: the start lies on the plane."""

PARALLEL = 1e-9


def extract_as_printed(
    session: Session, mechanism: Mechanism, start: FloatArray, orient: bool, rng: np.random.Generator
) -> Extraction:
    """The hyperplane by the paper: 1 answer if the distance is smooth, else p + 1; robust: as many labels besides."""
    if mechanism.distance is None or mechanism.radius is None:
        raise InvalidInput('strategy "paper" needs a known distance and radius; the paper treats nothing else')
    norm, radius = mechanism.distance, mechanism.radius
    if radius > 0 and not session.can_label:
        raise ExtractionFailed(
            "the paper's robust procedures ask a label with every explanation; this service gives none"
        )
    answers = 1 if norm.is_smooth else session.dimension + 1
    labels = answers if radius > 0 else int(orient and session.can_label)
    session.require(answers + labels, "the paper's procedure", whole=False)
    if norm.is_smooth:
        plane, oriented, name = _smooth(session, mechanism, norm, start, orient)
    elif radius == 0:
        plane, oriented, name = _algorithm_1(session, norm, orient, rng)
    else:
        plane, oriented, name = _algorithm_1_robust(session, mechanism, norm, radius, rng)
    found = Extraction(
        hyperplane=plane,
        spent=session.spent,
        log=session.log,
        method=f"paper: {name}",
        assumptions=("the declared mechanism is right: the paper's procedures do not check it",),
        exact=True,
        error_bound=None,
        offset_bound=None,
        oriented=oriented,
        radius=radius,
        radius_bound=None,
        unidentified=np.zeros((0, session.dimension)),
    )
    return found.rescaled(float(norm.dual(plane.normal)))


def _smooth(
    session: Session, mechanism: Mechanism, norm: Norm, start: FloatArray, orient: bool
) -> tuple[Hyperplane, bool, str]:
    """thm:CF_theorem_diff and thm:RCF_diff, with x_F + e^i if the start lies on the plane."""
    robust = mechanism.radius != 0 and mechanism.robustness is not None
    for x in chain([start], (start + row for row in _unit_vectors(session.dimension))):
        answer = session.answer(x)
        if not _stays(norm, x, answer):
            break
    else:
        raise ExtractionFailed("the start and all its neighbours x_F + e^i lie on the plane, which no plane can do")
    normal = norm.gradient(answer - x)
    reach = float(mechanism.radius or 0.0) * float(mechanism.robustness.dual(normal)) if mechanism.robustness else 0.0
    plane = Hyperplane(normal, float(normal @ answer) - reach)  # E8: minus for both labels
    oriented = robust or (orient and session.can_label)
    if oriented and session.label(x) == YES:
        plane = plane.flipped()
    return plane, oriented, "thm:RCF_diff" if robust else "thm:CF_theorem_diff"


@dataclass
class _Aimed:
    """Answers re-aimed along one direction v: x + side·‖w‖·v, the sides relative to the first question (E11)."""

    session: Session
    norm: Norm
    first: FloatArray
    direction: FloatArray
    first_label: int | None = None

    def aim(self, x: FloatArray, answer: FloatArray, label: int | None = None) -> FloatArray:
        """The optimal answer for x that moves along ±v, made from the one the service gave."""
        step = answer - x
        distance = float(self.norm(step))
        for side in (1, -1):
            if float(self.norm(step - side * distance * self.direction)) <= PARALLEL * distance:
                return answer
        if not self.session.can_label:
            raise ExtractionFailed("tied answers must be re-aimed, which takes labels; this service gives none")
        if self.first_label is None:
            self.first_label = self.session.label(self.first)
        own = self.session.label(x) if label is None else label
        return x + (distance if own == self.first_label else -distance) * self.direction


def _algorithm_1(session: Session, norm: Norm, orient: bool, rng: np.random.Generator) -> tuple[Hyperplane, bool, str]:
    """alg:CF_nondiff: find the direction v from e^1, e^2, …, ask a basis that contains v, solve a·x' = b."""
    points: list[FloatArray] = []
    found: _Aimed | None = None
    for x in _unit_vectors(session.dimension):
        answer = session.answer(x)
        if not _stays(norm, x, answer):
            found = _Aimed(session, norm, x, (answer - x) / float(norm(answer - x)))
            break
        points.append(answer)
    if found is not None:
        points = [found.aim(x, session.answer(x)) for x in _basis_with(found.direction, rng)]
    normal, offset = _through(np.array(points))
    plane = Hyperplane(normal, offset)
    if not (orient and session.can_label):
        return plane, False, "alg:CF_nondiff"
    if found is None:  # every e^i lies on the plane: step off it along the normal
        x = points[0] + normal / np.abs(normal).max()
        label = session.label(x)
    else:
        x = found.first
        label = session.label(x) if found.first_label is None else found.first_label
    return plane if (plane.margin(x) > 0) == (label == YES) else plane.flipped(), True, "alg:CF_nondiff"


def _algorithm_1_robust(
    session: Session, mechanism: Mechanism, norm: Norm, radius: float, rng: np.random.Generator
) -> tuple[Hyperplane, bool, str]:
    """crl:non_diff_RCF_main: p + 1 robust answers and labels, and a·x' − b + label·ρ‖a‖*_N2 = 0.

    As printed, with answers from both sides, the system has up to two solutions (E9). A basis that contains v may lie anywhere, so
    it is put on the side of e^1: then the p answers lie on one plane, which is unique, and b follows from it.
    """
    first = next(_unit_vectors(session.dimension))
    step, label = session.answer(first) - first, session.label(first)
    aimed = _Aimed(session, norm, first, step / float(norm(step)), label)
    basis = _basis_beside(aimed.direction, float(norm(first)), norm, rng)
    points = [aimed.aim(x, session.answer(x), session.label(x)) for x in basis]
    normal, offset = _through(np.array(points))
    if (float(normal @ aimed.direction) > 0) == (label == YES):  # from a Yes the answer lies against the normal
        normal, offset = -normal, -offset
    assert mechanism.robustness is not None
    return (
        Hyperplane(normal, offset + label * radius * float(mechanism.robustness.dual(normal))),
        True,
        "crl:non_diff_RCF_main",
    )


def _stays(norm: Norm, x: FloatArray, answer: FloatArray) -> bool:
    return float(norm(answer - x)) <= ON_PLANE * (float(norm(x)) + float(norm(answer)))


def _unit_vectors(p: int) -> Iterator[FloatArray]:
    for i in range(p):
        unit = np.zeros(p)
        unit[i] = 1.0
        yield unit


def _basis_with(v: FloatArray, rng: np.random.Generator) -> FloatArray:
    """An orthonormal basis whose first row is along v; the others are random, so that no question is asked twice."""
    columns = rng.normal(size=(len(v), len(v)))
    columns[:, 0] = v
    return np.asarray(np.linalg.qr(columns)[0].T)


def _basis_beside(v: FloatArray, reach: float, norm: Norm, rng: np.random.Generator) -> FloatArray:
    """A basis that contains a multiple of v and lies where a·x ≤ −2·reach·‖a‖* < a·e^1, for a with a·v = ‖a‖*."""
    rows = _basis_with(v, rng)
    rows[0] = 0.0
    rows[1:] *= reach / np.asarray(norm(rows[1:]))[:, None]
    return rows - 3 * reach * v


def _through(points: FloatArray) -> tuple[FloatArray, float]:
    """The plane through p independent points: the null vector of [x', −1] (also where b = 0)."""
    scale = float(np.abs(points).max()) or 1.0
    solution = _null_vector(np.column_stack([points / scale, -np.ones(len(points))]))
    return solution[:-1], float(solution[-1]) * scale


def _null_vector(rows: FloatArray) -> FloatArray:
    """The unit vector orthogonal to n independent rows of length n + 1 (after scaling the rows)."""
    rows = rows / np.abs(rows).max(axis=1, keepdims=True)
    basis, triangle = np.linalg.qr(rows.T, mode="complete")
    pivots = np.abs(np.diag(triangle))
    if pivots.min() < 1e-11 * pivots.max():
        raise ExtractionFailed(
            "the paper's questions, unit vectors, are too close together for the distance of this plane: float64 cannot tell "
            'their answers apart; use strategy="auto"'
        )
    return np.asarray(basis[:, -1])
