"""The folder a run writes into: what it is about, which of its parts are done, and what came of them all together.

`_manifest.json` says what the run is; a run that was killed is carried on by whoever has the same log, data set and settings, and
refused to anybody else. `_summary.json` is written when every part is done. Names that begin with "_" are not looked at by
whoever reads the folder as a data set.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from overexplain._files import replacing
from overexplain.errors import InvalidInput, UnsupportedNorm
from overexplain.geometry.mechanism import Mechanism
from overexplain.knowledge.engine import Knowledge
from overexplain.log.querylog import QueryLog
from overexplain.scale.parts import Dataset, Part
from overexplain.scale.work import NOTES, Done, Job, proofs_of, read_note, verdicts_of

FORMAT = 1
MANIFEST, SUMMARY = "_manifest.json", "_summary.json"
PACKAGES = ("numpy", "scipy", "numba", "pyarrow", "highspy", "clarabel", "dask", "distributed")


@dataclass(frozen=True)
class Manifest:
    """What a run is about; two runs with the same `identity` may share a folder."""

    identity: dict[str, Any]
    files: list[dict[str, Any]]
    parts: tuple[Part, ...]

    def to_json(self) -> str:
        """The file's text."""
        entry = {**self.identity, "files": self.files, "parts": [[part.first, part.rows] for part in self.parts]}
        return json.dumps(entry, indent=1, allow_nan=False) + "\n"


def log_digest(log: QueryLog) -> str:
    """The SHA-256 of what verdicts rest on: features, points, labels, explanations and their terms, not who asked or when.

    >>> log = QueryLog()
    >>> log.add_label([[1.0, 2.0]], [1])
    0
    >>> log_digest(log)[:8]
    '5eb2d06a'
    """
    total = hashlib.sha256(json.dumps([log.features, [_terms(m) for m in log.mechanisms]]).encode())
    for array, kind in (
        (log.points + 0.0, "<f8"),
        (log.labels, "<i1"),
        (np.where(np.isnan(log.explanations), np.nan, log.explanations), "<f8"),
        (log.status, "<i1"),
        (log.mechanism_ids, "<i8"),
    ):
        total.update(np.ascontiguousarray(array, dtype=kind).tobytes())
    return total.hexdigest()


def _terms(mechanism: Mechanism) -> Any:
    try:
        return mechanism.to_dict()
    except UnsupportedNorm:  # a norm of the user's own has no written form
        return repr(mechanism)


def manifest_of(job: Job, parts: Sequence[Part], log: QueryLog) -> Manifest:
    """What this run is about."""
    known = job.knowledge.settings
    identity = {
        "overexplain": job.version,
        "format": FORMAT,
        "log_sha256": log_digest(log),
        "settings": {**known, "block_rows": job.block_rows, "proofs": job.proofs is not None},
        "key": job.key,
        "rows": job.dataset.rows,
    }
    starts = job.dataset.starts
    files = [
        {"name": file.name, "first_row": first, "row_groups": list(file.groups), "footer_sha256": file.digest}
        for file, first in zip(job.dataset.files, starts, strict=True)
    ]
    return Manifest(identity, files, tuple(parts))


def begin(job: Job, parts: Sequence[Part]) -> dict[int, Done]:
    """The parts that an earlier run left done; raises if the folder belongs to another run, or to something else."""
    wanted = manifest_of(job, parts, job.knowledge.log)
    path = job.output / MANIFEST
    if not path.exists():
        for folder in (job.output, job.proofs):
            if folder is not None and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise InvalidInput(f"{folder}: exists already and is no run of ours; give a new or empty folder")
    else:
        _refuse_another(path, wanted)
    for folder in (job.output / NOTES, job.proofs):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
    with replacing(path) as beside:
        beside.write_text(wanted.to_json(), encoding="utf-8")
    return {part.number: done for part in parts if (done := _kept(job, part)) is not None}


