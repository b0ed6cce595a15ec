"""Where ours is not first, found in the numbers, and why: a loss without a reason stops the page from being written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from peers_runs import OURS, Cell
from peers_services import LABELS, services

BY_LABELS = "ours, labels only"
"""Ours with the labels of a service that would explain: what `extract` does if it is shown nothing else."""
TARGETS = (0.1, 1e-2, 1e-3, 1e-6)
"""Angles in radians."""
SAME_ANGLE = 1e-6
"""Angles and offsets below this are equally good: ours is asked for no more where answers are not exact."""
SAME_AGREEMENT = 0.001
ELSEWHERE = (("retraining", "scores"), ("copycat", "scores"))
"""Compared where labels are all there is, and with the same outcome here: ours asks for labels, too."""
FASTER = 1.5
"""Times that differ by less are the same on a shared machine."""


@dataclass(frozen=True)
class Loss:
    """Another attack is ahead of ours in one column: by how much, and whether ours had a model at all."""

    column: str
    data: str
    service: str
    attack: str
    multiple: int
    """The budget in units of p + 1; where the column is a number of requests, the one that was enough for the other attack."""
    theirs: float
    ours: float | None
    target: float | None = None


@dataclass(frozen=True)
class Reason:
    """Why an attack is ahead. Empty words fit everything; `kind` is a service's kind or the beginning of its name."""

    why: str
    columns: tuple[str, ...] = ()
    attacks: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    up_to: int | None = None
    """Only for budgets up to this many times p + 1, and for angles that some attack reaches with such a budget."""

    def fits(self, loss: Loss) -> bool:
        """True if this is why."""
        kind = services()[loss.service].kind
        return (
            (not self.columns or loss.column in self.columns)
            and (not self.attacks or loss.attack in self.attacks)
            and (not self.kind or kind in self.kind or any(loss.service.startswith(begin) for begin in self.kind))
            and (self.up_to is None or loss.multiple <= self.up_to)
        )


class Field:
    """All cells by (data, service, attack), and who is compared with whom."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self.by_key: dict[tuple[str, str, str], dict[int, Cell]] = {}
        for cell in cells:
            self.by_key.setdefault((cell.data, cell.service, cell.attack), {})[cell.multiple] = cell
        self.data = list(dict.fromkeys(data for data, _, _ in self.by_key))
        self.services = list(dict.fromkeys(service for _, service, _ in self.by_key))

    def side_by_side(self, data: str, service: str) -> dict[str, dict[int, Cell]]:
        """Every attack that this service allows, ours first. Attacks by labels do what they do where there is nothing else."""
        found = {attack: cells for (d, s, attack), cells in self.by_key.items() if (d, s) == (data, service)}
        for (d, s, attack), cells in self.by_key.items():
            if service != LABELS and (d, s) == (data, LABELS):
                is_ours_here = attack == OURS and OURS in found
                found[BY_LABELS if is_ours_here else attack] = cells
        return {OURS: found[OURS], **found} if OURS in found else found

    def pairs(self) -> Iterator[tuple[str, str]]:
        """All (data, service) that were measured."""
        yield from dict.fromkeys((data, service) for data, service, _ in self.by_key)


def enough_for(cells: dict[int, Cell], target: float) -> Cell | None:
    """The cell with the fewest requests whose median angle is at most `target`; None if no budget was enough."""
    enough = [c for c in cells.values() if (angle := c.median("angle")) is not None and angle <= target]
    return min(enough, key=lambda c: c.requests, default=None)


def losses(field: Field) -> tuple[list[Loss], int]:
    """Every place where another attack is ahead of ours, and how many comparisons were made."""
    found: list[Loss] = []
    count = 0
    for data, service in field.pairs():
        attacks = field.side_by_side(data, service)
        mine = attacks.pop(OURS)
        for attack, theirs in attacks.items():
            if attack == BY_LABELS or (attack, services()[service].kind) in ELSEWHERE:
                continue
            for loss in _compared(data, service, attack, mine, theirs):
                count += 1
                if loss is not None:
                    found.append(loss)
    return found, count


def _compared(
    data: str, service: str, attack: str, mine: dict[int, Cell], theirs: dict[int, Cell]
) -> Iterator[Loss | None]:
    for target in TARGETS:
        own, other = enough_for(mine, target), enough_for(theirs, target)
        if other is not None and (own is None or other.requests < own.requests):
            spent = None if own is None else own.requests
            yield Loss("requests", data, service, attack, other.multiple, other.requests, spent, target)
        elif own is not None:
            yield None
    for multiple, cell in theirs.items():
        if multiple not in mine:
            continue
        for column in ("angle", "offset", "held_out", "in_box"):
            value, had = cell.median(column), mine[multiple].median(column)
            floor = {"held_out": cell.floor, "in_box": cell.box_floor}.get(column)
            if value is not None and floor is not None and value <= floor:
                yield None  # no better than a constant answer: nothing to lose against
            elif value is not None and (had is None or _better(column, value, had)):
                yield Loss(column, data, service, attack, multiple, value, had)
            elif value is not None or had is not None:
                yield None
    last = max(set(mine) & set(theirs), default=None)
    if last is not None and theirs[last].median("angle") is not None:
        value, had = theirs[last].median("seconds"), mine[last].median("seconds")
        assert value is not None
        assert had is not None
        yield Loss("seconds", data, service, attack, last, value, had) if value * FASTER < had else None


def _better(column: str, value: float, own: float) -> bool:
    if column in ("held_out", "in_box"):
        return value > own + SAME_AGREEMENT
    return value < own and own > SAME_ANGLE


def explained(found: Iterable[Loss], reasons: Iterable[Reason]) -> dict[Reason, list[Loss]]:
    """The losses by reason; SystemExit for one that has none."""
    by_reason: dict[Reason, list[Loss]] = {reason: [] for reason in reasons}
    without = []
    for loss in found:
        reason = next((reason for reason in by_reason if reason.fits(loss)), None)
        if reason is None:
            without.append(loss)
        else:
            by_reason[reason].append(loss)
    if without:
        lines = "\n".join(str(loss) for loss in without[:20])
        raise SystemExit(f"{len(without)} losses of ours have no reason in peers_reasons.py, the first are:\n{lines}")
    return {reason: losses for reason, losses in by_reason.items() if losses}
