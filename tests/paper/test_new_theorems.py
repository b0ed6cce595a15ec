"""Theorems A to D, which go beyond the paper: how few answers rebuild the model, and why no method does with fewer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import overexplain as ox
from overexplain.geometry.norm import Face
from overexplain.geometry.norms import Facets, GroupMax


def span_dimension(norm, w):
    """dim span K(w), K(w) = {a : a·w = ‖w‖‖a‖*}, from the shape of the unit ball at w; independent of
    the library's cones."""
    p = len(w)
    match norm:
        case ox.Weighted():
            return span_dimension(norm.norm, norm.weights * w)
        case ox.GroupNorm():
            moved = [g for g in norm.groups if np.abs(w[list(g)]).max() > 1e-9]
            return p - sum(map(len, moved)) + 1
        case GroupMax():
            lengths = np.array([np.linalg.norm(w[list(g)]) for g in norm.groups])
            return int((lengths > lengths.max() * (1 - 1e-9)).sum())
        case Facets():
            reach = norm.facets @ w
            return int(np.linalg.matrix_rank(norm.facets[reach > reach.max() * (1 - 1e-9)], tol=1e-9))
        case ox.Polyhedral():
            if p == 1 or p > 6:  # a generic corner; Qhull is for few dimensions
                return p
            sides = ConvexHull(norm.vertices).equations
            reach = sides[:, :-1] @ w / -sides[:, -1]
            return int(np.linalg.matrix_rank(sides[reach > reach.max() * (1 - 1e-9), :-1], tol=1e-9))
        case ox.Lp() if norm.q == 1:
            return p - int((np.abs(w) > 1e-9).sum()) + 1
        case ox.Lp() if norm.q == np.inf:
            return int((np.abs(w) > np.abs(w).max() * (1 - 1e-9)).sum())
    assert norm.is_smooth
    return 1


def mechanism_of(distance, radius):
    return ox.Mechanism(distance, robustness="l2", radius=radius) if radius else ox.Mechanism(distance)


# --- one number and a cone --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [0.0, 0.6])
def test_theorem_A_distance_is_affine_on_a_side(distance, p, radius, side, tools, rng):
    """D(x) = (|b − a·x| + ρ‖a‖*_N2)/‖a‖* for the cost of `explain(x)` (cvxpy), and D(x0 − d0·v) = 2·d0
    without a question."""
    plane = tools.plane(p, rng)
    oracle = ox.ModelOracle(plane, mechanism_of(distance, radius))
    x = tools.point(plane, side, rng)
    step = oracle.explain(x) - x
    cost = tools.length(distance, step)
    dual_length, ball = tools.support(distance, plane.normal)[0], tools.support(ox.l2, plane.normal)[0]
    assert cost == pytest.approx((abs(plane.margin(x)) + radius * ball) / dual_length, rel=1e-6)
    centre = x - step  # one step back: D(c) = 2·d0
    assert tools.nearest(plane, distance, centre, ox.l2, radius)[0] == pytest.approx(2 * cost, rel=1e-6)
    near = centre + (1 - 1e-9) * cost * tools.ball(distance, p, rng, plane.normal, n=50)
    assert (plane.labels(near) == side).all()  # everything within d0 of c is on the same side


def test_theorem_A_ties_do_not_change_the_distance(tied, p, side, tools, rng):
    """D(x) is the same whichever optimal point a ``ties="random"`` service picks, and D is affine
    along any line of one side."""
    plane = ox.Hyperplane(tied.normal, 0.4)
    oracle = ox.ModelOracle(plane, mechanism_of(tied.norm, 0.3), ties="random", rng=8)
    x, z = tools.point(plane, side, rng), tools.point(plane, side, rng)
    costs = [[tools.length(tied.norm, oracle.explain(y) - y) for _ in range(5)] for y in (x, (x + z) / 2, z)]
    assert np.ptp(costs, axis=1).max() < 1e-9
    ends = np.mean(costs, axis=1)
    assert ends[1] == pytest.approx((ends[0] + ends[2]) / 2, rel=1e-9)


