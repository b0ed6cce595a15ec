"""TOML files that users write by hand: endpoints and policies."""

from __future__ import annotations

import os
import re
import tomllib
from typing import Any

from overexplain._files import open_regular
from overexplain.errors import InvalidInput

LARGEST_FILE = 1_000_000
_MOST_BITS = 63
"""Of a whole number, besides its sign: the range that TOML itself asks for."""
_LONG = re.compile(r"[0-9_]{4300,}")  # more digits than Python reads


def read_toml(path: str | os.PathLike[str], what: str) -> dict[str, Any]:
    """The entries of a TOML file, of which `what` says what it should be; InvalidInput names the file and the place."""
    with open_regular(path) as file:
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise InvalidInput(f"{path}: larger than {LARGEST_FILE:,} bytes, which no {what} is")
    entries, fault = _parsed(data)
    if fault:
        raise InvalidInput(
            f"{path}: no TOML file: {fault}"
        )  # here: raised in a handler, it would carry what is quoted there
    if key := _too_large(entries):
        raise InvalidInput(f"{path}: {key} is a whole number beyond ±2^{_MOST_BITS}, which TOML cannot hold")
    return entries


def _parsed(data: bytes) -> tuple[dict[str, Any], str]:
    """The entries, or what is wrong."""
    try:
        text = data.decode("utf-8")
        return tomllib.loads(text), ""
    except UnicodeDecodeError as error:
        return {}, f"not UTF-8 text (byte {error.start})"
    except tomllib.TOMLDecodeError as error:
        return {}, str(error)
    except RecursionError:
        return {}, "nested too deep"
    except ValueError:  # all that is left
        found = _LONG.search(text)
        where = f"line {text.count(chr(10), 0, found.start()) + 1}" if found else "it"
        return {}, f"{where} has a whole number of thousands of digits"


def _too_large(value: Any, key: str = "") -> str:
    """The key of a whole number that is too large; empty if there is none."""
    if isinstance(value, int):
        return key if value.bit_length() > _MOST_BITS else ""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next((found for k, entry in inner if (found := _too_large(entry, f"{key}.{k}" if key else str(k)))), "")
