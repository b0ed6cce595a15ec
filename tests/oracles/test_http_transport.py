"""What the network can do to a request, over real loopback sockets: retried, counted, cut short, never repeated in secret."""

from __future__ import annotations

import email.utils
import socket
import time
import tracemalloc
from typing import Any

import numpy as np
import pytest

from http_clients import HERE, NO, YES, FakeClock, Told, oracle, stopped
from loopback import Loopback, Request, Scripted, reset
from overexplain.errors import BudgetExhausted
from overexplain.oracles.http.endpoint import read_endpoint
from overexplain.oracles.http.oracle import HttpOracle


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_busy_services_are_asked_again_and_every_send_is_told(status: int) -> None:
    with Loopback([Scripted(status=status)] * 3 + [YES]) as server, oracle(server.url) as service:
        question = Told()
        assert service.ask("classify", HERE, question) == 1
        assert question.sent == len(server.requests) == 4
        assert [str(status) in reason for reason, _ in question.failures] == [True] * 3
        assert len({request.body for request in server.requests}) == 1


def test_a_storm_of_429_ends_after_the_retries_with_everything_told() -> None:
    clock = FakeClock()
    with Loopback([Scripted(status=429)]) as server, oracle(server.url, clock, limits={"retries": 4}) as service:
        question = Told()
        failure = stopped(service, question)
        assert failure.stops
        assert "given up after 5 requests" in str(failure)
        assert question.sent == len(server.requests) == len(question.failures) == 5
    assert len(clock.slept) == 4
    assert all(wait <= 0.5 * 2**k for k, wait in enumerate(clock.slept))  # full jitter below a doubling limit
    assert len(set(clock.slept)) == 4


def test_the_budget_ends_the_retries() -> None:
    with Loopback([Scripted(status=503)]) as server, oracle(server.url) as service:
        question = Told(budget=2)
        with pytest.raises(BudgetExhausted):
            service.ask("classify", HERE, question)
        assert len(server.requests) == question.sent == 2


@pytest.mark.parametrize("form", ["seconds", "date", "date without the service's time"])
def test_retry_after_is_obeyed_and_told(form: str) -> None:
    clock = FakeClock()
    headers = {"Retry-After": "17"}
    if form.startswith("date"):
        headers["Retry-After"] = email.utils.formatdate(clock.time() + 17, usegmt=True)
    if form == "date":  # the service's clock is a day behind ours: only the difference of its own times counts
        headers["Retry-After"] = email.utils.formatdate(clock.time() - 86_400 + 17, usegmt=True)
        headers["Date"] = email.utils.formatdate(clock.time() - 86_400, usegmt=True)
    with Loopback([Scripted(status=429, headers=headers), YES]) as server, oracle(server.url, clock) as service:
        question, before = Told(), clock.now
        assert service.ask("classify", HERE, question) == 1
        assert clock.now - before >= 17
        assert question.failures[0][1] == pytest.approx(1.7e9 + before + 17, abs=1e-3)


@pytest.mark.parametrize("value", ["soon", "-5", "nan", ""])
def test_a_meaningless_retry_after_leaves_the_usual_wait(value: str) -> None:
    clock = FakeClock()
    with (
        Loopback([Scripted(status=503, headers={"Retry-After": value}), YES]) as server,
        oracle(server.url, clock) as service,
    ):
        assert service.ask("classify", HERE) == 1
        assert sum(clock.slept) <= 0.5


@pytest.mark.parametrize("value", ["7200", "1e400", "9" * 5000])
def test_a_wait_that_is_too_long_stops_is_told_and_holds_for_later_questions(value: str) -> None:
    clock = FakeClock()
    with (
        Loopback([Scripted(status=429, headers={"Retry-After": value}), YES]) as server,
        oracle(server.url, clock) as service,
    ):
        question = Told()
        failure = stopped(service, question)
        assert failure.stops
        assert "asks to wait" in str(failure)
        assert question.failures[0][1] >= clock.time() + 7200
        assert stopped(service, later := Told()).stops
        assert later.sent == 0
        assert len(server.requests) == 1
        assert clock.slept == []


