"""The labelled claims of the paper and its slips, as data: what `write_paper_to_code` links to tests.

The paper: Otto, Kurtz, den Hertog, Birbil, *Linear Model Extraction via Factual and Counterfactual Queries* (arXiv 2602.09748). Its
source is not part of this project, so its labels are listed here. Labels of sections are no claims and are left out.
"""

from __future__ import annotations

from typing import NamedTuple


class Claim(NamedTuple):
    """A label, what it says, and where the library has it (dotted names; none: it is used in a proof only)."""

    label: str
    says: str
    code: tuple[str, ...] = ()


class Erratum(NamedTuple):
    """A slip: what is printed, and what is correct."""

    number: str
    where: str
    printed: str
    correct: str


_SETS = ("overexplain.knowledge.facts", "overexplain.knowledge.checker")
_REGION = ("overexplain.Knowledge.certify",)
_PAPER = ("overexplain.extraction.paper",)
_EXPLAIN = ("overexplain.ModelOracle.explain",)

CLAIMS: tuple[tuple[str, tuple[Claim, ...]], ...] = (
    (
        "Queries",
        (
            Claim("eq:CF_problem", "a counterfactual is a nearest point of the other class", _EXPLAIN),
            Claim("eq:robust_CF_problem", "robust: the nearest point whose whole ball is of the other class", _EXPLAIN),
            Claim("fig:defs", "the three kinds of query"),
            Claim("tab:results", "how many queries extract the model", ("overexplain.extract",)),
        ),
    ),
    (
        "Regions from factuals",
        (
            Claim("eq:Uncertainty_ab_F", "the models that labels leave possible: a closed cone", _SETS),
            Claim("eq:no-rgn", "a point is No if the largest a·x − b is at most 0", _REGION),
            Claim("eq:no-rgn-opt", "the No region as that optimisation problem", _REGION),
            Claim("eq:yes-rgn",
                  "a point is Yes if the smallest a·x − b is at least 0; printed is *larger than 0*, which a smallest value over a "
                  "cone, that has 0 in it, never is, and a·x = b is Yes", _REGION),
            Claim("eq:yes-rgn-opt", "the Yes region as that optimisation problem", _REGION),
            Claim("thm:rgn_factuals", "both regions by weights on the labelled points", _REGION),
            Claim("fig:ex_rgns_F", "regions of a few labels reach beyond their convex hulls", _REGION),
        ),
    ),
    (
        "Regions from counterfactuals",
        (
            Claim("eq:CF_J0_0", "the ball up to the counterfactual of a No is No", _SETS),
            Claim("eq:CF_J1_0", "the ball up to the counterfactual of a Yes is Yes", _SETS),
            Claim("eq:CF_J0_1", "the counterfactual of a No is not No", _SETS),
            Claim("eq:CF_J1_1", "the counterfactual of a Yes is not Yes", _SETS),
            Claim("thm:region-CF", "both regions by a conic system", _REGION),
            Claim("fig:ex_rgns_CF", "regions of one counterfactual", _REGION),
            Claim("fig:ex_rgns_CF_L1", "under ℓ1 two wedges stay open", _REGION),
            Claim("fig:ex_rgns_CF_L2", "under ℓ2 nothing stays open", _REGION),
            Claim("fig:ex_rgns_CF_Linf", "under ℓ∞ two quadrants stay open", _REGION),
        ),
    ),
    (
        "Extraction by counterfactuals",
        (
            Claim("lem:optimality_conditions_CF", "x' lies on the plane and a is a multiple of a subgradient", _EXPLAIN),
            Claim("eq:CF_problem_reform", "the nearest point across is the nearest point of the plane", _EXPLAIN),
            Claim("thm:CF_theorem_diff", "one counterfactual is enough under a differentiable norm", _PAPER),
            Claim("eq:reformulation_subdifferentiable_norm", "the subdifferential by the dual norm", ("overexplain.Norm",)),
            Claim("cor:optimality_conditions_CF_non_differentiable_norm", "optimal if and only if", _EXPLAIN),
            Claim("eq:syst_eq_CF", "p independent points of the plane give it", ("overexplain.extraction.points",)),
            Claim("lem:CF_direction", "x' = x + d·v with one v for all x", _EXPLAIN),
            Claim("eq:CF_direction", "how far, and in which direction", _EXPLAIN),
            Claim("eq:max_dir", "v is where a·v is largest in the unit ball", ("overexplain.Norm.face",)),
            Claim("example:l1-linf", "corner answers can be had from any tied ones", _PAPER),
            Claim("lem:CF_basis", "a basis with v in it has independent counterfactuals", _PAPER),
            Claim("alg:CF_nondiff", "Algorithm 1", _PAPER),
            Claim("thm:CF_nondiff", "Algorithm 1 needs p + 1 counterfactuals", _PAPER),
            Claim("fig:CF_Example_2D", "the example in the plane", ("overexplain.extract",)),
        ),
    ),
    (
        "Extraction by robust counterfactuals",
        (
            Claim("lem:optimality_conditions_RCF", "x' lies ρ‖a‖* behind the plane", _EXPLAIN),
            Claim("thm:RCF_diff", "one robust counterfactual and one label under a differentiable norm", _PAPER),
            Claim("cor:optimality_conditions_RCF_non_differentiable_norm", "optimal if and only if", _EXPLAIN),
            Claim("eq:system_eq_RCF_full", "p robust counterfactuals make a nonlinear system", _PAPER),
            Claim("eq:system_eq_RCF", "the same at ‖a‖* = 1", _PAPER),
            Claim("lem:RCF_direction", "x' = x + d·v with the v of plain counterfactuals", _EXPLAIN),
            Claim("eq:RCF_direction", "how far", _EXPLAIN),
            Claim("crl:non_diff_RCF_main",
                  "p + 1 robust counterfactuals and p + 1 labels are enough: for a basis with v in it on one side of the plane, "
                  "which is what is run; to the printed one, from Gram–Schmidt, two models may give the same answers", _PAPER),
            Claim("fig:RCF_Example_2D", "the example in the plane", ("overexplain.extract",)),
        ),
    ),
    (
        "Regions from robust counterfactuals",
        (
            Claim("eq:RCF_J0", "the ball around the answer to a No is Yes", ("overexplain.knowledge.shells",)),
            Claim("eq:RCF_J1", "the ball around the answer to a Yes is No", ("overexplain.knowledge.shells",)),
            Claim("eq:RCF_sg", "a is a subgradient at the step", _SETS),
            Claim("lem:perspective_point", "x' − d·v has the class of x for d ≥ ρC", ("overexplain.knowledge.chords",)),
            Claim("eq:proof_perspective_1", "in its proof: how far behind the plane"),
            Claim("eq:proof_perspective_2", "in its proof: the step is steepest"),
            Claim("eq:proof_perspective_3", "in its proof: the multiplier's length"),
            Claim("eq:proof_lemma_perspective_point", "in its proof: the estimate itself"),
            Claim("cor:N1N2", "C for ℓ1 and ℓ∞; the touching point if N1 = N2", ("overexplain.knowledge.chords",)),
            Claim("fig:RCF_norms", "regions of one robust counterfactual, nine panels", _REGION),
            Claim("fig:ex_rgns_RCF_L2Linf", "N1 = ℓ2, N2 = ℓ∞", _REGION),
            Claim("fig:ex_rgns_RCF_L1Linf", "N1 = ℓ1, N2 = ℓ∞", _REGION),
            Claim("fig:ex_rgns_RCF_L1Linf_othr", "the same pair again", _REGION),
            Claim("fig:ex_rgns_RCF_L1L1", "N1 = ℓ1, N2 = ℓ1", _REGION),
            Claim("fig:ex_rgns_RCF_L1L2", "N1 = ℓ1, N2 = ℓ2", _REGION),
            Claim("fig:ex_rgns_RCF_LinfL1", "N1 = ℓ∞, N2 = ℓ1", _REGION),
            Claim("fig:ex_rgns_RCF_LinfLinf", "N1 = ℓ∞, N2 = ℓ∞", _REGION),
            Claim("fig:ex_rgns_RCF_LinfL2", "N1 = ℓ∞, N2 = ℓ2", _REGION),
            Claim("fig:ex_rgns_RCF_LinfL2_othr", "the same pair again", _REGION),
        ),
    ),
)  # fmt: skip

