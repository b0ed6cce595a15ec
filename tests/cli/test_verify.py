"""`overexplain verify`: what it accepts, what it refuses and with which exit code, and that nothing else is needed for it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from fractions import Fraction as F
from pathlib import Path

import numpy as np
import pytest

import overexplain as ox
from overexplain.cli import verify
from overexplain.cli.main import run
from overexplain.knowledge.certificates import Certificate, Disagreement, Model
from overexplain.knowledge.checker import Term
from overexplain.knowledge.verdicts import Verdict
from proof_samples import contradiction, labels_only, under_another_tolerance, with_an_assumption

POINTS = np.array([[6.0, 0.0], [-1.0, 0.0], [2.0, 0.0], [0.1, 0.2], [6.0, 0.1]])
VERDICTS = ("YES", "NO", "UNKNOWN", "NO", "UNKNOWN")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A log, five points, their verdicts and proofs; the lines of the proofs."""
    monkeypatch.chdir(tmp_path)
    log, _ = labels_only()
    log.save("log.jsonl")
    Path("points.csv").write_text("\n".join(f"{float(a)!r},{float(b)!r}" for a, b in POINTS) + "\n")
    found = ox.Knowledge(log).certify(POINTS)
    assert tuple(Verdict(code).name for code in found.codes) == VERDICTS
    rows = "".join(f"{i},{name}\n" for i, name in enumerate(VERDICTS))
    Path("verdicts.csv").write_text("row,verdict\n" + rows)
    lines = [found.proof(i).to_json(row=i) for i in range(len(POINTS))]
    Path("proofs.jsonl").write_text("\n".join(lines) + "\n")
    return lines


PAIR = ["proofs.jsonl", "log.jsonl"]
ALL = [*PAIR, "--verdicts", "verdicts.csv", "--points", "points.csv"]


def test_every_verdict_has_its_proof(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", *ALL]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines() == [
        "All 5 proofs hold, checked in exact arithmetic.",
        "",
        "proofs      5 hold: 1 YES, 2 NO, 2 UNKNOWN",
        "log         log.jsonl, 3 rows",
        "verdicts    5 claimed in verdicts.csv, 5 of them proved",
        "points      compared: what holds is about the point in its own row of points.csv",
    ]
    assert run(["verify", *ALL, "--json"]) == 0
    out, err = capsys.readouterr()
    assert (err, out.count("\n")) == ("", 1)
    entry = json.loads(out)
    del entry["overexplain"]
    assert entry == {
        "proofs": 5, "hold": 5, "fail": 0, "verdicts": {"YES": 1, "NO": 2, "UNKNOWN": 2, "BOUNDARY": 0},
        "contradictions": 0, "oriented": True, "failures": [],
        "claims": {"claimed": 5, "proved": 5, "undecided": 0, "unproved_rows": []},
    }  # fmt: skip


def test_proofs_alone_and_verdicts_without_points(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", *PAIR]) == 0
    assert "verdicts" not in capsys.readouterr().out
    assert run(["verify", *PAIR, "--verdicts", "verdicts.csv"]) == 0
    assert "not compared" in capsys.readouterr().out
    assert run(["verify", *PAIR, "--points", "points.csv"]) == 0
    Path("proofs.jsonl").write_text("\n" + files[0] + "\n\n")
    assert run(["verify", *PAIR]) == 0
    assert "The proof holds" in capsys.readouterr().out


def failing(capsys: pytest.CaptureFixture[str], *options: str, code: int = 7) -> tuple[str, str]:
    """What a run says that must fail."""
    assert run(["verify", *(options or ALL)]) == code
    out, err = capsys.readouterr()
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert all(len(line) <= 80 for line in out.splitlines())
    return out, err


def changed(files: list[str], line: int, **entries: object) -> None:
    entry = json.loads(files[line]) | entries
    lines = [*files[:line], json.dumps({k: v for k, v in entry.items() if v is not ...}), *files[line + 1 :]]
    Path("proofs.jsonl").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("line", "entries", "says"),
    [
        (0, {"verdict": "NO"}, "do not add up"),
        (0, {"point": [7.0, 0.0]}, "do not add up"),
        (0, {"row": 1}, "about another point than the one in row 1"),
        (0, {"row": 99}, "about row 99 (from 0), but points.csv has 5 points"),
        (0, {"row": ...}, "does not say which row"),
        (0, {"row": -1}, "row must be the number of a row"),
        (0, {"terms": []}, "do not add up"),
        (0, {"premises": []}, "does not name it among its premises"),
        (0, {"version": 2}, "version must be 1"),
        (0, {"more": 1}, "unknown key"),
        (2, {"point": [9.0, 0.0]}, "should say No does not"),
        (2, {"yes": {"normal": ["1", "0"], "offset": "9"}}, "gives row 1 another label"),
    ],
)
def test_a_wrong_proof_is_7_and_its_line_is_named(line, entries, says, files, capsys) -> None:
    changed(files, line, **entries)
    out, err = failing(capsys)
    assert err.startswith(f"error: proofs.jsonl, line {line + 1}: ")
    assert says in err
    assert out.startswith("1 of 5 proofs does not hold.")
    assert f"unproved    row {line} (from 0)" in out


