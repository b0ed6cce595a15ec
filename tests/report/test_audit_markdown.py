"""The Markdown rendering, read back by a CommonMark parser: complete, and texts from outside stay text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from audit_sample import edge_reports, sample_report
from overexplain.auditing.findings import with_findings
from overexplain.report import audit_words as words
from overexplain.report.audit_markdown import as_text, render_markdown
from overexplain.report.words import percent

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def tables(text: str) -> list[list[list[str]]]:
    """The cells of every table, as a reader sees them."""
    found, row, inside = [], [], False
    for token in READER.parse(text):
        if token.type in ("table_open", "table_close"):
            inside = token.type == "table_open"
            found += [[]] if inside else []
        elif token.type == "tr_open":
            row = []
            found[-1].append(row)
        elif token.type == "inline" and inside:
            row.append(shown(token))
    return found


def shown(token) -> str:
    assert all(child.type in ("text", "text_special") for child in token.children), token.content
    return "".join(child.content for child in token.children)


def kinds(text: str) -> set[str]:
    inline = [child.type for token in READER.parse(text) for child in token.children or ()]
    return {token.type for token in READER.parse(text)} | set(inline)


def test_every_number_of_the_curves_the_attacks_and_the_defences_is_in_a_table():
    report = with_findings(sample_report())
    curve, pooled, maps, points, known, defences, *_ = tables(render_markdown(report))
    everyone = [c for c in report.curves if c.population == "all"]
    assert [row[0] for row in curve[1:]] == [f"{n:,}" for n in everyone[0].answers]
    for i, n in enumerate(everyone[0].answers):
        for j, one in enumerate(everyone, 1):
            assert curve[1 + i][j].startswith(percent(one.median[i])), n
    assert len(pooled) == 1 + len(report.curves[-1].answers)
    assert len(maps) == 1 + sum(len(one.panels) for one in report.maps)
    assert len(points) == 1 + len(report.maps[0].questions)
    assert [row[1] for row in known[1:]] == ["30", "1", "30", "335", "not found", "647"]
    assert [row[0] for row in defences[1:]] == [row.name for row in report.defences.rows]
    assert defences[-1][1:4] == ["not within 3,000 (error 0.02)", "352", "3.18×"]


def test_every_section_finding_and_advice_is_there():
    report = with_findings(sample_report())
    text = " ".join(shown_text(render_markdown(report)).split())
    for section in ("curve", "map", "known", "defences", "premises", "verify", "glossary"):
        assert words.heading(report, section) in text
    for finding in report.findings:
        assert words.finding_sentence(report, finding) in text
    for finding in report.advice:
        assert words.advice_sentence(report, finding) in text
    for number in words.three_numbers(report):
        assert number.detail in text
    assert report.subject.model_sha256 in text
    assert report.provenance.command in text


def shown_text(markdown: str) -> str:
    tokens = [token for token in READER.parse(markdown) if token.type == "inline"]
    return "\n".join("".join(child.content for child in token.children) for token in tokens)


@pytest.mark.parametrize("name", list(edge_reports()))
def test_names_from_outside_make_no_markup(name):
    report = edge_reports()[name]
    text = render_markdown(report)
    found = kinds(text)
    assert not found & {
        "html_block",
        "html_inline",
        "link_open",
        "image",
        "code_inline",
        "fence",
        "code_block",
        "s_open",
    }
    assert sum(token.type == "heading_open" for token in READER.parse(text)) <= 10 + bool(report.all_cases)
    widths = [{len(row) for row in table} for table in tables(text)]
    assert all(len(width) == 1 for width in widths)
    assert "<" not in text
    assert "://" not in text
    assert max(map(len, text.splitlines())) < 5_000


@pytest.mark.parametrize("name", ["script", "image", "template", "entities", "address", "comment"])
def test_hostile_names_are_shown_as_they_are(name):
    from audit_sample import HOSTILE

    text = shown_text(render_markdown(edge_reports()[f"hostile: {name}"]))
    assert " ".join(HOSTILE[name].split()) in text


@given(st.text(alphabet="ab1 |\\`*_[]()<>&#~$@!-+=.:/{}\"'", max_size=30).filter(str.strip))
def test_any_text_in_a_cell_or_a_line_is_read_back_as_it_is(text):
    wanted = " ".join(text.split())
    cells = tables(f"| a | b |\n| --- | --- |\n| {as_text(text)} | x |\n")
    assert cells == [[["a", "b"], [wanted, "x"]]]
    assert shown_text(f"Before\n\n{as_text(text)}\n") == f"Before\n{wanted}"
    assert shown_text(f"- {as_text(text)}\n") == wanted


def test_the_same_report_gives_the_same_text_ending_in_one_newline():
    text = render_markdown(sample_report())
    assert text == render_markdown(sample_report())
    assert text.endswith("|\n")
    assert not text.endswith("\n\n")


def test_a_report_without_parts_has_no_empty_tables():
    report = replace(sample_report(), maps=(), proof=None, defences=None, known=(), curves=(), quotas=())
    assert all(len(table) > 1 for table in tables(render_markdown(report)))
