"""Which boundaries there are: found with labels only, on ways from class to class, before any explanation is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from overexplain.errors import ExtractionFailed
from overexplain.extraction.multiclass.classes import Found
from overexplain.extraction.multiclass.facets import FINE, Facet, Pair, approach, tighten
from overexplain.extraction.multiclass.graph import Edge, edge, full_cycle, is_tied, neighbours, plan
from overexplain.geometry.arrays import FloatArray

WAYS = 5
"""So many ways per class are walked in search of boundaries that make a cycle through all classes."""

MORE = 4
"""So many times as many ways are walked before a class counts as out of reach of the others."""

INNER = 8
"""Ways start and end at one of so many points of a class that lie closest to the middle."""


@dataclass
class Walks:
    """Pairs of points on both sides of boundaries, one for each pair of classes that was met; `barren` ones led nowhere."""

    found: Found
    rng: np.random.Generator
    pairs: dict[Edge, Pair] = field(default_factory=dict)
    barren: set[Edge] = field(default_factory=set)
    walked: int = 0
    crossed: set[tuple[Edge, Edge]] = field(default_factory=set)

    def add(self, pair: Pair | None) -> None:
        """Keep a pair, if its boundary is new (or seen from closer) and not known to lead nowhere."""
        if pair is None or pair.edge in self.barren:
            return
        old = self.pairs.get(pair.edge)
        if old is None or pair.gap < old.gap:
            self.pairs[pair.edge] = pair

    def closer(self, pair: Edge, share: float) -> bool:
        """Bring a pair closer; False if another boundary turned out to lie between its points."""
        old = self.pairs.pop(pair)
        new = tighten(self.found, old, share)
        self.add(new)
        return new.edge == pair

    def tying(self, facets: Sequence[Facet]) -> list[Edge]:
        """As few boundaries as tie all classes, besides those shown already; each is brought close first. None are left if
        all are tied.

        Where ways from class to class do not find enough, those found are asked for first: the planes that they show tell where
        three classes meet.
        """
        known = {facet.edge for facet in facets}
        while not is_tied(known, classes := self.found.classes):  # a label may find a class that was missing
            possible = set(self.pairs)
            whole = is_tied(known | possible, classes)
            if self.walked < WAYS * len(classes) and full_cycle(known | possible, known, classes) is None:
                self.walk()
                continue
            chosen = plan(known, possible, classes, self.rng)
            if whole or chosen:
                moved = [pair for pair in chosen if not self.closer(pair, FINE[0])]
                if not moved:
                    return chosen
            elif not self.junctions(facets):
                self.walk_or_stop(known)
        return []

    def walk_or_stop(self, known: set[Edge]) -> None:
        """One way more, if there is any hope."""
        classes = self.found.classes
        if self.walked >= MORE * WAYS * len(classes):
            raise ExtractionFailed(
                f"the boundaries that were found ({sorted(known | set(self.pairs))}) do not tie the scores of all classes "
                f"{classes} together: where two parts share one class only, or too few boundaries for the number of features, "
                "their scales are independent. Wider bounds or other examples may show more"
            )
        self.walk()

    def walk(self) -> None:
        """One way more: into the class with the fewest boundaries so far, from one that is not beside it."""
        self.walked += 1
        classes = self.found.classes
        beside = neighbours(self.pairs, classes)
        fewest = min(len(beside[k]) for k in classes)
        target = int(self.rng.choice([k for k in classes if len(beside[k]) == fewest]))
        others = [k for k in classes if k != target]
        first = int(self.rng.choice([k for k in others if k not in beside[target]] or others))
        self.add(approach(self.found, self._point(first), first, self._point(target), target))

    def _point(self, k: int) -> FloatArray:
        """A point of class k: one of the innermost, since ways between far ones see small classes last."""
        points = self.found.points[k]
        if len(points) > INNER:
            away = np.abs((np.array(points) - self.found.centre) / self.found.spread).max(axis=1)
            points = [points[i] for i in np.argsort(away, kind="stable")[:INNER]]
        return points[int(self.rng.integers(len(points)))]

    def junctions(self, facets: Sequence[Facet]) -> bool:
        """True if a boundary (a, b) was found where the planes of (a, m) and (m, b) meet."""
        known = {facet.edge for facet in facets}
        for i, one in enumerate(facets):
            for other in facets[:i]:
                common = set(one.edge) & set(other.edge)
                ends = set(one.edge) ^ set(other.edge)
                if len(common) != 1 or edge(*ends) in known | self.barren | set(self.pairs):
                    continue
                if (one.edge, other.edge) in self.crossed:
                    continue
                self.crossed.add((one.edge, other.edge))
                before = set(self.pairs)
                self._cross(one, other, common.pop())
                if set(self.pairs) - before - known:
                    return True
        return False

    def _cross(self, one: Facet, other: Facet, middle: int) -> None:
        """Walk past the place where three classes meet, on the side where the one in the middle loses to both others.

        With n1, n2 the normals into the middle class, it never wins on y + ρ·r ± e, where y lies on both planes, r points
        along −(n1 + n2) and e along n1 − n2.
        """
        into = [facet.normal if facet.second == middle else -facet.normal for facet in (one, other)]
        back, across = -(into[0] + into[1]), into[0] - into[1]
        sizes = np.linalg.norm(back), np.linalg.norm(across)
        if min(sizes) < 1e-6:
            return
        centre = (one.point + other.point) / 2
        rows = np.array(into)
        miss = np.array([into[0] @ (one.point - centre), into[1] @ (other.point - centre)])
        meeting = centre + np.linalg.lstsq(rows, miss, rcond=None)[0]
        scale = float(np.linalg.norm(one.point - other.point)) or float(np.linalg.norm(self.found.spread))
        for share in (2.0**-2, 2.0**-6, 2.0**-10):
            ends = [meeting + share * scale * (0.25 * back / sizes[0] + side * across / sizes[1]) for side in (-1, 1)]
            if not all(self.found.where.contains(end) for end in ends):
                continue
            labels = [self.found.label(end) for end in ends]
            if labels[0] != labels[1]:
                self.add(approach(self.found, ends[0], labels[0], ends[1], labels[1]))
            if edge(*(set(one.edge) ^ set(other.edge))) in self.pairs:
                return