def test_a_changed_log_is_noticed(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    text = Path("log.jsonl").read_text().replace("4.0", "4.0000000001")
    Path("log.jsonl").write_text(text)
    _, err = failing(capsys)
    assert "row 1 of the log is not the row that the proof was made for" in err


def test_a_claim_that_its_proof_does_not_prove_is_7(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("verdicts.csv").write_text(Path("verdicts.csv").read_text().replace("2,UNKNOWN", "2,YES"))
    out, err = failing(capsys)
    assert "line 3: verdicts.csv says YES for row 2, the proof says UNKNOWN" in err
    assert "5 claimed in verdicts.csv, 4 of them proved" in out


def test_a_claim_without_a_proof_is_7_unless_it_claims_nothing(files, capsys) -> None:
    Path("proofs.jsonl").write_text("\n".join(files[:3]) + "\n")
    out, err = failing(capsys)
    assert "All 3 proofs hold" in out
    assert "2 verdicts in verdicts.csv have no proof in proofs.jsonl: rows 3, 4" in err
    text = Path("verdicts.csv").read_text().replace("3,NO", "3,UNDECIDED").replace("4,UNKNOWN", "4,UNDECIDED")
    Path("verdicts.csv").write_text(text)
    assert run(["verify", *ALL]) == 0
    assert "2 more are UNDECIDED and claim nothing" in " ".join(capsys.readouterr().out.split())
    Path("proofs.jsonl").write_text("")
    _, err = failing(capsys)
    assert "3 verdicts in verdicts.csv have no proof in proofs.jsonl: rows 0, 1, 2" in err


def test_rows_may_come_in_any_order_with_other_columns_beside(files, capsys) -> None:
    rows = [f"{i},a{i},{name}\n" for i, name in enumerate(VERDICTS)]
    Path("verdicts.csv").write_text("row,id,verdict\n" + "".join(rows[::-1]))
    Path("proofs.jsonl").write_text("\n".join(files[::-1]))
    assert run(["verify", *ALL]) == 0
    Path("verdicts.csv").write_text("row,id,verdict\n" + "".join(rows[1:]))
    _, err = failing(capsys)
    assert "line 5: verdicts.csv has no verdict on row 0" in err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "must begin with a line of column names"),
        ("a,b\n", "among them row and verdict"),
        ("row,row,verdict\n", "once each"),
        ("row,verdict\n0,YES\n1\n", "line 3: 1 cells, but 2 columns"),
        ("row,verdict\nx,YES\n", "line 2: row must be a whole number, got 'x'"),
        ("row,verdict\n-1,YES\n", "row must be a whole number"),
        ("row,verdict\n" + "9" * 30 + ",YES\n", "row must be a whole number"),
        ("row,verdict\n²,YES\n", "row must be a whole number"),
        ("row,verdict\n0,Yes\n", "line 2: verdict must be one of YES, NO, UNKNOWN, BOUNDARY, UNDECIDED, got 'Yes'"),
        ("row,verdict\n0,YES\n1,NO\n0,YES\n", "more than one verdict on row 0"),
        ("row,verdict\n0,YES\n7,NO\n", "has a verdict on row 7 (from 0), but points.csv has 5 points"),
        ('row,verdict\n0,"YES\n', "not a CSV file"),
        ("row,verdict\n0,\ud800YES\n", "not a CSV file"),
    ],
)
def test_verdicts_that_cannot_be_read_are_3(text, says, files, capsys) -> None:
    Path("verdicts.csv").write_bytes(text.encode("utf-8", "surrogatepass"))
    out, err = failing(capsys, *ALL, code=3)
    assert out == ""
    assert says in err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["nowhere.jsonl", "log.jsonl"], "nowhere.jsonl: No such file"),
        (["proofs.jsonl", "nowhere.jsonl"], "nowhere.jsonl"),
        ([*PAIR, "--verdicts", "nowhere.csv"], "nowhere.csv: No such file"),
        ([*PAIR, "--points", "nowhere.csv"], "nowhere.csv: No such file"),
        (["empty.jsonl", "log.jsonl"], "empty.jsonl holds no proof"),
        (["proofs.jsonl", "empty.jsonl"], "empty.jsonl is empty"),
        (["proofs.jsonl", "bare.jsonl"], "bare.jsonl has no rows"),
        ([*PAIR, "--distance", "l7"], "unknown norm 'l7'"),
    ],
)
def test_files_that_cannot_be_used_are_3(options, says, files, capsys) -> None:
    Path("empty.jsonl").write_text("")
    ox.QueryLog().save("bare.jsonl")
    out, err = failing(capsys, *options, code=3)
    assert out == ""
    assert says in err


