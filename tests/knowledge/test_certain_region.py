"""Regions as sets: their members are those of certify, their generators generate them, and their polygons are exact."""

from __future__ import annotations

import time
import warnings
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

import overexplain as ox
from exact_lp import is_held
from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite
from overexplain.knowledge import tracing
from overexplain.knowledge.certain_region import Polygon
from overexplain.knowledge.wrapping import wrap

BOTH = (ox.Verdict.YES, ox.Verdict.NO)
BOX = ((-10.0, 10.0), (-10.0, 10.0))


def labelled(points, labels) -> ox.QueryLog:
    log = ox.QueryLog()
    log.add_label(np.asarray(points, dtype=float), labels)
    return log


def of_model(rng, kind: str, n: int, p: int) -> ox.QueryLog:
    """Labels of a random model on points of a kind: grids tie, one-hot columns leave the span, Gaussian ones do neither."""
    if kind == "grid":
        points, normal = rng.integers(-4, 5, size=(n, p)).astype(float), rng.integers(-3, 4, size=p).astype(float)
        normal[0] = normal[0] or 1.0
    elif kind == "one-hot":
        points, normal = rng.integers(-4, 5, size=(n, p)).astype(float), rng.normal(size=p)
        points[:, -3:] = np.eye(3)[rng.integers(0, 3, size=n)]
    else:
        points, normal = rng.normal(size=(n, p)) * 3, rng.normal(size=p)
    plane = ox.Hyperplane(normal, float(np.median(points @ normal)) if kind != "grid" else 1.0)
    return labelled(points, plane.labels(points))


def exact_rows(log: ox.QueryLog) -> list[list[Fraction]]:
    return [
        [int(y) * Fraction(v) for v in x.tolist()] + [Fraction(-int(y))]
        for x, y in zip(log.points, log.labels, strict=True)
    ]


def holds(log: ox.QueryLog, verdict: ox.Verdict, base, pair, place) -> bool:
    """Is (x, −1), or its negative, in the cone of the labels? By a simplex method in rationals that shares nothing with ours."""
    point = [Fraction(float(v)) for v in base]
    point[pair[0]], point[pair[1]] = place
    return is_held(exact_rows(log), [int(verdict) * v for v in (*point, Fraction(-1))])


def depth(corners, place) -> Fraction:
    """Twice the least area of the triangles that a place makes with the edges: below 0 outside of a polygon."""
    return min(
        (b[0] - a[0]) * (place[1] - a[1]) - (b[1] - a[1]) * (place[0] - a[0])
        for a, b in zip(corners, [*corners[1:], corners[0]], strict=True)
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("kind", "p"), [("grid", 2), ("grid", 3), ("one-hot", 5), ("gaussian", 3)])
def test_the_polygon_of_labels_is_that_of_an_exact_simplex_method(seed, kind, p) -> None:
    rng = np.random.default_rng(seed)
    log = of_model(rng, kind, 14, p)
    knowledge, base = ox.Knowledge(log), log.points[rng.integers(len(log))]
    for verdict in BOTH:
        found = knowledge.region(verdict).polygon((0, 1), base, BOX)
        assert found.gap == 0.0
        assert found.exact is not None
        assert len(found) == len(found.exact) == len(found.rows)
        for place, rounded in zip(found.exact, found.corners.tolist(), strict=True):
            assert [float(v) for v in place] == rounded
            assert holds(log, verdict, base, (0, 1), place)
        places = [tuple(Fraction(float(v)) for v in pair) for pair in rng.uniform(-10, 10, size=(8, 2)).round(2)]
        if len(found) > 2:
            hair = Fraction(1, 10**12)
            for k, (a, b) in enumerate(zip(found.exact, (*found.exact[1:], found.exact[0]), strict=True)):
                middle = ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
                outside = (middle[0] + hair * (b[1] - a[1]), middle[1] - hair * (b[0] - a[0]))
                assert found.rows[k] == () or not holds(log, verdict, base, (0, 1), outside)
                assert holds(log, verdict, base, (0, 1), middle)
            for place in places:
                assert holds(log, verdict, base, (0, 1), place) == (depth(found.exact, place) >= 0)
        elif not len(found):
            assert not any(holds(log, verdict, base, (0, 1), place) for place in places)


