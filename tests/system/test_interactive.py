"""The interactive page in a real browser: its verdicts are the library's, at every point, and everybody can reach all of it."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

import overexplain as ox
from interactive.opened import assert_asked, line_in_address, page_of, place, text
from system.browser import overlapping_texts, too_wide

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"
STEP = 2018835 / 2**21
SIZE = 41
GRID = np.array([[i * STEP, j * STEP] for j in range(SIZE) for i in range(SIZE)])
LOOKS = [(1280, "light"), (1280, "dark"), (390, "light"), (320, "dark")]


@pytest.fixture(scope="module")
def quiet(browser: Browser) -> Iterator[Page]:
    """One page for all that is only computed."""
    with page_of(browser) as page:
        yield page


def loaded(text: str, folder: Path) -> ox.QueryLog:
    file = folder / "log.jsonl"
    file.write_text(text, encoding="utf-8")
    return ox.QueryLog.load(file)


# The verdicts --------------------------------------------------------------------------------------------------------

KINDS = [
    ("label",),
    ("label", "label", "l1"),
    ("label", "linf"),
    ("l1", "linf"),
    ("label", "l1", "linf", "l2"),
    ("label", "label", "label", "l2"),
]


def random_session(rng: random.Random, number: int, model: dict[str, Any]) -> dict[str, Any]:
    """Questions of one of the kinds; some on the line itself, some asked before."""
    (p, q), b = model["a"], model["b"]
    on_line = [(i, j) for i in range(SIZE) for j in range(SIZE) if p * i + q * j == b]
    questions: list[dict[str, Any]] = []
    for _ in range(rng.choice((1, 2, 3, 5, 9, 14))):
        at = (rng.randrange(SIZE), rng.randrange(SIZE))
        if on_line and rng.random() < 0.2:
            at = rng.choice(on_line)
        elif questions and rng.random() < 0.15:
            at = rng.choice(questions)["at"]
        questions.append({"ask": rng.choice(KINDS[number % len(KINDS)]), "at": list(at)})
    return {"seed": number, "line": None, "questions": questions}


def test_every_verdict_on_the_grid_is_the_librarys(quiet: Page, tmp_path: Path) -> None:
    """Thirty-six random sessions: labels and counterfactuals mixed, on the line, asked twice, until known or not."""
    rng = random.Random(8)
    models = quiet.evaluate("[...Array(36).keys()].map(seed => overexplain.service.drawn(seed))")
    sessions = [random_session(rng, number, model) for number, model in enumerate(models)]
    played = quiet.evaluate("sessions => sessions.map(overexplain.play)", sessions)
    seen: Counter[int] = Counter()
    known = on_line = 0
    for session, one in zip(sessions, played, strict=True):
        log = loaded(one["log"], tmp_path)
        assert len(log) == len(session["questions"])
        knowledge = ox.Knowledge(log)
        ours, theirs = np.array(one["verdicts"]).ravel(), knowledge.certify(GRID).codes
        assert np.flatnonzero(ours != theirs).tolist() == [], session
        assert knowledge.pinned_down == one["known"], session
        names = [ox.Verdict(int(code)).name for code in ours]
        assert [*chain(*json.loads(one["file"])["verdicts"])] == names
        seen.update(ours.tolist())
        known += one["known"]
        on_line += sum(np.array_equal(log.points[k], log.explanations[k]) for k in log.explained)
    assert set(seen) == {ox.Verdict.YES, ox.Verdict.NO, ox.Verdict.UNKNOWN, ox.Verdict.BOUNDARY}
    assert min(seen.values()) > 100
    assert 8 < known < 32
    assert on_line > 3


def test_every_answer_is_exact_and_the_oracles(quiet: Page) -> None:
    """All directions, three distances: on the line and as near as possible in rationals, and what ModelOracle says."""
    answers = quiet.evaluate(
        """() => {
            const {service} = overexplain, next = [[0, 0], [40, 3], [17, 29], [20, 20]];
            return service.DIRECTIONS.flatMap((a, turn) => {
                const model = service.line(turn, a[0] * 13 + a[1] * 22);
                return next.flatMap(at => service.NORMS.map(norm => {
                    const [u, v, d] = service.nearest(model, norm, at);
                    return [a, model.b, norm, at, service.label(model, at), [service.value(u, d), service.value(v, d)]];
                }));
            });
        }"""
    )
    assert len(answers) == 136 * 4 * 3
    step = Fraction(STEP)
    for a, b, norm, at, label, image in answers:
        exact, point = [Fraction(v) for v in image], [i * step for i in at]
        gap = b * step - sum(c * x for c, x in zip(a, point, strict=True))
        assert sum(c * x for c, x in zip(a, exact, strict=True)) == b * step
        change = [abs(x - y) for x, y in zip(exact, point, strict=True)]
        if norm == "l1":
            assert sum(change) * max(map(abs, a)) == abs(gap)
        elif norm == "linf":
            assert max(change) * sum(map(abs, a)) == abs(gap)
        else:
            assert sum(c * c for c in change) * sum(c * c for c in a) == gap * gap
        if at != [17, 29]:
            continue
        oracle = ox.ModelOracle(ox.Hyperplane(a, b * STEP), norm)
        assert oracle.classify(np.array(at) * STEP) == label
        assert oracle.explain(np.array(at) * STEP) == pytest.approx(image, abs=1e-9)


def test_the_story_tells_the_truth(browser: Browser, tmp_path: Path) -> None:
    with page_of(browser) as page:
        seen = []
        for number in range(5):
            page.locator("#steps button").nth(number).click()
            assert page.locator("#steps [aria-current=step]").inner_text().startswith(str(number + 1))
            seen.append((int(text(page, "asked")), text(page, "share"), text(page, "known")))
            session = page.evaluate(
                "k => ({seed: 8, line: null, questions: overexplain.words.STORY[k].questions})", number
            )
            assert_asked(page, *(".".join(map(str, (q["ask"], *q["at"]))) for q in session["questions"]))
            one = page.evaluate("overexplain.play", session)
            ours = ox.Knowledge(loaded(one["log"], tmp_path)).certify(GRID[::3]).codes
            assert np.array_equal(np.array(one["verdicts"]).ravel()[::3], ours)
        counts, shares, models = zip(*seen, strict=True)
        assert counts == (1, 12, 1, 2, 1)
        assert models == ("open", "open", "open", "known", "known")
        percents = [int(share.replace("%", "").strip()) for share in shares]
        assert percents[0] == 0
        assert 0 < percents[2] < 100
        assert percents[3:] == [100, 100]
        page.locator("#next").click()
        assert text(page, "told-title") == "One decision determines one point"


# Asking --------------------------------------------------------------------------------------------------------------


def test_clicks_ask_and_files_hold_what_was_answered(browser: Browser, tmp_path: Path) -> None:
    with page_of(browser, "#seed=8", accept_downloads=True) as page:
        page.mouse.click(*place(page, 12, 30))
        assert_asked(page, "label.12.30")
        assert text(page, "learned").startswith("(11.55, 28.88) is a No.")
        page.locator("label[for=ask-cf]").click()
        page.locator("label[for=norm-linf]").click()
        page.mouse.click(*place(page, 23.3, 13.6))
        assert_asked(page, "label.12.30", "linf.23.14")
        assert (text(page, "asked"), text(page, "known")) == ("2", "open")
        page.mouse.move(*place(page, 38, 39))
        assert text(page, "here").endswith("certain Yes")
        assert page.locator("#rows tr").count() == 2
        files = {}
        for button in ("save-log", "save-verdicts"):
            with page.expect_download() as download:
                page.locator(f"#{button}").click()
            files[button] = tmp_path / download.value.suggested_filename
            download.value.save_as(files[button])
        log, grid = ox.QueryLog.load(files["save-log"]), json.loads(files["save-verdicts"].read_text(encoding="utf-8"))
        assert log.labels.tolist() == [-1, -1]
        assert log.explained.tolist() == [1]
        assert log.features == ("first", "second")
        X = [[x, y] for y in grid["second"] for x in grid["first"]]
        codes = ox.Knowledge(log).certify(X).codes
        assert [ox.Verdict(int(code)).name for code in codes] == [*chain(*grid["verdicts"])]
        page.locator("label[for=norm-l2]").click()
        page.mouse.click(*place(page, 5, 5))
        assert (text(page, "known"), text(page, "share").split()[0]) == ("known", "100%")
        assert text(page, "known-line") == "Yes where 3·x₁ + 7·x₂ ≥ 243.55"
        shared = assert_asked(page, "label.12.30", "linf.23.14", "l2.5.5")
        page.locator("#undo").click()
        assert_asked(page, "label.12.30", "linf.23.14")
        page.locator("#reset").click()
        assert_asked(page)
        assert page.locator("#undo").is_disabled()
        page.goto(shared)
        assert (text(page, "asked"), text(page, "known")) == ("3", "known")
        page.reload()
        assert text(page, "known") == "known"


def test_the_keyboard_does_all_of_it(browser: Browser) -> None:
    with page_of(browser, "#seed=8") as page:
        page.locator("#plane").focus()
        for key in ("ArrowLeft", "Shift+ArrowUp", "ArrowDown", "Enter"):
            page.keyboard.press(key)
        assert_asked(page, "label.19.24")
        assert text(page, "here") == "(18.29, 23.1): certain No"
        for _ in range(12):
            page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("Enter")
        assert_asked(page, "label.19.24", "label.40.24")
        assert "is a Yes" in text(page, "learned")
        page.keyboard.press("Delete")
        assert_asked(page, "label.19.24")
        page.locator("#ask-label").focus()
        page.keyboard.press("ArrowRight")
        page.locator("#norm-l1").focus()
        page.keyboard.press("ArrowRight")
        page.locator("#plane").focus()
        page.keyboard.press("Enter")
        assert_asked(page, "label.19.24", "l2.40.24")
        page.locator("#show").focus()
        page.keyboard.press("Space")
        page.locator("#shift").focus()
        page.keyboard.press("ArrowLeft")
        page.locator("#turn").focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_function("() => location.hash.includes('line=')")
        assert_asked(page, "label.19.24", "l2.40.24")
        assert text(page, "learned") == "The line was moved, and every question asked anew."


def test_a_finger_asks(browser: Browser) -> None:
    with page_of(browser, "#seed=8", width=320, has_touch=True, is_mobile=True) as page:
        page.touchscreen.tap(*place(page, 12, 30))
        assert_asked(page, "label.12.30")
        assert page.evaluate("window.innerWidth") == 320


def test_the_line_is_dragged_and_turned(browser: Browser) -> None:
    with page_of(browser, "#seed=8&asked=l1.9.24_l1.30.8") as page:
        page.locator("label[for=show]").click()
        before = line_in_address(page)
        assert (before["a"], before["b"]) == ([3, 7], 253)
        start, stop = place(page, 20, 193 / 7), place(page, 20, 15)
        page.mouse.move(*start)
        page.mouse.down()
        page.mouse.move(*stop, steps=5)
        page.mouse.up()
        assert_asked(page, "l1.9.24", "l1.30.8")  # the drag was no question
        page.wait_for_function("() => location.hash.includes('.165&')")
        moved = line_in_address(page)
        assert (moved["a"], moved["b"]) == ([3, 7], 165)
        assert text(page, "known-line") == f"Yes where 3·x₁ + 7·x₂ ≥ {round(165 * STEP, 2)}"
        box = page.locator(".grip.turn").bounding_box()
        assert box
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(*place(page, 20, 40), steps=5)
        page.mouse.up()
        page.wait_for_function(
            """() => {
                const {a} = overexplain.session.model(overexplain.session.read(location.hash));
                return Math.abs(a[0]) > 5 * Math.abs(a[1]);
            }"""
        )
        assert text(page, "known") == "known"


def test_an_address_that_is_no_session_is_said_to_be_none(browser: Browser) -> None:
    with page_of(browser) as page:
        refused = [
            "seed=-1", "seed=4294967296", "seed=1&seed=2", "seed=1&other=2", "asked=label.1.1", "seed=1&asked=label.41.0",
            "seed=1&asked=l3.1.1", "seed=1&line=136.0", "seed=1&line=0.999", "seed=<script>", "seed=1&asked=",
            "seed=1&asked=" + "_".join(["label.1.1"] * 201), "seed=1&__proto__=2",
        ]  # fmt: skip
        found = page.evaluate("texts => texts.map(text => overexplain.session.read('#' + text))", refused)
        assert found == [None] * len(refused)
        page.goto(page.url.split("#")[0] + "#seed=x")
        page.wait_for_function("() => document.getElementById('learned').textContent.includes('no session')")
        page.locator("#redraw").click()
        page.mouse.click(*place(page, 3, 3))
        assert_asked(page, "label.3.3")
        page.evaluate("location.hash = 'plane'")  # where the link at the top leads
        page.wait_for_timeout(100)
        assert text(page, "asked") == "1"


def test_sessions_survive_their_address(quiet: Page) -> None:
    rng = random.Random(3)
    sessions = [random_session(rng, number, {"a": [1, 2], "b": 40}) for number in range(20)]
    again = quiet.evaluate(
        "all => all.map(one => overexplain.session.read(overexplain.session.written(one)))", sessions
    )
    assert again == sessions


# Reaching it ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_it_fits_and_axe_finds_nothing(browser: Browser, width: int, scheme: str) -> None:
    session = "#seed=8&asked=l1.9.24_label.31.35_label.38.4"
    with page_of(browser, session, width=width, scheme=scheme, bypass_csp=True) as page:  # to try fonts on it
        page.locator("label[for=show]").click()
        page.locator("label[for=ask-cf]").click()
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"interactive-{width}-{scheme}.png", full_page=True)
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        results = Axe().run(page, options={"preload": False}).response
        assert len(results["passes"]) > 10
        assert [(v["id"], [node["target"] for node in v["nodes"]]) for v in results["violations"]] == []
        for family in ("DejaVu Sans", "Liberation Sans"):
            page.add_style_tag(content=f'*, svg text {{font-family: "{family}" !important}}')
            assert too_wide(page) == [], family
            assert overlapping_texts(page) == [], family


def test_the_tab_key_reaches_everything(browser: Browser) -> None:
    with page_of(browser, "#seed=8&asked=l1.9.24") as page:
        page.locator("label[for=show]").click()
        page.locator("label[for=ask-cf]").click()
        page.locator(".skip").focus()
        reached = []
        for _ in range(40):
            page.keyboard.press("Tab")
            name = page.evaluate("document.activeElement.id || document.activeElement.localName")
            if name == "body":
                break
            reached.append(name)
            marked = page.evaluate(
                """[document.activeElement, ...(document.activeElement.labels || [])]
                    .some(e => getComputedStyle(e).outlineStyle !== "none")"""
            )
            assert marked, name
        wanted = ["next", "ask-cf", "norm-l1", "plane", "undo", "reset", "redraw", "show", "turn", "shift", "seed"]
        wanted += ["save-log", "save-verdicts"]
        assert [name for name in reached if name in wanted] == wanted


def test_without_scripts_it_says_so(browser: Browser) -> None:
    with page_of(browser, java_script_enabled=False) as page:
        assert "scripts are off" in page.locator("noscript").inner_text()


def test_a_question_is_in_the_address_at_once(browser: Browser) -> None:
    with page_of(browser) as page:
        page.locator("#redraw").click()
        page.wait_for_timeout(300)
        page.mouse.click(*place(page, 3, 3))
        page.reload()
        assert_asked(page, "label.3.3")
        assert (text(page, "asked"), text(page, "asked-label")) == ("1", "answer so far")
