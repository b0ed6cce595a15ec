"""The checker beside another one: proofs and mutants of them, said to hold or refused by both. Not part of the tests.

    PYTHONPATH=tests:tests/campaigns python tests/campaigns/second_checker.py PROGRAM [LOGS [FIRST SEED]]

PROGRAM is called as `PROGRAM --each [--rounding R] PROOFS.jsonl LOG.jsonl` and says holds, refused or unsupported for each proof.
Where it refuses what the checker accepts, one of them is wrong, or it is stricter: the log and the proof are printed.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

import overexplain as ox
from campaigning import PATIENCE, honest_log, queries
from overexplain.errors import CertificateInvalid, InconsistentLog, SolverFailed
from overexplain.knowledge.certificates import Certificate, Verifier

NAMES = (
    "l1",
    "l2",
    "linf",
    "weighted l1",
    "weighted l2",
    "weighted linf",
    "polyhedral",
    "facets",
    "mahalanobis",
    "group",
)


def compared(program: str, seed: int, folder: Path) -> Counter[tuple[str, str]]:
    """What both say about the proofs of one log and twelve mutants of each."""
    mutated = importlib.import_module("test_certificates")._mutated
    rng = np.random.default_rng([seed, 3])
    made = honest_log(seed, most_features=2, unlabelled=[0.1, 1.0][seed % 3 == 0], names=NAMES)
    log, proofs = made.log, []
    try:
        verdicts = ox.Knowledge(log, time_limit=PATIENCE, threads=1).certify(queries(made, 6))
    except InconsistentLog:
        return Counter()
    for i in range(len(verdicts)):
        try:
            proof = verdicts.proof(i)
        except SolverFailed:
            continue
        if isinstance(proof, Certificate):
            proofs.append(proof)
            for _ in range(12):
                try:
                    proofs.append(mutated(rng, log, proof))
                except (CertificateInvalid, ZeroDivisionError):
                    continue
    if not proofs:
        return Counter()
    verifier, said = Verifier(log), []
    for proof in proofs:
        try:
            verifier.check(proof)
            said.append("holds")
        except CertificateInvalid:
            said.append("refused")
    files = folder / f"{seed}.proofs.jsonl", folder / f"{seed}.log.jsonl"
    files[0].write_text("".join(proof.to_json() + "\n" for proof in proofs), encoding="utf-8")
    log.save(files[1])
    rounding = max(
        (terms.distance.answer_rounding for terms in log.mechanisms if terms.distance is not None), default=2.0**-40
    )
    command = [program, "--each", "--rounding", repr(rounding), *map(str, files)]
    other = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False).stdout.split()
    if len(other) != len(said):
        return Counter({("no answer", "no answer"): len(said)})
    for mine, theirs, proof in zip(said, other, proofs, strict=True):
        if (mine, theirs) == ("holds", "refused"):
            sys.stdout.write(f"seed {seed}: refused by the other one only: {proof.to_json()}\n")
    return Counter(zip(said, other, strict=True))


def main() -> None:
    program, logs, first = sys.argv[1], *(int(v) for v in [*sys.argv[2:], *("100", "0")[len(sys.argv) - 2 :]])
    total: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + logs):
            total += compared(program, seed, Path(folder))
    for (mine, theirs), count in sorted(total.items()):
        sys.stdout.write(f"checker {mine}, other {theirs}: {count}\n")


if __name__ == "__main__":
    main()
