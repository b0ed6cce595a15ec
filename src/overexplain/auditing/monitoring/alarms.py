"""Who asks as an attacker would: questions unusually often next to the boundary, far out, or copied from explanations.

Each rule calls a question unusual by a limit that a known share of other clients' questions passes. It fires at the first
question at which a client has `least` different unusual ones and the chance of so many, had its questions been drawn like the
others', is at most `RARE`. A client's own questions are left out when its limit is set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from overexplain.auditing.monitoring.monitor_report import Alarm, Kind
from overexplain.auditing.monitoring.rows import Rows
from overexplain.auditing.monitoring.times import iso
from overexplain.auditing.monitoring.usual import Measured, first_time
from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray

RARE = 1e-4
"""Fires if so many would come by chance with at most this probability, at one look."""

LEAST: dict[Kind, int] = {"boundary": 5, "far-out": 3, "own-explanations": 5, "foreign-explanations": 3}
FLOOR: dict[Kind, float] = {"own-explanations": 0.02, "foreign-explanations": 0.005}
"""Resubmissions that are taken to be usual even where others make fewer: people follow the advice and ask again."""

NEAR = 0.01
"""A margin is unusually small below this quantile of other clients' margins."""

FAR, TIMES = 0.99, 3.0
"""A question is far out beyond `TIMES` this quantile of other clients' spreads."""

ENOUGH = 200
"""Fewer questions of others say nothing of what is usual."""

WARNS = 0.8
"""Share of the quota at which volume warns."""


@final
@dataclass(frozen=True, eq=False)
class Population:
    """Values of others' questions; `codes` says whose they are (−1: nobody's, as of reference points)."""

    values: FloatArray
    codes: IntArray

    def without(self, client: int) -> FloatArray:
        """The values of all others."""
        return np.asarray(self.values[self.codes != client])


def near_limit(others: FloatArray) -> tuple[float, float]:
    """(limit, share of others below it) for margins."""
    limit = float(np.quantile(others, NEAR))
    # Where many margins are equal (discrete data) more than the quantile may lie at the limit; only what is below counts.
    return limit, max(NEAR, float(np.mean(others < limit)))


def far_limit(others: FloatArray) -> tuple[float, float]:
    """(limit, share of others beyond it) for spreads."""
    limit = TIMES * float(np.quantile(others, FAR))
    return limit, max(float(np.mean(others > limit)), 1 / len(others))


def unusual_values(kind: Kind, values: FloatArray, population: Population, rows: Rows, seen: Measured) -> list[Alarm]:
    """Alarms of the rules that compare a number of every question with those of others."""
    limits = near_limit if kind == "boundary" else far_limit
    found = []
    for client, own in _candidates(kind, values, population, rows):
        others = population.without(client)
        if len(others) < ENOUGH:
            continue
        limit, usual = limits(others)
        unusual = values[own] < limit if kind == "boundary" else values[own] > limit
        alarm = _fired(kind, client, own, unusual, usual, limit, rows, seen)
        if alarm is not None:
            found.append(alarm)
    return found


def _candidates(kind: Kind, values: FloatArray, population: Population, rows: Rows) -> list[tuple[int, IntArray]]:
    """Clients that a rule could fire for, with their rows: all others are done without looking at each one."""
    if len(population.values) < ENOUGH:
        return []
    parts = np.bincount(population.codes[population.codes >= 0], minlength=len(rows.clients))
    heavy = parts > NEAR * len(population.values)
    # Without a client that is at most 1 % of the population the limit is at most that of another 1 %.
    loose = values < np.quantile(population.values, 2 * NEAR + 0.005)
    if kind == "far-out":
        loose = values > np.quantile(population.values, FAR - NEAR)
    counts = np.bincount(rows.codes[loose], minlength=len(rows.clients))
    return _rows_of(np.flatnonzero((counts >= LEAST[kind]) | heavy).tolist(), rows)


def resubmissions(kind: Kind, repeats: BoolArray, rows: Rows, seen: Measured) -> list[Alarm]:
    """Alarms of the rules that count questions which repeat an explanation."""
    counts = np.bincount(rows.codes[repeats], minlength=len(rows.clients))
    everyone = np.bincount(rows.codes, minlength=len(rows.clients))
    found = []
    for client, own in _rows_of(np.flatnonzero(counts >= LEAST[kind]).tolist(), rows):
        others = int(everyone.sum() - everyone[client])
        theirs = int(counts.sum() - counts[client])
        usual = max(FLOOR[kind], theirs / others if others else 0.0)
        alarm = _fired(kind, client, own, repeats[own], usual, None, rows, seen)
        if alarm is not None:
            found.append(alarm)
    return found


def repeated_explanations(rows: Rows, seen: Measured) -> tuple[BoolArray, BoolArray]:
    """(questions that repeat an earlier explanation given to the same client, to another client)."""
    # An explanation that is its own question (the point lay on the boundary) is repeated by everyone who asks it again.
    giving = np.flatnonzero((seen.answers != 0) & (seen.answers != seen.near))
    nothing = np.zeros(len(rows), dtype=bool)
    if not len(giving):
        return nothing, nothing.copy()
    with np.errstate(over="ignore"):
        mark = (rows.codes + 1) * np.int64(-7046029254386353131)
    own = _earlier(seen.answers[giving] ^ mark[giving], giving, seen.near ^ mark)
    anyone = _earlier(seen.answers[giving], giving, seen.near)
    return own, anyone & ~own


def _earlier(given: IntArray, at: IntArray, asked: IntArray) -> BoolArray:
    """For every question: was it given at an earlier row? `at`, rising, are the rows of what was given."""
    values, first = np.unique(given, return_index=True)
    place = np.minimum(np.searchsorted(values, asked), len(values) - 1)
    return np.asarray((values[place] == asked) & (at[first[place]] < np.arange(len(asked))))


def volumes(quota: int, rows: Rows) -> list[Alarm]:
    """Clients that have used most of their quota."""
    counts = np.bincount(rows.codes, minlength=len(rows.clients))
    warns = max(1, int(np.ceil(WARNS * quota)))
    found = []
    for client, own in _rows_of(np.flatnonzero(counts >= warns).tolist(), rows):
        row = int(own[warns - 1])
        name, when = rows.clients[client], iso(float(rows.times[row]))
        found.append(Alarm("volume", name, row, when, warns, warns, float(quota), WARNS, None, len(own)))
    return found


def _rows_of(clients: list[int], rows: Rows) -> list[tuple[int, IntArray]]:
    """The rows of some clients."""
    if not clients:
        return []
    order, starts = rows.by_client()
    return [(client, order[starts[client] : starts[client + 1]]) for client in clients]


def _fired(
    kind: Kind,
    client: int,
    own: IntArray,
    unusual: BoolArray,
    usual: float,
    limit: float | None,
    rows: Rows,
    seen: Measured,
) -> Alarm | None:
    """The alarm, if it fires: only different questions count."""
    from scipy.stats import binom

    first = first_time(seen.questions[own])
    own, unusual = own[first], unusual[first]
    hits = np.flatnonzero(unusual)
    asked, counts = hits + 1, np.arange(1, len(hits) + 1)
    chances = np.asarray(binom.sf(counts - 1, asked, usual))
    fires = np.flatnonzero((counts >= LEAST[kind]) & (chances <= RARE))
    if not len(fires):
        return None
    k = int(fires[0])
    row = int(own[hits[k]])
    return Alarm(
        kind, rows.clients[client], row, iso(float(rows.times[row])), int(asked[k]), int(counts[k]), limit, usual,
        float(chances[k]), len(hits),
    )  # fmt: skip
