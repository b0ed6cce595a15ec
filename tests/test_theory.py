"""Statements of docs/theory/ that no module rests on alone: checked here by themselves, against brute force."""

from __future__ import annotations

import math
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

import overexplain as ox
from overexplain.geometry.quadratic import QuadraticModel
from overexplain.knowledge.branches import checked_frame
from overexplain.knowledge.enclosures import is_frame
from overexplain.knowledge.prover.upper_bounds import Squares
from overexplain.oracles.quadratic import QuadraticOracle
from strategies import make_norm


def highest(rows: np.ndarray, c: np.ndarray) -> float:
    """max c·z over rows·z ≤ 1."""
    found = linprog(-c, A_ub=rows, b_ub=np.ones(len(rows)), bounds=(None, None))
    return math.inf if found.status == 3 else -float(found.fun)


def test_imperfect_convex_combinations_of_steps() -> None:
    """Theorem 3: valid answers at most 1 + ε times too long; every convex combination of steps is within the stated angle."""
    rng = np.random.default_rng(4)
    slack, p = 0.3, 4
    normal = np.array([1.0, -2.0, 0.5, 1.0])
    plane = ox.Hyperplane(normal, 0.7)
    unit = normal / np.linalg.norm(normal)
    worst = 0.0
    for _ in range(200):
        steps = []
        for x in rng.normal(size=(3, p)) * 2:
            gap = abs(plane.margin(x)) / np.linalg.norm(normal)
            sideways = rng.normal(size=p)
            sideways -= sideways @ unit * unit
            reach = gap * math.sqrt((1 + slack) ** 2 - 1) * rng.uniform(0.9, 1) / np.linalg.norm(sideways)
            step = -plane.label(x) * gap * unit + reach * sideways
            assert plane.label(x + 1.0001 * step) != plane.label(x)
            steps.append(-plane.label(x) * step / np.linalg.norm(step))
        mixed = rng.dirichlet(np.ones(3)) @ np.array(steps)
        stated = 1 / ((1 + slack) * np.linalg.norm(mixed))
        assert stated <= 1
        assert unit @ mixed / np.linalg.norm(mixed) >= stated - 1e-12
        worst = max(worst, stated)
    assert worst > 0.9


def test_labels_no_parallelotope_in_a_ball_is_larger_than_the_cube() -> None:
    """Theorem 5: half-edges whose corners all lie in the unit ball; the cube reaches the bound."""
    rng = np.random.default_rng(5)
    for n in (2, 3, 5):
        signs = np.array(np.meshgrid(*[[-1, 1]] * n)).reshape(n, -1).T
        most = (2 / math.sqrt(n)) ** n
        for edges in [np.eye(n), *rng.normal(size=(100, n, n))]:
            inside = edges / np.linalg.norm(signs @ edges, axis=1).max()
            volume = 2**n * abs(np.linalg.det(inside))
            assert volume <= most * (1 + 1e-12)
            if np.array_equal(edges, np.eye(n)):
                assert volume == pytest.approx(most)


def test_labels_a_slab_without_questions_holds_tilted_planes() -> None:
    """Theorem 6: T·tan θ below half of the slab's width; both tilted planes label all questions in the ball alike."""
    rng = np.random.default_rng(6)
    radius, width, middle = 2.0, 0.3, 0.4
    normal, other = np.eye(3)[0], np.eye(3)[1]
    questions = rng.normal(size=(4000, 3))
    questions *= radius * rng.uniform(size=(4000, 1)) ** (1 / 3) / np.linalg.norm(questions, axis=1, keepdims=True)
    questions = questions[np.abs(questions[:, 0] - middle) > width / 2]
    said = ox.Hyperplane(normal, middle).labels(questions)
    most = math.atan(width / 2 / radius)
    for angle, is_alike in ((0.999 * most, True), (3 * most, False)):
        for turn in (angle, -angle):
            tilted = math.cos(turn) * normal + math.sin(turn) * other
            plane = ox.Hyperplane(tilted, middle * math.cos(turn))
            assert np.array_equal(plane.labels(questions), said) == is_alike