def test_theorem_A_normal_cone(distance, p, tools, rng):
    """`normal_cone(w)` is the affine hull of ∂‖·‖(w): members, checked by cvxpy, lie in values + span,
    and they fill it."""
    for w in (distance.maximizer(tools.plane(p, rng).normal), rng.normal(size=p)):
        cone = distance.normal_cone(w)
        face = distance.dual.face(w)
        if isinstance(distance, Facets):  # w is the corner that a solver found: its sides tie up to rounding only
            reach = distance.facets @ w
            face = Face.of_simplex(distance.facets[reach > reach.max() * (1 - 1e-9)])
        members = np.array([face.sample(rng) for _ in range(3 * p)])
        for a in members[:2]:
            assert a @ w == pytest.approx(tools.length(distance, w), rel=1e-9)
            assert tools.support(distance, a)[0] <= 1 + 1e-6
        directions = np.array([cone.direction(k) for k in range(cone.size)]).reshape(-1, p)
        inside = [np.linalg.lstsq(directions.T, a - cone.values, rcond=None)[0] @ directions for a in members]
        assert np.allclose(np.array(inside) + cone.values, members, atol=1e-7)
        assert cone.dimension == span_dimension(distance, w) == np.linalg.matrix_rank(members, tol=1e-6)


# --- Theorems A and B: the count --------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2, 5, 12])
@pytest.mark.parametrize("radius", [0.0, 0.6])
def test_theorem_A_dim_K_answers_and_no_label(distance, p, radius, tools, rng):
    """`extract` spends dim span K(w) answers and 0 labels, robust or not, and is right within its own
    bounds; one label orients."""
    plane = tools.plane(p, rng)
    oracle = ox.ModelOracle(plane, mechanism_of(distance, radius))
    found = ox.extract(oracle, orient=False)
    first = oracle.explain(np.zeros(p))
    expected = span_dimension(distance, first)
    assert found.spent == ox.Spent(explanations=expected, labels=0)
    assert found.hyperplane.same_plane(plane)
    assert found.exact
    assert not found.oriented
    angle = min(found.hyperplane.angle_to(plane), np.pi - found.hyperplane.angle_to(plane))
    assert angle <= found.error_bound < 1e-6
    scaled = abs(plane.offset) / distance.dual(plane.normal)
    assert abs(abs(found.hyperplane.offset) - scaled) <= found.offset_bound < 1e-6
    oriented = ox.extract(oracle)
    assert oriented.spent == ox.Spent(explanations=expected, labels=1)
    assert oriented.hyperplane.is_equivalent(plane)


@pytest.mark.parametrize("radius", [0.0, 0.6])
def test_theorem_A_ties_reveal_more(tied, p, radius):
    """A tied answer inside a face of the ball fixes more of a: dim span K(w) ≤ p counts the answers, for every tie."""
    plane = ox.Hyperplane(tied.normal, 0.4)
    counts = set()
    for seed in range(4):
        oracle = ox.ModelOracle(plane, mechanism_of(tied.norm, radius), ties="random", rng=seed)
        found = ox.extract(oracle, orient=False)
        expected = span_dimension(tied.norm, found.log.explanations[0])
        assert found.spent == ox.Spent(explanations=expected, labels=0)
        assert found.hyperplane.same_plane(plane)
        counts.add(expected)
    assert max(counts) <= p
    first = ox.extract(ox.ModelOracle(plane, mechanism_of(tied.norm, radius)), orient=False)
    assert first.hyperplane.same_plane(plane)
    assert min(counts) <= first.spent.explanations <= p


@pytest.mark.parametrize("p", [1, 2, 5])
def test_theorem_A_start_on_the_plane(distance, p, tools, rng):
    """If the start lies on the plane (b = 0) it replaces a later question: dim span K answers, but 2
    where that is 1 and p > 1."""
    plane = tools.plane(p, rng, offset=0.0)
    found = ox.extract(ox.ModelOracle(plane, ox.Mechanism(distance)), orient=False, rng=2)
    assert found.hyperplane.same_plane(plane)
    assert np.array_equal(found.log.explanations[0], np.zeros(p))
    assert found.spent.labels == 0
    if p == 1:
        assert found.spent.explanations == 1
        return
    second = found.log.explanations[1] - found.log.points[1]
    assert found.spent.explanations == max(2, span_dimension(distance, second))


