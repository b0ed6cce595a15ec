"""The published attacks by name: what each needs and where it is from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from overexplain.baselines.averaging import average_directions
from overexplain.baselines.clamping import train_clamped
from overexplain.baselines.dualcf import train_on_pairs
from overexplain.baselines.equations import solve_equations
from overexplain.baselines.retraining import retrain_adaptively
from overexplain.baselines.surrogate import train_surrogate
from overexplain.errors import InvalidInput
from overexplain.extraction.result import Extraction

Need = Literal["scores", "labels", "explanations"]


@dataclass(frozen=True)
class Attack:
    """A published attack: `run` has `extract`'s signature without the strategy; `needs` is what the service must give."""

    name: str
    run: Callable[..., Extraction]
    needs: tuple[Need, ...]
    paper: str


_TRAMER = "Tramèr, Zhang, Juels, Reiter, Ristenpart 2016: Stealing Machine Learning Models via Prediction APIs (USENIX Security)"

ATTACKS: Final[dict[str, Attack]] = {
    attack.name: attack
    for attack in (
        Attack("equations", solve_equations, ("scores",), _TRAMER),
        Attack("retraining", retrain_adaptively, ("labels",), _TRAMER),
        Attack(
            "surrogate",
            train_surrogate,
            ("labels", "explanations"),
            "Aïvodji, Bolot, Gambs 2020: Model extraction from counterfactual explanations (arXiv 2009.01884)",
        ),
        Attack(
            "dualcf",
            train_on_pairs,
            ("labels", "explanations"),
            "Wang, Qian, Miao 2022: DualCF: Efficient Model Extraction Attack from Counterfactual Explanations (FAccT)",
        ),
        Attack(
            "clamping",
            train_clamped,
            ("labels", "explanations"),
            "Dissanayake, Dutta 2024: Model Reconstruction Using Counterfactual Explanations: A Perspective From Polytope "
            "Theory (NeurIPS)",
        ),
        Attack(
            "averaging",
            average_directions,
            ("labels", "explanations"),
            "no single paper: under l2 a counterfactual lies along the normal, and averages take out noise",
        ),
    )
}


def baseline(name: str) -> Attack:
    """The attack of this name.

    >>> baseline("dualcf").needs
    ('labels', 'explanations')
    """
    if name not in ATTACKS:
        raise InvalidInput(f"unknown attack {name!r}; known are {', '.join(ATTACKS)}")
    return ATTACKS[name]
