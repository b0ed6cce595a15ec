"""Defences compared: what each way to blur or withhold explanations costs an attacker, and what it costs the applicant.

Every defence is put around the audited service and attacked there, several times. Nothing is taken from theory: a cost is that of
an attack which was carried out, "not found" means that none of the attacks here succeeded within the limit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from overexplain.auditing.audit_report import Cost, Defence, Defences, Quota
from overexplain.auditing.defending.applicant import price
from overexplain.auditing.defending.attacker import NOTHING, Attacker, Attempt, bisection_price, median_attempt
from overexplain.auditing.defending.defended import Defended, defended
from overexplain.auditing.defending.setting import setting_of
from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray, as_budget, as_generator
from overexplain.models.linear import LinearModel
from overexplain.oracles.services import Service

QUOTA = "quota"
"""The defence that changes no answer but ends them."""

HANDS = 4
"""Into so many parts the defences are divided, for processes to share."""


def compare_defences(
    model: LinearModel,
    rows: ArrayLike,
    service: Service,
    id: str,
    *,
    accuracy: float = 1e-3,
    limit: int = 3000,
    runs: int = 3,
    cases: int = 500,
    rng: int | np.random.Generator | None,
    quota: Quota | None = None,
    defences: Sequence[str] | None = None,
    seconds: float | None = None,
    pool: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Defences:
    """The defences of `service` for `model`: costs for an attacker, the price for the people in `rows`.

    id        what the report calls the service
    accuracy  the attacker's goal: the angle of the direction, in radians
    limit     the most requests an attacker is given
    runs      how often each defence is attacked; the median run counts
    cases     on how many of the rows, at random, the price is measured
    quota     a limit on explanations to compare too
    defences  the ids of those to compare; None: all that this service can have
    seconds   no further defence is begun after that long; those left are not in the table
    pool      processes that share the defences; what is found does not depend on it
    progress  called with (defences done, defences in all)

    >>> from overexplain.geometry.hyperplane import Hyperplane
    >>> rows = np.random.default_rng(0).normal(size=(50, 3))
    >>> model, service = LinearModel(Hyperplane([3.0, 4.0, 2.0], 1.0)), Service.parse("l1")
    >>> found = compare_defences(model, rows, service, "s1", rng=0, runs=1, defences=("none", "margin"))
    >>> [(row.id, row.explained.explanations, round(row.length, 2)) for row in found.rows]
    [('none', 3, 1.0), ('margin', 3, 1.2)]
    """
    setting = setting_of(model, rows, service)
    seed = rng if isinstance(rng, int) else int(as_generator(rng).integers(2**63))
    chance = np.random.default_rng(seed)
    if as_budget(runs) < 1 or as_budget(cases) < 1 or as_budget(limit) < 1:
        raise InvalidInput(f"runs, cases and limit must be at least 1, got {runs}, {cases} and {limit}")
    if not 0 < accuracy < math.pi / 2:
        raise InvalidInput(f"accuracy must be an angle between 0 and π/2 radians, got {accuracy!r}")
    chosen = _chosen(defended(setting), defences, quota)
    if pool is not None and len(chosen) > 1:
        shared = partial(
            compare_defences, model, rows, service, id,
            accuracy=accuracy, limit=limit, runs=runs, cases=cases, rng=seed, quota=quota, seconds=seconds,
        )  # fmt: skip
        return _together(list(pool.map(partial(_some, shared), _dealt([entry.id for entry in chosen]))), chosen)
    seeds = chance.integers(2**63, size=runs).tolist()
    sample = setting.rows
    if len(sample) > cases:
        sample = sample[np.sort(chance.choice(len(sample), cases, replace=False))]
    bench = _Bench(Attacker(setting, float(accuracy), int(limit)), sample, seeds, [])
    began = time.monotonic()
    table: list[Defence] = []
    for entry in chosen:
        if seconds is not None and table and time.monotonic() - began > seconds:
            break
        table.append(bench.quota_row(entry, quota) if entry.id == QUOTA and quota is not None else bench.row(entry))
        if progress is not None:
            progress(len(table), len(chosen))
    return Defences(id, float(accuracy), int(limit), int(runs), len(sample), tuple(table))


def _some(shared: Callable[..., Defences], ids: Sequence[str]) -> Defences:
    return shared(defences=ids)


def _dealt(ids: Sequence[str]) -> list[Sequence[str]]:
    """The defences in as many hands as there may be processes, dealt in turn: neighbours in the table cost alike."""
    hands = min(len(ids), HANDS)
    return [ids[i::hands] for i in range(hands)]


def _together(parts: Sequence[Defences], chosen: Sequence[Defended]) -> Defences:
    rows = {row.id: row for part in parts for row in part.rows}
    return replace(parts[0], rows=tuple(rows[entry.id] for entry in chosen if entry.id in rows))


def _chosen(known: list[Defended], wanted: Sequence[str] | None, quota: Quota | None) -> list[Defended]:
    if quota is not None:
        name = f"At most {quota.answers} explanations in all"
        known = [*known, Defended(QUOTA, name, f"quota of {quota.answers}", None, known[0].make)]
    if wanted is None:
        return known
    names = [entry.id for entry in known]
    for name in wanted:
        if name not in names:
            raise InvalidInput(f"no defence {name!r} for this service; there are {', '.join(names)}")
    return [entry for entry in known if entry.id in wanted]


@dataclass(frozen=True, eq=False)
class _Bench:
    """Where every defence is attacked alike: the same people, the same seeds."""

    attacker: Attacker
    cases: FloatArray
    seeds: list[int]
    labels: list[Attempt]  # what labels alone cost: the same under every defence, for no defence changes them

    def row(self, entry: Defended) -> Defence:
        """A defence, attacked once for every seed."""
        return self._row(entry, [self._attacked(entry, k) for k in range(len(self.seeds))])

    def quota_row(self, entry: Defended, quota: Quota) -> Defence:
        """The service as it is, but nobody gets more than so many explanations."""
        short = Attacker(self.attacker.setting, self.attacker.accuracy, quota.answers)
        pairs = [self._attacked(entry, k, short) for k in range(len(self.seeds))]
        answered = min(1.0, quota.answers / len(self.attacker.setting.rows))
        return self._row(entry, pairs, answered)

    def _attacked(self, entry: Defended, run: int, short: Attacker | None = None) -> tuple[Attempt, Attempt]:
        """The cheapest attack without and with labels; `short`: who may not have more explanations than that."""
        attacker = self.attacker
        price = bisection_price(attacker.setting.dimension, attacker.accuracy)
        ways = np.random.default_rng(self.seeds[run]).spawn(5)
        explained = NOTHING
        if short is None or short.limit > 0:
            explained = (short or attacker).explained(entry.make(ways[0]), ways[1], price)
        if len(self.labels) <= run:
            self.labels.append(attacker.labels_only(entry.make(ways[2]), ways[2]))
        most = None if short is None else short.limit
        both = attacker.with_labels(entry.make(ways[3]), ways[4], explained, self.labels[run], most=most)
        return explained, both

    def _row(self, entry: Defended, pairs: list[tuple[Attempt, Attempt]], answered: float = 1.0) -> Defence:
        paid = price(self.attacker.setting, entry.make(np.random.default_rng(self.seeds[0])), self.cases)
        explained, with_labels = (median_attempt([pair[k] for pair in pairs]) for k in (0, 1))
        return Defence(
            id=entry.id,
            name=entry.name,
            short=entry.short,
            spec=entry.spec,
            explained=_cost(explained),
            with_labels=_cost(with_labels),
            length=paid.length,
            invalid=paid.invalid,
            unanswered=1 - answered * (1 - paid.unanswered),
            shows_rows=entry.shows_rows,
        )


def _cost(attempt: Attempt) -> Cost:
    if not attempt.succeeded:
        return Cost(None, None, None, False, attempt.error if math.isfinite(attempt.error) else None)
    return Cost(attempt.explanations, attempt.labels, attempt.method, attempt.certified, attempt.error)
