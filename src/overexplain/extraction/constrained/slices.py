"""One-hot groups, whole numbers and continuous features: the model slice by slice.

Within a slice, that is, for fixed categories and whole numbers, the plane is a plane of the continuous features. As many boundary
points in one slice as there are such features give their coefficients and the offset; one boundary point in a slice that differs by
one category or by one in one whole number gives that coefficient: as many points as there are degrees of freedom. A point nearer to
the plane than the cheapest change of a category is explained within its slice, so that its explanation is such a point.

Adding a number to all coefficients of a group, and to the offset, changes no label: the model returned has mean 0 in each group.
"""

from __future__ import annotations

import math

import numpy as np

from overexplain.errors import BrokenPromise, ExtractionFailed
from overexplain.extraction.constrained.boundary import Boundary
from overexplain.extraction.constrained.slice_search import SliceModel, SliceSearch, centred, with_category
from overexplain.extraction.job import Job
from overexplain.extraction.result import Extraction, Spent
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.domain import Domain
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.geometry.norm import Norm

REFINED = 3
"""So often brackets are narrowed once more if the model they give is not accurate enough."""

USUAL_LABELS = 9
"""About so many labels bring a question near enough to the plane."""


def extract_by_slices(job: Job, domain: Domain, norm: Norm | None = None, exact: bool = True) -> Extraction:
    """The hyperplane of a service whose inputs have categories and whole numbers; what labels cannot tell is `.unidentified`."""
    session = job.session
    if not session.can_label:
        raise ExtractionFailed("this service gives no labels: nothing leads to the plane within a slice")
    session.require(
        predict_slices(domain, job.accuracy).explanations, "rebuilding the model slice by slice", whole=False
    )
    search = SliceSearch(Boundary(job, domain, norm, exact))
    search.base_slice()
    search.other_slices()
    solution = search.solve(search.known)
    bound = search.angle(solution)
    for _ in range(REFINED):
        missing = 0.25 if bound is None else job.accuracy / bound
        if missing >= 1 or not search.sharpen(missing):
            break
        solution = search.solve(search.known)
        bound = search.angle(solution)
    model = search.model(solution)
    confirmed = _confirm(job, search, model)
    return _result(job, search, model, bound, confirmed)


def predict_slices(domain: Domain, accuracy: float, explains: bool = True) -> Spent:
    """About what `extract_by_slices` will spend on a service that explains, or on one that only labels.

    >>> predict_slices(Domain(9, groups=[[3, 4, 5], [6, 7, 8]]), 1e-6)
    Spent(explanations=8, labels=63)
    """
    freedom = len(domain.continuous) + sum(len(group) - 1 for group in domain.groups) + len(domain.integers)
    if explains:
        return Spent(freedom + 1, USUAL_LABELS * freedom)
    return Spent(0, 2 + math.ceil(freedom * (4 + max(0.0, math.log2(8 / accuracy)))))


def _confirm(job: Job, search: SliceSearch, model: SliceModel) -> str:
    """What confirmed the model: one more explanation, in a slice of its own and if possible from the side asked less; or labels.

    Answers from one side alone could all lie beyond the plane by as much; labels next to it then have to confirm as well.
    """
    boundary, session = search.boundary, job.session
    near = _near_the_plane(job, search, model)
    uphill = boundary.uphill(model.normal)
    room = min(0.125, 0.25 * boundary.cheapest / boundary.length(uphill))
    sides = sorted((NO, YES), key=lambda side: (boundary.refusals(side) > 0, boundary.answers(side)))
    for side in sides if boundary.explains else ():
        question = boundary.inside(near + side * room * uphill)
        answer = session.attempt(question).answer
        if answer is not None and boundary.is_same_slice(question, answer):
            blur = float(np.abs(model.normal) @ boundary.answered(question, answer, None).errors)
            miss = abs(model.margin(answer)) - 4 * (model.doubt(answer) + blur)
            _refuse(session.row, miss, "the answer lies off the plane of the others", "OnPlane")
            if boundary.answers(-side) > 0:
                return "one more answer confirmed it"
            break
    asked = sum(_is_certain(job, search, model, near, side) for side in (NO, YES))
    return f"{asked} labels next to the plane confirmed it" if asked else "nothing more could be asked to confirm it"


def _is_certain(job: Job, search: SliceSearch, model: SliceModel, near: FloatArray, side: int) -> bool:
    """Ask a label that the model is sure of, just beside the plane; False if there is no such point in the range."""
    boundary, uphill = search.boundary, search.boundary.uphill(model.normal)
    for surely in (4.0, 16.0, 64.0):
        step = min(0.125, surely * model.doubt(near) / float(model.normal @ uphill))
        x = boundary.inside(near + side * step * uphill)
        margin = model.margin(x)
        if abs(margin) > 2 * model.doubt(x):
            miss = -margin * job.session.label(x)
            _refuse(job.session.row, miss, "the label is the other one", "OnSide")
            return True
    return False


