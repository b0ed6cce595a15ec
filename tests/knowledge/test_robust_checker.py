"""The checker on robust explanations: every fact it states is true, every false proof is refused, whoever made it and however."""

from __future__ import annotations

import decimal
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction as F
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import overexplain as ox
from overexplain.knowledge import branches
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.certificates import Certificate, Disagreement, Model, read_proof
from overexplain.knowledge.checker import (
    Answer,
    Bound,
    Branch,
    Branched,
    Context,
    Fact,
    Lemma,
    Term,
    check_certificate,
    check_witness,
    fact_of,
)  # fmt: skip
from overexplain.knowledge.enclosures import (
    NotEnclosed,
    corners_of,
    dot,
    dual_spec,
    enclose,
    exponent_and_weights,
    power,
)  # fmt: skip
from overexplain.knowledge.evidence import Finder
from overexplain.knowledge.promises import is_secret, rights
from overexplain.knowledge.verdicts import Verdict
from proof_samples import by_cases, by_corners, of_a_secret_radius, robust
from provers import exact

Vector = Sequence[F]
EXACT_NORMS = ("l1", "linf", "weighted l1", "weighted linf")


def a_norm(kind: str, p: int, rng: random.Random) -> Any:
    """A written form; weights are powers of two."""
    if kind.startswith("weighted "):
        base = kind.removeprefix("weighted ")
        return {"norm": "weighted", "base": base, "weights": [rng.choice((0.5, 1.0, 2.0)) for _ in range(p)]}
    return kind


def size(spec: Any, normal: Vector) -> tuple[F, F]:
    """‖a‖*, enclosed."""
    return enclose(dual_spec(spec), normal)


def quarter(rng: random.Random) -> F:
    return F(rng.randint(-12, 12), 4)


def steepest_way(spec: Any, normal: Vector, rng: random.Random) -> list[F]:
    """A rational v with ‖v‖ = 1 and a·v = ‖a‖*: of (weighted) ℓ1 or ℓ∞; where there are several, any of them."""
    q, weights = exponent_and_weights(spec, len(normal))
    if q == 1:
        best = max(abs(a / w) for a, w in zip(normal, weights, strict=True))
        tied = [i for i, (a, w) in enumerate(zip(normal, weights, strict=True)) if abs(a / w) == best]
        shares = {i: F(rng.randint(0, 3)) for i in tied}
        shares[rng.choice(tied)] += 1
        total = sum(shares.values())
        return [
            (1 if a > 0 else -1) * shares[i] / total / w if i in shares else F(0)
            for i, (a, w) in enumerate(zip(normal, weights, strict=True))
        ]
    return [(F((a > 0) - (a < 0)) if a else F(rng.randint(-2, 2), 2)) / w for a, w in zip(normal, weights, strict=True)]


class Service:
    """A rational model and the robust explanations that it gives, by arithmetic of its own."""

    def __init__(self, rng: random.Random, p: int) -> None:
        self.rng, self.p = rng, p
        self.normal = [F(rng.randint(-4, 4), 2) for _ in range(p)]
        self.normal[rng.randrange(p)] = F(rng.choice((-1, 1)))
        self.offset = quarter(rng)

    def value(self, x: Vector) -> F:
        return dot(self.normal, x) - self.offset

    def row(
        self,
        distance: Any,
        robustness: Any,
        radius: F,
        *,
        tolerance: F = F(0),
        slack: F | None = F(0),
        secret: bool = False,
    ) -> Answer:
        """The optimum for a point of one's own, made longer within the slack and moved within the tolerance."""
        rng, normal = self.rng, self.normal
        (s, _), (t, _) = size(robustness, normal), size(distance, normal)
        way, side = steepest_way(distance, normal, rng), rng.choice((1, -1))
        # A point of that side, whose distance from the plane is what it is.
        x = [quarter(rng) for _ in range(self.p)]
        pushed = side * F(rng.randint(0, 8), 4) - self.value(x) / t
        x = [v + pushed * u for v, u in zip(x, way, strict=True)]
        y = 1 if self.value(x) >= 0 else -1
        cost = (y * self.value(x) + radius * s) / t
        stretch = 1 if slack is None else 1 + slack * F(rng.randint(0, 4), 4)
        image = [v - y * cost * stretch * u for v, u in zip(x, way, strict=True)]
        off = [quarter(rng) for _ in range(self.p)]
        length = enclose(distance, off)[1] or F(1)
        share = F(rng.randint(0, 4), 4) * tolerance / length
        image = [v + share * u for v, u in zip(image, off, strict=True)]
        return Answer(
            tuple(x),
            y,
            tuple(image),
            distance,
            tolerance,
            slack,
            robustness=robustness,
            radius=None if secret else radius,
        )


def facts_of(log: dict[int, Answer], row: int) -> Iterator[tuple[Term, Fact]]:
    """Every fact about a row that the checker states, in both signs."""
    for name in ("side", "plane", "steepest", "reach", "flips"):
        for sign in (1, -1) if name == "plane" else (1,):
            term = Term(name, F(1), row, sign=sign)
            try:
                yield term, fact_of(log, term)
            except ox.CertificateInvalid:
                continue


def holds(fact: Fact, normal: Vector, offset: F, reach: F = F(0)) -> bool:
    """Is the fact true of the model? Lengths are enclosed: it is called false only if it is so for certain."""
    left = dot([*normal, offset], fact.left)
    right = F(0)
    for length, factor in fact.rights:
        low, high = (reach, reach) if is_secret(length) else size(length, normal)
        right += factor * (low if factor > 0 else high)
    return left > right if fact.is_strict else left >= right


# Facts.


@pytest.mark.parametrize("second", EXACT_NORMS)
@pytest.mark.parametrize("first", EXACT_NORMS)
def test_every_fact_holds_for_the_model_that_gave_the_answer(first: str, second: str) -> None:
    rng = random.Random(f"{first} {second}")
    seen: set[str] = set()
    for _ in range(40):
        p = rng.randint(1, 4)
        service = Service(rng, p)
        distance, robustness = a_norm(first, p, rng), a_norm(second, p, rng)
        radius = F(rng.randint(1, 8), 4)
        terms = {"tolerance": F(rng.choice((0, 0, 1)), 8), "slack": rng.choice((F(0), F(0), F(1, 2)))}
        secret = rng.random() < 0.3
        log = {0: service.row(distance, robustness, radius, secret=secret, **terms)}
        reach = radius * size(robustness, service.normal)[0]
        for term, fact in facts_of(log, 0):
            seen.add(term.fact + ("−" if term.sign < 0 else ""))
            assert holds(fact, service.normal, service.offset, reach), (term, fact)
        check_witness(log, service.normal, service.offset)
    assert seen == {"side", "plane", "plane−", "steepest", "reach"}


@pytest.mark.parametrize(
    ("first", "second"),
    [("l2", "l2"), ("lp:3", "l2"), ("l2", "lp:1.5"), ("l1", "lp:3"), ("lp:1.5", "l1"), ("l2", "linf")],
)
@pytest.mark.parametrize("secret", [False, True])
def test_facts_of_float_answers_hold_to_within_their_rounding(first: str, second: str, secret: bool) -> None:
    rng = np.random.default_rng(3)
    for _ in range(10):
        model = ox.Hyperplane(rng.normal(size=3), rng.normal())
        terms = ox.Mechanism(first, second, 0.5)
        oracle = ox.ModelOracle(model, terms)
        log = ox.QueryLog(mechanism=replace(terms, radius=None) if secret else terms)
        for x in rng.normal(size=(2, 3)) * 2:
            log.add_explanation(x, oracle.explain(x), label=model.label(x))
        answers = dict(answers_of(log))
        normal, offset = exact(model.normal), F(model.offset)
        reach = F(0.5) * size(second, normal)[0]
        facts = [fact for row in answers for _, fact in facts_of(answers, row)]
        assert len(facts) == 2 * 5
        assert all(holds(fact, normal, offset, reach) for fact in facts)
        check_witness(answers, normal, offset)
        turned = exact(model.normal * [1, 1, 1 + 1e-4])
        with pytest.raises(ox.CertificateInvalid, match="would not have given"):
            check_witness(answers, turned, offset)


