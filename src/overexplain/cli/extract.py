"""`overexplain extract`: rebuild one's own model from the answers a service would give."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from overexplain.auditing.rebuilt import compare
from overexplain.cli.loading import load_yes_or_no
from overexplain.cli.main import say
from overexplain.cli.output import counter, print_json
from overexplain.cli.services import read_rows
from overexplain.errors import InvalidInput, OverexplainError
from overexplain.extraction.extract import extract
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.files import check_written
from overexplain.log.querylog import QueryLog, Status
from overexplain.models.linear import LinearModel
from overexplain.oracles.protocol import Oracle
from overexplain.oracles.services import Service
from overexplain.oracles.wrappers import LabelsOnly, Published, Recorded
from overexplain.report.words import counted


@dataclass(frozen=True)
class Request:
    """What the command line asked for."""

    model: Path
    service: Service
    data: Path | None
    labels_only: bool
    unsaid: bool
    strategy: str
    ties: Any
    budget: int | None
    accuracy: float | None
    orient: bool
    seed: int
    log: Path | None
    output: Path | None
    as_json: bool

    def made(self, model: LinearModel, rows: FloatArray | None, rng: np.random.Generator) -> Any:
        """The service to ask."""
        service: Oracle = self.service.oracle(model, rows, rng, self.ties)
        if self.unsaid:
            service = Published(service, Mechanism(None, slack=None))
        return LabelsOnly(service) if self.labels_only else service


def run_extract(request: Request) -> None:
    """Load, ask, rebuild, compare, print; the log is saved whatever happens."""
    _refuse_to_overwrite(request)
    model = load_yes_or_no(request.model)
    rows = None if request.data is None else read_rows(request.data, model)
    for_service, for_questions = np.random.default_rng(request.seed).spawn(2)
    service = request.made(model, rows, for_service)
    oracle = Recorded(service, QueryLog(features=model.features, mechanism=service.mechanism))
    with _saved(oracle, request.log), counter("answers so far", lambda: len(oracle.log)):
        found = extract(
            oracle,
            strategy=request.strategy,
            accuracy=request.accuracy,
            orient=request.orient,
            budget=request.budget,
            rng=for_questions,
        )
        _read_as_found(oracle, found.log)
    rebuilt = compare(found, model.hyperplane, service.mechanism, oracle.log, rows)
    if request.output is not None:
        # Without a label Yes and No may be exchanged: then their names are not known either.
        classes = model.classes if found.oriented else None
        LinearModel(found.hyperplane, model.features, classes=classes).save(request.output)
    if request.as_json:
        names = None if model.features is None else list(model.features)
        print_json({"model": {"features": model.dimension, "names": names, "seed": request.seed}, **rebuilt.to_dict()})
        return
    from overexplain.report.terminal import print_rebuilt, terminal

    console = terminal()
    print_rebuilt(rebuilt, console, model.features)
    for what, path in (("log", request.log), ("model", request.output)):
        if path is not None:
            console.print(f"{what} saved: {path}", soft_wrap=True)


def _read_as_found(oracle: Recorded, found: QueryLog | None) -> None:
    """The named log under the terms that the extraction found the answers to follow, before it is saved."""
    assert found is not None
    if found.mechanism != oracle.log.mechanism:
        unanswered = np.flatnonzero((oracle.log.status == Status.ASKED) & (found.status != Status.ASKED))
        oracle.log = oracle.log.reread(found.mechanism, unanswered)


def _refuse_to_overwrite(request: Request) -> None:
    """Answers cost something and models more: neither a log that exists nor the model that is read is written over."""
    if request.log is not None:
        check_written(request.log)
        if request.log.suffix.lower() == ".json":
            raise InvalidInput(
                f"{request.log}: a file of DiCE holds no terms and no times; save .jsonl, then log convert"
            )
    if request.log is not None and request.log.exists():
        raise InvalidInput(f"{request.log}: exists already; a log is not written over, give another name or remove it")
    read, written = request.model.resolve(), [p.resolve() for p in (request.log, request.output) if p is not None]
    if read in written or len(set(written)) < len(written):
        raise InvalidInput("MODEL, --log and --output must be different files")


@contextmanager
def _saved(oracle: Recorded, path: Path | None) -> Iterator[None]:
    """Save the oracle's log to `path` at the end, also if the end is an error or Ctrl-C; then say so."""
    try:
        yield
    except BaseException:
        if path is not None:
            _rescue(oracle.log, path)
        raise
    if path is not None:
        with _undisturbed():
            oracle.log.save(path)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C waits until what is being saved is saved."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is interrupted at all
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


def _rescue(log: QueryLog, path: Path) -> None:
    try:
        with _undisturbed():
            log.save(path)
    except (OverexplainError, OSError) as error:  # what stopped the run is still the news
        say(f"the log is lost: {error}")
    else:
        answered = int((log.status != Status.FAILED).sum())
        say(f"log saved: {path} ({counted(answered, 'answer')})")
