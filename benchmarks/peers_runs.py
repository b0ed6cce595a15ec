"""One attack on one service with one budget: what it asked, and how close it came."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from peers_services import Counted, Service, services
from peers_worlds import World, world

import overexplain as ox
from overexplain.auditing.agreement import agreement
from overexplain.auditing.rebuilt import compare
from overexplain.extraction.predicted import predict
from overexplain.extraction.result import Extraction

OURS = "ours"
MULTIPLES = (1, 2, 5, 10, 30)
"""Budgets are these times p + 1, the unknowns of the model: the unit that Tramèr et al. count in."""
ACCURACIES = tuple(float(f"{a:.1e}") for a in np.geomspace(1e-6, 0.3, 34))
Attack = Callable[[Any, World, int, int], Extraction]


@dataclass(frozen=True)
class Run:
    """One attack with one seed: what was asked, the angle to the true normal, the offset's error, agreement, seconds.

    `failure` says what ended it; there may be a rough model all the same.
    """

    explanations: int = 0
    labels: int = 0
    scores: int = 0
    angle: float | None = None
    offset: float | None = None
    held_out: float | None = None
    in_box: float | None = None
    seconds: float = 0.0
    failure: str = ""


@dataclass
class Cell:
    """All seeds of one (data, service, attack, budget); `floor` and `box_floor`: what a constant answer agrees with."""

    data: str
    features: int
    service: str
    attack: str
    multiple: int
    floor: float = 0.0
    box_floor: float = 0.0
    runs: list[Run] = field(default_factory=list)

    @property
    def budget(self) -> int:
        """Requests allowed."""
        return self.multiple * (self.features + 1)

    def median(self, name: str) -> float | None:
        """The median over seeds; a seed without a model counts as worst, and None means that at least half have none."""
        values = [getattr(run, name) for run in self.runs]
        worst = -math.inf if name in ("held_out", "in_box") else math.inf
        middle = float(np.median([worst if value is None else value for value in values]))
        return middle if math.isfinite(middle) else None

    @property
    def requests(self) -> float:
        """The median of what was asked."""
        return float(np.median([run.explanations + run.labels + run.scores for run in self.runs]))


def accuracy_for(mechanism: ox.Mechanism | None, p: int, budget: int) -> float | None:
    """What ours asks for: the best accuracy it predicts to afford; None, its default, where answers are optimal.

    Rounded answers may leave nothing but labels, and labels are what is reckoned with then.
    """
    if mechanism is not None and mechanism.slack == 0 and not mechanism.tolerance:
        return None
    terms = mechanism if mechanism is None or mechanism.slack != 0 else None
    affordable = (a for a in ACCURACIES if predict(p, terms, a).spent.requests <= budget)
    return next(affordable, ACCURACIES[-1])


def ours(oracle: Any, world: World, budget: int, seed: int) -> Extraction:
    """`extract` as it comes, asked for what it predicts to afford."""
    wanted = accuracy_for(oracle.mechanism, world.plane.dimension, budget)
    return ox.extract(oracle, accuracy=wanted, bounds=world.box, budget=budget, rng=seed)


def attackers(service: Service) -> dict[str, Attack]:
    """Who is tried on this service.

    Attacks that ask for labels alone would do the same everywhere: they run on the service that gives nothing else, and ours is
    not run where probabilities are all there is besides labels, as it does not use them.
    """
    from overexplain.baselines.attacks import ATTACKS

    found: dict[str, Attack] = {} if service.kind == "scores" else {OURS: ours}
    for name, attack in ATTACKS.items():
        if frozenset(attack.needs) - {"labels"} == service.gives - {"labels"}:
            found[name] = partial(published, attack.run, name == "equations" and "decimals" in service.name)
    return found


def published(
    run: Callable[..., Extraction], overdetermined: bool, oracle: Any, w: World, budget: int, seed: int
) -> Extraction:
    """A published attack with its own defaults; equations of rounded numbers are as many as half of the budget, if that is more."""
    more = {"equations": max(w.plane.dimension + 1, budget // 2)} if overdetermined else {}
    return run(oracle, bounds=w.box, budget=budget, rng=seed, record=False, **more)


def one_run(attack: Attack, service: Service, w: World, budget: int, seed: int) -> Run:
    """One attack; the seed decides its random choices and the service's."""
    oracle = Counted(service.make(w, seed))
    began = time.process_time()
    failure, found = "", None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn's, on models that separate their rows
            found = attack(oracle, w, budget, seed)
    except ox.OverexplainError as error:
        failure = type(error).__name__
        found = getattr(error, "found", None)  # a rough model, if the budget ended before a better one
    seconds = time.process_time() - began - oracle.seconds
    if oracle.requests > budget:
        raise SystemExit(f"{oracle.requests} requests were sent, the budget was {budget}: {service.name}, {w.name}")
    asked = Run(oracle.explanations, oracle.labels, oracle.scores, seconds=seconds, failure=failure)
    if found is None:
        return asked
    rebuilt = compare(found, w.plane, oracle.mechanism, None)
    plane = found.hyperplane if found.oriented or rebuilt.angle_error <= math.pi / 2 else found.hyperplane.flipped()
    return replace(
        asked,
        angle=rebuilt.angle_error,
        offset=rebuilt.offset_error,
        held_out=agreement(plane, w.plane, w.held_out).share,
        in_box=agreement(plane, w.plane, w.in_box).share,
    )


