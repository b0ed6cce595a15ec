"""What the campaigns share: random honest logs of every kind, and what is counted.

A campaign is a function of a seed: `case(seed, tally)` makes one log, asks the library about it, and checks what it says against
exact models (`definition`). The same seed always makes the same case. In the tests a few fixed seeds run; with SOAK=n, n times as
many new ones, printed if they fail; `benchmarks/campaigns.py` runs as many as are promised.
"""

from __future__ import annotations

import random
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

import dyadic
import overexplain as ox
from conftest import SOAK
from definition import Definition, Model, exact
from exact_balls import ZERO, Surd, ball_of, compare, dot
from overexplain.errors import InconsistentLog
from strategies import NORMS, make_norm

KINDS = ("plain", "robust", "same", "secret", "tolerant", "slack", "valid", "unknown")
"""What an explanation promises: an optimum; a robust one, of another norm or of the distance itself; …"""

PATIENCE = 1.0
"""Seconds for the exact step: what takes longer is UNDECIDED, and counted."""


@dataclass
class Tally:
    """What a campaign has counted so far, and what it found false."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, name: str, number: int = 1) -> None:
        self.counts[name] += number

    def fail(self, seed: int, what: str) -> None:
        self.failures.append(f"seed {seed}: {what}")


Case = Callable[[int, Tally], None]


def campaign(case: Case, cases: int) -> Tally:
    """A few fixed cases, or SOAK times as many new ones; fails with the seeds of what is false."""
    first = secrets.randbelow(2**40) if SOAK else 0
    tally = Tally()
    for seed in range(first, first + cases * (SOAK or 1)):
        case(seed, tally)
    assert not tally.failures, "\n".join(tally.failures[:20])
    return tally


# --- honest logs ------------------------------------------------------------------------------------------------------


@dataclass
class Honest:
    """A log and the model that gave its answers."""

    log: ox.QueryLog
    plane: ox.Hyperplane
    rng: np.random.Generator

    @property
    def model(self) -> Model:
        return exact(self.plane.normal), Fraction(float(self.plane.offset))


def numbers(rng: np.random.Generator, shape: Any, small: bool) -> np.ndarray:
    """Whole numbers and halves, with ties and zeros, or any floats."""
    if small:
        return rng.integers(-6, 7, shape) / rng.choice([1, 1, 2])
    return rng.normal(size=shape) * 3


def drawn_plane(rng: np.random.Generator, p: int, small: bool) -> ox.Hyperplane:
    if small and rng.random() < 0.5:
        return dyadic.model(
            random.Random(int(rng.integers(2**31))), p
        )  # its plane has points in small numbers, exactly
    normal = numbers(rng, p, small)
    if not normal.any():
        normal[rng.integers(p)] = 1.0
    offset = float(numbers(rng, (), small)) if rng.random() < 0.8 else 0.0
    return ox.Hyperplane(normal, offset)


def drawn_norm(rng: np.random.Generator, p: int, small: bool, names: Sequence[str] = NORMS) -> ox.Norm:
    """One of all norms; its numbers are small dyadic ones if `small`."""
    name, seed = str(rng.choice(names)), int(rng.integers(1000))
    if not small:
        return make_norm(name, p, seed, 0.5)
    if name.startswith("weighted "):
        base = name.removeprefix("weighted ")
        return ox.Weighted(drawn_norm(rng, p, small, [base]), rng.choice([0.5, 1.0, 2.0], p))
    if name == "mahalanobis":
        factor = rng.integers(-1, 2, (p, p)).astype(float)
        return ox.Mahalanobis(factor @ factor.T + np.eye(p))
    if name in ("polyhedral", "facets"):
        rows = np.vstack([np.eye(p), rng.integers(-2, 3, (2, p)) / 2])
        rows = np.unique(np.vstack([rows, -rows])[np.vstack([rows, -rows]).any(axis=1)], axis=0)
        return ox.Polyhedral(rows) if name == "polyhedral" else ox.Polyhedral(rows).dual
    return make_norm(name, p, seed, 0.5)


def terms_of(
    kind: str, rng: np.random.Generator, p: int, small: bool, names: Sequence[str] = NORMS
) -> tuple[ox.Mechanism, ox.Mechanism]:
    """(the terms by which optima are made, the published ones)."""
    if (
        p > 2 and kind in ("robust", "same", "secret") and rng.random() < 0.8
    ):  # a linear program for every length is slow
        names = [name for name in names if name not in ("polyhedral", "facets")] or names
    norm = drawn_norm(rng, p, small, names)
    tolerance = [None, 0.0][int(rng.random() < 0.3)] if small else None
    radius = float(rng.choice([0.5, 1.0, 2.0, 64.0])) if small else float(10 ** rng.uniform(-2, 2))
    if kind in ("robust", "same", "secret"):
        ball = norm if kind == "same" or (kind == "secret" and rng.random() < 0.5) else drawn_norm(rng, p, small)
        made = ox.Mechanism(norm, ball, radius, tolerance)
        return made, ox.Mechanism(norm, ball, None, tolerance) if kind == "secret" else made
    made = ox.Mechanism(norm, tolerance=tolerance)
    if kind == "tolerant":
        return made, ox.Mechanism(norm, tolerance=float(rng.choice([2.0**-40, 2.0**-10, 0.25, 0.5, 1.0])))
    if kind == "slack":
        slack = float(rng.choice([2.0**-20, 0.25, 0.5, 1.0]))
        return made, ox.Mechanism(
            norm, tolerance=float(rng.choice([0.0, 0.25])) if rng.random() < 0.3 else tolerance, slack=slack
        )
    if kind == "valid":
        known = norm if rng.random() < 0.7 else None
        return made, ox.Mechanism(
            known, tolerance=0.25 if known is not None and rng.random() < 0.3 else tolerance, slack=None
        )
    if kind == "unknown":
        return made, ox.Mechanism(None, tolerance=0.0, slack=float(rng.choice([0.0, 0.0, 0.5])))
    return made, made


def answers(
    plane: ox.Hyperplane, made: ox.Mechanism, published: ox.Mechanism, x: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """What an honest service answers: an optimum, moved by no more than the tolerance, stretched by no more than the slack."""
    service = ox.ModelOracle(plane, made, ties=str(rng.choice(["first", "random"])), rng=rng)  # type: ignore[arg-type]
    z = np.asarray(service.explain(x))
    if published.slack is None:
        z = x + (z - x) * (1 + rng.choice([0.0, 0.5, 2.0]) + 2.0**-30)
    elif published.slack:
        z = x + (z - x) * (1 + published.slack * rng.choice([0.0, 0.5, 0.98]))
    if published.tolerance and published.distance is not None:
        way = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], x.shape) if rng.random() < 0.5 else rng.normal(size=x.shape)
        lengths = np.maximum(np.asarray(published.distance(way)).reshape(-1, 1), 1e-9)
        z = z + way / lengths * published.tolerance * rng.choice([0.0, 0.5, 0.9, 0.99])
    return z


def honest_log(
    seed: int,
    kinds: Sequence[str] = KINDS,
    most_features: int = 3,
    unlabelled: float = 0.2,
    names: Sequence[str] = NORMS,
    labels: int = 3,
    explained: int | None = None,
    on_plane: float = 0.15,
) -> Honest:
    """A log of some labels and some explanations, of one kind or of several."""
    rng = np.random.default_rng([seed, 19])
    p, small = int(rng.integers(1, most_features + 1)), bool(rng.random() < 0.6)
    plane = drawn_plane(rng, p, small)
    log = ox.QueryLog()
    count = int(rng.integers(1, p + 2)) if explained is None else explained
    made, published = terms_of(str(rng.choice(kinds)), rng, p, small, names)
    first = {published: made}
    for _ in range(count):
        if rng.random() < 0.15:
            made, published = terms_of(str(rng.choice(kinds)), rng, p, small, names)
            made = first.setdefault(published, made)  # a secret radius is one for all rows with the same terms
        label: Any = None if rng.random() < unlabelled else 1
        if small and published.is_plain and published.slack == 0 and not published.tolerance and rng.random() < 0.5:
            # Optima in dyadic numbers, exactly.
            exactly = random.Random(int(rng.integers(2**31)))
            plane_ok = (np.abs(plane.normal) == 1).any()
            norm = published.distance
            base = norm.norm if isinstance(norm, ox.Weighted) else norm
            if plane_ok and (norm is None or base in (ox.l1, ox.l2, ox.linf)):
                x, z = dyadic.explained(plane, ox.l1 if norm is None else norm, exactly)
                log.add_explanation(x, z, label and int(plane.label(x)), published)
                continue
        x = numbers(rng, (1, p), small)
        if small and rng.random() < on_plane and (np.abs(plane.normal) == 1).any():
            x = dyadic.on_plane(plane, random.Random(int(rng.integers(2**31))))[None, :]
        z = answers(plane, made, published, x, rng)
        log.add_explanation(x[0], z[0], label and int(plane.label(x[0])), published)
    if labels:
        points = numbers(rng, (int(rng.integers(0, labels + 1)), p), small)
        if len(points):
            log.add_label(points, plane.labels(points))
    return Honest(log, plane, rng)


def asked_on_the_plane(seed: int) -> Honest:
    """Few exact answers in small numbers, some to questions on the plane itself: these are Yes, whichever way round."""
    rng = np.random.default_rng([seed, 6])
    p = int(rng.integers(1, 3))
    plane = ox.Hyperplane(rng.choice([-1.0, 1.0], p), float(rng.integers(-2, 3)))
    log = ox.QueryLog()
    norm = ox.norm(str(rng.choice(["l1", "linf"])))
    for k in range(int(rng.integers(2, 4))):
        radius = float(rng.integers(0, 3))
        valid = bool(rng.random() < 0.3)
        terms = ox.Mechanism(norm, norm if radius else None, radius, 0.0, None if valid else 0.0)
        x = (
            dyadic.on_plane(plane, random.Random(int(rng.integers(2**31))))
            if k
            else rng.integers(-4, 5, p).astype(float)
        )
        service = ox.ModelOracle(plane, ox.Mechanism(norm, norm, radius) if radius else ox.Mechanism(norm))
        z = service.explain(x)
        if valid:
            z = z - int(plane.label(x)) * norm.maximizer(plane.normal)
        log.add_explanation(x, z, None, terms)
    return Honest(log, plane, rng)


def queries(made: Honest, count: int) -> np.ndarray:
    """Points to ask about: any, those of the log, points between and beyond them, points on the true plane or close to it."""
    rng, log, p = made.rng, made.log, made.plane.dimension
    own = np.vstack([log.points, log.explanations[log.explained]]) if len(log.explained) else np.array(log.points)
    found = [numbers(rng, (count, p), True), numbers(rng, (count, p), False), own]
    pairs = own[rng.integers(len(own), size=(count, 2))]
    found.append(pairs[:, 0] + rng.choice([0.5, 2.0, -1.0, 0.25], (count, 1)) * (pairs[:, 1] - pairs[:, 0]))
    normal = made.plane.normal
    base = numbers(rng, (count, p), False)
    foot = base - ((base @ normal - made.plane.offset) / (normal @ normal))[:, None] * normal
    found.append(foot + (rng.choice([-1.0, 1.0], count) * 10 ** rng.uniform(-10, -1, count))[:, None] * normal)
    points = np.vstack(found)
    return points[rng.choice(len(points), min(count, len(points)), replace=False)]


# --- what may not be said ---------------------------------------------------------------------------------------------


def says(model: Model, q: Sequence[float]) -> Fraction:
    """a·q − b."""
    return dot(model[0], exact(q)) - model[1]


def denied(verdict: int, model: Model, q: Sequence[float], opposite: Sequence[float] | None = None) -> bool:
    """True if a consistent model contradicts a verdict. Up to swapping: Yes means the label of the point `opposite`."""
    value = says(model, q)
    if verdict == ox.Verdict.BOUNDARY:
        return value != 0
    if verdict not in (ox.Verdict.YES, ox.Verdict.NO):
        return False
    yes = value >= 0
    if opposite is not None:
        yes = yes == (says(model, opposite) >= 0)
    return yes != (verdict == ox.Verdict.YES)


def holds(fact: Any, model: Model, reach: Fraction, p: int) -> bool:
    """False if a fact of the checker is certainly false of the model."""
    value = dot(fact.left, (*model[0], model[1]))
    least = ZERO
    for length, factor in fact.rights:
        if isinstance(length, dict) and length["norm"] == "secret":
            least += factor * reach
            continue
        low, high = ball_of(length, p).dual(model[0])
        if len(fact.rights) == 1:  # exactly, where it can be
            end = low if factor > 0 else high
            return compare(Surd(value), Surd(factor * end.q, factor * abs(factor) * end.r)) >= 0
        least += factor * (low.bounds()[0] if factor > 0 else high.bounds()[1])
    return value > 0 if fact.is_strict and not fact.rights else value >= least


def shown(log: ox.QueryLog) -> str:
    """A log in a line that can be pasted."""
    rows = []
    for row in log:
        image = None if row.explanation is None else row.explanation.tolist()
        rows.append(
            f"({row.point.tolist()}, {row.label}, {image}, {None if row.mechanism is None else row.mechanism.to_dict()})"
        )
    return "[" + ", ".join(rows) + "]"


def from_rows(rows: Iterable[tuple[Any, Any, Any, Any]]) -> ox.QueryLog:
    """The log that `shown` wrote."""
    log = ox.QueryLog()
    for point, label, image, terms in rows:
        if image is None:
            log.add_label(point, label)
        else:
            log.add_explanation(point, image, label, None if terms is None else ox.Mechanism.from_dict(terms))
    return log


def assumed_point(knowledge: ox.Knowledge) -> np.ndarray | None:
    """The explained point whose label was assumed, if one was."""
    assumed = knowledge._known.sides.assumed
    return None if not assumed else np.array(knowledge.log.points[assumed[0][0]])


def check_verdicts(
    seed: int,
    tally: Tally,
    log: ox.QueryLog,
    verdicts: Any,
    models: Sequence[Model],
    opposite: np.ndarray | None = None,
) -> None:
    """Certain verdicts against consistent models."""
    for q, code in zip(verdicts.points.tolist(), verdicts.codes.tolist(), strict=True):
        tally.add(ox.Verdict(code).name)
        for model in models:
            if denied(code, model, q, None if opposite is None else opposite.tolist()):
                tally.fail(seed, f"{ox.Verdict(code).name} at {q} is denied by {model}, log {shown(log)}")
                break


def opened(seed: int, tally: Tally, made: Honest, known: Definition, **settings: Any) -> ox.Knowledge | None:
    """What the library makes of an honest log; a contradiction fails if the true model is consistent."""
    truth = known.judge(*made.model)
    tally.add({True: "honest", False: "not honest", None: "honesty not told"}[truth])
    if truth is False and all(row.mechanism is None or row.mechanism.tolerance is None for row in made.log):
        tally.fail(seed, f"answers within float64 rounding are not: {made.model}, {shown(made.log)}")
    if truth is False:
        return None
    try:
        return ox.Knowledge(made.log, time_limit=PATIENCE, threads=1, **settings)
    except InconsistentLog as error:
        if truth:
            tally.fail(seed, f"contradiction, but {made.model} is consistent: {shown(made.log)} ({error})"[:2000])
        else:
            tally.add("contradictory, not told")
        return None
