"""The directive `public-names`: everything that `overexplain` exports from one of its folders, documented from the code.

A name that is added to `overexplain.__all__` appears by itself. One whose folder has no page is a warning, and so breaks the build.
"""

from __future__ import annotations

import enum
import inspect
from typing import Any, ClassVar

from docstrings import escaped
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import overexplain
from overexplain.baselines.attacks import ATTACKS

_log = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("public-names", PublicNames)
    app.add_directive("all-public-names", AllPublicNames)
    app.add_directive("attacks", Attacks)
    app.connect("missing-reference", resolve)
    app.connect("env-check-consistency", complete)
    return {"parallel_read_safe": False, "parallel_write_safe": True}


def names_of(folder: str) -> list[str]:
    """The public names that are defined in the folder (or module) of the package, sorted without regard to case."""
    home = overexplain._HOME
    return sorted((name for name in overexplain.__all__ if home[name].split(".")[0] == folder), key=str.lower)


def folders() -> list[str]:
    """The folders that public names come from."""
    return sorted({overexplain._HOME[name].split(".")[0] for name in overexplain.__all__})


class PublicNames(SphinxDirective):
    """`.. public-names:: oracles`: the folder's public names, in full."""

    required_arguments = 1
    seen: ClassVar[set[str]] = set()

    def run(self) -> list[nodes.Node]:
        folder = self.arguments[0]
        self.seen.add(folder)
        return _parsed(self, [line for name in names_of(folder) for line in documented(name)])


class AllPublicNames(SphinxDirective):
    """`.. all-public-names::`: a table of all public names, with the first sentence of each."""

    def run(self) -> list[nodes.Node]:
        lines = [".. list-table::", "   :widths: 25 75", "   :class: names", ""]
        for name in sorted(overexplain.__all__, key=str.lower):
            lines += [f"   * - :py:obj:`~overexplain.{name}`", f"     - {escaped(first_sentence(name))}"]
        return _parsed(self, lines)


class Attacks(SphinxDirective):
    """`.. attacks::`: the published attacks, each with its paper, what it needs, and its function."""

    def run(self) -> list[nodes.Node]:
        lines = []
        for attack in ATTACKS.values():
            lines += [f"**{attack.name}**: {escaped(attack.paper)}. Needs {', '.join(attack.needs)}.", ""]
            lines += [f".. autofunction:: {attack.run.__module__}.{attack.run.__qualname__}", ""]
        return _parsed(self, lines)


def documented(name: str) -> list[str]:
    """The reStructuredText that documents a public name."""
    value = getattr(overexplain, name)
    full = f"overexplain.{name}"
    if inspect.isclass(value) and issubclass(value, enum.Enum):
        return [f".. autoclass:: {full}", "   :members:", "   :undoc-members:", ""]
    if inspect.isclass(value) and issubclass(value, BaseException):
        return [f".. autoexception:: {full}", ""]
    if inspect.isclass(value):
        return [f".. autoclass:: {full}", "   :members:", ""]
    if callable(value) and not isinstance(value, overexplain.Norm):
        return [f".. autofunction:: {full}", ""]
    return [f".. py:data:: {full}", "", f"   {escaped(first_sentence(name))}", ""]


def first_sentence(name: str) -> str:
    """What a public name is, in one line."""
    value = getattr(overexplain, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        text = inspect.cleandoc(value.__doc__ or "").split("\n\n")[0].replace("\n", " ")
        return text.split(". ")[0]
    if isinstance(value, overexplain.Norm):
        return f"The norm `{value}`, as it is written in files and on the command line."
    if isinstance(value, dict | tuple | frozenset):
        return f"The names {', '.join(f'`{key}`' for key in value)}."
    return f"The number `{value!r}`." if isinstance(value, int) else f"`{value!r}`"


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, contnode: nodes.Node) -> nodes.Node | None:
    """A link to the public name, wherever in the package a type says it comes from; other types stay plain text."""
    if node.get("refdomain") != "py":
        return None
    name = node.get("reftarget", "").rsplit(".", 1)[-1]
    if name in overexplain.__all__:
        python = env.domains.python_domain
        docname = node.get("refdoc", env.current_document.docname)
        return python.resolve_xref(env, docname, app.builder, "obj", f"overexplain.{name}", node, contnode)
    return contnode


def complete(_app: Sphinx, env: BuildEnvironment) -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(env.srcdir.glob("reference/*.md")))
    for folder in folders():
        if f"public-names:: {folder}\n" not in text:
            _log.warning("overexplain exports names of %s/, which no page in docs/reference/ documents", folder)


def _parsed(directive: SphinxDirective, lines: list[str]) -> list[nodes.Node]:
    box = nodes.container()
    directive.state.nested_parse(StringList(lines, directive.env.docname), directive.content_offset, box)
    return list(box.children)