def test_regions_the_shadow_of_the_other_class() -> None:
    """Proposition 1: beyond a certain point, as seen from a certain one of the other class, nothing is open."""
    rng = np.random.default_rng(7)
    log = ox.QueryLog()
    points = rng.normal(size=(12, 2))
    log.add_label(points, ox.Hyperplane([1.0, 1.0], 0.2).labels(points))
    known = ox.Knowledge(log)
    tried = rng.normal(size=(60, 2)) * 1.5
    codes = known.certify(tried).codes
    yes, no = tried[codes == ox.YES][:5], tried[codes == ox.NO][:5]
    assert len(yes) == len(no) == 5
    for ahead, behind, code in ((yes, no, ox.YES), (no, yes, ox.NO)):
        shadows = np.array([x + stretch * (x - u) for x in ahead for u in behind for stretch in (0.1, 1.0, 20.0)])
        assert (known.certify(shadows).codes == code).all()


def least(problem: cp.Problem) -> float:
    """The value of a convex program, with the accuracy of an interior-point method."""
    problem.solve(solver="CLARABEL")
    return float(problem.value)


def rounded_answers(
    norm: ox.Norm, rng: np.random.Generator, count: int
) -> tuple[list[tuple[np.ndarray, float]], np.ndarray]:
    """Facts (L, r) of rounded answers, L·(a, b) ≥ r·t: side, plane and steepest; and the model that answered."""
    normal, offset, tolerance = np.array([1.0, -0.7, 0.4]), 0.3, 0.05
    facts: list[tuple[np.ndarray, float]] = []
    for x in rng.normal(size=(count, 3)) * 2:
        side = 1 if normal @ x >= offset else -1
        step = -side * abs(normal @ x - offset) / float(norm.dual(normal)) * np.asarray(norm.maximizer(normal))
        noise = rng.normal(size=3)
        answer = x + step + 0.5 * tolerance * noise / float(norm(noise))
        w = answer - x
        length = float(norm(w))
        steep = math.sqrt(length**2 - tolerance**2) if norm == ox.l2 else length - 2 * tolerance
        facts += [
            (side * np.append(x, -1.0), length - tolerance),
            (np.append(answer, -1.0), -tolerance),
            (-np.append(answer, -1.0), -tolerance),
            (-side * np.append(w, 0.0), steep),
        ]
    return facts, np.append(normal, offset)


@pytest.mark.parametrize("name", ["l2", "lp:3"])
def test_regions_duality_at_slater_points(name: str) -> None:
    """Theorem 7: at t = 1 the least q·z over the cone of the facts is the largest η that weights prove, and both are reached."""
    rng = np.random.default_rng(8)
    norm = ox.norm(name) if name == "l2" else ox.Lp(3.0)
    primal, dual = (2, 2) if name == "l2" else (3, 1.5)
    facts, model = rounded_answers(norm, rng, 2)
    left, right = np.array([row for row, _ in facts]), np.array([r for _, r in facts])
    # Slater: the model that answered with a t that is a little too long keeps all facts.
    t = float(norm.dual(model[:3])) * (1 + 1e-9)
    assert (left @ model >= right * t).all()
    signs = set()
    for point in rng.normal(size=(12, 3)) * 2:
        for q in (np.append(point, -1.0), -np.append(point, -1.0)):
            z, weights, d = cp.Variable(4), cp.Variable(len(facts), nonneg=True), cp.Variable(3)
            lowest = least(cp.Problem(cp.Minimize(q @ z), [left @ z >= right, cp.pnorm(z[:3], dual) <= 1]))
            beta = right @ weights - cp.pnorm(d, primal)
            proved = least(cp.Problem(cp.Maximize(beta), [left.T @ weights + cp.hstack([d, 0.0]) == q]))
            assert proved == pytest.approx(lowest, abs=2e-5)
            signs.add(math.copysign(1.0, lowest) if abs(lowest) > 1e-3 else 0.0)
    assert {1.0, -1.0} <= signs


