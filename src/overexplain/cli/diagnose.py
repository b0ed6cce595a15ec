"""`overexplain diagnose`: ask one's own service, as it is run, a few questions, and say how it behaves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from overexplain.cli.loading import load_yes_or_no
from overexplain.cli.output import print_json
from overexplain.cli.services import read_rows
from overexplain.extraction.diagnosis.diagnose import diagnose
from overexplain.oracles.services import Service


@dataclass(frozen=True)
class Request:
    """What the command line asked for."""

    model: Path
    service: Service
    data: Path | None
    questions: int
    seed: int
    as_json: bool


def run_diagnose(request: Request) -> None:
    """Load, wrap, ask, print."""
    model = load_yes_or_no(request.model)
    rows = None if request.data is None else read_rows(request.data, model)
    for_service, for_questions = np.random.default_rng(request.seed).spawn(2)
    service = request.service.oracle(model, rows, for_service)
    domain = getattr(service, "domain", None)
    # Rows show in which units features come; a service with a domain of its own says itself where to start.
    start = None if rows is None or domain is not None else np.median(rows, axis=0)
    report = diagnose(service, request.questions, start, rng=for_questions)
    if request.as_json:
        names = None if model.features is None else list(model.features)
        about = {"features": model.dimension, "names": names, "seed": request.seed}
        print_json({"model": about, "report": report.to_dict()})
        return
    from overexplain.report.diagnosed import print_diagnosed
    from overexplain.report.terminal import terminal

    print_diagnosed(report, terminal(), model.features)
