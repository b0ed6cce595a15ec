"""Gates: what is read, what is refused, and that every doubt is decided on the unsafe side."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit_sample import sample_report
from overexplain.auditing.audit_report import AuditReport
from overexplain.auditing.determining.quota import quota
from overexplain.auditing.gates import determined_range, judge, parse_gate
from overexplain.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "name", "answers", "sign", "bound"),
    [
        ("determined@200>60%", "determined", 200, ">", 0.6),
        (" determined @ 13 >= 0.5 ", "determined", 13, ">=", 0.5),
        ("determined@1>57.3%", "determined", 1, ">", 0.573),
        ("determined@1>0", "determined", 1, ">", 0.0),
        ("determined@007>=100 %", "determined", 7, ">=", 1.0),
        ("answers-to-extract<20", "answers-to-extract", None, "<", 20.0),
        ("answers-to-extract <= 1000", "answers-to-extract", None, "<=", 1000.0),
        ("quota<10", "quota", None, "<", 10.0),
        ("agreement>=99%", "agreement", None, ">=", 0.99),
    ],
)
def test_what_is_read(text, name, answers, sign, bound):
    spec = parse_gate(text)
    assert (spec.name, spec.answers, spec.sign, spec.bound) == (name, answers, sign, bound)
    assert parse_gate(spec.expression) == spec
    assert " " not in spec.expression


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it says when to fail"),
        ("determined>60%", "needs a number of answers"),
        ("quota@5<10", "takes no number of answers"),
        ("leaked@200>60%", "'leaked' is not known; known are determined, answers-to-extract, quota, agreement"),
        ("determined@200<60%", "more determined is worse; write >"),
        ("answers-to-extract>20", "less answers-to-extract is worse; write <"),
        ("determined@200>60", "write 60%"),
        ("determined@200>160%", "at most 100%"),
        ("determined@0>60%", "at least 1"),
        ("determined@-1>60%", "cannot be read"),
        ("determined@1.5>60%", "cannot be read"),
        ("determined@9999999999999>60%", "at most 12 digits"),
        ("answers-to-extract<20%", "whole number of answers, not 20%"),
        ("answers-to-extract<2.5", "whole number of answers, not 2.5"),
        ("determined@200>nan", "cannot be read"),
        ("determined@200>inf%", "cannot be read"),
        ("determined@200>1e-1", "cannot be read"),
        ("determined@200==60%", "cannot be read"),
        ("determined@²>60%", "cannot be read"),
        ("determined@200>0." + "1" * 100, "digits"),
        ("x" * 10_000, "..."),
    ],
)
def test_what_is_refused_says_why(text, told):
    with pytest.raises(InvalidInput) as error:
        parse_gate(text)
    assert told in str(error.value)
    assert len(str(error.value)) < 400


@given(st.text(max_size=40) | st.from_regex(r"(determined@\d+|quota|agreement)[<>]=?[\d.]+%?", fullmatch=True))
def test_no_text_does_anything_but_parse_or_raise(text):
    try:
        spec = parse_gate(text)
    except InvalidInput:
        return
    assert parse_gate(spec.expression) == spec


@given(st.sampled_from([">", ">="]), st.floats(0, 1), st.integers(0, 1000))
def test_fails_is_the_comparison_as_written(sign, value, bound):
    spec = parse_gate(f"determined@5{sign}{bound / 1000}" if bound else f"determined@5{sign}0")
    assert spec.fails(value) == (value > spec.bound if sign == ">" else value >= spec.bound)


def curve_report(answers, highest, **changes) -> AuditReport:
    """The sample with the audited service's curve replaced."""
    report = sample_report()
    shares = dict.fromkeys(("median", "low", "high", "first"), (0.0,) * len(answers))
    curve = replace(report.curves[0], answers=answers, highest=highest, **(shares | changes))
    return replace(report, curves=(curve,))


def test_the_highest_of_the_orders_decides_not_the_median():
    gate = judge(parse_gate("determined@20>50%"), curve_report((10, 20), (0.4, 0.7), median=(0.1, 0.2)))
    assert not gate.passed
    assert gate.found == 0.7
    assert gate.allowed == 0.5
    assert gate.service == "s1"


def test_between_two_numbers_tried_the_larger_one_counts():
    report = curve_report((10, 20), (0.4, 0.7))
    assert judge(parse_gate("determined@10>40%"), report).passed
    assert judge(parse_gate("determined@11>40%"), report).found == 0.7
    assert judge(parse_gate("determined@1>40%"), report).found == 0.4


def test_beyond_the_last_number_only_everything_is_known():
    open_ = judge(parse_gate("determined@21>90%"), curve_report((10, 20), (0.4, 0.7)))
    assert (open_.passed, open_.found, open_.service) == (False, None, "s1")
    full = judge(parse_gate("determined@21>90%"), curve_report((10, 20), (0.4, 1.0)))
    assert (full.passed, full.found) == (False, 1.0)
    allowed = judge(parse_gate("determined@21>100%"), curve_report((10, 20), (0.4, 1.0)))
    assert (allowed.passed, allowed.found) == (True, 1.0)


