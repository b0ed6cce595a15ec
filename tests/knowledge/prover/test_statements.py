"""Answers without any tolerance, with a domain, of an unknown distance or without a side: linear facts, and nothing undecided."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import overexplain as ox
from definition import Definition, exact
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.checker import fact_of
from overexplain.knowledge.evidence import Finder
from overexplain.knowledge.prover.blocks import blocks_of
from overexplain.knowledge.prover.contradictions import contradiction_of, named
from overexplain.knowledge.prover.statements import Stated, read_statements
from overexplain.knowledge.verdicts import Verdict
from prover_logs import column_values, seeds

PLANES = {
    "l1": [(4.0, 1.0, -3.0), (-2.0, 2.0, 1.0), (1.0, 0.0, 1.0), (0.5, -8.0, 8.0)],
    "linf": [(1.0, 2.0, -1.0), (4.0, 0.0, 0.0), (0.0, 1.0, 3.0), (0.5, -0.25, 0.25)],
    "l2": [(0.0, 4.0, 0.0), (0.0, 1.0, -1.0), (2.0, 0.0, 2.0), (0.5, 0.0, 0.0)],
}
"""Normals for which the nearest point across has few binary digits: nothing is rounded."""


def nearest(name: str, normal: np.ndarray, offset: float, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    gap = offset - normal @ x
    if name == "l2":
        return x + gap / (normal @ normal) * normal
    if name == "linf":
        return x + gap / np.abs(normal).sum() * np.sign(normal)
    i = rng.choice(np.flatnonzero(np.abs(normal) == np.abs(normal).max()))
    return x + gap / normal[i] * np.eye(len(x))[i]


def exact_log(seed: int, name: str, slack: float = 0.0) -> tuple[ox.QueryLog, np.ndarray, np.ndarray, float]:
    """(labels and answers without tolerance, points to ask about, the plane)."""
    rng = np.random.default_rng([seed, 77])
    normal = np.array(PLANES[name][int(rng.integers(4))])
    kind = str(rng.choice(["grid", "flags", "onehot"]))
    X = column_values(rng, kind, int(rng.integers(2, 7)), 3)
    offset = float(rng.integers(-2, 5)) / 2
    log = ox.QueryLog()
    terms = ox.Mechanism(name, tolerance=0.0, slack=slack)
    images = []
    for k, x in enumerate(X):
        label = 1 if normal @ x >= offset else -1
        image = nearest(name, normal, offset, x, rng)
        if slack:
            image = x + (image - x) * (1 + slack / 2)
        if k % 3 == 2:
            log.add_label(x, label)
        elif label > 0 or (image != x).any():
            log.add_explanation(x, image, label=label, mechanism=terms)
            images.append(image)
    own = np.vstack([log.points, *(image[None] for image in images)])
    pairs = own[rng.integers(len(own), size=(6, 2))]
    between = [pairs.mean(axis=1), 2 * pairs[:, 0] - pairs[:, 1]]
    asked = np.vstack([column_values(rng, kind, 8, 3), own, *between, rng.standard_normal((4, 3))])
    return log, asked, normal, offset


@pytest.mark.parametrize("slack", [0.0, 0.5])
@pytest.mark.parametrize("name", ["l1", "linf", "l2"])
def test_nothing_is_undecided_without_a_tolerance(name: str, slack: float) -> None:
    decided = 0
    for seed in seeds(12):
        log, asked, normal, offset = exact_log(seed, name, slack)
        definition = Definition(log)
        assert definition.judge(exact(normal), Fraction(offset)) is not False, seed
        verdicts = ox.Knowledge(log, threads=1).certify(asked)
        said = np.where(asked @ normal >= offset, 1, -1)
        for i, code in enumerate(verdicts.codes.tolist()):
            assert code in (said[i], Verdict.UNKNOWN, Verdict.BOUNDARY) or (name == "l2" and slack), (seed, i, code)
            if code == Verdict.UNDECIDED:
                continue
            proof: Any = verdicts.proof(i)
            proof.verify(log)
            decided += 1
            if code == Verdict.UNKNOWN:
                for model in (proof.yes, proof.no):
                    assert definition.judge(model.normal, model.offset) is not False, (seed, i)
            if code == Verdict.BOUNDARY:
                assert asked[i] @ normal == offset
    assert decided > 100


@pytest.mark.parametrize("name", ["l1", "linf", "l2", "weighted l1", "weighted linf", "mahalanobis"])
def test_what_is_stated_follows_from_the_checkers_own_facts(name: str) -> None:
    """A form is the sum of its terms' left sides, and their right sides add up to 0 or more for every length."""
    stated = 0
    for seed in seeds(10):
        rng = np.random.default_rng([seed, 78])
        terms: Any = name
        if name.startswith("weighted"):
            terms = {"norm": "weighted", "base": name.split()[1], "weights": rng.uniform(0.3, 3.0, 3).tolist()}
        elif name == "mahalanobis":
            terms = {"norm": "mahalanobis", "matrix": (np.eye(3) + 0.25).tolist()}
        log = ox.QueryLog()
        for _ in range(3):
            x, w = rng.standard_normal((2, 3)) * rng.integers(0, 2, (2, 3))
            if w.any():
                slack = float(rng.choice([0.0, 0.5]))
                mechanism = ox.Mechanism(terms, tolerance=0.0, slack=slack)
                log.add_explanation(x, x + w, label=int(rng.choice([1, -1])), mechanism=mechanism)
        answers = answers_of(log)
        blocks = blocks_of(log, log.labels, None) if len(log) else None
        for one in read_statements(blocks, answers).stated if blocks else ():
            for sign, found in ((1, one.plus), (-1, one.minus)):
                if found:
                    check_terms(answers, one, sign, found)
                    stated += 1
    assert stated > 20


