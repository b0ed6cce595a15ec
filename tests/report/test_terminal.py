"""What a terminal shows: the golden text of fixed data, 80 columns, no colour where nobody asked for it."""

from __future__ import annotations

import io

import pytest

from overexplain.auditing.rebuilt import compare
from overexplain.extraction.extract import extract
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import l1, l2
from overexplain.oracles.exact import ModelOracle
from overexplain.report.terminal import print_rebuilt, print_text, terminal


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "TERM"):
        monkeypatch.delenv(name, raising=False)


def test_rebuilt() -> None:
    plane = Hyperplane([3.0, -4.0, 0.5], 10.0)
    oracle = ModelOracle(plane, Mechanism(l1, l2, 0.5), published=Mechanism(l1, l2, None))
    found = extract(oracle, orient=False)
    file = io.StringIO()
    print_rebuilt(compare(found, plane, oracle.mechanism, found.log), terminal(file))
    lines = file.getvalue().splitlines()
    assert lines[0] == "4 answers rebuild this model."
    starts = [
        "service",
        "method",
        "spent",
        "proven minimum",
        "angle error",
        "offset error",
        "radius",
        "Yes and No",
        "assumes",
    ]
    for start in starts:
        assert sum(line.startswith(start) for line in lines) == 1
    assert any(line.startswith("radius          0.5 (found; error bound ") for line in lines)
    assert all(len(line) <= 80 and line == line.rstrip() for line in lines)


def test_text_wraps_at_words() -> None:
    file = io.StringIO()
    print_text("scikit-learn " * 20, terminal(file))
    lines = file.getvalue().splitlines()
    assert len(lines) == 4
    assert all(set(line.split()) == {"scikit-learn"} for line in lines)
