"""How many answers cases themselves need, by rank: they may differ in fewer directions than a model has features.

Of a column with categories one feature follows from the others, so valid cases lie in an affine space S of dimension d < p, and
no decision about them depends on the rest of the plane. An exact answer to x is x' = x + λv with the same v for every x (Theorem A:
the corner of the ball where the model touches it), and says a·x' = b. All such equations have rank r: d if v is a direction of S,
else d + 1. With r independent ones those of every other x in S follow, and so does the sign of λ, which is the decision about x,
since a·v = ‖a‖* > 0 for every model that fits. With fewer some x in S is left with both decisions (docs/theory/extraction.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, final

import numpy as np

from overexplain.extraction.predicted import cone_dimension
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.oracles.services import Service

PRIME: Final = 2**31 - 1
"""Ranks are counted modulo this: exactly for whole numbers and float64 alike (2³¹ = 1), up to a chance of about p in two thousand
million that a determinant is a multiple of it."""

ENOUGH: Final = 2
"""Fewer cases than this many times the features + 1 may agree by chance in what others do not."""

SPARE: Final = 64
"""Many rows are replaced by so many more sums of random rows than could be independent: the rank is the same, but for 2⁻⁶⁴."""

MOST: Final = 2 * 10**10
"""Rows × features² beyond which nothing is counted."""

Source = Literal["categories", "cases"]


@final
@dataclass(frozen=True, eq=False)
class Span:
    """The affine space of valid cases: `rows` span it, lifted by a 1 and reduced modulo PRIME.

    source  "categories": it is what the model's columns with categories leave; "cases": the data are still narrower, or the
            model does not say what its columns are
    """

    rows: IntArray
    source: Source

    @property
    def dimension(self) -> int:
        """In how many directions cases differ."""
        return len(self.rows) - 1

    def answers(self, service: Service, plane: Hyperplane, scale: FloatArray) -> int | None:
        """Exact answers of a service to cases of this space that determine all decisions in it; None: not counted.

        `plane` is the model in the audited units, whose unit is `scale` in the data's own. Counted for answers that are exact and
        plain, where the model leaves one direction to move in.
        """
        terms = service.mechanism
        if terms is None or not service.is_plain or service.published not in (None, terms):
            return None
        if terms.distance is None or not terms.is_plain or terms.domain or terms.slack != 0 or terms.tolerance:
            return None
        if cone_dimension(terms, plane) < plane.dimension:
            return None
        step = np.append(np.asarray(terms.distance.maximizer(plane.normal)) * scale, 0.0)
        return len(_reduced(np.vstack([self.rows, _residues(step[None, :])]))) - 1


def span_of(rows: FloatArray, groups: Sequence[Sequence[int]] = ()) -> Span | None:
    """The space of cases like these, in the data's own units; `groups` are one-hot; None: they fill it, or there are too few.

    >>> span = span_of(np.array([[float(i), i % 3 == 0, i % 3 == 1, i % 3 == 2] for i in range(12)]))
    >>> span.dimension, span.source
    (3, 'cases')
    """
    cases, features = rows.shape
    if cases * features * features > MOST:
        return None
    kept = [list(group) for group in groups if (rows[:, list(group)].sum(axis=1) == 1).all()]
    valid = _valid(features, kept) if kept else None
    if cases >= ENOUGH * (features + 1):
        seen = _reduced(_summed(_residues(np.column_stack([rows, np.ones(cases)]))))
        if len(seen) <= features:
            return Span(seen, "categories" if valid is not None and len(seen) == len(valid) else "cases")
        return None
    return None if valid is None else Span(valid, "categories")


def _valid(features: int, groups: Sequence[Sequence[int]]) -> IntArray:
    """Rows that span all cases with one 1 in every group."""
    grouped = {i for group in groups for i in group}
    base = np.zeros(features + 1)
    base[[*(group[0] for group in groups), features]] = 1
    unit = np.eye(features + 1)
    rows = [base, *(base + unit[i] for i in range(features) if i not in grouped)]
    rows += [base + unit[i] - unit[group[0]] for group in groups for i in group[1:]]
    return _reduced(_residues(np.array(rows)))


def _residues(rows: FloatArray) -> IntArray:
    """float64 numbers modulo PRIME, exactly: m·2ᵉ, and 2³¹ is 1."""
    mantissa, exponent = np.frexp(rows)
    whole = np.ldexp(mantissa, 53).astype(np.int64) % PRIME
    return np.asarray(whole * np.left_shift(np.int64(1), (exponent.astype(np.int64) - 53) % 31) % PRIME)


def _summed(rows: IntArray) -> IntArray:
    """Sums of random rows, where there are many more than can be independent."""
    wanted = rows.shape[1] + SPARE
    if len(rows) <= 2 * wanted:
        return rows
    chosen = np.random.default_rng(0).integers(0, 2, (wanted, len(rows))).astype(np.float64)
    # In halves of 16 bits, whose sums float64 has exactly.
    low, high = (chosen @ part.astype(np.float64) for part in (rows & 0xFFFF, rows >> 16))
    return np.asarray((low.astype(np.int64) + (high.astype(np.int64) % PRIME << 16)) % PRIME)


def _reduced(rows: IntArray) -> IntArray:
    """As many rows as are independent, with the same span: Gaussian elimination modulo PRIME."""
    left, found = rows.copy(), 0
    for column in range(rows.shape[1]):
        pivots = np.flatnonzero(left[found:, column])
        if not len(pivots):
            continue
        first = found + int(pivots[0])
        left[[found, first]] = left[[first, found]]
        left[found] = left[found] * pow(int(left[found, column]), -1, PRIME) % PRIME
        below = left[found + 1 :]
        below[:] = (below - below[:, column, None] * left[found] % PRIME) % PRIME
        found += 1
        if found == len(left):
            break
    return left[:found]
