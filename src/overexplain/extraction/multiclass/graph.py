"""The graph whose vertices are classes and whose edges are common boundaries: which edges tie all scales together.

A boundary shows w_t − w_k up to a factor of its own. Around a cycle of boundaries the differences add up to 0, which fixes
these factors relative to each other: inside a *block* (a biconnected component) they are all tied, across a cut vertex not.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

Edge = tuple[int, int]

SEARCH = 1000
"""So many steps are tried for a cycle through all classes."""

RESTARTS = 8
"""So many orders of throwing superfluous edges out are tried."""


def edge(a: int, b: int) -> Edge:
    """The pair in order."""
    return (a, b) if a < b else (b, a)


def neighbours(edges: Iterable[Edge], vertices: Iterable[int]) -> dict[int, set[int]]:
    """Who is next to whom."""
    beside: dict[int, set[int]] = {v: set() for v in vertices}
    for a, b in edges:
        beside[a].add(b)
        beside[b].add(a)
    return beside


def blocks(edges: Iterable[Edge], vertices: Iterable[int]) -> list[set[Edge]]:
    """The biconnected components as sets of edges (a bridge is one by itself): Tarjan's algorithm, without recursion.

    >>> sorted(map(sorted, blocks([(0, 1), (1, 2), (0, 2), (2, 3)], range(4))))
    [[(0, 1), (0, 2), (1, 2)], [(2, 3)]]
    """
    beside = neighbours(edges, vertices)
    depth: dict[int, int] = {}
    lowest: dict[int, int] = {}
    found: list[set[Edge]] = []
    for root in beside:
        if root in depth:
            continue
        depth[root] = lowest[root] = 0
        waiting: list[Edge] = []
        path = [(root, -1, iter(sorted(beside[root])))]
        while path:
            here, came_from, rest = path[-1]
            following = next(rest, None)
            if following is None:
                path.pop()
                if path:
                    above = path[-1][0]
                    lowest[above] = min(lowest[above], lowest[here])
                    if lowest[here] >= depth[above]:  # nothing below reaches past `above`: a block ends here
                        start = waiting.index((above, here))
                        found.append({edge(*pair) for pair in waiting[start:]})
                        del waiting[start:]
            elif following not in depth:
                depth[following] = lowest[following] = depth[here] + 1
                waiting.append((here, following))
                path.append((following, here, iter(sorted(beside[following]))))
            elif following != came_from and depth[following] < depth[here]:
                waiting.append((here, following))
                lowest[here] = min(lowest[here], depth[following])
    return found


def tied(edges: Iterable[Edge], vertices: Iterable[int]) -> set[frozenset[int]]:
    """The vertices of every block: inside each all scales are tied, as far as the graph can tell."""
    return {frozenset(v for pair in block for v in pair) for block in blocks(edges, vertices)}


def is_tied(edges: Iterable[Edge], vertices: list[int]) -> bool:
    """True if one block holds all vertices."""
    return tied(edges, vertices) == {frozenset(vertices)}


def plan(known: set[Edge], possible: set[Edge], vertices: list[int], rng: np.random.Generator) -> list[Edge]:
    """As few edges of `possible` as are found that, with those `known`, tie what all of them tie.

    A cycle through all vertices needs the fewest, one each; else superfluous edges are thrown out one by one.

    >>> square = {(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)}
    >>> sorted(plan(set(), square, [0, 1, 2, 3], np.random.default_rng(0)))
    [(0, 1), (0, 3), (1, 2), (2, 3)]
    """
    cycle = full_cycle(known | possible, known, vertices)
    choices = [] if cycle is None else [[pair for pair in cycle if pair not in known]]
    restarts = RESTARTS if cycle is None or known else 0
    choices += [_thinned(known, possible, vertices, rng) for _ in range(restarts)]
    return min(choices, key=len)


def full_cycle(edges: set[Edge], first: set[Edge], vertices: list[int]) -> list[Edge] | None:
    """A cycle through all vertices, by backtracking: edges of `first` before others, then vertices with few ways out."""
    if len(vertices) == 2:
        return [edge(*vertices)] if edge(*vertices) in edges else None
    beside = neighbours(edges, vertices)
    if any(len(beside[v]) < 2 for v in vertices):
        return None
    start = min(vertices, key=lambda v: len(beside[v]))
    path, on_path = [start], {start}

    def ways(v: int) -> list[int]:
        free = [w for w in beside[v] if w not in on_path]
        return sorted(free, key=lambda w: (edge(v, w) not in first, len(beside[w] - on_path), w), reverse=True)

    open_ways = [ways(start)]
    for _ in range(SEARCH):
        if len(path) == len(vertices) and start in beside[path[-1]]:
            return [edge(a, b) for a, b in zip(path, [*path[1:], start], strict=True)]
        if open_ways[-1] and len(path) < len(vertices):
            following = open_ways[-1].pop()
            path.append(following)
            on_path.add(following)
            open_ways.append(ways(following))
            continue
        open_ways.pop()
        on_path.discard(path.pop())
        if not path:
            return None
    return None


def _thinned(known: set[Edge], possible: set[Edge], vertices: list[int], rng: np.random.Generator) -> list[Edge]:
    kept = sorted(possible - known)
    wanted = tied(known | possible, vertices)
    for pair in [kept[i] for i in rng.permutation(len(kept))]:
        fewer = [other for other in kept if other != pair]
        if tied(known.union(fewer), vertices) == wanted:
            kept = fewer
    return kept
