"""The checker of proofs: accepts what follows from the log, refuses what does not, whoever made it and however."""

from __future__ import annotations

import ast
import itertools
from dataclasses import replace
from fractions import Fraction as F
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

import overexplain as ox
from overexplain.knowledge import checker, enclosures
from overexplain.knowledge.checker import Answer, Term, check_certificate, check_witness
from overexplain.knowledge.enclosures import NotEnclosed, dual_spec, enclose, root
from strategies import make_norm


def exact(x: object) -> tuple[F, ...]:
    return tuple(F(float(v)) for v in np.asarray(x, dtype=float))


def labelled(rows: list[tuple[list[float], int]]) -> dict[int, Answer]:
    return {i: Answer(exact(x), y) for i, (x, y) in enumerate(rows)}


# Labels alone: the paper's theorem on factual regions.


def test_between_two_no_points_is_no_and_beyond_a_yes_seen_from_a_no_is_yes() -> None:
    log = labelled([([0, 0], -1), ([2, 0], -1), ([4, 0], 1)])
    half = F(1, 2)
    check_certificate(log, [Term("side", half, 0), Term("side", half, 1)], exact([1, 0]), -1)
    # (6, 0) = 3/2·(4, 0) − 1/2·(0, 0): beyond the convex hull of the Yes points, and yet certain.
    check_certificate(log, [Term("side", F(3, 2), 2), Term("side", half, 0)], exact([6, 0]), 1)


def test_a_point_between_yes_points_only_touches_the_plane_and_is_yes() -> None:
    log = labelled([([0, 0], 1), ([2, 0], 1)])
    terms = [Term("side", F(1, 2), 0), Term("side", F(1, 2), 1)]
    check_certificate(log, terms, exact([1, 0]), 1)
    with pytest.raises(ox.CertificateInvalid, match="do not add up"):
        check_certificate(log, terms, exact([1, 0]), -1)


def test_no_must_be_strict() -> None:
    """E14: with only Yes rows the sum may be 0: on the plane, which is Yes."""
    log = {0: Answer(exact([0, 0]), 1, exact([1, 0]), "l1", F(0)), 1: Answer(exact([0, 0]), -1)}
    with pytest.raises(ox.CertificateInvalid, match="strict"):
        check_certificate(log, [Term("plane", F(1), 0, sign=-1)], exact([1, 0]), -1)
    check_certificate(log, [Term("plane", F(1), 0, sign=1)], exact([1, 0]), 1)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"weight": F(-1, 2)}, "negative weight"),
        ({"weight": F(1, 3)}, "do not add up for feature 0"),
        ({"row": 9}, "row 9, which the log does not have"),
        ({"row": None}, "row None"),
        ({"fact": "plane"}, "promises no fact 'plane'"),
        ({"fact": "magic"}, "promises no fact 'magic'"),
        ({"fact": "hoelder"}, "needs a vector"),
    ],
)
def test_each_way_to_be_wrong_is_named(change: dict, says: str) -> None:
    log = labelled([([0, 0], -1), ([2, 0], -1)])
    good = [Term("side", F(1, 2), 0), Term("side", F(1, 2), 1)]
    check_certificate(log, good, exact([1, 0]), -1)
    with pytest.raises(ox.CertificateInvalid, match=says):
        check_certificate(log, [good[0], replace(good[1], **change)], exact([1, 0]), -1)
    for point, verdict in (([1.0000001, 0], -1), ([1, 0], 1)):
        with pytest.raises(ox.CertificateInvalid):
            check_certificate(log, good, exact(point), verdict)


def test_a_contradiction_is_a_proof_about_no_point() -> None:
    log = labelled([([0, 0], -1), ([2, 0], -1), ([1, 0], 1)])
    terms = [Term("side", F(1, 2), 0), Term("side", F(1, 2), 1), Term("side", F(1), 2)]
    check_certificate(log, terms, None, 1)
    with pytest.raises(ox.CertificateInvalid, match="do not add up"):
        check_certificate(log, terms[:2], None, 1)


# Explanations. Proofs are made by a linear program here and checked exactly; every claim is held against the true model.


