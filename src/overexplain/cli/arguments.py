"""The arguments and options that commands share, and what a command is; kept free of heavy imports, for --help."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from overexplain.cli.options import SECRET, read_radius, read_slack

Work = Callable[[], int | None]
"""What a command line asks for; it gives back the exit code, if that is not 0."""

Seed = Annotated[int, Option("--seed", min=0, max=2**32 - 1, help="Makes the output reproducible.")]
AsJson = Annotated[bool, Option("--json", help="Print one JSON object and nothing else.")]
FORMATS = ".jsonl, .csv, .parquet, .json (DiCE) or .sqlite (a run)"
LogFile = Annotated[Path, typer.Argument(metavar="LOG", help=f"What a service was asked, and what it said: {FORMATS}.")]
Mapped = Annotated[
    list[str] | None,
    Option(
        "--map",
        metavar="NAME=COLUMN,...",
        help="Which column is what: x=age+income,y=decision,client=who,... Explanations: cf=why_ (what their names begin "
        "with), cf=why_age+why_income (one a feature), or one column of lists.",
    ),
]
Distance = Annotated[
    str | None,
    Option("--distance", metavar="NORM", help="What explanations minimise, where the log does not say: l1, l2, ..."),
]
Tolerance = Annotated[float | None, Option("--tolerance", help="With --distance: how far off explanations may be.")]
Slack = Annotated[
    Any,
    Option("--slack", parser=read_slack, metavar="S|any", help="With --distance: too long by a factor up to 1 + S."),
]
Robustness = Annotated[
    str | None, Option("--robustness", metavar="NORM", help="With --distance: the ball around robust explanations.")
]
Radius = Annotated[
    Any, Option("--radius", parser=read_radius, metavar="R|secret", help="With --distance: the radius of that ball.")
]
TimeLimit = Annotated[
    float | None, Option("--time-limit", min=0, metavar="SECONDS", help="Then leave the rest undecided.")
]


ServiceDistance = Annotated[
    str | None, Option("--distance", metavar="NORM", help="What the service minimises: l1, l2, linf, or lp:1.5 etc.")
]
ServiceBall = Annotated[
    str | None, Option("--robustness", metavar="NORM", help="Robust service: the ball around an answer.")
]
ServiceRadius = Annotated[float | None, Option("--radius", help="Robust service: the radius of that ball.")]
Imitate = Annotated[
    str | None,
    Option("--imitate", metavar="NAME", help="A service as people run it: solver, wachter, nice, ... (with --data)."),
]
Degrade = Annotated[
    list[str] | None,
    Option(
        "--degrade",
        metavar="SPEC",
        help="What is wrong with it: rounded:2, noisy:0.1, one-sided, ... Several are applied in turn.",
    ),
]
Data = Annotated[
    Path | None, Option("--data", metavar="ROWS", help="A .csv, .jsonl or .parquet file with rows, by feature name.")
]


AnyModel = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A coefficient file (.json, .csv), or a .skops or .onnx file.")
]
Threshold = Annotated[
    float | None, Option("--threshold", metavar="P", help="Yes from this probability on, not from the model's own.")
]
AllowPickle = Annotated[
    bool, Option("--allow-pickle", help="Read pickles, too: opening one may run whatever code is in it.")
]
Workers = Annotated[
    int | None, Option("--workers", min=1, metavar="N", help="Share a data set out to N processes (Dask).")
]
Scheduler = Annotated[
    str | None,
    Option("--scheduler", metavar="tcp://HOST:PORT", help="Share it out to the workers of this Dask scheduler."),
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
    Option(
        "--robust",
        help="How much of robust explanations is used. exact: all, which leaves the fewest points undecided.",
    ),
]


def refuse_lonely_terms(
    distance: str | None,
    tolerance: float | None,
    slack: float | None,
    robustness: str | None,
    radius: float | str | None,
) -> None:
    """Raise WrongUsage where a term stands without the one that it belongs to."""
    if distance is None and (tolerance is not None or slack):
        raise WrongUsage("--tolerance and --slack need --distance, e.g. --distance l1 (only --slack any does not)")
    if distance is None and slack is not None and (robustness is not None or radius is not None):
        raise WrongUsage("--robustness and --radius need --distance, e.g. --distance l1 --robustness l2 --radius 0.1")
    if (robustness is not None and radius is None) or (robustness is None and radius not in (None, 0.0, SECRET)):
        raise WrongUsage("--robustness and --radius belong together, e.g. --robustness l2 --radius 0.1 (or secret)")


def refuse_odd_service(
    distance: str | None, robustness: str | None, radius: float | None, imitate: str | None, secret_radius: bool = False
) -> None:
    """Raise WrongUsage where the words for a simulated service contradict each other."""
    if secret_radius and radius is None:
        raise WrongUsage("--secret-radius needs --radius: the service must have one to keep secret")
    if imitate is not None and (distance is not None or robustness is not None):
        raise WrongUsage("--imitate brings its own distance; leave out --distance, --robustness and --radius")
    if (radius is None) != (robustness is None):
        raise WrongUsage("--radius and --robustness belong together, e.g. --robustness l2 --radius 0.1")


def refuse_two_crowds(workers: int | None, scheduler: str | None, command: str) -> None:
    """Raise WrongUsage if a data set is to be shared out to two crowds at once."""
    if workers is not None and scheduler is not None:
        raise WrongUsage(
            f"a scheduler has its own workers: give --workers or --scheduler; see overexplain {command} --help"
        )
