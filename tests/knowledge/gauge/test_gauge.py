"""The gauge against linear programs, the true model, other units, other paths and other threads."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from knowledge.gauge.exact import dot, fractions, labelled
from overexplain.knowledge.gauge.fit import NoInterior, fit_gauge
from overexplain.knowledge.gauge.view import View


def by_linear_programs(rows, x):
    """−1, +1 or 0: whether (x, −1) or its negative is a combination of the rows."""
    query = np.append(x, -1.0)
    for code, right in ((-1, query), (1, -query)):
        if linprog(np.zeros(len(rows)), A_eq=rows.T, b_eq=right, method="highs").status == 0:
            return code
    return 0


@pytest.mark.parametrize("kernel", [False, True])
@pytest.mark.parametrize(("p", "n"), [(2, 60), (5, 200), (9, 150), (30, 150)])
def test_agrees_with_linear_programs(p, n, kernel):
    rows, _, _, rng = labelled(p, n, seed=10 + p)
    gauge = fit_gauge(rows)
    points = rng.standard_normal((2500, p))
    codes = gauge.decide(View.of(gauge), points, kernel=kernel)
    sample = slice(0, 150 if p < 30 else 50)
    assert [by_linear_programs(rows, x) for x in points[sample]] == list(codes[sample])
    assert len(set(codes)) == 3 - (p == 30 and not np.any(codes == 1))
    assert 3 not in codes
    assert vars(gauge.stats)["open"] == 0


def test_claims_hold_for_the_model_on_a_million_points():
    rows, normal, offset, rng = labelled(10, 5000, seed=3)
    gauge = fit_gauge(rows)
    points = rng.standard_normal((1_000_000, 10))
    codes = gauge.decide(View.of(gauge), points)
    truth = np.where(points @ normal >= offset, 1, -1)
    claimed = codes != 0
    assert np.array_equal(codes[claimed], truth[claimed])
    assert 0.005 < np.mean(~claimed) < 0.02
    counts = vars(gauge.stats)
    assert sum(counts.values()) == len(points)
    assert counts["box"] > 0.9 * len(points)


@pytest.mark.parametrize("p", [3, 8, 12])
def test_paths_agree(p):
    rows, _, _, rng = labelled(p, 40 * p, seed=p)
    points = rng.standard_normal((4000, p))
    first = fit_gauge(rows)
    by_numpy = first.decide(View.of(first), points, kernel=False)
    few = np.concatenate([fit_gauge(rows).decide(View.of(first), points[i : i + 100], kernel=False) for i in (0, 100)])
    second = fit_gauge(rows)
    compiled = second.decide(View.of(second), points, kernel=True)
    assert np.array_equal(by_numpy, compiled)
    assert np.array_equal(by_numpy[:200], few)


def test_without_numba(monkeypatch):
    rows, _, _, rng = labelled(8, 300, seed=1)
    points = rng.standard_normal((5000, 8))
    gauge = fit_gauge(rows)
    expected = gauge.decide(View.of(gauge), points, kernel=True)
    monkeypatch.setitem(sys.modules, "overexplain.knowledge.gauge.pivots", None)
    bare = fit_gauge(rows)
    assert np.array_equal(bare.decide(View.of(bare), points, kernel=True), expected)


def test_a_compiler_that_cannot_write_its_cache(monkeypatch):
    from overexplain.knowledge.gauge import kernel

    def full(*arguments):
        raise OSError("no space left on device")

    rows, _, _, rng = labelled(8, 300, seed=1)
    points = rng.standard_normal((2000, 8))
    gauge = fit_gauge(rows)
    expected = gauge.decide(View.of(gauge), points, kernel=False)
    monkeypatch.setattr(kernel, "screen", full)
    assert np.array_equal(gauge.decide(View.of(gauge), points, kernel=True), expected)


def test_small_blocks_do_not_load_numba():
    """A single call from the command line should not wait for a compiler."""
    import subprocess

    script = """
