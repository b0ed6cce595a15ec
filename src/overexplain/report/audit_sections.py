"""The words of a report's sections: headings that state the finding, whatever the numbers are, and what stands under them."""

from __future__ import annotations

from typing import Literal

from overexplain.auditing.audit_report import AuditedService, AuditReport, Curve, Panel, UntilKnown
from overexplain.auditing.findings import (
    broken_defences,
    defences_tried,
    labels_price,
    undefended,
)
from overexplain.report.audit_text import angle, capital, inside, number_in_words, percent_range, several, tidy
from overexplain.report.words import counted, in_words, percent, share_range

Section = Literal["curve", "map", "known", "defences", "premises", "verify", "glossary"]

PAPER = (
    "The paper: Otto, Kurtz, den Hertog, Birbil, Linear Model Extraction via Factual and Counterfactual Queries, "
    "arXiv 2602.09748."
)

NOT_FOUND = "The attack that was carried out did not rebuild it. Not found is not impossible."


def service_name(service: AuditedService) -> str:
    """A service's name on one line, shortened if somebody gave it a very long one."""
    return tidy(service.name)


def answer_noun(service: AuditedService) -> str:
    """What one reply of the service is called: 'explained answer' or 'decision'."""
    return "explained answer" if service.explains else "decision"


def rebuilt_seldom(row: UntilKnown) -> str:
    """What to say if fewer than half of the runs rebuilt the model."""
    if row.low is None:
        return (
            f"None of the {counted(row.runs, 'run')} rebuilt it. Not found is not impossible."
            if row.runs > 1
            else NOT_FOUND
        )
    return f"Fewer than half of {counted(row.runs, 'run')} rebuilt it; the cheapest took {counted(row.low, 'request')}."


def kind_of_cases(report: AuditReport) -> str:
    """Which cases lie in fewer directions than there are features."""
    return "valid cases" if report.subject.directions_from == "categories" else "cases like those given"


def by_rank(report: AuditReport, row: UntilKnown) -> str:
    """How many answers valid cases need, after a space, where that is fewer, or may be; else empty."""
    subject = report.subject
    if subject.directions is None or row.answers is None or not report.service(row.service).explains:
        return ""
    differ = f"{subject.directions:,} of {counted(len(subject.features), 'direction')}"
    if row.valid is not None:
        fix = f"{counted(row.valid, 'answer')} to such cases, well chosen, determine{'s' * (row.valid == 1)} them all"
        return f" {capital(kind_of_cases(report))} need fewer: they differ in {differ}, and by rank {fix}."
    if row.answers > 1 and row.minimum is not None:
        return f" {capital(kind_of_cases(report))} differ in {differ} only, and may need fewer; that was not counted."
    return ""


def unsettled(curve: Curve | None) -> str:
    """A sentence, after a space, if a limit left cases of a curve unsettled."""
    if curve is None or not curve.undecided:
        return ""
    return f" A limit left up to {percent(curve.undecided)} of the cases unsettled; they may be determined, too."


def median_range(curve: Curve, at: int) -> str:
    """The median share at an index: '62 %', or '≥ 12 %' if a limit left more than that open."""
    return share_range(curve.median[at], curve.median_ceiling[at])


def spread(curve: Curve, at: int) -> str:
    """The range that holds 8 of 10 orders, whatever the unsettled cases are: '67 to 77 %'."""
    return percent_range(curve.low[at], curve.high_ceiling[at])


def panel_shares(panel: Panel) -> tuple[str, str, str, str]:
    """The shares of a map that are determined Yes, determined No, unknown, and not settled."""
    yes, no = (share_range(share, share + panel.undecided) for share in (panel.yes, panel.no))
    unknown = max(0.0, panel.unknown - panel.undecided)
    return yes, no, share_range(unknown, panel.unknown), percent(panel.undecided)


def map_columns(report: AuditReport) -> tuple[str, ...]:
    """What the entries of `panel_shares` are called; the last one is left out where everything was settled."""
    named = ("Determined Yes", "Determined No", "Unknown", "Not settled")
    return named if any(panel.undecided for one in report.maps for panel in one.panels) else named[:-1]


def heading(report: AuditReport, section: Section) -> str:
    """The heading of a section."""
    match section:
        case "curve":
            return _curve_heading(report)
        case "map":
            return _map_heading(report)
        case "known":
            return _known_heading(report)
        case "defences":
            return _defences_heading(report)
        case "premises":
            return "What the findings rest on"
        case "verify":
            return "How to verify this report"
        case "glossary":
            return "Glossary"


