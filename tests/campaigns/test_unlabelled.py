"""Honest logs without any label: none is contradictory, and verdicts hold for every consistent model, up to swapping."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import overexplain as ox
from campaigning import Tally, asked_on_the_plane, assumed_point, campaign, check_verdicts, honest_log, opened, queries
from definition import Definition, Model, directions, exact, models

GOAL = "honest"
KINDS = ("plain", "plain", "robust", "same", "secret", "valid", "tolerant", "slack", "unknown")
SIMPLE = ("l1", "l2", "linf", "weighted l1", "polyhedral", "mahalanobis")


def case(seed: int, tally: Tally) -> None:
    rng = np.random.default_rng([seed, 5])
    flat = bool(rng.random() < 0.4)
    by_hand = seed % 3 == 0
    flat = flat or by_hand
    made = (
        asked_on_the_plane(seed)
        if by_hand
        else honest_log(
            seed,
            KINDS,
            2 if flat or rng.random() < 0.6 else 3,
            unlabelled=1.0,
            labels=0,
            on_plane=0.5,
            **({"names": SIMPLE} if flat else {}),
        )
    )
    known = Definition(made.log)
    knowledge = opened(seed, tally, made, known)
    if knowledge is None:
        return
    points = queries(made, 8)
    verdicts = knowledge.certify(points)
    a, b = made.model
    found: list[Model] = [m for m in ((a, b), (tuple(-v for v in a), -b)) if known.judge(*m)]
    if flat:
        exactly = [exact(q) for q in points[:4].tolist()]
        normals = directions(known.rows, exactly, 1)
        some = rng.choice(len(normals), min(6, len(normals)), replace=False)
        found += models(known, exactly, [normals[int(k)] for k in some])
        found += [(tuple(-v for v in m[0]), -m[1]) for m in found if known.judge(tuple(-v for v in m[0]), -m[1])]
    tally.add("models", len(found))
    check_verdicts(seed, tally, made.log, verdicts, found, assumed_point(knowledge))


def test_honest_logs_without_labels_are_not_contradicted() -> None:
    assert campaign(case, 60).counts[GOAL] > 30


def test_a_question_on_the_plane_has_no_mirror_image() -> None:
    """5 → 0 exact and 0 → 1 merely valid: a = −1, b = 0 is consistent, the swapped model is not."""
    log = ox.QueryLog()
    log.add_explanation([5.0], [0.0], mechanism=ox.Mechanism("l1", tolerance=0.0))
    log.add_explanation([0.0], [1.0], mechanism=ox.Mechanism("l1", tolerance=0.0, slack=None))
    known = Definition(log)
    one = Fraction(1)
    assert (known.judge((-one,), 0 * one), known.judge((one,), 0 * one)) == (True, False)
