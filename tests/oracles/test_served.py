"""A service over real HTTP: what it answers, what it refuses, what it counts, and what it says about itself."""

from __future__ import annotations

import http.client
import json
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overexplain.errors import InvalidInput
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import QueryLog, Status
from overexplain.oracles.constrained import Boxed
from overexplain.oracles.degraded import Noisy
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.served.answers import Answers, Asked
from overexplain.oracles.served.app import MOST_BYTES, service_app
from overexplain.oracles.served.bodies import Layout, Refused, read_instances, read_object
from overexplain.oracles.served.memory import Memory
from overexplain.oracles.served.server import listen, url_of
from overexplain.oracles.served.tensors import read_tensors
from overexplain.oracles.silent import Flaky, OneSided
from overexplain.oracles.wrappers import LabelsOnly
from served import Served, served

PLANE = Hyperplane([0.3, -1.5, 2.25], 1.2)
FEATURES = ("age", "income", "débts")
ORACLE = ModelOracle(PLANE, Mechanism("l1", "l2", 0.1))
LAYOUT = Layout(3, FEATURES)
POINTS = np.random.default_rng(0).normal(size=(20, 3)) * np.array([1e-300, 1.0, 1e150])


class Client:
    """One kept-alive connection that speaks JSON."""

    def __init__(self, service: Served) -> None:
        self.service = service
        self.connection = http.client.HTTPConnection(service.url.removeprefix("http://"), timeout=60)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        named = {} if raw is None else {"Content-Type": "application/json"}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, raw, named)
        response = self.connection.getresponse()
        text = response.read()
        assert response.headers["content-type"] == "application/json"
        return response.status, json.loads(text) if text else None

    def predict(self, body: Any, **headers: str) -> tuple[int, Any]:
        return self.send("POST", f"/v1/models/{self.service.name}:predict", body, **headers)

    def explain(self, body: Any, **headers: str) -> tuple[int, Any]:
        return self.send("POST", f"/v1/models/{self.service.name}:explain", body, **headers)

    def infer(self, body: Any, **headers: str) -> tuple[int, Any]:
        return self.send("POST", f"/v2/models/{self.service.name}/infer", body, **headers)

    def counts(self) -> SimpleNamespace:
        return SimpleNamespace(**self.send("GET", "/counts")[1])


@pytest.fixture(scope="module")
def service():
    with served(ORACLE, features=FEATURES, name="loans") as running:
        yield running


@pytest.fixture
def client(service):
    with Client(service) as client:
        yield client


def tensor(rows: Any, **changed: Any) -> dict[str, Any]:
    rows = np.asarray(rows, dtype=np.float64)
    return {"name": "x", "shape": list(rows.shape), "datatype": "FP64", "data": rows.ravel().tolist()} | changed


# What it answers


def test_labels_and_explanations_are_those_of_the_oracle_to_the_last_bit(client) -> None:
    status, labels = client.predict({"instances": POINTS.tolist()})
    assert status == 200
    assert labels == {"predictions": [int(PLANE.label(point) == YES) for point in POINTS]}
    assert {0, 1} == set(labels["predictions"])
    status, said = client.explain({"instances": POINTS.tolist()})
    assert status == 200
    assert said == {"explanations": [{"counterfactual": ORACLE.explain(point).tolist()} for point in POINTS]}
    status, said = client.infer({"id": "a7", "inputs": [tensor(POINTS)]})
    assert (status, said["id"], said["model_name"]) == (200, "a7", "loans")
    assert said["outputs"] == [{"name": "label", "datatype": "INT64", "shape": [20], "data": labels["predictions"]}]


def test_records_rows_and_tensors_of_all_forms_are_the_same_point(client) -> None:
    point = [3.0, -2.0, 7.0]
    record = dict(zip(reversed(FEATURES), reversed(point), strict=True))
    expected = client.explain({"instances": [point]})[1]["explanations"]
    assert client.explain({"instances": [record, [3, -2, 7]]})[1]["explanations"] == expected * 2
    columns = [tensor([[value]], name=name) for name, value in record.items()]
    flat = [tensor([value], name=name, datatype="INT8", data=[int(value)]) for name, value in record.items()]
    forms = [[tensor([point])], [tensor([point], data=[point])], [tensor([point], datatype="FP32")], columns, flat]
    for inputs in forms:
        body = {"inputs": inputs, "outputs": [{"name": "label"}], "parameters": {"content_type": "np"}}
        assert client.infer(body)[1]["outputs"][0]["data"] == [int(PLANE.label(point) == YES)]


