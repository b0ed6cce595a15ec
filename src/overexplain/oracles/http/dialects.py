"""How a question is written and a reply read, for each preset and verb.

Every part of a preset can be replaced in [classify] and [explain]; what is not replaced stays the preset's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from overexplain.errors import InvalidInput
from overexplain.oracles.http.addresses import Address, joined, read_address
from overexplain.oracles.http.endpoint import Endpoint, Verb
from overexplain.oracles.http.foreign_replies import alibi_counterfactual, dice_counterfactual
from overexplain.oracles.http.readings import entry, label_of, single, vector
from overexplain.oracles.http.secrets import Secrets
from overexplain.oracles.http.template import (
    RECORD,
    VECTOR,
    Read,
    Write,
    explanation_reader,
    label_reader,
    writer,
)

VERBS = ("classify", "explain")


@dataclass(frozen=True)
class Dialect:
    """One verb: `write` makes the JSON of a request, `read` finds the answer in the JSON of a reply."""

    method: str
    address: Address = field(repr=False)
    write: Write = field(repr=False)
    read: Read = field(repr=False)


@dataclass(frozen=True)
class _Preset:
    """What a preset says about a verb; None: the endpoint file must say it."""

    path: str | None
    body: Any
    read: Callable[[Any, Endpoint], Any] | None


def _kserve_label(reply: Any, endpoint: Endpoint) -> int:
    return label_of(single(entry(reply, "predictions"), "predictions"), endpoint)


def _kserve_explanation(reply: Any, _endpoint: Endpoint) -> Any:
    answer = single(entry(reply, "explanations"), "explanations")
    return vector(entry(answer, "counterfactual") if isinstance(answer, dict) else answer)


def _infer_label(reply: Any, endpoint: Endpoint) -> int:
    return label_of(single(entry(reply, "outputs", 0, "data"), "outputs[0].data"), endpoint)


def _infer_explanation(reply: Any, _endpoint: Endpoint) -> Any:
    return vector(entry(reply, "outputs", 0, "data"))


def _infer_body(dimension: int) -> dict[str, Any]:
    tensor = {"name": "input-0", "shape": [1, dimension], "datatype": "FP64", "data": VECTOR}
    return {"inputs": [tensor]}


def _presets(endpoint: Endpoint, verb: str) -> _Preset:
    """The preset's part; a verb that a preset does not have gets nothing but its usual body."""
    infer = _infer_body(endpoint.size)
    instances = {"instances": [VECTOR]}
    query = {"query_instances": [RECORD if endpoint.features is not None else VECTOR]}
    table: dict[tuple[str, str], _Preset] = {
        ("kserve-v1", "classify"): _Preset(":predict", instances, _kserve_label),
        ("kserve-v1", "explain"): _Preset(":explain", instances, _kserve_explanation),
        ("oip-v2", "classify"): _Preset("/infer", infer, _infer_label),
        ("oip-v2", "explain"): _Preset(None, infer, _infer_explanation),
        ("mlserver-alibi", "classify"): _Preset("/infer", infer, _infer_label),
        ("mlserver-alibi", "explain"): _Preset(None, infer, alibi_counterfactual),
        ("dice-json", "classify"): _Preset(None, query, None),
        ("dice-json", "explain"): _Preset("", query, dice_counterfactual),
    }
    return table.get((endpoint.preset, verb), _Preset(None, None, None))


def dialect(endpoint: Endpoint, verb: str, secrets: Secrets) -> Dialect | None:
    """How the endpoint is asked for this verb ("classify" or "explain"); None if it does not offer it."""
    given = getattr(endpoint, verb)
    preset = _presets(endpoint, verb)
    if given is False or (given is None and (preset.path is None or preset.read is None)):
        return None
    said = given if isinstance(given, Verb) else Verb()
    body = preset.body if said.body is None else said.body
    if body is None:
        raise InvalidInput(
            f'[{verb}] body is missing: the request\'s JSON, with "{VECTOR}" or "{RECORD}" for the point'
        )
    write = writer(body, endpoint, secrets, f"[{verb}] body")
    return Dialect(
        said.method, _address(endpoint, verb, said, preset, secrets), write, _reader(endpoint, verb, said, preset)
    )


def _address(endpoint: Endpoint, verb: str, said: Verb, preset: _Preset, secrets: Secrets) -> Address:
    path = preset.path if said.path is None else said.path
    if said.url is not None:
        whole = secrets.fill_url(said.url)
        ends = (
            endpoint.preset == "mlserver-alibi" and verb == "explain" and not whole.partition("?")[0].endswith("/infer")
        )
        return read_address(joined(whole, "/infer") if ends else whole, f"[{verb}] url")
    if path is None:
        if endpoint.preset != "generic":
            raise InvalidInput(f"[{verb}] url (a whole address) or path (appended to url) is missing")
        path = ""
    start = secrets.fill_url(endpoint.url)
    read_address(start, "url")  # what is wrong with it is said before anything is appended
    return read_address(joined(start, secrets.fill_path(path)), "url")


def _reader(endpoint: Endpoint, verb: str, said: Verb, preset: _Preset) -> Read:
    if verb == "classify":
        unused = [key for key in ("form", "none", "feature", "value") if getattr(said, key) is not None]
        if unused or said.relative:
            raise InvalidInput(f"[classify] {(unused or ['relative'])[0]} is of no use: it belongs to [explain]")
    reads = preset.read
    if reads is None or said.answer is not None:
        return label_reader(said, endpoint) if verb == "classify" else explanation_reader(said, endpoint)
    alone = [key for key in ("form", "none", "feature", "value") if getattr(said, key) is not None]
    if alone:
        raise InvalidInput(
            f"[{verb}] {alone[0]} needs [{verb}] answer beside it: the preset reads replies in its own way"
        )
    return lambda reply, _point: reads(reply, endpoint)