def test_regions_no_certificate_without_slater() -> None:
    """After Theorem 7: ℓ2, exact, 0 ↦ (1, 0), a No; (1, 1) is on the plane of the one model, and no weights say so, only nearly."""
    # Weights k/2 on side (b ≥ t) and on steepest (a_1 ≥ t), μ of either sign on the plane (a_1 − b = 0), and a Hölder fact for d.
    # The coefficients of (a_1, a_2, b) fix μ and d, so that only k is free, however it is shared out.
    side, plane, steepest = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, -1.0]), np.array([1.0, 0.0, 0.0])
    lacking = []
    for k in (0.0, 1.0, 10.0, 1e3, 1e5):
        d = np.array([-k, 1.0])
        assert np.allclose(k / 2 * (side + steepest) + (1 + k / 2) * plane + np.append(d, 0.0), [1.0, 1.0, -1.0])
        lacking.append(k - math.hypot(*d))
    assert all(short < 0 for short in lacking)
    assert lacking == sorted(lacking)
    assert lacking[-1] > -1e-5
    log = ox.QueryLog(mechanism=ox.Mechanism("l2", tolerance=0.0))
    log.add_explanation([0.0, 0.0], [1.0, 0.0], label=ox.NO)
    assert ox.Knowledge(log).certify([[1.0, 1.0]]).codes.tolist() == [ox.Verdict.BOUNDARY]  # by the fact ray


def keeps_line(a: int, b: int, x: int, answer: int, is_optimal: bool) -> bool:
    """Definition of a consistent model for an unlabelled plain exact row on the line, or for a merely valid one; a = ±1."""
    y = 1 if a * x >= b else -1
    across = -y * (a * answer - b) >= 0
    return across and (not is_optimal or abs(answer - x) == abs(a * x - b))


def test_regions_the_swap_and_its_exceptions() -> None:
    """Proposition 5 of consistent.md: (−a, −b) is consistent with plain optimal answers if (a, b) is; not with valid ones."""
    models = [(a, b) for a in (1, -1) for b in range(-4, 5)]
    lost = 0
    for x in range(-4, 5):
        for answer in range(-4, 5):
            for a, b in models:
                assert keeps_line(a, b, x, answer, True) == keeps_line(-a, -b, x, answer, True)
                lost += keeps_line(a, b, x, answer, False) != keeps_line(-a, -b, x, answer, False)
    assert lost > 0
    rows = [(0, 1, False), (5, 0, True)]
    assert [m for m in models if all(keeps_line(*m, *row) for row in rows)] == [(-1, 0)]


@pytest.mark.parametrize("name", ["l1", "l2", "linf", "mahalanobis", "group"])
def test_tolerance_flips_for_valid_and_short_answers(name: str) -> None:
    """Theorem 1: −y(a·x' − b) ≥ −τt for merely valid answers and where the step is no longer than the tolerance; it is sharp."""
    rng = np.random.default_rng(9)
    norm, tolerance = make_norm(name, 3, spread=0.5), 0.4
    sharpest, short = math.inf, 0
    for _ in range(150):
        model = ox.Hyperplane(rng.normal(size=3), rng.normal())
        t = float(norm.dual(model.normal))
        x = rng.normal(size=3)
        x += rng.uniform(-0.2, 0.2) * np.asarray(norm.maximizer(model.normal)) - model.margin(x) * model.normal / (
            model.normal @ model.normal
        )
        side = model.label(x)
        nearest = x - side * abs(model.margin(x)) / t * np.asarray(norm.maximizer(model.normal))
        back = side * np.asarray(norm.maximizer(model.normal))  # the unit step that undoes most of an answer
        for share in (1.0, rng.uniform()):
            served = nearest + share * tolerance * back  # within the tolerance of an optimum
            value = -side * model.margin(served) / t
            assert value >= -tolerance - 1e-9
            sharpest = min(sharpest, value)
            short += float(norm(served - x)) <= tolerance
        # An exact answer that is not the question puts the question strictly on its side, under every distance.
        assert (float(norm(nearest - x)) > 0) == (side * model.margin(x) > 0)
    assert sharpest == pytest.approx(-tolerance)
    assert short > 20


