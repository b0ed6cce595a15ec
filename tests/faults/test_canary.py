"""A secret planted in the environment and sent in header, address and body: in no file, output, log, traceback or debug line."""

from __future__ import annotations

import base64
import html
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from fault_catalogue import AGAIN, REFUSED, STOPS
from fault_proxy import PATIENCE, Act, FaultProxy, Turn, healthy, only, since
from loopback import Loopback, Request, Scripted
from overexplain.cli.main import run
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.http.secrets import Secrets

HEADER = """c4Nry+/hd="q\\u%41&<'>;7fGh~Zz9xW"""
BODY = "kAn\u00e4rie\u20ac\"/\\'+b=%20&<x>\U0001f426Qq8vB3tR"
"""Beyond ASCII: a header cannot carry it, an address and JSON can."""

SECRETS = (HEADER, BODY)
ENVIRONMENT = {"SCORES_LOGIN": HEADER, "SCORES_KEY": BODY, "A_COPY": HEADER, "ANOTHER_COPY": BODY}
ORACLE = ModelOracle(Hyperplane([0.3, -1.5], 0.7), Mechanism("l1"))
QUESTIONS = 3
FILE = """preset = "generic"
url = "{url}/score/${{SCORES_KEY}}?api_key=${{SCORES_KEY}}&login=${{SCORES_LOGIN}}"
dimension = 2
authorized = true
[headers]
Authorization = "Bearer ${{SCORES_LOGIN}}"
[mechanism]
distance = "l1"
[classify]
body = {{ vector = "{{{{vector}}}}", token = "${{SCORES_KEY}}", login = "by ${{SCORES_LOGIN}}, please" }}
answer = "predictions[0]"
[explain]
path = "/why"
body = {{ vector = "{{{{vector}}}}", token = "${{SCORES_KEY}}", login = "by ${{SCORES_LOGIN}}, please" }}
answer = "explanations[0].counterfactual"
none = "explanations[0].none"
[limits]
retries = 0
longest_wait = 0.06
"""


# How a secret may be spelled.
def in_base64(text: str) -> list[str]:
    """Inside a longer text, at each place in a group of three; the letters at the ends also depend on what is beside it."""
    data = text.encode()
    found = [base64.b64encode(b"\0" * k + data).decode().rstrip("=")[4 * (k > 0) : -1] for k in range(3)]
    return [*found, *(form.replace("+", "-").replace("/", "_") for form in found)]


def go_json(text: str) -> str:
    """As the JSON writer of Go does it."""
    written = json.dumps(text, ensure_ascii=False)[1:-1]
    return written.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def jinja(text: str) -> str:
    """As HTML templates do it."""
    return html.escape(text, quote=False).replace('"', "&#34;").replace("'", "&#39;")


SPELLED: dict[str, Callable[[str], str]] = {
    "raw": str,
    "lower": str.lower,
    "upper": str.upper,
    "percent": lambda text: quote(text, safe=""),
    "percent, slashes kept": quote,
    "percent, lower": lambda text: quote(text, safe="").lower(),
    "percent, plus": quote_plus,
    "percent twice": lambda text: quote(quote(text, safe=""), safe=""),
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON, UTF-8": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "JSON, slashes escaped": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text))[1:-1],
    "JSON of Go": go_json,
    "repr": lambda text: repr(text)[1:-1],
    "ascii": lambda text: ascii(text)[1:-1],
    "repr of bytes": lambda text: repr(text.encode())[2:-1],
    "HTML": html.escape,
    "HTML of templates": jinja,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 of a login": lambda text: base64.b64encode(f"me:{text}".encode()).decode(),
    "base64, for addresses": lambda text: base64.urlsafe_b64encode(f"x{text}y".encode()).decode(),
    "hex": lambda text: text.encode().hex(),
}

WANTED = {
    form.lower()
    for secret in SECRETS
    for form in (*(spell(secret) for spell in SPELLED.values()), *in_base64(secret), secret[::-1])
} | {secret[k : k + 10].lower() for secret in SECRETS for k in range(len(secret) - 9)}
"""What must be found nowhere, ten letters in a row of a secret included."""