def _refuse_another(path: Path, wanted: Manifest) -> None:
    try:
        found = json.loads(path.read_bytes())
        files, parts = found.pop("files"), found.pop("parts")
        names = [(file["name"], file["row_groups"]) for file in files]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInput(f"{path}: not the manifest of a run; give another folder") from None
    differ = [key for key, value in wanted.identity.items() if found.get(key) != value]
    if differ:
        words = {
            "log_sha256": "another log", "settings": "other settings", "rows": "another data set", "key": "another data set",
            "overexplain": f"overexplain {found.get('overexplain')}", "format": "another version of overexplain",
        }  # fmt: skip
        which = _other_settings(found, wanted) if differ[0] == "settings" else ""
        raise InvalidInput(
            f"{path.parent}: holds a run on {words[differ[0]]}{which}; carry that on with what it was begun with, "
            "or give another folder"
        )
    if names != [(file["name"], file["row_groups"]) for file in wanted.files]:
        raise InvalidInput(f"{path.parent}: holds a run on another data set: other files, or other row groups in them")
    if parts != [[part.first, part.rows] for part in wanted.parts]:
        raise InvalidInput(f"{path.parent}: holds a run in parts of another size; give that size, or another folder")


def _other_settings(found: dict[str, Any], wanted: Manifest) -> str:
    """Which they are: " (time_limit is None there, 5.0 here)"."""
    there, here = found.get("settings"), wanted.identity["settings"]
    if not isinstance(there, dict):
        return ""
    differ = [name for name, value in here.items() if there.get(name) != value]
    if "proofs" in differ:
        differ = [name for name in differ if name != "block_rows"]  # follows from it
    return " (" + ", ".join(f"{name} is {there.get(name)!r} there, {here[name]!r} here" for name in differ) + ")"


def proved_parts(output: Path) -> set[str]:
    """The names of all parts of the run in a folder, if it is one with proofs: done or not, still there or not."""
    path = output / MANIFEST
    if not path.is_file():
        return set()
    try:
        entry = json.loads(path.read_bytes())
        parts = [Part(number, first, rows) for number, (first, rows) in enumerate(entry["parts"])]
        return {part.name for part in parts} if entry["settings"]["proofs"] else set()
    except (ValueError, KeyError, TypeError):
        raise InvalidInput(f"{path}: not the manifest of a run") from None


def _kept(job: Job, part: Part) -> Done | None:
    """What an earlier run made of a part, if its files are still there."""
    done = read_note(job.output, part)
    if done is None:
        return None
    if done.digest != job.digest(part):
        raise InvalidInput(
            f"{job.output}: {part.name} was made from files that have changed since; give another folder for the output"
        )
    proofs = None if job.proofs is None else proofs_of(job.proofs, part)
    if not verdicts_of(job.output, part).is_file() or (proofs is not None and not proofs.is_file()):
        return None
    return done


def finish(job: Job, parts: Sequence[Part], done: Sequence[Done]) -> None:
    """Write the summary, and remove what workers that died left half written."""
    total = {name: sum(entry.counts[name] for entry in done) for name in (done[0].counts if done else ())}
    entry = {
        "overexplain": job.version,
        "format": FORMAT,
        "log_sha256": log_digest(job.knowledge.log),
        "rows": job.dataset.rows,
        "counts": total,
        "proofs": None if job.proofs is None else sum(entry.proofs or 0 for entry in done),
        "unproved": sum(entry.unproved for entry in done),
        "versions": {"python": platform.python_version()} | versions(),
        "parts": [
            {
                "name": part.name,
                "first_row": part.first,
                "rows": part.rows,
                "counts": dict(came.counts),
                "proofs": came.proofs,
            }
            for part, came in zip(parts, done, strict=True)
        ],
    }
    with replacing(job.output / SUMMARY) as beside:
        beside.write_text(json.dumps(entry, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    for folder in (job.output, job.output / NOTES, job.proofs):
        for left in [] if folder is None else folder.glob(".part-*.tmp"):
            left.unlink(missing_ok=True)


def versions() -> dict[str, str]:
    """The versions of the packages that have a say in verdicts, as far as they are installed."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def own_version() -> str:
    """The version of overexplain that is at work."""
    try:
        return version("overexplain")
    except PackageNotFoundError:
        return "(not installed)"


def prepared_job(knowledge: Knowledge, dataset: Dataset, output: Path, proofs: Path | None, size: int) -> Job:
    """The job, with knowledge that has forgotten what points taught it."""
    return Job(knowledge.prepared(), dataset, output, proofs, size, own_version())