@pytest.mark.parametrize("name", ["l1", "linf"])
def test_tolerance_entries_under_l1_and_linf(name: str) -> None:
    """Theorem 2, in whole numbers of ties: what an answer within τ of an optimal step says about the entries of a."""
    rng = np.random.default_rng(10)
    said = 0
    for _ in range(400):
        weights = rng.choice([0.5, 1.0, 2.0], size=4)
        norm = ox.Weighted(ox.norm(name), weights)
        normal = rng.choice([-2.0, -1.0, 0.0, 1.0, 2.0], size=4)
        if not normal.any():
            continue
        side, tolerance = rng.choice([-1, 1]), 0.1
        optimal = -side * rng.uniform(0.1, 2) * norm.face(normal).sample(rng)
        noise = rng.normal(size=4)
        w = optimal + tolerance * noise / float(norm(noise))
        t, length = float(norm.dual(normal)), float(norm(w))
        for i in range(4):
            if name == "l1" and weights[i] * abs(w[i]) > tolerance:
                assert -side * normal[i] == pytest.approx(t * weights[i] * np.sign(w[i]))
                said += 1
            elif name == "linf" and weights[i] * abs(w[i]) < length - 2 * tolerance:
                assert normal[i] == 0
                said += 1
            elif name == "linf" and weights[i] * abs(w[i]) > tolerance:
                assert -side * normal[i] * np.sign(w[i]) >= 0
    assert said > 50


@pytest.mark.parametrize("name", ["l1", "l2", "linf", "mahalanobis"])
def test_tolerance_linear_rows_and_one_product(name: str) -> None:
    """Corollary 3 and Theorem 4: the slab without t, and the bound on a·x − b for every κ; both signs, every point."""
    rng = np.random.default_rng(11)
    norm, tolerance = make_norm(name, 3, spread=0.5), 0.05
    for _ in range(60):
        model = ox.Hyperplane(rng.normal(size=3), rng.normal())
        x, t = rng.normal(size=3) * 2, float(norm.dual(model.normal))
        side = model.label(x)
        optimal = -side * abs(model.margin(x)) / t * np.asarray(norm.maximizer(model.normal))
        noise = rng.normal(size=3)
        w = optimal + tolerance * noise / float(norm(noise))
        answer, steep = x + w, float(norm(w)) - 2 * tolerance
        if steep <= 0:
            continue
        assert abs(model.margin(answer)) <= tolerance * (-side * model.normal @ w) / steep + 1e-9
        for other in rng.normal(size=(5, 3)) * 3:
            for sign in (1, -1):
                for kappa in (0.0, 0.3, 2.0, 50.0):
                    reach = float(norm(sign * (other - answer) + kappa * side * w))
                    bound = (kappa * steep - reach - tolerance) * t
                    assert sign * model.margin(other) >= bound - 1e-9 * (1 + kappa)


def test_tolerance_what_is_convex() -> None:
    """Proposition 5, in whole numbers: neither the facts of ℓ2 nor the models of ℓ1 that are consistent make a convex set."""

    def keeps_facts(a: tuple[int, int], b: int) -> bool:
        """ℓ2, τ = 1, 0 ↦ (10, 0), a No; squares instead of roots."""
        squared, gap = a[0] ** 2 + a[1] ** 2, abs(10 * a[0] - b)
        return b * b >= 81 * squared and gap * gap <= squared and a[0] > 0 and 100 * a[0] ** 2 >= 99 * squared

    assert [keeps_facts(a, 4391) for a in ((399, 40), (399, -40), (399, 0))] == [True, True, False]

    def is_consistent(a: tuple[int, int], b: int) -> bool:
        """ℓ1, τ = 1, 0 ↦ (10, 1), a No: some optimal step, on a grid that has the best one, is within 1."""
        longest = max(map(abs, a))
        reach, free = Fraction(b, longest), [abs(entry) == longest for entry in a]
        steps = [(u, reach - u) for u in (Fraction(k, 4) for k in range(int(4 * reach) + 1))]
        signs = [1 if entry > 0 else -1 for entry in a]
        optimal = [(signs[0] * u, signs[1] * v) for u, v in steps if (free[0] or u == 0) and (free[1] or v == 0)]
        return b > 0 and any(abs(u - 10) + abs(v - 1) <= 1 for u, v in optimal)

    assert [is_consistent(*m) for m in (((1, -1), 10), ((1, 1), 12), ((2, 0), 22))] == [True, True, False]


