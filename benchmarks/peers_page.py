"""docs/peers.md and the long tables of benchmarks/results/peers.md, from what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from peers_losses import BY_LABELS, SAME_ANGLE, TARGETS, Field, Loss, Reason, enough_for, explained, losses
from peers_plot import BY_DATA, FIRST_DATA, FLOOR
from peers_reasons import REASONS
from peers_runs import MULTIPLES, OURS, Cell
from peers_services import LABELS, services
from quoting import described

SHOWN = 10
"""The budget, in units of p + 1, at which the tables compare."""
TARGET = 1e-2
LIVE_PAPER = "Correia-Silva et al. 2018, CopycatCNN of IBM's Adversarial Robustness Toolbox, run live"
COLUMNS = {
    "requests": "requests to reach an angle",
    "angle": "angle",
    "offset": "offset error",
    "held_out": "agreement on held-out rows",
    "in_box": "agreement in the box",
    "seconds": "time",
}


def page(field: Field, machine: dict[str, str]) -> str:
    """The page: what is compared, pictures, tables, and where ours is not first."""
    first = FIRST_DATA if FIRST_DATA in field.data else field.data[0]
    seeds = max(len(cell.runs) for cells in field.by_key.values() for cell in cells.values())
    sizes = ", ".join(f"{name} ({_features(field, name)})" for name in field.data)
    lines = [
        "# The field, side by side",
        "",
        "Every published attack that fits a linear model, and ours, on the same models, with the same answers, the same budgets",
        "and the same random choices of the service. Written by `make bench-peers`; nothing on this page is typed by hand.",
        "",
        "## What is compared",
        "",
        "| attack | what it asks for | from |",
        "|---|---|---|",
        *_attack_rows(field),
        "",
        f"**Models.** Logistic regressions on {len(field.data)} data sets (features): {sizes}. Columns are standardised, text",
        "is 0/1 or one-hot, half of the rows (4,000 at most) train. All attacks ask inside the data's box, from the 1st to the",
        f"99th percentile of every column, where all numbers count as possible. {seeds} seeds, each with its own split, model",
        "and random choices.",
        "",
        f"**Budgets** are {_listed(MULTIPLES)} times p + 1, the unknowns of the model; a label, an explanation and a probability",
        "are one request each. Others use their budget up. Ours is asked for the best angle that it predicts to afford, and stops",
        f"when that is proved. *{BY_LABELS}*: ours, shown only the labels of the same service.",
        "",
        "**Columns.** *angle*: between the true and the rebuilt normal, in radians. *offset*: error of the offset in the unit of",
        "the service's distance (both models scaled to ‖normal‖* = 1). *held-out*, *box*: agreement with the model on rows nobody",
        "trained on and on uniform points of the data's box, in brackets what a constant answer gets: nothing at or below that is",
        "worth anything. *seconds*: of the processor, the service's own time not counted. All are medians over the seeds; – is no",
        "model.",
        "",
        f"## Every service, {first}",
        "",
        "![Angle against requests, one panel a service](peers-services.svg)",
        "",
        f"Angles below {FLOOR:g} are drawn there: what is left is rounding. A dot without a line stopped there for all budgets.",
        "",
        f"Angle after {SHOWN} (p + 1) requests (ours: or earlier); **bold** is the smallest, or rounding away from it.",
        "",
        *matrix(field, first, _angle_shown, smallest=True),
        "",
        f"Requests until the angle is below {TARGET:g}, among the budgets tried ({MULTIPLES[-1]} (p + 1) at most).",
        "",
        *matrix(field, first, _requests_shown, smallest=True),
        "",
        "## Every data set",
        "",
        "![Angle against requests, one panel a data set](peers-data.svg)",
        "",
        f"Counterfactuals under {BY_DATA.split()[1]}, exact, and what labels alone give; {SHOWN} (p + 1) requests.",
        "",
        *_by_data(field),
        "",
        "All services of all data sets: `benchmarks/results/peers.md`; every run: `benchmarks/results/peers.json`.",
        "",
        "## Where ours is not first",
        "",
        *not_first(field),
        "",
        described(machine),
        "",
    ]
    return "\n".join(lines)


def _features(field: Field, data: str) -> str:
    counts = {cell.features for (d, _, _), cells in field.by_key.items() if d == data for cell in cells.values()}
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low}–{high}"


def _listed(values: Iterable[int]) -> str:
    *most, last = map(str, values)
    return f"{', '.join(most)} and {last}"


def _attack_rows(field: Field) -> list[str]:
    from overexplain.baselines.attacks import ATTACKS

    present = {attack for _, _, attack in field.by_key}
    rows = [f"| **{OURS}** | whatever the service gives, except probabilities | `overexplain.extract` |"]
    rows += [f"| {name} | {', '.join(a.needs)} | {a.paper} |" for name, a in ATTACKS.items() if name in present]
    if "copycat" in present:
        rows.append(f"| copycat | labels | {LIVE_PAPER} |")
    return rows


def _angle_shown(cells: dict[int, Cell]) -> float | None:
    return cells[SHOWN].median("angle") if SHOWN in cells else None


def _requests_shown(cells: dict[int, Cell]) -> float | None:
    cell = enough_for(cells, TARGET)
    return None if cell is None else cell.requests


def matrix(field: Field, data: str, value: Callable[[dict[int, Cell]], float | None], smallest: bool) -> list[str]:
    """A line a service, a column an attack; the best of a line is bold."""
    of = {s: field.side_by_side(data, s) for d, s in field.pairs() if d == data}
    attacks = list(dict.fromkeys(attack for found in of.values() for attack in found))
    attacks.sort(key=lambda attack: (attack != OURS, attack != BY_LABELS))
    lines = ["| service | " + " | ".join(attacks) + " |", "|---|" + "--:|" * len(attacks)]
    for service, found in of.items():
        values = {attack: value(cells) for attack, cells in found.items()}
        known = [each for each in values.values() if each is not None]
        best = (min(known) if smallest else max(known)) if known else None
        cells = [_bold(values[attack], best) if attack in values else "" for attack in attacks]
        lines.append(f"| {service} | " + " | ".join(cells) + " |")
    return lines


def _bold(value: float | None, best: float | None) -> str:
    if value is None or best is None:
        return "–"
    text = number(value)
    return f"**{text}**" if value <= max(best, SAME_ANGLE) else text


def number(value: float | None) -> str:
    """Counts as they are, others with two digits."""
    if value is None:
        return "–"
    if value >= 10:
        return f"{value:,.0f}"
    return f"{value:.1e}" if value < 1e-2 else f"{value:.2g}"


def spent(cell: Cell) -> str:
    """E.g. "30 e + 1 l": explanations, labels and probabilities, medians."""
    parts = ((cell.median(name), word) for name, word in (("explanations", "e"), ("labels", "l"), ("scores", "p")))
    return " + ".join(f"{value:,.0f} {word}" for value, word in parts if value) or "0"


def share(value: float | None, floor: float) -> str:
    """Agreement beside what a constant answer gets."""
    return f"– ({100 * floor:.0f} %)" if value is None else f"{100 * value:.2f} % ({100 * floor:.0f} %)"


MEASURED = ("asked", "held-out", "box", "angle", "offset", "seconds")


def measured(cell: Cell) -> list[str]:
    """What stands in the columns of `MEASURED`."""
    agreed = share(cell.median("held_out"), cell.floor), share(cell.median("in_box"), cell.box_floor)
    return [spent(cell), *agreed, *(number(cell.median(name)) for name in ("angle", "offset", "seconds"))]


def _by_data(field: Field) -> list[str]:
    lines = ["| data | service | attack | " + " | ".join(MEASURED) + " |", "|---|---|---|" + "--:|" * len(MEASURED)]
    for data in field.data:
        for service in (BY_DATA, LABELS):
            for (d, s, attack), cells in field.by_key.items():
                if (d, s) == (data, service) and SHOWN in cells:
                    lines.append(f"| {data} | {service} | {attack} | " + " | ".join(measured(cells[SHOWN])) + " |")
    return lines


def full_tables(field: Field, machine: dict[str, str]) -> str:
    """One table a data set: every service and attack, the angle at every budget, the other columns at one."""
    tried = sorted({multiple for cells in field.by_key.values() for multiple in cells})
    last = SHOWN if SHOWN in tried else tried[-1]
    lines = [
        "# Every attack on every service",
        "",
        "Written by `make bench-peers`; how to read it: docs/peers.md. Medians over the seeds. The columns with numbers are the",
        f"angle (rad) after so many times p + 1 requests; those after them are for {last} (p + 1). *asked*: e explanations,",
        "l labels, p probabilities.",
    ]
    for data in field.data:
        columns = [*map(str, tried), *MEASURED[:3], *MEASURED[4:]]
        lines += ["", f"## {data}, {_features(field, data)} features", ""]
        lines += ["| service | attack | " + " | ".join(columns) + " |", "|---|---|" + "--:|" * len(columns)]
        for (d, service, attack), cells in field.by_key.items():
            if d == data:
                angles = [number(cells[m].median("angle")) if m in cells else "" for m in tried]
                rest = measured(cells[last])
                lines.append(f"| {service} | {attack} | " + " | ".join([*angles, *rest[:3], *rest[4:]]) + " |")
    return "\n".join([*lines, "", described(machine), ""])


def not_first(field: Field) -> list[str]:
    """The losses of ours, by reason."""
    found, count = losses(field)
    by_reason = explained(found, REASONS)
    targets = ", ".join(f"{target:g}" for target in TARGETS)
    lines = [
        "For every data set, service, budget and other attack: is its median better than ours? Columns: "
        f"requests to reach {targets} rad, angle, offset error, agreement on held-out rows and in the box, time at the largest",
        f"budget. Of {count:,} comparisons ours is first, or as good, in {count - len(found):,} "
        f"({100 * (1 - len(found) / count):.1f} %).",
        f"The other {len(found):,}, by reason; the script that writes this page refuses to write it if one has none.",
    ]
    for reason, group in sorted(by_reason.items(), key=lambda pair: -len(pair[1])):
        lines += ["", *_group(field, reason, group)]
    return lines


def _group(field: Field, reason: Reason, group: list[Loss]) -> list[str]:
    def listed(values: Iterable[str], all_of: Iterable[str]) -> str:
        present, everything = list(dict.fromkeys(values)), list(all_of)
        return "all" if len(present) == len(everything) > 1 else ", ".join(present)

    columns = listed((COLUMNS[loss.column] for loss in group), COLUMNS.values())
    attacks = ", ".join(sorted({loss.attack for loss in group}))
    kinds = {s: services()[s].kind for s in field.services}
    where = _services_named([loss.service for loss in group], kinds)
    multiples = sorted({loss.multiple for loss in group if loss.column not in ("requests", "seconds")})
    budgets = (
        f" Budgets: {', '.join(f'{m} (p + 1)' for m in multiples)}."
        if multiples and len(multiples) < len(MULTIPLES)
        else ""
    )
    widest = max(group, key=_gap)
    data = listed((loss.data for loss in group), field.data)
    title, _, rest = reason.why.partition(". ")
    times = "Once" if len(group) == 1 else f"{len(group)} times"
    return [
        f"**{title}.** {rest}",
        "",
        f"{times}. Ahead: {attacks}. Columns: {columns}. Services: {where}. Data: {data}.{budgets} {_example(widest)}",
    ]


def _services_named(present: list[str], kinds: dict[str, str]) -> str:
    """Service names, or the kind where all of a kind are meant."""
    names = []
    for kind in dict.fromkeys(kinds.values()):
        members = [name for name, its in kinds.items() if its == kind]
        hit = [name for name in members if name in present]
        names += [f"all {kind} ones"] if len(hit) == len(members) > 2 else hit
    return "; ".join(names)


def _gap(loss: Loss) -> float:
    """How far behind ours is, to choose the example."""
    if loss.ours is None:
        return -1.0 if loss.column in ("held_out", "in_box") else -loss.theirs
    if loss.column in ("held_out", "in_box"):
        return 10 * (loss.theirs - loss.ours)
    return loss.ours / max(loss.theirs, 1e-16)


def _example(loss: Loss) -> str:
    at = f"to {loss.target:g} rad" if loss.target is not None else f"after {loss.multiple} (p + 1)"
    own = "no model" if loss.ours is None else number(loss.ours)
    if loss.column in ("held_out", "in_box"):
        own = own if loss.ours is None else f"{100 * loss.ours:.2f} %"
        theirs = f"{100 * loss.theirs:.2f} %"
    else:
        theirs = number(loss.theirs)
    return (
        f"The widest gap: {loss.data}, {loss.service}, {COLUMNS[loss.column]} {at}: {loss.attack} {theirs}, ours {own}."
    )
