"""Norms, models and second opinions for the tests of the paper's claims.

`tools` computes everything a second time and differently: lengths from their definitions in plain NumPy, optimal
counterfactuals and dual norms with cvxpy, linear algebra in exact rationals. None of it calls what it checks.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from scipy.spatial import ConvexHull

import overexplain as ox
from overexplain.geometry.norms import Facets, GroupMax

# --- the norms, as functions of the dimension -------------------------------------------------------------------------


def _weights(p):
    return np.linspace(0.5, 2.0, p)


def _matrix(p):
    half = np.random.default_rng(100 + p).normal(size=(p, p)) / np.sqrt(p)
    return half @ half.T + np.eye(p)


def _groups(p):
    return [list(range(0, p, 2)), list(range(1, p, 2))] if p > 1 else [[0]]


def _vertices(p):
    half = np.random.default_rng(200 + p).normal(size=(2 * p + 2, p))
    half /= np.linalg.norm(half, axis=1, keepdims=True)
    return np.vstack([half, -half])


NORMS = {
    "l1": lambda _: ox.l1,
    "linf": lambda _: ox.linf,
    "weighted-l1": lambda p: ox.Weighted(ox.l1, _weights(p)),
    "weighted-linf": lambda p: ox.Weighted(ox.linf, _weights(p)),
    "group": lambda p: ox.GroupNorm(_groups(p)),
    "group-max": lambda p: ox.GroupNorm(_groups(p)).dual,
    "polyhedral": lambda p: ox.Polyhedral(_vertices(p)),
    "facets": lambda p: ox.Polyhedral(_vertices(p)).dual,
    "l2": lambda _: ox.l2,
    "lp1.5": lambda _: ox.Lp(1.5),
    "lp3": lambda _: ox.Lp(3.0),
    "weighted-l2": lambda p: ox.Weighted(ox.l2, _weights(p)),
    "weighted-lp3": lambda p: ox.Weighted(ox.Lp(3.0), _weights(p)),
    "mahalanobis": lambda p: ox.Mahalanobis(_matrix(p)),
}
SMOOTH = [name for name in NORMS if name.startswith(("l2", "lp", "mahalanobis")) or name.endswith(("-l2", "-lp3"))]
CORNERED = [name for name in NORMS if name not in SMOOTH]

# Every norm once as a distance, every kind of norm at least once as the ball around the answer.
ROBUST = {
    "l1": "l2",
    "linf": "l1",
    "weighted-l1": "linf",
    "weighted-linf": "mahalanobis",
    "group": "l1",
    "group-max": "lp3",
    "polyhedral": "group",
    "facets": "l2",
    "l2": "linf",
    "lp1.5": "polyhedral",
    "lp3": "lp1.5",
    "weighted-l2": "l1",
    "weighted-lp3": "weighted-l1",
    "mahalanobis": "weighted-linf",
}


@pytest.fixture(params=[2, 5], ids="p={}".format)
def p(request):
    """The number of features."""
    return request.param


@pytest.fixture(params=NORMS)
def distance(request, p):
    """Any norm as N1."""
    return NORMS[request.param](p)


@pytest.fixture(params=SMOOTH)
def smooth(request, p):
    """A differentiable norm as N1."""
    return NORMS[request.param](p)


@pytest.fixture(params=CORNERED)
def cornered(request, p):
    """A non-differentiable norm as N1."""
    return NORMS[request.param](p)


@dataclass(frozen=True)
class Terms:
    """N1, N2 and ρ of a robust service."""

    distance: object
    robustness: object
    radius: float

    @property
    def mechanism(self):
        return ox.Mechanism(self.distance, robustness=self.robustness, radius=self.radius)


def _terms(name, p):
    return Terms(NORMS[name](p), NORMS[ROBUST[name]](p), 0.7)


@pytest.fixture(params=ROBUST, ids=lambda name: f"{name}/{ROBUST[name]}")
def robust(request, p):
    """Any N1, with some N2 and ρ > 0."""
    return _terms(request.param, p)


@pytest.fixture(params=SMOOTH, ids=lambda name: f"{name}/{ROBUST[name]}")
def smooth_robust(request, p):
    """A differentiable N1, with some N2 and ρ > 0."""
    return _terms(request.param, p)


@pytest.fixture(params=CORNERED, ids=lambda name: f"{name}/{ROBUST[name]}")
def cornered_robust(request, p):
    """A non-differentiable N1, with some N2 and ρ > 0."""
    return _terms(request.param, p)


@dataclass(frozen=True)
class Tied:
    """A norm and a normal with several maximizers: every question then has several optimal answers."""

    norm: object
    normal: np.ndarray


def _tied_polyhedral(p):
    lid = np.hstack([np.ones((p + 1, 1)), np.random.default_rng(300 + p).uniform(-0.5, 0.5, size=(p + 1, p - 1))])
    return ox.Polyhedral(np.vstack([lid, -lid, 0.75 * np.eye(p)[1:], -0.75 * np.eye(p)[1:]]))


def _tied(name, p):
    norm = _tied_polyhedral(p) if name == "polyhedral" else NORMS[name](p)
    signs = np.where(np.arange(p) % 3 == 1, -1.0, 1.0)
    gaps = np.where(np.arange(p) % 2 == 1, 0.0, signs * np.linspace(1.0, 2.0, p))  # every other entry is 0
    normals = {
        "l1": signs,
        "weighted-l1": signs * _weights(p),
        "linf": gaps,
        "weighted-linf": gaps,
        "group": signs / np.sqrt([len(_groups(p)[i % 2]) for i in range(p)]),
        "group-max": gaps,
        "polyhedral": np.eye(p)[0],
        "facets": _vertices(p)[0],
    }
    return Tied(norm, normals[name])


@pytest.fixture(params=CORNERED)
def tied(request, p):
    """A non-differentiable N1 with a normal for which several answers are optimal."""
    return _tied(request.param, p)


@pytest.fixture(params=[ox.YES, ox.NO], ids=["factual-Yes", "factual-No"])
def side(request):
    """The class of the factual."""
    return request.param


@pytest.fixture
def rng():
    """The same randomness every time."""
    return np.random.default_rng(7)


# --- second opinions --------------------------------------------------------------------------------------------------


@cache
def _facets(norm):
    """The faces f·x ≤ 1 of a polyhedral norm's unit ball, by Qhull."""
    if norm.dimension == 1:
        return 1 / np.abs(norm.vertices).max() * np.array([[1.0], [-1.0]])
    sides = ConvexHull(norm.vertices).equations
    return sides[:, :-1] / -sides[:, -1:]


