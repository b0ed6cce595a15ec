"""Formulas as MathML, which browsers draw themselves: no script, no font, no outside address."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

_log = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext(), "inline", node))
    raise nodes.SkipNode


def block(translator: HTML5Translator, node: nodes.math_block) -> None:
    identity = "".join(f' id="{name}"' for name in node["ids"][:1])
    translator.body.append(f'<div class="formula"{identity}>{mathml(node.astext(), "block", node)}</div>\n')
    raise nodes.SkipNode


def mathml(latex: str, display: str, node: nodes.Node) -> str:
    """The formula as a <math> element; one that cannot be read is a warning, and shown as it was written."""
    try:
        return convert(latex, display=display)
    except Exception as error:  # the converter has a dozen kinds of its own
        _log.warning("formula %r: %s: %s", latex, type(error).__name__, error, location=node)
        return f"<code>{nodes.Text(latex)}</code>"
