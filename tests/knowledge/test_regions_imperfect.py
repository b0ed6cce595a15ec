"""Imperfect services: rounded, float32, noisy, suboptimal, merely valid answers. No claim may be false, of no consistent model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

import overexplain as ox
from brute import BOUNDARY, NO, UNKNOWN, YES
from strategies import make_norm

NORMS = ("l1", "l2", "linf", "weighted l1", "weighted l2", "lp:3", "mahalanobis", "group")
UNDECIDED = 3


@dataclass(frozen=True)
class Service:
    """What is served for (x, the optimal x'), and the terms it is served by."""

    serve: Callable[[np.ndarray, np.ndarray, ox.Norm, np.random.Generator], np.ndarray]
    tolerance: Callable[[ox.Norm, np.ndarray], float | None] = lambda norm, optima: None
    slack: float | None = 0.0

    def terms(self, norm: ox.Norm, optima: np.ndarray) -> ox.Mechanism:
        return ox.Mechanism(norm, tolerance=self.tolerance(norm, optima), slack=self.slack)


def noise(norm: ox.Norm, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Random steps of length 1."""
    steps = rng.normal(size=shape)
    return steps / norm(steps)[:, None]


def stretched(x: np.ndarray, optima: np.ndarray, norm: ox.Norm, rng: np.random.Generator) -> np.ndarray:
    """Across, beside the optimum, and at most 1.3 times as far."""
    lengths = norm(optima - x)[:, None]
    return x + 1.15 * (optima - x) + 0.149 * lengths * noise(norm, x.shape, rng)


SERVICES = {
    "rounded to 3 decimals": Service(
        lambda x, optima, norm, rng: np.round(optima, 3),
        lambda norm, optima: float(norm(np.full(optima.shape[1], 0.0005))),
    ),
    "float32": Service(
        lambda x, optima, norm, rng: optima.astype(np.float32).astype(float),
        lambda norm, optima: float(norm(np.abs(optima).max(axis=0) * 2.0**-24)),
    ),
    "noisy": Service(
        lambda x, optima, norm, rng: optima + 0.0999 * noise(norm, x.shape, rng), lambda norm, optima: 0.1
    ),
    "float64": Service(lambda x, optima, norm, rng: optima),
    "suboptimal": Service(stretched, slack=0.3),
    "suboptimal and rounded": Service(
        lambda x, optima, norm, rng: np.round(stretched(x, optima, norm, rng), 3),
        lambda norm, optima: float(norm(np.full(optima.shape[1], 0.0005))),
        slack=0.3,
    ),
    "merely valid": Service(
        lambda x, optima, norm, rng: x + rng.uniform(1.05, 9.0, size=(len(x), 1)) * (optima - x), slack=None
    ),
}


@dataclass(frozen=True)
class Case:
    """A log, the model that answered it and the terms."""

    log: ox.QueryLog
    plane: ox.Hyperplane
    terms: ox.Mechanism
    asked: np.ndarray


def make_case(service: Service, name: str, p: int = 3) -> Case:
    rng = np.random.default_rng(p)
    norm = make_norm(name, p, seed=1, spread=0.5)
    plane = ox.Hyperplane(rng.normal(size=p), 0.3)
    points, x = rng.normal(size=(12, p)), rng.normal(size=(3, p)) * 2
    optima = ox.ModelOracle(plane, ox.Mechanism(norm)).explain(x)
    terms = service.terms(norm, optima)
    log = ox.QueryLog(mechanism=terms)
    log.add_label(points, plane.labels(points))
    log.add_explanation(x, service.serve(x, optima, norm, rng), plane.labels(x))
    # Half of the questions lie next to the plane, where a claim is most easily false.
    far, near = rng.normal(size=(150, p)) * 2, rng.normal(size=(150, p)) * 2
    unit = plane.normal / (plane.normal @ plane.normal)
    near += (10 ** rng.uniform(-8, 0, 150) * rng.choice([-1, 1], 150) - plane.margin(near))[:, None] * unit
    return Case(log, plane, terms, np.vstack([far, near]))


def could_have_answered(model: ox.Hyperplane, case: Case) -> bool:
    """The definition: every label is the model's, and each answer is as near to an optimum of the model as was promised."""
    log, terms = case.log, case.terms
    if not np.array_equal(model.labels(log.points), log.labels):
        return False
    x, served = log.points[log.explained], log.explanations[log.explained]
    optima = ox.ModelOracle(model, ox.Mechanism(terms.distance)).explain(x)
    if terms.slack == 0:
        tolerance = terms.tolerance
        if tolerance is None:
            tolerance = 2.0**-41 * (terms.distance(x) + terms.distance(served))
        return bool((terms.distance(served - optima) <= tolerance).all())
    if not np.array_equal(model.labels(served), -model.labels(x)):
        return False
    least = terms.distance(optima - x)
    return terms.slack is None or bool((terms.distance(served - x) <= (1 + terms.slack) * least).all())


def twins(case: Case, wanted: int = 10) -> list[ox.Hyperplane]:
    """Other models that could have given every answer, found by small changes of the true one."""
    rng = np.random.default_rng(5)
    found: list[ox.Hyperplane] = []
    for scale in 10.0 ** np.arange(0, -14, -0.5):
        for _ in range(20):
            model = ox.Hyperplane(
                case.plane.normal + scale * rng.normal(size=case.plane.dimension),
                case.plane.offset + scale * rng.normal(),
            )
            if could_have_answered(model, case):
                found.append(model)
        if len(found) >= wanted:
            break
    return found


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("kind", SERVICES)
def test_no_claim_is_false(kind: str, name: str) -> None:
    case = make_case(SERVICES[kind], name)
    assert could_have_answered(case.plane, case)
    codes = ox.Knowledge(case.log).certify(case.asked).codes
    others = twins(case)
    assert len(others) >= 5
    for model in (case.plane, *others):
        labels = model.labels(case.asked)
        false = np.isin(codes, [YES, NO]) & (codes != labels)
        assert case.asked[false].tolist() == []
        open_to_doubt = (codes == BOUNDARY) & (np.abs(model.margin(case.asked)) > 1e-9)
        assert case.asked[open_to_doubt].tolist() == []
        # What two consistent models disagree about is no secret to Knowledge either.
        assert np.isin(codes[labels != case.plane.labels(case.asked)], [UNKNOWN, UNDECIDED]).all()
    assert {*codes.tolist()} >= {YES, NO}
    # Under a tolerance the consistent models are not convex: between them and what the facts leave neither side has a proof.
    assert (codes == UNDECIDED).mean() < {"noisy": 0.5, "float32": 0.1}.get(kind, 0.05)


@pytest.mark.parametrize("name", ["l1", "l2", "linf", "weighted l1"])
@pytest.mark.parametrize("what", ["tolerance", "slack"])
def test_a_weaker_promise_never_tells_more(what: str, name: str) -> None:
    """The same answers under wider terms: whatever is then still certain was certain before, with the same verdict."""
    case = make_case(SERVICES["float64"], name)
    before = None
    for width in (1e-9, 1e-6, 1e-3, 0.1):
        terms = ox.Mechanism(case.terms.distance, **{what: width})
        log = ox.QueryLog(mechanism=terms)
        for row in case.log:
            if row.explanation is None:
                log.add_label(row.point, row.label)
            else:
                log.add_explanation(row.point, row.explanation, row.label)
        codes = ox.Knowledge(log).certify(case.asked).codes
        if before is not None:
            certain = np.isin(codes, [YES, NO])
            assert np.array_equal(codes[certain], before[certain])
        before = codes


@pytest.mark.parametrize("name", ["l1", "l2", "linf"])
def test_the_tolerance_given_to_knowledge_replaces_that_of_the_log(name: str) -> None:
    case = make_case(SERVICES["float64"], name)
    wide = make_case(Service(SERVICES["float64"].serve, lambda norm, optima: 0.01), name)
    codes = ox.Knowledge(case.log, tolerance=0.01).certify(case.asked).codes
    assert np.array_equal(codes, ox.Knowledge(wide.log).certify(case.asked).codes)
    assert (np.isin(ox.Knowledge(case.log).certify(case.asked).codes, [YES, NO]).sum()) > np.isin(
        codes, [YES, NO]
    ).sum()


def test_a_rounded_service_taken_for_an_exact_one_contradicts_itself() -> None:
    """Why the tolerance matters: p + 1 rounded explanations fit no plane exactly."""
    rng = np.random.default_rng(0)
    plane = ox.Hyperplane(rng.normal(size=3), 0.3)
    x = rng.normal(size=(6, 3))
    terms = ox.Mechanism("l1", tolerance=0.0015)
    log = ox.QueryLog(mechanism=terms)
    log.add_explanation(x, np.round(ox.ModelOracle(plane, terms).explain(x), 3), plane.labels(x))
    with pytest.raises(ox.InconsistentLog):
        ox.Knowledge(log, tolerance=0.0)
    codes = ox.Knowledge(log).certify(asked := rng.normal(size=(1000, 3))).codes
    assert np.isin(codes, [YES, NO]).mean() > 0.9
    assert (np.isin(codes, [UNKNOWN, UNDECIDED]) | (codes == plane.labels(asked))).all()


def test_a_short_suboptimal_step_keeps_the_plane_within_its_tolerance() -> None:
    """x = 0, x' = 0.0011, tolerance 0.001: a point across lies within 0.0021 of x, so 0.5 is not open, whatever the slack."""
    log = ox.QueryLog(mechanism=ox.Mechanism("l1", tolerance=1e-3, slack=0.1))
    log.add_explanation([0.0], [0.0011], label=-1)
    assert ox.Knowledge(log).certify([[0.5]]).codes[0] in (1, ox.Verdict.UNDECIDED)
