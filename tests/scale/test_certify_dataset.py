"""Verdicts on a data set: those of `Knowledge.certify`, however it is cut, whatever happened before, carried on after a kill."""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from datasets import FEATURES, labels, named, people, proofs_by_row, robust, store, verdicts, written
from overexplain.errors import InvalidInput, NotFinite
from overexplain.geometry.mechanism import Mechanism
from overexplain.knowledge.certificates import read_proof
from overexplain.knowledge.engine import Knowledge
from overexplain.knowledge.verdicts import Verdict
from overexplain.log.querylog import QueryLog
from overexplain.scale import certify, streaming
from overexplain.scale.certify import certify_dataset
from overexplain.scale.folder import log_digest, prepared_job
from overexplain.scale.parts import open_dataset
from overexplain.scale.run import refuse_odd_sharing


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certify, "block_rows", lambda *_: 64)


def expected(log: QueryLog, rows: np.ndarray) -> list[str]:
    return [Verdict(int(code)).name for code in Knowledge(log).certify(rows).codes]


# The same verdicts.


def test_the_verdicts_are_those_of_the_points_in_memory(tmp_path: Path) -> None:
    rows = people(500)
    done = certify_dataset(Knowledge(labels()), store(tmp_path / "in", rows, [130, 0, 370]), tmp_path / "out")
    wanted = expected(labels(), rows)
    table = verdicts(tmp_path / "out")
    assert named(tmp_path / "out") == wanted
    assert table.column("row").to_pylist() == list(range(500))
    assert table.column("id").to_pylist() == [f"n{i}" for i in range(500)]
    assert done.determined.counts == {verdict.name: wanted.count(verdict.name) for verdict in Verdict}
    assert (done.determined.labels, done.determined.explanations, done.determined.proofs) == (40, 0, None)
    summary = json.loads((tmp_path / "out" / "_summary.json").read_text())
    assert summary["counts"] == done.determined.counts
    assert sum(part["rows"] for part in summary["parts"]) == summary["rows"] == 500
    assert summary["log_sha256"] == log_digest(labels())


@pytest.mark.parametrize("make", [labels, robust])
def test_files_row_groups_parts_and_threads_do_not_change_a_verdict(make, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(certify, "block_rows", lambda *_: 16)
    rows = people(40)
    found, proofs = [], []
    for number, (files, group, part, threads) in enumerate(
        [([40], 1000, 1000, 1), ([15, 25], 9, 16, 2), ([1, 0, 39], 13, 32, 3)]
    ):
        monkeypatch.setattr(streaming, "processors", lambda threads=threads: threads)
        folder = store(tmp_path / f"in{number}", rows, files, group)
        out, proved = tmp_path / f"out{number}", tmp_path / f"proofs{number}"
        certify_dataset(Knowledge(make()), folder, out, proofs=proved, part_rows=part)
        found.append(named(out))
        proofs.append(proofs_by_row(proved))
    assert found[0] == found[1] == found[2]
    assert proofs[0] == proofs[1] == proofs[2]
    assert len(proofs[0]) == 40 - found[0].count("UNDECIDED")


def test_every_proof_holds_and_is_about_its_row(tmp_path: Path) -> None:
    rows, log = people(80), labels()
    certify_dataset(Knowledge(log), store(tmp_path / "in", rows, [80]), tmp_path / "out", proofs=tmp_path / "proofs")
    names = named(tmp_path / "out")
    for row, line in proofs_by_row(tmp_path / "proofs").items():
        proof = read_proof(line)
        proof.verify(log)
        assert np.array_equal(proof.point, rows[row])
        assert proof.verdict.name == names[row]


@pytest.mark.parametrize("make", [labels, robust])
def test_a_fork_does_not_remember_what_others_were_asked(make) -> None:
    rows = people(300)
    alone = Knowledge(make()).prepared().fork().certify(rows)
    used = Knowledge(make())
    used.certify(people(600, seed=5))
    base = used.prepared()
    for some in (people(100, seed=6), people(50, seed=7)):
        base.fork().certify(some)
    sent = pickle.loads(pickle.dumps(base))
    for again in (base.fork().certify(rows), sent.fork().certify(rows)):
        assert np.array_equal(again.codes, alone.codes)
        for i in (0, 17, 150, 299):
            if alone[i] != Verdict.UNDECIDED:
                assert again.proof(i).to_json() == alone.proof(i).to_json()


def test_a_fork_of_many_threads_at_once_says_the_same() -> None:
    rows = people(500)
    base = Knowledge(robust()).prepared()
    found: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: found.append(base.fork().certify(rows).codes)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert all(np.array_equal(codes, found[0]) for codes in found)


@pytest.mark.parametrize("terms", ["l1", "l2", "linf", "lp:1.5"])
def test_knowledge_of_any_distance_can_be_sent(terms: str) -> None:
    from datasets import MODEL
    from overexplain.geometry.norms import norm
    from overexplain.oracles.exact import ModelOracle

    service = ModelOracle(MODEL, Mechanism(norm(terms)))
    log = QueryLog(features=FEATURES, mechanism=service.mechanism)
    points = people(2)
    log.add_explanation(points, service.explain(points), label=service.classify(points))
    rows = people(200, seed=3)
    sent = pickle.loads(pickle.dumps(Knowledge(log).prepared()))
    assert np.array_equal(sent.fork().certify(rows).codes, Knowledge(log).certify(rows).codes)
    assert sent.settings == {"robust": "exact", "tolerance": None, "time_limit": None}


def test_what_is_sent_to_workers_is_in_one_piece(tmp_path: Path) -> None:
    """Arrays beside it would arrive read-only, and have every worker compile the loops again."""
    knowledge = Knowledge(labels())
    folder = open_dataset(store(tmp_path / "in", people(20), [20]), FEATURES, 3)
    job = prepared_job(knowledge, folder, tmp_path, None, 64)
    beside: list[pickle.PickleBuffer] = []
    sent = pickle.loads(pickle.dumps(job, protocol=5, buffer_callback=beside.append))
    assert not beside
    assert (sent.dataset, sent.output, sent.block_rows) == (job.dataset, job.output, job.block_rows)
    rows = people(50)
    assert np.array_equal(sent.knowledge.fork().certify(rows).codes, knowledge.certify(rows).codes)


# Carrying on.


CARRIED_ON = people(64)
SIZE = 8
"""Rows of a block and of a part, of which there are then eight."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a run writes that nobody interrupts."""
    place = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certify, "block_rows", lambda *_: SIZE)
        folder = store(place / "in", CARRIED_ON, [30, 34])
        certify_dataset(Knowledge(labels()), folder, place / "out", proofs=place / "proofs", part_rows=SIZE)
    return written(place / "out", place / "proofs")