import sys
import numpy as np
from overexplain.knowledge.gauge.fit import fit_gauge
from overexplain.knowledge.gauge.view import View
rng = np.random.default_rng(0)
points = rng.standard_normal((300, 8))
rows = np.hstack([points, -np.ones((300, 1))]) * np.where(points[:, :1] > 0.1, -1.0, 1.0)
gauge = fit_gauge(rows)
gauge.decide(View.of(gauge), rng.standard_normal((1000, 8)))
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("kernel", [False, True])
@pytest.mark.parametrize("power", [500, -500])
def test_units_are_powers_of_two(power, kernel):
    rows, _, _, rng = labelled(7, 150, seed=5)
    points = rng.standard_normal((3000, 7))
    gauge = fit_gauge(rows)
    scaled_rows = rows.copy()
    scaled_rows[:, :-1] = np.ldexp(rows[:, :-1], power)
    scaled = fit_gauge(scaled_rows)
    assert np.array_equal(np.ldexp(scaled.centre[:-1], power), gauge.centre[:-1])
    expected = gauge.decide(View.of(gauge), points, kernel=kernel)
    assert np.array_equal(scaled.decide(View.of(scaled), np.ldexp(points, power), kernel=kernel), expected)


@pytest.mark.parametrize("factor", [1e150, 1e-150])
def test_units_are_anything(factor):
    rows, _, _, rng = labelled(7, 150, seed=6)
    points = rng.standard_normal((3000, 7))
    gauge = fit_gauge(rows)
    expected = gauge.decide(View.of(gauge), points, kernel=False)
    scaled_rows = rows.copy()
    scaled_rows[:, :-1] *= factor
    scaled = fit_gauge(scaled_rows)
    assert np.array_equal(scaled.decide(View.of(scaled), points * factor, kernel=False), expected)
    # Rows may come in any length.
    lengths = factor ** rng.uniform(-1.0, 1.0, (len(rows), 1))
    ragged = fit_gauge(rows * lengths)
    assert np.array_equal(ragged.decide(View.of(ragged), points, kernel=False), expected)


def test_repeated_and_empty_rows_change_nothing():
    rows, _, _, rng = labelled(5, 80, seed=7)
    points = rng.standard_normal((2000, 5))
    gauge = fit_gauge(rows)
    more = np.vstack([rows, rows[::-1], np.zeros((3, 6)), rows * 3.0])
    doubled = fit_gauge(more)
    for kernel in (False, True):
        expected = gauge.decide(View.of(gauge), points, kernel=kernel)
        assert np.array_equal(doubled.decide(View.of(doubled), points, kernel=kernel), expected)


def test_threads_agree():
    rows, _, _, rng = labelled(12, 400, seed=8)
    points = rng.standard_normal((40_000, 12))
    alone = fit_gauge(rows)
    expected = alone.decide(View.of(alone), points, kernel=True)
    shared = fit_gauge(rows)
    view = View.of(shared)
    with ThreadPoolExecutor(4) as threads:
        parts = list(
            threads.map(
                lambda i: shared.decide(view, points[i : i + 2500], kernel=i % 5000 == 0), range(0, 40_000, 2500)
            )
        )
    assert np.array_equal(np.concatenate(parts), expected)


def test_a_ray():
    gauge = fit_gauge(np.array([[-2.0], [-3.0]]))
    view = View.of(gauge, has_offset=False)
    assert list(gauge.decide(view, np.array([[1.0], [-1e-200], [0.0], [np.nan]]))) == [1, -1, 3, 3]
    assert gauge.spread.shape == (1, 0)


def test_a_wedge():
    # w1 between −w2 and w2, w2 > 0.
    gauge = fit_gauge(np.array([[1.0, -1.0], [-1.0, -1.0]]))
    queries = np.array([[0.0, 1.0], [0.999, 1.0], [1.0, 1.0], [1.001, 1.0], [1.0, 0.0], [-0.5, -1.0], [0.0, 0.0]])
    for kernel in (False, True):
        assert list(gauge.decide(View.of(gauge, has_offset=False), queries, kernel=kernel)) == [1, 1, 3, 0, 0, -1, 3]


