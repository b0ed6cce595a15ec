"""What robust counterfactuals give away, and how fast, beside cvxpy and SCIP on the same points.

    python benchmarks/robust.py [--quick] [--only headline levels growth] [--results DIRECTORY]

Random linear models (seeded), labels and robust answers of theirs, half of the points anywhere, half near the plane. All methods
see the same points in one run; every claim is held against the model that gave the answers, and a sample of them against the
optima that cvxpy (the "shared" set, Clarabel) and SCIP (the strict problem) find. Results go to benchmarks/results/robust.*; a
quick run, which takes two minutes, only prints them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import signal
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from certify import machine, one_thread
from numpy.typing import NDArray
from quoting import short

import overexplain as ox

FloatArray = NDArray[np.float64]
Codes = NDArray[np.int8]
Extremes = Callable[[FloatArray], tuple[float, float]]
"""The least and the largest a·x − b, ‖a‖*_N1 = 1."""

ROOT = Path(__file__).parent
LEVELS = ("paper", "perspective", "shared", "exact")
PAIRS = ("l1/l2", "l1/linf", "linf/l1", "linf/l2", "l1/l1", "l1/lp:3", "l2/l1")
"""distance/robustness"""
MAIN = ("l1/l2", "linf/l2", "l1/linf")
POINTS = {2: 100, 5: 100, 10: 100, 20: 40, 50: 8, 100: 4, 200: 2}
"""features -> points asked about each log"""
FEW_LOGS = 100
"""From so many features on, one log a cell; three below, of 2, 3 and 4 robust answers."""
SCIP_FEATURES = 20
NEAR = 1e-6
"""Optima nearer to zero than this are not compared: solvers are not surer of their sign."""
STUCK = 30.0
"""Seconds by the clock after which a log is given up: reading it has no limit of its own."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    features: tuple[int, ...]
    logs: int
    sample: int
    """Points for cvxpy and SCIP in each cell."""
    beside: float
    """Seconds for SCIP in each cell, and for cvxpy."""
    limit: float
    """`time_limit` of a cell, in seconds by the clock."""
    pairs: tuple[str, ...]
    """Those of the growth tables."""
    answers: tuple[int, ...]
    """Robust answers of the headline's logs."""
    levels: tuple[str, ...]
    """Those of the headline."""
    most: int
    """Points of the growth table's last row."""
    headline: float
    """Seconds for one row of the headline."""
    repeats: int


FULL = Sizes(tuple(POINTS), 3, 20, 3.0, 5.0, MAIN, (3, 8), ("shared", "exact"), 10_000, 12.0, 3)
QUICK = Sizes((2, 10, 50), 1, 12, 0.7, 1.0, MAIN[:1], (3, 8), ("shared",), 1000, 12.0, 1)


@dataclass(frozen=True)
class Given:
    """A model, a log of its answers, and points to ask about."""

    plane: ox.Hyperplane
    log: ox.QueryLog
    points: FloatArray


@dataclass(frozen=True)
class Asked:
    """One log, asked once: processor seconds to read it and to answer, and the answers."""

    fit: float
    ask: float
    codes: Codes
    trouble: str = ""
    """Why there are no answers, or not all."""


@dataclass(frozen=True)
class Beside:
    """What other solvers say about a sample: seconds a point, and codes (None: too near to zero, or no answer)."""

    seconds: float
    codes: dict[int, int | None]


@dataclass(frozen=True)
class Compared:
    """Verdicts held against a solver's: YES and NO, UNKNOWN, those that it contradicts, and what only it calls certain.

    `silent`: points where it found no optimum, or one too near to zero.
    """

    certain: int = 0
    unknown: int = 0
    differ: int = 0
    missed: int = 0
    silent: int = 0


