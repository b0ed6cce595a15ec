"""`Knowledge` as its users meet it: what it is given, what it gives back, and what must never happen."""

from __future__ import annotations

import time

import numpy as np
import pytest

import overexplain as ox
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.checker import Term, check_certificate
from overexplain.knowledge.exact import ONE, combine, null_space, solve
from overexplain.knowledge.verdicts import Verdicts
from strategies import NORMS, make_norm

YES, NO, UNKNOWN, BOUNDARY, UNDECIDED = 1, -1, 0, 2, 3


def two_labels() -> ox.QueryLog:
    log = ox.QueryLog()
    log.add_label([[0.0, 0.0], [4.0, 0.0]], [NO, YES])
    return log


# What it is given.


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tolerance": "x"}, "tolerance is a number"),
        ({"tolerance": -1.0}, "tolerance is a number"),
        ({"tolerance": float("nan")}, "tolerance is a number"),
        ({"time_limit": "x"}, "time_limit is a number"),
        ({"threads": 0}, "threads is a whole number"),
        ({"robust": "magic"}, "robust"),
    ],
)
def test_bad_options_are_refused(options: dict, says: str) -> None:
    with pytest.raises(ox.InvalidInput, match=says):
        ox.Knowledge(two_labels(), **options)


@pytest.mark.parametrize("X", [[[1.0]], [[np.nan, 0.0]], [[np.inf, 0.0]], [["a", "b"]], [[1.0, 2.0], [3.0]]])
def test_bad_points_are_refused(X: list) -> None:
    with pytest.raises(ox.InvalidInput):
        ox.Knowledge(two_labels()).certify(X)


def test_an_iterator_of_blocks_gives_an_iterator_of_verdicts() -> None:
    found = ox.Knowledge(two_labels()).certify(iter([np.array([[6.0, 0.0]]), np.array([[-1.0, 0.0], [2.0, 0.0]])]))
    assert [v.codes.tolist() for v in found] == [[YES], [NO, UNKNOWN]]


def test_points_as_large_or_small_as_floats_go() -> None:
    codes = ox.Knowledge(two_labels()).certify([[1e308, 0.0], [-1e308, 0.0], [1e308, 1e308], [1e-320, 1.0]]).codes
    assert codes.tolist() == [YES, NO, UNKNOWN, UNKNOWN]


# What it gives back.


def test_verdicts_stay_about_the_points_and_the_log_they_were_made_from() -> None:
    knowledge, X = ox.Knowledge(two_labels()), np.array([[6.0, 0.0], [2.0, 0.0]])
    before = knowledge.certify(X)
    X[:] = -1.0
    knowledge.add([2.0, 0.0], YES)
    assert str(before.proof(0)) == "Yes = 1.5 · row 1 − 0.5 · row 0"
    assert isinstance(before.proof(1), ox.Disagreement)
    assert knowledge.certify([2.0, 0.0]).codes.tolist() == [YES]


def test_an_answer_that_contradicts_the_others_changes_nothing() -> None:
    knowledge = ox.Knowledge(two_labels())
    with pytest.raises(ox.InconsistentLog) as caught:
        knowledge.add([6.0, 0.0], NO)
    assert sorted(caught.value.rows) == [0, 1, 2]
    assert len(knowledge.log) == 2
    assert knowledge.certify([6.0, 0.0]).codes.tolist() == [YES]


def test_what_was_certain_stays_certain() -> None:
    rng = np.random.default_rng(2)
    model, X = ox.Hyperplane([1.0, -2.0, 0.5], 0.3), rng.normal(size=(400, 3))
    knowledge, before = ox.Knowledge(ox.QueryLog()), np.zeros(400)
    for x in rng.normal(size=(12, 3)):
        codes = knowledge.add(x, int(model.label(x))).certify(X).codes
        assert (codes[before != 0] == before[before != 0]).all()
        before = codes
    oracle = ox.ModelOracle(model, ox.Mechanism("l1"))
    codes = knowledge.add(X[0], int(model.label(X[0])), oracle.explain(X[0]), ox.Mechanism("l1")).certify(X).codes
    assert (codes[before != 0] == before[before != 0]).all()
    assert (codes != 0).sum() > (before != 0).sum()


def test_an_empty_log_leaves_everything_open_and_shows_it() -> None:
    verdicts = ox.Knowledge(ox.QueryLog()).certify([[1.0, 2.0]])
    assert verdicts.codes.tolist() == [UNKNOWN]
    verdicts.proof(0).verify(ox.QueryLog())


