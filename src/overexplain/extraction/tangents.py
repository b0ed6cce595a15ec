"""The one quadratic surface that touches given planes at given points, how well it is known, and whether it exists at all."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from overexplain.errors import BrokenPromise
from overexplain.extraction.precision import NEAR, entry_errors, error_at_size
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.norm import Norm
from overexplain.geometry.quadratic import QuadraticModel

FLAT = 1e-7
"""Tangent planes that differ by more are no single plane, whatever rounding could have done."""

ONE_POINT = 1e-13
"""Answers closer together than this share of their size are one point."""


@dataclass
class Tangents:
    """The answers, each with its tangent plane and how far both may be off."""

    norm: Norm
    tolerance: float | None
    questions: list[FloatArray] = field(default_factory=list)
    answers: list[FloatArray] = field(default_factory=list)
    gradients: list[FloatArray] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many answers are of use."""
        return len(self.answers)

    def add(self, x: FloatArray, answer: FloatArray, row: int) -> bool:
        """True if the answer shows a tangent plane: it is not its own question, nor so near that rounding turns the step."""
        step = answer - x
        if not float(self.norm(step)) > NEAR * NEAR * (float(self.norm(x)) + float(self.norm(answer))):
            return False
        self.questions.append(x)
        self.answers.append(answer)
        self.gradients.append(self.norm.gradient(step))
        self.rows.append(row)
        return True

    def fit(self) -> Surface:
        """The surface that touches all planes; BrokenPromise if none does."""
        points, normals = np.array(self.answers), np.array(self.gradients)
        centre = points.mean(axis=0)
        width = np.abs(points - centre).max(axis=0)
        largest = float(np.abs(points).max()) or 1.0
        size = width.max() if width.max() > ONE_POINT * largest else largest
        # Powers of two: the rounding of the data stays the data's own.
        scale = np.ldexp(1.0, np.frexp(np.where(width > 1e-9 * size, width, size))[1])
        lifted = np.column_stack([(points - centre) / scale, np.ones(len(points))])
        planes = normals * scale
        planes = np.column_stack([planes, -(planes * lifted[:, :-1]).sum(axis=1)])
        lengths = np.linalg.norm(planes, axis=1, keepdims=True)
        errors = np.array([self._errors(k, scale, lifted[k], float(lengths[k, 0])) for k in range(len(points))])
        return _fitted(lifted, planes / lengths, errors, centre, scale, self.rows)

    def _errors(self, k: int, scale: FloatArray, lifted: FloatArray, length: float) -> tuple[float, float]:
        """How far plane and point k may be off by rounding alone, and by all that is allowed a float64 answer."""
        x, answer = self.questions[k], self.answers[k]
        step, rounding = answer - x, entry_errors(self.norm, self.tolerance, x, answer)
        turned = self.norm.gradient_error(step, rounding)
        if turned is None:
            turned = 2 * rounding / float(self.norm(step)) * np.abs(self.gradients[k]).max()
        off = rounding / scale
        tilt = float(np.linalg.norm(turned * scale)) * float(np.linalg.norm(lifted)) / length
        small = tilt + float(np.linalg.norm(off))
        loose = error_at_size(self.norm, self.tolerance, len(x), float(self.norm(x)) + float(self.norm(answer)))
        share = loose / max(float(self.norm(step)), float(self.norm(scale)) / len(x))
        return small, small + 8 * share