@dataclass(frozen=True)
class Cell:
    """One distance and robustness, number of features and level; medians over logs, counts over all of them."""

    pair: str
    features: int
    level: str
    logs: int
    points: int
    fit: float
    each: float
    """Processor seconds a point, without the fit."""
    counts: dict[str, int]
    wrong: int
    trouble: str
    cvxpy: float
    """Processor seconds a point."""
    by_cvxpy: Compared
    scip: float | None
    by_scip: Compared


@dataclass(frozen=True)
class Headline:
    """Many points at once, reading the log included, against cvxpy for each."""

    pair: str
    answers: int
    level: str
    points: int
    settled: int
    counts: dict[str, int]
    wrong: int
    fit: float
    ask: float
    runs: int
    trouble: str
    cvxpy: float
    by_cvxpy: Compared

    @property
    def each(self) -> float:
        """Seconds a point; where time was up, at least so many: those left would have taken more."""
        return (self.fit + self.ask) / self.points


# --- what is asked ----------------------------------------------------------------------------------------------------


def drawn(p: int, pair: str, answers: int, labels: int, count: int, seed: int = 0) -> Given:
    """A Gaussian model, Gaussian labels, robust answers with radii from 0.1 to 1; every second point is near the plane.

    One seed has one model for all norms, and fewer answers, labels or points are the first of more.
    """
    of_model, of_labels, of_answers, of_points = np.random.default_rng([p, seed]).spawn(4)
    normal = of_model.standard_normal(p)
    plane = ox.Hyperplane(normal, 0.3 * float(np.linalg.norm(normal)))
    log = ox.QueryLog()
    if labels:
        table = of_labels.standard_normal((labels, p))
        log.add_label(table, plane.labels(table))
    distance, robustness = pair.split("/")
    for _ in range(answers):
        radius, x = float(of_answers.uniform(0.1, 1.0)), of_answers.standard_normal(p)
        terms = ox.Mechanism(distance, robustness=robustness, radius=radius)
        answer = ox.ModelOracle(plane, terms).explain(x)
        log.add_explanation(x, answer, int(plane.label(x)), terms)
    points = 2 * of_points.standard_normal((count, p))
    near = np.arange(count) % 2 == 1
    points[near] -= 0.9 * np.outer(plane.margin(points[near]) / (normal @ normal), normal)
    return Given(plane, log, points)


class Stuck(Exception):
    """A cell took too long."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise Stuck after so many seconds by the clock.

    Not of processor time: while such a timer runs, Linux moves the processor clock, by which all is measured, in steps of 4 ms.
    """

    def stop(*_: object) -> None:
        raise Stuck

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def ask(given: Given, level: Any, limit: float) -> Asked:
    """Read the log and ask about all points at once, by one thread."""
    fit = float("nan")
    nothing = np.full(len(given.points), ox.Verdict.UNDECIDED, dtype=np.int8)
    begin = time.process_time()
    try:
        with at_most(STUCK):
            knowledge = ox.Knowledge(given.log, robust=level, time_limit=limit, threads=1)
            fit = time.process_time() - begin
            clock = time.perf_counter()
            codes = knowledge.certify(given.points).codes
            late = time.perf_counter() - clock >= limit
        return Asked(fit, time.process_time() - begin - fit, codes, "limit" if late else "")
    except Stuck:
        return Asked(fit, time.process_time() - begin, nothing, "stuck")
    except ox.OverexplainError as error:  # the logs are consistent: none of these is right
        return Asked(fit, time.process_time() - begin, nothing, type(error).__name__)


def wrong(given: Given, codes: Codes) -> int:
    """Claims that the model which gave the answers contradicts."""
    return int(np.count_nonzero(((codes == ox.YES) | (codes == ox.NO)) & (codes != given.plane.labels(given.points))))


def counted(codes: Codes) -> dict[str, int]:
    """How often each verdict was given."""
    return {verdict.name: int(np.count_nonzero(codes == verdict)) for verdict in ox.Verdict}


# --- beside -----------------------------------------------------------------------------------------------------------