def test_the_witness_fits_every_answer() -> None:
    rng = np.random.default_rng(0)
    model, X = ox.Hyperplane([1.0, -2.0, 0.5], 0.3), rng.normal(size=(20, 3))
    log = ox.QueryLog()
    log.add_label(X, model.labels(X))
    knowledge = ox.Knowledge(log)
    assert (knowledge.witness().labels(X) == log.labels).all()
    assert knowledge.is_consistent
    assert not knowledge.pinned_down
    assert 0 < knowledge.share(rng.normal(size=(200, 3))) < 1


# Every norm, as a service of float64 answers leaves it.


@pytest.mark.parametrize("name", NORMS)
def test_labels_and_float64_explanations_under_every_norm(name: str) -> None:
    """No false claim, nearly nothing undecided, and a proof for each kind of verdict that the checker accepts."""
    rng, p = np.random.default_rng(7), 3
    model, mechanism = ox.Hyperplane(rng.normal(size=p), 0.4), ox.Mechanism(make_norm(name, p))
    service = ox.ModelOracle(model, mechanism)
    X, L, Q = (rng.normal(size=(n, p)) for n in (2, 5, 150))
    log = ox.QueryLog(mechanism=mechanism)
    log.add_explanation(X, service.explain(X), label=model.labels(X))
    log.add_label(L, model.labels(L))
    verdicts = ox.Knowledge(log).certify(Q)
    certain = np.isin(verdicts.codes, [YES, NO])
    assert (verdicts.codes[certain] == model.labels(Q)[certain]).all()
    assert certain.sum() >= 60
    if not name.startswith("weighted"):
        assert verdicts.counts()["UNDECIDED"] == 0
    for code in set(verdicts.codes.tolist()) - {UNDECIDED}:
        verdicts.proof(int(np.flatnonzero(verdicts.codes == code)[0])).verify(log)


# What must never happen.


def test_a_margin_is_not_strict() -> None:
    """A side's margin may just be reached: side + plane + Hölder add up to 0 here, and yet models fit."""
    log = ox.QueryLog(mechanism=ox.Mechanism("l1", tolerance=0.0))
    log.add_explanation([0.0, 0.0], [1.0, 0.0], label=NO)
    terms = [Term("side", ONE, 0), Term("plane", ONE, 0, sign=1), Term("hoelder", ONE, 0, vector=(-ONE, 0 * ONE))]
    with pytest.raises(ox.CertificateInvalid, match="strict"):
        check_certificate(answers_of(log), terms, None, 1)
    assert ox.Knowledge(log).is_consistent


def test_a_row_whose_side_is_open_makes_nothing_unknown_by_itself() -> None:
    """The side of row 1 is not used; that its points are then open is no proof that two models disagree."""
    log = ox.QueryLog()
    log.add_label([[9.0]], [YES])
    log.add_explanation([0.0], [1.0], mechanism=ox.Mechanism("l2", slack=None))
    codes = ox.Knowledge(log).certify([[5.0], [0.0], [-3.0], [0.5]]).codes
    assert codes.tolist()[3] == UNKNOWN
    assert UNKNOWN not in codes.tolist()[:3]


def test_weights_without_an_end_in_binary_do_not_run_for_ever() -> None:
    norm = ox.Weighted(ox.linf, [15.36092252944851, 0.07636346623250842, 0.0053355917598801985])
    log = ox.QueryLog()
    log.add_label([[-3.0, 2.0, -2.0], [1.0, 1.0, -4.0], [-2.0, 2.0, -4.0]], [NO, NO, NO])
    away = [-0.9994809710442855, -0.8955945300466543, 2.494260419101198]
    log.add_explanation([-1.0, -1.0, 1.0], away, label=NO, mechanism=ox.Mechanism(norm, slack=0.1))
    begun = time.process_time()
    ox.Knowledge(log).certify([[0.0, 0.0, 0.0]])
    assert time.process_time() - begun < 5


def test_a_coarse_tolerance_is_no_contradiction() -> None:
    model = ox.Hyperplane([1.0, 0.5, -1.5], 0.25)
    service = ox.ModelOracle(model, ox.Mechanism("l1"))
    for tolerance in (0.01, 0.05, 0.3, 1.0):
        rng = np.random.default_rng(0)
        log = ox.QueryLog(mechanism=ox.Mechanism("l1", tolerance=tolerance))
        X, Q, asked = (rng.normal(size=(n, 3)).round(3) for n in (20, 3, 60))
        log.add_label(X, service.classify(X))
        log.add_explanation(Q, service.explain(Q), label=service.classify(Q))
        codes = ox.Knowledge(log).certify(asked).codes
        certain = np.isin(codes, [YES, NO])
        assert (codes[certain] == model.labels(asked)[certain]).all()


