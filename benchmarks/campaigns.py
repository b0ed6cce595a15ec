"""Random attempts to refute what the library says about logs; as many as are promised, with new seeds each time.

    python benchmarks/campaigns.py [--only NAME] [--workers N] [--minutes M] [--anew] [--check]
    python benchmarks/campaigns.py --only NAME --seed S     one case again, as it was

The campaigns are those of tests/campaigns; each case is made from its seed alone. What is done is kept in build/campaigns.jsonl,
block by block: a run that was stopped goes on from there; --anew begins again. After all goals are reached, the counts go to
benchmarks/results/campaigns.* and docs/regions.md. --check: fail if the page quotes other numbers than were recorded.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from certify import machine, one_thread
from quoting import described, quoted

ROOT = Path(__file__).parent
DOCS = ROOT.parent / "docs/regions.md"
DONE = ROOT.parent / "build/campaigns.jsonl"


@dataclass(frozen=True)
class Campaign:
    """A module of tests/campaigns, how many of what it counts are wanted, and how many cases make a block."""

    module: str
    goal: int
    counted: str
    what: str
    block: int
    also: tuple[str, ...] = ()


CAMPAIGNS = {
    "facts": Campaign(
        "test_facts", 100_000, "facts", "facts of rows, of models that are consistent with them", 100, ("models",)
    ),
    "plane": Campaign(
        "test_near_the_plane", 10_000, "certain", "certain verdicts 10⁻¹⁰ to 10⁻³ from the true plane", 16, ("honest",)
    ),
    "witnesses": Campaign(
        "test_witnesses",
        10_000,
        "models checked",
        "models behind UNKNOWN, and mutants that the checker accepts",
        10,
        ("UNKNOWN", "mutants accepted", "not told"),
    ),
    "unlabelled": Campaign(
        "test_unlabelled", 5_000, "honest", "honest logs without a label", 16, ("models", "YES", "NO", "BOUNDARY")
    ),
    "certificates": Campaign(
        "test_certificates",
        50_000,
        "certificates and mutants",
        "certificates and mutants of them",
        8,
        ("mutants accepted", "models"),
    ),
    "domains": Campaign(
        "test_domains",
        5_000,
        "logs",
        "logs of services over whole numbers, flags, one-hot groups, boxes",
        20,
        ("models", "YES", "NO", "BOUNDARY", "UNKNOWN"),
    ),
    "proofs": Campaign(
        "test_proofs",
        5_000,
        "certain verdicts",
        "certain verdicts and contradictions of batches, each with its proof",
        10,
        ("proved", "without a proof", "contradictions"),
    ),
}


def prepare() -> None:
    """Make the tests importable."""
    for folder in (ROOT.parent / "tests", ROOT.parent / "tests/campaigns"):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))


def block(task: tuple[str, int, int]) -> dict[str, Any]:
    """Some cases of a campaign, one after the other."""
    name, first, cases = task
    prepare()
    tally = importlib.import_module("campaigning").Tally()
    case = importlib.import_module(CAMPAIGNS[name].module).case
    began = time.process_time()
    for seed in range(first, first + cases):
        try:
            case(seed, tally)
        except Exception as error:  # a case that breaks off is a finding as well
            tally.fail(seed, f"{type(error).__name__}: {error}")
    return {
        "campaign": name,
        "first": first,
        "cases": cases,
        "counts": dict(tally.counts),
        "failures": tally.failures,
        "seconds": time.process_time() - began,
    }


def recorded() -> list[dict[str, Any]]:
    """The blocks that are done."""
    if not DONE.exists():
        return []
    lines = DONE.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.endswith("}")]  # the last one may have been cut off


def summed(blocks: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Cases, counts, failures and seconds of every campaign."""
    found: dict[str, dict[str, Any]] = {}
    for name in CAMPAIGNS:
        own = [entry for entry in blocks if entry["campaign"] == name]
        counts: Counter[str] = Counter()
        for entry in own:
            counts.update(entry["counts"])
        found[name] = {
            "cases": sum(entry["cases"] for entry in own),
            "counts": dict(counts),
            "failures": [failure for entry in own for failure in entry["failures"]],
            "seconds": sum(entry["seconds"] for entry in own),
        }
    return found


