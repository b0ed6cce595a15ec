"""What `benchmarks/certify.py` found, in Markdown: all of it, what docs/regions.md quotes, and a sentence for README.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from certify_data import WHOLE
from quoting import short

FEW = 300
"""Points, at most, of the column that includes reading the log."""
PROVED_LOG, PROVED_POINTS = 20_000, 2_000
NAMES = {
    "german_credit": "German credit",
    "taiwan_credit_default": "Taiwan credit default",
    "adult": "adult",
    "breast_cancer": "breast_cancer",
    "scorecard": "scorecard (generated)",
}


@dataclass(frozen=True)
class Row:
    """One cell. Microseconds are of one thread's processor time, for a point that was settled; None where nothing was measured."""

    name: str
    answers: str
    log: int
    features: int
    points: int
    linprog_micro: float | None
    linprog_points: int
    differ: int | None
    """Points where linprog says otherwise, of those that are not UNDECIDED."""
    cvxpy_micro: float
    product_micro: float
    limit: float
    machine: dict[str, str]
    counts: dict[str, int] | None = None
    """None: `certify` did not end."""
    wrong: int | None = None
    """Claims that the model which gave the answers contradicts."""
    micro: float | None = None
    fit_ms: float | None = None
    few_micro: float | None = None
    few_undecided: int | None = None
    proof_ms: float | None = None
    proofs: int = 0
    proofs_failed: int = 0

    @property
    def cell(self) -> tuple[str, str, int]:
        """What is measured again in its place."""
        return self.name, self.answers, self.log


@dataclass(frozen=True)
class ProofRow:
    """Proofs of the verdicts on many points by a long log of labels, as many as `longest_s` allow; processor time."""

    name: str
    features: int
    log: int
    points: int
    counts: dict[str, int]
    fit_s: float
    certify_s: float
    proofs_s: float
    proofs: int
    proofs_failed: int
    proof_ms: float | None
    longest_s: float
    machine: dict[str, str]


def digits(value: float | None) -> str:
    """Two digits: repeated runs differ by more."""
    if value is None:
        return "–"
    return f"{float(f'{value:.2g}'):,.0f}" if value >= 9.95 else f"{float(f'{value:.2g}'):g}"


def times(rival: float | None, ours: float | None) -> float | None:
    """How many times as long another takes."""
    return None if rival is None or ours is None else rival / ours


def share(row: Row, name: str) -> str:
    """Which part of the points has a verdict, in percent; a part that is not 0 is not called 0."""
    if row.counts is None:
        return "no end"
    count = row.counts[name]
    percent = 100 * count / row.points
    return "< 0.01" if 0 < percent < 0.01 else digits(percent) if percent < 99.5 or count == row.points else "> 99"


def plain(value: int | None) -> str:
    """A count."""
    return "–" if value is None else f"{value:,}"


def lines(heads: list[str], rows: Iterable[list[str]], texts: int = 1) -> list[str]:
    """A table; the first columns are texts."""
    rule = "|" + "---|" * texts + "--:|" * (len(heads) - texts)
    return ["| " + " | ".join(heads) + " |", rule, *("| " + " | ".join(row) + " |" for row in rows)]


HEADS = [
    *("data", "answers", "log", "features", "points", "UNKNOWN %", "UNDECIDED", "wrong", "fit ms", "µs a point"),
    *(f"µs a point, {FEW} points with fit", "linprog µs", "× linprog", "× linprog with fit", "differ from linprog"),
    *("cvxpy µs", "× cvxpy", "product µs", "ms a proof", "proofs, not found"),
]


def cells(row: Row) -> list[str]:
    """One row of the whole table."""
    counts = row.counts or {}
    return [
        *(NAMES.get(row.name, row.name), row.answers, plain(row.log), plain(row.features), plain(row.points)),
        *(share(row, "UNKNOWN"), plain(counts.get("UNDECIDED")), plain(row.wrong)),
        *(digits(value) for value in (row.fit_ms, row.micro, row.few_micro, row.linprog_micro)),
        *(digits(times(row.linprog_micro, ours)) for ours in (row.micro, row.few_micro)),
        "–" if row.differ is None else f"{row.differ} of {row.linprog_points}",
        *(digits(value) for value in (row.cvxpy_micro, times(row.cvxpy_micro, row.micro), row.product_micro)),
        *(digits(row.proof_ms), f"{row.proofs}, {row.proofs_failed}" if row.proofs + row.proofs_failed else "–"),
    ]


