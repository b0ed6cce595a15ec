"""The checker of proofs: accepts what follows from the log, refuses what does not, whoever made it and however."""

from __future__ import annotations

import ast
import random
from dataclasses import replace
from fractions import Fraction as F
from pathlib import Path

import numpy as np
import pytest

import overexplain as ox
from overexplain.knowledge import branches, checker, enclosures, levels, promises, witnesses
from overexplain.knowledge.checker import (
    PRIME,
    Answer,
    Fact,
    Lemma,
    Term,
    _has_full_rank,
    _sums,
    check_certificate,
    check_witness,
    fact_of,
)
from overexplain.knowledge.evidence import Finder
from overexplain.knowledge.exact import null_space
from overexplain.knowledge.promises import Scaled
from provers import exact, float_proof
from strategies import make_norm


def labelled(rows: list[tuple[list[float], int]]) -> dict[int, Answer]:
    return {i: Answer(exact(x), y) for i, (x, y) in enumerate(rows)}


def test_sums_over_one_denominator_are_the_sums_entry_by_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(3)
    numbers = lambda count: [F(draw.randint(-9, 9), draw.choice([1, 3, 8, 2**60])) for _ in range(count)]  # noqa: E731
    for terms in (0, 1, 5):
        facts = [Fact(numbers(4) if k % 2 else Scaled((3, -1, 0, 2**70), 2**30)) for k in range(terms)]
        weights = [abs(v) for v in numbers(terms)]
        wanted = [sum((w * f.left[i] for w, f in zip(weights, facts, strict=True)), F(0)) for i in range(4)]
        assert [F(*found) for found in _sums(weights, facts, 4)] == wanted
        with monkeypatch.context() as patched:
            patched.setattr(checker, "LARGEST_BITS", 0)  # numbers so long that they are added up one entry at a time
            assert [F(*found) for found in _sums(weights, facts, 4)] == wanted


def test_a_left_side_over_one_denominator_is_a_sequence_of_fractions() -> None:
    left = Scaled((4, -1, 0), 2)
    assert left == [2, F(-1, 2), 0]
    assert [2, F(-1, 2), 0] == left
    assert left != [2, F(-1, 2)]
    assert (len(left), left[-2], left[:2]) == (3, F(-1, 2), [2, F(-1, 2)])


# Labels alone: the paper's theorem on factual regions.


def test_between_two_no_points_is_no_and_beyond_a_yes_seen_from_a_no_is_yes() -> None:
    log = labelled([([0, 0], -1), ([2, 0], -1), ([4, 0], 1)])
    half = F(1, 2)
    check_certificate(log, [Term("side", half, 0), Term("side", half, 1)], exact([1, 0]), -1)
    # (6, 0) = 3/2·(4, 0) − 1/2·(0, 0): beyond the convex hull of the Yes points, and yet certain.
    check_certificate(log, [Term("side", F(3, 2), 2), Term("side", half, 0)], exact([6, 0]), 1)


def test_a_point_between_yes_points_only_touches_the_plane_and_is_yes() -> None:
    log = labelled([([0, 0], 1), ([2, 0], 1)])
    terms = [Term("side", F(1, 2), 0), Term("side", F(1, 2), 1)]
    check_certificate(log, terms, exact([1, 0]), 1)
    with pytest.raises(ox.CertificateInvalid, match="do not add up"):
        check_certificate(log, terms, exact([1, 0]), -1)


def test_no_must_be_strict() -> None:
    """E14: with only Yes rows the sum may be 0: on the plane, which is Yes."""
    log = {0: Answer(exact([0, 0]), 1, exact([1, 0]), "l1", F(0)), 1: Answer(exact([0, 0]), -1)}
    with pytest.raises(ox.CertificateInvalid, match="strict"):
        check_certificate(log, [Term("plane", F(1), 0, sign=-1)], exact([1, 0]), -1)
    check_certificate(log, [Term("plane", F(1), 0, sign=1)], exact([1, 0]), 1)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"weight": F(-1, 2)}, "negative weight"),
        ({"weight": F(1, 3)}, "do not add up for feature 0"),
        ({"row": 9}, "row 9, which the log does not have"),
        ({"row": None}, "names no row"),
        ({"fact": "plane"}, "promises no fact 'plane'"),
        ({"fact": "magic"}, "no fact 'magic'"),
        ({"fact": "hoelder"}, "a vector to ray and hoelder"),
    ],
)
def test_each_way_to_be_wrong_is_named(change: dict, says: str) -> None:
    log = labelled([([0, 0], -1), ([2, 0], -1)])
    good = [Term("side", F(1, 2), 0), Term("side", F(1, 2), 1)]
    check_certificate(log, good, exact([1, 0]), -1)
    with pytest.raises(ox.CertificateInvalid, match=says):
        check_certificate(log, [good[0], replace(good[1], **change)], exact([1, 0]), -1)
    for point, verdict in (([1.0000001, 0], -1), ([1, 0], 1)):
        with pytest.raises(ox.CertificateInvalid):
            check_certificate(log, good, exact(point), verdict)


