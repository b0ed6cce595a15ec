"""Every published attack beside ours: the same models, services, budgets and seeds, and the page docs/peers.md about it.

    python benchmarks/peers.py [--quick] [--live] [--check] [--page] [--attacks NAME …] [--results DIRECTORY] [--docs DIRECTORY]

Logistic regressions (peers_worlds.py) behind services (peers_services.py) are attacked with budgets of 1, 2, 5, 10 and 30 times
p + 1 requests and five seeds. OVEREXPLAIN_DATA=directory adds every CSV in it. --live (in an environment with the extra [peers])
adds IBM ART's CopycatCNN to the results that are there; --check fails if the page is not what the results give; --page writes it
again; --attacks measures only these again. A quick run only prints.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from certify import machine, one_thread
from peers_losses import Field
from peers_page import full_tables, page
from peers_plot import FIRST_DATA, PICTURES, draw
from peers_runs import MULTIPLES, OURS, Cell, Task, merged, restored, stored, work
from peers_services import LABELS, Service, services
from peers_worlds import names

from overexplain.auditing.workers import process_pool
from overexplain.baselines.attacks import ATTACKS

ROOT = Path(__file__).parent
SEEDS = (1, 2, 3, 4, 5)
LIVE = "copycat"
COMMONEST = ("like dice-random", "like nice", "like mip-recourse")


def tasks(quick: bool, only: list[str] | None, attacks: list[str] | None = None) -> list[Task]:
    """All that is to be done, the longest first."""
    data: tuple[str, ...] = ("synthetic 10",) if quick else tuple(names())
    seeds, multiples = ((1, 2), (1, 5, 25)) if quick else (SEEDS, MULTIPLES)
    found = [
        Task(name, service.name, seed, multiples, None if attacks is None else tuple(attacks))
        for name in data
        for service in services().values()
        for seed in seeds
        if quick or is_tried(name, service)
        if only is None or any(word in f"{name}: {service.name}" for word in only)
    ]
    return sorted(found, key=lambda task: "100" not in task.data)


def is_tried(data: str, service: Service) -> bool:
    """All imitations on the first data set, the commonest on other tables, none on data that nobody serves."""
    if not service.name.startswith("like") or data == FIRST_DATA:
        return True
    return not data.startswith("synthetic") and service.name in COMMONEST


def measured(todo: list[Task], workers: int) -> list[Cell]:
    """All cells, in the order of data and services."""
    began, parts = time.perf_counter(), []
    with process_pool(workers) as pool:
        done = map(work, todo) if pool is None else pool.map(work, todo)
        for task, part in zip(todo, done, strict=True):
            parts.append(part)
            print(f"{time.perf_counter() - began:5.0f} s  {task.data}, {task.service}, seed {task.seed}", flush=True)
    return in_order(merged(parts))


def in_order(cells: list[Cell]) -> list[Cell]:
    """By data, service, attack and budget, each in the order in which they are named."""
    data, order = names(), list(services())
    places = {name: i for i, name in enumerate([*data, *sorted({c.data for c in cells} - set(data))])}
    attacks = [OURS, *ATTACKS, LIVE]
    return sorted(cells, key=lambda c: (places[c.data], order.index(c.service), attacks.index(c.attack), c.multiple))


def save(cells: list[Cell], measured_on: dict[str, str], results: Path) -> None:
    """One line a cell: a change of one is seen as that."""
    lines = ",\n".join(json.dumps(stored(cell), ensure_ascii=False, separators=(",", ":")) for cell in cells)
    text = f'{{\n "machine": {json.dumps(measured_on)},\n "cells": [\n{lines}\n ]\n}}\n'
    (results / "peers.json").write_text(text, encoding="utf-8")


def load(results: Path) -> tuple[list[Cell], dict[str, str]]:
    """The cells that were measured, and on what."""
    found = json.loads((results / "peers.json").read_text(encoding="utf-8"))
    return [restored(kept) for kept in found["cells"]], found["machine"]


def write(results: Path, docs: Path) -> None:
    """The page, its pictures, and the long tables."""
    cells, measured_on = load(results)
    field = Field(cells)
    (docs / "peers.md").write_text(page(field, measured_on), encoding="utf-8")
    (results / "peers.md").write_text(full_tables(field, measured_on), encoding="utf-8")
    for name in PICTURES:
        draw(field, name, docs / name)


def check(results: Path, docs: Path) -> None:
    """Fail if a page is not what the results give."""
    cells, measured_on = load(results)
    field = Field(cells)
    wanted = {docs / "peers.md": page(field, measured_on), results / "peers.md": full_tables(field, measured_on)}
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path.name} in {path.parent.name}/ is not what was measured: python benchmarks/peers.py --page")
    if missing := [name for name in PICTURES if not (docs / name).exists()]:
        sys.exit(f"docs/{missing[0]} is missing: python benchmarks/peers.py --page")


def live_cells(options: Any) -> list[Cell]:
    """ART's CopycatCNN on the services it can use: labels are all it asks for."""
    from peers_live import work_live

    todo = [task for task in tasks(options.quick, options.only) if task.service == LABELS]
    return in_order(merged(map(work_live, todo)))


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one small model, fewer seeds; results are only printed")
    parser.add_argument("--live", action="store_true", help="IBM ART's CopycatCNN, added to the results that are there")
    parser.add_argument("--check", action="store_true", help="fail if the page is not what the results give")
    parser.add_argument("--page", action="store_true", help="write the page from the results that are there")
    parser.add_argument("--only", nargs="*", help="data and services whose names hold one of these words; print only")
    parser.add_argument("--attacks", nargs="*", help="measure only these again, and keep what there is of the others")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    parser.add_argument("--docs", type=Path, default=ROOT.parent / "docs")
    options = parser.parse_args()
    if options.check:
        return check(options.results, options.docs)
    if options.page:
        return write(options.results, options.docs)
    one_thread()
    again = options.attacks
    cells = (
        live_cells(options) if options.live else measured(tasks(options.quick, options.only, again), options.workers)
    )
    if options.quick or options.only is not None:
        print(full_tables(Field(cells), machine()))
        return None
    # What was not measured now is kept: ART lives in an environment of its own, and some data may not be at hand.
    replaced = {LIVE} if options.live else set(again or [OURS, *ATTACKS])
    measured_on = machine()
    if (options.results / "peers.json").exists():
        before, on = load(options.results)
        again_data = {cell.data for cell in cells}
        kept = [cell for cell in before if cell.attack not in replaced or cell.data not in again_data]
        cells = in_order([*cells, *kept])
        measured_on = on if options.live else measured_on
    save(cells, measured_on, options.results)
    write(options.results, options.docs)
    return None


if __name__ == "__main__":
    main()