def another_model(plane, oracle, mechanism, questions, secret=False):
    """A different model (and, if `secret`, radius) with the same answers: a step along the curve of solutions.

    Unknowns: a in the span of K(w) at a·v = 1, b, and ρ if secret. Equations: a·v = 1, and one per answer.
    """
    norm, radius = mechanism.distance, mechanism.radius
    v = norm.maximizer(plane.normal)
    cone = norm.normal_cone(v)
    scale = plane.normal @ v
    theta = cone.along(plane.normal / scale - cone.values)
    labels = oracle.classify(questions)
    signed = (oracle.explain(questions) - questions) @ plane.normal / scale

    def ball(a):
        return 0.0 if mechanism.robustness is None else mechanism.robustness.dual(a)

    def residual(z):
        a, b, rho = cone.combine(z[: cone.size]), z[cone.size], z[-1] if secret else radius
        return np.append(b - questions @ a - labels * rho * ball(a) - signed, a @ v - 1)

    def jacobian(z):
        h = 1e-6
        return np.array([(residual(z + h * e) - residual(z - h * e)) / (2 * h) for e in np.eye(len(z))]).T

    z0 = np.concatenate([theta, [plane.offset / scale], [radius] if secret else []])
    assert np.abs(residual(z0)).max() < 1e-12
    free = np.linalg.svd(jacobian(z0))[2][-1]
    assert np.abs(jacobian(z0) @ free).max() < 1e-7  # one direction at least is open
    z = z0 + 0.004 * free / np.abs(free).max()  # small: a must stay inside K(w)
    for _ in range(8):
        z = z - np.linalg.lstsq(jacobian(z), residual(z), rcond=None)[0]
    return ox.Hyperplane(cone.combine(z[: cone.size]), z[cone.size]), float(z[-1]) if secret else radius


@pytest.mark.parametrize("radius", [0.0, 0.6])
def test_theorem_A_is_optimal(cornered, p, radius, tools, rng):
    """No method does with fewer: to any dim span K − 1 questions, put where you like, another model
    gives the same answers and labels."""
    mechanism = mechanism_of(cornered, radius)
    plane = tools.plane(p, rng)
    oracle = ox.ModelOracle(plane, mechanism)
    dimension = span_dimension(cornered, cornered.maximizer(plane.normal))
    assert dimension > 1
    questions = np.array([tools.point(plane, 1 if i % 2 else -1, rng) for i in range(dimension - 1)])
    twin, _ = another_model(plane, oracle, mechanism, questions)
    service = ox.ModelOracle(twin, mechanism)
    assert not plane.same_plane(twin, 1e-4)
    assert np.abs(service.explain(questions) - oracle.explain(questions)).max() < 1e-11
    assert np.array_equal(service.classify(questions), oracle.classify(questions))


@pytest.mark.parametrize("radius", [0.0, 0.6])
def test_theorem_A_every_question_of_extract_counts(cornered, p, radius, tools, rng):
    """Leave out the last question of `extract` and another model answers all the others alike: none is
    asked in vain."""
    mechanism = mechanism_of(cornered, radius)
    plane = tools.plane(p, rng)
    oracle = ox.ModelOracle(plane, mechanism)
    found = ox.extract(oracle, orient=False)
    twin, _ = another_model(plane, oracle, mechanism, found.log.points[:-1])
    service = ox.ModelOracle(twin, mechanism)
    differences = np.abs(service.explain(found.log.points) - found.log.explanations).max(axis=1)
    assert differences[:-1].max() < 1e-11
    assert differences[-1] > 1e-5
    assert found.hyperplane.same_plane(plane)
    other = ox.extract(service, orient=False)
    assert other.spent == found.spent
    assert other.hyperplane.same_plane(twin)
    assert not plane.same_plane(twin, 1e-4)


@pytest.mark.parametrize("p", [1, 2, 5, 20])
def test_theorem_B_smooth_norms_need_one_answer(smooth_robust, p, tools, rng):
    """Smooth N1: a = ∇‖·‖(w), b = a·x' − ρ‖a‖*_N2 for both labels of the start: 1 answer, 0 labels, robust or not."""
    for offset in (1.2, -0.9):
        plane = tools.plane(p, rng, offset=offset)
        for mechanism in (ox.Mechanism(smooth_robust.distance), smooth_robust.mechanism):
            oracle = ox.ModelOracle(plane, mechanism)
            found = ox.extract(oracle, orient=False)
            assert found.spent == ox.Spent(explanations=1, labels=0)
            assert found.hyperplane.same_plane(plane)
            assert any("not checked" in note for note in found.assumptions)
        assert oracle.classify(np.zeros(p)) == (ox.NO if offset > 0 else ox.YES)
        answer = oracle.explain(np.zeros(p))
        slope = smooth_robust.distance.gradient(answer)
        reach = smooth_robust.radius * smooth_robust.robustness.dual(slope)
        assert ox.Hyperplane(slope, slope @ answer - reach).same_plane(plane, 1e-9)


