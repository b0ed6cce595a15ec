"""Code in README and docs runs, and prints the verdicts that stand in the comments beside it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SHOWN = re.compile(r"#.*?(Verdicts\([^)]*\))")


@pytest.mark.parametrize("page", ["README.md", "docs/robust.md"])
def test_verdicts_in_comments_are_those_printed(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    compared, names = 0, {}
    for block in (block for block in blocks if SHOWN.search(block)):
        printed, names = run(block, names)
        assert re.findall(r"Verdicts\([^)]*\)", printed) == SHOWN.findall(block)
        compared += 1
    assert compared


def run(block: str, names: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What a block of code prints; names carry over to the next."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(block, names)
    return out.getvalue(), names


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        *(f"docs/{name}.md" for name in ("services", "models", "audit", "monitor", "serve", "endpoints", "logs")),
    ],
)
def test_code_runs_and_prints_what_the_comment_below_it_says(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comment in the last line of a block is what the block prints."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    for block in (block for block in blocks if not SHOWN.search(block)):
        printed, _ = run(block, {})
        last = block.rstrip().rsplit("\n", 1)[-1]
        if last.startswith("# "):
            assert printed.strip() == last.removeprefix("# ")


def test_every_degradation_and_imitation_is_in_the_docs() -> None:
    import overexplain as ox
    from overexplain.oracles.degradations import DEGRADATIONS

    page = (ROOT / "docs/services.md").read_text(encoding="utf-8")
    for form in [known.form for known in DEGRADATIONS.values()] + list(ox.IMITATIONS):
        assert f"`{form}`" in page
