"""The paper's figures of certified regions, as text: Y certain Yes, N certain No, . not certain, = on the plane.

The paper's source has no pictures and no data for them. These are its configurations (labels of both classes; one point with
its counterfactual under ℓ1, ℓ2, ℓ∞) with the data that docs/figures draws, every coordinate a half from −4 to 4. Each grid must be
what the exact cone gives, what a sweep of all normals gives, and what `Knowledge` says.
"""

from __future__ import annotations

import numpy as np
import pytest

import overexplain as ox
from brute import givens, lattice, picture, truth
from docs_scripts import docs_module
from sweep import plane_normals, swept

CASES = docs_module("paper_cases")
GRID = lattice(-4, 4)
WIDTH = 17

FACTUALS = """
.............YYYY
.............YYYY
............YYYYY
............YYYYY
...........YYYYYY
..........YYYYYYY
...........YYYYYY
............YYYYY
NNNNNNNNN...YYYYY
NNNNNNNN.........
NNNNNNNN.........
NNNNNNN..........
NNNNNNN..........
NNNNNN...........
NNNNN............
NNNNN............
NNNN.............
"""

# ℓ1: (-1, 0) to (1, 0)   ℓ2: (-1, -1/2) to (1, 1/2)   ℓ∞: (-1, -1) to (1, 1)
COUNTERFACTUAL_OF_A_NO = """
NN...............   NNNNNNNYYYYYYYYYY   ..........YYYYYYY
NNN..............   NNNNNNN=YYYYYYYYY   ..........YYYYYYY
NNNN............Y   NNNNNNNNYYYYYYYYY   ..........YYYYYYY
NNNNN..........YY   NNNNNNNN=YYYYYYYY   ..........YYYYYYY
NNNNNN........YYY   NNNNNNNNNYYYYYYYY   ..........YYYYYYY
NNNNNNN......YYYY   NNNNNNNNN=YYYYYYY   ..........YYYYYYY
NNNNNNNN....YYYYY   NNNNNNNNNNYYYYYYY   ..........=YYYYYY
NNNNNNNNN..YYYYYY   NNNNNNNNNN=YYYYYY   NNNNNNNNNN.......
NNNNNNNNNN=YYYYYY   NNNNNNNNNNNYYYYYY   NNNNNNNNNN.......
NNNNNNNNN..YYYYYY   NNNNNNNNNNN=YYYYY   NNNNNNNNNN.......
NNNNNNNN....YYYYY   NNNNNNNNNNNNYYYYY   NNNNNNNNNN.......
NNNNNNN......YYYY   NNNNNNNNNNNN=YYYY   NNNNNNNNNN.......
NNNNNN........YYY   NNNNNNNNNNNNNYYYY   NNNNNNNNNN.......
NNNNN..........YY   NNNNNNNNNNNNN=YYY   NNNNNNNNNN.......
NNNN............Y   NNNNNNNNNNNNNNYYY   NNNNNNNNNN.......
NNN..............   NNNNNNNNNNNNNN=YY   NNNNNNNNNN.......
NN...............   NNNNNNNNNNNNNNNYY   NNNNNNNNNN.......
"""

# The same with the classes swapped; not the same picture: a model may pass through a point of the rim, which is then a Yes.
COUNTERFACTUAL_OF_A_YES = """
YYY..............   YYYYYYYNNNNNNNNNN   ...........NNNNNN
YYYY.............   YYYYYYY=NNNNNNNNN   ...........NNNNNN
YYYYY............   YYYYYYYYNNNNNNNNN   ...........NNNNNN
YYYYYY..........N   YYYYYYYY=NNNNNNNN   ...........NNNNNN
YYYYYYY........NN   YYYYYYYYYNNNNNNNN   ...........NNNNNN
YYYYYYYY......NNN   YYYYYYYYY=NNNNNNN   ...........NNNNNN
YYYYYYYYY....NNNN   YYYYYYYYYYNNNNNNN   YYYYYYYYYY=......
YYYYYYYYYY..NNNNN   YYYYYYYYYY=NNNNNN   YYYYYYYYYYY......
YYYYYYYYYY=NNNNNN   YYYYYYYYYYYNNNNNN   YYYYYYYYYYY......
YYYYYYYYYY..NNNNN   YYYYYYYYYYY=NNNNN   YYYYYYYYYYY......
YYYYYYYYY....NNNN   YYYYYYYYYYYYNNNNN   YYYYYYYYYYY......
YYYYYYYY......NNN   YYYYYYYYYYYY=NNNN   YYYYYYYYYYY......
YYYYYYY........NN   YYYYYYYYYYYYYNNNN   YYYYYYYYYYY......
YYYYYY..........N   YYYYYYYYYYYYY=NNN   YYYYYYYYYYY......
YYYYY............   YYYYYYYYYYYYYYNNN   YYYYYYYYYYY......
YYYY.............   YYYYYYYYYYYYYY=NN   YYYYYYYYYYY......
YYY..............   YYYYYYYYYYYYYYYNN   YYYYYYYYYYY......
"""


def column(grids: str, number: int) -> str:
    return "\n".join(line.split()[number] for line in grids.strip().splitlines())


def check(log: ox.QueryLog, golden: str) -> None:
    rows = givens(log)
    assert picture(truth(rows, GRID), WIDTH) == golden
    assert picture(swept(rows, GRID, plane_normals(16)), WIDTH) == golden
    assert picture(ox.Knowledge(log, tolerance=0.0).certify(GRID).codes, WIDTH) == golden


def test_fig_ex_rgns_F() -> None:
    """Both regions reach beyond the convex hull of their points."""
    check(CASES.factuals(), FACTUALS.strip())


@pytest.mark.parametrize("label", [ox.NO, ox.YES], ids=["factual-No", "factual-Yes"])
@pytest.mark.parametrize(("figure", "distance"), [(0, "l1"), (1, "l2"), (2, "linf")], ids=["L1", "L2", "Linf"])
def test_fig_ex_rgns_CF(figure: int, distance: str, label: int) -> None:
    """ℓ1 and ℓ∞ leave areas open; under ℓ2 one counterfactual gives the whole model away."""
    check(
        CASES.counterfactual(distance, label),
        column(COUNTERFACTUAL_OF_A_NO if label == ox.NO else COUNTERFACTUAL_OF_A_YES, figure),
    )


@pytest.mark.parametrize("distance", ["l1", "l2", "linf"])
def test_fig_ex_rgns_CF_away_from_the_rim_swapping_the_classes_swaps_the_regions(distance: str) -> None:
    rng = np.random.default_rng(5)
    points = rng.uniform(-4, 4, size=(500, 2))
    one, other = (
        ox.Knowledge(CASES.counterfactual(distance, y), tolerance=0.0).certify(points).codes for y in (ox.NO, ox.YES)
    )
    assert np.array_equal(one, -other)
    assert {*one.tolist()} == ({1, -1} if distance == "l2" else {1, 0, -1})
