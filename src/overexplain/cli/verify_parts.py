"""`overexplain verify PROOFS/ LOG`: the proofs of a data set, part by part; memory for one part, however many there are.

Or of one part, against the same folder of points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from overexplain.cli.claims import Claimed, Claims, Fingerprints, read_claims
from overexplain.cli.verify import MOST_SHOWN, Bench, Outcome, Request, complain, read_log, read_proofs, report
from overexplain.errors import CertificateInvalid, InvalidInput
from overexplain.geometry.arrays import IntArray
from overexplain.knowledge.certificates import Verifier
from overexplain.report.words import counted
from overexplain.scale.folder import proved_parts
from overexplain.scale.parts import Dataset, block_rows, open_dataset


@dataclass(frozen=True)
class Together:
    """What some verdicts claim, without the verdicts."""

    claimed: int
    undecided: int
    unproved: IntArray


@dataclass(frozen=True)
class Checked:
    """What was found in one part."""

    request: Request
    outcome: Outcome
    claims: Together | None


def run_verify_parts(request: Request) -> None:
    """Check the file of proofs, or all in the folder, print what holds; raises CertificateInvalid if anything does not."""
    if request.points is not None and request.verdicts is None:
        raise InvalidInput("--points needs --verdicts, the folder that says which rows a part is about")
    log = read_log(request)
    is_whole = request.proofs.is_dir()
    requests = _parts(request) if is_whole else [request]
    dataset = None
    if request.points is not None:
        dataset = open_dataset(request.points, log.features, log.dimension or 0)
    verifier = Verifier(log, request.assume_tolerance)
    parts: list[Checked] = []
    rows = 0
    for part in requests:
        claims = None if part.verdicts is None else read_claims(part.verdicts)
        if claims is not None:
            if is_whole:
                _refuse_gap(part, claims, rows)
            rows += len(claims)
        points = None if dataset is None or claims is None else _fingerprints(dataset, claims)
        bench = Bench(part, verifier, claims, points)
        if parts:  # which row is taken to be Yes, if any is, must be the same in all parts
            bench.outcome.assumed = parts[-1].outcome.assumed
        read_proofs(bench, part.proofs)
        parts.append(Checked(part, bench.outcome, None if claims is None else _together([claims])))
    if is_whole and dataset is not None and rows != dataset.rows:
        has = f"{request.points} has {counted(dataset.rows, 'point')}"
        raise CertificateInvalid(f"{request.verdicts} has verdicts on {rows:,} rows, but {has}")
    claimed = [part.claims for part in parts if part.claims is not None]
    report(_all(parts), _together(claimed) if claimed else None, request, len(log))
    for found in parts:
        complain(found.outcome, found.claims, found.request)


def _parts(request: Request) -> list[Request]:
    """A request for every part; every file of proofs must have its verdicts and the other way round.

    Which parts there should be is said by the manifest beside the verdicts, if there is one.
    """
    proofs = {path.stem: path for path in request.proofs.glob("part-*.jsonl")}
    expected = set() if request.verdicts is None else proved_parts(request.verdicts)
    if not proofs and not expected:
        raise InvalidInput(
            f"{request.proofs}: no proofs of a data set; overexplain certify --proofs FOLDER writes them"
        )
    if request.verdicts is None:
        return [replace(request, proofs=proofs[name]) for name in sorted(proofs)]
    if not request.verdicts.is_dir():
        raise InvalidInput(f"{request.verdicts}: proofs in a folder belong to verdicts in a folder")
    verdicts = {path.stem: path for path in request.verdicts.glob("part-*.parquet")}
    if alone := sorted((set(proofs) | set(verdicts) | expected) - (set(proofs) & set(verdicts))):
        lacking = "verdicts" if alone[0] not in verdicts else "proofs"
        raise CertificateInvalid(f"{alone[0]}: there are no {lacking} of this part; was the run carried to its end?")
    return [replace(request, proofs=proofs[name], verdicts=verdicts[name]) for name in sorted(proofs)]


def _refuse_gap(part: Request, claims: Claims, rows: int) -> None:
    """Raise unless the part goes on where those before it ended."""
    if len(claims) and (claims.lowest != rows or claims.highest != rows + len(claims) - 1):
        raise CertificateInvalid(
            f"{part.verdicts}: its verdicts are on rows {claims.lowest} to {claims.highest}; those before it end at row {rows - 1}"
        )


def _fingerprints(dataset: Dataset, claims: Claims) -> Fingerprints:
    count = max(0, min(claims.highest + 1, dataset.rows) - claims.lowest)
    blocks = dataset.blocks(claims.lowest, count, block_rows(dataset.dimension)) if count else ()
    return Fingerprints((block.points for block in blocks), claims.lowest)


def _all(parts: Sequence[Checked]) -> Outcome:
    """One outcome for all parts; a failure names its file."""
    total = Outcome()
    for part in parts:
        found = part.outcome
        total.proofs += found.proofs
        total.counts.update(found.counts)
        total.contradictions += found.contradictions
        total.failed += found.failed
        total.failures += [(line, f"of {part.request.proofs.name}: {text}") for line, text in found.failures]
        total.assumed = total.assumed or found.assumed
    del total.failures[MOST_SHOWN:]
    return total


def _together(claims: Sequence[Claimed]) -> Together:
    unproved = np.concatenate([found.unproved for found in claims])
    return Together(sum(found.claimed for found in claims), sum(found.undecided for found in claims), unproved)
