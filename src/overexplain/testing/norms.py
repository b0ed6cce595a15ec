"""`check_norm`: does a norm keep the contract that extraction and certification rest on?"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.norm import Norm


def check_norm(norm: Norm, dimension: int | None = None, rng: int | np.random.Generator = 0, tol: float = 1e-9) -> None:
    """None if `norm` keeps its contract in `dimension` features; an AssertionError that says which part it breaks if not.

    Checked on random and on special vectors (unit vectors, ties, zeros, sizes from 1e-160 to 1e160): the axioms of a norm, rows,
    the dual and its dual, Hölder's inequality, maximizers and the whole face of them, the gradient where smooth, the normal cone.

    >>> from overexplain.geometry.norms import Lp
    >>> check_norm(Lp(1.5), dimension=4)
    """
    p = norm.dimension if dimension is None else dimension
    assert p is not None, "this norm takes any number of features: give dimension="
    generator = np.random.default_rng(rng)
    vectors = _vectors(p, generator)
    for part in (_axioms, _rows, _dual, _units):
        part(norm, vectors, tol)
    _maximizers(norm, vectors, generator, tol)
    if norm.is_smooth:
        _gradient(norm, vectors, generator, tol)
    _normal_cone(norm, vectors, generator, tol)


def _vectors(p: int, rng: np.random.Generator) -> list[FloatArray]:
    random = [rng.normal(size=p) for _ in range(6)]
    units = [np.eye(p)[int(i)] * sign for i in rng.choice(p, min(p, 4), replace=False) for sign in (1.0, -1.0)]
    ties = [np.ones(p), np.where(np.arange(p) % 2, -1.0, 1.0)]
    sparse = [np.where(np.arange(p) % 2, 0.0, v) for v in random[:2]]
    return [*random, *units, *ties, *sparse, random[0] * 1e160, random[1] * 1e-160]


def _close(left: float, right: float, tol: float) -> bool:
    return math.isclose(left, right, rel_tol=tol, abs_tol=0.0) or left == right


def _axioms(norm: Norm, vectors: list[FloatArray], tol: float) -> None:
    assert norm(np.zeros(len(vectors[0]))) == 0, "the norm of 0 must be 0"
    for x in vectors:
        size = float(norm(x))
        assert size > 0, f"the norm of {x} must be positive, got {size}"
        assert math.isfinite(size), f"the norm of {x} overflows: scale by the largest entry first"
        assert _close(float(norm(-3.0 * x)), 3.0 * size, tol), (
            f"‖−3x‖ must be 3‖x‖; at x = {x} it is {norm(-3.0 * x)}, ‖x‖ = {size}"
        )
    for x in vectors[:6]:
        for y in vectors[:12]:
            assert float(norm(x + y)) <= (float(norm(x)) + float(norm(y))) * (1 + tol), (
                f"triangle inequality fails at {x}, {y}"
            )


def _rows(norm: Norm, vectors: list[FloatArray], tol: float) -> None:
    values = np.asarray(norm(np.array(vectors)))
    assert values.shape == (len(vectors),), (
        f"called on {len(vectors)} rows the norm must give as many numbers, got {values.shape}"
    )
    for x, value in zip(vectors, values, strict=True):
        assert _close(float(value), float(norm(x)), tol), f"the norm of a row differs from the norm of the point {x}"


def _dual(norm: Norm, vectors: list[FloatArray], tol: float) -> None:
    dual, back = norm.dual, norm.dual.dual
    for x in vectors:
        assert _close(float(back(x)), float(norm(x)), tol), (
            f"the dual of the dual must be the norm itself; not so at {x}"
        )
        for a in vectors[:12]:
            limit = float(norm(x)) * float(dual(a))
            assert float(a @ x) <= limit * (1 + tol), (
                f"Hölder: a·x ≤ ‖x‖‖a‖* fails at x = {x}, a = {a}: the dual is too small"
            )


def _maximizers(norm: Norm, vectors: list[FloatArray], rng: np.random.Generator, tol: float) -> None:
    for a in vectors:
        face = norm.face(a)
        length = float(norm.dual(a))
        drawn: list[tuple[str, FloatArray]] = [("maximizer(a)", norm.maximizer(a))]
        drawn += [("face(a).sample", face.sample(rng)) for _ in range(4)]
        for name, v in drawn:
            assert _close(float(norm(v)), 1.0, tol), f"{name} must have norm 1, got {float(norm(v))} at a = {a}"
            assert _close(float(a @ v), length, tol), (
                f"{name}: a·v must be ‖a‖* = {length}, got {float(a @ v)} at a = {a}"
            )
            shared = np.abs((v - face.values) * face.fixed)
            assert float(shared.max()) <= tol * max(1.0, float(np.abs(v).max())), (
                f"{name} differs where face(a) says fixed, a = {a}"
            )
        again = norm.maximizer(a)
        assert np.array_equal(again, drawn[0][1]), f"maximizer(a) must always be the same for the same a = {a}"


def _units(norm: Norm, vectors: list[FloatArray], tol: float) -> None:
    p = len(vectors[0])
    for i, (unit, row) in enumerate(zip(norm.units(p), np.eye(p), strict=True)):
        assert _close(float(unit), float(norm(row)), tol), f"units: ‖e_{i}‖ is {float(norm(row))}, not {unit}"


def _gradient(norm: Norm, vectors: list[FloatArray], rng: np.random.Generator, tol: float) -> None:
    for w in vectors:
        a = norm.gradient(w)
        assert _close(float(norm.dual(a)), 1.0, tol), (
            f"the gradient must have dual norm 1, got {float(norm.dual(a))} at w = {w}"
        )
        assert _close(float(a @ w), float(norm(w)), tol), f"the gradient must satisfy a·w = ‖w‖; not so at w = {w}"
        error = 1e-7 * np.abs(w)
        bound = norm.gradient_error(w, error)
        if bound is not None:
            moved = norm.gradient(w + error * rng.uniform(-1, 1, len(w)))
            excess = np.abs(moved - a) - bound * (1 + tol) - 1e-15 * norm.units(len(w))
            assert float(excess.max()) <= 0, f"gradient_error is too small at w = {w}"


def _normal_cone(norm: Norm, vectors: list[FloatArray], rng: np.random.Generator, tol: float) -> None:
    """a / ‖a‖* must lie in span K(v) for every maximizer v of a, with the entries that the cone calls fixed."""
    for a in vectors:
        unit = a / float(norm.dual(a))
        for v in (norm.maximizer(a), norm.face(a).sample(rng)):
            cone = norm.normal_cone(7.0 * v)
            assert 1 <= cone.dimension <= len(a), f"dim K must be from 1 to {len(a)}, got {cone.dimension} at v = {v}"
            rebuilt = cone.combine(cone.along(unit - cone.values))
            gap = float(norm.dual(rebuilt - unit))
            assert gap <= max(tol, 1e-8), f"a = {a} is steepest along v = {v} but lies {gap:.2g} outside of span K(v)"
            _orthonormal(cone.direction, cone.size)
    if norm.is_smooth:
        assert norm.normal_cone(vectors[0]).dimension == 1, "a smooth norm's normal cone is a ray"


def _orthonormal(direction: Callable[[int], FloatArray], size: int) -> None:
    rows = np.array([direction(k) for k in range(min(size, 8))])
    if len(rows):
        assert np.allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-9), (
            "the open directions of a cone must be orthonormal"
        )
