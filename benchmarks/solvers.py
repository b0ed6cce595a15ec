"""What `extract` claims of services that return a solver's answer, declared as exact, and what confirming it costs.

    python benchmarks/solvers.py [--quick] [--results DIRECTORY] [--check]

cvxpy with Clarabel, OSQP, SCS and HiGHS as they come; l1, l2, linf; margins 0, 1e-4, 1e-2, 0.5; with and without labels;
both sides explained, or one; logistic regressions on breast_cancer (5 and 30 features) and on whole numbers, flags and one-hot
groups. The same services are asked with confirm=0, as every service was before. Results go to benchmarks/results/solvers.* and
docs/services.md; a quick run only prints them. --check: fail if the page quotes other numbers than were recorded.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from certify import machine, one_thread
from quoting import described, quoted

import overexplain as ox
from overexplain.errors import OverexplainError

ROOT = Path(__file__).parent
DOCS = ROOT.parent / "docs/services.md"
BUDGET = 5000


@dataclass(frozen=True)
class Run:
    """One extraction. `outcome`: true or false, what its bounds are; none, if it has none; or an error."""

    data: str
    distance: str
    solver: str
    margin: float
    labels: bool
    one_sided: bool
    outcome: str
    believed: str
    explanations: int
    label_count: int
    confirmation: int


def outcome(service: Any, plane: ox.Hyperplane, confirm: int | None) -> tuple[str, ox.Spent]:
    """Whether the claimed bounds hold, and what was spent."""
    errors_of = importlib.import_module("solver_services").errors_of
    try:
        found = ox.extract(service, rng=0, budget=BUDGET, confirm=confirm)
    except OverexplainError as error:
        return type(error).__name__, ox.Spent()
    if found.error_bound is None:
        return "none", found.spent
    angle, offset = errors_of(found, plane, service.distance)
    right = angle <= found.error_bound and (found.offset_bound is None or offset <= found.offset_bound)
    return str(right).lower(), found.spent


def runs(quick: bool) -> Iterator[Run]:
    """All combinations."""
    sys.path.insert(0, str(ROOT.parent / "tests"))
    of = importlib.import_module("solver_services")
    models = {"breast_cancer, 5": of.standardized(5)}
    if not quick:
        models |= {"breast_cancer, 30": of.standardized(30), "one-hot, 9": of.one_hot(0)}
    cases = itertools.product(models.items(), of.DISTANCES, of.SOLVERS, of.MARGINS, (True, False), (False, True))
    for (data, plane), distance, solver, margin, labels, one_sided in cases:
        service = of.SolverService(plane, distance, solver, margin, labels, one_sided)
        believed, _ = outcome(service, plane, 0)
        said, spent = outcome(service, plane, None)
        counts = spent.explanations, spent.labels, spent.confirmation
        yield Run(data, distance, solver, margin, labels, one_sided, said, believed, *counts)


def markdown(found: dict[str, Any]) -> str:
    """The table."""
    every = [Run(**run) for run in found["runs"]]
    lines = [
        "| distance, solver | runs | with a bound | false | false if believed | spent to confirm |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for distance, solver in dict.fromkeys((run.distance, run.solver) for run in every):
        own = [run for run in every if (run.distance, run.solver) == (distance, solver)]
        bounds, untrue = (sum(run.outcome in kinds for run in own) for kinds in (("true", "false"), ("false",)))
        believed = sum(run.believed == "false" for run in own)
        most, usual = max(run.confirmation for run in own), int(np.median([run.confirmation for run in own]))
        lines.append(
            f"| {distance}, {solver} | {len(own)} | {bounds} | {untrue} | {believed} | {usual} (at most {most}) |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, print as it goes, write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one model, no results written")
    parser.add_argument("--check", action="store_true", help="only compare docs/services.md with what was recorded")
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="where the results go")
    options = parser.parse_args()
    recorded = options.results / "solvers.json"
    if options.check:
        page = DOCS.read_text(encoding="utf-8")
        found = json.loads(recorded.read_text(encoding="utf-8"))
        right = quoted(markdown(found), page, "solvers.py") == page
        sys.exit(0 if right else "docs/services.md does not quote what was recorded")
    one_thread()
    found = {"machine": machine(), "runs": []}
    for run in runs(options.quick):
        found["runs"].append(asdict(run))
        print(run, flush=True)
    text = markdown(found)
    print(text)
    if options.quick:
        return
    recorded.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    page = f"# Solvers' answers, measured\n\n{text}\n\n{described(found['machine'])}\n"
    (options.results / "solvers.md").write_text(page, encoding="utf-8")
    DOCS.write_text(quoted(text, DOCS.read_text(encoding="utf-8"), "solvers.py"), encoding="utf-8")


if __name__ == "__main__":
    main()
