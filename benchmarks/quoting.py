"""What benchmarks that stand in a page of docs/ share: the place of their tables, the machine in a sentence, short
numbers, peak memory."""

from __future__ import annotations

from pathlib import Path


def quoted(text: str, page: str, script: str) -> str:
    """The page with the tables of a script in their place."""
    begin, end = f"<!-- measured: written by benchmarks/{script} -->", "<!-- end of measured -->"
    start = page.index(begin) + len(begin)
    return f"{page[:start]}\n\n{text}\n\n{page[page.index(end, start) :]}"


def described(machine: dict[str, str]) -> str:
    """What it was measured on, in a sentence."""
    return (
        f"Measured on {machine['cpu']}, {machine['cores']} cores (load {machine['load']}), Python {machine['python']}."
    )


def short(value: float) -> str:
    """Three digits and a unit."""
    for limit, unit in ((1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g}{unit}"
    return f"{value:.3g}"


def peak() -> float:
    """The largest memory of this process so far in MB; getrusage would also count that of the process which started it."""
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
