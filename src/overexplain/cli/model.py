"""`overexplain model inspect`: what a stored model is, how that was found out, and its coefficient file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overexplain.cli.loading import stored_several_classes
from overexplain.cli.output import print_json
from overexplain.models.coefficients import SeveralClasses, to_entries
from overexplain.models.linear import LinearModel
from overexplain.models.load import load_model
from overexplain.models.multiclass import MulticlassModel
from overexplain.models.multiclass import to_entries as multiclass_entries
from overexplain.models.sandbox import Stored
from overexplain.models.sniff import Kind, first_bytes, open_regular, sniff


@dataclass(frozen=True)
class Request:
    """What the command line asked for."""

    model: Path
    threshold: float | None
    allow_pickle: bool
    output: Path | None
    as_json: bool


def run_inspect(request: Request) -> None:
    """Load, save if asked to, print."""
    kind = sniff(first_bytes(request.model), request.model)
    try:
        stored = _stored(request, kind)
    except SeveralClasses:
        several = stored_several_classes(request.model, request.threshold, request.allow_pickle)
        _run_several(request, kind, several)
        return
    digest = _sha256(request.model)
    if request.output is not None:
        stored.model.save(request.output)
    if request.as_json:
        print_json({"model": _entries(request, kind, stored, digest)})
        return
    from overexplain.report.inspected import Inspected, print_inspected
    from overexplain.report.terminal import terminal

    shown = Inspected(str(request.model), kind, digest, stored.model, stored.notes, stored.checked)
    print_inspected(shown, terminal(), None if request.output is None else str(request.output))


def _run_several(request: Request, kind: Kind, stored: Stored[MulticlassModel]) -> None:
    """The same for a model of several classes."""
    model, digest = stored.model, _sha256(request.model)
    if request.output is not None:
        model.save(request.output)
    if request.as_json:
        about = {"file": str(request.model), "kind": kind, "sha256": digest, "source": model.source}
        found: dict[str, Any] = {
            "dimension": model.dimension,
            "classes": model.argmax.classes,
            "checked": stored.checked,
            "notes": list(stored.notes),
        }
        print_json({"model": about | found | {"coefficient_file": multiclass_entries(model)}})
        return
    from overexplain.report.multiclass_inspected import InspectedClasses, print_classes
    from overexplain.report.terminal import terminal

    shown = InspectedClasses(str(request.model), kind, digest, model, stored.notes, stored.checked)
    print_classes(shown, terminal(), None if request.output is None else str(request.output))


def _stored(request: Request, kind: Kind) -> Stored[LinearModel]:
    """The model, with what its reader has to say where it has anything to say."""
    if kind == "skops":
        from overexplain.models.skops import stored_skops

        return stored_skops(request.model, request.threshold)
    if kind == "onnx":
        from overexplain.models.onnx import stored_onnx

        return stored_onnx(request.model, request.threshold)
    if kind == "pickle":
        from overexplain.models.pickles import stored_pickle

        return stored_pickle(request.model, request.threshold, request.allow_pickle)
    return Stored(load_model(request.model, threshold=request.threshold))


def _sha256(path: Path) -> str:
    """The SHA-256 of the file; readers bound its size, so by now it is known to be small."""
    with open_regular(path) as file:
        return hashlib.sha256(file.read()).hexdigest()


def _entries(request: Request, kind: Kind, stored: Stored[LinearModel], digest: str) -> dict[str, Any]:
    model = stored.model
    about = {"file": str(request.model), "kind": kind, "sha256": digest, "source": model.source}
    found = {"dimension": model.dimension, "checked": stored.checked, "notes": list(stored.notes)}
    return about | found | {"coefficient_file": to_entries(model)}
