"""`overexplain probe`: ask a live service until its model is known; every answer is saved as it comes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from overexplain.auditing.probing import Plan, Probed, predicted, probe
from overexplain.auditing.rebuilt import compare, in_order_of
from overexplain.cli.loading import load_yes_or_no
from overexplain.cli.logs import refuse_to_overwrite
from overexplain.cli.main import say
from overexplain.cli.output import print_json
from overexplain.errors import BudgetExhausted, InvalidInput
from overexplain.extraction.session import Progress
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.log.store.run import Run
from overexplain.models.linear import LinearModel
from overexplain.oracles.http.oracle import HttpOracle
from overexplain.oracles.http.pacing import read_rate
from overexplain.report.probed import print_plan, print_probed, progress_line
from overexplain.report.terminal import terminal
from overexplain.report.words import counted


@dataclass(frozen=True)
class Request:
    """What the command line asked for; a run that is resumed has its plan, and only limits may be given again."""

    endpoint: Path | None
    resume: Path | None
    budget: int | None
    authorized: bool
    rate: str | None
    accuracy: float | None
    strategy: str
    orient: bool
    confirm: bool
    seed: int
    run: Path | None
    model: Path | None
    output: Path | None
    dry_run: bool
    debug: bool
    as_json: bool


def run_probe(request: Request) -> None:
    """Make or open the run, ask what is not in it, print what was found; whatever stops it, the run is saved."""
    _check_names(request)
    truth = None if request.model is None else load_yes_or_no(request.model)
    refuse_to_overwrite(
        [path for path in (request.endpoint, request.model) if path is not None],
        [path for path in (request.run, request.output) if path is not None],
        "the endpoint, --run, --model and --output",
    )
    if request.resume is not None:
        _resume(request, request.resume, truth)
    else:
        _begin(request, truth)


def _check_names(request: Request) -> None:
    """Raise if something could not be saved where it is to be: answers cost requests, and are not asked for in vain."""
    if request.run is not None and request.run.suffix.lower() != ".sqlite":
        raise InvalidInput(f"{request.run}: a run is saved in a file whose name ends in .sqlite")
    if request.output is None:
        return
    if request.output.suffix.lower() != ".json":
        raise InvalidInput(
            f"{request.output}: a model is saved as coefficient JSON, in a file whose name ends in .json"
        )
    if not request.output.parent.is_dir():
        raise InvalidInput(f"{request.output}: there is no folder {request.output.parent}")


def _begin(request: Request, truth: LinearModel | None) -> None:
    assert request.endpoint is not None
    with HttpOracle.from_toml(request.endpoint, rate=read_rate(request.rate, "--rate")) as oracle:
        plan = Plan.of(
            oracle.settings.to_dict(),
            request.strategy,
            request.accuracy,
            request.orient,
            request.seed,
            int(request.confirm),
        )
        true_plane = None if truth is None else in_order_of(oracle.features, oracle.dimension, truth)
        if request.dry_run:
            _show_plan(request, oracle, plan, None)
            return
        if not (request.authorized or oracle.authorized):
            raise InvalidInput(
                f"{oracle.host} was not asked: state that its owner agreed, by --authorized or by authorized = true in "
                f"{request.endpoint} (docs/responsible-use.md)"
            )
        assert request.budget is not None
        path = request.run or Path(f"overexplain-run-{datetime.now():%Y%m%d-%H%M%S}.sqlite")
        with Run.create(
            path, plan=plan.to_dict(), dimension=oracle.dimension, features=oracle.features,
            mechanism=oracle.mechanism, budget=request.budget, idempotent=oracle.idempotent,
        ) as run:  # fmt: skip
            _ask(request, oracle, run, plan, path, true_plane)


def _resume(request: Request, path: Path, truth: LinearModel | None) -> None:
    with Run.read(path) if request.dry_run else Run.open(path) as run:
        plan = Plan.from_dict(run.plan)
        with HttpOracle.from_dict(plan.endpoint, rate=read_rate(request.rate, "--rate")) as oracle:
            if oracle.dimension != run.dimension or oracle.idempotent != run.idempotent:
                raise InvalidInput(f"{path}: the run and the endpoint in its plan do not fit together")
            true_plane = None if truth is None else in_order_of(run.features, run.dimension, truth)
            if request.dry_run:
                _show_plan(request, oracle, plan, run)
                return
            if not request.authorized:  # what the file says does not count: it may have been made by anyone
                raise InvalidInput(
                    f"{path}: nothing was sent. It would go to {oracle.destination}; state that the owner agreed, by "
                    "--authorized (docs/responsible-use.md)"
                )
            if request.budget is not None:
                run.allow(request.budget)
            if run.unanswered:
                verb = "sent again under their keys" if run.idempotent else "counted as spent, asked anew"
                say(f"note: {counted(len(run.unanswered), 'request')} of {path} had no answer: {verb}")
            _ask(request, oracle, run, plan, path, true_plane)


def _ask(request: Request, oracle: HttpOracle, run: Run, plan: Plan, path: Path, truth: Hyperplane | None) -> None:
    say(f"asking {oracle.destination}; at most {counted(run.left, 'more request')}; saved as it goes: {path}")
    if request.debug:
        oracle.on_event = lambda line: say(f"debug: {line}")
    try:
        with _live(run, enabled=not request.debug) as watch:
            probed = probe(oracle, run, plan, watch)
    except BaseException as end:
        more = " --budget N" if isinstance(end, BudgetExhausted) else ""
        say(
            f"run saved: {path} ({counted(run.answered, 'answer')}, {run.spent:,} of "
            f"{counted(run.budget, 'request')} spent); go on with: overexplain probe --resume {path} --authorized{more}"
        )
        raise
    _show(request, probed, run, path, truth)


def _show(request: Request, probed: Probed, run: Run, path: Path, truth: Hyperplane | None) -> None:
    found = probed.found
    rebuilt = None if truth is None else compare(found, truth, run.mechanism, found.log)
    if request.output is not None:
        LinearModel(found.hyperplane, run.features).save(request.output)
    if request.as_json:
        print_json({"run": str(path), **probed.to_dict(), "compared": None if rebuilt is None else rebuilt.to_dict()})
        return
    console = terminal()
    print_probed(probed, run.mechanism, console, run.features, rebuilt)
    console.print(f"run saved: {path}", soft_wrap=True)
    if request.output is not None:
        console.print(f"model saved: {request.output}", soft_wrap=True)


def _show_plan(request: Request, oracle: HttpOracle, plan: Plan, run: Run | None) -> None:
    prediction = predicted(oracle, plan)
    if request.as_json:
        print_json(
            {
                "endpoint": oracle.host,
                "way": prediction.way,
                "explanations": prediction.spent.explanations,
                "labels": prediction.spent.labels,
                "confirmation": prediction.spent.confirmation,
                "proved": prediction.proved,
                "budget": request.budget if run is None else request.budget or run.budget,
                "spent": 0 if run is None else run.spent,
                "sent": 0,
            }
        )
        return
    print_plan(prediction, oracle, request.budget, run, terminal())


@contextmanager
def _live(run: Run, enabled: bool) -> Iterator[Callable[[Progress], None]]:
    """A line on stderr that tells how far the work is, if anyone is looking; gives what `extract` tells it."""
    latest: list[Progress | None] = [None]

    def watch(progress: Progress) -> None:
        latest[0] = progress

    if not enabled or not sys.stderr.isatty():
        yield watch
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    def line() -> Text:
        return Text(progress_line(latest[0], run.spent, run.left, run.retries), no_wrap=True)

    with Live(console=Console(stderr=True), transient=True, get_renderable=line, refresh_per_second=4):
        yield watch
