"""From a question to a reply: paced, recorded before it is sent, sent again where that may help, given up where not."""

from __future__ import annotations

import datetime
import email.utils
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, final

import numpy as np

from overexplain.errors import EndpointFailed, InvalidInput
from overexplain.oracles.http.addresses import Address
from overexplain.oracles.http.endpoint import Limits
from overexplain.oracles.http.pacing import Clock, Pacing, describe_wait
from overexplain.oracles.http.secrets import Secrets

if TYPE_CHECKING:
    from overexplain.oracles.http.wire import Reply, Wire

AGAIN = (429, 502, 503, 504)
"""The service, or something before it, is busy or away for a moment."""
WRONG_FOR_ALL = {
    401: "the credentials were refused",
    403: "the credentials do not allow this",
    404: "there is nothing at this address",
    405: "this address does not take such requests",
    407: "the proxy wants credentials",
}
FOLLOWED = (307, 308)
MOST_HOPS = 3
FIRST_BACKOFF, LONGEST_BACKOFF = 0.5, 30.0
LONGEST_PAUSE = 366 * 86_400.0


class Recorder(Protocol):
    """Whoever keeps what was sent: told before every request and after every one that brought nothing."""

    key: str

    def sending(self) -> None:
        """A request is about to be sent; raises BudgetExhausted if it may not be."""

    def failed(self, reason: str, not_before: float | None = None) -> None:
        """The last request brought nothing; the service wants no other before `not_before` (seconds since 1970)."""