def test_tolerance_l2_is_a_convex_cone() -> None:
    """Proposition 6 against the optimal step itself, and middles of consistent models of two rows."""
    rng = np.random.default_rng(12)
    rows = [(np.zeros(2), np.array([3.0, 0.5]), ox.NO, 0.8), (np.array([5.0, 1.0]), np.array([3.5, 1.0]), ox.YES, 1.2)]

    def by_definition(a: np.ndarray, b: float) -> bool:
        for x, answer, side, tolerance in rows:
            margin = side * (a @ x - b)
            optimal = x - side * margin * a / (a @ a)
            if margin < 0 or np.linalg.norm(optimal - answer) > tolerance:
                return False
        return True

    def by_the_cone(a: np.ndarray, b: float) -> bool:
        for x, answer, side, tolerance in rows:
            margin, w = side * (a @ x - b), answer - x
            if margin < 0 or margin * (-2 * side * a @ w - margin) < (w @ w - tolerance**2) * (a @ a):
                return False
        return True

    drawn = [(np.array([math.cos(t), math.sin(t)]), b) for t, b in rng.uniform((-2, 0), (2, 6), size=(6000, 2))]
    assert all(by_definition(*m) == by_the_cone(*m) for m in drawn)
    fitting = [m for m in drawn if by_definition(*m)]
    assert 20 < len(fitting) < 3000
    for i, j in rng.integers(0, len(fitting), size=(500, 2)):
        (a, b), (c, d), share = fitting[i], fitting[j], rng.uniform(0.1, 10)
        assert by_the_cone(a + share * c, b + share * d)


def test_imperfect_slices_without_a_boundary() -> None:
    """Theorem 7 needs a_c ≠ 0 and room: else models that are no shifts of each other decide alike at every valid input."""
    levels, amounts = np.eye(2), np.linspace(-1, 1, 41)
    inputs = np.array([[amount, *level] for amount in amounts for level in levels])
    constant = [ox.Hyperplane([0.0, 1.0, -1.0], 0.5), ox.Hyperplane([0.0, 2.0, -1.0], 0.5)]  # a_c = 0
    boxed = [
        ox.Hyperplane([1.0, 0.0, 5.0], 0.3),
        ox.Hyperplane([1.0, 0.0, 9.0], 0.3),
    ]  # |x_c| ≤ 1: no boundary at level 2
    for one, two in (constant, boxed):
        assert np.array_equal(one.labels(inputs), two.labels(inputs))
        difference = np.append(two.normal - one.normal, two.offset - one.offset)
        assert np.linalg.matrix_rank(np.array([difference, [0, 1, 1, 1]])) == 2  # not (μ·1_g, μ)
    far = np.array([[-6.0, 0.0, 1.0]])  # unbounded, the second pair is told apart
    assert boxed[0].labels(far).tolist() != boxed[1].labels(far).tolist()


def test_multiclass_models_that_decide_alike() -> None:
    """Proposition 1: one feature and three classes, and a class that never wins: other scores, the same decisions."""
    line = [ox.ArgmaxModel([[0.0], [1.0], [slope]], [0.0, 0.0, 2 - 2 * slope]) for slope in (3.0, 2.0)]
    points = np.linspace(-5, 5, 4000)[:, None]  # no ties among them
    assert np.array_equal(line[0].labels(points), line[1].labels(points))
    assert len(set(line[0].labels(points).tolist())) == 3
    assert line[0].distance_to(line[1]) > 0.1
    found = ox.extract_multiclass(ox.ArgmaxOracle(line[0], "l2"), rng=0)
    assert found.spent.explanations == 2  # there are two boundaries; K = 3 would be needed for the scores
    assert not found.exact
    assert np.array_equal(found.model.labels(points), line[0].labels(points))
    weights = np.array([[1.0, 0.0], [-0.5, 0.8], [-0.5, -0.8], [0.0, 0.0]])
    rng = np.random.default_rng(14)
    points = rng.normal(size=(20_000, 2)) * np.exp(3 * rng.normal(size=(20_000, 1)))
    first = ox.ArgmaxModel(weights, [0.0, 0.0, 0.0, -1.0])
    for _ in range(5):  # an open set: whatever is near has the same losing class
        nudge = 0.1 * rng.uniform(-1, 1, size=(4, 3))
        near = ox.ArgmaxModel(weights + nudge[:, :2], np.array([0.0, 0.0, 0.0, -1.0]) + nudge[:, 2])
        assert 3 not in near.labels(points)
        last = np.zeros((4, 3))
        last[3] = nudge[3]
        other = ox.ArgmaxModel(weights + last[:, :2], np.array([0.0, 0.0, 0.0, -1.0]) + last[:, 2])
        assert np.array_equal(other.labels(points), first.labels(points))
        assert other.distance_to(first) > 1e-3


