"""What a log gives away about a set of points, for a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overexplain.auditing.determined import Determined
from overexplain.report.terminal import print_text
from overexplain.report.words import counted, in_ascii, in_words, robust_in_words, share_range, undecided_in_words

if TYPE_CHECKING:
    from rich.console import Console

MEANING = {
    "YES": ("certain Yes", "every model that fits the log says Yes"),
    "NO": ("certain No", "every model that fits the log says No"),
    "UNKNOWN": ("unknown", "two models that fit the log disagree"),
    "BOUNDARY": ("on the boundary", "on the boundary of every model that fits the log"),
    "UNDECIDED": ("undecided", "not settled; nothing is claimed"),
}
ALWAYS = ("YES", "NO", "UNKNOWN")


def print_determined(found: Determined, console: Console) -> None:
    """Print the finding, what it means for the model's owner, and a line for every verdict."""
    shown = [name for name in MEANING if name in ALWAYS or found.counts.get(name)]
    numbers = ", ".join(f"{found.counts.get(name, 0):,} {MEANING[name][0]}" for name in shown)
    console.print(f"{counted(found.points, 'point')}: {numbers}.", style="bold", soft_wrap=True)
    console.print()
    print_text(_meaning(found), console)
    for sentence in robust_in_words(found.robust):
        print_text(sentence, console)
    console.print()
    if found.points:
        width = max(len(f"{found.points:,}"), len("points"))
        shares = {name: in_ascii(_share(found, name)) for name in shown}
        column = max(6, *map(len, shares.values()))
        console.print(f"{'verdict':10} {'points':>{width}} {'share':>{column}}  meaning", style="bold")
        for name, share in shares.items():
            number = found.counts.get(name, 0)
            console.print(f"{name:10} {number:>{width},} {share:>{column}}  {MEANING[name][1]}", soft_wrap=True)


def _share(found: Determined, *verdicts: str) -> str:
    """The share of the points with these verdicts; undecided ones may have any of them."""
    share = found.share_of(*verdicts) or 0.0
    return share_range(share, None if "UNDECIDED" in verdicts else found.share_of(*verdicts, "UNDECIDED"))


def print_files(verdicts: Path | None, proofs: Path | None, check: Sequence[str], console: Console) -> None:
    """Print which files were written, and the command that checks the proofs."""
    if verdicts is not None or proofs is not None:
        console.print()
    for what, path in (("verdicts", verdicts), ("proofs", proofs)):
        if path is not None:
            console.print(f"{what} saved: {path}", soft_wrap=True)
    if proofs is not None:
        # On one line however long: it is there to be copied.
        console.print(f"to check them: {shlex.join(check)}", soft_wrap=True)


def _meaning(found: Determined) -> str:
    """What the counts mean for the owner of the model."""
    asked = f"{counted(found.labels, 'label')} and {counted(found.explanations, 'explanation')}"
    if found.robust is not None:
        all_of_them = found.robust.explanations == found.explanations
        asked += f", {'all' if all_of_them else f'{found.robust.explanations:,} of them'} robust"
    if found.share is None:
        sentence = f"There are no points. The log has {asked}."
    elif found.share == 0:
        sentence = f"The log ({asked}) determines none of these decisions."
    else:
        share = in_words(_share(found, "YES", "NO"))
        sentence = (
            f"The log ({asked}) determines {share} of these decisions: whoever has it knows them without asking the service "
            "again."
        )
    undecided = found.share_of("UNDECIDED")
    if undecided:
        if found.share == 0:
            sentence = f"The log ({asked}) was not seen to determine any of these decisions."
        sentence += f" {undecided_in_words(undecided, found.robust)}"
    if found.pinned_down:
        sentence += " Only one model fits it: the model is known, and every other decision with it."
    if not found.oriented:
        sentence += " It has no label that tells Yes from No: the two may be exchanged, in all verdicts at once."
    return sentence
