"""The scripts in docs/ as modules."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parent.parent / "docs"


def docs_module(name: str) -> ModuleType:
    """A script of docs/ or docs/figures/ by its name; it finds those beside it as it does when it is run."""
    for folder in (DOCS, DOCS / "figures"):
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
    return importlib.import_module(name)