def float_proof(log: dict[int, Answer], x: np.ndarray, verdict: int, norm: ox.Norm) -> list[Term] | None:
    """Weights that maximise the right side, by HiGHS, as terms; None if there are none. ℓ1 and ℓ∞ distances only."""
    p = len(x)
    columns: list[tuple[np.ndarray, float, Term]] = []
    for i, answer in log.items():
        point, y = np.array(answer.point, dtype=float), answer.label
        if answer.explanation is None:
            columns.append((np.append(y * point, -y), 0.0, Term("side", F(0), i)))
            continue
        image = np.array(answer.explanation, dtype=float)
        step = image - point
        tau = 2.0**-40 * (norm(point) + norm(image))
        columns.append((np.append(y * point, -y), norm(step) - tau, Term("side", F(0), i)))
        columns.append((np.append(-y * step, 0), norm(step) - 2 * tau, Term("steepest", F(0), i)))
        columns += [(s * np.append(image, -1), -tau, Term("plane", F(0), i, sign=s)) for s in (1, -1)]
    spec = norm.spec
    cross, cube = np.vstack([np.eye(p), -np.eye(p)]), np.array(list(itertools.product([-1.0, 1.0], repeat=p)))
    corners = cross if spec == "l1" else cube
    columns += [(np.append(u, 0), -1.0, Term("hoelder", F(0), vector=exact(u), distance=spec)) for u in corners]
    matrix = np.array([left for left, _, _ in columns]).T
    gains = np.array([gain for _, gain, _ in columns])
    found = linprog(-gains, A_eq=matrix, b_eq=verdict * np.append(x, -1), bounds=(0, 1e6), method="highs")
    if found.status != 0 or -found.fun < 1e-9:
        return None
    terms = [replace(t, weight=F(max(0.0, w))) for w, (_, _, t) in zip(found.x, columns, strict=True) if w > 0]
    return absorb(log, terms, x, verdict, spec)


def absorb(log: dict[int, Answer], terms: list[Term], x: np.ndarray, verdict: int, spec: object) -> list[Term]:
    """Pay for the rounding of the weights: what is missing in the last entry by a plane fact, the rest by Hölder."""
    dimension = len(x)
    missing = [verdict * v for v in (*exact(x), F(-1))]
    for number, term in enumerate(terms):
        left = checker._fact(log, term, number, dimension)[0]
        missing = [m - term.weight * v for m, v in zip(missing, left, strict=True)]
    row = next(i for i, answer in log.items() if answer.explanation is not None)
    sign = -1 if missing[-1] > 0 else 1
    plane = Term("plane", abs(missing[-1]), row, sign=sign)
    left = checker._fact(log, plane, 0, dimension)[0]
    missing = [m - plane.weight * v for m, v in zip(missing, left, strict=True)]
    return [*terms, plane, Term("hoelder", F(1), vector=tuple(missing[:-1]), distance=spec)]


