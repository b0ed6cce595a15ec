"""The endpoint file of a served oracle: what a client needs to ask it, as TOML."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from overexplain.geometry.domain import Domain
from overexplain.geometry.mechanism import Mechanism
from overexplain.oracles.protocol import Oracle, offers
from overexplain.oracles.served.operations import addresses

FIRST_LINE: Final = "# Written by overexplain serve; written over when it serves again.\n"


def endpoint_file(oracle: Oracle, url: str, name: str, features: Sequence[str] | None = None) -> str:
    """The text of an endpoint file: where `oracle` is served as `name`, and what it publishes, no more.

    A service that explains is asked by KServe V1. One that only labels is asked by the Open Inference Protocol, which has no verb
    for explanations: nobody tries one in vain.
    """
    explains = offers(oracle, "explain")
    v1, v2 = addresses(name)
    preset, path = ("kserve-v1", v1) if explains else ("oip-v2", v2)
    # An endpoint file takes names only if none is empty.
    names = {"features": list(features)} if features is not None and all(features) else {"dimension": oracle.dimension}
    entries: dict[str, Any] = {
        "preset": preset,
        "url": f"{url}{path}",
        **names,
        "authorized": True,
        "positive": 1,
    }
    tables: dict[str, Mapping[str, Any]] = {}
    domain = getattr(oracle, "domain", None)
    if explains and oracle.mechanism is not None and oracle.mechanism.distance is not None:
        tables["mechanism"] = _terms(oracle.mechanism, domain)
    if domain is not None:
        tables["domain"] = _limits(domain)
    tables["idempotency"] = {"header": "Idempotency-Key"}
    return FIRST_LINE + _lines(entries) + "".join(f"\n[{title}]\n{_lines(table)}" for title, table in tables.items())


def _terms(mechanism: Mechanism, inputs: Domain | None) -> dict[str, Any]:
    """The published terms; a secret radius is called so, what is not promised "any"; their domain if it is not the inputs'."""
    written = replace(mechanism, domain=None).to_dict()
    if mechanism.domain is not None and mechanism.domain != inputs:
        written["domain"] = _limits(mechanism.domain)
    if mechanism.radius is None:
        written["radius"] = "secret"
    elif mechanism.is_plain:
        del written["radius"]
    if mechanism.slack is None:
        written["slack"] = "any"
    elif mechanism.slack == 0:
        del written["slack"]
    return {key: value for key, value in written.items() if value is not None}


def _limits(domain: Domain) -> dict[str, Any]:
    """The limits of the inputs that the service takes, those that there are."""
    limits: dict[str, Any] = {}
    for side in ("low", "high"):
        values = getattr(domain, side)
        if np.isfinite(values).any():
            limits[side] = float(values[0]) if (values == values[0]).all() else values.tolist()
    if domain.integers:
        limits["integers"] = list(domain.integers)
    if domain.groups:
        limits["groups"] = [list(group) for group in domain.groups]
    return limits


def _lines(table: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {_toml(value)}\n" for key, value in table.items())


def _toml(value: Any) -> str:
    """A value as TOML reads it.

    >>> _toml({"a b": ["ü\\n", True, 1.5, 2]})
    '{ "a b" = ["ü\\\\n", true, 1.5, 2] }'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's strings are TOML's, but for DEL, which TOML wants escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml(str(key))} = {_toml(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(entry) for entry in value) + "]"
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(value)
