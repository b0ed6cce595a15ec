"""The labelled claims of the paper and our notes on it, as data: what `write_paper_to_code` links to tests.

The paper: Otto, Kurtz, den Hertog, Birbil, *Linear Model Extraction via Factual and Counterfactual Queries* (arXiv 2602.09748). Its
source is not part of this project, so its labels are listed here. Labels of sections are no claims and are left out.

The numbers are those of the typeset paper, counted from the environments of its source: theorem, lemma, corollary, remark,
definition and example share one counter, which no section starts again; proofs have none. Every `equation` counts, and every
line of an `align` without `\\notag`; starred ones do not, though some have a label. Figures, tables and algorithms have a
counter each, panels the letters of their figure. The appendix goes on counting.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class Claim(NamedTuple):
    """A label, what it says, and where the library has it (dotted names; none: it is used in a proof only)."""

    label: str
    says: str
    code: tuple[str, ...] = ()


class Note(NamedTuple):
    """What is printed, and what we found. Numbers stay: code and tests refer to them."""

    number: str
    kind: Literal["slip", "improvement", "remark"]
    where: str
    printed: str
    found: str


_SETS = ("overexplain.knowledge.facts", "overexplain.knowledge.checker")
_REGION = ("overexplain.Knowledge.certify",)
_BOTH = ("overexplain.Knowledge.certify", "overexplain.Knowledge.region")
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
            Claim("thm:rgn_factuals", "both regions by weights on the labelled points", _BOTH),
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
            Claim("thm:region-CF", "both regions by a conic system", _BOTH),
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
            Claim("eq:RCF_J0", "the ball around the answer to a No is Yes", ("overexplain.knowledge.prover.balls",)),
            Claim("eq:RCF_J1", "the ball around the answer to a Yes is No", ("overexplain.knowledge.prover.balls",)),
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

NUMBERS = {
    "eq:CF_problem": "(1)",
    "eq:robust_CF_problem": "(2)",
    "fig:defs": "Figure 1",
    "tab:results": "Table 1",
    "eq:Uncertainty_ab_F": "(3)",
    "eq:no-rgn": "",
    "eq:no-rgn-opt": "(4)",
    "eq:yes-rgn": "",
    "eq:yes-rgn-opt": "(5)",
    "thm:rgn_factuals": "Theorem 5",
    "fig:ex_rgns_F": "Figure 2",
    "eq:CF_J0_0": "(6)",
    "eq:CF_J1_0": "(7)",
    "eq:CF_J0_1": "(8)",
    "eq:CF_J1_1": "(9)",
    "thm:region-CF": "Theorem 6",
    "fig:ex_rgns_CF": "Figure 3",
    "fig:ex_rgns_CF_L1": "Figure 3a",
    "fig:ex_rgns_CF_L2": "Figure 3b",
    "fig:ex_rgns_CF_Linf": "Figure 3c",
    "lem:optimality_conditions_CF": "Lemma 7",
    "eq:CF_problem_reform": "",
    "thm:CF_theorem_diff": "Theorem 8",
    "eq:reformulation_subdifferentiable_norm": "",
    "cor:optimality_conditions_CF_non_differentiable_norm": "Corollary 9",
    "eq:syst_eq_CF": "(10)",
    "lem:CF_direction": "Lemma 11",
    "eq:CF_direction": "(11)",
    "eq:max_dir": "(12)",
    "example:l1-linf": "Example 12",
    "lem:CF_basis": "Lemma 13",
    "alg:CF_nondiff": "Algorithm 1",
    "thm:CF_nondiff": "Theorem 14",
    "fig:CF_Example_2D": "Figure 4",
    "lem:optimality_conditions_RCF": "Lemma 16",
    "thm:RCF_diff": "Theorem 17",
    "cor:optimality_conditions_RCF_non_differentiable_norm": "Corollary 18",
    "eq:system_eq_RCF_full": "(13)",
    "eq:system_eq_RCF": "(14)",
    "lem:RCF_direction": "Lemma 20",
    "eq:RCF_direction": "",
    "crl:non_diff_RCF_main": "Corollary 21",
    "fig:RCF_Example_2D": "Figure 5",
    "eq:RCF_J0": "(15)",
    "eq:RCF_J1": "(16)",
    "eq:RCF_sg": "(17)",
    "lem:perspective_point": "Lemma 23",
    "eq:proof_perspective_1": "(18)",
    "eq:proof_perspective_2": "(19)",
    "eq:proof_perspective_3": "(20)",
    "eq:proof_lemma_perspective_point": "(21)",
    "cor:N1N2": "Corollary 24",
    "fig:RCF_norms": "Figure 6",
    "fig:ex_rgns_RCF_L2Linf": "Figure 6a",
    "fig:ex_rgns_RCF_L1Linf": "Figure 6b",
    "fig:ex_rgns_RCF_L1Linf_othr": "Figure 6c",
    "fig:ex_rgns_RCF_L1L1": "Figure 6d",
    "fig:ex_rgns_RCF_L1L2": "Figure 6e",
    "fig:ex_rgns_RCF_LinfL1": "Figure 6f",
    "fig:ex_rgns_RCF_LinfLinf": "Figure 6g",
    "fig:ex_rgns_RCF_LinfL2": "Figure 6h",
    "fig:ex_rgns_RCF_LinfL2_othr": "Figure 6i",
}
"""What the typeset paper calls a label; empty: it has no number there."""

UNLABELLED = {
    "def": "Definitions 1 to 4 and what else is defined",
    "assumption": "assumptions (A1), (A2)",
    "remark": "Remarks 10 and 19, and what the text says in passing",
    "example": "Examples 15 and 22",
    "conclusion": "the conclusion",
    "theorem": "theorems that go beyond the paper",
}
"""What has no label, by the first word of its tests' names."""