SUBFIGURES = {"fig:ex_rgns_CF_": "fig:ex_rgns_CF", "fig:ex_rgns_RCF_": "fig:RCF_norms"}
"""A panel is a case of its figure's test, named by what follows this prefix."""

ERRATA = (
    Erratum("E1", "thm:region-CF", "− Σ y_b in both regions",
            "+ Σ y_b, as in their proof: x = 0 No, x' = (1, 0), ℓ1: the printed X_No contains (2, 0), a sure Yes"),
    Erratum("E2", "thm:region-CF", "the set, for a strictly convex norm",
            "only its closure: ℓ2, same data, (1, 1) is on the plane but the system is infeasible, and multipliers grow like "
            "1/distance. K(w) describes a counterfactual, balls do not"),
    Erratum("E3", "eq:RCF_sg", "a ∈ ∂f(w) for both labels", "−y·a ∈ K(w): with a Yes among the questions the printed set is empty"),
    Erratum("E4", "eq:RCF_sg", "a is a subgradient", "up to a positive scale"),
    Erratum("E5", "lem:perspective_point", "d ≥ ρC gives the class of x",
            "for a No only d > ρC: at d = ρC it may lie on the plane"),
    Erratum("E6", "the robust example", "(3, 0) is No, (−1, 1) is Yes; a value 1/9 decides",
            "the labels are the other way round (the printed solution solves the corrected equations); at (4, 5)/3 both candidates "
            "give −1"),
    Erratum("E7", "the plain example", "a = (2, 1)/3", "(2, −1)/3"),
    Erratum("E8", "thm:RCF_diff", "b = a·x' + q_F·ρ‖a‖*", "b = a·x' − ρ‖a‖* for both labels, a = ∇f(w): no label is needed"),
    Erratum("E9", "crl:non_diff_RCF_main", "p + 1 robust answers and labels always suffice: solve, then scale",
            "the system is not homogeneous (b − q_F·ρ scales, b does not) and has up to two roots; Theorem A has one"),
    Erratum("E10", "example:l1-linf", "x + (Σ d_i)·e^{i1}; x + d_j·Σ sgn(d_i)·e^i", "sgn(d_{i1})·Σ|d_i|; |d_j|"),
    Erratum("E11", "proofs of the direction lemmas", "d > 0", "its sign is minus the label; re-aiming across sides needs the flip"),
    Erratum("E12", "proof of thm:RCF_diff", "‖a‖_N2", "the dual norm"),
    Erratum("E13", "definition of a factual query", "{0, 1}", "{−1, +1}"),
    Erratum("E14", "all regions", "X_No holds only No points",
            "it is a closure. Own label of a logged point first; then boundary (maximum and minimum of a·x − b both 0); Yes iff "
            "the minimum is ≥ 0; No iff the maximum is < 0, or = 0 with a strict certificate"),
    Erratum("E15", "sets of several robust answers", "separate inequalities", "one s for all of them is convex, too, and stronger"),
    Erratum("E16", "strict robust regions", "intractable",
            "one program or a few in most cases; coNP-hard for N1 = ℓ1, N2 = ℓq, q > 1"),
    Erratum("E17", "fig:RCF_norms", "nine pairs of norms", "seven: ℓ2/ℓ1 and ℓ2/ℓ2 are missing, two come twice"),
    Erratum("E18", "tab:results", "labels only: O(log 1/ε + size)", "a factor p is missing"),
    Erratum("E19", "the subdifferential", "f(x₀) − f(x) ≥ v·(x₀ − x)", "≤"),
    Erratum("E20", "after alg:CF_nondiff", "at most 2p − 1 queries", "2p as printed: a = (1, 1, 1, 3), b = 1 spends 8"),
    Erratum("E21", "the remark that 0 is a robust counterfactual", "b = −q_F·ρ‖a‖*, and p − 1 further points suffice",
            "b = +q_F·ρ‖a‖*; the same two roots as E9 as soon as a further point is of the other class"),
    Erratum("E22", "abstract and conclusion", "robustness doubles the queries, labels are needed",
            "it adds none if ρ is known, one if it is secret"),
)  # fmt: skip
