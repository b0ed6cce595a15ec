"""The truth about robust counterfactuals in the plane: every direction of a normal in turn, every offset that fits it.

It starts from the definition, not from the engine. With the label y of x, σ = −y, w = x' − x, a consistent model (a, b) has
σa ∈ K(w) and σ(a·x' − b) = ρ‖a‖*_N2 (ρ = 0: a plain counterfactual); with a secret radius that difference is ≥ 0 and the same
for all rows of one service. The weaker levels allow more offsets than that:

    paper         σ(a·x' − b) ≥ ρ‖a‖*
    perspective   and ≤ ρ·C‖a‖*_N1, C the largest ‖a‖*_N2 / ‖a‖*_N1 in K(w)
    shared        and ≤ ρ times the chord of ‖a‖*_N2 over K(w), with one length s = σ(a·x' − b)/ρ for all rows of one N2

In two dimensions K(w) is a ray or an arc. Along the chord of an arc (at most a right angle of it at a time) every bound on b is
the sum of a linear function and multiples of ‖a‖*_N2, so that the difference of two of them is convex or concave: where it is
≥ 0, and where it is largest, is found to the last digits by zooming in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np

import overexplain as ox
from brute import BOUNDARY, NO, UNKNOWN, YES, picture

UNDECIDED = 3
LEVELS = ("paper", "perspective", "shared", "exact")
"""From the weakest to the strongest."""

TIE = 1e-9
"""Directions that are nearer to each other than this are the same; w counts as on a tie of its norm up to this share."""

ROUNDING = (1e-12, 1e-9)
"""How far an equality may be off. A verdict that is not the same for both is near a change, whatever its distance."""

SHARES = np.linspace(0, 1, 17)
"""Where an interval is looked at before zooming in."""

FINE = 64
"""Pieces of an arc, if bounds of several norms make it neither convex nor concave."""


# --- what a log promises ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Length:
    """‖(d_1 x_1, d_2 x_2)‖_q, computed from its definition."""

    q: float
    weights: tuple[float, float]

    @staticmethod
    def of(norm: ox.Norm) -> Length:
        weights = (1.0, 1.0)
        if isinstance(norm, ox.Weighted):
            norm, weights = norm.norm, tuple(norm.weights.tolist())
        assert isinstance(norm, ox.Lp), norm
        return Length(norm.q, weights)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return _power_mean(np.abs(x) * self.weights, self.q)

    def dual(self, a: np.ndarray) -> np.ndarray:
        q = math.inf if self.q == 1 else 1.0 if self.q == math.inf else self.q / (self.q - 1)
        return _power_mean(np.abs(a) / self.weights, q)


def _power_mean(parts: np.ndarray, q: float) -> np.ndarray:
    return parts.max(axis=-1) if q == math.inf else (parts**q).sum(axis=-1) ** (1 / q)


@dataclass(frozen=True)
class Answer:
    """An explained row: x → x', the service's N1, N2 and radius; None: secret."""

    point: np.ndarray
    image: np.ndarray
    label: int
    distance: Length
    robustness: Length | None
    radius: float | None

    @property
    def rays(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The rim of the arc of all a with σa ∈ K(w), counterclockwise; twice the same if it is a ray, None if any a will do."""
        step = self.image - self.point
        if not step.any():
            return None
        q, weights = self.distance.q, np.array(self.distance.weights)
        parts = np.abs(step) * weights
        signs = np.where(parts > TIE * parts.max(), np.sign(step), 0.0)
        if q == 1:  # a_i = ±d_i where w moves, anything between them where it does not
            ends = [weights * np.where(signs, signs, s) for s in (1, -1)]
        elif q == math.inf:  # only where w moves most
            most = parts >= (1 - TIE) * parts.max()
            ends = [signs * np.eye(2)[i] for i in range(2) if most[i]]
        else:
            ends = [weights * signs * (parts / self.distance(step)) ** (q - 1)]
        first, last = (-self.label * v / np.linalg.norm(v) for v in (ends[0], ends[-1]))
        return (first, last) if first[0] * last[1] - first[1] * last[0] >= 0 else (last, first)


def answers(log: ox.QueryLog) -> list[Answer]:
    """The explained rows, each of which must have a label and an exact mechanism."""
    rows = []
    for row in log:
        if row.explanation is None:
            continue
        terms = row.mechanism
        assert row.label
        assert terms is not None
        assert terms.distance is not None
        assert terms.slack == 0
        robustness = None if terms.robustness is None else Length.of(terms.robustness)
        rows.append(Answer(row.point, row.explanation, row.label, Length.of(terms.distance), robustness, terms.radius))
    return rows


# --- the offsets that a normal leaves ---------------------------------------------------------------------------------


