"""How `certify` grows with features, labels and points, as a picture: benchmarks/results/certify.svg."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def draw(growth: dict[str, list[dict[str, float]]], path: Path) -> None:
    """One panel for each size that grows: processor seconds of reading the log and of asking, both axes logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.2), layout="constrained")
    axes: Any = figure.subplots(1, len(growth), sharey=True)
    for panel, (title, cells) in zip(axes, growth.items(), strict=True):
        grows = next(name for name in ("features", "labels", "points") if len({cell[name] for cell in cells}) > 1)
        sizes = [cell[grows] for cell in cells]
        for name, marker in (("fit", "o"), ("ask", "s")):
            panel.loglog(sizes, [cell[name] for cell in cells], marker=marker, label=name)
        if grows == "features":  # less than two decades: the sizes themselves are the ticks
            panel.set_xticks(sizes, [f"{size:g}" for size in sizes])
            panel.minorticks_off()
        panel.set_title(title, fontsize=8)
        panel.set_xlabel(grows)
    axes[0].set_ylabel("processor seconds")
    axes[0].legend()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(json.loads((RESULTS / "certify.json").read_text(encoding="utf-8"))["growth"]["by"], RESULTS / "certify.svg")
