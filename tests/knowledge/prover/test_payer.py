"""The payer alone: whatever the weights are, β > 0 is a proof that the checker accepts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import overexplain as ox
from overexplain.errors import CertificateInvalid
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.checker import check_certificate
from overexplain.knowledge.enclosures import enclose
from overexplain.knowledge.evidence import Finder
from overexplain.knowledge.prover.blocks import blocks_of
from overexplain.knowledge.prover.cone import NoInterior
from overexplain.knowledge.prover.lengths import usable
from overexplain.knowledge.prover.prover import Prover
from overexplain.knowledge.prover.stage import Asked, Proof
from overexplain.knowledge.prover.written import terms_of
from prover_logs import mixed, seeds

PROMISES = ("label", "valid", "exact", "rounded", "slack", "slack and tolerance")


def prover_of(log: ox.QueryLog) -> Prover | None:
    blocks = blocks_of(log, log.labels, None)
    if not blocks or not any(block.is_measured for block in blocks):
        return None
    try:
        with np.errstate(all="ignore"):
            return Prover(blocks, answers_of(log), Finder())
    except (NoInterior, np.linalg.LinAlgError):
        return None


def drawn(rng: np.random.Generator, prover: Prover, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows held, weights, ω): what a search finds, pushed about; or anything at all."""
    count, width = len(targets), 6
    held = rng.integers(-1, len(prover.rows), (count, width))
    weights = rng.exponential(1.0, (count, width)) * 10.0 ** rng.integers(-12, 3, (count, width))
    way = rng.integers(4)
    if way == 0:
        weights *= rng.choice([-1.0, 1.0], weights.shape)  # a payer that believes negative weights proves anything
    elif way == 1:
        weights[rng.random(weights.shape) < 0.1] = rng.choice([np.nan, np.inf, -np.inf])
    omega = prover.payer.weights_of(targets, held, np.nan_to_num(weights, posinf=1.0))
    if way == 2:
        omega = omega + rng.standard_normal(omega.shape) * 10.0 ** float(rng.integers(-12, 2))
    return held, weights, omega


def searched(
    prover: Prover, targets: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What the search finds, and ω for it; then the weights are pushed about, some lost, some turned around."""
    aims, payer = targets.copy(), prover.payer.payers[0]
    size = np.abs(targets @ prover.core.centre) / abs(prover.core.centre[len(prover.ties.free) + 1 + payer])
    aims[:, len(prover.ties.free) + 1 + payer] -= size * 10.0 ** rng.integers(-6, 0, len(targets))
    with np.errstate(all="ignore"):
        _, held, weights, _ = prover.core.search(aims)
    omega = prover.payer.weights_of(aims, held, weights)
    way = rng.integers(5)
    if way == 1:
        weights = weights * (1 + rng.standard_normal(weights.shape) * 10.0 ** float(rng.integers(-14, -1)))
    elif way == 2:
        weights = np.where(rng.random(weights.shape) < 0.05, -weights, weights)
    elif way == 3:
        held = np.where(rng.random(held.shape) < 0.1, -1, held)
    elif way == 4:
        omega = omega * (1 + rng.standard_normal(omega.shape) * 10.0 ** float(rng.integers(-14, -1)))
    return held, weights, omega


def exact_beta(prover: Prover, x: np.ndarray, proof: Proof) -> Fraction:
    """At least how much of some t is left when a is paid for by Hölder and b by nothing: only for sums that are 0 at b."""
    rest = [*(proof.sign * Fraction(v) for v in x.tolist()), Fraction(-proof.sign)]
    rest += [Fraction(0)] * len(prover.norms)
    total = prover.ties.inner(np.array([[float(v) for v in rest]]))[0]
    left = [Fraction(v) for v in total.tolist()]
    for row, weight in zip(proof.rows, proof.weights.tolist(), strict=True):
        left = [a - Fraction(weight) * Fraction(v) for a, v in zip(left, prover.rows[row].tolist(), strict=True)]
    for row, width, weight in zip(prover.equal.rows, prover.equal.width, proof.omega.tolist(), strict=True):
        left = [a - Fraction(weight) * Fraction(v) for a, v in zip(left, row.tolist(), strict=True)]
        left[-1] -= abs(Fraction(weight)) * Fraction(float(width))
    whole = [Fraction(0)] * prover.p
    for k, i in enumerate(prover.ties.free.tolist()):
        whole[i] = left[k]
    return left[-1] - enclose(prover.norms[0].spec, whole, Finder())[0]


def test_what_pays_is_a_proof() -> None:
    paid = tried = 0
    for seed in seeds(40):
        made = mixed(seed, PROMISES, 4)
        prover = prover_of(made.log)
        if prover is None:
            continue
        rng, answers = made.rng, answers_of(made.log)
        X = np.repeat(made.points[rng.permutation(len(made.points))[:6]], 6, axis=0)
        asked = Asked(X, prover.ties, prover.centre)
        sign = rng.choice([-1.0, 1.0], len(X))
        sign[::2] = asked.sign[::2]
        targets = asked.inner * sign[:, None]
        held, weights, omega = drawn(rng, prover, targets)
        if rng.random() < 0.6:
            held, weights, omega = searched(prover, targets, rng)
        with np.errstate(all="ignore"):
            beta = prover.payer.beta(targets, asked.sizes, held, weights, omega)
        tried += len(X)
        for i in np.flatnonzero(beta > 0):
            used = usable(held, weights)[i] > 0
            proof = Proof(int(sign[i]), held[i][used], weights[i][used], omega[i], float(beta[i]))
            point = tuple(map(Fraction, X[i].tolist()))
            assert any(
                accepts(answers, terms, point, proof.sign) for terms in terms_of(prover, answers, Finder(), X[i], proof)
            ), (seed, X[i].tolist())
            if len(prover.norms) == 1:
                assert exact_beta(prover, X[i], proof) > 0, seed
            paid += 1
    assert tried > 400
    assert paid > 10


def accepts(answers: object, terms: object, point: tuple[Fraction, ...], sign: int) -> bool:
    try:
        check_certificate(answers, terms, point, sign, lengths=Finder())  # type: ignore[arg-type]
    except CertificateInvalid:
        return False
    return True