def by_cvxpy(log: ox.QueryLog) -> Extremes:
    """The "shared" set as one parametrised problem, compiled once: a = base + spread·z by the steps, then z, b and s."""
    cp: Any = importlib.import_module("cvxpy")
    rows = [log[int(j)] for j in log.explained]
    p = rows[0].point.size
    sides = [-int(row.label or 0) for row in rows]
    steps = [side * (row.explanation - row.point) for side, row in zip(sides, rows, strict=True)]  # type: ignore[operator]
    assert rows[0].mechanism is not None
    distance, robustness = (rows[0].mechanism.distance.spec, rows[0].mechanism.robustness)  # type: ignore[union-attr]
    base, spread, most = np.zeros(p), np.eye(p), 1.0
    dual = {1.0: math.inf, math.inf: 1.0}.get(robustness.q) or robustness.q / (robustness.q - 1)  # type: ignore[union-attr]
    if distance == "l1":
        moved = np.max([np.abs(w) > 1e-9 * np.abs(w).sum() for w in steps], axis=0)
        base[moved] = np.sign(np.sum(steps, axis=0))[moved]
        spread, most = spread[:, ~moved], float(np.linalg.norm(np.ones(p), dual))
    elif distance == "linf":
        farthest = np.min([np.abs(w) >= (1 - 1e-9) * np.abs(w).max() for w in steps], axis=0)
        spread = (spread * np.sign(steps[0]))[:, farthest]
    else:
        base, spread = steps[0] / np.linalg.norm(steps[0]), spread[:, :0]
        most = float(np.linalg.norm(base, dual))
    z: Any = cp.Variable(max(spread.shape[1], 1))
    if not spread.shape[1]:
        spread = np.zeros((p, 1))
    b, s = cp.Variable(), cp.Variable()
    a = base + spread @ z
    rules: list[Any] = [cp.norm(a, dual) <= s, s <= most]
    rules += [z >= 0, cp.sum(z) == 1] if distance == "linf" else [z >= -1, z <= 1]
    known = log.labels != 0
    rules.append(cp.multiply(log.labels[known].astype(float), log.points[known] @ a - b) >= 0)
    for side, row in zip(sides, rows, strict=True):
        assert row.mechanism is not None
        rules.append(side * (row.explanation @ a - b) == row.mechanism.radius * s)
    along, sign = cp.Parameter(spread.shape[1]), cp.Parameter()
    problem: Any = cp.Problem(cp.Maximize(along @ z - sign * b), rules)
    assert problem.is_dcp(dpp=True)

    def extreme(x: FloatArray, sense: int) -> float:
        along.value, sign.value = sense * (x @ spread), sense
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                problem.solve(solver=cp.CLARABEL)
            except cp.SolverError:
                return math.nan
        return float(x @ base + sense * problem.value) if problem.status == cp.OPTIMAL else math.nan

    extreme(np.zeros(p), 1)  # compiles
    return lambda x: (extreme(x, -1), extreme(x, 1))


def by_scip(log: ox.QueryLog) -> Extremes:
    """The strict problem, s = ‖a‖* and all, to global optimality."""
    tests = str(ROOT.parent / "tests")
    if tests not in sys.path:
        sys.path.append(tests)
    strict = importlib.import_module("strict_scip")

    def extreme(x: FloatArray, sense: int) -> float:
        try:
            found = strict.strict_extreme(log, x, sense)
        except AssertionError:  # its time was up
            return math.nan
        except Exception as error:  # it gave up; SCIP has no exception of its own
            if "SCIP" not in str(error):
                raise
            return math.nan
        return math.nan if found is None else float(found.value)

    return lambda x: (extreme(x, -1), extreme(x, 1))


