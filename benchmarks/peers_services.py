"""The services that all attacks face, and the counter that stands before each of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike
from peers_worlds import World

import overexplain as ox
from overexplain.oracles.scores import Scored
from overexplain.oracles.wrapper import Wrapper
from overexplain.oracles.wrappers import rows_of

LABELS = "labels only"
Make = Callable[[World, int], Any]
IMITATED = ("solver", "wachter", "adam-l1", "dice-random", "nice", "nearest-neighbour", "mip-recourse")


@dataclass(frozen=True)
class Service:
    """How one service is made for a model and a seed, what it gives besides labels, and its place on the page."""

    name: str
    kind: str
    """"exact", "labels", "scores" or "imperfect"."""
    make: Make

    @property
    def gives(self) -> frozenset[str]:
        """What it can be asked for."""
        extra = {"labels": (), "scores": ("scores",)}.get(self.kind, ("explanations",))
        return frozenset(("labels", *extra))


def services() -> dict[str, Service]:
    """All of them, by name."""
    imperfect: dict[str, Make] = {
        "rounded, 2 decimals, l2": lambda w, _: ox.Rounded(_exact("l2", w, _), 2),
        "rounded, 2 decimals, l1": lambda w, _: ox.Rounded(_exact("l1", w, _), 2),
        "suboptimal 10 %, l2": lambda w, s: ox.Suboptimal(_exact("l2", w, s), 0.1, rng=s),
        "noisy 0.1, l2": lambda w, s: ox.Noisy(_exact("l2", w, s), 0.1, rng=s),
        "random radius 0.5, l2": lambda w, s: ox.RandomRadius(_exact("l2", w, s), 0.5, rng=s),
        "denied only, l1": lambda w, s: ox.OneSided(_exact("l1", w, s)),
    }
    imperfect |= {f"like {name}": partial(_imitated, name) for name in IMITATED}
    found = [
        *(Service(f"exact {norm}", "exact", partial(_exact, norm)) for norm in ("l2", "l1", "linf")),
        Service(LABELS, "labels", lambda w, s: ox.LabelsOnly(_exact("l2", w, s))),
        Service("probabilities", "scores", partial(_scored, None)),
        *(Service(f"probabilities, {d} decimals", "scores", partial(_scored, d)) for d in (4, 3, 2)),
        *(Service(name, "imperfect", make) for name, make in imperfect.items()),
    ]
    return {service.name: service for service in found}


def _exact(norm: str, world: World, _: int) -> ox.ModelOracle:
    return ox.ModelOracle(world.plane, ox.Mechanism(norm))


def _scored(decimals: int | None, world: World, _: int) -> Scored:
    return Scored(world.plane, decimals)


def _imitated(name: str, world: World, seed: int) -> Any:
    return ox.imitate(name, world.plane, world.train, rng=seed)


@final
class Counted(Wrapper):
    """Passes every question on, counts it, and measures the processor time that the service itself takes."""

    def __init__(self, oracle: Any) -> None:
        super().__init__(oracle)
        self.explanations = self.labels = self.scores = 0
        self.seconds = 0.0

    @property
    def requests(self) -> int:
        """All that was asked."""
        return self.explanations + self.labels + self.scores

    def classify(self, x: ArrayLike) -> Any:
        """The wrapped oracle's label."""
        self.labels += rows_of(x)
        return self._timed(self.wrapped.classify, x)

    def explain(self, x: ArrayLike) -> Any:
        """The wrapped oracle's explanation."""
        self.explanations += rows_of(x)
        return self._timed(self.wrapped.explain, x)

    def score(self, x: ArrayLike) -> Any:
        """The wrapped oracle's probability of Yes."""
        self.scores += rows_of(x)
        inner: Any = self.wrapped
        return self._timed(inner.score, x)

    def _timed(self, verb: Callable[[Any], Any], x: ArrayLike) -> Any:
        began = time.process_time()
        try:
            return verb(np.array(x, dtype=np.float64))
        finally:
            self.seconds += time.process_time() - began
