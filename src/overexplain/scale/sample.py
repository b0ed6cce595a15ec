"""One pass over data of any size: a sample of its rows, and the mean and deviation of all of them.

Which rows are drawn is decided by a hash of their numbers, and sums are added up block by block in the order of the rows, so that
the result depends on the rows and the seed alone: not on files, row groups or who read them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overexplain.auditing.units import Units
from overexplain.geometry.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Sampled:
    """Some of `total` rows, in their order; `numbers` says which; `units` are standard deviations of all of them."""

    rows: FloatArray
    numbers: NDArray[np.int64]
    total: int
    units: Units

    @property
    def left_out(self) -> int:
        """How many rows there are besides."""
        return self.total - len(self.rows)


def draw(blocks: Iterable[FloatArray], dimension: int, most: int, seed: int = 0) -> Sampled:
    """A sample of at most `most` rows, each as likely as any other, and the units of all: memory for the sample and a block.

    The rows with the smallest hashes are kept, which any order of reading finds.

    >>> whole = draw([np.array([[1.0], [2.0]]), np.array([[6.0]])], 1, most=2)
    >>> len(whole.rows), whole.total, whole.units.centre.tolist()
    (2, 3, [3.0])
    """
    total = 0
    rows, numbers, marks = np.zeros((0, dimension)), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
    sums = _Sums(dimension)
    for points in blocks:
        found = np.arange(total, total + len(points))
        hashes = hashed(found, seed)
        if len(marks) >= most:  # most blocks have few rows that are better than all kept
            better = hashes < marks.max()
            points_new, found, hashes = points[better], found[better], hashes[better]
        else:
            points_new = points
        if len(found):
            marks = np.concatenate([marks, hashes])
            kept = np.argpartition(marks, most - 1)[:most] if len(marks) > most else np.arange(len(marks))
            rows = np.concatenate([rows, points_new])[kept]
            numbers, marks = np.concatenate([numbers, found])[kept], marks[kept]
        sums.add(points)
        total += len(points)
    order = np.argsort(numbers)
    return Sampled(rows[order], numbers[order], total, sums.units())


def hashed(numbers: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """64 bits that look random for every row number, all different (the finalizer of SplitMix64, a bijection).

    >>> hashed(np.array([0, 1]), 0).tolist()
    [16294208416658607535, 7960286522194355700]
    """
    z = numbers.astype(np.uint64) + np.uint64(seed * 0x632BE59BD9B4E019 % 2**64)
    with np.errstate(over="ignore"):
        z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


class _Sums:
    """Mean and sum of squared deviations, merged as Chan, Golub and LeVeque do: nothing is squared before it is centred."""

    def __init__(self, dimension: int) -> None:
        self.count, self.mean, self.squares = 0, np.zeros(dimension), np.zeros(dimension)

    def add(self, points: FloatArray) -> None:
        if not len(points):
            return
        mean = points.mean(axis=0)
        squares = ((points - mean) ** 2).sum(axis=0)
        total = self.count + len(points)
        apart = mean - self.mean
        self.mean = self.mean + apart * (len(points) / total)
        self.squares = self.squares + squares + apart**2 * (self.count * len(points) / total)
        self.count = total

    def units(self) -> Units:
        deviation = np.sqrt(self.squares / max(self.count, 1))
        return Units(self.mean, np.where(deviation > 0, deviation, 1.0))
