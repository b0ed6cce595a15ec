"""Names that want to be more than names, in a real browser: they stay text, in their place."""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from audit_sample import HOSTILE, edge_reports
from overexplain.auditing.audit_report import AuditReport
from system.browser import PHONE, open_all_details, opened, overlapping_texts, too_wide, written

pytestmark = pytest.mark.system

FURTHER = {
    "end of everything": "</title></style></text></svg></table></script>--><script>window.pwned=1</script>",
    "drawing": "<svg onload=window.pwned=1><script>window.pwned=1</script><a xlink:href=javascript:pwned=1>]]>",
    "attribute": "x\" ' autofocus onfocus=window.pwned=1 onmouseover=window.pwned=1 style='position:fixed' y=\"",
    "elsewhere": "<base href=http://host.invalid/><meta http-equiv=refresh content='0;url=http://host.invalid/'>",
    "frame": "<iframe srcdoc='<script>top.pwned=1</script>'></iframe><object data=http://host.invalid/></object>",
    "style": "</style><style>*{display:none;background:url(http://host.invalid/)}</style>",
    "sums": "{{191*193}} {%print(191*193)%} ${191*193} #{191*193} <%=191*193%>",
    "breaks out": "\u2069\u2069\u202c\u202e\u202enot turned \u2067\u2067around",
    "arabic": "الدخل السنوي 123",
    "marks": "Z" + "\u0335\u0336\u0337\u0338\u0300\u0301" * 40,
}
NAMES = HOSTILE | FURTHER
LEFT_TO_RIGHT = ("L", "ON", "EN", "ES", "ET", "CS", "WS", "B", "S", "BN", "NSM")


@cache
def hostile(name: str) -> AuditReport:
    """The sample with this text wherever a report holds one from outside."""
    stand_in = json.dumps(HOSTILE["address"])[1:-1]
    text = json.dumps(json.loads(edge_reports()["hostile: address"].to_json()))
    return AuditReport.from_json(text.replace(stand_in, json.dumps(name)[1:-1]))


# Elements by name (outside drawings with their number), and whatever could do more than show text.
_TALLY = """() => {
    const outside = {}, inside = new Set(), active = [];
    for (const e of document.querySelectorAll("*")) {
        if (e.closest("svg")) { inside.add(e.localName); } else { outside[e.localName] = (outside[e.localName] || 0) + 1; }
        for (const {name, value} of e.attributes) {
            const leads = ["href", "xlink:href", "src", "srcset", "action", "formaction", "data", "srcdoc"].includes(name);
            if (/^on/.test(name) || name === "style" || (leads && !value.startsWith("#"))) {
                active.push(`${e.localName} ${name}=${value}`);
            }
        }
    }
    return {outside, inside: [...inside].sort(), active};
}"""

# Letters of the page's own words must run from left to right: pairs of letters, neither of them of the hostile name.
_TURNED = """() => {
    const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
    const controls = /[\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]/;
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const text = node.data, marked = controls.test(text);
        if (!node.parentElement.getClientRects().length || node.parentElement.closest("bdi, title, script, style")) { continue; }
        const first = marked ? text.search(controls) : text.length;
        let last = marked ? text.length - 1 : -1;
        while (marked && !controls.test(text[last])) { last--; }
        for (let i = 0; i + 1 < Math.min(text.length, 300); i++) {
            if (!/[a-z]{2}/i.test(text.slice(i, i + 2)) || (i + 1 >= first && i <= last)) { continue; }
            const boxes = [i, i + 1].map(at => {
                range.setStart(node, at); range.setEnd(node, at + 1);
                return range.getBoundingClientRect();
            });
            if (Math.abs(boxes[0].top - boxes[1].top) < 2 && boxes[1].left < boxes[0].left) {
                found.push(text.slice(0, 120)); break;
            }
        }
    }
    return found;
}"""


@pytest.fixture(scope="module")
def ordinary(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The tally of the same report with an ordinary name."""
    with opened(browser, written(hostile("income"), tmp_path_factory.mktemp("ordinary"))) as seen:
        return seen.page.evaluate(_TALLY)


def touch_everything(page: Page) -> None:
    """Slides, hovers and chooses: what is put together by the script is put together now."""
    page.locator("#readout-k").focus()
    page.keyboard.press("End")
    page.locator("svg.curve.wide").first.hover()
    open_all_details(page)
    for label in page.locator("#maps label").all():
        label.click()


@pytest.mark.parametrize("kind", list(NAMES))
def test_a_hostile_name_stays_text(browser: Browser, tmp_path: Path, ordinary: dict[str, Any], kind: str) -> None:
    name = NAMES[kind]
    report = hostile(name)
    with opened(browser, written(report, tmp_path)) as seen:
        page = seen.page
        touch_everything(page)
        assert page.evaluate("window.pwned") is None
        tally = page.evaluate(_TALLY)
        assert tally["active"] == []
        assert set(tally["inside"]) <= set(ordinary["inside"])
        assert tally["outside"] == ordinary["outside"]
        assert "36863" not in page.content()
        shown = re.sub("[\u2066-\u2069]", "", page.evaluate("document.body.innerText"))
        beginning = " ".join(name.split()).split("\ufffd")[0][:20]
        if name.isprintable() and name:
            assert beginning in shown
        assert AuditReport.from_json(page.locator("#report-data").evaluate("e => e.textContent")) == report
        if any(unicodedata.bidirectional(letter) not in LEFT_TO_RIGHT for letter in name):
            assert page.evaluate(_TURNED) == []
        assert too_wide(page) == []
        assert overlapping_texts(page) == []
        page.set_viewport_size({"width": PHONE, "height": 844})
        assert too_wide(page) == []
        assert seen.violations() == []
        seen.assert_quiet()


def test_what_is_turned_around_is_noticed(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "turned.html"
    for text, turned in (("\u202ename and more", True), ("<bdi>\u202ename</bdi> and more", False)):
        file.write_text(f"<!doctype html><meta charset=utf-8><p>{text} <b>words</b></p>")
        with opened(browser, file) as seen:
            assert bool(seen.page.evaluate(_TURNED)) == turned
