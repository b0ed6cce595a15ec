"""Texts outside docs/ that belong into the site, and links to them.

The benchmarks' results become pages in docs/results/ (written by the build, never committed), the change log and the page for
contributors are included. A link such as `../benchmarks/results/labels.md`, which is right on the repository's pages, leads to the
same text inside the site; what has no page (a test, a script) is offered as a file.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path, PurePosixPath
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

DOCS = Path(__file__).parent.parent
RESULTS = DOCS.parent / "benchmarks" / "results"
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
HEAD = "# Benchmarks\n\nWhat `make bench-…` measured last. Each page says on which machine.\n\n```{toctree}\n:maxdepth: 1\n\n"
_LINK = re.compile(r"(\]\()([^)\s#]+)")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("config-inited", write_results)
    app.connect("source-read", rewrite)
    app.connect("include-read", rewrite_included)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_results(_app: Sphinx, _config: Config) -> None:
    """The pages in results/: the same text, with its pictures beside it."""
    pages = DOCS / "results"
    shutil.rmtree(pages, ignore_errors=True)
    pages.mkdir()
    for path in [*RESULTS.glob("*.md"), *RESULTS.glob("*.svg"), *RESULTS.glob("*.png")]:
        shutil.copy(path, pages)
    names = sorted(path.stem for path in RESULTS.glob("*.md"))
    (pages / "index.md").write_text(HEAD + "\n".join(names) + "\n```\n", encoding="utf-8")


def rewrite(_app: Sphinx, docname: str, source: list[str]) -> None:
    page = PurePosixPath("benchmarks") / docname if docname.startswith("results/") else PurePosixPath("docs") / docname
    source[0] = _LINK.sub(lambda found: found[1] + in_site(found[2], page.parent), source[0])


def rewrite_included(_app: Sphinx, _relative: Path, _docname: str, source: list[str]) -> None:
    source[0] = _LINK.sub(lambda found: found[1] + in_site(found[2], PurePosixPath()), source[0])


def in_site(link: str, folder: PurePosixPath) -> str:
    """Where a link leads that stands in a file of this folder of the repository: the site's page for it, or as it is."""
    if ":" in link or link.startswith("/"):
        return link
    target = PurePosixPath(os.path.normpath(folder / link))
    if target.parent == PurePosixPath("benchmarks/results") and target.suffix == ".md":
        return f"/results/{target.name}"
    if str(target) in PAGES:
        return f"/{PAGES[str(target)]}"
    if folder.parts[:1] != ("docs",):  # what moved into the site takes its links along
        inside = target.parts[:1] == ("docs",)
        return "/" + str(target.relative_to("docs")) if inside else "/../" + str(target) if target.suffix else link
    return link
