"""What imperfect services give away, beside the paper's recipe on the same service in the same run.

    python benchmarks/imperfect.py [--quick] [--live] [--results DIRECTORY]

The model is a logistic regression on breast_cancer (30 standardised features, half of the rows to train). Every service answers
for it; `extract` is asked for angles of 1e-1, 1e-3 and 1e-6 rad and told only what the service publishes. The paper's recipe is
told that answers are optimal. Agreement is that of the held-out rows, beside what a constant answer reaches, and never without the
angle. `--live` (in the virtual environment of `make test-dice`) adds dice-ml itself. Results go to benchmarks/results/imperfect.*;
a quick run only prints them.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from certify import machine
from numpy.typing import NDArray

import overexplain as ox
from overexplain.auditing.rebuilt import compare

FloatArray = NDArray[np.float64]
ROOT = Path(__file__).parent
TARGETS = (1e-1, 1e-3, 1e-6)
SEEDS = (1, 2, 3)
UNKNOWN = ox.Mechanism(None, slack=None)
MOST = 20_000
"""Requests after which a run is given up."""


@dataclass(frozen=True)
class World:
    """The model that services answer for, and the rows that nobody trained on."""

    plane: ox.Hyperplane
    train: FloatArray
    held_out: FloatArray
    features: tuple[str, ...]
    classifier: Any
    bounds: Any = None
    """Where questions stay: libraries that search for answers take forever far outside the data."""


@dataclass(frozen=True)
class Run:
    """Extractions with several seeds: the mean spent, the worst angle, bound and agreement; `failure` says why there is none."""

    target: float | None
    explanations: float = 0.0
    labels: float = 0.0
    angle: float | None = None
    bound: float | None = None
    agreement: float | None = None
    floor: float | None = None
    method: str = ""
    failure: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Row:
    """One service: ours at each target, and the paper's recipe."""

    service: str
    ours: list[Run]
    paper: Run
    remark: str = ""