def leaks(data: bytes) -> list[str]:
    """The spellings that are in the data: as it is, and without what may stand between letters (zeros in UTF-16, blanks)."""
    close = data.replace(b"\0", b"").decode("utf-8", "replace")
    texts = (data.decode("utf-8", "replace").lower(), "".join(close.lower().split()))
    return [form for form in WANTED for text in texts if form in text]


def everything() -> bytes:
    """All files here: the run, what is beside it, outputs. The endpoint file too: it holds names only."""
    return b"\n".join(path.name.encode() + path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file())


def by_model(request: Request) -> Scripted:
    """A service that wants the secret, and answers by the model."""
    assert request.headers["authorization"] == f"Bearer {HEADER}"
    assert request.json["token"] == BODY
    assert request.json["login"] == f"by {HEADER}, please"
    path, _, query = request.target.partition("?")
    assert path.removesuffix("/why") == f"/score/{quote(BODY, safe='')}"
    assert query == f"api_key={quote(BODY, safe='')}&login={quote(HEADER, safe='')}"
    point = request.json["vector"]
    if path.endswith("/why"):
        return Scripted({"explanations": [{"counterfactual": ORACLE.explain(point).tolist()}]})
    return Scripted({"predictions": [int(ORACLE.classify(point) > 0)]})


@pytest.fixture(scope="module")
def service() -> Iterator[Loopback]:
    with Loopback([by_model]) as running:
        yield running


@pytest.fixture
def proxy(service, tmp_path, monkeypatch) -> Iterator[FaultProxy]:
    monkeypatch.chdir(tmp_path)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with FaultProxy(service.url) as running:
        Path("endpoint.toml").write_text(FILE.format(url=running.url))
        yield running


def probe(capsys: Any, *options: str) -> tuple[int, str, str]:
    """A command line, after which the secret is nowhere."""
    begin = ["endpoint.toml", "--budget", "9", "--run", "run.sqlite", "--no-confirm"]
    code = run(
        ["probe", *(["--resume", "run.sqlite", "--authorized"] if Path("run.sqlite").exists() else begin), *options]
    )
    out, err = capsys.readouterr()
    assert leaks(out.encode() + err.encode() + everything()) == [], ascii(err)
    assert "Traceback" not in err
    return code, out, err


def test_the_search_finds_every_spelling() -> None:
    for name, spell in SPELLED.items():
        for secret in SECRETS:
            assert leaks(f"before {spell(secret)} after".encode()), name
        assert leaks(f"before {spell(HEADER)} after".encode("utf-16")), name
    assert leaks(HEADER[3:15].encode())
    assert leaks(BODY[::-1].encode())
    assert leaks(base64.b64encode(f"user:{HEADER}:".encode()))
    assert not leaks(FILE.encode())


def test_a_run_that_goes_well(proxy, capsys) -> None:
    code, out, _ = probe(capsys, "--dry-run")
    assert code == 0
    assert "127.0.0.1" in out
    assert proxy.arrivals == []
    code, _, err = probe(capsys, "--debug", "-o", "found.json")
    assert code == 0
    assert err.count("debug: POST /score/***") == QUESTIONS
    assert len(proxy.arrivals) == QUESTIONS
    assert all(leaks(arrival.raw) for arrival in proxy.arrivals)  # the service did get it
    assert probe(capsys, "--json")[0] == 0
    assert probe(capsys, "--dry-run", "--json")[0] == 0
    for command in (["log", "show", "run.sqlite"], ["log", "convert", "run.sqlite", "log.jsonl"]):
        assert run(command) == 0
        assert leaks("".join(capsys.readouterr()).encode() + everything()) == []


@pytest.mark.parametrize("name", [*AGAIN, *REFUSED, *STOPS])
def test_every_fault(name, proxy, capsys, monkeypatch) -> None:
    monkeypatch.setenv("OVEREXPLAIN_TRACEBACK", "1")
    proxy.script = since(len(name) % 2, name, {**AGAIN, **REFUSED, **STOPS}[name])
    code, _, err = probe(capsys, "--debug")
    assert code == 5
    assert "error: " in err
    assert leaks(proxy.arrivals[-1].raw)


