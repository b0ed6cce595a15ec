"""How extraction grows with the number of features: answers, time and error per mechanism, beside the paper's own algorithm.

    python benchmarks/extraction.py [--largest 5000] [--paper-largest 5000]

Times are compared within one run: ours against the bare oracle calls it makes, and against the paper's procedure on the same
service. Results go to benchmarks/results/extraction.{json,md}.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import overexplain as ox

SIZES = (2, 10, 30, 100, 300, 1000, 2000, 5000)
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Row:
    """One mechanism at one size. Errors are ‖â − a‖* at ‖a‖* = 1; times are seconds."""

    service: str
    p: int
    answers: int
    labels: int
    minimum: int
    error: float
    seconds: float
    oracle_seconds: float
    paper_answers: int | None
    paper_labels: int | None
    paper_error: float | None
    paper_seconds: float | None


def mechanisms(p: int) -> dict[str, tuple[ox.Mechanism, ox.Mechanism | None]]:
    """Name -> (what the service answers by, what it publishes if that differs)."""
    groups = ox.GroupNorm([list(range(i, min(i + 5, p))) for i in range(0, p, 5)])
    robust, secret = ox.Mechanism("l1", robustness="l2", radius=0.1), ox.Mechanism("l1", robustness="l2", radius=None)
    return {
        "l2": (ox.Mechanism("l2"), None),
        "lp:1.5": (ox.Mechanism("lp:1.5"), None),
        "l1": (ox.Mechanism("l1"), None),
        "linf": (ox.Mechanism("linf"), None),
        "groups of 5": (ox.Mechanism(groups), None),
        "l1, robust l2": (robust, None),
        "l1, robust, radius secret": (robust, secret),
    }


class Replayed:
    """Keeps the questions, so that the bare oracle calls can be timed again without the extraction around them."""

    def __init__(self, oracle: ox.ModelOracle) -> None:
        self.oracle, self.dimension, self.mechanism = oracle, oracle.dimension, oracle.mechanism
        self.questions: list[Any] = []

    def classify(self, x: Any) -> Any:
        """The label."""
        return self.oracle.classify(x)

    def explain(self, x: Any) -> Any:
        """The explanation; the question is kept."""
        self.questions.append(x)
        return self.oracle.explain(x)

    def seconds(self) -> float:
        """Time of all the explanations alone."""
        begin = time.perf_counter()
        for x in self.questions:
            self.oracle.explain(x)
        return time.perf_counter() - begin


def error_of(found: ox.Extraction, model: ox.Hyperplane, distance: ox.Norm) -> float:
    """‖â − a‖* with ‖a‖* = 1."""
    return float(distance.dual(found.hyperplane.normal - model.normal / distance.dual(model.normal)))


def measure(name: str, terms: ox.Mechanism, published: ox.Mechanism | None, p: int, with_paper: bool) -> Row:
    """One row of the table."""
    rng = np.random.default_rng(p)
    model = ox.Hyperplane(rng.normal(size=p), 1.0)
    oracle = ox.ModelOracle(model, terms, published=published)
    assert terms.distance is not None
    best, bare = float("inf"), float("inf")
    for _ in range(3 if p <= 300 else 1):
        replayed = Replayed(oracle)
        begin = time.perf_counter()
        found = ox.extract(replayed, record=False, rng=0)
        best = min(best, time.perf_counter() - begin)
        bare = min(bare, replayed.seconds())
    first = oracle.explain(np.zeros(p))
    minimum = terms.distance.normal_cone(first).dimension + int(oracle.mechanism.radius is None)
    paper: ox.Extraction | None = None
    paper_seconds: float | None = None
    if with_paper and oracle.mechanism.radius is not None:
        begin = time.perf_counter()
        paper = ox.extract(oracle, strategy="paper", record=False, rng=0)
        paper_seconds = time.perf_counter() - begin
    return Row(
        name, p, found.spent.explanations, found.spent.labels, minimum, error_of(found, model, terms.distance), best, bare,
        None if paper is None else paper.spent.explanations, None if paper is None else paper.spent.labels,
        None if paper is None else error_of(paper, model, terms.distance), paper_seconds,
    )  # fmt: skip


def machine() -> dict[str, str]:
    """What the figures were measured on; no names of hosts or people."""
    cpu = next((line.split(":")[1].strip() for line in _cpuinfo() if line.startswith("model name")), platform.machine())
    cores = sum(line.startswith("processor") for line in _cpuinfo())
    return {
        "cpu": cpu,
        "cores": str(cores),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def markdown(rows: list[Row], on: dict[str, str]) -> str:
    """The table as a page."""
    lines = [
        "# Extraction: answers, time and error",
        "",
        "Written by `make bench-extraction`. Measured on: " + ", ".join(f"{k} {v}" for k, v in on.items()) + ".",
        "",
        "Answers + labels spent (one label tells Yes from No); *least*: explanations no method can do without;",
        "*× oracle*: our time over that of the bare oracle calls; error: ‖â − a‖* at ‖a‖* = 1.",
        "The paper treats no secret radius.",
        "",
        "| service | p | answers + labels | least | error | seconds | × oracle | paper: spent | error | seconds | × ours |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for r in rows:
        ours = f"{r.answers} + {r.labels} | {r.minimum} | {r.error:.0e} | {r.seconds:.2g} | {r.seconds / r.oracle_seconds:.1f}"
        paper = "– | – | – | –"
        if r.paper_seconds is not None:
            spent = f"{r.paper_answers} + {r.paper_labels}"
            paper = f"{spent} | {r.paper_error:.0e} | {r.paper_seconds:.2g} | {r.paper_seconds / r.seconds:.1f}"
        lines.append(f"| {r.service} | {r.p} | {ours} | {paper} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print as it goes, write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument("--paper-largest", type=int, default=SIZES[-1])
    options = parser.parse_args()
    rows = []
    for p in (size for size in SIZES if size <= options.largest):
        for name, (terms, published) in mechanisms(p).items():
            row = measure(name, terms, published, p, p <= options.paper_largest)
            rows.append(row)
            paper = "" if row.paper_seconds is None else f"   paper {row.paper_answers} in {row.paper_seconds:.2g} s"
            print(
                f"{name:28} p={p:<6}{row.answers:>6} answers  {row.seconds:8.3g} s  error {row.error:.0e}{paper}",
                flush=True,
            )
    RESULTS.mkdir(exist_ok=True)
    on = machine()
    (RESULTS / "extraction.json").write_text(
        json.dumps({"machine": on, "rows": [asdict(r) for r in rows]}, indent=1) + "\n"
    )
    (RESULTS / "extraction.md").write_text(markdown(rows, on))


if __name__ == "__main__":
    main()
