"""`benchmarks/certify.py`: runs in pieces, holds claims against the model, and pages quote what was recorded."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import overexplain as ox

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
MACHINE = {"cpu": "a processor", "cores": "2", "load": "0.5", "python": "3.11", "numpy": "2"}


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.delenv("OVEREXPLAIN_DATA", raising=False)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "certify.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def row(**other: Any) -> Any:
    from certify_page import Row

    counts = {"YES": 60, "NO": 30, "UNKNOWN": 10, "BOUNDARY": 0, "UNDECIDED": 0}
    rest: dict[str, Any] = {
        "counts": counts,
        "wrong": 0,
        "micro": 2.0,
        "fit_ms": 1.5,
        "few_micro": 8.0,
        "few_undecided": 0,
    }
    rest |= {"linprog_micro": 4000.0, "linprog_points": 9, "differ": 0, "cvxpy_micro": 9000.0, "product_micro": 0.01}
    cell = {"name": "adult", "answers": "labels", "log": 20, "features": 20, "points": 100, "limit": 8.0}
    return Row(**(cell | rest | {"machine": MACHINE} | other))


def test_a_small_run_measures_every_kind_of_answer_and_finds_nothing_wrong(tmp_path: Path) -> None:
    some = ("--logs", "20", "--seconds", "0.1", "--limit", "5", "--repeats", "1", "--results", str(tmp_path))
    done = run("--tables", "breast_cancer", *some)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "certify.json").read_text(encoding="utf-8"))
    assert [row["answers"] for row in found["real"]] == ["labels", "l1", "linf", "l2"]
    for each in found["real"]:
        assert (each["log"], each["wrong"], each["differ"] or 0) == (20, 0, 0)
        assert sum(each["counts"].values()) == each["points"] == 495
        assert (each["linprog_micro"] is None) == (each["answers"] == "l2")
    assert "| breast_cancer | linf | 20 | 30 | 495 |" in (tmp_path / "certify.md").read_text(encoding="utf-8")


def test_pages_quote_what_was_recorded() -> None:
    done = run("--check")
    assert done.returncode == 0, done.stderr


def test_a_page_that_says_something_else_is_found(tmp_path: Path) -> None:
    from certify import Recorded, check

    recorded = Recorded(tmp_path)
    recorded.add(row())
    assert check(Recorded(tmp_path)) is None
    page = tmp_path / "certify.md"
    page.write_text(page.read_text(encoding="utf-8").replace("2,000", "3,000"), encoding="utf-8")
    assert "certify.md" in (check(Recorded(tmp_path)) or "")


def test_a_row_stays_until_it_is_measured_again(tmp_path: Path) -> None:
    from certify import Recorded

    Recorded(tmp_path).add(row(log=100))
    Recorded(tmp_path).add(row(log=20))
    Recorded(tmp_path).add(row(name="10/500"))
    Recorded(tmp_path).add(row(log=100, micro=3.0))
    Recorded(tmp_path, dry=True).add(row(log=20, micro=9.0))
    found = Recorded(tmp_path)
    assert [(each.log, each.micro) for each in found.real] == [(20, 2.0), (100, 3.0)]
    assert [each.name for each in found.gaussian] == ["10/500"]
    assert asdict(found.real[0]) == asdict(row())


def test_the_pages_tell_what_was_left_undecided_and_what_came_to_no_end() -> None:
    from certify_page import in_docs, in_readme, page

    left = {"YES": 0, "NO": 50, "UNKNOWN": 10, "BOUNDARY": 0, "UNDECIDED": 40}
    none = {"counts": None, "wrong": None, "micro": None, "fit_ms": None, "few_micro": None, "differ": None}
    rows = [row(), row(log=100, counts=left, micro=1000.0, wrong=1), replace(row(log=400), **none)]
    said = in_readme(rows, whole=3)
    assert "µs" not in in_readme(rows, whole=4)  # the slow ones may be missing
    assert "3 of 4 cells" in in_readme(rows, whole=4)
    assert "adult a verdict takes 2 to 1,000 µs" in said
    assert "4 to 2,000 times" in said
    assert "Of 200 points 1 got a wrong verdict,\n40 none in the time allowed; 1 of 3 logs came to no end." in said
    assert "| adult, labels | 20 / 100 / 400 | 10 / 10 / no end | 2 / 1,000 / – | 2,000 / 4 / – |" in in_docs(rows, [])
    assert page(rows, [], {}, []).index("## Real data") < page(rows, [], {}, []).index("## Gaussian data")


def test_without_any_row_the_pages_say_so() -> None:
    from certify_page import in_docs, in_readme, page

    assert "Nothing was measured yet." in page([], [], {}, [])
    assert "Nothing was measured yet." in in_docs([], [])
    assert "measured" in in_readme([])


def test_rows_asked_and_points_are_disjoint_and_claims_are_held_against_exact_labels() -> None:
    from certify import differing, wrong
    from certify_data import available, drawn, size, table

    assert available() == ["breast_cancer", "scorecard"]
    assert size("breast_cancer", "labels", 400) == 284
    assert [size("scorecard", answers, 5000) for answers in ("labels", "l1")] == [5000, None]
    work = drawn("breast_cancer", "l1", 100)
    parts = [{tuple(x) for x in rows} for rows in (work.asked, work.points, work.others)]
    assert sum(map(len, parts)) == len(set.union(*parts)) == len(table("breast_cancer").rows)
    codes = np.array([ox.YES, ox.NO, ox.Verdict.BOUNDARY, ox.Verdict.UNKNOWN, ox.Verdict.UNDECIDED], dtype=np.int8)
    truth = np.array([ox.YES, ox.YES, ox.NO, ox.NO, ox.NO], dtype=np.int8)
    assert wrong(codes, truth) == 2
    assert differing(codes, [ox.YES, ox.YES, ox.YES, 0, ox.NO]) == 1


def test_the_scorecard_is_whole_numbers_flags_and_one_hot_groups() -> None:
    from certify_data import table

    rows = table("scorecard").rows
    assert rows.shape == (40_000, 29)
    assert (rows == np.round(rows)).all()
    assert 0.1 < np.mean(table("scorecard").plane.labels(rows[:2000]) == ox.YES) < 0.9


def test_what_does_not_end_is_stopped() -> None:
    from certify import NoEnd, within

    with pytest.raises(NoEnd), within(0.05):
        time.sleep(5)
    with within(5):
        pass
