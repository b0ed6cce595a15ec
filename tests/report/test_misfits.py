"""Reports from elsewhere: what does not fit together is refused when it is read, and what is read can be drawn."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from html_reader import REPORTS
from overexplain.auditing.audit_report import AuditReport
from overexplain.cli.main import run
from overexplain.errors import InvalidInput
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import QueryLog
from overexplain.oracles.exact import ModelOracle
from overexplain.report.render import render

ENTRIES = json.loads(REPORTS["sample"].to_json())
TURNED = "\u202e31.7"


def changed(path: str, value: Any) -> dict[str, Any]:
    entries: Any = copy.deepcopy(ENTRIES)
    *inner, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    part = entries
    for key in inner:
        part = part[key]
    part[last] = value
    return entries  # type: ignore[no-any-return]


MISFITS = {
    "services": [],
    "services.1.id": "s1",
    "known.0.service": "s99",
    "curves.0.service": "s99",
    "quotas.0.service": "s99",
    "defences.service": "s99",
    "gates.0.service": "s99",
    "curves.0.answers": [],
    "curves.0.median": [0.5],
    "curves.1.high.0": 1e308,
    "quotas.0.highest": 1e308,
    "gates.0.found": 1e308,
    "maps.0.panels.0.grid": ["Y", "YN"],
    "maps.0.panels.1.grid.3": "a text",
    "proof.x": TURNED,
    "proof.y": TURNED,
    "proof.rows.0.weight": TURNED,
    "proof.rows.0.x": TURNED,
    "proof.rows.1.y": TURNED,
    "proof.rows.0.question": 99,
}


@pytest.mark.parametrize("path", MISFITS)
def test_what_does_not_fit_together_is_refused_when_it_is_read(path, tmp_path: Path, capsys) -> None:
    (tmp_path / "audit.json").write_text(json.dumps(changed(path, MISFITS[path])))
    assert run(["verify", str(tmp_path)]) == 3
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "not an audit report: " in err
    assert path.split(".")[0] in err


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("findings.0.values", {}),
        ("findings.0.values.service", "s99"),
        ("findings.1.values.share", None),
        ("findings.0.values.answers", 0.5),
        ("advice.0.values.target", None),
        ("advice.0.values.service", "<script>"),
        ("findings.0.code", TURNED),
        ("subject.model_sha256", TURNED),
        ("subject.data_sha256", "\x07" + TURNED),
        ("provenance.overexplain", TURNED),
        ("maps.0.across", TURNED),
        ("gates.0.expression", TURNED),
    ],
)
@pytest.mark.parametrize("name", ["r.html", "r.md", "r.xml"])
def test_what_is_read_is_drawn_and_turns_nothing_around(path, value, name) -> None:
    drawn = render(AuditReport.from_json(json.dumps(changed(path, value))), Path(name))
    assert "\u202e" not in drawn
    assert "\x07" not in drawn


def test_every_report_of_the_samples_fits_together() -> None:
    for name, report in REPORTS.items():
        assert AuditReport.from_json(report.to_json()) == report, name


def test_a_service_that_is_not_there_is_named() -> None:
    with pytest.raises(InvalidInput, match="no service 's99'"):
        REPORTS["sample"].service("s99")


def test_names_turn_nothing_around_on_a_screen_or_in_a_picture(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["a\u202eb\x1b[31m", "c\u2066d\u009b"]
    Path("model.json").write_text(json.dumps({"features": names, "coefficients": [1.0, -2.0], "intercept": 0.3}))
    service = ModelOracle(Hyperplane([1.0, -2.0], -0.3), Mechanism("l1"))
    log, asked = QueryLog(features=names, mechanism=service.mechanism), np.random.default_rng(0).normal(size=(20, 2))
    log.add_explanation(asked, service.explain(asked), service.classify(asked), client="cl\u202e\x1b")
    log.save("log.jsonl")
    commands = [
        "extract model.json --distance l1",
        "model inspect model.json",
        "map log.jsonl",
        "map log.jsonl -o map.svg",
    ]
    for command in [*commands, "monitor log.jsonl", "log show log.jsonl", "log check log.jsonl"]:
        assert run(command.split()) == 0
        out, err = capsys.readouterr()
        assert not {"\u202e", "\u2066", "\u009b", "\x1b"} & {*out, *err}, command
    assert not {"\u202e", "\u2066", "\u009b", "\x1b"} & {*Path("map.svg").read_text()}