def test_a_pause_and_a_rate_from_before_a_crash_are_kept() -> None:
    clock = FakeClock()
    with Loopback([YES]) as server, oracle(server.url, clock, limits={"rate": "1/min"}) as service:
        service.sent_at(clock.time() - 50)  # it may have arrived as late as its timeout of 30 s
        service.ask("classify", HERE)
        assert sum(clock.slept) == pytest.approx(40)
        service.pause_until(clock.time() + 90)
        service.ask("classify", HERE)
        assert sum(clock.slept) == pytest.approx(130)


def test_the_rate_holds_by_the_server_s_clock() -> None:
    with (
        Loopback([Scripted({"predictions": [1]}, after=0.02), Scripted(status=503), YES]) as server,
        HttpOracle.from_dict(
            {"url": server.url + "/m", "dimension": 2, "limits": {"rate": "20/s", "retries": 1}}
        ) as service,
    ):
        for _ in range(5):
            service.ask("classify", HERE)
        gaps = np.diff(server.arrivals)
        assert len(gaps) == 5
        assert gaps.min() >= 1 / 20


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(reset, id="reset before a reply"),
        pytest.param(Scripted({"predictions": [0]}, cut=0), id="closed before a reply"),
        pytest.param(Scripted({"predictions": [0]}, cut=30), id="cut in the head"),
        pytest.param(Scripted({"predictions": [0]}, cut=-3), id="cut in the body"),
        pytest.param(Scripted(b"", headers={"Content-Length": "no number"}), id="no HTTP"),
    ],
)
def test_broken_replies_are_asked_again_as_a_request_that_counts(fault: Any) -> None:
    with Loopback([fault, YES]) as server, oracle(server.url) as service:
        question = Told()
        assert service.ask("classify", HERE, question) == 1
        assert question.sent == len(server.requests) == 2
        assert len(question.failures) == 1


def test_a_reset_after_retry_after_was_heard_does_not_cancel_the_wait() -> None:
    clock = FakeClock()
    cut = Scripted(b"x" * 100, status=503, headers={"Retry-After": "60"}, cut=-50)
    with Loopback([cut, YES]) as server, oracle(server.url, clock) as service:
        assert service.ask("classify", HERE) == 1
        assert sum(clock.slept) >= 60


def drip(connection: socket.socket, _request: Request) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(1000):
        connection.sendall(b" ")
        time.sleep(0.05)


def drip_head(connection: socket.socket, _request: Request) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    for _ in range(1000):
        connection.sendall(b"X: y\r\n")
        time.sleep(0.05)


@pytest.mark.parametrize("slow", [drip, drip_head, Scripted({"predictions": [0]}, after=5.0)])
def test_a_reply_that_comes_in_drops_is_given_up_at_the_deadline(slow: Any) -> None:
    with Loopback([slow, YES]) as server, oracle(server.url, limits={"timeout": 0.5}) as service:
        question = Told()
        assert service.ask("classify", HERE, question) == 1
        assert "within 0.5 s" in question.failures[0][0]


def test_nobody_there_stops_after_the_retries() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with oracle(f"http://127.0.0.1:{port}", limits={"retries": 2}) as service:
        question = Told()
        failure = stopped(service, question)
        assert failure.stops
        assert "no connection" in str(failure)
        assert question.sent == len(question.failures) == 3


def test_a_host_name_that_is_none_stops_at_once() -> None:
    with oracle(f"http://{'a' * 70}.example") as service:
        question = Told()
        assert stopped(service, question).stops
        assert question.sent == 1


def flood(connection: socket.socket, _request: Request) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n")
    block = b"[" * 1_000_000
    for _ in range(105):
        connection.sendall(block)


def test_a_reply_of_100_megabytes_is_cut_at_the_limit() -> None:
    with Loopback([flood, YES]) as server, oracle(server.url) as service:
        question = Told()
        tracemalloc.start()
        try:
            failure = stopped(service, question)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert not failure.stops
        assert "reply_bytes = 1,000,000" in str(failure)
        assert question.failures == []  # it was answered, badly: whoever asked records that
        assert peak < 10_000_000  # a megabyte of reply, joined once
        assert service.ask("classify", HERE) == 1


