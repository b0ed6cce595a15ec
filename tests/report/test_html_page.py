"""The page as a whole: well formed, closed to the outside, whatever the names, and always the same."""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import pytest

from audit_sample import HOSTILE, sample_report
from html_reader import REPORTS, page, tree
from overexplain.auditing.audit_report import AuditReport
from overexplain.report import audit_words
from overexplain.report.html.notebook import as_notebook_html
from overexplain.report.html.page import render_html
from overexplain.report.html.texts import LONGEST, glued, presentable

TAGS = """
    html head meta title style body a header p h1 h2 h3 b ul li span small nav ol main section figure figcaption svg g line
    polyline polygon path circle rect text defs pattern clippath div label input output details summary table caption thead
    tbody tr th td bdi fieldset legend dl dt dd code pre footer script
"""
each_report = pytest.mark.parametrize("name", list(REPORTS))


@each_report
def test_the_page_is_well_formed_and_readable_without_eyes(name: str) -> None:
    root = tree(name)
    ids = [node.get("id") for node in root.walk() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    assert {node.tag for node in root.walk()} - {""} <= set(TAGS.split())
    assert len(root.all("h1")) == 1
    for section in root.all("section"):
        assert section.one("h2").get("id") == section.get("aria-labelledby")
        assert section.one("h2").text.strip()
    for drawing in root.all("svg"):
        if "aria-hidden" not in drawing.attributes:
            assert drawing.get("role") == "img"
            assert drawing.one("title").get("id") == drawing.get("aria-labelledby")
    for table in root.all("table"):
        assert table.one("caption").text.strip()
    for region in root.all("div", class_="scroll"):
        assert region.get("tabindex") == "0"
        assert region.get("role") == "region"
        assert region.get("aria-label")
    for label in root.all("label"):
        assert label.get("for") in ids
    for link in root.all("a"):
        assert link.get("href").removeprefix("#") in ids


@each_report
def test_nothing_leads_outside_and_nothing_but_one_script_and_one_style_can_run(name: str) -> None:
    root = tree(name)
    for node in root.walk():
        for attribute, value in node.attributes.items():
            assert attribute not in ("src", "style", "srcset", "action", "data", "background", "ping", "xlink:href")
            assert not attribute.startswith("on")
            assert attribute != "href" or (value or "").startswith("#")
            assert (
                "url(" not in (value or "") or re.fullmatch(r"url\(#[\w-]+\)", value or "") or node.tag in ("svg", "li")
            )
    style, data, script = root.one("style"), *root.all("script")
    assert "url(" not in style.text
    assert "@import" not in style.text
    policy = root.one("meta", http_equiv="Content-Security-Policy").get("content")
    for kind, node in (("style", style), ("script", script)):
        digest = b64encode(hashlib.sha256(node.text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert data.attributes == {"type": "application/json", "id": "report-data"}
    assert script.attributes == {}


def test_the_sample_names_no_address_at_all() -> None:
    assert not re.search(r"https?:|//[a-z]|www\.|data:|file:", page("sample").replace("// The", ""))


@each_report
def test_the_json_in_the_page_is_the_report(name: str) -> None:
    block = tree(name).one("script", id="report-data").text
    assert not set(block) & set("<>&\u2028\u2029")
    assert AuditReport.from_json(block) == REPORTS[name]
    assert json.loads(block) == json.loads(REPORTS[name].to_json())


@each_report
def test_words_are_those_of_audit_words(name: str) -> None:
    root, shown = tree(name), presentable(REPORTS[name])
    assert root.one("h1").text.replace("\u00a0", " ") == audit_words.title(shown)
    numbers = [node for node in root.all("li") if "data-name" in node.attributes]
    expected = audit_words.three_numbers(shown)
    assert [node.get("data-name") for node in numbers] == [number.name for number in expected]
    for node, number in zip(numbers, expected, strict=True):
        assert node.get("data-value") == ("" if number.value is None else str(number.value))
        assert glued(number.detail) in node.text.replace("\u2068", "").replace("\u2069", "")
    gates = root.all("p", class_="gate")
    assert [("failed" in gate.classes) for gate in gates] == [not gate.passed for gate in REPORTS[name].gates]
    assert len(root.one("section", id="glossary").all("dt")) == len(audit_words.glossary())
    assert len(root.one("section", id="premises").all("dt")) == len(audit_words.premises(shown))
    assert len([li for ul in root.all("ul", class_="means") for li in ul.all("li")]) == len(shown.findings)
    assert len([li for ol in root.all("ol", class_="todo") for li in ol.all("li")]) == len(shown.advice)


@pytest.mark.parametrize("kind", list(HOSTILE))
def test_hostile_names_stay_text(kind: str) -> None:
    root, ordinary = tree(f"hostile: {kind}"), tree("sample")
    visible = "".join(node.text for node in root.walk() if node.tag in ("header", "main"))
    assert root.one("head").one("title").text == ordinary.one("head").one("title").text
    for tag in ("script", "img", "iframe", "input", "a", "section", "svg", "tr", "td", "li"):
        if tag != "li":  # findings may differ
            assert len(root.all(tag)) == len(ordinary.all(tag)), tag
    expected = {
        "script": "window.pwned=1",
        "image": '"><img src=x',
        "comment": "<!--<script>",
        "template": "{{7*7}} {% raw %}",
    }
    assert expected.get(kind, "") in visible
    controls = re.findall(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066\u2067\u200b-\u200f\ufffe\uffff]", page(f"hostile: {kind}")
    )
    assert not controls
    assert visible.count("\u2068") == visible.count("\u2069")
    texts = [t for node in root.one("main").walk() if node.tag != "code" for t in node.children if isinstance(t, str)]
    assert max(len(word) for text in texts for word in text.split()) <= LONGEST + 20


@each_report
def test_the_page_is_small(name: str) -> None:
    size, whole = len(page(name).encode()), len(tree(name).one("script", id="report-data").text.encode())
    assert size - whole < 300_000
    assert size < 300_000 or kind_is_long(name)


def kind_is_long(name: str) -> bool:
    """Names of ten thousand letters are in the JSON in full, and only there."""
    return name in ("hostile: long", "hostile: one word")


def test_the_same_report_gives_the_same_bytes_and_jinja_is_loaded_only_to_render() -> None:
    program = (
        "import sys, hashlib\n"
        "from overexplain.report.html.page import render_html\n"
        "from overexplain.auditing.audit_report import AuditReport\n"
        "report = AuditReport.from_json(sys.stdin.buffer.read())\n"
        "assert 'jinja2' not in sys.modules\n"
        "sys.stdout.write(hashlib.sha256(render_html(report).encode()).hexdigest())\n"
    )
    source = Path(__file__).parents[2] / "src"
    surroundings = {
        **os.environ,
        "PYTHONHASHSEED": "12345",
        "TZ": "Asia/Tokyo",
        "LC_ALL": "C",
        "PYTHONPATH": str(source),
    }
    given = sample_report().to_json().encode()
    ran = subprocess.run(
        [sys.executable, "-c", program], input=given, env=surroundings, capture_output=True, check=True, cwd="/"
    )
    assert ran.stdout.decode() == hashlib.sha256(page("sample").encode()).hexdigest()
    assert render_html(sample_report()) == page("sample")


def test_every_map_has_its_choice() -> None:
    root = tree("sample")
    maps = sample_report().maps
    style = root.one("style").text
    for i, one in enumerate(maps, 1):
        assert f"#maps:has(#pair-{i}:checked) .maps-{i}" in style
        assert root.one("label", for_=f"pair-{i}").text == f"{one.across}, {one.up}"
        assert len(root.one("div", class_=f"maps-{i}").all("svg")) == len(one.panels)
    chosen = [node.get("id") for node in root.all("input") if "checked" in node.attributes]
    assert chosen == ["pair-1"]


def test_sections_without_data_are_left_out() -> None:
    sections = [section.get("id") for section in tree("nothing but a service").all("section")]
    assert sections == ["premises", "verify", "glossary"]
    links = [link.get("href") for link in tree("nothing but a service").one("nav").all("a")]
    assert links == ["#premises", "#verify", "#glossary"]


def test_a_notebook_gets_the_page_in_a_closed_frame() -> None:
    shown = as_notebook_html(sample_report(), height=500)
    (frame,) = re.findall(r"<iframe ([^<>]*)></iframe>", shown)
    attributes = dict(re.findall(r'(\w+)="([^"]*)"', frame))
    assert html.unescape(attributes["srcdoc"]) == page("sample")
    assert attributes["sandbox"] == "allow-scripts"
    assert attributes["height"] == "500"
