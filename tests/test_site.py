"""The documentation site, without building it: pages that nobody finds, dead links, and what is quoted from elsewhere."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import overexplain as ox
from docs_scripts import docs_module
from pages import blocks

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
RESULTS = ROOT / "benchmarks" / "results"


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


links = load(DOCS / "check_links.py")
PAGES = [page for page in links.pages(ROOT) if page.is_relative_to(DOCS)]


def toctree(page: Path) -> list[str]:
    """The entries of a page's tables of contents, as paths below docs/ without an ending."""
    entries = []
    for block in blocks(page):
        if block.language == "{toctree}":
            lines = [line.strip() for line in block.text.splitlines()]
            entries += [line for line in lines if line and not line.startswith((":", "#"))]
    base = page.parent.relative_to(DOCS)
    named = (re.sub(r".*<(.*)>$", r"\1", entry) for entry in entries)
    return [str(base / entry).removeprefix("./").removesuffix(".md") for entry in named]


def test_every_page_is_found_from_the_first_one() -> None:
    seen, left = set(), ["index"]
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            page = DOCS / f"{name}.md"
            left += toctree(page) if page.exists() else []
    assert {str(page.relative_to(DOCS).with_suffix("")) for page in PAGES} <= seen
    assert {"gallery/index", "results/index"} <= seen  # which the build writes


def test_links_in_the_repository_lead_somewhere() -> None:
    assert list(links.dead_in_repository(ROOT)) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a](other.md)", None),
        ("[a](other.md#the-heading)", None),
        ("`[a](nothing.md)`", None),
        ("[a](https://example.org/nothing)", None),
        ("[a](nothing.md)", "no such file"),
        ("[a](other.md#another)", "no such heading"),
        ("[a](#nowhere)", "no such heading"),
        ("![a](nothing.svg)", "no such file"),
        ('<a href="nothing.html">a</a>', "no such file"),
        ("| a |\n|---|\n| [a](nothing.md) |", "no such file"),
    ],
)
def test_a_dead_link_in_a_page_is_found(text: str, said: str | None, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(text, encoding="utf-8")
    (tmp_path / "docs" / "other.md").write_text("# One\n\n## The `heading`\n", encoding="utf-8")
    found = list(links.dead_in_repository(tmp_path))
    assert [said in line for line in found] == ([True] if said else [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<a href="other.html#here">a</a><a href="https://example.org">b</a>', None),
        ('<a href="other.html#there">a</a>', "no such anchor"),
        ('<a href="nothing.html">a</a>', "no such file"),
        ('<a href="../outside.html">a</a>', "no such file"),
        ('<script src="https://cdn.example.org/x.js"></script>', "another host"),
        ('<img src="//cdn.example.org/x.png">', "another host"),
        ('<link rel="stylesheet" href="http://fonts.example.org/x.css">', "another host"),
    ],
)
def test_a_dead_link_in_the_site_and_what_is_loaded_from_elsewhere_are_found(
    text: str, said: str | None, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (tmp_path / "outside.html").write_text("", encoding="utf-8")
    (site / "page.html").write_text(text, encoding="utf-8")
    (site / "other.html").write_text('<p id="here">', encoding="utf-8")
    found = links.dead_in_site(site)
    assert [said in line for line in found] == ([True] if said else [])


def test_a_style_that_loads_a_font_from_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("", encoding="utf-8")
    (tmp_path / "style.css").write_text('@font-face {src: url("https://fonts.example.org/a.woff2")}', encoding="utf-8")
    assert "another host" in links.dead_in_site(tmp_path)[0]
    assert links.dead_in_site(tmp_path / "nothing") != []


def test_every_public_name_has_its_place_in_the_reference() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    shown = re.findall(r"public-names:: (\w+)", text)
    assert {ox._HOME[name].split(".")[0] for name in ox.__all__} <= set(shown)
    assert len(shown) == len(set(shown))


def test_every_exit_code_is_in_the_reference() -> None:
    from overexplain.cli import main

    page = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    codes = {0, main.GATE_FAILED, main.USAGE, main.FAILED, main.INTERRUPTED, main.UNREAD}
    codes |= {code for _, code in main._CODES}
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", page, flags=re.MULTILINE)} == codes


def test_docstrings_become_text_that_means_what_it_says() -> None:
    sys.path.insert(0, str(DOCS / "_ext"))
    try:
        docstrings = load(DOCS / "_ext" / "docstrings.py")
    finally:
        sys.path.remove(str(DOCS / "_ext"))
    lines = [
        "The dual ‖a‖*_N2 of `a`.",
        "",
        "    a·x ≥ b",
        "",
        "name   what it is",
        "       and more",
        "",
        ">>> 1 + 1",
        "2",
    ]
    assert docstrings.restructured(lines) == [
        r"The dual ‖a‖\*\_N2 of \ ``a``\ .", "",
        "::", "", "        a·x ≥ b", "",
        "``name``", "    what it is and more", "", "",
        ">>> 1 + 1", "2", "",
    ]  # fmt: skip


def test_figures_that_are_quoted_are_those_that_were_measured() -> None:
    page = (DOCS / "choosing.md").read_text(encoding="utf-8")
    demo = (RESULTS / "demo.txt").read_text(encoding="utf-8")
    table = next(block.text for block in blocks(DOCS / "choosing.md") if block.language == "text")
    assert table in demo
    rows = re.findall(r"^\| (.+?) \| (\d+ \+ \d+) \|$", page, flags=re.MULTILINE)
    measured = {
        cells[1].strip(): cells[4].strip()
        for cells in (line.split("|") for line in (RESULTS / "imperfect.md").read_text(encoding="utf-8").splitlines())
        if len(cells) > 5
    }
    assert len(rows) == 11
    assert dict(rows) == {name: measured[name] for name, _ in rows}


def test_the_names_in_the_glossary_are_names_in_the_code() -> None:
    table = (DOCS / "glossary.md").read_text(encoding="utf-8").split("## The paper's symbols")[1]
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    words = set(re.findall(r"\w+", source))
    names = [name for row in table.splitlines() if row.startswith("| ") for name in re.findall(r"`([^`]+)`", row)]
    assert len(names) > 15
    assert {word for name in names for word in re.findall(r"[A-Za-z_]\w+", name)} <= words | {"log", "x"}


@pytest.mark.parametrize("name", ["asking", "grow", "labels", "proof"])
def test_a_picture_of_the_tutorial_is_what_the_library_draws(name: str) -> None:
    """Those that take a moment; `make figures` draws all of them again."""
    drawn = docs_module("tutorial").PICTURES[f"tutorial-{name}"]()
    assert (DOCS / "figures" / f"tutorial-{name}.svg").read_text(encoding="utf-8") == drawn
