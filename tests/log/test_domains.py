"""What answers are chosen from is kept wherever their terms are: in files, frames, runs, merged logs and proofs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import overexplain as ox
from overexplain.errors import CertificateInvalid, InvalidInput
from overexplain.geometry.domain import Domain
from overexplain.geometry.mechanism import Mechanism
from overexplain.knowledge.certificates import Certificate
from overexplain.knowledge.engine import Knowledge
from overexplain.knowledge.premises import Premise
from overexplain.log.merge import merge_logs
from overexplain.log.querylog import QueryLog
from overexplain.log.store.imported import write_run
from overexplain.log.store.run import Run
from overexplain.log.summary import in_words
from overexplain.log.whole_moves import whole_moves, whole_moves_in_words
from overexplain.oracles.constrained import OneHot

FEATURES = ("age", "income", "owns", "rents")
DOMAIN = Domain(4, [18, -np.inf, 0, 0], [99, 1 / 3, 1, 1], [[2, 3]], [0])
TERMS = Mechanism("l1", domain=DOMAIN)


def answered(terms: Mechanism | None = None) -> QueryLog:
    """What a service over the domain answers, under its own terms or others."""
    service = OneHot(
        ox.ModelOracle(ox.Hyperplane([0.25, 1.0, 2.0, -1.0], 9.5), "l1"), DOMAIN.groups, [0], DOMAIN.low, DOMAIN.high
    )
    assert service.mechanism == TERMS
    log = QueryLog(FEATURES, terms or service.mechanism)
    rows = DOMAIN.sample(0, 12)
    log.add_explanation(rows, service.explain(rows), label=service.classify(rows))
    return log


def by_frame(log: QueryLog, _: Path) -> QueryLog:
    return QueryLog.from_frame(log.to_frame(), mechanism=log.mechanism)


def by_run(log: QueryLog, folder: Path) -> QueryLog:
    write_run(log, folder / "run.sqlite")
    with Run.open(folder / "run.sqlite") as run:
        assert run.mechanism == TERMS
    return QueryLog.load(folder / "run.sqlite")


def by_file(ending: str) -> Callable[[QueryLog, Path], QueryLog]:
    def saved(log: QueryLog, folder: Path) -> QueryLog:
        log.save(folder / f"log{ending}")
        return QueryLog.load(folder / f"log{ending}")

    return saved


@pytest.mark.parametrize(
    "through",
    [by_file(".jsonl"), by_file(".csv"), by_file(".parquet"), by_frame, by_run],
    ids=["jsonl", "csv", "parquet", "frame", "run"],
)
def test_every_format_keeps_it(through: Callable[[QueryLog, Path], QueryLog], tmp_path: Path) -> None:
    log = answered()
    again = through(log, tmp_path)
    assert len(again.explained) == len(log.explained) > 5
    assert {again.mechanism_of(int(i)) for i in again.explained} == {TERMS}


def test_files_of_before_are_read_and_written_as_they_were(tmp_path: Path) -> None:
    old = (
        '{"format": "overexplain-log", "version": 1, "dimension": 1, "features": null, "mechanism": null}\n'
        '{"mechanism": {"distance": "l1", "robustness": null, "radius": 0.0, "tolerance": null, "slack": 0.0}}\n'
        '{"x": [0.0], "y": -1, "cf": [1.0], "m": 0}\n'
    )
    (tmp_path / "old.jsonl").write_text(old)
    log = QueryLog.load(tmp_path / "old.jsonl")
    assert log.mechanism_of(0) == Mechanism("l1")
    log.save(tmp_path / "new.jsonl")
    assert (tmp_path / "new.jsonl").read_text() == old


@pytest.mark.parametrize(
    ("domain", "says"),
    [
        ('{"dimension": 2}', "the domain has 2 features, the model has 1"),
        ('{"dimension": 1e0}', "domain: dimension must be a whole number"),
        ('{"dimension": 1, "low": [true]}', "domain: low[0] must be a finite number"),
        ('{"dimension": 1, "integers": {"0": 1}}', "domain: integers must be a list"),
        ('{"dimension": 999999999999}', "domain: dimension must be a whole number from 1 to 1,000,000"),
        ('{"dimension": 1, "high": 1e999}', "domain: high must be a finite number"),
        ('{"dimension": 1, "dimension": 1}', "the same key twice"),
        ('{"dimension": 1, "low": NaN}', "NaN"),
        ("true", "a mechanism's terms are numbers, norms or null"),
        ("[" * 3000 + "]" * 3000, ""),
    ],
)  # fmt: skip
def test_a_hostile_domain_is_refused_with_its_line(domain: str, says: str, tmp_path: Path) -> None:
    header = '{"format": "overexplain-log", "version": 1, "dimension": 1, "features": null, "mechanism": null}\n'
    (tmp_path / "log.jsonl").write_text(header + f'{{"mechanism": {{"distance": "l1", "domain": {domain}}}}}\n')
    with pytest.raises(InvalidInput, match="line 2: ") as caught:
        QueryLog.load(tmp_path / "log.jsonl")
    assert says in str(caught.value)


def test_merging_keeps_it_and_does_not_mix_it_up() -> None:
    one, other = answered(), answered(Mechanism("l1"))
    assert merge_logs([one, one]).mechanism == TERMS
    both = merge_logs([one, other])  # the same answers under other terms are other rows
    assert (len(both), both.mechanism, set(both.mechanisms)) == (24, None, {TERMS, Mechanism("l1")})
    assert both.mechanism_of(0) == TERMS
    turned = QueryLog(FEATURES[::-1], Mechanism(None, domain=Domain(4)))
    turned.add_label([0.0, 1.0, 0.0, 20.0], 1)
    assert len(merge_logs([one, turned])) == 13  # without limits the order does not matter
    limited = QueryLog(FEATURES[::-1], Mechanism(None, domain=Domain(4, integers=[3])))
    with pytest.raises(InvalidInput, match="terms made for that order \\(unknown distance, 1 whole number\\)"):
        merge_logs([one, limited])


def test_in_words() -> None:
    assert in_words(TERMS) == "l1, 1 whole number, 1 category, in a box"
    assert in_words(Mechanism(None, slack=None, domain=Domain(2))) == "only the label flips, constrained"


def one_row(domain: Domain | None, dimension: int = 1) -> QueryLog:
    """No at 0, and at 1 it is another label: −1 is No, whatever the answer was chosen from."""
    log = QueryLog(mechanism=Mechanism("l1", tolerance=0.0, domain=domain))
    log.add_explanation(np.zeros(dimension), np.eye(dimension)[0], label=-1)
    return log


@pytest.mark.parametrize("domain", [Domain(1), Domain(1, low=-1 / 3), Domain(1, integers=[0])])
def test_a_proof_holds_for_its_own_domain_only(domain: Domain) -> None:
    logs = {None: one_row(None), domain: one_row(domain), Domain(1, -9, 9): one_row(Domain(1, -9, 9))}
    for made_for, log in logs.items():
        proof = Knowledge(log).certify([[-1.0]]).proof(0)
        assert isinstance(proof, Certificate)
        proof = Certificate.from_json(proof.to_json())
        assert proof.verify(log) is None
        for other, changed in logs.items():
            if other != made_for:
                with pytest.raises(CertificateInvalid, match="row 0: the proof rests on domain .*, the log says"):
                    proof.verify(changed)


def test_premises_name_long_domains_by_their_digest() -> None:
    plain = Premise.of(one_row(None), 0).to_dict()
    assert "domain" not in plain
    short, long = Domain(1, integers=[0]), Domain(40, np.arange(40.0) - 99)
    assert Premise.of(one_row(short), 0).to_dict() == {**plain, "domain": short.to_dict()}
    premise = Premise.of(one_row(long, 40), 0)
    assert premise.to_dict()["domain"].keys() == {"dimension", "sha256"}
    assert len(json.dumps(premise.to_dict())) < 400
    assert Premise.from_dict(json.loads(json.dumps(premise.to_dict())), "premise 0") == premise
    other = one_row(Domain(40, np.arange(40.0) - 98), 40)
    with pytest.raises(CertificateInvalid, match="rests on domain"):
        premise.hold(other, None)
    for odd, says in (
        (None, "domain must be an object, got null"),
        ([1], "domain must be an object"),
        (True, "must be an object"),
    ):
        with pytest.raises(CertificateInvalid, match=says):
            Premise.from_dict({**plain, "domain": odd}, "premise 0")
    with pytest.raises(CertificateInvalid, match="lacks"):
        Premise.from_dict({"row": 0, "sha256": "0", "domain": {"dimension": 1}}, "premise 0")


def moves(steps: list[list[float]], terms: Mechanism | None, names: tuple[str, ...] | None = None) -> QueryLog:
    log = QueryLog(names, terms)
    asked = np.array([[20.0, 0.5, float(i % 2)] for i in range(len(steps))])
    log.add_explanation(asked, asked + np.array(steps), label=[-1] * len(steps))
    return log


def test_whole_moves_are_found_feature_by_feature() -> None:
    steps = [[1.0, 0.0, 0.0], [2.0, 0.0, 1.0], [-3.0, 0.25, 0.0], [0.0, 0.5, -1.0]]
    assert whole_moves(moves(steps, Mechanism("l1"))) == {0: 3}  # the flag moved twice only
    assert whole_moves(moves(steps * 2, Mechanism(None))) == {0: 6, 2: 4}
    broken = [*steps, [0.5, 0.0, 0.0]]
    assert whole_moves(moves(broken, Mechanism("l1"))) == {}
    # From 0.5 to 1 is no whole move.
    assert whole_moves(moves([[0.0, 0.5, 0.0]] * 3, Mechanism("l1"))) == {}
    for silent in (Mechanism("l1", domain=Domain(3)), Mechanism("l1", slack=None), None):
        assert whole_moves(moves(steps * 2, silent)) == {}
    assert whole_moves(QueryLog()) == {}


def test_whole_moves_in_words_name_few() -> None:
    log = moves([[1.0, 0.0, 1.0]] * 3, Mechanism("l2"), ("age", "income", "has_job"))
    said = whole_moves_in_words(log)
    assert said is not None
    assert said.startswith(
        "answers changed 'age', 'has_job' by whole numbers only (6 moves), but the terms say that any number"
    )
    assert "Mechanism(domain=...)" in said
    many = QueryLog(mechanism=Mechanism("l2"))
    many.add_explanation(np.zeros((3, 20)), np.ones((3, 20)))
    assert "feature 0, feature 1, feature 2, feature 3, feature 4, feature 5 and 14 more by whole" in str(
        whole_moves_in_words(many)
    )
    assert whole_moves_in_words(moves([[0.1, 0.0, 0.0]] * 3, Mechanism("l2"))) is None
    assert whole_moves_in_words(answered()) is None
    assert "'age'" in str(whole_moves_in_words(answered(replace(TERMS, domain=None))))


def test_an_unlimited_domain_has_no_infinities_in_json() -> None:
    written = json.dumps(Mechanism("l1", domain=Domain(2, [-math.inf, 0])).to_dict(), allow_nan=False)
    assert Mechanism.from_dict(json.loads(written)).domain == Domain(2, [-math.inf, 0])
