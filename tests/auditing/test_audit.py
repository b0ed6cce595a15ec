"""The audit as a whole: parts fit together, every number can be traced, nothing of the data is in it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import overexplain as ox
from overexplain.auditing.audit import COMPARED
from overexplain.auditing.audit_report import AuditReport, json_schema
from overexplain.auditing.determining.curves import checkpoints, determined_curve
from overexplain.auditing.determining.evidence import Evidence
from overexplain.geometry.hyperplane import YES
from overexplain.report.html.notebook import as_notebook_html

ROOT = Path(__file__).parent.parent.parent
NAMES = ("age", "income", "debts", "years", "late")
MODEL = ox.load_model({"coefficients": dict(zip(NAMES, [0.7, -1.4, 0.3, 0.9, -0.2], strict=True)), "intercept": -0.1})
CASES = np.random.default_rng(1).normal(size=(160, 5)).round(6)
FEW = {"orders": 4, "judged": 50, "answers": (1, 2, 3, 4, 5, 6, 20, 60)}


@cache
def audited(*services: str, **options) -> AuditReport:
    return ox.audit(MODEL, CASES, services or ("l1",), **(FEW | options))


def test_services_are_the_ones_asked_for_and_those_to_compare_with() -> None:
    report = audited("l1", "l1; robust=l2:0.1", defences=False)
    assert [s.spec for s in report.services] == ["l1", "l1; robust=l2:0.1", "l2", "linf", "labels"]
    assert [s.role for s in report.services] == ["audited", "also audited", "comparison", "comparison", "comparison"]
    assert [s.id for s in report.services] == ["s1", "s2", "s3", "s4", "s5"]
    assert {row.service for row in report.known} == {s.id for s in report.services}
    assert [(c.service, c.population) for c in report.curves] == [
        *((s.id, "all") for s in report.services),
        ("s1", "denied"),
    ]
    assert {q.service for q in report.quotas} == {s.id for s in report.services}
    alone = audited(compare=False, defences=False, maps=0)
    assert [s.spec for s in alone.services] == ["l1"]
    assert (alone.maps, alone.proof, alone.defences) == ((), None, None)
    assert set(COMPARED) == {"l2", "l1", "linf", "labels"}


def test_counts_are_the_theorems_and_shares_are_sound() -> None:
    report = audited("l1", "l1; robust=l2:0.1", defences=False)
    assert {row.service: row.answers for row in report.known if row.service != "s5"} == {
        "s1": 5,
        "s2": 5,
        "s3": 1,
        "s4": 5,
    }
    for curve in report.curves:
        assert curve.wrong == 0
        assert list(curve.median) == sorted(curve.median)
        for i in range(len(curve.answers)):
            assert curve.low[i] <= curve.median[i] <= curve.high[i] <= curve.highest[i] <= curve.ceiling[i] <= 1
    assert report.curve_of("s3").median[0] == 1.0  # a straight line: everything after one answer
    assert report.curve_of("s1").known_at == 5


def test_the_headline_is_half_of_what_gives_the_model_away() -> None:
    assert audited("l1", compare=False, defences=False, maps=0).headline == 3
    assert audited("l2", compare=False, defences=False, maps=0).headline == 1
    assert audited("labels", compare=False, defences=False, maps=0).headline == 60  # the nearest that was looked at


def test_quotas_are_where_the_curve_crosses_the_target() -> None:
    report = audited("l1", compare=False, defences=False, maps=0, target=0.3)
    curve, allowed = report.curves[0], report.quotas[0]
    within = [n for n, share in zip(curve.answers, curve.ceiling, strict=True) if share <= 0.3]
    assert allowed.answers == max(within, default=0)
    assert allowed.target == 0.3
    assert allowed.adaptive == 5


def test_json_round_trip_schema_and_the_published_copy_of_it() -> None:
    report = audited("l1")
    text = report.to_json()
    assert AuditReport.from_json(text) == report
    jsonschema.validate(json.loads(text), json_schema())
    published = json.loads((ROOT / "docs/schemas/audit.schema.json").read_text(encoding="utf-8"))
    assert published == json.loads(json.dumps(json_schema()))


def test_every_field_of_the_schema_is_documented() -> None:
    """Fields that hold parts are described by the part; coordinates and texts of a proof by their class."""
    own_words = {
        "x",
        "y",
        "label",
        "passed",
        "code",
        "values",
        "overexplain",
        "python",
        "seed",
        "explanation",
        "rows",
        "panels",
    }
    parts = {
        "subject",
        "services",
        "known",
        "curves",
        "quotas",
        "maps",
        "proof",
        "defences",
        "gates",
        "findings",
        "advice",
    }
    parts |= {"provenance", "format", "version"}
    for name, definition in json_schema()["$defs"].items():
        assert definition["description"], name
        for field, entry in definition["properties"].items():
            assert "description" in entry or field in own_words | parts, f"{name}.{field}"


@pytest.mark.parametrize("change", [{"version": 2}, {"format": "other"}, {"headline": "3"}, {"services": None}])
def test_other_json_is_refused_with_the_place(change) -> None:
    entries = json.loads(audited("l1").to_json()) | change
    with pytest.raises(ox.InvalidInput):
        AuditReport.from_json(json.dumps(entries))
    with pytest.raises(ox.InvalidInput, match="not an audit report: it is 'overexplain-audit-multiclass'"):
        AuditReport.from_json('{"format": "overexplain-audit-multiclass", "subject": {}}')
    with pytest.raises(ox.InvalidInput, match="not an audit report"):
        AuditReport.from_json("{")


def test_no_case_of_the_data_is_in_the_report() -> None:
    text = audited("l1").to_json()
    for value in CASES.ravel()[:200]:
        assert repr(float(value)) not in text


def test_a_seed_repeats_everything_whatever_the_parts() -> None:
    report = audited("l1", compare=False, defences=False)
    assert ox.audit(MODEL, CASES, "l1", compare=False, defences=False, **FEW).to_json() == report.to_json()
    with_more = audited("l1")
    assert with_more.known[0] == report.known[0]
    assert with_more.curves[0] == report.curves[0]
    assert ox.audit(MODEL, CASES, ["l1"], compare=False, defences=False, seed=9, **FEW).curves != report.curves


def test_workers_change_nothing_but_the_time() -> None:
    alone = audited("l1", compare=False, defences=False, maps=0)
    assert ox.audit(MODEL, CASES, ["l1"], compare=False, defences=False, maps=0, workers=2, **FEW) == alone


def test_standard_deviations_make_the_units_of_the_data_irrelevant() -> None:
    scale = np.array([1e3, 1e-3, 7.0, 1.0, 50.0])
    stretched = ox.LinearModel(ox.Hyperplane(MODEL.hyperplane.normal / scale, MODEL.hyperplane.offset), NAMES)
    options = {"compare": False, "defences": False, "maps": 0, "standardize": True}
    one = audited("l1; robust=l2:0.25", **options)
    other = ox.audit(stretched, CASES * scale, ["l1; robust=l2:0.25"], **options, **FEW)
    assert other.subject.units == "standard deviations"
    np.testing.assert_allclose(other.curves[0].median, one.curves[0].median, atol=0.03)
    assert other.known[0].answers == one.known[0].answers == 5


def test_what_is_kept_for_proofs_is_what_the_report_says() -> None:
    kept: list[Evidence] = []
    report = ox.audit(
        MODEL,
        CASES,
        ["l1", "labels"],
        compare=False,
        defences=False,
        maps=0,
        fail_on=["determined@4>50%"],
        keep=kept.append,
        **FEW,
    )
    assert {(e.service, e.answers) for e in kept} >= {("s1", report.headline), ("s1", 4), ("s2", 4)}
    for evidence in kept:
        curve = report.curve_of(evidence.service)
        assert evidence.share == curve.first[curve.answers.index(evidence.answers)]
        assert len(evidence.log) == evidence.answers
        assert ox.Knowledge(evidence.log).share(evidence.judged) == evidence.share


def test_gates_are_judged_and_findings_are_made() -> None:
    report = audited("l1", defences=False, fail_on=("determined@5>50%", "answers-to-extract<3"))
    assert [gate.passed for gate in report.gates] == [False, True]
    assert not report.passed
    assert report.findings
    assert report.advice


def test_the_subject_is_described() -> None:
    subject = audited("l1").subject
    assert subject.features == NAMES
    assert subject.cases == len(CASES)
    assert subject.yes_share == np.mean(MODEL.hyperplane.labels(CASES) == YES)
    assert len(subject.model_sha256) == len(subject.data_sha256) == 64


def test_in_a_notebook_it_is_shown_in_a_frame() -> None:
    report = audited("l1")
    shown = report._repr_html_()
    assert shown == as_notebook_html(report)
    assert shown.startswith("<iframe")
    assert "sandbox" in shown


def test_frames_are_matched_by_name_and_wrong_ones_refused() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(CASES[:, ::-1], columns=NAMES[::-1])
    report = ox.audit(MODEL, frame, ["l1"], compare=False, defences=False, **FEW)
    assert report == audited("l1", compare=False, defences=False)
    with pytest.raises(ox.InvalidInput, match="late"):
        ox.audit(MODEL, frame.drop(columns="late"), ["l1"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"data": CASES[:5]}, "at least 10"),
        ({"data": CASES[:, :3]}, "5"),
        ({"services": []}, "at least one service"),
        ({"services": ["l0"]}, "l0"),
        ({"target": 1.5}, "between 0 and 1"),
        ({"fail_on": ["danger>1"]}, "danger"),
        ({"answers": (5, 3)}, "rise"),
        ({"answers": (500,)}, "500"),
    ],
)
def test_input_that_cannot_be_used_is_refused_before_any_work(change, said) -> None:
    options = {"data": CASES, "services": ["l1"], **FEW, "compare": False, "defences": False, "maps": 0} | change
    with pytest.raises(ox.InvalidInput, match=said):
        ox.audit(MODEL, options.pop("data"), options.pop("services"), **options)


def test_one_sided_worlds_and_one_feature_are_audited_too() -> None:
    always = ox.LinearModel(ox.Hyperplane([1.0, 0.0, 0.0, 0.0, 0.0], -50.0))
    report = ox.audit(always, CASES, ["l1"], compare=False, orders=2, judged=30, answers=(1, 5, 20))
    assert report.subject.yes_share == 1.0
    assert [c.population for c in report.curves] == ["all"]  # nobody is denied
    single = ox.audit(
        ox.LinearModel(ox.Hyperplane([2.0], 0.5)), CASES[:, :1], ["l2"], orders=2, judged=30, answers=(1, 2)
    )
    assert single.maps == ()
    assert single.known[0].answers == 1


def test_checkpoints_fit_the_data() -> None:
    assert checkpoints(5, 100)[-1] <= 100
    assert 5 in checkpoints(5, 100)


def test_a_report_can_be_changed_by_its_owner_only_as_a_copy() -> None:
    report = audited("l1")
    assert replace(report, headline=1).headline == 1
    with pytest.raises(AttributeError):
        report.headline = 1  # type: ignore[misc]


def test_explained_answers_determine_at_least_what_their_decisions_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a limit leaves explained answers unsettled, the page does not show less than for decisions alone."""

    def unsettled(model, rows, service, *arguments, **options):
        curve = determined_curve(model, rows, service, *arguments, **options)
        nothing = (0.0,) * len(curve.answers)
        shares = dict.fromkeys(("median", "low", "high", "highest", "first"), nothing)
        return replace(curve, **shares, undecided=1.0, at_most=()) if service.explains else curve

    monkeypatch.setattr("overexplain.auditing.audit.determined_curve", unsettled)
    model, rows = ox.Hyperplane([1.0, -2.0, 0.5], 0.1), np.random.default_rng(0).normal(size=(300, 3))
    report = ox.audit(model, rows, ["l1"], orders=3, judged=50, maps=0, defences=False)
    explained, plain = report.curve_of("s1"), report.curves[-2]
    assert plain.service == report.services[-1].id
    assert plain.median[-1] > 0.5
    for name in ("median", "low", "high", "highest"):
        assert getattr(explained, name) == getattr(plain, name)
    assert explained.median_ceiling[-1] == 1.0
    assert set(explained.first) == {0.0}  # proofs are written of it
