"""One log and one proof about it for every kind of proof there is."""

from __future__ import annotations

from fractions import Fraction as F

import overexplain as ox
from overexplain.knowledge.certificates import Certificate, Disagreement, Model
from overexplain.knowledge.checker import Bound, Branch, Branched, Lemma, Term
from overexplain.knowledge.evidence import find_length
from overexplain.knowledge.verdicts import Verdict
from provers import exact

EXACT = ox.Mechanism("l1", tolerance=0.0)
CORNERS = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]


def labels_only() -> tuple[ox.QueryLog, Certificate]:
    log = ox.QueryLog()
    log.add_label([[0.0, 0.0], [4.0, 0.0], [0.1, 0.2]], [-1, 1, -1])
    terms = [Term("side", F(3, 2), 1), Term("side", F(1, 2), 0)]
    return log, Certificate.about(log, [6.0, 0.0], Verdict.YES, terms)


def explained() -> tuple[ox.QueryLog, Certificate]:
    log = ox.QueryLog(mechanism=ox.Mechanism("l1"))
    log.add_explanation([0.0, 0.0], [3.0, 0.0], label=-1)
    terms = [Term("plane", F(1), 0), Term("steepest", F(1, 2), 0), Term("hoelder", F(1), 0, vector=exact([0.0, 0.25]))]
    return log, Certificate.about(log, [4.5, 0.25], Verdict.YES, terms)


def boundary() -> tuple[ox.QueryLog, Certificate]:
    log = ox.QueryLog(mechanism=ox.Mechanism("l2", tolerance=0.0))
    log.add_explanation([0.0, 0.0], [1.0, 0.0], label=-1)
    there, back = ([Term("plane", F(1), 0, s), Term("ray", F(1), 0, vector=exact([0.0, s]))] for s in (1, -1))
    return log, Certificate.about(log, [1.0, 1.0], Verdict.BOUNDARY, there, reverse=back)


def with_a_lemma() -> tuple[ox.QueryLog, Certificate]:
    log = ox.QueryLog(mechanism=EXACT)
    log.add_label([[0.0, 0.0], [2.0, 0.0]], [-1, -1])
    log.add_explanation([1.0, 0.0], [1.0, 3.0])
    lemma = Lemma(2, -1, (Term("side", F(1, 2), 0), Term("side", F(1, 2), 1), Term("side", F(1), 2)))
    terms = [Term("plane", F(1), 2), Term("steepest", F(1), 2)]
    return log, Certificate.about(log, [1.0, 6.0], Verdict.YES, terms, lemmas=[lemma])


def with_an_assumption() -> tuple[ox.QueryLog, Certificate]:
    log = ox.QueryLog(mechanism=EXACT)
    log.add_explanation([0.0, 0.0], [1.0, 0.0])
    return log, Certificate.about(log, [0.0, 0.0], Verdict.YES, [Term("side", F(1), 0)], assumed=[(0, 1)])


def with_evidence() -> tuple[ox.QueryLog, Certificate]:
    log = ox.QueryLog(mechanism=ox.Mechanism(ox.Polyhedral(CORNERS)))
    log.add_explanation([0.0, 0.0], [3.0, 0.0], label=-1)
    terms = [Term("plane", F(1), 0), Term("steepest", F(1, 2), 0), Term("hoelder", F(1), 0, vector=exact([0.0, 0.25]))]
    lengths = [find_length(CORNERS, exact(v)) for v in ([3.0, 0.0], [0.0, 0.25])]
    return log, Certificate.about(log, [4.5, 0.25], Verdict.YES, terms, lengths=lengths)


def contradiction() -> tuple[ox.QueryLog, Certificate]:
    log = ox.QueryLog()
    log.add_label([[0.0, 0.0], [2.0, 0.0], [1.0, 0.0]], [-1, -1, 1])
    terms = [Term("side", F(1, 2), 0), Term("side", F(1, 2), 1), Term("side", F(1), 2)]
    return log, Certificate.about(log, None, None, terms)


def under_another_tolerance() -> tuple[ox.QueryLog, Certificate]:
    log, _ = explained()
    return log, Certificate.about(log, [3.0, 0.0], Verdict.YES, [Term("plane", F(1), 0)], tolerance=0.0)