def test_one_hot_groups_and_constant_columns() -> None:
    """Points that keep the log's own relations are certain; one that breaks them is unknown, however near."""
    rng = np.random.default_rng(1)
    colour = np.eye(3)[rng.integers(0, 3, size=60)]
    X = np.hstack([rng.normal(size=(60, 2)), colour, np.full((60, 1), 0.1)])
    model = ox.Hyperplane([1.0, -1.0, 0.5, 0.0, -0.5, 2.0], 0.2)
    log = ox.QueryLog()
    log.add_label(X[:40], model.labels(X[:40]))
    codes = ox.Knowledge(log).certify(X).codes
    certain = np.isin(codes, [YES, NO])
    assert certain[:40].all()
    assert certain[40:].sum() >= 10
    assert (codes[certain] == model.labels(X)[certain]).all()
    broken = X[:40].copy()
    broken[:, 5] = np.nextafter(0.1, 1)
    assert (ox.Knowledge(log).certify(broken).codes == UNKNOWN).all()


@pytest.mark.parametrize("seed", range(2))
def test_whole_numbers_tie_and_are_decided_all_the_same(seed: int) -> None:
    """What is said of many points at once is what rationals say of each of them."""
    rng = np.random.default_rng(seed)
    X, asked = (rng.integers(0, 3, size=(n, 6)).astype(float) for n in (80, 900))
    model = ox.Hyperplane(rng.normal(size=6), 1.0)
    log = ox.QueryLog()
    log.add_label(X, model.labels(X))
    verdicts = ox.Knowledge(log).certify(asked)
    assert set(np.unique(verdicts.codes)) <= {YES, NO, UNKNOWN}
    for i in range(0, 900, 30):
        proof = verdicts.proof(i)
        assert isinstance(proof, ox.Certificate) == (verdicts[i] != UNKNOWN)
        proof.verify(log)
    certain = np.isin(verdicts.codes, [YES, NO])
    assert (verdicts.codes[certain] == model.labels(asked)[certain]).all()


def test_rows_that_depend_on_each_other_only_nearly() -> None:
    """Two steps that are parallel but for their last digits: the rank is full, and a point beside their plane is open."""
    log = ox.QueryLog(mechanism=ox.Mechanism("linf", slack=None))
    log.add_label([[1.0, 0.0, 3.0], [0.0, 1.0, 3.0]], [NO, NO])
    across = [
        [1.0519566441957033, 0.05195664419570321, 2.948043355804297],
        [1.0517773998526214, 0.05177739985262149, 2.9482226001473784],
    ]
    log.add_explanation([[1.0, 0.0, 3.0], [1.0, 0.0, 3.0]], across, label=[NO, NO])
    x = [3.021897135190799e-12, 0.9999999999926761, 2.9999999999940488]
    verdicts = ox.Knowledge(log).certify(x)
    assert verdicts.codes.tolist() == [UNKNOWN]
    verdicts.proof(0).verify(log)


def test_inexact_answers_without_any_label_leave_either_side() -> None:
    """A consistent model and its mirror image are two models that disagree."""
    log = ox.QueryLog(mechanism=ox.Mechanism("l2", slack=0.1))
    log.add_explanation([0.0], [1.0])
    verdicts = ox.Knowledge(log).certify([[5.0]])
    assert verdicts.codes.tolist() == [ox.Verdict.UNKNOWN]
    assert isinstance(verdicts.proof(0), ox.Disagreement)


# The exact step's own tools.


def test_exact_programs_against_highs() -> None:
    from fractions import Fraction as F

    from scipy.optimize import linprog

    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(120):
        m, n = rng.integers(1, 5), rng.integers(1, 8)
        A, b, c = rng.integers(-3, 4, (m, n)), rng.integers(-3, 4, m), rng.integers(-3, 4, n)
        found = solve([[F(int(v)) for v in A[:, j]] for j in range(n)], [F(int(v)) for v in b], [F(int(v)) for v in c])
        status = linprog(-c, A_eq=A, b_eq=b, method="highs").status
        y = found.prices
        along = [sum(y[i] * int(A[i, j]) for i in range(m)) for j in range(n)]
        at = sum(y[i] * int(b[i]) for i in range(m))
        if found.weights is None:
            assert all(v >= 0 for v in along)
            assert at < 0
            assert status in (2, 4)
        elif not found.unbounded:
            assert all(v >= int(g) for v, g in zip(along, c, strict=True))
            assert at == sum(w * int(g) for w, g in zip(found.weights, c, strict=True))
            assert status == 0
        seen.add((found.weights is None, found.unbounded))
    assert len(seen) == 3


