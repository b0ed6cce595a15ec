"""A proof in one line for people. It rounds and leaves out; what counts is what `verify` checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from overexplain.knowledge.checker import Branched, Lemma, Term
from overexplain.knowledge.verdicts import Verdict

MOST_TERMS = 12
Form = tuple[str, str]
"""What stands before and after a number."""

NAMES = {Verdict.YES: "Yes", Verdict.NO: "No", Verdict.BOUNDARY: "Boundary", None: "0"}


def certificate_in_a_line(
    verdict: Verdict | None,
    terms: Sequence[Term],
    labels: Mapping[int, int | None],
    lemmas: Sequence[Lemma] = (),
    assumed: Sequence[tuple[int, int]] = (),
    distances: Mapping[int, Any] | None = None,
    robust: Mapping[int, Any] | None = None,
) -> str:
    """The point as a combination of rows: 'Yes = 1.4 · row 3 − 0.4 · row 7'. `robust` are the rows of robust explanations.

    >>> terms = [Term("side", Fraction(7, 5), 3), Term("plane", Fraction(2, 5), 7, sign=-1)]
    >>> certificate_in_a_line(Verdict.YES, terms, {3: 1, 7: None})
    'Yes = 1.4 · row 3 − 0.4 · explanation of row 7'
    """
    known = {**labels, **{lemma.row: lemma.label for lemma in lemmas}, **dict(assumed)}
    # The terms of a No add up to −(x, −1).
    sign = -1 if verdict == Verdict.NO else 1
    amounts: dict[Form, Fraction] = {}
    for term in terms:
        norms = (robust if term.of == "robustness" else distances) or {}
        amount, form = _share(term, known.get(term.row or 0), norms.get(term.row or 0), term.row in (robust or {}))
        amounts[form] = amounts.get(form, Fraction(0)) + sign * amount
    line = f"{NAMES[verdict]} = {_sum([(amount, form) for form, amount in amounts.items() if amount])}"
    return line + _notes(lemmas, assumed)


def cases_in_a_line(
    verdict: Verdict | None,
    branched: Branched,
    lemmas: Sequence[Lemma] = (),
    assumed: Sequence[tuple[int, int]] = (),
) -> str:
    """How many cases it takes and which rows they rest on: 'Yes by 7 cases from rows 0, 2'."""
    rows, cases = sorted(branched.rows), branched.leaves
    named = ", ".join(map(str, rows[:MOST_TERMS])) + (
        f", … ({len(rows) - MOST_TERMS} more)" if rows[MOST_TERMS:] else ""
    )
    count = "1 case" if cases == 1 else f"{cases:,} cases"
    return f"{NAMES[verdict]} by {count} from row{'s' if rows[1:] else ''} {named}" + _notes(lemmas, assumed)


def _notes(lemmas: Sequence[Lemma], assumed: Sequence[tuple[int, int]]) -> str:
    notes = [f"taking row {row} as Yes" for row, _ in assumed]
    notes += [f"row {lemma.row} is proved {'Yes' if lemma.label > 0 else 'No'}" for lemma in lemmas]
    return f" ({'; '.join(notes)})" if notes else ""


def disagreement_in_a_line(
    yes: tuple[Sequence[Fraction], Fraction],
    no: tuple[Sequence[Fraction], Fraction],
    assumed: Sequence[tuple[int, int]] = (),
) -> str:
    """Two models: 'Unknown: Yes where 1·x0 ≥ 1, No where 1·x0 < 3'."""
    sides = [_sum([(a, ("", f"·x{i}")) for i, a in enumerate(normal) if a]) for normal, _ in (yes, no)]
    note = "".join(f" (taking row {row} as Yes)" for row, _ in assumed)
    return f"Unknown: Yes where {sides[0]} ≥ {_short(yes[1])}, No where {sides[1]} < {_short(no[1])}{note}"


def _share(term: Term, label: int | None, norm: Any, is_robust: bool) -> tuple[Fraction, Form]:
    """What the term adds to a·x − b: how much, and of what."""
    y = label or 1
    match term.fact:
        case "side" | "reach":
            return y * term.weight, ("", f" · row {term.row}")
        case "plane":
            return (-y if is_robust else 1) * term.sign * term.weight, ("", f" · explanation of row {term.row}")
        case "flips":
            return -y * term.weight, ("", f" · explanation of row {term.row}")
        case "steepest":
            return -y * term.weight, ("", f" · step of row {term.row}")
        case "entry":
            return -y * term.weight, ("", f" · entry {term.index} of the step of row {term.row}")
        case "ray":
            return term.weight * _largest(term), ("rest ", f" (level with the step of row {term.row})")
        case "chord" | "arc":
            return term.weight * _largest(term), ("rest ", f" (robustness of row {term.row})")
        case _:
            spec = term.distance if term.row is None else norm
            name = str(spec.get("norm") if isinstance(spec, dict) else spec)
            # It may come from a file that nobody has verified yet.
            return term.weight * _largest(term), ("rest ", f" ({''.join(filter(str.isprintable, name[:40]))})")


def _largest(term: Term) -> Fraction:
    """The size of a vector, for people: its largest entry, whatever the distance."""
    return max((abs(v) for v in term.vector or ()), default=Fraction(0))


def _sum(parts: Sequence[tuple[Fraction, Form]]) -> str:
    if not parts:
        return "0"
    text = ""
    for k, (amount, (before, after)) in enumerate(parts[:MOST_TERMS]):
        joint = ("−" if amount < 0 else "") if k == 0 else (" − " if amount < 0 else " + ")
        text += joint + before + _short(abs(amount)) + after
    left_out = len(parts) - MOST_TERMS
    return text + (f" + … ({left_out} more)" if left_out > 0 else "")


def _short(number: Any) -> str:
    try:
        return f"{float(number):.4g}".replace("-", "−")
    except OverflowError:
        return "over 1e308"