def robust() -> tuple[ox.QueryLog, Certificate]:
    log = ox.QueryLog(mechanism=ox.Mechanism("linf", "l1", 1.0))
    log.add_explanation([0.0, 0.0], [3.0, 3.0], label=-1)
    # a·x − b ≥ s + a·(−1/2, 0) ≥ s/2, and rounding is less.
    terms = [Term("plane", F(1), 0), Term("hoelder", F(1), 0, vector=exact([-0.5, 0.0]), of="robustness")]
    tolerance = F(1, 100)
    terms += [
        Term("steepest", tolerance, 0),
        Term("hoelder", tolerance, 0, vector=exact([-3.0, -3.0]), of="robustness"),
    ]
    return log, Certificate.about(log, [2.5, 3.0], Verdict.YES, terms)


def of_a_secret_radius() -> tuple[ox.QueryLog, Certificate]:
    log = ox.QueryLog(mechanism=ox.Mechanism("l1", radius=None, tolerance=0.0))
    for height in (0.0, 1.0):
        log.add_explanation([-3.0, height], [3.0, height], label=-1)
    level = [Term("plane", F(5), 1), Term("plane", F(5), 0, sign=-1)]  # a·(0, 1) = 0, whatever the radius
    terms = [Term("plane", F(1), 0), Term("steepest", F(1, 6), 0), *level]
    return log, Certificate.about(log, [4.0, 5.0], Verdict.YES, terms)


def by_cases() -> tuple[ox.QueryLog, Certificate]:
    """s = ‖a‖₁ ≥ 3t makes all |a_i| = t, and 2a₁ + a₂ ≥ 0 then makes a₁ = t: no list of facts alone says so."""
    log = ox.QueryLog(mechanism=ox.Mechanism("l1", "linf", 1.0, tolerance=0.0))
    log.add_explanation([-3.0, 0.0, 0.0], [3.0, 0.0, 0.0], label=-1)
    log.add_label([[0.0, 0.0, 0.0], [0.0, 2.0, 1.0]], [1, 1])

    def chord(weight: int, slope: int) -> Term:
        return Term("chord", F(weight), 0, vector=exact([0, slope, 0]), power=F(1))

    falling = (
        Term("side", F(1), 1), Term("side", F(1), 2), Term("plane", F(2), 0, sign=-1), chord(2, -1),
        Term("bound", F(6), index=0), Term("bound", F(1), sign=-1, index=2),
    )  # fmt: skip
    rising = (
        Term("denied", F(1)), Term("side", F(2), 1), Term("plane", F(1), 0, sign=-1), chord(1, 1),
        Term("bound", F(3), index=0), Term("bound", F(1, 2), sign=-1, index=0),
    )  # fmt: skip
    first = Bound(0, 1, F(1), (Term("steepest", F(1, 6), 0),))
    branch = Branch(bounds=(first,), index=1, value=F(0), parts=(Branch(falling), Branch(rising)))
    return log, Certificate.about(log, [-0.5, 1.0, 0.0], Verdict.YES, (), branches=Branched(0, branch))


def by_corners() -> tuple[ox.QueryLog, Certificate]:
    """s = max|a_i| is one of the a_i: No by a case for each."""
    log = ox.QueryLog(mechanism=ox.Mechanism("linf", "l1", 1.0, tolerance=0.0))
    log.add_explanation([0.0, 0.0], [3.0, 3.0], label=-1)
    bounds, parts = [], []
    for i in (0, 1):
        apart = Term("hoelder", F(1, 2), 0, vector=exact([1, -1] if i == 0 else [-1, 1]))
        bounds.append(Bound(i, 1, F(0), (Term("steepest", F(1, 6), 0), apart)))
        reached = [Term("denied", F(1)), Term("plane", F(1), 0, sign=-1), Term("corner", F(1))]
        parts.append(Branch((*reached, Term("steepest", F(1, 6), 0), Term("bound", F(1), index=1 - i))))
        parts.append(Branch((Term("corner", F(1)), Term("bound", F(1), index=i))))
    branch = Branch(bounds=tuple(bounds), corners=0, parts=tuple(parts))
    return log, Certificate.about(log, [1.5, 1.5], Verdict.NO, (), branches=Branched(0, branch))


