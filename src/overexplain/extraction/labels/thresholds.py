"""One label, one coordinate, one bit: "is r_i ≥ τ?" for any coordinate r_i of the normal and any τ.

With normal·u = 1 the plane is {x = origin + S y: α·y = s}, α = u + Σ r_i q_i, and s is where it crosses the line along u. The
label of origin + R S (q_i − t u) tells whether R (r_i − t) ≥ s: Yes means r_i ≥ t + s/R. What is known of s (a bracket) and
what rounding may do (`noise`·‖α‖) become slack; every interval is a proof. In a lifted frame the coordinates contain s and the
slack of s is gone, for as long as all questions have the same R.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from overexplain.errors import BrokenPromise
from overexplain.extraction.labels.frame import Frame
from overexplain.extraction.labels.line import Line, label_noise, length
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.hyperplane import YES

INSIDE = 1 - 2.0**-20
"""This share of the room is used: what is rounded stays inside."""

NO_ROOM = 2.0**-500
"""Stands for no room at all: the noise of such a question is beyond all bounds."""


@dataclass
class Ends:
    """One end of every interval: r_i beyond t_i + k_i s, up to noise_i ‖α‖; the log row that says so.

    `age` counts the labels about the coordinate since.
    """

    t: FloatArray
    k: FloatArray
    noise: FloatArray
    row: IntArray
    age: IntArray

    @staticmethod
    def unknown(size: int, sign: int) -> Ends:
        """Nothing known."""
        zeros = np.zeros(size)
        return Ends(np.full(size, sign * math.inf), zeros.copy(), zeros.copy(), np.full(size, -1), np.zeros(size, int))

    def put(self, i: int, told: Told) -> None:
        """Replace the end of coordinate i."""
        self.t[i], self.k[i], self.noise[i], self.row[i], self.age[i] = told.t, told.k, told.noise, told.row, 0


@dataclass(frozen=True)
class Aim:
    """One question about one coordinate: Yes (`ahead`; else No) means that it is at least t + k s.

    by_s and by_noise are how far, on either side, its answer leaves the coordinate open: because of s, and per unit of ‖α‖.
    """

    x: FloatArray
    ahead: bool
    t: float
    k: float
    noise: float
    by_s: float
    by_noise: float


@dataclass(frozen=True)
class Told:
    """One label: r_i is at least (`above`) or at most t + k s, up to noise·‖α‖."""

    above: bool
    t: float
    k: float
    noise: float
    row: int


@dataclass(frozen=True)
class Known:
    """Intervals of all coordinates, and of s; `length` bounds ‖α‖. All of it is inf where nothing is certain yet."""

    low: FloatArray
    high: FloatArray
    length: float
    s_low: float
    s_high: float

    @property
    def centre(self) -> FloatArray:
        """The middle of the box."""
        return np.asarray(self.low / 2 + self.high / 2)

    @property
    def half(self) -> FloatArray:
        """Half of the widths."""
        return np.asarray(self.high / 2 - self.low / 2)


@dataclass
class Thresholds:
    """Asks about coordinates and keeps what is known of them.

    reach    the most R ‖q_i − t u‖ in y; questions stay in `where` anyway
    radius   R of all questions; None: as large as there is room, on either side of the plane
    """

    line: Line
    frame: Frame
    reach: float
    radius: float | None = None
    low: Ends = field(init=False)
    high: Ends = field(init=False)

    def __post_init__(self) -> None:
        self.low, self.high = Ends.unknown(self.frame.size, -1), Ends.unknown(self.frame.size, 1)
        self._origin = length(self.line.origin / self.line.scale)

    def aim(self, i: int, tau: float, known: tuple[float, float] | None = None) -> Aim:
        """The question whether r_i ≥ τ; `known` is the interval of s if better known than by the line."""
        low, high = known or (self.line.low.place, self.line.high.place)
        column = self.frame.column(i)
        radius, k = self._question(column - tau * self.frame.guess)
        for _ in range(20):
            t = tau - k * (low + high) / 2  # s is taken to be in the middle of its interval
            direction = column - t * self.frame.guess
            nearer, _ = self._question(direction, radius)
            if abs(radius) <= abs(nearer):
                break
            radius = nearer * (1 - 2.0**-7)  # the shift left less room: a little less far, a little more shift
            k = self._factor(radius)
        x = self.line.where.clip(self.line.origin + radius * (self.line.scale * direction))
        moved = abs(radius) * (1 + abs(t))
        size = length(x / self.line.scale) + self._origin + self.line.reach + moved
        noise = label_noise(len(x), size) / abs(radius)
        return Aim(x, radius > 0, t, k, noise, abs(k) * (high - low) / 2, noise + abs(k) * self.line.noise)

    def ask(self, aim: Aim) -> Told:
        """What the label says."""
        yes = self.line.session.label(aim.x) == YES
        return Told(yes == aim.ahead, aim.t, aim.k, aim.noise, self.line.session.row)

    def tell(self, i: int, told: Told) -> None:
        """Keep what a label said."""
        ours, other = (self.low, self.high) if told.above else (self.high, self.low)
        ours.put(i, told)
        other.age[i] += 1

    def _question(self, direction: FloatArray, side: float = 0.0) -> tuple[float, float]:
        """(R, k) of a question along ±direction: R is negative on the other side, k multiplies s.

        A sign of `side` chooses the side; 0: where there is more room.
        """
        step, room = self.line.scale * direction, self.line.where.room
        most = self.reach / length(direction)
        ahead = min(INSIDE * room(self.line.origin, step), most) if side >= 0 else 0.0
        if self.radius is None:
            back = min(INSIDE * room(self.line.origin, -step), most) if side <= 0 else 0.0
            radius = max(ahead, NO_ROOM) if ahead >= back else -back
        else:
            radius = min(self.radius, ahead)
        return radius, self._factor(radius)

    def _factor(self, radius: float) -> float:
        """What multiplies s in t + k s: 1/R, and in a lifted frame what is missing to the common R."""
        return 1 / radius - (1 / self.radius if self.frame.lifted and self.radius is not None else 0.0)

    def span(self, direction: FloatArray) -> float:
        """How far a question along ±direction may lie; negative if there is more room on the other side."""
        return self._question(direction)[0]

    def rounding(self, radius: float, place: float) -> float:
        """How far from the plane labels this far out may be wrong, per unit of ‖α‖."""
        return label_noise(len(self.line.scale), 2 * self._origin + self.line.reach + 2 * (abs(radius) + abs(place)))

    def known(self) -> Known:
        """What all labels so far prove; raises BrokenPromise if they contradict each other.

        |r_i| ≤ M_i + ν_i ‖α‖ for all i gives ‖α‖ ≤ ‖(1, M)‖ / (1 − ‖ν‖).
        """
        s_low, s_high, noise = self.line.low.place, self.line.high.place, self.line.noise
        low_noise = self.low.noise + np.abs(self.low.k) * noise
        high_noise = self.high.noise + np.abs(self.high.k) * noise
        most = np.maximum(
            np.abs(self.low.t) + np.abs(self.low.k) * self.line.reach,
            np.abs(self.high.t) + np.abs(self.high.k) * self.line.reach,
        )
        share = length(np.maximum(low_noise, high_noise))
        size = math.hypot(1.0, length(most)) / (1 - share) if share < 1 else math.inf
        # u might still point away from Yes, by rounding alone: the first pair rules it out, if it was far enough apart.
        if not size * 2 * self.line.first_noise < self.line.first_length:
            size = math.inf
        if not math.isfinite(size):
            return Known(np.full(len(most), -math.inf), np.full(len(most), math.inf), math.inf, s_low, s_high)

        def box(s_low: float, s_high: float) -> tuple[FloatArray, FloatArray]:
            below = self.low.t + np.minimum(self.low.k * s_low, self.low.k * s_high) - low_noise * size
            above = self.high.t + np.maximum(self.high.k * s_low, self.high.k * s_high) + high_noise * size
            return below, above

        low, high = box(s_low, s_high)
        s_low, s_high = s_low - noise * size, s_high + noise * size
        if self.frame.lifted and self.radius is not None:
            # The offset's coordinate is −s √p / R, and the sum of all coordinates is √p times that.
            s_low = max(s_low, -self.radius * self.frame.share**2 * float(high.sum()))
            s_high = min(s_high, -self.radius * self.frame.share**2 * float(low.sum()))
            tighter = box(s_low, s_high)
            low, high = np.maximum(low, tighter[0]), np.minimum(high, tighter[1])
        worst = int(np.argmax(low - high))
        if low[worst] > high[worst] or s_low > s_high:
            raise BrokenPromise(
                f"the labels contradict each other: those in rows {self.low.row[worst]} and {self.high.row[worst]} of the "
                "log fit no hyperplane together with the others. The service flips labels, or its model is not linear",
                fact="OneHyperplane",
                excess=float(low[worst] - high[worst]),
                row=int(max(self.low.row[worst], self.high.row[worst])),
            )
        return Known(low, high, size, s_low, s_high)
