"""What a probe will do, does and has found, in words for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from overexplain.auditing.names import service_in_words
from overexplain.auditing.probing import Probed
from overexplain.auditing.rebuilt import Rebuilt
from overexplain.extraction.predicted import Prediction
from overexplain.extraction.session import Progress
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.store.run import Run
from overexplain.report.terminal import found_in_pairs, print_pairs
from overexplain.report.words import counted, small

if TYPE_CHECKING:
    from rich.console import Console

MOST_LOST = 5


def progress_line(progress: Progress | None, spent: int, left: int, retries: int) -> str:
    """How far a probe is, on one line.

    >>> from overexplain.extraction.result import Spent
    >>> progress_line(Progress(Spent(12, 0), 31, None), 13, 27, 1)
    'question 12 of 31, 13 requests spent, 27 left, 1 retry'
    >>> progress_line(Progress(Spent(0, 400), None, 3e-4), 400, 600, 0)
    'question 400, 400 requests spent, 600 left, within 3e-04 rad'
    """
    parts = []
    if progress is not None:
        of = "" if progress.planned is None else f" of {max(progress.planned, progress.spent.requests):,}"
        parts.append(f"question {progress.spent.requests:,}{of}")
    parts += [f"{counted(spent, 'request')} spent", f"{left:,} left"]
    if retries:
        parts.append("1 retry" if retries == 1 else f"{retries:,} retries")
    if progress is not None and progress.bound is not None:
        parts.append(f"within {small(progress.bound)} rad")
    return ", ".join(parts)


def print_plan(prediction: Prediction, oracle: Any, budget: int | None, run: Run | None, console: Console) -> None:
    """Print what would be asked, and that nothing was."""
    spent = prediction.spent
    about = "" if prediction.proved else "about "
    cost = f"{about}{counted(spent.explanations, 'explanation')} and {counted(spent.labels, 'label')}"
    confirmed = f", {spent.confirmation:,} more to confirm" if spent.confirmation else ""
    lines = [
        ("service", _service(oracle.mechanism)),
        ("asked at", oracle.destination),
        ("features", f"{oracle.dimension:,}"),
        ("way", prediction.way),
        ("predicted", f"{cost} ({'a theorem' if prediction.proved else 'an estimate'}){confirmed}"),
    ]
    if run is not None:
        lines.append(("answered", f"{counted(run.answered, 'question')}; {counted(run.spent, 'request')} spent"))
    allowed = budget if budget is not None else run.budget if run is not None else None
    if allowed is not None:
        enough = "enough" if spent.requests <= allowed else f"too few: {spent.requests:,} are needed"
        retries = "retries under one key count once" if oracle.idempotent else "every retry costs one more"
        lines.append(("budget", f"{counted(allowed, 'request')}, {enough}; {retries}"))
    if oracle.rate is not None:
        lines.append(("time", f"{spent.requests / oracle.rate:,.0f} s at {oracle.rate:g} requests a second"))
    console.print("Nothing was sent. This is the plan.", style="bold")
    console.print()
    print_pairs(lines, console)


def print_probed(
    probed: Probed,
    mechanism: Mechanism | None,
    console: Console,
    features: Sequence[str] | None,
    rebuilt: Rebuilt | None,
) -> None:
    """Print the model that was found, what it took and what it rests on."""
    found = probed.found
    verb = "rebuilds" if probed.requests == 1 else "rebuild"
    console.print(f"{counted(probed.requests, 'request')} {verb} this model.", style="bold")
    console.print()
    lines = [("service", _service(mechanism)), *found_in_pairs(found, mechanism, features, rebuilt)]
    lines.insert(3, ("requests", _requests(probed)))
    print_pairs(lines, console)


def _requests(probed: Probed) -> str:
    said = f"{probed.requests:,} of {probed.budget:,} allowed"
    if probed.retries and probed.idempotent:
        said += f"; besides, {probed.retries:,} sent again under their key, which count once"
    elif probed.retries:
        said += f", {probed.retries:,} of them brought nothing and were sent again"
    if probed.lost:
        said += f", {len(probed.lost):,} of them without an answer ({_which(probed)})"
    return said


def _which(probed: Probed) -> str:
    shown = ", ".join(f"{sent.verb} {sent.number}" for sent in probed.lost[:MOST_LOST])
    return shown if len(probed.lost) <= MOST_LOST else f"{shown} and {len(probed.lost) - MOST_LOST:,} more"


def _service(mechanism: Mechanism | None) -> str:
    return "labels only" if mechanism is None else service_in_words(mechanism)