def test_what_each_kind_of_robust_row_promises() -> None:
    def names(**change: Any) -> list[str]:
        good = Answer(exact([0, 0]), -1, exact([3, 0]), "l1", F(0), robustness="l2", radius=F(1))
        found = [(term.fact, term.sign) for term, _ in facts_of({0: replace(good, **change)}, 0)]
        return [name + ("−" if sign < 0 else "") for name, sign in found]

    everything = ["side", "plane", "plane−", "steepest", "reach"]
    assert names() == names(tolerance=None) == names(tolerance=F(1)) == names(radius=None) == everything
    assert names(slack=F(1, 2)) == ["side", "plane", "reach"]
    assert names(slack=None) == names(slack=None, tolerance=None) == ["side", "plane"]
    assert names(slack=None, tolerance=F(1)) == ["side", "plane"]
    assert names(distance=None) == ["side", "plane", "plane−"]
    assert names(distance=None, slack=F(1)) == ["side", "plane"]
    assert names(distance=None, tolerance=None) == ["side"]
    assert names(robustness=None) == ["side", "steepest"]
    assert names(free=(0,)) == names(free=()) == names(free=(0,), slack=None) == ["side", "flips"]
    assert names(label=None) == []
    assert names(radius=F(0)) == ["side", "plane", "plane−", "steepest"]


def test_the_numbers_in_the_facts_of_a_robust_row() -> None:
    row = Answer(exact([0, 0]), -1, exact([3, 0]), "l1", F(1, 4), robustness="linf", radius=F(1, 2))
    log = {0: row}
    side, plane, minus, steepest, reach = (fact for _, fact in facts_of(log, 0))
    assert (side.left, side.rights, side.is_strict) == ([0, 0, 1], (), True)
    assert (plane.left, dict(plane.rights)) == ([3, 0, -1], {"l1": F(-1, 4), "linf": F(1, 2)})
    assert (minus.left, dict(minus.rights)) == ([-3, 0, 1], {"l1": F(-1, 4), "linf": F(-1, 2)})
    assert (steepest.left, dict(steepest.rights)) == ([3, 0, 0], {"l1": F(5, 2)})
    assert (reach.left, dict(reach.rights)) == ([0, 0, 1], {"l1": F(11, 4), "linf": F(-1, 2)})
    loose = fact_of({0: replace(row, slack=F(1))}, Term("reach", F(1), 0))
    assert dict(loose.rights) == {"l1": F(11, 8), "linf": F(-1, 2)}
    same = fact_of({0: replace(row, robustness="l1")}, Term("reach", F(1), 0))
    assert same.rights == (("l1", F(9, 4)),)  # one length: its factors add up
    assert same.right == F(9, 4)
    with pytest.raises(ValueError, match="several lengths"):
        _ = reach.right
    yes = fact_of({0: replace(row, label=1)}, Term("plane", F(1), 0))
    assert (yes.left, dict(yes.rights)) == ([-3, 0, 1], {"l1": F(-1, 4), "linf": F(1, 2)})
    assert rights(("l1", F(1)), ("l2", F(2)), ("l1", F(-1)), (None, F(1)), ("l1", F(0))) == (("l2", F(2)),)


def test_the_plane_of_a_robust_row_needs_its_side() -> None:
    log = {
        0: Answer(exact([0, 0]), None, exact([3, 0]), "l1", F(0), robustness="l1", radius=F(1)),
        1: Answer(exact([0, 0]), -1),
    }
    term = Term("plane", F(1), 0)
    with pytest.raises(ox.CertificateInvalid, match="side of row 0 is not known"):
        check_certificate(log, [term], exact([3, 0]), 1)
    lemma = Lemma(0, -1, (Term("side", F(1), 0), Term("side", F(1), 1)))
    check_certificate(log, [term], exact([3, 0]), 1, lemmas=[lemma])
    assert fact_of(log, term, labels={0: -1}).left == [3, 0, -1]


# Hölder under the robustness.


def test_hoelder_under_the_robustness_is_told_apart_from_that_of_the_distance() -> None:
    log = {0: Answer(exact([0, 0]), -1, exact([3, 0]), "l1", F(0), robustness="linf", radius=F(1))}
    term = Term("hoelder", F(1), 0, vector=exact([1, 1]))
    assert fact_of(log, term).rights == (("l1", F(-2)),)
    assert fact_of(log, replace(term, of="robustness")).rights == (("linf", F(-1)),)
    plane = Term("plane", F(1), 0)
    check_certificate(log, [plane, replace(term, of="robustness")], exact([4, 1]), 1)
    check_certificate(log, [plane, Term("hoelder", F(1), vector=exact([1, 1]), distance="linf")], exact([4, 1]), 1)
    with pytest.raises(ox.CertificateInvalid, match="l1 add up to -2"):
        check_certificate(log, [plane, term], exact([4, 1]), 1)
    for change, says in (
        ({"of": "radius"}, "`of` its distance or its robustness"),
        ({"of": "robustness", "row": None, "distance": "linf"}, "only a hoelder with a row"),
        ({"row": None, "distance": "l2"}, "needs the distance of a row"),
        (
            {"row": None, "distance": {"norm": "secret", "distance": "l1", "robustness": None}},
            "needs the distance of a row",
        ),
    ):
        with pytest.raises(ox.CertificateInvalid, match=says):
            check_certificate(log, [plane, replace(term, **change)], exact([4, 1]), 1)
    bare = {0: replace(log[0], robustness=None, radius=None)}
    with pytest.raises(ox.CertificateInvalid, match="needs the distance of a row"):
        check_certificate(bare, [plane, replace(term, of="robustness")], exact([4, 1]), 1)
    with pytest.raises(ox.CertificateInvalid, match="only a hoelder with a row"):
        check_certificate(log, [replace(plane, of="robustness")], exact([3, 0]), 1)


def test_lengths_are_paid_for_one_by_one() -> None:
    """‖a‖ under ℓ1 is at least that under ℓ∞'s dual divided by 2, but the checker is told nothing of the kind."""
    log = {0: Answer(exact([0, 0]), -1, exact([3, 0]), "l1", F(0), robustness="linf", radius=F(1))}
    terms = [Term("plane", F(1), 0, sign=-1), Term("steepest", F(1), 0)]
    with pytest.raises(ox.CertificateInvalid, match="distance linf add up to -1, below 0"):
        check_certificate(log, terms, exact([0, 0]), -1)


def test_a_secret_reach_may_be_nothing_and_so_pays_for_no_strictness() -> None:
    """On the plane itself for a radius of 0, where a Yes is told: only a known radius makes it a No."""
    known = {0: Answer(exact([0, 0]), 1, exact([3, 0]), "l1", F(0), robustness="l1", radius=F(1))}
    terms = [Term("plane", F(1), 0)]
    check_certificate(known, terms, exact([3, 0]), -1)
    secret = {0: replace(known[0], radius=None)}
    with pytest.raises(ox.CertificateInvalid, match="nothing in it is strict"):
        check_certificate(secret, terms, exact([3, 0]), -1)
    check_witness(secret, exact([-1, 0]), F(-3))
    with pytest.raises(ox.CertificateInvalid, match="the secret reach add up to -1"):
        check_certificate(secret, [Term("plane", F(1), 0, sign=-1)], exact([3, 0]), 1)


# Powers and chords.


@pytest.mark.parametrize("k", ["1/3", "1/2", "3/2", "5/3", "2.1", "11", "100.5", "1000001/1000000"])
def test_powers_are_enclosed(k: str) -> None:
    fine = decimal.Context(prec=160)
    rng = random.Random(k)
    for _ in range(20):
        x = F(rng.randint(1, 10**6), rng.randint(1, 10**6)) * F(10) ** rng.randint(-20, 20)
        low, high = power(x, F(k))
        exponent = fine.divide(F(k).numerator, F(k).denominator)
        base = fine.divide(x.numerator, x.denominator)
        truth = F(fine.exp(fine.multiply(exponent, fine.ln(base))))
        room = truth / 10**100
        assert low - room <= truth <= high + room
        assert high - low <= truth / 10**25
        assert low < high or F(k).denominator == 1