@pytest.mark.parametrize(
    "hostile",
    [
        b"{", b"\xff\xfe", b"[" * 50_000, b"null", b'{"proof": "certificate", "version": 1, "terms": 1, "premises": 1}',
        b'{"proof": "certificate", "version": 1, "x": "' + b"\x1b[31m" + b'"}', b'{"a": ' + b"9" * 100_000 + b"}",
    ],
)  # fmt: skip
def test_a_hostile_line_is_one_failure_among_good_proofs(hostile: bytes, files, capsys) -> None:
    Path("proofs.jsonl").write_bytes(files[0].encode() + b"\n" + hostile + b"\n" + files[1].encode())
    out, err = failing(capsys, *PAIR)
    assert err.startswith("error: proofs.jsonl, line 2: ")
    assert "\x1b" not in out + err
    assert "2 hold: 1 YES, 1 NO" in out


def test_a_line_without_end_is_not_read_into_memory(files, capsys, monkeypatch) -> None:
    monkeypatch.setattr(verify, "LONGEST_LINE", 4096)
    Path("proofs.jsonl").write_bytes(b"x" * 50_000 + b"\n" + files[0].encode() + b"\n" + b"y" * 4097)
    out, err = failing(capsys, *PAIR)
    assert "line 1: longer than" in err
    assert "1 hold: 1 YES" in out
    assert "line 3      longer than" in out


def test_many_failures_are_counted_and_a_few_shown(files, capsys) -> None:
    Path("proofs.jsonl").write_text("{}\n" * 12)
    out, err = failing(capsys, *PAIR)
    assert "12 of 12 proofs do not hold." in out
    assert out.count("\nline ") == 5
    assert "and 7 more" in out
    assert "(and 11 further failures)" in err


