"""A canary secret: sent where it belongs, found nowhere else, whatever the service does with it."""

from __future__ import annotations

import base64
import html
import json
import logging
import socket
import traceback
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopback import Loopback, Request, Scripted, reset
from overexplain.errors import InvalidInput, OverexplainError
from overexplain.oracles.http.endpoint import read_endpoint
from overexplain.oracles.http.oracle import HttpOracle
from overexplain.oracles.http.secrets import Secrets

CANARY = """cana"r'y/Zx+9 \\ &pass:Word"""
HERE = np.array([0.0, 0.0])
ENTRIES: dict[str, Any] = {
    "preset": "generic",
    "url": "/score/${CANARY}?api_key=${CANARY}",
    "dimension": 2,
    "headers": {"Authorization": "Bearer ${CANARY}", "Cookie": "session=${CANARY}"},
    "classify": {"body": {"row": "{{vector}}", "token": "${CANARY}"}, "answer": "label"},
    "limits": {"retries": 1, "timeout": 5, "longest_wait": 0},
}


def spellings(secret: str) -> list[str]:
    """How the secret could show itself; written without a look at the code that removes it."""
    data = secret.encode()
    found = [secret, quote(secret, safe=""), quote(secret), json.dumps(secret)[1:-1], html.escape(secret), data.hex()]
    found += [
        repr(secret)[1:-1],
        base64.b64encode(data).decode()[:-4],
        base64.b64encode(b"user:" + data).decode()[8:-4],
    ]
    escaped = secret.replace("\\", "\\\\")
    return [
        *found,
        escaped.replace("'", "\\'"),
        escaped.replace('"', '\\"'),
        json.dumps(json.dumps(secret)[1:-1])[1:-1],
    ]


def assert_clean(text: str) -> None:
    for form in spellings(CANARY):
        assert form.lower() not in text.lower()


class Ear:
    """A recorder, an event line and a logger's handler in one."""

    key = "k"

    def __init__(self) -> None:
        self.heard: list[str] = []

    def sending(self) -> None:
        pass

    def failed(self, reason: str, not_before: float | None = None) -> None:
        self.heard.append(reason)


