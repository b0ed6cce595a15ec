"""Any other distance, or an unknown one: an explanation is a point of a boundary, one equation s_t(x') = s_k(x').

All scores together have (K − 1)(p + 1) − 1 unknowns (a common linear function and one factor are invisible), so that as many
independent points determine them: at most p on one boundary, spread evenly over boundaries that tie all classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from overexplain.errors import BrokenPromise, ExtractionFailed
from overexplain.extraction.multiclass.classes import Found
from overexplain.extraction.multiclass.facets import Facet, Pair
from overexplain.extraction.multiclass.graph import Edge, edge, is_tied
from overexplain.extraction.multiclass.scales import CLEAR, Frame, Rebuilt, Solved, angle_of, is_enough, unproved
from overexplain.extraction.multiclass.walks import Walks
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.norm import FLOAT64_ANSWER, UNIT_ROUNDOFF, Norm

INDEPENDENT = 1e-6
"""A new equation counts as independent of the others if this share of it points elsewhere."""

JUST_BEFORE = 1e-9
"""How far before an answer, as a share of the step to it, a label shows whose boundary it lies on."""

NARROWER = 0.7
"""Where a random point around a boundary has a third class, the next one is drawn this much closer."""

ENOUGH = 4
"""So many times as many answers as there are unknowns are asked at most."""


def scores_by_points(found: Found, norm: Norm | None, accuracy: float | None, rng: np.random.Generator) -> Rebuilt:
    """The scores from (K − 1)(p + 1) − 1 independent points of boundaries."""
    gatherer = _Points(found, Walks(found, rng), rng)
    system = _System(found)
    for question, target, answer in found.explained:
        system.take(question, target, answer)
    asked = 0
    while True:
        if system.classes != found.classes:  # a label found a class that was missing
            system = system.renewed()
        solved = system.solved()
        if solved.scores is not None and is_enough(solved.bound, accuracy):
            break
        try:
            if asked >= ENOUGH * system.unknowns + 20:
                raise ExtractionFailed(
                    f"{asked} answers left {solved.open} of {system.unknowns - 1} unknowns open: the boundaries within reach do "
                    "not tie all scores, or the service prefers a few fixed answers",
                    unidentified=system.open_directions(),
                )
            asked += gatherer.ask(system)
        except ExtractionFailed as failed:
            if accuracy is not None and solved.scores is not None:
                raise ExtractionFailed(unproved(solved.bound, accuracy)) from failed
            raise
    name = "unknown" if norm is None else "not smooth"
    method = f"{len(system.rows)} points of boundaries for {system.unknowns - 1} unknowns (the distance is {name})"
    pairs = tuple(dict.fromkeys(system.edges))
    notes = ["each answer lies on the boundary of the class that a label just before it has"]
    if len(system.rows) < system.unknowns:
        notes.append("as many answers as unknowns always fit: only the labels beside them were checked")
    return Rebuilt(solved.scores, solved.bound, pairs, method, tuple(notes))


class _System:
    """Equations s_t(z) = s_k(z) in the scores of the classes found, the first of which is 0."""

    def __init__(self, found: Found) -> None:
        self.found = found
        self.classes = found.classes
        self.frame = Frame.of(np.array([x for points in found.points.values() for x in points]))
        self.unknowns = (len(self.classes) - 1) * (found.talk.dimension + 1)
        self.taken: list[tuple[FloatArray, int, FloatArray, int]] = []
        self.rows: list[FloatArray] = []
        self.edges: list[Edge] = []
        self.basis = np.zeros((0, self.unknowns))
        self.error = 0.0

    def take(self, question: FloatArray, target: int, answer: FloatArray) -> None:
        """Use an answer; a label just before it tells between which classes it lies."""
        step = answer - question
        distance = float(np.linalg.norm(step))
        rounding = 16 * FLOAT64_ANSWER * (float(np.linalg.norm(question)) + float(np.linalg.norm(answer)))
        back = max(JUST_BEFORE * distance, rounding)
        before = answer - (back / distance) * step if distance > back else question
        if distance <= back or not self.found.where.contains(before):
            return
        label = self.found.label(before)
        if label == target:
            raise BrokenPromise(
                f"an explanation is not the nearest point: {back:.3g} before it, the class is {target} already. The answers are "
                "rounded or heuristic, or the model is not linear",
                fact="Nearest",
                excess=back,
                row=len(self.found.talk.asked) - 2,
            )
        if target in self.found.points:
            self._add(question, target, answer, label)

    def renewed(self) -> _System:
        """The same equations in the scores of all classes found by now."""
        system = _System(self.found)
        for equation in self.taken:
            system._add(*equation)
        return system

    def _add(self, question: FloatArray, target: int, answer: FloatArray, label: int) -> None:
        self.taken.append((question, target, answer, label))
        if label not in self.classes:  # found just now: used when the system is renewed
            return
        place = np.append((answer - self.frame.origin) / self.frame.reach, 1.0)
        blocks = np.zeros((len(self.classes), len(place)))
        blocks[self.classes.index(target)] += place
        blocks[self.classes.index(label)] -= place
        size = float(np.linalg.norm(blocks[1:]))
        row = blocks[1:].ravel() / size
        length = (float(np.linalg.norm(question)) + float(np.linalg.norm(answer))) / self.frame.reach
        lost = FLOAT64_ANSWER * length + 8 * len(place) * UNIT_ROUNDOFF * (1 + length)
        self.error = math.hypot(self.error, math.sqrt(2) * lost / size)
        self.rows.append(row)
        self.edges.append(edge(label, target))
        rest = row - self.basis.T @ (self.basis @ row)
        rest -= self.basis.T @ (self.basis @ rest)  # Gram–Schmidt twice is enough
        left = float(np.linalg.norm(rest))
        if left > INDEPENDENT and len(self.basis) < self.unknowns - 1:
            self.basis = np.vstack([self.basis, rest / left])

    def planes(self) -> list[Facet]:
        """The boundaries of which p points are known, as planes: good enough to find their way about."""
        planes = []
        for pair in sorted(set(self.edges)):
            points = [taken for taken in self.taken if edge(taken[1], taken[3]) == pair]
            if len(points) >= self.found.talk.dimension:
                answers = np.array([answer for _, _, answer, _ in points])
                middle = answers.mean(axis=0)
                normal = np.linalg.svd(answers - middle, full_matrices=True)[2][-1]
                question, target, answer, label = points[0]
                normal = normal if normal @ (answer - question) > 0 else -normal
                planes.append(Facet(label, target, middle, normal, None, 0.0))
        return planes

    def open_directions(self) -> FloatArray:
        """A basis of what the equations leave open."""
        return np.asarray(np.linalg.svd(self.basis, full_matrices=True)[2][len(self.basis) :])

    def solved(self) -> Solved:
        """The scores, if only one direction of them is left; BrokenPromise if none is."""
        missing = self.unknowns - 1 - len(self.basis)
        if missing > 0:
            return Solved(None, missing, None)
        _, sizes, right = np.linalg.svd(np.array(self.rows), full_matrices=True)
        sizes = np.append(sizes, np.zeros(max(0, self.unknowns - len(sizes))))
        if sizes[-1] > self.error:
            raise BrokenPromise(
                f"no scores fit the points of the boundaries: they miss by {sizes[-1]:.3g}, rounding explains {self.error:.3g}. "
                "The answers are rounded or heuristic, or the model is not linear",
                fact="Facet",
                excess=float(sizes[-1]),
            )
        if self.unknowns > 1 and sizes[-2] <= CLEAR * self.error:
            return Solved(None, 1, None)
        inner = np.vstack([np.zeros(self.found.talk.dimension + 1), right[-1].reshape(len(self.classes) - 1, -1)])
        inner = self._oriented(inner - inner.mean(axis=0))
        scores = self.frame.outside(inner)
        turned = self.error / float(sizes[-2]) if self.unknowns > 1 else self.error
        ratio = math.sqrt(2) * turned * self.frame.stretch() / float(np.linalg.norm(scores))
        return Solved(scores, 0, angle_of(ratio))

    def _oriented(self, inner: FloatArray) -> FloatArray:
        """The scores, or their negative, whichever fits more of the labels."""
        labelled = [(k, x) for k, points in self.found.points.items() if k in self.classes for x in points]
        points = (np.array([x for _, x in labelled]) - self.frame.origin) / self.frame.reach
        said = np.array([self.classes.index(k) for k, _ in labelled])
        values = points @ inner[:, :-1].T + inner[:, -1]
        right = (values.argmax(axis=1) == said).sum()
        return inner if right >= (values.argmin(axis=1) == said).sum() else -inner


@dataclass
class _Points:
    """Where to ask next: around the boundary with the fewest equations so far."""

    found: Found
    walks: Walks
    rng: np.random.Generator
    pairs: dict[Edge, Pair] = field(default_factory=dict)
    reach: dict[Edge, float] = field(default_factory=dict)
    missed: int = 0

    def ask(self, system: _System) -> int:
        """The number of explanations asked: one, or none if the random point had a third class."""
        p = self.found.talk.dimension
        counts = {pair: system.edges.count(pair) for pair in self.pairs}
        if min(counts.values(), default=p) >= p:  # more points of these boundaries say nothing new
            new = self._tying(system.planes())
            self.pairs.update(new)
            if not new:
                self._another()
            return 0
        fewest = min(self.pairs, key=lambda pair: (counts[pair], pair))
        pair = self.pairs[fewest]
        reach = self.reach.setdefault(fewest, pair.length / 2)
        away = self.rng.standard_normal(p)
        x = self.found.where.clip((pair.near + pair.far) / 2 + away * (reach / float(np.linalg.norm(away))))
        label = self.found.label(x)
        if label not in fewest:
            self.reach[fewest] = max(NARROWER * reach, float(np.linalg.norm(pair.near - pair.far)))
            self.missed += 1
            return int(self.missed % 8 == 0)  # a boundary that is never met must not be tried for ever
        target = fewest[0] if label == fewest[1] else fewest[1]
        answer = self.found.talk.explain(x, target)
        if answer is not None:
            system.take(x, target, answer)
        return 1

    def _tying(self, planes: list[Facet]) -> dict[Edge, Pair]:
        """Boundaries not asked for yet that tie the classes together, if they are not tied."""
        if is_tied({*self.pairs, *(plane.edge for plane in planes)}, self.found.classes):
            return {}
        return {pair: self.walks.pairs[pair] for pair in self.walks.tying(planes) if pair not in self.pairs}

    def _another(self) -> None:
        """One more boundary, from what the labels have met or may still meet."""
        while not (rest := sorted(set(self.walks.pairs) - set(self.pairs))):
            self.walks.walk_or_stop(set(self.pairs))
        chosen = rest[int(self.rng.integers(len(rest)))]
        self.pairs[chosen] = self.walks.pairs[chosen]