def paragraphs(report: AuditReport, section: Section) -> tuple[str, ...]:
    """What stands under the heading of a section, before its figure."""
    match section:
        case "curve":
            return (
                "A decision is determined when every model that fits the answers given so far decides it the same way. "
                "The person asking needs no guess: the outcome follows.",
            )
        case "map":
            return _map_paragraphs(report)
        case "known":
            return _known_paragraphs(report)
        case "defences":
            return _defences_paragraphs(report)
        case "premises":
            return (
                "The findings hold under these terms. Where one does not apply to your service, the finding does not either.",
            )
        case "verify":
            return _verify_paragraphs(report)
        case "glossary":
            return ()


def figure_caption(report: AuditReport, section: Section) -> str:
    """What the figure of a section shows; empty for a section without one."""
    match section:
        case "curve":
            return _curve_caption(report)
        case "map":
            return "Shares are of the drawn area and describe these pictures only." if report.maps else ""
        case "known":
            explaining = any(report.service(row.service).explains for row in report.known)
            unit = "Explained answers until the model is known" if explaining else "Decisions until the model is known"
            features = counted(len(report.subject.features), "feature")
            besides = " A service that gives decisions only is counted in decisions." if explaining else ""
            return f"{unit}, {features}.{besides}" if report.known else ""
        case "defences":
            return _defences_caption(report)
        case _:
            return ""


def _curve_heading(report: AuditReport) -> str:
    curve = report.curve_of(report.audited.id)
    if curve is None or (at := curve.at(report.headline)) is None:
        return "What leaks, answer by answer, was not measured"
    share, answers = curve.median[at], curve.answers[at]
    verb = "determines" if answers == 1 else "determine"
    how_many = {0.0: "none", 1.0: "all"}.get(share, percent(share))
    if share < curve.median_ceiling[at]:
        if share == 0:
            return f"What {several(answers, answer_noun(report.audited))} {verb} was not settled"
        how_many = in_words(share_range(share, 1.0))
    return f"{capital(several(answers, answer_noun(report.audited)))} {verb} {how_many} of the decisions nobody asked about"


def _curve_caption(report: AuditReport) -> str:
    curve = report.curve_of(report.audited.id)
    if curve is None:
        return ""
    judged = f"{counted(curve.judged, 'case')} that {'was' if curve.judged == 1 else 'were'} never asked"
    caption = f"Share of decisions determined, for {judged}."
    if curve.orders > 1:
        caption += (
            f" Line: median of {curve.orders:,} random orders of asking. Shaded: the range that holds 8 of 10 orders, "
        )
        caption += "for the audited service."
    else:
        caption += " One random order of asking."
    if any(one.undecided for one in report.curves):
        caption += (
            " Hatched: cases that a limit left unsettled; the median lies between its line and the hatching's end."
        )
    return caption


def _map_heading(report: AuditReport) -> str:
    if not report.maps:
        return "No map was drawn"
    counts = sorted({panel.explanations for one in report.maps for panel in one.panels})
    for explanations in counts:
        unknown = [_unknown(report, i, explanations) for i in range(len(report.maps))]
        if all(share == 0 for share in unknown):
            if explanations == 0:
                return "Decisions alone close the map"
            closes = "closes" if explanations == 1 else "close"
            return f"{capital(several(explanations, 'explanation'))} {closes} the map{'s' * (len(report.maps) > 1)}"
    if len(counts) > 1:
        first, last = ([_unknown(report, i, k) for i in range(len(report.maps))] for k in (counts[0], counts[-1]))
        pairs = list(zip(first, last, strict=True))
        if all(a is not None and b is not None and b < a for a, b in pairs):
            return "Explanations shrink what is unknown"
    return "What is known on a map of two features"


def _unknown(report: AuditReport, number: int, explanations: int) -> float | None:
    panels = report.maps[number].panels
    return next((panel.unknown for panel in panels if panel.explanations == explanations), None)


def _map_paragraphs(report: AuditReport) -> tuple[str, ...]:
    if not report.maps:
        return ()
    questions = several(len(report.maps[0].questions), "what-if question")
    return (
        f"Take the average case and change only two of its features. One client asks {questions} about it.",
        "In the coloured areas every model that fits the answers agrees; in the hatched area the answers leave the decision open."
        + " Dotted: not settled." * any(panel.undecided for one in report.maps for panel in one.panels),
    )


def _known_heading(report: AuditReport) -> str:
    row = report.known_of(report.audited.id)
    if row is None:
        return "Answers until the model is known were not tried"
    needed = row.answers
    if needed is None:
        return (
            "No attack tried made the model known"
            if row.low is None
            else "Few of the attacks tried made the model known"
        )
    noun = (
        answer_noun(report.audited)
        if row.explanations and (row.labels or 0) <= 1
        else "answer"
        if row.explanations
        else "decision"
    )
    enough = f"{capital(several(needed, noun))} {'is' if needed == 1 else 'are'} enough to know the model"
    if row.accuracy is not None:
        return f"{enough} to within {angle(row.accuracy)}"
    proven = row.minimum_is == "theorem" and row.minimum == needed and needed > 1
    if proven and row.valid is not None:
        return f"{enough}, and fewer are not; {kind_of_cases(report)} need {number_in_words(row.valid)}"
    return f"{enough}, and fewer are not" if proven else enough