def line(row: Row) -> str:
    """A row as it is printed while measuring."""
    return "; ".join(f"{head} {cell}" for head, cell in zip(HEADS, cells(row), strict=True) if cell != "–")


PROOF_HEADS = [
    *("data", "features", "log", "points", "UNKNOWN", "UNDECIDED", "fit s", "certify s", "proofs s", "proofs"),
    *("not found", "not reached", "ms a proof"),
]


def proof_cells(row: ProofRow) -> list[str]:
    """One row of the table of proofs."""
    unknown, undecided = row.counts["UNKNOWN"], row.counts["UNDECIDED"]
    unreached = row.points - undecided - row.proofs - row.proofs_failed
    return [
        *(NAMES[row.name], plain(row.features), plain(row.log), plain(row.points), plain(unknown), plain(undecided)),
        *(digits(value) for value in (row.fit_s, row.certify_s, row.proofs_s)),
        *(plain(row.proofs), plain(row.proofs_failed), plain(unreached), digits(row.proof_ms)),
    ]


def proof_line(row: ProofRow) -> str:
    """A row as it is printed while measuring."""
    return "; ".join(f"{head} {cell}" for head, cell in zip(PROOF_HEADS, proof_cells(row), strict=True))


def measured_on(machines: Iterable[dict[str, str]]) -> str:
    """Where rows were measured; they may be of several runs."""
    loads: dict[str, list[float]] = {}
    for each in machines:
        name = f"{each['cpu']}, {each['cores']} cores, Python {each['python']}, numpy {each['numpy']}"
        loads.setdefault(name, []).append(float(each["load"]))
    spans = (f"{name}, load {min(load):g} to {max(load):g}" for name, load in loads.items())
    return f"Measured on {'; '.join(spans)}." if loads else "Nothing was measured yet."


EXPLAINED = f"""All methods run in one process on the same points; times are processor time of one thread, for each point that was
settled. *µs a point*: `Knowledge.certify` on all points, the exact step included, the log read and asked about other points
before. *with fit*: reading the log and the first {FEW} points (or all, if there are fewer), nothing made before. *linprog*: two
programs a point (HiGHS), on the first points; it is not for l2, which is no linear program. Its ratios: linprog's time through
ours. *wrong*: claims that the model which gave the answers contradicts, by its exact labels. *ms a proof*: median of
`verdicts.proof(i)`, which checks what it returns, for certain points."""
DATA = """Logistic regressions on tables with columns in their own units and categories one-hot (breast_cancer: standardised).
A log's rows and the points asked about are different rows of the table. *labels*: the log has decisions only; *l1*, *linf*, *l2*:
every decision has its exact counterfactual under that distance, too."""


def page(real: list[Row], gaussian: list[Row], growth: dict[str, Any], proofs: list[ProofRow]) -> str:
    """All results."""
    machines = [row.machine for row in (*real, *gaussian)] + [row.machine for row in proofs]
    machines += [growth["machine"]] if growth else []
    limits = " or ".join(f"{limit:g}" for limit in sorted({row.limit for row in (*real, *gaussian)}))
    text = [
        "# Certified regions: time for a point",
        "",
        f"Written by `make bench-certify`. {measured_on(machines)}",
        "The machine was shared with other work. Rows may be of several runs.",
        "",
        EXPLAINED,
        f"*UNDECIDED*: what a call left after {limits or '–'} s; *no end*: it did not keep to that.",
        "*differ*: linprog has a tolerance and claims ties within it; undecided points are not compared. *cvxpy*: two problems a",
        "point with its default solver, for five points at most. *product*: one matrix-vector product over the points.",
        "",
        "## Real data",
        "",
        DATA,
        *([so_far(real, WHOLE)] if len(real) < WHOLE else []),
        "",
        *lines(HEADS, map(cells, real), 2),
        "",
        "## Gaussian data",
        "",
        "Labels of a random classifier; cells are features/labels.",
        "",
        *lines(HEADS, map(cells, gaussian), 2),
    ]
    if proofs:
        text += [
            "",
            "## A proof of every verdict",
            "",
            f"Logs of {PROVED_LOG:,} labels. Proofs of all verdicts, one after the other, for at most",
            f"{max(row.longest_s for row in proofs):g} s a table. *not found*: `proof` had none within the limit.",
            "",
            *lines(PROOF_HEADS, map(proof_cells, proofs)),
        ]
    return "\n".join([*text, *(_growth(growth["by"]) if growth else [])]) + "\n"


