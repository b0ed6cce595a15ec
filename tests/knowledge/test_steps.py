"""What the step of an explanation shows: how steep, which ray, which models fit to the last digit."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pytest

import overexplain as ox
from overexplain.knowledge.checker import Answer, Term, check_certificate, check_witness, fact_of
from overexplain.knowledge.enclosures import is_aligned, is_level
from overexplain.knowledge.evidence import Finder
from provers import exact
from strategies import make_norm

KIN = ("l2", "weighted l2", "mahalanobis")


@pytest.mark.parametrize("name", [*KIN, "l1", "linf", "lp:1.5", "group"])
def test_the_facts_hold_for_every_model_that_could_have_answered(name: str) -> None:
    """The optimum is exact, the answer served lies anywhere within the tolerance: floats confirm every fact."""
    rng = np.random.default_rng(3)
    norm = make_norm(name, 3, spread=0.5)
    steep = 0
    for _ in range(200):
        model = ox.Hyperplane(rng.normal(size=3), rng.normal())
        x = rng.normal(size=3) * 2
        served = ox.ModelOracle(model, ox.Mechanism(norm)).explain(x)
        noise = rng.normal(size=3)
        tau = float(norm(served - x)) * rng.choice([0.01, 0.3, 0.6, 0.95])
        served = served + noise / norm(noise) * tau * rng.uniform(0, 0.999999)
        log = {0: Answer(exact(x), model.label(x), exact(served), norm.spec, F(tau))}
        size = float(norm.dual(model.normal))
        for term in (Term("side", F(1), 0), Term("steepest", F(1), 0), *(Term("plane", F(1), 0, s) for s in (1, -1))):
            try:
                fact = fact_of(log, term)
            except ox.CertificateInvalid:
                assert term.fact == "steepest"
                continue
            steep += term.fact == "steepest"
            left = float(np.array(fact.left, dtype=float) @ np.append(model.normal, model.offset))
            assert left >= float(fact.right) * size - 1e-9
    assert steep > 80


def test_steepness_is_the_root_for_l2_and_two_tolerances_less_for_others() -> None:
    def steepness(distance: object, tolerance: int) -> F:
        log = {0: Answer(exact([0, 0]), -1, exact([2, 0]), distance, F(tolerance))}
        return fact_of(log, Term("steepest", F(1), 0)).right

    for distance in ("l2", {"norm": "mahalanobis", "matrix": [[1.0, 0.0], [0.0, 9.0]]}):
        low = steepness(distance, 1)
        assert low**2 <= 3 < (low + F(1, 2**90)) ** 2
        with pytest.raises(ox.CertificateInvalid, match="promises no fact"):
            steepness(distance, 2)
    assert steepness("l2", 0) == steepness("l1", 0) == 2
    for distance in ("l1", "linf"):
        with pytest.raises(ox.CertificateInvalid, match="promises no fact"):
            steepness(distance, 1)


def test_e2_a_smooth_exact_answer_puts_a_point_on_the_plane() -> None:
    """E2: x = 0 is No, x' = (1, 0) under ℓ2: (1, 1) is on the plane, which no finite weights of balls show."""
    log = {0: Answer(exact([0, 0]), -1, exact([1, 0]), "l2", F(0))}
    there = [Term("plane", F(1), 0), Term("ray", F(1), 0, vector=exact([0, 1]))]
    back = [Term("plane", F(1), 0, sign=-1), Term("ray", F(1), 0, vector=exact([0, -1]))]
    check_certificate(log, there, exact([1, 1]), 2, reverse=back)
    check_certificate(log, there, exact([1, 1]), 1)
    with pytest.raises(ox.CertificateInvalid, match="strict"):
        check_certificate(log, back, exact([1, 1]), -1)
    for reverse, says in ((there, "a·x ≤ b: the left sides"), ((), "a·x ≤ b")):
        with pytest.raises(ox.CertificateInvalid, match=says):
            check_certificate(log, there, exact([1, 1]), 2, reverse=reverse)
    with pytest.raises(ox.CertificateInvalid, match="second list"):
        check_certificate(log, there, exact([1, 1]), 1, reverse=back)
    # A side is not needed: the ray is known without it.
    check_certificate({0: replace(log[0], label=None)}, there, exact([1, 1]), 2, reverse=back)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"tolerance": None}, "promises no fact 'ray'"),
        ({"tolerance": F(1, 10**9)}, "promises no fact 'ray'"),
        ({"slack": F(1, 10)}, "promises no fact 'ray'"),
        ({"distance": "l1"}, "not level"),
        ({"distance": "lp:1.5"}, "not level"),
        ({"explanation": exact([1, 1e-9])}, "not level"),
        ({"explanation": exact([0, 0])}, "not level"),
    ],
)
def test_a_ray_needs_an_exact_step_and_a_vector_level_with_it(change: dict, says: str) -> None:
    good = Answer(exact([0, 0]), -1, exact([1, 0]), "l2", F(0))
    term = Term("ray", F(1), 0, vector=exact([0, 1]))
    assert fact_of({0: good}, term).left == [0, 1, 0]
    with pytest.raises(ox.CertificateInvalid, match=says):
        fact_of({0: replace(good, **change)}, term)


