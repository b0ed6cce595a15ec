"""Proofs as objects: a `Certificate` that a verdict is certain, a `Disagreement` that a point is open.

Both are believed only after `verify(log)`, which uses exact arithmetic and nothing of what made them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import CertificateInvalid
from overexplain.geometry.arrays import as_point
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.checker import Answer, Branched, Lemma, Length, Term, check_certificate, check_witness
from overexplain.knowledge.premises import Premise
from overexplain.knowledge.proof_json import (
    parse_object,
    read_assumed,
    read_branches,
    read_lemma,
    read_length,
    read_list,
    read_not_negative,
    read_point,
    read_rational,
    read_row,
    read_term,
    read_vector,
    refuse_unknown,
    show,
    write_branches,
    write_lemma,
    write_length,
    write_rational,
    write_term,
    write_vector,
)
from overexplain.knowledge.proof_text import cases_in_a_line, certificate_in_a_line, disagreement_in_a_line
from overexplain.knowledge.verdicts import Verdict
from overexplain.log.querylog import QueryLog

VERSION = 1
_PROVABLE = {"YES": Verdict.YES, "NO": Verdict.NO, "BOUNDARY": Verdict.BOUNDARY}


@final
@dataclass(frozen=True)
class Certificate:
    """Why every model that fits the log gives `point` the same label: facts with weights that add up to it.

    `verdict` is YES, NO or BOUNDARY (then `reverse` proves the other direction); without a point (and verdict) it is a
    contradiction: no model fits the log. `lemmas`, `assumed`, `lengths` and `branches` are explained in `checker`; `premises` say
    which rows it rests on; `tolerance` is what was put in the place of every row's own, if anything was.

    >>> log = QueryLog()
    >>> log.add_label([[0.0, 0.0], [4.0, 0.0]], [-1, 1])
    0
    >>> terms = [Term("side", Fraction(3, 2), 1), Term("side", Fraction(1, 2), 0)]
    >>> proof = Certificate.about(log, [6.0, 0.0], Verdict.YES, terms)
    >>> proof.verify(log)
    >>> print(proof)
    Yes = 1.5 · row 1 − 0.5 · row 0
    >>> Certificate.from_json(proof.to_json()) == proof
    True
    """

    point: tuple[float, ...] | None
    verdict: Verdict | None
    terms: tuple[Term, ...]
    reverse: tuple[Term, ...] = ()
    lemmas: tuple[Lemma, ...] = ()
    assumed: tuple[tuple[int, int], ...] = ()
    tolerance: float | None = None
    premises: tuple[Premise, ...] = ()
    lengths: tuple[Length, ...] = ()
    branches: Branched | None = None

    def __post_init__(self) -> None:
        point = None if self.point is None else tuple(map(float, self.point))
        object.__setattr__(self, "point", point)
        object.__setattr__(self, "verdict", None if point is None or self.verdict is None else Verdict(self.verdict))
        for name in ("terms", "reverse", "assumed", "premises", "lengths"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        lemmas = tuple(Lemma(row, label, tuple(terms)) for row, label, terms in self.lemmas)
        object.__setattr__(self, "lemmas", lemmas)

    @classmethod
    def about(
        cls,
        log: QueryLog,
        point: ArrayLike | None,
        verdict: int | None,
        terms: Iterable[Term],
        *,
        reverse: Iterable[Term] = (),
        lemmas: Iterable[tuple[int, int, Sequence[Term]]] = (),
        assumed: Iterable[tuple[int, int]] = (),
        tolerance: float | None = None,
        lengths: Iterable[Length] = (),
        branches: Branched | None = None,
    ) -> Certificate:
        """The certificate with its premises filled in from the log. It is not verified yet."""
        x = None if point is None else tuple(as_point(point, log.dimension, "point").tolist())
        proof = cls(
            x,
            None if verdict is None else Verdict(verdict),
            tuple(terms),
            tuple(reverse),
            tuple(Lemma(*lemma) for lemma in lemmas),
            tuple(assumed),
            tolerance,
            (),
            tuple(lengths),
            branches,
        )
        return replace(proof, premises=tuple(Premise.of(log, row, tolerance) for row in sorted(proof.rows)))

    @property
    def rows(self) -> set[int]:
        """The rows of the log that it rests on."""
        lists = (self.terms, self.reverse, *(lemma.terms for lemma in self.lemmas))
        rows = {term.row for terms in lists for term in terms if term.row is not None}
        rows |= set() if self.branches is None else self.branches.rows
        return rows | {lemma.row for lemma in self.lemmas} | {row for row, _ in self.assumed}

    def verify(self, log: QueryLog, tolerance: float | None = None) -> None:
        """None if it is true of the log; raises CertificateInvalid, with what is wrong, if not.

        A proof that puts a tolerance of its own in the place of the log's is refused, unless it is told here as well.
        """
        Verifier(log, tolerance).check(self)

    def __str__(self) -> str:
        if self.branches is not None:
            return cases_in_a_line(self.verdict, self.branches, self.lemmas, self.assumed)
        labels = {premise.row: premise.label for premise in self.premises}
        distances = {premise.row: premise.distance for premise in self.premises}
        robust = {premise.row: premise.robustness for premise in self.premises if premise.radius != 0}
        return certificate_in_a_line(self.verdict, self.terms, labels, self.lemmas, self.assumed, distances, robust)

    def to_json(self, row: int | None = None) -> str:
        """One line of JSON; `row` is the number of the point in a file of points."""
        entry: dict[str, Any] = {"proof": "certificate", "version": VERSION}
        if row is not None:
            entry["row"] = row
        if self.point is not None:
            entry["point"] = list(self.point)
            entry["verdict"] = None if self.verdict is None else self.verdict.name
        entry["terms"] = [write_term(term) for term in self.terms]
        if self.reverse:
            entry["reverse"] = [write_term(term) for term in self.reverse]
        if self.lemmas:
            entry["lemmas"] = [write_lemma(lemma) for lemma in self.lemmas]
        if self.branches is not None:
            entry["branches"] = write_branches(self.branches)
        _write_common(entry, self)
        entry["premises"] = [premise.to_dict() for premise in self.premises]
        return json.dumps(entry, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Certificate:
        """The certificate that `to_json` wrote; raises CertificateInvalid for anything else."""
        _, proof = read_numbered(text)
        if not isinstance(proof, Certificate):
            raise CertificateInvalid("this proof is a disagreement, not a certificate")
        return proof

    @classmethod
    def _from_entry(cls, entry: dict[str, Any]) -> Certificate:
        optional = ("row", "point", "verdict", "reverse", "lemmas", "branches", *_COMMON)
        refuse_unknown(entry, (*_KIND, "terms", "premises", *optional), ("terms", "premises"), "a certificate")
        name = entry.get("verdict")
        if ("point" in entry) != ("verdict" in entry) or ("point" in entry and not _is_provable(name)):
            known = ", ".join(_PROVABLE)
            raise CertificateInvalid(f"a point and a verdict ({known}) belong together, got the verdict {show(name)}")
        return cls(
            read_point(entry["point"], "point") if "point" in entry else None,
            _PROVABLE[str(name)] if "point" in entry else None,
            read_list(entry["terms"], "term", read_term),
            read_list(entry.get("reverse", []), "reverse term", read_term),
            read_list(entry.get("lemmas", []), "lemma", read_lemma),
            premises=read_list(entry["premises"], "premise", Premise.from_dict),
            branches=read_branches(entry["branches"], "branches") if "branches" in entry else None,
            **_read_common(entry),
        )


@final
@dataclass(frozen=True)
class Model:
    """A model in exact numbers: Yes where normal·x ≥ offset."""

    normal: tuple[Fraction, ...]
    offset: Fraction

    def margin(self, point: Sequence[float]) -> Fraction:
        """normal·point − offset."""
        return sum((a * Fraction(v) for a, v in zip(self.normal, point, strict=True)), -self.offset)


@final
@dataclass(frozen=True)
class Disagreement:
    """Why a point is open: two models that could both have given every answer of the log, one says Yes, one says No.

    >>> log = QueryLog()
    >>> log.add_label([[0.0], [4.0]], [-1, 1])
    0
    >>> one = Fraction(1)
    >>> proof = Disagreement((2.0,), yes=Model((one,), one), no=Model((one,), 3 * one))
    >>> proof.verify(log)
    >>> print(proof)
    Unknown: Yes where 1·x0 ≥ 1, No where 1·x0 < 3
    """

    point: tuple[float, ...]
    yes: Model
    no: Model
    assumed: tuple[tuple[int, int], ...] = ()
    tolerance: float | None = None
    lengths: tuple[Length, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", tuple(map(float, self.point)))
        for name in ("assumed", "lengths"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def verdict(self) -> Verdict:
        """UNKNOWN."""
        return Verdict.UNKNOWN

    def verify(self, log: QueryLog, tolerance: float | None = None) -> None:
        """None if it is true of the log (see `Certificate.verify`); raises CertificateInvalid, with what is wrong, if not."""
        Verifier(log, tolerance).check(self)

    def __str__(self) -> str:
        yes, no = (self.yes.normal, self.yes.offset), (self.no.normal, self.no.offset)
        return disagreement_in_a_line(yes, no, self.assumed)

    def to_json(self, row: int | None = None) -> str:
        """One line of JSON; `row` is the number of the point in a file of points."""
        entry: dict[str, Any] = {"proof": "disagreement", "version": VERSION}
        if row is not None:
            entry["row"] = row
        entry["point"] = list(self.point)
        for name, model in (("yes", self.yes), ("no", self.no)):
            entry[name] = {"normal": write_vector(model.normal), "offset": write_rational(model.offset)}
        _write_common(entry, self)
        return json.dumps(entry, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Disagreement:
        """The disagreement that `to_json` wrote; raises CertificateInvalid for anything else."""
        _, proof = read_numbered(text)
        if not isinstance(proof, Disagreement):
            raise CertificateInvalid("this proof is a certificate, not a disagreement")
        return proof

    @classmethod
    def _from_entry(cls, entry: dict[str, Any]) -> Disagreement:
        needed = ("point", "yes", "no")
        refuse_unknown(entry, (*_KIND, "row", *needed, *_COMMON), needed, "a disagreement")
        yes, no = (_read_model(entry[name], name) for name in ("yes", "no"))
        return cls(read_point(entry["point"], "point"), yes, no, **_read_common(entry))


Proof = Certificate | Disagreement


def read_proof(text: str | bytes) -> Proof:
    """The proof in one line of JSON; raises CertificateInvalid if it is none."""
    return read_numbered(text)[1]


def read_numbered(text: str | bytes) -> tuple[int | None, Proof]:
    """The proof in one line of JSON and the number of the point it is about, if that is said."""
    entry = parse_object(text)
    kinds: dict[str, Callable[[dict[str, Any]], Proof]]
    kinds = {"certificate": Certificate._from_entry, "disagreement": Disagreement._from_entry}
    kind, version = entry.get("proof"), entry.get("version")
    if not isinstance(kind, str) or kind not in kinds:
        raise CertificateInvalid(f'not a proof: "proof" must be certificate or disagreement, got {show(kind)}')
    if type(version) is not int or version != VERSION:
        raise CertificateInvalid(
            f"version must be {VERSION}, got {show(version)}; a newer overexplain may have written it"
        )
    row = read_row(entry["row"], "row") if "row" in entry else None
    return row, kinds[kind](entry)


@final
class Verifier:
    """Verifies any number of proofs against one log; what they share is converted and checked once.

    `tolerance`: proofs may put this one in the place of the log's own.
    """

    MOST_MODELS = 4096

    def __init__(self, log: QueryLog, tolerance: float | None = None) -> None:
        self._log, self._tolerance = log, tolerance
        self._answers: dict[float | None, Mapping[int, Answer]] = {}
        self._fitting: dict[Any, None] = {}

    def check(self, proof: Proof) -> None:
        """None if the proof is true of the log; raises CertificateInvalid, with what is wrong, if not."""
        if proof.point is not None and self._log.dimension not in (None, len(proof.point)):
            raise CertificateInvalid(f"the point has {len(proof.point)} features, the log {self._log.dimension}")
        if proof.point is not None and not np.isfinite(proof.point).all():
            raise CertificateInvalid("the point is not finite")
        if proof.tolerance is not None and not (np.isfinite(proof.tolerance) and proof.tolerance >= 0):
            raise CertificateInvalid(f"a tolerance is a number ≥ 0, got {proof.tolerance!r}")
        if proof.tolerance not in (None, self._tolerance) and any(
            terms.tolerance != proof.tolerance for terms in self._log.mechanisms
        ):
            raise CertificateInvalid(
                f"it takes every answer to be within {proof.tolerance!r} of the optimum, whatever the log says; if you agree, "
                f"say so: verify(log, tolerance={proof.tolerance!r}), or --assume-tolerance {proof.tolerance!r}"
            )
        if proof.tolerance not in self._answers:
            if len(self._answers) >= 16:
                self._answers.clear()
            self._answers[proof.tolerance] = answers_of(self._log, proof.tolerance)
        answers = self._answers[proof.tolerance]
        if isinstance(proof, Certificate):
            self._check_certificate(proof, answers)
        else:
            self._check_disagreement(proof, answers)

    def _check_certificate(self, proof: Certificate, answers: Mapping[int, Answer]) -> None:
        for premise in proof.premises:
            premise.hold(self._log, proof.tolerance)
        if unnamed := proof.rows - {premise.row for premise in proof.premises}:
            raise CertificateInvalid(f"it uses row {min(unnamed)} but does not name it among its premises")
        if proof.point is not None and proof.verdict is None:
            raise CertificateInvalid("it has a point but no verdict")
        check_certificate(
            answers,
            proof.terms,
            None if proof.point is None else tuple(map(Fraction, proof.point)),
            Verdict.YES if proof.verdict is None else proof.verdict,
            reverse=proof.reverse,
            lemmas=proof.lemmas,
            assumed=proof.assumed,
            lengths=proof.lengths,
            branches=proof.branches,
        )

    def _check_disagreement(self, proof: Disagreement, answers: Mapping[int, Answer]) -> None:
        for said, model in (("Yes", proof.yes), ("No", proof.no)):
            if len(model.normal) != len(proof.point):
                raise CertificateInvalid(f"the model that says {said} has {len(model.normal)} features, the point not")
            self._check_model(proof, model, answers)
            is_yes = model.margin(proof.point) >= 0
            if (
                proof.assumed
            ):  # which side is Yes is a matter of naming: a Yes is the label of the row that is assumed to be one
                is_yes = is_yes == (model.margin(self._log.points[proof.assumed[0][0]].tolist()) >= 0)
            if is_yes != (said == "Yes"):
                raise CertificateInvalid(f"the model that should say {said} does not")

    def _check_model(self, proof: Disagreement, model: Model, answers: Mapping[int, Answer]) -> None:
        # The same few models are brought up against many points; the log may have grown meanwhile.
        key = (model, proof.assumed, proof.tolerance, len(self._log))
        if key in self._fitting:
            return
        check_witness(answers, model.normal, model.offset, assumed=proof.assumed, lengths=proof.lengths)
        if len(self._fitting) >= self.MOST_MODELS:
            self._fitting.pop(next(iter(self._fitting)))
        self._fitting[key] = None


_KIND = ("proof", "version")
_COMMON = ("assumed", "tolerance", "lengths")


def _write_common(entry: dict[str, Any], proof: Proof) -> None:
    if proof.assumed:
        entry["assumed"] = [list(pair) for pair in proof.assumed]
    if proof.tolerance is not None:
        entry["tolerance"] = proof.tolerance
    if proof.lengths:
        entry["lengths"] = [write_length(length) for length in proof.lengths]


def _read_common(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "assumed": read_list(entry.get("assumed", []), "assumed", read_assumed),
        "tolerance": read_not_negative(entry.get("tolerance"), "tolerance"),
        "lengths": read_list(entry.get("lengths", []), "length", read_length),
    }


def _read_model(entry: Any, what: str) -> Model:
    entry = refuse_unknown(entry, ("normal", "offset"), ("normal", "offset"), what)
    return Model(read_vector(entry["normal"], f"{what}: normal"), read_rational(entry["offset"], f"{what}: offset"))


def _is_provable(name: Any) -> bool:
    return isinstance(name, str) and name in _PROVABLE