@pytest.mark.parametrize("seed", range(4))
def test_corners_are_certified_and_a_hair_beyond_is_not(seed) -> None:
    rng = np.random.default_rng(seed)
    log = of_model(rng, "gaussian", 40, 4)
    knowledge, base = ox.Knowledge(log), np.median(log.points, axis=0)
    for verdict in BOTH:
        region = knowledge.region(verdict)
        found = region.polygon((2, 0), base, BOX)
        if len(found) < 3:
            continue
        points = np.tile(base, (len(found), 1))
        middle = found.corners.mean(axis=0)
        for share, certain in ((-1e-9, True), (1e-9, False)):
            points[:, [2, 0]] = found.corners + share * (found.corners - middle)
            inside = (np.abs(points[:, [2, 0]]) < 10 - 1e-6).all(axis=1)
            assert (region.contains(points)[inside] == certain).all()


def test_every_edge_rests_on_rows_that_prove_it() -> None:
    log = of_model(np.random.default_rng(2), "grid", 20, 3)
    base = log.points[0]
    found = ox.Knowledge(log).region(ox.Verdict.YES).polygon((0, 1), base, BOX)
    assert len(found) > 2
    for k, rows in enumerate(found.rows):
        if rows:
            part = labelled(log.points[list(rows)], log.labels[list(rows)])
            ends = found.exact[k], found.exact[(k + 1) % len(found)]
            assert all(holds(part, ox.Verdict.YES, base, (0, 1), end) for end in ends)


def area(corners) -> float:
    x, y = np.asarray(corners).T
    return 0.5 * float(x @ np.roll(y, -1) - y @ np.roll(x, -1))


def test_a_class_alone_has_its_convex_hull() -> None:
    rng = np.random.default_rng(5)
    points = rng.normal(size=(30, 2))
    found = ox.Knowledge(labelled(points, np.ones(30))).region(ox.Verdict.YES).polygon((0, 1), None, BOX)
    hull = ConvexHull(points)
    assert {tuple(v) for v in found.corners.tolist()} == {tuple(v) for v in points[hull.vertices].tolist()}
    assert area(found.corners) == pytest.approx(hull.volume)
    nothing = ox.Knowledge(labelled(points, np.ones(30))).region(ox.Verdict.NO)
    assert len(nothing.polygon((0, 1), None, BOX)) == 0
    assert len(nothing.generators().points) == 0


def test_a_slice_of_a_hull_in_space_is_what_its_facets_leave() -> None:
    rng = np.random.default_rng(6)
    points = rng.normal(size=(40, 3))
    found = ox.Knowledge(labelled(points, -np.ones(40))).region(ox.Verdict.NO).polygon((0, 2), [0.0, 0.3, 0.0], BOX)
    facets = ConvexHull(points).equations
    normals, offsets = facets[:, [0, 2]], facets[:, 3] + 0.3 * facets[:, 1]
    values = found.corners @ normals.T + offsets
    assert values.max() < 1e-9
    assert (np.sort(np.abs(values), axis=1)[:, :2] < 1e-9).all()  # every corner lies on two facets
    assert area(found.corners) > 0


def test_what_is_thinner_than_a_polygon() -> None:
    yes, no = ox.Verdict.YES, ox.Verdict.NO
    one = ox.Knowledge(labelled([[1.0, 2.0]], [1]))
    assert one.region(yes).polygon((0, 1), None, BOX).exact == ((Fraction(1), Fraction(2)),)
    assert one.region(yes).polygon((0, 1), None, ((5.0, 6.0), (0.0, 1.0))).exact == ()
    line = ox.Knowledge(labelled([[0.0, 0.0], [3.0, 1.0], [6.0, 2.0], [9.0, 3.0]], [-1, 1, 1, 1]))
    assert line.region(yes).polygon((0, 1), None, BOX).exact == ((10, Fraction(10, 3)), (3, 1))
    assert line.region(no).polygon((0, 1), None, BOX).exact == ((0, 0), (-10, Fraction(-10, 3)))
    upright = ox.Knowledge(labelled([[1.0, 0.0], [1.0, 5.0]], [1, 1])).region(yes)
    assert set(upright.polygon((0, 1), None, BOX).exact) == {(1, 0), (1, 5)}


