"""Every certain verdict of a batch has a proof that the checker accepts, as has every contradiction; none is denied by a model."""

from __future__ import annotations

import numpy as np

import overexplain as ox
from campaigning import (
    PATIENCE,
    Honest,
    Tally,
    assumed_point,
    campaign,
    check_verdicts,
    honest_log,
    opened,
    queries,
    shown,
)
from definition import Definition, Model, directions, exact, models
from overexplain.errors import CertificateInvalid, InconsistentLog, SolverFailed

GOAL = "certain verdicts"
FLAT = ("l1", "l2", "linf", "weighted l1", "weighted linf", "polyhedral", "facets", "mahalanobis")
POINTS = 12


def case(seed: int, tally: Tally) -> None:
    rng = np.random.default_rng([seed, 11])
    flat = bool(seed % 2)
    made = honest_log(seed, most_features=2 if flat else 4, **({"names": FLAT} if flat else {}))
    if seed % 5 == 0:
        _contradicted(seed, tally, made, rng)
        return
    known = Definition(made.log)
    knowledge = opened(seed, tally, made, known)
    if knowledge is None:
        return
    verdicts = knowledge.certify(queries(made, POINTS))
    found: list[Model] = [made.model] if known.judge(*made.model) else []
    if flat:
        points = [exact(q) for q in verdicts.points[:5].tolist()]
        normals = directions(known.rows, points, 1)
        found += models(
            known, points, [normals[int(k)] for k in rng.choice(len(normals), min(8, len(normals)), replace=False)]
        )
    check_verdicts(seed, tally, made.log, verdicts, found, assumed_point(knowledge))
    tally.add("models", len(found))
    for i in range(len(verdicts)):
        if verdicts[i] in (ox.Verdict.UNKNOWN, ox.Verdict.UNDECIDED):
            continue
        tally.add(GOAL)
        try:
            verdicts.proof(i).verify(made.log)
            tally.add("proved")
        except SolverFailed:
            tally.add("without a proof")
        except CertificateInvalid as error:
            tally.fail(seed, f"the proof at {verdicts.points[i].tolist()} does not hold ({error}): {shown(made.log)}")


def _contradicted(seed: int, tally: Tally, made: Honest, rng: np.random.Generator) -> None:
    """An honest log and an answer that is not: if the library says that no model fits, its proof holds and none is found."""
    log = made.log
    p = log.points.shape[1]
    label = rng.integers(-6, 7, p).astype(float)
    log.add_label(label, -int(made.plane.label(label)))
    known = Definition(log)
    try:
        ox.Knowledge(log, time_limit=PATIENCE, threads=1)
        tally.add("spoilt, not contradictory")
        return
    except InconsistentLog as error:
        tally.add("contradictions")
        tally.add(GOAL)
        if error.proof is None:
            tally.add("contradictions without a proof")
        else:
            try:
                error.proof.verify(log)
            except CertificateInvalid as why:
                tally.fail(seed, f"the proof of a contradiction does not hold ({why}): {shown(log)}")
    if p <= 2:
        normals = directions(known.rows, [], 2)
        for model in models(
            known, [], [normals[int(k)] for k in rng.choice(len(normals), min(12, len(normals)), replace=False)]
        ):
            tally.fail(seed, f"a contradiction, but {model} is consistent: {shown(log)}")
            return


def test_certain_verdicts_have_proofs() -> None:
    tally = campaign(case, 21)
    assert tally.counts[GOAL] > 50
    assert tally.counts["contradictions"] >= 1