def test_a_query_that_vanishes_at_the_centre():
    # The cone over a cube: symmetric, so that the axes vanish at its centre exactly or nearly so.
    rows = np.vstack([np.hstack([np.eye(3), -np.ones((3, 1))]), np.hstack([-np.eye(3), -np.ones((3, 1))])])
    gauge = fit_gauge(rows)
    queries = np.vstack([np.eye(4)[:3], -np.eye(4)[:3], np.zeros((1, 4))])
    for kernel in (False, True):
        assert list(gauge.decide(View.of(gauge, has_offset=False), queries, kernel=kernel)) == [0] * 6 + [3]


def test_no_interior():
    with pytest.raises(NoInterior):
        fit_gauge(np.array([[1.0, -1.0], [-1.0, 1.0], [0.0, -1.0]]))
    with pytest.raises(NoInterior):
        fit_gauge(np.array([[1.0, 0.0], [2.0, 0.0]]))  # holds a line
    with pytest.raises(NoInterior):
        fit_gauge(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]))
    with pytest.raises(NoInterior):
        fit_gauge(np.array([[1.0, np.nan]]))
    rows, _, _, _ = labelled(4, 60, seed=2)
    with pytest.raises(NoInterior):
        fit_gauge(rows, errors=np.full(len(rows), 10.0))


def test_a_known_start_is_used_and_a_wrong_one_is_not():
    rows, normal, offset, rng = labelled(6, 100, seed=4)
    points = rng.standard_normal((500, 6))
    codes = [
        fit_gauge(rows, start=start).decide(View.of(fit_gauge(rows)), points)
        for start in (None, -np.append(normal, offset))
    ]
    begun = fit_gauge(rows, start=np.append(normal, offset))
    codes.append(begun.decide(View.of(begun), points))
    assert np.array_equal(codes[0], codes[1])
    assert np.array_equal(codes[0], codes[2])


def test_the_centre_and_the_box_hold_exactly():
    rows, _, _, _ = labelled(4, 80, seed=9, scales=np.array([1e-3, 1.0, 50.0, 1e4]))
    gauge = fit_gauge(rows)
    centre = fractions(gauge.centre)
    assert all(dot(fractions(row), centre) < 0 for row in rows)
    # Every direction of the cone meets the slice inside the box: maximise ±z_j over it.
    exact = np.array([[float(v) for v in (rows @ gauge.spread)[i]] for i in range(len(rows))])
    slack = -(rows @ gauge.centre)
    for j in range(4):
        for sign in (1.0, -1.0):
            result = linprog(
                -sign * np.eye(4)[j], A_ub=exact / slack[:, None], b_ub=np.ones(len(rows)), bounds=(None, None)
            )
            assert -result.fun <= gauge.reach[j] * (1 + 1e-9)


@pytest.mark.parametrize("p", [3, 9])
def test_opponents_lie_inside_and_disagree(p):
    rows, _, _, rng = labelled(p, 100, seed=11)
    gauge = fit_gauge(rows)
    view = View.of(gauge)
    points = rng.standard_normal((300, p))
    codes = gauge.decide(view, points)
    exact_rows = [fractions(row) for row in rows]
    spread = [fractions(line) for line in gauge.spread]
    met = 0
    for x, code in zip(points, codes, strict=True):
        z = gauge.opponent(view, x)
        assert (z is not None) == (code == 0)
        if z is None or met >= 15:
            continue
        met += 1
        w = [Fraction(float(w0)) + dot(line, fractions(z)) for w0, line in zip(gauge.centre, spread, strict=True)]
        assert all(dot(row, w) < 0 for row in exact_rows)
        query = fractions(np.append(x, -1.0))
        assert dot(query, w) * dot(query, fractions(gauge.centre)) < 0
    assert met > 5


