"""From numbers to places: a line from left to right, evenly or in powers of ten, and where its ticks stand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from overexplain.report.html.texts import width_of


@dataclass(frozen=True)
class Scale:
    """A line of places from `start` (the value `low`) to `end` (the value `high`)."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        """The place of a value; values outside are put at the nearer end.

        >>> Scale(1, 100, 0, 50, is_log=True)(10)
        25.0
        """
        low, high, at = (math.log(max(v, 1e-300)) if self.is_log else v for v in (self.low, self.high, value))
        share = (at - low) / (high - low) if high > low else 0.0
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def as_data(self) -> dict[str, str]:
        """The ends as attributes of a drawing, so that its marks can be read back."""
        ends = {"left": self.start, "right": self.end, "low": self.low, "high": self.high}
        return {f"data_{name}": f"{end:.10g}" for name, end in ends.items()}


@dataclass(frozen=True)
class Tick:
    """A tick: its place, where its text is centred, and the text."""

    place: float
    middle: float
    words: str


def spaced(
    values: Sequence[float], texts: Sequence[str], scale: Scale, gap: float = 10.0, limit: float = math.inf
) -> list[Tick]:
    """The ticks whose texts do not touch, nor reach beyond the limit: the last always, then from the first on.

    >>> [tick.words for tick in spaced([1, 2, 3], ["1", "2", "3"], Scale(1, 3, 0, 30))]
    ['1', '3']
    """
    places = [scale(value) for value in values]
    ticks = [Tick(at, min(at, limit - width_of(words) / 2), words) for at, words in zip(places, texts, strict=True)]
    *others, last = ticks
    kept: list[Tick] = []
    for tick in others:
        reach = [(width_of(tick.words) + width_of(other.words)) / 2 + gap for other in [*kept, last]]
        if all(abs(tick.middle - other.middle) > far for other, far in zip([*kept, last], reach, strict=True)):
            kept.append(tick)
    return [*kept, last]


def counts_up_to(most: int, steps: Sequence[int]) -> list[int]:
    """1, 2, 5, 10, … (each of `steps` times powers of ten) below a number, and the number.

    >>> counts_up_to(30, (1, 2, 5))
    [1, 2, 5, 10, 20, 30]
    """
    decades = range(len(str(most)))
    return sorted({step * 10**k for k in decades for step in steps if step * 10**k < most} | {most})


def round_steps(low: float, high: float, most: int = 4) -> list[float]:
    """Round numbers from the first at or above `low` up to `high`, at most so many; `low` itself if there is none.

    >>> round_steps(1, 3.18), round_steps(0, 0.517), round_steps(1, 1e6)
    ([1.0, 2.0, 3.0], [0.0, 0.2, 0.4], [500000.0, 1000000.0])
    """
    size = 10.0 ** math.floor(math.log10(max(high - low, 1e-9)))
    for step in (size / 5, size / 2, size, 2 * size, 5 * size):
        first = math.ceil(low / step - 1e-9)
        count = math.floor(high / step + 1e-9) - first + 1
        if count <= most:
            return [round((first + k) * step, 10) for k in range(count)] or [low]
    return [low]


def decades_around(least: float, most: float) -> tuple[int, int]:
    """The powers of ten at or below the least and at or above the most, two different ones.

    >>> decades_around(30, 3000), decades_around(10, 10)
    ((10, 10000), (10, 100))
    """
    low = 10 ** max(len(str(int(least))) - 1, 0)
    high = low * 10
    while high < most:
        high *= 10
    return low, high


def compact(value: float) -> str:
    """A number for an axis: three digits, thousands with commas, a power of ten if very large or small.

    >>> compact(0.0), compact(26.0), compact(2000.0), compact(0.13), compact(2.6e-07), compact(1.2e13)
    ('0', '26', '2,000', '0.13', '2.6e-7', '1.2e13')
    """
    if value == 0:
        return "0"
    if value < 0:
        return f"−{compact(-value)}"
    if 1e-3 <= value < 1e5:
        rounded = float(f"{value:.3g}")
        return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:g}"
    digits, exponent = f"{value:.2g}".split("e") if "e" in f"{value:.2g}" else f"{value:.1e}".split("e")
    return f"{float(digits):g}e{int(exponent)}"