def test_a_slice_that_leaves_the_one_hot_columns_is_a_segment() -> None:
    rng = np.random.default_rng(1)
    points = np.hstack([rng.integers(-9, 10, size=(60, 1)), np.eye(3)[rng.integers(0, 3, size=60)]])
    log = labelled(points, np.where(points[:, 0] + 3 * points[:, 1] >= 2, 1, -1))
    found = ox.Knowledge(log).region(ox.Verdict.YES).polygon((1, 0), [0.0, 1.0, 0.0, 0.0], BOX)
    assert len(found) == 2
    assert {place[0] for place in found.exact} == {1}  # the group adds up to 1 with the others at 0


def test_floats_that_propose_nothing_useful_change_nothing(monkeypatch) -> None:
    """The rational program alone finds the same polygon, for Gaussian points and for ties, and that there is none."""
    for kind, p in (("grid", 2), ("grid", 3), ("gaussian", 3)):
        log = of_model(np.random.default_rng(3), kind, 9, p)
        base = log.points[0]
        regions = [ox.Knowledge(log).region(verdict) for verdict in BOTH]
        boxes = (BOX, ((-0.75, 1.25), (-0.5, 0.5)))
        first = [region.polygon((0, 1), base, box).exact for region in regions for box in boxes]
        with monkeypatch.context() as context:
            context.setattr(tracing._Program, "_by_basis", lambda *_: None)
            again = [region.polygon((0, 1), base, box).exact for region in regions for box in boxes]
        assert again == first


# --- merely valid answers ---------------------------------------------------------------------------------------------


def valid(rows) -> ox.Knowledge:
    log = ox.QueryLog(mechanism=ox.Mechanism("l1", slack=None))
    for x, answer, label in rows:
        log.add_explanation([x], [answer], label=[label])
    return ox.Knowledge(log)


def test_a_no_by_weak_facts_alone_is_none() -> None:
    """An answer that may lie on the plane casts a shadow in which a model through both points says Yes."""
    known = valid([([0.0, 0.0], [4.0, 0.0], 1)])
    region = known.region(ox.Verdict.NO)
    assert len(region.polygon((0, 1), None, BOX)) == 0
    assert [5.0, 0.0] not in region
    assert known.region(ox.Verdict.YES).polygon((0, 1), None, BOX).exact == ((0, 0), (-10, 0))
    other = valid([([0.0, 0.0], [4.0, 0.0], -1)])
    assert other.region(ox.Verdict.YES).polygon((0, 1), None, BOX).exact == ((10, 0), (4, 0))
    assert other.region(ox.Verdict.NO).polygon((0, 1), None, BOX).exact == ((0, 0), (-10, 0))


@pytest.mark.parametrize("seed", range(4))
def test_polygons_of_merely_valid_answers_are_those_of_certify(seed) -> None:
    rng = np.random.default_rng(seed)
    points = rng.integers(-4, 5, size=(14, 2)).astype(float)
    plane = ox.Hyperplane([1.0, -2.0], 0.5)
    labels = plane.labels(points)
    known = valid([(x, points[labels == -y][0], int(y)) for x, y in zip(points, labels, strict=True)])
    grid = np.stack(np.meshgrid(np.arange(-9, 10), np.arange(-9, 10)), axis=-1).reshape(-1, 2).astype(float)
    for verdict in BOTH:
        region = known.region(verdict)
        found = region.polygon((0, 1), None, BOX)
        inside = [depth(found.exact, [Fraction(v) for v in place]) for place in grid.tolist()]
        members = region.contains(grid)
        assert all(value >= 0 for value, member in zip(inside, members, strict=True) if member)
        assert all(member for value, member in zip(inside, members, strict=True) if value > 0)


# --- answers with lengths ---------------------------------------------------------------------------------------------