def test_single_precision_is_what_its_name_says() -> None:
    rows, _ = read_tensors({"inputs": [tensor([[0.1, 1.0, 2.0]], datatype="FP32")]}, LAYOUT)
    assert rows[0, 0] == struct.unpack("f", struct.pack("f", 0.1))[0] != 0.1


def test_no_counterfactual_is_null_and_counts_as_an_answer() -> None:
    point = [0.0, 0.0, 0.0]
    assert PLANE.label(point) == NO
    with served(OneSided(ModelOracle(PLANE, "l2"), YES)) as one_sided, Client(one_sided) as client:
        assert client.explain({"instances": [point]}) == (200, {"explanations": [{"counterfactual": None}]})
        assert (one_sided.counts.explain, client.counts().explain) == (1, 1)


def test_what_a_client_needs_to_know_is_told(client) -> None:
    told = {
        "/v1/models": {"models": ["loans"]},
        "/v1/models/loans": {"name": "loans", "ready": True},
        "/v2/health/live": {"live": True},
        "/v2/health/ready": {"ready": True},
        "/v2": {"name": "overexplain", "version": "unknown", "extensions": []},
        "/v2/models/loans/ready": {"name": "loans", "ready": True},
        "/v2/models/loans": {
            "name": "loans",
            "versions": [],
            "platform": "overexplain",
            "inputs": [{"name": "features", "datatype": "FP64", "shape": [-1, 3]}],
            "outputs": [{"name": "label", "datatype": "INT64", "shape": [-1]}],
        },
    }
    for path, entries in told.items():
        assert client.send("GET", path) == (200, entries)


# What it refuses

ROW = [1.0, 2.0, 3.0]
BAD_INSTANCES: list[tuple[Any, str]] = [
    (b"", "not JSON"),
    (b"{'instances': []}", "line 1, column 2"),
    (b"\xff\xfe", "not UTF-8 at byte 0"),
    (b"[" * 100_000, "nested too deep"),
    (b'{"instances": [[' + b"9" * 5000 + b", 1, 2]]}", "digits"),
    (b'{"instances": [[1, 2, 3]], "instances": []}', "same key twice"),
    ([ROW], "must be a JSON object"),
    ({}, '"instances" must be a list'),
    ({"instances": []}, "one row or more"),
    ({"instances": {"age": 1}}, '"instances" must be a list'),
    ({"instances": [ROW], "inputs": []}, "unknown 'inputs'; known are 'instances'"),
    ({"instances": [ROW, [1.0, 2.0]]}, "instance 1 must have 3 numbers, got 2"),
    ({"instances": [[ROW]]}, "instance 0 must have 3 numbers, got 1"),
    ({"instances": [ROW, 5]}, "instance 1 must be a list of numbers or an object"),
    ({"instances": [[1.0, "2", 3.0]]}, "instance 0, entry 1 (income) must be a number, got '2'"),
    ({"instances": [[1.0, True, 3.0]]}, "must be a number, got True"),
    ({"instances": [[1.0, None, 3.0]]}, "must be a number, got None"),
    (b'{"instances": [[1, 2, NaN]]}', "entry 2 (d\u00e9bts) must be a finite number"),
    (b'{"instances": [[-Infinity, 2, 3]]}', "entry 0 (age) must be a finite number"),
    (b'{"instances": [[1, 1e999, 3]]}', "entry 1 (income) must be a finite number"),
    ({"instances": [[10**400, 2.0, 3.0]]}, "entry 0 (age) must be a finite number"),
    ({"instances": [{"age": 1, "income": 2}]}, "instance 0 lacks 'd\u00e9bts'"),
    ({"instances": [{"age": 1, "income": 2, "d\u00e9bts": 3, "agee": 4}]}, "instance 0 has unknown 'agee'"),
    ({"instances": [[1.7e308, -1.7e308, 1.7e308]]}, "instance 0: "),
]


@pytest.mark.parametrize(("body", "said"), BAD_INSTANCES)
def test_what_is_no_batch_of_instances_is_refused_with_its_place(body, said, client) -> None:
    before = client.counts()
    status, reply = client.explain(body)
    assert (status, set(reply)) == (400, {"error"})
    assert said in reply["error"]
    assert len(reply["error"]) < 400
    after = client.counts()
    assert (after.requests, after.explain) == (before.requests + 1, before.explain)


