"""Every row of the prover's facts, and every tie, follows from the checker's own statement of it, whatever the scales are."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import overexplain as ox
from overexplain.errors import CertificateInvalid
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.checker import Answer, Fact, Term, fact_of
from overexplain.knowledge.enclosures import enclose
from overexplain.knowledge.prover.blocks import blocks_of
from overexplain.knowledge.prover.facts import ENTRY, FLIPS, PLANE, SIDE, STEEPEST, STEP, WAY, Facts, read
from prover_logs import seeds

ONE = Fraction(1)
KINDS = ("label", "valid", "exact", "tolerance", "slack", "slack and tolerance")


def fractions(values: Any) -> list[Fraction]:
    return [Fraction(v) for v in np.asarray(values, dtype=float).tolist()]


def extreme_log(seed: int) -> ox.QueryLog:
    """Rows of any kind, honest or not: columns of 10⁻⁶ … 10⁶, weights, tolerances that are tiny or large."""
    rng = np.random.default_rng([seed, 7])
    p = int(rng.integers(1, 5))
    scale = 10.0 ** rng.integers(-6, 7, p)
    log = ox.QueryLog()
    for _ in range(int(rng.integers(1, 4))):
        name: Any = str(rng.choice(["l1", "linf", "l2"]))
        if rng.random() < 0.5:
            name = {"norm": "weighted", "base": name, "weights": (rng.uniform(0.3, 3, p) / scale).tolist()}
        terms = {
            "valid": ox.Mechanism(name, slack=None),
            "exact": ox.Mechanism(name),
            "tolerance": ox.Mechanism(name, tolerance=float(rng.choice([1e-9, 0.01, 2.0, 1e3]))),
            "slack": ox.Mechanism(name, slack=float(rng.choice([1e-6, 0.3, 5.0]))),
            "slack and tolerance": ox.Mechanism(name, slack=0.3, tolerance=float(rng.choice([0.01, 2.0, 1e3]))),
        }.get(str(rng.choice(KINDS)))
        X = rng.standard_normal((4, p)) * scale if rng.random() < 0.5 else rng.integers(-3, 4, (4, p)) * scale
        labels = rng.choice([1, -1], 4)
        if terms is None:
            log.add_label(X, labels)
            continue
        away = rng.standard_normal((4, p)) * scale * 10.0 ** rng.integers(-8, 2, (4, 1)) * rng.integers(0, 2, (4, p))
        log.add_explanation(X, X + away, label=labels, mechanism=terms)
    return log


def is_implied(row: Sequence[Fraction], fact: Fact, spec: Any, number: int, p: int) -> bool:
    """row·(a, b, t …) ≥ 0 follows from the fact and Hölder's inequality under its length."""
    off = [a - b for a, b in zip(row[: p + 1], fact.left, strict=True)]
    room = list(row[p + 1 :])
    for _, factor in fact.rights:
        room[number] += factor
    if off[-1] or any(v < 0 for k, v in enumerate(room) if k != number):
        return False
    owed = enclose(spec, off[:-1])[1] if any(off[:-1]) else Fraction(0)
    return owed <= (room[number] if number >= 0 else 0)


def check_row(facts: Facts, i: int, answers: dict[int, Answer], specs: list[Any], p: int) -> bool:
    row, origin = fractions(facts.left[i]), int(facts.origin[i])
    answer, name, width = answers[origin], int(facts.name[i]), Fraction(float(facts.width[i]))
    number = specs.index(answer.distance) if answer.distance in specs else -1
    spec = answer.distance

    def stated(what: str, **more: Any) -> Fact:
        return fact_of(answers, Term(what, ONE, origin, **more))

    if name == SIDE:
        fact = stated("side")
        own = is_implied(row, fact, spec, number, p)
        return own and (not facts.strict[i] or fact.is_strict or fact.right > 0)
    if name == STEEPEST:
        return is_implied(row, stated("steepest"), spec, number, p)
    if name == ENTRY:
        signs = [sign for sign in (1, -1) if is_stated(answers, origin, sign, int(facts.index[i]))]
        entries = [stated("entry", index=int(facts.index[i]), sign=sign) for sign in signs]
        return any(is_implied(row, entry, spec, number, p) for entry in entries)
    if name == FLIPS:
        fact, side = stated("flips"), stated("side")
        return is_flip(row, fact, side, answer, number, p)
    if name == PLANE:
        return all(
            is_implied(slab(row, width, number, p, s), stated("plane", sign=s), spec, number, p) for s in (1, -1)
        )
    assert answer.label is not None
    towards = [-answer.label * v for v in answer.step]
    if name == STEP:
        hoelder = Fact([*(-v for v in towards), Fraction(0)], ((spec, -enclose(spec, towards)[1]),))
        up, down = (slab(row, width, number, p, s) for s in (1, -1))
        return is_implied(up, stated("steepest"), spec, number, p) and is_implied(down, hoelder, spec, number, p)
    assert name == WAY
    # |n − u|² ≤ 2 − 2c/‖w‖ for the directions n of a and u of the step: every entry is as near.
    weights = fractions(spec["weights"]) if isinstance(spec, dict) else [ONE] * p
    k, long = int(facts.index[i]), enclose(spec, towards)
    apart = 2 - 2 * stated("steepest").right / long[1]
    for length in long:
        exact = weights[k] * (weights[k] * towards[k]) / length
        left = width - abs(row[p + 1 + number] + exact)
        if left < 0 or left * left < apart * weights[k] ** 2:
            return False
    return row[k] == 1


