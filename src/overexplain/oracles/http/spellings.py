"""How a secret may be written: its letters escaped as in URLs, JSON, Python or HTML, each in its own way, or all in base64 or
hexadecimal.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from html.entities import html5
from urllib.parse import unquote

_RUNS = re.compile(r"(\\+)|([^\x00-\x7f]+)")
_BETWEEN = re.compile(r"""[\s;=&?,:@/"'`]+""")
_SHORTEST_PIECE = 5
"""Shorter pieces are words like "a" or "key", and messages without them could not be read."""


def pattern_of(values: Iterable[str]) -> tuple[re.Pattern[str] | None, int]:
    """What matches every spelling of the values, and how many letters of a text one may take; None if there are no values.

    >>> pattern, _ = pattern_of(["a/b"])
    >>> [bool(pattern.search(text)) for text in ("A%2fb", "a%252Fb", r"a\\u002fb", "a&#47;b", "612f62", "a/c")]
    [True, True, True, True, True, False]
    """
    found = {_lettered(text): _length(text) for value in values for text in _plain(value)}
    found |= {re.escape(form): len(form) for value in values for text in _plain(value) for form in _encoded(text)}
    # The longest first: a spelling that contains another one must go as a whole.
    ordered = sorted(found, key=lambda form: found[form], reverse=True)
    return (re.compile("|".join(ordered), re.IGNORECASE), found[ordered[0]]) if ordered else (None, 0)


def pieces_of(value: str) -> set[str]:
    """What a value is put together from: a service may show the token alone of "Bearer …", one parameter of an address.

    >>> sorted(pieces_of("Bearer pass%2Fword"))
    ['Bearer', 'pass%2Fword', 'pass/word']
    """
    pieces = {*value.split(), *_BETWEEN.split(value)}  # at blanks alone too: base64 may hold "/" and ends in "="
    pieces |= {unquote(piece) for piece in pieces}
    return {piece for piece in pieces if len(piece) >= _SHORTEST_PIECE and piece != value}


def _plain(value: str) -> set[str]:
    """The value, and what it is made of: the password in "Basic ${LOGIN}" is as secret as the whole."""
    decoded = _from_base64(value)
    return {value, decoded, decoded.partition(":")[2] or decoded} - {""}


def _lettered(text: str) -> str:
    """An expression for the text whose letters may be escaped, each in its own way.

    No text of a service can make it try for long: what it repeats, it does not give back (`++`, `(?>…)`), and no text of a
    letter is matched in two ways.
    """
    parts, end = [], 0
    for run in _RUNS.finditer(text):
        parts += [_letter(letter) for letter in text[end : run.start()]]
        if run[1]:  # however often they are doubled, backslashes remain a run
            parts.append(rf"(?:\\++|(?:{_letter(chr(92))})++)")
        else:  # what could not be read is replaced, by more or fewer marks than there were letters
            parts.append(f"(?>[\ufffd?]{{1,{4 * len(run[2])}}}|{''.join(map(_letter, run[2]))})")
        end = run.end()
    return "".join([*parts, *(_letter(letter) for letter in text[end:])])


def _letter(letter: str) -> str:
    """An expression for one letter."""
    if letter.isascii() and letter.isalnum():
        return letter
    cases = {case for case in (letter, letter.lower(), letter.upper()) if len(case) == 1}
    forms = {form.lower(): form for case in sorted(cases) for form in _escapes(case)}
    return f"(?:{'|'.join(forms.values())})"


def _escapes(letter: str) -> list[str]:
    """How one letter may be written, as expressions."""
    data, units = letter.encode(), letter.encode("utf-16-be")
    names = sorted(name[:-1] for name, meant in html5.items() if meant == letter and name.endswith(";"))
    escaped = {
        re.escape(letter),
        r"\\*+".join(f"u{units[k : k + 2].hex()}" for k in range(0, len(units), 2)),
        f"U{ord(letter):08x}",
        f"x{ord(letter):02x}",
        r"\\*+".join(f"x{byte:02x}" for byte in data),
        f"&(?:amp;)*(?:{'|'.join([f'#0*{ord(letter)}', f'#x0*{ord(letter):x}', *names])});",
    }
    forms = [rf"\\*+(?:{'|'.join(sorted(escaped))})", "".join(f"%(?:25)*{byte:02x}" for byte in data)]
    if letter == " ":
        forms.append(r"\+")
    if not letter.isascii():  # read in the wrong encoding, or not at all
        forms += [re.escape(data.decode(encoding, "replace")) for encoding in ("latin-1", "cp1252")] + ["[\ufffd?]"]
    return forms


def _length(text: str) -> int:
    """How long a spelling of the text is at most, short of those that were escaped again and again."""
    return sum(2 if letter.isascii() and letter.isalnum() else 10 * len(letter.encode()) for letter in text)


def _encoded(text: str) -> set[str]:
    """The text in hexadecimal and in base64."""
    data = text.encode()
    found = {data.hex()}
    for variant in (base64.b64encode, base64.urlsafe_b64encode):
        found.add(variant(data).decode().rstrip("="))
        # Inside a longer text there is one spelling for each place in a group of three bytes.
        for before in range(3):
            whole = variant(b"\0" * before + data).decode().rstrip("=")
            groups, left = divmod(before + len(data), 3)
            middle = whole[(0, 2, 3)[before] : groups * 4 + left]  # one letter more would mix with what follows
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
