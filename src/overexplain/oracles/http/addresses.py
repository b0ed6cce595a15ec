"""Addresses: read once, compared by origin, shown without what may be secret."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

from overexplain.errors import InvalidInput

_PORTS = {"http": 80, "https": 443}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True)
class Address:
    """Where a request goes. Host and target (path and query) may hold secrets and are not shown."""

    scheme: str
    host: str = field(repr=False)
    port: int
    target: str = field(repr=False)

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port: what must stay the same in a redirect."""
        return self.scheme, self.host, self.port

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def is_loopback(self) -> bool:
        """True if the host is this machine."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def followed(self, location: str) -> Address:
        """The address that a redirect from here leads to."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return read_address(urljoin(f"{self.scheme}://{host}:{self.port}{self.target}", location), "the redirect")


def joined(url: str, path: str) -> str:
    """The address with `path` appended to its own path, before a query.

    >>> joined("https://scores.example/v1/models/loans/?v=2", ":explain")
    'https://scores.example/v1/models/loans:explain?v=2'
    """
    start, mark, query = url.partition("?")
    if path:
        start = start.rstrip("/")
        # Right after the host, a path that does not begin with a slash would become part of the host or its port.
        if not path.startswith("/") and "/" not in start.partition("://")[2]:
            raise InvalidInput(f"url needs a path before {path!r} can be appended, e.g. https://host/v1/models/NAME")
    return start + path + mark + query


def read_address(url: str, where: str) -> Address:
    """The address that a text is; InvalidInput, which does not show it, if it is none."""
    if not _SCHEME.match(url):
        raise InvalidInput(f"{where} has no scheme: it must begin with https:// or http://")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    if not host or parts.scheme not in _PORTS or port == 0:
        raise InvalidInput(
            f"{where} must be an address like https://host/path (http or https, a host, a port if not usual)"
        )
    if not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidInput(f"{where} holds blanks, control characters or letters beyond ASCII; percent-encode them")
    if "@" in parts.netloc:
        raise InvalidInput(
            f"{where} has a user name or password before the host; give them as a header instead: "
            '[headers] Authorization = "Basic ${SCORES_LOGIN}"'
        )
    if parts.fragment:
        raise InvalidInput(f"{where} has a part after '#', which is never sent; leave it out")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Address(parts.scheme, host, port or _PORTS[parts.scheme], target)
