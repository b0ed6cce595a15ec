"""What README.md and docs/counts.md say in figures: the paper's Table 1 beside ours, measured now; how what `overexplain demo`
printed begins, when `make bench-audit` recorded it.

python benchmarks/readme_table.py [--check]      --check: fail if a page says something else
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import overexplain as ox

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- counts: written by benchmarks/readme_table.py -->", "<!-- end of counts -->"
DEMO_BEGIN, DEMO_END = "<!-- demo: written by benchmarks/readme_table.py -->", "<!-- end of demo -->"
SIZES = (2, 5, 10, 30)
MODELS = 20


def counts(mechanism: ox.Mechanism, published: ox.Mechanism, strategy: str, orient: bool) -> dict[int, tuple[int, int]]:
    """The most explanations and labels spent on any of the models, for every p; wrong results raise."""
    worst = {}
    for p in SIZES:
        rng = np.random.default_rng(p)
        spent = []
        for _ in range(MODELS):
            model = ox.Hyperplane(rng.normal(size=p), rng.normal())
            oracle = ox.ModelOracle(model, mechanism, published=published)
            found = ox.extract(oracle, strategy=strategy, orient=orient, rng=0)
            if not found.hyperplane.same_plane(model, 1e-8):
                raise SystemExit(f"{strategy} did not rebuild a model of {p} features under {mechanism.describe()}")
            spent.append(found.spent)
        worst[p] = max(s.explanations for s in spent), max(s.labels for s in spent)
    return worst


def formula(values: dict[int, int]) -> str:
    """The simplest of 0, 1, 2, p, p + 1 that all measured values equal; else the values themselves."""
    candidates = {"0": (0, 0), "1": (0, 1), "2": (0, 2), "p": (1, 0), "p + 1": (1, 1)}
    for text, (slope, shift) in candidates.items():
        if all(measured == slope * p + shift for p, measured in values.items()):
            return text
    return ", ".join(f"{measured} (p = {p})" for p, measured in values.items())


def described(worst: dict[int, tuple[int, int]]) -> str:
    """E.g. "p + 1 explanations, p + 1 labels"."""
    explanations, labels = (
        formula({p: e for p, (e, _) in worst.items()}),
        formula({p: n for p, (_, n) in worst.items()}),
    )
    text = f"{explanations} explanation{'s' * (explanations != '1')}"
    return text if labels == "0" else f"{text}, {labels} label{'s' * (labels != '1')}"


def table() -> str:
    """The table in Markdown."""
    rows = [
        ("counterfactual", "yes (l2)", "1 CF", ox.Mechanism("l2"), False),
        ("counterfactual", "no (l1)", "p + 1 CFs", ox.Mechanism("l1"), False),
        ("counterfactual", "no (linf)", "p + 1 CFs", ox.Mechanism("linf"), False),
        ("robust", "yes (l2, ball linf)", "1 RCF, 1 factual", ox.Mechanism("l2", robustness="linf", radius=0.1), False),
        (
            "robust",
            "no (l1, ball l2)",
            "p + 1 RCFs, p + 1 factuals",
            ox.Mechanism("l1", robustness="l2", radius=0.1),
            False,
        ),
        (
            "robust",
            "no (linf, ball l1)",
            "p + 1 RCFs, p + 1 factuals",
            ox.Mechanism("linf", robustness="l1", radius=0.1),
            False,
        ),
        (
            "robust, radius secret",
            "yes (l2, ball linf)",
            "not treated",
            ox.Mechanism("l2", robustness="linf", radius=0.1),
            True,
        ),
        (
            "robust, radius secret",
            "no (l1, ball l2)",
            "not treated",
            ox.Mechanism("l1", robustness="l2", radius=0.1),
            True,
        ),
    ]
    lines = [
        "| query | distance smooth? | the paper's Table 1 | its procedure, measured | overexplain, measured |",
        "|---|---|---|---|---|",
    ]
    for query, smooth, printed, terms, secret in rows:
        shown = ox.Mechanism(terms.distance, robustness=terms.robustness, radius=None) if secret else terms
        paper = "–" if secret else described(counts(terms, terms, "paper", orient=False))
        ours = described(counts(terms, shown, "auto", orient=False))
        lines.append(f"| {query} | {smooth} | {printed} | {paper} | **{ours}** |")
    sizes = ", ".join(map(str, SIZES))
    lines += [
        "",
        f"The most spent on any of {MODELS} random models for each p = {sizes}; every model was recovered to 1e-8.",
    ]
    return "\n".join(lines)


def demo() -> str:
    """What the demo printed, up to its first table, as a block of text."""
    recorded = (Path(__file__).parent / "results" / "demo.txt").read_text(encoding="utf-8")
    first, found, _ = recorded.partition("\n\n" + " " * 33 + "attacker needs")
    assert found, "the demo no longer prints a table of defences"
    return f"```\n$ overexplain demo\n{first.rstrip()}\n…\n```"


def replaced(text: str, begin: str, end: str, inside: str) -> str:
    """The text with what is between two markers replaced."""
    before, rest = text.split(begin)
    return f"{before}{begin}\n{inside}\n{end}{rest.split(end)[1]}"


def main() -> int:
    """Write the figures, or with --check compare them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    pages = (
        ("README.md", DEMO_BEGIN, DEMO_END, demo),
        ("docs/counts.md", BEGIN, END, table),
    )
    stale = False
    for name, begin, end, inside in pages:
        text = (ROOT / name).read_text(encoding="utf-8")
        wanted = replaced(text, begin, end, inside())
        if check and wanted != text:
            print(
                f"{name}: its figures are not what is measured now, or was recorded; run make readme", file=sys.stderr
            )
            stale = True
        elif not check:
            (ROOT / name).write_text(wanted, encoding="utf-8")
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
