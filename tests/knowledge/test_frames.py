"""Frames and arcs in proofs by cases: what the checker says of them is true, and false proofs with them are refused."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction as F
from itertools import combinations, product
from typing import Any

import pytest

import overexplain as ox
from overexplain.knowledge import branches, enclosures
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.certificates import Certificate, Model, read_proof
from overexplain.knowledge.checker import (
    Answer,
    Bound,
    Branch,
    Branched,
    Context,
    Fact,
    Term,
    check_certificate,
    check_witness,
    fact_of,
)  # fmt: skip
from overexplain.knowledge.enclosures import NotEnclosed, dot, dual_spec, enclose, is_frame, is_semidefinite, solve
from overexplain.knowledge.verdicts import Verdict
from proof_samples import SAMPLES, by_arcs
from provers import exact

Vector = Sequence[F]
Matrix = list[list[F]]
SQUARES = ("l2", "weighted l2", "mahalanobis", "weighted mahalanobis", "weighted weighted l2")


# Semidefinite matrices, by all their principal minors.


def determinant(rows: Sequence[Sequence[F]]) -> F:
    if not rows:
        return F(1)
    top, *rest = rows
    parts = [v * determinant([[*row[:k], *row[k + 1 :]] for row in rest]) for k, v in enumerate(top) if v]
    signs = [(-1) ** k for k, v in enumerate(top) if v]
    return sum((sign * part for sign, part in zip(signs, parts, strict=True)), F(0))


def is_semidefinite_by_minors(rows: Matrix) -> bool:
    places = range(len(rows))
    chosen = (some for size in range(1, len(rows) + 1) for some in combinations(places, size))
    return all(determinant([[rows[i][j] for j in some] for i in some]) >= 0 for some in chosen)


def squares(factor: Sequence[Sequence[F | int]]) -> Matrix:
    """FᵀF."""
    columns = list(zip(*factor, strict=True))
    return [[sum((F(a * b) for a, b in zip(u, v, strict=True)), F(0)) for v in columns] for u in columns]


def upper_part(rows: Matrix) -> list[list[int]]:
    return [[int(v) for v in row[i:]] for i, row in enumerate(rows)]


def matrices(rng: random.Random, size: int) -> Iterator[Matrix]:
    """Symmetric ones of small integers: with eigenvalue 0, positive, hardly negative, and any."""
    rank = rng.randint(0, size)
    flat = squares([[rng.randint(-3, 3) for _ in range(size)] for _ in range(rank)] or [[0] * size])
    yield flat
    k = rng.randrange(size)
    for change in (1, -1):
        yield [[v + change * (i == j == k) for j, v in enumerate(row)] for i, row in enumerate(flat)]
    some = [[F(rng.randint(-3, 3)) for _ in range(size)] for _ in range(size)]
    yield [[some[i][j] + some[j][i] + 4 * (i == j) for j in range(size)] for i in range(size)]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_semidefinite_is_what_the_principal_minors_say(size: int) -> None:
    rng, said = random.Random(size), []
    for _ in range(60):
        for rows in matrices(rng, size):
            said.append(is_semidefinite_by_minors(rows))
            assert is_semidefinite(upper_part(rows)) == said[-1], rows
    assert 20 < sum(said) < len(said) - 20


@pytest.mark.parametrize("bits", [4, 8, 12, 40])
def test_rounding_never_makes_a_matrix_semidefinite(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few digits are kept; and a matrix that is so with room to spare still is."""
    monkeypatch.setattr(enclosures, "LONGEST_PIVOT", bits)
    rng, seen = random.Random(bits), {True: 0, False: 0}
    for _ in range(80):
        size = rng.randint(1, 4)
        for rows in matrices(rng, size):
            factor = rng.getrandbits(60) | 1
            longer = [[v * factor for v in row] for row in rows]
            if is_semidefinite(upper_part(longer)):
                seen[True] += 1
                assert is_semidefinite_by_minors(rows), rows
            else:
                seen[False] += 1
    assert min(seen.values()) > 50
    for size in range(1, 5):
        spare = [[F(2**70 * (i == j) + (i + j) % 3) for j in range(size)] for i in range(size)]
        assert is_semidefinite(upper_part(spare))


def test_long_numbers_are_rounded_and_short_ones_are_not() -> None:
    long = 3 ** (2 * enclosures.LONGEST_PIVOT)
    flat = squares([[1, 2, 3], [3, 2, 1]])
    assert is_semidefinite(upper_part(flat))
    assert not is_semidefinite(upper_part([[v * long for v in row] for row in flat]))  # rounded: not shown any more
    room = [[v * 2**40 + (i == j) for j, v in enumerate(row)] for i, row in enumerate(flat)]
    lacks = [[v * 2**40 - (i == j) for j, v in enumerate(row)] for i, row in enumerate(flat)]
    for factor in (1, long):
        assert is_semidefinite(upper_part([[v * factor for v in row] for row in room]))
        assert not is_semidefinite(upper_part([[v * factor for v in row] for row in lacks]))


