"""What an endpoint file says: its tables as frozen values, every unknown key and wrong type refused by name."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, get_args

import msgspec

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray, as_point
from overexplain.geometry.domain import Domain, as_count
from overexplain.geometry.mechanism import Mechanism
from overexplain.oracles.http.credentials import check_header, refuse_literal_credentials
from overexplain.oracles.http.pacing import read_rate

Preset = Literal["kserve-v1", "oip-v2", "mlserver-alibi", "dice-json", "generic"]
Form = Literal["vector", "record", "changes"]
Method = Literal["POST", "PUT"]
_CHOICES = {"preset": get_args(Preset), "form": get_args(Form), "method": get_args(Method)}


class Verb(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """[classify] or [explain]: where a question goes, how it is written, where the answer stands in the reply."""

    url: str | None = None
    path: str | None = None
    method: Method = "POST"
    body: dict[str, Any] | list[Any] | None = None
    answer: str | None = None
    form: Form | None = None
    none: str | bool | None = None
    feature: str | None = None
    value: str | None = None
    relative: bool = False


class Inputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """[domain]: which inputs the service takes; features by name or number, limits for all, in order, or by name."""

    low: float | list[float] | dict[str, float] | None = None
    high: float | list[float] | dict[str, float] | None = None
    integers: list[int | str] = []
    groups: list[list[int | str]] = []


class Terms(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """[mechanism]: the published terms; `radius = "secret"`, `slack = "any"` where a number is not known.

    `domain` is what explanations are chosen from; without it the file's [domain], which they cannot leave.
    """

    distance: str | dict[str, Any] | None = None
    robustness: str | dict[str, Any] | None = None
    radius: float | Literal["secret"] = 0.0
    tolerance: float | None = None
    slack: float | Literal["any"] = 0.0
    domain: Inputs | None = None


class Idempotency(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[idempotency]: the service answers a repeated key from memory and counts it once."""

    header: str = "Idempotency-Key"


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """[limits]: how fast, how long, how much."""

    rate: str | float | None = None
    timeout: float = 30.0
    connect_timeout: float = 10.0
    retries: int = 5
    reply_bytes: int = 1_000_000
    longest_wait: float = 120.0


