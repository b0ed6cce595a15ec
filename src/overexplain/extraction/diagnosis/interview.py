"""The questions of a diagnosis: few, valid, and chosen so that every kind of service shows itself.

The same question again (chance), explanations of explanations (how far behind the plane answers lie), a twin next to the
first question (answers from a list), a far point (does the margin grow with the distance?), points around, beyond and
close to the plane (directions, sides, bounds).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from overexplain.errors import DimensionMismatch, OverexplainError
from overexplain.extraction.box import Box, Where
from overexplain.extraction.job import Job
from overexplain.extraction.precision import visible_grid
from overexplain.extraction.session import Reply, ends_all
from overexplain.geometry.arrays import BoolArray, FloatArray
from overexplain.geometry.domain import Domain
from overexplain.geometry.norm import FLOAT64_ANSWER

Kind = Literal["search", "first", "repeat", "link", "twin", "far", "around", "beyond", "close"]

ECHO = "echo"
OUT = 1000
"""Some questions are scattered over so many steps of a grid that shows in the answers."""

APPROACH = 9
"""Labels that halve the way to the plane."""

LINKS = 3
"""How often the explanation of an explanation is asked for in a row."""


@dataclass(frozen=True, eq=False)
class Exchange:
    """A question and what came back; a link's question is the answer of exchange number `parent`."""

    question: FloatArray
    answer: FloatArray | None
    failure: str | None
    kind: Kind
    parent: int | None = None

    @property
    def step(self) -> FloatArray:
        """From the question to the answer; zero if there is none."""
        return np.zeros_like(self.question) if self.answer is None else np.asarray(self.answer - self.question)

    @property
    def stands_still(self) -> bool:
        """True if a link came back to where it was asked, up to rounding: that point was on the plane."""
        if self.kind != "link":
            return False
        if self.answer is None:
            return self.failure == ECHO
        size = np.abs(self.question).max() + np.abs(self.answer).max()
        return bool(np.abs(self.step).max() <= FLOAT64_ANSWER * size)

    @property
    def is_failure(self) -> bool:
        """True if the question got no answer and should have got one."""
        return self.answer is None and not self.stands_still


@dataclass(frozen=True, eq=False)
class Place:
    """Where questions may be asked: inside `where`, and inside the service's own domain if it publishes one."""

    where: Where
    domain: Domain | None
    dimension: int

    @property
    def free(self) -> BoolArray:
        """The features that take any number between their limits."""
        free = np.ones(self.dimension, dtype=bool)
        if self.domain is not None:
            free[[i for group in self.domain.groups for i in group] + list(self.domain.integers)] = False
        return free

    @property
    def is_mixed(self) -> bool:
        """True if some features take only a few values."""
        return not self.free.all()

    def limits(self) -> tuple[FloatArray, FloatArray]:
        """The tightest known box around the place."""
        low, high = np.full(self.dimension, -np.inf), np.full(self.dimension, np.inf)
        if isinstance(self.where, Box):
            low, high = self.where.low, self.where.high
        if self.domain is not None:
            low, high = np.maximum(low, self.domain.low), np.minimum(high, self.domain.high)
        return low, high

    def fit(self, x: FloatArray) -> FloatArray | None:
        """x moved into the place; None if it cannot be asked even so."""
        low, high = self.limits()
        moved = np.asarray(self.where.clip(np.clip(x, low, high)))
        allowed = np.isfinite(moved).all() and self.where.contains(moved)
        return moved if allowed and (self.domain is None or self.domain.contains(moved)) else None

    def draw(self, base: FloatArray, spread: FloatArray, rng: np.random.Generator) -> FloatArray | None:
        """A random point: around `base`, or anywhere between limits that are no wider than the spread asked for."""
        x = base + spread * rng.normal(size=self.dimension)
        low, high = self.limits()
        bounded = np.isfinite(low) & np.isfinite(high)
        tight = bounded & (spread >= np.where(bounded, high - low, np.inf) / 6)
        share = rng.uniform(0.02, 0.98, self.dimension)[tight]
        x[tight] = low[tight] + (high - low)[tight] * share
        if self.domain is not None and self.is_mixed:
            x = np.where(self.free, x, self.domain.sample(rng, 1)[0])
        return self.fit(x)

    def shift(self, base: FloatArray, by: FloatArray) -> FloatArray | None:
        """`base` moved in the features that take any number."""
        return self.fit(np.where(self.free, base + by, base))


