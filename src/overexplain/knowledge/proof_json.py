"""The parts of a proof as JSON, and back. What is read may come from anyone: it is refused before any arithmetic.

Rational numbers are strings, "n/d"; long ones in hexadecimal, which takes no time to read. Points are floats, which JSON
keeps exactly.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

from overexplain.errors import CertificateInvalid, InvalidInput
from overexplain.knowledge.branches import DEEPEST, LARGEST_FRAME
from overexplain.knowledge.checker import FACTS, Bound, Branch, Branched, Lemma, Length, Term
from overexplain.log.jsonl.formats import parse_json

LONGEST_NUMBER = 60_000
"""Characters of one rational number: far more than exact solutions for hundreds of features take."""

MOST_DECIMALS = 600
"""Integers with more digits are written in hexadecimal."""

_RATIONAL = re.compile(r"-?(0x[0-9a-f]+|[0-9]+)(/(0x[0-9a-f]+|[0-9]+))?", re.ASCII)
T = TypeVar("T")


def parse_object(text: str | bytes) -> dict[str, Any]:
    """The JSON object that `text` is; CertificateInvalid if it is none."""
    try:
        entry = parse_json(text)
    except json.JSONDecodeError as error:
        raise CertificateInvalid(f"not JSON: {error.msg} at column {error.pos + 1}") from None
    except UnicodeDecodeError as error:
        raise CertificateInvalid(f"not JSON: {error.reason}") from None
    except InvalidInput as error:
        raise CertificateInvalid(f"not a proof: {error}") from None
    if not isinstance(entry, dict):
        raise CertificateInvalid(f"a proof is a JSON object, got {show(entry)}")
    return entry


def refuse_unknown(entry: Any, known: Iterable[str], needed: Iterable[str], what: str) -> dict[str, Any]:
    """The entry, if it is an object with these keys."""
    if not isinstance(entry, dict):
        raise CertificateInvalid(f"{what} must be a JSON object, got {show(entry)}")
    names = set(known)
    if extra := sorted(set(entry) - names):
        raise CertificateInvalid(f"{what} has the unknown key {show(extra[0])}; known are {', '.join(sorted(names))}")
    if lacking := [key for key in needed if key not in entry]:
        raise CertificateInvalid(f"{what} lacks {', '.join(lacking)}")
    return entry


def read_list(entry: Any, what: str, read: Callable[[Any, str], T]) -> tuple[T, ...]:
    """The entries of a list, each read by `read`."""
    if not isinstance(entry, list):
        raise CertificateInvalid(f"{what} must be a list, got {show(entry)}")
    return tuple(read(value, f"{what} {i}") for i, value in enumerate(entry))


def write_rational(value: Fraction) -> str:
    """The number as "n" or "n/d"."""
    below = "" if value.denominator == 1 else f"/{_digits(value.denominator)}"
    return _digits(value.numerator) + below


def _digits(n: int) -> str:
    return str(n) if n.bit_length() < 3.3 * MOST_DECIMALS else f"{n:#x}"


def read_rational(entry: Any, what: str) -> Fraction:
    """The number that `write_rational` wrote."""
    if not isinstance(entry, str) or len(entry) > LONGEST_NUMBER or not _RATIONAL.fullmatch(entry):
        limit = f"; at most {LONGEST_NUMBER} characters" if isinstance(entry, str) and len(entry) > 60 else ""
        raise CertificateInvalid(f'{what} must be a fraction like "3/4", in quotes, got {show(entry)}{limit}')
    above, _, below = entry.partition("/")
    n, d = _integer(above, what), _integer(below or "1", what)
    if d == 0:
        raise CertificateInvalid(f"{what} has the denominator 0")
    return Fraction(n, d)


def _integer(text: str, what: str) -> int:
    try:
        return int(text, 16 if "x" in text else 10)
    except ValueError:  # Python's own limit on decimal digits
        raise CertificateInvalid(f"{what} has too many decimal digits; write long numbers as 0x…") from None


def read_vector(entry: Any, what: str) -> tuple[Fraction, ...]:
    """A list of rational numbers."""
    return read_list(entry, what, read_rational)


def write_vector(values: Sequence[Fraction]) -> list[str]:
    """A list of rational numbers, as strings."""
    return [write_rational(value) for value in values]


def read_point(entry: Any, what: str) -> tuple[float, ...]:
    """A list of finite floats."""
    point = read_list(entry, what, read_float)
    if not point:
        raise CertificateInvalid(f"{what} is empty")
    return point


def read_float(entry: Any, what: str) -> float:
    """A finite float."""
    if type(entry) not in (int, float):
        raise CertificateInvalid(f"{what} must be a number, got {show(entry)}")
    try:
        value = float(entry)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value) or value != entry:
        raise CertificateInvalid(f"{what} must be a float64, got {show(entry)}")
    return value


def read_not_negative(entry: Any, what: str) -> float | None:
    """A finite float ≥ 0, or None."""
    value = None if entry is None else read_float(entry, what)
    if value is not None and value < 0:
        raise CertificateInvalid(f"{what} must not be negative, got {value}")
    return value


def read_row(entry: Any, what: str) -> int:
    """The number of a row."""
    if type(entry) is not int or entry < 0:
        raise CertificateInvalid(f"{what} must be the number of a row, 0 or more, got {show(entry)}")
    return entry


def read_label(entry: Any, what: str) -> int:
    """+1 or −1."""
    if type(entry) is not int or entry not in (1, -1):
        raise CertificateInvalid(f"{what} must be a label, 1 or -1, got {show(entry)}")
    return entry


def write_term(term: Term) -> dict[str, Any]:
    """A term, without what it does not have."""
    entry: dict[str, Any] = {"fact": term.fact, "weight": write_rational(Fraction(term.weight))}
    if term.row is not None:
        entry["row"] = term.row
    if term.sign != 1:
        entry["sign"] = term.sign
    if term.vector is not None:
        entry["vector"] = write_vector(term.vector)
    if term.distance is not None:
        entry["distance"] = term.distance
    if term.of != "distance":
        entry["of"] = term.of
    for name in ("power", "at"):
        if (number := getattr(term, name)) is not None:
            entry[name] = write_rational(Fraction(number))
    if term.index is not None:
        entry["index"] = term.index
    return entry


def read_term(entry: Any, what: str) -> Term:
    """The term that `write_term` wrote."""
    known = ("fact", "weight", "row", "sign", "vector", "distance", "of", "power", "at", "index")
    entry = refuse_unknown(entry, known, ("fact", "weight"), what)
    if entry["fact"] not in FACTS:
        raise CertificateInvalid(f"{what}: there is no fact {show(entry['fact'])}; facts are {', '.join(FACTS)}")
    return Term(
        entry["fact"],
        read_rational(entry["weight"], f"{what}: the weight"),
        read_row(entry["row"], f"{what}: row") if "row" in entry else None,
        read_label(entry["sign"], f"{what}: sign") if "sign" in entry else 1,
        read_vector(entry["vector"], f"{what}: vector") if "vector" in entry else None,
        entry.get("distance"),
        _read_of(entry.get("of", "distance"), f"{what}: of"),
        read_rational(entry["power"], f"{what}: power") if "power" in entry else None,
        read_rational(entry["at"], f"{what}: at") if "at" in entry else None,
        _read_whole(entry["index"], f"{what}: index") if "index" in entry else None,
    )


def _read_of(entry: Any, what: str) -> str:
    if entry not in ("distance", "robustness"):
        raise CertificateInvalid(f"{what} must be distance or robustness, got {show(entry)}")
    return str(entry)


def _read_whole(entry: Any, what: str) -> int:
    if type(entry) is not int or entry < 0:
        raise CertificateInvalid(f"{what} must be a whole number, 0 or more, got {show(entry)}")
    return entry


def write_lemma(lemma: Lemma) -> dict[str, Any]:
    """A lemma."""
    return {"row": lemma.row, "label": lemma.label, "terms": [write_term(term) for term in lemma.terms]}


def read_lemma(entry: Any, what: str) -> Lemma:
    """The lemma that `write_lemma` wrote."""
    entry = refuse_unknown(entry, ("row", "label", "terms"), ("row", "label", "terms"), what)
    terms = read_list(entry["terms"], f"{what}: term", read_term)
    return Lemma(read_row(entry["row"], f"{what}: row"), read_label(entry["label"], f"{what}: label"), terms)


def write_length(length: Length) -> dict[str, Any]:
    """The evidence for a length."""
    parts = [[k, write_rational(amount)] for k, amount in length.parts]
    return {"of": write_vector(length.vector), "parts": parts, "functional": write_vector(length.functional)}


def read_length(entry: Any, what: str) -> Length:
    """The evidence that `write_length` wrote."""
    entry = refuse_unknown(entry, ("of", "parts", "functional"), ("of", "parts", "functional"), what)

    def part(pair: Any, name: str) -> tuple[int, Fraction]:
        if not isinstance(pair, list) or len(pair) != 2:
            raise CertificateInvalid(f"{name} must be [corner, amount], got {show(pair)}")
        return read_row(pair[0], name), read_rational(pair[1], name)

    return Length(
        read_vector(entry["of"], f"{what}: of"),
        read_list(entry["parts"], f"{what}: part", part),
        read_vector(entry["functional"], f"{what}: functional"),
    )


def write_branches(branched: Branched) -> dict[str, Any]:
    """A proof by cases as a list of branches, each before its parts: however deep they go, the JSON does not."""
    frame = {"frame": [write_vector(vector) for vector in branched.frame]} if branched.frame else {}
    return {"row": branched.row, **frame, "list": [_write_branch(branch) for branch in branched.walk()]}


def _write_branch(branch: Branch) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    if branch.bounds:
        entry["bounds"] = [_write_bound(bound) for bound in branch.bounds]
    if branch.index is not None:
        entry["index"] = branch.index
    if branch.value is not None:
        entry["value"] = write_rational(Fraction(branch.value))
    if branch.corners is not None:
        entry["corners"] = branch.corners
    if branch.parts:
        entry["parts"] = len(branch.parts)
    if branch.terms:
        entry["terms"] = [write_term(term) for term in branch.terms]
    return entry


def _write_bound(bound: Bound) -> dict[str, Any]:
    value, terms = write_rational(Fraction(bound.value)), [write_term(term) for term in bound.terms]
    return {"index": bound.index, "sign": bound.sign, "value": value, "terms": terms}


def read_branches(entry: Any, what: str) -> Branched:
    """The proof by cases that `write_branches` wrote."""
    entry = refuse_unknown(entry, ("row", "list", "frame"), ("row", "list"), what)
    frame = read_list(entry["frame"], f"{what}: frame vector", read_vector) if "frame" in entry else ()
    if "frame" in entry and not 0 < len(frame) <= LARGEST_FRAME:
        raise CertificateInvalid(f"{what}: a frame has 1 to {LARGEST_FRAME} vectors, got {len(frame)}")
    waiting: list[tuple[Branch, int]] = []  # with how deep it goes
    for branch, parts in reversed(read_list(entry["list"], f"{what}: branch", _read_branch)):
        if parts > len(waiting):
            raise CertificateInvalid(f"{what}: a branch says that it has {parts} parts, but {len(waiting)} are left")
        inner = [waiting.pop() for _ in range(parts)]
        depth = max((depth + 1 for _, depth in inner), default=0)
        if depth > DEEPEST:
            raise CertificateInvalid(f"{what}: nested over {DEEPEST} deep")
        waiting.append((replace(branch, parts=tuple(part for part, _ in inner)), depth))
    if len(waiting) != 1:
        raise CertificateInvalid(
            f"{what} must be one branch and its parts, got {len(waiting)} that are no part of another"
        )
    return Branched(read_row(entry["row"], f"{what}: row"), waiting[0][0], frame)


def _read_branch(entry: Any, what: str) -> tuple[Branch, int]:
    """A branch without its parts, and how many they are."""
    entry = refuse_unknown(entry, ("bounds", "index", "value", "corners", "parts", "terms"), (), what)
    branch = Branch(
        read_list(entry.get("terms", []), f"{what}: term", read_term),
        read_list(entry.get("bounds", []), f"{what}: bound", _read_bound),
        _read_whole(entry["index"], f"{what}: index") if "index" in entry else None,
        read_rational(entry["value"], f"{what}: value") if "value" in entry else None,
        read_row(entry["corners"], f"{what}: corners") if "corners" in entry else None,
    )
    return branch, _read_whole(entry.get("parts", 0), f"{what}: parts")


def _read_bound(entry: Any, what: str) -> Bound:
    known = ("index", "sign", "value", "terms")
    entry = refuse_unknown(entry, known, known, what)
    return Bound(
        _read_whole(entry["index"], f"{what}: index"),
        read_label(entry["sign"], f"{what}: sign"),
        read_rational(entry["value"], f"{what}: value"),
        read_list(entry["terms"], f"{what}: term", read_term),
    )


def read_assumed(entry: Any, what: str) -> tuple[int, int]:
    """[row, label]."""
    if not isinstance(entry, list) or len(entry) != 2:
        raise CertificateInvalid(f"{what} must be [row, label], got {show(entry)}")
    return read_row(entry[0], what), read_label(entry[1], what)


def show(value: Any) -> str:
    """A short text of any JSON value."""
    if isinstance(value, str) and len(value) > 60:
        value = value[:57] + "..."
    try:
        text = json.dumps(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, or lists in lists in lists
        text = "something very long"
    return text if len(text) <= 80 else text[:77] + "..."
