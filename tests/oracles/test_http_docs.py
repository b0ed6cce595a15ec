"""The examples of docs/endpoints.md, run: the file is read, the request is the one shown, the reply means what is said."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest

from loopback import Loopback, Scripted
from overexplain.oracles.http.endpoint import Endpoint, Idempotency, Inputs, Limits, Preset, Terms, Tls, Verb
from overexplain.oracles.http.oracle import HttpOracle

PAGE = (Path(__file__).parents[2] / "docs" / "endpoints.md").read_text(encoding="utf-8")
SECTION = re.compile(r"### (\S+)\n(.*?)(?=\n##)", re.DOTALL)
FILE = re.compile(r"```toml\n(.*?)```", re.DOTALL)
EXCHANGE = re.compile(r"`POST (\S+)`\n```json\n(.*?)```\n```json\n(.*?)```\nmeans (.*?)\.\n", re.DOTALL)
SECTIONS = dict(SECTION.findall(PAGE))


def test_every_preset_has_its_example() -> None:
    assert set(SECTIONS) == set(get_args(Preset))


@pytest.mark.parametrize("preset", SECTIONS)
def test_examples(preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCORES_TOKEN", "secret-token")
    monkeypatch.setenv("SCORES_KEY", "secret-key")
    (text,) = FILE.findall(SECTIONS[preset])
    exchanges = EXCHANGE.findall(SECTIONS[preset] + "\n")
    assert exchanges
    for target, request, reply, means in exchanges:
        with Loopback([Scripted(json.loads(reply))]) as server:
            path = tmp_path / "endpoint.toml"
            path.write_text(text.replace("https://scores.example", server.url), encoding="utf-8")
            with HttpOracle.from_toml(path) as service:
                assert service.settings.preset == preset
                if means in ("Yes", "No"):
                    assert service.classify([40.0, 2.5]) == (1 if means == "Yes" else -1)
                else:
                    assert service.explain([40.0, 2.5]).tolist() == json.loads(means.strip("`"))
            assert [one.target for one in server.requests] == [target]
            assert server.requests[0].json == json.loads(request)


def test_every_key_of_the_file_is_explained() -> None:
    for table in (Endpoint, Verb, Terms, Inputs, Idempotency, Limits, Tls):
        for key in table.__struct_fields__:
            assert re.search(rf"[`\[ ]{key}[`\] ]", PAGE), key


def test_defaults_are_those_of_the_page() -> None:
    limits = Limits()
    for key, shown in (("retries", "5"), ("reply_bytes", "1_000_000"), ("longest_wait", "120")):
        assert re.search(rf"`\[limits\] {key}` \|.*\| `{shown}` \|", PAGE)
        assert getattr(limits, key) == int(shown)
    assert (limits.timeout, limits.connect_timeout) == (30, 10)
    assert "| `30`, `10` |" in PAGE