# A service that tells what it was told.
def told(status: int, write: Callable[[str], bytes], **headers: str) -> Callable[[str], Act]:
    """A reply that holds a spelling of the secret."""
    return lambda spelled: lambda turn: turn.reply(status, write(spelled), **headers)


def quoted(spelled: str) -> bytes:
    return f'{{"error": "{spelled}"}}'.encode()


def answered(spelled: str) -> bytes:
    """The spelling in the place of the answer, whether or not that is JSON."""
    return f'{{"explanations": [{{"counterfactual": "{spelled}"}}]}}'.encode()


def listed(spelled: str) -> bytes:
    return json.dumps({"explanations": [{"counterfactual": [spelled, {spelled: spelled}]}]}).encode()


ECHOES: dict[str, Callable[[str], Act]] = {
    "500": told(500, str.encode),
    "422 in JSON": told(422, quoted),
    "400 after much": told(400, lambda spelled: b"x" * 60 + spelled.encode()),
    "401": told(401, quoted, WWW_Authenticate="Bearer"),
    "404": told(404, str.encode),
    "429": told(429, str.encode, Retry_After="0"),
    "200": told(200, str.encode, Content_Type="text/html"),
    "200 as an answer": told(200, answered),
    "200 as a list": told(200, listed),
    "500, a long page": told(500, lambda spelled: (spelled * 1000).encode()),
    "500 in UTF-16": told(500, lambda spelled: spelled.encode("utf-16")),
    "200 in UTF-16": told(200, lambda spelled: answered(spelled).decode().encode("utf-16")),
    "422, taken for Latin-1": told(422, lambda spelled: spelled.encode().decode("latin-1").encode()),
    "400 in another encoding": told(400, lambda spelled: spelled.encode("cp1252", "replace")),
    "200, longer than is read": told(200, lambda spelled: b" " * 999_990 + spelled.encode() * 2),
}


@pytest.mark.parametrize("name", ECHOES)
def test_a_service_that_echoes(name, proxy, capsys, monkeypatch) -> None:
    """At the places that messages show, a few spellings each; all spellings get their turn."""
    monkeypatch.setenv("OVEREXPLAIN_TRACEBACK", "1")
    spelled = [spell(secret) for spell in SPELLED.values() for secret in SECRETS]
    for form in spelled[list(ECHOES).index(name) % 7 :: 7]:
        proxy.script = since(0, name, ECHOES[name](form))
        Path("run.sqlite").unlink(missing_ok=True)
        assert probe(capsys, "--debug")[0] == 5


def test_no_spelling_survives_however_it_is_wrapped() -> None:
    secrets = Secrets({"A": HEADER, "B": BODY})
    for spell in SPELLED.values():
        for secret in SECRETS:
            form = spell(secret)
            wrapped = [
                form,
                repr([form, {form: form}]),
                json.dumps([form]),
                repr(json.dumps([form])),
                html.escape(form),
            ]
            for text in (*wrapped, form.encode().decode("latin-1")):
                assert leaks(secrets.redact(f"x{text}y").encode()) == [], ascii(text)


