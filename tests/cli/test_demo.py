"""`overexplain demo`, run as users run it: once, and everything about that run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from overexplain.auditing.audit_report import AuditReport
from overexplain.cli.demo import train

PLAIN = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def piped(folder) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "overexplain", "demo"]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=PLAIN, cwd=folder)


def test_piped_it_is_plain_text_of_80_columns_and_nothing_on_stderr(piped) -> None:
    assert (piped.returncode, piped.stderr) == (0, "")
    assert piped.stdout.isascii()
    assert "\x1b" not in piped.stdout
    assert all(len(line) <= 80 and line == line.rstrip() for line in piped.stdout.splitlines())


def test_it_says_what_was_done_what_was_found_and_what_is_next(piped) -> None:
    lines = piped.stdout.splitlines()
    assert lines[0].startswith("A logistic regression on scikit-learn's breast_cancer data: 569 cases, 30")
    assert "Thirty answers give this model away." in lines
    assert any("proven minimum: 30" in line for line in lines)
    assert lines[-2] == "report: overexplain-report.html (opens offline)"
    assert lines[-1].startswith("next:   overexplain audit --help")


def test_the_report_is_one_file_with_the_numbers_that_were_printed(piped, folder) -> None:
    assert [path.name for path in folder.iterdir()] == ["overexplain-report.html"]
    page = (folder / "overexplain-report.html").read_text(encoding="utf-8")
    assert len(page.encode()) < 500_000
    data = page.split('id="report-data">')[1].split("</script>")[0]
    report = AuditReport.from_json(data)
    counts = {service.spec: report.known_of(service.id) for service in report.services}
    assert {spec: row.answers for spec, row in counts.items() if spec != "labels"} == {
        "l1": 30, "l1; robust=l2:0.1": 30, "l2": 1, "linf": 30,
    }  # fmt: skip
    for spec, row in counts.items():
        if spec != "labels":
            assert row.answers == row.minimum == row.computed
            assert row.agreement == 1.0
            assert row.angle_error < 1e-11
    assert counts["labels"].minimum == 582
    assert 582 < counts["labels"].labels < 1.2 * 582
    assert all(curve.wrong == 0 for curve in report.curves)
    assert report.curve_of("s1").median[-1] == 1.0
    assert report.subject.cases == 569
    assert report.subject.units == "standard deviations"
    assert len(report.maps) == 3
    assert report.proof is not None
    assert report.defences is not None
    assert f"{report.known_of('s1').answers} " in piped.stdout


def test_a_seed_trains_the_same_model_and_another_one_another() -> None:
    assert train(7).model == train(7).model
    assert train(7).model != train(8).model