BAD_TENSORS: list[tuple[dict[str, Any], str]] = [
    ({}, '"inputs" must be a list'),
    ({"inputs": []}, "one tensor or more"),
    ({"inputs": [5]}, "input 0 must be an object"),
    ({"inputs": [tensor([ROW])], "id": 5}, '"id" must be a string'),
    ({"inputs": [tensor([ROW])], "parameters": []}, '"parameters" must be an object'),
    ({"inputs": [tensor([ROW])], "outputs": "label"}, '"outputs" must be a list'),
    ({"inputs": [tensor([ROW])], "outputs": [{"name": "score"}]}, "no output 'score'"),
    ({"inputs": [tensor([ROW])], "instances": []}, "unknown 'instances'"),
    ({"inputs": [tensor([ROW], extra=1)]}, "input 0 has unknown 'extra'"),
    ({"inputs": [tensor([ROW], name=None)]}, '"name" must be a string'),
    ({"inputs": [tensor([ROW], shape=[1, 4])]}, "shape [1, 4] needs 4 numbers"),
    ({"inputs": [tensor([ROW], shape=[-1, 3])]}, '"shape" must be'),
    ({"inputs": [tensor([ROW], shape=[1, 1, 3])]}, '"shape" must be'),
    ({"inputs": [tensor([ROW], shape=[True, 3])]}, '"shape" must be'),
    ({"inputs": [tensor([ROW], shape=[10**30, 10**30])]}, "numbers in"),
    ({"inputs": [tensor([ROW], datatype="BYTES")]}, '"datatype" must be one of'),
    ({"inputs": [tensor([ROW], data="1,2,3")]}, '"data" must be a list'),
    ({"inputs": [tensor([ROW, ROW], data=[ROW, [1.0]])]}, "row 1 is [1.0]"),
    ({"inputs": [tensor([ROW, ROW], data=[ROW])]}, "it has 1 rows"),
    ({"inputs": [tensor([ROW], data=[1.0, "2", 3.0])]}, "entry 1 of data must be a number"),
    ({"inputs": [tensor([ROW], datatype="INT8", data=[1, 2, 128])]}, "entry 2 of data: 128 is no INT8"),
    ({"inputs": [tensor([ROW], datatype="UINT8", data=[1, -2, 3])]}, "-2 is no UINT8"),
    ({"inputs": [tensor([ROW], datatype="INT64", data=[1, 2, 3.0])]}, "3.0 is no INT64"),
    ({"inputs": [tensor([ROW], datatype="FP32", data=[1, 1e300, 3])]}, "1e+300 is no FP32"),
    ({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP64"}]}, "not in binary form"),
    ({"inputs": [tensor([[1.0, 2.0]])]}, "takes one tensor of shape [n, 3]"),
    ({"inputs": [tensor([ROW]), tensor([ROW])]}, "takes one tensor of shape [n, 3]"),
    ({"inputs": [tensor([[1.0]], name=name) for name in ("age", "age", "income")]}, "for each of 'age', 'income'"),
    ({"inputs": [tensor(np.ones((1 + (name == "age"), 1)), name=name) for name in FEATURES]}, "needed is [2, 1]"),
    ({"inputs": [tensor([[1.0, 2.0]], name=name) for name in FEATURES]}, "needed is [1, 1]"),
]


@pytest.mark.parametrize(("body", "said"), BAD_TENSORS)
def test_what_is_no_batch_of_tensors_is_refused_with_its_place(body, said, client) -> None:
    status, reply = client.infer(body)
    assert (status, set(reply)) == (400, {"error"})
    assert said in reply["error"]


def test_names_are_refused_where_features_have_none() -> None:
    with pytest.raises(Refused, match="features have none"):
        read_instances({"instances": [{"age": 1.0}]}, Layout(1))
    with pytest.raises(Refused, match=r"takes one tensor of shape \[n, 2\], got shape \[1, 1\]"):
        read_tensors({"inputs": [tensor([[1.0]])]}, Layout(2))
    with pytest.raises(InvalidInput, match="2 features are named, the service has 3"):
        service_app(ORACLE, features=["age", "income"])


def test_wrong_addresses_and_methods_are_refused_as_json_and_not_counted(client) -> None:
    before = client.counts()
    for method, path, status in [
        ("POST", "/v1/models/other:predict", 404),
        ("GET", "/v1/models/other", 404),
        ("GET", "/v1/models/", 404),
        ("GET", "/", 404),
        ("GET", "/v1/models/loans:predict", 405),
        ("PUT", "/v2/models/loans/infer", 405),
        ("POST", "/v2/health/live", 405),
        ("DELETE", "/counts", 405),
    ]:
        got, reply = client.send(method, path, {"instances": [ROW]} if method == "POST" else None)
        assert (got, set(reply)) == (status, {"error"})
        assert ("loans" if status == 404 else "use ") in reply["error"]
    assert client.counts() == before


@pytest.mark.parametrize("size", [MOST_BYTES + 1, 30_000_000])
def test_a_body_too_large_is_refused_and_the_next_one_answered(size, client) -> None:
    before = client.counts()
    status, reply = client.predict(b" " * size)
    assert status == 413
    assert "1,000,000 bytes" in reply["error"]
    assert client.predict({"instances": [ROW]})[0] == 200
    after = client.counts()
    assert (after.requests, after.classify) == (before.requests + 2, before.classify + 1)
    assert client.predict(b" " * MOST_BYTES)[0] == 400  # not too large, but no JSON


def test_a_client_that_leaves_in_the_middle_harms_nobody(service, client, caplog) -> None:
    before = service.counts.requests
    host, _, port = service.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as half:
        half.sendall(
            b"POST /v1/models/loans:predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\n\r\n{"
        )
    for _ in range(1000):
        if service.counts.requests == before + 1:
            break
        assert client.send("GET", "/v2/health/live")[0] == 200
    assert service.counts.requests == before + 1
    assert client.predict({"instances": [ROW]})[0] == 200
    assert not caplog.records


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
)
def test_what_a_page_of_another_site_can_send_unasked_is_refused(kind, client) -> None:
    before = client.counts().classify
    status, reply = client.predict({"instances": [ROW]}, Content_Type=kind)
    assert (status, client.counts().classify) == (415, before)
    assert "Content-Type: application/json" in reply["error"]
    assert client.predict({"instances": [ROW]}, Content_Type="Application/JSON; charset=utf-8")[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", "[::2]:1", "", "x[::1]"]
)
def test_a_name_that_was_made_to_lead_here_reads_nothing(host, client) -> None:
    before = client.counts().requests
    for method, path, body in (
        ("GET", "/v2/models/loans", None),
        ("POST", "/v1/models/loans:predict", {"instances": [ROW]}),
    ):
        status, reply = client.send(method, path, body, Host=host)
        assert status == 421
        assert reply == {"error": f"the host {host!r} is not this machine; ask for 127.0.0.1, [::1] or localhost"}
    assert client.counts().requests == before


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.8.9.1:80", "[::1]", "[::1]:8099"])
def test_every_name_of_this_machine_is_answered(host, client) -> None:
    assert client.send("GET", "/v2/health/live", Host=host)[0] == 200


def test_too_many_instances_are_refused_before_any_is_answered(client) -> None:
    before = client.counts()
    tensor = {"name": "x", "shape": [1001, 3], "datatype": "FP64", "data": [1.0] * 3003}
    for status, reply in (client.predict({"instances": [ROW] * 1001}), client.infer({"inputs": [tensor]})):
        assert status == 413
        assert reply == {"error": "1,001 instances, but a request may have 1,000; send fewer at a time"}
    assert client.counts().classify == before.classify
    assert client.predict({"instances": [ROW] * 1000})[0] == 200


def test_a_body_that_does_not_come_is_not_waited_for(service, client, caplog, monkeypatch) -> None:
    monkeypatch.setattr("overexplain.oracles.served.app.BODY_SECONDS", 0.3)
    host, _, port = service.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as slow:
        slow.sendall(
            b"POST /v1/models/loans:predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\n\r\n{"
        )
        begin = time.monotonic()
        reply = b"".join(iter(lambda: slow.recv(4096), b""))  # to the end: the connection is closed
        assert 0.2 < time.monotonic() - begin < 20
    assert reply.startswith(b"HTTP/1.1 408 ")
    assert b"the body did not come within 0.3 seconds" in reply
    assert client.predict({"instances": [ROW]})[0] == 200
    assert not caplog.records


class Slow:
    """An oracle that takes a tenth of a second for each label."""

    dimension, mechanism, explain = 3, None, None

    def classify(self, x: Any) -> int:
        time.sleep(0.1)
        return 1


def test_nobody_who_only_looks_waits_for_answers() -> None:
    with (
        served(Slow(), name="loans") as service, Client(service) as busy, Client(service) as third, Client(service) as other,
    ):  # fmt: skip
        asking = threading.Thread(target=busy.predict, args=({"instances": [ROW] * 20},))
        asking.start()
        time.sleep(0.3)
        begin = time.monotonic()
        waiting = threading.Thread(target=third.predict, args=({"instances": [ROW]},))
        waiting.start()
        time.sleep(0.1)
        assert other.send("GET", "/v2/health/live")[0] == 200
        assert time.monotonic() - begin < 1.0
        assert asking.is_alive()
        asking.join()
        waiting.join()


def test_verbs_that_are_not_offered_are_not_implemented() -> None:
    labels = Answers(LabelsOnly(ORACLE), LAYOUT, "m")
    body = json.dumps({"instances": [ROW]}).encode()
    with pytest.raises(Refused, match="explains nothing") as caught:
        labels.reply(Asked("explain", body))
    assert caught.value.status == 501
    assert json.loads(labels.reply(Asked("predict", body))) == {"predictions": [1]}

    class Explains:
        dimension, mechanism = 3, Mechanism("l2")

        def explain(self, x):
            return x

    with pytest.raises(Refused, match="gives no labels") as caught:
        Answers(Explains(), LAYOUT, "m").reply(Asked("predict", body))
    assert caught.value.status == 501


def test_inputs_outside_the_domain_are_the_clients_fault_and_broken_answers_the_services(tmp_path) -> None:
    boxed = Answers(Boxed(ModelOracle(PLANE, "l2"), -5.0, 5.0), LAYOUT, "m")
    with pytest.raises(Refused, match="instance 1: .*feature 0 must lie between") as caught:
        boxed.reply(Asked("explain", json.dumps({"instances": [ROW, [9.0, 0.0, 0.0]]}).encode()))
    assert caught.value.status == 400
    assert boxed.counts.answers == 0
    for answer, said in [([1.0], "shape"), ("?", "numbers or None"), ([1.0, np.inf, 2.0], "returned inf")]:
        broken = SimpleNamespace(dimension=3, mechanism=None, explain=lambda x, answer=answer: answer)
        with pytest.raises(Refused, match=f"failed on instance 0: .*{said}") as caught:
            Answers(broken, LAYOUT, "m").reply(Asked("explain", json.dumps({"instances": [ROW]}).encode()))
        assert caught.value.status == 500


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["age", "FP64", "INT8", "label"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["age", "name", "shape", "datatype", "data", "id"]), inner, max_size=4)
    ),
    max_leaves=12,
)
bodies = st.fixed_dictionaries(
    {}, optional={"instances": json_values, "inputs": json_values, "outputs": json_values, "id": json_values}
)


