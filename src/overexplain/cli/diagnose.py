"""`overexplain diagnose`: ask one's own service, as it is run, a few questions, and say how it behaves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from overexplain.cli.output import print_json
from overexplain.cli.services import Workshop, degrade, read_rows
from overexplain.errors import InvalidInput
from overexplain.extraction.diagnosis.diagnose import diagnose
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import norm
from overexplain.models.linear import LinearModel
from overexplain.models.load import load_model
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.imitations import imitate
from overexplain.oracles.protocol import Oracle


@dataclass(frozen=True)
class Request:
    """What the command line asked for."""

    model: Path
    distance: str | None
    robustness: str | None
    radius: float | None
    imitate: str | None
    degrade: tuple[str, ...]
    data: Path | None
    questions: int
    seed: int
    as_json: bool


def run_diagnose(request: Request) -> None:
    """Load, wrap, ask, print."""
    model = load_model(request.model)
    rows = None if request.data is None else read_rows(request.data, model)
    for_service, for_questions = np.random.default_rng(request.seed).spawn(2)
    service = _service(request, model, rows, for_service)
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


def _service(request: Request, model: LinearModel, rows: FloatArray | None, rng: np.random.Generator) -> Oracle:
    """The model's own service, or the imitation asked for, degraded in the order given."""
    if request.imitate is not None:
        if rows is None:
            raise InvalidInput(f"--imitate {request.imitate!r} needs --data: such services learn from rows")
        service: Oracle = imitate(request.imitate, model.hyperplane, rows, rng)
    else:
        ball = None if request.robustness is None else norm(request.robustness)
        terms = Mechanism(norm(request.distance or "l2"), ball, request.radius or 0.0)
        service = ModelOracle(model.hyperplane, terms)
    workshop = Workshop(model.features, model.dimension, rows, rng)
    for spec in request.degrade:
        service = degrade(service, spec, workshop)
    return service