def test_whole_powers_are_exact_and_extreme_ones_still_bounds() -> None:
    assert power(F(3, 2), F(3)) == (F(27, 8), F(27, 8))
    assert power(F(0), F(3, 2)) == (0, 0)
    assert power(F(7), F(0)) == power(F(1), F(3, 2)) == (1, 1)
    low, high = power(F(3, 7), F(9000))
    assert low < F(3, 7) ** 9000 < high < low * (1 + F(1, 10**25))
    low, high = power(F(1, 2), F(10) ** 9)
    assert low == 0 < high < F(1, 10**1000)
    for large in (F(10) ** 31, F(10) ** 51, F(10) ** 60, F(10) ** 62 + F(1, 3)):  # of numbers hardly above 1
        with pytest.raises(NotEnclosed, match="cannot be told"):
            power(1 + F(1, 10**60), large)
    low, high = power(1 + F(1, 10**30), F(10) ** 25)
    series = 1 + F(1, 10**5) + F(1, 2 * 10**10)  # of e^(1/10^5), which it is but for 1e-25
    assert series < low < high < series + F(1, 5 * 10**15)
    with pytest.raises(NotEnclosed, match="too large"):
        power(F(2), F(10) ** 9)
    for wrong in ((F(-1), F(2)), (F(1), F(-2))):
        with pytest.raises(NotEnclosed, match="a number ≥ 0"):
            power(*wrong)


def test_exponents_weights_and_corners_are_read_from_written_forms() -> None:
    weighted = {"norm": "weighted", "base": "lp:1.5", "weights": [2.0, 0.5]}
    assert exponent_and_weights(weighted, 2) == (F(3, 2), [2, F(1, 2)])
    assert exponent_and_weights({"norm": "weighted", "base": weighted, "weights": [1, 3]}, 2)[1] == [2, F(3, 2)]
    assert exponent_and_weights("linf", 3) == (None, [1, 1, 1])
    assert corners_of("l1", 2) == [[1, 0], [-1, 0], [0, 1], [0, -1]]
    assert corners_of({"norm": "weighted", "base": "l1", "weights": [2.0, 0.5]}, 2) == [
        [F(1, 2), 0], [F(-1, 2), 0], [0, 2], [0, -2],
    ]  # fmt: skip
    vertices = [[1.0, 1.0], [-1.0, -1.0], [0.0, 2.0], [0.0, -2.0]]
    assert corners_of({"norm": "polyhedral", "vertices": vertices}, 2) == vertices
    for spec in ({"norm": "group", "groups": [[0, 1]]}, {"norm": "mahalanobis", "matrix": [[1, 0], [0, 1]]}):
        with pytest.raises(NotEnclosed, match="no weighted ℓq"):
            exponent_and_weights(spec, 2)
    with pytest.raises(NotEnclosed, match="2 weights"):
        exponent_and_weights(weighted, 3)
    with pytest.raises(NotEnclosed, match="few corners"):
        corners_of("linf", 2)


ROBUST_NORMS = ("l1", "linf", "l2", "lp:3", "lp:1.5", "weighted l2", "weighted lp:3", "weighted linf", "weighted l1")


def powers_of(spec: Any, p: int, rng: random.Random) -> F:
    """Some κ between 1 and the dual exponent."""
    q, _ = exponent_and_weights(spec, p)
    if q is None:
        return F(1)
    largest = F(5) if q == 1 else q / (q - 1)
    return rng.choice((F(1), largest, 1 + (largest - 1) * F(rng.randint(0, 4), 4)))


@pytest.mark.parametrize("unit", ["l1", "linf", "weighted l1", "l2"])
@pytest.mark.parametrize("kind", ROBUST_NORMS)
def test_chords_hold_wherever_in_the_box_the_model_is(kind: str, unit: str) -> None:
    rng = random.Random(f"{kind} {unit}")
    for _ in range(25):
        p = rng.randint(1, 4)
        distance, robustness = a_norm(unit, p, rng), a_norm(kind, p, rng)
        log = {0: Answer((F(0),) * p, -1, (F(1),) * p, distance, F(0), robustness=robustness, radius=F(1))}
        normal = [quarter(rng) for _ in range(p)]
        normal[rng.randrange(p)] += 7
        low, high = size(distance, normal)
        box = {
            (i, sign): (sign * a - rng.choice((0, 0, 1, 3)) * high) / (low if sign * a < 0 else high)
            for i, a in enumerate(normal)
            for sign in (1, -1)
            if rng.random() < 0.8
        }
        term = Term(
            "chord", F(1), 0, vector=tuple(quarter(rng) for _ in range(p)), power=powers_of(robustness, p, rng),
            at=F(rng.randint(1, 12), 4),
        )  # fmt: skip
        for context in (None, Context(distance, box)):
            assert holds(fact_of(log, term, context=context), normal, F(0))


@pytest.mark.parametrize("kind", ROBUST_NORMS)
def test_a_chord_in_a_box_without_room_is_the_length_itself(kind: str) -> None:
    """Where the box is one point, κ the dual exponent and s0 the length, nothing is lost but rounding."""
    rng = random.Random(kind)
    p = 3
    robustness = a_norm(kind, p, rng)
    normal = [F(1), F(-1, 2), F(1, 4)]  # ‖a‖* = 1 for the distance ℓ1
    q, _ = exponent_and_weights(robustness, p)
    low, high = size(robustness, normal)
    k = F(1) if q is None else F(60) if q == 1 else q / (q - 1)
    log = {0: Answer((F(0),) * p, -1, (F(1),) * p, "l1", F(0), robustness=robustness, radius=F(1))}
    box = {(i, sign): sign * a for i, a in enumerate(normal) for sign in (1, -1)}
    term = Term("chord", F(1), 0, vector=tuple(quarter(rng) for _ in range(p)), power=k, at=high)
    fact = fact_of(log, term, context=Context("l1", box))
    if robustness == "l1":  # both lengths are one, and t = s = 1
        assert 0 <= dot([*normal, F(0)], fact.left) - fact.right < F(1, 10**9)
        return
    (_, gamma), (_, delta) = fact.rights
    bound = (dot([*normal, F(0)], fact.left) - gamma) / delta
    assert low <= bound <= high * (1 + (F(1, 10) if q == 1 else F(1, 10**20)))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"power": F(5, 2)}, "above the dual exponent"),
        ({"power": F(1, 2)}, "at least 1"),
        ({"power": None}, "without a power a chord is level"),
        ({"power": 1.5}, "exact fractions only"),
        ({"at": None}, "touches at some number above 0"),
        ({"at": F(0)}, "touches at some number above 0"),
        ({"at": F(-1)}, "touches at some number above 0"),
        ({"at": 0.5}, "exact fractions only"),
        ({"vector": None}, "a vector to ray"),
        ({"vector": exact([0])}, "needs a vector with 2 entries"),
        ({"row": None}, "names no row"),
        ({"row": 1}, "no known distance and robustness"),
        ({"sign": -1}, "a sign belongs to plane"),
        ({"index": 0}, "index of an entry"),
        ({"distance": "l1"}, "a distance belongs to a hoelder"),
    ],
)
def test_a_chord_is_made_of_what_it_should_be(change: dict, says: str) -> None:
    log = {
        0: Answer(exact([0, 0]), -1, exact([3, 0]), "l1", F(0), robustness="l2", radius=F(1)),
        1: Answer(exact([0, 0]), -1, exact([3, 0]), "l1", F(0)),
    }
    chord = Term("chord", F(1, 2), 0, vector=exact([0, 0]), power=F(2), at=F(1))
    # 2s ≤ s² + 1 ≤ 3t, and from (1, 0) to (3, 0) it is 2t.
    others = [Term("plane", F(1), 0, sign=-1), Term("steepest", F(2, 3), 0)]
    check_certificate(log, [chord, *others], exact([1, 0]), -1)
    with pytest.raises(ox.CertificateInvalid, match=says):
        check_certificate(log, [replace(chord, **change), *others], exact([1, 0]), -1)
    for wrong in ({"weight": F(3, 4)}, {"weight": F(1, 3)}, {"power": F(1), "at": None}):
        with pytest.raises(ox.CertificateInvalid, match="add up to"):
            check_certificate(log, [replace(chord, **wrong), *others], exact([1, 0]), -1)