def test_what_a_limit_left_open_lets_no_gate_pass_and_is_not_called_determined():
    report = curve_report((10,), (0.4,), undecided=0.25, at_most=(0.65,))
    assert determined_range(report.curves[0], 10) == (0.4, 0.65)
    assert determined_range(replace(report.curves[0], at_most=()), 10) == (0.4, 0.65)
    outcomes = {text: judge(parse_gate(f"determined@10>{text}"), report) for text in ("30%", "50%", "65%")}
    assert {text: (gate.passed, gate.found) for text, gate in outcomes.items()} == {
        "30%": (False, 0.4),
        "50%": (False, None),
        "65%": (True, 0.65),
    }


def test_a_quota_that_unsettled_cases_end_lets_no_gate_pass_inside_its_range():
    report = curve_report((10, 20, 30), (0.1, 0.2, 0.7), undecided=0.5, at_most=(0.1, 0.7, 0.9))
    report = replace(report, quotas=(quota(report.curves[0], 0.5, None),))
    assert (report.quotas[0].answers, report.quotas[0].is_unsettled) == (10, True)
    outcomes = {text: judge(parse_gate(f"quota<{text}"), report) for text in ("10", "11", "20", "21")}
    assert {text: (gate.passed, gate.found) for text, gate in outcomes.items()} == {
        "10": (True, 10.0),
        "11": (False, None),
        "20": (False, None),
        "21": (False, 20.0),
    }


def test_the_bound_itself_is_allowed_unless_the_sign_says_otherwise():
    report = curve_report((10,), (0.6,))
    assert judge(parse_gate("determined@10>60%"), report).passed
    assert not judge(parse_gate("determined@10>=60%"), report).passed


def test_a_curve_of_pooled_letters_is_not_judged_in_place_of_the_missing_one():
    report = curve_report((10,), (0.1,))
    report = replace(report, curves=(replace(report.curves[0], population="denied"),))
    assert judge(parse_gate("determined@10>60%"), report).found is None


def test_the_worst_of_the_audited_services_decides_and_comparisons_do_not():
    report = sample_report()
    assert judge(parse_gate("answers-to-extract<20"), report).passed  # the straight line needs 1, but only compares
    both = replace(report, services=(report.services[0], replace(report.services[1], role="also audited")))
    gate = judge(parse_gate("answers-to-extract<20"), both)
    assert (gate.passed, gate.service, gate.found) == (False, "s2", 1.0)
    assert judge(parse_gate("determined@1>99%"), both).service == "s2"


def test_a_service_that_was_not_measured_fails_the_gate_unless_a_measured_one_says_more():
    report = sample_report()
    both = replace(report, services=(report.services[0], replace(report.services[1], role="also audited")))
    only_first = replace(both, known=both.known[:1])
    gate = judge(parse_gate("answers-to-extract<20"), only_first)
    assert (gate.passed, gate.service, gate.found) == (False, "s2", None)
    gate = judge(parse_gate("answers-to-extract<31"), only_first)
    assert (gate.passed, gate.service, gate.found) == (False, "s1", 30.0)


def test_one_decision_beside_the_explanations_is_not_counted_but_hundreds_are():
    report = sample_report()
    row = report.known[0]
    one = replace(report, known=(replace(row, labels=1, low=31, high=31),))
    assert judge(parse_gate("answers-to-extract<31"), one).found == 30
    many = replace(report, known=(replace(row, labels=300, low=330, high=330),))
    assert judge(parse_gate("answers-to-extract<31"), many).found == 330


def test_the_cheapest_run_counts_not_the_median():
    report = sample_report()
    decisions = replace(report.known[5], service="s1", low=600, labels=647)
    assert judge(parse_gate("answers-to-extract<601"), replace(report, known=(decisions,))).found == 600


def test_a_model_that_no_attack_rebuilt_passes_without_a_value_and_one_that_was_not_tried_fails():
    report = sample_report()
    failed = replace(report.known[4], service="s1")
    gate = judge(parse_gate("answers-to-extract<20"), replace(report, known=(failed,)))
    assert (gate.passed, gate.found, gate.service) == (True, None, "s1")
    gate = judge(parse_gate("answers-to-extract<20"), replace(report, known=()))
    assert (gate.passed, gate.found) == (False, None)


def test_a_model_that_one_run_in_three_rebuilt_is_judged_by_that_run():
    report = sample_report()
    seldom = replace(report.known[4], service="s1", low=12, high=12)
    gate = judge(parse_gate("answers-to-extract<20"), replace(report, known=(seldom,)))
    assert (gate.passed, gate.found) == (False, 12.0)


def test_quota_and_agreement():
    report = sample_report()
    assert judge(parse_gate("quota<10"), report).found == report.quotas[0].answers == 9
    assert not judge(parse_gate("quota<10"), report).passed
    assert judge(parse_gate("quota<9"), report).passed
    assert not judge(parse_gate("agreement>=99%"), report).passed
    failed = replace(report.known[4], service="s1", constant_agreement=0.63)
    assert judge(parse_gate("agreement>60%"), replace(report, known=(failed,))).found == 0.63


def test_gates_survive_json():
    report = sample_report()
    failed = replace(report.known[4], service="s1")
    report = replace(report, known=(failed,))
    specs = [parse_gate("answers-to-extract<20"), parse_gate("determined@1000>99%"), parse_gate("quota<10")]
    judged = replace(report, gates=tuple(judge(spec, report) for spec in specs))
    assert AuditReport.from_json(judged.to_json()).gates == judged.gates