def by_arcs(ball: ox.Norm = ox.l2, k: F = F(1)) -> tuple[ox.QueryLog, Certificate]:
    """Yes by two cases along a turned frame; `ball` is a norm whose dual is k times ℓ2.

    a₀ = t and s = 3/2·t; labels bound g·a by t and h·a by t/2, so that both are reached, and a·(g + h) ≥ 0 leaves g·a = t.
    """
    log = ox.QueryLog(mechanism=ox.Mechanism("l1", ball, float(1 / k), tolerance=0.0))
    log.add_explanation([-9.0, 0.0, 0.0], [3.0, 0.0, 0.0], label=-1)
    log.add_explanation([-9.0, 0.0, 0.0], [1.5, 0.0, 0.0], label=-1, mechanism=EXACT)
    ends = [[6.5, -3, -4], [6.5, 3, 4], [4, 4, -3], [4, -4, 3], [1.5, -1, 7]]
    log.add_label(ends, [1] * 5)
    frame = tuple(
        tuple(k * v for v in f) for f in ((F(1), F(0), F(0)), (F(0), F(3, 5), F(4, 5)), (F(0), F(-4, 5), F(3, 5)))
    )

    def level(row: int, weight: F, share: F) -> tuple[Term, ...]:
        """share·a₀ ∓ f·a ≥ 0, from a label, and |a₀| ≤ t."""
        return (
            Term("side", weight, row), Term("plane", weight, 1, sign=-1), Term("bound", share, sign=-1, index=0),
        )  # fmt: skip

    bounds = [Bound(3, 1, k, (Term("steepest", k / 12, 0),))]
    for row, index, sign, share in ((2, 4, -1, k), (3, 4, 1, k), (4, 5, -1, k / 2), (5, 5, 1, k / 2)):
        bounds.append(Bound(index, sign, -share, level(row, k / 5, share)))
    arc = (Term("arc", 1 / k**2, 0, at=k * F(3, 2)), Term("plane", F(3), 0, sign=-1))
    falling = (
        *arc, Term("plane", F(14, 5), 1), Term("bound", F(5, 2) / k, index=3), Term("side", F(1, 5), 6),
        Term("bound", 1 / k, sign=-1, index=5),
    )  # fmt: skip
    rising = (
        *arc, Term("plane", F(16, 5), 1), Term("bound", F(5, 2) / k, index=3), Term("denied", F(1, 5)),
        Term("bound", F(1, 2), sign=-1, index=0),
    )  # fmt: skip
    branch = Branch(bounds=tuple(bounds), index=4, value=F(0), parts=(Branch(falling), Branch(rising)))
    branched = Branched(0, branch, frame)
    return log, Certificate.about(log, [-1.0, 3.0, 4.0], Verdict.YES, (), branches=branched)


def disagreement() -> tuple[ox.QueryLog, Disagreement]:
    log, _ = labels_only()
    return log, Disagreement((2.0, 7.0), Model(exact([1, 0]), F(1)), Model(exact([1, 0]), F(3)))


def disagreement_with_evidence() -> tuple[ox.QueryLog, Disagreement]:
    log = ox.QueryLog(mechanism=ox.Mechanism(ox.Polyhedral(CORNERS), tolerance=0.0))
    log.add_explanation([0.0, 0.0], [3.0, 0.0])
    proof = Disagreement(
        (3.0, 1.0), Model(exact([-1, 0.5]), F(-3)), Model(exact([-1, -0.5]), F(-3)), assumed=((0, 1),),
        lengths=(find_length(CORNERS, exact([3.0, 0.0])),),
    )  # fmt: skip
    return log, proof


SAMPLES = [
    labels_only, explained, boundary, with_a_lemma, with_an_assumption, with_evidence, contradiction,
    under_another_tolerance, robust, of_a_secret_radius, by_cases, by_corners, by_arcs, disagreement, disagreement_with_evidence,
]  # fmt: skip