def _growth(by: dict[str, list[dict[str, float]]]) -> list[str]:
    """How Gaussian cells grow."""
    text = [
        "",
        "## Growth",
        "",
        "Gaussian data. Processor seconds, median of 3: *fit* reads the log, *ask* is the first call after it, without exact step.",
        "",
        "![processor seconds by features, labels and points](certify.svg)",
    ]
    for name, found in by.items():
        sizes = [[f"{cell[key]:,.0f}" for key in ("features", "labels", "points")] for cell in found]
        rates = [[short(v) for v in (cell["fit"], cell["ask"], cell["points"] / cell["ask"])] for cell in found]
        rows = [[*size, *rate] for size, rate in zip(sizes, rates, strict=True)]
        text += ["", f"By {name}:", ""]
        text += lines(["features", "labels", "points", "fit s", "ask s", "points /s"], rows, 0)
    return text


def in_docs(real: list[Row], gaussian: list[Row]) -> str:
    """What docs/regions.md says: a row for each table and kind of answers, its logs side by side."""
    columns: list[tuple[str, Callable[[Row], str]]] = [
        ("answers in the log", lambda row: plain(row.log)),
        ("UNKNOWN %", lambda row: share(row, "UNKNOWN")),
        ("µs a point", lambda row: digits(row.micro)),
        ("× linprog", lambda row: digits(times(row.linprog_micro, row.micro))),
        (f"µs a point, {FEW} points with fit", lambda row: digits(row.few_micro)),
        ("× linprog", lambda row: digits(times(row.linprog_micro, row.few_micro))),
        ("ms a proof", lambda row: digits(row.proof_ms)),
        ("UNDECIDED", lambda row: plain((row.counts or {}).get("UNDECIDED"))),
        ("wrong", lambda row: plain(row.wrong)),
    ]
    heads = [head for head, _ in columns]
    table = []
    for (name, answers), group in groupby(real, key=lambda row: (row.name, row.answers)):
        rows = list(group)
        table.append([f"{NAMES[name]}, {answers}", *(" / ".join(map(cell, rows)) for _, cell in columns)])
    text = [
        DATA,
        *([so_far(real, WHOLE)] if len(real) < WHOLE else []),
        "",
        *lines(["data", *heads], table),
        "",
        EXPLAINED,
    ]
    if gaussian:
        text += ["", "Gaussian data, for comparison; cells are features/labels:", ""]
        text += lines(["cell", *heads], ([row.name, *(cell(row) for _, cell in columns)] for row in gaussian))
    machines = measured_on(row.machine for row in (*real, *gaussian))
    return "\n".join([*text, "", f"{machines} [All figures](../benchmarks/results/certify.md)."])


def so_far(real: list[Row], whole: int) -> str:
    """How many of all cells were measured: those that are missing may be the slow ones."""
    return f"{len(real)} of {whole} cells were measured so far."


def in_readme(real: list[Row], whole: int = WHOLE) -> str:
    """What README.md says of real data; no range while cells are missing."""
    ended = [row for row in real if row.counts is not None and row.micro is not None]
    if len(real) < whole or not ended:
        return f"How long a verdict takes: [measured on real data](docs/regions.md#how-long-a-verdict-takes). {so_far(real, whole)}"
    names = ", ".join(dict.fromkeys(NAMES[row.name] for row in ended))
    micro = [row.micro for row in ended if row.micro is not None]
    ratios = [ratio for row in ended if (ratio := times(row.linprog_micro, row.micro)) is not None]
    points, false = sum(row.points for row in ended), sum(row.wrong or 0 for row in ended)
    left = sum((row.counts or {})["UNDECIDED"] for row in ended)
    beside = (
        f", and linear programs take {digits(min(ratios))} to {digits(max(ratios))} times as long" if ratios else ""
    )
    unended = f"; {len(real) - len(ended)} of {len(real)} logs came to no end" if len(real) > len(ended) else ""
    return "\n".join(
        [
            f"On {names} a verdict takes {digits(min(micro))} to {digits(max(micro))} µs of one core{beside}",
            f"([measured](docs/regions.md#how-long-a-verdict-takes)). Of {points:,} points {false} got a wrong verdict,",
            f"{left:,} none in the time allowed{unended}.",
        ]
    )
