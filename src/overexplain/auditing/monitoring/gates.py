"""Conditions on what a monitor found, for those who want a yes or no."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from overexplain.auditing.monitoring.monitor_report import NO_CLIENT, Exposure, Gate, MonitorReport
from overexplain.errors import InvalidInput

FORMS = "determined>60%, client-determined>60%, recoverable, client-recoverable, alarm"
_SHARE = re.compile(r"(client-)?determined\s*>\s*([0-9]+(?:\.[0-9]+)?)\s*%")


def gated(report: MonitorReport, expressions: Sequence[str]) -> MonitorReport:
    """The report with its gates: each expression says when it fails. What could not be measured fails, too.

    determined>60%         all answers together prove more than this share of the reference decisions
    client-determined>60%  those of one client do
    recoverable            all answers together leave one model, or only close ones
    client-recoverable     those of one client do
    alarm                  a client set off an alarm

    A share that is known as a range fails if the gate lies inside it: what was not settled lets none pass.
    """
    return replace(report, gates=tuple(_gate(report, expression) for expression in expressions))


def check_gates(expressions: Sequence[str]) -> None:
    """Raise InvalidInput if an expression is not known: before the work, not after it."""
    for expression in expressions:
        text = expression.strip()
        if text not in ("recoverable", "client-recoverable", "alarm") and _SHARE.fullmatch(text) is None:
            raise InvalidInput(f"a gate is one of {FORMS}; got {expression[:60]!r}")


def _gate(report: MonitorReport, expression: str) -> Gate:
    check_gates([expression])
    text = expression.strip()
    if text == "alarm":
        not_told = not report.alarmed and "holds-model" in report.yardstick.not_evaluated
        return _compared(expression, None if not_told else float(report.alarmed), 0.0)
    if report.log.unstated:
        return _compared(
            expression, None, 0.0
        )  # explanations that could not be used: what they give away was not measured
    if text == "recoverable":
        return _compared(expression, float(report.pooled.known != "partly"), 0.0)
    if text == "client-recoverable":
        if not report.alone and any(c.client == NO_CLIENT and c.exposure.known != "partly" for c in report.clients):
            return _compared(expression, None, 0.0)  # whether one client got them, nobody knows
        close = sum(client.exposure.known == "closely" for client in report.clients)
        return _compared(expression, float(report.alone + close), 0.0)
    found = _SHARE.fullmatch(text)
    assert found is not None
    holders = [report.pooled]
    if found[1]:
        holders = [c.exposure for c in report.clients if c.exposure.determined is not None]
    return _share_gate(expression, holders, float(found[2]) / 100)


def _share_gate(expression: str, holders: Sequence[Exposure], allowed: float) -> Gate:
    """Fails by the highest share that is sure; where that passes, what may be determined must, too."""
    shares = [(told.determined, told.ceiling) for told in holders]
    sure = [share for share, _ in shares if share is not None]
    worst = max(sure, default=None) if len(sure) == len(shares) else None
    may_exceed = any(most is not None and most > allowed for _, most in shares)
    if worst is not None and worst <= allowed and may_exceed:
        worst = None
    return _compared(expression, worst, allowed)


def _compared(expression: str, found: float | None, allowed: float) -> Gate:
    return Gate(expression, found is not None and found <= allowed, found, allowed)
