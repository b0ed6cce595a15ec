"""Proofs with something changed: refused in words, or still true, which a linear program says."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import overexplain as ox
from overexplain.knowledge.certificates import Certificate, read_proof
from overexplain.knowledge.verdicts import Verdict
from proof_samples import EXACT, SAMPLES
from strategies import examples


def could_be(log: ox.QueryLog, x: np.ndarray, side: int) -> bool:
    """True if a model that fits labels and exact ℓ1 explanations puts x on this side; small integers, so floats can tell.

    Variables a, b, t = ‖a‖∞ and the room e of strict inequalities, which any model may be scaled to have.
    """
    p = len(x)
    above: list[np.ndarray] = []  # row·(a, b, t, e) ≥ 0
    equal: list[np.ndarray] = []

    def query(point: np.ndarray, strict: float) -> np.ndarray:
        return np.concatenate([point, [-1.0, 0.0, strict]])

    for row in log:
        if row.label == 1:
            above.append(query(row.point, 0.0))
        elif row.label == -1:
            above.append(-query(row.point, 1.0))
        if row.explanation is not None:
            equal.append(query(row.explanation, 0.0))
            for i, v in enumerate(row.explanation - row.point):
                if v:  # −y·a_i = t·sgn(w_i)
                    equal.append(np.eye(p + 3)[i] * row.label + np.eye(p + 3)[p + 1] * np.sign(v))
    above += [np.eye(p + 3)[p + 1] + s * np.eye(p + 3)[i] for i in range(p) for s in (1.0, -1.0)]
    above.append(query(x, 0.0) if side > 0 else -query(x, 1.0))
    found = linprog(
        -np.eye(p + 3)[-1],
        A_ub=-np.array(above),
        b_ub=np.zeros(len(above)),
        A_eq=np.array(equal) if equal else None,
        b_eq=np.zeros(len(equal)) if equal else None,
        bounds=[*[(-1e6, 1e6)] * (p + 1), (1e-3, 1.0), (0.0, 1.0)],
        method="highs",
    )
    return found.status == 0 and -found.fun > 1e-6


def is_true(log: ox.QueryLog, point: Any, verdict: Verdict | None) -> bool:
    """The truth about a point, by two linear programs. BOUNDARY is not asked here."""
    if verdict is None:
        return False  # the logs below are consistent
    sides = {side for side in (1, -1) if could_be(log, np.array(point), side)}
    if verdict is Verdict.BOUNDARY:
        return sides == {1}
    return sides == {Verdict.UNKNOWN: {1, -1}, Verdict.YES: {1}, Verdict.NO: {-1}}[verdict]


@st.composite
def proved(draw: st.DrawFn) -> tuple[ox.QueryLog, Any]:
    """A log of small integers, with or without an exact ℓ1 explanation, and a proof of what it says about a point."""
    small = st.integers(-3, 3)
    points = draw(st.lists(st.tuples(small, small), min_size=3, max_size=6, unique=True))
    normal = draw(st.sampled_from([(1.0, 0.0), (1.0, -1.0), (2.0, 1.0), (-1.0, 2.0)]))
    model = ox.Hyperplane(normal, draw(small) + 0.5)
    log = ox.QueryLog(mechanism=EXACT)
    log.add_label(np.array(points, dtype=float), model.labels(np.array(points, dtype=float)))
    if draw(st.booleans()):
        x = np.array(draw(st.tuples(small, small)), dtype=float)
        log.add_explanation(x, ox.ModelOracle(model, EXACT).explain(x), label=model.label(x))
    target = np.array(draw(st.tuples(small, small)), dtype=float)
    verdicts = ox.Knowledge(log).certify(target)
    if verdicts.codes[0] == Verdict.UNDECIDED:
        return log, None
    return log, verdicts.proof(0)


def paths(entry: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    inside = entry.items() if isinstance(entry, dict) else enumerate(entry) if isinstance(entry, list) else ()
    return [at, *(path for key, value in inside for path in paths(value, (*at, key)))]


def replaced(entry: Any, path: tuple[Any, ...], change: Any) -> Any:
    """The value with what `change` makes of the part at `path`; None drops it."""
    if not path:
        return change(entry)
    copied = copy.copy(entry)
    value = replaced(entry[path[0]], path[1:], change)
    if value is None and len(path) == 1:
        del copied[path[0]]
    else:
        copied[path[0]] = value
    return copied


def mutations(value: Any) -> list[Any]:
    """Other values of the same kind, near and far."""
    if isinstance(value, bool) or value is None:
        return [0, "x"]
    if isinstance(value, int):
        return [value + 1, value - 1, -value, 0, 1]
    if isinstance(value, float):
        return [value + 1.0, -value, value * (1 + 2**-50) + 2**-40, 0.0]
    if isinstance(value, str):
        return ["0", "1", "-1/2", "1/3", value + "0", "YES", "NO", "BOUNDARY", "plane", "side", "flips", "certificate"]
    if isinstance(value, list):
        return [value[1:], value + value[:1], value[::-1], []]
    return [{}]


@examples(150)
@given(proved(), st.data())
def test_a_mutant_is_refused_or_still_true(case: tuple[ox.QueryLog, Any], data: st.DataObject) -> None:
    log, proof = case
    if proof is None:
        return
    proof.verify(log)
    assert is_true(log, proof.point, proof.verdict)
    entry = json.loads(proof.to_json())
    for _ in range(6):
        path = data.draw(st.sampled_from(paths(entry)[1:]))
        change = data.draw(st.sampled_from([None, "mutate", "mutate", "mutate"]))
        part = entry
        for key in path:
            part = part[key]
        other = None if change is None else data.draw(st.sampled_from(mutations(part)))
        mutant = replaced(entry, path, lambda _, other=other: other)
        try:
            found = read_proof(json.dumps(mutant))
            found.verify(log)
        except ox.CertificateInvalid:
            continue
        assert is_true(log, found.point, found.verdict), mutant


@examples(60)
@given(proved(), st.integers(0, 10), st.sampled_from(["labels", "points"]))
def test_a_certificate_notices_every_change_of_its_rows(case: tuple[ox.QueryLog, Any], pick: int, column: str) -> None:
    log, proof = case
    if not isinstance(proof, Certificate):
        return
    row = sorted(proof.rows)[pick % len(proof.rows)]
    log._buffers[column][row] = -log._buffers[column][row] - (column == "points")
    with pytest.raises(ox.CertificateInvalid, match=f"row {row} of the log is not the row"):
        proof.verify(log)


# Anything at all, in place of a proof or inside one.

GARBAGE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8) | st.just("1/0"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@examples(200)
@given(st.sampled_from(SAMPLES), GARBAGE, st.data())
def test_garbage_inside_a_proof_is_refused_in_words(make: Any, garbage: Any, data: st.DataObject) -> None:
    log, proof = make()
    entry = json.loads(proof.to_json())
    path = data.draw(st.sampled_from(paths(entry)))
    mutant = replaced(entry, path, lambda _: garbage if garbage is not None else [None])
    try:
        found = read_proof(json.dumps(mutant))
        found.verify(log)
    except ox.CertificateInvalid as error:
        assert str(error)
    else:  # the same claim in other words, or another point that the same two models tell apart
        assert found.verdict == proof.verdict
        if isinstance(proof, Certificate):
            assert (found.point, found.terms) == (proof.point, proof.terms)
        assert str(found)
