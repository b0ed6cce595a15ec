"""Prints the lowest version that pyproject.toml allows of every direct dependency, one pin a line, for `make test-lowest`.

    python benchmarks/lowest_versions.py test > build/lowest.txt

The dependencies and those of the extras that are named, with the extras that these name in turn.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

PROJECT = Path(__file__).parent.parent / "pyproject.toml"


def requirements(extras: Iterable[str]) -> Iterator[Requirement]:
    """What the project and these extras ask for."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    for requirement in map(Requirement, lines):
        if canonicalize_name(requirement.name) == project["name"]:
            yield from requirements(sorted(requirement.extras))
        else:
            yield requirement


def lowest(extras: Iterable[str]) -> dict[str, Version]:
    """The lowest version of each package that satisfies every line that names it."""
    found: dict[str, Version] = {}
    for requirement in requirements(extras):
        bounds = [Version(bound.version) for bound in requirement.specifier if bound.operator == ">="]
        if len(bounds) != 1:
            raise SystemExit(f"pyproject.toml: {requirement} must have one lower bound, as in name>=1.2")
        name = canonicalize_name(requirement.name)
        found[name] = max(bounds[0], found.get(name, bounds[0]))
    return found


if __name__ == "__main__":
    for name, version in sorted(lowest(sys.argv[1:]).items()):
        print(f"{name}=={version}")