# Frames.


def a_square(kind: str, p: int, rng: random.Random) -> tuple[Any, Matrix]:
    """A written form, and the M of ‖x‖² = xᵀMx, by arithmetic of its own."""
    if kind.startswith("weighted "):
        base, matrix = a_square(kind.removeprefix("weighted "), p, rng)
        weights = [rng.choice((0.5, 1.0, 3.0)) for _ in range(p)]
        turned = [[F(weights[i]) * v * F(weights[j]) for j, v in enumerate(row)] for i, row in enumerate(matrix)]
        return {"norm": "weighted", "base": base, "weights": weights}, turned
    if kind == "l2":
        return rng.choice(("l2", "lp:2")), [[F(i == j) for j in range(p)] for i in range(p)]
    factor = [[rng.randint(-2, 2) for _ in range(p)] for _ in range(p)]
    matrix = [[v + F(i == j, 4) for j, v in enumerate(row)] for i, row in enumerate(squares(factor))]
    return {"norm": "mahalanobis", "matrix": [[float(v) for v in row] for row in matrix]}, matrix


def inverse(rows: Matrix) -> Matrix:
    """Symmetric ones only."""
    return [list(solve(rows, [F(i == k) for i in range(len(rows))])) for k in range(len(rows))]


def is_frame_by_minors(matrix: Matrix, frame: Sequence[Vector]) -> bool:
    rest = zip(squares(frame), inverse(matrix), strict=True)
    return is_semidefinite_by_minors([[a - b for a, b in zip(u, v, strict=True)] for u, v in rest])


def a_frame(matrix: Matrix, rng: random.Random) -> list[list[F]]:
    """Vectors whose squares are near those of the dual, above or below; any number of them, in any directions."""
    p, size = len(matrix), max(enclosures.root(row[i])[1] for i, row in enumerate(inverse(matrix)))
    near = F(round(size * 8) + rng.randint(-3, 12), 8)
    axes = [[near * (i == k) for i in range(p)] for k in range(p)]
    more = [[F(rng.randint(-4, 4), 4) for _ in range(p)] for _ in range(rng.randint(0, p + 1))]
    frame = [*axes[: rng.choice((p, p, p, p - 1))], *more]
    rng.shuffle(frame)
    return [vector for vector in frame if any(vector)]


@pytest.mark.parametrize("kind", SQUARES)
def test_a_frame_is_one_whose_squares_are_at_least_those_of_the_length(kind: str) -> None:
    rng, said = random.Random(kind), []
    for _ in range(120):
        p = rng.randint(1, 4)
        spec, matrix = a_square(kind, p, rng)
        frame = a_frame(matrix, rng)
        if not frame:
            continue
        said.append(is_frame_by_minors(matrix, frame))
        assert is_frame(spec, frame) == said[-1], (spec, frame)
        if said[-1]:
            a = [F(rng.randint(-9, 9)) for _ in range(p)]
            assert dot(a, solve(matrix, a)) <= sum(dot(f, a) ** 2 for f in frame)
    assert 20 < sum(said) < len(said) - 20


