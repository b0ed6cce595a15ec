"""Maps for the owner: two features vary, the rest is held at the median case, and a client asks a dozen what-if questions.

No case of the data is shown: the questions are made up. A service that may change only the two features shown answers them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from overexplain.auditing.audit_report import Map, Panel, Question
from overexplain.auditing.units import Units, of_unit_size
from overexplain.errors import OverexplainError
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import Lp, Mahalanobis, Norm, Weighted
from overexplain.knowledge.engine import Knowledge
from overexplain.knowledge.verdicts import Verdict
from overexplain.log.querylog import QueryLog
from overexplain.models.linear import LinearModel
from overexplain.oracles.services import Service

CELLS: Final = 41
QUESTIONS: Final = 12
EXPLAINED: Final = (0, 1, 2)
TAILS: Final = (1.0, 99.0)
"""A map shows the values between these percentiles of the data, and the true line."""

FARTHEST: Final = 3.0
"""A pair of features whose line lies more than so many map widths away is not drawn: the two do not decide this case."""

AWAY: Final = 0.04
"""Questions keep this share of the map away from the line: its width is what the map shows."""

LETTERS: Final = {
    int(Verdict.YES): "Y",
    int(Verdict.NO): "N",
    int(Verdict.BOUNDARY): "=",
    int(Verdict.UNDECIDED): "?",
}


@dataclass(frozen=True, eq=False)
class Plane:
    """The plane of two features through the median case, in the data's own units."""

    model: LinearModel
    names: tuple[str, str]
    low: FloatArray
    high: FloatArray
    decimals: tuple[int, int]

    @property
    def width(self) -> FloatArray:
        """From the lowest to the highest value of both features."""
        return np.asarray(self.high - self.low)


def draw_maps(
    model: LinearModel,
    rows: FloatArray,
    service: Service,
    units: Units,
    count: int,
    rng: np.random.Generator,
) -> tuple[Map, ...]:
    """Maps of the feature that matters most with each of the next `count`; `model` and `rows` are in the data's own units.

    Features matter by |coefficient| × standard deviation. Pairs whose line is far from all cases are left out.
    """
    if model.dimension < 2:
        return ()
    model = replace(model, hyperplane=of_unit_size(model.hyperplane, rows.std(axis=0)))
    order = np.argsort(-np.abs(model.hyperplane.normal) * rows.std(axis=0), kind="stable").tolist()
    maps: list[Map] = []
    for other in order[1:]:
        pair = (order[0], other)
        plane = _plane(model, rows, pair)
        if plane is not None and len(maps) < count:
            maps.append(_drawn(plane, _restricted(service, pair), units.of(pair), rng))
    return tuple(maps)


def _plane(model: LinearModel, rows: FloatArray, pair: tuple[int, int]) -> Plane | None:
    base = np.median(rows, axis=0)
    chosen = list(pair)
    normal = model.hyperplane.normal[chosen]
    offset = model.hyperplane.offset - float(np.delete(model.hyperplane.normal, chosen) @ np.delete(base, chosen))
    low, high = np.percentile(rows[:, chosen], TAILS, axis=0)
    width = high - low
    if not (width > 0).all() or not normal.all():
        return None
    # Where the median case would have to go, both features moving in proportion to the map and to their weight.
    pull = normal * width
    step = (offset - float(normal @ base[chosen])) / float(pull @ pull) * pull
    if float(np.abs(step).max()) > FARTHEST:
        return None
    crossing = base[chosen] + step * width
    low, high = np.minimum(low, crossing - width / 2), np.maximum(high, crossing + width / 2)
    names = model.features or tuple(f"x{i}" for i in range(model.dimension))
    digits = [max(0, 2 - int(np.floor(np.log10(w)))) for w in (high - low)]
    return Plane(
        LinearModel(Hyperplane(normal, offset)),
        (names[pair[0]], names[pair[1]]),
        low,
        high,
        (digits[0], digits[1]),
    )


def _restricted(service: Service, pair: tuple[int, int]) -> Service | None:
    """The service that may change only these two features; None if its distance cannot be cut down to two."""
    terms = service.mechanism
    if terms is None or service.imitate is not None:
        return None
    distance, ball = _cut(terms.distance, pair), _cut(terms.robustness, pair)
    if distance is None or (ball is None) != (terms.robustness is None):
        return None
    cut = Mechanism(distance, ball, terms.radius, terms.tolerance, terms.slack)
    told = None if service.published is None else replace(cut, radius=service.published.radius)
    return replace(service, mechanism=cut, published=told)


def _cut(norm: Norm | None, pair: tuple[int, int]) -> Norm | None:
    match norm:
        case Lp():
            return norm
        case Weighted():
            inner = _cut(norm.norm, pair)
            return None if inner is None else Weighted(inner, norm.weights[list(pair)])
        case Mahalanobis():
            return Mahalanobis(norm.matrix[np.ix_(pair, pair)])
        case _:
            return None