@given(bodies | st.fixed_dictionaries({"instances": st.lists(st.lists(st.floats(), min_size=3, max_size=3))}))
def test_any_json_is_read_or_refused(body: dict[str, Any]) -> None:
    raw = json.dumps(body).encode()
    for read in (read_instances, lambda *given: read_tensors(*given)[0]):
        try:
            rows = read(read_object(raw), LAYOUT)
        except Refused as error:
            assert error.status == 400
        else:
            assert rows.shape == (len(rows), 3)
            assert np.isfinite(rows).all()


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    with pytest.raises(Refused):
        read_instances(read_object(raw), LAYOUT)


# What it counts


def test_every_instance_is_an_answer_and_every_request_a_request(client) -> None:
    before = client.counts()
    client.predict({"instances": [ROW] * 5})
    client.explain({"instances": [ROW] * 3})
    client.infer({"inputs": [tensor([ROW, ROW])]})
    client.infer({"inputs": []})
    after = client.counts()
    grown = {name: value - vars(before)[name] for name, value in vars(after).items()}
    assert grown == {"requests": 4, "classify": 7, "explain": 3, "keys": 0, "repeated": 0}
    assert vars(after) == client.service.counts.to_dict()


def test_the_same_key_and_request_have_the_same_reply_and_count_once() -> None:
    noisy = Noisy(ModelOracle(PLANE, "l2"), 0.1, rng=0)
    with served(noisy) as service, Client(service) as client:
        body = {"instances": [ROW]}
        first = client.explain(body, Idempotency_Key="k1")
        assert client.explain(body, Idempotency_Key="k1") == first
        assert client.explain(body, Idempotency_Key="k2") != first
        assert client.explain(body) != first
        assert service.counts.to_dict() == {"requests": 4, "classify": 0, "explain": 3, "keys": 2, "repeated": 1}
        for verb, other in [(client.explain, {"instances": [[0.0, 0.0, 0.0]]}), (client.predict, body)]:
            status, reply = verb(other, Idempotency_Key="k1")
            assert status == 422
            assert "another request" in reply["error"]
        assert client.explain(body, Idempotency_Key="k" * 256)[0] == 400
        assert client.explain(body, Idempotency_Key="")[0] == 400
        assert client.explain(body, Idempotency_Key="k1") == first
        assert (service.counts.explain, service.counts.keys) == (3, 2)


