"""UNKNOWN means two consistent models: every disagreement, of every kind of log, by the definition; and every model that the
checker accepts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import overexplain as ox
from campaigning import (
    Tally,
    assumed_point,
    campaign,
    check_verdicts,
    honest_log,
    opened,
    queries,
    shown,
)
from definition import Definition, Model
from overexplain.errors import CertificateInvalid, SolverFailed
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.checker import check_witness
from overexplain.knowledge.evidence import Finder

GOAL = "models checked"
POINTS = 12


def case(seed: int, tally: Tally) -> None:
    made = honest_log(seed)
    known = Definition(made.log)
    knowledge = opened(seed, tally, made, known)
    if knowledge is None:
        return
    verdicts = knowledge.certify(queries(made, POINTS))
    believed: list[Model] = [made.model] if known.judge(*made.model) else []
    for i, q in enumerate(verdicts.points.tolist()):
        if verdicts[i] is not ox.Verdict.UNKNOWN:
            continue
        try:
            proof = verdicts.proof(i)
        except SolverFailed:
            tally.add("UNKNOWN without a proof")
            continue
        models = [(tuple(m.normal), m.offset) for m in (proof.yes, proof.no)]
        for said, model in zip((True, False), models, strict=True):
            tally.add("models checked")
            fits = known.judge(*model)
            tally.add({True: "consistent", False: "not consistent", None: "not told"}[fits])
            if fits is False:
                tally.fail(seed, f"UNKNOWN at {q} by {model}, which is not consistent: {shown(made.log)}")
            elif fits:
                believed.append(model)
            if ((proof.yes if said else proof.no).margin(q) >= 0) != said:
                tally.fail(seed, f"{model} does not say {said} at {q}")
    check_verdicts(seed, tally, made.log, verdicts, believed, assumed_point(knowledge))
    _mutants(seed, tally, made.rng, known, made.log, believed)


def _mutants(
    seed: int, tally: Tally, rng: np.random.Generator, known: Definition, log: ox.QueryLog, models: list[Model]
) -> None:
    """Models a little off, between two others, or any: what the checker accepts must be consistent."""
    answers, find = answers_of(log), Finder()
    p = len(log.points[0])
    for _ in range(8):
        if models and rng.random() < 0.8:
            a, b = models[int(rng.integers(len(models)))]
            a = list(a)
            way = rng.integers(3)
            if way == 0:
                a[int(rng.integers(p))] *= 1 + Fraction(int(rng.choice([1, -1])), 10 ** int(rng.integers(1, 16)))
            elif way == 1:
                b += Fraction(int(rng.choice([1, -1])), 10 ** int(rng.integers(0, 16)))
            else:
                other, share = models[int(rng.integers(len(models)))], Fraction(int(rng.integers(0, 5)), 4)
                a = [share * u + (1 - share) * v for u, v in zip(a, other[0], strict=True)]
                b = share * b + (1 - share) * other[1]
        else:
            a, b = [Fraction(int(v)) for v in rng.integers(-2, 3, p)], Fraction(int(rng.integers(-8, 9)), 2)
        if not any(a):
            continue
        try:
            check_witness(answers, tuple(a), b, lengths=find)
        except CertificateInvalid:
            tally.add("mutants refused")
            if known.judge(a, b):
                tally.add("consistent mutants refused")
            continue
        tally.add("mutants accepted")
        tally.add("models checked")
        if known.judge(a, b) is False:
            tally.fail(seed, f"the checker accepts {(a, b)}, which is not consistent: {shown(log)}")


def test_unknown_means_two_consistent_models() -> None:
    assert campaign(case, 16).counts[GOAL] > 40