@final
class Exchange:
    """Gets the reply to one request, by as many sends as it takes and the limits allow."""

    def __init__(
        self, wire: Wire, limits: Limits, pacing: Pacing, secrets: Secrets, clock: Clock, rng: np.random.Generator
    ) -> None:
        self._wire, self._limits, self._pacing, self._secrets = wire, limits, pacing, secrets
        self._clock, self._rng = clock, rng
        self._place = ""
        self.on_event: Callable[[str], None] | None = None

    def reply(
        self, method: str, address: Address, headers: dict[str, str], content: bytes, question: Recorder | None
    ) -> Reply:
        """The reply with which the service accepted the request (2xx), or refused this one question (`refusal`)."""
        self._place = f"{address.scheme}://{address.host}:{address.port}"
        tries = hops = 0
        while True:
            self._pacing.wait()
            if question is not None:
                question.sending()
            reply = self._send(method, address, headers, content)
            asked = _retry_after(reply, self._clock.time())
            if asked is not None:
                self._pacing.pause(asked)
            if reply.status in FOLLOWED:
                hops += 1
                address = self._redirected(reply, address, hops, question, asked)
            elif _is_fruitless(reply):
                tries += 1
                self._wait_or_give_up(reply, tries, question, asked)
            else:
                self._stop_if_wrong_for_all(reply, question, asked)
                if asked is not None:
                    self._failed(f"{reply.status}, asks to wait", question, asked)  # kept: it holds for whoever goes on
                return reply

    def refusal(self, reply: Reply) -> str:
        """How the service refused this question; nothing if it did not."""
        if reply.status is not None and 200 <= reply.status < 300:
            if reply.too_long:
                return f"the reply is longer than [limits] reply_bytes = {self._limits.reply_bytes:,}; the rest was not read"
            if any(value.strip().lower() != "identity" for value in reply.values("content-encoding")):
                return "the reply is compressed, although that was not asked for"
            return ""
        said = self._secrets.excerpt(reply.text, is_cut=reply.too_long)
        return f"the service answered {reply.status}" + (f": {said}" if said else "")

    def close(self) -> None:
        """End the connections."""
        self._wire.close()

    def _send(self, method: str, address: Address, headers: dict[str, str], content: bytes) -> Reply:
        began = self._clock.monotonic()
        self._pacing.sent()
        try:
            reply = self._wire.send(method, address, headers, content)
        finally:
            self._pacing.sent()
        outcome = str(reply.status or "") + (f" {reply.fault}" if reply.fault else "")
        self._tell(f"{method} {address.path} {outcome.strip()} {1000 * (self._clock.monotonic() - began):.0f} ms")
        return reply

    def _redirected(
        self, reply: Reply, address: Address, hops: int, question: Recorder | None, asked: float | None
    ) -> Address:
        location = next(iter(reply.values("location")), "")
        try:
            target = address.followed(location) if location else None
        except (InvalidInput, ValueError):
            target = None
        if target is None:
            self._stop(f"a redirect ({reply.status}) without a usable address", question, asked)
        elif target.origin != address.origin:
            self._stop(
                f"a redirect to {target.scheme}://{target.host}:{target.port}, another place than the endpoint file names; "
                "not followed. If it is right, write it into url",
                question,
                asked,
            )
        elif hops > MOST_HOPS:
            self._stop(f"more than {MOST_HOPS} redirects", question, asked)
        else:
            self._failed(f"redirected ({reply.status})", question, asked)
            return target
        raise AssertionError  # _stop never returns

    def _wait_or_give_up(self, reply: Reply, tries: int, question: Recorder | None, asked: float | None) -> None:
        what = _described(reply)
        if reply.hopeless:
            self._stop(what, question, asked)
        if asked is not None and asked > self._limits.longest_wait:
            self._stop(
                f"{what}; the service asks to wait {describe_wait(asked)}, longer than [limits] longest_wait = "
                f"{self._limits.longest_wait:g} s; resume the run after that",
                question,
                asked,
            )
        if tries > self._limits.retries:
            self._stop(f"{what}; given up after {tries} request{'s' * (tries != 1)} for one question", question, asked)
        self._failed(what, question, asked)
        longest = min(FIRST_BACKOFF * 2.0 ** min(tries - 1, 20), LONGEST_BACKOFF, self._limits.longest_wait)
        wait = max(float(self._rng.uniform(0.0, longest)), asked or 0.0)
        self._tell(f"{what}, again in {wait:.1f} s")
        self._pacing.pause(wait)

    def _stop_if_wrong_for_all(self, reply: Reply, question: Recorder | None, asked: float | None) -> None:
        status = reply.status or 0
        if status in WRONG_FOR_ALL:
            self._stop(f"{WRONG_FOR_ALL[status]}: {self.refusal(reply)}", question, asked)
        if 300 <= status < 400:
            what = f"a redirect ({status}) that a request with a body cannot follow; write the right address"
            self._stop(what, question, asked)
        if not 200 <= status < 600:
            self._stop(f"a reply with the status {status}, which is none", question, asked)

    def _stop(self, what: str, question: Recorder | None, asked: float | None) -> None:
        self._failed(what, question, asked)
        raise EndpointFailed(self._secrets.redact(f"{self._place}: {what}"), stops=True)

    def _failed(self, what: str, question: Recorder | None, asked: float | None) -> None:
        if question is not None:
            not_before = None if asked is None else self._clock.time() + asked
            question.failed(self._secrets.redact(what), not_before)

    def _tell(self, line: str) -> None:
        if self.on_event is not None:
            self.on_event(self._secrets.redact(line))


def _is_fruitless(reply: Reply) -> bool:
    return reply.status is None or bool(reply.fault) or reply.status in AGAIN


def _described(reply: Reply) -> str:
    if reply.fault:
        return reply.fault if reply.status in (None, 200) else f"{reply.status}, {reply.fault}"
    return f"{reply.status}" + (" (too many requests)" if reply.status == 429 else "")


def _retry_after(reply: Reply, now: float) -> float | None:
    """How many seconds the service asks to wait, by whatever status but 200; None if it does not say.

    Of several wishes the longest counts.
    """
    if reply.status == 200:
        return None
    waits = [wait for value in reply.values("retry-after") if (wait := _seconds(value.strip(), reply, now)) is not None]
    return max(waits) if waits else None


def _seconds(value: str, reply: Reply, now: float) -> float | None:
    try:
        wait = float(value)
    except ValueError:
        until = _moment(value)
        if until is None:
            return None
        # By the service's own clock, if it tells its time: ours may be wrong.
        dates = [moment for date in reply.values("date") if (moment := _moment(date)) is not None]
        wait = until - (dates[0] if dates else now)
    if math.isnan(wait):
        return None
    return min(max(wait, 0.0), LONGEST_PAUSE)


def _moment(date: str) -> float | None:
    try:
        moment = email.utils.parsedate_to_datetime(date)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