def test_a_contradiction_is_a_proof_about_no_point() -> None:
    log = labelled([([0, 0], -1), ([2, 0], -1), ([1, 0], 1)])
    terms = [Term("side", F(1, 2), 0), Term("side", F(1, 2), 1), Term("side", F(1), 2)]
    check_certificate(log, terms, None, 1)
    with pytest.raises(ox.CertificateInvalid, match="do not add up"):
        check_certificate(log, terms[:2], None, 1)


# Explanations. Proofs are made by a linear program here and checked exactly; every claim is held against the true model.


@pytest.mark.parametrize("name", ["l1", "linf"])
@pytest.mark.parametrize("seed", range(6))
def test_proofs_from_explanations_hold_and_never_contradict_the_model(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, norm = 3, ox.norm(name)
    model = ox.Hyperplane(rng.normal(size=p), rng.normal())
    oracle = ox.ModelOracle(model, ox.Mechanism(norm))
    log: dict[int, Answer] = {}
    for i, x in enumerate(rng.normal(size=(6, p)) * 2):
        explained = exact(oracle.explain(x)) if i < 2 else None
        log[i] = Answer(exact(x), model.label(x), explained, norm.spec if i < 2 else None, None)
    proved = 0
    for x in rng.normal(size=(60, p)) * 2:
        for verdict in (1, -1):
            terms = float_proof(log, x, verdict, norm)
            if terms is None:
                continue
            check_certificate(log, terms, exact(x), verdict)
            assert model.label(x) == verdict
            proved += 1
            for other in (exact(x * (1 + 1e-9)), exact(-x)):
                with pytest.raises(ox.CertificateInvalid):
                    check_certificate(log, terms, other, verdict)
            moved = dict(log)
            used = next(t.row for t in terms if t.row is not None and t.weight > 0 and t.fact != "plane")
            moved[used] = replace(log[used], label=-log[used].label)
            with pytest.raises(ox.CertificateInvalid):
                check_certificate(moved, terms, exact(x), verdict)
    assert proved > 10


@pytest.mark.parametrize("name", ["l1", "linf", "l2", "lp:1.5", "weighted l1", "mahalanobis", "group"])
def test_the_true_model_is_a_witness_and_a_turned_one_is_not(name: str) -> None:
    rng = np.random.default_rng(1)
    norm = make_norm(name, 3, spread=0.5)
    model = ox.Hyperplane(rng.normal(size=3), 0.7)
    oracle = ox.ModelOracle(model, ox.Mechanism(norm))
    log = {}
    for i, x in enumerate(rng.normal(size=(5, 3)) * 2):
        log[i] = Answer(exact(x), model.label(x) if i % 2 else None, exact(oracle.explain(x)), norm.spec)
    check_witness(log, exact(model.normal), F(model.offset))
    for turned, shifted in ((1e-4, 0.0), (0.0, 1e-4)):
        normal = model.normal + turned * rng.normal(size=3)
        with pytest.raises(ox.CertificateInvalid, match="would not have given the explanation in row|another label"):
            check_witness(log, exact(normal), F(model.offset + shifted))
    with pytest.raises(ox.CertificateInvalid, match="zero normal"):
        check_witness(log, exact([0, 0, 0]), F(1))


def test_inexact_and_merely_valid_explanations_promise_less() -> None:
    valid = {0: Answer(exact([0, 0]), -1, exact([3, 0]), None, F(0), None)}
    check_certificate(valid, [Term("flips", F(1), 0)], exact([3, 0]), 1)
    check_witness(valid, exact([1, 0]), F(2))
    with pytest.raises(ox.CertificateInvalid, match="would not have given"):
        check_witness(valid, exact([1, 0]), F(4))
    for fact in ("plane", "steepest"):
        with pytest.raises(ox.CertificateInvalid, match="promises no fact"):
            check_certificate(valid, [Term(fact, F(1), 0)], exact([3, 0]), 1)
    within = {0: Answer(exact([0, 0]), -1, exact([3, 0]), "l1", F(0), F(1, 2))}
    check_witness(within, exact([1, 0]), F(2))  # 3 ≤ 1.5 × 2
    with pytest.raises(ox.CertificateInvalid, match="would not have given"):
        check_witness(within, exact([1, 0]), F(19, 10))


def test_the_side_of_an_unlabelled_row_is_never_guessed() -> None:
    log = {0: Answer(exact([0, 0]), None, exact([1, 0]), "l1", F(0))}
    with pytest.raises(ox.CertificateInvalid, match="side of row 0 is not known"):
        check_certificate(log, [Term("steepest", F(1), 0)], exact([1, 0]), 1)
    check_witness(log, exact([1, 0]), F(1))
    check_witness(log, exact([-1, 0]), F(-1))


def test_a_step_shorter_than_its_tolerance_flips_to_within_it() -> None:
    log = {0: Answer(exact([0, 0]), -1, exact([1, 0]), "l1", F(2), F(1, 2))}
    with pytest.raises(ox.CertificateInvalid, match="the right sides for the distance l1 add up to -2, below 0"):
        check_certificate(log, [Term("flips", F(1), 0)], exact([1, 0]), 1)
    check_witness(log, exact([1, 0]), F(3))
    with pytest.raises(ox.CertificateInvalid, match="would not have given the explanation in row 0"):
        check_witness(log, exact([1, 0]), F(3) + F(1, 10**9))  # no point within 2 of the answer is across
    check_certificate(log, [Term("side", F(1), 0)], exact([0, 0]), -1)


def test_rows_of_another_size_and_odd_verdicts_are_refused() -> None:
    log = labelled([([0, 0], -1), ([1], -1)])
    with pytest.raises(ox.CertificateInvalid, match="row 1 has not 2 features"):
        check_certificate(log, [Term("side", F(1), 1)], exact([1, 0]), -1)
    with pytest.raises(ox.CertificateInvalid, match="row 1 has not 2 features"):
        check_witness(log, exact([1, 0]), F(3))
    with pytest.raises(ox.CertificateInvalid, match="verdict"):
        check_certificate(log, [], exact([1, 0]), 0)


# Labels that follow, labels that are assumed.


def test_a_lemma_proves_a_label_that_later_terms_use() -> None:
    """Row 2, unlabelled, lies between two No: its own explanation then counts as that of a No."""
    log = labelled([([0, 0], -1), ([2, 0], -1)])
    log[2] = Answer(exact([1, 0]), None, exact([1, 3]), "l1", F(0))
    half = F(1, 2)
    lemma = Lemma(2, -1, (Term("side", half, 0), Term("side", half, 1), Term("side", F(1), 2)))
    far = exact([1, 6])  # (1, 6) = x' + step: past the plane, seen from a No
    terms = [Term("plane", F(1), 2), Term("steepest", F(1), 2)]
    check_certificate(log, terms, far, 1, lemmas=[lemma])
    with pytest.raises(ox.CertificateInvalid, match="side of row 2 is not known"):
        check_certificate(log, terms, far, 1)
    for wrong, says in (
        (Lemma(2, 1, lemma.terms), "the lemma for row 2: "),
        (Lemma(2, -1, lemma.terms[:2]), "the lemma for row 2: the left sides"),
        (Lemma(0, -1, lemma.terms), "known already"),
        (Lemma(2, 0, lemma.terms), "is no label"),
        (Lemma(7, 1, lemma.terms), "row 7, which the log does not have"),
    ):
        with pytest.raises(ox.CertificateInvalid, match=says):
            check_certificate(log, terms, far, 1, lemmas=[wrong])
    with pytest.raises(ox.CertificateInvalid, match="known already"):
        check_certificate(log, terms, far, 1, lemmas=[lemma, lemma])


def test_a_lemma_may_not_rest_on_the_label_it_proves() -> None:
    log = {0: Answer(exact([0, 0])), 1: Answer(exact([0, 0]), -1)}
    with pytest.raises(ox.CertificateInvalid, match="strict|add up"):
        check_certificate(log, [Term("side", F(1), 0)], exact([0, 0]), 1, lemmas=[(0, 1, [Term("side", F(1), 0)])])
    check_certificate(
        log, [Term("side", F(1), 0)], exact([0, 0]), -1, lemmas=[(0, -1, [Term("side", F(1), k) for k in (0, 1)])]
    )


def test_one_label_may_be_assumed_if_there_is_none() -> None:
    log = {0: Answer(exact([0, 0]), None, exact([1, 0]), "l1", F(0)), 1: Answer(exact([3, 0]))}
    terms = [Term("side", F(1), 0)]
    check_certificate(log, terms, exact([0, 0]), 1, assumed=[(0, 1)])
    for sign in (1, -1):  # which side is Yes is a matter of naming
        check_witness(log, exact([sign, 0]), F(sign), assumed=[(0, 1)])
    # Beside the explained point, a Yes is one up to swapping only if it is strict.
    level = [Term("side", F(1), 0), Term("hoelder", F(1), 0, vector=exact([0, 1]))]
    check_certificate({0: replace(log[0], label=1)}, level, exact([0, 1]), 1)
    with pytest.raises(ox.CertificateInvalid, match="nothing in it is strict"):
        check_certificate({0: log[0]}, level, exact([0, 1]), 1, assumed=[(0, 1)])
    within = [Term("side", F(1), 0), Term("hoelder", F(1), 0, vector=exact([0, F(1, 2)]))]
    check_certificate({0: log[0]}, within, exact([0, F(1, 2)]), 1, assumed=[(0, 1)])
    for assumed in ([(0, -1)], [(0, 1), (1, 1)], [(5, 1)], [(True, 1)]):
        with pytest.raises(ox.CertificateInvalid, match="what may be assumed"):
            check_certificate(log, terms, exact([0, 0]), 1, assumed=assumed)
    labels = {**log, 1: Answer(exact([3, 0]), 1)}
    for check in (
        lambda: check_certificate(labels, terms, exact([0, 0]), 1, assumed=[(0, 1)]),
        lambda: check_witness(labels, exact([-1, 0]), F(-1), assumed=[(0, 1)]),
    ):
        with pytest.raises(ox.CertificateInvalid, match="although the log has labels"):
            check()


# Whoever made it: what is no number, no row, no norm is refused in words.


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"weight": 0.5}, "exact fractions only"),
        ({"weight": float("nan")}, "exact fractions only"),
        ({"weight": "1/2"}, "exact fractions only"),
        ({"row": True}, "names row True"),
        ({"row": -1}, "names row -1"),
        ({"row": 0.0}, "names row 0.0"),
        ({"sign": -1}, "a sign belongs to plane"),
        ({"sign": 0}, "sign 0"),
        ({"vector": exact([0, 0])}, "a vector to ray and hoelder"),
        ({"distance": "l1"}, "a distance belongs to a hoelder"),
        ({"weight": F(1, 2) + F(1, 3**200_000)}, "too long"),
    ],
)
def test_terms_made_of_anything_else_are_refused(change: dict, says: str) -> None:
    log = labelled([([0, 0], -1), ([2, 0], -1)])
    good = [Term("side", F(1, 2), 0), Term("side", F(1, 2), 1)]
    with pytest.raises(ox.CertificateInvalid, match=says):
        check_certificate(log, [replace(good[0], **change), good[1]], exact([1, 0]), -1)


