"""The interactive page in a real browser: how it is opened and listened to, asked, and read back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

FOLDER = Path(__file__).parents[2] / "docs" / "interactive"

_LISTEN = (
    "window.violated = []; addEventListener('securitypolicyviolation', e => window.violated.push(e.violatedDirective))"
)


@contextmanager
def page_of(
    browser: Browser, hash_: str = "", *, width: int = 1280, scheme: str = "light", **options: Any
) -> Iterator[Page]:
    """The page from its folder; at the end nothing was complained about and nothing asked for but its own files."""
    settings: dict[str, Any] = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme, "offline": True}
    context = browser.new_context(**(settings | options))
    complaints: list[str] = []
    asked_for: list[str] = []
    try:
        context.add_init_script(_LISTEN)
        page = context.new_page()
        context.on("request", lambda request: asked_for.append(request.url.split("#")[0]))
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.goto((FOLDER / "index.html").as_uri() + hash_)
        yield page
        assert complaints == []
        own = {file.as_uri() for file in FOLDER.iterdir()}
        assert {url for url in asked_for if not url.startswith("blob:")} <= own
        if options.get("java_script_enabled", True):
            assert page.evaluate("window.violated") == []
    finally:
        context.close()


def text(page: Page, name: str) -> str:
    return page.locator(f"#{name}").inner_text()


def assert_asked(page: Page, *questions: str) -> str:
    """The address, once it holds these questions and no others; it follows the page a tenth of a second later."""
    page.wait_for_function(
        "wanted => (/asked=([^&]*)/.exec(location.hash) || [0, ''])[1] === wanted", arg="_".join(questions)
    )
    assert text(page, "asked") == str(len(questions))
    return page.evaluate("location.href")


def line_in_address(page: Page) -> dict[str, Any]:
    return page.evaluate("overexplain.session.model(overexplain.session.read(location.hash))")


def place(page: Page, i: float, j: float) -> tuple[float, float]:
    """Where a grid point is in the window."""
    page.locator("#plane").scroll_into_view_if_needed()
    return tuple(
        page.evaluate(
            """([i, j]) => {
                const box = document.querySelector("#drawn .fr").getBoundingClientRect(), step = box.width / 40;
                return [box.left + i * step, box.bottom - j * step];
            }""",
            [i, j],
        )
    )
