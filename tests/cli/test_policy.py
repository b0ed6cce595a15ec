"""The policy file: what is read, that nothing is ignored, and that the command line wins."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from inspect import signature
from pathlib import Path

import pytest

from overexplain.auditing.gates import parse_gate
from overexplain.cli.main import run
from overexplain.cli.policy import Policy, as_policy, read_policy, read_target
from overexplain.errors import InvalidInput

PAGE = Path(__file__).parents[2] / "docs" / "policy.md"


def write(tmp_path, text: str | bytes) -> Path:
    path = tmp_path / "policy.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_every_entry(tmp_path):
    policy = read_policy(
        write(
            tmp_path,
            """
            [audit]
            services = ["l1", "l1; robust=l2:0.1"]
            fail_on = ["determined@200 > 60%", "answers-to-extract<20"]
            target = "57.5 %"
            standardize = true
            compare = false
            defences = false
            maps = 0
            orders = 5
            judged = 100
            answers = [10, 20, 200]
            seed = 4294967295
            """,
        )
    )
    assert policy == Policy(
        services=("l1", "l1; robust=l2:0.1"),
        fail_on=("determined@200 > 60%", "answers-to-extract<20"),
        target=0.575,
        standardize=True,
        compare=False,
        defences=False,
        maps=0,
        orders=5,
        judged=100,
        answers=(10, 20, 200),
        seed=2**32 - 1,
    )


def test_an_empty_table_says_nothing(tmp_path):
    assert read_policy(write(tmp_path, "[audit]\n")) == Policy()
    assert Policy().options == {}
    assert Policy().as_options() == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the table [audit] is missing"),
        ("audit = 3", "the table [audit] is a number"),
        ("[audti]\nseed = 1", "no table is called 'audti'; did you mean 'audit'?"),
        ("[audit]\nfail-on = []", "no entry is called 'fail-on'; did you mean 'fail_on'?"),
        ("[audit]\nservice = ['l1']", "did you mean 'services'?"),
        ("[audit]\nzzz = 1", "known: services, fail_on"),
        ("[audit]\nservices = []", "services is empty"),
        ("[audit]\nservices = [1]", "services is a list of texts"),
        ("[audit]\nservices = ['l0']", "services: service 'l0'"),
        ("[audit]\nservices = {a = 1}", "services is a list of texts"),
        ("[audit]\nfail_on = ['leak>3']", "fail_on: gate 'leak>3'"),
        ("[audit]\ntarget = 60", "target is a share between 0 and 1"),
        ("[audit]\ntarget = 60", "write '60%' for percent"),
        ("[audit]\ntarget = '0%'", "target is a share"),
        ("[audit]\ntarget = 1.0", "target is a share"),
        ("[audit]\ntarget = nan", "target is a share"),
        ("[audit]\ntarget = true", "target is a share"),
        ("[audit]\ntarget = -0.5", "target is a share"),
        ("[audit]\ntarget = 'half'", "target is a share"),
        ("[audit]\nseed = -1", "seed is a whole number, from 0 to 4294967295"),
        ("[audit]\nseed = true", "seed is a whole number"),
        ("[audit]\nseed = 1.0", "seed is a whole number"),
        ("[audit]\nseed = 4294967296", "seed is a whole number"),
        ("[audit]\norders = 0", "orders is a whole number, at least 1"),
        ("[audit]\nstandardize = 'yes'", "standardize is true or false, not 'yes'"),
        ("[audit]\nstandardize = 1", "standardize is true or false"),
        ("[audit]\nanswers = []", "answers is a list"),
        ("[audit]\nanswers = [2, 1]", "answers must rise"),
        ("[audit]\nanswers = [1, 1]", "answers must rise"),
        ("[audit]\nanswers = [0]", "answers is a whole number"),
        ("[audit]\nseed = 1\nseed = 2", "no TOML file: "),
        ("[audit", "no TOML file: "),
        (b"[audit]\nname = '\xff'", "not UTF-8 text (byte 16)"),
        ("[audit]\nx = " + "[" * 100_000, "policy.toml"),
        ("#" * (1 << 21), "larger than"),
    ],
)
def test_what_is_refused_names_the_file_and_the_entry(tmp_path, text, told):
    with pytest.raises(InvalidInput) as error:
        read_policy(write(tmp_path, text))
    assert told in str(error.value)
    assert "policy.toml" in str(error.value)
    assert len(str(error.value)) < 400 + len(str(tmp_path))


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_policy(tmp_path / "none.toml")


def test_the_command_line_wins_entry_by_entry():
    file = Policy(services=("l1",), seed=1, standardize=True, fail_on=("quota<3",))
    line = Policy(services=("l2", "linf"), standardize=False, fail_on=())
    both = line.over(file)
    assert both == Policy(services=("l2", "linf"), seed=1, standardize=False, fail_on=())


def test_as_options_says_the_same_as_the_file():
    policy = Policy(services=("l1", "l2"), fail_on=("quota<3",), compare=False, answers=(1, 5), seed=0)
    words = ["--service", "l1", "--service", "l2", "--fail-on", "quota<3", "--no-compare", "--answers", "1,5"]
    assert policy.as_options() == [*words, "--seed", "0"]


def test_every_entry_is_an_argument_of_audit():
    from overexplain.auditing.audit import audit

    assert {field.name for field in fields(Policy)} <= set(signature(audit).parameters)


def test_targets_are_rounded_once():
    assert read_target("57.3%") == 0.573
    assert read_target("0.1%") == 0.001


def test_the_page_shows_a_policy_that_is_read_and_every_entry_and_gate():
    text = PAGE.read_text(encoding="utf-8")
    example = re.search(r"```toml\n(.*?)```", text, flags=re.DOTALL)[1]
    policy = as_policy(tomllib.loads(example))
    assert policy.services == ("l1", "l1; robust=l2:0.1")
    assert policy.target == 0.6
    for field in fields(Policy):
        assert f"| `{field.name}` |" in text
    gates = re.findall(r"^\| `([a-z-]+[@<>][^`]*)` \|", text, flags=re.MULTILINE)
    assert {parse_gate(gate).name for gate in gates} == {"determined", "answers-to-extract", "quota", "agreement"}


LONG = "9" * 5_000
HEX = "0x" + "f" * 5_000


@pytest.mark.parametrize(
    ("number", "said"),
    [(LONG, "line 2 has a whole number of thousands of digits"), (HEX, "audit.seed is a whole number beyond ±2^63")],
)
def test_a_number_of_thousands_of_digits_is_refused_by_name(number, said, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("policy.toml").write_text(f"[audit]\nseed = {number}\n")
    Path("model.json").write_text('{"coefficients": [1, 2], "intercept": 0}')
    Path("cases.csv").write_text("a,b\n1,2\n")
    assert run(["audit", "model.json", "--data", "cases.csv", "--policy", "policy.toml"]) == 3
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("error: policy.toml: ")
    assert said in err


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (LONG, "line 4 has a whole number of thousands of digits"),
        (HEX, "limits.retries is a whole number beyond ±2^63"),
    ],
)
def test_so_it_is_in_an_endpoint_file(number, said, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("e.toml").write_text(
        f'url = "http://127.0.0.1:1/v1/models/m"\ndimension = 2\n[limits]\nretries = {number}\n[mechanism]\ndistance = "l1"\n'
    )
    assert run(["probe", "e.toml", "--budget", "1", "--authorized"]) == 3
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("error: e.toml: ")
    assert said in err