def test_an_endless_error_page_keeps_its_meaning() -> None:
    def busy(connection: socket.socket, _request: Request) -> None:
        connection.sendall(
            b"HTTP/1.1 503 Busy\r\nRetry-After: 9\r\nContent-Length: 50000000\r\n\r\n" + b"x" * 5_000_000
        )

    clock = FakeClock()
    with Loopback([busy, YES]) as server, oracle(server.url, clock) as service:
        assert service.ask("classify", HERE) == 1
        assert sum(clock.slept) >= 9


@pytest.mark.parametrize("status", [401, 403, 404, 405, 407])
def test_what_is_wrong_for_every_question_stops(status: int) -> None:
    with Loopback([Scripted({"error": "go away"}, status=status)]) as server, oracle(server.url) as service:
        question = Told()
        failure = stopped(service, question)
        assert failure.stops
        assert str(status) in str(failure)
        assert "go away" in str(failure)
        assert (question.sent, len(question.failures), len(server.requests)) == (1, 1, 1)


@pytest.mark.parametrize("status", [400, 409, 422, 500, 501])
def test_what_is_wrong_with_one_question_does_not_stop(status: int) -> None:
    with Loopback([Scripted(b"<h1>Oops</h1>", status=status), NO]) as server, oracle(server.url) as service:
        question = Told()
        failure = stopped(service, question)
        assert not failure.stops
        assert f"{status}: <h1>Oops</h1>" in str(failure)
        assert (question.sent, question.failures) == (1, [])
        assert service.ask("classify", HERE) == -1


@pytest.mark.parametrize(
    "body",
    [
        b"<html>hello</html>", b"", b"\xff\xfe\xfd", b"[" * 100_000, b'{"predictions": [' + b"9" * 6000 + b"]}",
        b'{"predictions": []}', b'{"predictions": [1, 0]}', b'{"predictions": [null]}', b'{"predictions": ["yes"]}',
        b'{"predictions": [0.7]}', b'{"predictions": [NaN]}', b'{"predictions": {"0": 1}}', b'[1]', b"null", b'{"other": 1}',
    ],
)  # fmt: skip
def test_replies_that_are_no_label_are_refused_in_one_line(body: bytes) -> None:
    with Loopback([Scripted(body), YES]) as server, oracle(server.url) as service:
        failure = stopped(service)
        assert not failure.stops
        assert "\n" not in str(failure)
        assert len(str(failure)) < 400
        assert service.ask("classify", HERE) == 1


def test_the_content_type_may_lie() -> None:
    lie = Scripted({"predictions": [1]}, headers={"Content-Type": "image/png"})
    with Loopback([lie]) as server, oracle(server.url) as service:
        assert service.ask("classify", HERE) == 1


def test_a_compressed_reply_is_refused() -> None:
    with (
        Loopback([Scripted(b"\x1f\x8b", headers={"Content-Encoding": "gzip"})]) as server,
        oracle(server.url) as service,
    ):
        assert "compressed" in str(stopped(service))
        assert server.requests[0].headers["accept-encoding"] == "identity"


def test_an_idempotent_endpoint_gets_the_question_s_key_in_every_send() -> None:
    with (
        Loopback([Scripted(status=503), YES]) as server,
        oracle(server.url, idempotency={"header": "X-Once"}) as service,
    ):
        service.ask("classify", HERE, Told())
        service.ask("classify", HERE)
        service.ask("classify", HERE)
        keys = [request.headers["x-once"] for request in server.requests]
        assert keys[:2] == ["key-of-this-question"] * 2
        assert len(set(keys)) == 3


def test_events_say_what_happened_without_the_query() -> None:
    lines: list[str] = []
    with Loopback([Scripted(status=429), YES]) as server:
        settings = read_endpoint({"url": server.url + "/m?version=2", "dimension": 2})
        with HttpOracle(settings, clock=FakeClock(), rng=0, environment={}) as service:
            service.on_event = lines.append
            service.ask("classify", HERE)
        assert server.requests[0].target == "/m:predict?version=2"
    assert lines[0].startswith("POST /m:predict 429 ")
    assert lines[1].startswith("429 (too many requests), again in ")
    assert lines[2].startswith("POST /m:predict 200 ")
