"""Extracting the hyperplane with counterfactual queries: every lemma, theorem, corollary, remark,
example and Algorithm 1."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import overexplain as ox


class Prefers:
    """A service that gives `favourite` wherever it is optimal, else what the exact oracle gives."""

    def __init__(self, plane, norm, favourite):
        self._oracle = ox.ModelOracle(plane, ox.Mechanism(norm))
        self._norm, self._favourite = norm, np.asarray(favourite, dtype=float)
        self.dimension, self.mechanism = plane.dimension, ox.Mechanism(norm)
        self.classify = self._oracle.classify

    def explain(self, x):
        answer = self._oracle.explain(x)
        optimal = self._norm(self._favourite - x) <= self._norm(answer - x) * (1 + 1e-12)
        return self._favourite.copy() if optimal else answer


def test_eq_reformulation_subdifferentiable_norm(distance, p, tools, rng):
    """∂‖·‖(x) = {v : v·x = ‖x‖, ‖v‖* ≤ 1}: such v support the norm everywhere; break either condition
    and some z refutes v."""
    for x in (rng.normal(size=p), np.eye(p)[0], -3 * np.ones(p)):
        size = tools.length(distance, x)
        everywhere = np.vstack(
            [np.zeros(p), 2 * x, x + rng.normal(size=(60, p)), 10 * tools.ball(distance, p, rng, n=20)]
        )
        above = np.array([tools.length(distance, z) for z in everywhere]) - size
        v = distance.dual.face(x).sample(rng)
        assert v @ x == pytest.approx(size, rel=1e-9)
        assert tools.support(distance, v)[0] <= 1 + 1e-6
        assert (above >= (everywhere - x) @ v - 1e-9).all()  # a subgradient: f(z) − f(x) ≥ v·(z − x)
        less = v - 0.1 * size * x / (x @ x)  # v·x < ‖x‖: refuted at z = 0
        assert above[0] < -(less @ x) - 1e-3
        more = v + 0.5 * rng.normal(size=p)
        more += (size - more @ x) / (x @ x) * x  # more·x = ‖x‖ still
        reach, far = tools.support(distance, more)
        if reach > 1 + 1e-6:  # ‖v‖* > 1: refuted far away
            far = 1e8 * far
            assert tools.length(distance, far) - size < more @ (far - x) - 1
        else:
            assert (above >= (everywhere - x) @ more - 1e-4).all()  # another subgradient of a norm with corners
            assert not distance.is_smooth


def test_lem_optimality_conditions_CF(distance, p, side, tools, rng):
    """For x' = `explain(x)`: a·x' = b, and λ*a ∈ ∂f(x' − x) for cvxpy's multiplier λ* ≠ 0 (its sign is −label)."""
    plane = tools.plane(p, rng)
    x = tools.point(plane, side, rng)
    answer = ox.ModelOracle(plane, ox.Mechanism(distance)).explain(x)
    _, _, multiplier = tools.nearest(plane, distance, x)
    assert plane.normal @ answer == pytest.approx(plane.offset, abs=1e-12)
    assert multiplier * side < -1e-3
    step = answer - x
    slope = multiplier * plane.normal
    points = np.vstack(
        [step + rng.normal(size=(100, p)), 20 * tools.ball(distance, p, rng, plane.normal, n=50), np.zeros(p)]
    )
    for z in points:
        assert tools.length(distance, z) >= tools.length(distance, step) + slope @ (z - step) - 1e-5


def test_lem_optimality_conditions_CF_with_ties(tied, p, side, tools, rng):
    """The same λ*a lies in ∂f(x' − x) of *every* optimal x': ``ties="random"``, one multiplier from cvxpy."""
    plane = ox.Hyperplane(tied.normal, -0.4)
    x = tools.point(plane, side, rng)
    oracle = ox.ModelOracle(plane, ox.Mechanism(tied.norm), ties="random", rng=2)
    slope = tools.nearest(plane, tied.norm, x)[2] * plane.normal
    points = np.vstack([rng.normal(size=(50, p)), 5 * tools.ball(tied.norm, p, rng, plane.normal, n=20), np.zeros(p)])
    lengths = np.array([tools.length(tied.norm, z) for z in points])
    for answer in oracle.explain(np.tile(x, (5, 1))):
        step = answer - x
        assert plane.normal @ answer == pytest.approx(plane.offset, abs=1e-12)
        assert (lengths >= tools.length(tied.norm, step) + (points - step) @ slope - 1e-5).all()


@pytest.mark.parametrize("p", [1, 2, 5, 12])
def test_thm_CF_theorem_diff(smooth, p, side, tools, rng):
    """One CF is enough if N1 is differentiable: â = ∇f(x' − x), b̂ = â·x' (by differences, and
    `extract`: 1 answer, 0 labels)."""
    plane = tools.plane(p, rng)
    oracle = ox.ModelOracle(plane, ox.Mechanism(smooth))
    x = tools.point(plane, side, rng)
    answer = oracle.explain(x)
    slope = tools.gradient(smooth, answer - x)
    assert ox.Hyperplane(slope, slope @ answer).same_plane(plane, 1e-4)  # central differences
    exact = smooth.gradient(answer - x)
    assert np.allclose(exact, slope, atol=1e-4)
    assert ox.Hyperplane(exact, exact @ answer).same_plane(plane, 1e-9)
    found = ox.extract(oracle, strategy="paper", start=x, orient=False)
    assert found.spent == ox.Spent(explanations=1, labels=0)
    assert found.hyperplane.same_plane(plane, 1e-9)


def test_remark_one_factual_orients(smooth, p, side, tools, rng):
    """The hyperplane alone does not say which side is Yes; one label off the plane does
    (thm:CF_theorem_diff and what follows)."""
    plane = tools.plane(p, rng)
    twin = plane.flipped()
    x = tools.point(plane, side, rng)
    mechanism = ox.Mechanism(smooth)
    assert np.allclose(
        ox.ModelOracle(plane, mechanism).explain(x), ox.ModelOracle(twin, mechanism).explain(x), atol=1e-12
    )
    for secret in (plane, twin):
        found = ox.extract(ox.ModelOracle(secret, mechanism), strategy="paper", start=x)
        assert found.spent == ox.Spent(explanations=1, labels=1)
        assert found.hyperplane.is_equivalent(secret, 1e-9)
        assert not found.hyperplane.is_equivalent(secret.flipped(), 1e-3)


def test_remark_factual_on_the_hyperplane(smooth, p):
    """If x_F lies on the plane (x' = x_F), one of x_F + e^i does not: ``strategy="paper"`` goes on
    from the first that does not."""
    last, middle = np.eye(p)[-1], np.eye(p)[p // 2]
    for normal, start in product((last, -3 * middle, last - 2 * middle, np.ones(p)), (np.zeros(p), np.arange(p) - 1.0)):
        if not normal.any():
            continue
        plane = ox.Hyperplane(normal, normal @ start)
        oracle = ox.ModelOracle(plane, ox.Mechanism(smooth))
        assert np.allclose(oracle.explain(start), start, atol=1e-15)
        off = [i for i in range(p) if normal[i] != 0]
        found = ox.extract(oracle, strategy="paper", start=start, orient=False)
        assert found.spent.explanations == off[0] + 2 <= p + 1
        assert found.hyperplane.same_plane(plane, 1e-7)


def holds(tools, plane, norm, dual_length, x, z):
    """The three conditions of the corollary, for the only λ that the second allows."""
    step = z - x
    product_ = plane.normal @ step
    if abs(plane.margin(z)) > 1e-9 or abs(product_) < 1e-12:
        return False
    multiplier = tools.length(norm, step) / product_
    return multiplier != 0 and abs(multiplier) * dual_length <= 1 + 1e-6


def test_cor_optimality_conditions_CF_non_differentiable_norm(distance, p, side, tools, rng):
    """x' is optimal iff a·x' = b, λa·(x' − x) = ‖x' − x‖ and ‖λa‖* ≤ 1 for some λ ≠ 0: against cvxpy's
    optimum and dual norm."""
    plane = tools.plane(p, rng)
    x = tools.point(plane, side, rng)
    best = tools.nearest(plane, distance, x)[0]
    dual_length = tools.support(distance, plane.normal)[0]
    answer = ox.ModelOracle(plane, ox.Mechanism(distance)).explain(x)
    inside = rng.normal(size=(30, p))
    inside -= np.outer(inside @ plane.normal, plane.normal) / (plane.normal @ plane.normal)
    candidates = [
        answer,
        *(answer + s * h for h in inside for s in (0.1, 1.0)),
        *(answer + t * (answer - x) for t in (-0.1, 0.1)),
    ]
    verdicts = []
    for z in candidates:
        optimal = abs(plane.margin(z)) < 1e-9 and tools.length(distance, z - x) <= best * (1 + 1e-6)
        assert holds(tools, plane, distance, dual_length, x, z) == optimal
        verdicts.append(optimal)
    assert verdicts[0]
    assert not all(verdicts)


def test_cor_optimality_conditions_CF_non_differentiable_norm_exhaustively(tools):
    """The same in exact rationals: ℓ1 and ℓ∞, every model with a ∈ {−2, …, 2}², every candidate on a
    grid of its plane."""
    dual = {"l1": lambda a: max(map(abs, a)), "linf": lambda a: sum(map(abs, a))}
    length = {"l1": lambda w: sum(map(abs, w)), "linf": lambda w: max(map(abs, w))}
    for norm, a, b in product(("l1", "linf"), product(range(-2, 3), repeat=2), (-1, 2)):
        x = (Fraction(1, 2), Fraction(-1, 3))
        if not any(a) or tools.dot(a, x) == b:
            continue
        # All points of a fine grid of the plane; the best of them cannot beat the optimum, and meets it.
        foot = [Fraction(b * u, a[0] ** 2 + a[1] ** 2) for u in a]
        answer = tools.exact_answer(a, b, x, norm)
        grid = [[foot[0] - Fraction(t, 6) * a[1], foot[1] + Fraction(t, 6) * a[0]] for t in range(-40, 41)] + [answer]
        costs = [length[norm]([u - v for u, v in zip(z, x, strict=True)]) for z in grid]
        for z, cost in zip(grid, costs, strict=True):
            assert tools.dot(a, z) == b
            multiplier = cost / (b - tools.dot(a, x))
            assert (abs(multiplier) * dual[norm](a) <= 1) == (cost == min(costs))


def test_eq_syst_eq_CF(cornered, p, tools, rng):
    """p linearly independent points with a·x = b leave one solution (a, b) up to scale; p − 1 leave
    more (`explain`, then SVD)."""
    plane = tools.plane(p, rng)
    oracle = ox.ModelOracle(plane, ox.Mechanism(cornered))
    rows = oracle.explain(rng.normal(size=(p, p)))
    assert np.linalg.matrix_rank(rows, tol=1e-6) == p
    system = np.column_stack([rows, -np.ones(p)])
    sizes = np.linalg.svd(system, compute_uv=False)
    assert sizes[-1] > 1e-6  # rank p in p + 1 unknowns
    solution = np.linalg.svd(system)[2][-1]
    assert ox.Hyperplane(solution[:-1], solution[-1]).same_plane(plane, 1e-8)
    assert np.linalg.matrix_rank(system[:-1]) == p - 1


def test_eq_syst_eq_CF_exactly(tools):
    """The same in exact rationals, for every model with a ∈ {−2, …, 2}³: [x', −1] has a null space of
    dimension 1, spanned by (a, b)."""
    x = [
        [Fraction(1), Fraction(2), Fraction(-1)],
        [Fraction(0), Fraction(3), Fraction(1)],
        [Fraction(2), Fraction(-1), Fraction(4)],
    ]
    solved = 0
    for a in product(range(-2, 3), repeat=3):
        for norm in ("l1", "linf"):
            if not any(a):
                continue
            rows = [tools.exact_answer(a, 1, z, norm) for z in x]
            if tools.rank(rows) < 3:
                continue
            (solution,) = tools.null_space([[*row, -1] for row in rows])
            assert tools.rank([solution, [*a, 1]]) == 1
            assert len(tools.null_space([[*row, -1] for row in rows[:-1]])) == 2
            solved += 1
    assert solved > 100


def test_remark_zero_is_a_counterfactual(tools):
    """If 0 is an answer then b = 0, and p − 1 further independent answers give a up to scale (exact,
    ℓ1 and ℓ∞, a ∈ {−2, …, 2}³)."""
    for norm, a in product(("l1", "linf"), product(range(-2, 3), repeat=3)):
        if not any(a):
            continue
        direction = [u - z for u, z in zip(tools.exact_answer(a, 1, [0, 0, 0], norm), [0, 0, 0], strict=True)]
        start = [-3 * u for u in direction]  # its optimal answer under (a, 0) is 0
        assert tools.exact_answer(a, 0, start, norm) == [0, 0, 0]
        rows = [tools.exact_answer(a, 0, z, norm) for z in ([1, 5, -2], [4, 1, 3], [-1, 2, 7])]
        two = next(
            pair for pair in ((rows[0], rows[1]), (rows[0], rows[2]), (rows[1], rows[2])) if tools.rank(pair) == 2
        )
        (solution,) = tools.null_space(two)
        assert tools.rank([solution, a]) == 1
    # The library: an answer 0 is one of p affinely independent ones, and both strategies recover the plane through 0.
    plane = ox.Hyperplane([2.0, -1.0, 0.5], 0.0)
    for name in ("l1", "linf"):
        for strategy in ("paper", "points", "auto"):
            found = ox.extract(ox.ModelOracle(plane, ox.Mechanism(name)), strategy=strategy, orient=False, rng=1)
            assert found.hyperplane.same_plane(plane, 1e-9)


def test_lem_CF_direction(distance, p, side, tools, rng):
    """x + d·v with d = (b − a·x)/‖a‖* is optimal iff ‖v‖ ≤ 1 and a·v = ‖a‖*; the same v serves every x
    on both sides (cvxpy)."""
    plane = tools.plane(p, rng)
    dual_length, best = tools.support(distance, plane.normal)
    good = [best, distance.maximizer(plane.normal), distance.face(plane.normal).sample(rng)]
    orthogonal = rng.normal(size=p)
    orthogonal -= (orthogonal @ plane.normal) / (plane.normal @ plane.normal) * plane.normal
    too_long = best + 3 * orthogonal / tools.length(distance, orthogonal)  # a·v = ‖a‖*, ‖v‖ > 1
    too_short = 0.9 * best  # ‖v‖ ≤ 1, a·v < ‖a‖*
    backwards = -best
    for x in (tools.point(plane, side, rng), tools.point(plane, -side, rng)):
        signed = (plane.offset - plane.normal @ x) / dual_length
        cost = tools.nearest(plane, distance, x)[0]
        for v in good:
            assert plane.margin(x + signed * v) == pytest.approx(0, abs=1e-5)
            assert tools.length(distance, signed * v) == pytest.approx(cost, rel=1e-5)
        assert tools.length(distance, signed * too_long) > cost * 1.5
        assert abs(plane.margin(x + signed * too_long)) < 1e-5
        for v in (too_short, backwards):
            assert plane.label(x + signed * v) == plane.label(x)  # not even feasible
            assert abs(plane.margin(x + signed * v)) > 1e-2


def test_eq_CF_direction(distance, p, tools, rng):
    """One v for all: with ``ties="first"`` every `explain(x) − x` is (b − a·x)/‖a‖* times the same
    vector, on both sides."""
    plane = tools.plane(p, rng)
    points = np.vstack([[tools.point(plane, s, rng) for s in (1, -1) for _ in range(5)]])
    steps = ox.ModelOracle(plane, ox.Mechanism(distance)).explain(points) - points
    dual_length = tools.support(distance, plane.normal)[0]
    signed = (plane.offset - points @ plane.normal) / dual_length
    directions = steps / signed[:, None]
    assert np.allclose(directions, directions[0], atol=1e-10)
    assert tools.length(distance, directions[0]) == pytest.approx(1, rel=1e-6)


def test_eq_max_dir(distance, p, tools, rng):
    """`norm.dual(a)` = max {a·v : ‖v‖ ≤ 1} by cvxpy, attained by `maximizer` and by every member of `face`."""
    for a in (*rng.normal(size=(2, p)), np.eye(p)[-1], np.ones(p)):
        value = tools.support(distance, a)[0]
        assert distance.dual(a) == pytest.approx(value, rel=1e-6)
        face = distance.face(a)
        for v in (distance.maximizer(a), *(face.sample(rng) for _ in range(3))):
            assert tools.length(distance, v) <= 1 + 1e-9
            assert a @ v == pytest.approx(value, rel=1e-6)


def test_eq_max_dir_ties(tied, p, tools, rng):
    """Where several v maximize a·v, `face` says so, and its samples differ, all with ‖v‖ ≤ 1 and a·v = ‖a‖* (cvxpy)."""
    value = tools.support(tied.norm, tied.normal)[0]
    face = tied.norm.face(tied.normal)
    samples = np.array([face.sample(rng) for _ in range(10)])
    assert not face.is_point
    assert np.ptp(samples, axis=0).max() > 1e-2
    assert np.allclose(samples[:, face.fixed], face.values[face.fixed])
    assert np.allclose(samples @ tied.normal, value, rtol=1e-6)
    assert max(tools.length(tied.norm, v) for v in samples) <= 1 + 1e-9


def test_remark_re_aiming_tied_answers(tied, p, side, tools, rng):
    """Tied answers can be re-aimed: x1 + ‖v1‖/‖v2‖·v2 and x2 + ‖v2‖/‖v1‖·v1 are optimal too, if x1 and
    x2 have one label."""
    plane = ox.Hyperplane(tied.normal, 0.7)
    oracle = ox.ModelOracle(plane, ox.Mechanism(tied.norm), ties="random", rng=3)
    one, two = tools.point(plane, side, rng), tools.point(plane, side, rng)
    v1, v2 = oracle.explain(one) - one, oracle.explain(two) - two
    size1, size2 = tools.length(tied.norm, v1), tools.length(tied.norm, v2)
    assert np.abs(v1 / size1 - v2 / size2).max() > 1e-3  # really different directions
    for x, re_aimed in ((one, one + size1 / size2 * v2), (two, two + size2 / size1 * v1)):
        assert plane.margin(re_aimed) == pytest.approx(0, abs=1e-9)
        assert tools.length(tied.norm, re_aimed - x) == pytest.approx(tools.nearest(plane, tied.norm, x)[0], rel=1e-6)


def test_remark_re_aiming_is_needed(tools):
    """Without re-aiming Algorithm 1 can see one point p + 1 times: ℓ1, a = (1,1,1,1,1), b = 10, a
    service that prefers (2,2,2,2,2)."""
    plane = ox.Hyperplane(np.ones(5), 10.0)
    oracle = Prefers(plane, ox.l1, 2 * np.ones(5))
    found = ox.extract(oracle, strategy="paper", rng=0)
    answers = found.log.explanations[found.log.explained]
    assert found.spent.explanations == 6
    assert np.linalg.matrix_rank(answers) == 1  # as they came they say next to nothing
    assert found.hyperplane.is_equivalent(plane)  # re-aimed along the first one's direction they say everything
    assert np.linalg.norm(oracle.explain(np.zeros(5)) - 2 * np.ones(5)) == 0
    assert tools.nearest(plane, ox.l1, np.zeros(5))[0] == pytest.approx(10.0, rel=1e-6)


@pytest.mark.parametrize("name", ["l1", "linf"])
def test_example_l1_linf(name, tools, rng):
    """ℓ1, ℓ∞: some optimal answer moves along a corner of the ball, and it can be made from any
    optimal answer (E10's signs; where ℓ∞ leaves a coordinate alone sgn is 0, which is no corner: either sign is)."""
    norm, still = ox.norm(name), 0
    for trial in range(30):
        normal = rng.choice([-1.0, 1.0], 4) if name == "l1" else rng.integers(-2, 3, 4).astype(float)
        if trial % 3 == 0:
            normal[0] = 3.0
        if not normal.any():
            continue
        plane = ox.Hyperplane(normal, 2.5)
        x = rng.integers(-4, 5, 4).astype(float)
        if plane.margin(x) == 0:
            continue
        oracle = ox.ModelOracle(plane, ox.Mechanism(name), ties="random", rng=trial)
        change = oracle.explain(x) - x
        size = tools.length(norm, change)
        # The example's own vertex: sgn(a_j0)·e^j0 with j0 ∈ argmax |a_j|; Σ sgn(a_i)·e^i.
        k = int(np.argmax(np.abs(normal)))
        vertex = np.sign(normal[k]) * np.eye(4)[k] if name == "l1" else np.where(normal < 0, -1.0, 1.0)
        dual_length = np.abs(normal).max() if name == "l1" else np.abs(normal).sum()
        signed = (plane.offset - normal @ x) / dual_length
        assert plane.margin(x + signed * vertex) == pytest.approx(0, abs=1e-12)
        assert tools.length(norm, signed * vertex) == pytest.approx(size, rel=1e-12)
        # Made from the tied answer, for every moved coordinate; and, under ℓ∞, from one that leaves alone what it may.
        if name == "l1":
            made = [x + np.sign(change[i]) * np.abs(change).sum() * np.eye(4)[i] for i in np.flatnonzero(change)]
        else:
            resting = np.where(normal == 0, 0.0, change)
            assert plane.margin(x + resting) == pytest.approx(0, abs=1e-12)
            made = [
                x + size * np.where(given == 0, either, np.sign(given))
                for given in (change, resting)
                for either in (1.0, -1.0)
            ]
            still += int((resting == 0).any())
        for z in made:
            assert plane.margin(z) == pytest.approx(0, abs=1e-12)
            assert tools.length(norm, z - x) == pytest.approx(size, rel=1e-12)
            moved = np.round(np.abs(z - x) / size, 9)  # a corner: one coordinate all the way, or all of them
            assert sorted(moved) == ([0.0, 0.0, 0.0, 1.0] if name == "l1" else [1.0] * 4)
    assert name == "l1" or still > 5


def test_lem_CF_basis(tools):
    """V = {v, v², …, v^p} a basis: the re-aimed answers to V are independent if v_CF ≠ 0, else those
    to v², …, v^p (exact)."""
    others = [[1, 2, 0], [0, 1, -3]], [[2, 0, 1], [1, 1, 5]], [[0, 1, 0], [0, 0, 1]]
    seen = {"i": 0, "ii": 0}
    for norm, a, rest in product(("l1", "linf"), product(range(-2, 3), repeat=3), others):
        if not any(a):
            continue
        for b in (-3, -2, -1, 0, 1, 2):
            size = max(map(abs, a)) if norm == "l1" else sum(map(abs, a))
            signs = [(u > 0) - (u < 0) for u in a]
            k = max(range(3), key=lambda i, a=a: abs(a[i]))
            v = [Fraction(s) if norm == "linf" or i == k else Fraction(0) for i, s in enumerate(signs)]
            assert tools.dot(a, v) == size
            if tools.rank([v, *rest]) < 3:
                continue
            answers = [tools.exact_answer(a, b, x, norm) for x in (v, *rest)]
            if any(answers[0]):
                assert tools.rank(answers) == 3
                seen["i"] += 1
            else:
                assert b == 0
                assert tools.rank(answers[1:]) == 2
                seen["ii"] += 1
    assert min(seen.values()) > 100


def algorithm_1(tools, a, b, p, norm):
    """alg:CF_nondiff as printed, in exact rationals: (â, b̂) up to scale, and the number of counterfactual queries."""
    queries, on_plane, v = 0, [], None
    for i in range(p):
        x = [Fraction(int(i == j)) for j in range(p)]
        answer = tools.exact_answer(a, b, x, norm)
        queries += 1
        if answer != x:
            v = [u - z for u, z in zip(answer, x, strict=True)]
            break
        on_plane.append(answer)
    if v is None:
        points = on_plane
    else:
        basis = []  # Gram–Schmidt, not normalised so that everything stays rational
        for row in (v, *([int(i == j) for j in range(p)] for i in range(p))):
            rest = [Fraction(u) for u in row]
            for other in basis:
                factor = tools.dot(rest, other) / tools.dot(other, other)
                rest = [u - factor * z for u, z in zip(rest, other, strict=True)]
            if any(rest):
                basis.append(rest)
        assert len(basis) == p
        points = [tools.exact_answer(a, b, x, norm) for x in basis]
        queries += p
    solutions = tools.null_space([[*row, -1] for row in points])
    assert len(solutions) == 1
    return solutions[0], queries


@pytest.mark.parametrize(("p", "entries"), [(1, range(-3, 4)), (2, range(-3, 4)), (3, range(-1, 3))])
@pytest.mark.parametrize("name", ["l1", "linf"])
def test_alg_CF_nondiff(p, entries, name, tools):
    """Algorithm 1 line by line in exact rationals recovers every small model; ``strategy="paper"``
    finds the same with as many CFs."""
    for count, (a, b) in enumerate(product(product(entries, repeat=p), entries)):
        if not any(a):
            continue
        solution, queries = algorithm_1(tools, a, b, p, name)
        assert tools.rank([solution, [*a, b]]) == 1
        if count % 5 == 0:
            plane = ox.Hyperplane(a, b)
            found = ox.extract(ox.ModelOracle(plane, ox.Mechanism(name)), strategy="paper", rng=count)
            assert found.hyperplane.is_equivalent(plane, 1e-8)
            assert found.spent.explanations == queries


@pytest.mark.parametrize("p", [1, 2, 5, 12])
def test_thm_CF_nondiff(cornered, p, tools, rng):
    """With e^1 off the plane Algorithm 1 spends exactly p + 1 CFs and gives an equivalent hyperplane."""
    plane = tools.plane(p, rng)
    assert abs(plane.normal[0] - plane.offset) > 1e-6
    found = ox.extract(ox.ModelOracle(plane, ox.Mechanism(cornered)), strategy="paper", orient=False, rng=5)
    assert found.spent.explanations == p + 1
    assert found.hyperplane.same_plane(plane, 1e-8)


def test_thm_CF_nondiff_with_ties(tied, p, tools):
    """Random ties do not change the count of p + 1 CFs; re-aiming then also uses labels (never more than p + 1)."""
    plane = ox.Hyperplane(tied.normal, 0.3)
    oracle = ox.ModelOracle(plane, ox.Mechanism(tied.norm), ties="random", rng=6)
    found = ox.extract(oracle, strategy="paper", rng=7)
    assert found.spent.explanations == p + 1
    assert found.spent.labels <= p + 1
    assert found.hyperplane.is_equivalent(plane, 1e-8)


@pytest.mark.parametrize("name", ["l1", "linf"])
@pytest.mark.parametrize("p", [1, 2, 5])
def test_remark_all_unit_vectors_on_the_hyperplane(name, p):
    """If every e^i is its own counterfactual they already are p independent points of the plane: p CFs are enough."""
    plane = ox.Hyperplane(2 * np.ones(p), 2.0)
    found = ox.extract(ox.ModelOracle(plane, ox.Mechanism(name)), strategy="paper")
    assert found.spent == ox.Spent(explanations=p, labels=1)
    assert found.hyperplane.is_equivalent(plane)


def test_example_CF_2D(tools):
    """2x1 − x2 = 3 under ℓ∞: (3,0) → (2,1), (−1,1) → (1,−1), and with b = 1 the two equations give a =
    (2,−1)/3 (E7), exactly."""
    a, b = (2, -1), 3
    assert tools.exact_answer(a, b, (3, 0), "linf") == [2, 1]
    assert tools.exact_answer(a, b, (-1, 1), "linf") == [1, -1]
    (solution,) = tools.null_space([[2, 1, -1], [1, -1, -1]])
    scaled = [u / solution[-1] for u in solution]
    assert scaled == [Fraction(2, 3), Fraction(-1, 3), 1]
    assert tools.rank([scaled, [*a, b]]) == 1
    oracle = ox.ModelOracle(ox.Hyperplane(a, b), ox.Mechanism("linf"))
    assert oracle.explain([3.0, 0.0]).tolist() == [2.0, 1.0]
    assert oracle.explain([-1.0, 1.0]).tolist() == [1.0, -1.0]
    assert (np.array([2.0, 1.0]) - [3.0, 0.0]).tolist() == [-1.0, 1.0]  # the direction named in the example
    found = ox.extract(oracle)
    assert found.spent == ox.Spent(explanations=2, labels=1)
    assert found.hyperplane.is_equivalent(ox.Hyperplane(a, b))