def test_theorem_B_exponents_near_one(tools, rng):
    """From the start 0 nothing cancels: ℓ1.1 with 20 features is exact to 1e-12 from one answer."""
    plane = tools.plane(20, rng)
    found = ox.extract(ox.ModelOracle(plane, ox.Mechanism(ox.Lp(1.1))))
    assert found.spent == ox.Spent(explanations=1, labels=1)
    assert found.hyperplane.angle_to(plane) < 1e-12


# --- Theorem C: a secret radius ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2, 5])
@pytest.mark.parametrize("ball_known", [True, False], ids=["N2-known", "N2-secret"])
def test_theorem_C_one_more_answer(robust, p, ball_known, tools, rng):
    """Secret ρ (and N2): dim span K + 1 answers, 0 labels; the gap between the two planes of answers
    is 2ρ‖a‖*_N2/‖a‖*."""
    plane = tools.plane(p, rng)
    published = ox.Mechanism(robust.distance, robustness=robust.robustness if ball_known else None, radius=None)
    oracle = ox.ModelOracle(plane, robust.mechanism, published=published)
    found = ox.extract(oracle, orient=False)
    first = oracle.explain(np.zeros(p))
    assert found.spent == ox.Spent(explanations=span_dimension(robust.distance, first) + 1, labels=0)
    assert found.hyperplane.same_plane(plane)
    gap = tools.length(robust.distance, oracle.explain(first) - first)
    ratio = tools.support(robust.robustness, plane.normal)[0] / tools.support(robust.distance, plane.normal)[0]
    assert gap == pytest.approx(2 * robust.radius * ratio, rel=1e-5)
    if ball_known:
        assert abs(found.radius - robust.radius) <= found.radius_bound + 1e-15
        assert found.radius == pytest.approx(robust.radius, rel=1e-9)
    else:
        assert found.radius is None


def test_theorem_C_is_optimal(robust, p, tools, rng):
    """The one more is needed: to any dim span K questions another model with another radius gives the
    same answers and labels."""
    plane = tools.plane(p, rng)
    oracle = ox.ModelOracle(plane, robust.mechanism)
    dimension = span_dimension(robust.distance, robust.distance.maximizer(plane.normal))
    questions = np.array([tools.point(plane, 1 if i % 2 else -1, rng) for i in range(dimension)])
    twin, radius = another_model(plane, oracle, robust.mechanism, questions, secret=True)
    service = ox.ModelOracle(twin, ox.Mechanism(robust.distance, robustness=robust.robustness, radius=radius))
    assert not plane.same_plane(twin, 1e-4)
    assert np.abs(service.explain(questions) - oracle.explain(questions)).max() < 1e-11
    assert np.array_equal(service.classify(questions), oracle.classify(questions))


def test_theorem_C_zero_distance_shows_a_plain_service(distance, p, tools, rng):
    """d0 = 0 says ρ = 0: then the secret radius costs nothing more."""
    plane = tools.plane(p, rng, offset=0.0)
    published = ox.Mechanism(distance, robustness="l2", radius=None)
    secret = ox.extract(ox.ModelOracle(plane, ox.Mechanism(distance), published=published), orient=False, rng=2)
    known = ox.extract(ox.ModelOracle(plane, ox.Mechanism(distance)), orient=False, rng=2)
    assert secret.spent == known.spent
    assert secret.hyperplane.same_plane(plane)
    assert secret.radius == 0.0


def test_theorem_C_service_that_explains_one_side(robust, p, tools, rng):
    """If only No points are explained, labels along the first step replace the second answer: dim span K answers."""

    class OnlyNo:
        def __init__(self, oracle):
            self.dimension, self.mechanism, self.classify = oracle.dimension, oracle.mechanism, oracle.classify
            self._oracle = oracle

        def explain(self, x):
            return self._oracle.explain(x) if self._oracle.classify(x) == ox.NO else None

    plane = tools.plane(p, rng, offset=1.3)  # 0 is a No
    published = ox.Mechanism(robust.distance, robustness=robust.robustness, radius=None)
    oracle = ox.ModelOracle(plane, robust.mechanism, published=published)
    found = ox.extract(OnlyNo(oracle))
    expected = span_dimension(robust.distance, oracle.explain(np.zeros(p)))
    assert found.spent.explanations == expected + 1  # the unanswered one was asked too
    assert 40 <= found.spent.labels <= 60
    assert found.hyperplane.is_equivalent(plane)
    assert found.radius == pytest.approx(robust.radius, rel=1e-6)


