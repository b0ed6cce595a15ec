"""Rows of a data set counted by verdict: those of `Knowledge.certify`, however it is cut, and nothing is written."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from datasets import FEATURES, MODEL, labels, people, robust, store
from overexplain.auditing.units import Units
from overexplain.errors import InvalidInput, NotFinite
from overexplain.knowledge.engine import Knowledge
from overexplain.log.querylog import QueryLog
from overexplain.models.linear import LinearModel
from overexplain.scale import count, streaming
from overexplain.scale.count import Count, count_dataset
from overexplain.scale.parts import Dataset, open_dataset


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count, "block_rows", lambda _: 64)


def opened(folder: Path, rows: np.ndarray, files: list[int], group: int = 50) -> Dataset:
    return open_dataset(store(folder, rows, files, group), FEATURES, 3)


def test_files_parts_and_threads_do_not_change_a_count_and_nothing_is_written(tmp_path: Path, monkeypatch) -> None:
    rows = people(300)
    knowledge = [Knowledge(labels()), Knowledge(robust())]
    found = []
    for number, (files, group, part, threads) in enumerate(
        [([300], 1000, 1000, 1), ([120, 180], 30, 64, 2), ([1, 0, 299], 47, 128, 3)]
    ):
        monkeypatch.setattr(streaming, "processors", lambda threads=threads: threads)
        dataset = opened(tmp_path / f"{number}", rows, files, group)
        before = sorted(tmp_path.rglob("*"))
        found.append(count_dataset(knowledge, dataset, part_rows=part))
        assert sorted(tmp_path.rglob("*")) == before
    assert found[0] == found[1] == found[2]
    assert found[0][0] == Knowledge(labels()).certify(rows).counts()
    assert all(sum(counts.values()) == 300 for counts in found[0])
    # Nobody is judged wrongly: what is determined has the model's own answer.
    yes = int((MODEL.labels(rows) == 1).sum())
    assert all(counts["YES"] <= yes and counts["NO"] <= 300 - yes for counts in found[0])


def test_rows_are_brought_into_the_units_of_the_log(tmp_path: Path) -> None:
    rows = people(300) * [1.0, 1e3, 1e-3] + [0.0, 5e3, 1.0]
    units = Units.standard(rows)
    plane = units.model(LinearModel(MODEL)).hyperplane
    asked = np.random.default_rng(4).normal(size=(30, 3))
    log = QueryLog(FEATURES)
    log.add_label(asked, plane.labels(asked))
    dataset = opened(tmp_path, rows, [100, 200])
    (counts,) = count_dataset([Knowledge(log)], dataset, units=units)
    assert counts == Knowledge(log).certify(units.into(rows)).counts()
    assert count_dataset([Knowledge(log)], dataset) != (counts,)


def test_progress_is_told(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    count_dataset(
        [Knowledge(labels())],
        opened(tmp_path, people(200), [200]),
        part_rows=64,
        progress=lambda *told: seen.append(told),
    )
    assert (seen[0], seen[-1]) == (("counting", 0, 200), ("counting", 200, 200))


def test_a_fault_in_the_data_is_named(tmp_path: Path) -> None:
    rows = people(200)
    rows[150, 1] = np.nan
    with pytest.raises(NotFinite, match=r"people-001\.parquet, row 50 \(row 150 of the data set\): 'age' is nan"):
        count_dataset([Knowledge(labels())], opened(tmp_path, rows, [100, 100]), part_rows=64)
    dataset = opened(tmp_path, people(200), [100, 100])
    store(tmp_path, people(200, seed=9), [100, 100])
    with pytest.raises(InvalidInput, match="has changed since this run began"):
        count_dataset([Knowledge(labels())], dataset)


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    dataset = opened(tmp_path, people(20), [20])
    with pytest.raises(InvalidInput, match="nothing to learn from"):
        count_dataset([Knowledge(labels()), Knowledge(QueryLog())], dataset)
    for odd in ({"part_rows": 0}, {"workers": 2.5}, {"scheduler": "nonsense"}):
        with pytest.raises(InvalidInput, match="must be a whole number, at least 1|address is tcp://host:port"):
            count_dataset([Knowledge(labels())], dataset, **odd)
    with pytest.raises(InvalidInput, match="give either workers or scheduler"):
        count_dataset([Knowledge(labels())], dataset, workers=1, scheduler="tcp://127.0.0.1:1")
    assert count_dataset([], dataset) == ()
    (none,) = count_dataset([Knowledge(labels())], opened(tmp_path / "none", people(2)[:0], [0]))
    assert set(none.values()) == {0}


def test_what_is_sent_to_workers_is_in_one_piece(tmp_path: Path) -> None:
    dataset = opened(tmp_path, people(20), [20])
    work = Count((Knowledge(labels()).prepared(),), dataset, Units.own(3), 64, "1")
    beside: list[pickle.PickleBuffer] = []
    sent = pickle.loads(pickle.dumps(work, protocol=5, buffer_callback=beside.append))
    assert not beside
    assert (type(sent), sent.dataset, sent.block_rows, sent.version) == (Count, dataset, 64, "1")
