"""Secrets: ${NAME} in an endpoint file stands for an environment variable, whose value must never be seen again.

The file, and everything that is kept of it, holds names only. Values live in `Secrets`, are put in when a request is made, and
`redact` takes every spelling of them out of every text that leaves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, final
from urllib.parse import quote

from overexplain.errors import InvalidInput
from overexplain.oracles.http.spellings import pattern_of, pieces_of

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
        whole = self._values.values()
        pieces = {piece for value in whole for piece in pieces_of(value)}
        # One after the other: a piece that is found a little earlier must not break up a whole value.
        found = [pattern_of(whole), pattern_of(pieces)]
        self._patterns = [pattern for pattern, _ in found if pattern is not None]
        self._longest = max(longest for _, longest in found)

    @classmethod
    def named_in(cls, entries: Any, environment: Mapping[str, str]) -> Secrets:
        """The secrets that `entries` name, from the environment; InvalidInput if one is missing or cannot be sent."""
        return cls({name: _value_of(name, environment) for name in sorted(names_in(entries))})

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self._values)})"

    @property
    def said(self) -> str:
        """The names as the end of a sentence about where the values go.

        >>> Secrets({"TOKEN": "s3cret/x"}).said
        ', with the value of TOKEN'
        """
        return f", with the value of {' and '.join(self._values)}" if self._values else ""

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
        shown = text.replace("\0", "")  # every other letter of UTF-16 that is taken for UTF-8
        for pattern in self._patterns:
            shown = pattern.sub(HIDDEN, shown)
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
    if value != value.strip():
        raise InvalidInput(f"the environment variable {name} begins or ends with a blank; export it without")
    return value