def _drawn(plane: Plane, service: Service | None, units: Units, rng: np.random.Generator) -> Map:
    asked = _ask(plane, rng)
    audited = units.model(plane.model)
    answers = _explained(audited, service, units, asked, rng)
    labels = plane.model.hyperplane.labels(asked)
    panels = []
    for explained in EXPLAINED:
        if explained and (answers is None or np.isnan(answers[:explained]).any()):
            break
        panel = _panel(plane, service, units, asked, labels, answers, explained)
        if panel is None:
            break
        panels.append(panel)
    most = panels[-1].explanations
    shown = None if answers is None else units.back(answers)
    return Map(
        across=plane.names[0],
        up=plane.names[1],
        x_range=(float(plane.low[0]), float(plane.high[0])),
        y_range=(float(plane.low[1]), float(plane.high[1])),
        line=_line(plane),
        questions=tuple(
            Question(
                float(x),
                float(y),
                YES if label == YES else NO,
                (float(shown[i, 0]), float(shown[i, 1])) if shown is not None and i < most else None,
            )
            for i, ((x, y), label) in enumerate(zip(asked.tolist(), labels.tolist(), strict=True))
        ),
        panels=tuple(panels),
    )


def _ask(plane: Plane, rng: np.random.Generator) -> FloatArray:
    """Made-up cases with few digits, spread over both sides of the line; the first two, one of each side, far apart."""
    candidates = plane.low + rng.uniform(0.04, 0.96, (4000, 2)) * plane.width
    candidates = np.column_stack([np.round(candidates[:, i], plane.decimals[i]) for i in (0, 1)])
    unit = (candidates - plane.low) / plane.width
    plane_unit = plane.model.hyperplane.normal * plane.width
    away = plane.model.hyperplane.margin(candidates) / float(np.linalg.norm(plane_unit))
    sides = [np.flatnonzero(away > AWAY), np.flatnonzero(away < -AWAY)]
    sides = [side for side in sides if len(side)] or [np.arange(len(candidates))]
    chosen: list[int] = []
    for k in range(QUESTIONS):
        side = sides[k % len(sides)][: 40 * (k + 1)]
        # The candidate farthest from those chosen (Mitchell's best candidate): spread, and still at random.
        gaps = np.linalg.norm(unit[side][:, None] - unit[chosen][None], axis=2).min(axis=1, initial=np.inf)
        chosen.append(int(side[int(gaps.argmax())]))
    return np.asarray(candidates[chosen])


def _explained(
    model: LinearModel, service: Service | None, units: Units, asked: FloatArray, rng: np.random.Generator
) -> FloatArray | None:
    """The explanations of all questions, in the audited units; None if there are none."""
    if service is None:
        return None
    points = units.into(asked)
    try:
        return np.asarray(service.oracle(model, points, rng).explain(points))
    except OverexplainError:
        return None


def _panel(
    plane: Plane,
    service: Service | None,
    units: Units,
    asked: FloatArray,
    labels: NDArray[np.int8],
    answers: FloatArray | None,
    explained: int,
) -> Panel | None:
    """What is certain once all questions are answered and the first ones explained; None if the answers fit no model."""
    points = units.into(asked)
    log = QueryLog(mechanism=None)
    log.add_label(points[explained:], labels[explained:])
    if explained:
        assert service is not None
        assert answers is not None
        terms = service.oracle(LinearModel(plane.model.hyperplane), points, 0).mechanism
        for i in range(explained):
            log.add_explanation(points[i], answers[i], label=int(labels[i]), mechanism=terms)
    xs, ys = (np.linspace(plane.low[i], plane.high[i], CELLS) for i in (0, 1))
    grid = np.column_stack([np.tile(xs, CELLS), np.repeat(ys[::-1], CELLS)])
    try:
        codes = Knowledge(log).certify(units.into(grid)).codes
    except OverexplainError:
        return None
    yes, no = float(np.mean(codes == Verdict.YES)), float(np.mean(codes == Verdict.NO))
    letters = [LETTERS.get(code, ".") for code in codes.tolist()]
    drawn = tuple("".join(letters[i * CELLS : (i + 1) * CELLS]) for i in range(CELLS))
    unknown = float(np.mean((codes != Verdict.YES) & (codes != Verdict.NO)))
    undecided = float(np.mean(codes == Verdict.UNDECIDED))
    return Panel(len(asked), explained, drawn, yes, no, unknown, undecided)


def _line(plane: Plane) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Where the true line enters and leaves the map."""
    (a, c), b = plane.model.hyperplane.normal.tolist(), plane.model.hyperplane.offset
    ends = [(x, (b - a * x) / c) for x in (float(plane.low[0]), float(plane.high[0]))]
    ends += [((b - c * y) / a, y) for y in (float(plane.low[1]), float(plane.high[1]))]
    slop = 1e-9 * plane.width
    inside = [
        end for end in ends if (np.array(end) >= plane.low - slop).all() and (np.array(end) <= plane.high + slop).all()
    ]
    if len(inside) < 2:
        return None
    first = inside[0]
    last = max(inside, key=lambda end: float(np.linalg.norm((np.array(end) - np.array(first)) / plane.width)))
    return first, last