def explained(norm: str, p: int, seed: int, n: int = 16, answers: int = 2, **terms) -> ox.QueryLog:
    rng = np.random.default_rng(seed)
    service = ox.ModelOracle(ox.Hyperplane(rng.normal(size=p), 0.2), ox.Mechanism(norm))
    points = rng.normal(size=(n, p)).round(2)
    log = ox.QueryLog(mechanism=ox.Mechanism(norm, **terms))
    log.add_label(points[answers:], service.classify(points[answers:]))
    first = points[:answers]
    log.add_explanation(first, service.explain(first), label=service.classify(first))
    return log


@pytest.mark.parametrize("terms", [{}, {"tolerance": 0.01}, {"slack": 0.2}])
@pytest.mark.parametrize("norm", ["l1", "linf", "l2"])
def test_a_wrapped_polygon_is_certain_and_misses_no_more_than_its_gap(norm, terms) -> None:
    log = explained(norm, 3, 4, answers=1, **terms)
    knowledge, base, box = ox.Knowledge(log), np.zeros(3), ((-3.0, 3.0), (-4.0, 4.0))
    rng = np.random.default_rng(0)
    for verdict in BOTH:
        region = knowledge.region(verdict)
        found = region.polygon((0, 2), base, box, accuracy=1e-3)
        assert found.exact is None
        assert found.gap <= (0.02 if terms else 1e-3)
        points = np.zeros((len(found), 3))
        points[:, [0, 2]] = found.corners
        assert region.contains(points).all()
        shares = rng.dirichlet(np.ones(len(found)) / 3, size=50)
        assert region.contains(0.999 * (shares @ points) + 0.001 * points.mean(axis=0)).all()
        asked = np.zeros((300, 3))
        asked[:, [0, 2]] = rng.uniform([-3, -4], [3, 4], size=(300, 2))
        corners = [[Fraction(v) for v in corner] for corner in (found.corners / [6, 8]).tolist()]
        for place in asked[region.contains(asked)][:, [0, 2]] / [6, 8]:
            assert depth(corners, [Fraction(v) for v in place.tolist()]) >= -2 * found.gap


def test_wrapping_says_how_little_it_knows() -> None:
    """Nothing certain: what is left of the square. No models: the gap is as wide as the square."""
    nothing = wrap(lambda places: np.zeros(len(places), dtype=bool), lambda place: None, 1e-3)
    assert len(nothing.corners) == 0
    assert nothing.gap == pytest.approx(np.sqrt(2))
    empty = wrap(lambda places: np.zeros(len(places), dtype=bool), lambda place: (0.0, 0.0, 1.0), 1e-3)
    assert (len(empty.corners), empty.gap) == (0, 0.0)
    disc = wrap(lambda places: np.hypot(*(places - 0.5).T) <= 0.25, lambda place: None, 1e-3)
    assert disc.gap == pytest.approx(np.hypot(0.5, 0.5) - 0.25, abs=1e-3)

    def tangent(place):
        way = (0.5 - place) / np.linalg.norm(place - 0.5)
        return (*way.tolist(), float(way.sum() / 2 - 0.25))

    round_one = wrap(lambda places: np.hypot(*(places - 0.5).T) <= 0.25, tangent, 1e-3)
    assert round_one.gap <= 1e-3
    assert area(round_one.corners) == pytest.approx(np.pi / 16, rel=5e-3)


# --- generators -------------------------------------------------------------------------------------------------------


def in_hull_and_cone(found, x) -> bool:
    """By cvxpy: balls of the points and rays that reach x."""
    v, f = cp.Variable(len(found.points), nonneg=True), cp.Variable(max(len(found.rays), 1), nonneg=True)
    rays = found.rays if len(found.rays) else np.zeros((1, len(x)))
    reach = found.points.T @ v + rays.T @ f
    limits = [cp.sum(v) == 1]
    for k, norm in enumerate(found.norms):
        d = cp.Variable(len(x))
        owed = found.radii[:, k] @ v + (found.ray_radii[:, k] @ f if len(found.rays) else 0)
        limits.append(cp.norm(d, norm.q) <= owed)
        reach = reach + d
    away = cp.Variable()
    problem = cp.Problem(cp.Minimize(away), [*limits, cp.norm(reach - x, "inf") <= away])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # under l2 the least is not reached, and the solver says so
        problem.solve(solver=cp.CLARABEL)
    return bool(problem.value < 1e-3)


