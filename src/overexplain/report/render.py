"""A report in the form that a file's name asks for; JSON is the source, everything else is drawn from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from overexplain.auditing.audit_report import AuditReport
from overexplain.errors import InvalidInput

KINDS: Final = {
    ".html": "one self-contained page",
    ".md": "Markdown",
    ".json": "the data itself",
    ".xml": "JUnit, for build servers",
}


def refuse_unknown_kind(path: Path, kinds: Mapping[str, str] = KINDS) -> None:
    """Raise if a report cannot be written in the form that this name asks for."""
    if path.suffix.lower() not in kinds:
        known = ", ".join(f"{ending} ({what})" for ending, what in kinds.items())
        raise InvalidInput(f"{path}: this report's name ends in {known}")


def render(report: AuditReport, path: Path) -> str:
    """The text of the report in the form that the name of `path` asks for."""
    refuse_unknown_kind(path)
    match path.suffix.lower():
        case ".html":
            from overexplain.report.html.page import render_html

            return render_html(report)
        case ".md":
            from overexplain.report.audit_markdown import render_markdown

            return render_markdown(report)
        case ".xml":
            from overexplain.report.junit import render_junit

            return render_junit(report)
        case _:
            return report.to_json() + "\n"
