"""The commands that deal with live endpoints: serve one, probe one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from overexplain.cli.arguments import (
    AllowPickle,
    AnyModel,
    AsJson,
    Data,
    Degrade,
    Imitate,
    Seed,
    ServiceBall,
    ServiceDistance,
    ServiceRadius,
    Strategy,
    Threshold,
    Ties,
    Work,
    WrongUsage,
    refuse_odd_service,
)


def serve(
    model: AnyModel,
    distance: ServiceDistance = None,
    robustness: ServiceBall = None,
    radius: ServiceRadius = None,
    secret_radius: Annotated[bool, Option("--secret-radius", help="The service hides its radius.")] = False,
    decimals: Annotated[
        int | None, Option("--round", metavar="DECIMALS", help="Round explanations; the same as --degrade rounded:N.")
    ] = None,
    labels_only: Annotated[
        bool, Option("--labels-only", help="The service gives labels and explains nothing.")
    ] = False,
    imitate: Imitate = None,
    degrade: Degrade = None,
    data: Data = None,
    ties: Annotated[Ties, Option("--ties", help="Which of several equally near explanations is given.")] = Ties.first,
    seed: Seed = 0,
    host: Annotated[str, Option("--host", metavar="ADDRESS", help="A loopback address.")] = "127.0.0.1",
    port: Annotated[int, Option("--port", min=0, max=65535, help="0: any that is free.")] = 8099,
    name: Annotated[str, Option("--name", help="What the model is called in the addresses.")] = "model",
    log: Annotated[
        Path | None, Option("--log", metavar="ANSWERS.jsonl", help="Save every answer here before it is given.")
    ] = None,
    endpoint: Annotated[
        Path | None,
        Option("--endpoint", metavar="ENDPOINT.toml", help="Write what a client needs to ask this service."),
    ] = None,
    threshold: Threshold = None,
    allow_pickle: AllowPickle = False,
) -> Work:
    """Serve a model of yours on this machine.

    A real endpoint on a loopback address, for trying things out: it labels and explains as you say, by KServe V1 and by
    the Open Inference Protocol (v2), and counts its answers. Its description is at /openapi.json, the counts at /counts.
    """
    explains = distance is not None or imitate is not None
    refuse_odd_service(distance, robustness, radius, imitate, secret_radius)
    if labels_only and (explains or robustness is not None or degrade or decimals is not None):
        raise WrongUsage("--labels-only explains nothing: leave out --distance, --imitate, --degrade and --round")
    if not explains and not labels_only:
        raise WrongUsage("say what the service does: --distance l1, --imitate NAME, or --labels-only")

    def work() -> None:
        from overexplain.cli.serve import Request, run_serve
        from overexplain.cli.services import described

        rounded = () if decimals is None else (f"rounded:{decimals}",)
        service = described(distance, robustness, radius, secret_radius, imitate, (*(degrade or ()), *rounded))
        request = Request(
            model, service, data, labels_only, ties.value, seed, host, port, name, log, endpoint, threshold, allow_pickle
        )  # fmt: skip
        run_serve(request)

    return work


def probe(
    endpoint: Annotated[
        Path | None, typer.Argument(metavar="ENDPOINT.toml", help="Where the service is and how it is asked.")
    ] = None,
    budget: Annotated[
        int | None,
        Option("--budget", min=0, help="Send at most so many requests, retries included (under one key: once)."),
    ] = None,
    authorized: Annotated[
        bool, Option("--authorized", help="The owner agreed to this probe (with --resume, too).")
    ] = False,
    resume: Annotated[
        Path | None, Option("--resume", metavar="RUN", help="Go on with this run; what it holds is not asked again.")
    ] = None,
    rate: Annotated[
        str | None, Option("--rate", metavar="N/s", help="No faster than this, e.g. 10/s or 30/min.")
    ] = None,
    accuracy: Annotated[
        float | None,
        Option("--accuracy", help="Wanted: of the coefficients (1e-9); of the angle if answers are not exact (1e-6)."),
    ] = None,
    strategy: Annotated[
        Strategy, Option("--strategy", metavar="NAME", help="As for extract; auto: the fewest requests.")
    ] = (Strategy.auto),
    orient: Annotated[bool, Option("--orient/--no-orient", help="Ask one label, to tell Yes from No.")] = True,
    confirm: Annotated[
        bool,
        Option(
            "--confirm/--no-confirm",
            help="Ask one answer and two labels more, to see whether the service keeps to its terms.",
        ),
    ] = True,
    seed: Seed = 0,
    run: Annotated[
        Path | None, Option("--run", metavar="RUN.sqlite", help="Where the run is saved; without it, a new file here.")
    ] = None,
    model: Annotated[
        Path | None, Option("--model", metavar="MODEL", help="The true model, to compare the rebuilt one with.")
    ] = None,
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="FOUND.json", help="Save the rebuilt model here.")
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Print the plan and what it will cost; send nothing.")] = False,
    debug: Annotated[
        bool, Option("--debug", help="Tell of every request on stderr; credentials are left out.")
    ] = False,
    as_json: AsJson = False,
) -> Work:
    """Rebuild the model behind a live service, within a budget.

    Ask only services whose owner agreed. Every request is written down before it is sent and every answer before it is
    used, so that a run that is stopped anywhere, even by kill -9, goes on with --resume and never exceeds its budget.
    """
    if (endpoint is None) == (resume is None):
        raise WrongUsage("name an endpoint file, or a run to go on with (--resume RUN); see overexplain probe --help")
    if resume is not None and (
        run is not None
        or accuracy is not None
        or strategy is not Strategy.auto
        or seed != 0
        or not orient
        or not confirm
    ):
        raise WrongUsage(
            "--resume keeps to the run's own plan: leave out --run, --accuracy, --strategy, --seed, --no-orient, --no-confirm"
        )
    if resume is None and budget is None and not dry_run:
        raise WrongUsage("say how many requests may be sent at most: --budget N (--dry-run predicts how many it takes)")

    if accuracy is not None and not (accuracy > 0 and math.isfinite(accuracy)):
        raise WrongUsage(f"--accuracy must be positive and finite, got {accuracy:g}")

    def work() -> None:
        from overexplain.cli.probe import Request, run_probe

        run_probe(
            Request(
                endpoint, resume, budget, authorized, rate, accuracy, strategy.value, orient, confirm, seed, run, model, output,
                dry_run, debug, as_json,
            )
        )  # fmt: skip

    return work
