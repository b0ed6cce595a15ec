"""Where requests go: redirects, connections of their own or kept, certificates, proxies."""

from __future__ import annotations

import base64
import contextlib
import socket
import threading
from pathlib import Path

import pytest

from http_clients import HERE, NO, YES, Told, oracle, stopped
from loopback import Loopback, Request, Scripted
from loopback_certificate import certificate_file, server_context
from overexplain.errors import InvalidInput
from overexplain.oracles.http.endpoint import read_endpoint
from overexplain.oracles.http.oracle import HttpOracle


def test_redirects_within_the_origin_are_followed_and_each_hop_counts() -> None:
    hops = [Scripted(status=307, headers={"Location": "/b"}), Scripted(status=308, headers={"Location": "c?d=1"}), YES]
    with Loopback(hops) as server, oracle(server.url) as service:
        question = Told()
        assert service.ask("classify", HERE, question) == 1
        assert [request.target for request in server.requests] == ["/v1/models/m:predict", "/b", "/c?d=1"]
        assert {request.method for request in server.requests} == {"POST"}
        assert len({request.body for request in server.requests}) == 1
        assert (question.sent, len(question.failures)) == (3, 2)


@pytest.mark.parametrize(
    "location",
    [
        "http://other.example/x?token=abc",
        "https://127.0.0.1/x",
        "//127.0.0.1:1/x",
        "http://user:abc@127.0.0.1/",
        "",
        "ftp://x/",
    ],
)
@pytest.mark.parametrize("status", [302, 307])
def test_redirects_elsewhere_stop_and_nothing_is_sent_there(location: str, status: int) -> None:
    with (
        Loopback([Scripted(status=status, headers={"Location": location})]) as server,
        oracle(server.url) as service,
    ):
        question = Told()
        failure = stopped(service, question)
        assert failure.stops
        assert "abc" not in str(failure)
        assert (question.sent, len(server.requests)) == (1, 1)


def test_a_circle_of_redirects_ends() -> None:
    with (
        Loopback([Scripted(status=307, headers={"Location": "/again"})]) as server,
        oracle(server.url) as service,
    ):
        assert "more than 3 redirects" in str(stopped(service))
        assert len(server.requests) == 4


def test_a_reply_that_comes_twice_is_not_the_answer_to_the_next_question(tmp_path: Path) -> None:
    """Over http and over https, where connections are kept."""
    script = [YES, Scripted({"predictions": [1]}, twice=True), NO, YES]
    with Loopback(script) as server, oracle(server.url) as service:
        assert [service.ask("classify", HERE) for _ in script] == [1, 1, -1, 1]
        assert len({request.connection for request in server.requests}) == 4
    with (
        Loopback(script, tls=server_context(tmp_path)) as server,
        oracle(server.url, tls={"ca_file": str(certificate_file(tmp_path))}) as service,
    ):
        assert [service.ask("classify", HERE) for _ in script] == [1, 1, -1, 1]
        assert [request.connection for request in server.requests] == [1, 1, 2, 2]


def test_an_untrusted_certificate_stops_before_anything_is_sent(tmp_path: Path) -> None:
    with (
        Loopback([YES], tls=server_context(tmp_path)) as server,
        oracle(server.url, headers={"X-Plain": "1"}) as service,
    ):
        failure = stopped(service)
        assert failure.stops
        assert "certificate is not trusted" in str(failure)
        assert server.requests == []


def test_a_certificate_for_another_name_is_refused(tmp_path: Path) -> None:
    with Loopback([YES], tls=server_context(tmp_path)) as server:
        elsewhere = server.url.replace("localhost", "127.0.0.2")
        with oracle(elsewhere, tls={"ca_file": str(certificate_file(tmp_path))}, limits={"retries": 0}) as service:
            assert stopped(service).stops
            assert server.requests == []


def test_ca_files_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    for name, fault in (("absent.pem", "cannot be read"), ("empty.pem", "no certificates")):
        with pytest.raises(InvalidInput, match=fault):
            oracle("https://scores.example", tls={"ca_file": str(tmp_path / name)})


def test_requests_go_through_the_proxy_of_the_file_and_of_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    with Loopback([YES]) as server, oracle(server.url) as service:
        assert service.ask("classify", HERE) == 1
    with Loopback([YES]) as proxy, oracle("http://scores.example", proxy=proxy.url) as service:
        assert service.ask("classify", HERE) == 1
        assert proxy.requests[0].target == "http://scores.example:80/v1/models/m:predict"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_cannot_be_reached_is_called_the_proxy(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(host: str, *_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, f"{host} is unknown")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        closed = listener.getsockname()[1]
    service_url = f"{scheme}://scores.example"
    with oracle(service_url, proxy=f"http://127.0.0.1:{closed}", limits={"retries": 0}) as service:
        assert "no connection to the proxy" in str(stopped(service))
    with oracle(service_url, proxy=f"http://{'a' * 70}.example:3128") as service:
        assert "the host name of the proxy cannot be used" in str(stopped(service))
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with oracle(service_url, proxy="http://proxy.invalid:3128") as service:
        assert "the host name of the proxy cannot be resolved (proxy.invalid is unknown)" in str(stopped(service))
    with oracle(service_url) as service:
        assert "the host name of the service cannot be resolved (scores.example is unknown)" in str(stopped(service))


def test_a_service_that_fails_behind_a_proxy_is_not_called_the_proxy(tmp_path: Path) -> None:
    with Loopback([YES], tls=server_context(tmp_path)) as server, Loopback([tunnel]) as proxy:
        with oracle(server.url, proxy=proxy.url, limits={"retries": 0}) as service:
            failure = str(stopped(service))
        assert "certificate is not trusted" in failure
        assert "proxy" not in failure


def tunnel(connection: socket.socket, request: Request) -> None:
    """A proxy's CONNECT: bytes go through until the client is done."""
    assert request.method == "CONNECT"
    host, _, port = request.target.partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as service:
        connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        pumps = [threading.Thread(target=pump, args=ends) for ends in ((connection, service), (service, connection))]
        for one in pumps:
            one.start()
        for one in pumps:
            one.join(30)


def pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


def test_https_goes_through_a_proxy_s_tunnel(tmp_path: Path) -> None:
    """The proxy sees the host and its own credentials, nothing of the request."""
    with Loopback([YES], tls=server_context(tmp_path)) as server, Loopback([tunnel]) as proxy:
        entries = {
            "url": server.url + "/m",
            "dimension": 2,
            "tls": {"ca_file": str(certificate_file(tmp_path))},
            "proxy": proxy.url.replace("://", "://${WHO}:${PASS}@"),
        }
        login = {"WHO": "someone", "PASS": "p@ss:word"}
        with HttpOracle(read_endpoint(entries), environment=login) as service:
            assert service.ask("classify", HERE) == 1
        assert proxy.requests[0].target == f"localhost:{server.port}"
        sent = base64.b64decode(proxy.requests[0].headers["proxy-authorization"].removeprefix("Basic "))
        assert sent == b"someone:p@ss:word"
