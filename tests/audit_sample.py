"""A hand-made audit report like a real one, and extreme ones: what every rendering is tested with. No number is a result.

The parts fit together: shares are counts of judged cases, quotas follow from the curves, a map's grid is what its questions leave
open (worked out in audit_sample_maps.py), and the worked proof adds up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from audit_sample_edges import HOSTILE, edge_reports
from audit_sample_parts import ANSWERS, whole_report
from overexplain.auditing.audit_report import AuditReport
from overexplain.auditing.findings import with_findings

__all__ = ["ANSWERS", "HOSTILE", "edge_reports", "sample_report"]


def sample_report(**changes: Any) -> AuditReport:
    """The sample: 30 features, six services, the first (sum of changes) audited; `changes` replaces parts of it."""
    report = replace(whole_report(), **changes)
    return report if changes.keys() & {"findings", "advice"} else with_findings(report)
