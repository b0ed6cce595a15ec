"""`overexplain serve`: a model of one's own as a real endpoint on loopback."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer

from overexplain._files import open_regular, replacing
from overexplain.cli.loading import load_yes_or_no
from overexplain.cli.output import version
from overexplain.cli.services import read_rows
from overexplain.errors import InvalidInput
from overexplain.oracles.served.app import service_app
from overexplain.oracles.served.counts import Counts
from overexplain.oracles.served.endpoint_file import FIRST_LINE, endpoint_file
from overexplain.oracles.served.server import listen, serve, url_of
from overexplain.oracles.services import Service
from overexplain.oracles.wrappers import LabelsOnly
from overexplain.report.words import counted


@dataclass(frozen=True)
class Request:
    """What the command line asked for."""

    model: Path
    service: Service
    data: Path | None
    labels_only: bool
    ties: Any
    seed: int
    host: str
    port: int
    name: str
    log: Path | None
    endpoint: Path | None
    threshold: float | None
    allow_pickle: bool


def run_serve(request: Request) -> None:
    """Load, listen, say where, answer until Ctrl-C, say how much was answered."""
    _refuse_to_overwrite(request.endpoint)
    model = load_yes_or_no(request.model, threshold=request.threshold, allow_pickle=request.allow_pickle)
    rows = None if request.data is None else read_rows(request.data, model)
    # The same generator as `extract` gives the service it simulates: the same seed, the same answers.
    for_service, _ = np.random.default_rng(request.seed).spawn(2)
    oracle: Any = request.service.oracle(model, rows, for_service, request.ties)
    if request.labels_only:
        oracle = LabelsOnly(oracle)
    answers = "labels only" if request.labels_only else request.service.spec
    about = f"{answers}, {counted(model.dimension, 'feature')}"
    with listen(request.host, request.port) as listener:
        if request.endpoint is not None:
            _write(request.endpoint, endpoint_file(oracle, url_of(listener), request.name, model.features))
        app = service_app(oracle, features=model.features, name=request.name, log=request.log, version=version())
        try:
            serve(app, listener, lambda url: typer.echo(f"serving {request.name} on {url} ({about}); Ctrl-C stops"))
        finally:
            app.state.close()
    typer.echo(_answered(app.state.counts))


def _answered(counts: Counts) -> str:
    """What the service gave away, in a line."""
    given = f"{counted(counts.classify, 'label')} and {counted(counts.explain, 'explanation')}"
    return f"stopped; gave {given} in {counted(counts.requests, 'request')}"


def _refuse_to_overwrite(path: Path | None) -> None:
    """Only a file that this command wrote is written over."""
    if path is None or not path.exists():
        return
    try:
        with open_regular(path) as file:
            own = file.read(len(FIRST_LINE)) == FIRST_LINE.encode()
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror or error}") from None
    if not own:
        raise InvalidInput(f"{path}: exists already and was not written by serve; give --endpoint another name")


def _write(path: Path, text: str) -> None:
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")