NOTES = (
    Note("E1", "slip", "thm:region-CF", "− Σ y_b in both regions",
         "+ Σ y_b, as in the proof: x = 0 No, x' = (1, 0), ℓ1: the printed X_No contains (2, 0), a sure Yes"),
    Note("E2", "slip", "thm:region-CF", "the set, for a strictly convex norm",
         "only its closure: ℓ2, same data, (1, 1) is on the plane but the system is infeasible, and multipliers grow like "
         "1/distance. K(w) describes a counterfactual, balls do not"),
    Note("E3", "slip", "eq:RCF_sg", "a ∈ ∂f(w) for both labels",
         "−y·a ∈ K(w): with a Yes among the questions the printed set is empty"),
    Note("E4", "remark", "eq:RCF_sg", "a is a subgradient",
         "harmless: up to a positive scale, which changes no classifier. Whoever normalises otherwise needs the scale"),
    Note("E5", "remark", "lem:perspective_point", "d ≥ ρC gives the class of x",
         "withdrawn as a slip: the paper says that its regions are closures, and then this is right. By the label of a "
         "point, for a No d > ρC is needed: at d = ρC it may lie on the plane, which is Yes"),
    Note("E6", "slip", "Example 22", "(3, 0) is No, (−1, 1) is Yes; a value 1/9 decides",
         "the labels are the other way round (the printed solution solves the corrected equations); at (4, 5)/3 both candidates "
         "give −1"),
    Note("E7", "slip", "Example 15", "a = (2, 1)/3", "(2, −1)/3"),
    Note("E8", "slip", "thm:RCF_diff", "b = a·x' + q_F·ρ‖a‖*", "b = a·x' − ρ‖a‖* for both labels, a = ∇f(w): no label is needed"),
    Note("E9", "slip", "crl:non_diff_RCF_main", "solve the p equations, then scale to ‖a‖* = 1",
         "the system is not homogeneous (b − q_F·ρ scales, b does not) and has up to two roots. The procedure fails; the "
         "count in the corollary is true, by Theorem A, which needs one answer fewer and no label"),
    Note("E10", "slip", "example:l1-linf", "x + (Σ d_i)·e^{i1}; x + d_j·Σ sgn(d_i)·e^i",
         "sgn(d_{i1})·Σ|d_i|; |d_j|. The second is a corner if no d_i is 0; else it is optimal all the same, and any signs "
         "in these places make it a corner"),
    Note("E11", "slip", "proofs of lem:CF_direction and lem:RCF_direction", "d > 0",
         "its sign is minus the label; re-aiming across sides needs the flip"),
    Note("E12", "slip", "proof of thm:RCF_diff", "‖a‖_N2", "the dual norm, as in the theorem"),
    Note("E13", "slip", "Definition 2", "labels {0, 1}", "{−1, +1}, as everywhere else"),
    Note("E14", "remark", "all regions", "X_No is where a·x − b is at most 0 for all models",
         "withdrawn as a slip: the paper says that regions are closures. Verdicts need the strictness of No: own label of a logged "
         "point first; then boundary (maximum and minimum of a·x − b both 0); Yes iff the minimum is ≥ 0; No iff the "
         "maximum is < 0, or = 0 with a strict certificate"),
    Note("E15", "improvement", "sets of several robust answers", "separate inequalities",
         "right; one s for all of them is convex, too, and stronger"),
    Note("E16", "improvement", "strict robust regions", "intractable",
         "confirmed: to tell a Yes, or a No, is weakly coNP-hard for N1 = ℓ1, N2 = ℓq, q > 1. Yet one program or a few in "
         "most cases, and closed forms for one answer"),
    Note("E17", "slip", "fig:RCF_norms", "nine pairs of norms", "seven: ℓ2/ℓ1 and ℓ2/ℓ2 are missing, two come twice"),
    Note("E18", "slip", "tab:results", "labels only: O(log 1/ε + size)", "a factor p is missing"),
    Note("E19", "slip", "the subdifferential, before lem:optimality_conditions_CF", "f(x₀) − f(x) ≥ v·(x₀ − x)", "≤"),
    Note("E20", "remark", "after thm:CF_nondiff", "at most 2p − 1 queries",
         "withdrawn as a slip: with the exit that the text describes, when e^1, …, e^p are asked and the points are already "
         "independent, this stands. The pseudocode of Algorithm 1 has no such exit and spends 2p on a = (1, 1, 1, 3), b = 1: 8"),
    Note("E21", "slip", "Remark 19", "b = −q_F·ρ‖a‖*, and p − 1 further points suffice",
         "b = +q_F·ρ‖a‖*; the same two roots as E9 as soon as a further point is of the other class"),
    Note("E22", "slip", "abstract and conclusion", "robustness doubles the queries, labels are needed",
         "it adds none if ρ is known, one if it is secret (Theorems A to C)"),
    Note("E23", "slip", "eq:yes-rgn", "Yes if the minimum is larger than 0",
         "the minimum over a cone that contains 0 is never larger than 0: Yes if it is not smaller, as in (5)"),
    Note("E24", "slip", "Section 2, models f(a·x) ≥ α", "f monotonic and invertible: a·x ≥ f⁻¹(α)",
         "f increasing; a decreasing link reverses the inequality, and the model is (−a, −f⁻¹(α))"),
    Note("E25", "slip", "thm:region-CF", "conic quadratic sets, under an arbitrary norm",
         "convex cones; conic quadratic for ℓ1, ℓ2, ℓ∞ and rational ℓq. With |x₁| + ‖(x₂, x₃)‖_π the region of one "
         "counterfactual has a rim that no polynomial describes"),
    Note("E26", "slip", "alg:CF_nondiff", "the answers to the basis go into the system as they come",
         "tied answers must be re-aimed along v first, as the text before Example 12 does: p optimal answers may be one and the "
         "same point"),
    Note("E27", "slip", "the note after thm:RCF_diff", "the label is asked for in Theorem 8",
         "in Theorem 17; the other one asks for none"),
)  # fmt: skip
"""Our notes on the paper. Every slip has a test in which the printed statement fails."""