def test_a_run_that_ended_early_is_carried_on(tmp_path: Path, whole: dict[str, bytes], monkeypatch) -> None:
    monkeypatch.setattr(certify, "block_rows", lambda *_: SIZE)
    folder = store(tmp_path / "in", CARRIED_ON, [30, 34])
    knowledge = Knowledge(labels())
    monkeypatch.setattr(streaming, "processors", lambda: 1)

    class Enough(Exception):
        pass

    def give_up(_what: str, done: int, _total: int) -> None:
        if done >= 3 * SIZE:
            raise Enough

    where = {"proofs": tmp_path / "proofs", "part_rows": SIZE}
    with pytest.raises(Enough):
        certify_dataset(knowledge, folder, tmp_path / "out", progress=give_up, **where)
    kept = written(tmp_path / "out")
    assert 0 < len(kept) < 8
    assert not (tmp_path / "out" / "_summary.json").exists()
    seen: list[int] = []
    done = certify_dataset(knowledge, folder, tmp_path / "out", progress=lambda _, n, __: seen.append(n), **where)
    assert (done.parts, done.kept) == (8, len(kept))
    assert seen[0] == SIZE * len(kept)  # what was done is not done again
    assert written(tmp_path / "out", tmp_path / "proofs") == whole
    assert certify_dataset(knowledge, folder, tmp_path / "out", **where).kept == 8


SLOW = """
import sys, time
from pathlib import Path
from overexplain.knowledge.engine import Knowledge
from overexplain.log.querylog import QueryLog
from overexplain.scale import certify, streaming
certify.block_rows = lambda *_: 8
streaming.processors = lambda: 2
def tell(_what, done, _total):
    print(done, flush=True)
    if done >= 24:
        time.sleep(60)  # until it is killed, as is the other thread when it comes here: at least one part is whole by then
log, data, out, proofs = map(Path, sys.argv[1:])
certify.certify_dataset(Knowledge(QueryLog.load(log)), data, out, proofs=proofs, part_rows=8, progress=tell)
"""


