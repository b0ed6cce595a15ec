"""Services over whole numbers, flags, one-hot groups and boxes: no certain verdict is denied by any model that answers the same.

For every log all models with small whole numbers are tried. Those for which the same service gives the same answers are consistent;
where the domain is finite, so are those for which, by enumeration, the answer is a cheapest reachable point across.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

import overexplain as ox
from campaigning import PATIENCE, Tally, campaign, check_verdicts, holds, says, shown
from definition import Definition, Model, exact
from exact_balls import ONE, ZERO
from overexplain.errors import CertificateInvalid, InconsistentLog, SolverFailed
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.checker import Term, fact_of
from overexplain.knowledge.evidence import Finder
from overexplain.oracles.constrained import Boxed, Immutable, Monotone, OneHot, Sparse
from overexplain.oracles.degraded import Rounded
from overexplain.oracles.silent import OneSided

GOAL = "logs"
KINDS = ("one-hot", "flags", "mixed", "boxed", "immutable", "monotone", "sparse")
OFFSETS = [Fraction(k, 2) for k in range(-7, 8)]


@dataclass
class Service:
    """How to make the service for a model, the points to ask, and, if they are finitely many, the valid inputs."""

    made: Callable[[ox.Hyperplane], Any]
    asked: np.ndarray
    points: list[tuple[int, ...]] | None
    distance: ox.Norm
    frozen: tuple[int, ...] = ()


def drawn(rng: np.random.Generator, kind: str) -> Service:
    p = int(rng.integers(2, 4))
    weights = rng.choice([0.5, 1.0, 2.0], 5)
    base = str(rng.choice(["l1", "linf"]))
    rounded, one_sided = bool(rng.random() < 0.25), bool(rng.random() < 0.15)

    def around(service: Any) -> Any:
        service = Rounded(service, 1) if rounded else service
        return OneSided(service, -1) if one_sided else service

    def norm(size: int, names: tuple[str, ...] = ()) -> ox.Norm:
        plain = ox.norm(str(rng.choice(names)) if names else base)
        return plain if rng.random() < 0.5 else ox.Weighted(plain, weights[:size])

    if kind in ("one-hot", "flags", "mixed"):
        # whole numbers from 0 to 3 or flags, then a group of two or three, then a continuous feature if mixed
        whole = int(rng.integers(1, 3))
        group = 0 if kind == "flags" else int(rng.integers(2, 4)) if whole == 1 else 2
        smooth = int(kind == "mixed")
        top = 1 if kind == "flags" else 3
        p = whole + group + smooth
        distance = norm(p)
        groups = [list(range(whole, whole + group))] if group else []
        low = [0.0] * (p - smooth) + [-4.0] * smooth
        high = [float(top)] * whole + [1.0] * group + [4.0] * smooth
        frozen = (0,) if whole > 1 and rng.random() < 0.3 else ()
        change = [i for i in range(p) if i not in frozen]
        terms = ox.Mechanism(distance)

        def service(plane: ox.Hyperplane) -> Any:
            return around(OneHot(ox.ModelOracle(plane, terms), groups, range(whole), low, high, change))

        points = [
            (*w, *(int(i == k) for i in range(group)))
            for w in product(range(top + 1), repeat=whole)
            for k in range(group or 1)
        ]
        asked = np.array(points, dtype=float)[rng.integers(len(points), size=int(rng.integers(1, 5)))]
        if smooth:
            asked = np.column_stack([asked, np.round(rng.uniform(-4, 4, len(asked)), int(rng.integers(0, 3)))])
        return Service(service, asked, None if smooth or rounded else points, distance, frozen)
    distance = norm(p, ("l1", "l2", "linf"))
    terms = ox.Mechanism(distance)
    features = [int(i) for i in rng.choice(p, int(rng.integers(1, p)), replace=False)]

    def service(plane: ox.Hyperplane) -> Any:
        model = ox.ModelOracle(plane, terms)
        if kind == "boxed":
            return around(Boxed(model, -3.0, 3.0))
        if kind == "immutable":
            return around(Immutable(model, features))
        if kind == "monotone":
            return around(Monotone(model, increase=features))
        return around(Sparse(model, len(features)))

    return Service(service, rng.integers(-3, 4, (int(rng.integers(1, 5)), p)).astype(float), None, distance)


def told(service: Any, asked: np.ndarray) -> list[np.ndarray | None]:
    return [service.explain(x) for x in asked]


def same(one: list[Any], other: list[Any]) -> bool:
    return all(
        (u is None) == (v is None) and (u is None or np.array_equal(u, v)) for u, v in zip(one, other, strict=True)
    )


def is_cheapest(service: Service, model: Model, x: np.ndarray, z: np.ndarray) -> bool:
    """By enumeration: z is across and no reachable point across is cheaper. (Small numbers: floats are exact.)"""
    assert service.points is not None
    y = 1 if says(model, x.tolist()) >= 0 else -1
    if -y * says(model, z.tolist()) < 0:
        return False
    reachable = [u for u in service.points if all(u[i] == x[i] for i in service.frozen)]
    cost = float(service.distance(z - x))
    return all(-y * says(model, u) < 0 or float(service.distance(np.array(u) - x)) >= cost for u in reachable)


def family(
    rng: np.random.Generator, service: Service, labels: np.ndarray, answers: list[Any], tries: int
) -> Iterator[Model]:
    """Other models that give the same answers."""
    p = service.asked.shape[1]
    asked = [exact(x) for x in service.asked.tolist()]
    for _ in range(tries):
        a = tuple(Fraction(int(v)) for v in rng.integers(-2, 3, p))
        b = OFFSETS[int(rng.integers(len(OFFSETS)))]
        if not any(a) or any(
            (sum(u * v for u, v in zip(a, x, strict=True)) >= b) != (y > 0) for x, y in zip(asked, labels, strict=True)
        ):
            continue
        if (
            service.points is not None
            and all(
                z is not None and is_cheapest(service, (a, b), x, z)
                for x, z in zip(service.asked, answers, strict=True)
            )
        ) or same(told(service.made(ox.Hyperplane([float(v) for v in a], float(b))), service.asked), answers):
            yield a, b


def case(seed: int, tally: Tally) -> None:
    rng = np.random.default_rng([seed, 23])
    service = drawn(rng, KINDS[seed % len(KINDS)])
    p = service.asked.shape[1]
    normal = rng.integers(-2, 3, p).astype(float)
    normal[int(rng.integers(p))] = float(rng.choice([1, -1, 2]))
    offset = float(OFFSETS[int(rng.integers(len(OFFSETS)))])
    own = service.made(ox.Hyperplane(normal, offset))
    labels, answers = own.classify(service.asked), told(own, service.asked)
    log = ox.QueryLog(mechanism=own.mechanism)
    for x, y, z in zip(service.asked, labels, answers, strict=True):
        if z is None:
            log.add_label(x, int(y))
        else:
            log.add_explanation(x, z, None if rng.random() < 0.2 else int(y))
    true: Model = exact(normal), Fraction(offset)
    known = Definition(log)
    found = [true, *dict.fromkeys(family(rng, service, labels, answers, 150))]
    tally.add("logs")
    tally.add(f"logs, {KINDS[seed % len(KINDS)]}")
    tally.add("models", len(found))
    for model in found:
        if known.judge(*model) is False:
            tally.fail(seed, f"the definition refuses {model}, which answers the same: {shown(log)}")
            return
    _facts(seed, tally, log, found)
    try:
        knowledge = ox.Knowledge(log, time_limit=PATIENCE, threads=1)
    except InconsistentLog as error:
        tally.fail(seed, f"contradiction, but {true} gave these answers ({error}): {shown(log)}")
        return
    points = np.vstack([rng.integers(-3, 5, (6, p)).astype(float), rng.uniform(-4, 4, (4, p)), service.asked])
    if service.points is not None:
        points = np.vstack([points, np.array(service.points, dtype=float)[rng.integers(len(service.points), size=6)]])
    verdicts = knowledge.certify(points)
    check_verdicts(seed, tally, log, verdicts, found)
    for i in range(len(verdicts)):
        if verdicts[i] is not ox.Verdict.UNKNOWN or i % 4:
            continue
        try:
            proof = verdicts.proof(i)
        except SolverFailed:
            tally.add("UNKNOWN without a proof")
            continue
        for model in (proof.yes, proof.no):
            fits = known.judge(model.normal, model.offset)
            tally.add({True: "consistent", False: "not consistent", None: "not told"}[fits])
            if fits is False:
                tally.fail(seed, f"UNKNOWN by {model}, which is not consistent: {shown(log)}")


def _facts(seed: int, tally: Tally, log: ox.QueryLog, found: list[Model]) -> None:
    """What the checker grants the rows must hold for all of them."""
    answers, find, p = answers_of(log), Finder(), log.points.shape[1]
    for row in log.explained.tolist():
        for term in (
            Term("side", ONE, row),
            Term("flips", ONE, row),
            Term("steepest", ONE, row),
            Term("reach", ONE, row),
            Term("plane", ONE, row),
            Term("plane", ONE, row, sign=-1),
        ):
            for model in found:
                y = 1 if says(model, log.points[row].tolist()) >= 0 else -1
                try:
                    fact = fact_of(answers, term, find, {row: y} if log[row].label is None else None)
                except CertificateInvalid:
                    continue
                tally.add("facts")
                if not holds(fact, model, ZERO, p):
                    tally.fail(seed, f"{term} is false of {model}: {shown(log)}")
                    return


def test_no_verdict_is_denied_by_a_model_that_answers_the_same() -> None:
    assert campaign(case, 28).counts[GOAL] >= 28