def test_a_failure_is_not_remembered_but_its_key_is() -> None:
    failing = Flaky(ModelOracle(PLANE, "l2"), 0.7, "raise", rng=1)
    answers = Answers(failing, LAYOUT, "m")
    asked = Asked("explain", json.dumps({"instances": [ROW]}).encode(), key="k")
    replies, failures = set(), 0
    for _ in range(20):
        try:
            replies.add(answers.reply(asked))
        except Refused as error:
            assert error.status == 500
            assert not replies
            failures += 1
    assert failures > 0
    assert len(replies) == 1
    assert (answers.counts.explain, answers.counts.keys, answers.counts.repeated) == (1, 1, 19 - failures)


def test_memory_forgets_what_was_not_used_for_longest() -> None:
    memory = Memory(most_keys=2, most_bytes=100)
    for key in ("a", "b"):
        assert memory.meets(key, b"?")
        memory.keep(key, b"!")
    assert not memory.meets("a", b"?")
    assert memory.meets("c", b"?")
    assert len(memory) == 2
    assert not memory.meets("a", b"?")
    memory.keep("a", b"!" * 101)
    assert len(memory) == 1
    assert memory.reply("a") == b"!" * 101
    assert memory.meets("c", b"?")
    memory.keep("c", b"!")
    assert memory.meets("a", b"?")
    for key in "defghij":  # what was forgotten takes no room
        memory.meets(key, b"?")
        memory.keep(key, b"!" * 40)
        assert memory.reply(key) is not None
        assert len(memory) == 2


