"""Notebooks ask an object how it looks: what `audit` returns is taught it here, so that auditing knows nothing of rendering."""

from __future__ import annotations

from overexplain.auditing.audit import audit
from overexplain.auditing.audit_report import AuditReport
from overexplain.report.html.notebook import as_notebook_html

__all__ = ["AuditReport", "audit"]

AuditReport._repr_html_ = as_notebook_html  # type: ignore[attr-defined]
