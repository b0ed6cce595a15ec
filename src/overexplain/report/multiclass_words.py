"""The audit of a model of several classes in plain words: what every rendering says, so that they all say the same."""

from __future__ import annotations

from overexplain.auditing.multiclass_report import ClassesService, Copies, MulticlassReport
from overexplain.report.audit_text import capital, several, tidy
from overexplain.report.audit_words import Number
from overexplain.report.words import counted, percent, small

MOST_NAMED = 6


def title(report: MulticlassReport) -> str:
    """The verdict, without a full stop: 'Three explanations and 43 decisions give this model away'."""
    found = report.audited
    if found.explanations is None or found.labels is None:
        return "The attack tried does not give this model away"
    spent = several(found.explanations, "explanation")
    spent += f" and {several(found.labels, 'decision')}" if found.labels else ""
    what = "part of this model" if found.unreached else "this model"
    return f"{capital(spent)} give{'s' * (found.requests == 1)} {what} away"


def eyebrow(report: MulticlassReport) -> str:
    """What was audited, above the title."""
    subject = report.subject
    parts = [
        tidy(subject.model),
        counted(len(subject.classes), "class").replace("classs", "classes"),
        counted(len(subject.features), "feature"),
        tidy(subject.data),
    ]
    return f"overexplain audit. {', '.join(parts)}."


def lead(report: MulticlassReport) -> str:
    """What the verdict means, in one to three sentences."""
    found = report.audited
    if found.failed is not None:
        return f"Not found is not impossible. {sentence(found.failed)}"
    sentences = ["Whoever asks them well can compute the score of every class, up to what no decision depends on."]
    if found.unreached:
        sentences = [f"Nothing is known about {_named(found.unreached)}: no answer ever gave such a class."]
    if found.cases.rebuilt is not None and found.box.rebuilt is not None:
        pairs = ((getattr(found.cases, kind), getattr(found.box, kind)) for kind in ("rebuilt", "trained", "floor"))
        rebuilt, trained, floor = (f"{percent(cases)} and {percent(box)}" for cases, box in pairs)
        sentences.append(
            f"Of the cases, and of random ones in their range, the rebuilt model decides {rebuilt} alike; softmax regression "
            f"trained on as many decisions {trained}; always answering the commonest class {floor}."
        )
    return " ".join(sentences)


def three_numbers(report: MulticlassReport) -> tuple[Number, ...]:
    """Answers until the model is known, what the copy is worth, and how many classes it has; what is missing is left out."""
    found, numbers = report.audited, []
    if found.requests is not None:
        spent = f"{counted(found.explanations or 0, 'explanation')} and {counted(found.labels or 0, 'decision')}."
        numbers.append(
            Number(
                "requests",
                found.requests,
                f"{found.requests:,}",
                "",
                "answers until the model is known",
                f"{spent} {minimum_sentence(found)}",
                f"minimum {counted(found.minimum, 'explanation')}",
            )
        )
    best, whose = found.box.rebuilt, "the rebuilt model"
    if best is None:
        best, whose = found.box.trained, "a trained copy"
    floor = f"The commonest class alone: {percent(found.box.floor)}."
    numbers.append(
        Number(
            "agreement",
            best,
            percent(best).removesuffix(" %"),
            "%",
            f"of random cases decided alike by {whose}",
            f"{counted(found.box.points, 'point')} in the range of the cases. {floor}",
            f"a constant answer: {percent(found.box.floor)}",
        )
    )
    total = len(report.subject.classes)
    if found.failed is None:
        reached = total - len(found.unreached)
        detail = f"Never given by any answer: {_named(found.unreached)}." if found.unreached else "All of them."
        numbers.append(Number("classes", reached, f"{reached} of {total}", "", "classes known", detail))
    return tuple(numbers)


def minimum_sentence(service: ClassesService) -> str:
    """What the minimum says, and about whom."""
    least = counted(service.minimum, "explanation")
    if service.minimum_of == "any attack":
        return f"No attack can do with fewer than {least}."
    return f"Where an explanation lies is one equation; with nothing else it takes {least}."


def curve_paragraph() -> str:
    """What the curve shows."""
    return (
        "Training learns the decisions about ordinary cases soon and the model late. An explanation lies on a boundary, and "
        "equations use that to the last digit. The lines show softmax regression trained on decisions about ordinary cases, "
        "the rings what the equations give at the end of each attack."
    )


def premises(report: MulticlassReport) -> list[tuple[str, str]]:
    """What the numbers rest on."""
    subject = report.subject
    classes = ", ".join(
        f"{tidy(name)}: {percent(share)}"
        for name, share in list(zip(subject.classes, subject.shares, strict=True))[:MOST_NAMED]
    )
    more = f" and {len(subject.classes) - MOST_NAMED} more" if len(subject.classes) > MOST_NAMED else ""
    left_out = f", {counted(subject.cases_left_out, 'row')} left out" if subject.cases_left_out else ""
    return [
        ("The attacker", "chooses the questions, knows cases like these and the distance, and asks for any class."),
        ("The service", "answers exactly: the nearest point of the class asked for, to the last digits."),
        ("Classes", f"share of the cases that gets each class. {classes}{more}."),
        ("Cases", f"{tidy(subject.data)}, {counted(subject.cases, 'case')}{left_out}; distances are counted in "
         + ("the data's own units." if subject.units == "as given" else "standard deviations of the data.")),
        ("Known", "up to a common linear function and one positive factor of all scores: no decision depends on them."),
        *((f"Under {tidy(s.short)}", " ".join(sentence(note) for note in s.assumptions)) for s in report.services if s.assumptions),
    ]  # fmt: skip


def table(report: MulticlassReport) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The head and the rows of the table of services; shares are of the rebuilt model, a trained copy, a constant answer."""
    head = ("Service", "Explanations", "Decisions", "Minimum", "Angle error", "Cases alike", "Random cases alike")
    rows: list[tuple[str, ...]] = []
    for found in report.services:
        name = tidy(found.name) + ("" if found.role == "comparison" else ", audited")
        spent = ("not found", "–") if found.failed is not None else (_count(found.explanations), _count(found.labels))
        error = "–" if found.error is None else small(found.error, 1)
        rows.append((name, *spent, _count(found.minimum), error, _shares(found.cases), _shares(found.box)))
    return head, rows


def curve_table(report: MulticlassReport) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The head and the rows of what training alone learns."""
    curve = report.curve
    rows: list[tuple[str, ...]] = [
        (f"{n:,}", percent(cases), percent(box))
        for n, cases, box in zip(curve.answers, curve.cases, curve.box, strict=True)
    ]
    return ("Decisions", "Cases alike", "Random alike"), rows


def sentence(text: str) -> str:
    """A note as a sentence: a capital letter, a full stop."""
    text = tidy(text, 400)
    return capital(text) + "." * (not text.endswith((".", "…")))


def _named(names: tuple[str, ...]) -> str:
    shown = ", ".join(tidy(name) for name in names[:MOST_NAMED])
    return shown + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")


def _count(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


def _shares(copies: Copies) -> str:
    rebuilt = "–" if copies.rebuilt is None else percent(copies.rebuilt)
    return f"{rebuilt} / {percent(copies.trained)} / {percent(copies.floor)}"