@pytest.mark.parametrize("needed_only", [False, True])
@pytest.mark.parametrize(("kind", "p"), [("grid", 3), ("one-hot", 5), ("gaussian", 4)])
def test_generators_of_labels_generate_the_region(kind, p, needed_only) -> None:
    rng = np.random.default_rng(8)
    log = of_model(rng, kind, 40, p)
    knowledge = ox.Knowledge(log)
    for verdict in BOTH:
        region = knowledge.region(verdict)
        found = region.generators(needed_only)
        assert found.is_whole
        assert found.norms == ()
        assert np.array_equal(found.points, log.points[found.rows])
        assert (log.labels[found.rows] == verdict).all()
        assert np.array_equal(found.rays, log.points[found.ray_rows[:, 0]] - log.points[found.ray_rows[:, 1]])
        if kind != "gaussian":  # whole numbers: sums of generators are not rounded, so that the rim is met
            assert region.contains(found.points).all()
            assert region.contains(found.points[0] + found.rays).all()
        v = rng.dirichlet(np.ones(len(found.points)), size=60)
        f = rng.exponential(size=(60, len(found.rays))) * (rng.random((60, len(found.rays))) < 0.1)
        if kind == "gaussian":
            assert region.contains(v @ found.points + (f + 1e-3) @ found.rays).all()
        asked = rng.normal(size=(150, p)) * 4
        if kind == "one-hot":
            asked[:, -3:] = np.eye(3)[rng.integers(0, 3, size=150)]
        members = region.contains(asked)
        assert members.any()
        equations = np.vstack([np.hstack([found.points, np.ones((len(found.points), 1))]),
                               np.hstack([found.rays, np.zeros((len(found.rays), 1))])]).T  # fmt: skip
        for x, member in zip(asked, members, strict=True):
            right = np.append(x, 1.0)
            status = linprog(np.zeros(equations.shape[1]), A_eq=equations, b_eq=right, method="highs").status
            assert (status == 0) == member


def test_needed_generators_are_fewer_and_imply_the_others() -> None:
    log = of_model(np.random.default_rng(9), "grid", 120, 3)
    known = ox.Knowledge(log)
    rows = {int(row) for verdict in BOTH for row in known.region(verdict).generators(needed_only=True).rows}
    assert 4 <= len(rows) < 40
    kept = ox.Knowledge(labelled(log.points[sorted(rows)], log.labels[sorted(rows)]))
    assert np.array_equal(kept.certify(log.points).codes, log.labels)
    for row in rows:  # none of them is implied by the others
        others = sorted(rows - {row})
        fewer = ox.Knowledge(labelled(log.points[others], log.labels[others]))
        assert fewer.certify(log.points[row]).codes[0] == ox.Verdict.UNKNOWN


@pytest.mark.parametrize("norm", ["l1", "linf", "l2"])
def test_generators_of_exact_answers_generate_the_region(norm) -> None:
    """thm:region-CF, with one answer whose numbers are exact: under l2 the region is half of the space."""
    log = ox.QueryLog(mechanism=ox.Mechanism(norm))
    answer = {"l1": [2.0, 0.0, 0.0], "linf": [2.0, 2.0, 2.0], "l2": [2.0, 2.0, 1.0]}[norm]
    log.add_explanation([[0.0, 0.0, 0.0]], [answer], label=[-1])
    log.add_label([[4.0, 3.0, 1.0], [-1.0, -2.0, 0.5]], [1, -1])
    rng = np.random.default_rng(3)
    asked = rng.normal(size=(60, 3)) * 3 + 1
    if norm == "l2":  # every ball touches the plane: near it weights are without bound
        asked = asked[np.abs(asked @ answer - 9) > 3]
    knowledge = ox.Knowledge(log, tolerance=0.0)
    for verdict in BOTH:
        region = knowledge.region(verdict)
        found = region.generators()
        assert found.is_whole
        assert found.norms == (ox.norm(norm),)
        length = {"l1": 2.0, "linf": 2.0, "l2": 3.0}[norm]
        if verdict == ox.Verdict.NO:
            assert found.radii[found.rows.tolist().index(0), 0] == pytest.approx(length, rel=1e-12)
            assert found.radii.max() < length
        members = region.contains(asked)
        assert members.any()
        assert [in_hull_and_cone(found, x) for x in asked] == members.tolist()


