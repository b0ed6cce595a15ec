"""`overexplain map`: the letters are the verdicts, pictures are whole, and what cannot be drawn is said in one line."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from overexplain.cli.main import run
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.knowledge.engine import Knowledge
from overexplain.log.querylog import QueryLog
from overexplain.oracles.exact import ModelOracle

L1 = Mechanism("l1")


def save_log(
    name: str, features: list[str] | None, normal: list[float], count: int = 12, explained: int = 0
) -> QueryLog:
    rng = np.random.default_rng(5)
    service = ModelOracle(Hyperplane(normal, 0.25), L1)
    log = QueryLog(features=features, mechanism=L1)
    points = rng.normal(size=(count, len(normal))).round(2)
    log.add_label(points, service.classify(points))
    if explained:
        questions = rng.normal(size=(explained, len(normal))).round(2)
        log.add_explanation(questions, service.explain(questions), label=service.classify(questions))
    log.save(name)
    return log


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_log("two.jsonl", ["income", "debts"], [1.0, -1.5])
    save_log("four.jsonl", ["income", "age", "debts", "years"], [1.0, 0.5, -1.5, 0.25], 60)


def grid(out: str) -> list[str]:
    return [line.split("|")[1] for line in out.splitlines() if line.count("|") == 2]


def test_letters_are_the_verdicts_of_their_points(capsys) -> None:
    assert run(["map", "two.jsonl", "--range", "-3:3,-2:2", "--size", "13x9"]) == 0
    rows = grid(capsys.readouterr().out)
    assert [len(row) for row in rows] == [13] * 9
    knowledge = Knowledge(QueryLog.load("two.jsonl"))
    signs = {1: "Y", -1: "N", 0: ".", 2: "=", 3: "?"}
    seen = set()
    for row, debts in zip(reversed(rows), np.linspace(-2, 2, 9), strict=True):
        codes = knowledge.certify(np.column_stack([np.linspace(-3, 3, 13), np.full(13, debts)])).codes
        for letter, code in zip(row, codes.tolist(), strict=True):
            seen.add(letter)
            assert letter in (signs[code], "o", "x")
    assert {"Y", "N", ".", "o", "x"} <= seen


def test_it_fits_80_columns_and_needs_no_options_for_two_features(capsys) -> None:
    assert run(["map", "two.jsonl"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.isascii()
    assert all(len(line) <= 80 and line == line.rstrip() for line in out.splitlines())
    assert [len(row) for row in grid(out)] == [61] * 31
    assert sum(row.count("o") + row.count("x") for row in grid(out)) >= 10  # of 12; some may share a cell
    assert "asked, answered Yes" in out


@pytest.mark.parametrize("features", ["debts,age", "2,1", "debts,1", " debts , age "])
def test_features_by_name_or_number(features, capsys) -> None:
    assert run(["map", "four.jsonl", "--features", features, "--size", "9x5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["across"]["name"], found["up"]["name"]) == ("debts", "age")
    assert sorted(found["held"]) == ["income", "years"]
    assert np.array(found["codes"]).shape == (5, 9)


def test_the_others_are_held_at_the_median_or_where_a_file_says(capsys) -> None:
    log = QueryLog.load("four.jsonl")
    options = ["--features", "income,debts", "--size", "5x5", "--json"]
    assert run(["map", "four.jsonl", *options]) == 0
    held = json.loads(capsys.readouterr().out)["held"]
    for name, value in held.items():
        assert value == np.sort(log.points[:, log.features.index(name)])[29]
    for entry in ({"age": 1.5, "years": -2}, {"age": 1.5, "years": -2, "income": 9}, [9, 1.5, 9, -2]):
        Path("at.json").write_text(json.dumps(entry))
        assert run(["map", "four.jsonl", *options, "--at", "at.json"]) == 0
        assert json.loads(capsys.readouterr().out)["held"] == {"age": 1.5, "years": -2.0}


def test_a_slice_through_a_question_shows_it(capsys) -> None:
    point = QueryLog.load("four.jsonl").points[7]
    Path("at.json").write_text(json.dumps(point.tolist()))
    assert run(["map", "four.jsonl", "--features", "0,1", "--at", "at.json"]) == 0
    out = capsys.readouterr().out
    assert "1 of the log's 60 points lie in this plane." in out
    assert sum(row.count("o") + row.count("x") for row in grid(out)) == 1


def test_pictures(capsys) -> None:
    assert run(["map", "two.jsonl", "-o", "map.svg"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1] == "map saved: map.svg"
    assert err == ""
    page = ElementTree.parse("map.svg").getroot()
    assert page.find("{*}title").text == out.splitlines()[0]
    assert len(page.findall("{*}circle")) + len(page.findall("{*}rect[@class='no-mark']")) == 12
    assert run(["map", "two.jsonl", "-o", "map.png", "--size", "9x9"]) == 0
    assert Path("map.png").read_bytes().startswith(b"\x89PNG")
    assert run(["map", "two.jsonl", "-o", "map.svg", "--size", "9x9"]) == 3
    assert "map.svg: exists already" in capsys.readouterr().err
    assert {path.name for path in Path().iterdir()} == {"two.jsonl", "four.jsonl", "map.svg", "map.png"}


def test_a_log_without_names_numbers_its_features(capsys) -> None:
    save_log("plain.jsonl", None, [1.0, -1.0, 2.0])
    assert run(["map", "plain.jsonl", "--features", "x2,0", "--size", "5x5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["across"], found["up"]["name"]) == ({**found["across"], "feature": 2, "name": "x2"}, "x0")


def test_terms_given_on_the_command_line_count(capsys) -> None:
    rng = np.random.default_rng(5)
    service = ModelOracle(Hyperplane([1.0, -1.5], 0.25), L1)
    log = QueryLog()
    questions = rng.normal(size=(3, 2))
    log.add_explanation(questions, service.explain(questions), label=service.classify(questions))
    log.save("bare.jsonl")
    shares = []
    for options in ([], ["--distance", "l1"]):
        assert run(["map", "bare.jsonl", "--json", "--size", "9x9", *options]) == 0
        shares.append(json.loads(capsys.readouterr().out)["shares"]["UNKNOWN"])
    assert shares[1] < shares[0]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["none.jsonl"], "none.jsonl"),
        (["one.jsonl"], "one.jsonl has one feature; a map needs two"),
        (["four.jsonl"], "four.jsonl has 4 features; say which two: --features income,age"),
        (["four.jsonl", "--features", "income"], "two features"),
        (["four.jsonl", "--features", "income,income"], "two different features"),
        (["four.jsonl", "--features", "income,height"], "no feature 'height'; there are 'income', 'age'"),
        (["four.jsonl", "--features", "0,4"], "no feature '4'"),
        (["two.jsonl", "-o", "map.pdf"], "map.pdf: a map is written to a file whose name ends in .svg or .png"),
        (["two.jsonl", "-o", "nowhere/map.svg", "--size", "3x3"], "nowhere"),
        (["two.jsonl", "--size", "200x3"], "do not fit a terminal of 80"),
        (["four.jsonl", "--features", "0,1", "--at", "none.json"], "none.json: No such file"),
        (["four.jsonl", "--features", "0,1", "--at", "few.json"], "few.json: nothing for 'years'"),
        (["four.jsonl", "--features", "0,1", "--at", "odd.json"], "odd.json: 'height': no such feature"),
        (
            ["four.jsonl", "--features", "0,1", "--at", "text.json"],
            "text.json: 'debts' is \"1\", which is not a number",
        ),
        (["four.jsonl", "--features", "0,1", "--at", "list.json"], "list.json: the point must be a point with 4"),
        (["four.jsonl", "--features", "0,1", "--at", "broken.json"], "broken.json: not JSON"),
        (["four.jsonl", "--features", "0,1", "--at", "number.json"], "number.json: a point is an object"),
        (["four.jsonl", "--features", "0,1", "--at", "nan.json"], "nan.json: "),
    ],
)
def test_input_that_cannot_be_used_is_3_and_one_line(arguments, says, capsys) -> None:
    save_log("one.jsonl", ["a"], [1.0])
    for name, text in {
        "few": '{"debts": 1}', "odd": '{"debts": 1, "years": 1, "height": 1}', "text": '{"debts": "1", "years": 1}',
        "list": "[1, 2]", "broken": "{", "number": "7", "nan": '{"debts": NaN, "years": 1}',
    }.items():  # fmt: skip
        Path(f"{name}.json").write_text(text)
    assert run(["map", *arguments]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert says in err
    assert err.count("\n") == 1
    assert not list(Path().glob("*.svg"))


@pytest.mark.parametrize(
    "options",
    [
        ["--size", "61"], ["--size", "1x5"], ["--size", "5x99999"], ["--size", "-5x5"],
        ["--range", "0:1"], ["--range", "1:0,0:1"], ["--range", "a:b,c:d"], ["--range", "0:inf,0:1"],
        ["--range=-1e308:1e308,0:1"], ["--tolerance", "1"],
    ],
)  # fmt: skip
def test_wrong_usage_is_2_and_one_line(options, capsys) -> None:
    assert run(["map", "two.jsonl", *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert options[0].partition("=")[0] in err
    assert err.count("\n") == 1