@pytest.mark.parametrize(
    "norm",
    [
        ox.l2,
        ox.Weighted(ox.l2, [1.0, 2.0, 4.0]),
        ox.Mahalanobis([[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 1.0]]),
        ox.GroupNorm([[0, 1], [2]]),
        ox.Weighted(ox.GroupNorm([[0, 1], [2]]), [1.0, 2.0, 4.0]),
    ],
)
def test_level_vectors_are_those_that_every_normal_in_the_cone_is_orthogonal_to(norm: ox.Norm) -> None:
    """A second opinion by the norm's own normal cone: its values and its open directions."""
    levels = 0
    for w, d in itertools.product(itertools.product([-1.0, 0.0, 2.0], repeat=3), repeat=2):
        if not any(w):
            assert not is_level(norm.spec, exact(w), exact(d))
            continue
        cone = norm.normal_cone(np.array(w))
        products = [cone.values @ d, *(cone.direction(k) @ d for k in range(cone.size))]
        level, orthogonal = is_level(norm.spec, exact(w), exact(d)), max(map(abs, products)) < 1e-9
        levels += level and any(d)
        assert level == orthogonal if norm.is_smooth else orthogonal or not level  # groups may cancel each other out
    assert levels > 20


@pytest.mark.parametrize(
    ("spec", "step", "normal"),
    [
        ("l2", [1, 2], [1, 2]),
        ({"norm": "weighted", "base": "l2", "weights": [2.0, 3.0]}, [1, 1], [4, 9]),
        ({"norm": "mahalanobis", "matrix": [[2.0, 1.0], [1.0, 3.0]]}, [1, 1], [3, 4]),
        ({"norm": "dual-mahalanobis", "matrix": [[2.0, 1.0], [1.0, 3.0]]}, [3, 4], [1, 1]),
        ({"norm": "group", "groups": [[0, 1]]}, [1, 2], [1, 2]),
        ({"norm": "group-max", "groups": [[0], [1]]}, [2, 2], [1, 5]),
        ({"norm": "weighted", "base": {"norm": "group", "groups": [[0, 1]]}, "weights": [1.0, 2.0]}, [1, 2], [1, 8]),
        ({"norm": "facets", "facets": [[1, 0], [-1, 0], [0, 1], [0, -1]]}, [3, 2], [7, 0]),
        ("l1", [1, 0], [2, 1]),
        ("linf", [1, -1], [2, -7]),
    ],
)
def test_models_of_exact_answers_are_decided_although_lengths_are_irrational(
    spec: object, step: list, normal: list
) -> None:
    find = Finder()
    a = exact(normal)
    log = {0: Answer(exact([0, 0]), None, exact(step), spec, F(0))}
    offset = sum((u * v for u, v in zip(a, exact(step), strict=True)), F(0))
    check_witness(log, a, offset, lengths=find)
    check_witness({0: replace(log[0], label=-1)}, a, offset, lengths=find.lengths)
    check_witness(log, [-v for v in a], -offset, lengths=Finder())
    slack = {0: replace(log[0], slack=F(1, 4), label=-1)}
    if "group" not in str(spec):  # whose lengths are sums of roots: there a little more than enough is asked
        check_witness(slack, a, offset * F(4, 5), lengths=find)
    check_witness(slack, a, offset * (F(4, 5) + F(1, 10**20)), lengths=find)
    with pytest.raises(ox.CertificateInvalid, match="would not have given"):
        check_witness(slack, a, offset * F(4, 5) - F(1, 10**30), lengths=find)
    with pytest.raises(ox.CertificateInvalid, match="would not have given"):
        check_witness(log, a, offset + F(1, 10**30), lengths=find)
    with pytest.raises(ox.CertificateInvalid, match="another label"):
        check_witness({0: replace(log[0], label=1)}, a, offset, lengths=find)
    turned = [a[0] + F(1, 10**30) * a[1], a[1] - F(1, 10**30) * a[0]] if spec not in ("l1", "linf") else [a[1], -a[0]]
    if isinstance(spec, dict) and spec["norm"] in ("group-max", "facets"):
        turned = [a[1] - 1, a[0] - 9]
    with pytest.raises(ox.CertificateInvalid, match="would not have given"):
        check_witness(log, turned, turned[0] * exact(step)[0] + turned[1] * exact(step)[1], lengths=find)


def test_groups_of_several_are_aligned_one_by_one() -> None:
    spec = {"norm": "group", "groups": [[0, 1], [2, 3], [4]]}
    w = exact([3, 4, 0, 10, 0])
    assert is_aligned(spec, w, exact([6, 8, 0, 10, -10]))
    for wrong in ([6, 8, 0, 10, -11], [6, 8, 0, 9, 0], [6, 7, 0, 10, 0], [-6, -8, 0, 10, 0], [6, 8, 0, -10, 0]):
        assert not is_aligned(spec, w, exact(wrong))
