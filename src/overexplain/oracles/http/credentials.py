"""What may stand in an endpoint file: credentials only as ${NAME}, headers only as they can be sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from overexplain.errors import InvalidInput
from overexplain.oracles.http.secrets import PLACEHOLDER

_TELLING = ("authorization", "cookie", "key", "token", "secret", "password", "passwd", "credential")
_SCHEMES = re.compile(r"\s*(bearer|basic|digest|negotiate|aws4-hmac-sha256)\s+\S", re.IGNORECASE)
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OURS = {
    "accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "te", "trailer",
    "transfer-encoding", "upgrade",
}  # fmt: skip


def check_header(name: str, value: str) -> None:
    """Raise InvalidInput if a header cannot be sent as it is, or is not the file's to set."""
    if not _HEADER_NAME.fullmatch(name):
        raise InvalidInput(f"[headers] {name!r} is no name of a header")
    if name.lower() in _OURS:
        raise InvalidInput(f"[headers] {name} is set by the connection itself and cannot be given")
    if not (value.isascii() and value.isprintable()):
        raise InvalidInput(f"[headers] {name} holds control characters or letters beyond ASCII")
    if value != value.strip():
        raise InvalidInput(f"[headers] {name} begins or ends with a blank, which cannot be sent")


def refuse_literal_credentials(entries: Mapping[str, Any]) -> None:
    """Raise InvalidInput if something that looks like a credential stands in the entries itself; its value is not shown."""
    for name, value in entries.get("headers", {}).items():
        literal = PLACEHOLDER.search(value) is None
        if literal and (_is_telling(name) or _SCHEMES.match(value)):
            _refuse(f"[headers] {name}", f'{name} = "{_example(name)}"')
    _refuse_in_url(entries["url"], "url")
    if entries.get("proxy") is not None:
        _refuse_in_url(entries["proxy"], "proxy", may_name_user=True)
    for verb in ("classify", "explain"):
        given = entries.get(verb)
        if isinstance(given, Mapping):
            for key in ("url", "path"):
                if given.get(key):
                    _refuse_in_url(given[key], f"[{verb}] {key}")
            _refuse_in_body(given.get("body"), f"[{verb}] body", telling=False)


def _is_telling(name: str) -> bool:
    return any(word in name.lower() for word in _TELLING)


def _example(name: str) -> str:
    return "Bearer ${SCORES_TOKEN}" if name.lower() == "authorization" else "${SCORES_TOKEN}"


def _refuse(where: str, instead: str) -> None:
    raise InvalidInput(
        f"{where} holds a credential in the file itself; files are copied and kept. "
        f"Put it into an environment variable and name that: {instead}"
    )


def _refuse_in_url(url: str, where: str, may_name_user: bool = False) -> None:
    # Placeholders are made plain words first: "${" and "}" would confuse the splitting.
    plain = PLACEHOLDER.sub("PLACEHOLDER", url)
    fault = False
    try:
        parts = urlsplit(plain)
        user = parts.netloc.rpartition("@")[0]
    except ValueError:
        fault = True
    if fault:
        raise InvalidInput(f"{where} is no address: https://host/path is expected")
    if user and not may_name_user:
        raise InvalidInput(
            f"{where} has a user name or password before the host; give them as a header instead: "
            '[headers] Authorization = "Basic ${SCORES_LOGIN}"'
        )
    if user and not all("PLACEHOLDER" in part for part in user.split(":", 1)):
        _refuse(where, "https://${PROXY_USER}:${PROXY_PASSWORD}@host:port")
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if _is_telling(name) and value and "PLACEHOLDER" not in value:
            _refuse(f"{where}, in its parameter {name},", f"{name}=${{SCORES_TOKEN}}")


def _refuse_in_body(value: Any, where: str, telling: bool) -> None:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            _refuse_in_body(inner, f"{where}.{name}", telling or _is_telling(name))
    elif isinstance(value, list):
        for inner in value:
            _refuse_in_body(inner, where, telling)
    elif isinstance(value, str):
        literal = value and "{{" not in value and PLACEHOLDER.search(value) is None
        if literal and (telling or _SCHEMES.match(value)):
            _refuse(where, f'{where.rpartition(".")[2]} = "${{SCORES_TOKEN}}"')
    elif telling and isinstance(value, int | float) and not isinstance(value, bool):
        _refuse(where, f'{where.rpartition(".")[2]} = "${{SCORES_TOKEN}}"')
