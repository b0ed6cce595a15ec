"""Proofs of the library and mutants of them: what the checker accepts holds for every consistent model that is at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

import overexplain as ox
from campaigning import Tally, asked_on_the_plane, campaign, denied, honest_log, opened, queries, says, shown
from definition import Definition, Model, directions, exact, models
from overexplain.errors import CertificateInvalid, SolverFailed
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.certificates import Certificate, Disagreement, Verifier
from overexplain.knowledge.checker import Bound, Branch, Branched, Lemma, Term, fact_of
from overexplain.knowledge.evidence import Finder

GOAL = "certificates and mutants"
SIMPLE = ("l1", "l2", "linf", "weighted l1", "weighted l2", "polyhedral", "facets", "mahalanobis", "group", "lp:3")
FACTS = ("side", "plane", "steepest", "flips", "reach", "ray", "chord")
MUTANTS = 24


def case(seed: int, tally: Tally) -> None:
    rng = np.random.default_rng([seed, 3])
    unlabelled = seed % 3 == 0
    made = (
        asked_on_the_plane(seed)
        if seed % 6 == 0
        else honest_log(
            seed, most_features=2, unlabelled=1.0 if unlabelled else 0.1, labels=2 * (not unlabelled), names=SIMPLE
        )
    )
    known, log = Definition(made.log), made.log
    knowledge = opened(seed, tally, made, known)
    if knowledge is None or not known.judge(*made.model):
        return
    verdicts = knowledge.certify(queries(made, 5))
    proofs: list[Certificate] = []
    found: list[Model] = [made.model]
    for i in range(len(verdicts)):
        if verdicts[i] is ox.Verdict.UNDECIDED:
            continue
        try:
            proof = verdicts.proof(i)
        except SolverFailed:
            continue
        if isinstance(proof, Certificate):
            proofs.append(proof)
        elif isinstance(proof, Disagreement):
            found += [(tuple(m.normal), m.offset) for m in (proof.yes, proof.no)]
    points = [exact(q) for q in verdicts.points.tolist()]
    normals = directions(known.rows, points, 1)
    chosen = [normals[int(k)] for k in rng.choice(len(normals), min(4, len(normals)), replace=False)]
    found += list(models(known, points, chosen))[:200]
    found += [(tuple(-v for v in a), -b) for a, b in found]
    consistent = [model for model in dict.fromkeys(found) if known.judge(*model)]
    tally.add("models", len(consistent))
    verifier = Verifier(log)
    for proof in proofs:
        _check(seed, tally, log, proof, consistent, "certificates")
        for _ in range(MUTANTS):
            try:
                mutant = _mutated(rng, log, proof)
                verifier.check(mutant)
            except (CertificateInvalid, ZeroDivisionError):
                tally.add("mutants refused")
                tally.add(GOAL)
                continue
            _check(seed, tally, log, mutant, consistent, "mutants accepted")


def _check(seed: int, tally: Tally, log: ox.QueryLog, proof: Certificate, known: Sequence[Model], kind: str) -> None:
    tally.add(kind)
    tally.add(GOAL)
    if proof.assumed:
        tally.add(f"{kind}, up to swapping")
    opposite = log.points[proof.assumed[0][0]].tolist() if proof.assumed else None
    for model in known:
        if proof.point is None or proof.verdict is None:
            tally.fail(seed, f"{kind}: a contradiction, but {model} is consistent: {proof.to_json()}, log {shown(log)}")
            return
        # Of a Yes up to swapping the assumed point itself is the measure, and it may lie on the plane.
        if list(proof.point) == opposite:
            continue
        if denied(int(proof.verdict), model, proof.point, opposite):
            tally.fail(
                seed, f"{kind}: {model} with {says(model, proof.point)} denies {proof.to_json()}, log {shown(log)}"
            )
            return


def _mutated(rng: np.random.Generator, log: ox.QueryLog, proof: Certificate) -> Certificate:
    """The proof with one or two things changed; where the sum of the left sides is off then, sometimes mended by a Hölder term."""
    parts: dict[str, Any] = {
        name: getattr(proof, name) for name in ("point", "verdict", "terms", "reverse", "lemmas", "assumed", "branches")
    }
    for _ in range(int(rng.integers(1, 3))):
        _change(rng, log, parts)
    if rng.random() < 0.5 and parts["terms"]:
        parts["terms"] = _mended(log, parts)
    lengths = list(proof.lengths)
    made = Certificate.about(
        log, parts.pop("point"), parts.pop("verdict"), parts.pop("terms"), lengths=lengths, **parts
    )
    return _with_lengths(log, made)


def _with_lengths(log: ox.QueryLog, proof: Certificate) -> Certificate:
    """With the evidence for the lengths of vectors that are new in it."""
    find, answers = Finder(), answers_of(log)
    for term in proof.terms:
        try:
            fact_of(answers, term, find, {row: 1 for row in range(len(log)) if log[row].label is None})
        except CertificateInvalid:
            continue
    return replace(proof, lengths=(*proof.lengths, *find.lengths))


def _change(rng: np.random.Generator, log: ox.QueryLog, parts: dict[str, Any]) -> None:
    kind = int(rng.integers(12))
    if kind == 0 and parts["point"] is not None:
        parts["verdict"] = ox.Verdict(int(rng.choice([1, -1, 2])))
        parts["reverse"] = parts["reverse"] if parts["verdict"] == ox.Verdict.BOUNDARY else ()
    elif kind == 1 and parts["point"] is not None:
        moved = list(parts["point"])
        moved[int(rng.integers(len(moved)))] += float(rng.choice([1, -1]) * 10.0 ** rng.integers(-14, 1))
        parts["point"] = tuple(moved)
    elif kind == 2:
        parts["point"] = parts["verdict"] = None
        parts["reverse"] = ()
    elif kind == 3 and parts["lemmas"]:
        lemma = parts["lemmas"][-1]
        parts["lemmas"] = (*parts["lemmas"][:-1], Lemma(lemma.row, -lemma.label, lemma.terms))
    elif kind == 4:
        row = int(rng.integers(len(log)))
        parts["assumed"] = () if parts["assumed"] else ((row, 1),)
    elif parts["branches"] is not None:
        parts["branches"] = Branched(parts["branches"].row, _branch(rng, log, parts["branches"].branch))
    else:
        name = "reverse" if parts["reverse"] and rng.random() < 0.5 else "terms"
        if parts["lemmas"] and rng.random() < 0.3:
            lemma = parts["lemmas"][-1]
            changed = Lemma(lemma.row, lemma.label, _list(rng, log, tuple(lemma.terms)))
            parts["lemmas"] = (*parts["lemmas"][:-1], changed)
        else:
            parts[name] = _list(rng, log, tuple(parts[name]))


def _branch(rng: np.random.Generator, log: ox.QueryLog, branch: Branch) -> Branch:
    if branch.parts and rng.random() < 0.7:
        k = int(rng.integers(len(branch.parts)))
        return replace(branch, parts=(*branch.parts[:k], _branch(rng, log, branch.parts[k]), *branch.parts[k + 1 :]))
    if branch.bounds and rng.random() < 0.5:
        bound = branch.bounds[0]
        value = bound.value * Fraction(int(rng.integers(0, 9)), 8)
        return replace(branch, bounds=(Bound(bound.index, bound.sign, value, bound.terms), *branch.bounds[1:]))
    if branch.value is not None:
        return replace(branch, value=branch.value * Fraction(int(rng.integers(-2, 5)), 2))
    return replace(branch, terms=_list(rng, log, tuple(branch.terms)))


def _list(rng: np.random.Generator, log: ox.QueryLog, terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """One term changed, left out or added."""
    kind, row = int(rng.integers(7)), int(rng.integers(len(log)))
    if not terms or kind == 0:
        return (
            *terms,
            Term(str(rng.choice(FACTS[:5])), Fraction(1, int(rng.integers(1, 5))), row, sign=int(rng.choice([1, -1]))),
        )
    k = int(rng.integers(len(terms)))
    term = terms[k]
    if kind == 1:
        return terms[:k] + terms[k + 1 :]
    factor = (
        Fraction(int(rng.integers(0, 9)), 4) if rng.random() < 0.5 else 1 + Fraction(1, 10 ** int(rng.integers(1, 15)))
    )
    if kind == 2:
        term = replace(term, weight=term.weight * factor)
    elif kind == 3 and term.row is not None:
        term = replace(term, row=row)
    elif kind == 4 and term.fact in FACTS:
        term = replace(term, fact=str(rng.choice(FACTS if term.vector is not None else FACTS[:5])))
    elif kind == 5:
        term = replace(term, sign=-term.sign)
    elif term.vector is not None:
        i = int(rng.integers(len(term.vector)))
        term = replace(
            term, vector=tuple(v * (factor - (rng.random() < 0.3)) if n == i else v for n, v in enumerate(term.vector))
        )
    return (*terms[:k], term, *terms[k + 1 :])


def _mended(log: ox.QueryLog, parts: dict[str, Any]) -> tuple[Term, ...]:
    """With a Hölder term that makes the left sides add up again for every feature, and the rows' weights for the offset."""
    labels = {lemma.row: lemma.label for lemma in parts["lemmas"]} | dict(parts["assumed"])
    p, find, answers = log.points.shape[1], Finder(), answers_of(log)
    point, verdict = parts["point"], parts["verdict"]
    if verdict == ox.Verdict.BOUNDARY:
        return tuple(parts["terms"])
    goal = (
        [Fraction(0)] * (p + 1) if point is None else [int(verdict) * v for v in (*map(Fraction, point), Fraction(-1))]
    )
    terms, facts = list(parts["terms"]), []
    for term in terms:
        try:
            facts.append(fact_of(answers, term, find, labels).left)
        except CertificateInvalid:
            return tuple(terms)
    off = goal[p] - sum((t.weight * f[p] for t, f in zip(terms, facts, strict=True)), Fraction(0))
    for k, left in enumerate(facts):
        if off and left[p] and terms[k].weight + off / left[p] >= 0:
            terms[k] = replace(terms[k], weight=terms[k].weight + off / left[p])
            break
    left = [sum((t.weight * f[i] for t, f in zip(terms, facts, strict=True)), Fraction(0)) for i in range(p)]
    missing = tuple(g - v for g, v in zip(goal[:p], left, strict=True))
    row = next((t.row for t in terms if t.row is not None and answers[t.row].explanation is not None), None)
    if row is None or not any(missing):
        return tuple(terms)
    return (*terms, Term("hoelder", Fraction(1), row, vector=missing))


def test_what_the_checker_accepts_is_true() -> None:
    tally = campaign(case, 24)
    assert tally.counts[GOAL] > 400
    assert tally.counts["mutants accepted"] > 20
