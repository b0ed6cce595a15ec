"""The report in a real browser: it asks for nothing, works by mouse, keyboard and without scripts, and prints whole."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from audit_sample import edge_reports, sample_report
from overexplain.auditing.audit_report import AuditReport
from overexplain.report.html.page import render_html
from overexplain.report.words import counted, percent
from system.browser import (
    DESKTOP,
    HEIGHT,
    PHONE,
    Opened,
    fonts_used,
    open_all_details,
    opened,
    overlapping_texts,
    too_wide,
    use_font,
    written,
)

pytestmark = pytest.mark.system
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
LOOKS = [(width, scheme) for width in (DESKTOP, PHONE) for scheme in ("light", "dark")]
WIDE_FONT, NARROW_FONT = "DejaVu Sans", "Liberation Sans"
PLAIN = [name for name in edge_reports() if not name.startswith("hostile")]


@pytest.mark.parametrize(
    ("report", "width", "scheme"), [*(("sample", *look) for look in LOOKS), ("demo", *LOOKS[0]), ("demo", *LOOKS[-1])]
)
def test_it_opens_without_a_complaint_or_a_request(
    request: pytest.FixtureRequest, browser: Browser, report: str, width: int, scheme: str
) -> None:
    file = request.getfixturevalue(report)
    assert file.stat().st_size < 500_000
    with opened(browser, file, width=width, scheme=scheme, reduced_motion="no-preference") as seen:
        page = seen.page
        heading = page.locator("h1").inner_text()
        assert heading.lower() in page.title().lower()
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"{report}-{width}-{scheme}.png", full_page=True)
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        open_all_details(page)
        assert page.evaluate("localStorage.length + sessionStorage.length + document.cookie.length") == 0
        assert seen.violations() == []
        assert too_wide(page) == []
        for family in (WIDE_FONT, NARROW_FONT):
            use_font(page, family)
            assert overlapping_texts(page) == [], family
        seen.assert_quiet()


def test_what_listens_hears(browser: Browser, tmp_path: Path) -> None:
    """A page that does everything a report must not do: each is noticed."""
    policy = "<meta http-equiv='Content-Security-Policy' content=\"img-src 'none'; connect-src file: http:\">"
    script = (
        "<script>console.warn('w'); fetch('http://host.invalid/'); new Image().src = 'http://host.invalid/i'</script>"
    )
    file = tmp_path / "loud.html"
    file.write_text(
        f"<!doctype html>{policy}<link rel=stylesheet href=style.css>{script}<script>throw Error('e')</script>"
    )
    with opened(browser, file) as seen:
        seen.page.wait_for_function("window.violated.length > 0")
        assert any(violation.startswith("img-src") for violation in seen.violations())
        assert {"warning: w", "error: e"} <= set(seen.complaints)
        assert {"http://host.invalid/", (tmp_path / "style.css").as_uri()} <= set(seen.asked_for)


def test_it_is_small_and_the_same_every_time() -> None:
    first, second = (render_html(AuditReport.from_json(sample_report().to_json())).encode() for _ in range(2))
    assert first == second
    assert len(first) < 500_000


# The read-out and the maps -------------------------------------------------------------------------------------------


def readout(page: Page) -> tuple[str, dict[str, str]]:
    """The read-out: after how many answers, and the text beside every service."""
    rows = page.locator("#readout-out > span").evaluate_all(
        "rows => rows.map(row => [row.firstChild.textContent, row.querySelector('b').textContent])"
    )
    return page.locator("#readout-label").inner_text(), dict(rows)


def expected_readout(report: AuditReport, answers: int) -> dict[str, str]:
    rows = {}
    for curve in report.curves:
        if curve.population == "all":
            i = curve.at(answers)
            rows[report.service(curve.service).name] = percent(curve.median[i])
    return rows


def assert_reads(seen: Opened, answers: int) -> None:
    label, rows = readout(seen.page)
    assert label == f"After {counted(answers, 'answer')}"
    for name, text in expected_readout(sample_report(), answers).items():
        assert rows[name].replace("\u00a0", " ").startswith(text), (answers, name)


def test_the_readout_follows_the_keyboard(browser: Browser, sample: Path) -> None:
    answers = sample_report().curves[0].answers
    with opened(browser, sample) as seen:
        slider = seen.page.locator("#readout-k")
        slider.focus()
        for i in (0, *range(1, len(answers))):
            slider.press("ArrowRight" if i else "Home")
            assert_reads(seen, answers[i])
            assert slider.get_attribute("aria-valuetext") == counted(answers[i], "answer")
        slider.press("ArrowLeft")
        assert_reads(seen, answers[-2])
        seen.assert_quiet()


@pytest.mark.parametrize(("width", "drawing"), [(DESKTOP, "wide"), (PHONE, "narrow")])
def test_the_readout_follows_the_mouse(browser: Browser, sample: Path, width: int, drawing: str) -> None:
    answers = sample_report().curves[0].answers
    with opened(browser, sample, width=width) as seen:
        chart = seen.page.locator(f"svg.curve.{drawing}").first
        chart.scroll_into_view_if_needed()
        for n in (1, 2, 5, answers[10], answers[-1]):
            x, y = chart.evaluate(
                """(svg, n) => {
                    const d = svg.dataset, m = svg.getScreenCTM();
                    const x = +d.left + Math.log(n) / Math.log(+d.max) * (d.right - d.left);
                    return [m.e + m.a * x, m.f + m.d * (+d.top + +d.bottom) / 2];
                }""",
                n,
            )
            seen.page.mouse.move(x, y)
            assert_reads(seen, n)
        seen.assert_quiet()


def shown_maps(page: Page) -> list[int]:
    """The numbers of the map groups that are shown, from 0."""
    return page.locator(".maps").evaluate_all(
        "groups => groups.flatMap((group, i) => group.getClientRects().length ? [i] : [])"
    )


@pytest.mark.parametrize("scripts", [True, False])
def test_one_map_is_shown_whichever_is_chosen(browser: Browser, sample: Path, scripts: bool) -> None:
    with opened(browser, sample, java_script_enabled=scripts) as seen:
        page = seen.page
        radios = page.locator("#maps input[type=radio]")
        assert radios.count() == len(sample_report().maps) == page.locator(".maps").count()
        assert shown_maps(page) == [0]
        for i in (2, 1, 0):
            page.locator(f"label[for={radios.nth(i).get_attribute('id')}]").click()
            assert shown_maps(page) == [i]
        radios.nth(0).focus()
        for i in (1, 2, 0):
            page.keyboard.press("ArrowRight")
            assert shown_maps(page) == [i]
        seen.assert_quiet()


def test_without_scripts_only_the_readout_is_missing(browser: Browser, sample: Path) -> None:
    texts = []
    for scripts in (True, False):
        with opened(browser, sample, java_script_enabled=scripts) as seen:
            assert seen.page.locator("#readout").is_visible() == scripts
            open_all_details(seen.page)
            seen.page.evaluate("document.getElementById('readout').hidden = true")
            texts.append(seen.page.evaluate("document.body.innerText"))
            assert seen.page.locator("svg.curve.wide").first.is_visible()
            seen.assert_quiet()
    assert len(texts[0]) > 5000
    assert texts[0] == texts[1]


# Reaching everything -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_everything_is_reached_by_the_tab_key_and_seen_to_be(browser: Browser, sample: Path, width: int) -> None:
    with opened(browser, sample, width=width) as seen:
        page = seen.page
        open_all_details(page)
        reached, unmarked = set(), []
        for _ in range(100):
            page.keyboard.press("Tab")
            step = page.evaluate(
                """() => {
                    const e = document.activeElement;
                    if (!e || e === document.body) { return null; }
                    if (!e.dataset.order) { e.dataset.order = document.querySelectorAll("[data-order]").length + 1; }
                    const marked = [e, ...(e.labels || [])].some(part => getComputedStyle(part).outlineStyle !== "none");
                    return [+e.dataset.order, e.outerHTML.slice(0, 80), marked];
                }"""
            )
            if step is None or step[0] in reached:
                break
            reached.add(step[0])
            if not step[2]:
                unmarked.append(step[1])
        assert unmarked == []
        missed = page.evaluate(
            """() => [...document.querySelectorAll("a[href], input:not([type=radio]), input:checked, summary, .scroll")]
                .filter(e => e.getClientRects().length && !e.dataset.order).map(e => e.outerHTML.slice(0, 80))"""
        )
        assert missed == []
        kinds = page.evaluate("[...document.querySelectorAll('[data-order]')].map(e => e.type || e.localName)")
        assert {"range", "radio", "summary", "a", "div"} <= set(kinds)
        first = page.evaluate("document.querySelector('[data-order=\"1\"]').getAttribute('href')")
        assert first.startswith("#")
        assert page.locator(first).count() == 1  # the way past the header leads somewhere


def assert_accessible(page: Page) -> None:
    results = Axe().run(page, options={"resultTypes": ["violations"]}).response
    assert len(results["passes"]) > 10
    found = [
        (v["id"], v["impact"], [node["target"] for node in v["nodes"]][:5])
        for v in results["violations"]
        if v["impact"] in ("serious", "critical")
    ]
    assert found == []


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_axe_finds_nothing_serious(browser: Browser, sample: Path, width: int, scheme: str) -> None:
    with opened(browser, sample, width=width, scheme=scheme) as seen:
        open_all_details(seen.page)
        assert_accessible(seen.page)
        colours = seen.page.evaluate(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
        )
        background, ink = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours)
        assert (background > ink) == (scheme == "light")


def test_axe_can_find_something(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "bad.html"
    file.write_text("<!doctype html><title>t</title><html lang=en><h1>h</h1><p style='color:#ccc'>pale</p><img src=''>")
    with opened(browser, file) as seen, pytest.raises(AssertionError):
        assert_accessible(seen.page)


@pytest.mark.parametrize(("width", "scheme"), [LOOKS[0], LOOKS[-1]])
def test_axe_finds_nothing_serious_in_the_demo(browser: Browser, demo: Path, width: int, scheme: str) -> None:
    with opened(browser, demo, width=width, scheme=scheme) as seen:
        assert_accessible(seen.page)


@pytest.mark.parametrize("name", ["hostile: long", "hostile: right to left", "hostile: empty"])
def test_axe_finds_nothing_serious_with_strange_names(browser: Browser, tmp_path: Path, name: str) -> None:
    with opened(browser, written(edge_reports()[name], tmp_path), width=PHONE, scheme="dark") as seen:
        assert_accessible(seen.page)


# Looks that can be checked -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLAIN)
def test_extreme_reports_open_fit_and_are_accessible(browser: Browser, tmp_path: Path, name: str) -> None:
    file = written(edge_reports()[name], tmp_path)
    assert file.stat().st_size < 500_000
    # axe looks at half of them light and on a desktop, at the others dark and on a phone.
    width, scheme = LOOKS[0] if PLAIN.index(name) % 2 else LOOKS[-1]
    with opened(browser, file, width=width, scheme=scheme) as seen:
        page = seen.page
        assert_accessible(page)
        assert seen.violations() == []
        for width in (DESKTOP, PHONE):
            page.set_viewport_size({"width": width, "height": HEIGHT[width]})
            for family in (WIDE_FONT, NARROW_FONT):
                use_font(page, family)
                assert overlapping_texts(page) == [], (width, family)
                assert too_wide(page) == [], (width, family)
            open_all_details(page)
            assert too_wide(page) == [], width
        seen.assert_quiet()


def test_both_fonts_are_installed(browser: Browser, sample: Path) -> None:
    with opened(browser, sample) as seen:
        for family in (WIDE_FONT, NARROW_FONT):
            use_font(seen.page, family)
            assert family in fonts_used(seen.page, "h1")


@pytest.mark.parametrize("scripts", [True, False])
def test_it_prints_with_every_table(browser: Browser, sample: Path, scripts: bool) -> None:
    with opened(browser, sample, java_script_enabled=scripts) as seen:
        tables = seen.page.locator("table").count()
        printed = seen.page.pdf(tagged=True, format="A4")
        assert printed.startswith(b"%PDF-")
        assert len(re.findall(rb"/S\s*/Table\b", printed)) == tables >= 6
        assert len(re.findall(rb"/S\s*/Figure\b", printed)) > 0
        if scripts:
            assert seen.page.locator("details:not([open])").count() == 0
        seen.assert_quiet()
    with opened(browser, sample) as seen:  # on paper: dark ink, no controls
        seen.page.emulate_media(media="print", color_scheme="dark")
        assert not seen.page.locator("#readout").is_visible()
        assert seen.page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"


def test_less_motion_and_forced_colours_are_respected(browser: Browser, sample: Path) -> None:
    with opened(browser, sample, forced_colors="active") as seen:
        page = seen.page
        moving = page.evaluate(
            """() => [...document.querySelectorAll("*")].filter(e => {
                const s = getComputedStyle(e);
                return s.scrollBehavior === "smooth" || s.animationName !== "none" || parseFloat(s.transitionDuration) > 0;
            }).map(e => e.localName)"""
        )
        assert page.evaluate("matchMedia('(prefers-reduced-motion: reduce)').matches")
        assert moving == []
        assert page.evaluate("matchMedia('(forced-colors: active)').matches")
        areas = page.evaluate("['.ry', '.rn'].map(name => getComputedStyle(document.querySelector(name)).fill)")
        assert len(set(areas)) == 2
        assert overlapping_texts(page) == []
        assert too_wide(page) == []
        seen.assert_quiet()


def test_the_data_in_the_page_is_the_report(browser: Browser, sample: Path) -> None:
    with opened(browser, sample) as seen:
        text = seen.page.locator("#report-data").evaluate("e => e.textContent")
    assert AuditReport.from_json(text) == sample_report()
    assert json.loads(text) == json.loads(sample_report().to_json())
