"""`overexplain certify` on a data set: a folder of Parquet files in, folders of verdicts and proofs out."""

from __future__ import annotations

from pathlib import Path

from overexplain.cli.certify import Request, say_what_is_not_used, tell
from overexplain.cli.logs import read_log, what_is_known
from overexplain.cli.main import say
from overexplain.cli.output import bar
from overexplain.errors import InvalidInput
from overexplain.report.words import counted
from overexplain.scale.certify import certify_dataset
from overexplain.scale.parts import open_dataset
from overexplain.scale.run import refuse_odd_sharing
from overexplain.scale.work import Job

FILES = (".csv", ".jsonl", ".ndjson", ".parquet")


def run_certify_dataset(request: Request, workers: int | None, scheduler: str | None) -> None:
    """Read the log, certify the data set part by part, print; parts that are done stay, whatever happens."""
    assert request.output is not None
    refuse_odd_sharing(workers, scheduler)
    _refuse_odd_places(request)
    log, dimension = read_log(request.log, request.terms, request.mapping)
    dataset = open_dataset(request.points, log.features, dimension)
    say_what_is_not_used(dataset.extras, dataset.key, dataset.unmatched, request)
    knowledge = what_is_known(log, request.log, request.robust, request.time_limit)
    try:
        with bar("certifying") as show:
            done = certify_dataset(
                knowledge, dataset, request.output, proofs=request.proofs, workers=workers, scheduler=scheduler,
                progress=lambda what, rows, of: show(f"{what}, {rows:,} points done", rows, of),
            )  # fmt: skip
    except KeyboardInterrupt:
        say(f"note: {Job.if_lost[0].lower()}{Job.if_lost[1:]}")
        raise
    if done.kept:
        say(f"note: kept {done.kept:,} of {counted(done.parts, 'part')}: done before")
    if done.unproved:
        say(f"note: {counted(done.unproved, 'verdict')} could not be written as a proof in rational numbers")
    tell(done.determined, request)


def refuse_other_files(path: Path) -> None:
    """Raise unless a path may be that of a data set."""
    if not path.is_dir() and path.suffix.lower() != ".parquet":
        path.stat()
        raise InvalidInput(f"{path}: a data set that is shared out is a .parquet file or a folder of them")


def _refuse_odd_places(request: Request) -> None:
    refuse_other_files(request.points)
    folders = [path for path in (request.output, request.proofs) if path is not None]
    for path in folders:
        if path.suffix.lower() in FILES or path.is_file():
            raise InvalidInput(
                f"{path}: what is written about a data set is a folder, a file for every part; name a folder"
            )
    places = [path.resolve() for path in (*folders, request.points)]
    for place in places:
        if any(_is_within(place, other) for other in places if other is not place):
            raise InvalidInput("POINTS, --output and --proofs must be different folders, none inside another")


def _is_within(place: Path, other: Path) -> bool:
    return place == other or other in place.parents
