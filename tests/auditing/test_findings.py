"""Findings and advice: what the numbers support is said, and nothing when they do not support it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from audit_sample import edge_reports, sample_report
from overexplain.auditing.audit_report import AuditReport, Cost, Quota
from overexplain.auditing.findings import (
    best_defence,
    broken_defences,
    fewest_needed,
    labels_price,
    paper_needed,
    share_after,
    with_findings,
)

NOT_FOUND = Cost(None, None, None, False, None)


def codes(report: AuditReport) -> dict[str, dict]:
    """The values of findings and advice by code."""
    found = with_findings(report)
    return {finding.code: finding.values for finding in (*found.findings, *found.advice)}


def defended(report: AuditReport, **rows) -> AuditReport:
    """The report with changes of its defences by id (with - for _)."""
    changed = {key.replace("_", "-"): value for key, value in rows.items()}
    table = tuple(replace(row, **changed.get(row.id, {})) for row in report.defences.rows)
    return replace(report, defences=replace(report.defences, rows=table))


def test_the_sample():
    found = codes(sample_report())
    assert found["known-after"] == {"service": "s1", "answers": 30, "minimum": 30, "valid": None}
    share = sample_report().curves[0].median[12]
    assert found["explanations-vs-decisions"]["share"] == share
    assert found["explanations-vs-decisions"]["decisions"] == 400
    assert found["all-at-once"]["service"] == "s2"
    assert found["pooled-letters"]["letters"] == 13
    assert found["defences-broken"]["broken"] == 3
    assert found["defences-broken"]["requests"] == 42
    assert found["labels-floor"]["requests"] == 352
    assert found["best-defence"]["name"] == "Random margin, 0 to 0.5"
    assert found["harmful-defence"]["name"] == "Rounded to 2 decimals"
    assert found["quota"] == {"service": "s1", "answers": 9, "target": 0.6}
    assert found["decisions-on-real-cases"] == {"requests": 352, "accuracy": 1e-3}
    assert not {"determined-wrongly", "undecided", "never-known", "quota-zero", "no-defence-held"} & set(found)


def test_findings_replace_what_was_there_and_survive_json():
    once = with_findings(sample_report())
    assert with_findings(once) == once
    assert AuditReport.from_json(once.to_json()) == once


@pytest.mark.parametrize("name", list(edge_reports()))
def test_every_report_has_findings_that_can_be_written(name):
    report = with_findings(edge_reports()[name])
    assert AuditReport.from_json(report.to_json()).findings == report.findings


def test_wrong_decisions_are_told_first_and_unsettled_ones_last():
    report = sample_report()
    odd = replace(report.curves[0], wrong=2, undecided=0.1, terms_broken=3)
    first, terms, *_, second = with_findings(replace(report, curves=(odd, *report.curves[1:]))).findings
    assert (terms.code, terms.values) == ("terms-broken", {"service": "s1", "orders": 3, "of": 20})
    assert (first.code, first.values) == ("determined-wrongly", {"decisions": 2})
    assert (second.code, second.values) == ("undecided", {"service": "s1", "share": 0.1})


def test_a_failed_attack_is_never_known_and_one_success_among_three_is_seldom_known():
    report = sample_report()
    failed = replace(report.known[4], service="s1")
    assert codes(replace(report, known=(failed,)))["never-known"]["service"] == "s1"
    seldom = codes(replace(report, known=(replace(failed, low=40, high=40),)))
    assert seldom["seldom-known"]["fewest"] == 40
    assert "never-known" not in seldom
    assert "known-after" not in seldom


def test_a_minimum_that_only_counts_bits_is_not_called_proven():
    found = codes(edge_reports()["only decisions"])
    assert found["known-after"]["minimum"] is None
    assert found["known-after"]["answers"] == 647


def test_decisions_are_compared_only_where_as_many_were_measured():
    report = sample_report()
    short = replace(report.curves[5], answers=(1, 2), median=(0.0, 0.0))
    curves = tuple(short if curve.service == "s6" else curve for curve in report.curves)
    assert "explanations-vs-decisions" not in codes(replace(report, curves=curves))


def test_decisions_that_a_limit_left_open_are_not_called_undetermined():
    report = sample_report()
    curves = tuple(replace(c, undecided=0.9) if c.service == "s6" else c for c in report.curves)
    assert "explanations-vs-decisions" not in codes(replace(report, curves=curves))


def test_a_rounded_variant_that_leaks_as_much_is_told_and_one_that_helps_is_not():
    report = sample_report()
    rounded = replace(report.services[3], spec="l1; rounded:2")
    services = tuple(rounded if service.id == "s4" else service for service in report.services)
    report = replace(report, services=services)
    assert "variant-changes-little" not in codes(report)  # nine points apart in the sample
    same = tuple(replace(report.curves[0], service="s4") if c.service == "s4" else c for c in report.curves)
    found = codes(replace(report, curves=same))["variant-changes-little"]
    assert found["share"] == found["audited"]


def test_nothing_is_given_away_at_once_unless_all_is_known_after_one_answer():
    report = sample_report()
    curves = tuple(replace(c, known_at=2) if c.service == "s2" else c for c in report.curves)
    assert "all-at-once" not in codes(replace(report, curves=curves))


def test_pooled_letters_fall_back_to_the_last_number_measured():
    report = sample_report()
    few = replace(report.curves[-1], answers=(1, 2), median=(0.0, 0.25), known_at=None)
    found = codes(replace(report, curves=(*report.curves[:-1], few)))["pooled-letters"]
    assert (found["letters"], found["share"], found["known_at"]) == (2, 0.25, None)


def test_quotas():
    report = sample_report()

    def quota(answers, is_limit=False, adaptive=None, beyond=0.7):
        beyond = None if is_limit else beyond
        return codes(replace(report, quotas=(Quota("s1", 0.6, answers, is_limit, 0.5, beyond, 20, adaptive),)))

    for answers in (0, 7):  # nothing went over the target: it is only not known
        unsettled = quota(answers, adaptive=5, beyond=0.6)
        assert "quota-unsettled" in unsettled
        assert not {"quota", "quota-zero", "quota-does-not-bind"} & set(unsettled)
    assert "quota-zero" in quota(0)
    assert "quota-not-reached" in quota(400, is_limit=True)
    assert quota(35, adaptive=30)["quota-does-not-bind"] == {"service": "s1", "adaptive": 30}
    assert "quota-does-not-bind" not in quota(29, adaptive=30)
    assert "quota-over-all-clients" in quota(9)
    assert "quota-over-all-clients" not in codes(replace(report, quotas=()))


def test_quotas_of_comparisons_give_no_advice():
    report = sample_report()
    assert not [code for code in codes(replace(report, quotas=report.quotas[1:])) if code.startswith("quota")]


@pytest.mark.parametrize(
    "spoilt",
    [{"invalid": 0.06}, {"invalid": None}, {"unanswered": 0.01}, {"shows_rows": True}, {"length": None}],
)
def test_a_defence_at_the_applicants_expense_is_not_the_best(spoilt):
    report = defended(sample_report(), random=spoilt)
    best = best_defence(report)
    assert best is not None
    assert best.id == "outward"  # the next one: 790 answers, valid


def test_no_defence_is_best_if_none_held():
    report = sample_report()
    cheap = {row.id.replace("-", "_"): {"explained": Cost(31, 0, "x", True, 0.0)} for row in report.defences.rows}
    report = defended(report, **cheap)
    assert best_defence(report) is None
    assert codes(report)["no-defence-held"] == {"compared": 8}
    assert len(broken_defences(report)) == 8


def test_nothing_is_said_about_defences_without_an_undefended_attack():
    report = defended(sample_report(), none={"explained": NOT_FOUND})
    found = codes(report)
    assert not {"defences-broken", "best-defence", "no-defence-held", "harmful-defence"} & set(found)


def test_a_quota_is_not_counted_among_defences_of_the_answers():
    report = sample_report()
    limit = replace(report.defences.rows[0], id="quota", name="At most 9", explained=NOT_FOUND)
    more = replace(report.defences, rows=(*report.defences.rows, limit))
    found = codes(replace(report, defences=more))
    assert found["best-defence"]["name"] == "Random margin, 0 to 0.5"
    assert found["labels-floor"]["compared"] == 8


def test_the_price_of_decisions_needs_every_defence_broken_by_them():
    report = sample_report()
    assert labels_price(report) == 352
    assert labels_price(defended(report, random={"with_labels": NOT_FOUND})) is None
    assert "decisions-on-real-cases" not in codes(defended(report, random={"with_labels": NOT_FOUND}))


def test_another_distance_is_advised_only_if_it_is_exact_and_needs_twice_as_many():
    report = sample_report()
    order = (replace(report.services[1], role="audited"), replace(report.services[0], role="comparison"))
    found = codes(replace(report, services=(*order, *report.services[2:])))
    assert found["other-distance"] == {"answers": 1, "other": "s1", "other_answers": 30}
    assert "other-distance" not in codes(report)  # rounding needs more, but is no distance


def test_counts_to_quote():
    row = sample_report().known[0]
    assert replace(row, labels=1).answers == 30
    assert replace(row, labels=2).answers == 32
    assert replace(row, explanations=0, labels=1).answers == 1
    assert replace(row, explanations=None, labels=None).answers is None
    assert paper_needed(replace(row, paper_explanations=31, paper_labels=31)) == 62
    assert paper_needed(replace(row, paper_explanations=None, paper_labels=None)) is None
    assert fewest_needed(replace(row, low=28)) == 28
    assert fewest_needed(replace(row, labels=1, low=31)) == 30


def test_shares_between_measured_numbers_are_told_only_where_they_follow():
    curve = replace(sample_report().curves[0], answers=(2, 5, 9, 20), median=(0.0, 0.5, 0.5, 1.0))
    expected = {0: 0.0, 1: 0.0, 2: 0.0, 3: None, 5: 0.5, 7: 0.5, 9: 0.5, 10: None, 20: 1.0, 10**6: 1.0}
    assert {n: share_after(curve, n) for n in expected} == expected
    low = replace(curve, median=(0.1, 0.5, 0.5, 0.9))
    assert share_after(low, 1) is None
    assert share_after(low, 21) is None
    assert share_after(None, 1) is None
