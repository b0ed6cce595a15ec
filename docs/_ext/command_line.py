"""The directive `command-line`: what `overexplain COMMAND --help` says, of every command, taken from the program itself."""

from __future__ import annotations

from typing import Any

import typer
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

WIDTH = 88


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("command-line", CommandLine)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class CommandLine(SphinxDirective):
    """`{command-line}`: a section a command, in the order of `overexplain --help`."""

    def run(self) -> list[nodes.Node]:
        sections = []
        for path, text in helps():
            section = nodes.section(ids=[nodes.make_id(path)])
            section += nodes.title(path, path)
            section += nodes.literal_block(text, text, language="text")
            sections.append(section)
        return sections


def helps() -> list[tuple[str, str]]:
    """Every command's full name and help."""
    from overexplain.cli.app import app as program

    return _of(typer.main.get_command(program), "overexplain")


def _of(command: Any, path: str) -> list[tuple[str, str]]:
    size: dict[str, Any] = {"max_content_width": WIDTH, "terminal_width": WIDTH, "help_option_names": ["-h", "--help"]}
    context = command.make_context(path, [], resilient_parsing=True, **size)
    found = [(path, command.get_help(context).rstrip())]
    for name, child in getattr(command, "commands", {}).items():
        found += _of(child, f"{path} {name}")
    return found
