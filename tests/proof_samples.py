"""One log and one proof about it for every kind of proof there is."""

from __future__ import annotations

from fractions import Fraction as F

import overexplain as ox
from overexplain.knowledge.certificates import Certificate, Disagreement, Model
from overexplain.knowledge.checker import Lemma, Term
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
    under_another_tolerance, disagreement, disagreement_with_evidence,
]  # fmt: skip
