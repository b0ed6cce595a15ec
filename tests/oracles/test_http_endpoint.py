"""The endpoint file: read, refused by key, written back; and when requests may be sent."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import overexplain as ox
from overexplain.errors import EndpointFailed, InvalidInput
from overexplain.oracles.http.addresses import joined, read_address
from overexplain.oracles.http.endpoint import read_endpoint
from overexplain.oracles.http.oracle import HttpOracle
from overexplain.oracles.http.pacing import Pacing, read_rate

FULL = """
preset = "kserve-v1"
url = "https://scores.example/v1/models/loans"
features = ["age", "income", "owns", "rents"]
authorized = true
labels = { approved = 1, denied = -1 }
start = [40, 2.5, 1, 0]
proxy = "http://proxy.example:3128"

[headers]
X-Team = "risk"

[mechanism]
distance = "l1"
robustness = "l2"
radius = "secret"
slack = "any"

[domain]
low = { age = 18 }
high = [99, 10, 1, 1]
integers = ["age"]
groups = [["owns", 3]]

[idempotency]

[limits]
rate = "30/min"
timeout = 5
retries = 2

[classify]
answer = "predictions[0].decision"
"""


def test_a_full_file(tmp_path: Path) -> None:
    path = tmp_path / "endpoint.toml"
    path.write_text(FULL, encoding="utf-8")
    with HttpOracle.from_toml(path) as service:
        assert (service.dimension, service.features) == (4, ("age", "income", "owns", "rents"))
        assert (service.authorized, service.idempotent) == (True, True)
        expected = ox.Domain(4, [18, -np.inf, -np.inf, -np.inf], [99, 10, 1, 1], [[2, 3]], [0])
        assert service.domain == expected
        # An explanation is an input, too: it is chosen from those that the service takes.
        assert service.mechanism == ox.Mechanism("l1", "l2", None, None, None, domain=expected)
        assert service.settings.first.tolist() == [40, 2.5, 1, 0]
        assert repr(service) == "HttpOracle(https://scores.example:443, kserve-v1, classify, explain)"
        written = json.loads(json.dumps(service.settings.to_dict()))
        assert read_endpoint(written) == service.settings
        assert isinstance(service, ox.Oracle)


def test_the_least_that_a_file_must_say() -> None:
    with HttpOracle.from_dict({"url": "https://h.example/m", "dimension": 3}) as service:
        assert service.mechanism == ox.Mechanism(None, slack=None)  # nothing is promised but another label
        assert (service.features, service.domain, service.authorized, service.idempotent) == (None, None, False, False)
    with HttpOracle.from_dict({"url": "https://h.example/m", "dimension": 3, "explain": False}) as labels:
        assert labels.mechanism is None
        assert labels.explain is None


def test_what_explanations_are_chosen_from_may_be_less_than_what_is_taken() -> None:
    entries = {"url": "https://h.example/m", "features": ["age", "job"], "mechanism": {"distance": "l1"}}
    with HttpOracle.from_dict(entries) as service:
        assert service.mechanism == ox.Mechanism("l1")
    for chosen, domain in (
        ({}, ox.Domain(2)),
        ({"integers": ["job"], "low": {"age": 18}}, ox.Domain(2, [18, -np.inf], integers=[1])),
    ):
        given = {**entries, "mechanism": {"distance": "l1", "domain": chosen}, "domain": {"high": 99}}
        with HttpOracle.from_dict(given) as service:
            assert service.mechanism == ox.Mechanism("l1", domain=domain)
            assert service.domain == ox.Domain(2, high=99)
            assert read_endpoint(json.loads(json.dumps(service.settings.to_dict()))) == service.settings
    with HttpOracle.from_dict({"url": "https://h.example/m", "dimension": 2, "domain": {"low": 0}}) as service:
        assert service.mechanism == ox.Mechanism(None, slack=None, domain=ox.Domain(2, 0))


@pytest.mark.parametrize(
    ("entries", "names"),
    [
        ({"mechanism": {"distance": "l1", "domain": {"integers": ["age"]}}}, "[mechanism] domain integers names the feature 'age'"),
        ({"mechanism": {"distance": "l1", "domain": True}}, "domain"), ({"mechanism": {"domain": {"lows": 1}}}, "lows"),
        ({"url": None}, "url"), ({"urls": "x"}, "urls"), ({"preset": "kserve"}, "preset"), ({"dimension": "2"}, "dimension"),
        ({"dimension": 0}, "dimension"), ({"dimension": None}, "features"), ({"features": ["a"]}, "dimension"),
        ({"features": ["a", "a"]}, "twice"), ({"authorized": "yes"}, "authorized"), ({"start": [1.0]}, "start"),
        ({"positive": 1, "threshold": 0.5}, "positive and threshold"), ({"labels": {"a": 1}}, "labels"),
        ({"labels": {"a": 1, "b": 0}}, "labels"), ({"threshold": math.nan}, "threshold"), ({"headers": {"A B": "x"}}, "'A B'"),
        ({"headers": {"Host": "x"}}, "Host"), ({"headers": {"X": "a\r\nY: b"}}, "X holds control"), ({"headers": ["X"]}, "headers"),
        ({"headers": {"Content-Length": "5"}}, "Content-Length"), ({"headers": {"X": "1", "x": "2"}}, "twice"),
        ({"headers": {"X": "1"}, "idempotency": {"header": "x"}}, "twice"), ({"idempotency": {"header": "a b"}}, "'a b'"),
        ({"limits": {"rate": "fast"}}, "rate"), ({"limits": {"rate": 0}}, "rate"), ({"limits": {"timeout": 0}}, "timeout"),
        ({"limits": {"timeout": math.nan}}, "timeout"),
        ({"limits": {"retries": -1}}, "retries"), ({"limits": {"retries": 1.5}}, "retries"),
        ({"limits": {"reply_bytes": 0}}, "reply_bytes"), ({"limits": {"longest_wait": -1}}, "longest_wait"),
        ({"limits": {"speed": 1}}, "speed"), ({"tls": {"verify": False}}, "verify"), ({"mechanism": {"distance": "l3.5"}}, "l3.5"),
        ({"mechanism": {"distance": "l1", "radius": "hidden"}}, "radius"), ({"mechanism": {"distances": "l1"}}, "distances"),
        ({"mechanism": {"distance": "l1", "radius": 0.5}}, "robustness"), ({"domain": {"integers": ["age"]}}, "age"),
        ({"domain": {"low": 1.0, "high": 0.0}}, "low"), ({"domain": {"low": 1.0}, "start": [0.0, 0.0]}, "between"),
        ({"classify": {"path": "/a", "url": "https://h.example/b"}}, "classify"), ({"explain": {"answers": "x"}}, "answers"),
        ({"explain": {"none": 1}}, "none"),
        ({"explain": {"method": "GET"}}, "method"), ({"explain": {"form": "list"}}, "form"),
        ({"url": "https://h.example/${A B}"}, "NAME"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_by_name(entries: dict[str, Any], names: str) -> None:
    given = {"url": "https://h.example/m", "dimension": 2, **entries}
    with pytest.raises(InvalidInput) as caught:
        HttpOracle.from_dict({key: value for key, value in given.items() if value is not None})
    assert names in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("entries", "names"),
    [
        ({"classify": False, "explain": False}, "neither"), ({"preset": "oip-v2", "mechanism": {"distance": "l1"}}, "mechanism"),
        ({"preset": "generic"}, "neither"), ({"preset": "generic", "explain": {"answer": "x"}}, "body"),
        ({"preset": "generic", "explain": {"body": {"a": 1}, "answer": "x"}}, "no place"),
        ({"preset": "generic", "explain": {"body": ["{{vector}}"]}}, "answer"),
        ({"preset": "generic", "explain": {"body": ["{{vector}}"], "answer": "a[["}}, "JMESPath"),
        ({"preset": "generic", "explain": {"body": ["x {{vector}}"], "answer": "a"}}, "stand alone"),
        ({"preset": "generic", "explain": {"body": ["{{record}}"], "answer": "a"}}, "features"),
        ({"preset": "generic", "explain": {"body": ["{{vector}}"], "answer": "a", "form": "record"}}, "features"),
        ({"preset": "generic", "explain": {"body": ["{{vector}}"], "answer": "a", "relative": True}}, "changes"),
        ({"preset": "generic", "classify": {"body": ["{{vector}}"], "answer": "a", "none": "b"}}, "none"),
        ({"preset": "mlserver-alibi", "explain": {}}, "[explain] url"),
        ({"preset": "dice-json", "classify": {"answer": "y"}}, "url"),
        ({"explain": {"form": "record"}}, "answer"), ({"url": "https://h.example"}, "needs a path"), ({"url": "h.example/m"}, "https://"),
        ({"url": "file:///etc/passwd"}, "https://"), ({"url": "https://h.example:port/m"}, "https://"), ({"url": "https:///m"}, "https://"),
        ({"url": "https://h.example/ü"}, "ASCII"),
        ({"url": "https://h.example/a b"}, "blanks"), ({"url": "https://h.example/m#top"}, "'#'"),
        ({"url": "https://[::1/m"}, "address"), ({"proxy": "socks5://p.example"}, "proxy"), ({"url": "https://h.example:99999/m"}, "https://"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused_when_the_file_is_opened(entries: dict[str, Any], names: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        HttpOracle.from_dict({"url": "https://h.example/m", "dimension": 2, **entries})
    assert names in str(caught.value)


@pytest.mark.parametrize("preset", ["kserve-v1", "generic"])
@pytest.mark.parametrize(
    "url", ["127.0.0.1:8299/x", "localhost:8299/x", "h.example", "//h.example/x", "h.example/x?to=http://y"]
)
def test_an_address_without_a_scheme_is_told_so(preset: str, url: str) -> None:
    verb = {"body": ["{{vector}}"], "answer": "x"}
    entries = {"url": url, "dimension": 2, "preset": preset, "classify": verb}
    with pytest.raises(InvalidInput, match="url has no scheme: it must begin with https:// or http://"):
        HttpOracle.from_dict(entries)
    with pytest.raises(InvalidInput, match=r"\[classify\] url has no scheme"):
        HttpOracle.from_dict(
            {**entries, "url": "https://h.example/m", "classify": {**verb, "url": url}, "explain": False}
        )
    with pytest.raises(InvalidInput, match="proxy has no scheme"):
        HttpOracle.from_dict({**entries, "url": "https://h.example/m", "proxy": url})


@pytest.mark.parametrize(
    ("entries", "choices"),
    [
        ({"preset": "kserve"}, "'preset'; it must be one of kserve-v1, oip-v2, mlserver-alibi, dice-json, generic"),
        ({"explain": {"form": "list"}}, "'explain.form'; it must be one of vector, record, changes"),
        ({"classify": {"method": "GET"}}, "'classify.method'; it must be one of POST, PUT"),
    ],
)
def test_a_word_that_is_none_of_the_choices_is_told_them(entries: dict[str, Any], choices: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        HttpOracle.from_dict({"url": "https://h.example/m", "dimension": 2, **entries})
    assert choices in str(caught.value)


@pytest.mark.parametrize(
    "text", ["url = ", "\x00", "url = 1", "a" * 1_100_000, "a = " + "[" * 5000, "[limits]\nrate = 1979-05-27"]
)
def test_files_that_are_none_are_refused_with_their_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "endpoint.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match="endpoint.toml: "):
        HttpOracle.from_toml(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="not UTF-8"):
        HttpOracle.from_toml(path)
    with pytest.raises(FileNotFoundError):
        HttpOracle.from_toml(tmp_path / "absent.toml")


def test_a_ca_file_lies_beside_the_endpoint_file(tmp_path: Path) -> None:
    path = tmp_path / "endpoint.toml"
    path.write_text('url = "https://h.example/m"\ndimension = 1\n[tls]\nca_file = "absent.pem"\n', encoding="utf-8")
    with pytest.raises(InvalidInput, match=f"{tmp_path}/absent.pem"):
        HttpOracle.from_toml(path)


def test_addresses() -> None:
    address = read_address("https://[2001:db8::1]/a?b=c", "url")
    assert address.origin == ("https", "2001:db8::1", 443)
    assert address.followed("d").target == "/d"
    assert address.followed("https://[2001:db8::1]:443/x").origin == address.origin
    assert joined("https://h.example/m?v=1", "/infer") == "https://h.example/m/infer?v=1"
    with pytest.raises(InvalidInput, match="needs a path"):
        joined("https://h.example", ".elsewhere.example/x")  # must not become another host


@pytest.mark.parametrize(
    ("text", "rate"), [("10/s", 10.0), ("30/min", 0.5), (" 0.5 / s ", 0.5), ("3600/h", 1.0), (4, 4.0), (None, None)]
)
def test_rates(text: Any, rate: float | None) -> None:
    assert read_rate(text) == rate


@pytest.mark.parametrize("text", ["10", "/s", "-1/s", "0/s", "1e9/s", "10/day", True, math.inf, math.nan, [1]])
def test_rates_that_are_none(text: Any) -> None:
    with pytest.raises(InvalidInput, match="10/s"):
        read_rate(text)


class Clock:
    def __init__(self) -> None:
        self.now, self.wall = 50.0, 1e9

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.wall

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.pass_(seconds if seconds < 1e-3 else seconds * 0.9)  # a sleep may end early

    def pass_(self, seconds: float) -> None:
        self.now += seconds
        self.wall += seconds


@given(
    rate=st.floats(0.01, 100.0),
    steps=st.lists(st.tuples(st.floats(0, 3), st.floats(0, 1), st.none() | st.floats(0, 50)), max_size=12),
)
def test_no_two_sends_are_closer_than_the_rate_nor_within_a_pause(rate: float, steps: list[Any]) -> None:
    clock = Clock()
    pacing = Pacing(rate, 100.0, clock)
    replied, until = -math.inf, -math.inf
    for idle, latency, pause in steps:
        clock.pass_(idle)
        pacing.wait()
        assert clock.now >= replied + 1 / rate - 1e-6
        assert clock.now >= until - 1e-6
        pacing.sent()
        clock.pass_(latency)
        pacing.sent()
        replied = clock.now
        if pause is not None:
            pacing.pause_until(clock.wall + pause)
            until = max(until, clock.now + pause)


def test_a_clock_that_was_set_does_not_stop_the_run() -> None:
    clock = Clock()
    pacing = Pacing(1.0, 100.0, clock)
    pacing.sent_at(clock.wall + 1e6)  # another process's clock was ahead
    pacing.wait()
    assert clock.now <= 51.5
    pacing.pause_until(clock.wall - 1e6)
    pacing.wait()
    assert clock.now <= 51.5


def test_a_pause_longer_than_the_longest_wait_is_not_slept() -> None:
    clock = Clock()
    pacing = Pacing(None, 100.0, clock)
    pacing.pause_until(clock.wall + 101)
    with pytest.raises(EndpointFailed, match="101.0 s more") as caught:
        pacing.wait()
    assert caught.value.stops
    clock.pass_(2)
    pacing.wait()
    assert clock.now >= 151 - 1e-6