@dataclass
class Offsets:
    """low·f ≤ b ≤ high·f, b = equal·f and 0 = zero·f, for f = (a_1, a_2, ‖a‖* in each of `norms`): a row of numbers each."""

    norms: list[Length]
    low: list[np.ndarray] = field(default_factory=list)
    high: list[np.ndarray] = field(default_factory=list)
    equal: list[np.ndarray] = field(default_factory=list)
    zero: list[np.ndarray] = field(default_factory=list)

    def row(self, linear: np.ndarray, norm: Length | None = None, factor: float = 0.0) -> np.ndarray:
        """linear·a + factor·‖a‖*."""
        return np.array([*linear, *(factor * (norm == n) for n in self.norms)])

    def at_least(self, side: int, row: np.ndarray) -> None:
        """side·(row·f − b) ≥ 0."""
        (self.high if side > 0 else self.low).append(row)

    def features(self, a: np.ndarray) -> np.ndarray:
        return np.concatenate([a, *(n.dual(a)[..., None] for n in self.norms)], axis=-1)

    def range(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest b for each normal that has any."""
        f = self.features(a)
        if self.equal:
            return (f @ self.equal[0],) * 2
        lows = [f @ row for row in self.low] or [np.full(a.shape[:-1], -np.inf)]
        highs = [f @ row for row in self.high] or [np.full(a.shape[:-1], np.inf)]
        return np.max(lows, axis=0), np.min(highs, axis=0)

    def conditions(self) -> np.ndarray:
        """Rows that are ≥ 0 at a normal if and only if some b fits it."""
        rows = [s * row for row in self.zero for s in (1, -1)]
        if self.equal:
            base = self.equal[0]
            rows += [s * (row - base) for row in self.equal[1:] for s in (1, -1)]
            rows += [base - row for row in self.low] + [row - base for row in self.high]
        else:
            rows += [high - low for high in self.high for low in self.low]
        return np.array(rows).reshape(len(rows), 2 + len(self.norms))


def offsets(log: ox.QueryLog, level: str) -> Offsets:
    """What a level says about b."""
    rows = answers(log)
    robust = [row for row in rows if row.radius and row.robustness]
    out = Offsets(sorted({row.robustness for row in robust}, key=str))
    for row in log:
        if row.label:
            out.at_least(row.label, out.row(row.point))
    for row in rows:
        if row.radius == 0:
            out.equal.append(out.row(row.image))
    _share_secret_reach(out, [row for row in rows if row.radius is None])
    for row in robust:
        side, inner = -row.label, out.row(row.image, row.robustness, row.label * row.radius)
        if level == "exact":
            out.equal.append(inner)
            continue
        out.at_least(side, inner)
        if level == "perspective":
            step = row.image - row.point
            ratio = max(row.robustness.dual(a) / row.distance.dual(a) for a in row.rays)
            out.at_least(row.label, out.row(row.image - row.radius * ratio * step / row.distance(step)))
        if level == "shared":
            for other in robust:
                if other.robustness == row.robustness:
                    out.at_least(row.label, out.row(row.image + row.label * row.radius * _chord(other)))
    if level == "shared":
        for norm in out.norms:
            _share_length(out, [row for row in robust if row.robustness == norm])
    return out


def _chord(row: Answer) -> np.ndarray:
    """The g with g·a = ‖a‖*_N2 on the rim of the arc: no linear function is nearer above ‖a‖*_N2 in between."""
    rim = np.array(row.rays)
    return np.linalg.lstsq(rim, row.robustness.dual(rim), rcond=TIE)[0]


def _share_length(out: Offsets, rows: Sequence[Answer]) -> None:
    """b = a·x' − σρs for all rows, whatever s is."""
    for one, other in combinations(rows, 2):
        c, d = (-row.label * row.radius for row in (one, other))
        if c == d:
            out.zero.append(out.row(one.image - other.image))
        else:
            out.equal.append(out.row((d * one.image - c * other.image) / (d - c)))


def _share_secret_reach(out: Offsets, rows: Sequence[Answer]) -> None:
    """σ(a·x' − b) = r ≥ 0, one r for all rows of equal distance and robustness."""
    for row in rows:
        out.at_least(-row.label, out.row(row.image))
    for one, other in combinations(rows, 2):
        if (one.distance, one.robustness) != (other.distance, other.robustness):
            continue
        if one.label == other.label:
            out.zero.append(out.row(one.image - other.image))
        else:
            out.equal.append(out.row((one.image + other.image) / 2))


# --- the normals that have an offset ----------------------------------------------------------------------------------

Piece = tuple[np.ndarray, np.ndarray]
"""All (1 − t)·u + t·v, 0 ≤ t ≤ 1; u = v if it is one direction only."""


def arc(rows: Iterable[Answer]) -> tuple[float, float] | None:
    """The angles that all rows leave to the normal, the whole circle if there are none; None if none is left."""
    low, high = -math.pi, math.pi
    for row in rows:
        if row.rays is None:
            continue
        start, end = (math.atan2(v[1], v[0]) for v in row.rays)
        end += 2 * math.pi * (end < start)
        if high - low > math.pi:  # nothing is left out so far: every arc is less than half of the circle
            low, high = start, end
            continue
        for turn in (-2 * math.pi, 0.0, 2 * math.pi):
            first, last = max(low, start + turn), min(high, end + turn)
            if first <= last + TIE:
                low, high = (first, last) if first <= last else ((first + last) / 2,) * 2
                break
        else:
            return None
    return low, high


def pieces(log: ox.QueryLog, out: Offsets, rounding: float) -> list[Piece]:
    """The normals that some offset fits, the equalities being as far off as `rounding` says."""
    angles = arc(answers(log))
    if angles is None:
        return []
    rows = out.conditions()
    mixed = any((row[2:] > 0).any() and (row[2:] < 0).any() for row in rows)
    width = angles[1] - angles[0]
    count = 1 if width == 0 else max(math.ceil(width / (math.pi / 2) - TIE), FINE if mixed else 1)
    ends = [np.array([math.cos(t), math.sin(t)]) for t in np.linspace(*angles, count + 1)]
    slack = rounding * (1 + max(np.abs(log.points).max(), np.nanmax(np.abs(log.explanations), initial=0)))
    found = []
    for u, v in pairwise(ends):
        for low, high in _where(rows, out, (u, v), slack):
            found.append(((1 - low) * u + low * v, (1 - high) * u + high * v))
    return found


def _where(rows: np.ndarray, out: Offsets, piece: Piece, slack: float) -> list[tuple[float, float]]:
    """The t of a piece at which all the rows are ≥ −slack."""
    if not len(rows):
        return [(0.0, 1.0)]

    def values(t: np.ndarray) -> np.ndarray:
        return (out.features(_along(piece, t)) * rows[:, None, :]).sum(axis=-1) + slack

    zeros = np.zeros(len(rows))
    if np.array_equal(*piece):
        return [(0.0, 0.0)] if (values(zeros[:, None]) >= 0).all() else []
    concave = (rows[:, 2:] <= 0).all(axis=1)
    turn = peak(lambda t: values(t) * np.where(concave, 1, -1)[:, None], zeros, zeros + 1)
    marks = np.stack([zeros, turn, zeros + 1], axis=1)
    fits = values(marks) >= 0
    left = _crossing(values, marks[:, 0], marks[:, 1])
    right = _crossing(values, marks[:, 1], marks[:, 2])
    found = [(0.0, 1.0)]
    for k, (start, middle, end) in enumerate(fits.tolist()):
        if start and middle and end:
            continue
        allowed = []
        if middle:
            allowed = [(0.0 if start else left[k], 1.0 if end else right[k])]
        else:
            allowed += [(0.0, left[k])] if start else []
            allowed += [(right[k], 1.0)] if end else []
        found = [(max(a, c), min(b, d)) for a, b in found for c, d in allowed if max(a, c) <= min(b, d)]
    return found


def _along(piece: Piece, t: np.ndarray) -> np.ndarray:
    return (1 - t)[..., None] * piece[0] + t[..., None] * piece[1]


def peak(values: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Where each of many concave functions is largest; for a convex one some t, which may be worse than an end."""
    every = np.arange(len(low))
    for _ in range(14):  # an eighth is left each time
        t = low[:, None] + (high - low)[:, None] * SHARES
        best = values(t).argmax(axis=1)
        low, high = t[every, np.maximum(best - 1, 0)], t[every, np.minimum(best + 1, 16)]
    return t[every, best]


def _crossing(values: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Where each function changes its sign between low and high, on the side that fits; anything if it does not."""
    every = np.arange(len(low))
    fits_low = values(low[:, None])[:, 0] >= 0
    for _ in range(13):  # a sixteenth is left each time
        t = low[:, None] + (high - low)[:, None] * SHARES
        changed = (values(t) >= 0) != fits_low[:, None]
        first = np.where(changed.any(axis=1), changed.argmax(axis=1), 16)
        low, high = t[every, np.maximum(first - 1, 0)], t[every, first]
    return np.where(fits_low, low, high)


# --- verdicts ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Extremes:
    """The largest and the smallest a·x − b at every point, and models (a_1, a_2, b) that have them."""

    high: np.ndarray
    low: np.ndarray
    highest: np.ndarray
    lowest: np.ndarray

    @property
    def codes(self) -> np.ndarray:
        on_plane = (np.abs(self.high) < TIE) & (np.abs(self.low) < TIE)
        certain = np.where(self.low > -TIE, YES, np.where(self.high < TIE, NO, UNKNOWN))
        return np.where(on_plane, BOUNDARY, certain)

    @property
    def margin(self) -> np.ndarray:
        """How far from 0 the nearer of the two is: at 0 the verdict changes."""
        return np.minimum(np.abs(self.high), np.abs(self.low))


def extremes(log: ox.QueryLog, points: np.ndarray, level: str, rounding: float = ROUNDING[0]) -> Extremes:
    """What the models of a level say about the points; normals are about 1 long."""
    points = np.asarray(points, dtype=float)
    out = offsets(log, level)
    found = pieces(log, out, rounding)
    assert found, "no model is consistent with the log"
    sides = []
    for side in (1, -1):
        best, models = np.full(len(points), -np.inf), np.full((len(points), 3), np.nan)
        for piece in found:
            for t in _candidates(points, out, piece, side):
                a = _along(piece, t)
                b = out.range(a)[0 if side > 0 else 1]
                value = side * ((a * points).sum(axis=-1) - b)
                better = value > best
                best = np.where(better, value, best)
                models[better] = np.column_stack([a, b])[better]
        sides.append((side * best, models))
    (high, highest), (low, lowest) = sides
    return Extremes(high, low, highest, lowest)


def _candidates(points: np.ndarray, out: Offsets, piece: Piece, side: int) -> list[np.ndarray]:
    """The ends of a piece for every point, and where side·(a·x − b) has its top between them."""
    zeros = np.zeros(len(points))
    if np.abs(piece[0] - piece[1]).max() < TIE:
        return [zeros, zeros + 1]

    def values(t: np.ndarray) -> np.ndarray:
        a = _along(piece, t)
        return side * ((a * points[:, None, :]).sum(axis=-1) - out.range(a)[0 if side > 0 else 1])

    return [zeros, zeros + 1, peak(values, zeros, zeros + 1)]


@dataclass(frozen=True)
class Truth:
    """The verdicts, and how far from a change each is: near 0 they are not to be relied on."""

    codes: np.ndarray
    margin: np.ndarray

    def __getitem__(self, part: slice) -> Truth:
        return Truth(self.codes[part], self.margin[part])


def truth(log: ox.QueryLog, points: np.ndarray, level: str = "exact") -> Truth:
    """The verdicts at the points at one level."""
    return truths(log, points, (level,))[level]


def truths(log: ox.QueryLog, points: np.ndarray, levels: Sequence[str] = LEVELS) -> dict[str, Truth]:
    """The verdicts at the points: certain where all models of the level agree, else UNKNOWN where two true ones do not."""
    points = np.asarray(points, dtype=float)
    own = {tuple(row.point.tolist()): row.label for row in log if row.label}
    labels = np.array([own.get(tuple(x), 0) for x in points.tolist()])
    out = {}
    for rounding in ROUNDING:
        exact = extremes(log, points, "exact", rounding)
        for level in levels:
            relaxed = exact if level == "exact" else extremes(log, points, level, rounding)
            is_open = relaxed.codes == UNKNOWN
            codes = np.where(is_open & (exact.codes != UNKNOWN), UNDECIDED, relaxed.codes)
            margin = np.where(is_open, np.minimum(relaxed.margin, exact.margin), relaxed.margin)
            if level in out:  # both roundings must agree
                margin = np.where(codes == out[level].codes, np.minimum(margin, out[level].margin), 0.0)
                codes = out[level].codes
            out[level] = Truth(np.where(labels, labels, codes), np.where(labels, np.inf, margin))
    return out


# --- pictures ---------------------------------------------------------------------------------------------------------

COLUMNS, LINES = (0.375 * (np.arange(count) - count // 2) for count in (15, 11))
GRID = np.stack(np.meshgrid(COLUMNS + 0.0137, LINES + 0.0071), axis=-1).reshape(-1, 2)
"""Points three eighths apart around 0, a little off it: none of them is near a change of any of the pictures."""


def drawn(codes: np.ndarray) -> str:
    """The verdicts on `GRID` as text, ? for UNDECIDED."""
    return picture(codes, len(COLUMNS))


def goldens(name: str) -> dict[str, dict[str, str]]:
    """The pictures in a file of `knowledge/robust_golden`, by case and level: a title, then the four levels side by side."""
    text = (Path(__file__).parent / "knowledge" / "robust_golden" / f"{name}.txt").read_text(encoding="utf-8")
    out = {}
    for block in text.strip().split("\n\n"):
        title, *lines = block.splitlines()
        levels = zip(*(line.split() for line in lines), strict=True)
        out[title] = {level: "\n".join(column) for level, column in zip(LEVELS, levels, strict=True)}
    return out