def answers_of(extremes: Extremes, given: Given, sample: list[int], seconds: float) -> Beside:
    """What the solver says about the sample, one point after the other until the time is up."""
    codes: dict[int, int | None] = {}
    begin = time.process_time()
    for i in sample:
        low, high = extremes(given.points[i])
        sure = abs(low) >= NEAR and abs(high) >= NEAR  # not so for NaN; min() would lose one
        codes[i] = (ox.YES if low > 0 else ox.NO if high < 0 else 0) if sure else None
        if time.process_time() - begin > seconds:
            break
    return Beside((time.process_time() - begin) / len(codes), codes)


def spread_over(codes: Codes, most: int) -> list[int]:
    """Points of every verdict in turn, so that rare ones are looked at, too."""
    kinds = [np.flatnonzero(codes == kind).tolist() for kind in (ox.YES, ox.NO, ox.Verdict.UNDECIDED, 0)]
    turns = [kind[turn] for turn in range(most) for kind in kinds if turn < len(kind)]
    return turns[:most]


def compare(codes: Codes, beside: Beside | None, weaker: bool = False) -> Compared:
    """`weaker`: the solver's set is larger than ours, so that it may leave open what we do not."""
    certain = unknown = differ = missed = silent = 0
    for i, other in beside.codes.items() if beside else ():
        code = int(codes[i])
        if other is None:
            silent += 1
            continue
        if code == ox.Verdict.BOUNDARY:
            continue
        if code == ox.Verdict.UNDECIDED:
            missed += other != 0
            continue
        certain, unknown = certain + (code != 0), unknown + (code == 0)
        differ += code != other and not (weaker and other == 0)
    return Compared(certain, unknown, differ, missed, silent)


# --- the three parts --------------------------------------------------------------------------------------------------


def measure(pair: str, p: int, sizes: Sizes) -> Iterator[Cell]:
    """All levels for one pair of norms and number of features."""
    logs = [3] if sizes.logs == 1 or p >= FEW_LOGS else [3, 2, 4][: sizes.logs]
    givens = [drawn(p, pair, answers, 2 * p, POINTS[p], seed) for seed, answers in enumerate(logs)]
    asked = {level: [ask(given, level, sizes.limit) for given in givens] for level in LEVELS}
    first = givens[0]
    sample = spread_over(asked["exact"][0].codes, min(sizes.sample, len(first.points)))
    cvxpy = answers_of(by_cvxpy(first.log), first, sample, sizes.beside)
    scip = None
    if p <= SCIP_FEATURES and not pair.startswith("l2"):
        scip = answers_of(by_scip(first.log), first, sample, sizes.beside)
    for level, found in asked.items():
        codes = found[0].codes
        yield Cell(
            pair, p, level, len(logs), sum(len(a.codes) for a in found),
            fit=statistics.median(a.fit for a in found),
            each=statistics.median(a.ask / len(a.codes) for a in found),
            counts=counted(np.concatenate([a.codes for a in found])),
            wrong=sum(wrong(given, a.codes) for given, a in zip(givens, found, strict=True)),
            trouble=", ".join(sorted({a.trouble for a in found if a.trouble})),
            cvxpy=cvxpy.seconds, by_cvxpy=compare(codes, cvxpy, weaker=level == "exact"),
            scip=scip.seconds if scip else None, by_scip=compare(codes, scip),
        )  # fmt: skip


def headline(pair: str, answers: int, level: str, sizes: Sizes, count: int = 10_000) -> Headline:
    """10,000 points at once, with 10 features and 20 labels; as often as time allows."""
    given = drawn(10, pair, answers, 20, count)
    runs: list[Asked] = []
    while len(runs) < sizes.repeats and sum(run.fit + run.ask for run in runs) < sizes.headline / 2:
        runs.append(ask(given, level, sizes.headline))
        if runs[-1].trouble:
            break
    codes = runs[-1].codes
    cvxpy = answers_of(by_cvxpy(given.log), given, spread_over(codes, 4 * sizes.sample), 2 * sizes.beside)
    return Headline(
        pair, answers, level, count, int(np.count_nonzero(codes != ox.Verdict.UNDECIDED)), counted(codes),
        wrong=wrong(given, codes),
        fit=statistics.median(run.fit for run in runs), ask=statistics.median(run.ask for run in runs),
        runs=len(runs), trouble=runs[-1].trouble,
        cvxpy=cvxpy.seconds, by_cvxpy=compare(codes, cvxpy, weaker=level == "exact"),
    )  # fmt: skip