def test_both_eliminations_agree() -> None:
    """python-flint, where it is installed, and our own."""
    import random
    from fractions import Fraction as F

    from overexplain.knowledge.exact import _by_bareiss, _by_flint

    rng, solved = random.Random(0), 0
    for _ in range(200):
        n = rng.randint(1, 6)
        rows = [[rng.randint(-3, 3) for _ in range(n + 1)] for _ in range(rng.randint(n, 7))]
        if rng.random() < 0.7:
            x = [rng.randint(-3, 3) for _ in range(n)]
            for row in rows:
                row[n] = sum(a * b for a, b in zip(row, x, strict=False))
        one, other = _by_flint(rows, n), _by_bareiss([row[:] for row in rows], n)
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert [F(v, one[1]) for v in one[0]] == [F(v, other[1]) for v in other[0]]
            solved += 1
    assert solved > 100


def test_exact_elimination() -> None:
    import random
    from fractions import Fraction as F

    rng = random.Random(0)
    for _ in range(100):
        n = rng.randint(1, 5)
        columns = [[F(rng.randint(-5, 5), rng.choice([1, 2, 4])) for _ in range(6)] for _ in range(n)]
        weights = [F(rng.randint(-5, 5), rng.randint(1, 5)) for _ in range(n)]
        target = [sum(w * c[i] for w, c in zip(weights, columns, strict=True)) for i in range(6)]
        assert combine(columns, target) in (weights, None)
        basis = null_space(columns, 6)
        assert len(basis) >= 6 - n
        assert all(sum(a * b for a, b in zip(c, v, strict=True)) == 0 for c in columns for v in basis)
        target[0] += 1
        found = combine(columns, target)
        assert found is None or [sum(w * c[i] for w, c in zip(found, columns, strict=True)) for i in range(6)] == target


def test_a_log_without_strict_facts_has_models() -> None:
    """A point that is its own counterfactual and Yes labels about it: 0 fits all of these, and so does the line x + y = 34."""
    log = ox.QueryLog(mechanism=ox.Mechanism("l1", tolerance=0.0))
    log.add_explanation([9.0, 25.0], [9.0, 25.0], label=1)
    log.add_label(np.array([[29.0, 5.0], [27.0, 8.0], [7.0, 27.0]]), [1, 1, 1])
    known = ox.Knowledge(log)
    assert known.is_consistent
    assert known.witness().same_plane(ox.Hyperplane([1.0, 1.0], 34.0))
    assert known.certify([[0.0, 0.0], [40.0, 40.0], [19.0, 15.0]]).codes.tolist() == [-1, 1, 2]


def test_a_verdict_is_written_by_its_name() -> None:
    verdict = ox.Knowledge(two_labels()).certify([[2.0, 0.0]])[0]
    assert (str(verdict), f"{verdict}", f"{verdict:>9}") == ("UNKNOWN", "UNKNOWN", "  UNKNOWN")
    assert (f"{verdict:d}", int(verdict), verdict == 0) == ("0", 0, True)


def test_only_certain_points_have_a_side() -> None:
    """`codes.clip(-1, 1)` paints points on the plane and undecided ones as a Yes; `sides` does not."""
    log = ox.QueryLog(mechanism=ox.Mechanism("l1", tolerance=0.0))
    log.add_explanation([9.0, 25.0], [9.0, 25.0], label=1)
    log.add_label(np.array([[29.0, 5.0], [27.0, 8.0], [7.0, 27.0]]), [1, 1, 1])
    verdicts = ox.Knowledge(log).certify([[0.0, 0.0], [40.0, 40.0], [19.0, 15.0]])
    assert verdicts.codes.tolist() == [NO, YES, BOUNDARY]
    assert verdicts.sides.tolist() == [-1, 1, 0]
    codes = np.array([YES, NO, UNKNOWN, BOUNDARY, UNDECIDED], dtype=np.int8)
    assert Verdicts(codes, np.zeros((5, 2)), verdicts._known).sides.tolist() == [1, -1, 0, 0, 0]
