"""The report as Markdown (GitHub's): the same words and every table; texts from outside stay text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from overexplain.auditing.audit_report import AuditReport, Cost, Curve, Defence, Map, UntilKnown
from overexplain.auditing.findings import BY_QUOTA
from overexplain.report import audit_words as words
from overexplain.report.audit_sections import map_columns, median_range, panel_shares, spread
from overexplain.report.audit_text import tidy
from overexplain.report.words import counted, percent, small

LONGEST_CELL = 200
_SIGNS = re.compile(r"[\\`*_\[\]|~<>&#$@]")
_AS_ENTITY = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "#": "&#35;", "$": "&#36;", "@": "&#64;"}

Cells = Sequence[str]


def render_markdown(report: AuditReport) -> str:
    """The whole report; the same report gives the same text."""
    blocks = [f"_{as_text(words.eyebrow(report))}_", f"# {as_text(words.title(report))}", as_text(words.lead(report))]
    blocks += [f"**{words.gate_outcome(gate)}.** {as_text(words.gate_sentence(report, gate))}" for gate in report.gates]
    blocks += [*_numbers(report), *_curve(report), *_maps(report), *_known(report), *_defences(report)]
    blocks += [f"## {as_text(words.heading(report, 'premises'))}", *_paragraphs(report, "premises")]
    blocks.append(as_table(("", ""), words.premises(report)))
    blocks += [
        *_verify(report),
        f"## {as_text(words.heading(report, 'glossary'))}",
        as_table(("", ""), words.glossary()),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _numbers(report: AuditReport) -> list[str]:
    lines = []
    for number in words.three_numbers(report):
        shown = f"{number.text} {number.unit}".strip()
        lines.append(f"- **{as_text(shown)}** {as_text(number.label)}. {as_text(number.detail)}")
    return ["\n".join(lines)]


def _curve(report: AuditReport) -> list[str]:
    blocks = [f"## {as_text(words.heading(report, 'curve'))}", *_paragraphs(report, "curve")]
    tables = (
        ("all", "Median share of decisions determined"),
        ("denied", "The same from letters to the denied, pooled"),
    )
    for population, caption in tables:
        curves = [curve for curve in report.curves if curve.population == population]
        if not curves:
            continue
        counts = sorted({n for curve in curves for n in curve.answers})
        head = ["Answers", *(words.service_name(report.service(curve.service)) for curve in curves)]
        rows = [[f"{n:,}", *(_share(curve, n) for curve in curves)] for n in counts]
        judged, orders = counted(curves[0].judged, "case"), counted(curves[0].orders, "random order")
        caption += (
            f"; in brackets, where it differs, the range that holds 8 of 10 orders. {judged} never asked, {orders}."
        )
        if any(curve.undecided for curve in curves):
            caption += " ≥, or a range where it could be nothing: a limit left the rest unsettled."
        blocks += [caption, as_table(head, rows)]
    found = [words.finding_sentence(report, finding) for finding in report.findings]
    if report.all_cases:
        blocks += ["### All rows of the data", as_text(words.all_cases(report))]
    return [*blocks, *_list("### What this means", found)]


def _share(curve: Curve, answers: int) -> str:
    if answers not in curve.answers:
        return "–"
    i = curve.answers.index(answers)
    median, orders = median_range(curve, i), spread(curve, i)
    return median if orders == median.replace("–", " to ") else f"{median} ({orders})"


def _maps(report: AuditReport) -> list[str]:
    if not report.maps:
        return []
    shares = map_columns(report)
    head = ("Features", "Decisions", "Explanations", *shares)
    rows = [
        (_pair(one), f"{p.decisions:,}", f"{p.explanations:,}", *panel_shares(p)[: len(shares)])
        for one in report.maps
        for p in one.panels
    ]
    blocks = [f"## {as_text(words.heading(report, 'map'))}", *_paragraphs(report, "map")[:1], as_table(head, rows)]
    first = report.maps[0]
    asked = ("Question", tidy(first.across), tidy(first.up), "Decision", "Explanation")
    points = [
        (str(i), f"{q.x:.6g}", f"{q.y:.6g}", "Yes" if q.label == 1 else "No", _led(q.explanation))
        for i, q in enumerate(first.questions, 1)
    ]
    note = "The questions of the first map, made up; no row of any applicant is shown."
    return [*blocks, as_text(words.figure_caption(report, "map")), note, as_table(asked, points)]


def _pair(one: Map) -> str:
    return f"{tidy(one.across)}, {tidy(one.up)}"


def _led(explanation: tuple[float, float] | None) -> str:
    return "not asked" if explanation is None else f"to {explanation[0]:.6g}, {explanation[1]:.6g}"


def _known(report: AuditReport) -> list[str]:
    blocks = [f"## {as_text(words.heading(report, 'known'))}", *_paragraphs(report, "known")]
    if not report.known:
        return blocks
    ranked = any(row.valid is not None for row in report.known)
    head = ("Service", "Needed", "Explanations", "Decisions", "Minimum", *["Valid cases, by rank"] * ranked, "Paper",
            "Method", "Angle error", "Alike")  # fmt: skip
    rows: list[Cells] = []
    for row in report.known:
        paper = "–" if row.paper_explanations is None else f"{row.paper_explanations:,} + {row.paper_labels or 0:,}"
        service = report.service(row.service)
        name = words.service_name(service) + ("" if service.role == "comparison" else ", audited")
        needed = _failed(row) if row.answers is None else f"{row.answers:,}"
        least = _count(row.minimum) + " (bits)" * (row.minimum_is == "information bound")
        measured = (
            tidy(row.method) if row.method else "–",
            "–" if row.angle_error is None else small(row.angle_error, 1),
            _percent(row.agreement),
        )
        few = [_count(row.valid)] * ranked
        rows.append((name, needed, _count(row.explanations), _count(row.labels), least, *few, paper, *measured))
    return [*blocks, as_text(words.figure_caption(report, "known")), as_table(head, rows)]


def _failed(row: UntilKnown) -> str:
    return "not found" if row.low is None else f"seldom found (from {row.low:,})"


def _defences(report: AuditReport) -> list[str]:
    found = report.defences
    blocks = [f"## {as_text(words.heading(report, 'defences'))}", *_paragraphs(report, "defences")]
    if found is not None and found.rows:
        head = (
            "Defence",
            "Attacker sees explanations",
            "can also ask decisions",
            "Length",
            "Invalid",
            "No advice",
            "Shows cases",
        )
        rows = [
            (
                tidy(row.name),
                _cost(row.explained, row, found.limit),
                _cost(row.with_labels, row, found.limit),
                "–" if row.length is None else f"{row.length:.2f}×",
                _percent(row.invalid),
                percent(row.unanswered),
                "yes" if row.shows_rows else "no",
            )
            for row in found.rows
        ]
        blocks += [as_text(words.figure_caption(report, "defences")), as_table(head, rows)]
    advised = [words.advice_sentence(report, finding) for finding in report.advice]
    return [*blocks, *_list("### What to do", advised)]


def _cost(cost: Cost, row: Defence, limit: int) -> str:
    if cost.requests is not None:
        return f"{cost.requests:,}"
    error = "" if cost.error is None else f" (error {cost.error:.2g})"
    return f"stopped by the quota{error}" if row.id == BY_QUOTA else f"not within {limit:,}{error}"


def _verify(report: AuditReport) -> list[str]:
    blocks = [f"## {as_text(words.heading(report, 'verify'))}", *_paragraphs(report, "verify")]
    if report.proof is not None and report.maps:
        proof, first = report.proof, report.maps[0]
        head = ("Answered case", "Weight", tidy(first.across), tidy(first.up))
        answers = {1: "Yes", -1: "No"}
        rows = [
            (f"Question {row.question}, answered {answers[row.label]}", row.weight, row.x, row.y) for row in proof.rows
        ]
        blocks.append(as_table(head, [*rows, ("Sum: the case in question", "1", proof.x, proof.y)]))
    made, subject = report.provenance, report.subject
    packages = ", ".join(f"{tidy(name)} {tidy(version)}" for name, version in made.packages.items())
    facts = [
        ("Command", "–" if made.command is None else tidy(made.command, LONGEST_CELL)),
        ("Seed", str(made.seed)),
        ("Versions", f"overexplain {tidy(made.overexplain)}, Python {tidy(made.python)}, {packages}"),
        ("Coefficients as read, SHA-256", tidy(subject.model_sha256, LONGEST_CELL)),
        ("Cases as read, SHA-256", f"{tidy(subject.data_sha256, LONGEST_CELL)} ({counted(subject.cases, 'case')})"),
        *((f"Service {service.id}", tidy(service.spec, LONGEST_CELL)) for service in report.services),
    ]
    return [*blocks, as_table(("", ""), facts)]


def _paragraphs(report: AuditReport, section: Any) -> list[str]:
    return [as_text(text) for text in words.paragraphs(report, section)]


def _list(heading: str, sentences: Sequence[str]) -> list[str]:
    return [heading, "\n".join(f"- {as_text(sentence)}" for sentence in sentences)] if sentences else []


def as_table(head: Cells, rows: Iterable[Cells]) -> str:
    """A table whose cells stay text."""
    lines = [f"| {' | '.join(map(as_text, cells))} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "| --- " * len(head) + "|", *lines[1:]])


def _count(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


def _percent(share: float | None) -> str:
    return "–" if share is None else percent(share)


def as_text(text: str) -> str:
    r"""A text in which no character means anything to Markdown or HTML, on one line.

    >>> as_text("a|b <script> [x](https://y) `c`")
    'a\\|b &lt;script&gt; \\[x\\](https&#58;//y) \\`c\\`'
    >>> as_text("1. one"), as_text("- one"), as_text("x_1")
    ('1\\. one', '\\- one', 'x\\_1')
    """
    escaped = _SIGNS.sub(lambda sign: _AS_ENTITY.get(sign[0], f"\\{sign[0]}"), " ".join(text.split()))
    # What is a list or a heading only at the beginning of a line; addresses that would become links by themselves.
    escaped = re.sub(r"^([-+=]|\d+(?=[.)]( |$)))", _at_the_beginning, escaped)
    return escaped.replace("://", "&#58;//").replace("www.", "www&#46;")


def _at_the_beginning(found: re.Match[str]) -> str:
    return f"{found[0]}\\" if found[0].isdigit() else f"\\{found[0]}"