def growth_sizes(most: int) -> dict[str, list[tuple[int, int, int, int]]]:
    """What grows -> (features, robust answers, labels, points)."""
    return {
        "answers": [(20, answers, 40, 40) for answers in (1, 2, 5, 10, 20)],
        "labels": [(10, 3, labels, 100) for labels in (0, 100, 1000, 10_000)],
        "points": [(10, 3, 20, count) for count in (10, 100, 1000, 10_000) if count <= most],
    }


def grow(sizes: Sizes) -> dict[str, list[dict[str, Any]]]:
    """Seconds to read the log and to ask, at the "shared" level."""
    tables: dict[str, list[dict[str, Any]]] = {}
    for grows, cells in growth_sizes(sizes.most).items():
        for pair in sizes.pairs:
            for p, answers, labels, count in cells:
                given = drawn(p, pair, answers, labels, count)
                runs = [ask(given, "shared", 2 * sizes.limit)]
                while len(runs) < sizes.repeats and sum(run.ask for run in runs) < sizes.limit and not runs[-1].trouble:
                    runs.append(ask(given, "shared", 2 * sizes.limit))
                fit, taken = (statistics.median(getattr(run, part) for run in runs) for part in ("fit", "ask"))
                row = {"pair": pair, "features": p, "answers": answers, "labels": labels, "points": count}
                row |= {"fit": fit, "ask": taken, "trouble": runs[-1].trouble, "counts": counted(runs[-1].codes)}
                print(grows, row, flush=True)
                tables.setdefault(grows, []).append(row)
    return tables


# --- the page ---------------------------------------------------------------------------------------------------------


def shares(counts: dict[str, int]) -> str:
    """Certain, unknown and undecided, in percent."""
    total = sum(counts.values())
    parts = (total - counts["UNKNOWN"] - counts["UNDECIDED"], counts["UNKNOWN"], counts["UNDECIDED"])
    return " / ".join(f"{100 * part / total:.0f}" for part in parts)


def table(head: str, rows: list[list[str]]) -> list[str]:
    """A Markdown table."""
    return [head, "|---|" + "--:|" * (head.count("|") - 2), *("| " + " | ".join(row) + " |" for row in rows)]


def compared(all_of: list[Compared]) -> list[str]:
    """(certain + unknown verdicts compared, contradicted)"""
    certain, unknown, differ = (sum(getattr(c, part) for c in all_of) for part in ("certain", "unknown", "differ"))
    return [f"{certain} + {unknown}", str(differ)]


def silences(cell: Cell) -> list[str]:
    """Solvers that did not answer all they were asked."""
    found = {"cvxpy": cell.by_cvxpy.silent, "SCIP": cell.by_scip.silent}
    return [f"{name}: {silent} silent" for name, silent in found.items() if silent]


def headline_table(rows: list[Headline]) -> list[str]:
    """The rows of the headline."""
    return table(
        "| norms | robust answers | level | certain / unknown / undecided % | fit ms | µs a point, fit included | "
        "cvxpy ms a point | × cvxpy | compared | differ | missed | wrong | runs |  |",
        [
            [
                r.pair, str(r.answers), r.level, shares(r.counts), short(1e3 * r.fit), short(1e6 * r.each),
                short(1e3 * r.cvxpy), ("at most " if r.trouble else "") + short(r.cvxpy / r.each),
                *compared([r.by_cvxpy]), str(r.by_cvxpy.missed), str(r.wrong), str(r.runs),
                f"{r.trouble}: {r.settled} settled" if r.trouble else "",
            ]
            for r in rows
        ],
    )  # fmt: skip