def pencil(model: QuadraticModel, normal: np.ndarray, offset: float, t: float) -> QuadraticModel:
    """q − t·g² with g = normal·x − offset."""
    return QuadraticModel(
        model.matrix - t * np.outer(normal, normal),
        model.linear + 2 * t * offset * normal,
        model.constant - t * offset**2,
    )


def test_quadratic_p_answers_from_both_sides() -> None:
    """Theorem 2 (ii): for questions of both labels at random some other member of the pencil gives the same answers."""
    rng = np.random.default_rng(15)
    model = QuadraticModel(np.diag([1.0, 0.5, -1.0]), np.array([0.2, -0.4, 0.1]), -1.0)
    for _ in range(5):
        X = rng.normal(size=(200, 3)) * 2
        labels = model.labels(X)
        X = np.vstack([X[labels == 1][:2], X[labels == -1][:1]])
        Z = QuadraticOracle(model).explain(X)
        normal = np.linalg.solve(Z, np.ones(3))
        for t in (1e-3, -1e-3):
            other = pencil(model, normal / np.linalg.norm(normal), 1 / float(np.linalg.norm(normal)), t)
            assert other.distance_to(model) > 1e-5
            assert QuadraticOracle(other).explain(X) == pytest.approx(Z, abs=1e-7)
            assert np.array_equal(other.labels(X), model.labels(X))


def test_quadratic_two_tied_answers_that_are_enough() -> None:
    """After Theorem 2: x² − y² ≥ 1, (4, 0) and (0, 1). Any other model with the two answers has a nearer point for one."""
    model = QuadraticModel(np.diag([1.0, -1.0]), np.zeros(2), -1.0)
    X = np.array([[4.0, 0.0], [0.0, 1.0]])
    Z = np.array([[2.0, math.sqrt(3)], [math.sqrt(5) / 2, 0.5]])
    twins = Z * [[1, -1], [-1, 1]]
    assert model.labels(X).tolist() == [1, -1]
    given = QuadraticOracle(model).explain(X)
    assert np.linalg.norm(given - X, axis=1) == pytest.approx(np.linalg.norm(Z - X, axis=1))
    assert np.linalg.norm(twins - X, axis=1) == pytest.approx(np.linalg.norm(Z - X, axis=1))
    normal = np.linalg.solve(Z, np.ones(2))
    assert (np.abs(twins @ normal - 1) > 0.1).all()  # g is not 0 at the twins
    # The two answers leave the pencil alone: their equations have two solutions, q and g².
    equations = []
    for x, z in zip(X, Z, strict=True):
        d = (z - x) / np.linalg.norm(z - x)
        value = [z[0] ** 2, z[1] ** 2, z[0] * z[1], z[0], z[1], 1.0]
        slope = d[1] * np.array([2 * z[0], 0, z[1], 1, 0, 0]) - d[0] * np.array([0, 2 * z[1], z[0], 0, 1, 0])
        equations += [value, slope]
    assert np.linalg.matrix_rank(np.array(equations)) == 4
    for t in (1e-6, 1e-2, 1.0, 30.0):
        assert pencil(model, normal, 1.0, t).value(twins[0]) < -1e-8  # a No where (4, 0) must have none
        assert pencil(model, normal, 1.0, -t).value(twins[1]) > 1e-8  # a Yes where (0, 1) must have none
        assert abs(pencil(model, normal, 1.0, t).value(Z[0])) < 1e-12


@pytest.mark.parametrize("name", ["l1", "l2", "linf", "mahalanobis", "group"])
def test_extraction_stepping_back(name: str) -> None:
    """Lemma 2: d behind the question the distance is 2d, and everything within d of that point is on the question's side."""
    rng = np.random.default_rng(16)
    norm = make_norm(name, 3, spread=0.5)
    for radius in (0.0, 0.4):
        terms = ox.Mechanism(norm, robustness="l2", radius=radius) if radius else ox.Mechanism(norm)
        for _ in range(20):
            service = ox.ModelOracle(ox.Hyperplane(rng.normal(size=3), rng.normal()), terms)
            x = rng.normal(size=3)
            w = service.explain(x) - x
            d = float(norm(w))
            c = x - w
            assert float(norm(service.explain(c) - c)) == pytest.approx(2 * d)
            around = rng.normal(size=(50, 3))
            around *= (0.999 * d / np.asarray(norm(around)))[:, None]
            assert (service.classify(c + around) == service.classify(x)).all()


