"""Where the plane crosses a line: a bracket with No at its low end, Yes at its high end, halved one label at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from overexplain.extraction.box import Where
from overexplain.extraction.session import Session
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import YES
from overexplain.geometry.norm import UNIT_ROUNDOFF


def length(vector: FloatArray) -> float:
    """The Euclidean length, without the detours of numpy.linalg.norm: it is needed several times for each label."""
    return math.sqrt(float(vector @ vector))


def label_noise(p: int, size: float) -> float:
    """How far from the plane float64 labels may be wrong, for ‖S·normal‖ = 1; `size` bounds ‖S⁻¹x‖ of all that is involved.

    A service computes normal·x − offset with an error of at most (p + 4) 2⁻⁵³ (|normal|·|x| + |offset|); our own questions
    are rounded too.
    """
    return (p + 16) * UNIT_ROUNDOFF * size


@dataclass
class End:
    """An end of the bracket: its place on the line, how far float64 may be wrong there, the log row of its label.

    `age` counts the labels of this line since.
    """

    place: float
    noise: float
    row: int | None
    age: int = 0


@dataclass
class Line:
    """x = origin + t·S·u: No at t = low.place, Yes at t = high.place, as far as labels near the plane can be trusted."""

    session: Session
    where: Where
    scale: FloatArray
    origin: FloatArray
    unit: FloatArray
    low: End
    high: End
    first_length: float = field(init=False)
    first_noise: float = field(init=False)

    def __post_init__(self) -> None:
        self.first_length = self.width
        self.first_noise = self.noise

    @staticmethod
    def through(
        session: Session,
        where: Where,
        scale: FloatArray,
        no: FloatArray,
        yes: FloatArray,
        rows: tuple[int | None, int | None] = (None, None),
    ) -> Line:
        """The line through a point labelled No and one labelled Yes."""
        step = (yes - no) / scale
        distance = length(step)
        size = length(no / scale) + length(yes / scale) + 2 * distance
        noise = label_noise(len(no), 2 * size)
        ends = End(-distance / 2, noise, rows[0]), End(distance / 2, noise, rows[1])
        return Line(session, where, scale, no / 2 + yes / 2, step / distance, *ends)

    @property
    def width(self) -> float:
        """The length of the bracket, in y."""
        return self.high.place - self.low.place

    @property
    def middle(self) -> float:
        """The middle of the bracket."""
        return self.low.place / 2 + self.high.place / 2

    @property
    def noise(self) -> float:
        """The larger noise of the two ends."""
        return max(self.low.noise, self.high.noise)

    @property
    def reach(self) -> float:
        """A bound on |t| of the plane, up to noise."""
        return max(abs(self.low.place), abs(self.high.place))

    @property
    def finest(self) -> float:
        """A width that further halving would not make more certain."""
        return 4 * self.noise

    def point(self, place: float) -> FloatArray:
        """The question at this place."""
        return self.where.clip(self.origin + place * (self.scale * self.unit))

    def ask(self, place: float) -> tuple[bool, End]:
        """True if the label is Yes, and the end that it makes."""
        x = self.point(place)
        size = length(x / self.scale) + length(self.origin / self.scale) + 2 * self.reach
        answer = self.session.label(x) == YES
        return answer, End(place, label_noise(len(x), size + abs(place)), self.session.row)

    def narrow(self, width: float) -> None:
        """Halve until the bracket is at most this wide, or as narrow as float64 allows."""
        while self.width > max(width, self.finest):
            place = self.middle
            if not self.low.place < place < self.high.place:
                return
            answer, end = self.ask(place)
            if answer:
                self.high, self.low.age = end, self.low.age + 1
            else:
                self.low, self.high.age = end, self.high.age + 1

    def recentre(self) -> None:
        """Move the origin into the bracket."""
        shift = self.middle
        self.origin = self.point(shift)
        self.low.place -= shift
        self.high.place -= shift
