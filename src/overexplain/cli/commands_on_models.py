"""The commands that begin with a model: demo, audit, extract, diagnose, model inspect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from overexplain.cli.arguments import (
    AllowPickle,
    AnyModel,
    AsJson,
    Data,
    Degrade,
    Imitate,
    Scheduler,
    Seed,
    ServiceBall,
    ServiceDistance,
    ServiceRadius,
    Strategy,
    Threshold,
    Ties,
    Work,
    Workers,
    WrongUsage,
    refuse_odd_service,
    refuse_two_crowds,
)
from overexplain.cli.options import read_numbers


def demo(
    output: Annotated[Path, Option("--output", "-o", metavar="REPORT.html", help="Write the report here.")] = Path(
        "overexplain-report.html"
    ),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> Work:
    """Audit an example model and write the report.

    Trains it on data that ships with scikit-learn. Works offline and takes about half a minute.
    """

    def work() -> None:
        from overexplain.cli.demo import run_demo

        run_demo(seed, output, as_json)

    return work


def audit(
    model: AnyModel,
    data: Annotated[
        Path,
        Option(
            "--data", metavar="CASES", help="A .csv, .jsonl or .parquet file, or a folder of Parquet; by feature name."
        ),
    ],
    service: Annotated[
        list[str] | None,
        Option(
            "--service",
            metavar="SPEC",
            help='How the service answers: l1, "l1; robust=l2:0.1", ... The first is the main one.',
        ),
    ] = None,
    report: Annotated[
        list[Path] | None,
        Option("--report", metavar="FILE", help="Write the report here: .html, .md, .json or .xml (JUnit)."),
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        Option(
            "--fail-on",
            metavar="GATE",
            help='End with exit code 1 if so: "determined@200>60%", "answers-to-extract<20", ...',
        ),
    ] = None,
    policy: Annotated[
        Path | None, Option("--policy", metavar="POLICY.toml", help="Read these options from a file.")
    ] = None,
    target: Annotated[
        str | None, Option("--target", metavar="SHARE", help="The share a quota is to keep (50%).")
    ] = None,
    standardize: Annotated[
        bool | None, Option("--standardize/--no-standardize", help="Count changes in standard deviations of the data.")
    ] = None,
    compare: Annotated[
        bool | None, Option("--compare/--no-compare", help="Show other distances and decisions alone beside them.")
    ] = None,
    defences: Annotated[
        bool | None, Option("--defences/--no-defences", help="Compare ways to defend the main service.")
    ] = None,
    orders: Annotated[int | None, Option("--orders", min=1, help="Random orders of asking (20).")] = None,
    judged: Annotated[int | None, Option("--judged", min=1, help="Unseen cases judged in every order (500).")] = None,
    answers: Annotated[
        Any, Option("--answers", parser=read_numbers, metavar="N,N,...", help="Numbers of answers to look at.")
    ] = None,
    maps: Annotated[int | None, Option("--maps", min=0, help="Pairs of features to draw (3).")] = None,
    proofs: Annotated[
        Path | None, Option("--proofs", metavar="FOLDER", help="Write proofs of the shares here; they contain cases.")
    ] = None,
    all_cases: Annotated[
        bool, Option("--all-cases", help="Count the determined share of every row, too, however many there are.")
    ] = False,
    workers: Workers = None,
    scheduler: Scheduler = None,
    threshold: Threshold = None,
    allow_pickle: AllowPickle = False,
    seed: Annotated[
        int | None, Option("--seed", min=0, max=2**32 - 1, help="Makes the output reproducible (0).")
    ] = None,
    as_json: AsJson = False,
) -> Work:
    """Say what a model's explanations give away.

    After how many answers is the model known, which decisions are determined on the way, what keeps it under a target,
    what a defence buys. No case of the data is in the report.

    Larger data is audited by a sample of 100,000 rows; with --all-cases the chief shares are counted over all of it.
    """
    refuse_two_crowds(workers, scheduler, "audit")
    if not all_cases and (workers is not None or scheduler is not None):
        raise WrongUsage(
            "--workers and --scheduler share out the count over all rows: add --all-cases; see overexplain audit --help"
        )

    def work() -> int:
        from overexplain.cli.all_cases import Count
        from overexplain.cli.audit import Request, run_audit
        from overexplain.cli.policy import as_policy, read_policy

        said = {
            "services": service, "fail_on": fail_on, "target": target, "standardize": standardize, "compare": compare,
            "defences": defences, "orders": orders, "judged": judged, "answers": answers, "maps": maps,
            "seed": seed,
        }  # fmt: skip
        chosen = as_policy({"audit": {key: value for key, value in said.items() if value is not None}}, "command line")
        chosen = chosen if policy is None else chosen.over(read_policy(policy))
        count = Count(workers, scheduler) if all_cases else None
        return run_audit(
            Request(model, data, chosen, tuple(report or ()), proofs, count, threshold, allow_pickle, as_json)
        )

    return work


def inspect(
    file: AnyModel,
    threshold: Threshold = None,
    allow_pickle: AllowPickle = False,
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="MODEL.json", help="Save its coefficient file here.")
    ] = None,
    as_json: AsJson = False,
) -> Work:
    """Say what a stored model is: features, classes, threshold, coefficients.

    Nothing stored is run: skops and ONNX files are opened in a child process with limits, pickles are refused.
    """

    def work() -> None:
        from overexplain.cli.model import Request, run_inspect

        run_inspect(Request(file, threshold, allow_pickle, output, as_json))

    return work


def extract(
    model: AnyModel,
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
            "--strategy",
            metavar="NAME",
            help="auto: the fewest answers; paper: as published; or cone, points, labels, chain, ...",
        ),
    ] = Strategy.auto,
    ties: Annotated[Ties, Option("--ties", help="Which of several equally near explanations is given.")] = Ties.first,
    budget: Annotated[int | None, Option("--budget", min=0, help="Send at most so many questions.")] = None,
    accuracy: Annotated[
        float | None,
        Option("--accuracy", help="Wanted: of the coefficients (1e-9); of the angle if answers are not exact (1e-6)."),
    ] = None,
    orient: Annotated[bool, Option("--orient/--no-orient", help="Ask one label, to tell Yes from No.")] = True,
    seed: Seed = 0,
    log: Annotated[
        Path | None, Option("--log", metavar="RUN.jsonl", help="Save all answers here, also if the run fails.")
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
    refuse_odd_service(distance, robustness, radius, imitate, secret_radius)
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


def diagnose(
    model: AnyModel,
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
    refuse_odd_service(distance, robustness, radius, imitate)

    def work() -> None:
        from overexplain.cli.diagnose import Request, run_diagnose
        from overexplain.cli.services import described

        service = described(distance, robustness, radius, False, imitate, tuple(degrade or ()))
        run_diagnose(Request(model, service, data, questions, seed, as_json))

    return work
