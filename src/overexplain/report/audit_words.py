"""An audit in plain words: what every rendering says, so that they all say the same.

Plain text, plain words first, symbols in brackets. No sentence says more than the numbers do: what was measured, what is proven and
what was not found are told apart. Gates, sections, premises, findings and advice have their words in files of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

from overexplain.auditing.audit_report import AuditReport, Curve, Quota, UntilKnown
from overexplain.auditing.findings import decisions_only, range_after
from overexplain.report.audit_advice import advice_sentence, finding_sentence
from overexplain.report.audit_all_cases import all_cases
from overexplain.report.audit_gates import gate_line, gate_outcome, gate_sentence
from overexplain.report.audit_premises import glossary, premises
from overexplain.report.audit_sections import (
    answer_noun,
    by_rank,
    figure_caption,
    heading,
    kind_of_cases,
    median_range,
    panel_shares,
    paragraphs,
    rebuilt_seldom,
    service_name,
    spread,
    unsettled,
)
from overexplain.report.audit_text import (
    angle,
    capital,
    exact_percent,
    number_in_words,
    percent_beside,
    several,
    tidy,
)
from overexplain.report.words import counted, percent, share_range

__all__ = [
    "Number",
    "advice_sentence",
    "all_cases",
    "eyebrow",
    "figure_caption",
    "finding_sentence",
    "gate_line",
    "gate_outcome",
    "gate_sentence",
    "glossary",
    "heading",
    "lead",
    "panel_shares",
    "paragraphs",
    "premises",
    "service_name",
    "three_numbers",
    "title",
]

EXACT_ANGLE = 1e-9
"""Weights found to within this angle are called found; beyond it the angle is told."""
NEAR_COPY = 0.99
"""A rebuilt model that decides fewer of the cases alike is not called the model."""


@dataclass(frozen=True)
class Number:
    """One of the three numbers: what it is called in data, its value (None: there is none), and its words.

    `text` and `unit` are what is shown large, `label` says what it counts, `detail` is a sentence or two, `brief` a few words.
    """

    name: str
    value: float | int | None
    text: str
    unit: str
    label: str
    detail: str
    brief: str = ""


def title(report: AuditReport) -> str:
    """The verdict, without a full stop: 'Thirty answers give this model away'."""
    row = report.known_of(report.audited.id)
    if row is None:
        return "No attack on this model was carried out"
    needed = row.answers
    if needed is None:
        return (
            "No attack tried gives this model away"
            if row.low is None
            else "Few of the attacks tried give this model away"
        )
    noun = "answer" if row.explanations else "decision"
    what = "this model" if row.agreement is None or row.agreement >= NEAR_COPY else "a rough copy of this model"
    if row.valid is not None:
        of_all = report.subject.directions_from == "categories"
        few = "every valid decision" if of_all else "every decision on cases like these"
        give = f"give{'s' * (row.valid == 1)}"
        return f"{capital(several(row.valid, noun))} {give} {few} away, {number_in_words(needed)} the whole model"
    return f"{capital(several(needed, noun))} give{'s' * (needed == 1)} {what} away"


def lead(report: AuditReport) -> str:
    """What the verdict means, in one to three sentences."""
    row = report.known_of(report.audited.id)
    if row is None:
        sentences = ["Whether an outsider can rebuild it was not tried here."]
    elif row.answers is None:
        sentences = [rebuilt_seldom(row)]
    else:
        sentences = [_meaning(row), *_compared(report)]
    if row is None or row.answers is None:
        reached = range_after(report.curve_of(report.audited.id), report.headline)
        if reached is not None:
            after = several(report.headline, answer_noun(report.audited))
            share = share_range(*reached)
            sentences.append(f"After {after} about ordinary cases, {share} of the other decisions are determined.")
    return " ".join(sentences)


def eyebrow(report: AuditReport) -> str:
    """What was audited, above the title."""
    subject = report.subject
    parts = [tidy(subject.model), counted(len(subject.features), "feature"), tidy(subject.data)]
    yes = "" if subject.classes is None else tidy(subject.classes[1])
    meaning = f" Yes means {'class ' * yes.isnumeric()}{yes}." if yes else ""
    return f"overexplain audit. {', '.join(parts)}.{meaning}"


def three_numbers(report: AuditReport) -> tuple[Number, ...]:
    """Answers until the model is known, the share determined, the quota; what was not measured is left out."""
    id = report.audited.id
    known, curve, quota = report.known_of(id), report.curve_of(id), report.quota_of(id)
    numbers = [] if known is None else [_known_number(report, known)]
    if curve is not None and (at := curve.at(report.headline)) is not None:
        numbers.append(_determined_number(report, curve, at))
    if quota is not None:
        numbers.append(_quota_number(quota, curve))
    return tuple(numbers)


def _meaning(row: UntilKnown) -> str:
    """What whoever asked so much can do now."""
    asked = row.answers or 0
    if not row.explanations:
        who = f"Whoever may ask for {several(asked, 'decision')} on cases of their own making"
    elif row.labels is not None and row.labels > 1:
        who = f"Whoever asks for {several(row.explanations, 'explanation')} and {several(row.labels, 'decision')}, well chosen,"
    elif asked == 1:
        who = "Whoever gets one answer explained"
    else:
        who = f"Whoever chooses {asked:,} cases well and gets each answer explained"
    if row.angle_error is not None and row.angle_error <= EXACT_ANGLE:
        return f"{who} can work out every weight of the model and predict its decisions."
    error = row.accuracy if row.accuracy is not None else row.angle_error
    within = "" if error is None else f" to within {angle(error)}"
    alike = "" if row.agreement is None else f": {percent(row.agreement)} of the cases were then decided alike"
    return f"{who} can work out the weights{within}{alike}."


def _compared(report: AuditReport) -> list[str]:
    plain = decisions_only(report)
    row = None if plain is None else report.known_of(plain.id)
    needed = None if row is None else row.answers
    if row is None or needed is None:
        return []
    within = "" if row.accuracy is None else f", to within {angle(row.accuracy)}"
    return [f"Without explanations it took {counted(needed, 'decision')}{within}."]


def _known_number(report: AuditReport, row: UntilKnown) -> Number:
    needed = row.answers
    noun = "answer" if row.explanations or needed is None else "decision"
    if needed is None:
        label = "of the attacks tried made the model known"
        return Number("answers_until_known", None, "none" if row.low is None else "few", "", label, rebuilt_seldom(row))
    sentences, brief = [], ""
    theorem = row.minimum_is == "theorem"
    if row.minimum is not None and theorem and row.minimum == needed:
        computed = "Computed, carried out" if row.computed == needed else "Carried out"
        whole = " for the whole model" * (report.subject.directions is not None)
        sentences.append(f"{computed}, and proven: no method needs fewer{whole}.")
    elif row.minimum is not None:
        source = "Proven minimum" if theorem else "Minimum by counting bits"
        sentences.append(f"Carried out against this model. {source}: {row.minimum:,}.")
    else:
        sentences.append("Carried out against this model. A proven minimum is not known.")
    if row.minimum is not None:
        brief = f"{'proven minimum' if theorem else 'information bound'}: {row.minimum:,}"
    if row.accuracy is not None:
        sentences.append(f"To within {angle(row.accuracy)}.")
    if row.labels and row.labels > 1 and row.explanations:
        sentences.append(f"{counted(row.explanations, 'explanation')} and {counted(row.labels, 'decision')}.")
    if row.low is not None and row.high is not None and row.low < row.high:
        sentences.append(f"Median of {counted(row.runs, 'run')} of {row.low:,} to {row.high:,} requests.")
    if by := by_rank(report, row):
        sentences.append(by.strip())
    if row.valid is not None:
        brief += f"; {kind_of_cases(report)}: {row.valid:,}, by rank"
    label = f"{noun}{'s' * (needed != 1)} until the {'whole ' * (row.valid is not None)}model is known"
    return Number("answers_until_known", needed, f"{needed:,}", "", label, " ".join(sentences), brief)


def _determined_number(report: AuditReport, curve: Curve, at: int) -> Number:
    answers, share = curve.answers[at], curve.median[at]
    text, _, unit = median_range(curve, at).rpartition(" ")
    orders = spread(curve, at)
    detail = f"{orders} in 8 of 10 orders of asking." if curve.orders > 1 else "One order of asking was tried."
    plain = decisions_only(report)
    without = None if plain is None else range_after(report.curve_of(plain.id), answers)
    if without is not None:
        detail += f" With decisions only: {share_range(*without)}."
    detail += unsettled(curve)
    label = f"of decisions determined after {counted(answers, answer_noun(report.audited).removeprefix('explained '))}"
    brief = f"{orders}, 8 of 10 orders" if curve.orders > 1 else "one order"
    return Number(f"determined_at_{answers}", share, text, unit, label, detail, brief)


def _quota_number(quota: Quota, curve: Curve | None) -> Number:
    target = exact_percent(quota.target)
    if quota.is_unsettled:
        return _no_quota(quota, target)
    least = "at least " * bool(curve is not None and _is_bound(quota, curve))
    highest = f"Highest of {counted(quota.orders, 'order')}: {least}{percent_beside(quota.highest, quota.target)}."
    if quota.answers == 0:
        label = f"answers keep it at or under {target}"
        beyond = "" if quota.beyond is None else f": {percent_beside(quota.beyond, quota.target)}"
        least = "The smallest number of answers tried"
        if curve is not None and curve.answers:
            least += f", {curve.answers[0]:,},"
        detail, brief = f"{least} already exceeds it{beyond}.", "the fewest tried exceed it"
    elif quota.is_limit:
        label = f"{_answers(quota.answers)} in total kept it at or under {target}"
        detail, brief = f"The most that was tried: the limit was not reached. {highest}", "the most tried"
    else:
        label = f"{_answers(quota.answers)} in total keep{'s' * (quota.answers == 1)} it at or under {target}"
        detail = f"Suggested quota over all clients together, for ordinary cases in random order. {highest}"
        brief = "suggested quota"
    if quota.adaptive is not None and 0 < quota.adaptive <= quota.answers:
        detail += f" Whoever chooses the questions needs only {quota.adaptive:,}."
    detail += unsettled(curve)
    return Number("quota", quota.answers, f"{quota.answers:,}", "", label, detail, brief)


def _no_quota(quota: Quota, target: str) -> Number:
    """The words where unsettled cases leave open which number of answers keeps the target."""
    label = f"quota can be suggested to keep it at or under {target}"
    why = "a limit left too many cases unsettled"
    if quota.answers == 0:
        detail, brief = f"Whether one answer keeps it is not known: {why}.", "not settled"
    else:
        sure = f"{counted(quota.answers, 'answer')} {'is' if quota.answers == 1 else 'are'} sure to"
        detail, brief = f"{sure}; whether more do is not known: {why}.", f"{sure}; more is not settled"
    return Number("quota", None, "no", "", label, detail, brief)


def _is_bound(quota: Quota, curve: Curve) -> bool:
    """True if the highest share at the quota is known from below only."""
    if quota.answers not in curve.answers:
        return False
    at = curve.answers.index(quota.answers)
    return curve.highest[at] < curve.ceiling[at]


def _answers(number: int) -> str:
    return f"answer{'s' * (number != 1)}"