def lattice(seed=16):
    """Small whole numbers: ties are the rule."""
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 3, (120, 6)).astype(float)
    yes = points @ np.array([2.0, -1.0, 1.0, -3.0, 1.0, 0.0]) >= 0.5
    return np.hstack([points, -np.ones((120, 1))]) * np.where(yes, -1.0, 1.0)[:, None], rng


def test_whole_numbers_are_claimed_only_off_ties():
    rows, rng = lattice()
    gauge = fit_gauge(rows)
    points = rng.integers(0, 3, (120, 6)).astype(float)
    # Of closed regions: a strict claim needs the claim of the closure, both signs need neither.
    weak = np.array([by_linear_programs(rows, x) for x in points])
    for kernel in (False, True):
        codes = gauge.decide(View.of(gauge), points, kernel=kernel)
        assert np.all((codes == weak) | (codes == 3))
        assert np.any(codes == 3)
        assert np.any(codes == 0)


def test_a_tie_names_the_rows_of_its_proof():
    rows, rng = lattice()
    gauge = fit_gauge(rows)
    view = View.of(gauge)
    points = rng.integers(0, 3, (100, 6)).astype(float)
    open_points = points[gauge.decide(view, points) == 3]
    assert len(open_points)
    for x in open_points:
        numbers, weights = gauge.support(view, x)
        query = np.append(x, -1.0)
        turned = -np.sign(query @ gauge.centre) * (query @ gauge.spread) / abs(query @ gauge.centre)
        scaled = (rows[numbers] @ gauge.spread) / -(rows[numbers] @ gauge.centre)[:, None]
        assert weights @ scaled == pytest.approx(turned, abs=1e-9)
        assert weights.sum() == pytest.approx(1.0, abs=1e-9)


def test_kept_rows_say_it_all():
    rows, _, _, rng = labelled(8, 600, seed=12)
    gauge = fit_gauge(rows)
    kept = gauge.kept
    assert 9 <= len(kept) < 150
    fewer = fit_gauge(rows[kept])
    points = rng.standard_normal((2000, 8))
    assert np.array_equal(fewer.decide(View.of(fewer), points), gauge.decide(View.of(gauge), points))


def test_a_view_through_a_map():
    """w = N u: queries of w in d dimensions about a cone in D."""
    rows, _, _, rng = labelled(4, 100, seed=13)
    gauge = fit_gauge(rows)
    lift = rng.standard_normal((8, 5))
    queries = rng.standard_normal((1000, 8))
    for kernel in (False, True):
        through = gauge.decide(View.of(gauge, lift, has_offset=False), queries, kernel=kernel)
        direct = gauge.decide(View.of(gauge, has_offset=False), queries @ lift, kernel=kernel)
        assert np.array_equal(through, direct)


def test_errors_of_rows_and_views_cost_claims_and_never_add_any():
    rows, _, _, rng = labelled(6, 200, seed=14)
    points = rng.standard_normal((3000, 6))
    exact = fit_gauge(rows)
    view = View.of(exact)
    sharp = exact.decide(view, points)
    rough = fit_gauge(rows, errors=np.full(rows.shape, 1e-4))
    relaxed = View(view.anchor, view.matrix, view.error, relax=0.05)
    blurred = View(view.anchor, view.matrix, view.error + 0.01 * np.abs(view.anchor).max())
    for kernel in (False, True):
        for codes in (
            rough.decide(View.of(rough), points, kernel=kernel),
            exact.decide(relaxed, points, kernel=kernel),
            exact.decide(blurred, points, kernel=kernel),
        ):
            changed = codes != sharp
            assert 0 < np.count_nonzero(changed) < 600
            assert set(codes[changed]) == {3}


def test_not_finite_points_stay_open():
    rows, _, _, _ = labelled(3, 50, seed=15)
    gauge = fit_gauge(rows)
    points = np.array([[np.nan, 0.0, 0.0], [np.inf, 0.0, 0.0], [1e308, -1e308, 1e308]])
    for kernel in (False, True):
        assert list(gauge.decide(View.of(gauge), points, kernel=kernel)[:2]) == [3, 3]