@dataclass(frozen=True)
class Task:
    """The work of one process at a time: one service of one model, every attack and budget."""

    data: str
    service: str
    seed: int
    multiples: tuple[int, ...] = MULTIPLES
    attacks: tuple[str, ...] | None = None
    """None: all of them."""


def work(task: Task) -> list[Cell]:
    """A cell with one run for every attack and budget."""
    w, service = world(task.data, task.seed), services()[task.service]
    return [
        cell
        for name, attack in attackers(service).items()
        if task.attacks is None or name in task.attacks
        for cell in cells_of(name, attack, service, w, task)
    ]


def cells_of(name: str, attack: Attack, service: Service, w: World, task: Task) -> Iterable[Cell]:
    """One attack, budget after budget."""
    floors = (agreement(w.plane, w.plane, points).floor for points in (w.held_out, w.in_box))
    floor, box_floor = floors
    p, before = w.plane.dimension, None
    for multiple in task.multiples:
        budget = multiple * (p + 1)
        run = before if before is not None else one_run(attack, service, w, budget, task.seed)
        yield Cell(task.data, p, service.name, name, multiple, floor, box_floor, [run])
        if name == OURS and not run.failure and finest(service, w, budget, task.seed):
            before = run  # it stopped by itself: a larger budget changes nothing


def finest(service: Service, w: World, budget: int, seed: int) -> bool:
    """True if ours already asked for all it would ask for with any budget."""
    return accuracy_for(service.make(w, seed).mechanism, w.plane.dimension, budget) in (None, ACCURACIES[0])


def merged(parts: Iterable[list[Cell]]) -> list[Cell]:
    """One cell for every (data, service, attack, budget), with the runs of all seeds."""
    found: dict[tuple[str, str, str, int], Cell] = {}
    for part in parts:
        for cell in part:
            key = cell.data, cell.service, cell.attack, cell.multiple
            if key in found:
                found[key].runs += cell.runs
                found[key].floor = max(found[key].floor, cell.floor)
                found[key].box_floor = max(found[key].box_floor, cell.box_floor)
            else:
                found[key] = cell
    return list(found.values())


def stored(cell: Cell) -> dict[str, Any]:
    """A cell for JSON: three digits of everything (agreement: four), one list a quantity with an entry a seed."""
    kept = {key: value for key, value in asdict(cell).items() if key != "runs"}
    kept |= {key: _short(kept[key]) for key in ("floor", "box_floor")}
    for name, usual in asdict(Run()).items():
        values = [_short(getattr(run, name), 4 if name in ("held_out", "in_box") else 3) for run in cell.runs]
        if values != [usual] * len(values):  # else `restored` knows them
            kept[name] = values
    return kept


def restored(kept: dict[str, Any]) -> Cell:
    """The cell that `stored` wrote."""
    names = asdict(Run())
    given = {name: kept[name] for name in names if name in kept}
    head = {key: value for key, value in kept.items() if key not in names}
    count = max((len(values) for values in given.values()), default=0)
    runs = [Run(**{name: values[i] for name, values in given.items()}) for i in range(count)]
    return Cell(**head, runs=runs)


def _short(value: Any, digits: int = 3) -> Any:
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value