class Tools:
    """Everything computed a second time, by another route."""

    # models and points

    @staticmethod
    def plane(p, rng, offset=None):
        """A generic model: no entry of the normal near 0, no two of nearly the same size, 0 off the plane."""
        normal = rng.permutation(np.linspace(0.4, 2.0, p) + rng.uniform(0, 0.1, p)) * rng.choice([-1.0, 1.0], p)
        return ox.Hyperplane(normal, rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 1.5) if offset is None else offset)

    @staticmethod
    def point(plane, side, rng):
        """A point of the given class, well off the plane."""
        x = rng.normal(size=plane.dimension) * 2
        miss = abs(plane.normal @ x - plane.offset) + 0.5
        on_plane = x + (plane.offset - plane.normal @ x) * plane.normal / (plane.normal @ plane.normal)
        return on_plane + side * miss * plane.normal / (plane.normal @ plane.normal)

    # norms

    @classmethod
    def length(cls, norm, x):
        """‖x‖ from its definition."""
        x = np.asarray(x, dtype=float)
        match norm:
            case ox.Lp():
                return np.abs(x).max() if np.isinf(norm.q) else (np.abs(x) ** norm.q).sum() ** (1 / norm.q)
            case ox.Weighted():
                return cls.length(norm.norm, norm.weights * x)
            case ox.Mahalanobis():
                return np.sqrt(x @ norm.matrix @ x)
            case ox.GroupNorm():
                return sum(np.sqrt((x[list(g)] ** 2).sum()) for g in norm.groups)
            case GroupMax():
                return max(np.sqrt((x[list(g)] ** 2).sum()) for g in norm.groups)
            case Facets():
                return (norm.facets @ x).max()
            case ox.Polyhedral():
                return (_facets(norm) @ x).max()
        raise AssertionError(norm)

    @classmethod
    def expression(cls, norm, z):
        """‖z‖ as a cvxpy expression, and the constraints it needs."""
        match norm:
            case ox.Lp():
                return cp.norm(z, norm.q), []
            case ox.Weighted():
                return cls.expression(norm.norm, cp.multiply(norm.weights, z))
            case ox.Mahalanobis():
                return cp.norm(np.linalg.cholesky(norm.matrix).T @ z, 2), []
            case ox.GroupNorm():
                return cp.sum(cp.hstack([cp.norm(z[list(g)], 2) for g in norm.groups])), []
            case GroupMax():
                return cp.max(cp.hstack([cp.norm(z[list(g)], 2) for g in norm.groups])), []
            case Facets():
                return cp.max(norm.facets @ z), []
            case ox.Polyhedral():
                weights = cp.Variable(len(norm.vertices), nonneg=True)
                return cp.sum(weights), [norm.vertices.T @ weights == z]
        raise AssertionError(norm)

    @classmethod
    def support(cls, norm, a):
        """max {a·v : ‖v‖ ≤ 1} and a maximizer, by cvxpy: the dual norm from its definition."""
        value, v = _support(norm, tuple(map(float, a)))
        return value, v.copy()

    @classmethod
    def nearest(cls, plane, norm, x, ball=None, radius=0.0):
        """The least distance to a point whose whole ball lies across, such a point, and the multiplier λ, by cvxpy."""
        side = 1 if plane.normal @ x >= plane.offset else -1
        reach = radius * cls.support(ball, plane.normal)[0] if radius else 0.0
        return _nearest(norm, tuple(plane.normal), float(plane.offset - side * reach), tuple(map(float, x)))

    @classmethod
    def ball(cls, norm, p, rng, normal=None, n=200):
        """Points of the unit ball of the norm: random ones, its corners, and the extreme ones along ±normal."""
        if isinstance(norm, ox.Polyhedral):
            rows = [*norm.vertices, *rng.dirichlet(np.full(len(norm.vertices), 0.1), size=n) @ norm.vertices]
        else:
            signs = np.array(list(product([-1.0, 1.0], repeat=p)))
            rows = [z / cls.length(norm, z) for z in (*rng.normal(size=(n, p)), *np.eye(p), *-np.eye(p), *signs)]
        if normal is not None:
            v = cls.support(norm, normal)[1]
            rows += [v / max(1.0, cls.length(norm, v)), -v / max(1.0, cls.length(norm, v))]
        return np.array(rows)

    @classmethod
    def gradient(cls, norm, w):
        """The gradient at w by central differences."""
        steps = 1e-6 * np.abs(w).max() * np.eye(len(w))
        return np.array([(cls.length(norm, w + h) - cls.length(norm, w - h)) / (2 * h.max()) for h in steps])

    # exact rationals

    @staticmethod
    def null_space(rows):
        """A basis of {z : rows·z = 0} in exact rationals."""
        matrix = [[Fraction(entry) for entry in row] for row in rows]
        n, pivots = len(matrix[0]), []
        for column in range(n):
            top = len(pivots)
            found = next((i for i in range(top, len(matrix)) if matrix[i][column] != 0), None)
            if found is None:
                continue
            matrix[top], matrix[found] = matrix[found], matrix[top]
            lead = matrix[top][column]
            matrix[top] = [entry / lead for entry in matrix[top]]
            for i, row in enumerate(matrix):
                if i != top and row[column] != 0:
                    factor = row[column]
                    matrix[i] = [entry - factor * other for entry, other in zip(row, matrix[top], strict=True)]
            pivots.append(column)
        basis = []
        for free in (c for c in range(n) if c not in pivots):
            z = [Fraction(0)] * n
            z[free] = Fraction(1)
            for row, column in zip(matrix, pivots, strict=False):
                z[column] = -row[free]
            basis.append(z)
        return basis

    @classmethod
    def rank(cls, rows):
        """The rank in exact rationals."""
        return len(rows[0]) - len(cls.null_space(rows))

    @staticmethod
    def dot(a, x):
        """a·x in exact rationals."""
        return sum((Fraction(u) * Fraction(v) for u, v in zip(a, x, strict=True)), Fraction(0))

    @classmethod
    def exact_answer(cls, a, b, x, norm, radius=0, ball_length=0):
        """An optimal counterfactual under "l1" or "linf" in exact rationals; `ball_length` is ‖a‖*_N2."""
        gap = Fraction(b) - cls.dot(a, x)
        label = 1 if gap <= 0 else -1
        gap -= label * Fraction(radius) * Fraction(ball_length)
        sign = [(u > 0) - (u < 0) for u in a]
        if norm == "linf":
            v, length = sign, sum(map(abs, a))
        else:
            k = max(range(len(a)), key=lambda i: abs(a[i]))
            v, length = [sign[i] if i == k else 0 for i in range(len(a))], abs(a[k])
        return [Fraction(u) + gap / Fraction(length) * s for u, s in zip(x, v, strict=True)]


def _solve(problem):
    problem.solve(solver="CLARABEL")
    assert problem.status == "optimal", problem.status
    return float(problem.value)


@cache  # the same few models come up in most tests
def _support(norm, a):
    v = cp.Variable(len(a))
    length, extra = Tools.expression(norm, v)
    return _solve(cp.Problem(cp.Maximize(np.array(a) @ v), [length <= 1, *extra])), v.value


@cache
def _nearest(norm, normal, level, x):
    z = cp.Variable(len(x))
    length, extra = Tools.expression(norm, z - np.array(x))
    across = np.array(normal) @ z == level
    return _solve(cp.Problem(cp.Minimize(length), [across, *extra])), z.value, -float(across.dual_value)


@pytest.fixture(scope="session")
def tools():
    """The second opinions."""
    return Tools
