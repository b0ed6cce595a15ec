"""From what a service does to how its model is rebuilt: the method, its predicted cost, and the findings in plain words."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from overexplain.extraction.diagnosis.oracle_report import OracleReport
from overexplain.extraction.labels.floors import predicted_labels
from overexplain.extraction.result import Spent
from overexplain.geometry.domain import Domain
from overexplain.geometry.hyperplane import YES

TARGET = 1e-6
"""The accuracy, in radians, that costs are predicted for."""

_APPROACH = 10
"""Labels that bring a question close enough to the plane that no bound is in the way."""

_MANY = 0.95
"""A chain whose margins shrink more slowly than this has no predictable end."""


@dataclass(frozen=True)
class Remedy:
    """How the model is rebuilt, in plain words, and what it takes."""

    theorem: str
    cost: Spent | None


def remedy(report: OracleReport, can_label: bool, domain: Domain | None, step: float, unlimited: bool) -> Remedy:
    """The cheapest way that what was seen allows; `step`: a typical length of the steps, `unlimited`: any point may be asked."""
    p, label = report.dimension, int(can_label)
    if report.answers == 0:
        if not can_label:
            return Remedy("nothing: the service neither explains nor labels", None)
        return Remedy("labels only: threshold bisection", _by_labels(p))
    if domain is not None and (domain.groups or domain.integers):
        unknown = len(domain.continuous) + sum(len(group) - 1 for group in domain.groups) + len(domain.integers)
        if not len(domain.continuous):
            return Remedy(
                "nothing rebuilds it: without a continuous feature only the labels themselves can be copied", None
            )
        labels = unknown * _APPROACH if can_label else 0
        return Remedy("slice by slice: one point of the plane for every unknown of the model", Spent(unknown, labels))
    if report.exact and report.grid is None:
        return _exact(report, label)
    if report.exact and unlimited and report.distance is not None and report.grid != "float32" and not report.is_boxed:
        plain = _exact(report, label)
        return Remedy(
            f"{plain.theorem}; asked from so far away that rounding ({report.grid}) does not matter", plain.cost
        )
    if report.exact:
        angle = min(0.5, report.tolerance * math.sqrt(p) / max(step, report.tolerance))
        few = 4 if report.direction == "constant" and report.family not in ("l1", "linf") else 3 * p
        return _warm(report, can_label, few, angle, f"answers are rounded: {report.grid}")
    if report.margin == "relative" and report.slack is not None and report.one_sided is None and report.slack < _MANY:
        links = math.ceil(math.log(TARGET) / math.log(min(0.9, 1.5 * max(report.slack, 0.01))))
        return Remedy(
            "chain: explanations of explanations come ever closer to the plane", Spent((p + 1) * links, label)
        )
    if report.margin == "zero":
        return Remedy("Theorem D: as many answers as features, all on the plane", Spent(p + 1, label))
    # Margins hide how far the plane is, but not the direction of a step that is the normal itself.
    few, angle = (4, TARGET) if report.direction == "constant" and report.family == "l2" else (3 * p, 0.3)
    return _warm(report, can_label, few, angle, "answers are no exact measurements")


def _exact(report: OracleReport, label: int) -> Remedy:
    p, hidden = report.dimension, report.dimension - len(report.moved)
    secret = int(report.margin == "constant")
    sided = ""
    if secret and report.one_sided is not None:
        sided = "; one side alone does not show the margin, which takes labels along one line"
        label = label * round(math.log2(1 / TARGET))
        secret = 0
    if report.is_boxed:
        answers = 2 if report.family in ("l2", "lq") else p + secret
        return Remedy(
            "approach, then ask: close to the plane no bound is in the way", Spent(answers, label * _APPROACH)
        )
    if (
        report.family in ("l2", "lq")
        and report.direction in ("constant", "by side")
        and (hidden or report.direction == "by side")
    ):
        scales = 1 if report.direction == "constant" else 2
        return Remedy(
            "revealed coordinates: moved features show their coefficients" + sided, Spent(hidden + scales + 1, label)
        )
    if report.distance is not None and report.distance.is_smooth:
        return Remedy(
            f"Theorem {'C' if secret else 'B'}: a smooth distance shows the normal in one step" + sided,
            Spent(1 + secret, label),
        )
    if report.distance is not None:
        named = "Theorem C: the radius is one unknown more" if secret else "Theorem A: one answer for every feature"
        return Remedy(named + sided, Spent(p + secret, label))
    planes = "two planes parallel to the model's" if secret else "the plane"
    return Remedy(
        f"Theorem D: independent answers, whatever the distance: all lie on {planes}" + sided,
        Spent(p + 1 + secret, label),
    )


def _warm(report: OracleReport, can_label: bool, few: int, angle: float, why: str) -> Remedy:
    p = report.dimension
    if not can_label:
        return Remedy(f"averages over many answers ({why}, and there are no labels)", None)
    cold, warm = predicted_labels(p, TARGET), predicted_labels(p, TARGET, angle)
    if warm + few < cold:
        return Remedy(f"labels, from the guess that a few answers give ({why})", Spent(few, math.ceil(warm)))
    return Remedy(f"labels only: threshold bisection ({why})", _by_labels(p))


def _by_labels(p: int) -> Spent:
    return Spent(0, math.ceil(predicted_labels(p, TARGET)))


def findings_of(report: OracleReport, note: str, unmoved: tuple[int, ...], assumed: bool) -> tuple[str, ...]:
    """What was seen, one plain sentence each, the most important first; `assumed`: that both sides have the same margin."""
    if report.answers == 0:
        return _silence(report)
    said = [_chance(report), _direction(report, note), _margin(report)]
    if assumed:
        said.append("That this is the same on both sides is assumed: no labels show it.")
    if report.grid is not None:
        said.append(f"Answers lie on a grid: {report.grid}.")
    if report.is_boxed:
        count = int(np.isfinite(report.low).sum() + np.isfinite(report.high).sum())
        said.append(f"Answers are cut off at {count} bound{'s' * (count != 1)}.")
    if report.immutable:
        said.append(f"{_features(report.immutable)} never moved, although the label depends on them.")
    elif unmoved:
        said.append(f"{_features(unmoved)} never moved: held, or without effect.")
    if report.repeated_rows:
        said.append("Different questions get exactly the same point: answers come from a list, probably of data rows.")
    if report.one_hot_snapped is not None:
        said.append(f"One-hot groups {'stay valid' if report.one_hot_snapped else 'do not stay valid'} in the answers.")
    if report.one_sided is not None:
        said.append(f"Only points labelled {'Yes' if report.one_sided == YES else 'No'} are explained.")
    if report.failures:
        said.append(f"No answer: {_failures(report)}.")
    said += [f"Contradicted: {sentence}." for sentence in report.refuted]
    return tuple(sentence for sentence in said if sentence)


def _silence(report: OracleReport) -> tuple[str, ...]:
    if not report.asked.explanations:
        return ("The service explains nothing: it gives labels only.",)
    return (f"{report.asked.explanations} questions got no answer that could be used: {_failures(report)}.",)


def _failures(report: OracleReport) -> str:
    return ", ".join(
        f"{spelling} ({count} times)" if count > 1 else f"{spelling} (once)" for spelling, count in report.failures
    )


def _features(features: tuple[int, ...]) -> str:
    if len(features) == 1:
        return f"Feature {features[0]}"
    shown = ", ".join(map(str, features[:8]))
    return f"Features {shown}" + (f" and {len(features) - 8} more" if len(features) > 8 else "")


def _chance(report: OracleReport) -> str:
    match report.deterministic:
        case True:
            return "The same question gets the same answer."
        case False:
            return "The same question gets different answers."
    return ""


def _direction(report: OracleReport, note: str) -> str:
    told = {
        "constant": "All answers lie along one direction from their questions",
        "by side": "Each side has a direction of its own",
        "several": "Answers follow a few directions",
        "varying": "Every answer lies in a direction of its own",
        None: "Too few answers to say anything about directions",
    }[report.direction]
    seen = "" if report.family == "unknown" else f"; this fits: {report.family}"
    return f"{told}{seen}{f' ({note})' if note else ''}."


def _margin(report: OracleReport) -> str:
    match report.margin:
        case "zero":
            return "Answers lie on the plane" + (" as closely as their grid allows." if report.grid else ".")
        case "constant":
            return (
                f"Answers lie a constant {report.margin_size:.3g} behind the plane (an overshoot, or robust answers)."
            )
        case "variable":
            return f"Answers lie behind the plane by changing amounts, up to {report.margin_size:.3g}."
        case "relative":
            return f"The farther the question, the farther behind the plane the answer: at least {report.slack:.0%} too long."
    return ""