@pytest.mark.parametrize("sign", [2, 0, -3, F(1), 1.0, True])
def test_a_sign_is_a_sign(sign: object) -> None:
    """A sign of 1000 would make the tolerance a thousandth."""
    log = {0: Answer(exact([0, 0]), -1, exact([1, 0]), "l1", F(1))}
    with pytest.raises(ox.CertificateInvalid, match="it is 1 or -1"):
        check_certificate(log, [Term("plane", F(1), 0, sign=sign)], exact([1, 0]), 1)


def test_a_norm_that_the_proof_made_up_pays_for_nothing() -> None:
    log = labelled([([0, 0], -1)]) | {1: Answer(exact([0, 1]), -1, exact([0, 2]), "l1", F(0))}
    for made_up in ({"norm": "weighted", "base": "l1", "weights": [0.0, 0.0]}, "linf", None, float("nan"), [[]]):
        terms = [Term("side", F(1), 0), Term("hoelder", F(1), vector=exact([9, 9]), distance=made_up)]
        with pytest.raises(ox.CertificateInvalid, match="needs the distance of a row|a distance belongs"):
            check_certificate(log, terms, exact([-9, -9]), -1)
    own = [Term("side", F(1), 0), Term("hoelder", F(1), 1, vector=exact([9, 9]))]
    with pytest.raises(ox.CertificateInvalid, match="distance l1 add up to -18"):
        check_certificate(log, own, exact([-9, -9]), -1)
    with pytest.raises(ox.CertificateInvalid, match="needs the distance of a row"):
        check_certificate(log, [Term("hoelder", F(1), 0, vector=exact([0, 0]))], None, 1)


