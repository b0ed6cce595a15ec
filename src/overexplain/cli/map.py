"""`overexplain map`: what a log gives away in the plane of two features, as letters or as a picture."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from overexplain._files import read_regular, replacing
from overexplain.auditing.determined import robust_use
from overexplain.auditing.slices import Slice, take_slice, with_areas
from overexplain.cli.logs import read_log, refuse_to_overwrite, what_is_known
from overexplain.cli.options import Size, Span
from overexplain.cli.output import bar, print_json
from overexplain.cli.terms import Terms
from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray, as_point
from overexplain.knowledge.facts import Robust
from overexplain.log.jsonl.formats import parse_json
from overexplain.scale.columns import listed

TEXT_SIZE = (61, 31)
PICTURE_SIZE = (121, 121)


@dataclass(frozen=True)
class Request:
    """What the command line asked for."""

    log: Path
    features: str | None
    at: Path | None
    size: Size | None
    ranges: tuple[Span, Span] | None
    output: Path | None
    terms: Terms
    mapping: tuple[str, ...]
    robust: Robust
    time_limit: float | None
    as_json: bool


def run_map(request: Request) -> None:
    """Read, certify a grid, print it as text or write it as a picture."""
    kind = None if request.output is None else request.output.suffix.lower()
    if kind not in (None, ".svg", ".png"):
        raise InvalidInput(f"{request.output}: a map is written to a file whose name ends in .svg or .png")
    if request.output is not None:
        refuse_to_overwrite([request.log], [request.output], "LOG and --output")
    log, dimension = read_log(request.log, request.terms, request.mapping)
    names = log.features or tuple(f"x{i}" for i in range(dimension))
    pair = _pair(request.features, names, request.log)
    at = None if request.at is None else _point(request.at, names, pair)
    knowledge = what_is_known(log, request.log, request.robust, request.time_limit)
    size = request.size or (TEXT_SIZE if kind is None else PICTURE_SIZE)
    with bar("certifying") as show:
        found = take_slice(
            knowledge, log, pair, at, size, request.ranges,
            progress=lambda done, total: show("certifying", done, total),
            robust=robust_use(log, request.robust),
        )  # fmt: skip
    if request.output is not None:
        _draw(with_areas(found, knowledge), request.output)
    if request.as_json:
        print_json(found.to_dict())
        return
    from overexplain.report.slices import finding, print_slice
    from overexplain.report.terminal import terminal

    console = terminal()
    if request.output is None:
        print_slice(found, console)
    else:
        console.print(finding(found), style="bold", soft_wrap=True)
        console.print(f"map saved: {request.output}", soft_wrap=True)


def _draw(found: Slice, path: Path) -> None:
    with replacing(path) as beside:
        if path.suffix.lower() == ".svg":
            from overexplain.report.svg import svg_of

            beside.write_text(svg_of(found), encoding="utf-8")
        else:
            from overexplain.report.png import write_png

            write_png(found, beside)


def _pair(text: str | None, names: tuple[str, ...], path: Path) -> tuple[int, int]:
    """The numbers of the two features, given by name or number."""
    if len(names) < 2:
        raise InvalidInput(f"{path} has one feature; a map needs two")
    if text is None:
        if len(names) == 2:
            return 0, 1
        raise InvalidInput(f"{path} has {len(names)} features; say which two: --features {names[0]},{names[1]}")
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2:
        raise InvalidInput(f"--features {text!r}: two features, first the one across, then the one up, e.g. 0,1")
    across, up = (_number(part, names) for part in parts)
    if across == up:
        raise InvalidInput(f"--features {text!r}: a map needs two different features")
    return across, up


def _number(part: str, names: tuple[str, ...]) -> int:
    if part in names:
        return names.index(part)
    if part.isascii() and part.isdigit() and int(part[:9]) < len(names):
        return int(part[:9])
    raise InvalidInput(
        f"--features: no feature {part!r}; there are {listed(names)}, or the numbers 0 to {len(names) - 1}"
    )


def _point(path: Path, names: tuple[str, ...], pair: tuple[int, int]) -> FloatArray:
    """Where a file says the other features are held: an object, name: number, or a list of all features' numbers."""
    try:
        entry = parse_json(read_regular(path))
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise InvalidInput(f"{path}: not JSON") from None
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
    if isinstance(entry, list):
        return as_point(entry, len(names), f"{path}: the point")
    if not isinstance(entry, dict):
        raise InvalidInput(f"{path}: a point is an object, name: number, or a list of numbers")
    varying = [names[i] for i in pair]
    if unknown := [name for name in entry if name not in names]:
        raise InvalidInput(f"{path}: {listed(unknown)}: no such feature; there are {listed(names)}")
    if missing := [name for name in names if name not in entry and name not in varying]:
        raise InvalidInput(f"{path}: nothing for {listed(missing)}")
    for name, value in entry.items():
        if type(value) is not float and type(value) is not int:
            raise InvalidInput(f"{path}: {name!r} is {json.dumps(value)[:40]}, which is not a number")
    middle = dict(zip(names, np.zeros(len(names)), strict=True)) | entry
    return as_point([middle[name] for name in names], len(names), f"{path}: the point")
