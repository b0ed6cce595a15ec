"""The JUnit rendering, read by an XML parser and held against the schema that build servers follow."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit_sample import edge_reports, sample_report
from overexplain.auditing.audit_report import Gate
from overexplain.auditing.gates import judge, parse_gate
from overexplain.report.junit import render_junit

# Element: (attributes that must be there, further ones that may be, children in order).
SCHEMA = {
    "testsuites": ({"tests", "failures", "errors", "skipped"}, set(), ["testsuite"]),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped"},
        set(),
        ["properties", "testcase", "system-out", "system-err"],
    ),
    "properties": (set(), set(), ["property"]),
    "property": ({"name", "value"}, set(), []),
    "testcase": ({"classname", "name"}, {"time"}, ["failure", "error", "skipped"]),
    "failure": ({"message", "type"}, set(), []),
    "system-out": (set(), set(), []),
}


def check(element: ElementTree.Element) -> None:
    needed, allowed, children = SCHEMA[element.tag]
    assert needed <= set(element.attrib) <= needed | allowed
    order = [children.index(child.tag) for child in element]
    assert order == sorted(order)
    for child in element:
        check(child)
    if element.tag in ("testsuites", "testsuite"):
        cases = list(element.iter("testcase"))
        assert element.get("tests") == str(len(cases))
        assert element.get("failures") == str(sum(case.find("failure") is not None for case in cases))


def read(report) -> ElementTree.Element:
    root = ElementTree.fromstring(render_junit(report).encode())
    assert root.tag == "testsuites"
    check(root)
    return root


def test_a_failed_gate_is_a_failure_with_its_sentence():
    (case,) = read(sample_report()).iter("testcase")
    assert case.get("name") == "determined@200>60%"
    failure = case.find("failure")
    sentence = "Allowed: at most 60 % of decisions determined after 200 answers. Found: 100 %."
    assert failure.get("message") == failure.text == sentence


def test_passed_and_failed_gates_are_counted():
    report = sample_report()
    texts = ("determined@1>60%", "quota<10", "answers-to-extract<20", "determined@1000000>99%")
    report = replace(report, gates=tuple(judge(parse_gate(text), report) for text in texts))
    suite = read(report).find("testsuite")
    outcomes = {case.get("name"): case.find("failure") is None for case in suite.iter("testcase")}
    assert outcomes == dict(zip(texts, [True, False, True, False], strict=True))


def test_without_gates_there_is_one_case_that_passed():
    (case,) = read(replace(sample_report(), gates=())).iter("testcase")
    assert case.find("failure") is None
    assert "no gate" in case.get("name")


@pytest.mark.parametrize("name", list(edge_reports()))
def test_every_report_is_well_formed(name):
    read(edge_reports()[name])


@given(st.text(max_size=60))
def test_any_expression_is_written_and_read_back_as_text(text):
    gate = Gate(text, False, None, None, 0.0)
    (case,) = read(replace(sample_report(), gates=(gate,))).iter("testcase")
    assert case.find("failure").text == case.find("failure").get("message")
    assert len(case) == 1


def test_markup_in_an_expression_stays_text():
    gate = Gate("]]><b a='\"'>&amp;", False, None, None, 0.0)
    (case,) = read(replace(sample_report(), gates=(gate,))).iter("testcase")
    assert case.get("name") == "]]><b a='\"'>&amp;"


def test_characters_that_xml_cannot_write_are_left_out():
    report = sample_report()
    odd = "a\x00b\x0bc\x1bd\ud800e\ufffef\uffffg"
    report = replace(report, subject=replace(report.subject, model=odd, model_sha256=odd))
    values = {p.get("name"): p.get("value") for p in read(report).iter("property")}
    assert values["model_sha256"] == "abcdefg"


def test_the_same_report_gives_the_same_text_without_time_or_host():
    text = render_junit(sample_report())
    assert text == render_junit(sample_report())
    assert "timestamp" not in text
    assert "hostname" not in text
