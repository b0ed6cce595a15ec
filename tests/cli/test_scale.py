"""`certify`, `verify` and `audit` on folders of Parquet files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datasets import FEATURES, labels, named, people, store, write_model
from overexplain.cli import dataset, scale
from overexplain.cli.main import run
from overexplain.knowledge.engine import Knowledge
from overexplain.scale import certify
from overexplain.scale.sample import draw, hashed

ROWS = people(150)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(tmp_path, monkeypatch)


def prepare(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go to a folder with a log and a data set, which are certified in parts of 32 rows."""
    monkeypatch.chdir(place)
    monkeypatch.setattr(certify, "block_rows", lambda *_: 32)
    labels().save("log.jsonl")
    store(place / "people", ROWS, [60, 0, 90], group=40)


def said(capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    found = capsys.readouterr()
    return found.out, found.err


# certify


def test_a_folder_in_folders_out_and_every_verdict_verified(capsys) -> None:
    assert run(["certify", "log.jsonl", "people", "-o", "verdicts", "--proofs", "proofs"]) == 0
    out, err = said(capsys)
    assert "150 points:" in out
    assert "to check them: overexplain verify proofs log.jsonl --verdicts verdicts --points people" in out
    assert err == "note: people: 'id' is no feature; it is kept in verdicts\n"
    wanted = Knowledge(labels()).certify(ROWS)
    assert named(Path("verdicts")) == [wanted[i].name for i in range(150)]
    assert run(["verify", "proofs", "log.jsonl", "--verdicts", "verdicts", "--points", "people"]) == 0
    out, _ = said(capsys)
    assert out.startswith("All 150 proofs hold, checked in exact arithmetic.")
    assert "150 claimed in verdicts, 150 of them proved" in " ".join(out.split())
    assert run(["certify", "log.jsonl", "people", "-o", "verdicts", "--proofs", "proofs", "--json"]) == 0
    out, err = said(capsys)
    assert json.loads(out)["counts"] == wanted.counts()
    assert json.loads(out)["proofs"] == 150
    assert "note: kept 5 of 5 parts: done before" in err


def test_ctrl_c_says_that_what_is_done_is_kept(monkeypatch, capsys) -> None:
    whole = scale.certify_dataset

    def interrupted(*arguments, **options):
        whole(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(scale, "certify_dataset", interrupted)
    assert run(["certify", "log.jsonl", "people", "-o", "verdicts"]) == 130
    out, err = said(capsys)
    assert out == ""
    assert err.splitlines()[-2:] == [
        "note: parts that were done are kept; the same command carries on with the rest",
        "interrupted",
    ]
    monkeypatch.setattr(scale, "certify_dataset", whole)
    assert run(["certify", "log.jsonl", "people", "-o", "verdicts"]) == 0
    assert "note: kept 3 of 3 parts: done before" in said(capsys)[1]


def test_what_makes_no_sense_is_refused(capsys) -> None:
    for arguments, code, message in (
        (["people"], 2, "name a folder for the verdicts"),
        (["people", "-o", "out", "--workers", "2", "--scheduler", "tcp://x:1"], 2, "give --workers or --scheduler"),
        (["people", "-o", "out.csv"], 3, "out.csv: what is written about a data set is a folder"),
        (
            ["people", "-o", "out", "--proofs", "log.jsonl"],
            3,
            "log.jsonl: what is written about a data set is a folder",
        ),
        (["people", "-o", "out", "--proofs", "out"], 3, "must be different folders"),
        (["people", "-o", "people/out"], 3, "none inside another"),
        (["log.jsonl", "-o", "out", "--workers", "1"], 3, "is a .parquet file or a folder of them"),
        (["nowhere.parquet", "-o", "out", "--workers", "1"], 3, "nowhere.parquet: No such file"),
        (["people", "-o", "out", "--scheduler", "nonsense"], 3, "a scheduler's address is tcp://host:port"),
        (
            ["people", "-o", "out", "--scheduler", "http://127.0.0.1:8786"],
            3,
            "a scheduler's address is tcp://host:port",
        ),
        (["people", "-o", "out", "--scheduler", ""], 3, "a scheduler's address is tcp://host:port"),
    ):
        assert run(["certify", "log.jsonl", *arguments]) == code, arguments
        _, err = said(capsys)
        assert message in err
        assert err.startswith("error: ")
        assert err.count("\n") == 1
    assert not Path("out").exists()


def test_a_scheduler_that_is_not_there_is_one_line(capsys, monkeypatch) -> None:
    from overexplain.scale import cluster

    monkeypatch.setattr(cluster, "CONNECT", 0.3)
    assert run(["certify", "log.jsonl", "people", "-o", "out", "--scheduler", "tcp://127.0.0.1:1"]) == 8
    _, err = said(capsys)
    assert "error: no scheduler answers at tcp://127.0.0.1:1" in err.splitlines()[-1]


# verify


@pytest.fixture(scope="module")
def proved_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that `certify` reads and writes."""
    place = tmp_path_factory.mktemp("proved")
    with pytest.MonkeyPatch.context() as patch:
        prepare(place, patch)
        assert run(["certify", "log.jsonl", "people", "-o", "verdicts", "--proofs", "proofs"]) == 0
    return place


@pytest.fixture
def proved(folder: None, proved_once: Path, capsys) -> None:
    for name in ("verdicts", "proofs"):
        shutil.copytree(proved_once / name, name)
    capsys.readouterr()


def failing(arguments: list[str], capsys) -> str:
    assert run(["verify", "proofs", "log.jsonl", *arguments]) == 7
    return said(capsys)[1]


ALL = ["--verdicts", "verdicts", "--points", "people"]


def test_a_proof_that_is_missing_is_missed(proved: None, capsys) -> None:
    path = Path("proofs/part-000002.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3] + lines[4:]))
    assert "1 verdict in verdicts/part-000002.parquet has no proof in proofs/part-000002.jsonl: row 67" in failing(
        ALL, capsys
    )


def test_a_proof_about_another_point_is_found(proved: None, capsys) -> None:
    path = Path("proofs/part-000001.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    first, second = json.loads(lines[0]), json.loads(lines[1])
    first["row"], second["row"] = second["row"], first["row"]
    path.write_text("".join([json.dumps(second) + "\n", json.dumps(first) + "\n", *lines[2:]]))
    assert "proofs/part-000001.jsonl, line 1: it is about another point" in failing(ALL, capsys)


def test_a_part_that_is_missing_is_missed(proved: None, capsys) -> None:
    Path("verdicts/part-000004.parquet").rename("last.parquet")
    assert "part-000004: there are no verdicts of this part" in failing(ALL, capsys)
    Path("proofs/part-000004.jsonl").rename("last.jsonl")
    assert "part-000004: there are no verdicts of this part" in failing(["--verdicts", "verdicts"], capsys)
    Path("verdicts/_manifest.json").unlink()  # nobody says then which parts there were
    assert "verdicts has verdicts on 128 rows, but people has 150 points" in failing(ALL, capsys)
    Path("verdicts/part-000000.parquet").unlink()
    Path("proofs/part-000000.jsonl").unlink()
    assert "its verdicts are on rows 32 to 63; those before it end at row -1" in failing(ALL, capsys)


def test_proofs_that_are_all_gone_are_missed(proved: None, capsys) -> None:
    for path in Path("proofs").iterdir():
        path.unlink()
    assert "part-000000: there are no proofs of this part" in failing(ALL, capsys)
    Path("verdicts/_manifest.json").write_text('{"parts": 3}')
    assert run(["verify", "proofs", "log.jsonl", *ALL]) == 3
    assert "_manifest.json: not the manifest of a run" in said(capsys)[1]


def test_a_verdict_that_was_changed_is_found(proved: None, capsys) -> None:
    path = Path("verdicts/part-000003.parquet")
    table = pq.read_table(path)
    names = table.column("verdict").to_pylist()
    names[5] = "NO" if names[5] == "YES" else "YES"
    pq.write_table(table.set_column(2, "verdict", pa.array(names)), path)
    assert "part-000003.parquet says" in failing(["--verdicts", "verdicts"], capsys)
    names[5] = "MAYBE"
    pq.write_table(table.set_column(2, "verdict", pa.array(names)), path)
    assert run(["verify", "proofs", "log.jsonl", "--verdicts", "verdicts"]) == 3
    assert "verdict must be one of YES, NO, UNKNOWN, BOUNDARY, UNDECIDED, got 'MAYBE'" in said(capsys)[1]


def test_one_part_can_be_checked_by_itself(proved: None, capsys) -> None:
    part = ["proofs/part-000001.jsonl", "log.jsonl", "--verdicts", "verdicts/part-000001.parquet"]
    assert run(["verify", *part]) == 0
    assert "All 32 proofs hold" in said(capsys)[0]
    assert run(["verify", *part, "--points", "people"]) == 0
    assert "All 32 proofs hold" in said(capsys)[0]
    store(Path("others"), np.vstack([ROWS[:40], ROWS[40:] + 1.0]), [60, 0, 90], group=40)
    assert run(["verify", *part, "--points", "others"]) == 7
    assert "part-000001.jsonl, line 9: it is about another point than the one in row 40 of others" in said(capsys)[1]
    store(Path("few"), ROWS[:50], [50])
    assert run(["verify", *part, "--points", "few"]) == 3
    assert "has a verdict on row 63" in said(capsys)[1]


def test_folders_without_parts_are_refused(proved: None, capsys) -> None:
    for arguments, message in (
        (["people", "log.jsonl"], "people: no proofs of a data set"),
        (["proofs", "log.jsonl", "--points", "people"], "--points needs --verdicts"),
        (["proofs", "log.jsonl", "--verdicts", "verdicts/part-000001.parquet"], "belong to verdicts in a folder"),
    ):
        assert run(["verify", *arguments]) == 3
        assert message in said(capsys)[1]


# audit


def test_a_sample_does_not_depend_on_blocks_and_units_are_those_of_all_rows() -> None:
    rows = np.random.default_rng(0).normal(size=(5000, 3)) * [1.0, 1e6, 1e-6] + [1e8, 0.0, 3.0]
    whole = draw([rows], 3, most=200, seed=4)
    for size in (7, 1000, 4999):
        again = draw((rows[i : i + size] for i in range(0, 5000, size)), 3, most=200, seed=4)
        assert np.array_equal(again.numbers, whole.numbers)
        assert np.array_equal(again.rows, rows[again.numbers])
        assert np.allclose(again.units.centre, rows.mean(axis=0), rtol=1e-13)
        assert np.allclose(again.units.scale, rows.std(axis=0), rtol=1e-9)
    brute = sorted(sorted(range(5000), key=lambda i: int(hashed(np.array([i]), 4)[0]))[:200])
    assert whole.numbers.tolist() == brute
    assert (whole.total, whole.left_out) == (5000, 4800)
    other = draw([rows], 3, most=200, seed=5)
    assert len(set(other.numbers.tolist()) & set(brute)) < 60
    everything = draw([rows], 3, most=5000)
    assert np.array_equal(everything.rows, rows)


def test_every_row_is_as_likely_as_any_other() -> None:
    counts = np.zeros(50)
    for seed in range(2000):
        counts[draw([np.zeros((50, 1))], 1, most=10, seed=seed).numbers] += 1
    # 2000 draws of 10 out of 50: 400 each, with a standard deviation of 18.
    assert np.abs(counts - 400).max() < 90


def test_an_audit_of_a_large_folder_is_one_of_a_sample_and_says_so(capsys, monkeypatch) -> None:
    monkeypatch.setattr(dataset, "MOST_CASES", 60)
    write_model(Path("model.json"))
    options = ["--service", "l1", "--orders", "2", "--judged", "20", "--maps", "0", "--no-compare", "--no-defences"]
    assert (
        run(["audit", "model.json", "--data", "people", *options, "--standardize", "--json", "--report", "a.md"]) == 0
    )
    report = json.loads(said(capsys)[0])
    subject = report["subject"]
    assert (subject["cases"], subject["cases_left_out"], subject["cases_drawn"]) == (60, 90, True)
    assert "60 (people, drawn at random from 150 rows)" in Path("a.md").read_text()
    # The same rows in one file give the same report, but for its name.
    store(Path("one"), ROWS, [150], group=1000)
    Path("one/people-000.parquet").rename("people.parquet")
    assert run(["audit", "model.json", "--data", "people.parquet", *options, "--standardize", "--json"]) == 0
    again = json.loads(said(capsys)[0])
    assert again["subject"] == subject | {"data": "people.parquet"}
    assert again["curves"] == report["curves"]
    monkeypatch.setattr(dataset, "MOST_CASES", 150)
    assert run(["audit", "model.json", "--data", "people", *options, "--json"]) == 0
    assert json.loads(said(capsys)[0])["subject"]["cases_drawn"] is False


def test_an_empty_folder_cannot_be_audited(capsys) -> None:
    Path("model.json").write_text(json.dumps({"intercept": 0.5, "coefficients": dict.fromkeys(FEATURES, 1.0)}))
    store(Path("none"), ROWS[:0], [0])
    assert run(["audit", "model.json", "--data", "none"]) == 3
    assert "none: no rows" in said(capsys)[1]
