"""`overexplain verify`: are these proofs true of this log? Exact arithmetic; no solver, no model, nothing that made them."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import typer

from overexplain._files import open_regular
from overexplain.cli.claims import Claimed, Claims, Fingerprints, read_claims
from overexplain.cli.log_files import load_log, under_terms
from overexplain.cli.output import bar, print_json
from overexplain.cli.terms import Terms
from overexplain.errors import CertificateInvalid, InconsistentLog, InvalidInput
from overexplain.knowledge.certificates import Proof, Verifier, read_numbered
from overexplain.knowledge.verdicts import Verdict
from overexplain.log.querylog import QueryLog
from overexplain.report.words import counted

LONGEST_LINE = 16 * 2**20
"""Bytes of one proof; a longer line is refused without being read into memory."""

MOST_SHOWN = 5
"""So many failures are shown; all are counted."""

SIGN_OF_LIFE = 50
WIDTH = 80


@dataclass(frozen=True)
class Request:
    """What the command line asked for."""

    proofs: Path
    log: Path
    verdicts: Path | None
    points: Path | None
    terms: Terms
    mapping: tuple[str, ...]
    assume_tolerance: float | None
    as_json: bool


@dataclass
class Outcome:
    """What has been found so far."""

    proofs: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    contradictions: int = 0
    failed: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)
    assumed: tuple[tuple[int, int], ...] = ()

    def fail(self, line: int, text: str) -> None:
        """Count a failure; the first few are kept."""
        self.failed += 1
        if len(self.failures) < MOST_SHOWN:
            self.failures.append((line, text))


def run_verify(request: Request) -> None:
    """Check the proofs, print what holds; raises CertificateInvalid if anything does not."""
    bench, rows = check(request)
    report(bench.outcome, bench.claims, request, rows)
    complain(bench.outcome, bench.claims, request)


def report(outcome: Outcome, claims: Claimed | None, request: Request, rows: int) -> None:
    """Print what was found."""
    if outcome.proofs == 0 and claims is None:
        raise InvalidInput(f"{request.proofs} holds no proof")
    if request.as_json:
        print_json(_as_dict(outcome, claims))
    else:
        for paragraph in _summary(outcome, claims, request, rows):
            typer.echo(paragraph)


def check(request: Request) -> tuple[Bench, int]:
    """What was found reading the proofs one by one, and how many rows the log has."""
    log = read_log(request)
    claims = None if request.verdicts is None else read_claims(request.verdicts)
    points = None
    if request.points is not None:
        points = Fingerprints.of_file(request.points, log.features, log.dimension or 0)
    bench = Bench(request, Verifier(log, request.assume_tolerance), claims, points)
    read_proofs(bench, request.proofs)
    return bench, len(log)


def read_proofs(bench: Bench, path: Path) -> None:
    """Have the bench take every proof in a file."""
    outcome = bench.outcome
    with open_regular(path) as file, bar("verifying") as show:
        size = path.stat().st_size
        for number, line in _lines(file):
            outcome.proofs += 1
            try:
                bench.take(line)
            except CertificateInvalid as error:
                outcome.fail(number, str(error))
            if outcome.proofs % SIGN_OF_LIFE == 0:
                show(f"verifying, {outcome.proofs:,} proofs done", file.tell(), size)


class Bench:
    """Takes proofs one by one and holds each against the log, the verdicts and the points."""

    def __init__(
        self, request: Request, verifier: Verifier, claims: Claims | None, points: Fingerprints | None
    ) -> None:
        self.request, self.outcome, self.verifier = request, Outcome(), verifier
        self.claims, self.points = claims, points
        if claims is not None and points is not None and len(claims) and not points.has(claims.highest):
            has = f"{request.points} has {counted(len(points), 'point')}"
            raise InvalidInput(f"{request.verdicts} has a verdict on row {claims.highest} (from 0), but {has}")

    def take(self, line: bytes | None) -> None:
        """Count the proof if it holds and is about what it should be about; raises CertificateInvalid if not."""
        if line is None:
            raise CertificateInvalid(f"longer than {LONGEST_LINE // 2**20} MB; no proof is")
        row, proof = read_numbered(line)
        self.verifier.check(proof)
        if proof.point is None:
            self.outcome.contradictions += 1
            return
        if proof.assumed and self.outcome.assumed not in ((), proof.assumed):
            raise CertificateInvalid("it takes another row as Yes than the proofs before it: they cannot be combined")
        if self.claims is not None or self.points is not None:
            self._match(row, proof)
        self.outcome.assumed = self.outcome.assumed or proof.assumed
        self.outcome.counts[_name(proof)] += 1

    def _match(self, row: int | None, proof: Proof) -> None:
        """Hold the proof against the point and the verdict in its row."""
        if row is None or proof.point is None:
            raise CertificateInvalid("it does not say which row of the points it is about")
        if self.points is not None:
            if not self.points.has(row):
                has = f"{self.request.points} has {counted(len(self.points), 'point')}"
                raise CertificateInvalid(f"it is about row {row} (from 0), but {has}")
            if not self.points.match(row, proof.point):
                raise CertificateInvalid(
                    f"it is about another point than the one in row {row} of {self.request.points}"
                )
        if self.claims is not None:
            claimed = self.claims.verdict(row)
            if claimed is None:
                raise CertificateInvalid(f"{self.request.verdicts} has no verdict on row {row}")
            if claimed != proof.verdict:
                said = f"{self.request.verdicts} says {claimed.name} for row {row}"
                raise CertificateInvalid(f"{said}, the proof says {_name(proof)}")
            self.claims.mark(row)


def _name(proof: Proof) -> str:
    return "" if proof.verdict is None else proof.verdict.name


def read_log(request: Request) -> QueryLog:
    """The log that the proofs are to be true of."""
    mechanism = request.terms.mechanism
    log = load_log(request.log, request.mapping, mechanism)
    if len(log) == 0:
        raise InvalidInput(f"{request.log} has no rows: nothing can be true of it")
    return log if mechanism is None else under_terms(log, mechanism, request.log)


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """The lines that are not empty, numbered from 1; None for one that is too long."""
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            while line and not line.endswith(b"\n"):
                line = file.readline(LONGEST_LINE)
            yield number, None
        elif line.strip():
            yield number, line


def _summary(outcome: Outcome, claims: Claimed | None, request: Request, rows: int) -> Iterator[str]:
    """Lines of text, 80 columns wide."""
    good = outcome.proofs - outcome.failed
    if outcome.failed:
        verb = "does" if outcome.failed == 1 else "do"
        yield _wrapped(f"{outcome.failed:,} of {counted(outcome.proofs, 'proof')} {verb} not hold.")
    elif outcome.proofs:
        verb = "The proof holds" if outcome.proofs == 1 else f"All {outcome.proofs:,} proofs hold"
        yield _wrapped(f"{verb}, checked in exact arithmetic.")
    else:
        yield _wrapped(f"{request.proofs} holds no proof.")
    yield ""
    kinds = [f"{outcome.counts[v.name]:,} {v.name}" for v in Verdict if outcome.counts[v.name]]
    if outcome.contradictions:
        kinds.append(f"{outcome.contradictions:,} that the log contradicts itself: no model fits it")
    yield _pair("proofs", f"{good:,} hold" + (f": {', '.join(kinds)}" if kinds else ""))
    yield _pair("log", f"{request.log}, {counted(rows, 'row')}")
    if claims is not None:
        lacking = len(claims.unproved)
        text = f"{claims.claimed:,} claimed in {request.verdicts}, {claims.claimed - lacking:,} of them proved"
        if claims.undecided:
            text += f"; {claims.undecided:,} more are UNDECIDED and claim nothing"
        yield _pair("verdicts", text)
        if lacking:
            yield _pair("unproved", f"row{'s' * (lacking > 1)} {_rows(claims.unproved.tolist())} (from 0)")
    if request.points is not None:
        yield _pair("points", f"compared: what holds is about the point in its own row of {request.points}")
    elif claims is not None:
        yield _pair("points", "not compared; --points says which file they are in")
    if outcome.assumed:
        row = outcome.assumed[0][0]
        yield _pair("Yes and No", f"may be exchanged in all verdicts at once: row {row} is taken to be Yes")
    if request.assume_tolerance is not None:
        yield _pair("assumed", f"every answer lies within {request.assume_tolerance!r} of the optimum")
    for line, text in outcome.failures:
        yield _pair(f"line {line}", text)
    if outcome.failed > len(outcome.failures):
        yield _pair("", f"and {outcome.failed - len(outcome.failures):,} more")


def _pair(name: str, text: str) -> str:
    return _wrapped(f"{name:11} {text}", 12)


def _wrapped(text: str, indent: int = 0) -> str:
    # What a proof says of itself is shown too: whatever is in it stays on the screen's side.
    clean = "".join(c if c.isprintable() else " " for c in text)
    return textwrap.fill(clean, WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False)


def _rows(rows: Sequence[int]) -> str:
    shown = ", ".join(map(str, rows[:MOST_SHOWN]))
    return shown if len(rows) <= MOST_SHOWN else f"{shown} and {len(rows) - MOST_SHOWN:,} more"


def _as_dict(outcome: Outcome, claims: Claimed | None) -> dict[str, Any]:
    entries: dict[str, Any] = {
        "proofs": outcome.proofs,
        "hold": outcome.proofs - outcome.failed,
        "fail": outcome.failed,
        "verdicts": {verdict.name: outcome.counts[verdict.name] for verdict in Verdict if verdict != Verdict.UNDECIDED},
        "contradictions": outcome.contradictions,
        "oriented": not outcome.assumed,
        "failures": [{"line": line, "message": text} for line, text in outcome.failures],
        "claims": None,
    }
    if claims is not None:
        unproved = claims.unproved.tolist()
        entries["claims"] = {
            "claimed": claims.claimed,
            "proved": claims.claimed - len(unproved),
            "undecided": claims.undecided,
            "unproved_rows": unproved[:MOST_SHOWN],
        }
    return entries


def complain(outcome: Outcome, claims: Claimed | None, request: Request) -> None:
    """Raise if anything does not hold."""
    if outcome.failures:
        line, text = outcome.failures[0]
        more = f" (and {counted(outcome.failed - 1, 'further failure')})" if outcome.failed > 1 else ""
        raise CertificateInvalid(f"{request.proofs}, line {line}: {text}{more}")
    if claims is not None and len(claims.unproved):
        lacking = claims.unproved.tolist()
        verb = "has no proof" if len(lacking) == 1 else "have no proof"
        what = f"{counted(len(lacking), 'verdict')} in {request.verdicts} {verb}"
        raise CertificateInvalid(f"{what} in {request.proofs}: row{'s' * (len(lacking) > 1)} {_rows(lacking)}")
    if claims is not None and outcome.contradictions:
        raise InconsistentLog(f"{request.log} contradicts itself, as is proved: verdicts on it mean nothing")
