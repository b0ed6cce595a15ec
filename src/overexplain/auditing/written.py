"""What every report shares: how it becomes JSON and comes back, and what its numbers come from."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any, TypeVar

import msgspec

from overexplain.errors import InvalidInput

Report = TypeVar("Report")


@dataclass(frozen=True)
class Provenance:
    """What the numbers come from."""

    overexplain: str
    python: str
    packages: Annotated[dict[str, str], msgspec.Meta(description="versions of what the numbers rest on")]
    seed: int
    command: Annotated[str | None, msgspec.Meta(description="the command line without paths; null: made in Python")]


def provenance(seed: int, packages: Sequence[str], command: str | None = None) -> Provenance:
    """The versions that are installed, with the seed and the command."""
    return Provenance(
        _version("overexplain"), platform.python_version(), {name: _version(name) for name in packages}, seed, command
    )


def as_json(report: Any) -> str:
    """The JSON that every rendering is made from; the same report gives the same bytes."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1).decode()


def read_json(kind: type[Report], text: str | bytes, newest: int, what: str) -> Report:
    """The report of that kind in a JSON text; InvalidInput says where it does not fit the schema."""
    try:
        report: Any = msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:  # ValidationError is one
        other = _format_of(text)
        known = f"it is {other!r}" if other not in (None, getattr(kind, "format", None)) else error
        raise InvalidInput(f"not {what}: {known}") from None
    if report.version > newest:
        raise InvalidInput(f"the report has version {report.version}, newer than {newest}; update overexplain")
    return report  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _Labelled:
    format: str | None = None


def _format_of(text: str | bytes) -> str | None:
    """What a JSON text says that it is."""
    try:
        return msgspec.json.decode(text, type=_Labelled).format
    except msgspec.DecodeError:
        return None


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"