@pytest.mark.parametrize("name", ["l1", "linf"])
@pytest.mark.parametrize("seed", range(6))
def test_proofs_from_explanations_hold_and_never_contradict_the_model(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, norm = 3, ox.norm(name)
    model = ox.Hyperplane(rng.normal(size=p), rng.normal())
    oracle = ox.ModelOracle(model, ox.Mechanism(norm))
    log: dict[int, Answer] = {}
    for i, x in enumerate(rng.normal(size=(6, p)) * 2):
        explained = exact(oracle.explain(x)) if i < 2 else None
        log[i] = Answer(exact(x), model.label(x), explained, norm.spec if i < 2 else None, None)
    proved = 0
    for x in rng.normal(size=(60, p)) * 2:
        for verdict in (1, -1):
            terms = float_proof(log, x, verdict, norm)
            if terms is None:
                continue
            check_certificate(log, terms, exact(x), verdict)
            assert model.label(x) == verdict
            proved += 1
            for other in (exact(x * (1 + 1e-9)), exact(-x)):
                with pytest.raises(ox.CertificateInvalid):
                    check_certificate(log, terms, other, verdict)
            moved = dict(log)
            used = next(t.row for t in terms if t.row is not None and t.weight > 0 and t.fact != "plane")
            moved[used] = replace(log[used], label=-log[used].label)
            with pytest.raises(ox.CertificateInvalid):
                check_certificate(moved, terms, exact(x), verdict)
    assert proved > 10


@pytest.mark.parametrize("name", ["l1", "linf", "l2", "lp:1.5", "weighted l1", "mahalanobis", "group"])
def test_the_true_model_is_a_witness_and_a_turned_one_is_not(name: str) -> None:
    rng = np.random.default_rng(1)
    norm = make_norm(name, 3, spread=0.5)
    model = ox.Hyperplane(rng.normal(size=3), 0.7)
    oracle = ox.ModelOracle(model, ox.Mechanism(norm))
    log = {}
    for i, x in enumerate(rng.normal(size=(5, 3)) * 2):
        log[i] = Answer(exact(x), model.label(x) if i % 2 else None, exact(oracle.explain(x)), norm.spec)
    check_witness(log, exact(model.normal), F(model.offset))
    for turned, shifted in ((1e-4, 0.0), (0.0, 1e-4)):
        normal = model.normal + turned * rng.normal(size=3)
        with pytest.raises(ox.CertificateInvalid, match="would not have given the explanation in row|another label"):
            check_witness(log, exact(normal), F(model.offset + shifted))
    with pytest.raises(ox.CertificateInvalid, match="zero normal"):
        check_witness(log, exact([0, 0, 0]), F(1))


def test_inexact_and_merely_valid_explanations_promise_less() -> None:
    valid = {0: Answer(exact([0, 0]), -1, exact([3, 0]), None, F(0), None)}
    check_certificate(valid, [Term("flips", F(1), 0)], exact([3, 0]), 1)
    check_witness(valid, exact([1, 0]), F(2))
    with pytest.raises(ox.CertificateInvalid, match="would not have given"):
        check_witness(valid, exact([1, 0]), F(4))
    for fact in ("plane", "steepest"):
        with pytest.raises(ox.CertificateInvalid, match="promises no fact"):
            check_certificate(valid, [Term(fact, F(1), 0)], exact([3, 0]), 1)
    within = {0: Answer(exact([0, 0]), -1, exact([3, 0]), "l1", F(0), F(1, 2))}
    check_witness(within, exact([1, 0]), F(2))  # 3 ≤ 1.5 × 2
    with pytest.raises(ox.CertificateInvalid, match="would not have given"):
        check_witness(within, exact([1, 0]), F(19, 10))


def test_the_side_of_an_unlabelled_row_is_never_guessed() -> None:
    log = {0: Answer(exact([0, 0]), None, exact([1, 0]), "l1", F(0))}
    with pytest.raises(ox.CertificateInvalid, match="side of row 0 is not known"):
        check_certificate(log, [Term("steepest", F(1), 0)], exact([1, 0]), 1)
    check_witness(log, exact([1, 0]), F(1))
    check_witness(log, exact([-1, 0]), F(-1))


def test_a_step_shorter_than_its_tolerance_promises_no_flip() -> None:
    log = {0: Answer(exact([0, 0]), -1, exact([1, 0]), "l1", F(2), F(1, 2))}
    with pytest.raises(ox.CertificateInvalid, match="promises no fact 'flips'"):
        check_certificate(log, [Term("flips", F(1), 0)], exact([1, 0]), 1)
    check_witness(log, exact([1, 0]), F(5))
    check_certificate(log, [Term("side", F(1), 0)], exact([0, 0]), -1)


def test_rows_of_another_size_and_odd_verdicts_are_refused() -> None:
    log = labelled([([0, 0], -1), ([1], -1)])
    with pytest.raises(ox.CertificateInvalid, match="row 1 has not 2 features"):
        check_certificate(log, [Term("side", F(1), 1)], exact([1, 0]), -1)
    with pytest.raises(ox.CertificateInvalid, match="row 1 has not 2 features"):
        check_witness(log, exact([1, 0]), F(3))
    with pytest.raises(ox.CertificateInvalid, match="verdict"):
        check_certificate(log, [], exact([1, 0]), 0)


# Enclosures.


@pytest.mark.parametrize(
    "name", ["l1", "l2", "linf", "lp:1.1", "lp:1.5", "lp:3", "weighted l2", "mahalanobis", "group", "facets"]
)
def test_enclosures_hold_the_norm_and_its_dual(name: str) -> None:
    rng = np.random.default_rng(0)
    norm = make_norm(name, 4)
    specs = [(norm, norm.spec)] if name == "facets" else [(norm, norm.spec), (norm.dual, dual_spec(norm.spec))]
    for value, spec in specs:
        for _ in range(5):
            x = rng.normal(size=4) * 10.0 ** rng.integers(-9, 9)
            low, high = enclose(spec, exact(x))
            assert low <= high <= low * (1 + F(1, 10**20))
            assert float(low) == pytest.approx(value(x), rel=1e-12)


def test_roots_are_bounds_and_exact_where_they_can_be() -> None:
    assert root(F(9, 4), 2) == (F(3, 2), F(3, 2))
    assert root(F(0), 3) == (0, 0)
    for value, degree in itertools.product([F(2), F(1, 3), F(10) ** 300, F(10) ** -300], [2, 3, 11]):
        low, high = root(value, degree)
        assert low**degree < value < high**degree
        assert high - low < low * F(1, 2**80)


def test_what_cannot_be_enclosed_is_refused() -> None:
    for spec in ("l7", "lp:1.234567", {"norm": "polyhedral", "vertices": [[1]]}):
        with pytest.raises(NotEnclosed):
            enclose(spec, exact([1.5, 2.5]))
    with pytest.raises(ox.CertificateInvalid, match="cannot be bounded"):
        check_certificate(
            labelled([([0], 1)]), [Term("hoelder", F(1), vector=exact([1]), distance="lp:1.234567")], exact([1]), 1
        )


def test_the_checker_imports_the_standard_library_and_nothing_of_an_engine() -> None:
    allowed = {"__future__", "collections", "dataclasses", "fractions", "math", "typing"}
    for module in (checker, enclosures):
        for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name.split(".")[0] in allowed or name in (
                    "overexplain.errors",
                    "overexplain.knowledge.enclosures",
                )
