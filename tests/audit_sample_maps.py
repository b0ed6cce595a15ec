"""The maps of the sample report: made-up questions about a line, and what they leave open, by trying many lines."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from overexplain.auditing.audit_report import Map, Panel, ProofRow, Question, WorkedProof

CELLS = 41
# Questions as shares of the map's width and height: the first two get explanations. Yes lies below and left of the line.
PLACES = (
    (0.60, 0.90), (0.38, 0.10), (0.12, 0.40), (0.85, 0.75), (0.12, 0.92), (0.76, 0.34),
    (0.25, 0.65), (0.93, 0.55), (0.28, 0.35), (0.73, 0.53), (0.51, 0.28), (0.70, 0.70),
)  # fmt: skip


@dataclass(frozen=True)
class _Line:
    """Yes where u + slope·v ≤ offset, for u and v from 0 to 1."""

    slope: float
    offset: float

    def is_yes(self, u: float, v: float) -> bool:
        return u + self.slope * v <= self.offset


def sample_maps() -> tuple[Map, ...]:
    """Three maps, each with panels of 0, 1 and 2 explanations on 41 × 41 cells."""
    return (
        _map("worst texture", (12.0, 40.0), "worst concave points", (0.0, 0.26), _Line(0.61, 0.79)),
        _map("worst texture", (12.0, 40.0), "worst area", (0.0, 2000.0), _Line(0.58, 0.78)),
        _map("worst texture", (12.0, 40.0), "worst symmetry", (0.16, 0.44), _Line(0.67, 0.83)),
    )


def worked_proof(first: Map) -> WorkedProof:
    """Three answers of the first map that prove a No: a No counts 5/4, two Yes −1/8 each."""
    rows = []
    for number, weight in ((1, Fraction(5, 4)), (3, Fraction(-1, 8)), (7, Fraction(-1, 8))):
        asked = first.questions[number - 1]
        assert (asked.label < 0) == (weight > 0)
        rows.append(ProofRow(number, asked.label, str(weight), repr(asked.x), repr(asked.y)))
    x, y = (sum(Fraction(row.weight) * Fraction(Decimal(getattr(row, at))) for row in rows) for at in "xy")
    return WorkedProof(_decimal(x), _decimal(y), -1, tuple(rows))


def _decimal(value: Fraction) -> str:
    exact = Decimal(value.numerator) / Decimal(value.denominator)
    assert Fraction(exact) == value
    return str(exact)


def _map(across: str, x_range: tuple[float, float], up: str, y_range: tuple[float, float], line: _Line) -> Map:
    def x(u: float) -> float:
        return round(x_range[0] + u * (x_range[1] - x_range[0]), 4)

    def y(v: float) -> float:
        return round(y_range[0] + v * (y_range[1] - y_range[0]), 4)

    questions = tuple(
        Question(
            x=x(u),
            y=y(v),
            label=1 if line.is_yes(u, v) else -1,
            explanation=(x(line.offset - line.slope * v), y(v)) if i < 2 else None,
        )
        for i, (u, v) in enumerate(PLACES)
    )
    enters, leaves = (x(line.offset), y_range[0]), (x(line.offset - line.slope), y_range[1])
    panels = tuple(_panel(line, explained) for explained in (0, 1, 2))
    return Map(across, up, x_range, y_range, (enters, leaves), questions, panels)


def _panel(line: _Line, explained: int) -> Panel:
    slopes, least, most = _fitting(line, explained)
    steps = np.linspace(0, 1, CELLS)
    u, v = np.meshgrid(steps, steps[::-1])  # rows from top to bottom
    score = u[..., None] + slopes * v[..., None]
    yes, no = (score <= least).all(axis=-1), (score > most).all(axis=-1)
    boundary = (np.abs(score - least) < 1e-9).all(axis=-1) & (explained == 2)
    letters = np.where(boundary, "=", np.where(yes, "Y", np.where(no, "N", ".")))
    count = {letter: int((letters == letter).sum()) for letter in "YN.="}
    shares = (n / letters.size for n in (count["Y"], count["N"], count["."] + count["="]))
    return Panel(len(PLACES), explained, tuple("".join(row) for row in letters), *shares)


def _fitting(line: _Line, explained: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Slopes of lines that fit the answers, and the least and the most offset of each."""
    if explained == 2:
        return np.array([line.slope]), np.array([line.offset]), np.array([line.offset])
    slopes = (
        np.linspace(-1, 1, 801) if explained else np.tan(np.linspace(-1.2, 1.2, 801))
    )  # changes across: |slope| ≤ 1
    score = np.array([u + slopes * v for u, v in PLACES])
    is_yes = np.array([line.is_yes(u, v) for u, v in PLACES])
    least, most = score[is_yes].max(axis=0), score[~is_yes].min(axis=0)
    if explained:
        _u, v = PLACES[0]
        at = line.offset - line.slope * v + slopes * v
        fits = (least <= at) & (at <= most)
        return slopes[fits], at[fits], at[fits]
    fits = least <= most
    return slopes[fits], least[fits], most[fits]
