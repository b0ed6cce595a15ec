"""Checks that every link leads somewhere: python docs/check_links.py [BUILT_SITE]

In the repository: README, CONTRIBUTING and all pages of docs/, files and headings, as the repository's pages show them. In the
built site: every page, script, style, font and picture, and that nothing is loaded from another host. Addresses of others are not
asked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parent.parent
WRITTEN_BY_THE_BUILD = ("gallery", "results")
LOADED = {
    "script": "src",
    "img": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "object": "data",
    "video": "src",
}
KEPT_AS_WRITTEN = {"canonical", "search", "index", "next", "prev", "genindex", "author", "copyright"}
"""Kinds of <link> that point at pages and load nothing."""


def main() -> None:
    dead = list(dead_in_repository(ROOT))
    for folder in sys.argv[1:]:
        dead += dead_in_site(Path(folder))
    for line in dead:
        sys.stderr.write(line + "\n")
    sys.exit(1 if dead else 0)


# --- the repository's pages -------------------------------------------------------------------------------------------


def pages(root: Path) -> list[Path]:
    """The Markdown pages that people read in the repository."""
    ours = (
        path
        for path in sorted((root / "docs").rglob("*.md"))
        if path.relative_to(root).parts[1] not in WRITTEN_BY_THE_BUILD
    )
    return [*sorted(root.glob("*.md")), *ours]


def dead_in_repository(root: Path) -> Iterator[str]:
    """A line for every relative link in a Markdown page that leads nowhere."""
    for page in pages(root):
        for link, line in links(page):
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = page if not address.path else (page.parent / unquote(address.path)).resolve()
            where = f"{page.relative_to(root)}, line {line}: {link}"
            if address.path and _made_by_the_build(target, root):
                continue
            if not target.exists():
                yield f"{where}: there is no such file"
            elif address.fragment and target.suffix == ".md" and unquote(address.fragment) not in headings(target):
                yield f"{where}: there is no such heading"


def _made_by_the_build(target: Path, root: Path) -> bool:
    return target.is_relative_to(root / "docs") and target.relative_to(root / "docs").parts[0] in WRITTEN_BY_THE_BUILD


def links(page: Path) -> Iterator[tuple[str, int]]:
    """The addresses of a page's links and pictures, each with its line; code is left out, raw HTML is not."""
    for token, line in _inline(page):
        if token.type == "link_open":
            yield str(token.attrGet("href")), line
        elif token.type == "image":
            yield str(token.attrGet("src")), line
        elif token.type in ("html_inline", "html_block"):
            for found in re.findall(r'(?:href|src)="([^"]+)"', token.content):
                yield found, line


def _inline(page: Path) -> Iterator[tuple[Token, int]]:
    line = 1
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8")):
        line = token.map[0] + 1 if token.map else line
        yield token, line
        for child in token.children or ():
            yield child, line


@cache
def headings(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    tokens = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    texts = [tokens[i + 1] for i, token in enumerate(tokens) if token.type == "heading_open"]
    found: dict[str, int] = {}
    anchors = set()
    for text in texts:
        words = "".join(child.content for child in text.children or () if child.type in ("text", "code_inline"))
        anchor = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
        found[anchor] = found.get(anchor, -1) + 1
        anchors.add(anchor if not found[anchor] else f"{anchor}-{found[anchor]}")
    return anchors


# --- the built site ---------------------------------------------------------------------------------------------------


@dataclass
class Page(HTMLParser):
    """What a built page links to, what it loads, and the anchors it has."""

    text: str
    linked: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors |= {str(given[name]) for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.linked.append(str(given["href"]))
        elif tag in LOADED and given.get(LOADED[tag]) and given.get("rel") not in KEPT_AS_WRITTEN:
            self.loaded.append(str(given[LOADED[tag]]))


def dead_in_site(site: Path) -> list[str]:
    """A line for every link of the built site that leads nowhere, and for everything loaded from elsewhere."""
    site = site.resolve()
    read = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    dead = [] if read else [f"{site}: no pages"]
    for path, page in read.items():
        name = path.relative_to(site)
        dead += [f"{name}: loads {address} from another host" for address in page.loaded if _is_elsewhere(address)]
        for link in [*page.linked, *page.loaded]:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = path if not address.path else (path.parent / unquote(address.path)).resolve()
            target = target / "index.html" if target.is_dir() else target
            if not target.is_relative_to(site) or not target.exists():
                dead.append(f"{name}: {link}: there is no such file in the site")
            elif address.fragment and target in read and unquote(address.fragment) not in read[target].anchors:
                dead.append(f"{name}: {link}: there is no such anchor")
    for sheet in sorted(site.rglob("*.css")):
        for address in re.findall(r"""(?:url\(\s*|@import\s+)["']?([^"')\s]+)""", sheet.read_text(encoding="utf-8")):
            if _is_elsewhere(address):
                dead.append(f"{sheet.relative_to(site)}: loads {address} from another host")
    return dead


def _is_elsewhere(address: str) -> bool:
    return bool(urlsplit(address).netloc) or urlsplit(address).scheme in ("http", "https", "ftp")


if __name__ == "__main__":
    main()
