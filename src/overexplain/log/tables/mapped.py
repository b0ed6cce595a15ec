"""Which column of a table, or which key of a record, is what: by its own name, or by a mapping."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from overexplain.errors import InvalidInput
from overexplain.log.rows import feature_names, repeated

SHORT = {"y": "label", "t": "time", "cf": "explanation"}
KEYS = ("label", "client", "time", "source", "status", "mechanism", "explanation", "x", "yes")
"""What a mapping may say: the column of each, the features (x), and which label means Yes."""

OPTIONAL = ("label", "status", "mechanism", "client", "time", "source")
PREFIX = "cf_"
MOST_NAMED = 20
"""So many names are told, or looked for among those that are alike."""


@dataclass(frozen=True)
class Columns:
    """Which column is which; `features` None: all that are nothing else. `yes`: the label that means Yes, if not ±1.

    `prefix` is what the names of explanations' columns begin with, or the whole name of one that holds vectors; one
    feature alone may be such a column, too. `answers` are the explanations' columns one by one, in the order of the
    features, where they are named so. `explains`: the mapping says where explanations are, so that there must be some.
    `known` are the names of a vector's entries, where a model says them.
    """

    names: Mapping[str, str]
    features: tuple[str, ...] | None
    prefix: str = PREFIX
    yes: str | None = None
    known: tuple[str, ...] | None = None
    answers: tuple[str, ...] | None = None
    explains: bool = False

    def of(self, key: str) -> str:
        """The column for a key."""
        return self.names.get(key, key)

    def as_mapping(self) -> dict[str, Any] | None:
        """The mapping that says the same; None if it would say nothing."""
        long = {name: short for short, name in SHORT.items()}
        found: dict[str, Any] = {long.get(key, key): name for key, name in self.names.items()}
        if self.explains:
            found["cf"] = self.prefix if self.answers is None else list(self.answers)
        found |= {} if self.yes is None else {"yes": self.yes}
        return (found | ({} if self.features is None else {"x": list(self.features)})) or None

    @property
    def is_plain(self) -> bool:
        """Whether no name differs from ours (the features may be given)."""
        return not self.names and self.yes is None and self.prefix == PREFIX and self.answers is None

    def answers_to(self, features: Sequence[str]) -> list[str]:
        """The explanations' columns for these features."""
        if self.answers is None:
            return [self.prefix + name for name in features]
        if len(self.answers) != len(features):
            raise InvalidInput(
                f"cf names {len(self.answers)} columns, there are {len(features)} features: name one for each, in their "
                "order, or what all their names begin with (cf=why_)"
            )
        return list(self.answers)

    def finds_explanations(self, given: Sequence[str]) -> bool:
        """True if one of the columns holds explanations, or nothing was said about where they are."""
        features = given if self.features is None else self.features
        return not self.explains or not {self.prefix, *(self.answers or self.answers_to(features))}.isdisjoint(given)

    def without_explanations(self, given: Sequence[str]) -> InvalidInput:
        """The error about a mapping that names explanations where there are none."""
        features = self.features or tuple(given)
        said = [self.prefix] if self.answers is None else list(self.answers)
        sought = said if self.answers is not None else [*said, *(self.prefix + name for name in features[:MOST_NAMED])]
        free = [name for name in given if name not in (*(self.features or ()), *self.names.values())]
        near = dict.fromkeys(name for one in sought for name in get_close_matches(one, free, n=1))
        there = f"nearest: {_listed(list(near))}" if near else f"it has {_listed(given)}"
        return InvalidInput(
            f"cf={'+'.join(said)} matches no column; {there}. Say what the names of explanations' columns begin with "
            "(cf=why_), name them in the order of the features (cf=a+b), or name one column of lists"
        )

    def wanted(self, given: Sequence[str]) -> list[str]:
        """The columns that are read, of those there are; if the features are not named, all.

        Raises if one that is named is not there.
        """
        there = set(given)
        # Records may bring explanations later: none of them is no slip here.
        answers = () if self.answers is None or there.isdisjoint(self.answers) else self.answers
        if missing := [name for name in (*(self.features or ()), *self.names.values(), *answers) if name not in there]:
            raise InvalidInput(
                f"no column for {', '.join(map(repr, missing))}; it has {', '.join(map(repr, given))}"
                f"{nearly(missing, given)}"
            )
        if self.features is None:
            return list(given)
        kept = {*self.features, self.prefix, *(self.answers or self.answers_to(self.features)), *map(self.of, OPTIONAL)}
        return [name for name in given if name in kept]


def as_columns(mapping: Mapping[str, Any] | None, features: Sequence[str] | None = None) -> Columns:
    """The columns that a mapping names; `features` are those of a model, if there is one with names.

    >>> as_columns({"client": "client_id", "y": "decision"}).of("label")
    'decision'
    """
    given = {SHORT.get(key, key): value for key, value in (mapping or {}).items()}
    if len(given) != len(mapping or {}):
        raise InvalidInput(f"the mapping names something twice: {', '.join(mapping or {})}")
    if unknown := [key for key in given if key not in KEYS]:
        known = ", ".join((*SHORT, *KEYS))
        raise InvalidInput(f"a mapping says which column is what; unknown: {', '.join(unknown)}; known are {known}")
    model = None if features is None else feature_names(features)
    x = given.pop("x", model)
    x = [x] if isinstance(x, str) else x
    explains = "explanation" in given
    prefix, yes = given.pop("explanation", PREFIX), given.pop("yes", None)
    answers = None
    if isinstance(prefix, list | tuple):
        answers, prefix = (feature_names(prefix), PREFIX) if len(prefix) != 1 else (None, prefix[0])
    texts = {**given, "explanation": prefix} | ({} if yes is None else {"yes": yes})
    if wrong := [key for key, value in texts.items() if not (isinstance(value, str) and value)]:
        raise InvalidInput(f"a mapping gives one text each, the name of a column; not so: {', '.join(wrong)}")
    if twice := repeated([*given.values(), *(answers or ())]):
        raise InvalidInput(f"one column cannot be two things: {twice}")
    return Columns(given, None if x is None else feature_names(x), prefix, yes, model, answers, explains)


def nearly(missing: Sequence[str], given: Sequence[str]) -> str:
    """What to say of names that are there up to spaces, case or the way accents are written; '' if there are none.

    >>> nearly(["Income"], ["age", "income "])
    "; names are compared character by character: 'Income' is not 'income '"
    """
    alike = {_folded(name): name for name in given}
    close = [(name, alike[_folded(name)]) for name in missing if _folded(name) in alike]
    pairs = ", ".join(f"{name!a} is not {other!a}" for name, other in close)
    return f"; names are compared character by character: {pairs}" if close else ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(map(repr, names[:MOST_NAMED])) + more


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold().strip()