@pytest.mark.parametrize("norm", ["l1", "linf", "l2"])
@pytest.mark.parametrize("terms", [{}, {"slack": 0.3}, {"tolerance": 0.02}])
def test_generators_under_a_tolerance_generate_certain_points(norm, terms) -> None:
    log = explained(norm, 3, 7, **terms)
    rng = np.random.default_rng(1)
    for verdict in BOTH:
        region = ox.Knowledge(log).region(verdict)
        found = region.generators()
        assert not found.is_whole
        n, m = len(found.points), len(found.rays)
        v, f = rng.dirichlet(np.ones(n) / 2, size=200), rng.exponential(size=(200, m)) * (rng.random((200, m)) < 0.02)
        owed = v @ found.radii[:, 0] + f @ found.ray_radii[:, 0]
        d = rng.normal(size=(200, 3))
        d *= (0.999 * np.maximum(owed, 0) * rng.random(200) / np.asarray(ox.norm(norm)(d)))[:, None]
        made = (v @ found.points + f @ found.rays + d)[owed > 1e-6]
        assert len(made) > 50
        assert region.contains(made).all()


# --- doors ------------------------------------------------------------------------------------------------------------


def test_members_are_those_of_certify() -> None:
    log = of_model(np.random.default_rng(4), "gaussian", 30, 2)
    knowledge, asked = ox.Knowledge(log), np.random.default_rng(5).normal(size=(200, 2)) * 4
    codes = knowledge.certify(asked).codes
    for verdict in BOTH:
        region = knowledge.region(verdict)
        assert np.array_equal(region.contains(asked), codes == verdict)
        assert all((x in region) == (code == verdict) for x, code in zip(asked[:9], codes, strict=False))
        assert region.verdict is verdict
        assert verdict.name in repr(region)


def test_what_is_added_later_is_not_in_it() -> None:
    knowledge = ox.Knowledge(labelled([[0.0, 0.0], [4.0, 0.0]], [-1, 1]))
    region = knowledge.region(ox.Verdict.YES)
    before = region.polygon((0, 1), None, BOX).exact
    knowledge.add([[0.0, 3.0]], [1])
    assert region.polygon((0, 1), None, BOX).exact == before
    assert [0.0, 4.0] not in region
    assert [0.0, 4.0] in knowledge.region(ox.Verdict.YES)
    log = labelled([[0.0, 0.0], [4.0, 0.0]], [-1, 1])
    region = ox.Knowledge(log).region(ox.Verdict.YES)
    log.add_label([[0.0, 3.0]], [1])
    log.add_explanation([[0.0, 3.0]], [[1.0, 3.0]], label=[1], mechanism=ox.Mechanism("l1"))
    assert region.polygon((0, 1), None, BOX).exact == before
    assert region.generators().rows.tolist() == [1]


def test_an_empty_log_has_empty_regions() -> None:
    region = ox.Knowledge(ox.QueryLog(features=["a", "b"])).region(ox.Verdict.YES)
    assert len(region.polygon(("a", "b"), None, BOX)) == 0
    assert len(region.generators().points) == 0
    with pytest.raises(InvalidInput):
        ox.Knowledge(ox.QueryLog()).region(ox.Verdict.YES).polygon((0, 1))


