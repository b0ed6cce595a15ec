"""Every golden case: what it shows is as reviewed, what is frozen is as it was, and its verdicts contradict none of before.

`frozen/` and `old/` are promises to users: exit codes, error lines, verdicts, schemas, files. `shown/` is what the commands say
today; `make goldens` writes it anew.
"""

from __future__ import annotations

import difflib
import json
from functools import cache

import jsonschema
import pytest

from golden.cases import CASES, Case
from golden.expected import FROZEN_SCHEMAS, HERE, SCHEMAS, SHOWN, compare_verdicts, frozen_outcomes, frozen_verdicts
from golden.records import frozen, shown, verdicts
from golden.running import Outcome, outcome_of
from overexplain.auditing.audit_report import AuditReport
from overexplain.auditing.monitoring.monitor_report import MonitorReport
from overexplain.auditing.multiclass_report import MulticlassReport

AGAIN = "If this is meant: `make goldens`, then review the diff of tests/golden/shown."
NEVER = "This is frozen: users rely on it, and `make goldens` does not write it over (tests/golden/write.py says what may be done)."
REPORTS = {"audit": AuditReport, "monitor": MonitorReport, "multiclass": MulticlassReport}

each_case = pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])


@cache
def _outcome(case: Case) -> Outcome:
    """A case is run once a process, whichever of the tests below comes first."""
    return outcome_of(case)


@each_case
def test_exit_codes_and_error_lines_are_frozen(case: Case) -> None:
    before, now = frozen_outcomes().get(case.name), frozen(_outcome(case))
    if before != now:
        texts = [json.dumps(entries, indent=1, ensure_ascii=False) for entries in (before, now)]
        pytest.fail(f"{_diff(*texts, case.name)}\n{NEVER}", pytrace=False)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES if frozen_verdicts(case.name)])
def test_verdicts_stay_what_they_are(case: Case) -> None:
    """Yes, No and unknown are theorems about the log; only what was undecided may change."""
    wrong = compare_verdicts(case.name, frozen_verdicts(case.name), verdicts(_outcome(case)))
    if wrong:
        pytest.fail("\n".join([f"{case.name}: {len(wrong)} verdicts changed", *wrong, NEVER]), pytrace=False)


@each_case
def test_what_is_shown_is_as_reviewed(case: Case) -> None:
    path = SHOWN / f"{case.name}.txt"
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if difference := _diff(before, shown(_outcome(case)), case.name):
        pytest.fail(f"{difference}\n{AGAIN}", pytrace=False)


def _diff(before: str, now: str, name: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(), now.splitlines(), f"{name} as reviewed", f"{name} now", lineterm=""
    )
    return "\n".join(lines)


def test_nothing_is_kept_of_cases_that_are_gone() -> None:
    names = {case.name for case in CASES}
    assert len(names) == len(CASES)
    assert {path.stem for path in SHOWN.glob("*.txt")} <= names
    assert set(frozen_outcomes()) == names  # a frozen case is not dropped, either


def test_what_verdicts_may_become() -> None:
    """Decided stays as it is; undecided may become anything."""
    assert compare_verdicts("a", {"v": "YN?B-"}, {"v": "YN?BY"}) == []
    for now in ("NN?B-", "?N?B-", "-N?B-", "YNYB-", "YN?Y-", "YN-B-"):
        assert len(compare_verdicts("a", {"v": "YN?B-"}, {"v": now})) == 1
    assert compare_verdicts("a", {"v": "YN"}, {}) == ["v: 0 verdicts, 2 were frozen"]


@pytest.mark.parametrize("name", ["audit", "model", "monitor", "multiclass"])
def test_schemas_take_nothing_back(name: str) -> None:
    """Entries may be added; what a reader of today relies on stays."""
    file = f"{name}.schema.json"
    before, now = (json.loads((folder / file).read_text(encoding="utf-8")) for folder in (FROZEN_SCHEMAS, SCHEMAS))
    assert _taken_back(before, now, "") == [], NEVER


def _taken_back(before: object, now: object, where: str) -> list[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        words = ("description", "title", "$comment")  # for people, and free to get better
        kept = {key: value for key, value in before.items() if not (key in words and isinstance(value, str))}
        return [line for key in kept for line in _taken_back(kept[key], now.get(key), f"{where}/{key}")]
    if isinstance(before, list) and isinstance(now, list):
        return [f"{where}: {entry!r}" for entry in before if entry not in now and not isinstance(entry, dict)]
    return [] if before == now else [f"{where}: was {before!r}, is {now!r}"]


@pytest.mark.parametrize("name", sorted(REPORTS))
def test_old_reports_are_read_and_fit_the_schema(name: str) -> None:
    text = (HERE / "old" / f"{name}.json").read_text(encoding="utf-8")
    REPORTS[name].from_json(text)  # type: ignore[attr-defined]
    jsonschema.validate(json.loads(text), _schema(name))


@cache
def _schema(name: str) -> dict[str, object]:
    return json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
