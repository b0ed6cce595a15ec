"""Robust counterfactuals on the command line: levels, terms, what is said of undecided points, proofs that `verify` accepts."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from overexplain.auditing.determined import robust_use
from overexplain.auditing.slices import take_slice
from overexplain.cli.main import run
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import Weighted, l1
from overexplain.knowledge.engine import Knowledge
from overexplain.log.querylog import QueryLog
from overexplain.oracles.exact import ModelOracle

FEATURES = ["income", "age", "debts"]
TERMS = Mechanism("l1", robustness="l2", radius=0.5)
SECRET = Mechanism("l1", robustness="l2", radius=None)
QUESTIONS = [[-3.0, -1.0, 1.0], [2.0, 2.0, 3.0]]
LABELLED = [[-2.0, 3.0, -3.0], [0.0, -2.0, -2.0], [1.0, -1.0, 0.0]]
POINTS = [[0.0, 1.5, 2.5], [1.5, -3.0, 0.5], [-5.0, 0.0, 0.0], [5.0, 1.0, 0.0], [0.0, 0.0, 0.5]]
"""The convex set leaves the first two open; they are a certain No and a certain Yes."""

EXACT = ["NO", "YES", "YES", "NO", "UNKNOWN"]
LEVELS = ("paper", "perspective", "shared", "exact")


def written(name: str, mechanisms: list[Mechanism | None], answering: Mechanism = TERMS) -> QueryLog:
    """A log of the same service; of the terms it answers by the rows show these."""
    model = Hyperplane([-4.0, -2.0, 1.0], 0.0)
    log = QueryLog(features=FEATURES)
    log.add_label(LABELLED, model.labels(np.array(LABELLED)))
    for x, shown in zip(QUESTIONS, mechanisms, strict=True):
        terms = answering if shown is None or shown.radius is None else shown
        log.add_explanation(x, ModelOracle(model, terms).explain(np.array(x)), label=model.label(x), mechanism=shown)
    log.save(name)
    return log


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written("log.jsonl", [TERMS, TERMS])
    lines = [",".join(map(repr, point)) for point in POINTS]
    Path("points.csv").write_text("\n".join([",".join(FEATURES), *lines, ""]))


def verdicts(path: str = "verdicts.csv") -> list[str]:
    return [line.split(",")[1] for line in Path(path).read_text().splitlines()[1:]]


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_gives_the_verdicts_of_the_library_and_proofs_that_verify(level, capsys) -> None:
    written_files = ["-o", "verdicts.csv", "--proofs", "proofs.jsonl"]
    assert run(["certify", "log.jsonl", "points.csv", "--robust", level, *written_files]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    found = Knowledge(QueryLog.load("log.jsonl"), robust=level).certify(np.array(POINTS))
    assert verdicts() == [found[i].name for i in range(len(POINTS))]
    check = next(line for line in out.splitlines() if line.startswith("to check them: overexplain "))
    assert run(shlex.split(check.partition(": overexplain ")[2])) == 0
    assert "proofs hold, checked in exact arithmetic" in capsys.readouterr().out


def test_exact_decides_what_the_convex_set_leaves_open_by_cases(capsys) -> None:
    assert run(["certify", "log.jsonl", "points.csv", "--robust", "shared", "-o", "verdicts.csv"]) == 0
    out = capsys.readouterr().out
    assert verdicts() == ["UNDECIDED", "UNDECIDED", *EXACT[2:]]
    assert "40 % are not settled: the convex set of --robust shared, or a limit, leaves them open; " in words(out)
    assert "--robust exact decides more." in words(out)
    assert "(5 labels and 2 explanations, all robust) determines at least 40 %" in words(out)
    assert all(len(line) <= 80 for line in out.splitlines())
    written_files = ["-o", "exact.csv", "--proofs", "proofs.jsonl"]
    assert run(["certify", "log.jsonl", "points.csv", *written_files]) == 0
    assert "not settled" not in capsys.readouterr().out
    assert verdicts("exact.csv") == EXACT
    proofs = [json.loads(line) for line in Path("proofs.jsonl").read_text().splitlines()]
    assert [proof.get("branches") is not None for proof in proofs] == [True, True, False, False, False]
    claims = ["log.jsonl", "--verdicts", "exact.csv", "--points", "points.csv"]
    assert run(["verify", "proofs.jsonl", *claims]) == 0
    assert "5 claimed in exact.csv, 5 of them proved" in capsys.readouterr().out
    proofs[0]["branches"]["list"][-1]["terms"].pop()
    Path("other.jsonl").write_text("".join(json.dumps(proof) + "\n" for proof in proofs))
    assert run(["verify", "other.jsonl", *claims]) == 7


def test_a_limit_is_called_a_limit(capsys) -> None:
    options = ["--robust", "exact", "--time-limit", "0"]
    assert run(["certify", "log.jsonl", "points.csv", *options]) == 0
    out = words(capsys.readouterr().out)
    assert "are not settled: a limit of time, of cases or of rounding was hit." in out
    assert "--robust" not in out


def test_json_says_how_robust_rows_were_used(capsys) -> None:
    assert run(["certify", "log.jsonl", "points.csv", "--robust", "paper", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["robust"] == {"level": "paper", "explanations": 2, "balls": ["l2"], "secret": 0}
    assert run(["map", "log.jsonl", "--features", "0,1", "--size", "5x5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["robust"]["level"] == "exact"
    log = QueryLog(features=FEATURES)
    log.add_label(LABELLED, [-1, 1, 1])
    log.save("labels.jsonl")
    assert run(["certify", "labels.jsonl", "points.csv", "--json"]) == 0
    assert "robust" not in json.loads(capsys.readouterr().out)


def test_balls_of_several_norms_are_said_to_have_a_length_each(capsys) -> None:
    written("two.jsonl", [TERMS, Mechanism("l1", robustness="linf", radius=0.25)])
    for command in (["certify", "two.jsonl", "points.csv"], ["map", "two.jsonl", "--features", "0,1", "--size", "9x5"]):
        assert run(command) == 0
        out = words(capsys.readouterr().out)
        assert (
            "The balls of robust explanations have 2 norms (l2, linf): each has a length of its own, and even " in out
        )
    assert run(["certify", "log.jsonl", "points.csv"]) == 0
    assert "length of its own" not in capsys.readouterr().out


def test_a_secret_radius_says_what_is_used(capsys) -> None:
    written("secret.jsonl", [SECRET, SECRET])
    said = "what is used is that answers of one service lie equally far behind the plane."
    written_files = ["-o", "verdicts.csv", "--proofs", "proofs.jsonl"]
    assert run(["certify", "secret.jsonl", "points.csv", *written_files]) == 0
    assert f"Radius secret: {said}" in words(capsys.readouterr().out)
    assert {"YES", "NO"} & set(verdicts())  # something is still known
    claims = ["--verdicts", "verdicts.csv", "--points", "points.csv"]
    assert run(["verify", "proofs.jsonl", "secret.jsonl", *claims]) == 0
    capsys.readouterr()
    written("mixed.jsonl", [SECRET, TERMS])
    assert run(["map", "mixed.jsonl", "--features", "0,1", "--size", "9x5"]) == 0
    assert f"Radius secret for 1 of 2: {said}" in words(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("stated", "options"),
    [
        (TERMS, ["--distance", "l1", "--robustness", "l2", "--radius", "0.5"]),
        (SECRET, ["--distance", "l1", "--robustness", "l2", "--radius", "secret"]),
        (Mechanism("l1", radius=None), ["--distance", "l1", "--radius", "secret"]),
    ],
)
def test_terms_on_the_command_line_are_as_good_as_those_in_the_log(stated, options, capsys) -> None:
    written("stated.jsonl", [stated, stated])
    assert run(["certify", "stated.jsonl", "points.csv", "-o", "stated.csv"]) == 0
    written("bare.jsonl", [None, None])
    written_files = ["-o", "bare.csv", "--proofs", "proofs.jsonl"]
    assert run(["certify", "bare.jsonl", "points.csv", *options, *written_files]) == 0
    assert verdicts("bare.csv") == verdicts("stated.csv")
    check = capsys.readouterr().out.splitlines()[-1].partition(": overexplain ")[2]
    assert check.endswith(shlex.join(options))
    assert run(shlex.split(check)) == 0
    assert run(shlex.split(check)[: -len(options)]) == 7


@pytest.mark.parametrize("command", [["certify", "log.jsonl", "points.csv"], ["map", "log.jsonl", "--features", "0,1"]])
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--robust", "foo"], "'foo' is not one of 'paper', 'perspective', 'shared', 'exact'"),
        (["--robust", ""], "--robust"),
        (["--robustness", "l2", "--radius", "1"], "--robustness and --radius need --distance"),
        (["--radius", "secret"], "--robustness and --radius need --distance"),
        (["--distance", "l1", "--robustness", "l2"], "--robustness and --radius belong together"),
        (["--distance", "l1", "--radius", "0.5"], "--robustness and --radius belong together"),
        (["--distance", "l1", "--robustness", "l2", "--radius", "-1"], "--radius"),
        (["--distance", "l1", "--robustness", "l2", "--radius", "nan"], "--radius"),
        (["--distance", "l1", "--robustness", "l2", "--radius", "hidden"], "a number, 0 or more, or 'secret'"),
    ],
)
def test_wrong_usage_is_2_and_one_line(command, options, says, capsys) -> None:
    assert run([*command, *options]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert says in err


def test_a_ball_of_radius_0_is_no_ball(capsys) -> None:
    plain = Mechanism("l1")
    written("bare.jsonl", [None, None], answering=plain)
    options = ["--distance", "l1", "--robustness", "l2", "--radius", "0"]
    assert run(["certify", "bare.jsonl", "points.csv", *options, "-o", "zero.csv"]) == 0
    assert run(["certify", "bare.jsonl", "points.csv", "--distance", "l1", "-o", "plain.csv"]) == 0
    assert verdicts("zero.csv") == verdicts("plain.csv")
    assert "robust" not in capsys.readouterr().out


def test_robust_answers_that_contradict_each_other_are_4_and_named(capsys) -> None:
    log = QueryLog(features=["x", "y"], mechanism=TERMS)
    log.add_label([[5.0, 0.0]], [-1])
    log.add_explanation([[0.0, 0.0], [0.0, 10.0]], [[0.0, 3.0], [0.0, 7.0]], label=[-1, -1])
    log.save("wrong.jsonl")
    for command in (["certify", "wrong.jsonl", "wrong.csv", "-o", "verdicts.csv"], ["map", "wrong.jsonl"]):
        Path("wrong.csv").write_text("x,y\n0,0\n")
        assert run(command) == 4
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("error: wrong.jsonl: no linear model fits rows 1, 2 (counted from 0) together: 0 = ")
        assert err.count("\n") == 1
    assert not Path("verdicts.csv").exists()


def test_a_map_shows_what_a_level_leaves_open_and_the_balls(capsys) -> None:
    log = QueryLog(features=["x", "y"], mechanism=TERMS)
    log.add_explanation([0.0, 0.0], ModelOracle(Hyperplane([1.0, 2.0], 4.0), TERMS).explain(np.zeros(2)), label=-1)
    log.save("one.jsonl")
    options = ["--range", "-3:6,-3:6", "--size", "19x13"]
    found = {}
    for level in LEVELS:
        assert run(["map", "one.jsonl", "--robust", level, *options]) == 0
        out = capsys.readouterr().out
        assert all(len(line) <= 80 for line in out.splitlines())
        found[level] = [line.split("|")[1] for line in out.splitlines() if line.count("|") == 2]
        assert ("leaves them open" in words(out)) == ("The log determines at least" in out) == (level == "paper")
    assert found["perspective"] == found["shared"] == found["exact"]  # one answer: theory says so
    changed = {
        pair for a, b in zip("".join(found["paper"]), "".join(found["exact"]), strict=True) if (pair := a + b)[0] != b
    }
    assert changed == {"?N"}
    assert run(["map", "one.jsonl", "--robust", "paper", *options, "-o", "map.svg"]) == 0
    page = ElementTree.parse("map.svg").getroot()
    kinds = [path.get("class") for path in page.findall("{*}path")]
    assert {"undecided", "unknown", "yes", "no", "ball", "arrow"} <= set(kinds)
    assert any("leaves them open" in text for text in page.find("{*}desc").itertext())
    assert run(["map", "one.jsonl", *options, "-o", "map.png"]) == 0
    assert Path("map.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("ball", ["l1", "l2", "linf", "lp:3", Weighted(l1, [2.0, 1.0, 0.5])])
def test_balls_have_their_radius_and_lie_in_the_slice(ball) -> None:
    terms = Mechanism("l1", robustness=ball, radius=0.75)
    log = QueryLog(mechanism=terms)
    log.add_explanation([0.0, 0.0, 1.0], [0.0, 3.0, 1.0], label=-1)
    log.add_label([0.0, -0.5, 1.0], -1)
    found = take_slice(Knowledge(log), log, (0, 1), size=(5, 5))
    (outline,) = found.balls
    around = np.column_stack([outline, np.ones(len(outline))]) - [0.0, 3.0, 1.0]
    np.testing.assert_allclose(terms.robustness(around), 0.75, rtol=1e-12)
    assert len(np.unique(outline.round(9), axis=0)) > 100
    low, high = outline.min(axis=0), outline.max(axis=0)
    assert found.across.values[0] < low[0] < high[0] < found.across.values[-1]
    assert found.up.values[0] < -0.5 < low[1] < high[1] < found.up.values[-1]
    elsewhere = take_slice(Knowledge(log), log, (0, 1), at=[0.0, 0.0, 2.0], size=(5, 5))
    assert elsewhere.balls == ()


def test_no_ball_is_drawn_of_a_secret_radius_or_a_plain_explanation() -> None:
    log = QueryLog()
    log.add_explanation([0.0, 0.0], [0.0, 3.0], label=-1, mechanism=Mechanism("l1", robustness="l2", radius=None))
    log.add_explanation([0.0, 4.0], [0.0, 2.0], label=1, mechanism=Mechanism("l1"))
    log.add_explanation([0.0, 5.0], [0.0, 1.0], label=1)
    assert take_slice(Knowledge(log), log, (0, 1), size=(5, 5)).balls == ()


@pytest.mark.parametrize(
    ("terms", "levels"),
    [
        (Mechanism("l1", robustness="l2", radius=0.5), ("paper", "perspective", "shared")),
        (Mechanism("linf", robustness="l1", radius=0.5), ("paper", "perspective", "shared")),
        (Mechanism("l1", robustness="l1", radius=0.5), ("paper",)),  # touching point: the set is convex
        (Mechanism("l2", robustness="l1", radius=0.5), ("paper",)),  # smooth: the direction is known
        (Mechanism("l1", robustness="l2", radius=0.5, slack=0.1), ("paper",)),
        (Mechanism("l1", robustness="l2", radius=None), ()),
    ],
)
def test_which_levels_may_leave_open_what_exact_decides(terms, levels) -> None:
    log = QueryLog(mechanism=terms)
    log.add_explanation([0.0, 0.0], [0.0, 3.0], label=-1)
    assert tuple(level for level in LEVELS if robust_use(log, level).leaves_open) == levels