@dataclass(eq=False)
class Interview:
    """The conversation so far."""

    job: Job
    place: Place
    most: int
    most_labels: int = 0
    exchanges: list[Exchange] = field(default_factory=list)
    labels: dict[bytes, int | None] = field(default_factory=dict)
    spread: FloatArray = field(default_factory=lambda: np.zeros(0))

    @property
    def left(self) -> int:
        """How many explanations may still be asked for."""
        return self.most - len(self.exchanges)

    @property
    def labels_left(self) -> int:
        """How many labels may still be asked; none from a service whose labels are none."""
        faulty = sum(label is None for label in self.labels.values())
        return self.most_labels - len(self.labels) if self.job.session.can_label and faulty < 3 else 0

    def label(self, x: FloatArray) -> int | None:
        """The label of x, asked once; None if it may not be asked, or what came was no label."""
        key = x.tobytes()
        if key in self.labels:
            return self.labels[key]
        inside = self.place.fit(x) if self.labels_left > 0 else None
        if inside is None or not np.array_equal(inside, x):
            return None
        try:
            self.labels[key] = self.job.session.label(x)
        except OverexplainError as error:
            if ends_all(error):
                raise
            self.labels[key] = None
        return self.labels[key]

    @property
    def answered(self) -> list[Exchange]:
        """The exchanges with an answer that moved."""
        return [e for e in self.exchanges if e.answer is not None and not e.stands_still]

    def grid_step(self) -> float:
        """The step of the grid that answers lie on so far; 0 if none shows."""
        moved = [e.answer[e.answer != e.question] for e in self.answered if e.answer is not None]
        steps, name = visible_grid(np.concatenate(moved)) if moved else (np.zeros(1), None)
        return 0.0 if name in (None, "float32") else float(steps.max())

    def ask(self, x: FloatArray | None, kind: Kind, parent: int | None = None) -> Exchange | None:
        """The exchange about x, or None if x may not be asked or the interview is over."""
        if x is None or self.left <= 0:
            return None
        reply = _reply(self.job, x)
        exchange = Exchange(x, reply.answer, reply.failure, kind, parent)
        self.exchanges.append(exchange)
        return exchange

    def follow(self, exchange: Exchange | None, links: int) -> None:
        """Ask for the explanation of the explanation of … as long as it moves."""
        for _ in range(links):
            if exchange is None or exchange.answer is None or exchange.stands_still:
                return
            answer, parent = exchange.answer, next(k for k, e in enumerate(self.exchanges) if e is exchange)
            inside = self.place.fit(answer)
            # Where the answer itself may not be asked, what comes instead is no link.
            exchange = self.ask(inside, "link", parent) if np.array_equal(answer, inside) else None  # type: ignore[arg-type]


def _reply(job: Job, x: FloatArray) -> Reply:
    """What came back, a point of the wrong shape included."""
    try:
        return job.session.attempt(x)
    except DimensionMismatch:
        return Reply(None, "wrong shape")
    except OverexplainError as error:
        if ends_all(error):
            raise
        return Reply(None, "not numbers")


def interview(job: Job, n: int, most_labels: int, domain: Domain | None = None) -> Interview:
    """At most n explanations, asked as the answers suggest, and `most_labels` labels, now and later."""
    talk = Interview(job, Place(job.where, domain, job.session.dimension), n, most_labels)
    first = _first_answered(talk)
    if first is None or first.answer is None:
        return talk
    talk.label(first.question)  # needed later anyway; should the budget end soon, a guess knows which side is Yes
    talk.spread = _spread(talk.place, first)
    for _ in range(2 if n >= 8 else 1):
        talk.ask(first.question, "repeat")
    talk.follow(first, LINKS)
    talk.ask(talk.place.shift(first.question, 0.02 * talk.spread * job.rng.normal(size=len(first.question))), "twin")
    far = talk.place.shift(first.question, -8 * first.step + 0.1 * talk.spread * job.rng.normal(size=len(first.step)))
    talk.follow(talk.ask(far, "far"), LINKS - 1)
    turn, idle = 0, 0
    while talk.left > 0 and idle < 12:
        kind, x = _next_question(talk, first, turn)
        idle = 0 if talk.ask(x, kind) is not None else idle + 1
        turn += 1
    return talk