def levels_table(cells: list[Cell]) -> list[str]:
    """A row for each pair of norms and number of features, a column for each level."""
    head = (
        "| norms | features | fit ms | "
        + " | ".join(LEVELS)
        + " | cvxpy ms | SCIP ms | compared | differ | missed | wrong |  |"
    )
    rows = []
    for i in range(0, len(cells), len(LEVELS)):
        four = cells[i : i + len(LEVELS)]
        one = four[0]
        rows.append(
            [one.pair, str(one.features), short(1e3 * statistics.median(c.fit for c in four))]
            + [f"{short(1e3 * c.each)}: {shares(c.counts)}" for c in four]
            + [short(1e3 * v) if v else "–" for v in (one.cvxpy, one.scip)]
            + compared([c for cell in four for c in (cell.by_cvxpy, cell.by_scip)])
            + [str(sum(c.by_cvxpy.missed for c in four if c.level in ("shared", "exact")))]
            + [str(sum(c.wrong for c in four))]
            + ["; ".join([f"{c.level}: {c.trouble}" for c in four if c.trouble] + silences(one))]
        )
    return table(head, rows)


def growth_table(rows: list[dict[str, Any]]) -> list[str]:
    """What grows, in seconds."""
    keys = ("pair", "features", "answers", "labels", "points")
    return table(
        "| norms | features | robust answers | labels | points | fit ms | ms a point | "
        "certain / unknown / undecided % |  |",
        [
            [str(r[key]) for key in keys]
            + [short(1e3 * r["fit"]), short(1e3 * r["ask"] / r["points"]), shares(r["counts"]), r["trouble"]]
            for r in rows
        ],
    )


def page(lines: list[Headline], cells: list[Cell], growth: dict[str, list[dict[str, Any]]], sizes: Sizes) -> str:
    """The results in Markdown."""
    on = ", ".join(f"{key} {value}" for key, value in machine().items())
    text = [
        "# Robust counterfactuals: what they give away, and how fast",
        "",
        f"Written by `make bench-robust`. Measured on: {on}.",
        "The machine was shared with other work: all times are processor time of one thread. Random models, labels and robust",
        "answers of theirs with radii from 0.1 to 1; half of the points anywhere, half near the plane. *cvxpy*: the `shared` set",
        "as one parametrised problem, compiled before the clock starts, Clarabel, the largest and the least a·x − b of each",
        "point; *SCIP*: the same two optima of the strict problem. *compared*: our certain + unknown verdicts on a sample, each",
        f"held against either solver (optima within {NEAR:g} of zero left out); *differ*: those that one contradicts; *missed*:",
        "points of the sample that only cvxpy calls certain, levels `shared` and `exact`. *wrong*: claims, of all points, that",
        "the model which gave the answers contradicts. Last column: *limit*: the time limit was hit, and what was not",
        "settled by then counts as undecided; *stuck*: given up; *silent*: points where a solver found no optimum, or one too near",
        "to zero, and which are not compared; otherwise the error.",
        "",
        "## 10,000 points, 10 features, 20 labels",
        "",
        f"Median of at most {sizes.repeats}, {sizes.headline:g} s a run. Where that was too short, times are lower bounds.",
        "",
        *headline_table(lines),
        "",
        "## Levels",
        "",
        "2 labels a feature and 2, 3 and 4 robust answers (3 if there is only one log); in a level's column milliseconds a point",
        f"(median over logs, without the fit): percent certain / unknown / undecided. At most {sizes.limit:g} s a log and level.",
        f"Points asked about each log: {', '.join(f'{POINTS[p]} with {p} features' for p in sizes.features)}.",
        "",
        *levels_table(cells),
        "",
        "## Growth",
        "",
        f"Level `shared`, at most {2 * sizes.limit:g} s a run.",
        "",
        "![seconds a point by features, answers, labels and points](robust.svg)",
    ]
    for grows, rows in growth.items():
        text += ["", f"By {grows}:", "", *growth_table(rows)]
    return "\n".join(text) + "\n"


