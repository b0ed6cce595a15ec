"""Smooth distances: every explanation shows a boundary as a whole, and a cycle through all classes ties them together."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from overexplain.errors import ExtractionFailed
from overexplain.extraction.multiclass.classes import Found
from overexplain.extraction.multiclass.facets import FINE, Facet, question_of, shown
from overexplain.extraction.multiclass.graph import Edge, neighbours
from overexplain.extraction.multiclass.scales import Rebuilt, Solved, is_enough, solve_parts, solve_scales, unproved
from overexplain.extraction.multiclass.walks import Walks
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.norm import Norm

REFUSED = 3
"""More boundaries than this, on which no answer shows a plane, are not worth another explanation."""


def scores_by_facets(
    found: Found, norm: Norm, tolerance: float | None, accuracy: float | None, rng: np.random.Generator
) -> Rebuilt:
    """The scores from one explanation on each of as few boundaries as tie all classes."""
    gatherer = _Gatherer(found, norm, tolerance, Walks(found, rng), rng)
    for question, target, answer in found.explained:
        gatherer.use(question, target, answer)
    while True:
        solved = gatherer.solved()
        if solved is not None and solved.scores is not None and is_enough(solved.bound, accuracy):
            pairs = tuple(facet.edge for facet in gatherer.facets)
            method = f"{len(pairs)} boundaries between {len(found.classes)} classes, one explanation each"
            assumed = "each boundary was seen to be flat by two labels beside the answer"
            return Rebuilt(solved.scores, solved.bound, pairs, method, (assumed,))
        try:
            pairs_to_ask = gatherer.next_pairs()
        except ExtractionFailed as failed:
            if accuracy is not None and solved is not None and solved.scores is not None:
                raise ExtractionFailed(unproved(solved.bound, accuracy)) from failed
            if accuracy is not None or (scores := solve_parts(gatherer.facets, found.classes)) is None:
                raise
            return _loose(scores, gatherer.facets, str(failed))
        gatherer.ask(pairs_to_ask)


def _loose(scores: FloatArray, facets: list[Facet], why: str) -> Rebuilt:
    """Scores whose parts have the same size for want of anything better."""
    note = "the sizes of some scores relative to others are chosen, not known: decisions are right wherever labels were asked"
    pairs = tuple(facet.edge for facet in facets)
    return Rebuilt(scores, None, pairs, f"{len(pairs)} boundaries that do not tie all classes", (note,), why)


@dataclass
class _Gatherer:
    """Boundaries shown so far, and which to ask for next."""

    found: Found
    norm: Norm
    tolerance: float | None
    walks: Walks
    rng: np.random.Generator
    facets: list[Facet] = field(default_factory=list)
    refused: int = 0

    @property
    def known(self) -> set[Edge]:
        return {facet.edge for facet in self.facets}

    def use(self, question: FloatArray, target: int, answer: FloatArray) -> bool:
        """True if the answer shows a boundary; it is kept if it is a new one."""
        facet = shown(self.found, self.norm, self.tolerance, question, answer, target, self.rng)
        if facet is None:
            return False
        if facet.edge not in self.known:
            self.facets.append(facet)
        return True

    def solved(self) -> Solved | None:
        """What the boundaries say, if they reach all classes."""
        classes = self.found.classes
        if {k for pair in self.known for k in pair} != set(classes):
            return None
        return solve_scales(self.facets, classes)

    def next_pairs(self) -> list[Edge]:
        """The boundaries to ask for: those that tie all classes, else, if they are tied but not well enough, one more."""
        chosen = self.walks.tying(self.facets)
        if chosen:
            return chosen
        known = self.known
        while not (rest := sorted(set(self.walks.pairs) - known)):
            if not self.walks.junctions(self.facets):
                self.walks.walk_or_stop(known)
        beside = neighbours(known, self.found.classes)
        order = self.rng.permutation(len(rest))
        return [min((rest[i] for i in order), key=lambda pair: len(beside[pair[0]]) + len(beside[pair[1]]))]

    def ask(self, pairs: list[Edge]) -> None:
        """Ask for boundaries, one explanation each; from closer by, if the last answer was at a corner or on another one."""
        for pair in pairs:
            elsewhere = False
            for share in FINE:
                if pair not in self.walks.pairs or not self.walks.closer(pair, share):
                    return  # another boundary lies there: plan again, with what is known by now
                near = self.walks.pairs[pair]
                question = question_of(self.found, near)
                answer = self.found.talk.explain(question, near.second)
                elsewhere = answer is not None and self.use(question, near.second, answer)
                if pair in self.known:
                    break
            else:
                self.walks.pairs.pop(pair)
                self.walks.barren.add(pair)
                if not elsewhere:
                    self.refuse()
                return

    def refuse(self) -> None:
        """Count a boundary on which no answer shows a plane; ExtractionFailed if there are too many like it."""
        self.refused += 1
        if self.refused > REFUSED:
            raise ExtractionFailed(
                f"on {self.refused} boundaries, asked for from closer and closer by, labels beside the answers disagree with the "
                "plane that a nearest point would show: the answers are not nearest points in the declared distance, the model "
                "is not linear, or a class is too small for float64"
            )