# --- Theorem D: nothing known about the norm --------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2, 5, 12])
def test_theorem_D_p_answers(distance, p, tools, rng):
    """Nothing known but that answers are exact CFs: p of them, 0 labels, give the plane, whatever the norm."""
    plane = tools.plane(p, rng)
    oracle = ox.ModelOracle(plane, ox.Mechanism(distance), published=ox.Mechanism(None))
    found = ox.extract(oracle, orient=False, rng=3)
    assert found.spent == ox.Spent(explanations=p, labels=0)
    assert found.hyperplane.same_plane(plane, 1e-7)
    assert ox.extract(oracle, rng=3).hyperplane.is_equivalent(plane, 1e-7)


def test_theorem_D_norms_drawn_at_random(p, tools, rng):
    """Norms and ties drawn independently of the question: still p answers."""

    class Switching:
        def __init__(self, plane):
            norms = ["l1", "linf", "l2", "lp:1.5"]
            self._oracles = [ox.ModelOracle(plane, ox.Mechanism(n), ties="random", rng=1) for n in norms]
            self._rng = np.random.default_rng(4)
            self.dimension, self.mechanism = plane.dimension, ox.Mechanism(None)

        def explain(self, x):
            return self._oracles[self._rng.integers(len(self._oracles))].explain(x)

    plane = tools.plane(p, rng)
    found = ox.extract(Switching(plane), rng=5)
    assert found.spent == ox.Spent(explanations=p, labels=0, confirmation=1)
    assert found.hyperplane.same_plane(plane, 1e-7)


def mahalanobis_towards(normal, v):
    """A norm under which the model with this normal answers along v: M·v ∝ normal."""
    rest = np.eye(len(v)) - np.outer(v, v) / (v @ v)
    matrix = np.outer(normal, normal) / (normal @ normal) + rest
    return ox.Mahalanobis((matrix + matrix.T) / 2)


def another_solution(rows, truth, step):
    """Another null vector of the rows, `step` (relative) away from the one known."""
    null = np.linalg.svd(rows)[2][len(rows) :]
    assert len(null) == 2
    assert np.abs(rows @ truth).max() < 1e-9
    along = null @ truth
    return truth + step * (along[1] * null[0] - along[0] * null[1])


@pytest.mark.parametrize("p", [2, 5])
def test_theorem_D_p_minus_one_never_do(distance, p, tools, rng):
    """To any p − 1 questions another plane, under another norm, gives the same answers."""
    plane = tools.plane(p, rng)
    oracle = ox.ModelOracle(plane, ox.Mechanism(distance))
    questions = rng.normal(size=(p - 1, p)) * 2
    answers = oracle.explain(questions)
    other = another_solution(np.column_stack([answers, -np.ones(p - 1)]), np.append(plane.normal, plane.offset), 0.3)
    twin = ox.Hyperplane(other[:-1], other[-1])
    v = distance.maximizer(plane.normal)
    service = ox.ModelOracle(twin, ox.Mechanism(mahalanobis_towards(twin.normal, v)))
    assert not plane.same_plane(twin, 1e-4)
    assert np.abs(service.explain(questions) - answers).max() < 1e-8 * np.abs(answers).max()


