"""The terms under which a report's findings hold, from the report's own numbers, and what its words mean."""

from __future__ import annotations

from overexplain.auditing.audit_report import AuditReport
from overexplain.report.audit_text import angle, exact_percent, tidy
from overexplain.report.words import counted, percent

CATEGORIES = (
    "Each category is a feature of its own here, and questions and explanations may take any values of it, also between 0 and 1. "
    "A service that takes and gives whole categories only gives away less: of each column's weights only the differences."
)
NO_TIES = (
    "Proven minima hold for all but exceptional models, such as those with weights of exactly equal size. For these fewer answers "
    "can be enough, never more."
)


def premises(report: AuditReport) -> tuple[tuple[str, str], ...]:
    """Names and sentences: what was assumed, what was measured and how, what is not covered."""
    rows = [
        ("Model", _model(report)),
        ("Units", _units(report)),
        ("Services", _services(report)),
        ("Cases", _cases(report)),
    ]
    if report.subject.one_hot:
        rows.append(("Categories", CATEGORIES))
    if any(row.valid is not None for row in report.known):
        rows.append(("By rank", _by_rank(report)))
    if any(row.minimum_is == "theorem" for row in report.known):
        rows.append(("No ties", NO_TIES))
    if report.curves:
        rows += [("Determined", _determined(report)), ("Order of asking", _orders(report))]
    if any(curve.population == "denied" for curve in report.curves):
        rows.append(("Letters", "Pooled letters: only cases that are answered No are asked, in random order."))
    if report.quotas:
        rows.append(("Quota", _quota(report)))
    if report.known:
        rows.append(("Attacks", _attacks(report)))
    if report.maps:
        rows.append(("Maps", "Illustrations: the questions were made up, so the shares describe these pictures only."))
    if report.defences is not None and report.defences.rows:
        rows.append(("Defences", _defences(report)))
    rows.append(
        (
            "Not covered",
            "Clients who know training rows, models with interactions, and explanations that name reasons instead of changes.",
        )
    )
    return tuple(rows)


def glossary() -> tuple[tuple[str, str], ...]:
    """Words and what they mean here."""
    return (
        (
            "Answer",
            "What the service returns for one case: the decision and, if it explains, the change that would flip it.",
        ),
        ("Counterfactual explanation", "The nearest case that would have been decided the other way."),
        ("Determined", "Follows from the answers given, whatever the hidden weights are."),
        (
            "Distance",
            "How the size of a change is measured. ℓ1: all changes added up. ℓ2: straight line. ℓ∞: the largest single change.",
        ),
        ("Known", "The weights are fixed up to a common factor, so every decision can be predicted."),
        (
            "Margin, robust explanation",
            "Advice that goes a little further than needed, so that small errors do not undo it.",
        ),
        (
            "Not settled, ≥",
            "Neither shown to be determined nor to be unknown before a limit was reached. A share with ≥ leaves such cases out.",
        ),
        ("Quota", "The most answers that are given, over all clients together."),
        ("Radian", "Measure of angle. 0.001 radian is about one seventeenth of a degree."),
        ("Unknown", "At least two models fit all answers and disagree on this case."),
    )


def _model(report: AuditReport) -> str:
    subject = report.subject
    threshold = "the weighted sum reaches the threshold"
    if subject.threshold is not None:
        threshold = f"the probability reaches {subject.threshold:.6g}"
    features = counted(len(subject.features), "feature")
    return f"One linear rule ({tidy(subject.model)}): Yes where {threshold}. {features}."


def _by_rank(report: AuditReport) -> str:
    subject = report.subject
    found = "Counted in the cases"
    if subject.directions_from == "categories":
        found = "Of each column’s categories one follows from the others"
    differ = f"they differ in {subject.directions:,} of {counted(len(subject.features), 'direction')}"
    return (
        f"{found}: {differ}. Exact answers to such cases are equations of that rank, or one more if the answers leave these "
        "directions; as many independent ones fix every decision about such cases, and nothing about others."
    )


def _units(report: AuditReport) -> str:
    if report.subject.units == "standard deviations":
        return "Distances, margins and decimals are counted in standard deviations of the features."
    return "Distances, margins and decimals are counted in the data’s own units."


def _services(report: AuditReport) -> str:
    if not report.audited.explains:
        return "Assumed to give decisions only, always the model’s own."
    return (
        "Assumed to answer as described, with the terms they publish known to the asker. Answers that a service publishes "
        "as exact are used as exact; of others only what is published is used."
    )


def _cases(report: AuditReport) -> str:
    subject = report.subject
    left = f" {subject.cases_left_out:,} more were left out." if subject.cases_left_out else ""
    drawn = ""
    if subject.cases_drawn:
        left, drawn = "", f", drawn at random from {subject.cases + subject.cases_left_out:,} rows"
    yes = f"the model answers {percent(subject.yes_share)} of them with Yes"
    return f"{subject.cases:,} ({tidy(subject.data)}{drawn}); {yes}.{left}"


def _determined(report: AuditReport) -> str:
    wrong = sum(curve.wrong for curve in report.curves)
    undecided = max(curve.undecided for curve in report.curves)
    none = "None of the determined decisions contradicted the model."
    checked = (
        none if not wrong else f"{counted(wrong, 'determined decision')} contradicted the model: the terms do not hold."
    )
    open_ = (
        f" Up to {percent(undecided)} of the judged cases were left unsettled by a limit; they may be determined, so that shares "
        "with ≥ are bounds, and no quota is suggested from them."
    )
    broken = " Where explanations broke the published terms, only the decisions are used."
    broken *= any(curve.terms_broken for curve in report.curves)
    return f"All fitting models agree. Exact ties count as not determined. {checked}{open_ * bool(undecided)}{broken}"


def _orders(report: AuditReport) -> str:
    curve = report.curve_of(report.audited.id) or report.curves[0]
    asked = f"up to {counted(curve.answers[-1], 'case')} may be asked and " if curve.answers else ""
    judged = f"{curve.judged:,} {'others are' if curve.judged != 1 else 'other is'} only predicted"
    orders = f"each of {curve.orders:,} random orders" if curve.orders != 1 else "one random order"
    return f"In {orders} {asked}{judged}. Measured in these orders; nothing is proven about others."


def _quota(report: AuditReport) -> str:
    target = exact_percent(report.quotas[0].target)
    return (
        f"The largest number tried that kept the share at or under {target} in every order; for ordinary cases in random "
        "order. Whoever chooses the questions can learn more from as many."
    )


def _attacks(report: AuditReport) -> str:
    goals = sorted({row.accuracy for row in report.known if row.accuracy is not None and row.explanations == 0})
    words = (
        "Counts are of attacks that were carried out, each with questions of the attacker’s own choice; the decision that "
        "comes with an explained answer is not counted again."
    )
    return words + (f" Decisions only: to within {' or '.join(map(angle, goals))}." if goals else "")


def _defences(report: AuditReport) -> str:
    found = report.defences
    assert found is not None
    return (
        f"Measured: the best of the attacks tried, picked with hindsight, median of {counted(found.runs, 'run')}; the copied "
        f"direction within {angle(found.accuracy)}. “Over {found.limit:,}” means not found, not impossible. Length and invalid "
        f"advice: {counted(found.cases, 'case')}."
    )