def is_flip(row: list[Fraction], fact: Fact, side: Fact, answer: Answer, number: int, p: int) -> bool:
    """A flip times a factor, and more of the label's own fact, which makes it weaker: how much is tried."""
    y = answer.label
    assert y is not None
    share = fact.left[-1] / -y + 1  # its left side ends in y − c·y
    more = [(fact.left[-1] - row[p]) * y, *(share * step / 10**k for k in range(15) for step in (1, 3))]
    for extra in more:
        total = [a + extra * b for a, b in zip(fact.left, side.left, strict=True)]
        for factor in (ONE, row[p] / total[-1] if total[-1] else ONE):
            if extra < 0 or factor < 0:
                continue
            right = factor * (fact.right + extra * side.right)
            scaled = Fact([factor * v for v in total], ((answer.distance, right),) if right else ())
            if is_implied(row, scaled, answer.distance, number, p):
                return True
    return False


def is_stated(answers: dict[int, Answer], row: int, sign: int, index: int) -> bool:
    """Does the checker grant the row this `entry`?"""
    try:
        fact_of(answers, Term("entry", ONE, row, sign=sign, index=index))
    except CertificateInvalid:
        return False
    return True


def slab(row: list[Fraction], width: Fraction, number: int, p: int, sign: int) -> list[Fraction]:
    """One side of an equality."""
    out = [sign * v for v in row]
    out[p + 1 + number] += width
    return out


def test_rows_follow_from_the_checkers_facts() -> None:
    names: set[int] = set()
    for seed in seeds(60):
        log = extreme_log(seed)
        answers = dict(answers_of(log))
        blocks = blocks_of(log, log.labels, None)
        assert blocks
        p = log.points.shape[1]
        with np.errstate(all="ignore"):
            facts, ties, norms = read(blocks, p)
        specs = [norm.spec for norm in norms]
        for i in range(len(facts)):
            assert check_row(facts, i, answers, specs, p), (seed, i, int(facts.name[i]), facts.left[i].tolist())
            names.add(int(facts.name[i]))
        for i in np.flatnonzero(ties.number >= 0).tolist():
            check_tie(ties, i, answers, seed)
    assert names == {SIDE, PLANE, STEEPEST, FLIPS, ENTRY, STEP, WAY}


def check_tie(ties: Any, i: int, answers: dict[int, Answer], seed: int) -> None:
    """a_i = value·t: under l1 one way by the checker's `entry`, the other by Hölder; under linf 0 by two entries."""
    row, value = int(ties.row[i]), Fraction(float(ties.value[i]))
    signs = [sign for sign in (1, -1) if is_stated(answers, row, sign, i)]
    found = [fact_of(answers, Term("entry", ONE, row, sign=sign, index=i)) for sign in signs]
    if value:
        assert len(found) == 1, seed
        assert found[0].left[i] == (1 if value > 0 else -1), seed
        assert found[0].right == abs(value), seed
    else:
        assert {fact.left[i] for fact in found} == {1, -1}, seed
        assert all(fact.right == 0 for fact in found), seed


def test_weights_of_weights_tie_nothing_that_is_rounded() -> None:
    """0.1·0.7 is no float: an entry that is tied to its rounding would be tied wrongly."""
    norm = ox.Weighted(ox.Weighted(ox.l1, [0.1, 0.3]), [0.7, 0.7])
    log = ox.QueryLog()
    log.add_explanation([0.0, 0.0], [1.0, 0.0], label=-1, mechanism=ox.Mechanism(norm))
    blocks = blocks_of(log, log.labels, None)
    assert blocks
    _, ties, _ = read(blocks, 2)
    for i in np.flatnonzero(ties.number >= 0).tolist():
        check_tie(ties, i, dict(answers_of(log)), 0)
    verdicts = ox.Knowledge(log, threads=1).certify([[2.0, 0.0], [0.0, 0.0], [0.0, 3.0]])
    assert (verdicts.codes[:2] == (1, -1)).all()
    for i in range(2):
        verdicts.proof(i).verify(log)