def _known_paragraphs(report: AuditReport) -> tuple[str, ...]:
    if not report.known:
        return ()
    text = [
        "What an outsider needs who chooses the questions well. Every count under “needed” was carried out against this model."
    ]
    if any(row.minimum_is == "theorem" for row in report.known):
        whole = report.subject.directions is not None
        text.append(f"The proven minimum says that no method can do with fewer{' for the whole model' * whole}.")
    row = report.known_of(report.audited.id)
    if row is not None and (by := by_rank(report, row)):
        text.append(by.strip())
    if any(row.minimum_is == "information bound" for row in report.known):
        text.append(
            "With decisions only the minimum counts bits: what any method needs in the worst case, to reach the same angle."
        )
    paper = any(row.paper_explanations is not None for row in report.known)
    if paper:
        text.append("The paper’s count is its own procedure, carried out against the same service.")
    notes = []
    for row in report.known:
        name = capital(service_name(report.service(row.service)))
        if row.failed is not None:
            success = (
                "no attack succeeded"
                if row.low is None
                else f"few attacks succeeded, the cheapest with {row.low:,} requests"
            )
            notes.append(f"{name}: {success} ({tidy(row.failed, 120)}).")
        elif row.explanations and row.labels is not None and row.labels > 1:
            both = f"{counted(row.explanations, 'explanation')} and {counted(row.labels, 'decision')}"
            notes.append(f"{name}: {both} together.")
        elif not row.explanations and row.accuracy is not None:
            runs = f"median of {row.runs:,} runs, " if row.runs > 1 else ""
            notes.append(f"{name}: {runs}to within {angle(row.accuracy)}.")
    if any(row.failed is not None for row in report.known):
        notes.append("Not found is not impossible.")
    return tuple(part for part in (" ".join(text), " ".join(notes), PAPER if paper else "") if part)


def _defences_heading(report: AuditReport) -> str:
    if report.defences is None or not report.defences.rows:
        return "No defences were compared"
    broken, compared = len(broken_defences(report)), len(defences_tried(report))
    if not broken:
        return "What a defence costs, and whom"
    if compared == 1:
        return "The defence tried costs the attacker little"
    costs = "costs" if broken == 1 else "cost"
    return f"{capital(number_in_words(broken))} of {number_in_words(compared)} defences {costs} the attacker little"


def _defences_paragraphs(report: AuditReport) -> tuple[str, ...]:
    if report.defences is None or not report.defences.rows:
        return ()
    name = inside(service_name(report.service(report.defences.service)))
    text = (
        f"Each row changes how the service ({name}) answers. A good defence makes the attacker’s count large and leaves the "
        "applicant’s two numbers small. The second count is of an attacker who may also ask for plain decisions on made-up cases"
    )
    price = labels_price(report)
    if price is None:
        return (f"{text}.",)
    return (
        f"{text}: no defence of the explanations that was tried made that attacker pay more than {counted(price, 'answer')}.",
    )


def _defences_caption(report: AuditReport) -> str:
    found = report.defences
    if found is None or not found.rows:
        return ""
    little = "" if undefended(report) is None else " “Little” is at most twice the count without defence."
    return (
        f"Attacker’s goal: the model’s direction to within {angle(found.accuracy)}; median of {counted(found.runs, 'run')}. “Over "
        f"{found.limit:,}” means not found, not impossible.{little} Applicant: {counted(found.cases, 'case')}."
    )


def _verify_paragraphs(report: AuditReport) -> tuple[str, ...]:
    text = "For every determined decision there is a short sum that anyone can redo, in exact fractions."
    proof, proved = report.proof, _proved_figure(report)
    if proof is None or not report.maps:
        return (text, *proved)
    first = report.maps[0]
    answer = {1: "Yes", -1: "No"}[proof.label]
    used = "proves" if len(proof.rows) == 1 else "prove"
    share = f"{number_in_words(len(proof.rows))} of the {several(len(first.questions), 'answer')}"
    where = f"{tidy(first.across)} {proof.x} and {tidy(first.up)} {proof.y}"
    return (
        text,
        f"Example from the first map: is a case with {where} a {answer}? {capital(share)} {used} it.",
        *proved,
    )


def _proved_figure(report: AuditReport) -> tuple[str, ...]:
    """The share that proofs can be written of: that of the first order, which is one of those behind the median."""
    curve = report.curve_of(report.audited.id)
    if curve is None or report.headline not in curve.answers or not curve.first:
        return ()
    at = curve.answers.index(report.headline)
    share = share_range(curve.first[at], curve.first_ceiling[at])
    after = several(report.headline, answer_noun(report.audited))
    return (f"Proofs can be written of the first order of asking: {share} determined after {after}.",)
