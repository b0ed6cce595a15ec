"""The words of findings and of advice. A code that this version does not know still gives a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from overexplain.auditing.audit_report import AuditReport, Finding
from overexplain.report.audit_sections import answer_noun, by_rank, service_name, unsettled
from overexplain.report.audit_text import angle, capital, exact_percent, inside, number_in_words, several, tidy
from overexplain.report.words import counted, percent, share_range

Words = Callable[[AuditReport, Finding], str]


def _always(words: Words) -> Words:
    """The words; of a finding whose values are not those of its code, its code and its values."""

    @wraps(words)
    def said(report: AuditReport, finding: Finding) -> str:
        try:
            return words(report, finding)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return _unknown(finding)

    return said


@_always
def finding_sentence(report: AuditReport, finding: Finding) -> str:
    """What the numbers say, in one or two sentences."""
    values: Mapping[str, Any] = finding.values
    match finding.code:
        case "determined-wrongly":
            wrong = counted(values["decisions"], "determined decision")
            return f"{wrong} contradicted the model: the service does not keep to its terms, and no share here can be relied on."
        case "terms-broken":
            broken = (
                f"in {values['orders']:,} of {counted(values['of'], 'order')} the answers broke the published terms"
            )
            return f"{capital(_service(report, values['service']))}: {broken}; only their decisions are used there."
        case "undecided":
            left = percent(values["share"])
            name = capital(_service(report, values["service"]))
            return (
                f"{name}: up to {left} of the judged cases were left unsettled by a limit; they may be determined, too."
            )
        case "known-after":
            return _known_after(report, values)
        case "never-known":
            name = capital(_service(report, values["service"]))
            return f"{name}: no attack tried rebuilt the model. Not found is not impossible."
        case "seldom-known":
            name = capital(_service(report, values["service"]))
            runs, fewest = counted(values["runs"], "run"), counted(values["fewest"], "request")
            return f"{name}: fewer than half of {runs} rebuilt the model, the cheapest with {fewest}."
        case "explanations-vs-decisions":
            verb = "determines" if values["decisions"] == 1 else "determine"
            plain = capital(several(values["decisions"], "plain decision"))
            plain += f" {verb} {_share(values, 'decisions_share', 'decisions_at_most')} of the rest"
            ones = "one determines" if values["answers"] == 1 else "ones determine"
            return f"{plain}; {number_in_words(values['answers'])} explained {ones} {_share(values)}."
        case "all-at-once":
            return f"{capital(_service(report, values['service']))} gives everything away at the first answer."
        case "variant-changes-little":
            name, share = capital(_service(report, values["service"])), _share(values)
            after, audited = several(values["answers"], "answer"), _share(values, "audited", "audited_at_most")
            return f"{name} changes little: {share} instead of {audited} after {after}."
        case "pooled-letters":
            return _pooled(report, values)
        case "defences-broken":
            return _broken(values)
        case "labels-floor":
            most = counted(values["requests"], "answer")
            none = (
                f"None of the {several(values['compared'], 'defence')}"
                if values["compared"] > 1
                else "The defence tried never"
            )
            return f"{none} made an attacker who may also ask for decisions pay more than {most}."
        case _:
            return _unknown(finding)


@_always
def advice_sentence(report: AuditReport, finding: Finding) -> str:
    """What to do, in one to three sentences."""
    values: Mapping[str, Any] = finding.values
    match finding.code:
        case "quota":
            kind = f"{answer_noun(report.service(values['service']))}s"
            kept = f"that kept the share determined at or under {exact_percent(values['target'])} in every order tried"
            return (
                f"Cap {kind} at {values['answers']:,}{_of(report, values)} over all clients together: {kept}. "
                f"Whoever chooses the questions may learn more than ordinary cases reveal.{_open(report, values)}"
            )
        case "quota-zero":
            kind = f"{answer_noun(report.service(values['service']))}s"
            more = f"already determines more than {exact_percent(values['target'])}"
            few = f"The smallest number of {kind} tried{_of(report, values)} {more}"
            return f"{few}: no quota that was tried is small enough; change what is answered instead."
        case "quota-unsettled":
            kind = f"{answer_noun(report.service(values['service']))}s"
            wanted = f"keeps the share at or under {exact_percent(values['target'])}"
            which = f"Which number of {kind}{_of(report, values)} {wanted} is not known, so no quota is suggested"
            sure = "" if not values["answers"] else f"; {values['answers']:,} {_is(values['answers'])} sure to"
            return f"{which}: a limit left too many cases unsettled{sure}."
        case "quota-not-reached":
            kind = counted(values["answers"], answer_noun(report.service(values["service"])))
            under = f"stayed at or under {exact_percent(values['target'])}"
            tried = f"{capital(kind)}{_of(report, values)}, the most that was tried, {under}"
            return f"{tried}; measure more before allowing more.{_open(report, values)}"
        case "quota-does-not-bind":
            enough = counted(values["adaptive"], "answer")
            return f"The quota{_of(report, values)} stops ordinary cases only: whoever chooses the questions needs {enough}."
        case "quota-over-all-clients":
            return "A cap per client does not help, since clients can pool what they were told."
        case "best-defence":
            return _best(report, values)
        case "no-defence-held":
            none = (
                f"None of the {several(values['compared'], 'defence')}" if values["compared"] > 1 else "Not one defence"
            )
            return (
                f"{none} tried held at a small price for the applicant: rely on a quota or on another kind of answer."
            )
        case "harmful-defence":
            more = values["requests"] - values["undefended"]
            cost = f"costs the attacker {several(more, 'answer')} more" if more > 0 else "costs the attacker nothing"
            return f"Do not rely on “{tidy(values['name'])}”: it makes {percent(values['invalid'])} of the advice wrong and {cost}."
        case "other-distance":
            own, other = counted(values["answers"], "answer"), counted(values["other_answers"], "answer")
            return f"Explain by {_service(report, values['other'])}: that took {other} to rebuild, the audited service {own}."
        case "decisions-on-real-cases":
            price = f"{counted(values['requests'], 'answer')} {'was' if values['requests'] == 1 else 'were'} enough"
            within = "" if values["accuracy"] is None else f" to within {angle(values['accuracy'])}"
            return (
                f"Give decisions only on real, authenticated cases. On made-up ones {price} to know the model{within}."
            )
        case _:
            return _unknown(finding)


def _service(report: AuditReport, id: str) -> str:
    return inside(service_name(report.service(id)))


def _of(report: AuditReport, values: Mapping[str, Any]) -> str:
    """Which service is meant, where several were asked for."""
    several_audited = sum(service.role != "comparison" for service in report.services) > 1
    return f" ({_service(report, values['service'])})" if several_audited else ""


def _open(report: AuditReport, values: Mapping[str, Any]) -> str:
    return unsettled(report.curve_of(values["service"]))


def _known_after(report: AuditReport, values: Mapping[str, Any]) -> str:
    row = report.known_of(values["service"])
    noun = "answer" if row is None or row.explanations else "decision"
    rebuilt = f"{capital(_service(report, values['service']))}: {several(values['answers'], noun)} rebuilt the model"
    by = "" if row is None else by_rank(report, row)
    if values["minimum"] == values["answers"]:
        whole = " for the whole model" * bool(by)
        return f"{rebuilt}, and it is proven that no method needs fewer{whole}.{by}"
    return rebuilt + ("." if values["minimum"] is None else f"; the proven minimum is {values['minimum']:,}.") + by


def _pooled(report: AuditReport, values: Mapping[str, Any]) -> str:
    verb = "determines" if values["letters"] == 1 else "determine"
    noun = "letter" if report.service(values["service"]).explains else "refusal"
    share = f"{_share(values, most='at_most')} of the other decisions"
    letters = f"{several(values['letters'], noun)} to denied applicants{_of(report, values)}"
    text = f"Customers who pool what they were told: {letters} {verb} {share}."
    if values["known_at"] is None:
        return text
    return f"{text} After {several(values['known_at'], noun)} one model alone was left, in the median order."


def _broken(values: Mapping[str, Any]) -> str:
    cost = "costs" if values["broken"] == 1 else "cost"
    most = f"at most {counted(values['requests'], 'answer')} instead of {values['undefended']:,}"
    names = "; ".join(inside(tidy(name)) for name in values["names"].split("; ")[:12])
    which = f"{capital(number_in_words(values['broken']))} of {several(values['compared'], 'defence')}"
    return f"{which} {cost} the attacker {most}: {names}."


def _best(report: AuditReport, values: Mapping[str, Any]) -> str:
    longer = values["length"] - 1
    grows = f"the advice grows by {'less than 1' if longer < 0.01 else f'{100 * longer:.0f}'} %"
    valid = "stays valid" if values["invalid"] == 0 else f"{percent(values['invalid'])} of it is wrong"
    start = f"If more must be answered, “{tidy(values['name'])}” is the best defence tried: {grows}, {valid}, and"
    if values["requests"] is not None:
        instead = f"{values['requests']:,} instead of {counted(values['undefended'], 'answer')}"
        return f"{start} the attack on explanations alone took {instead}."
    limit = counted(report.defences.limit, "answer") if report.defences is not None else "the limit"
    return f"{start} none of the attacks tried on explanations alone succeeded within {limit}; that is not a proof."


def _share(values: Mapping[str, Any], name: str = "share", most: str = "share_at_most") -> str:
    """A share with what it may be, where the finding says so."""
    return share_range(values[name], values.get(most))


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _unknown(finding: Finding) -> str:
    values = ", ".join(f"{tidy(name)} = {tidy(str(value))}" for name, value in finding.values.items())
    return f"{capital(tidy(finding.code).replace('-', ' '))}{f' ({values})' if values else ''}."
