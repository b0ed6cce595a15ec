"""The paper's figure of regions from one robust counterfactual (fig:RCF_norms), as text, at all four levels.

Y certain Yes, N certain No, . two models disagree, ? the level cannot tell though no two do. The paper's source has no pictures
and no data for them: these are its captions (seven pairs of norms, two of them twice: E17), the two pairs it leaves out, and the
data that docs/figures draws. Where a pair comes twice, the second has a point nearer to its answer than ρC: it, not the
perspective point, is then the tip of the No cone. The pictures, in `knowledge/robust_golden/figures.txt`, are those of a sweep of
all models.
"""

from __future__ import annotations

import numpy as np
import pytest

import overexplain as ox
from docs_scripts import docs_module
from robust_truth import GRID, LEVELS, drawn, goldens, truths

CASES = docs_module("paper_cases").ROBUST_CASES
FIGURES = goldens("figures")
SWAP = str.maketrans("YN", "NY")

cases = pytest.mark.parametrize("case", CASES)
labels = pytest.mark.parametrize("label", [ox.NO, ox.YES], ids=["factual-No", "factual-Yes"])


def one_answer(case: str, label: int = ox.NO) -> ox.QueryLog:
    return CASES[case].log(label)


def expected(case: str, label: int) -> dict[str, str]:
    """The golden pictures; no point is on a rim, so that swapping the classes swaps the letters and nothing else."""
    return {level: text if label == ox.NO else text.translate(SWAP) for level, text in FIGURES[case].items()}


@labels
@cases
def test_fig_RCF_norms_is_the_sweep_of_all_models(case: str, label: int) -> None:
    found = truths(one_answer(case, label), GRID)
    assert {level: drawn(found[level].codes) for level in LEVELS} == expected(case, label)
    assert min(found[level].margin.min() for level in LEVELS) > 1e-4


@pytest.mark.parametrize("level", LEVELS)
@labels
@cases
def test_fig_RCF_norms(case: str, label: int, level: str) -> None:
    found = ox.Knowledge(one_answer(case, label), robust=level).certify(GRID)
    assert drawn(found.codes) == expected(case, label)[level]


@cases
def test_fig_RCF_norms_one_answer_leaves_nothing_to_the_exact_level(case: str) -> None:
    """One robust counterfactual: the perspective point is all that the paper's own set lacks (Prop. 3)."""
    assert FIGURES[case]["perspective"] == FIGURES[case]["shared"] == FIGURES[case]["exact"]
    assert "?" not in FIGURES[case]["exact"]
    assert ("." in FIGURES[case]["exact"]) == (not case.startswith("L2"))


def test_fig_RCF_norms_what_the_perspective_point_adds() -> None:
    """Nothing where the answer is nearer than ρC, since its own point then says more; much everywhere else."""
    lost = {case: FIGURES[case]["paper"].count("?") for case in CASES}
    assert {case for case, count in lost.items() if not count} == {"L1Linf_othr", "LinfL2_othr"}
    assert min(count for case, count in lost.items() if not case.endswith("_othr")) > 20


def test_conclusion_the_robustness_norm_changes_the_regions() -> None:
    """The same point, answer and radius under another N2 is another picture, at every level."""
    for pairs in (("L1L1", "L1L2", "L1Linf"), ("LinfL1", "LinfL2", "LinfLinf")):
        data = {(CASES[case].asked, CASES[case].answer, CASES[case].radius) for case in pairs}
        assert len(data) == 1
        for level in LEVELS:
            assert len({FIGURES[case][level] for case in pairs}) == 3


@pytest.mark.parametrize("distance", ["l1", "linf"])
@pytest.mark.parametrize("strategy", ["auto", "paper"])
@pytest.mark.parametrize("p", [2, 6])
def test_conclusion_the_robustness_norm_does_not_change_how_many_answers_are_needed(
    distance: str, strategy: str, p: int, tools, rng
) -> None:
    """ "The norm used to define the robust region does not affect the number of queries"; what one answer tells it does."""
    plane = tools.plane(p, rng)
    points = rng.normal(size=(400, p)) * 2
    spent, told = [], []
    for robustness in ("l1", "l2", "linf"):
        oracle = ox.ModelOracle(plane, ox.Mechanism(distance, robustness=robustness, radius=0.5))
        found = ox.extract(oracle, strategy=strategy, start=np.zeros(p))
        assert found.hyperplane.is_equivalent(plane, 1e-9)
        spent.append(found.spent)
        log = ox.QueryLog(mechanism=oracle.mechanism)
        log.add_explanation(np.zeros(p), oracle.explain(np.zeros(p)), int(plane.label(np.zeros(p))))
        told.append(tuple(ox.Knowledge(log).certify(points).codes.tolist()))
    assert len(set(spent)) == 1
    assert len(set(told)) == 3