def test_no_text_can_make_the_search_take_long() -> None:
    """Even where each place of a text looks like the beginning of a secret, the search comes to its end."""
    secrets = Secrets(
        {
            "A": "\\\\\\\\&%&%\\" * 20,
            "B": "%" * 50,
            "C": "\\\\x" * 30,
            "D": "&" * 40,
            "E": "\u00e4\u20ac\u00c3" * 20,
            "F": "\u00e4a" * 30,
        }
    )
    for letters in (
        "\\",
        "%25",
        "%",
        "&",
        "&amp;",
        "\\u005c",
        "\\x5c",
        "&%",
        "\\\\&%&%\\",
        "\ufffd",
        "?a",
        "\u00e4",
        "\u00c3",
    ):
        assert secrets.redact(letters * (4_000 // len(letters)) + "!").endswith("!")


def with_head(*lines: str) -> Act:
    """A reply whose head is these lines, in which SECRET stands for one; a request's head and body are its own body."""

    def act(turn: Turn) -> None:
        body = turn.arrival.raw + json.dumps(turn.arrival.headers).encode()
        head = "\r\n".join((*lines, f"Content-Length: {len(body)}", "", ""))
        turn.send(head.replace("SECRET", HEADER).replace("QUOTED", quote(BODY, safe="")).encode("latin-1") + body)

    return act


HEADS: dict[str, Act] = {
    "reason": with_head("HTTP/1.1 500 SECRET", "Set-Cookie: SECRET", "X-QUOTED: SECRET"),
    "status line": with_head("SECRET 200 OK"),
    "header line": with_head("HTTP/1.1 200 OK", "SECRET", "QUOTED: x"),
    "type": with_head("HTTP/1.1 200 OK", "Content-Type: application/SECRET; charset=QUOTED"),
    "encoding": with_head("HTTP/1.1 200 OK", "Content-Encoding: SECRET"),
    "wait": with_head("HTTP/1.1 429 Busy", "Retry-After: SECRET", "Date: SECRET"),
    "elsewhere": with_head("HTTP/1.1 307 Moved", "Location: http://QUOTED.example/QUOTED?x=QUOTED"),
    "as user": with_head("HTTP/1.1 308 Moved", "Location: http://me:QUOTED@127.0.0.1/"),
    "nowhere": with_head("HTTP/1.1 307 Moved", "Location: SECRET"),
    "found": with_head("HTTP/1.1 302 Found", "Location: /QUOTED"),
    "in circles": lambda turn: turn.reply(308, Location=f"/x/{quote(BODY, safe='').lower()}?{quote(HEADER)}"),
    "a length": with_head("HTTP/1.1 200 OK", "Content-Length: SECRET"),
    "chunks": with_head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked"),
    "a coding": with_head("HTTP/1.1 200 OK", "Transfer-Encoding: SECRET"),
    "the request itself": lambda turn: turn.send(turn.arrival.raw),
}


@pytest.mark.parametrize("name", HEADS)
def test_a_service_that_echoes_in_its_head(name, proxy, capsys, monkeypatch) -> None:
    monkeypatch.setenv("OVEREXPLAIN_TRACEBACK", "1")
    proxy.script = since(0, name, HEADS[name])
    assert probe(capsys, "--debug")[0] == 5
    proxy.script = healthy
    assert probe(capsys, "--debug")[0] == 0


LOUD = "import logging, sys; logging.basicConfig(level=logging.DEBUG); from overexplain.cli.main import main; main()"


def process(*options: str) -> subprocess.Popen[bytes]:
    """A process in which every logger is heard, warnings are shown and tracebacks are wanted."""
    command = [
        sys.executable,
        "-X",
        "dev",
        "-c",
        LOUD,
        "probe",
        "endpoint.toml",
        "--budget",
        "9",
        "--run",
        "run.sqlite",
        "--no-confirm",
    ]
    environment = {**os.environ, "OVEREXPLAIN_TRACEBACK": "1"}
    return subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


def test_with_every_logger_at_debug(proxy) -> None:
    """All answers but the last are good; that one echoes."""
    proxy.script = only(QUESTIONS - 1, "an echo", ECHOES["422 in JSON"](HEADER))
    with process("--debug") as loud:
        out, err = loud.communicate(timeout=PATIENCE)
    assert loud.returncode == 5
    assert leaks(out + err + everything()) == []
    assert err.count(b"debug: POST /score/***") == QUESTIONS
    assert leaks(proxy.arrivals[0].raw)


def test_ctrl_c_and_kill_in_the_middle_of_a_request(proxy) -> None:
    """Both leave a run behind that is not tidied up; a killed one has its -wal file."""
    for number, sign in ((signal.SIGINT, 130), (signal.SIGKILL, -9)):
        arrived = threading.Event()

        def hold(turn: Turn, arrived: threading.Event = arrived) -> None:
            arrived.set()
            turn.hold()

        proxy.script = since(0, "held", hold)
        with process() as held:
            assert arrived.wait(PATIENCE)
            held.send_signal(number)
            out, err = held.communicate(timeout=PATIENCE)
        assert held.returncode == sign, err
        assert leaks(out + err + everything()) == []
        assert b"Traceback" not in err
        assert Path("run.sqlite-wal").exists() == (number == signal.SIGKILL)
        Path("run.sqlite").rename("before.sqlite")