def test_what_a_proof_assumes_is_said_and_must_be_agreed_to(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    log, proof = under_another_tolerance()
    log.save("log.jsonl")
    Path("proofs.jsonl").write_text(proof.to_json())
    _, err = failing(capsys, *PAIR)
    assert "within 0.0 of the optimum, whatever the log says; if you agree, " in err
    assert "--assume-tolerance 0.0" in err
    failing(capsys, *PAIR, "--assume-tolerance", "0.1")
    assert run(["verify", *PAIR, "--assume-tolerance", "0.0"]) == 0
    assert "assumed     every answer lies within 0.0 of the optimum" in capsys.readouterr().out


def test_without_labels_one_side_is_called_yes_in_all_proofs(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    log, proof = with_an_assumption()
    log.add_explanation([5.0, 0.0], [1.0, 0.0])
    log.save("log.jsonl")
    Path("proofs.jsonl").write_text(proof.to_json())
    assert run(["verify", *PAIR]) == 0
    assert "Yes and No  may be exchanged in all verdicts at once: row 0 is taken to be Yes" in capsys.readouterr().out
    # Both proofs hold, each under its own assumption; together they would call two opposite sides Yes.
    other = Certificate.about(log, [5.0, 0.0], Verdict.YES, [Term("side", F(1), 1)], assumed=[(1, 1)])
    other.verify(log)
    Path("proofs.jsonl").write_text(proof.to_json() + "\n" + other.to_json())
    _, err = failing(capsys, *PAIR)
    assert "line 2: it takes another row as Yes than the proofs before it" in err


def test_terms_may_be_stated_for_a_log_that_states_none(tmp_path, monkeypatch, capsys) -> None:
    from overexplain.log.terms import with_terms

    monkeypatch.chdir(tmp_path)
    log = ox.QueryLog()
    log.add_explanation([0.0, 0.0], [3.0, 0.0], label=-1)
    log.save("log.jsonl")
    stated = with_terms(log, ox.Mechanism("l1", tolerance=0.0))
    terms = [Term("plane", F(1), 0), Term("steepest", F(1), 0)]
    Path("proofs.jsonl").write_text(Certificate.about(stated, [6.0, 0.0], 1, terms).to_json())
    _, err = failing(capsys, *PAIR)
    assert "row 0: the proof rests on is_explained True" in err
    assert run(["verify", *PAIR, "--distance", "l1", "--tolerance", "0"]) == 0
    _, err = failing(capsys, *PAIR, "--distance", "l1")
    assert "rests on tolerance 0.0, the log says None" in err


def test_a_contradiction_is_good_news_alone_and_4_beside_verdicts(files, capsys) -> None:
    log, proof = contradiction()
    log.save("other.jsonl")
    Path("proofs.jsonl").write_text(proof.to_json())
    assert run(["verify", "proofs.jsonl", "other.jsonl"]) == 0
    assert "1 that the log contradicts itself: no model fits it" in " ".join(capsys.readouterr().out.split())
    Path("verdicts.csv").write_text("row,verdict\n")
    _, err = failing(capsys, "proofs.jsonl", "other.jsonl", "--verdicts", "verdicts.csv", code=4)
    assert "contradicts itself, as is proved" in err


def test_neither_solver_nor_engine_is_loaded(files: list[str]) -> None:
    code = (
        "import sys; from overexplain.cli.main import run; "
        f"code = run({['verify', *ALL]!r}); "
        "print(code, sorted(set(sys.modules) & set(sys.argv[1:])))"
    )
    engine = [
        f"overexplain.knowledge.{name}" for name in ("engine", "prover", "program", "settle", "exact", "evidence")
    ]
    heavy = ["numba", "pandas", "sklearn", "scipy.optimize", "overexplain.extraction", "overexplain.oracles", *engine]
    found = subprocess.run(
        [sys.executable, "-c", code, *heavy],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path(ox.__file__).parents[1])},
    )
    assert found.stderr == ""
    assert found.stdout.splitlines()[-1] == "0 []"


# Long numbers: a few hundred kilobytes must not keep a reviewer waiting.

LONG_ENOUGH = 5.0
"""Seconds; each of these took ten or more when their numbers were computed with as they are."""


def took(*arguments: str) -> float:
    began = time.monotonic()
    assert run(["verify", *arguments]) == 7
    return time.monotonic() - began


def test_rays_of_long_numbers_are_ranked_in_no_time(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    p, rng = 12, random.Random(1)
    log = ox.QueryLog(mechanism=ox.Mechanism("l2", tolerance=0.0))
    log.add_explanation([0.0] * p, [0.0] * (p - 1) + [1.0], label=-1)
    log.save("log.jsonl")
    terms = []
    for _ in range(p - 1):
        level = [F(rng.getrandbits(8000)) for _ in range(p - 1)] + [F(0)]
        terms += [Term("ray", F(1), 0, vector=tuple(s * v for v in level)) for s in (1, -1)]
    Path("proofs.jsonl").write_text(Certificate.about(log, None, None, terms).to_json() + "\n")
    assert took(*PAIR) < LONG_ENOUGH
    assert "nothing in it is strict" in capsys.readouterr().err


def test_models_of_long_numbers_are_refused(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    p, rng = 20, np.random.default_rng(1)
    mechanism = ox.Mechanism("l2", tolerance=1e-3)
    oracle = ox.ModelOracle(ox.Hyperplane(rng.normal(size=p), 0.1), mechanism)
    log = ox.QueryLog(mechanism=mechanism)
    for x in rng.normal(size=(100, p)):
        log.add_explanation(x, oracle.explain(x), label=oracle.classify(x))
    log.save("log.jsonl")
    digits = random.Random(1)
    normal = tuple(F(v) + F(1, digits.getrandbits(2000) | 2**1999) for v in oracle.hyperplane.normal.tolist())
    model = Model(normal, F(0.1))
    Path("proofs.jsonl").write_text(Disagreement(tuple(log.points[0]), model, model).to_json() + "\n")
    assert took(*PAIR) < LONG_ENOUGH
    assert "a model: fractions too long to be computed with" in capsys.readouterr().err
