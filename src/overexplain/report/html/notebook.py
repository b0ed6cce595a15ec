"""The report inside a notebook: in a frame of its own, so that neither can change how the other looks."""

from __future__ import annotations

from html import escape

from overexplain.auditing.audit_report import AuditReport
from overexplain.report.html.page import render_html

HEIGHT = 720


def as_notebook_html(report: AuditReport, height: int = HEIGHT) -> str:
    """The page in a frame that may run its own script and nothing else: no address, no form, no access to the notebook."""
    page = escape(render_html(report))
    return (
        f'<iframe title="overexplain audit report" sandbox="allow-scripts" srcdoc="{page}" width="100%" height="{height}" '
        'frameborder="0"></iframe>'
    )
