"""A log saved as a run: the same answers, all of them spent, and none of them asked again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overexplain.cli.main import run
from overexplain.errors import InvalidInput
from overexplain.extraction.extract import extract
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import QueryLog, Status
from overexplain.log.store.run import Run
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.kept import Kept
from overexplain.oracles.wrappers import Recorded

PLANE = Hyperplane([0.3, -1.5, 2.25], 0.7)


def kinds(log: QueryLog) -> list[tuple[list[float], int, list[float], int]]:
    """Every row as (point, label, explanation, status), one answer each."""
    rows = []
    for row in log:
        if row.label is not None:
            rows.append((row.point.tolist(), row.label, None, Status.NOT_ASKED))
        if row.status is not Status.NOT_ASKED:
            rows.append(
                (row.point.tolist(), None, None if row.explanation is None else row.explanation.tolist(), row.status)
            )
    return rows


def test_what_a_log_knows_is_not_asked_again(tmp_path: Path) -> None:
    service = ModelOracle(PLANE, Mechanism("l1"))
    asked = Recorded(service, QueryLog(["a", "b", "c"], Mechanism("l1")))
    first = extract(asked, rng=0)
    asked.log.save(tmp_path / "march.sqlite")
    silent = Recorded(service)
    with Run.open(tmp_path / "march.sqlite") as kept:
        again = extract(Kept(silent, kept), rng=0)
        assert (kept.spent, kept.left, kept.plan) == (4, 0, {"imported": True})
        assert kept.features == ("a", "b", "c")
    assert len(silent.log) == 0
    assert np.array_equal(again.hyperplane.normal, first.hyperplane.normal)
    assert again.spent == first.spent


@given(
    st.lists(
        st.tuples(
            st.sampled_from([[0.0, -0.0], [1.5, 2.0], [5e-324, 1e300]]),
            st.sampled_from([None, 1, -1]),
            st.sampled_from(["not asked", "given", "none", "failed"]),
            st.sampled_from([None, 1.7e9, 0.0]),
        ),
        max_size=12,
    )
)
def test_every_answer_comes_back(tmp_path_factory, rows) -> None:
    log = QueryLog(["a", "b"], Mechanism("l2"))
    for point, label, what, time in rows:
        if what == "not asked":
            if label is not None:
                log.add_label(point, label, time=time)
        else:
            answer = [3.0, 4.0] if what == "given" else None
            log.add_explanation(
                point, answer, label=label, time=time, status=Status.FAILED if what == "failed" else None
            )
    path = tmp_path_factory.mktemp("imported") / "log.sqlite"
    log.save(path)
    back = QueryLog.load(path)
    assert kinds(back) == kinds(log)
    assert (back.features, back.mechanism) == (log.features, log.mechanism)
    assert Run.read(path).left == 0


def test_what_a_run_cannot_be_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    with pytest.raises(InvalidInput, match="how many features"):
        QueryLog().save(path)
    log = QueryLog()
    log.add_explanation([1.0], [2.0], mechanism=Mechanism("l1"))
    log.add_explanation([1.0], [2.0], mechanism=Mechanism("l2"))
    with pytest.raises(InvalidInput, match="one mechanism, the explanations of this log follow 2"):
        log.save(path)
    assert not path.exists()
    labels = QueryLog()
    labels.add_label([1.0], 1)
    labels.save(path)
    with pytest.raises(InvalidInput, match="not written over"):
        labels.save(path)


def test_convert_says_what_is_left_out(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    log = QueryLog(["a"], Mechanism("l1"))
    log.add_explanation([1.0], [2.0], label=-1, client="ann")
    log.save("log.jsonl")
    assert run(["log", "convert", "log.jsonl", "log.sqlite"]) == 0
    err = capsys.readouterr().err
    assert "a run cannot hold clients, that times are not known (now stands for them)" in err
    assert "label and explanation in one row (1 become two)" in err
    assert run(["log", "check", "log.sqlite"]) == 0
    assert "2 of 2 requests spent" in " ".join(capsys.readouterr().out.split())
    assert run(["probe", "--resume", "log.sqlite"]) == 3
    assert "plan cannot be read" in capsys.readouterr().err