OTHER_NORMS = ("mahalanobis", "group", "group-max", "polyhedral", "facets", "weighted group", "weighted mahalanobis")


def another_norm(kind: str, p: int, rng: random.Random) -> dict[str, Any]:
    """A written form of a norm that is no weighted ℓq."""
    if kind.startswith("weighted "):
        base = another_norm(kind.removeprefix("weighted "), p, rng)
        return {"norm": "weighted", "base": base, "weights": [rng.choice((0.5, 1.0, 2.0)) for _ in range(p)]}
    if kind == "mahalanobis":
        factor = np.array([[rng.randint(-4, 4) / 4 for _ in range(p)] for _ in range(p)])
        return {"norm": kind, "matrix": (factor @ factor.T + np.eye(p) / 4).tolist()}
    if kind.startswith("group"):
        order = rng.sample(range(p), p)
        return {"norm": kind, "groups": [group for group in (order[: p // 2], order[p // 2 :]) if group]}
    half = np.vstack([np.eye(p), [[rng.randint(-6, 6) / 4 for _ in range(p)] for _ in range(p + 1)]])
    return {"norm": kind, "vertices" if kind == "polyhedral" else "facets": np.vstack([half, -half]).tolist()}


def dual_length(spec: dict[str, Any], a: np.ndarray) -> float:
    """‖a‖* from its definition, max a·u over the ball, in float64 and not by the checker."""
    if spec["norm"] == "weighted":
        return dual_length(spec["base"], a / np.array(spec["weights"]))
    if spec["norm"] == "mahalanobis":
        return float(np.sqrt(a @ np.linalg.solve(np.array(spec["matrix"]), a)))
    if spec["norm"] in ("group", "group-max"):
        parts = [float(np.linalg.norm(a[group])) for group in spec["groups"]]
        return max(parts) if spec["norm"] == "group" else sum(parts)
    if spec["norm"] == "polyhedral":
        return float((np.array(spec["vertices"]) @ a).max())
    faces = np.array(spec["facets"])
    return -float(linprog(-a, A_ub=faces, b_ub=np.ones(len(faces)), bounds=(None, None)).fun)


@pytest.mark.parametrize("kind", OTHER_NORMS)
@pytest.mark.parametrize("p", [1, 2, 3, 7])
def test_chords_of_other_norms_hold_in_their_box_and_some_touch_it(kind: str, p: int) -> None:
    """δ·s ≤ γ·t + α·a at corners and inside; up to 64 (8) corners of a box γ is the largest s − α·a there, not more."""
    rng = random.Random(f"{kind} {p}")
    for power_of in (None, None, F(1)):
        robustness = another_norm(kind, p, rng)
        log = {0: Answer((F(0),) * p, -1, (F(1),) * p, "l1", F(0), robustness=robustness, radius=F(1))}
        ends = [sorted(F(rng.randint(-4, 4), 4) for _ in range(2)) for _ in range(p)]
        if p > 1:
            ends[0] = [F(1), F(1)]
        context = Context("l1", {(i, s): s * end[0 if s > 0 else 1] for i, end in enumerate(ends) for s in (1, -1)})
        slopes = tuple(quarter(rng) if rng.random() < 0.7 else F(0) for _ in range(p))
        for term in (Term("chord", F(1), 0, vector=v, power=power_of) for v in (slopes, (F(0),) * p)):
            fact = fact_of(log, term, Finder(), context=context)
            (_, gamma), (spec, delta) = fact.rights
            assert (spec, delta) == (robustness, 1)
            alpha = np.array([float(v) for v in term.vector or ()])
            corners = [np.array([float(v) for v in corner]) for corner in product(*ends)]
            inner = [np.array([rng.uniform(float(a), float(b)) for a, b in ends]) for _ in range(20)]
            rises = [dual_length(robustness, a) - float(alpha @ a) for a in corners]
            assert max(rises + [dual_length(robustness, a) - float(alpha @ a) for a in inner]) <= float(-gamma) + 1e-9
            most = branches.FEW_CORNERS if kind == "facets" else branches.MOST_CORNERS
            if power_of is None and len(set(map(tuple, corners))) <= most and kind != "polyhedral":
                assert max(rises) == pytest.approx(float(-gamma), abs=1e-9)
            elif kind == "polyhedral" and power_of is None:
                rest = np.array(robustness["vertices"]) - alpha
                assert (rest @ np.array(corners).T).max() == pytest.approx(float(-gamma), abs=1e-9)


def test_chords_of_other_norms_are_refused_where_nothing_proves_them() -> None:
    log = {0: Answer(exact([0, 0]), -1, exact([3, 0]), "l1", F(0), robustness=None, radius=F(1))}
    flat = {"norm": "polyhedral", "vertices": [[1, 0, 0], [-1, 0, 0]]}
    round_ball = {"norm": "mahalanobis", "matrix": [[1.0, 0.0], [0.0, 1.0]]}
    for robustness, power_of, says in (
        (round_ball, F(3, 2), "no weighted ℓq"),  # (the triangle inequality is the only power)
        (flat, None, "3 features, not 2"),
        ({"norm": "facets", "facets": [[1, 0], [-1, 0], [0, 1], [0, -1]]}, F(1), "takes evidence"),
    ):
        log[0] = replace(log[0], robustness=robustness)
        at = None if power_of is None else F(1)
        with pytest.raises(ox.CertificateInvalid, match=says):
            fact_of(log, Term("chord", F(1), 0, vector=exact([0, 0]), power=power_of, at=at))


def test_a_chord_without_a_power_is_the_largest_entry_of_the_box() -> None:
    log = {0: Answer(exact([0, 0]), -1, exact([3, 0]), "l1", F(0), robustness="l1", radius=F(1))}
    weighted = {"norm": "weighted", "base": "l1", "weights": [2.0, 4.0]}
    log[1] = replace(log[0], robustness=weighted)
    chord = Term("chord", F(1), 0, vector=exact([0, 0]))
    assert fact_of(log, chord).rights == ()  # s ≤ t, which are the same
    assert fact_of(log, replace(chord, row=1)).rights == (("l1", F(-1, 2)), (weighted, F(1)))
    narrow = Context("l1", {(0, -1): F(0), (0, 1): F(-1, 2)})  # −1/2 ≤ a_0 ≤ 0 and |a_1| ≤ 1
    assert fact_of(log, replace(chord, row=1), context=narrow).rights == (("l1", F(-1, 4)), (weighted, F(1)))
    for wrong in (replace(chord, vector=exact([1, 0])), replace(chord, row=2)):
        log[2] = replace(log[0], robustness="l2")
        with pytest.raises(ox.CertificateInvalid, match="without a power a chord is level"):
            fact_of(log, wrong)


# Proofs by cases.


def checked(proof: Certificate, log: ox.QueryLog, branches: Branched, **change: Any) -> None:
    replace(proof, branches=branches, **change).verify(log)


def at(branch: Branch, path: Sequence[int], **change: Any) -> Branch:
    """The branch with something changed in the part at `path`."""
    if not path:
        return replace(branch, **change)
    parts = list(branch.parts)
    parts[path[0]] = at(parts[path[0]], path[1:], **change)
    return replace(branch, parts=tuple(parts))


def with_term(terms: tuple[Term, ...], n: int, **change: Any) -> tuple[Term, ...]:
    return (*terms[:n], replace(terms[n], **change), *terms[n + 1 :])


def every_term(branch: Branch, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], int, Term]]:
    for n, term in enumerate(branch.terms):
        yield path, n, term
    for k, part in enumerate(branch.parts):
        yield from every_term(part, (*path, k))


@pytest.mark.parametrize("make", [by_cases, by_corners])
def test_no_term_of_a_case_can_be_changed_or_left_out(make: Any) -> None:
    log, proof = make()
    assert proof.branches is not None
    row, branch = proof.branches.row, proof.branches.branch
    checked(proof, log, Branched(row, branch))
    seen = 0
    for path, n, term in every_term(branch):
        terms = branch
        for k in path:
            terms = terms.parts[k]
        changes = [with_term(terms.terms, n, weight=term.weight * F(9, 10)), terms.terms[:n] + terms.terms[n + 1 :]]
        if term.fact in ("plane", "bound"):
            changes.append(with_term(terms.terms, n, sign=-term.sign))
        for changed in changes:
            seen += 1
            with pytest.raises(ox.CertificateInvalid, match="add up|strict"):
                checked(proof, log, Branched(row, at(branch, path, terms=changed)))
    assert seen > 20


def test_mutants_of_a_proof_by_cases_are_refused() -> None:
    log, proof = by_cases()
    assert proof.branches is not None
    branch = proof.branches.branch
    falling, rising = branch.parts
    bound = branch.bounds[0]
    for changed, says in (
        (replace(branch, parts=branch.parts[:1]), "2 cases, but 1 parts"),
        (replace(branch, parts=(*branch.parts, rising)), "2 cases, but 3 parts"),
        (replace(branch, parts=()), "a split without parts"),
        (replace(branch, parts=(rising, falling)), "add up"),
        (replace(branch, value=F(1, 2)), "case 0: the right sides for the distance l1 add up"),
        (replace(branch, value=F(-2)), "case 1: the right sides for the distance l1 add up"),
        (replace(branch, value=None), "a split is at a value"),
        (replace(branch, value=0.0), "exact fractions only"),
        (replace(branch, index=2), "add up"),
        (replace(branch, index=3), "entry 3 of a, which has 3"),
        (replace(branch, index=-1), "entry -1 of a"),
        (replace(branch, index=True), "entry True of a"),
        (replace(branch, index=None), "a split is at a value"),
        (replace(branch, corners=0), "a split is at a value"),
        (replace(branch, index=None, value=None, corners=0), "few corners"),
        (replace(branch, index=None, value=None, corners=1), "robustness of row 1 is not known"),
        (replace(branch, terms=falling.terms), "terms belong to a case"),
        (replace(branch, bounds=()), "add up"),
        (replace(branch, bounds=(replace(bound, value=F(1, 2)),)), "case 0: the right sides"),
        (replace(branch, bounds=(replace(bound, value=F(11, 10)),)), "bound 0: the right sides for the distance l1"),
        (replace(branch, bounds=(replace(bound, sign=-1),)), "bound 0: the left sides do not add up for feature 0"),
        (replace(branch, bounds=(replace(bound, sign=0),)), "sign 0"),
        (replace(branch, bounds=(replace(bound, index=1),)), "bound 0: the left sides do not add up for feature 0"),
        (replace(branch, bounds=(replace(bound, index=7),)), "entry 7 of a"),
        (replace(branch, bounds=(replace(bound, value=1.0),)), "exact fractions only"),
        (replace(branch, bounds=(replace(bound, terms=()),)), "bound 0: the left sides"),
        (falling, "add up"),
    ):
        with pytest.raises(ox.CertificateInvalid, match=says):
            checked(proof, log, Branched(0, changed))
    for row, says in ((1, "distance of row 1"), (9, "row 9"), (True, "row True")):
        with pytest.raises(ox.CertificateInvalid, match=says):
            check_certificate(answers_of(log), (), exact(proof.point), 1, branches=Branched(row, branch))
        other = Branched(0, replace(branch, index=None, value=None, corners=row))
        with pytest.raises(ox.CertificateInvalid, match=says.replace("distance", "robustness")):
            check_certificate(answers_of(log), (), exact(proof.point), 1, branches=other)
    for change in ({"verdict": Verdict.NO}, {"point": (-1.5, 1.0, 0.0)}, {"point": None, "verdict": None}):
        with pytest.raises(ox.CertificateInvalid, match="add up|nothing of the kind is assumed"):
            replace(proof, **change).verify(log)
    for change in ({"verdict": Verdict.BOUNDARY}, {"terms": falling.terms}):
        with pytest.raises(ox.CertificateInvalid, match="they alone"):
            replace(proof, **change).verify(log)


def test_a_bound_may_use_those_before_it_and_not_those_after() -> None:
    log, proof = by_cases()
    assert proof.branches is not None
    branch = proof.branches.branch
    again = Bound(0, 1, F(1), (Term("bound", F(1), index=0),))
    checked(proof, log, Branched(0, replace(branch, bounds=(*branch.bounds, again))))
    with pytest.raises(ox.CertificateInvalid, match="bound 0: the right sides"):
        checked(proof, log, Branched(0, replace(branch, bounds=(again, *branch.bounds))))
    loose = Bound(0, 1, F(-9), (Term("bound", F(1), index=0),))  # the tighter one stays
    checked(proof, log, Branched(0, replace(branch, bounds=(*branch.bounds, loose))))


def test_a_bound_is_never_looser_than_what_holds_for_any_model() -> None:
    """|a_i| ≤ ‖e_i‖·t: also where a split lies beyond it; a norm of corners takes evidence for that, or a bound of its own."""
    log = {0: Answer(exact([0, 0]), -1, exact([3, 0]), {"norm": "weighted", "base": "l1", "weights": [2.0, 1.0]}, F(0))}
    term = Term("bound", F(1), index=0)
    for box, value in (
        ({}, -2),
        ({(0, 1): F(-5)}, -2),
        ({(0, 1): F(-1)}, -1),
        ({(0, -1): F(1)}, -2),
        ({(0, 1): F(3)}, 3),
    ):
        assert fact_of(log, term, context=Context(log[0].distance, box)).right == value
    corners = {"norm": "polyhedral", "vertices": [[0.5, 0.0], [-0.5, 0.0], [0.0, 1.0], [0.0, -1.0]]}
    same = {0: replace(log[0], distance=corners)}
    find = Finder()
    assert fact_of(same, term, find, context=Context(corners, {(0, 1): F(-5)})).right == -2
    assert fact_of(same, term, find.lengths, context=Context(corners, {})).right == -2
    assert fact_of(same, term, context=Context(corners, {(0, 1): F(-5)})).right == -5
    with pytest.raises(ox.CertificateInvalid, match="takes evidence"):
        fact_of(same, term, context=Context(corners, {}))


def test_more_terms_than_needed_do_no_harm() -> None:
    log, proof = by_cases()
    assert proof.branches is not None
    rising = proof.branches.branch.parts[1]
    twice = at(proof.branches.branch, (1,), terms=(*rising.terms, *rising.terms))
    checked(proof, log, Branched(0, twice))


def test_what_belongs_into_a_branch_is_refused_outside() -> None:
    log = {0: Answer(exact([0, 0]), -1, exact([3, 0]), "l1", F(0), robustness="l1", radius=F(1))}
    side = Term("side", F(1), 0)
    for term, says in (
        (Term("denied", F(1)), "belongs into a branch"),
        (Term("corner", F(1)), "belongs into a branch"),
        (Term("bound", F(1), index=0), "belongs into a branch"),
        (Term("denied", F(1), 0), "is about no row"),
        (Term("bound", F(1)), "index of an entry"),
        (Term("bound", F(1), index=-1), "index of an entry"),
        (Term("bound", F(1), index=True), "index of an entry"),
        (replace(side, index=0), "index of an entry"),
    ):
        with pytest.raises(ox.CertificateInvalid, match=says):
            check_certificate(log, [side, term], exact([0, 0]), -1)
    inside = Branch((side, Term("corner", F(1))))
    with pytest.raises(ox.CertificateInvalid, match="nothing of the kind is assumed"):
        check_certificate(log, (), exact([0, 0]), -1, branches=Branched(0, inside))
    beyond = Branch((side, Term("bound", F(1), index=2)))
    with pytest.raises(ox.CertificateInvalid, match="no entry 2 of a"):
        check_certificate(log, (), exact([0, 0]), -1, branches=Branched(0, beyond))
    good = Branch((side, Term("denied", F(1))))
    check_certificate(log, (), exact([0, 0]), -1, branches=Branched(0, good))


def test_the_denial_of_a_yes_is_strict_and_that_of_a_no_is_not() -> None:
    log = {0: Answer(exact([0, 0]), 1, exact([3, 0]), "l1", F(0))}
    branch = Branched(0, Branch((Term("plane", F(1), 0), Term("denied", F(1)))))
    check_certificate(log, (), exact([3, 0]), 1, branches=branch)
    reverse = Branched(0, Branch((Term("plane", F(1), 0, sign=-1), Term("denied", F(1)))))
    with pytest.raises(ox.CertificateInvalid, match="nothing in it is strict"):
        check_certificate(log, (), exact([3, 0]), -1, branches=reverse)


def test_corners_come_in_one_order_and_all_of_them() -> None:
    log, proof = by_corners()
    assert proof.branches is not None
    branch = proof.branches.branch
    a, b, c, d = branch.parts
    for parts, says in (
        ((b, a, c, d), "add up"),
        ((a, b, d, c), "add up"),
        ((c, b, a, d), "add up"),
        ((a, b, c), "4 cases, but 3 parts"),
        ((a, c), "4 cases, but 2 parts"),
    ):
        with pytest.raises(ox.CertificateInvalid, match=says):
            checked(proof, log, Branched(0, replace(branch, parts=parts)))
    ball = ox.Polyhedral([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    same = ox.QueryLog(mechanism=ox.Mechanism("linf", ball, 1.0, tolerance=0.0))
    same.add_explanation([0.0, 0.0], [3.0, 3.0], label=-1)
    Certificate.about(same, proof.point, proof.verdict, (), branches=proof.branches).verify(same)
    # Half the weight on a feature: twice as far a corner, and (1.5, 1.5) is no longer certain.
    wide = ox.Weighted(ox.l1, [0.5, 1.0])
    other = ox.QueryLog(mechanism=ox.Mechanism("linf", wide, 1.0, tolerance=0.0))
    other.add_explanation([0.0, 0.0], [3.0, 3.0], label=-1)
    with pytest.raises(ox.CertificateInvalid, match="case 0: the left sides do not add up"):
        Certificate.about(other, proof.point, proof.verdict, (), branches=proof.branches).verify(other)


def gadget(norm: str, p: int, length: int, slopes: tuple[int, ...]) -> tuple[ox.QueryLog, list[F]]:
    """a₀ = t; a label says that s = ‖a‖* reaches `length`, as it does only if all |a_i| = t; another that Σ slope·a_i ≥ 0."""
    log = ox.QueryLog(mechanism=ox.Mechanism("l1", norm, 1.0, tolerance=0.0))
    axis = np.eye(p)[0]
    log.add_explanation(-9.0 * axis, 3.0 * axis, label=-1)
    start = (3.0 - length) * axis
    tilted = start + np.array([0.0, *slopes, *[0.0] * (p - 1 - len(slopes))])
    log.add_label([start, tilted], [1, 1])
    return log, [F(v) for v in (start - axis / 2 + np.eye(p)[1]).tolist()]


def closed(log: Any, terms: list[Term], context: Context) -> tuple[Term, ...]:
    """The terms, and bounds that bring what they leave to 0."""
    left = [F(0)] * len(next(iter(log.values())).point)
    for term in terms:
        for i, v in enumerate(fact_of(log, term, context=context).left[:-1]):
            left[i] += term.weight * v
    return (*terms, *(Term("bound", abs(v), sign=-1 if v > 0 else 1, index=i) for i, v in enumerate(left) if v))


def cases_of(log: Any, point: Vector, kappa: F, length: int) -> Branched:
    """The proof that the second entry is t, which the first label and the second make it."""
    unit, p, denied = log[0].distance, len(point), Fact([*(-v for v in point), F(1)], (), True)
    first = Bound(0, 1, F(1), (Term("steepest", F(1, 12), 0),))
    parts = []
    for sign in (-1, 1):  # a₁ ≤ 0, a₁ ≥ 0
        context = Context(unit, {(0, 1): F(1), (1, -sign): F(-1), (1, sign): F(0)}, denied)
        slope = tuple(F(sign if i == 1 else 0) for i in range(p))
        chord = Term("chord", F(1), 0, vector=slope, power=kappa, at=F(length))
        delta = dict(fact_of(log, chord, context=context).rights)[log[0].robustness]
        # The chord, paid for by the first label: s ≥ length·t, so sign·a₁ ≥ t.
        planes = delta if sign > 0 else 2 * delta
        given = [replace(chord, weight=planes / delta), Term("plane", planes, 0, sign=-1)]
        if sign > 0:
            given += [Term("side", planes + 1, 1), Term("denied", F(1))]
        else:
            given += [Term("side", planes - 1, 1), Term("side", F(1), 2)]
        parts.append(Branch(closed(log, given, context)))
    return Branched(0, Branch(bounds=(first,), index=1, value=F(0), parts=tuple(parts)))


@pytest.mark.parametrize(
    ("norm", "p", "length", "kappa"),
    [("linf", 3, 3, F(1)), ("l2", 4, 2, F(2)), ("lp:3", 8, 4, F(3, 2)), ("lp:1.5", 8, 2, F(3))],
)
def test_chords_and_a_split_prove_what_only_all_signs_together_say(norm: str, p: int, length: int, kappa: F) -> None:
    """The gadget of theory 3, Prop. 4: p·1^r = length^r, and 2a₁ + a₂ ≥ 0 leaves a₁ = t."""
    log, point = gadget(norm, p, length, (2, 1))
    answers = answers_of(log)
    proof = Certificate.about(log, [float(v) for v in point], 1, (), branches=cases_of(answers, point, kappa, length))
    proof.verify(log)
    back = Certificate.from_json(proof.to_json())
    assert back == proof
    back.verify(log)
    other, _ = gadget(norm, p, length, (1, 2))  # 2a₂ + a₁ ≥ 0 says nothing about a₁
    with pytest.raises(ox.CertificateInvalid, match="add up"):
        Certificate.about(other, proof.point, 1, (), branches=proof.branches).verify(other)
    if norm in ("lp:3", "lp:1.5"):
        return  # an exact length of theirs is enclosed, never known: such a log has no witness
    signs = [F(1)] * p
    check_witness(answers, signs, F(3 - length))
    check_witness(answers, [F(1), F(1), F(-1), *signs[3:]], F(3 - length))
    for wrong in ([F(1), F(-1), F(1)], [F(1), F(1, 2), F(1)]):
        with pytest.raises(ox.CertificateInvalid):
            check_witness(answers, [*wrong, *signs[3:]], F(3 - length))


def test_a_contradiction_by_cases() -> None:
    """2a₁ + a₂ = 0 has no solution among signs: the log contradicts itself, and only all cases together say so."""
    log, _ = gadget("linf", 3, 3, (2, 1))
    log.add_label([0.0, -2.0, -1.0], 1)
    answers = dict(answers_of(log))
    first, parts = Bound(0, 1, F(1), (Term("steepest", F(1, 12), 0),)), []
    for sign, row in ((-1, 2), (1, 3)):
        context = Context("l1", {(0, 1): F(1), (1, -sign): F(-1), (1, sign): F(0)})
        chord = Term("chord", F(2), 0, vector=exact([0, sign, 0]), power=F(1))
        given = [chord, Term("plane", F(2), 0, sign=-1), Term("side", F(1), 1), Term("side", F(1), row)]
        parts.append(Branch(closed(answers, given, context)))
    branched = Branched(0, Branch(bounds=(first,), index=1, value=F(0), parts=tuple(parts)))
    proof = Certificate.about(log, None, None, (), branches=branched)
    proof.verify(log)
    assert str(proof) == "0 by 2 cases from rows 0, 1, 2, 3"
    assert proof.rows == {0, 1, 2, 3}
    with pytest.raises(ox.CertificateInvalid, match="add up"):
        check_certificate({**answers, 3: replace(answers[3], label=-1)}, (), None, 1, branches=branched)


def test_a_lemma_may_come_before_the_cases() -> None:
    log, proof = by_cases()
    answers = dict(answers_of(log))
    answers[0] = replace(answers[0], label=None)
    answers[3] = Answer(answers[0].point, -1)
    lemma = Lemma(0, -1, (Term("side", F(1), 0), Term("side", F(1), 3)))
    check_certificate(answers, (), exact(proof.point), 1, lemmas=[lemma], branches=proof.branches)
    with pytest.raises(ox.CertificateInvalid, match="side of row 0 is not known"):
        check_certificate(answers, (), exact(proof.point), 1, branches=proof.branches)


# Whoever made it, however large.


def chain(depth: int) -> Branch:
    leaf = branch = by_cases()[1].branches.branch.parts[0]
    for _ in range(depth):
        branch = Branch(index=1, value=F(0), parts=(leaf, branch))
    return branch


def test_cases_that_go_on_for_ever_are_refused() -> None:
    log, proof = by_cases()
    assert proof.branches is not None
    bounds = proof.branches.branch.bounds
    for depth in (branches.DEEPEST + 1, 5000):
        deep = Branched(0, chain(depth))
        with pytest.raises(ox.CertificateInvalid, match="nested over 200 deep"):
            checked(proof, log, Branched(0, replace(deep.branch, bounds=bounds)))
        with pytest.raises(ox.CertificateInvalid, match="nested over 200 deep"):
            read_proof(replace(proof, branches=deep).to_json())
    allowed = replace(proof, branches=Branched(0, chain(branches.DEEPEST)))
    assert read_proof(allowed.to_json()) == allowed


def test_too_many_cases_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    log, proof = by_cases()
    assert proof.branches is not None
    proof.verify(log)
    monkeypatch.setattr(branches, "MOST_LEAVES", 1)
    with pytest.raises(ox.CertificateInvalid, match="over 1 cases"):
        proof.verify(log)


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("branches",), [], "must be a JSON object"),
        (("branches",), {"row": 0, "list": []}, "one branch and its parts, got 0"),
        (("branches", "row"), -1, "number of a row"),
        (("branches", "row"), None, "number of a row"),
        (("branches", "list"), {}, "must be a list"),
        (("branches", "list", 0, "parts"), 3, "3 parts, but 2 are left"),
        (("branches", "list", 0, "parts"), 1, "one branch and its parts, got 2"),
        (("branches", "list", 0, "parts"), 0, "one branch and its parts, got 3"),
        (("branches", "list", 0, "parts"), -1, "whole number"),
        (("branches", "list", 0, "parts"), 10**30, "2 are left"),
        (("branches", "list", 0, "index"), "1", "whole number"),
        (("branches", "list", 0, "index"), 10**30, "which has 3"),
        (("branches", "list", 0, "value"), 0, "must be a fraction"),
        (("branches", "list", 0, "value"), "1/0", "denominator 0"),
        (("branches", "list", 0, "corners"), 0, "a split is at a value"),
        (("branches", "list", 0, "bounds", 0, "sign"), 2, "label, 1 or -1"),
        (("branches", "list", 0, "bounds", 0, "value"), "2", "bound 0: the right sides"),
        (("branches", "list", 0, "bounds", 0), {}, "lacks index"),
        (("branches", "list", 0, "magic"), 1, "unknown key"),
        (("branches", "list", 1, "terms", 3, "power"), "9", "touches"),
        (("branches", "list", 1, "terms", 3, "power"), 1, "must be a fraction"),
        (("branches", "list", 1, "terms", 3, "at"), "-1", "touches"),
        (("branches", "list", 1, "terms", 4, "index"), 1.0, "whole number"),
        (("branches", "list", 1, "terms", 0, "of"), "radius", "distance or robustness"),
        (("branches", "list", 1, "terms", 0, "of"), ["distance"], "distance or robustness"),
        (("branches", "list", 1, "terms", 0, "row"), 0, "add up"),
        (("branches", "list", 1, "terms", 0, "fact"), "magic", "no fact"),
        (("terms",), [{"fact": "side", "weight": "1", "row": 0}], "they alone"),
        (("premises", 0, "radius"), 2.0, "rests on radius 2.0, the log says 1.0"),
        (("premises", 0, "radius"), None, "rests on radius None, the log says 1.0"),
        (("premises", 0, "radius"), -1.0, "must not be negative"),
        (("premises", 0, "robustness"), "l1", "rests on robustness 'l1', the log says 'linf'"),
        (("premises", 0), {"row": 0, "sha256": "x", "radius": 1.0}, "lacks distance"),
        (("premises", 0), {"row": 0, "sha256": "x", "robustness": "l1", "distance": "l1", "tolerance": 0.0, "slack": 0.0},
         "lacks radius"),
        (("premises",), [], "does not name it among its premises"),
    ],
)  # fmt: skip
def test_hostile_branches_are_refused_in_words(path: tuple, value: Any, says: str) -> None:
    log, proof = by_cases()
    entry = json.loads(proof.to_json())
    part = entry
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    with pytest.raises(ox.CertificateInvalid, match=says) as caught:
        read_proof(json.dumps(entry)).verify(log)
    assert len(str(caught.value)) < 400


def test_long_bounds_are_refused_before_they_are_added_up() -> None:
    """Each alone is short enough; their common denominator would not be."""
    p = 8
    log = {0: Answer((F(0),) * p, -1, (F(1),) * p, "l1", F(0), robustness="linf", radius=F(1))}
    bounds = [Bound(i, 1, F(-2, 2 ** (60_000 + i) - 1) - 1, (Term("bound", F(1), index=i),)) for i in range(p)]
    leaf = (Term("chord", F(1), 0, vector=(F(0),) * p, power=F(1)), Term("denied", F(1)))
    with pytest.raises(ox.CertificateInvalid, match="too long to be computed with|add up"):
        check_certificate(log, (), (F(0),) * p, -1, branches=Branched(0, Branch(leaf, tuple(bounds))))
    context = Context("l1", {(i, 1): F(2, 2 ** (60_000 + i) - 1) for i in range(p)})
    with pytest.raises(ox.CertificateInvalid, match="too long to be computed with"):
        fact_of(log, leaf[0], context=context)


def test_premises_of_plain_rows_are_written_as_before() -> None:
    _, proof = robust()
    assert {"robustness": "l1", "radius": 1.0}.items() <= json.loads(proof.to_json())["premises"][0].items()
    _, secret = of_a_secret_radius()
    assert {"robustness": None, "radius": None}.items() <= json.loads(secret.to_json())["premises"][0].items()
    plain = ox.QueryLog(mechanism=ox.Mechanism("l1", "l2", 0.0))
    plain.add_explanation([0.0, 0.0], [3.0, 0.0], label=-1)
    written = Certificate.about(plain, [3.0, 0.0], 1, [Term("plane", F(1), 0)], tolerance=0.0).to_json()
    assert set(json.loads(written)["premises"][0]) == {"row", "sha256", "label", "distance", "tolerance", "slack"}
    assert '"branches"' not in written


OLD = (
    '{"proof": "certificate", "version": 1, "point": [4.5, 0.25], "verdict": "YES", "terms": '
    '[{"fact": "plane", "weight": "1", "row": 0}, {"fact": "steepest", "weight": "1/2", "row": 0}, '
    '{"fact": "hoelder", "weight": "1", "row": 0, "vector": ["0", "1/4"]}], "premises": [{"row": 0, "sha256": '
    '"DIGEST", "label": -1, "distance": "l1", "tolerance": null, "slack": 0.0}]}'
)


def test_a_proof_written_before_there_were_robust_ones_is_still_read() -> None:
    log = ox.QueryLog(mechanism=ox.Mechanism("l1"))
    log.add_explanation([0.0, 0.0], [3.0, 0.0], label=-1)
    digest = Certificate.about(log, [0.0, 0.0], -1, [Term("side", F(1), 0)]).premises[0].digest
    text = OLD.replace("DIGEST", digest)
    proof = Certificate.from_json(text)
    proof.verify(log)
    assert proof.to_json() == text


# Witnesses.


@pytest.mark.parametrize("second", EXACT_NORMS)
@pytest.mark.parametrize("first", EXACT_NORMS)
def test_a_witness_keeps_every_fact_and_a_model_that_breaks_one_is_none(first: str, second: str) -> None:
    rng = random.Random(f"witness {first} {second}")
    kept = broken = 0
    for _ in range(60):
        p = rng.randint(1, 3)
        service = Service(rng, p)
        distance, robustness = a_norm(first, p, rng), a_norm(second, p, rng)
        terms = {"tolerance": F(rng.choice((0, 1, 2)), 4), "slack": rng.choice((F(0), F(0), F(1, 2)))}
        log = {i: service.row(distance, robustness, F(1, 2), **terms) for i in range(2)}
        facts = [fact for row in log for _, fact in facts_of(log, row)]
        for _ in range(6):
            moved = rng.choice((0, 0, 1, 1, 2))
            normal = [a + F(rng.randint(-2, 2), 8) * moved for a in service.normal]
            offset = service.offset + F(rng.randint(-2, 2), 16) * moved
            if not any(normal):
                continue
            try:
                check_witness(log, normal, offset)
            except ox.CertificateInvalid:
                broken += not all(holds(fact, normal, offset) for fact in facts)
                assert moved
            else:
                kept += bool(moved)
                assert all(holds(fact, normal, offset) for fact in facts)
    assert kept > 5
    assert broken > 5


def test_exact_answers_under_roots_are_told_by_squares() -> None:
    """ρ·s with s = √2: no enclosure shows that it is reached; and a served point that may only lie further out."""
    straight = {0: Answer(exact([0, 0]), -1, exact([3, 4]), "l2", F(0), robustness="l2", radius=F(1))}
    check_witness(straight, exact([3, 4]), F(20))
    for offset in (F(20) + F(1, 10**30), F(20) - F(1, 10**30)):
        with pytest.raises(ox.CertificateInvalid, match="would not have given"):
            check_witness(straight, exact([3, 4]), offset)
    matrix = {"norm": "mahalanobis", "matrix": [[2.0, 0.0], [0.0, 2.0]]}  # its dual is ‖·‖/√2
    root = {0: Answer(exact([0, 0]), -1, exact([3, 3]), "linf", F(0), robustness=matrix, radius=F(2))}
    check_witness(root, exact([1, 1]), F(4))  # 3 + 3 − 4 = 2·√2/√2
    for offset in (F(4) + F(1, 10**30), F(4) - F(1, 10**30)):
        with pytest.raises(ox.CertificateInvalid, match="would not have given"):
            check_witness(root, exact([1, 1]), offset)
    beyond = {0: Answer(exact([0, 0]), -1, exact([3, 3]), None, F(0), F(1), robustness="l2", radius=F(1))}
    check_witness(beyond, exact([1, 1]), F(4))
    check_witness(beyond, exact([1, 1]), F(458, 100))
    with pytest.raises(ox.CertificateInvalid, match="would not have given"):
        check_witness(beyond, exact([1, 1]), F(459, 100))  # 6 − b < √2
    further = {0: replace(beyond[0], radius=F(2))}
    check_witness(further, exact([1, 1]), F(317, 100))
    with pytest.raises(ox.CertificateInvalid, match="would not have given"):
        check_witness(further, exact([1, 1]), F(318, 100))  # 6 − b < 2·√2
    valid = {0: replace(beyond[0], slack=None, tolerance=None, distance="l1")}
    check_witness(valid, exact([1, 1]), F(458, 100))
    with pytest.raises(ox.CertificateInvalid, match="would not have given"):
        check_witness(valid, exact([1, 1]), F(459, 100))
    stretched = {0: Answer(exact([0, 0]), -1, exact([4, 0]), "l1", F(0), F(1), robustness="l1", radius=F(1))}
    check_witness(stretched, exact([1, 0]), F(1))  # the optimum is at 2, twice that is 4
    for offset in (F(9, 10), F(31, 10)):  # too far, and not far enough beyond
        with pytest.raises(ox.CertificateInvalid, match="would not have given"):
            check_witness(stretched, exact([1, 0]), offset)


def test_one_secret_reach_must_fit_all_of_its_rows() -> None:
    def row(x: list[float], image: list[float], **change: Any) -> Answer:
        terms = {"distance": "l1", "tolerance": F(0), "radius": None, **change}
        return Answer(exact(x), -1, exact(image), **terms)

    log = {0: row([-3, 0], [3, 0]), 1: row([-3, 1], [3, 1])}
    for offset in (F(3), F(2), F(-5, 2)):
        check_witness(log, exact([1, 0]), offset)
    for normal, offset in (([1, 0.5], F(2)), ([1, 0], F(4)), ([1, 0.25], F(3))):
        with pytest.raises(ox.CertificateInvalid, match="would not have given the explanation in row"):
            check_witness(log, exact(normal), offset)
    # Another service has a reach of its own.
    apart = {0: log[0], 1: row([-3, 1], [4, 1], robustness="l2")}
    check_witness(apart, exact([1, 0]), F(2))
    with pytest.raises(ox.CertificateInvalid, match="row 1"):
        check_witness({0: log[0], 1: row([-3, 1], [4, 1])}, exact([1, 0]), F(2))
    # Within a tolerance: [1 − 1/2, 1 + 1/2] and [2 − 1/2, 2 + 1/2] meet, [3 − 1/2, …] would not.
    half = {"tolerance": F(1, 2)}
    near = {0: row([-3, 0], [3, 0], **half), 1: row([-3, 1], [4, 1], **half)}
    check_witness(near, exact([1, 0]), F(2))
    with pytest.raises(ox.CertificateInvalid, match="row 1"):
        check_witness({**near, 1: row([-3, 1], [4.25, 1], **half)}, exact([1, 0]), F(2))
    # With slack: at most as far beyond as served, at least as far as the slack allows.
    loose = {0: row([-3, 0], [3, 0], slack=F(1))}
    check_witness(loose, exact([1, 0]), F(2))
    check_witness(loose, exact([1, 0]), F(0))  # the optimum may be 3 away: on the plane itself
    check_witness(loose, exact([1, 0]), F(-1))  # 2 to the plane and 1 beyond
    with pytest.raises(ox.CertificateInvalid, match="row 1"):
        check_witness({**loose, 1: row([-3, 1], [-2, 1])}, exact([1, 0]), F(-2))  # a reach of 0, and 6 > 2·1
    check_witness({**loose, 1: row([-3, 1], [0, 1])}, exact([1, 0]), F(-2))  # a reach of 2: 6 ≤ 2·3


def test_a_disagreement_about_a_robust_log() -> None:
    log = ox.QueryLog(mechanism=ox.Mechanism("l1", "linf", 1.0, tolerance=0.0))
    log.add_explanation([-3.0, 0.0], [3.0, 0.0], label=-1)
    # b = 3a₀ − s: 2 for (1, 0), 1 for (1, 1).
    proof = Disagreement((1.5, 0.0), yes=Model(exact([1, 1]), F(1)), no=Model(exact([1, 0]), F(2)))
    proof.verify(log)
    for wrong in (Model(exact([1, 1]), F(1) + F(1, 10**20)), Model(exact([1, 2]), F(0)), Model(exact([1, 0.5]), F(1))):
        with pytest.raises(ox.CertificateInvalid, match="would not have given"):
            replace(proof, yes=wrong).verify(log)
    assert Disagreement.from_json(proof.to_json()) == proof
