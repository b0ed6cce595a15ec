"""What an audit is to do, from a policy file and the command line together; the command line wins.

A policy is TOML with one table::

    [audit]
    services = ["l1", "l1; robust=l2:0.1"]
    fail_on = ["determined@200>60%", "answers-to-extract<20"]
    target = "60%"
    seed = 0

Every entry has the name of an option of `overexplain audit` and of an argument of `audit`; docs/policy.md lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any

from overexplain._toml import read_toml
from overexplain.errors import InvalidInput

MOST_SEED = 2**32 - 1


@dataclass(frozen=True)
class Policy:
    """What may stand in a policy file; None: not said, so the default holds."""

    services: tuple[str, ...] | None = None
    fail_on: tuple[str, ...] | None = None
    target: float | None = None
    standardize: bool | None = None
    compare: bool | None = None
    defences: bool | None = None
    maps: int | None = None
    orders: int | None = None
    judged: int | None = None
    answers: tuple[int, ...] | None = None
    seed: int | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `audit` that were said."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in values if value is not None}

    def over(self, other: Policy) -> Policy:
        """This policy, with the other one where this says nothing: `command_line.over(file)`."""
        return replace(other, **self.options)

    def as_options(self) -> list[str]:
        """The same as words of a command line.

        >>> Policy(services=("l1",), target=0.6, standardize=True, maps=0).as_options()
        ['--service', 'l1', '--target', '0.6', '--standardize', '--maps', '0']
        """
        words: list[str] = []
        for name, value in self.options.items():
            option = "--" + {"services": "service"}.get(name, name).replace("_", "-")
            if isinstance(value, bool):
                words.append(option if value else option.replace("--", "--no-", 1))
            elif isinstance(value, tuple) and name != "answers":
                words += [word for text in value for word in (option, text)]
            else:
                words += [option, ",".join(map(str, value)) if isinstance(value, tuple) else str(value)]
        return words


def read_policy(path: Path) -> Policy:
    """The policy in a TOML file; InvalidInput says which entry cannot be used, and why."""
    return as_policy(read_toml(path, "policy"), str(path))


def as_policy(entries: Mapping[str, Any], where: str = "policy") -> Policy:
    """The policy of a table with one entry `audit`."""
    _refuse_unknown(entries, ["audit"], where, "table")
    table = entries.get("audit")
    if not isinstance(table, dict):
        came = "is missing" if table is None else f"is {_kind(table)}"
        raise InvalidInput(f"{where}: the table [audit] {came}; see docs/policy.md for an example")
    _refuse_unknown(table, list(_READ), f"{where}, [audit]", "entry")
    return Policy(**{key: _READ[key](value, f"{where}, [audit] {key}") for key, value in table.items()})


def read_target(value: Any, where: str = "target") -> float:
    """A share strictly between 0 and 1, from a number or a text with '%'.

    >>> read_target("60%"), read_target(" 57.5 % "), read_target(0.6), read_target("0.6")
    (0.6, 0.575, 0.6, 0.6)
    """
    share: Fraction | None = None
    text = value.replace(" ", "") if isinstance(value, str) else "" if isinstance(value, bool) else str(value)
    number = text.removesuffix("%")
    if len(text) <= 30 and number.isascii() and number.replace(".", "", 1).isdigit():
        share = Fraction(number) / (100 if text.endswith("%") else 1)
    if share is None or not 0 < share < 1:
        percent = f" (write '{number}%' for percent)" if share is not None and not text.endswith("%") else ""
        raise InvalidInput(f"{where} is a share between 0 and 1, such as '60%' or 0.6, not {_shown(value)}{percent}")
    return float(share)


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(text, str) and text.strip() for text in value):
        raise InvalidInput(f'{where} is a list of texts, such as ["l1"], not {_shown(value)}')
    return tuple(value)


def _some_texts(value: Any, where: str) -> tuple[str, ...]:
    texts = _texts(value, where)
    if not texts:
        raise InvalidInput(f'{where} is empty; name at least one, e.g. ["l1"], or leave the entry out')
    return texts


def _gates(value: Any, where: str) -> tuple[str, ...]:
    from overexplain.auditing.gates import parse_gate

    texts = _texts(value, where)
    for text in texts:
        try:
            parse_gate(text)
        except InvalidInput as error:
            raise InvalidInput(f"{where}: {error}") from None
    return texts


def _services(value: Any, where: str) -> tuple[str, ...]:
    from overexplain.oracles.services import Service

    texts = _some_texts(value, where)
    for text in texts:
        try:
            Service.parse(text)
        except InvalidInput as error:
            raise InvalidInput(f"{where}: {error}") from None
    return texts


def _yes_or_no(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{where} is true or false, not {_shown(value)}")
    return value


def _whole(least: int, most: int | None = None) -> Callable[[Any, str], int]:
    def read(value: Any, where: str) -> int:
        if (
            isinstance(value, bool)
            or not isinstance(value, int)
            or value < least
            or (most is not None and value > most)
        ):
            wanted = f"at least {least}" if most is None else f"from {least} to {most}"
            raise InvalidInput(f"{where} is a whole number, {wanted}, not {_shown(value)}")
        return value

    return read


def _answers(value: Any, where: str) -> tuple[int, ...]:
    whole = _whole(1)
    if not isinstance(value, list) or not value:
        raise InvalidInput(f"{where} is a list of numbers of answers, such as [10, 20, 200], not {_shown(value)}")
    numbers = [whole(number, where) for number in value]
    if sorted(set(numbers)) != numbers:
        raise InvalidInput(f"{where} must rise from entry to entry, not {_shown(value)}")
    return tuple(numbers)


_READ: dict[str, Callable[[Any, str], Any]] = {
    "services": _services,
    "fail_on": _gates,
    "target": read_target,
    "standardize": _yes_or_no,
    "compare": _yes_or_no,
    "defences": _yes_or_no,
    "maps": _whole(0),
    "orders": _whole(1),
    "judged": _whole(1),
    "answers": _answers,
    "seed": _whole(0, MOST_SEED),
}


def _refuse_unknown(entries: Mapping[str, Any], known: list[str], where: str, what: str) -> None:
    for key in entries:
        if key not in known:
            near = get_close_matches(key.replace("-", "_"), known, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"
            raise InvalidInput(f"{where}: no {what} is called {_shown(key)}{meant}")


def _kind(value: Any) -> str:
    return {dict: "a table", list: "a list", str: "a text", bool: "true or false"}.get(
        type(value), "a number or a date"
    )


def _shown(value: Any) -> str:
    """A value from outside for a message, of bounded length."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
