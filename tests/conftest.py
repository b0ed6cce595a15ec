"""What holds for every test: reproducible examples, and no test that quietly does not run."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# Machines are shared and noisy: no deadline. The same examples everywhere, so that a red run can be repeated; `make soak-tests`
# (SOAK=n) tries n times as many, new ones every time.
SOAK = int(os.environ.get("SOAK", "0"))
settings.register_profile(
    "overexplain", deadline=None, derandomize=not SOAK, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("overexplain")

# A shell that starts the tests in the background lets them ignore Ctrl-C, and all they start: what it does could not be tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A skipped test is a failure: everything a run selects must run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = len(reporter.stats.get("skipped", [])) if reporter is not None else 0
    if skipped and session.exitstatus == pytest.ExitCode.OK:
        reporter.write_line(f"{skipped} test(s) were skipped that should have run", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