def world(features: int = 30) -> World:
    """breast_cancer, standardised by its training half."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split

    data = load_breast_cancer()
    train, held_out, labels, _ = train_test_split(data.data[:, :features], data.target, test_size=0.5, random_state=0)
    middle, spread = train.mean(axis=0), train.std(axis=0)
    train, held_out = (train - middle) / spread, (held_out - middle) / spread
    model = LogisticRegression(max_iter=1000).fit(train, labels)
    plane = ox.Hyperplane.from_intercept(model.coef_[0], float(model.intercept_[0]))
    return World(plane, train, held_out, tuple(map(str, data.feature_names[:features])), model)


GROUPS = ((6, 7, 8), (9, 10, 11))


def world_of_groups() -> World:
    """breast_cancer again: six standardised features, and two more cut into terciles, one-hot."""
    from sklearn.linear_model import LogisticRegression

    whole = world(8)
    labels = whole.classifier.predict(whole.train)

    def encoded(rows: FloatArray) -> FloatArray:
        cuts = np.quantile(whole.train[:, 6:8], [1 / 3, 2 / 3], axis=0)
        levels = [np.searchsorted(cuts[:, k], rows[:, 6 + k]) for k in range(2)]
        return np.hstack([rows[:, :6], *(np.eye(3)[level] for level in levels)])

    train, held_out = encoded(whole.train), encoded(whole.held_out)
    model = LogisticRegression(max_iter=1000).fit(train, labels)
    plane = ox.Hyperplane.from_intercept(model.coef_[0], float(model.intercept_[0]))
    return World(plane, train, held_out, (), model)


Make = Callable[[World, int], Any]


def services(w: World) -> dict[str, tuple[Make, str]]:
    """Every service: how it is made, from a seed, and the distance the paper's recipe is told."""
    p = w.plane.dimension
    low, high = w.train.min(axis=0), w.train.max(axis=0)

    def exact(norm: str) -> ox.ModelOracle:
        return ox.ModelOracle(w.plane, ox.Mechanism(norm))

    def unknown(make: Callable[[ox.ModelOracle, int], Any], norm: str) -> Make:
        return lambda _, seed: make(exact(norm), seed)

    rows: dict[str, tuple[Make, str]] = {}
    for norm in ("l1", "l2", "linf"):
        rows[f"exact {norm}"] = (lambda _w, _s, n=norm: exact(n), norm)  # type: ignore[misc]
    for norm in ("l1", "l2"):
        rows |= {
            f"rounded, 2 decimals, {norm}": (unknown(lambda o, _: ox.Rounded(o, 2), norm), norm),
            f"float32 {norm}": (unknown(lambda o, _: ox.Float32(o), norm), norm),
            f"noisy 0.1 {norm}": (unknown(lambda o, s: ox.Noisy(o, 0.1, rng=s), norm), norm),
            f"suboptimal 30 % {norm}": (unknown(lambda o, s: ox.Suboptimal(o, 0.3, rng=s), norm), norm),
            f"overshoot 0.05 {norm}": (unknown(lambda o, _: ox.Overshoot(o, 0.05), norm), norm),
            f"overshoot U(0, 0.1) {norm}": (unknown(lambda o, s: ox.Overshoot(o, 0.1, "uniform", rng=s), norm), norm),
            f"random radius 0.5 {norm}": (unknown(lambda o, s: ox.RandomRadius(o, 0.5, rng=s), norm), norm),
            f"denied only {norm}": (unknown(lambda o, _: ox.OneSided(o), norm), norm),
            f"half immutable {norm}": (unknown(lambda o, _: ox.Immutable(o, range(p // 2)), norm), norm),
            f"half immutable, unsaid, {norm}": (
                unknown(lambda o, _: ox.Immutable(o, range(p // 2), published=UNKNOWN), norm),
                norm,
            ),
            f"rounded, 2 decimals, unsaid, {norm}": (
                unknown(lambda o, _: ox.Rounded(o, 2, published=UNKNOWN), norm),
                norm,
            ),
            f"overshoot 0.05, unsaid, {norm}": (
                unknown(lambda o, _: ox.Overshoot(o, 0.05, published=UNKNOWN), norm),
                norm,
            ),
            f"suboptimal 30 %, unsaid, {norm}": (
                unknown(lambda o, s: ox.Suboptimal(o, 0.3, rng=s, published=UNKNOWN), norm),
                norm,
            ),
            f"box of the data {norm}": (unknown(lambda o, _: ox.Boxed(o, low, high), norm), norm),
        }
        rows[f"only increases {norm}"] = (unknown(lambda o, _: ox.Monotone(o), norm), norm)
        rows[f"3 features at most {norm}"] = (unknown(lambda o, _: ox.Sparse(o, 3), norm), norm)
    rows["nearest row l2"] = (unknown(lambda o, _: ox.NearestRow(o, w.train), "l2"), "l2")
    rows["distance switched"] = (
        unknown(lambda o, s: ox.SwitchingNorm(o, ["l1", "l2", "linf"], rng=s), "l2"), "l2")  # fmt: skip
    for failure in ("none", "empty", "nan", "echo", "raise", "no flip"):

        def flaky(oracle: ox.ModelOracle, seed: int, how: Any = failure) -> Any:
            service = ox.Flaky(oracle, 0.2, how, rng=seed)
            # An exception is "no answer" for the adapter, as it would be for a library's.
            return ox.CallableOracle(service.explain, service.classify, dimension=p, mechanism=service.mechanism)

        rows[f"fails 1 in 5 ({failure}) l1"] = (unknown(flaky, "l1"), "l1")
    documented = {"solver": "l1", "solver-linf float32": "linf", "adam-l1": "l1", "mip-recourse": "l1"}
    for name in ox.IMITATIONS:
        make = partial(imitated, name)
        rows[f"like {name}"] = (make, documented.get(name, "l2"))
    rows["labels only"] = (lambda *_: ox.LabelsOnly(exact("l2")), "l2")
    return rows


def imitated(name: str, w: World, seed: int) -> Any:
    """A service as people run it, for this model."""
    return ox.imitate(name, w.plane, w.train, rng=seed)


def one_hot(w: World, _: int) -> Any:
    """The exact service of a model with one-hot groups: its answers are valid inputs, and it takes no others."""
    return ox.OneHot(ox.ModelOracle(w.plane, ox.Mechanism("l1")), groups=GROUPS)


def run(make: Make, w: World, target: float | None, seeds: tuple[int, ...], told: str | None = None) -> Run:
    """One extraction for every seed and how good they are; `told`: the paper's recipe, under this distance."""
    began, spent, angles, bounds, same, failures = time.perf_counter(), [], [], [], [], []
    method = ""
    for seed in seeds:
        service = make(w, seed)
        options: dict[str, Any] = {"accuracy": target, "bounds": w.bounds}
        if told is not None:
            service, options = ox.Published(service, ox.Mechanism(told)), {"strategy": "paper"}
        try:
            found = ox.extract(service, budget=MOST, rng=seed, **options)
        except ox.OverexplainError as error:
            failures.append(f"{type(error).__name__}: {str(error)[:120]}")
            continue
        rebuilt = compare(found, w.plane, None, None, w.held_out)
        assert rebuilt.agreement is not None
        spent.append((found.spent.explanations, found.spent.labels))
        angles.append(rebuilt.angle_error)
        bounds.append(found.error_bound)
        same.append(rebuilt.agreement)
        method = found.method
    seconds = time.perf_counter() - began
    if failures:
        return Run(target, failure=f"{len(failures)} of {len(seeds)}: {failures[0]}", seconds=seconds)
    explanations, labels = np.mean(spent, axis=0)
    bound = max((bound for bound in bounds if bound is not None), default=None) if None not in bounds else None
    worst = min(same, key=lambda agreed: agreed.share)
    return Run(
        target, float(explanations), float(labels), max(angles), bound, worst.share, worst.floor, method, "", seconds
    )


def measure(
    name: str, make: Make, norm: str, w: World, targets: tuple[float, ...], seeds: tuple[int, ...] = SEEDS
) -> Row:
    """The service at every target; a new one each time, so that none profits from another's luck."""
    ours = [run(make, w, target, seeds) for target in targets]
    if not hasattr(make(w, 1), "explain"):
        return Row(name, ours, Run(None, failure="needs explanations"))
    return Row(name, ours, run(make, w, None, seeds, norm))


def live(w: World) -> dict[str, tuple[Make, str]]:
    """dice-ml itself, on eight features."""
    import dice_ml
    import pandas as pd

    # Two decimals: dice-ml makes answers sparse in steps of the data's last digit.
    frame = pd.DataFrame(w.train.round(2), columns=list(w.features))
    frame["label"] = w.classifier.predict(w.train)
    data = dice_ml.Data(dataframe=frame, continuous_features=list(w.features), outcome_name="label")
    model = dice_ml.Model(model=w.classifier, backend="sklearn")

    def made(method: str) -> Make:
        def make(_: World, seed: int) -> Any:
            explainer = dice_ml.Dice(data, model, method=method)
            labels = lambda frame: w.classifier.predict(frame.to_numpy())  # noqa: E731
            return ox.DiceOracle(explainer, features=w.features, predict=labels, rng=seed)

        return make

    return {f"dice-ml {method}": (made(method), "l2") for method in ("random", "genetic", "kdtree")}


def spent(run: Run) -> str:
    """'34 + 1' explanations and labels, or why there are none."""
    if run.failure:
        return f"– ({run.failure.split(': ')[0 if ': ' not in run.failure else 1]})"
    return f"{run.explanations:.0f} + {run.labels:.0f}"


def reached(run: Run) -> str:
    """The angle, and the agreement beside what a constant answer reaches."""
    if run.angle is None or run.agreement is None or run.floor is None:
        return "–"
    return f"{run.angle:.0e}, {100 * run.agreement:.1f} % ({100 * run.floor:.0f} %)"


def verdict(row: Row) -> str:
    """Whether ours beats the recipe, or why nobody can."""
    best = row.ours[-1]
    if best.angle is None or best.agreement is None:
        return f"**ours fails**: {best.failure}"
    if row.paper.angle is None or row.paper.agreement is None:
        return "the recipe gives nothing"
    if best.angle > max(row.paper.angle, TARGETS[-1]):
        return "**the recipe is closer**"
    if best.angle < row.paper.angle / 10:
        return "closer"
    if best.agreement > row.paper.agreement:
        return "as close, and agrees more often: the recipe misses the offset"
    fewer = row.paper.explanations + row.paper.labels - best.explanations - best.labels
    return (
        f"as close, with {fewer:.0f} fewer requests"
        if fewer > 0
        else "as close, and proved"
        if fewer < 0
        else "the same"
    )


def page(rows: list[Row], w: World) -> str:
    """The results as a page."""
    head = [
        "service",
        *(f"to {t:.0e}" for t in TARGETS),
        "reached (constant)",
        "bound",
        "paper's recipe",
        "its angle, agreement",
        "",
    ]
    lines = [
        "# Imperfect services",
        "",
        "Written by `make bench-imperfect`. Logistic regression on breast_cancer, "
        f"{w.plane.dimension} standardised features; {len(w.held_out)} held-out rows. "
        f"Mean of {len(SEEDS)} seeds (dice-ml, which has 8 of the features: one), worst angle and agreement. "
        "*to 1e-3*: explanations + labels that "
        "`extract(service, accuracy=1e-3)` spent, diagnosis included. *reached*: true angle in radians and agreement on the "
        "held-out rows in the last of these columns, in brackets what a constant answer reaches. *bound*: the bound given with it. "
        "The paper's recipe is told that answers are optimal under the distance that the service documents (l2 if there is none). "
        "*unsaid*: the service publishes nothing but that labels flip.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]
    for row in rows:
        last = row.ours[-1]
        bound = "–" if last.bound is None else f"{last.bound:.0e}"
        cells = [
            row.service,
            *map(spent, row.ours),
            reached(last),
            bound,
            spent(row.paper),
            reached(row.paper),
            verdict(row),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    remarks = [f"- {row.service}: {row.remark}" for row in rows if row.remark]
    return "\n".join(
        [
            *lines,
            *([""] if remarks else []),
            *remarks,
            "",
            "Measured with: " + ", ".join(f"{name} {value}" for name, value in machine().items()) + ".",
            "",
        ]
    )


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one target, results only printed")
    parser.add_argument("--live", action="store_true", help="dice-ml itself, added to the results that are there")
    parser.add_argument("--only", nargs="*", default=None, help="services whose name holds one of these words")
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    options = parser.parse_args()
    w = world(8) if options.live else world()
    if options.live:
        w = replace(w, bounds=(w.train.min(axis=0), w.train.max(axis=0)))
    chosen = live(w) if options.live else services(w)
    targets = TARGETS[1:2] if options.quick else TARGETS
    rows = []
    in_worlds = [(name, make, norm, w) for name, (make, norm) in chosen.items()]
    if not options.live:
        in_worlds.append(("one-hot groups l1", one_hot, "l1", world_of_groups()))
    for name, make, norm, its_world in in_worlds:
        if options.only is None or any(word in name for word in options.only):
            rows.append(measure(name, make, norm, its_world, targets, SEEDS[:1] if options.live else SEEDS))
            row = rows[-1]
            print(f"{name:32} {' | '.join(map(spent, row.ours))} | {reached(row.ours[-1])} || {spent(row.paper)} "
                  f"{reached(row.paper)} {row.ours[-1].method[:50]} {row.ours[-1].failure[:80]}", flush=True)  # fmt: skip
    if options.quick or options.only is not None:
        return
    path = options.results / "imperfect.json"
    # Each half of the page keeps what the other has measured: dice-ml lives in an environment of its own.
    before = [
        row
        for row in (json.loads(path.read_text())["rows"] if path.exists() else [])
        if row["service"].startswith("dice-ml") != options.live
    ]
    names = {row.service for row in rows}
    kept = [Row(r["service"], [Run(**run) for run in r["ours"]], Run(**r["paper"]), r["remark"]) for r in before]
    kept = [row for row in kept if row.service not in names]
    rows = kept + rows if options.live else rows + kept
    path.write_text(json.dumps({"machine": machine(), "rows": [asdict(row) for row in rows]}, indent=1) + "\n")
    (options.results / "imperfect.md").write_text(page(rows, world()))


if __name__ == "__main__":
    main()
