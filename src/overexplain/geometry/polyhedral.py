"""Norms whose unit ball is a polytope: given by its corners, or, the dual, by its faces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import InvalidInput, SolverFailed
from overexplain.geometry.arrays import FloatArray, as_rows, frozen
from overexplain.geometry.norm import EXACT_TIE, TIE, Face, Norm, NormalCone

UNSURE = 1e-9
"""A step known less well than this, relative to its length, does not show in which face of a polytope it lies."""

MANY_ROWS = 20_000
"""More rows than this at once are not meant for a linear program each."""


def _symmetric_rows(values: ArrayLike, name: str) -> FloatArray:
    """The rows, if they are symmetric about 0 and span the space, so that they describe a norm."""
    rows = as_rows(values, name=name)
    known = {tuple(row) for row in rows + 0.0}
    for row in rows:
        if tuple(-row + 0.0) not in known:
            raise InvalidInput(f"{name} must be symmetric about 0: {row.tolist()} is there, its negative is not")
    if np.linalg.matrix_rank(rows) < rows.shape[1]:
        raise InvalidInput(f"{name} must span all {rows.shape[1]} features; these lie in a smaller space")
    return frozen(rows + 0.0)


def _farthest(rows: FloatArray, c: FloatArray) -> FloatArray:
    """A corner y of {y : rows·y ≤ 1} with the largest c·y, polished to working precision."""
    from scipy.optimize import linprog

    scale = float(np.abs(c).max())
    if scale == 0:
        return np.zeros(len(c))
    found = linprog(-c / scale, A_ub=rows, b_ub=np.ones(len(rows)), bounds=(None, None), method="highs-ds")
    if found.status != 0:
        raise SolverFailed(f"the linear program behind a polyhedral norm failed: {found.message}")
    # HiGHS answers to 1e-7; the corner itself is the solution of its active rows, and those are unmistakable.
    active = np.abs(found.slack) <= 1e-7 * max(1.0, float(np.abs(found.x).max()))
    y = np.linalg.lstsq(rows[active], np.ones(int(active.sum())), rcond=None)[0]
    # Fewer than p independent active rows (ties in c): keep what they leave open from the solver.
    loose = np.asarray(found.x) - y
    span = np.linalg.lstsq(rows[active], rows[active] @ loose, rcond=None)[0]
    y = y + (loose - span)
    return np.asarray(y / max(1.0, float((rows @ y).max())))


@final
@dataclass(frozen=True, eq=False, init=False)
class Polyhedral(Norm):
    """The norm whose unit ball is the convex hull of `vertices` (rows, symmetric about 0).

    >>> Polyhedral([[1, 0], [-1, 0], [0, 1], [0, -1]])([1.0, 2.0])
    3.0
    """

    vertices: FloatArray
    is_absolute = False

    def __init__(self, vertices: ArrayLike) -> None:
        object.__setattr__(self, "vertices", _symmetric_rows(vertices, "vertices"))

    @property
    def dimension(self) -> int:  # type: ignore[override]
        return int(self.vertices.shape[1])

    def __eq__(self, other: object) -> bool:
        return np.array_equal(self.vertices, other.vertices) if isinstance(other, Polyhedral) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.vertices.tobytes())

    def __call__(self, x: ArrayLike) -> Any:
        return _per_row(x, lambda row: float(_farthest(self.vertices, row) @ row))

    @cached_property
    def dual(self) -> Facets:
        return Facets(self.vertices)

    def face(self, a: FloatArray) -> Face:
        reach = self.vertices @ a
        return Face.of_simplex(self.vertices[reach >= reach.max() * (1 - EXACT_TIE)])

    def maximizer(self, a: FloatArray) -> FloatArray:
        return np.array(self.vertices[int((self.vertices @ a).argmax())])

    def normal_cone(self, w: FloatArray, error: FloatArray | None = None, accuracy: float = 1e-9) -> NormalCone:
        length = float(self(w))
        v = w / length
        if error is not None and _length_of(error, self) > UNSURE * length:
            return NormalCone.spanned(np.eye(len(w)), v)  # which face v lies in is anyone's guess: nothing is fixed
        # span K(w) is what is orthogonal to the face that v lies inside of; features in their own size.
        scale = np.abs(self.vertices).max(axis=0)
        spread = (self._minimal_face(v) - v) / scale
        _, sizes, rows = np.linalg.svd(spread, full_matrices=True)
        return NormalCone.spanned(rows[int((sizes > TIE).sum()) :] / scale, v)

    def _minimal_face(self, v: FloatArray) -> FloatArray:
        """The vertices that take part in writing v as a convex combination: max Σt, Σλ_u(u−v) = 0, t ≤ λ ≤ 1/TIE, t ≤ 1."""
        from scipy.optimize import linprog

        n = len(self.vertices)
        to_v = ((self.vertices - v) / np.abs(self.vertices).max(axis=0)).T
        found = linprog(
            np.concatenate([np.zeros(n), -np.ones(n)]),
            A_ub=np.hstack([-np.eye(n), np.eye(n)]),
            b_ub=np.zeros(n),
            A_eq=np.hstack([to_v, np.zeros_like(to_v)]),
            b_eq=np.zeros(len(v)),
            bounds=[(0, 1 / TIE)] * n + [(0, 1)] * n,
            method="highs",
        )
        if found.status != 0:
            raise SolverFailed(f"the linear program for the face of a polyhedral norm failed: {found.message}")
        return np.asarray(self.vertices[found.x[n:] > 0.5])

    @property
    def spec(self) -> dict[str, Any]:
        return {"norm": "polyhedral", "vertices": self.vertices.tolist()}


@final
@dataclass(frozen=True, eq=False, init=False)
class Facets(Norm):
    """‖x‖ = max_f f·x over `facets` (rows, symmetric about 0); the dual of Polyhedral with the same rows.

    >>> Facets([[1, 0], [-1, 0], [0, 1], [0, -1]])([1.0, 2.0])
    2.0
    """

    facets: FloatArray
    is_absolute = False

    def __init__(self, facets: ArrayLike) -> None:
        object.__setattr__(self, "facets", _symmetric_rows(facets, "facets"))

    @property
    def dimension(self) -> int:  # type: ignore[override]
        return int(self.facets.shape[1])

    def __eq__(self, other: object) -> bool:
        return np.array_equal(self.facets, other.facets) if isinstance(other, Facets) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.facets.tobytes())

    def __call__(self, x: ArrayLike) -> Any:
        largest = (np.asarray(x, dtype=np.float64) @ self.facets.T).max(axis=-1)
        return float(largest) if np.ndim(largest) == 0 else largest

    @cached_property
    def dual(self) -> Polyhedral:
        return Polyhedral(self.facets)

    def face(self, a: FloatArray) -> Face:
        best = _farthest(self.facets, a)
        # Which coordinates are free is seen by leaning on the face from many sides: corners of it, tied with `best`.
        rng = np.random.default_rng(0)
        lean = 1e-6 * float(np.abs(a).max())
        corners = [best] + [_farthest(self.facets, a + lean * rng.normal(size=len(a))) for _ in range(2 * len(a))]
        value = float(best @ a)
        tied = [y for y in corners if y @ a >= value * (1 - 1e-9)]
        distinct = [tied[0]]
        for y in tied[1:]:
            if all(np.abs(y - other).max() > 1e-9 * (1 + np.abs(other).max()) for other in distinct):
                distinct.append(y)
        return Face.of_simplex(np.array(distinct))

    def maximizer(self, a: FloatArray) -> FloatArray:
        return _farthest(self.facets, a)

    def normal_cone(self, w: FloatArray, error: FloatArray | None = None, accuracy: float = 1e-9) -> NormalCone:
        reach = self.facets @ w
        unsure = 0.0 if error is None else 2 * _length_of(error, self)
        active = self.facets[reach >= (1 - TIE) * reach.max() - unsure]
        scale = np.abs(self.facets).max(axis=0)
        _, sizes, rows = np.linalg.svd(active / scale, full_matrices=False)
        return NormalCone.spanned(rows[sizes > 1e-9 * sizes[0]] * scale, w / float(reach.max()))

    @property
    def spec(self) -> dict[str, Any]:
        return {"norm": "facets", "facets": self.facets.tolist()}


def _length_of(error: FloatArray, norm: Norm) -> float:
    """The largest norm of a vector whose entries are within `error`, by the triangle inequality."""
    return float(error @ norm.units(len(error)))


def _per_row(x: ArrayLike, value: Any) -> Any:
    rows = np.asarray(x, dtype=np.float64)
    if rows.ndim == 1:
        return value(rows)
    if len(rows) > MANY_ROWS:
        raise InvalidInput(
            f"a polyhedral norm given by corners needs a linear program per row; {len(rows)} rows are too many at once. "
            "Give the ball by its faces (Facets) or call it on blocks of rows"
        )
    return np.array([value(row) for row in rows])
