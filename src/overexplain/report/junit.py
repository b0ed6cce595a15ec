"""The gates of an audit as JUnit XML, for build servers: one test case a gate, or one that passed if none was asked for."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from overexplain.auditing.audit_report import AuditReport, Gate
from overexplain.report.audit_text import tidy
from overexplain.report.audit_words import eyebrow, gate_sentence, title

SUITE = "overexplain audit"
_ILLEGAL = re.compile(
    "[^\\t\\n\\r\\u0020-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]|[\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]"
)
"""What XML 1.0 has no way to write, not even escaped; and what turns the text around it."""


def render_junit(report: AuditReport) -> str:
    """One test suite; no time and no host, so that the same report gives the same text."""
    cases = [_case(report, gate) for gate in report.gates] or [_without_gates()]
    failures = sum(not gate.passed for gate in report.gates)
    counts = f'tests="{len(cases)}" failures="{failures}" errors="0" skipped="0"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites {counts}>",
        f"<testsuite name={_attribute(SUITE)} {counts}>",
        "<properties>",
        f'<property name="model_sha256" value={_attribute(report.subject.model_sha256)}/>',
        f'<property name="data_sha256" value={_attribute(report.subject.data_sha256)}/>',
        f'<property name="overexplain" value={_attribute(report.provenance.overexplain)}/>',
        f'<property name="seed" value="{report.provenance.seed}"/>',
        "</properties>",
        *cases,
        f"<system-out>{escape(_legal(f'{title(report)}. {eyebrow(report)}'))}</system-out>",
        "</testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _case(report: AuditReport, gate: Gate) -> str:
    name = f"<testcase classname={_attribute(SUITE)} name={_attribute(tidy(gate.expression, 200))}"
    if gate.passed:
        return f"{name}/>"
    sentence = _legal(gate_sentence(report, gate))
    return f'{name}>\n<failure type="gate" message={_attribute(sentence)}>{escape(sentence)}</failure>\n</testcase>'


def _without_gates() -> str:
    return f'<testcase classname={_attribute(SUITE)} name="audit ran, no gate was asked for"/>'


def _attribute(text: str) -> str:
    return quoteattr(_legal(text))


def _legal(text: str) -> str:
    return _ILLEGAL.sub("", text)
