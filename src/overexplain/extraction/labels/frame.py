"""An orthonormal frame (u, q_2, …, q_p) around a guess u of the normal, kept as a mirror: p numbers instead of p².

Normals are written α = u + Σ r_i q_i, in coordinates y of their own: x = S y with one scale per feature, so that α = S·normal.
A *lifted* frame has one coordinate more, for the offset, and is rotated so that the offset has the same share 1/√p in each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.norm import UNIT_ROUNDOFF


@dataclass(frozen=True)
class Frame:
    """The frame of `guess` (length 1 in y); `scale` is S; `lifted` says whether the offset is one of the coordinates.

    H = I − 2 m mᵀ mirrors one axis into ±u; its other columns are the q_i. `axis` is the feature with the largest scale: that
    mixes the small scales, which weigh most in the normal, least.
    """

    guess: FloatArray
    scale: FloatArray
    lifted: bool = False

    @cached_property
    def axis(self) -> int:
        """The axis that is mirrored into ±u."""
        return int(np.argmax(self.scale))

    @cached_property
    def others(self) -> IntArray:
        """The features of q_2, …, q_p."""
        return np.delete(np.arange(len(self.guess), dtype=np.int64), self.axis)

    @cached_property
    def mirror(self) -> FloatArray:
        """m, a unit vector."""
        sum_ = self.guess.copy()
        sum_[self.axis] += math.copysign(1.0, self.guess[self.axis])  # of two mirrors, the one without cancellation
        return np.asarray(sum_ / np.linalg.norm(sum_))

    @property
    def size(self) -> int:
        """The number of unknown coordinates."""
        return len(self.guess) - (0 if self.lifted else 1)

    @property
    def share(self) -> float:
        """The offset's share in each coordinate: 1/√p if lifted, else 0."""
        return 1 / math.sqrt(len(self.guess)) if self.lifted else 0.0

    @cached_property
    def _tilt(self) -> tuple[float, float]:
        """A lifted frame is rotated by I − 2 e eᵀ, e = (first, …, first, last)."""
        p = len(self.guess)
        first, last = 1 / math.sqrt(p), 1 / math.sqrt(p) - 1
        length = math.sqrt((p - 1) * first * first + last * last)
        return first / length, last / length

    def _mirrored(self, entries: FloatArray) -> FloatArray:
        """Σ entries_i q_i: entries of the q_i in, a vector in y out."""
        vector = np.zeros(len(self.guess))
        vector[self.others] = entries
        return np.asarray(vector - 2 * float(self.mirror @ vector) * self.mirror)

    @cached_property
    def _sum(self) -> FloatArray:
        return self._mirrored(np.ones(len(self.others)))

    def column(self, i: int) -> FloatArray:
        """What coordinate i multiplies: q_i, or its rotation if lifted."""
        first, last = self._tilt if self.lifted else (0.0, 0.0)
        if self.lifted and i == len(self.others):
            return np.asarray(-2 * last * first * self._sum)
        j = self.others[i]
        vector = -2 * float(self.mirror[j]) * self.mirror
        vector[j] += 1.0
        return vector - 2 * first * first * self._sum if self.lifted else vector

    def _unrotated(self, coordinates: FloatArray) -> FloatArray:
        """Entries of the q_i alone."""
        if not self.lifted:
            return coordinates
        first, last = self._tilt
        along = first * float(coordinates[:-1].sum()) + last * float(coordinates[-1])
        return np.asarray(coordinates[:-1] - 2 * along * first)

    def normal(self, coordinates: FloatArray) -> FloatArray:
        """u + Σ coordinates_i column(i), in y."""
        return self.guess + self._mirrored(self._unrotated(coordinates))

    def rounding(self, coordinates: FloatArray) -> float:
        """Bound on the length, in x, by which rounding moves the normal of these coordinates (S⁻¹ times that in y)."""
        entries = np.abs(coordinates)
        if self.lifted:
            first, last = (abs(part) for part in self._tilt)
            along = first * float(entries[:-1].sum()) + last * float(entries[-1])
            entries = entries[:-1] + 2 * along * first
        magnitude = np.zeros(len(self.guess))
        magnitude[self.others] = entries
        mirror = np.abs(self.mirror)
        magnitude += np.abs(self.guess) + 2 * float(mirror @ magnitude) * mirror
        return 4 * (len(self.guess) + 16) * UNIT_ROUNDOFF * float(np.linalg.norm(magnitude / self.scale))

    @cached_property
    def _measured(self) -> tuple[FloatArray, float]:
        p = len(self.guess)
        if np.ptp(self.scale) == 0:  # orthogonal in x as well
            kept = math.sqrt(1 - self.share**2)
            return np.full(self.size, kept / float(self.scale[0])), (1 + 8 * p * UNIT_ROUNDOFF) / kept
        columns = np.array([self.column(i) / self.scale for i in range(self.size)])
        weights = np.linalg.norm(columns, axis=1)
        most = float(np.linalg.norm(columns / weights[:, None], 2))
        return weights, min(most * (1 + 8 * p * UNIT_ROUNDOFF), math.sqrt(self.size))

    @property
    def weights(self) -> FloatArray:
        """ω_i = ‖S⁻¹ column(i)‖: how much a coordinate counts in the normal in x."""
        return self._measured[0]

    @property
    def stretch(self) -> float:
        """λ such that coordinates off by h_i move the normal in x by at most λ ‖(ω_i h_i)‖₂.

        λ is the largest singular value of the columns S⁻¹ column(i), each divided by its length: 1 where all scales are equal.
        """
        return self._measured[1]