def test_counts_are_exact_with_fifty_clients_at_once(tmp_path) -> None:
    """An oracle that is not safe for threads: two at a time would be seen."""

    class Alone:
        dimension, mechanism = 3, Mechanism("l2")
        inside, collisions = 0, 0

        def classify(self, x):
            self.inside += 1
            time.sleep(0)  # lets another thread in
            self.collisions += self.inside != 1
            label = PLANE.label(x)
            self.inside -= 1
            return label

    oracle, failures, clients, each = Alone(), [], 50, 6

    def ask(service: Served, number: int) -> None:
        try:
            with Client(service) as client:
                for k in range(each):
                    # Every key comes from two clients, with the same question.
                    body = {"instances": [[float(number // 2), float(k), 0.0], ROW]}
                    key = f"{number // 2}-{k}"
                    status, reply = client.predict(body, Idempotency_Key=key, X_Client_Id=f"c{number}")
                    expected = [int(PLANE.label(row) == YES) for row in body["instances"]]
                    assert (status, reply) == (200, {"predictions": expected})
        except BaseException as error:
            failures.append(error)

    with served(oracle, features=FEATURES, log=tmp_path / "log.jsonl") as service:
        threads = [threading.Thread(target=ask, args=(service, i)) for i in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        counts = service.counts.to_dict()
    assert not failures
    assert oracle.collisions == 0
    total = clients * each
    assert counts == {"requests": total, "classify": total, "explain": 0, "keys": total // 2, "repeated": total // 2}
    log = QueryLog.load(tmp_path / "log.jsonl")
    assert len(log) == total
    assert set(log.clients) <= {f"c{i}" for i in range(clients)}


# What it writes down


def test_every_answer_is_in_the_log_with_who_and_when(tmp_path) -> None:
    path = tmp_path / "log.jsonl"
    oracle = OneSided(ModelOracle(PLANE, Mechanism("l2", "l2", 0.5), published=Mechanism("l2", "l2", None)), NO)
    yes, no = [9.0, 0.0, 9.0], [0.0, 0.0, 0.0]
    with served(oracle, features=FEATURES, name="loans", log=path) as service, Client(service) as client:
        client.predict({"instances": [yes]}, X_Client_Id="ann")
        client.explain({"instances": [no, yes]})
        client.explain({"instances": [[1.0]]})
        before_close = QueryLog.load(path)
    log = QueryLog.load(path)
    assert before_close == log
    assert log.features == FEATURES
    assert log.mechanism == Mechanism("l2", "l2", None)
    assert log.points.tolist() == [yes, no, yes]
    assert log.labels.tolist() == [1, 0, 0]
    assert log.status.tolist() == [Status.NOT_ASKED, Status.ASKED, Status.NONE]
    assert log.explanations[1].tolist() == oracle.explain(no).tolist()
    assert log.clients.tolist() == ["ann", "127.0.0.1", "127.0.0.1"]
    assert set(log.sources) == {"serve loans"}
    assert (np.diff(log.times) >= 0).all()
    with pytest.raises(InvalidInput, match="cannot write the log"):
        service_app(oracle, log=path)


def test_what_cannot_be_logged_is_not_told() -> None:
    class Full:
        def write(self, row) -> None:
            raise OSError(28, "No space left on device")

    answers = Answers(ORACLE, LAYOUT, "m", Full())
    asked = Asked("explain", json.dumps({"instances": [ROW]}).encode(), key="k")
    for _ in range(2):
        with pytest.raises(Refused, match="not logged and is not told: .*No space left") as caught:
            answers.reply(asked)
        assert caught.value.status == 500
    assert answers.counts.answers == 0


def test_a_failed_explanation_is_in_the_log_as_failed(tmp_path) -> None:
    path = tmp_path / "log.jsonl"
    with served(Flaky(ModelOracle(PLANE, "l2"), 1.0, "raise", rng=0), log=path) as service, Client(service) as client:
        status, reply = client.explain({"instances": [ROW]})
    assert status == 500
    assert "the service failed on instance 0" in reply["error"]
    assert service.counts.explain == 0
    assert QueryLog.load(path).status.tolist() == [Status.FAILED]


# What it says about itself

OPENAPI = {  # the parts of the OpenAPI 3.1 schema that an endpoint like this one uses, strictly
    "type": "object",
    "required": ["openapi", "info", "paths"],
    "additionalProperties": False,
    "properties": {
        "openapi": {"pattern": r"^3\.1\.\d+$"},
        "info": {
            "type": "object",
            "required": ["title", "version"],
            "additionalProperties": False,
            "properties": {name: {"type": "string"} for name in ("title", "version", "description")},
        },
        "paths": {
            "type": "object",
            "additionalProperties": False,
            "patternProperties": {
                "^/": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"get": {"$ref": "#/$defs/operation"}, "post": {"$ref": "#/$defs/operation"}},
                }
            },
        },
        "components": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "schemas": {
                    "type": "object",
                    "propertyNames": {"pattern": r"^[a-zA-Z0-9._-]+$"},
                    "additionalProperties": {"$ref": "https://json-schema.org/draft/2020-12/schema"},
                }
            },
        },
    },
    "$defs": {
        "operation": {
            "type": "object",
            "required": ["operationId", "responses"],
            "additionalProperties": False,
            "properties": {
                "operationId": {"type": "string"},
                "summary": {"type": "string"},
                "parameters": {"type": "array", "items": {"$ref": "#/$defs/parameter"}},
                "requestBody": {
                    "type": "object",
                    "required": ["content"],
                    "additionalProperties": False,
                    "properties": {"required": {"type": "boolean"}, "content": {"$ref": "#/$defs/content"}},
                },
                "responses": {
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": False,
                    "patternProperties": {
                        "^[1-5][0-9]{2}$": {
                            "type": "object",
                            "required": ["description"],
                            "additionalProperties": False,
                            "properties": {
                                "description": {"type": "string"},
                                "content": {"$ref": "#/$defs/content"},
                            },
                        }
                    },
                },
            },
        },
        "parameter": {
            "type": "object",
            "required": ["name", "in", "schema"],
            "additionalProperties": False,
            "properties": {
                "name": {"type": "string"},
                "in": {"enum": ["query", "header", "path", "cookie"]},
                "required": {"type": "boolean"},
                "description": {"type": "string"},
                "schema": {"$ref": "https://json-schema.org/draft/2020-12/schema"},
            },
        },
        "content": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "schema": {"$ref": "https://json-schema.org/draft/2020-12/schema"},
                    "examples": {
                        "type": "object",
                        "additionalProperties": {
                            "type": "object",
                            "required": ["value"],
                            "additionalProperties": False,
                            "properties": {"value": {}},
                        },
                    },
                },
            },
        },
    },
}


