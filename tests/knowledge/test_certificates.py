"""Proofs as objects and as JSON: they survive the trip, a changed log or a changed proof is noticed, nothing false is accepted."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest

import overexplain as ox
from overexplain.knowledge import certificates
from overexplain.knowledge.certificates import Certificate, Disagreement, Model, Verifier, read_numbered, read_proof
from overexplain.knowledge.checker import Term
from overexplain.knowledge.evidence import Finder
from overexplain.knowledge.verdicts import Verdict
from overexplain.log.terms import with_terms
from proof_samples import SAMPLES, disagreement, explained, labels_only, with_evidence
from provers import exact


@pytest.mark.parametrize("make", SAMPLES)
def test_a_proof_holds_and_survives_the_trip_to_json_and_back(make: Any) -> None:
    log, proof = make()
    proof.verify(log, proof.tolerance)
    text = proof.to_json(row=7)
    assert "\n" not in text
    number, back = read_numbered(text)
    assert (number, back) == (7, proof)
    assert type(proof).from_json(proof.to_json()) == proof
    assert read_proof(proof.to_json().encode()) == proof
    back.verify(log, proof.tolerance)
    back.verify(copy.deepcopy(log), proof.tolerance)
    if proof.tolerance is not None:
        with pytest.raises(ox.CertificateInvalid, match=r"whatever the log says; .* verify\(log, tolerance=0.0\)"):
            back.verify(log)


def test_each_proof_in_a_line() -> None:
    lines = {make.__name__: str(make()[1]) for make in SAMPLES}
    assert lines == {
        "labels_only": "Yes = 1.5 · row 1 − 0.5 · row 0",
        "explained": "Yes = 1 · explanation of row 0 + 0.5 · step of row 0 + rest 0.25 (l1)",
        "boundary": "Boundary = 1 · explanation of row 0 + rest 1 (level with the step of row 0)",
        "with_a_lemma": "Yes = 1 · explanation of row 2 + 1 · step of row 2 (row 2 is proved No)",
        "with_an_assumption": "Yes = 1 · row 0 (taking row 0 as Yes)",
        "with_evidence": "Yes = 1 · explanation of row 0 + 0.5 · step of row 0 + rest 0.25 (polyhedral)",
        "contradiction": "0 = −0.5 · row 0 − 0.5 · row 1 + 1 · row 2",
        "under_another_tolerance": "Yes = 1 · explanation of row 0",
        "robust": "Yes = 1 · explanation of row 0 + rest 0.53 (l1) + 0.01 · step of row 0",
        "of_a_secret_radius": ("Yes = −4 · explanation of row 0 + 0.1667 · step of row 0 + 5 · explanation of row 1"),
        "by_cases": "Yes by 2 cases from rows 0, 1, 2",
        "by_corners": "No by 4 cases from row 0",
        "by_arcs": "Yes by 2 cases from rows 0, 1, 2, 3, 4, 5, 6",
        "disagreement": "Unknown: Yes where 1·x0 ≥ 1, No where 1·x0 < 3",
        "disagreement_with_evidence": (
            "Unknown: Yes where −1·x0 + 0.5·x1 ≥ −3, No where −1·x0 − 0.5·x1 < −3 (taking row 0 as Yes)"
        ),
    }
    many = [Term("side", F(1, k), k) for k in range(1, 21)]
    line = str(Certificate((0.0,), Verdict.NO, tuple(many)))
    assert line.startswith("No = −1 · row 1 − 0.5 · row 2")
    assert line.endswith("+ … (8 more)")
    assert "over 1e308" in str(replace(labels_only()[1], terms=(Term("side", F(10) ** 400, 1),)))
    hostile = Term("hoelder", F(1), vector=exact([1.0]), distance={"norm": "\x1b[31m{0.__class__}"})
    assert str(Certificate((0.0,), Verdict.YES, (hostile,))) == "Yes = rest 1 ([31m{0.__class__})"


def test_a_no_is_shown_as_the_point_it_is_about() -> None:
    log = ox.QueryLog()
    log.add_label([[0.0], [2.0]], [-1, -1])
    proof = Certificate.about(log, [1.0], -1, [Term("side", F(1, 2), 0), Term("side", F(1, 2), 1)])
    proof.verify(log)
    assert str(proof) == "No = 0.5 · row 0 + 0.5 · row 1"
    assert proof.verdict is Verdict.NO


# The log is not what it was.


@pytest.mark.parametrize(("column", "value"), [("points", [0.5, 0.0]), ("labels", 1), ("explanations", [3.0, 1e-300])])
def test_a_changed_row_is_named(column: str, value: Any) -> None:
    log, proof = explained()
    log._buffers[column][0] = value
    with pytest.raises(ox.CertificateInvalid, match="row 0 of the log is not the row that the proof was made for"):
        proof.verify(log)


def test_a_changed_row_is_named_even_where_the_sums_would_still_hold() -> None:
    log = ox.QueryLog()
    log.add_explanation([[1.0, 1.0]], [[5.0, 5.0]], label=[1])  # no mechanism: only the label counts
    proof = Certificate.about(log, [1.0, 1.0], Verdict.YES, [Term("side", F(1), 0)])
    proof.verify(log)
    log._buffers["explanations"][0] = 6.0
    with pytest.raises(ox.CertificateInvalid, match="row 0 of the log is not the row"):
        proof.verify(log)


@pytest.mark.parametrize(
    ("terms", "says"),
    [
        (ox.Mechanism("l1", tolerance=0.0), "rests on tolerance None, the log says 0.0"),
        (ox.Mechanism("l2"), "rests on distance 'l1', the log says 'l2'"),
        (ox.Mechanism("l1", slack=0.5), "rests on slack 0.0, the log says 0.5"),
        (ox.Mechanism("l1", "l2", 0.5), "rests on robustness None, the log says 'l2'"),
        (ox.Mechanism("l1", radius=None), "rests on radius 0.0, the log says None"),
    ],
)
def test_other_terms_are_named(terms: ox.Mechanism, says: str) -> None:
    def log_under(mechanism: ox.Mechanism) -> ox.QueryLog:
        log = ox.QueryLog()
        log.add_explanation([0.0, 0.0], [3.0, 0.0], label=-1)
        return with_terms(log, mechanism)

    proof = Certificate.about(log_under(ox.Mechanism("l1")), [0.0, 0.0], Verdict.NO, [Term("side", F(1), 0)])
    proof.verify(log_under(ox.Mechanism("l1")))
    with pytest.raises(ox.CertificateInvalid, match=says):
        proof.verify(log_under(terms))


def test_a_long_distance_is_told_apart_by_its_digest() -> None:
    matrix = np.eye(12)
    logs = []
    for corner in (1.0, 1.0 + 2.0**-52):
        matrix[0, 0] = corner
        log = ox.QueryLog(mechanism=ox.Mechanism(ox.Mahalanobis(matrix)))
        log.add_explanation(np.zeros(12), np.ones(12), label=-1)
        logs.append(log)
    proof = Certificate.about(logs[0], np.zeros(12), Verdict.NO, [Term("side", F(1), 0)])
    proof.verify(logs[0])
    assert proof.premises[0].distance["norm"] == "mahalanobis"
    assert len(proof.to_json()) < 700
    with pytest.raises(ox.CertificateInvalid, match="rests on distance"):
        proof.verify(logs[1])


def test_premises_are_all_needed_and_rows_must_exist() -> None:
    log, proof = labels_only()
    with pytest.raises(ox.CertificateInvalid, match="uses row 0 but does not name it"):
        replace(proof, premises=proof.premises[1:]).verify(log)
    short = ox.QueryLog()
    short.add_label([0.0, 0.0], -1)
    with pytest.raises(ox.CertificateInvalid, match="rests on row 1, but the log has 1 row"):
        proof.verify(short)
    flat = ox.QueryLog()
    flat.add_label([[0.0], [1.0]], [1, 1])
    with pytest.raises(ox.CertificateInvalid, match="point has 2 features, the log 1"):
        proof.verify(flat)
    with pytest.raises(ox.CertificateInvalid, match="the log has 0 rows"):
        proof.verify(ox.QueryLog())
    with pytest.raises(ox.CertificateInvalid, match="no verdict"):
        replace(proof, verdict=None).verify(log)
    with pytest.raises(ox.CertificateInvalid, match="not finite"):
        replace(proof, point=(float("nan"), 0.0)).verify(log)
    for tolerance in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ox.CertificateInvalid, match="tolerance is a number"):
            replace(proof, tolerance=tolerance).verify(log)


def test_a_longer_log_changes_nothing_about_a_certificate_but_may_end_a_disagreement() -> None:
    log, certain = labels_only()
    _, open_point = disagreement()
    log.add_label([2.0, 7.0], 1)
    certain.verify(log)
    with pytest.raises(ox.CertificateInvalid, match="gives row 3 another label"):
        open_point.verify(log)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"point": (0.5, 0.0)}, "should say Yes does not"),
        ({"point": (3.0, 0.0)}, "should say No does not"),
        ({"yes": Model(exact([1, 0]), F(5))}, "gives row 1 another label"),
        ({"no": Model(exact([0, 0]), F(1))}, "zero normal"),
        ({"no": Model(exact([1]), F(1))}, "the model that says No has 1 features"),
        ({"yes": Model((1.0, 0.0), F(1))}, "exact fractions"),
        ({"assumed": ((0, 1),)}, "although the log has labels"),
    ],
)
def test_two_models_must_fit_and_disagree(change: dict, says: str) -> None:
    log, proof = disagreement()
    with pytest.raises(ox.CertificateInvalid, match=says):
        replace(proof, **change).verify(log)


def test_the_same_models_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    log, proof = disagreement()
    checked = []
    original = certificates.check_witness
    monkeypatch.setattr(certificates, "check_witness", lambda *a, **k: (checked.append(1), original(*a, **k))[1])
    verifier = Verifier(log)
    for x in (1.5, 2.0, 2.5):
        verifier.check(replace(proof, point=(x, 0.0)))
    assert len(checked) == 2
    with pytest.raises(ox.CertificateInvalid, match="should say No"):
        verifier.check(replace(proof, point=(3.0, 0.0)))
    log.add_label([2.0, 0.0], -1)
    with pytest.raises(ox.CertificateInvalid, match="gives row 3 another label"):
        verifier.check(proof)


# Anything at all, in place of a proof.


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        (b"\xff", "not JSON"),
        ("[1]", "a JSON object"),
        ("NaN", "not a proof"),
        ('{"proof": "certificate", "proof": "certificate"}', "same key twice"),
        ("[" * 100_000, "nested too deep|not JSON"),
        ('{"proof": ' + "9" * 5000 + "}", "not a proof"),
        ('{"proof": ["certificate"], "version": 1}', "must be certificate or disagreement"),
        ('{"proof": "magic", "version": 1}', "must be certificate or disagreement"),
        ('{"proof": "certificate", "version": 2}', "version must be 1"),
        ('{"proof": "certificate", "version": true}', "version must be 1"),
        ('{"proof": "certificate", "version": 1}', "lacks terms, premises"),
        ('{"proof": "certificate", "version": 1, "terms": [], "premises": [], "x": 1}', 'unknown key "x"'),
        ('{"proof": "certificate", "version": 1, "terms": [], "premises": [], "point": [1.0]}', "belong together"),
        ('{"proof": "disagreement", "version": 1, "point": [1.0]}', "lacks yes, no"),
    ],
)
def test_what_is_no_proof_is_refused(text: str | bytes, says: str) -> None:
    with pytest.raises(ox.CertificateInvalid, match=says):
        read_proof(text)


@pytest.mark.parametrize(
    "number",
    ["1e999999999", "1e5", "0.5", "nan", "inf", "1/0", "1/-2", " 1", "1 ", "+1", "1_0", "0x", "١", "1//2", "",
     "9" * 10_000_000, "1/" + "9" * 100_000, "9" * 5000, 1.5, 1, None, True, ["1"]],
)  # fmt: skip
def test_numbers_that_are_not_fractions_or_too_long_are_refused_at_once(number: Any) -> None:
    _, proof = labels_only()
    entry = json.loads(proof.to_json())
    entry["terms"][0]["weight"] = number
    with pytest.raises(ox.CertificateInvalid, match="weight") as caught:
        read_proof(json.dumps(entry))
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "1e999", "true", '"1"', "null", "[1.0]", "9007199254740993", "1" * 400]
)
def test_a_point_is_made_of_floats(value: str) -> None:
    _, proof = labels_only()
    text = proof.to_json().replace('"point": [6.0,', f'"point": [{value},')
    with pytest.raises(ox.CertificateInvalid):
        read_proof(text)


def test_long_fractions_make_the_trip() -> None:
    long = F(2**9000 + 1, 3**5000)
    proof = Disagreement((0.1, 1e-320), Model((long, -long), F(-1, 3)), Model((-long, long), long))
    assert "0x" in proof.to_json()
    assert Disagreement.from_json(proof.to_json()) == proof


def test_each_kind_reads_its_own_kind() -> None:
    with pytest.raises(ox.CertificateInvalid, match="not a certificate"):
        Certificate.from_json(disagreement()[1].to_json())
    with pytest.raises(ox.CertificateInvalid, match="not a disagreement"):
        Disagreement.from_json(labels_only()[1].to_json())


def test_evidence_that_was_found_is_what_the_proof_needs() -> None:
    log, proof = with_evidence()
    find = Finder()
    certificates.check_certificate(certificates.answers_of(log), proof.terms, exact(proof.point), 1, lengths=find)
    found = replace(proof, lengths=find.lengths)
    found.verify(log)
    assert {length.vector for length in find.lengths} == {length.vector for length in proof.lengths}
    with pytest.raises(ox.CertificateInvalid, match="takes evidence"):
        replace(proof, lengths=()).verify(log)