def draw(cells: list[Cell], growth: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Seconds a point by features (all pairs), and by answers, labels and points; both axes logarithmic, fits dotted."""
    from matplotlib.figure import Figure

    by_features = [
        {"pair": c.pair, "features": c.features, "points": 1, "fit": c.fit, "ask": c.each}
        for c in cells
        if c.level == "shared"
    ]
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    axes: Any = figure.subplots(1, 1 + len(growth), sharey=True)
    for panel, (grows, rows) in zip(axes, {"features": by_features, **growth}.items(), strict=True):
        for n, pair in enumerate(PAIRS):
            mine = [r for r in rows if r["pair"] == pair]
            if mine:
                sizes: list[Any] = [r[grows] for r in mine]
                panel.plot(sizes, [r["ask"] / r["points"] for r in mine], f"C{n}o-", label=pair, markersize=3)
                panel.plot(sizes, [r["fit"] for r in mine], f"C{n}:")
        panel.set_xscale("symlog" if grows == "labels" else "log", **({"linthresh": 10} if grows == "labels" else {}))
        panel.set_yscale("log")
        if grows in ("features", "answers"):  # about two decades: the sizes themselves are the ticks
            ticks = sorted({r[grows] for r in rows})
            panel.set_xticks(ticks, [str(tick) for tick in ticks])
            panel.minorticks_off()
        panel.set_xlabel("robust answers" if grows == "answers" else grows)
    axes[0].set_ylabel("processor seconds: a point —, fit ···")
    axes[0].legend(fontsize=6)
    figure.savefig(path, metadata={"Date": None})


def warm_up() -> None:
    """Have everything compiled that is compiled on first use."""
    for pair in PAIRS:
        for level in LEVELS:
            ask(drawn(3, pair, 2, 6, 4), level, 5.0)
    ask(drawn(3, "l1/l1", 1, 6, 20_000), "shared", 5.0)


def main() -> None:
    """Measure, print as it goes, write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two minutes: fewer sizes, no results written")
    parser.add_argument("--only", nargs="*", default=["headline", "levels", "growth"])
    parser.add_argument("--results", type=Path, help="where the results go")
    options = parser.parse_args()
    one_thread()
    sizes = QUICK if options.quick else FULL
    begin = time.perf_counter()
    warm_up()
    lines: list[Headline] = []
    cells: list[Cell] = []
    for pair in MAIN if "headline" in options.only else ():
        for answers in sizes.answers:
            for level in sizes.levels:
                lines.append(headline(pair, answers, level, sizes))
                print(headline_table(lines)[-1], flush=True)
    for pair in PAIRS if "levels" in options.only else ():
        for p in sizes.features:
            cells += measure(pair, p, sizes)
            print(levels_table(cells)[-1], flush=True)
    growth = grow(sizes) if "growth" in options.only else {}
    print(page(lines, cells, growth, sizes))
    print(f"{time.perf_counter() - begin:.0f} s by the clock, {time.process_time():.0f} s of the processor")
    results = options.results or (None if options.quick or len(options.only) < 3 else ROOT / "results")
    if results is not None:
        results.mkdir(parents=True, exist_ok=True)
        found = {"machine": machine(), "headline": [asdict(r) for r in lines], "cells": [asdict(c) for c in cells]}
        (results / "robust.json").write_text(json.dumps(found | {"growth": growth}, indent=1) + "\n", encoding="utf-8")
        (results / "robust.md").write_text(page(lines, cells, growth, sizes), encoding="utf-8")
        draw(cells, growth, results / "robust.svg")


if __name__ == "__main__":
    main()
