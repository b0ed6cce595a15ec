"""A report in a real headless Chromium: how it is opened, what is listened to, and what is read back from the page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from overexplain.auditing.audit_report import AuditReport
from overexplain.report.html.page import render_html

DESKTOP, PHONE = 1280, 390
HEIGHT = {DESKTOP: 900, PHONE: 844}

# Not subject to the page's own policy, so it hears every violation of it.
_LISTEN = """
window.violated = [];
document.addEventListener("securitypolicyviolation", e => window.violated.push(e.violatedDirective + " " + e.blockedURI));
"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, headless, with nowhere to go: every host name is unknown to it."""
    found = shutil.which("chromium")
    assert found, "the Debian package chromium is missing"
    arguments = ["--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking"]
    if os.geteuid() == 0:  # Chromium's own sandbox refuses to run for root
        arguments.append("--no-sandbox")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Opened:
    """A page, and everything it said or asked for since it was opened."""

    page: Page
    address: str
    complaints: list[str] = field(default_factory=list)
    asked_for: list[str] = field(default_factory=list)

    def assert_quiet(self) -> None:
        """Nothing was complained about, and nothing was asked for but the file itself, once."""
        assert self.complaints == []
        assert self.asked_for == [self.address]
        assert self.page.context.service_workers == []
        assert len(self.page.context.pages) == 1
        assert len(self.page.frames) == 1
        assert self.page.url.split("#")[0] == self.address

    def violations(self) -> list[str]:
        """What the page's content security policy refused; scripts must be on."""
        return self.page.evaluate("window.violated")


@contextmanager
def opened(
    browser: Browser, file: Path, *, width: int = DESKTOP, scheme: str = "light", **options: Any
) -> Iterator[Opened]:
    """The file in a fresh browser profile; options as of Playwright's new_context (java_script_enabled, forced_colors, …)."""
    settings: dict[str, Any] = {"viewport": {"width": width, "height": HEIGHT[width]}, "color_scheme": scheme}
    settings |= {"offline": True, "reduced_motion": "reduce"}  # smooth scrolling takes a second each time
    context = browser.new_context(**(settings | options))
    try:
        context.add_init_script(_LISTEN)
        page = context.new_page()
        seen = Opened(page, file.as_uri())
        context.on("request", lambda request: seen.asked_for.append(request.url))
        page.on("console", lambda message: seen.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: seen.complaints.append(f"error: {error}"))
        page.on("crash", lambda _: seen.complaints.append("crashed"))
        page.on("dialog", lambda dialog: (seen.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("download", lambda download: seen.complaints.append(f"download: {download.url}"))
        page.on("websocket", lambda socket: seen.asked_for.append(socket.url))
        page.on("worker", lambda worker: seen.asked_for.append(worker.url))
        context.route("**/*", lambda route: route.continue_() if route.request.url == seen.address else route.abort())
        page.goto(seen.address)
        yield seen
    finally:
        context.close()


def written(report: AuditReport, folder: Path) -> Path:
    """The file with the report's page."""
    file = folder / "report.html"
    file.write_bytes(render_html(report).encode())
    return file


def use_font(page: Page, family: str) -> None:
    """Forces a font upon all text, through the page's own style sheet: its policy allows no other."""
    page.evaluate(
        """family => {
            const sheet = document.styleSheets[0];
            sheet.insertRule(`*, svg text {font-family: "${family}" !important}`, sheet.cssRules.length);
        }""",
        family,
    )


def fonts_used(page: Page, selector: str) -> set[str]:
    """The families of the fonts that the element's text is really drawn with."""
    session = page.context.new_cdp_session(page)
    session.send("DOM.enable")
    session.send("CSS.enable")
    root = session.send("DOM.getDocument")["root"]["nodeId"]
    node = session.send("DOM.querySelector", {"nodeId": root, "selector": selector})["nodeId"]
    fonts = session.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
    session.detach()
    return {font["familyName"] for font in fonts}


def open_all_details(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")


def table(page: Page, name: str) -> list[list[dict[str, Any]]]:
    """The rows of a table's body: of every cell its text and its data- attributes, numbers as numbers."""
    return page.evaluate(
        """name => [...document.querySelectorAll(`#${name} tbody tr`)].map(row => [...row.cells].map(cell => {
            const read = {text: cell.textContent.trim(), heads: cell.tagName === "TH"};
            for (const [key, text] of Object.entries(cell.dataset)) {
                read[key] = text !== "" && isFinite(text) ? Number(text) : text;
            }
            return read;
        }))""",
        name,
    )


# Text in drawings: lines of text (tspans that start a line of their own count as such), as boxes in the window.
_CHART_TEXTS = """() => [...document.querySelectorAll("svg")].flatMap((svg, drawing) => {
    const shown = e => e.getClientRects().length > 0 && getComputedStyle(e).visibility === "visible";
    if (!shown(svg)) { return []; }
    return [...svg.querySelectorAll("text")].filter(shown).flatMap(text => {
        const lines = [...text.querySelectorAll("tspan[x], tspan[dy]")];
        return (lines.length ? lines : [text]).map(line => {
            const box = line.getBoundingClientRect();
            return {drawing, words: line.textContent, left: box.left, right: box.right, top: box.top, bottom: box.bottom};
        }).filter(box => box.words.trim() && box.right > box.left);
    });
})"""


def chart_texts(page: Page) -> list[dict[str, Any]]:
    """The boxes of all lines of text in the drawings that are shown."""
    return page.evaluate(_CHART_TEXTS)


def overlapping_texts(page: Page, tolerance: float = 1.0) -> list[tuple[str, str]]:
    """The pairs of texts in one drawing whose boxes share more than so many pixels both ways."""
    texts = chart_texts(page)
    pairs = []
    for i, a in enumerate(texts):
        for b in texts[i + 1 :]:
            across = min(a["right"], b["right"]) - max(a["left"], b["left"])
            along = min(a["bottom"], b["bottom"]) - max(a["top"], b["top"])
            if a["drawing"] == b["drawing"] and across > tolerance and along > tolerance:
                pairs.append((a["words"], b["words"]))
    return pairs


def too_wide(page: Page) -> list[str]:
    """What sticks out of the window to the right or left, other than inside a region that scrolls by itself."""
    return page.evaluate(
        """() => {
            const width = document.documentElement.clientWidth, found = [];
            if (document.documentElement.scrollWidth > width) {
                found.push(`page: ${document.documentElement.scrollWidth} > ${width}`);
            }
            const aside = ".scroll, pre, .skip, title, script, style, defs, [clip-path]";
            for (const e of document.querySelectorAll("body *")) {
                if (e.closest(aside) || !e.getClientRects().length) { continue; }
                const box = e.getBoundingClientRect();
                if (box.right > width + 1 || box.left < -1) {
                    const name = `${e.localName}.${e.getAttribute("class")}`;
                    found.push(`${name}: ${box.left} to ${box.right}: ${e.textContent.slice(0, 60)}`);
                }
            }
            return found;
        }"""
    )
