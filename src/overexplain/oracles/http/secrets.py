"""Secrets: ${NAME} in an endpoint file stands for an environment variable, whose value must never be seen again.

The file, and everything that is kept of it, holds names only. Values live in `Secrets`, are put in when a request is made, and
`redact` takes every spelling of them out of every text that leaves.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
from collections.abc import Mapping
from typing import Any, final
from urllib.parse import quote, quote_plus

from overexplain.errors import InvalidInput

PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_OPENED = re.compile(r"\$\{(?![A-Za-z_][A-Za-z0-9_]*\})")
_RAW_START = re.compile(r"\$\{\w+\}|[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")
HIDDEN = "***"


def names_in(value: Any) -> set[str]:
    """The environment variables that a text, or any text inside a list or table, names.

    >>> sorted(names_in({"a": ["Bearer ${TOKEN}"], "b": "${HOST}/x"}))
    ['HOST', 'TOKEN']
    """
    if isinstance(value, str):
        if _OPENED.search(value):
            raise InvalidInput(
                "a text in the endpoint file has '${' without a variable's name and '}' after it: ${NAME} is meant"
            )
        return set(PLACEHOLDER.findall(value))
    if isinstance(value, Mapping):
        return {name for inner in value.values() for name in names_in(inner)}
    if isinstance(value, list | tuple):
        return {name for inner in value for name in names_in(inner)}
    return set()


@final
class Secrets:
    """The values of the environment variables that an endpoint file names; printing it shows the names only.

    >>> secrets = Secrets({"TOKEN": "s3cret/x"})
    >>> secrets.fill("Bearer ${TOKEN}") == "Bearer s3cret/x"
    True
    >>> secrets.redact("GET /?key=s3cret%2Fx failed"), secrets
    ('GET /?key=*** failed', Secrets(TOKEN))
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)
        spelled = {form for value in self._values.values() for form in _spellings(value)}
        # The longest first: a spelling that contains another one must go as a whole.
        ordered = sorted(spelled, key=len, reverse=True)
        self._longest = len(ordered[0]) if ordered else 0
        self._pattern = re.compile("|".join(map(re.escape, ordered)), re.IGNORECASE) if ordered else None

    @classmethod
    def named_in(cls, entries: Any, environment: Mapping[str, str]) -> Secrets:
        """The secrets that `entries` name, from the environment; InvalidInput if one is missing or cannot be sent."""
        return cls({name: _value_of(name, environment) for name in sorted(names_in(entries))})

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self._values)})"

    def __bool__(self) -> bool:
        return bool(self._values)

    def fill(self, text: str) -> str:
        """The text with every ${NAME} replaced by its value."""
        return PLACEHOLDER.sub(lambda found: self._values[found[1]], text)

    def fill_url(self, text: str) -> str:
        """The address with every ${NAME} replaced: percent-encoded in the path and the query, as it is before them."""
        start = _RAW_START.match(text)
        cut = start.end() if start else 0
        return self.fill(text[:cut]) + self.fill_path(text[cut:])

    def fill_path(self, text: str) -> str:
        """The path, or path and query, with every ${NAME} replaced and percent-encoded."""
        return PLACEHOLDER.sub(lambda found: quote(self._values[found[1]], safe=""), text)

    def redact(self, text: str) -> str:
        """The text without any spelling of a secret, and without characters that would disturb a terminal."""
        shown = text if self._pattern is None else self._pattern.sub(HIDDEN, text)
        return "".join(letter if letter.isprintable() else " " for letter in shown)

    def excerpt(self, text: str, length: int = 80, *, is_cut: bool = False) -> str:
        """The beginning of a redacted text; `is_cut`: the text is itself only the beginning of what there was.

        Redacted before it is cut. Where a text had to be cut before, half a secret may stand at its end, and as much of the end
        is left out as a secret is long.
        """
        window = 20_000 + 2 * self._longest
        shown = self.redact(text[:window])
        if is_cut or len(text) > window:
            shown = shown[: max(0, len(shown) - self._longest)]
        shown = " ".join(shown.split())
        return shown if len(shown) <= length else shown[: length - 1] + "…"


def _value_of(name: str, environment: Mapping[str, str]) -> str:
    value = environment.get(name, "")
    if not value:
        state = "is empty" if name in environment else "is not set"
        raise InvalidInput(f"the endpoint file names the environment variable {name}, which {state}; export it first")
    if value.endswith(("\n", "\r")):
        raise InvalidInput(
            f"the environment variable {name} ends in a line break (read from a file?); export it without: "
            f'{name}="$(cat FILE)" does'
        )
    if not value.isprintable():
        raise InvalidInput(f"the environment variable {name} holds control characters; they cannot be sent")
    return value


def _spellings(value: str) -> set[str]:
    """How a value may be spelled in a URL, in JSON, in Python, in HTML, in hexadecimal or base64."""
    plain = {value}
    decoded = _from_base64(value)
    if decoded:  # "Basic ${CREDENTIALS}": the password inside is as secret as the whole
        plain.update((decoded, decoded.partition(":")[2] or decoded))
    found: set[str] = set()
    for text in plain:
        found.update((text, quote(text, safe=""), quote(text), quote_plus(text), html.escape(text)))
        escaped = {
            json.dumps(text)[1:-1],
            json.dumps(text, ensure_ascii=False)[1:-1],
            repr(text)[1:-1],
            ascii(text)[1:-1],
        }
        doubled = text.replace("\\", "\\\\")  # Python escapes either quote, depending on the text around it
        escaped |= {doubled, doubled.replace("'", "\\'"), doubled.replace('"', '\\"')}
        escaped |= {form.replace("/", "\\/") for form in escaped}
        found |= escaped | {json.dumps(form)[1:-1] for form in escaped} | {repr(form)[1:-1] for form in escaped}
        data = text.encode()
        found.add(data.hex())
        for variant in (base64.b64encode, base64.urlsafe_b64encode):
            found.add(variant(data).decode().rstrip("="))
            found.update(_inside_base64(data, variant))
    return {form for form in found if form}


def _inside_base64(data: bytes, variant: Any) -> set[str]:
    """What base64 makes of the data inside a longer text: one spelling for each place in a group of three bytes."""
    found = set()
    for before in range(3):
        encoded = variant(b"\0" * before + data).decode().rstrip("=")
        groups, left = divmod(before + len(data), 3)
        middle = encoded[(0, 2, 3)[before] : groups * 4 + left]  # one letter more would mix with what follows
        if len(middle) >= 6:
            found.add(middle)
    return found


def _from_base64(value: str) -> str:
    """The text that a value encodes, if it is base64 of readable text; else nothing."""
    try:
        text = base64.b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
    return text if len(text) >= 3 and text.isprintable() else ""
