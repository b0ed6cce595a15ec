"""What holds for live tests: foreign libraries may warn about one another, and no test quietly does not run."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Warnings are shown, not errors as in the other tests: which ones come depends on foreign versions."""
    config.addinivalue_line("filterwarnings", "default")  # the last line wins


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A skipped test is a failure: everything a run selects must run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and reporter.stats.get("skipped") and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