def chained(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def echo(request: Request) -> str:
    """Everything that was sent, in every spelling."""
    return " ".join([request.target, str(request.headers), request.body.decode(), *spellings(CANARY)])


def broken(connection: socket.socket, request: Request) -> None:
    connection.sendall(b"HTTP/1.1 200 " + CANARY.encode() + b"\r\nX: " + CANARY.encode() + b"\r\n" + CANARY.encode())


def location(request: Request) -> Scripted:
    return Scripted(status=307, headers={"Location": f"http://{quote(CANARY, safe='')}.example/?k={quote(CANARY)}"})


SCRIPTS = {
    "label": lambda request: Scripted({"label": echo(request)}),
    "list": lambda request: Scripted({"label": [echo(request)] * 3}),
    "text": lambda request: Scripted(echo(request).encode()),
    "page": lambda request: Scripted(("x" * 70 + echo(request)).encode(), status=500),
    "cut": lambda request: Scripted(("x" * 9_990 + CANARY * 2).encode(), status=500),
    "long label": lambda request: Scripted({"label": "x" * 190 + CANARY}),
    "refused": lambda request: Scripted({"detail": echo(request)}, status=401),
    "not found": lambda request: Scripted(echo(request).encode(), status=404),
    "busy": lambda request: Scripted(echo(request).encode(), status=503, headers={"Retry-After": CANARY}),
    "type": lambda request: Scripted(b"x", headers={"Content-Type": CANARY, "X-Echo": CANARY}),
    "encoding": lambda request: Scripted(b"x", headers={"Content-Encoding": CANARY}),
    "redirect": location,
    "same place": lambda request: Scripted(status=308, headers={"Location": request.target}),
    "reset": reset,
    "broken": broken,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_secret_is_sent_and_shown_nowhere(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for logger in ("httpx", "httpcore", "httpcore.connection", "httpcore.http11"):
        caplog.set_level(logging.DEBUG, logger=logger)
    ear = Ear()
    with Loopback([SCRIPTS[name]]) as server:
        endpoint = read_endpoint({**ENTRIES, "url": server.url + ENTRIES["url"]})
        service = HttpOracle(endpoint, environment={"CANARY": CANARY}, rng=0)
        service.on_event = ear.heard.append
        with service, pytest.raises(OverexplainError) as caught:
            service.ask("classify", HERE, ear)
        sent = server.requests[0]
    assert sent.headers["authorization"] == f"Bearer {CANARY}"
    assert sent.target == f"/score/{quote(CANARY, safe='')}?api_key={quote(CANARY, safe='')}"
    assert sent.json["token"] == CANARY
    told = [*ear.heard, str(service), repr(service.settings), json.dumps(service.settings.to_dict())]
    told += [repr(vars(service)), caplog.text, *(record.getMessage() for record in caplog.records)]
    for error in chained(caught.value):
        told += [str(error), repr(error), repr(error.args), "".join(traceback.format_exception(error))]
    assert len(chained(caught.value)) == 1
    for text in told:
        assert_clean(text)
    assert "${CANARY}" in repr(service.settings)


@pytest.mark.parametrize("length", [40, 700, 3000])
@pytest.mark.parametrize("status", [200, 500])
def test_no_half_of_a_secret_is_left_where_a_text_was_cut(length: int, status: int) -> None:
    """A reply of nothing but secrets shrinks when it is redacted: the place where reading stopped comes into view."""
    long = "".join(np.random.default_rng(0).choice(list("abcdefghijkmnop"), length))
    with Loopback([Scripted((long * 200).encode()[:500_000], status=status)]) as server:
        settings = {"url": server.url + "/m", "dimension": 2, "headers": {"X-Token": "${LONG}"}}
        service = HttpOracle(read_endpoint(settings), environment={"LONG": long})
        with service, pytest.raises(OverexplainError) as caught:
            service.ask("classify", HERE)
    assert long[:6] not in str(caught.value)


def test_other_clients_of_the_same_library_still_log(caplog: pytest.LogCaptureFixture) -> None:
    import httpcore

    caplog.set_level(logging.DEBUG, logger="httpcore")
    with Loopback([Scripted({"label": 1})]) as server:
        endpoint = read_endpoint({**ENTRIES, "url": server.url + ENTRIES["url"]})
        with HttpOracle(endpoint, environment={"CANARY": CANARY}) as service:
            assert service.ask("classify", HERE) == 1
        assert not caplog.records
        assert httpcore.request("GET", server.url).status == 200
        assert caplog.records


printable = st.characters(min_codepoint=32, max_codepoint=0x24F, exclude_categories=["C", "Zl", "Zp"])


@settings(max_examples=60)
@given(secret=st.text(printable, min_size=6, max_size=30), before=st.text(max_size=20), after=st.text(max_size=20))
def test_no_spelling_of_a_secret_survives(secret: str, before: str, after: str) -> None:
    secrets = Secrets({"S": secret})
    data = secret.encode()
    for form in (secret, quote(secret, safe=""), json.dumps(secret)[1:-1], html.escape(secret), data.hex()):
        assert form.lower() not in secrets.redact(f"{before}\0{form}\0{after}").lower()
        assert form.lower() not in secrets.excerpt(f"{'x ' * 30}{form}{after}").lower()
    whole = base64.b64encode(before.encode() + data + after.encode()).decode()
    start, end = len(before.encode()) * 8, (len(before.encode()) + len(data)) * 8
    core = whole[-(-start // 6) : end // 6]  # the letters that are made of the secret's bits alone
    assert core not in secrets.redact(whole)
    other = str.maketrans("+/", "-_")
    assert core.translate(other) not in secrets.redact(whole.translate(other))


def test_the_password_inside_basic_credentials_is_a_secret_too() -> None:
    secrets = Secrets({"LOGIN": base64.b64encode(b"someone:Tr0ub4dor&3").decode()})
    assert secrets.redact("user someone, password Tr0ub4dor&3") == "user someone, password ***"


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("Bearer QQ77secretZZ", ["QQ77secretZZ"]),
        ("session=c00kieVALUE; a=b", ["c00kieVALUE"]),
        ("https://h.example/m?v=1&key=hunter2pw", ["hunter2pw"]),
        ("https://someone:hunter%2F2pw@h.example/m", ["hunter%2F2pw", "hunter/2pw"]),
        ("'quoted9','qu0ted8'", ["quoted9", "qu0ted8"]),
        (f"Basic {base64.b64encode(b'someone:Tr0ub4dor/3').decode()}", ["Tr0ub4dor/3"]),
    ],
)
def test_a_part_of_a_secret_is_as_secret_as_the_whole(value: str, parts: list[str]) -> None:
    """A service that shows the token alone, in a refusal of this question, of all, and while it is busy."""
    forms = [form for part in parts for form in (part, part.upper(), quote(part, safe=""), part.encode().hex())]
    text = f"unknown: {' '.join(forms)}"
    script = [
        Scripted(text.encode(), status=503),
        Scripted({"detail": text}, status=422),
        Scripted({"predictions": [text]}),
    ]
    ear = Ear()
    with Loopback([*script, Scripted(text.encode(), status=401)]) as server:
        entries = {
            "url": server.url + "/m",
            "dimension": 2,
            "headers": {"X-Login": "${S}"},
            "limits": {"longest_wait": 0},
        }
        with HttpOracle(read_endpoint(entries), environment={"S": value}, rng=0) as service:
            service.on_event = ear.heard.append
            for _ in range(3):
                with pytest.raises(OverexplainError) as caught:
                    service.ask("classify", HERE, ear)
                ear.heard.append(str(caught.value))
        assert server.requests[0].headers["x-login"] == value
        assert len(server.requests) == 4
    assert sum("unknown: ***" in line for line in ear.heard) >= 3
    for line in ear.heard:
        assert not [form for form in forms if form.lower() in line.lower()]


def test_a_part_that_is_found_earlier_does_not_break_up_the_whole() -> None:
    assert Secrets({"S": "ababa=xyz"}).redact("abababa=xyz") == "ab***"


def test_a_header_that_begins_or_ends_with_a_blank_is_refused_when_the_file_is_opened() -> None:
    for value in ("${CANARY} ", " plain"):
        with pytest.raises(InvalidInput, match="X-Api begins or ends with a blank"):
            read_endpoint({"url": "https://h.example/m", "dimension": 2, "headers": {"X-Api": value}})


def test_a_secret_is_put_into_an_address_so_that_it_stays_one_part_of_it() -> None:
    secrets = Secrets({"K": "a/b?c#d", "U": "https://h.example/base"})
    assert secrets.fill_url("https://h.example/x?key=${K}&y=1") == "https://h.example/x?key=a%2Fb%3Fc%23d&y=1"
    assert secrets.fill_url("${U}/${K}") == "https://h.example/base/a%2Fb%3Fc%23d"


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (None, "is not set"),
        ("", "is empty"),
        ("abc\n", "line break"),
        ("a\x00b", "control characters"),
        ("ab\rc", "control"),
        (" abc", "begins or ends with a blank"),
        ("abc ", "begins or ends with a blank"),
        (" ", "begins or ends with a blank"),
    ],
)
def test_a_variable_that_cannot_be_sent_is_refused_by_name(value: str | None, fault: str) -> None:
    environment = {} if value is None else {"CANARY": value}
    with pytest.raises(InvalidInput, match=f"CANARY.*{fault}") as caught:
        HttpOracle(read_endpoint({**ENTRIES, "url": "https://h.example" + ENTRIES["url"]}), environment=environment)
    assert "abc" not in str(caught.value)


def test_a_secret_with_letters_beyond_ascii_cannot_be_a_header() -> None:
    entries = {"url": "https://h.example/m", "dimension": 2, "headers": {"X-Api-Key": "${CANARY}"}}
    with pytest.raises(InvalidInput, match="X-Api-Key holds control characters or letters beyond ASCII") as caught:
        HttpOracle(read_endpoint(entries), environment={"CANARY": "schlüssel"})
    assert "schl" not in str(caught.value)


@pytest.mark.parametrize(
    "entries",
    [
        {"headers": {"Authorization": "Bearer LITERAL"}},
        {"headers": {"authorization": "LITERAL"}},
        {"headers": {"Cookie": "LITERAL"}},
        {"headers": {"X-API-Key": "LITERAL"}},
        {"headers": {"X-Auth-Token": "LITERAL"}},
        {"headers": {"X-Anything": "Basic LITERAL"}},
        {"headers": {"Proxy-Authorization": "LITERAL"}},
        {"url": "https://h.example/m?api_key=LITERAL"},
        {"url": "https://user:LITERAL@h.example/m"},
        {"url": "https://LITERAL@h.example/m"},
        {"url": "https://${USER}:${PASSWORD}@h.example/m"},
        {"proxy": "http://user:LITERAL@proxy.example:3128"},
        {"proxy": "http://${WHO}:LITERAL@proxy.example:3128"},
        {"explain": {"url": "https://h.example/e?access_token=LITERAL"}},
        {"explain": {"path": "?token=LITERAL"}},
        {"explain": {"body": {"row": "{{vector}}", "password": "LITERAL"}}},
        {"explain": {"body": {"row": "{{vector}}", "auth": {"clientSecret": ["LITERAL"]}}}},
        {"explain": {"body": {"row": "{{vector}}", "token": {"value": "LITERAL"}}}},
        {"explain": {"body": {"row": "{{vector}}", "pin": {"token": 123456}}}},
    ],
)
def test_credentials_in_the_file_itself_are_refused_without_showing_them(entries: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_endpoint({"url": "https://h.example/m", "dimension": 2, **entries})
    assert "LITERAL" not in str(caught.value)
    assert "123456" not in str(caught.value)
    assert "${" in str(caught.value)  # says what to write instead


def test_what_only_looks_like_a_credential_is_accepted() -> None:
    body = {"rows_by_key": ["{{vector}}"], "use_token": False, "tokens": "${TOKEN}"}
    read_endpoint(
        {
            "url": "https://h.example/m?monkey=",
            "dimension": 2,
            "headers": {"X-Api-Key": "${K}", "Accept-Language": "en"},
            "idempotency": {"header": "Idempotency-Key"},
            "explain": {"body": body},
        }
    )


def test_secrets_do_not_travel_in_the_open() -> None:
    entries = {"url": "http://h.example/m", "dimension": 2, "headers": {"X-Api-Key": "${CANARY}"}}
    canary = {"CANARY": CANARY}
    with pytest.raises(InvalidInput, match="use https.*allow_plain"):
        HttpOracle(read_endpoint(entries), environment=canary)
    HttpOracle(read_endpoint({**entries, "tls": {"allow_plain": True}}), environment=canary).close()
    for host in ("127.0.0.1:1", "localhost", "[::1]:8080", "127.8.8.8"):
        HttpOracle(read_endpoint({**entries, "url": f"http://{host}/m"}), environment=canary).close()
    split = {**entries, "url": "https://h.example/m", "explain": {"url": "http://other.example/e"}}
    with pytest.raises(InvalidInput, match="explain would send a secret over http"):
        HttpOracle(read_endpoint(split), environment=canary)


def test_secrets_do_not_travel_in_the_open_to_a_proxy() -> None:
    def opened(proxy: str, url: str, secret: bool = True, **tls: Any) -> None:
        headers = {"X-Api-Key": "${CANARY}"} if secret else {}
        entries = {"url": url, "dimension": 2, "headers": headers, "proxy": proxy, "tls": tls}
        HttpOracle(read_endpoint(entries), environment={"CANARY": CANARY, "WHO": "me", "PASS": "hunter2pw"}).close()

    login = "${WHO}:${PASS}@"
    away, here = "https://h.example/m", "http://127.0.0.1:1/m"
    for proxy, url, secret in (
        (f"http://{login}p.example:3128", away, False),
        (f"http://{login}p.example:3128", "http://h.example/m", False),
        ("http://p.example:3128", here, True),  # this machine, but by way of another
    ):
        with pytest.raises(InvalidInput, match="over http to the proxy.*use .*https.*allow_plain") as caught:
            opened(proxy, url, secret)
        assert "hunter2pw" not in str(caught.value)
        opened(proxy, url, secret, allow_plain=True)
    opened("http://p.example:3128", away)  # a tunnel: the proxy sees the host only
    opened("http://p.example:3128", "http://h.example/m", secret=False)
    opened(f"https://{login}p.example:3128", away)
    opened(f"http://{login}localhost:3128", away)
    with pytest.raises(InvalidInput, match="classify would send a secret over http"):
        opened("https://p.example:3128", "http://h.example/m")


def test_the_environment_is_read_when_the_file_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCORES_TOKEN", CANARY)
    path = tmp_path / "endpoint.toml"
    with Loopback([Scripted({"predictions": [1]})]) as server:
        path.write_text(
            f'url = "{server.url}/m"\ndimension = 2\n[headers]\nAuthorization = "Bearer ${{SCORES_TOKEN}}"\n',
            encoding="utf-8",
        )
        with HttpOracle.from_toml(path) as service:
            assert service.classify(HERE) == 1
        assert server.requests[0].headers["authorization"] == f"Bearer {CANARY}"
        with HttpOracle.from_dict(service.settings.to_dict()) as again:
            assert again.settings == service.settings
            again.classify(HERE)
        assert server.requests[1].headers == server.requests[0].headers
