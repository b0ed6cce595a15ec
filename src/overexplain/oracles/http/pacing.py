"""When the next request may be sent: never faster than the rate, never before a pause is over."""

from __future__ import annotations

import re
import time
from typing import Any, Protocol, final

from overexplain.errors import EndpointFailed, InvalidInput

_RATE = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*/\s*(s|sec|second|min|minute|h|hour)\s*")
_SECONDS = {"s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0}


class Clock(Protocol):
    """Time, as the operating system or a test tells it."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    def time(self) -> float:
        """Seconds since 1970: means the same to another process."""

    def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""


@final
class SystemClock:
    """The operating system's clocks."""

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def time(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        time.sleep(seconds)


def read_rate(given: Any, name: str = "rate") -> float | None:
    """Requests per second, from "10/s", "30/min", "0.5/s" or a number; None stays None: no limit.

    >>> read_rate("30/min"), read_rate(2)
    (0.5, 2.0)
    """
    if given is None:
        return None
    rate = float(given) if isinstance(given, int | float) and not isinstance(given, bool) else 0.0
    if isinstance(given, str) and (found := _RATE.fullmatch(given)):
        rate = float(found[1]) / _SECONDS[found[2]]
    if not 1e-6 <= rate <= 1e6:
        raise InvalidInput(f'{name} must be requests per second, e.g. "10/s", "30/min" or "0.5/s"; got {given!r}')
    return rate


@final
class Pacing:
    """Waits until a request may be sent.

    A send counts at its start and again when its reply is there: the service cannot have seen it later than that, so that
    also by the service's clock two requests are never closer than 1 / rate.
    """

    def __init__(self, rate: float | None, longest_wait: float, clock: Clock) -> None:
        self._gap = 0.0 if rate is None else 1.0 / rate
        self._longest_wait = longest_wait
        self._clock = clock
        self._next = -float("inf")  # the rate's earliest moment, by the monotonic clock
        self._pause = -float("inf")  # the service's

    def wait(self) -> None:
        """Return when a request may be sent; EndpointFailed at once if the service's pause lasts too long for that."""
        left = self._pause - self._clock.monotonic()
        if left > self._longest_wait:
            raise EndpointFailed(
                f"the service asked to wait {describe_wait(left)} more, longer than [limits] longest_wait = "
                f"{self._longest_wait:g} seconds; resume the run after that",
                stops=True,
            )
        while (left := max(self._next, self._pause) - self._clock.monotonic()) > 0:
            self._clock.sleep(left)

    def sent(self) -> None:
        """A request is being sent, or was until now."""
        self._next = self._clock.monotonic() + self._gap

    def sent_at(self, when: float) -> None:
        """Another process sent a request at `when` (seconds since 1970)."""
        ago = max(0.0, self._clock.time() - when)  # a clock that was set back must not stop us for longer than the gap
        self._next = max(self._next, self._clock.monotonic() + self._gap - ago)

    def pause(self, seconds: float) -> None:
        """Nothing may be sent for so many seconds."""
        self._pause = max(self._pause, self._clock.monotonic() + seconds)

    def pause_until(self, when: float) -> None:
        """Nothing may be sent before `when` (seconds since 1970)."""
        self.pause(when - self._clock.time())


def describe_wait(seconds: float) -> str:
    """A waiting time for people.

    >>> describe_wait(3.25), describe_wait(400), describe_wait(90_000)
    ('3.2 s', '7 minutes', '25.0 hours')
    """
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
