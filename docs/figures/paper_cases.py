"""What the paper's figures show, as data: the answers in each of them, and what its captions say.

The paper's source has captions, but neither pictures nor the numbers behind them. The two worked examples have numbers in the text;
everything else is data of our own in the configuration that the caption names. The tests of these figures
(`tests/paper/test_region_figures.py`, `test_robust_figures.py`) hold golden grids for the same data.
"""

from __future__ import annotations

from dataclasses import dataclass

import overexplain as ox

Point = tuple[float, float]

# --- fig:defs ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Definitions:
    """One point and its two explanations under ℓ2, the robust one with an ℓ2 ball around it."""

    model: ox.Hyperplane
    asked: Point
    radius: float

    def service(self, radius: float) -> ox.ModelOracle:
        """The service that explains with this radius; 0: a plain counterfactual."""
        return ox.ModelOracle(self.model, ox.Mechanism("l2", robustness="l2" if radius else None, radius=radius))


DEFINITIONS = Definitions(ox.Hyperplane([1.0, 2.0], 1.0), asked=(-1.5, -1.0), radius=0.75)

# --- fig:ex_rgns_F, fig:ex_rgns_CF ------------------------------------------------------------------------------------

LABELLED_NO: tuple[Point, ...] = ((-2.0, -1.0), (-1.0, -2.0), (0.0, 0.0))
LABELLED_YES: tuple[Point, ...] = ((1.0, 1.5), (2.0, 0.0), (2.5, 1.5))

COUNTERFACTUALS: dict[str, Point] = {"l1": (1.0, 0.0), "l2": (1.0, 0.5), "linf": (1.0, 1.0)}
"""The answer under each distance; the question is its mirror image in 0."""


def factuals() -> ox.QueryLog:
    """Labels of both classes."""
    log = ox.QueryLog()
    log.add_label(LABELLED_NO, [ox.NO] * len(LABELLED_NO))
    log.add_label(LABELLED_YES, [ox.YES] * len(LABELLED_YES))
    return log


def counterfactual(distance: str, label: int = ox.NO) -> ox.QueryLog:
    """One question of class `label` with its counterfactual."""
    end = COUNTERFACTUALS[distance]
    log = ox.QueryLog()
    log.add_explanation([-v for v in end], end, label, ox.Mechanism(distance))
    return log


# --- fig:RCF_norms ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RobustCase:
    """One robust counterfactual: N1, N2, question, answer and radius."""

    distance: str
    robustness: str
    asked: Point
    answer: Point
    radius: float

    @property
    def mechanism(self) -> ox.Mechanism:
        """What the service promises."""
        return ox.Mechanism(self.distance, robustness=self.robustness, radius=self.radius)

    def log(self, label: int = ox.NO) -> ox.QueryLog:
        """The question, of class `label`, with its answer."""
        log = ox.QueryLog()
        log.add_explanation(self.asked, self.answer, label, self.mechanism)
        return log


ROBUST_CASES = {
    "L2Linf": RobustCase("l2", "linf", (-1.5, -0.5), (1.0, 0.25), 0.5),
    "L1Linf": RobustCase("l1", "linf", (-1.5, 0.25), (1.0, 0.25), 0.75),
    "L1Linf_othr": RobustCase("l1", "linf", (-0.25, 0.25), (0.5, 0.25), 0.5),
    "L1L1": RobustCase("l1", "l1", (-1.5, 0.25), (1.0, 0.25), 0.75),
    "L1L2": RobustCase("l1", "l2", (-1.5, 0.25), (1.0, 0.25), 0.75),
    "LinfL1": RobustCase("linf", "l1", (-1.25, -1.0), (0.75, 1.0), 0.75),
    "LinfLinf": RobustCase("linf", "linf", (-1.25, -1.0), (0.75, 1.0), 0.75),
    "LinfL2": RobustCase("linf", "l2", (-1.25, -1.0), (0.75, 1.0), 0.75),
    "LinfL2_othr": RobustCase("linf", "l2", (-0.25, -0.25), (0.25, 0.25), 0.625),
    "L2L1 (not in the paper)": RobustCase("l2", "l1", (-1.5, -0.5), (1.0, 0.25), 0.5),
    "L2L2 (not in the paper)": RobustCase("l2", "l2", (-1.5, -0.5), (1.0, 0.25), 0.5),
}
"""By the label of the subfigure, fig:ex_rgns_RCF_…; nine captions name seven pairs, two are missing (E17).

Where a pair comes twice, the second question is nearer to its answer than ρC: it, not the perspective point, is then the tip of
the No cone.
"""

# --- fig:CF_Example_2D, fig:RCF_Example_2D ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    """A model, a mechanism, and the questions that rebuild it; `second_root` answers them alike up to labels (E6)."""

    model: ox.Hyperplane
    mechanism: ox.Mechanism
    asked: tuple[Point, ...]
    second_root: ox.Hyperplane | None = None


CF_EXAMPLE = Example(ox.Hyperplane([2.0, -1.0], 3.0), ox.Mechanism("linf"), ((3.0, 0.0), (-1.0, 1.0)))
RCF_EXAMPLE = Example(
    ox.Hyperplane([2.0, -1.0], 3.0),
    ox.Mechanism("linf", robustness="l1", radius=1.0),
    ((3.0, 0.0), (-1.0, 1.0)),
    second_root=ox.Hyperplane([-1.0, -0.7], -1.5),
)