@pytest.mark.parametrize(
    ("spec", "frame"),
    [
        ("l2", [[1, 0], [0, 1]]),
        ("l2", [[F(3, 5), F(4, 5)], [F(-4, 5), F(3, 5)]]),
        ("l2", [[F(3, 5), 0], [F(4, 5), 0], [0, 1]]),
        ({"norm": "weighted", "base": "l2", "weights": [0.1, 3.0]}, [[1 / F(0.1), 0], [0, F(1, 3)]]),
        ({"norm": "mahalanobis", "matrix": [[2.0, 1.0], [1.0, 1.0]]}, [[1, -1], [0, 1]]),
        (
            {"norm": "weighted", "base": {"norm": "mahalanobis", "matrix": [[2.0, 1.0], [1.0, 1.0]]}, "weights": [4.0, 0.5]},
            [[F(1, 4), -2], [0, 2]],
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("digits", [15, 200])
def test_a_frame_that_is_hardly_too_short_is_none(spec: Any, frame: list[list[F]], digits: int) -> None:
    """Equality will do; one part in 10^15 less will not, in one vector alone; nor if numbers are so long that they are rounded."""
    assert is_frame(spec, frame)
    for change, is_one in ((F(-1, 10**15), False), (F(1, 10**15), True)):
        by = 1 + change + F(1, 3**5000)
        assert is_frame(spec, [[v * by for v in vector] for vector in frame]) == is_one
    for k in range(len(frame)):
        for change, is_one in ((F(-1, 10**digits), False), (F(1, 10**digits), True)):
            changed = [[v * (1 + change * (i == k)) for v in vector] for i, vector in enumerate(frame)]
            assert is_frame(spec, changed) == is_one
    assert not is_frame(spec, frame[:-1])
    assert not is_frame(spec, [frame[0]] * 5)


def test_a_frame_is_for_squares_only() -> None:
    axes = [[F(9), F(0)], [F(0), F(9)]]
    matrix = [[1.0, 0.0], [0.0, 1.0]]
    for spec in (
        "l1", "linf", "lp:3", {"norm": "weighted", "base": "l1", "weights": [1, 1]}, {"norm": "group", "groups": [[0, 1]]},
        {"norm": "group-max", "groups": [[0, 1]]}, {"norm": "polyhedral", "vertices": matrix}, {"norm": "facets", "facets": matrix},
        {"norm": "dual-mahalanobis", "matrix": matrix},
        {"norm": "weighted", "base": {"norm": "dual-mahalanobis", "matrix": matrix}, "weights": [1, 1]},
    ):  # fmt: skip
        with pytest.raises(NotEnclosed, match="none of them"):
            is_frame(spec, axes)
    for spec, says in (
        ({"norm": "weighted", "base": "l2", "weights": [1.0, 1.0, 1.0]}, "3 weights"),
        ({"norm": "weighted", "base": "l2", "weights": [1.0, 0.0]}, "not above 0"),
        ({"norm": "weighted", "base": "l2", "weights": [1.0, -1.0]}, "not above 0"),
        ({"norm": "mahalanobis", "matrix": [[1.0]]}, "made for"),
        ({"norm": "mahalanobis", "matrix": [[1.0, 2.0], [2.0, 1.0]]}, "not positive definite"),
        ({"norm": "mahalanobis", "matrix": [[1.0, 1.0], [1.0, 1.0]]}, "not positive definite"),
        ({"norm": "mahalanobis", "matrix": [[1.0, 0.5], [0.0, 1.0]]}, "not symmetric"),
    ):
        with pytest.raises(NotEnclosed, match=says):
            is_frame(spec, axes)


def test_weights_that_make_no_norm_are_refused_wherever_they_are_used() -> None:
    for weight in (0.0, -2.0):
        spec = {"norm": "weighted", "base": "l1", "weights": [1.0, weight]}
        for use in (
            lambda spec=spec: enclose(spec, exact([1, 1])),
            lambda spec=spec: dual_spec(spec),
            lambda spec=spec: enclosures.axis_length(spec, 1, 2),
        ):
            with pytest.raises(NotEnclosed, match="not above 0"):
                use()


# Arcs.


def about(distance: Any, robustness: Any, p: int) -> dict[int, Answer]:
    return {0: Answer((F(0),) * p, -1, (F(1),) * p, distance, F(0), robustness=robustness, radius=F(1))}


def holds(fact: Fact, normal: Vector) -> bool:
    """Called false only if it is so for certain."""
    right = F(0)
    for length, factor in fact.rights:
        low, high = enclose(dual_spec(length), normal)
        right += factor * (low if factor > 0 else high)
    return dot([*normal, F(0)], fact.left) >= right


@pytest.mark.parametrize("unit", ["l1", "linf", "l2", "weighted l1"])
@pytest.mark.parametrize("kind", SQUARES)
def test_arcs_hold_wherever_in_the_box_the_model_is(kind: str, unit: str) -> None:
    rng, seen = random.Random(f"{kind} {unit}"), 0
    while seen < 40:
        p = rng.randint(1, 4)
        robustness, matrix = a_square(kind, p, rng)
        distance = unit
        if unit == "weighted l1":
            distance = {"norm": "weighted", "base": "l1", "weights": [rng.choice((0.5, 2.0)) for _ in range(p)]}
        frame = a_frame(matrix, rng)
        if not frame or not is_frame(robustness, frame):
            continue
        seen += 1
        normal = [F(rng.randint(-12, 12), 4) for _ in range(p)]
        normal[rng.randrange(p)] += 7
        low, high = enclose(dual_spec(distance), normal)
        box = {}
        for k, sign in product(range(len(frame)), (1, -1)):
            if rng.random() < 0.7:
                value = sign * dot(frame[k], normal) - rng.choice((0, 0, 1, 3)) * high
                box[p + k, sign] = value / (low if value < 0 else high)
        # At the length itself equality is as good as reached.
        at = rng.choice((enclose(dual_spec(robustness), normal)[1] / high, F(rng.randint(0, 20), 4)))
        fact = fact_of(
            about(distance, robustness, p), Term("arc", F(1), 0, at=at), context=Context(distance, box, frame=frame)
        )
        assert holds(fact, normal), (robustness, frame, box, at)


def test_an_arc_in_a_box_without_room_is_the_length_itself() -> None:
    normal = [F(3, 5), F(4, 5), F(0)]  # ‖a‖₁* = 4/5, ‖a‖₂ = 1
    frame = [exact([1, 0, 0]), exact([0, 1, 0]), exact([0, 0, 1])]
    box = {(3 + k, sign): sign * v * F(5, 4) for k, v in enumerate(normal) for sign in (1, -1)}
    context = Context("l1", box, frame=frame)
    fact = fact_of(about("l1", "l2", 3), Term("arc", F(1), 0, at=F(5, 4)), context=context)
    assert list(fact.left) == [F(3, 2), 2, 0, 0]
    assert dict(fact.rights) == {"l2": F(5, 2)}  # Σ l·u = s0²
    assert dot(normal, fact.left[:3]) == F(5, 2) * 1
    off = fact_of(about("l1", "l2", 3), Term("arc", F(1), 0, at=F(1)), context=context)
    assert dict(off.rights) == {"l2": 2, "l1": F(9, 16)}
    level = fact_of(about("l1", "l2", 3), Term("arc", F(1), 0, at=F(0)), context=context)
    assert dict(level.rights) == {"l1": F(25, 16)}
    same = fact_of(about("l1", "l2", 3), Term("arc", F(1), 0, at=F(1)), context=Context("l2", {}, frame=frame))
    assert same.rights == (("l2", 2 - 3 - F(1)),)  # one length: its factors add up


def test_an_arc_of_bounds_that_contradict_each_other_is_as_its_formula_says() -> None:
    """No model is there, so that nothing said of all of them is false: a proof gains nothing that the bounds do not give."""
    frame = [exact([1, 0]), exact([0, 1])]
    context = Context("l1", {(2, 1): F(1, 2), (2, -1): F(1, 2)}, frame=frame)  # 1/2 ≤ a₀ ≤ −1/2
    fact = fact_of(about("l1", "l2", 2), Term("arc", F(1), 0, at=F(1)), context=context)
    assert list(fact.left) == [0, 0, 0]
    assert dict(fact.rights) == {"l2": 2, "l1": F(-1, 4) - 1 - 1}
    empty = fact_of(about("l1", "l2", 2), Term("bound", F(1), index=2), context=context)
    assert empty.right + fact_of(about("l1", "l2", 2), Term("bound", F(1), sign=-1, index=2), context=context).right > 0


def test_what_is_known_of_a_direction_is_at_first_its_length() -> None:
    frame = [exact([3, -4])]
    term = Term("bound", F(1), sign=-1, index=2)
    for unit, size in (
        ("l1", 7),
        ("l2", 5),
        ("linf", 4),
        ({"norm": "weighted", "base": "l1", "weights": [2.0, 1.0]}, 10),
    ):
        context = Context(unit, {}, frame=frame)
        fact = fact_of(about(unit, "l2", 2), term, context=context)
        assert list(fact.left) == [-3, 4, 0]
        assert fact.rights == ((unit, -size),)
        tighter = context.tightened(2, -1, F(-1)).tightened(2, -1, F(-9))
        assert fact_of(about(unit, "l2", 2), term, context=tighter).right == -1
        assert fact_of(about(unit, "l2", 2), replace(term, sign=1), context=tighter).right == -size
        assert fact_of(about(unit, "l2", 2), term, context=context.tightened(2, -1, F(-99))).right == -size


def test_what_was_found_for_one_robustness_is_not_taken_for_another() -> None:
    """Two balls in one log: the frame is one of the first only, whichever is asked first and however often."""
    wide = {"norm": "weighted", "base": "l2", "weights": [0.5, 1.0]}
    log = {
        **about("l1", "l2", 2),
        1: about("l1", wide, 2)[0],
        2: about("l1", "lp:2", 2)[0],
        3: about("l1", "linf", 2)[0],
    }
    context = Context("l1", {}, frame=[exact([1, 0]), exact([0, 1])])
    for row in (1, 0, 1, 2, 3, 0, 3, 1):
        term = Term("arc", F(1), row, at=F(1))
        if row in (0, 2):
            fact_of(log, term, context=context.tightened(2, 1, F(-1, 2)))
            continue
        with pytest.raises(ox.CertificateInvalid, match="not shown to be at least|none of them"):
            fact_of(log, term, context=context)
    longer = replace(context, frame=[exact([2, 0]), exact([0, 1])], found={})
    fact_of(log, Term("arc", F(1), 1, at=F(1)), context=longer)


def test_an_arc_is_refused_where_nothing_proves_it() -> None:
    axes = [exact([1, 0]), exact([0, 1])]
    good, term = Context("l1", {}, frame=axes), Term("arc", F(1), 0, at=F(1))
    fact_of(about("l1", "l2", 2), term, context=good)
    log = about("l1", "l2", 2)
    for changed, context, says in (
        (log, None, "belongs into a branch"),
        (log, Context("l1"), "the proof has none"),
        (log, Context(None, {}, frame=axes), "no known distance"),
        (log, Context("l1", {}, frame=axes[:1]), "not shown to be at least"),
        (log, Context("l1", {}, frame=[axes[0], axes[0]]), "not shown to be at least"),
        (log, Context("l1", {}, frame=[exact([1, 1])] * 9), "not shown to be at least"),
        (about("l1", None, 2), good, "no known distance and robustness"),
        (about("l1", "l1", 2), good, "none of them"),
        (about("l1", {"norm": "weighted", "base": "l2", "weights": [1.0]}, 2), good, "1 weights"),
        ({0: replace(log[0], radius=None)}, good, "is secret"),
        ({0: replace(log[0], radius=None, robustness=None)}, good, "no known distance and robustness"),
    ):
        with pytest.raises(ox.CertificateInvalid, match=says):
            fact_of(changed, term, context=context)


# Whole proofs.


def changed(proof: Certificate, **change: Any) -> Certificate:
    assert proof.branches is not None
    return replace(proof, branches=replace(proof.branches, **change))


def in_part(proof: Certificate, part: int, n: int, **change: Any) -> Certificate:
    """With the n-th term of a case changed."""
    assert proof.branches is not None
    branch = proof.branches.branch
    parts, terms = list(branch.parts), list(branch.parts[part].terms)
    terms[n] = replace(terms[n], **change)
    parts[part] = replace(parts[part], terms=tuple(terms))
    return changed(proof, branch=replace(branch, parts=tuple(parts)))


def in_bound(proof: Certificate, n: int, **change: Any) -> Certificate:
    assert proof.branches is not None
    branch = proof.branches.branch
    bounds = list(branch.bounds)
    bounds[n] = replace(bounds[n], **change)
    return changed(proof, branch=replace(branch, bounds=tuple(bounds)))


BALLS = {
    "l2": (ox.l2, F(1)),
    "weighted": (ox.Weighted(ox.l2, [2.0, 2.0, 2.0]), F(1, 2)),
    "mahalanobis": (ox.Mahalanobis([[4.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 4.0]]), F(1, 2)),
    "weighted mahalanobis": (
        ox.Weighted(ox.Mahalanobis([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), [0.5, 0.5, 0.5]), F(2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("ball", BALLS)
def test_a_proof_with_a_frame_is_accepted_and_read_back(ball: str) -> None:
    log, proof = by_arcs(*BALLS[ball])
    proof.verify(log)
    assert str(proof) == "Yes by 2 cases from rows 0, 1, 2, 3, 4, 5, 6"
    back = Certificate.from_json(proof.to_json())
    assert back == proof
    assert back.to_json() == proof.to_json()
    back.verify(log)
    # The one model, and why the claim needs all: its mirror image breaks the last label alone.
    answers = answers_of(log)
    model = Model(exact([1, 1, 0.5]), F(3, 2))
    check_witness(answers, model.normal, model.offset)
    with pytest.raises(ox.CertificateInvalid, match="row 6"):
        check_witness(answers, exact([1, -1, -0.5]), F(3, 2))
    without = {row: answer for row, answer in answers.items() if row != 6}
    check_witness(without, exact([1, -1, -0.5]), F(3, 2))
    with pytest.raises(ox.CertificateInvalid, match="row 6"):
        check_certificate(without, (), exact(proof.point), 1, branches=proof.branches)


def test_a_proof_without_a_frame_is_written_as_before() -> None:
    made = [make()[1] for make in SAMPLES]
    cases = [proof for proof in made if isinstance(proof, Certificate) and proof.branches is not None]
    assert sorted('"frame"' in proof.to_json() for proof in cases) == [False, False, True]


def test_no_term_of_a_proof_with_a_frame_can_be_changed_or_left_out() -> None:
    log, proof = by_arcs()
    assert proof.branches is not None
    branch, seen = proof.branches.branch, 0
    for k, part in enumerate(branch.parts):
        for n, term in enumerate(part.terms):
            wrong = [{"weight": term.weight * F(9, 10)}, {"weight": F(0)}]
            wrong += [{"sign": -term.sign}] if term.fact in ("plane", "bound") else []
            for change in wrong:
                seen += 1
                with pytest.raises(ox.CertificateInvalid, match="add up|strict"):
                    in_part(proof, k, n, **change).verify(log)
    for n, bound in enumerate(branch.bounds):
        for value in (bound.value + F(1, 10**30), bound.value + 1):
            seen += 1
            with pytest.raises(ox.CertificateInvalid, match=f"bound {n}: the right sides .* below 0"):
                in_bound(proof, n, value=value).verify(log)
        for m, term in enumerate(bound.terms):
            for terms in (bound.terms[:m] + bound.terms[m + 1 :], (*bound.terms, term)):
                seen += 1
                with pytest.raises(ox.CertificateInvalid, match=f"bound {n}: the .* add up"):
                    in_bound(proof, n, terms=terms).verify(log)
        looser = replace(proof.branches, branch=replace(branch, bounds=branch.bounds[:n] + branch.bounds[n + 1 :]))
        seen += 1
        with pytest.raises(ox.CertificateInvalid, match="add up"):
            replace(proof, branches=looser).verify(log)
    assert seen > 50


def test_mutants_of_a_frame_are_refused() -> None:
    log, proof = by_arcs()
    assert proof.branches is not None
    e, g, h = frame = proof.branches.frame
    nearly = [tuple(v * (1 - F(1, 10**15)) for v in vector) for vector in frame]
    for wrong, says in (
        ((), "entry 3 of a, which has 3"),
        ((e,), "entry 4 of a, which has 3, beyond which are 1 directions"),
        ((e, g), "entry 5 of a"),
        ((e, h, g), "add up"),
        ((e, g, g), "add up"),
        ((e, g, tuple(-v for v in h)), "add up"),
        ((e, g, exact([0, 0, 1])), "add up"),
        ((e, g, nearly[2]), "add up"),
        ((nearly[0], g, h), "add up"),
        ((e, g, tuple(v * 2 for v in h)), "add up"),
        ((e, g, exact([0, 0, 0])), "vector 2 of the frame is 0"),
        ((e, g, h[:2]), "vector 2 of the frame has 2 entries, not 3"),
        ((e, g, (*h, F(0))), "vector 2 of the frame has 4 entries, not 3"),
        ((e, g, ()), "vector 2 of the frame has 0 entries"),
        ((e, g, (0.0, -0.8, 0.6)), "exact fractions only"),
        ((e, g, (True, F(0), F(0))), "exact fractions only"),
        ((e, g, h, *[e] * (branches.LARGEST_FRAME - 2)), "513 vectors; at most 512"),
        ((e, g, h, (F(0), F(0), F(2**branches.FRAME_BITS))), "vector 3 of the frame: fractions too long"),
        ((e, g, h, (F(1, 3), F(1, 2**branches.FRAME_BITS), F(0))), "vector 3 of the frame: fractions too long"),
    ):
        with pytest.raises(ox.CertificateInvalid, match=says):
            changed(proof, frame=wrong).verify(log)
    # More vectors than there are features make a longer length, which this proof has little room for.
    with pytest.raises(ox.CertificateInvalid, match="case 0: the left sides|case 0: the right sides"):
        changed(proof, frame=(*frame, exact([0, 0, 1]))).verify(log)
    changed(proof, frame=(*frame, (F(1, 10**30), F(0), F(0)))).verify(log)


def test_vectors_that_have_a_long_denominator_only_together_are_refused_at_once() -> None:
    """Each has a short one of its own; whole numbers over the common one would have two million digits."""
    log, proof = by_arcs()
    assert proof.branches is not None
    apart = tuple((F(1, 2**4000 + 2 * k + 1), F(0), F(0)) for k in range(branches.LARGEST_FRAME - 3))
    with pytest.raises(ox.CertificateInvalid, match="the frame: fractions too long"):
        changed(proof, frame=(*proof.branches.frame, *apart)).verify(log)


@pytest.mark.parametrize(
    ("part", "fact", "change", "says"),
    [
        (0, "arc", {"at": None}, "touches at some number"),
        (0, "arc", {"at": F(-1, 2)}, "touches at some number"),
        (0, "arc", {"at": 1.5}, "exact fractions only"),
        (0, "arc", {"at": F(1)}, "add up"),
        (0, "arc", {"at": F(2)}, "add up"),
        (0, "arc", {"at": F(3, 2) - F(1, 10)}, "add up"),
        (0, "arc", {"power": F(2)}, "a power belongs to chord"),
        (0, "arc", {"index": 3}, "index of an entry"),
        (0, "arc", {"sign": -1}, "a sign belongs to plane"),
        (0, "arc", {"vector": exact([1, 0, 0])}, "a vector to ray"),
        (0, "arc", {"distance": "l2"}, "a distance belongs to a hoelder"),
        (0, "arc", {"of": "robustness"}, "only a hoelder"),
        (0, "arc", {"row": None}, "names no row"),
        (0, "arc", {"row": 1}, "no known distance and robustness"),
        (0, "arc", {"row": 2}, "no known distance and robustness"),
        (0, "arc", {"row": 99}, "it uses row 99"),
        (0, "arc", {"weight": F(-1)}, "negative weight"),
        (0, "bound", {"index": 6}, "no entry 6 of a, and the frame has 3 vectors"),
        (0, "bound", {"index": 10**40}, "no entry"),
        (0, "bound", {"index": -1}, "index of an entry"),
        (0, "bound", {"index": True}, "index of an entry"),
        (0, "bound", {"index": 4}, "add up"),
        (1, "bound", {"index": 5}, "add up"),
    ],
)  # fmt: skip
def test_an_arc_and_a_bound_are_made_of_what_they_should_be(part: int, fact: str, change: dict, says: str) -> None:
    log, proof = by_arcs()
    assert proof.branches is not None
    n = [term.fact for term in proof.branches.branch.parts[part].terms].index(fact)
    with pytest.raises(ox.CertificateInvalid, match=says):
        in_part(proof, part, n, **change).verify(log)


def test_splits_and_bounds_are_along_the_frame_or_an_entry_that_there_is() -> None:
    log, proof = by_arcs()
    assert proof.branches is not None
    branch = proof.branches.branch
    for index, says in ((6, "entry 6 of a, which has 3, beyond which are 3"), (-1, "entry -1"), (True, "entry True")):
        with pytest.raises(ox.CertificateInvalid, match=says):
            changed(proof, branch=replace(branch, index=index)).verify(log)
        with pytest.raises(ox.CertificateInvalid, match=says):
            in_bound(proof, 0, index=index).verify(log)
    for change in ({"index": 5}, {"index": 1}, {"value": F(1, 2)}, {"value": F(-2)}, {"parts": branch.parts[::-1]}):
        with pytest.raises(ox.CertificateInvalid, match="case [01]: the (left|right) sides"):
            changed(proof, branch=replace(branch, **change)).verify(log)
    for n in range(len(branch.bounds)):
        sign = branch.bounds[n].sign
        with pytest.raises(ox.CertificateInvalid, match=f"bound {n}: the left sides"):
            in_bound(proof, n, sign=-sign).verify(log)
        with pytest.raises(ox.CertificateInvalid, match=f"bound {n}: the left sides"):
            in_bound(proof, n, index=2).verify(log)
    for change in ({"verdict": Verdict.NO}, {"point": (-9.0, 0.0, 0.0)}, {"point": None, "verdict": None}):
        with pytest.raises(ox.CertificateInvalid, match="add up|nothing of the kind is assumed"):
            replace(proof, **change).verify(log)


def test_an_arc_outside_a_branch_or_about_another_ball_is_refused() -> None:
    log, proof = by_arcs()
    assert proof.branches is not None
    arc = Term("arc", F(1), 0, at=F(3, 2))
    outside = replace(proof, branches=None, terms=(arc,))
    assert str(outside) == "Yes = 0"
    with pytest.raises(ox.CertificateInvalid, match=r"term 0 \(arc\): it belongs into a branch"):
        outside.verify(log)
    answers = answers_of(log)
    for robustness, says in (
        ("l1", "none of them"),
        ("linf", "none of them"),
        ("lp:3", "none of them"),
        ({"norm": "weighted", "base": "l2", "weights": [1.0, 1.0, 0.5]}, "not shown to be at least"),
        ({"norm": "weighted", "base": "l2", "weights": [1.0, 1.0, 1.0 - 2**-50]}, "not shown to be at least"),
        (None, "no known distance and robustness"),
    ):
        other = {**answers, 0: replace(answers[0], robustness=robustness)}
        with pytest.raises(ox.CertificateInvalid, match=says):
            check_certificate(other, (), exact(proof.point), 1, branches=proof.branches)
    same = {**answers, 0: replace(answers[0], robustness="lp:2")}
    check_certificate(same, (), exact(proof.point), 1, branches=proof.branches)
    secret = {**answers, 0: replace(answers[0], radius=None)}
    with pytest.raises(ox.CertificateInvalid, match="the reach of row 0 is secret"):
        check_certificate(secret, (), exact(proof.point), 1, branches=proof.branches)
    for row, says in ((2, "the distance of row 2"), (9, "row 9"), (True, "row True")):
        with pytest.raises(ox.CertificateInvalid, match=says):
            check_certificate(answers, (), exact(proof.point), 1, branches=replace(proof.branches, row=row))


def test_bounds_along_the_frame_hold_in_their_own_part_only() -> None:
    """What one part of a split knows is not left behind for the other, nor is a bound of one case for its neighbour."""
    log, proof = by_arcs()
    assert proof.branches is not None
    branch = proof.branches.branch
    first, second = branch.parts
    tight = Bound(4, 1, F(1), first.terms)  # made up: not proved by these terms
    with pytest.raises(ox.CertificateInvalid, match="case 0: bound 0"):
        changed(proof, branch=replace(branch, parts=(replace(first, bounds=(tight,)), second))).verify(log)
    own = Bound(4, -1, F(0), (Term("bound", F(1), sign=-1, index=4),))  # g·a ≤ 0, as the split says
    changed(proof, branch=replace(branch, parts=(replace(first, bounds=(own,)), second))).verify(log)
    with pytest.raises(ox.CertificateInvalid, match="case 1: bound 0: the right sides"):
        changed(proof, branch=replace(branch, parts=(first, replace(second, bounds=(own,))))).verify(log)


# Proofs from anywhere.


LONG = "0x" + "f" * 59_000
HUGE = "9" * 3000


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("frame",), None, "must be a list"),
        (("frame",), {}, "must be a list"),
        (("frame",), "1", "must be a list"),
        (("frame",), [], "a frame has 1 to 512 vectors, got 0"),
        (("frame",), [["1", "0", "0"]] * 513, "a frame has 1 to 512 vectors, got 513"),
        (("frame",), [1], "must be a list"),
        (("frame",), [[]], "vector 0 of the frame has 0 entries"),
        (("frame",), [[["1"]]], "must be a fraction"),
        (("frame", 0), [1, 0, 0], "must be a fraction"),
        (("frame", 0), ["1", "0"], "has 2 entries, not 3"),
        (("frame", 0), ["0", "0", "0"], "is 0"),
        (("frame", 0), ["1", "0", None], "must be a fraction"),
        (("frame", 0), ["1", "0", "1e5"], "must be a fraction"),
        (("frame", 0), ["1", "0", "1e999999999"], "must be a fraction"),
        (("frame", 0), ["1", "0", "1/0"], "denominator 0"),
        (("frame", 0), ["1", "0", "nan"], "must be a fraction"),
        (("frame", 0), ["1", "0", LONG], "fractions too long"),
        (("frame", 0), ["1", "0", "1/" + LONG], "fractions too long"),
        (("frame", 0), ["1", "0", HUGE], "fractions too long"),
        (("frame", 0), ["1", "0", "9" * 60_001], "at most 60000 characters"),
        (("frame", 0), {"0": "1"}, "must be a list"),
        (("frames",), [["1", "0", "0"]], "unknown key"),
        (("list", 0, "index"), 6, "beyond which are 3 directions"),
        (("list", 0, "index"), 10**30, "beyond which are 3 directions"),
        (("list", 0, "bounds", 0, "index"), 10**30, "beyond which are 3 directions"),
        (("list", 1, "terms", 0, "at"), None, "must be a fraction"),
        (("list", 1, "terms", 0, "at"), "-1", "touches at some number"),
        (("list", 1, "terms", 0, "at"), LONG, "too long to be computed with"),
        (("list", 1, "terms", 0, "at"), HUGE, "add up"),
        (("list", 1, "terms", 0, "at"), "1/" + HUGE, "add up"),
        (("list", 1, "terms", 0, "row"), 1, "no known distance and robustness"),
        (("list", 1, "terms", 0, "frame"), [["1"]], "unknown key"),
    ],
)  # fmt: skip
def test_hostile_frames_are_refused_in_words(path: tuple, value: Any, says: str) -> None:
    log, proof = by_arcs()
    entry = json.loads(proof.to_json())
    assert entry["branches"]["list"][1]["terms"][0]["fact"] == "arc"
    part = entry["branches"]
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    with pytest.raises(ox.CertificateInvalid, match=says) as caught:
        read_proof(json.dumps(entry)).verify(log)
    assert len(str(caught.value)) < 400


def test_an_arc_without_its_place_or_its_frame_is_refused() -> None:
    log, proof = by_arcs()
    entry = json.loads(proof.to_json())
    del entry["branches"]["list"][1]["terms"][0]["at"]
    with pytest.raises(ox.CertificateInvalid, match="touches at some number"):
        read_proof(json.dumps(entry)).verify(log)
    entry = json.loads(proof.to_json())
    del entry["branches"]["frame"]
    with pytest.raises(ox.CertificateInvalid, match="entry 3 of a, which has 3"):
        read_proof(json.dumps(entry)).verify(log)


# Attacks: arbitrary arcs must not prove what a model of the log denies.


def test_no_box_of_true_bounds_proves_a_length_that_no_model_has() -> None:
    """Random frames, accepted or not, in boxes that hold a known model: no arc is false of it, with whatever vectors."""
    rng, accepted, refused = random.Random(7), 0, 0
    for _ in range(400):
        p = rng.randint(1, 3)
        normal = [F(rng.randint(-4, 4)) for _ in range(p)]
        if not any(normal):
            continue
        kind = rng.choice(SQUARES)
        robustness, _ = a_square(kind, p, rng)
        frame = [
            [F(rng.randint(-5, 5), rng.choice((1, 1, 2, 10**9))) for _ in range(p)] for _ in range(rng.randint(1, 6))
        ]
        frame = [vector for vector in frame if any(vector)]
        size = max(map(abs, normal))  # ‖a‖₁*
        box = {(p + k, s): s * dot(f, normal) / size for k, f in enumerate(frame) for s in (1, -1)}
        at = F(rng.randint(0, 40), 4)
        context = Context("l1", box, frame=frame)
        try:
            fact = fact_of(about("l1", robustness, p), Term("arc", F(1), 0, at=at), context=context)
        except ox.CertificateInvalid:
            refused += 1
            continue
        accepted += 1
        assert holds(fact, normal), (robustness, frame, normal, at)
    assert accepted > 50
    assert refused > 50


def test_parts_of_a_proof_with_a_frame_are_all_there() -> None:
    _, proof = by_arcs()
    assert proof.branches is not None
    assert proof.branches.leaves == 2
    assert proof.branches.rows == set(range(7))
    assert Branched(0, Branch()).frame == ()