def test_many_long_fractions_are_refused_before_they_are_added_up() -> None:
    log = labelled([([0, 0], -1)])
    primes = [F(1, 2**k - 1) for k in range(5000, 5200)]
    with pytest.raises(ox.CertificateInvalid, match="too long to be computed with"):
        check_certificate(log, [Term("side", w, 0) for w in primes], exact([0, 0]), -1)
    with pytest.raises(ox.CertificateInvalid, match="too long to be computed with"):
        check_witness(log, [primes[0], F(2) ** 300_000], F(1))
    for model in ([1.0, F(1)], [F(1), "1"]):
        with pytest.raises(ox.CertificateInvalid, match="exact fractions only"):
            check_witness(log, model, F(1))


def test_a_contradiction_names_rows() -> None:
    for terms in ([], [Term("hoelder", F(1), vector=(), distance="l1")]):
        with pytest.raises(ox.CertificateInvalid, match="none is named"):
            check_certificate({}, terms, None, 1)


CORNERS = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]


def test_corners_prove_with_evidence_what_l1_proves_without() -> None:
    spec = {"norm": "polyhedral", "vertices": CORNERS}
    log = {0: Answer(exact([0, 0]), -1, exact([3, 1]), spec)}
    as_l1 = {0: replace(log[0], distance="l1")}
    terms = [Term("plane", F(1), 0), Term("steepest", F(1), 0), Term("hoelder", F(1), 0, vector=exact([0, 0.5]))]
    find = Finder()
    for term in terms:
        found, wanted = fact_of(log, term, find), fact_of(as_l1, term)
        assert (found.left, found.right) == (wanted.left, wanted.right)
    point = exact([6, 2.5])
    check_certificate(as_l1, terms, point, 1)
    check_certificate(log, terms, point, 1, lengths=find.lengths)
    for lengths in ((), find.lengths[1:]):
        with pytest.raises(ox.CertificateInvalid, match="takes evidence"):
            check_certificate(log, terms, point, 1, lengths=lengths)


