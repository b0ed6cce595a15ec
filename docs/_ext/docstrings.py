"""Docstrings as they are written here, turned into reStructuredText for autodoc.

They are plain text with `code` in single backquotes, indented formulas, lists, examples, and tables of terms (`name   what it is`).
Nothing else in them is markup: an asterisk is a dual norm, a bar a length.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_CODE = re.compile(r"(`+)(.+?)\1")
_SPECIAL = re.compile(r"([*`|\\_<>])")
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")
_ALIAS = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
_TERM = re.compile(r"(\S.*?) {2,}(\S.*)")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", process)
    app.connect("autodoc-process-signature", tidy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def process(_app: Sphinx, _what: str, _name: str, _object: object, _options: object, lines: list[str]) -> None:
    lines[:] = restructured(lines)


def tidy(
    _app: Sphinx, _what: str, _name: str, _object: object, _options: object, arguments: str | None, result: str | None
) -> tuple[str | None, str | None]:
    """The signature with the names that types have in the code."""
    return _alias(arguments), _alias(result)


def _alias(signature: str | None) -> str | None:
    return signature and _ALIAS.sub(r"\1", signature)


def restructured(lines: list[str]) -> list[str]:
    """The same text as reStructuredText: examples and formulas literal, code in code, everything else escaped."""
    out: list[str] = []
    for blank, group in groupby(lines, key=lambda line: not line.strip()):
        if blank:
            continue
        paragraph = [line for line in group if line.strip() != "::"]
        if not paragraph:
            continue
        if paragraph[0].lstrip().startswith(">>>"):
            out += [line.strip() for line in paragraph]
        elif paragraph[0].startswith((" ", "\t")) and not _ITEM.match(paragraph[0].lstrip()):
            out += ["::", "", *(f"    {line}" for line in paragraph)]
        elif _TERM.fullmatch(paragraph[0]) and not paragraph[0].startswith((" ", "\t")):
            out += _terms(paragraph)
        else:
            out += _prose(paragraph)
        out.append("")
    return out


def _terms(paragraph: list[str]) -> list[str]:
    """A definition list: a term, blanks, what it is, perhaps over several lines that are indented."""
    items: list[tuple[str, list[str]]] = []
    for line in paragraph:
        found = _TERM.fullmatch(line)
        if found and not line.startswith(" "):
            items.append((found[1], [found[2]]))
        else:
            items[-1][1].append(line.strip())
    return [line for term, text in items for line in (f"``{term.strip('`')}``", f"    {escaped(' '.join(text))}", "")]


def _prose(paragraph: list[str]) -> list[str]:
    """A paragraph, or a list: items begin with a hyphen or a number, and go on in indented lines."""
    items: list[list[str]] = [[]]
    for line in paragraph:
        if _ITEM.match(line.lstrip()):
            items.append([])
        items[-1].append(line.strip())
    lines = [escaped(" ".join(items[0]))] if items[0] else []
    for item in items[1:]:
        marker, _, text = " ".join(item).partition(" ")
        lines += ["", f"{'-' if marker == '*' else marker} {escaped(text)}"]
    return lines


def escaped(text: str) -> str:
    """The text with code kept as code and everything that reStructuredText would read otherwise escaped."""
    parts, end = [], 0
    for found in _CODE.finditer(text):
        parts.append(_SPECIAL.sub(r"\\\1", text[end : found.start()]))
        # A backslash-blank on both sides ends inline markup that touches a letter.
        parts.append(rf"\ ``{found[2].strip()}``\ ")
        end = found.end()
    parts.append(_SPECIAL.sub(r"\\\1", text[end:]))
    return "".join(parts).removesuffix(":") + (":" if text.endswith(":") else "")
