"""Pages read back for tests: strict about nesting, with the tables and the drawings as data. Each page is made once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser

from audit_sample import edge_reports, sample_report
from overexplain.report.html.page import render_html

VOID = frozenset({"meta", "input", "br", "hr"})
REPORTS = {"sample": sample_report(), **edge_reports()}


@dataclass
class Node:
    """An element with its attributes and what is in it."""

    tag: str
    attributes: dict[str, str | None]
    children: list[Node | str] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        """The element and all inside it, in the order of the page."""
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child.walk()

    def all(self, tag: str, **attributes: str) -> list[Node]:
        """The elements of a tag inside it with these attributes; `class_` asks for one of the classes."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [node for node in self.walk() if node is not self and node.tag == tag and node.has(wanted)]

    def one(self, tag: str, **attributes: str) -> Node:
        (node,) = self.all(tag, **attributes)
        return node

    def has(self, wanted: dict[str, str]) -> bool:
        own = {name: value or "" for name, value in self.attributes.items()}
        return all(
            value in own.get(k, "").split() if k == "class" else own.get(k) == value for k, value in wanted.items()
        )

    def get(self, name: str) -> str:
        value = self.attributes[name]
        assert value is not None
        return value

    @property
    def classes(self) -> set[str]:
        return set((self.attributes.get("class") or "").split())

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Node("", {})]

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert len(dict(attributes)) == len(attributes), f"an attribute of <{tag}> twice"
        node = Node(tag, dict(attributes))
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert any(node.tag == "svg" for node in self.open) or tag == "svg", f"<{tag}/> outside of a drawing"
        self.open[-1].children.append(Node(tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read(page: str) -> Node:
    """The root of a page; fails if an element is not closed where it has to be."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert len(reader.open) == 1, f"<{reader.open[-1].tag}> is not closed"
    return reader.open[0]


def rows_of(table: Node) -> list[tuple[str, list[Node]]]:
    """The rows of a table's body: their names and cells."""
    rows = table.one("tbody").all("tr")
    return [(row.one("th").text, row.all("td")) for row in rows]


@cache
def page(name: str) -> str:
    """The page of one of the REPORTS."""
    return render_html(REPORTS[name])


@cache
def tree(name: str) -> Node:
    """The same, read back."""
    return read(page(name))