def test_the_checker_imports_the_standard_library_and_nothing_of_an_engine() -> None:
    allowed = {
        "__future__",
        "collections",
        "dataclasses",
        "decimal",
        "fractions",
        "functools",
        "itertools",
        "math",
        "operator",
        "typing",
    }
    names = ("branches", "enclosures", "levels", "promises", "witnesses")
    own = {"overexplain.errors", *(f"overexplain.knowledge.{name}" for name in names)}
    for module in (checker, branches, enclosures, levels, promises, witnesses):
        for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name.split(".")[0] in allowed or name in own


@pytest.mark.parametrize("seed", range(20))
def test_rank_modulo_a_prime_never_exceeds_the_true_one(seed: int) -> None:
    """Small entries, multiples of the prime and fractions over it among them."""
    rng = random.Random(seed)
    values = [F(0), F(1), F(-2), F(3, 4), F(PRIME), F(1, PRIME), F(PRIME + 1, 3), F(2) ** 200]
    for _ in range(50):
        rows = [[rng.choice(values) for _ in range(3)] for _ in range(rng.randint(1, 5))]
        rank = 3 - len(null_space(rows, 3))
        assert rank == 3 or not _has_full_rank(rows)
        plain = [[F(rng.randint(-2, 2), rng.randint(1, 3)) for _ in range(3)] for _ in range(rng.randint(1, 5))]
        rank = 3 - len(null_space(plain, 3))
        assert (rank == 3) == _has_full_rank(plain)