@dataclass(frozen=True, eq=False)
class Surface:
    """(x, 1)'Q(x, 1) in scaled coordinates, and how well it is known."""

    form: FloatArray
    centre: FloatArray
    scale: FloatArray
    residual: float
    error: float
    gap: float
    is_plane: bool

    def value(self, x: FloatArray) -> float:
        """q(x) divided by ‖(x, 1)‖² in scaled coordinates: how surely x is on its side."""
        lifted = np.append((x - self.centre) / self.scale, 1.0)
        lifted /= np.linalg.norm(lifted)
        return float(lifted @ self.form @ lifted)

    def model(self) -> QuadraticModel:
        """The same surface in the features themselves, the largest coefficient near 1."""
        inverse, p = 1 / self.scale, len(self.scale)
        # Scaled first, so that no product of two scales leaves float64's range before it must.
        middle, slope = self.form[:p, :p], self.form[:p, p]
        shift = self.centre * inverse
        turned = slope - middle @ shift
        constant = float(self.form[p, p] - 2 * slope @ shift + shift @ middle @ shift)
        square, linear = middle * inverse[:, None] * inverse, 2 * turned * inverse
        if self.is_plane:
            square = np.zeros_like(square)
        largest = max(float(np.abs(square).max()), float(np.abs(linear).max()), abs(constant))
        exponent = -int(np.frexp(largest)[1])
        return QuadraticModel(
            np.ldexp(square, exponent), np.ldexp(linear, exponent), float(np.ldexp(constant, exponent))
        )


def _fitted(
    lifted: FloatArray,
    planes: FloatArray,
    errors: FloatArray,
    centre: FloatArray,
    scale: FloatArray,
    rows: list[int],
) -> Surface:
    n, width = lifted.shape
    lengths = np.linalg.norm(lifted, axis=1)
    units, blur, loose = lifted / lengths[:, None], errors[:, 0], errors[:, 1]
    spread = np.linalg.svd(planes, compute_uv=False)
    if spread[1] <= min(2 * float(np.linalg.norm(loose)), FLAT):
        normal = np.linalg.svd(planes / blur[:, None])[2][0]
        form = np.zeros((width, width))
        form[-1, :-1] = form[:-1, -1] = normal[:-1] / 2
        form[-1, -1] = normal[-1]
        miss = float(np.abs(units @ normal).max())
        return Surface(form, centre, scale, miss, float(spread[1] / spread[0]), 1.0, True)
    touch = planes @ units.T
    first, second = np.triu_indices(n, 1)
    doubt = blur[first] + blur[second]
    system = np.zeros((len(first), n))
    system[np.arange(len(first)), first] = touch[first, second] / doubt
    system[np.arange(len(first)), second] = -touch[second, first] / doubt
    _, sizes, right = np.linalg.svd(system, full_matrices=len(first) < n)
    weights = right[-1] / np.abs(right[-1]).max()
    sizes = np.append(sizes, np.zeros(n - len(sizes)))
    misses = np.abs(weights[first] * touch[first, second] - weights[second] * touch[second, first])
    allowed = 8 * (loose[first] + loose[second]) * np.maximum(np.abs(weights[first]), np.abs(weights[second]))
    worst = int((misses / allowed).argmax())
    if misses[worst] > allowed[worst]:
        row = rows[int(second[worst] if blur[second[worst]] >= blur[first[worst]] else first[worst])]
        raise BrokenPromise(
            f"no quadratic surface has these {n} answers as nearest points: two of their tangent planes miss each other's points "
            f"by {misses[worst]:.3g}, rounding allows {allowed[worst]:.1g}. The answers are rounded, heuristic, under another "
            "distance, or come from a model that is not quadratic",
            fact="Tangent",
            excess=float(misses[worst]),
            row=row,
        )
    # The answers with the surest planes count most; Q·Z_i = λ_i·h_i for all of them.
    sure = (blur.min() / blur)[:, None]
    left, values, across = np.linalg.svd(sure * units, full_matrices=False)
    form = (across.T / values) @ left.T @ (sure * weights[:, None] * planes)
    form = form / 2 + form.T / 2
    size = float(np.linalg.norm(form))
    # `blur` is the worst that rounding can do, about `width` times what it does; what the answers show counts as well.
    unsure = (1 / width + float(sizes[-1])) / float(sizes[-2]) if sizes[-2] > 0 else np.inf
    error = (unsure + float(blur.min()) * np.sqrt(n)) / (float(values[-1]) * size) if values[-1] > 0 else np.inf
    return Surface(form / size, centre, scale, float(misses.max()), error, float(sizes[-2] * blur.min()), False)
