"""Writes the expectations: make goldens. Texts and figures (`shown/`) are written anew, to be reviewed as a diff.

    python -m golden.write [NAME ...] [--frozen]

What is frozen (exit codes, error lines, verdicts, schemas) is never written over. `--frozen` adds the cases that are new; a frozen
expectation that must change after all is taken out by hand, and the commit says why.
"""

from __future__ import annotations

import json
import shutil
import sys

from golden.cases import CASES
from golden.expected import (
    FROZEN_SCHEMAS,
    OUTCOMES,
    SCHEMAS,
    SHOWN,
    compare_verdicts,
    frozen_outcomes,
    frozen_verdicts,
    verdict_file,
)
from golden.records import frozen, shown, verdicts
from golden.running import outcome_of


def main(arguments: list[str]) -> int:
    """Write, say what is not as it was frozen, and end with 1 if anything is."""
    adding = "--frozen" in arguments
    names = [name for name in arguments if not name.startswith("--")]
    cases = [case for case in CASES if not names or case.name in names]
    kept, lines = frozen_outcomes(), []
    SHOWN.mkdir(exist_ok=True)
    for case in cases:
        outcome = outcome_of(case)
        (SHOWN / f"{case.name}.txt").write_text(shown(outcome), encoding="utf-8")
        if adding:
            kept.setdefault(case.name, frozen(outcome))
            add_verdicts(case.name, verdicts(outcome))
        lines += complaints(case.name, kept.get(case.name), frozen(outcome), verdicts(outcome))
    if adding:
        OUTCOMES.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        add_schemas()
    if not names:
        for path in SHOWN.glob("*.txt"):
            if path.stem not in {case.name for case in CASES}:
                path.unlink()
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    return 1 if lines else 0


def complaints(name: str, kept: object, now: object, found: dict[str, str]) -> list[str]:
    """What is not as it was frozen."""
    if kept is None:
        return [f"{name}: new, and not frozen yet: make goldens FROZEN=--frozen"]
    lines = [] if kept == now else [f"{name}: frozen exit codes or error lines changed; they were not written over"]
    return lines + [f"{name}: {line}" for line in compare_verdicts(name, frozen_verdicts(name), found)]


def add_verdicts(name: str, found: dict[str, str]) -> None:
    """Freeze the verdicts of a case that has none yet."""
    path = verdict_file(name)
    if found and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def add_schemas() -> None:
    """Freeze schemas that are new."""
    FROZEN_SCHEMAS.mkdir(parents=True, exist_ok=True)
    for path in sorted(SCHEMAS.glob("*.schema.json")):
        if not (FROZEN_SCHEMAS / path.name).exists():
            shutil.copyfile(path, FROZEN_SCHEMAS / path.name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
