"""`overexplain audit` of a model of several classes."""

from __future__ import annotations

from typing import Any

import typer

from overexplain.auditing.multiclass import audit_multiclass, listed
from overexplain.cli.dataset import read_sample
from overexplain.cli.output import bar, write_texts
from overexplain.errors import InvalidInput
from overexplain.models.multiclass import MulticlassModel
from overexplain.report.multiclass import KINDS, print_multiclass, render
from overexplain.report.render import refuse_unknown_kind

UNDERSTOOD = ("services", "compare", "standardize", "seed")


def run_multiclass(request: Any, model: MulticlassModel, command: str) -> int:
    """Read the cases, audit, write, print. `request` is that of `overexplain audit`."""
    _refuse_foreign_options(request, model)
    for path in request.reports:
        refuse_unknown_kind(path, KINDS)
    options = request.policy.options
    listed(model.argmax, options.get("services", "l2"))  # refuses what it cannot audit before the cases are read
    sample = read_sample(request.data, model, options.get("seed", 0))
    with bar("auditing") as show:
        report = audit_multiclass(
            model,
            sample.rows,
            **options,
            name=request.data.name,
            left_out=sample.left_out,
            command=command,
            progress=show,
        )
    write_texts(request.reports, lambda path: render(report, path))
    if request.as_json:
        typer.echo(report.to_json())
        return 0
    from overexplain.report.terminal import terminal

    console = terminal()
    print_multiclass(report, console)
    if request.reports:
        console.print()
    for path in request.reports:
        opens = " (opens offline)" if path.suffix.lower() == ".html" else ""
        console.print(f"report: {path}{opens}", soft_wrap=True)
    return 0


def _refuse_foreign_options(request: Any, model: MulticlassModel) -> None:
    """One line for what the audit of Yes and No has and this one has not; a policy file counts as much as an option."""
    foreign = {name: value for name, value in request.policy.options.items() if name not in UNDERSTOOD}
    said = [("--no-" if value is False else "--") + name.replace("_", "-") for name, value in foreign.items()]
    said += ["--proofs"] * (request.proofs is not None) + ["--all-cases"] * (request.count is not None)
    if said:
        raise InvalidInput(
            f"{request.model} has {model.argmax.classes} classes: its audit knows --service, --compare, --standardize, --seed and "
            f"--report; leave out {', '.join(said)} (from the policy too)"
        )