def _refuse(row: int, miss: float, what: str, fact: str) -> None:
    if miss > 0:
        raise BrokenPromise(
            f"row {row} contradicts the model that the other answers give: {what}, by {miss:.3g} more than errors allow. The "
            "service rounds, is heuristic, or its model is not linear in these features",
            fact=fact,
            excess=miss,
            row=row,
        )


def _near_the_plane(job: Job, search: SliceSearch, model: SliceModel) -> FloatArray:
    """A point of the found plane in a slice that was not asked, where there is one; else in the base slice."""
    boundary, domain = search.boundary, search.domain
    uphill = boundary.uphill(model.normal)
    drawn = domain.sample(job.rng, 16)
    discrete = np.setdiff1d(np.arange(domain.dimension), domain.continuous)
    others = (drawn[:, discrete] != search.anchor[discrete]).sum(axis=1)
    for x in drawn[
        np.argsort(-others, kind="stable")
    ]:  # first those that differ in more than one way from the base slice
        for group in domain.groups:
            if any(x[i] == 1 and i in search.unreached for i in group):
                x = with_category(x, group, next(i for i in group if search.anchor[i] == 1))
        unknown = [i for i in domain.integers if i in search.unreached]
        x[unknown] = search.anchor[unknown]
        crossing = _crossing(boundary, model, boundary.inside(x), uphill)
        if crossing is not None and domain.contains(crossing) and job.where.contains(crossing):
            return crossing
    return search.anchor


def _crossing(boundary: Boundary, model: SliceModel, x: FloatArray, uphill: FloatArray) -> FloatArray | None:
    """Where the way from x crosses the model's plane, by the model itself: no question is asked."""
    side = YES if model.margin(x) >= 0 else NO
    last = x
    for y in boundary.way(x, -side * uphill):
        before, after = model.margin(last), model.margin(y)
        if before * after <= 0 and before != after:
            return np.asarray(last + before / (before - after) * (y - last))
        last = y
    return None


def _result(job: Job, search: SliceSearch, model: SliceModel, bound: float | None, confirmed: str) -> Extraction:
    domain = search.domain
    normal, offset = centred(domain, model.normal, model.offset, search.unreached)
    p = domain.dimension
    pinned = [int(i) for i in domain.continuous if not search.boundary.movable[i]]
    alone = [*search.unreached, *pinned]
    groups = [np.isin(np.arange(p), group) / math.sqrt(len(group)) for group in domain.groups]
    length = float(np.linalg.norm(normal))
    offset_bound = None
    if model.errors is not None and model.offset_error is not None and bound is not None:
        shifted = model.offset_error + float(model.errors[[i for group in domain.groups for i in group]].sum())
        offset_bound = (shifted + abs(offset) * math.sin(bound)) / (length * (1 - math.sin(bound)))
    by_labels = sum(found.bracket is not None for found in search.points)
    return Extraction(
        hyperplane=Hyperplane(normal / length, offset / length),
        spent=job.session.spent,
        log=job.session.log,
        method=f"slices: {len(search.points)} boundary points, {by_labels} of them by labels alone",
        assumptions=_assumptions(search, by_labels, pinned, confirmed),
        exact=by_labels == 0,
        error_bound=bound,
        offset_bound=offset_bound,
        oriented=True,
        radius=0.0,
        radius_bound=None,
        unidentified=np.vstack([np.array(groups).reshape(-1, p), np.eye(p)[alone]]),
        premise="every answer lies on the plane, and every label is right, but for rounding",
    )


def _assumptions(search: SliceSearch, by_labels: int, pinned: list[int], confirmed: str) -> tuple[str, ...]:
    notes = ["the model is linear, and its labels are right but for rounding"]
    if by_labels < len(search.points):
        notes = ["answers that leave categories and whole numbers alone lie exactly on the plane"]
    notes[0] += f"; {confirmed}"
    if search.domain.groups:
        notes.append(
            "coefficients have mean 0 in each one-hot group: adding a number to all of a group and to the offset changes no label; "
            "the bounds hold after taking the unidentified directions out of both models"
        )
    if search.unreached:
        notes.append(
            f"no slice with features {search.unreached} changed was found to reach the plane: their coefficients are unknown (0 "
            "here), labels only bound them"
        )
    if pinned:
        notes.append(f"the features {pinned} cannot vary: their part of the score is in the offset")
    return tuple(notes)
