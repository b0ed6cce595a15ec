"""The words of gates: what was allowed, what was found, and why there is no value if there is none."""

from __future__ import annotations

from overexplain.auditing.audit_report import AuditReport, Gate
from overexplain.auditing.findings import judged_services
from overexplain.auditing.gates import (
    AGREEMENT,
    DETERMINED,
    EXTRACT,
    QUOTA,
    GateSpec,
    determined_range,
    parse_gate,
    quota_range,
)
from overexplain.errors import InvalidInput
from overexplain.report.audit_sections import kind_of_cases, service_name
from overexplain.report.audit_text import exact_percent, inside, percent_beside, tidy
from overexplain.report.words import counted


def gate_outcome(gate: Gate) -> str:
    """'Gate passed' or 'Gate failed'."""
    return f"Gate {'passed' if gate.passed else 'failed'}"


def gate_sentence(report: AuditReport, gate: Gate) -> str:
    """What a gate allows and what was found; does not repeat whether it passed (`gate_outcome`)."""
    spec = _read(gate)
    if spec is None:
        return f"The condition {tidy(gate.expression)}: {_found_anyhow(gate)}."
    word = "Allowed" if spec.sign.startswith(">") else "Required"
    return f"{word}: {_limit(spec)} {_what(spec)}. {_found(report, gate, spec)}"


def gate_line(report: AuditReport, gate: Gate) -> str:
    """The same for one line of a terminal: 'determined@200: at most 60 % allowed, 100 % found'."""
    spec = _read(gate)
    if spec is None:
        return f"{tidy(gate.expression)}: {_found_anyhow(gate)}"
    name = spec.name if spec.answers is None else f"{spec.name}@{spec.answers:,}"
    word = "allowed" if spec.sign.startswith(">") else "required"
    if gate.found is not None:
        found = f"{_side(report, gate, spec)}{_value(gate.found, spec)} found"
    elif gate.passed:
        found = "no attack rebuilt the model"
    else:
        ends = _ends(report, gate, spec)
        found = "not measured" if ends is None else f"cannot be told: {_between(ends, spec)}"
    return f"{name}: {_limit(spec)} {word}, {found}"


def _read(gate: Gate) -> GateSpec | None:
    try:
        return parse_gate(gate.expression)
    except InvalidInput:  # a report from elsewhere
        return None


def _limit(spec: GateSpec) -> str:
    """The bound as what passes: 'at most 60 %'."""
    bound = exact_percent(spec.bound) if spec.is_share else f"{spec.bound:,.0f}"
    words = {">": "at most", ">=": "less than", "<": "at least", "<=": "more than"}
    return f"{words[spec.sign]} {bound}"


def _what(spec: GateSpec) -> str:
    """What is compared, as it reads after the bound."""
    answers = f"answer{'s' * (spec.bound != 1)}"
    match spec.name:
        case "determined":
            return f"of decisions determined after {counted(spec.answers or 1, 'answer')}"
        case "answers-to-extract":
            return f"{answers} until the model is known"
        case "quota":
            return f"{answers} as quota"
        case _:
            return "of cases decided alike by a rebuilt model"


def _value(found: float, spec: GateSpec) -> str:
    return percent_beside(found, spec.bound) if spec.is_share else f"{found:,.0f}"


def _found(report: AuditReport, gate: Gate, spec: GateSpec) -> str:
    judged = [service for service in judged_services(report) if service.id == gate.service]
    worst = f" ({inside(service_name(judged[0]))})" if judged and len(judged_services(report)) > 1 else ""
    if gate.found is not None:
        return f"Found{worst}: {_side(report, gate, spec)}{_value(gate.found, spec)}{_how_found(report, gate, spec)}."
    if gate.passed:
        return f"No attack tried rebuilt the model{worst}; not found is not impossible."
    ends = _ends(report, gate, spec)
    if ends is None:
        return f"Could not be measured{worst}{_why_not(report, gate, spec)}."
    return f"Cannot be told{worst}, so it fails: {_between(ends, spec)}; a limit left cases unsettled."


def _ends(report: AuditReport, gate: Gate, spec: GateSpec) -> tuple[float, float] | None:
    """The least and the most that a gate's value can be, if unsettled cases leave more than one; else None."""
    id = gate.service or ""
    if spec.name == DETERMINED:
        found = determined_range(report.curve_of(id), spec.answers or 1)
    else:
        found = quota_range(report, id) if spec.name == QUOTA else None
    return None if found is None or found[0] == found[1] else (min(found), max(found))


def _between(ends: tuple[float, float], spec: GateSpec) -> str:
    """A range in words: '21 to 100 %', '1 to 30'."""
    least, most = (_value(end, spec) for end in ends)
    return f"{least.removesuffix(' %')} to {most}"


def _side(report: AuditReport, gate: Gate, spec: GateSpec) -> str:
    """Which end of a range was found: 'at least ' or 'at most '; empty for a value that is no range."""
    ends = _ends(report, gate, spec)
    return "" if ends is None else "at least " if gate.found == ends[0] else "at most "


def _how_found(report: AuditReport, gate: Gate, spec: GateSpec) -> str:
    """What to know about the value: where it comes from, if not from what was asked for."""
    id = gate.service or ""
    curve, row, quota = report.curve_of(id), report.known_of(id), report.quota_of(id)
    if spec.name == DETERMINED and curve is not None:
        later = next((n for n in curve.answers if n >= (spec.answers or 1)), None)
        return f", measured after {later:,}" if later not in (None, spec.answers) else ""
    if spec.name == EXTRACT and row is not None and row.valid is not None and gate.found == row.valid:
        return f", by rank, for {kind_of_cases(report)}; the whole model took {row.answers:,}"
    if spec.name == EXTRACT and row is not None and gate.found != row.answers:
        return f", the least of {counted(row.runs, 'run')}"
    if spec.name == AGREEMENT and row is not None and row.agreement is None:
        return ", by always giving the commoner answer; no attack tried rebuilt the model"
    return ", the most that was tried" if spec.name == QUOTA and quota is not None and quota.is_limit else ""


def _why_not(report: AuditReport, gate: Gate, spec: GateSpec) -> str:
    """Why there is no value, and what to do about it."""
    curve = report.curve_of(gate.service or "")
    if spec.name != DETERMINED or spec.answers is None or curve is None or not curve.answers:
        return ""
    return f": the most tried was {counted(curve.answers[-1], 'answer')}. Measure more answers, or ask about fewer"


def _found_anyhow(gate: Gate) -> str:
    if gate.found is None:
        return "no value found" if gate.passed else "could not be measured"
    return f"{gate.found:,.10g} found, {gate.allowed:,.10g} is the bound"
