"""Finding a point of every class: given examples first, then random points near and far, then the service itself."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from overexplain.errors import InvalidInput
from overexplain.extraction.box import Box, Where
from overexplain.extraction.multiclass.conversation import Conversation
from overexplain.geometry.arrays import FloatArray

LOOKS = 24
"""So many random labels per class are spent before the service is asked for a point of the classes still missing."""

WIDER = 8.0
"""From one batch of random points to the next but one, the radius grows (or shrinks) by this factor."""

EXPLAINED = 5
"""So many explanations towards a class are asked for one that leads to a point with that label: ties may never have it."""

AROUND = 5
"""So many labels are asked around the mean of explanations, each ten times as close as the one before."""


@dataclass
class Found:
    """Points of every class found so far, and how far apart points are usually drawn."""

    talk: Conversation
    where: Where
    centre: FloatArray
    spread: FloatArray
    points: dict[int, list[FloatArray]] = field(default_factory=dict)
    explained: list[tuple[FloatArray, int, FloatArray]] = field(default_factory=list)
    """(question, target, answer) of the explanations that were asked to find a class."""

    def label(self, x: FloatArray, keep: bool = False) -> int:
        """The class of x; with `keep`, or if it is the first of its class, the point is one to start from."""
        label = self.talk.label(x)
        if keep or label not in self.points:
            self.points.setdefault(label, []).append(x)
        return label

    @property
    def classes(self) -> list[int]:
        """The classes found, in order."""
        return sorted(self.points)

    @property
    def missing(self) -> list[int]:
        """The classes not found."""
        return [k for k in range(self.talk.classes) if k not in self.points]

    @property
    def hinted(self) -> list[int]:
        """The classes not found although explanations lead to them: they are small, or only ever tie with others."""
        return sorted({target for _, target, _ in self.explained} - set(self.points))

    def draw(self, rng: np.random.Generator, radius: float = 1.0) -> FloatArray:
        """A random point, `radius` times as far out as usual, inside what may be asked."""
        return self.where.clip(self.centre + radius * self.spread * rng.standard_normal(len(self.centre)))


def find_classes(
    talk: Conversation, start: FloatArray, where: Where, examples: FloatArray | None, rng: np.random.Generator
) -> Found:
    """Points of all classes that can be found."""
    centre, spread = _scale(start, where, examples)
    found = Found(talk, where, centre, spread)
    if examples is not None:
        for row in examples[rng.permutation(len(examples))]:  # files are often sorted by class
            if not found.missing:
                break
            if not where.contains(row):
                raise InvalidInput("examples has a row that lies outside the bounds; leave it out")
            found.label(row.copy(), keep=True)
    _look_around(found, rng)
    for target in found.missing:
        _ask_for(found, target, rng)
    return found


def _scale(start: FloatArray, where: Where, examples: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """(centre, spread): from the examples, else from the bounds, else 3 around the start."""
    p = len(start)
    if examples is not None and len(examples) > 1:
        spread = examples.std(axis=0)
        return examples.mean(axis=0), np.where(spread > 0, spread, float(spread.max()) or 1.0)
    if isinstance(where, Box):
        limited = np.isfinite(where.low) & np.isfinite(where.high)
        return start, np.where(
            limited, (np.where(limited, where.high, 3.0) - np.where(limited, where.low, 0.0)) / 2, 3.0
        )
    return start, np.full(p, where.radius / np.sqrt(p))


def _look_around(found: Found, rng: np.random.Generator) -> None:
    """Label random points: batch by batch at the usual distance, farther out, closer in, farther still, …"""
    classes = found.talk.classes
    batch, exponent = 2 * classes + 4, 0
    for n in range(LOOKS * classes):
        if not found.missing:
            return
        if n and n % batch == 0:
            exponent = -exponent if exponent > 0 else 1 - exponent
        found.label(found.draw(rng, WIDER**exponent), keep=True)


def _ask_for(found: Found, target: int, rng: np.random.Generator) -> None:
    """Ask for explanations towards a class that no random point has, and for labels behind and between them.

    A class's points are convex: the mean of several explanations lies inside unless all lie on one side of it. Labels are asked
    around it, never at it: where it is a corner of the class, its own label is a matter of rounding, and it no point to start from.
    """
    answers: list[FloatArray] = []
    x = found.points[found.classes[0]][0]
    for _ in range(EXPLAINED):
        answer = found.talk.explain(x, target)
        if answer is None:
            return
        found.explained.append((x, target, answer))
        answers.append(answer)
        step = answer - x
        size = float(np.linalg.norm(step)) or float(np.linalg.norm(found.spread))
        beside = [rng.standard_normal(len(x)) * size / np.sqrt(len(x)) for _ in range(AROUND)]
        middle = np.mean(answers, axis=0)
        behind = [answer + step / 10, answer + step / 1000, answer + (step + beside[0]) / 100]
        around = [middle + away / 10**power for power, away in enumerate(beside)] if len(answers) > 1 else []
        for point in [*around, *behind]:
            if found.label(found.where.clip(point)) == target:
                return
        x = found.where.clip(middle + step + beside[0] / 2)  # from the other side