def tasks(names: list[str], blocks: list[dict[str, Any]], deadline: float) -> Iterator[tuple[str, int, int]]:
    """What is still to be done, each campaign in turn; `blocks` grows meanwhile."""
    seeds = {name: secrets.randbelow(2**40) for name in names}
    while time.monotonic() < deadline:
        done = summed(blocks)
        left = [name for name in names if done[name]["counts"].get(CAMPAIGNS[name].counted, 0) < CAMPAIGNS[name].goal]
        if not left:
            return
        for name in left:
            yield name, seeds[name], CAMPAIGNS[name].block
            seeds[name] += CAMPAIGNS[name].block


def run(names: list[str], workers: int, minutes: float) -> list[dict[str, Any]]:
    """Work until every goal is reached or the time is over."""
    DONE.parent.mkdir(exist_ok=True)
    blocks, deadline = recorded(), time.monotonic() + 60 * minutes
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context) as pool, DONE.open("a", encoding="utf-8") as file:
        waiting: set[Future[dict[str, Any]]] = set()
        source = tasks(names, blocks, deadline)
        while True:
            while len(waiting) < workers and (task := next(source, None)) is not None:
                waiting.add(pool.submit(block, task))
            if not waiting:
                return blocks
            ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for one in ready:
                entry = one.result()
                blocks.append(entry)
                file.write(json.dumps(entry) + "\n")
                file.flush()
                for failure in entry["failures"]:
                    print(f"{entry['campaign']}: {failure}", flush=True)


def markdown(found: dict[str, Any]) -> str:
    """The table."""
    lines = ["| campaign | checked | | cases | false |", "|---|--:|---|--:|--:|"]
    for name, campaign in CAMPAIGNS.items():
        own = found["campaigns"][name]
        also = ", ".join(f"{own['counts'].get(key, 0):,} {key}" for key in campaign.also)
        lines.append(
            f"| `{name}`: {campaign.what} | {own['counts'].get(campaign.counted, 0):,} | {also} | {own['cases']:,} | "
            f"{len(own['failures']):,} |"
        )
    hours = sum(own["seconds"] for own in found["campaigns"].values()) / 60
    lines += ["", f"{hours:.0f} minutes of a processor in all. {described(found['machine'])}"]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=CAMPAIGNS, action="append", help="this campaign; may be given several times")
    parser.add_argument("--seed", type=int, help="this case of the campaign, and nothing else")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=50.0, help="stop then; what is done is kept")
    parser.add_argument("--anew", action="store_true", help="forget what is done")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    options = parser.parse_args()
    file = options.results / "campaigns.json"
    if options.check:
        page = DOCS.read_text(encoding="utf-8")
        text = markdown(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else ""
        same = quoted(text, page, "campaigns.py") == page
        sys.exit(0 if same else f"docs/{DOCS.name} does not quote what was recorded")
    names = options.only or list(CAMPAIGNS)
    if options.seed is not None:
        entry = block((names[0], options.seed, 1))
        print(json.dumps(entry, indent=1))
        sys.exit(1 if entry["failures"] else 0)
    one_thread()
    if options.anew:
        DONE.unlink(missing_ok=True)
    campaigns = summed(run(names, options.workers, options.minutes))
    found = {"campaigns": campaigns, "machine": machine()}
    text = markdown(found)
    print(text)
    false = sum(len(own["failures"]) for own in campaigns.values())
    short = [name for name, each in CAMPAIGNS.items() if campaigns[name]["counts"].get(each.counted, 0) < each.goal]
    if false or short:
        sys.exit(f"{false} false; short of its goal: {', '.join(short) or 'none'}. Results are not written")
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    title = "# Campaigns: random attempts to refute what is said about logs"
    (options.results / "campaigns.md").write_text(f"{title}\n\nWritten by `make soak`.\n\n{text}\n", encoding="utf-8")
    DOCS.write_text(quoted(text, DOCS.read_text(encoding="utf-8"), "campaigns.py"), encoding="utf-8")
    DONE.unlink()


if __name__ == "__main__":
    main()
