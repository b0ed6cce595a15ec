"""The paper's theorems on certified regions, solved as they stand with cvxpy, and their errata."""

from __future__ import annotations

import math
import random
import warnings
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import Delaunay

import dyadic
import overexplain as ox
from brute import givens, lattice, truth
from overexplain.geometry.norms import Facets, GroupMax

YES, NO, UNKNOWN, BOUNDARY = 1, -1, 0, 2


def verdicts(log: ox.QueryLog, points) -> list[int]:
    return ox.Knowledge(log, tolerance=0.0).certify(np.atleast_2d(np.asarray(points, dtype=float))).codes.tolist()


# --- the two theorems, written down as in the paper -------------------------------------------------------------------


class Region:
    """X_'No' and X_'Yes' of thm:region-CF; without explanations they are those of thm:rgn_factuals.

    The right sides are met as well as possible with weights up to `cap` (a float solver needs a bounded set): `miss` says how
    far they must be off. ``printed=True`` takes the sign of Σ y_b as the statement prints it, not as the proof derives it (E1).
    """

    def __init__(self, log: ox.QueryLog, tools, printed: bool = False, cap: float = 100.0) -> None:
        p, n = log.dimension, len(log.explained)
        self.right, off, t, u, v = (
            cp.Parameter(p + 1),
            cp.Variable(),
            cp.Variable(len(log)),
            cp.Variable(n),
            cp.Variable(n),
        )
        labels = log.labels.astype(float)
        top, rest, limits = labels @ t - cp.sum(v), -log.points.T @ cp.multiply(labels, t), [t >= 0, u >= 0]
        for k, j in enumerate(log.explained):
            row, sign, y = log[j], float(labels[j]), cp.Variable(p)
            radius = tools.length(row.mechanism.distance, row.explanation - row.point)
            length, extra = tools.expression(row.mechanism.distance, y + sign * u[k] * row.point)
            limits += [length <= radius * u[k], *extra]
            top = top + (-1 if printed else 1) * sign * u[k]  # y_b = u on J1, −u on J0
            rest = rest + y + v[k] * row.explanation
        limits.append(cp.norm(cp.hstack([rest, top]) - self.right, "inf") <= off)
        self.closest = cp.Problem(cp.Minimize(off), [*limits, t <= cap, u <= cap, cp.abs(v) <= cap])
        self.lightest = cp.Problem(cp.Minimize(cp.sum(u)), [*limits, off == 0])

    def miss(self, x, side: int) -> float:
        """How far the system for X_'No' (side −1) or X_'Yes' (side 1) is from a solution at x."""
        return self._solve(self.closest, x, side)

    def least_weight(self, x, side: int) -> float:
        """The least Σ u of an exact solution."""
        return self._solve(self.lightest, x, side)

    def _solve(self, problem: cp.Problem, x, side: int) -> float:
        self.right.value = -side * np.append(x, -1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the solution may be inaccurate: it is not used then
            try:
                problem.solve(solver="CLARABEL")
            except cp.SolverError:
                return math.nan
        return float(problem.value) if problem.status == "optimal" else math.nan

    def code(self, x) -> int | str:
        """The verdict the theorem gives at a point, or why a float solver cannot tell."""
        miss = {side: self.miss(x, side) for side in (NO, YES)}
        inside = [side for side in (NO, YES) if miss[side] <= 1e-6]
        assert len(inside) < 2, "only a point of the plane is in both"
        if inside:
            return inside[0]
        if any(math.isnan(off) for off in miss.values()):
            return NOT_SOLVED
        return NEAR_THE_RIM if min(miss.values()) < 1e-4 else UNKNOWN


NEAR_THE_RIM, NOT_SOLVED, UNDECIDED = "near the rim", "not solved", "undecided"


@dataclass
class Compared:
    """What was held against the theorem: the verdicts that came up, how many points were, and which were not, by the reason why."""

    verdicts: set[int] = field(default_factory=set)
    points: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def add(self, log: ox.QueryLog, tools, points, found: list[int]) -> None:
        """Hold the verdicts on some points against the theorem's; the first that differs fails the test."""
        regions = [Region(log, tools, cap=cap) for cap in (1e2, 1e3, 1e4)]
        for x, code in zip(points, found, strict=True):
            # A point is UNKNOWN if no cap is enough: the nearer to the rim, the larger the weights (E2).
            said = [region.code(x) for region in regions]
            expected = next((e for e in said if e in (YES, NO)), max(said, key=said.count))
            self.points += 1
            if expected in (NEAR_THE_RIM, NOT_SOLVED):
                self.left_out[expected] += 1
            elif code == ox.Verdict.UNDECIDED:
                self.left_out[UNDECIDED] += 1
            else:
                assert code == expected, (x, expected, code)
                self.verdicts.add(code)

    def told(self, share: float = 1.0, *reasons: str) -> set[int]:
        """The verdicts, if at least this share of the points was compared and the others were left out for these reasons only."""
        compared = self.points - self.left_out.total()
        assert compared >= share * self.points, f"{compared} of {self.points} compared; left out: {dict(self.left_out)}"
        assert set(self.left_out) <= set(reasons), dict(self.left_out)
        return self.verdicts


def queries(plane: ox.Hyperplane, rng: np.random.Generator, n: int) -> np.ndarray:
    """Random points off the plane: next to it the weights of the theorem grow beyond any cap (E2)."""
    points = rng.normal(size=(4 * n, plane.dimension)) * 2.5
    return points[np.abs(plane.margin(points)) > 0.5 * np.linalg.norm(plane.normal)][:n]


@pytest.mark.parametrize("p", [2, 3, 4, 6])
def test_thm_rgn_factuals(p, tools) -> None:
    """Labels of both classes: the regions of the theorem are those of Knowledge."""
    rng = np.random.default_rng(p)
    seen = Compared()
    for _ in range(2):
        plane = tools.plane(p, rng)
        points = rng.normal(size=(8 * p, p))
        log = ox.QueryLog()
        log.add_label(points, plane.labels(points))
        points = rng.normal(size=(15, p)) * 1.5
        seen.add(log, tools, points, verdicts(log, points))
    assert seen.told() == {YES, NO, UNKNOWN}


@pytest.mark.parametrize("kind", ["l1", "linf", "l2", "weighted l1", "weighted linf", "weighted l2"])
@pytest.mark.parametrize("p", [2, 3, 5])
def test_thm_region_CF(p, kind, tools) -> None:
    """Labels and counterfactuals of both classes: the (corrected) regions of the theorem are those of Knowledge."""
    rng = random.Random(f"{kind} {p}")
    gauss = np.random.default_rng(p)
    seen = Compared()
    for count in (1, 2):
        plane = dyadic.model(rng, p)
        log = dyadic.exact_log(rng, plane, [kind] * count, labels=p)
        points = queries(plane, gauss, 10)
        seen.add(log, tools, points, verdicts(log, points))
    assert len(seen.told()) > 1


@pytest.mark.parametrize("p", [2, 3, 4])
def test_thm_region_CF_under_every_norm(distance, p, tools) -> None:
    """The same under every norm of the library, with answers as a service computes them, in float64."""
    rng = np.random.default_rng(p)
    mechanism, seen = ox.Mechanism(distance), Compared()
    for count in (1, 2):
        plane = tools.plane(p, rng)
        asked = np.array([tools.point(plane, side, rng) for side in (YES, NO)[:count]])
        labelled, points = rng.normal(size=(p, p)) * 2, queries(plane, rng, 10)
        log = ox.QueryLog(mechanism=mechanism)
        log.add_label(labelled, plane.labels(labelled))
        log.add_explanation(asked, ox.ModelOracle(plane, mechanism).explain(asked), label=plane.labels(asked))
        seen.add(log, tools, points, ox.Knowledge(log).certify(points).codes.tolist())
    # Of these a float64 answer may leave so little room that no model is found: some points are then left undecided.
    is_narrow = isinstance(distance, Facets | GroupMax | ox.GroupNorm)
    assert len(seen.told(*((0.75, UNDECIDED) if is_narrow else ()))) > 1


def test_thm_region_CF_with_counterfactuals_under_several_norms(tools) -> None:
    rng = random.Random(3)
    seen = Compared()
    for p in (2, 4, 6):
        plane = dyadic.model(rng, p)
        log = dyadic.exact_log(rng, plane, ["l1", "linf"], labels=2 * p)
        points = queries(plane, np.random.default_rng(p), 10)
        seen.add(log, tools, points, verdicts(log, points))
    assert seen.told() >= {YES, NO, UNKNOWN}


def test_eq_no_rgn_opt_and_eq_yes_rgn_opt(tools) -> None:
    """The regions by their definition, an LP over (a, b), are those of the dual: no gap, no point lost."""
    rng = np.random.default_rng(11)
    points = rng.normal(size=(20, 3))
    plane = tools.plane(3, rng)
    log = ox.QueryLog()
    log.add_label(points, plane.labels(points))
    region = Region(log, tools)
    rows = -plane.labels(points)[:, None] * np.column_stack([points, -np.ones(20)])
    for x in rng.normal(size=(12, 3)):
        query = np.append(x, -1)
        highest, lowest = (-s * linprog(-s * query, A_ub=rows, b_ub=np.zeros(20), bounds=(-1, 1)).fun for s in (1, -1))
        code = region.code(x)
        assert (highest < 1e-7, lowest > -1e-7) == (code == NO, code == YES)
        assert verdicts(log, x) == [code]


# --- beyond the convex hull -------------------------------------------------------------------------------------------


def test_thm_rgn_factuals_extends_beyond_the_convex_hull(tools) -> None:
    """With u = 0 on the other class X_'No' boils down to the hull of the No points; without, it is larger."""
    rng = np.random.default_rng(0)
    plane = tools.plane(2, rng)
    points = rng.normal(size=(30, 2))
    log = ox.QueryLog()
    log.add_label(points, plane.labels(points))
    queries = rng.normal(size=(2000, 2)) * 3
    codes = np.array(verdicts(log, queries))
    for label in (YES, NO):
        in_hull = Delaunay(points[plane.labels(points) == label]).find_simplex(queries) >= 0
        certain = codes == label
        assert certain[in_hull].all()
        assert (certain & ~in_hull).sum() > 3 * in_hull.sum()
        alone = ox.QueryLog()
        alone.add_label(points[plane.labels(points) == label], np.full((plane.labels(points) == label).sum(), label))
        assert np.array_equal(np.array(verdicts(alone, queries)) == label, in_hull)


def test_thm_rgn_factuals_the_shadow_of_a_no_seen_from_a_yes_is_no() -> None:
    log = ox.QueryLog()
    log.add_label([[1.0, 0.0], [0.0, 0.0]], [YES, NO])
    assert verdicts(log, [[-1, 0], [-1e6, 0], [2, 0], [1e6, 0], [0.5, 0], [-1, 2.0**-40]]) == [NO, NO, YES, YES, 0, 0]


# --- E1: the sign of Σ y_b --------------------------------------------------------------------------------------------


def one_counterfactual(distance: str, label: int = NO) -> ox.QueryLog:
    """x = 0 and its counterfactual (1, 0)."""
    log = ox.QueryLog()
    log.add_explanation([0.0, 0.0], [1.0, 0.0], label, ox.Mechanism(distance))
    return log


def test_E1_thm_region_CF_printed_sign(tools) -> None:
    """Printed: − Σ y_b. Then X_'No' contains (2, 0), a sure Yes; with + Σ y_b, as the proof derives, it does not."""
    log = one_counterfactual("l1")
    printed, corrected = Region(log, tools, printed=True), Region(log, tools)
    assert printed.miss([2, 0], NO) < 1e-6
    # The solution in exact numbers: t = 1, u = 1, v = 1, y_a = (1, 0), y_b = −1.
    t, u, v, y_a, y_b = 1, 1, 1, (1, 0), -1
    assert -t - y_b - v == -1
    assert (y_a[0] + v * 1, y_a[1]) == (2, 0)
    assert abs(y_a[0]) + abs(y_a[1]) <= u * 1
    assert -t + y_b - v != -1
    assert corrected.miss([2, 0], NO) > 0.1
    assert corrected.miss([2, 0], YES) < 1e-6
    assert verdicts(log, [2, 0]) == [YES]


@pytest.mark.parametrize("kind", ["l1", "linf", "l2"])
def test_E1_printed_sign_contradicts_the_model_that_answered(kind, tools) -> None:
    """On random logs the printed regions claim points of the other class, for every norm; the corrected never do."""
    rng, gauss = random.Random(1), np.random.default_rng(1)
    plane = dyadic.model(rng, 2)
    log = dyadic.exact_log(rng, plane, [kind, kind], labels=1)
    false_claims = {True: 0, False: 0}
    for printed in (True, False):
        region = Region(log, tools, printed)
        for x in gauss.normal(size=(25, 2)) * 3:
            other = -int(plane.label(x))
            false_claims[printed] += region.miss(x, other) < 1e-6
    assert false_claims[True] > 0
    assert false_claims[False] == 0


# --- E2: for a strictly convex norm the set is not closed -------------------------------------------------------------


def test_E2_thm_region_CF_is_not_closed_under_l2(tools) -> None:
    """(1, 1) lies on the plane for every consistent model, hence in both regions; yet neither system has a solution."""
    log = one_counterfactual("l2")
    # Why not: t + u + v = 1 leaves y_a = (1 − v, 1) with ‖y_a‖ > 1 − v ≥ u. And why nearly: the larger u, the smaller the gap.
    for cap in (10.0, 100.0, 1000.0):
        region = Region(log, tools, cap=cap)
        for side in (NO, YES):
            assert 0.1 / cap < region.miss([1, 1], side) < 1 / cap
    assert verdicts(log, [[1, 1], [1, -7], [1, 0]]) == [BOUNDARY] * 3


def test_E2_multipliers_grow_like_one_over_the_distance(tools) -> None:
    """At (1 − e, 1) the lightest solution has u = (1 + e²)/(2e); Knowledge knows every such point, however near."""
    log = one_counterfactual("l2")
    region = Region(log, tools)
    weights = []
    for k in (1, 2, 3, 4):
        e = Fraction(1, 2**k)
        u = (1 + e * e) / (2 * e)
        y_a = (u - e, Fraction(1))  # v = 1 − u, t = 0
        assert y_a[0] ** 2 + y_a[1] ** 2 == u * u
        weights.append(region.least_weight([1 - float(e), 1], NO))
        assert weights[-1] == pytest.approx(float(u), rel=1e-3)
    assert all(1.5 < after / before < 2.1 for before, after in pairwise(weights))
    near = [2.0**-k for k in range(1, 53)]
    assert verdicts(log, [[1 - e, 1] for e in near]) == [NO] * 52
    assert verdicts(log, [[1 + e, 1] for e in near[:-1]]) == [YES] * 51


def test_E2_the_polyhedral_sets_are_closed(tools) -> None:
    """ℓ1, ℓ∞: every point of the closed region has a solution, those on its rim included."""
    for distance, rim, side in (("l1", [0.0, 1.0], NO), ("l1", [2.0, 1.0], YES), ("linf", [1.0, 5.0], NO)):
        log = one_counterfactual(distance)
        assert Region(log, tools).least_weight(rim, side) < 10


# --- E14: the regions are closures ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Strictness:
    """A log, a point in the printed (closed) X_'No', and its verdict."""

    log: ox.QueryLog
    point: list[float]
    verdict: int


def labelled(*rows: tuple[list[float], int]) -> ox.QueryLog:
    log = ox.QueryLog()
    for x, y in rows:
        log.add_label(x, y)
    return log


CLOSED = {
    # a = (1, s), |s| ≤ 1, b = 1: the model with s = 1 passes through (0, 1), where it says Yes
    "rim of l1": Strictness(one_counterfactual("l1"), [0.0, 1.0], UNKNOWN),
    "inside l1": Strictness(one_counterfactual("l1"), [0.0, 0.5], NO),
    "the explanation": Strictness(one_counterfactual("l1"), [1.0, 0.0], BOUNDARY),
    "linf: a = (1, 0)": Strictness(one_counterfactual("linf"), [1.0, 5.0], BOUNDARY),
    # labels only: whatever is in X_'No' has weight on a No, which is strict
    "a No": Strictness(labelled(([0.0, 0.0], NO), ([2.0, 0.0], NO), ([1.0, 1.0], YES)), [2.0, 0.0], NO),
    "between two No": Strictness(labelled(([0.0, 0.0], NO), ([2.0, 0.0], NO), ([1.0, 1.0], YES)), [1.0, 0.0], NO),
    "behind a No": Strictness(labelled(([0.0, 0.0], NO), ([1.0, 1.0], YES)), [-1.0, -1.0], NO),
}


@pytest.mark.parametrize("name", CLOSED)
def test_E14_points_of_the_closed_region(name, tools) -> None:
    """A remark: X_'No' is a closure, as the paper says; of its rim only what a No row supports is No."""
    case = CLOSED[name]
    assert Region(case.log, tools).miss(case.point, NO) < 1e-6  # in the closure
    assert truth(givens(case.log), [case.point]).tolist() == [case.verdict]
    assert verdicts(case.log, case.point) == [case.verdict]


def test_E14_a_model_that_says_yes_on_the_rim() -> None:
    """(0, 1) is in X_'No' (rim of ℓ1), and a model that gave every answer calls it Yes."""
    model = ox.Hyperplane([1.0, 1.0], 1.0)
    service = ox.ModelOracle(model, ox.Mechanism("l1"), ties="first")
    assert service.explain([0.0, 0.0]).tolist() == [1.0, 0.0]
    assert service.classify([0.0, 0.0]) == NO
    assert service.classify([0.0, 1.0]) == YES


def test_E14_a_label_on_the_rim_decides_it() -> None:
    """The weight on a No row may be that of a point elsewhere: (0, 1) = the middle of (0, 0) and (0, 2)."""
    log = one_counterfactual("l1")
    assert verdicts(log, [[0, 1], [0, 2]]) == [UNKNOWN, UNKNOWN]
    log.add_label([0.0, 2.0], NO)
    assert verdicts(log, [[0, 1], [0, 2]]) == [NO, NO]


def test_E14_the_class_of_the_rim_depends_on_the_strict_class() -> None:
    """Yes is closed, No is open: with one label each, the rims of the same two cones are Yes and unknown."""
    yes, no = one_counterfactual("l1", YES), one_counterfactual("l1", NO)
    rim = [[0.0, 1.0], [2.0, 1.0]]
    assert verdicts(yes, rim) == [YES, UNKNOWN]
    assert verdicts(no, rim) == [UNKNOWN, YES]


def test_E14_order_own_label_then_boundary() -> None:
    """The explanation is on the plane for every consistent model; if the service was asked for its label too, that stays."""
    log = one_counterfactual("l1")
    assert verdicts(log, [1, 0]) == [BOUNDARY]
    log.add_label([1.0, 0.0], YES)
    assert verdicts(log, [[1, 0], [0, 0]]) == [YES, NO]
    log.add_explanation([3.0, 1.0], [2.0, 1.0], YES, ox.Mechanism("l1"))  # now a = (1, −1): the plane is known
    assert verdicts(log, [[0, -1], [2, 1], [1, 0], [3, 1]]) == [BOUNDARY, BOUNDARY, YES, YES]


def test_E14_labelled_points_and_the_hull_of_the_no_points_keep_their_label() -> None:
    """On random dyadic logs, where ties are frequent."""
    for seed in range(40):
        rng = random.Random(seed)
        p = rng.choice((2, 3))
        plane = dyadic.model(rng, p)
        log = dyadic.exact_log(rng, plane, rng.choices(["l1", "linf", "l2"], k=rng.randint(0, 1)), labels=8)
        assert verdicts(log, log.points) == log.labels.tolist()
        for label in (YES, NO):
            rows = log.points[log.labels == label]
            if len(rows):
                middles = [(rows[rng.randrange(len(rows))] + rows[rng.randrange(len(rows))]) / 2 for _ in range(5)]
                assert set(verdicts(log, middles)) <= ({YES, BOUNDARY} if label == YES else {NO})


def test_E14_every_point_of_the_grid_in_both_closed_regions_is_on_the_plane(tools) -> None:
    """Maximum and minimum both 0: BOUNDARY, and no other point is."""
    log = one_counterfactual("linf")
    log.add_explanation([3.0, 3.0], [1.0, 3.0], YES, ox.Mechanism("linf"))
    region, grid = Region(log, tools), lattice(0, 3)
    both = [max(region.miss(x, NO), region.miss(x, YES)) < 1e-6 for x in grid]
    assert [code == BOUNDARY for code in verdicts(log, grid)] == both
    assert sum(both) == 7
