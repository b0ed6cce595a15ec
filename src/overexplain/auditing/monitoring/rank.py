"""How many directions of the boundary a set of exact explanations shows: p − 1 of them leave one normal, whatever the norm.

Exact plain explanations lie on the boundary itself, robust ones of one side and one radius on a plane parallel to it. So the
difference of two answers of the same plane is a direction that the boundary contains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from overexplain.auditing.monitoring.rows import Rows
from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.on_plane import on_plane

TINY = 1e-10
"""Relative length below which what is left of a direction counts as rounding: float64 answers leave about 1e-13."""

UNSIDED = -1


def is_exact(mechanism: Mechanism) -> bool:
    """True if answers are exact up to float64 rounding."""
    return mechanism.slack == 0 and not mechanism.tolerance


def levels(rows: Rows) -> IntArray:
    """For every row the number of the plane that its explanation lies on: 0 the boundary; −1: not known, or no exact answer."""
    found = np.full(len(rows), UNSIDED, dtype=np.int64)
    keys: dict[object, int] = {None: 0}
    for number, mechanism in enumerate(rows.mechanisms):
        if not is_exact(mechanism):
            continue
        own = rows.explained & (rows.mechanism_ids == number)
        if mechanism.domain is not None:  # on the boundary itself or nowhere in particular
            for chunk in rows.chunks(np.flatnonzero(own)):
                found[chunk[on_plane(mechanism, rows.points(chunk), rows.explanations(chunk))]] = 0
            continue
        if mechanism.is_plain:
            found[own] = 0
            continue
        whose = mechanism.distance if mechanism.radius is None else None  # a secret radius is that of one service
        for side in (-1, 1):
            key = (mechanism.robustness, mechanism.radius, side, whose)
            found[own & (rows.labels == side)] = keys.setdefault(key, len(keys))
    return found


@final
@dataclass(frozen=True, eq=False)
class Scale:
    """Features in units of their own spread, so that no unit of measurement decides what counts as zero."""

    middle: FloatArray
    spread: FloatArray

    def __call__(self, points: FloatArray) -> FloatArray:
        """Points in these units."""
        with np.errstate(over="ignore"):
            return np.asarray((points - self.middle) / self.spread)


@final
class Directions:
    """The directions seen so far: an orthonormal basis that answers are added to, plane by plane."""

    def __init__(self, dimension: int) -> None:
        self.basis = np.zeros((0, dimension))
        self._first: dict[int, FloatArray] = {}
        self._longest = 0.0
        self._largest = 0.0

    @property
    def rank(self) -> int:
        """How many there are."""
        return len(self.basis)

    @property
    def is_complete(self) -> bool:
        """True if one normal is left."""
        return self.rank >= self.basis.shape[1] - 1

    @property
    def on_boundary(self) -> FloatArray:
        """The first answer that lies on the boundary itself, as a row; no row if there is none."""
        return np.array([self._first[0]] if 0 in self._first else []).reshape(-1, self.basis.shape[1])

    def add(self, answers: FloatArray, planes: IntArray) -> list[int]:
        """Which of the answers showed a new direction, or a new plane; in order."""
        telling = []
        differences = np.empty_like(answers)
        for plane in np.unique(planes).tolist():
            own = np.flatnonzero(planes == plane)
            if plane not in self._first:
                self._first[plane] = answers[own[0]].copy()
                telling.append(int(own[0]))
            differences[own] = answers[own] - self._first[plane]
        lengths = np.linalg.norm(differences, axis=1)
        self._longest = max(self._longest, float(lengths.max(initial=0.0)))
        self._largest = max(self._largest, float(np.abs(answers).max(initial=0.0)))
        start = 0
        while not self.is_complete and start < len(answers):
            left = self._beyond(differences[start:])
            size = np.linalg.norm(left, axis=1)
            new = np.flatnonzero(size > max(TINY * self._longest, 1e3 * np.finfo(float).eps * self._largest))
            if not len(new):
                break
            first = int(new[0])
            telling.append(start + first)
            direction = self._beyond(left[first] / size[first])  # twice is enough
            self.basis = np.vstack([self.basis, direction / np.linalg.norm(direction)])
            start += first + 1
        return sorted(set(telling))

    def _beyond(self, differences: FloatArray) -> FloatArray:
        return differences - (differences @ self.basis.T) @ self.basis


def ranks(rows: Rows, planes: IntArray, scale: Scale, order: IntArray) -> IntArray:
    """For every client the rank of its own answers; those with equally many answers are done together."""
    usable: BoolArray = planes[order] >= 0
    owner = rows.codes[order][usable]
    own = order[usable]
    counts = np.bincount(owner, minlength=len(rows.clients))
    begins = np.concatenate([[0], np.cumsum(counts)[:-1]])
    found = np.zeros(len(rows.clients), dtype=np.int64)
    p = rows.dimension
    for count in np.unique(counts[counts >= 2]).tolist():
        clients = np.flatnonzero(counts == count)
        together = max(1, 4096 // count)
        for k in range(0, len(clients), together):
            some = clients[k : k + together]
            if count > 4 * p:
                found[some] = [_one(rows, planes, scale, own[begins[c] : begins[c] + count]) for c in some.tolist()]
            else:
                which = own[begins[some][:, None] + np.arange(count)]
                answers = scale(rows.explanations(which.ravel())).reshape(len(some), count, p)
                found[some] = _batch(answers, planes[which])
    return found


def _one(rows: Rows, planes: IntArray, scale: Scale, own: IntArray) -> int:
    directions = Directions(rows.dimension)
    for chunk in rows.chunks(own):
        directions.add(scale(rows.explanations(chunk)), planes[chunk])
        if directions.is_complete:
            break
    return directions.rank


def _batch(answers: FloatArray, planes: IntArray) -> IntArray:
    """The ranks of several clients with equally many answers: (clients, answers, p) and the plane of each answer."""
    # The first answer on the same plane, for each.
    same = planes[:, :, None] == planes[:, None, :]
    first = same.argmax(axis=2)
    differences = answers - np.take_along_axis(answers, first[:, :, None], axis=1)
    sizes = np.linalg.svd(differences, compute_uv=False)
    noise = 1e3 * np.finfo(float).eps * np.abs(answers).max(axis=(1, 2)) * np.sqrt(answers.shape[1])
    least = np.maximum(TINY * sizes[:, 0], noise)
    return np.asarray(np.minimum((sizes > least[:, None]).sum(axis=1), answers.shape[2] - 1))
