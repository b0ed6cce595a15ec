"""The commands that begin with a log or what was made from one: certify, map, verify, monitor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from overexplain.cli.arguments import (
    AsJson,
    Distance,
    Level,
    LogFile,
    Mapped,
    Radius,
    Robust,
    Robustness,
    Scheduler,
    Seed,
    Slack,
    TimeLimit,
    Tolerance,
    Work,
    Workers,
    WrongUsage,
    refuse_lonely_terms,
    refuse_two_crowds,
)
from overexplain.cli.options import read_ranges, read_size


def monitor(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="What was asked and answered: .jsonl, .csv or .parquet.")],
    by: Annotated[
        str, Option("--by", metavar="client|none", help="Look at every client apart, or at all together.")
    ] = "client",
    mapping: Mapped = None,
    model: Annotated[Path | None, Option("--model", metavar="MODEL", help="The model itself, for margins.")] = None,
    reference: Annotated[
        Path | None, Option("--reference", metavar="CASES", help="The decisions that matter; else the log's own.")
    ] = None,
    distance: Distance = None,
    robustness: Robustness = None,
    radius: Radius = None,
    tolerance: Tolerance = None,
    slack: Slack = "0",
    detail: Annotated[int, Option("--detail", min=0, help="How many clients to look at closely.")] = 20,
    quota: Annotated[int | None, Option("--quota", min=1, help="Raise an alarm for clients that come near it.")] = None,
    fail_on: Annotated[
        list[str] | None,
        Option("--fail-on", metavar="GATE", help='End with exit code 1 if so: "determined>60%", recoverable, alarm.'),
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> Work:
    """Say what a log has given away, to whom, and who asks oddly.

    Per client and pooled: known boundary points, determined decisions, when the model became recoverable, alarms.
    """
    refuse_lonely_terms(distance, tolerance, slack, robustness, radius)
    if by not in ("client", "none"):
        raise WrongUsage(f"--by is client or none, not {by!r}; see overexplain monitor --help")

    def work() -> int:
        from overexplain.cli.monitor import Request, run_monitor
        from overexplain.cli.terms import Terms

        terms = Terms(distance, tolerance, slack, robustness, radius)
        who = None if by == "none" else by
        request = Request(
            log, who, tuple(mapping or ()), model, reference, terms, detail, quota, tuple(fail_on or ()), seed, as_json
        )
        return run_monitor(request)

    return work


def certify(
    log: LogFile,
    points: Annotated[
        Path,
        typer.Argument(
            metavar="POINTS", help="A .csv, .jsonl or .parquet file, by feature name; or a folder of Parquet."
        ),
    ],
    output: Annotated[
        Path | None,
        Option("--output", "-o", metavar="VERDICTS", help="Save the verdicts here: a .csv, or for a folder a folder."),
    ] = None,
    proofs: Annotated[
        Path | None,
        Option("--proofs", metavar="PROOFS", help="Save a proof of every verdict here: a .jsonl, or a folder."),
    ] = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    mapping: Mapped = None,
    distance: Distance = None,
    robustness: Robustness = None,
    radius: Radius = None,
    tolerance: Tolerance = None,
    slack: Slack = "0",
    robust: Robust = Level.exact,
    time_limit: TimeLimit = None,
    as_json: AsJson = False,
) -> Work:
    """Say which decisions a log already determines.

    A point is YES or NO if every linear model that fits the log says so, UNKNOWN if two of them disagree. The model
    itself is not needed. Proofs can be checked by: overexplain verify.

    A data set of any size is a folder of Parquet files: it is read piece by piece, and a run that was killed is carried
    on by the same command.
    """
    refuse_lonely_terms(distance, tolerance, slack, robustness, radius)
    refuse_two_crowds(workers, scheduler, "certify")
    is_dataset = workers is not None or scheduler is not None or points.is_dir()
    if is_dataset and output is None:
        raise WrongUsage(
            "name a folder for the verdicts on a data set: --output VERDICTS/; see overexplain certify --help"
        )

    def work() -> None:
        from overexplain.cli.certify import Request, run_certify
        from overexplain.cli.terms import Terms

        terms = Terms(distance, tolerance, slack, robustness, radius)
        request = Request(log, points, output, proofs, terms, tuple(mapping or ()), robust.value, time_limit, as_json)
        if is_dataset:
            from overexplain.cli.scale import run_certify_dataset

            run_certify_dataset(request, workers, scheduler)
            return
        run_certify(request)

    return work


def draw_map(
    log: LogFile,
    features: Annotated[
        str | None,
        Option("--features", metavar="ACROSS,UP", help="The two features to vary, by name or number (from 0)."),
    ] = None,
    at: Annotated[
        Path | None, Option("--at", metavar="POINT.json", help="Hold the others here, not at the log's medians.")
    ] = None,
    size: Annotated[
        Any, Option("--size", parser=read_size, metavar="COLSxROWS", help="How fine (61x31; pictures 121x121).")
    ] = None,
    ranges: Annotated[
        Any,
        Option("--range", parser=read_ranges, metavar="LOW:HIGH,LOW:HIGH", help="From where to where, across and up."),
    ] = None,
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="MAP.svg|MAP.png", help="Draw a picture instead of letters.")
    ] = None,
    mapping: Mapped = None,
    distance: Distance = None,
    robustness: Robustness = None,
    radius: Radius = None,
    tolerance: Tolerance = None,
    slack: Slack = "0",
    robust: Robust = Level.exact,
    time_limit: TimeLimit = None,
    as_json: AsJson = False,
) -> Work:
    """Draw what a log gives away, in the plane of two features.

    Where every model that fits the log says Yes, where every one says No, and where it is still open. All other
    features are held.
    """
    refuse_lonely_terms(distance, tolerance, slack, robustness, radius)

    def work() -> None:
        from overexplain.cli.map import Request, run_map
        from overexplain.cli.terms import Terms

        terms = Terms(distance, tolerance, slack, robustness, radius)
        run_map(
            Request(
                log, features, at, size, ranges, output, terms, tuple(mapping or ()), robust.value, time_limit, as_json
            )
        )  # fmt: skip

    return work


def verify(
    proofs: Annotated[
        Path,
        typer.Argument(
            metavar="PROOFS",
            help="One proof a line, as certify writes them, or its folder; or what audit --proofs wrote.",
        ),
    ],
    log: Annotated[
        Path | None,
        typer.Argument(metavar="LOG", help="What the proofs rest on; not for audit's folder, which has it."),
    ] = None,
    report: Annotated[
        Path | None,
        Option("--report", metavar="AUDIT.json", help="Derive this report's determined shares again, from a folder."),
    ] = None,
    verdicts: Annotated[
        Path | None,
        Option("--verdicts", metavar="VERDICTS", help="Every verdict in this file, or folder, must have its proof."),
    ] = None,
    points: Annotated[
        Path | None, Option("--points", metavar="POINTS", help="Every proof must be about the point in its row here.")
    ] = None,
    mapping: Mapped = None,
    distance: Distance = None,
    robustness: Robustness = None,
    radius: Radius = None,
    tolerance: Tolerance = None,
    slack: Slack = "0",
    assume_tolerance: Annotated[
        float | None,
        Option(
            "--assume-tolerance",
            min=0,
            metavar="T",
            help="Accept proofs that put this in place of the log's tolerances.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> Work:
    """Check proofs against a log, in exact arithmetic.

    Neither the model nor the program that found the proofs is needed: only the log, and fractions. Ends with exit code
    7 if a proof is wrong or missing.
    """
    refuse_lonely_terms(distance, tolerance, slack, robustness, radius)
    if log is None and (report is None and not proofs.is_dir()):
        raise WrongUsage(
            "name the log that the proofs rest on: overexplain verify PROOFS LOG; see overexplain verify --help"
        )
    if report is not None and log is not None:
        raise WrongUsage(
            "--report takes a folder of proofs, which has its own logs: overexplain verify FOLDER --report AUDIT.json"
        )

    def work() -> None:
        if log is None:
            from overexplain.cli.verify_report import run_verify_report

            run_verify_report(proofs, report, as_json)
            return
        from overexplain.cli.terms import Terms
        from overexplain.cli.verify import Request, run_verify

        terms = Terms(distance, tolerance, slack, robustness, radius)
        request = Request(proofs, log, verdicts, points, terms, tuple(mapping or ()), assume_tolerance, as_json)
        if proofs.is_dir() or (points is not None and points.is_dir()):
            from overexplain.cli.verify_parts import run_verify_parts

            run_verify_parts(request)
            return
        run_verify(request)

    return work
