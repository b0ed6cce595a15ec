"""The commands and their options. Parsing one gives the work to do; doing it, and what can go wrong, is not Typer's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from overexplain.cli.options import SECRET, read_radius, read_ranges, read_size, read_slack

Work = Callable[[], None]

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,  # plain help: fast, and the same in a pipe
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)

_USAGE_ERROR: Any = typer.BadParameter.__mro__[1]  # the base of all usage errors, in whichever module typer keeps it

Seed = Annotated[int, Option(min=0, max=2**32 - 1, help="Makes the output reproducible.")]
AsJson = Annotated[bool, Option("--json", help="Print one JSON object and nothing else.")]
LogFile = Annotated[Path, typer.Argument(metavar="LOG.jsonl", help="What a service was asked, and what it said.")]
Distance = Annotated[
    str | None, Option(metavar="NORM", help="What explanations minimise, where the log does not say: l1, l2, ...")
]
Tolerance = Annotated[float | None, Option(help="With --distance: how far off explanations may be.")]
Slack = Annotated[
    Any, Option(parser=read_slack, metavar="S|any", help="With --distance: too long by a factor up to 1 + S.")
]
Robustness = Annotated[str | None, Option(metavar="NORM", help="With --distance: the ball around robust explanations.")]
Radius = Annotated[
    Any, Option(parser=read_radius, metavar="R|secret", help="With --distance: the radius of that ball.")
]
TimeLimit = Annotated[float | None, Option(min=0, metavar="SECONDS", help="Then leave the rest undecided.")]


ServiceDistance = Annotated[
    str | None, Option(metavar="NORM", help="What the service minimises: l1, l2, linf, or lp:1.5 etc.")
]
ServiceBall = Annotated[str | None, Option(metavar="NORM", help="Robust service: the ball around an answer.")]
ServiceRadius = Annotated[float | None, Option(help="Robust service: the radius of that ball.")]
Imitate = Annotated[
    str | None, Option(metavar="NAME", help="A service as people run it: solver, wachter, nice, ... (with --data).")
]
Degrade = Annotated[
    list[str] | None,
    Option(
        metavar="SPEC", help="What is wrong with it: rounded:2, noisy:0.1, one-sided, ... Several are applied in turn."
    ),
]
Data = Annotated[
    Path | None, Option(metavar="ROWS", help="A .csv, .jsonl or .parquet file with rows, by feature name.")
]


class WrongUsage(Exception):
    """The command line cannot be understood; the message says what is wrong and where to look."""


class Strategy(StrEnum):
    """How to rebuild the model."""

    auto = "auto"
    cone = "cone"
    points = "points"
    paper = "paper"
    revealed = "revealed"
    approach = "approach"
    chain = "chain"
    warm = "warm"
    average = "average"
    labels = "labels"
    labels_anchor = "labels-anchor"
    labels_lift = "labels-lift"
    labels_far = "labels-far"
    lowd_meek = "lowd-meek"


class Ties(StrEnum):
    """Which of several equally near explanations the service gives."""

    first = "first"
    random = "random"


class Level(StrEnum):
    """How much of what robust explanations say is used, from little to all."""

    paper = "paper"
    perspective = "perspective"
    shared = "shared"
    exact = "exact"


Robust = Annotated[
    Level,
    Option(help="How much of robust explanations is used. exact: all, which leaves the fewest points undecided."),
]


def parse(arguments: Sequence[str]) -> Work:
    """What the command line asks for, as something to call; raises WrongUsage."""
    try:
        work = app(args=list(arguments), prog_name="overexplain", standalone_mode=False)
    except SystemExit:  # Typer's word for a pipe that nobody reads any more
        raise BrokenPipeError from None
    except _USAGE_ERROR as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "overexplain"
        raise WrongUsage(f"{error.format_message().rstrip('.')}; see {command} --help") from None
    if work == 130:  # Typer's word for Ctrl-C while it parses
        raise KeyboardInterrupt
    return work if callable(work) else lambda: None  # --help and --version have nothing left to do


@app.callback(invoke_without_command=True)
def overexplain(
    context: typer.Context,
    version: Annotated[bool, Option("--version", help="Print the version and leave.")] = False,
) -> None:
    """How much of a linear model do its explanations give away?"""
    if version:
        from overexplain.cli.output import version as installed

        typer.echo(f"overexplain {installed()}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def demo(seed: Seed = 0, as_json: AsJson = False) -> Work:
    """Rebuild an example model from explanations alone.

    Trains it on data that ships with scikit-learn and tries one kind of service after another. Works offline, takes a
    few seconds, writes no file.
    """

    def work() -> None:
        from overexplain.cli.demo import run_demo

        run_demo(seed, as_json)

    return work


@app.command()
def extract(
    model: Annotated[Path, typer.Argument(metavar="MODEL.json", help="A coefficient file.")],
    distance: ServiceDistance = None,
    robustness: ServiceBall = None,
    radius: ServiceRadius = None,
    secret_radius: Annotated[bool, Option("--secret-radius", help="The service hides its radius.")] = False,
    labels_only: Annotated[
        bool, Option("--labels-only", help="The service gives labels and explains nothing.")
    ] = False,
    imitate: Imitate = None,
    degrade: Degrade = None,
    unsaid: Annotated[bool, Option("--unsaid", help="The service publishes none of its terms.")] = False,
    data: Data = None,
    strategy: Annotated[
        Strategy,
        Option(
            metavar="NAME", help="auto: the fewest answers; paper: as published; or cone, points, labels, chain, ..."
        ),
    ] = Strategy.auto,
    ties: Annotated[Ties, Option(help="Which of several equally near explanations is given.")] = Ties.first,
    budget: Annotated[int | None, Option(min=0, help="Send at most so many questions.")] = None,
    accuracy: Annotated[
        float | None, Option(help="Wanted: of the coefficients (1e-9); of the angle if answers are not exact (1e-6).")
    ] = None,
    orient: Annotated[bool, Option("--orient/--no-orient", help="Ask one label, to tell Yes from No.")] = True,
    seed: Seed = 0,
    log: Annotated[
        Path | None, Option(metavar="RUN.jsonl", help="Save all answers here, also if the run fails.")
    ] = None,
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="FOUND.json", help="Save the rebuilt model here.")
    ] = None,
    as_json: AsJson = False,
) -> Work:
    """Rebuild a model of yours from what a service would answer.

    The service is simulated: it explains the model as you say, exactly unless you degrade it. The rebuilt model is held
    against the original; with --data, so are its decisions about those rows.
    """
    if secret_radius and radius is None:
        raise WrongUsage("--secret-radius needs --radius: the service must have one to keep secret")
    _refuse_odd_service(distance, robustness, radius, imitate)
    if labels_only and (distance is not None or imitate is not None or degrade or unsaid):
        raise WrongUsage("--labels-only explains nothing: leave out --distance, --imitate, --degrade and --unsaid")
    if distance is None and imitate is None and not labels_only:
        raise WrongUsage("say what the service does: --distance l1, --imitate NAME, or --labels-only")

    def work() -> None:
        from overexplain.cli.extract import Request, run_extract
        from overexplain.cli.services import described

        service = described(distance, robustness, radius, secret_radius, imitate, tuple(degrade or ()))
        request = Request(
            model, service, data, labels_only, unsaid, strategy.value, ties.value,
            budget, accuracy, orient, seed, log, output, as_json,
        )  # fmt: skip
        run_extract(request)

    return work


def _refuse_odd_service(
    distance: str | None, robustness: str | None, radius: float | None, imitate: str | None
) -> None:
    if imitate is not None and (distance is not None or robustness is not None):
        raise WrongUsage("--imitate brings its own distance; leave out --distance, --robustness and --radius")
    if (radius is None) != (robustness is None):
        raise WrongUsage("--radius and --robustness belong together, e.g. --robustness l2 --radius 0.1")


@app.command()
def diagnose(
    model: Annotated[Path, typer.Argument(metavar="MODEL.json", help="A coefficient file.")],
    distance: ServiceDistance = None,
    robustness: ServiceBall = None,
    radius: ServiceRadius = None,
    imitate: Imitate = None,
    degrade: Degrade = None,
    data: Data = None,
    questions: Annotated[int, Option("--questions", "-n", min=4, help="Ask for at most so many explanations.")] = 20,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> Work:
    """Say how a service behaves, and what that means.

    Asks a service for a few explanations: the model's own, simulated, exact unless you say otherwise. Finds out its
    distance, rounding, margins, bounds and habits, and predicts how many answers give the model away.
    """
    _refuse_odd_service(distance, robustness, radius, imitate)

    def work() -> None:
        from overexplain.cli.diagnose import Request, run_diagnose
        from overexplain.cli.services import described

        service = described(distance, robustness, radius, False, imitate, tuple(degrade or ()))
        run_diagnose(Request(model, service, data, questions, seed, as_json))

    return work


@app.command()
def certify(
    log: LogFile,
    points: Annotated[Path, typer.Argument(metavar="POINTS", help="A .csv, .jsonl or .parquet file, by feature name.")],
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="VERDICTS.csv", help="Save the verdict on every point here.")
    ] = None,
    proofs: Annotated[Path | None, Option(metavar="PROOFS.jsonl", help="Save a proof of every verdict here.")] = None,
    distance: Distance = None,
    robustness: Robustness = None,
    radius: Radius = None,
    tolerance: Tolerance = None,
    slack: Slack = "0",
    robust: Robust = Level.shared,
    time_limit: TimeLimit = None,
    as_json: AsJson = False,
) -> Work:
    """Say which decisions a log already determines.

    A point is YES or NO if every linear model that fits the log says so, UNKNOWN if two of them disagree. The model
    itself is not needed. Proofs can be checked by: overexplain verify.
    """
    _refuse_lonely_terms(distance, tolerance, slack, robustness, radius)

    def work() -> None:
        from overexplain.cli.certify import Request, run_certify
        from overexplain.cli.terms import Terms

        terms = Terms(distance, tolerance, slack, robustness, radius)
        run_certify(Request(log, points, output, proofs, terms, robust.value, time_limit, as_json))

    return work


@app.command(name="map")
def draw_map(
    log: LogFile,
    features: Annotated[
        str | None, Option(metavar="ACROSS,UP", help="The two features to vary, by name or number (from 0).")
    ] = None,
    at: Annotated[
        Path | None, Option(metavar="POINT.json", help="Hold the others here, not at the log's medians.")
    ] = None,
    size: Annotated[
        Any, Option(parser=read_size, metavar="COLSxROWS", help="How fine (61x31; pictures 121x121).")
    ] = None,
    ranges: Annotated[
        Any,
        Option("--range", parser=read_ranges, metavar="LOW:HIGH,LOW:HIGH", help="From where to where, across and up."),
    ] = None,
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="MAP.svg|MAP.png", help="Draw a picture instead of letters.")
    ] = None,
    distance: Distance = None,
    robustness: Robustness = None,
    radius: Radius = None,
    tolerance: Tolerance = None,
    slack: Slack = "0",
    robust: Robust = Level.shared,
    time_limit: TimeLimit = None,
    as_json: AsJson = False,
) -> Work:
    """Draw what a log gives away, in the plane of two features.

    Where every model that fits the log says Yes, where every one says No, and where it is still open. All other
    features are held.
    """
    _refuse_lonely_terms(distance, tolerance, slack, robustness, radius)

    def work() -> None:
        from overexplain.cli.map import Request, run_map
        from overexplain.cli.terms import Terms

        terms = Terms(distance, tolerance, slack, robustness, radius)
        run_map(Request(log, features, at, size, ranges, output, terms, robust.value, time_limit, as_json))

    return work


@app.command()
def verify(
    proofs: Annotated[Path, typer.Argument(metavar="PROOFS.jsonl", help="One proof a line, as certify writes them.")],
    log: LogFile,
    verdicts: Annotated[
        Path | None, Option(metavar="VERDICTS.csv", help="Every verdict in this file must have its proof.")
    ] = None,
    points: Annotated[
        Path | None, Option(metavar="POINTS", help="Every proof must be about the point in its row here.")
    ] = None,
    distance: Distance = None,
    robustness: Robustness = None,
    radius: Radius = None,
    tolerance: Tolerance = None,
    slack: Slack = "0",
    assume_tolerance: Annotated[
        float | None, Option(min=0, metavar="T", help="Accept proofs that put this in place of the log's tolerances.")
    ] = None,
    as_json: AsJson = False,
) -> Work:
    """Check proofs against a log, in exact arithmetic.

    Neither the model nor the program that found the proofs is needed: only the log, and fractions. Ends with exit code
    7 if a proof is wrong or missing.
    """
    _refuse_lonely_terms(distance, tolerance, slack, robustness, radius)

    def work() -> None:
        from overexplain.cli.terms import Terms
        from overexplain.cli.verify import Request, run_verify

        terms = Terms(distance, tolerance, slack, robustness, radius)
        run_verify(Request(proofs, log, verdicts, points, terms, assume_tolerance, as_json))

    return work


def _refuse_lonely_terms(
    distance: str | None,
    tolerance: float | None,
    slack: float | None,
    robustness: str | None,
    radius: float | str | None,
) -> None:
    if distance is None and (tolerance is not None or slack):
        raise WrongUsage("--tolerance and --slack need --distance, e.g. --distance l1 (only --slack any does not)")
    if distance is None and slack is not None and (robustness is not None or radius is not None):
        raise WrongUsage("--robustness and --radius need --distance, e.g. --distance l1 --robustness l2 --radius 0.1")
    if (robustness is not None and radius is None) or (robustness is None and radius not in (None, 0.0, SECRET)):
        raise WrongUsage("--robustness and --radius belong together, e.g. --robustness l2 --radius 0.1 (or secret)")
