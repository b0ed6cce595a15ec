"""Does the service contradict itself? Bisection alone never notices: its intervals are nested, any answers fit.

After a wrong answer all later ones about the same coordinate point back at it. So an end that has stood for many labels is
doubted, and asked about again, just beyond it; and in the end a few labels that are certain must come as predicted.
"""

from __future__ import annotations

import numpy as np

from overexplain.errors import BrokenPromise
from overexplain.extraction.labels.line import Line
from overexplain.extraction.labels.thresholds import Known, Thresholds
from overexplain.geometry.hyperplane import YES

PATIENCE = 5
"""An end that has stood for so many labels is asked about again: one of 16 honest ones is."""

CONFIRMATIONS = 5
"""So many labels that are certain by then are asked in the end: a service that tosses a coin passes one time in 32."""

CONFIRMATIONS_FAR = 4
"""Far away there is less to be wrong: no bracket was narrowed."""


def doubt_line(line: Line) -> None:
    """Ask again about an end of the line's bracket that all later labels pointed at."""
    for end, sign in ((line.low, -1), (line.high, 1)):
        if end.age < PATIENCE:
            continue
        place = end.place + sign * (line.width / 16 + 2 * line.noise)
        yes, again = line.ask(place)
        if yes == (sign < 0):
            raise _contradiction(again.row, end.row, abs(place - end.place))


def doubt_coordinates(thresholds: Thresholds, known: Known) -> None:
    """Ask again about ends of intervals that all later labels pointed at."""
    s = known.s_low, known.s_high
    for ends, edge, sign in ((thresholds.low, known.low, -1), (thresholds.high, known.high, 1)):
        for i in np.flatnonzero(ends.age >= PATIENCE).tolist():
            aim = thresholds.aim(i, float(edge[i]), s)
            beyond = 1.01 * (aim.by_s + aim.by_noise * known.length) + float(known.half[i]) / 8
            told = thresholds.ask(thresholds.aim(i, float(edge[i]) + sign * beyond, s))
            if told.above == (sign > 0):
                raise _contradiction(told.row, int(ends.row[i]), beyond)


def confirm(thresholds: Thresholds, known: Known, rng: np.random.Generator) -> None:
    """Ask at random places near the plane found, but so far off it that the labels are certain."""
    line, frame = thresholds.line, thresholds.frame
    normal, spread = frame.normal(known.centre), float(np.linalg.norm(known.half))
    middle, half = (known.s_low + known.s_high) / 2, (known.s_high - known.s_low) / 2
    is_far = thresholds.radius is not None and not frame.lifted
    for _ in range(CONFIRMATIONS_FAR if is_far else CONFIRMATIONS):
        along = rng.standard_normal(len(normal))
        along -= float(normal @ along) * frame.guess  # now in the plane: normal·u = 1
        along /= float(np.linalg.norm(along))
        radius = thresholds.span(along)
        sign = rng.choice([-1.0, 1.0])
        for _ in range(40):
            off = abs(radius) * spread + half
            off = 1.5 * off + 4 * known.length * thresholds.rounding(radius, middle)
            x = line.origin + line.scale * ((middle + sign * off) * frame.guess + radius * along)
            if line.where.contains(x):
                break
            radius, sign = radius / 2, -sign
        else:
            return  # no room on either side, not even on the line itself
        label = line.session.label(x)
        if (label == YES) != (sign > 0):
            raise BrokenPromise(
                f"the labels contradict each other: the one in row {line.session.row} of the log is wrong for "
                "every hyperplane that fits the others. The service flips labels, or its model is not linear",
                fact="OneHyperplane",
                excess=off,
                row=line.session.row,
            )


def _contradiction(row: int | None, earlier: int | None, excess: float) -> BrokenPromise:
    before = "the label given as known" if earlier is None else f"row {earlier}"
    return BrokenPromise(
        f"the labels contradict each other: row {row} of the log and {before}, asked almost the same, cannot both be right. "
        "The service flips labels, or its model is not linear",
        fact="OneHyperplane",
        excess=excess,
        row=row,
    )
