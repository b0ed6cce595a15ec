"""Every fact that the checker grants a row holds for every model that is consistent with the row by the definition."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from campaigning import KINDS, Tally, campaign, drawn_plane, holds, honest_log, shown
from definition import Definition, Model
from exact_balls import ZERO, Euclidean, Surd, Weighted, dot, largest
from overexplain.errors import CertificateInvalid
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.checker import Term, fact_of
from overexplain.knowledge.evidence import Finder

GOAL = "facts"
ONE = Fraction(1)


def terms(rng: np.random.Generator, p: int, known: Definition) -> Iterator[Term]:
    """All facts there are, with vectors and powers that mean something and some that do not."""
    for sign in (1, -1):
        yield Term("plane", ONE, 0, sign=sign)
    for name in ("side", "steepest", "flips", "reach"):
        yield Term(name, ONE, 0)
    vector = tuple(Fraction(int(v), 2) for v in rng.integers(-4, 5, p))
    yield from (Term("entry", ONE, 0, sign=sign, index=i) for i in range(p) for sign in (1, -1))
    for of in ("distance", "robustness"):
        yield Term("hoelder", ONE, 0, vector=vector, of=of)
    for power in (None, ONE, Fraction(2), Fraction(3, 2)):
        slope = tuple(ZERO for _ in range(p)) if power is None else vector
        yield Term("chord", ONE, 0, vector=slope, power=power, at=Fraction(int(rng.integers(1, 5)), 2))
    row = known.rows[0]
    if p > 1 and row.image is not None:
        ball, weights = (
            (row.distance.base, row.distance.weights)
            if isinstance(row.distance, Weighted)
            else (row.distance, (ONE,) * p)
        )
        step = tuple(d * v for d, v in zip(weights, row.step, strict=True))
        slope = tuple(dot(m, step) for m in ball.matrix) if isinstance(ball, Euclidean) else step
        slope = tuple(d * v for d, v in zip(weights, slope, strict=True))
        i, k = (int(v) for v in rng.choice(p, 2, replace=False))
        yield Term("ray", ONE, 0, vector=tuple(slope[k] if n == i else -slope[i] if n == k else ZERO for n in range(p)))


def reaches(known: Definition, model: Model, y: int) -> list[Fraction]:
    """Distances behind the plane that a secret radius may make: the ends of all that row 0 allows."""
    row = known.rows[0]
    if row.radius is not None or row.image is None:
        return [ZERO]
    ends = known.levels(0, model[0], y).inner
    assert ends is not None
    margin = y * (dot(model[0], row.point) - model[1])
    low, high = (largest(Surd(ZERO), end.plus(-margin)) for end in ends)
    inside = low.bounds()[1], high.bounds()[0]
    return [*inside] if inside[0] <= inside[1] else []


def nearby(rng: np.random.Generator, made: Any, known: Definition) -> Iterator[Model]:
    """The true model and others, as far as they are consistent with row 0."""
    a, b = made.model
    yield a, b
    p = len(a)
    for k in range(5):
        off = Fraction(int(rng.choice([1, -1])), 2 ** int(rng.integers(1, 45)))
        i = int(rng.integers(p + 1))
        if k < 3:
            yield tuple(v * (1 + off) if n == i else v for n, v in enumerate(a)), b + (off if i == p else 0)
        else:
            plane = drawn_plane(rng, p, True)
            yield tuple(Fraction(float(v)) for v in plane.normal), Fraction(float(plane.offset))


def case(seed: int, tally: Tally) -> None:
    made = honest_log(seed, [KINDS[seed % len(KINDS)]], 3, 0.25, labels=0, explained=1)
    known, rng, log = Definition(made.log), made.rng, made.log
    p, find = log.points.shape[1], Finder()
    answers, row = answers_of(log), known.rows[0]
    wanted = list(terms(rng, p, known))
    for model in nearby(rng, made, known):
        if known.judge(*model) is not True:
            continue
        tally.add("models")
        y = 1 if dot(model[0], row.point) >= model[1] else -1
        labels = {0: y} if row.label is None else None
        for term in wanted:
            try:
                fact = fact_of(answers, term, find, labels)
            except CertificateInvalid:
                continue
            for reach in reaches(known, model, y) if any(_is_secret(length) for length, _ in fact.rights) else [ZERO]:
                tally.add("facts")
                tally.add(f"fact {term.fact}")
                if not holds(fact, model, reach, p):
                    tally.fail(seed, f"{term} is false of {model} with the reach {reach}: {shown(log)}")


def _is_secret(length: Any) -> bool:
    return isinstance(length, dict) and length.get("norm") == "secret"


def test_facts_hold_by_definition() -> None:
    assert campaign(case, 160).counts[GOAL] > 800
