"""The search for boundary points that determine a model with categories and whole numbers, one coefficient after the other."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from overexplain.errors import ExtractionFailed
from overexplain.extraction.constrained.boundary import Boundary, BoundaryPoint
from overexplain.extraction.constrained.bracket import Bracket
from overexplain.extraction.constrained.null_plane import NullVector, null_vector
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.domain import Domain
from overexplain.geometry.hyperplane import NO, YES
from overexplain.geometry.norm import UNIT_ROUNDOFF

NEW = 1e-3
"""A boundary point is new if this share of its difference to the first one, in units of the widths, points elsewhere."""

SMALLER = 6
"""So often a step along one feature is cut to a quarter if the plane is then out of reach."""

DRAWN = 12
"""So many random points of the slice are tried after that."""

JUMPS = (-64.0, -16.0, -8.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 8.0, 16.0, 64.0)
"""How far whole numbers are moved to bring the plane back into reach."""

MOST_COMBINATIONS = 10_000
"""So many combinations of categories and whole numbers are looked at for that."""

ONLY_LABELS = (
    "the answers then depend on finitely many points, and only their labels can be found out, not the coefficients"
)


@dataclass(frozen=True, eq=False)
class SliceModel:
    """normal·x ≥ offset with the coefficients of the base categories 0, pointing to Yes, and the errors of the entries."""

    normal: FloatArray
    offset: float
    errors: FloatArray | None
    offset_error: float | None

    def margin(self, x: FloatArray) -> float:
        """normal·x − offset."""
        return float(self.normal @ x) - self.offset

    def doubt(self, x: FloatArray) -> float:
        """How far the margin at x can be off."""
        size = float(np.abs(self.normal) @ np.abs(x)) + abs(self.offset)
        if self.errors is None or self.offset_error is None:
            return 1e-6 * size
        return float(self.errors @ np.abs(x)) + self.offset_error + (len(x) + 8) * UNIT_ROUNDOFF * size


class SliceSearch:
    """The boundary points found so far, and the features whose coefficients they determine."""

    def __init__(self, boundary: Boundary) -> None:
        self.boundary = boundary
        self.domain = boundary.domain
        self.points: list[BoundaryPoint] = []
        self.known: IntArray = boundary.continuous
        self.unreached: list[int] = []
        self._bracket: Bracket | None = None
        self._settled: set[int] = set()

    @property
    def anchor(self) -> FloatArray:
        """The first boundary point: in the base slice."""
        return self.points[0].point

    @property
    def home(self) -> FloatArray:
        """The same, or the point next to it that may be asked."""
        return self.boundary.inside(self.anchor)

    def base_slice(self) -> None:
        """Boundary points of one slice, as many as there are continuous features."""
        boundary = self.boundary
        if len(boundary.continuous) == 0:
            raise ExtractionFailed(
                f"no feature is continuous: {ONLY_LABELS}", unidentified=np.eye(self.domain.dimension)
            )
        bracket = boundary.first_bracket()
        if bracket is None:
            raise ExtractionFailed(
                f"{boundary.session.spent.labels} labels were asked and no slice had both: no continuous feature with an effect "
                "reaches the plane from there. Widen the bounds, or give a start= in a slice that the plane passes; otherwise "
                f"{ONLY_LABELS}",
                unidentified=np.eye(self.domain.dimension),
            )
        self._bracket = bracket
        self.points.append(boundary.point(bracket))
        across = bracket.yes - bracket.no
        share = np.where(boundary.movable, np.abs(across) / np.where(boundary.movable, boundary.widths, 1.0), -1.0)
        longest = float(share.max())
        for feature in boundary.continuous[boundary.continuous != int(share.argmax())]:
            self.points.append(self._aside(int(feature), across / longest))

    def _aside(self, feature: int, across: FloatArray) -> BoundaryPoint:
        """A boundary point beside the anchor: one feature varied, then across the plane as the first bracket went."""
        boundary, x = self.boundary, self.home
        up, down = boundary.high[feature] - x[feature], x[feature] - boundary.low[feature]
        step = min(max(up, down), boundary.widths[feature]) / 2 * (1 if up >= down else -1)
        for _ in range(SMALLER):
            bracket = boundary.along(boundary.inside(_with_number(x, feature, x[feature] + step)), across)
            found = None if bracket is None else boundary.point(bracket, apart_from=self.anchor)
            if found is not None and self._adds(found):
                return found
            step /= -4.0 if abs(step) <= min(up, down) else 4.0
        return self._anywhere(feature)

    def _anywhere(self, feature: int) -> BoundaryPoint:
        """A boundary point between a random point of the base slice and a known one: for a plane that cuts off a corner."""
        assert self._bracket is not None
        boundary = self.boundary
        for _ in range(DRAWN):
            x = boundary.anywhere(self.home)
            label = boundary.session.label(x)
            bracket = Bracket.of(x, label, self._bracket.end(-label))
            found = boundary.point(bracket, apart_from=self.anchor)
            if self._adds(found):
                return found
        raise ExtractionFailed(
            f"beside feature {feature}'s value {self.home[feature]:.6g} the plane could not be reached: it only touches the range "
            "of the continuous features. Widen the bounds, or start in another slice"
        )

    def _adds(self, found: BoundaryPoint) -> bool:
        """True if a boundary point of the base slice is independent of the others, beyond the errors of both."""
        free, widths = self.boundary.continuous, self.boundary.widths[self.boundary.continuous]
        rows = np.array([other.point - self.anchor for other in (*self.points[1:], found)])[:, free] / widths
        unsure = float(np.linalg.norm((found.errors + self.points[0].errors)[free] / widths))
        lengths = np.linalg.norm(rows, axis=1)
        if lengths[-1] <= unsure / NEW:
            return False
        return bool(np.linalg.svd(rows / lengths[:, None], compute_uv=False)[-1] > NEW)

    def other_slices(self) -> None:
        """One boundary point for every other category and every whole number; those out of reach are tried again from others."""
        base = self.anchor
        waiting = [i for group in self.domain.groups for i in group if base[i] == 0] + list(self.domain.integers)
        found = True
        while waiting and found:
            model = self.model(self.solve(self.known))
            self._settled = set(self.known.tolist())
            missed = []
            for feature in waiting:
                bracket = self._changed(feature, model)
                if bracket is None:
                    missed.append(feature)
                    continue
                self.points.append(self.boundary.point(bracket))
                self.known = np.append(self.known, feature)
            found = len(missed) < len(waiting)
            waiting = missed
        self.unreached = waiting

    def _changed(self, feature: int, model: SliceModel) -> Bracket | None:
        """A bracket in a slice that differs from a known one in this category or whole number; None if none was found."""
        uphill = self.boundary.uphill(model.normal)
        for start in self._variants(self.home, feature):
            bracket = self.boundary.along(start, uphill)
            if bracket is not None:
                return bracket
        for start in self._variants(self.home, feature):
            bracket = self._compensated(start, feature, model, uphill)
            if bracket is not None:
                return bracket
        return None

    def _variants(self, x: FloatArray, feature: int) -> list[FloatArray]:
        """x with this category instead of its group's, or with this whole number one higher and one lower."""
        for group in self.domain.groups:
            if feature in group:
                return [with_category(x, group, feature)]
        values = [x[feature] + 1.0, x[feature] - 1.0]
        low, high = self.boundary.low[feature], self.boundary.high[feature]
        return [_with_number(x, feature, value) for value in values if low <= value <= high]

    def _compensated(self, x: FloatArray, feature: int, model: SliceModel, uphill: FloatArray) -> Bracket | None:
        """The same where the plane is out of the continuous features' reach: other known categories and numbers bring it back.

        Labels grow along the model's score, whatever the unknown coefficient: halving finds the first combination whose highest
        point is Yes, and if its lowest point is Yes too, no combination is passed by the plane.
        """
        boundary, session = self.boundary, self.boundary.session
        choices = self._combinations(x, feature, model)
        first, last = 0, len(choices) - 1
        if last == 0:
            return None
        highest = [*boundary.way(choices[last], uphill)]
        if not highest or session.label(highest[-1]) == NO:
            return None
        while first < last:
            middle = (first + last) // 2
            if session.label([*boundary.way(choices[middle], uphill)][-1]) == YES:
                last = middle
            else:
                first = middle + 1
        top, bottom = ([*boundary.way(choices[first], sign * uphill)][-1] for sign in (1.0, -1.0))
        return Bracket(bottom, top) if session.label(bottom) == NO else None

    def _combinations(self, x: FloatArray, feature: int, model: SliceModel) -> list[FloatArray]:
        """x, in the middle of its slice, with all known categories and numbers of the other features, lowest score first."""
        boundary, known = self.boundary, self._settled
        limits = np.stack([boundary.low, boundary.high])[:, boundary.movable]
        start = x.copy()
        start[boundary.movable] = np.where(np.isfinite(limits).all(axis=0), limits.mean(axis=0), x[boundary.movable])
        choices = [start]
        for group in self.domain.groups:
            options = [i for i in group if i in known or self.anchor[i] == 1]
            if len(choices) * len(options) > MOST_COMBINATIONS:
                options = sorted(options, key=lambda i: float(model.normal[i]))[:: max(1, len(options) - 1)]
            if feature not in group and len(choices) * len(options) <= MOST_COMBINATIONS:
                choices = [with_category(y, group, i) for y in choices for i in options]
        for i in self.domain.integers:
            if i != feature and i in known and len(choices) * len(JUMPS) <= MOST_COMBINATIONS:
                values = np.clip(x[i] + np.array(JUMPS), np.ceil(boundary.low[i]), np.floor(boundary.high[i]))
                choices = [_with_number(y, i, value) for y in choices for value in np.unique(values)]
        return sorted(choices, key=model.margin)

    def solve(self, features: IntArray) -> NullVector:
        """The coefficients of these features from the boundary points, up to a factor."""
        differences = np.array([other.point - self.anchor for other in self.points[1:]])
        rows = differences.reshape(-1, self.domain.dimension)[:, features]
        blur = [other.errors + self.points[0].errors for other in self.points[1:]]
        errors = np.array(blur).reshape(-1, self.domain.dimension)[:, features]
        # Not as large as they are, but as they could be: where a feature has all the effect, its column is 0 but for rounding.
        sizes = np.where(self.boundary.movable, self.boundary.widths, 1.0)[features]
        solution = null_vector(rows, errors, sizes)
        if solution is None or solution.errors is None:
            raise ExtractionFailed(
                f"{len(self.points)} boundary points leave more than one normal open: some feature hardly varies among them. Widen "
                "the bounds, or start in a slice that the plane passes nearer to the middle"
            )
        return solution

    def model(self, solution: NullVector) -> SliceModel:
        """The model of these coefficients, pointing to Yes."""
        assert self._bracket is not None
        normal = np.zeros(self.domain.dimension)
        normal[self.known] = solution.values
        if normal @ (self._bracket.yes - self._bracket.no) < 0:
            normal = -normal
        offset = float(normal @ self.anchor)
        if solution.errors is None:
            return SliceModel(normal, offset, None, None)
        errors = np.zeros(self.domain.dimension)
        errors[self.known] = solution.errors
        blur = float((np.abs(normal) + errors) @ self.points[0].errors)
        return SliceModel(normal, offset, errors, float(errors @ np.abs(self.anchor)) + blur)

    def angle(self, solution: NullVector) -> float | None:
        """Bound on the angle between the centred normals; the projection onto mean 0 shortens errors, never lengthens them."""
        model = self.model(solution)
        if model.errors is None:
            return None
        normal, _ = centred(self.domain, model.normal, model.offset, self.unreached)
        ratio = float(np.linalg.norm(model.errors)) / float(np.linalg.norm(normal)) + 8 * len(normal) * UNIT_ROUNDOFF
        return math.asin(ratio) if ratio < 1 else None

    def sharpen(self, factor: float) -> bool:
        """Narrow the brackets that labels found by this factor; False if none can be."""
        sharper, changed = [], False
        for found in self.points:
            if found.bracket is not None and not found.bracket.is_spent:
                gap = np.abs(found.bracket.yes - found.bracket.no)
                widths = np.where(self.boundary.movable, self.boundary.widths, 1.0)
                found = self.boundary.from_labels(found.bracket, factor / 2 * float((gap / widths).max()))
                changed = True
            sharper.append(found)
        self.points = sharper
        return changed


def centred(domain: Domain, normal: FloatArray, offset: float, unreached: list[int]) -> tuple[FloatArray, float]:
    """The same classifier with mean 0 over the known categories of each group (0 for the others)."""
    shifted = normal.copy()
    for group in domain.groups:
        known = [i for i in group if i not in unreached]
        mean = float(normal[known].mean())
        shifted[known] -= mean
        offset -= mean
    return shifted, offset


def with_category(x: FloatArray, group: tuple[int, ...], feature: int) -> FloatArray:
    """x with this feature's category in the group."""
    y = x.copy()
    y[list(group)] = 0.0
    y[feature] = 1.0
    return y


def _with_number(x: FloatArray, feature: int, value: float) -> FloatArray:
    y = x.copy()
    y[feature] = value
    return y