def test_labels_one_label_one_bit() -> None:
    """Theorem 1: Yes at z + R(q_i − τu) if and only if r_i ≥ τ + ξ/R."""
    rng = np.random.default_rng(19)
    for _ in range(200):
        frame = np.linalg.qr(rng.normal(size=(4, 4)))[0]
        r, reach, guess, shift = rng.normal(size=3), rng.uniform(0.5, 50), rng.normal(), rng.normal()
        normal = frame[0] + r @ frame[1:]
        z = rng.normal(size=4)
        plane = ox.Hyperplane(normal, float(normal @ (z + shift * frame[0])))
        i = int(rng.integers(3))
        gap = r[i] - guess - shift / reach
        if abs(gap) > 1e-9:
            assert (plane.label(z + reach * (frame[1 + i] - guess * frame[0])) == ox.YES) == (gap > 0)


@pytest.mark.parametrize("kind", ["l2", "weighted l2", "mahalanobis"])
@pytest.mark.parametrize("varies", [1, 2, 3])
def test_robust_regions_an_arc_loses_only_along_what_varies(kind: str, varies: int) -> None:
    """Propositions 5″ and 5‴: a frame of p vectors, of which all but d are fixed; boxes in those d are all that an arc loses by."""
    rng, p = np.random.default_rng(varies), 7
    norm = make_norm(kind, p, 2, spread=0.5)
    outer = np.linalg.qr(rng.normal(size=(p, varies + 1)))[0]  # a = outer·u, and u_0 = 1 where t = 1
    slice_ = np.eye(varies + 1)[:, 1:]
    shape = Squares(norm, 0, outer, slice_)
    assert shape.varying == varies
    assert is_frame(norm.spec, shape.frame)
    assert not is_frame(norm.spec, shape.frame[1:])
    fixed = shape.matrix[varies:] @ outer[:, 0]
    there = shape.matrix[:varies] @ outer[:, 0] + shape.matrix[:varies] @ outer @ slice_ @ rng.normal(size=varies)
    for width in (1.0, 0.1, 0.01):
        low, high = (np.append(there + side * width / 2, fixed) for side in (-1, 1))
        lost = []
        for _ in range(200):
            y = there + rng.uniform(-0.5, 0.5, varies) * width
            a = outer[:, 0] + outer @ slice_ @ np.linalg.solve(
                shape.matrix[:varies] @ outer @ slice_, y - shape.matrix[:varies] @ outer[:, 0]
            )
            assert shape.matrix @ a == pytest.approx(np.append(y, fixed), abs=1e-8)
            s = float(norm.dual(a))
            at = s * rng.choice([1.0, 1.0, 0.5, 2.0])
            (bound,) = shape.bounds(low, high, [at])
            rest = float(bound.left @ a) - bound.delta * s + bound.gamma * 1.0
            assert rest >= -1e-9
            lost.append(rest - (s - at) ** 2)
        # s² is Σ y² to one part in 2^29.
        assert max(lost) <= varies * width**2 / 4 + 1e-7
        assert max(lost) >= 0.3 * varies * width**2 / 4


def test_robust_regions_frames_of_many_weights_have_short_numbers() -> None:
    """A hundred weights, whose reciprocals have a common denominator of thousands of digits."""
    rng, p = np.random.default_rng(3), 100
    for spread in (0.1, 6.0):
        norm = ox.Weighted(ox.l2, 10 ** rng.uniform(-spread, spread, p))
        outer = np.linalg.qr(rng.normal(size=(p, 3)))[0]
        frame = checked_frame(Squares(norm, 0, outer, np.eye(3)[:, 1:]).frame, p)
        assert max(v.denominator.bit_length() for vector in frame for v in vector) < 200
        assert is_frame(norm.spec, frame)