class Tls(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """[tls]: a certificate authority of one's own; `allow_plain` lets secrets go over http to other machines."""

    ca_file: str | None = None
    allow_plain: bool = False


class Endpoint(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, dict=True, eq=True
):
    """An endpoint file. It holds no secret: ${NAME} stays ${NAME}.

    >>> endpoint = read_endpoint({"url": "https://scores.example/v1/models/loans", "features": ["age", "income"]})
    >>> endpoint.size, endpoint.preset
    (2, 'kserve-v1')
    >>> read_endpoint(endpoint.to_dict()) == endpoint
    True
    """

    url: str
    preset: Preset = "kserve-v1"
    features: list[str] | None = None
    dimension: int | None = None
    authorized: bool = False
    positive: bool | int | float | str | None = None
    labels: dict[str, int] | None = None
    threshold: float | None = None
    start: list[float] | None = None
    headers: dict[str, str] = {}
    mechanism: Terms | None = None
    domain: Inputs | None = None
    idempotency: Idempotency | None = None
    limits: Limits = Limits()
    tls: Tls = Tls()
    proxy: str | None = None
    classify: Verb | bool | None = None
    explain: Verb | bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """The file's entries, JSON-ready; `read_endpoint` reads them back."""
        entries: dict[str, Any] = msgspec.to_builtins(self)
        return entries

    @cached_property
    def size(self) -> int:
        """The number of features."""
        return len(self.features) if self.features is not None else as_count(self.dimension, "dimension")

    @cached_property
    def terms(self) -> Mechanism | None:
        """The published terms; None if the file has no [mechanism]."""
        if self.mechanism is None:
            return None
        given = self.mechanism
        radius = None if isinstance(given.radius, str) else given.radius
        slack = None if isinstance(given.slack, str) else given.slack
        domain = self.inputs if given.domain is None else self._domain(given.domain, "[mechanism] domain")
        terms = Mechanism(given.distance, given.robustness, radius, given.tolerance, slack, domain)
        terms.fits(self.size)
        return terms

    @cached_property
    def inputs(self) -> Domain | None:
        """Which inputs the service takes; None if the file has no [domain]."""
        return None if self.domain is None else self._domain(self.domain, "[domain]")

    @cached_property
    def first(self) -> FloatArray | None:
        """The first question, if the file has one."""
        if self.start is None:
            return None
        point = as_point(self.start, self.size, "start")
        if self.inputs is not None:
            self.inputs.refuse(point)
        return point

    def _domain(self, given: Inputs, where: str) -> Domain:
        """The table `where` as a domain."""
        low = self._limits(given.low, -math.inf, f"{where} low")
        high = self._limits(given.high, math.inf, f"{where} high")
        groups = [[self._number(i, f"{where} groups") for i in group] for group in given.groups]
        return Domain(self.size, low, high, groups, [self._number(i, f"{where} integers") for i in given.integers])

    def _number(self, feature: int | str, key: str) -> int:
        if isinstance(feature, int):
            return feature
        if self.features is None or feature not in self.features:
            raise InvalidInput(f"{key} names the feature {feature!r}, which is not among features")
        return self.features.index(feature)

    def _limits(self, given: float | list[float] | dict[str, float] | None, none: float, key: str) -> Any:
        if not isinstance(given, dict):
            return given
        limits = [none] * self.size
        for feature, limit in given.items():
            limits[self._number(feature, key)] = limit
        return limits


def read_endpoint(entries: Mapping[str, Any]) -> Endpoint:
    """The endpoint that the entries of a file describe; InvalidInput names the key that is wrong."""
    if not isinstance(entries, Mapping):
        raise InvalidInput(f"an endpoint is a table with the key url, got {type(entries).__name__}")
    fault = ""
    try:
        endpoint = msgspec.convert(dict(entries), Endpoint)
    except msgspec.ValidationError as error:
        fault = str(error).replace("`", "'").replace("$.", "").replace("Object", "the table")
        key = re.search(r"(\w+)'$", fault)
        if fault.startswith("Invalid enum value") and key is not None and key[1] in _CHOICES:
            fault += f"; it must be one of {', '.join(_CHOICES[key[1]])}"
    except RecursionError:
        fault = "nested too deep"
    if fault:
        raise InvalidInput(f"endpoint file: {fault}")
    _check(endpoint)
    return endpoint


def _check(endpoint: Endpoint) -> None:
    """Refuse what is readable but cannot be meant."""
    _check_features(endpoint)
    _check_labels(endpoint)
    _check_limits(endpoint.limits)
    headers = [*endpoint.headers, *([endpoint.idempotency.header] if endpoint.idempotency else [])]
    for name in headers:
        check_header(name, endpoint.headers.get(name, ""))
    if len({name.lower() for name in headers}) < len(headers):
        raise InvalidInput("endpoint file: a header stands there twice ([headers] and [idempotency] together)")
    refuse_literal_credentials(endpoint.to_dict())
    for verb in ("classify", "explain"):
        given = getattr(endpoint, verb)
        if isinstance(given, Verb) and given.url is not None and given.path is not None:
            raise InvalidInput(f"[{verb}] has both url (a whole address) and path (appended to url); give one")
    # Computed once, here, so that a wrong term is refused when the file is read and not at the first question.
    _ = endpoint.terms, endpoint.inputs, endpoint.first


def _check_features(endpoint: Endpoint) -> None:
    if endpoint.features is None and endpoint.dimension is None:
        raise InvalidInput('endpoint file: features = ["…", …], the inputs in order (or dimension = p), is missing')
    if endpoint.features is not None:
        if len(set(endpoint.features)) < len(endpoint.features) or not all(endpoint.features):
            raise InvalidInput("endpoint file: features holds a name twice, or an empty one")
        if endpoint.dimension not in (None, len(endpoint.features)):
            raise InvalidInput(
                f"endpoint file: dimension is {endpoint.dimension}, but features has {len(endpoint.features)} names"
            )
    as_count(endpoint.size, "endpoint file: features")


def _check_labels(endpoint: Endpoint) -> None:
    ways = [name for name in ("positive", "labels", "threshold") if getattr(endpoint, name) is not None]
    if len(ways) > 1:
        raise InvalidInput(f"endpoint file: {' and '.join(ways)} both say what means Yes; give one")
    if endpoint.labels is not None and not set(endpoint.labels.values()) == {1, -1}:
        raise InvalidInput("endpoint file: labels gives every label 1 (Yes) or -1 (No), and each at least once")
    for name in ("positive", "threshold"):
        number = getattr(endpoint, name)
        if isinstance(number, float) and not math.isfinite(number):
            raise InvalidInput(f"endpoint file: {name} must be finite, got {number}")


def _check_limits(limits: Limits) -> None:
    read_rate(limits.rate, "[limits] rate")
    for name in ("timeout", "connect_timeout"):
        if not 0 < getattr(limits, name) <= 86_400:
            raise InvalidInput(f"[limits] {name} must be seconds, above 0 and at most a day")
    if not 0 <= limits.longest_wait <= 86_400:
        raise InvalidInput("[limits] longest_wait must be seconds, at least 0 and at most a day")
    if not 0 <= limits.retries <= 1000:
        raise InvalidInput(f"[limits] retries must be a whole number from 0 to 1000, got {limits.retries}")
    if not 1 <= limits.reply_bytes <= 1_000_000_000:
        raise InvalidInput(f"[limits] reply_bytes must be from 1 to 1,000,000,000, got {limits.reply_bytes}")
