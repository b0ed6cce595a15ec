"""The pictures of docs/peers.md: the angle that is left against the requests spent, one line an attack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from peers_losses import BY_LABELS, Field
from peers_runs import OURS, Cell

from overexplain.report.svg import LIGHT

FIRST_DATA = "breast_cancer"
SHOWN = (
    "exact l2", "exact l1", "labels only", "probabilities", "rounded, 2 decimals, l2", "suboptimal 10 %, l2", "noisy 0.1, l2",
    "random radius 0.5, l2", "like dice-random",
)  # fmt: skip
BY_DATA = "exact l1"
PICTURES = ("peers-services.svg", "peers-data.svg")
FLOOR = 1e-9
"""Smaller angles are drawn here: what is left below is rounding."""
LINES = {
    OURS: (LIGHT["yes"], "o", 2.4),
    BY_LABELS: (LIGHT["yes"], "x", 1.2),
    "equations": (LIGHT["no"], "s", 1.4),
    "retraining": ("#7a5195", "^", 1.2),
    "surrogate": ("#5c7f3a", "v", 1.2),
    "dualcf": ("#b03a6a", "D", 1.2),
    "clamping": ("#b8860b", "P", 1.2),
    "averaging": ("#3d8f8a", "*", 1.2),
    "copycat": (LIGHT["mute"], "h", 1.2),
}


def panels(field: Field, name: str) -> list[tuple[str, str, str]]:
    """(title, data, service) of every panel of a picture."""
    if name == "peers-services.svg":
        data = FIRST_DATA if FIRST_DATA in field.data else field.data[0]
        return [(service, data, service) for service in SHOWN if service in field.services]
    return [(data, data, BY_DATA) for data in field.data if BY_DATA in field.services]


def draw(field: Field, name: str, path: Path) -> None:
    """One picture: a panel a service, or a panel a data set; both axes logarithmic."""
    import matplotlib
    from matplotlib.figure import Figure

    shown = panels(field, name)
    wide = 3
    high = -(-len(shown) // wide)
    title = (
        f"Angle left after so many requests: {shown[0][1]}"
        if name == "peers-services.svg"
        else f"Angle left after so many requests: {BY_DATA} counterfactuals"
    )
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure = Figure(figsize=(10, 0.9 + 2.5 * high), layout="constrained", facecolor=LIGHT["bg"])
        axes: Any = figure.subplots(high, wide, sharey=True, squeeze=False)
        lines: dict[str, Any] = {}
        for place, (heading, data, service) in enumerate(shown):
            panel = axes[place // wide, place % wide]
            _panel(panel, field.side_by_side(data, service), lines)
            panel.set_title(heading, fontsize=10, color=LIGHT["ink"])
            if place + wide >= len(shown):
                panel.set_xlabel("requests", color=LIGHT["mute"])
            if place % wide == 0:
                panel.set_ylabel("angle (rad)", color=LIGHT["mute"])
        for place in range(len(shown), wide * high):
            axes[place // wide, place % wide].set_axis_off()
        order = [each for each in LINES if each in lines]
        figure.legend([lines[each] for each in order], order, loc="outside lower center", ncols=5, frameon=False)
        figure.suptitle(title, x=0.01, ha="left", size=12, weight="bold", color=LIGHT["ink"])
        figure.savefig(path, metadata={"Date": None, "Title": title})


def _panel(axes: Any, attacks: dict[str, dict[int, Cell]], lines: dict[str, Any]) -> None:
    axes.set_facecolor(LIGHT["bg"])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(FLOOR / 2, 3)
    axes.xaxis.set_minor_formatter("")  # less than a decade would be labelled at every step, one over the other
    axes.grid(color=LIGHT["rule"], linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for attack, cells in attacks.items():
        colour, marker, width = LINES[attack]
        reached = sorted(
            (cell.requests, max(angle, FLOOR)) for cell in cells.values() if (angle := cell.median("angle")) is not None
        )
        style = "--" if attack == BY_LABELS else "-"
        front = 3 if attack == OURS else 2
        (lines[attack],) = axes.plot(
            [x for x, _ in reached], [y for _, y in reached],
            style, color=colour, marker=marker, markersize=8 if attack == OURS else 5, linewidth=width, zorder=front,
        )  # fmt: skip
