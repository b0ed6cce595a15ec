"""The interactive page is a static one: it is copied into the site as it is."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

PAGE = Path(__file__).parent.parent / "interactive"


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def copy(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html" and PAGE.is_dir():
        shutil.copytree(PAGE, Path(app.outdir) / "interactive", dirs_exist_ok=True)