def _first_answered(talk: Interview) -> Exchange | None:
    """The first exchange with an answer: the start, else points around it, in opposite pairs, farther and farther."""
    start, rng = talk.job.start, talk.job.rng
    unit = np.where(start == 0, 1.0, np.abs(start))
    low, high = talk.place.limits()
    bounded = np.isfinite(high - low)
    unit[bounded] = (high - low)[bounded] / 4
    x, offset = talk.place.fit(start), np.zeros_like(start)
    tries = max(2, talk.most - 6)
    for attempt in range(4 * tries):
        exchange = talk.ask(x, "search")
        if exchange is not None and exchange.answer is not None:
            return exchange
        if len(talk.exchanges) >= tries:
            return None
        if attempt % 2 == 0:
            offset = unit * 4.0 ** (attempt // 4) * rng.normal(size=len(start))
            x = talk.place.draw(start, np.abs(offset), rng) if talk.place.is_mixed else talk.place.fit(start + offset)
        else:
            x = talk.place.draw(start, unit, rng) if talk.place.is_mixed else talk.place.fit(start - offset)
    return None


def _spread(place: Place, first: Exchange) -> FloatArray:
    """How far to vary every feature: its own size, the step where that is larger or its size is 0; within the limits."""
    step = np.abs(first.step)
    size = np.abs(first.question)
    spread = np.where(size > 0, np.maximum(size, step), step.max())
    low, high = place.limits()
    with np.errstate(invalid="ignore"):
        return np.asarray(np.minimum(spread, np.where(np.isfinite(high - low), high - low, np.inf)))


def _next_question(talk: Interview, first: Exchange, turn: int) -> tuple[Kind, FloatArray | None]:
    """The next question in the rotation; a side on which nothing is ever explained is left alone."""
    rng, place, p = talk.job.rng, talk.place, talk.place.dimension
    beyond = [e for e in talk.exchanges if e.kind in ("link", "beyond")]
    silent = len(beyond) >= 3 and all(e.is_failure for e in beyond)
    model = talk.answered[int(rng.integers(len(talk.answered)))]
    kind = ("around", "beyond", "close", "around")[turn % 4]
    if kind == "beyond" and not place.is_mixed:
        # As far on as the question was before; the scatter stays small, so that the point stays beyond.
        scatter = 0.5 * np.abs(model.step).max() / np.sqrt(p) * rng.normal(size=p)
        if silent:
            return "around", place.shift(model.question, -rng.uniform(0.2, 2.0) * model.step + scatter)
        return "beyond", place.shift(model.answer, rng.uniform(0.5, 2.0) * model.step + scatter)  # type: ignore[arg-type]
    if kind == "close":
        if place.is_mixed:
            return "close", place.shift(model.answer, 0.03 * talk.spread * rng.normal(size=p))  # type: ignore[arg-type]
        if _crowded(talk):
            return "close", _approach(talk)
        chosen = [talk.answered[k] for k in rng.permutation(len(talk.answered))[:4]]
        middle = rng.dirichlet(np.ones(len(chosen))) @ np.array([e.answer for e in chosen])
        return "close", place.shift(middle, -0.1 * model.step)
    wide = talk.spread if turn % 8 < 4 else np.maximum(talk.spread, 3 * np.abs(first.step).max())
    if turn % 4 == 0:  # far enough out that rounding, if there is any, hardly counts
        wide = np.maximum(wide, OUT * talk.grid_step())
    return "around", place.draw(first.question, wide, rng)


def _crowded(talk: Interview) -> bool:
    """True if most answers stop at a known limit: close to the plane, and away from limits, is where more can be seen."""
    low, high = talk.place.limits()
    stopped = [bool(((e.answer <= low) | (e.answer >= high)).any()) for e in talk.answered if e.answer is not None]
    return talk.labels_left > talk.most_labels / 3 and sum(stopped) > len(stopped) / 2


def _approach(talk: Interview) -> FloatArray | None:
    """A point close to the plane between two questions of different labels, on a side that is explained."""
    rng = talk.job.rng
    low, high = talk.place.limits()
    inside = [e for e in talk.exchanges if e.kind in ("search", "far", "around", "beyond")]
    inside.sort(key=lambda e: (((e.question <= low) | (e.question >= high)).any(), rng.random()))
    model = inside[0] if inside[0].answer is not None else talk.answered[0]
    near, side = model.question, talk.label(model.question)
    for other in inside:
        label = talk.label(other.question)
        if side is not None and label == -side:
            return _halved(talk, near, other.question, side)
    return None


def _halved(talk: Interview, near: FloatArray, far: FloatArray, side: int) -> FloatArray | None:
    """The point on the side of `near` that halving the way to `far` leads to; None if labels give out."""
    for _ in range(APPROACH):
        middle = (near + far) / 2
        label = talk.label(middle)
        if label is None:
            return None
        near, far = (middle, far) if label == side else (near, middle)
    return near