@pytest.mark.parametrize("verdict", [ox.Verdict.UNKNOWN, ox.Verdict.BOUNDARY, ox.Verdict.UNDECIDED, "yes", 7, None])
def test_only_yes_and_no_have_regions(verdict) -> None:
    with pytest.raises(InvalidInput):
        ox.Knowledge(labelled([[0.0, 1.0]], [1])).region(verdict)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (((0, 0), [0.0] * 3, BOX), DimensionMismatch),
        (((0, 3), [0.0] * 3, BOX), DimensionMismatch),
        (((0, "x"), [0.0] * 3, BOX), DimensionMismatch),
        (((0, 1), None, BOX), InvalidInput),
        (((0, 1), [0.0, 1.0], BOX), DimensionMismatch),
        (((0, 1), [0.0, 1.0, np.nan], BOX), NotFinite),
        (((0, 1), [0.0] * 3, ((0.0, np.inf), (0.0, 1.0))), NotFinite),
        (((0, 1), [0.0] * 3, ((1.0, 1.0), (0.0, 1.0))), InvalidInput),
        (((0, 1), [0.0] * 3, ((0.0, 1.0),)), InvalidInput),
        (((0, 1), [0.0] * 3, BOX, 0.0), InvalidInput),
        (((0, 1), [0.0] * 3, BOX, float("nan")), InvalidInput),
    ],
)
def test_what_is_no_slice_is_refused(arguments, error) -> None:
    region = ox.Knowledge(labelled([[0.0, 1.0, 2.0]], [1])).region(ox.Verdict.YES)
    with pytest.raises(error):
        region.polygon(*arguments)


def test_what_is_no_point_is_refused() -> None:
    region = ox.Knowledge(labelled([[0.0, 1.0]], [1])).region(ox.Verdict.YES)
    with pytest.raises(NotFinite):
        region.contains([[0.0, np.nan]])
    with pytest.raises(DimensionMismatch):
        region.contains([[0.0, 1.0, 2.0]])
    with pytest.raises(DimensionMismatch):
        _ = [[0.0, 1.0], [0.0, 2.0]] in region


@pytest.mark.parametrize(
    ("terms", "word"),
    [
        (ox.Mechanism("l1", robustness="l2", radius=0.1), "robust"),
        (ox.Mechanism("l1", robustness="l2", radius=None), "robust"),
        (ox.Mechanism("l1", domain=ox.Domain(2, low=0.0)), "domain"),
    ],
)
def test_logs_without_a_finite_description_say_why(terms, word) -> None:
    log = ox.QueryLog(mechanism=terms)
    log.add_label([[1.0, 1.0], [5.0, 1.0]], [-1, 1])
    log.add_explanation([[1.0, 2.0]], [[3.5, 2.0]], label=[-1])
    region = ox.Knowledge(log).region(ox.Verdict.NO)
    with pytest.raises(InvalidInput, match=word):
        region.generators()
    with pytest.raises(InvalidInput, match=word):
        region.polygon((0, 1), None, BOX)


def test_a_log_without_labels_says_why() -> None:
    log = ox.QueryLog(mechanism=ox.Mechanism("l1"))
    log.add_explanation([[1.0, 2.0]], [[3.5, 2.0]])
    with pytest.raises(InvalidInput, match="no label"):
        ox.Knowledge(log).region(ox.Verdict.NO).generators()


def test_400_labels_with_39_columns_take_a_moment() -> None:
    rng = np.random.default_rng(0)
    groups = (5, 4, 9, 4, 5, 4, 2)
    columns = [rng.integers(0, 60, size=(400, 6)).astype(float)]
    columns += [np.eye(size)[rng.integers(0, size, size=400)] for size in groups]
    points = np.hstack(columns)
    assert points.shape[1] == 39
    normal = np.append(rng.normal(size=6) / 20, rng.normal(size=33))
    log = labelled(points, ox.Hyperplane(normal, float(np.median(points @ normal))).labels(points))
    knowledge = ox.Knowledge(log)
    start = time.process_time()
    found: list[Polygon] = [
        knowledge.region(verdict).polygon((0, 1), points[0], ((-60.0, 120.0), (-60.0, 120.0))) for verdict in BOTH
    ]
    assert time.process_time() - start < 20  # it takes one; machines differ
    assert all(polygon.gap == 0.0 for polygon in found)
    assert max(map(len, found)) > 2