def check_terms(answers: Any, one: Stated, sign: int, terms: Any) -> None:
    left = [Fraction(0)] * len(one.left)
    rights: dict[str, Fraction] = {}
    for term in terms:
        fact = fact_of(answers, term, Finder())
        left = [a + term.weight * v for a, v in zip(left, fact.left, strict=True)]
        for length, factor in fact.rights:
            rights[repr(length)] = rights.get(repr(length), Fraction(0)) + term.weight * factor
    assert left == [sign * v for v in one.left]
    assert all(value >= 0 for value in rights.values())
    assert not one.is_strict or any(value > 0 for value in rights.values())


def test_contradictions_with_lengths_name_rows_none_of_which_can_be_spared() -> None:
    found = 0
    for seed in seeds(60):
        rng = np.random.default_rng([seed, 79])
        name = str(rng.choice(["l1", "linf", "l2"]))
        plane = ox.Hyperplane(rng.standard_normal(3), 0.3)
        log = ox.QueryLog()
        X = rng.standard_normal((5, 3))
        service = ox.ModelOracle(plane, name)
        images = np.asarray(service.explain(X))
        images[2] += 0.1 * rng.standard_normal(3)  # one answer is not what it should be
        log.add_explanation(X, images, label=plane.labels(X), mechanism=ox.Mechanism(name))
        with pytest.raises(ox.InconsistentLog) as raised:
            ox.Knowledge(log, threads=1)
        raised.value.proof.verify(log)
        blocks = blocks_of(log, log.labels, None)
        assert blocks
        proof = contradiction_of(blocks, answers_of(log), Finder())
        if proof is None:
            continue
        found += 1
        rows, is_least = named(proof[0]), proof[1]
        assert is_least
        for row in rows:
            fewer = ox.QueryLog()
            for k in rows:
                if k != row:
                    fewer.add_explanation(X[k], images[k], label=int(plane.label(X[k])), mechanism=ox.Mechanism(name))
            assert not len(fewer) or ox.Knowledge(fewer, threads=1).is_consistent, (seed, row)
    assert found > 40


def test_a_yes_up_to_swapping_is_strict() -> None:
    """A log without labels: on the plane of some models a point is Yes either way round, and so not what the row is."""
    log = ox.QueryLog()
    terms = ox.Mechanism("linf", tolerance=0.0)
    log.add_explanation([0.0, 0.0], [1.0, 1.0], mechanism=terms)
    knowledge = ox.Knowledge(log, threads=1)
    assert not knowledge.oriented
    verdicts = knowledge.certify([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [-1.0, -1.0], [2.0, 2.0], [2.0, 0.0]])
    assert verdicts.codes.tolist() == [1, 0, 2, 1, -1, 0]
    for i in range(6):
        verdicts.proof(i).verify(log)


def test_a_point_on_every_plane_is_not_decided_by_rounding() -> None:
    """Answers among floats whose products are rounded: they lie on the plane, and so do points between them."""
    for seed in seeds(20):
        rng = np.random.default_rng([seed, 80])
        answers = rng.integers(-8, 9, (3, 4)) / 8 + rng.integers(0, 3, (3, 4)) * 2.0**-40
        log = ox.QueryLog()
        for image in answers:
            log.add_explanation(image, image, label=1, mechanism=ox.Mechanism(None, tolerance=0.0))
        log.add_label(answers.mean(axis=0) + 5.0, 1)
        asked = np.vstack(
            [(answers[0] + answers[1]) / 2, 2 * answers[1] - answers[2], answers[0] * 0.5 + answers[2] * 0.5]
        )
        verdicts = ox.Knowledge(log, threads=1).certify(asked)
        assert (verdicts.codes == Verdict.BOUNDARY).all(), (seed, verdicts.codes)
        for i in range(3):
            verdicts.proof(i).verify(log)
