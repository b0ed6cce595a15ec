"""Conditions that fail an audit: what is written, and how it is judged.

A gate says when to fail: `determined@200>60%`, `answers-to-extract<20`, `quota<10`, `agreement>=99%`. It bounds a risk, so
whatever is not measured exactly is taken from the unsafe side: the highest of all orders, the next larger number of answers, the
cheapest of all runs, the worst of the audited services. What could not be measured fails, and so does a share or a quota that is
known as a range with the bound inside.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

from overexplain.auditing.audit_report import AuditReport, Curve, Gate
from overexplain.auditing.determining.quota import possible_quota
from overexplain.auditing.findings import fewest_needed, judged_services
from overexplain.errors import InvalidInput

DETERMINED, EXTRACT, QUOTA, AGREEMENT = "determined", "answers-to-extract", "quota", "agreement"
_RISES = {DETERMINED: True, EXTRACT: False, QUOTA: False, AGREEMENT: True}
"""The names, and whether more is worse."""
_EXAMPLES = "determined@200>60%, answers-to-extract<20, quota<10, agreement>=99%"
_FORM = re.compile(
    r"(?P<name>[a-z-]+)(@(?P<at>[0-9]+))?(?P<sign>>=|<=|>|<)(?P<bound>[0-9]+(\.[0-9]+)?)(?P<percent>%)?", re.ASCII
)


@dataclass(frozen=True)
class GateSpec:
    """A condition as written; `fails(value)` says when it fails."""

    expression: str
    name: str
    answers: int | None
    sign: str
    bound: float

    @property
    def is_share(self) -> bool:
        """True if it bounds a share, False if a number of answers."""
        return self.name in (DETERMINED, AGREEMENT)

    @property
    def includes_bound(self) -> bool:
        """True if the bound itself already fails."""
        return self.sign.endswith("=")

    def fails(self, value: float) -> bool:
        """True if that value fails the gate."""
        if value == self.bound:
            return self.includes_bound
        return (value > self.bound) == self.sign.startswith(">")


def parse_gate(text: str) -> GateSpec:
    """The condition that a text says; spaces do not matter.

    >>> parse_gate("determined@200 > 60 %")
    GateSpec(expression='determined@200>60%', name='determined', answers=200, sign='>', bound=0.6)
    """
    written = "".join(text.split())
    read = _FORM.fullmatch(written)
    if read is None:
        raise InvalidInput(f"gate {_shown(text)} cannot be read: it says when to fail, e.g. {_EXAMPLES}")
    name, at, sign = read["name"], read["at"], read["sign"]
    if name not in _RISES:
        raise InvalidInput(
            f"gate {_shown(text)}: {_shown(name)} is not known; known are {', '.join(_RISES)} ({_EXAMPLES})"
        )
    if (name == DETERMINED) != (at is not None):
        needs = "needs a number of answers" if at is None else "takes no number of answers"
        raise InvalidInput(f"gate {_shown(text)}: {name} {needs}; e.g. {_EXAMPLES}")
    if sign.startswith(">") != _RISES[name]:
        better = ">" if _RISES[name] else "<"
        worse = "more" if _RISES[name] else "less"
        raise InvalidInput(
            f"gate {_shown(text)} would fail good models: a gate says when to fail, and {worse} {name} is worse; write {better}"
        )
    if at is not None and not 0 < len(at.lstrip("0")) <= 12:
        raise InvalidInput(f"gate {_shown(text)}: the number of answers must be at least 1 and of at most 12 digits")
    bound = _bound(read["bound"], read["percent"] is not None, name, text)
    return GateSpec(written, name, None if at is None else int(at), sign, bound)


def judge(spec: GateSpec, report: AuditReport) -> Gate:
    """The gate, judged by the worst of the services that were asked for."""
    values = {service.id: _value(spec, report, service.id) for service in judged_services(report)}
    measured = {id: value for id, value in values.items() if value is not None}
    worst = (max if _RISES[spec.name] else min)(measured, key=lambda id: measured[id], default=None)
    if worst is None or (len(measured) < len(values) and not spec.fails(measured[worst])):
        # Nothing that was measured fails, but not everything was measured.
        missing = next((id for id, value in values.items() if value is None), None)
        return Gate(spec.expression, False, missing, None, spec.bound)
    value = measured[worst]
    # JSON has no infinity: what no attack rebuilt is a gate that passed without a value.
    return Gate(spec.expression, not spec.fails(value), worst, None if math.isinf(value) else value, spec.bound)


def determined_range(curve: Curve | None, answers: int) -> tuple[float, float] | None:
    """The highest share that any order reached after so many answers, and what it may have been; None if not measured.

    Taken at the next number tried, because the share grows. What a limit left open may be determined, too. Beyond the last number
    tried the share is known only if everything was determined there.
    """
    if curve is None:
        return None
    later = [i for i, n in enumerate(curve.answers) if n >= answers]
    if later:
        return curve.highest[later[0]], curve.ceiling[later[0]]
    return (1.0, 1.0) if curve.highest[-1:] == (1.0,) else None


def _value(spec: GateSpec, report: AuditReport, id: str) -> float | None:
    """What the gate compares, for one service; None if it was not measured, infinity if no attack rebuilt the model."""
    row = report.known_of(id)
    if spec.name == DETERMINED:
        return _decided(spec, determined_range(report.curve_of(id), spec.answers or 1))
    if spec.name == QUOTA:
        return _decided(spec, quota_range(report, id))
    if row is None:
        return None
    if spec.name == EXTRACT:
        needed = fewest_needed(row)
        # Who knows every decision about valid cases has what the gate is there to keep.
        return math.inf if needed is None else float(min(needed, row.valid or needed))
    # Whoever rebuilt nothing can still always give the commoner answer.
    shares = [share for share in (row.agreement, row.constant_agreement) if share is not None]
    return max(shares, default=None)


def quota_range(report: AuditReport, id: str) -> tuple[float, float] | None:
    """The largest number of answers that may keep the target, and the largest that is sure to; None if there is no quota."""
    quota = report.quota_of(id)
    if quota is None:
        return None
    return float(possible_quota(quota, report.curve_of(id))), float(quota.answers)


def _decided(spec: GateSpec, ends: tuple[float, float] | None) -> float | None:
    """The end of a range (its safer end first) that decides a gate; None if the ends do not agree.

    The safer end fails: all fail. The other one passes: all pass. What a limit left open lets no gate pass, nor is it told as if
    it had been determined.
    """
    if ends is None:
        return None
    safer, worse = ends
    if spec.fails(safer):
        return safer
    return None if spec.fails(worse) else worse


def _bound(number: str, percent: bool, name: str, text: str) -> float:
    if len(number) > 30:
        raise InvalidInput(f"gate {_shown(text)}: the bound has {len(number)} digits, which no share or count needs")
    exact = Fraction(number) / (100 if percent else 1)
    if name in (DETERMINED, AGREEMENT):
        if exact > 1:
            wanted = f"write {number}%" if not percent and exact <= 100 else "a share is at most 100% (1.0)"
            raise InvalidInput(f"gate {_shown(text)}: {number}{'%' * percent} is no share of decisions; {wanted}")
    elif percent or exact.denominator != 1:
        raise InvalidInput(f"gate {_shown(text)}: {name} is a whole number of answers, not {number}{'%' * percent}")
    return float(exact)


def _shown(text: str) -> str:
    """A text from outside for a message: quoted, of bounded length."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