@pytest.fixture
def description(client):
    status, description = client.send("GET", "/openapi.json")
    assert status == 200
    return description


def valid(entries: Any, content: dict[str, Any], description: dict[str, Any]) -> bool:
    """Whether the entries are what the description says that such a body is."""
    schema = {**content["application/json"]["schema"], "components": description["components"]}
    return bool(jsonschema.Draft202012Validator(schema).is_valid(entries))


def test_the_description_is_openapi_and_has_every_route(description, service) -> None:
    jsonschema.Draft202012Validator(OPENAPI).validate(description)
    listed = {(path, method.upper()) for path, entry in description["paths"].items() for method in entry}
    app = service_app(ORACLE, features=FEATURES, name="loans")
    assert listed == {(route.path, method) for route in app.routes for method in route.methods - {"HEAD"}}
    names = [operation["operationId"] for entry in description["paths"].values() for operation in entry.values()]
    assert len(set(names)) == len(names) == len(app.routes)
    assert "robust l2 0.1" in description["info"]["description"]


def test_every_example_is_answered_as_described(description, client) -> None:
    tried = 0
    for path, entry in description["paths"].items():
        for method, operation in entry.items():
            content = operation.get("requestBody", {}).get("content")
            examples = {} if content is None else content["application/json"]["examples"]
            for example in [e["value"] for e in examples.values()] or [None]:
                assert content is None or valid(example, content, description)
                status, reply = client.send(method.upper(), path, example)
                assert status == 200
                assert valid(reply, operation["responses"]["200"]["content"], description)
                tried += 1
    assert tried == 9 + 2 + 2 + 3


