"""A live endpoint as an oracle: `HttpOracle.from_toml("endpoint.toml")`."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any, final
from urllib.parse import unquote

import numpy as np
from numpy.typing import ArrayLike

from overexplain._toml import read_toml
from overexplain.errors import EndpointFailed, InvalidInput
from overexplain.geometry.arrays import as_generator, as_point, as_point_or_rows
from overexplain.geometry.domain import Domain
from overexplain.geometry.mechanism import Mechanism
from overexplain.oracles.http.addresses import Address, read_address
from overexplain.oracles.http.credentials import check_header
from overexplain.oracles.http.dialects import VERBS, Dialect, dialect
from overexplain.oracles.http.endpoint import Endpoint, read_endpoint
from overexplain.oracles.http.exchange import Exchange, Recorder
from overexplain.oracles.http.pacing import Clock, Pacing, SystemClock, read_rate
from overexplain.oracles.http.readings import Unreadable, read_json
from overexplain.oracles.http.secrets import Secrets, names_in
from overexplain.oracles.protocol import checked_explanation
from overexplain.oracles.wrapper import one_by_one


@final
class HttpOracle:
    """A service behind HTTP. Every request is one send: nothing is repeated behind the back of whoever counts.

    `ask` is what the two verbs do for one point; a Recorder beside it is told before each request is sent.
    """

    def __init__(
        self,
        settings: Endpoint,
        *,
        rate: float | None = None,
        environment: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        rng: int | np.random.Generator | None = None,
    ) -> None:
        self.settings = settings
        self._secrets = Secrets.named_in(settings.to_dict(), os.environ if environment is None else environment)
        found = {verb: dialect(settings, verb, self._secrets) for verb in VERBS}
        self._dialects: dict[str, Dialect] = {verb: one for verb, one in found.items() if one is not None}
        if not self._dialects:
            raise InvalidInput(
                "endpoint file: neither labels nor explanations are asked for; add [classify] or [explain]"
            )
        if "explain" not in self._dialects and settings.mechanism is not None:
            raise InvalidInput(
                f"endpoint file: [mechanism] says how the service explains, but {settings.preset} has no explanations here; "
                "add [explain] with url or path, or leave [mechanism] out"
            )
        proxy, login = self._proxy()
        self._refuse_plain_secrets(proxy)
        self._filled_headers()  # refuses now what cannot be sent
        self._clock = SystemClock() if clock is None else clock
        limits = settings.limits
        self.rate = read_rate(limits.rate) if rate is None else read_rate(rate)
        self._pacing = Pacing(self.rate, limits.longest_wait, self._clock)
        self._exchange = Exchange(
            self._connected(proxy, login), limits, self._pacing, self._secrets, self._clock, as_generator(rng)
        )
        # A verb that is not offered must not look as if it were (see `offers`).
        if "classify" not in self._dialects:
            self.classify = None  # type: ignore[method-assign, assignment]
        if "explain" not in self._dialects:
            self.explain = None  # type: ignore[method-assign, assignment]

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], *, rate: float | None = None) -> HttpOracle:
        """The endpoint that a TOML file describes; `rate` (requests per second) in place of the file's."""
        entries = read_toml(path, "endpoint file")
        try:
            tls = entries.get("tls")
            if isinstance(tls, dict) and isinstance(tls.get("ca_file"), str):
                tls["ca_file"] = os.fspath(Path(path).absolute().parent / tls["ca_file"])  # beside the endpoint file
            return cls.from_dict(entries, rate=rate)
        except InvalidInput as error:
            fault = type(error)(f"{os.fspath(path)}: {str(error).removeprefix('endpoint file: ')}")
        raise fault

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any], *, rate: float | None = None) -> HttpOracle:
        """The endpoint that such entries describe: a file's, or those of `settings.to_dict()`."""
        return cls(read_endpoint(entries), rate=rate)

    def _refuse_plain_secrets(self, proxy: Address | None) -> None:
        if not self._secrets or self.settings.tls.allow_plain:
            return
        if proxy is not None and proxy.scheme == "http" and not proxy.is_loopback:
            # To the proxy itself go its own credentials, and whole requests unless they are tunnelled (https).
            instead = "an https:// proxy" if names_in(self.settings.proxy) else "https for the service"
            if names_in(self.settings.proxy) or any(one.address.scheme == "http" for one in self._dialects.values()):
                raise InvalidInput(
                    f"endpoint file: a secret would go over http to the proxy, readable on the way; use {instead}. If the "
                    "network is trusted: [tls] allow_plain = true"
                )
        for verb, asked in self._dialects.items():
            if asked.address.scheme == "http" and not asked.address.is_loopback:
                raise InvalidInput(
                    f"endpoint file: {verb} would send a secret over http, readable on the way; use https. If the network is "
                    "trusted: [tls] allow_plain = true"
                )

    def _filled_headers(self) -> dict[str, str]:
        try:
            version = metadata.version("overexplain")
        except metadata.PackageNotFoundError:
            version = "0"
        headers = {
            "User-Agent": f"overexplain/{version}",
            "Accept": "application/json",
            "Content-Type": "application/json",
        }
        for name, value in self.settings.headers.items():
            filled = self._secrets.fill(value)
            check_header(name, filled)
            headers = {kept: old for kept, old in headers.items() if kept.lower() != name.lower()}
            headers[name] = filled
        return {**headers, "Accept-Encoding": "identity"}  # a reply that unpacks to gigabytes cannot come

    def _proxy(self) -> tuple[Address | None, tuple[str, str] | None]:
        """The proxy, and name and password for it."""
        if self.settings.proxy is None:
            return None, None
        start, mark, rest = self._secrets.fill(self.settings.proxy).partition("://")
        user, at, host = rest.rpartition("@")
        name, _, password = user.partition(":")
        return read_address(f"{start}{mark}{host}", "proxy"), (unquote(name), unquote(password)) if at else None

    def _connected(self, proxy: Address | None, login: tuple[str, str] | None) -> Any:
        try:
            from overexplain.oracles.http.wire import Wire
        except ImportError:
            raise InvalidInput('live endpoints need httpcore and jmespath: pip install "overexplain[http]"') from None
        limits, tls = self.settings.limits, self.settings.tls
        return Wire(
            timeout=limits.timeout,
            connect_timeout=limits.connect_timeout,
            reply_bytes=limits.reply_bytes,
            encrypted=any(asked.address.scheme == "https" for asked in self._dialects.values()),
            ca_file=None if tls.ca_file is None else self._secrets.fill(tls.ca_file),
            proxy=proxy,
            proxy_login=login,
        )

    def __repr__(self) -> str:
        return f"HttpOracle({self.host}, {self.settings.preset}, {', '.join(self._dialects)})"

    @property
    def host(self) -> str:
        """Whom the first verb is asked of, without anything secret: 'https://scores.example:443'."""
        place = next(iter(self._dialects.values())).address
        return self._shown(place)

    @property
    def destination(self) -> str:
        """Where requests go and which variables' values go with them, by name: what whoever sends them agrees to."""
        hosts = dict.fromkeys(self._shown(asked.address) for asked in self._dialects.values())
        proxy, _ = self._proxy()
        through = "" if proxy is None else f" through {self._shown(proxy)}"
        return f"{' and '.join(hosts)}{through}{self._secrets.said}"

    def _shown(self, place: Address) -> str:
        return self._secrets.redact(f"{place.scheme}://{place.host}:{place.port}")

    @property
    def dimension(self) -> int:
        """The number of features."""
        return self.settings.size

    @property
    def features(self) -> tuple[str, ...] | None:
        """The features' names, if the file has them."""
        return None if self.settings.features is None else tuple(self.settings.features)

    @property
    def mechanism(self) -> Mechanism | None:
        """The published terms: without [mechanism] only that labels flip; None without explanations."""
        if "explain" not in self._dialects:
            return None
        terms = self.settings.terms
        return Mechanism(None, slack=None, domain=self.settings.inputs) if terms is None else terms

    @property
    def domain(self) -> Domain | None:
        """Which inputs the service takes; None if the file does not say."""
        return self.settings.inputs

    @property
    def authorized(self) -> bool:
        """True if the file says that the service's owner agreed."""
        return self.settings.authorized

    @property
    def idempotent(self) -> bool:
        """True if requests under one key count once."""
        return self.settings.idempotency is not None

    @property
    def on_event(self) -> Callable[[str], None] | None:
        """Who is told, in redacted lines, what is sent and what comes back."""
        return self._exchange.on_event

    @on_event.setter
    def on_event(self, tell: Callable[[str], None] | None) -> None:
        self._exchange.on_event = tell

    def pause_until(self, when: float) -> None:
        """Send nothing before `when` (seconds since 1970): a wish of the service that came before this process."""
        self._pacing.pause_until(when)

    def sent_at(self, when: float) -> None:
        """Count a request that another process wrote down at `when` (seconds since 1970) towards the rate.

        It may have been on its way until now, though not beyond its timeout; it counts from when it can have arrived last.
        """
        self._pacing.sent_at(min(when + self.settings.limits.timeout, self._clock.time()))

    def classify(self, x: ArrayLike) -> Any:
        """+1 (Yes) or −1 (No): an int for a point, an int8 array for rows, which are asked one by one."""
        points = as_point_or_rows(x, self.dimension)
        if points.ndim == 1:
            return self.ask("classify", points)
        return np.array([self.ask("classify", row) for row in points], dtype=np.int8)

    def explain(self, x: ArrayLike) -> Any:
        """The explanation or None; for rows, which are asked one by one, rows, all NaN for None."""
        return one_by_one(lambda row: checked_explanation(self.ask("explain", row), self.dimension), x, self.dimension)

    def ask(self, verb: str, x: ArrayLike, question: Recorder | None = None) -> Any:
        """±1, or the explanation's numbers as they came (not yet checked), or None for "no counterfactual".

        Raises EndpointFailed: with `stops` the last request was recorded as failed; without, the service answered, but what
        it said is no answer, and nothing was recorded after the request but a wish to wait, if it had one. BudgetExhausted
        passes through from the question.
        """
        asked = self._dialects.get(verb)
        if asked is None:
            raise InvalidInput(f"this endpoint does not offer {verb}; the endpoint file would need [{verb}]")
        point = as_point(x, self.dimension)
        content = json.dumps(asked.write(point), allow_nan=False).encode()
        headers = self._filled_headers()  # anew each time: filled, they are kept nowhere
        if self.settings.idempotency is not None:
            headers[self.settings.idempotency.header] = uuid.uuid4().hex if question is None else question.key
        reply = self._exchange.reply(asked.method, asked.address, headers, content, question)
        fault = self._exchange.refusal(reply)
        if not fault:
            try:
                return asked.read(read_json(reply.body), point.copy())
            except Unreadable as error:
                fault = f"the reply cannot be read: {error}"
            kind = next(iter(reply.values("content-type")), "no content type")
            fault = self._secrets.excerpt(f"{fault}; it is {kind} and begins: {reply.text}", 300)
        # Raised here and not above: an error raised while another is handled carries that one, and what it quotes, along.
        raise EndpointFailed(self._secrets.redact(f"{verb}: {fault}"))

    def close(self) -> None:
        """End the connections."""
        self._exchange.close()

    def __enter__(self) -> HttpOracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
