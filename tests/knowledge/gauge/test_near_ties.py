"""Close to a tie a claim must be right or not be made."""

from __future__ import annotations

import numpy as np
import pytest

from knowledge.gauge.exact import Corner, dot, fractions, labelled
from overexplain.knowledge.gauge.fit import fit_gauge
from overexplain.knowledge.gauge.plain import settle
from overexplain.knowledge.gauge.view import View

LEVELS = [0.0] + [sign * 10.0**-e for e in (2, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15) for sign in (1.0, -1.0)]


def near_ties(rows, gauge, rng, count):
    """(points x, truth) near extreme rays: 1 (x, −1) is negative all over the cone, −1 it takes both signs, 0 a tie."""
    polytope = gauge._shape.polytope
    k = polytope.rows.shape[1]
    found = settle(polytope, rng.standard_normal((count, k)), np.full(count, np.inf))
    points, truths = [], []
    for basis in found.basis:
        tight = gauge._numbers[polytope.identity[basis]] if np.all(basis >= 0) else None
        corner = None if tight is None else Corner.of(rows, [int(i) for i in tight])
        if corner is None:
            continue
        middle = np.array([float(v) for v in corner.middle])
        for level in LEVELS:
            query = rng.uniform(0.2, 1.0, len(tight)) @ rows[tight] + level * middle / np.abs(rows @ gauge.centre).sum()
            if query[-1] >= 0:
                continue
            x = query[:-1] / -query[-1]
            exact = fractions(np.append(x, -1.0))
            excess = corner.excess(exact)
            if excess is not None and dot(exact, fractions(gauge.centre)) < 0:
                points.append(x)
                truths.append((excess > 0) - (excess < 0))
    return np.array(points), np.array(truths)


@pytest.mark.parametrize("kernel", [False, True])
@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize(("p", "n"), [(1, 30), (2, 40), (4, 80), (7, 60), (9, 120)])
def test_no_false_claim_at_any_distance(p, n, raw, kernel):
    scales = 10.0 ** np.linspace(-3, 4, p) if raw else None
    rows, _, _, rng = labelled(p, n, seed=p, scales=scales)
    gauge = fit_gauge(rows)
    points, truths = near_ties(rows, gauge, rng, 12)
    assert len(points) > 10
    for _ in range(2):  # again with what was learnt, and with the full shape
        codes = gauge.decide(View.of(gauge), points, kernel=kernel)
        assert set(codes[truths > 0]) <= {-1, 3}
        assert set(codes[truths < 0]) <= {0, 3}
        assert set(codes[truths == 0]) <= {3}
        gauge.kept  # noqa: B018
    # Far from rounding there is nothing to be modest about.
    assert np.mean(codes == 3) < 0.6