def test_the_description_refuses_what_the_service_refuses(description, client) -> None:
    described = description["paths"]["/v1/models/loans:explain"]["post"]
    checked = 0
    for body, said in BAD_INSTANCES:
        # JSON Schema knows neither NaN nor the range of float64, and sees no body that is not JSON.
        if not isinstance(body, bytes) and "finite" not in said and said != "instance 0: ":
            assert not valid(body, described["requestBody"]["content"], description)
            status, reply = client.explain(body)
            assert valid(reply, described["responses"][str(status)]["content"], description)
            checked += 1
    assert checked == 13


def test_a_description_says_no_more_than_the_service_publishes() -> None:
    secret = ModelOracle(PLANE, Mechanism("l1", "l2", 0.123), published=Mechanism("l1", "l2", None))
    for oracle, said in [(secret, "radius secret"), (LabelsOnly(secret), "explains nothing")]:
        with served(oracle) as service, Client(service) as client:
            text = json.dumps(client.send("GET", "/openapi.json")[1])
        assert said in text
        assert "0.123" not in text
        assert "2.25" not in text


# Where it listens


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", "", "127.0.0.1.example.org"])
def test_only_loopback_addresses_are_listened_on(host: str) -> None:
    with pytest.raises(InvalidInput, match="is no loopback address"):
        listen(host)


def test_a_port_in_use_is_named() -> None:
    with listen("localhost") as taken:
        port = taken.getsockname()[1]
        assert url_of(taken) == f"http://127.0.0.1:{port}"
        with pytest.raises(InvalidInput, match=f"port {port} on 127.0.0.1 is in use"):
            listen(port=port)
    with pytest.raises(InvalidInput, match="0 to 65535"):
        listen(port=70_000)


def test_ctrl_c_as_soon_as_it_is_ready_stops_it() -> None:
    """In a process of its own: a signal that is not caught would end the tests."""
    program = """if True:
        import signal
        from overexplain.geometry.hyperplane import Hyperplane
        from overexplain.oracles.exact import ModelOracle
        from overexplain.oracles.served.app import service_app
        from overexplain.oracles.served.server import listen, serve

        app = service_app(ModelOracle(Hyperplane([1.0], 0.0), "l2"))
        before = signal.getsignal(signal.SIGINT)
        with listen() as listener:
            serve(app, listener, lambda url: signal.raise_signal(signal.SIGINT))
        assert signal.getsignal(signal.SIGINT) is before
        print(app.state.counts.answers)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


@pytest.mark.parametrize("name", ["", "a/b", "a:predict", "..", "ä", "a b", "{x}", "a" * 101])
def test_names_that_paths_cannot_hold_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="a model's name"):
        service_app(ORACLE, name=name)


@pytest.mark.parametrize("package", ["starlette.applications", "uvicorn"])
def test_what_is_missing_is_named_with_how_to_get_it(package: str, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InvalidInput, match=r'pip install "overexplain\[serve\]"'), served(ORACLE):
        pass
