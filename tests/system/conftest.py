"""One Chromium for all tests that look at a report, and the reports they look at: the sample's and the demo's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from system.browser import chromium

    with chromium() as running:
        yield running


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample report's file."""
    from audit_sample import sample_report
    from system.browser import written

    return written(sample_report(), tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that `overexplain demo` writes into the folder it is called in."""
    folder = tmp_path_factory.mktemp("demo")
    searched = os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path if entry)
    command = [sys.executable, "-m", "overexplain", "demo"]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | {"PYTHONPATH": searched}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in folder.iterdir()] == ["overexplain-report.html"]
    return folder / "overexplain-report.html"