def test_kill_minus_nine_loses_no_part_and_leaves_none_half_written(
    tmp_path: Path, whole: dict[str, bytes], monkeypatch
) -> None:
    monkeypatch.setattr(certify, "block_rows", lambda *_: SIZE)
    folder = store(tmp_path / "in", CARRIED_ON, [30, 34])
    labels().save(tmp_path / "log.jsonl")
    where = [tmp_path / "log.jsonl", folder, tmp_path / "out", tmp_path / "proofs"]
    process = subprocess.Popen([sys.executable, "-c", SLOW, *map(str, where)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 3 * SIZE:
            break
    process.send_signal(signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    process.stdout.close()
    kept = written(tmp_path / "out")
    notes = list((tmp_path / "out" / "_parts").glob("part-*.json"))
    assert 1 <= len(notes) <= len(kept) < 8
    log = QueryLog.load(tmp_path / "log.jsonl")
    done = certify_dataset(Knowledge(log), folder, tmp_path / "out", proofs=tmp_path / "proofs", part_rows=SIZE)
    assert (done.parts, done.kept) == (8, len(notes))
    assert written(tmp_path / "out", tmp_path / "proofs") == whole
    assert not list((tmp_path / "out").glob(".*"))
    assert not list((tmp_path / "proofs").glob(".*"))


def test_another_log_or_data_set_is_refused(tmp_path: Path) -> None:
    folder, knowledge = store(tmp_path / "in", people(200), [200]), Knowledge(labels())
    out = tmp_path / "out"
    certify_dataset(knowledge, folder, out)
    with pytest.raises(InvalidInput, match="holds a run on another log"):
        certify_dataset(Knowledge(labels(seed=3)), folder, out)
    with pytest.raises(InvalidInput, match=r"on other settings \(time_limit is None there, 5\.0 here\); carry"):
        certify_dataset(Knowledge(labels(), time_limit=5.0), folder, out)
    with pytest.raises(InvalidInput, match=r"on other settings \(proofs is False there, True here\); carry"):
        certify_dataset(knowledge, folder, out, proofs=tmp_path / "proofs")
    with pytest.raises(InvalidInput, match="holds a run on another data set"):
        certify_dataset(knowledge, store(tmp_path / "in2", people(201), [201]), out)
    with pytest.raises(InvalidInput, match="other files, or other row groups"):
        certify_dataset(knowledge, store(tmp_path / "in3", people(200), [100, 100]), out)
    with pytest.raises(InvalidInput, match="parts of another size"):
        certify_dataset(knowledge, folder, out, part_rows=100)
    with pytest.raises(InvalidInput, match="part-000000 was made from files that have changed since"):
        certify_dataset(knowledge, store(tmp_path / "in4", people(200, seed=9), [200]), out)
    assert certify_dataset(knowledge, folder, out).kept == 4


def test_a_folder_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    folder = store(tmp_path / "in", people(20), [20])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="exists already and is no run of ours"):
        certify_dataset(Knowledge(labels()), folder, tmp_path / "out")
    with pytest.raises(InvalidInput, match="exists already and is no run of ours"):
        certify_dataset(Knowledge(labels()), folder, tmp_path / "new", proofs=tmp_path / "out")
    (tmp_path / "out" / "_manifest.json").write_text("[]")
    with pytest.raises(InvalidInput, match="not the manifest of a run"):
        certify_dataset(Knowledge(labels()), folder, tmp_path / "out")


def test_a_part_whose_file_was_removed_is_done_again(tmp_path: Path) -> None:
    folder, knowledge = store(tmp_path / "in", people(200), [200], group=64), Knowledge(labels())
    certify_dataset(knowledge, folder, tmp_path / "out", part_rows=64)
    before = written(tmp_path / "out")
    (tmp_path / "out" / "part-000001.parquet").unlink()
    assert certify_dataset(knowledge, folder, tmp_path / "out", part_rows=64).kept == 3
    assert written(tmp_path / "out") == before
    (tmp_path / "out" / "_parts" / "part-000002.json").write_text("{}")
    with pytest.raises(InvalidInput, match=r"part-000002\.json: not a note"):
        certify_dataset(knowledge, folder, tmp_path / "out", part_rows=64)


# What is wrong with the data.


def test_parts_without_the_fault_are_kept_and_the_mended_file_is_enough(tmp_path: Path) -> None:
    rows, knowledge = people(400), Knowledge(labels())
    bad = rows.copy()
    bad[150, 2] = np.nan
    bad[390, 0] = np.inf
    folder = store(tmp_path / "in", bad, [100, 200, 100], group=64)
    with pytest.raises(NotFinite) as caught:
        certify_dataset(knowledge, folder, tmp_path / "out", part_rows=64)
    said = str(caught.value)
    assert "people-001.parquet, row 50 (row 150 of the data set): 'debts' is nan" in said
    assert "parts are done and kept; 1 more cannot be used either" in said
    kept = len(written(tmp_path / "out"))
    assert kept >= 3
    assert not (tmp_path / "out" / "_summary.json").exists()
    store(tmp_path / "mended", rows, [100, 200, 100], group=64)
    for name in ("people-001.parquet", "people-002.parquet"):
        (tmp_path / "mended" / name).replace(folder / name)
    # Other parts read the same files, and those have changed: they are not taken on trust.
    with pytest.raises(InvalidInput, match="was made from files that have changed since"):
        certify_dataset(knowledge, folder, tmp_path / "out", part_rows=64)
    certify_dataset(knowledge, folder, tmp_path / "fresh", part_rows=64)
    assert named(tmp_path / "fresh") == expected(labels(), rows)


def test_a_damaged_file_costs_its_own_parts_only(tmp_path: Path) -> None:
    rows, knowledge = people(384), Knowledge(labels())
    folder = store(tmp_path / "in", rows, [128, 128, 128], group=64)
    damaged = folder / "people-001.parquet"
    whole = damaged.read_bytes()
    data = bytearray(whole)
    for group in range(2):
        offset = pq.ParquetFile(damaged).metadata.row_group(group).column(1).data_page_offset
        data[offset : offset + 60] = b"\xff" * 60
    damaged.write_bytes(data)
    with pytest.raises(InvalidInput, match=r"people-001\.parquet, row group 0: cannot be read.*4 of 6 parts are done"):
        certify_dataset(knowledge, folder, tmp_path / "out", part_rows=64)
    damaged.write_bytes(whole)
    done = certify_dataset(knowledge, folder, tmp_path / "out", part_rows=64)
    assert (done.parts, done.kept) == (6, 4)
    assert named(tmp_path / "out") == expected(labels(), rows)


def test_an_empty_data_set_has_no_verdicts(tmp_path: Path) -> None:
    done = certify_dataset(Knowledge(labels()), store(tmp_path / "in", people(2)[:0], [0, 0]), tmp_path / "out")
    assert (done.parts, done.determined.points, done.determined.share) == (0, 0, None)
    assert json.loads((tmp_path / "out" / "_summary.json").read_text())["rows"] == 0


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    folder, knowledge = store(tmp_path / "in", people(20), [20]), Knowledge(labels())
    for odd in (0, -1, 2.5, "a", True):
        for name in ("workers", "part_rows"):
            with pytest.raises(InvalidInput, match=f"{name} must be a whole number, at least 1, got {odd!r}"):
                certify_dataset(knowledge, folder, tmp_path / "out", **{name: odd})
    for odd in (
        "",
        "nonsense",
        "nonsense://",
        "http://127.0.0.1:8786",
        "tcp://127.0.0.1",
        "tcp://:1",
        "tcp://a b:1",
        7,
    ):
        with pytest.raises(InvalidInput, match=r"a scheduler's address is tcp://host:port"):
            certify_dataset(knowledge, folder, tmp_path / "out", scheduler=odd)
    with pytest.raises(InvalidInput, match="nosuch: No such file or folder; a data set is"):
        certify_dataset(knowledge, tmp_path / "nosuch", tmp_path / "out")
    with pytest.raises(InvalidInput, match="give either workers or scheduler"):
        certify_dataset(knowledge, folder, tmp_path / "out", workers=1, scheduler="tcp://127.0.0.1:1")
    with pytest.raises(InvalidInput, match="there is nothing to learn from"):
        certify_dataset(Knowledge(QueryLog()), folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "address", ["tcp://10.0.0.5:8786", "tls://a-b.example.org:8786", "localhost:1", "tcp://[::1]:80"]
)
def test_addresses_of_schedulers(address: str) -> None:
    refuse_odd_sharing(None, address)


def test_a_column_called_row_is_not_taken_for_a_key(tmp_path: Path) -> None:
    import pyarrow as pa

    rows = people(30)
    table = pa.table({"row": [f"r{i}" for i in range(30)], **{name: rows[:, k] for k, name in enumerate(FEATURES)}})
    pq.write_table(table, tmp_path / "a.parquet")
    certify_dataset(Knowledge(labels()), tmp_path / "a.parquet", tmp_path / "out")
    assert verdicts(tmp_path / "out").column_names == ["row", "verdict"]
    assert verdicts(tmp_path / "out").column("row").to_pylist() == list(range(30))


# Memory.

PEAK = """
import re, sys
from pathlib import Path
from overexplain.knowledge.engine import Knowledge
from overexplain.log.querylog import QueryLog
from overexplain.scale import certify, count, streaming
from overexplain.scale.parts import open_dataset
streaming.processors = lambda: 1
certify.block_rows = count.block_rows = lambda *_: 8192
knowledge, place = Knowledge(QueryLog.load(sys.argv[1])), Path(sys.argv[2])
for size in ("small", "large"):
    certify.certify_dataset(knowledge, place / size, place / f"{size}-out")
    count.count_dataset([knowledge], open_dataset(place / size, knowledge.log.features, 3))
    print(int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) // 1024)
"""


def test_memory_does_not_grow_with_the_data_even_in_one_row_group(tmp_path: Path) -> None:
    labels().save(tmp_path / "log.jsonl")
    for size, count in (("small", 200_000), ("large", 900_000)):
        store(tmp_path / size, people(count), [count], group=count, key=False)
    command = [sys.executable, "-c", PEAK, str(tmp_path / "log.jsonl"), str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    small, large = map(int, run.stdout.split())
    # The points of the larger one alone are 22 MB.
    assert large - small < 14, (small, large)