def test_theorem_D_robust_p_plus_one_answers(robust, p, tools, rng):
    """Nothing known, answers robust: p + 1 of them from both sides, 0 labels where displacements are
    parallel; p leave another model."""
    plane = tools.plane(p, rng)
    oracle = ox.ModelOracle(plane, robust.mechanism, published=ox.Mechanism(None, radius=None))
    found = ox.extract(oracle, orient=False, rng=6)
    assert found.spent == ox.Spent(explanations=p + 1, labels=0)
    assert found.hyperplane.same_plane(plane, 1e-7)
    questions = np.array([tools.point(plane, 1 if i % 2 else -1, rng) for i in range(p)])
    answers, labels = oracle.explain(questions), oracle.classify(questions)
    truth = np.concatenate([plane.normal, [plane.offset, robust.radius * robust.robustness.dual(plane.normal)]])
    other = another_solution(np.column_stack([answers, -np.ones(p), labels]), truth, 0.05)
    twin = ox.Hyperplane(other[:p], other[p])
    v = robust.distance.maximizer(plane.normal)
    mechanism = ox.Mechanism(
        mahalanobis_towards(twin.normal, v), robustness="l2", radius=other[-1] / np.linalg.norm(other[:p])
    )
    service = ox.ModelOracle(twin, mechanism)
    assert not plane.same_plane(twin, 1e-4)
    assert np.array_equal(service.classify(questions), labels)
    assert np.abs(service.explain(questions) - answers).max() < 1e-8


class Prefers:
    """A service under ℓ1 that gives `favourite` wherever it is optimal, and does not publish its norm."""

    def __init__(self, plane, favourite, published):
        self._oracle = ox.ModelOracle(plane, ox.Mechanism("l1"))
        self._favourite = np.asarray(favourite, dtype=float)
        self.dimension, self.mechanism, self.classify = plane.dimension, published, self._oracle.classify

    def explain(self, x):
        answer = self._oracle.explain(x)
        optimal = np.abs(self._favourite - x).sum() <= np.abs(answer - x).sum() * (1 + 1e-12)
        return self._favourite.copy() if optimal else answer


@pytest.mark.parametrize("bounds", [None, (0.0, 1.0)])
def test_theorem_D_a_service_that_prefers_one_answer(bounds, tools, rng):
    """ℓ1, a = (1,1,1,1,1), b = 10: (2,2,2,2,2) answers every start in [0,1]^5; the rank stays 1:
    ExtractionFailed says what is open."""
    plane, favourite = ox.Hyperplane(np.ones(5), 10.0), np.full(5, 2.0)
    for x in rng.uniform(0, 1, (3, 5)):  # really optimal: cvxpy
        assert tools.nearest(plane, ox.l1, x)[0] == pytest.approx(np.abs(favourite - x).sum(), rel=1e-6)
    service = Prefers(plane, favourite, ox.Mechanism(None))
    with pytest.raises(ox.ExtractionFailed) as failed:
        ox.extract(service, strategy="points", bounds=bounds, rng=1)
    answers = failed.value.log.explanations[failed.value.log.explained]
    assert np.linalg.matrix_rank(np.column_stack([answers, -np.ones(len(answers))])) == 1
    open_ = failed.value.unidentified
    assert open_.shape == (5, 5)  # any normal at all still fits
    assert np.linalg.matrix_rank(open_) == 5
    for normal in open_:
        assert np.abs((answers - favourite) @ normal).max() == 0
    if bounds is None:  # left to itself, `extract` goes on with labels
        by_labels = ox.extract(service, accuracy=1e-4, rng=1)
        assert by_labels.spent.labels > 5
        assert by_labels.hyperplane.angle_to(plane) <= by_labels.error_bound <= 1e-4
    # Where the norm is known the very same answer fixes the whole cone: one is enough.
    known = ox.extract(Prefers(plane, favourite, ox.Mechanism("l1")))
    assert known.spent == ox.Spent(explanations=1, labels=1, confirmation=3)
    assert known.hyperplane.is_equivalent(plane)


def test_theorem_D_a_partly_stubborn_service(tools, rng):
    """A service that never moves off a line of answers leaves a subspace open, and `unidentified` is
    it (the true normal included)."""

    class OnALine:
        dimension, mechanism = 4, ox.Mechanism(None)

        def explain(self, x):
            return np.array([1.0, 0.0, 0.0, 0.0]) + np.tanh(x[1]) * np.array([0.0, 1.0, -1.0, 0.0])  # on a·x = 1

    normal = np.array([1.0, 2.0, 2.0, 5.0])
    with pytest.raises(ox.ExtractionFailed) as failed:
        ox.extract(OnALine(), rng=1)
    open_ = failed.value.unidentified
    assert open_.shape == (3, 4)
    assert np.abs(open_ @ np.array([0.0, 1.0, -1.0, 0.0])).max() < 1e-9
    assert np.linalg.matrix_rank(np.vstack([open_, normal]), tol=1e-9) == 3
