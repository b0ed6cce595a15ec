"""Each preset against a loopback server that speaks its protocol: what is written, and every form in which replies are read."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import overexplain as ox
from loopback import Loopback, Scripted
from overexplain.errors import DimensionMismatch, EndpointFailed, InvalidInput, NotFinite
from overexplain.oracles.http.dialects import dialect
from overexplain.oracles.http.endpoint import read_endpoint
from overexplain.oracles.http.oracle import HttpOracle
from overexplain.oracles.http.readings import Unreadable
from overexplain.oracles.http.secrets import Secrets
from overexplain.oracles.protocol import offers

FEATURES = ["age", "income", "debt"]
X = [40.0, 0.1, -2.5]
CF = [41.5, 0.30000000000000004, -2.5]


def asked(reply: Any, verb: str, **entries: Any) -> tuple[Any, Any]:
    """The answer to one question, and the request that the server saw."""
    with Loopback([Scripted(reply)]) as server:
        given = {"features": FEATURES, **entries, "url": server.url + entries.get("url", "/v1/models/m")}
        for name in ("classify", "explain"):
            if isinstance(given.get(name), dict) and "url" in given[name]:
                given[name] = {**given[name], "url": server.url + given[name]["url"]}
        with HttpOracle.from_dict(given) as service:
            answer = getattr(service, verb)(X)
        assert len(server.requests) == 1
        assert server.requests[0].headers["content-type"] == "application/json"
        return answer, server.requests[0]


def refused(reply: Any, verb: str, **entries: Any) -> str:
    with pytest.raises(EndpointFailed) as caught:
        asked(reply, verb, **entries)
    assert not caught.value.stops
    return str(caught.value)


def test_kserve() -> None:
    answer, request = asked({"explanations": [{"counterfactual": CF}]}, "explain")
    assert answer.tolist() == CF
    assert (request.target, request.json) == ("/v1/models/m:explain", {"instances": [X]})
    label, request = asked({"predictions": [1]}, "classify")
    assert label == 1
    assert (request.target, request.json) == ("/v1/models/m:predict", {"instances": [X]})
    assert asked({"explanations": [CF]}, "explain")[0].tolist() == CF
    assert asked({"explanations": [None]}, "explain")[0] is None
    assert asked({"explanations": [{"counterfactual": None}]}, "explain")[0] is None
    assert asked({"explanations": [{"counterfactual": []}]}, "explain")[0] is None
    assert asked({"explanations": [[None, None, None]]}, "explain")[0] is None


def test_kserve_refuses_what_is_not_its_form() -> None:
    assert "no counterfactual" in refused({"explanations": [{"cf": CF}]}, "explain")
    assert "no explanations" in refused({"predictions": [1]}, "explain")
    assert "list with one answer" in refused({"explanations": [CF, CF]}, "explain")
    assert "must be a number" in refused({"explanations": [["41", 0, 0]]}, "explain")
    assert "must be a number" in refused({"explanations": [[True, 0, 0]]}, "explain")


def test_numbers_that_are_none_are_the_caller_s_business() -> None:
    with pytest.raises(DimensionMismatch):
        asked({"explanations": [[1.0, 2.0]]}, "explain")
    with pytest.raises(NotFinite):
        asked({"explanations": [[1.0, None, 2.0]]}, "explain")
    with pytest.raises(NotFinite):
        asked(b'{"explanations": [[1.0, 1e999, 2.0]]}', "explain")
    with pytest.raises(NotFinite):
        asked(b'{"explanations": [[1' + b"0" * 400 + b", 1, 2.0]]}", "explain")


def test_open_inference_protocol() -> None:
    label, request = asked({"outputs": [{"name": "y", "data": [0]}]}, "classify", preset="oip-v2", url="/v2/models/m")
    assert label == -1
    assert request.target == "/v2/models/m/infer"
    tensor = {"name": "input-0", "shape": [1, 3], "datatype": "FP64", "data": X}
    assert request.json == {"inputs": [tensor]}
    both = {"outputs": [{"name": "probabilities", "shape": [1, 2], "data": [0.2, 0.8]}]}
    assert "list with one answer" in refused(both, "classify", preset="oip-v2", threshold=0.5)
    score = {"classify": {"answer": "outputs[0].data[1]"}}
    assert asked(both, "classify", preset="oip-v2", threshold=0.5, **score)[0] == 1
    with HttpOracle.from_dict({"url": "https://h.example", "dimension": 3, "preset": "oip-v2"}) as service:
        assert offers(service, "classify")
        assert not offers(service, "explain")
        assert service.mechanism is None
        with pytest.raises(InvalidInput, match="does not offer explain"):
            service.ask("explain", X)
    answer, request = asked(
        {"outputs": [{"data": CF}]}, "explain", preset="oip-v2", explain={"url": "/v2/models/why/infer"}
    )
    assert answer.tolist() == CF
    assert request.target == "/v2/models/why/infer"


def alibi(data: Any, name: str = "explanation") -> dict[str, Any]:
    text = json.dumps({"meta": {"name": "Counterfactual"}, "data": data})
    return {"model_name": "why", "outputs": [{"name": name, "shape": [1], "datatype": "BYTES", "data": [text]}]}


def test_mlserver_with_alibi() -> None:
    entries = {"preset": "mlserver-alibi", "url": "/v2/models/m", "explain": {"url": "/v2/models/why"}}
    reply = alibi({"cf": {"X": [CF], "class": 1, "proba": [[0.4, 0.6]]}, "all": []})
    answer, request = asked(reply, "explain", **entries)
    assert answer.tolist() == CF
    assert request.target == "/v2/models/why/infer"
    assert request.json["inputs"][0]["data"] == X
    assert asked(alibi({"cf": {"X": [CF, X]}}, name="explain"), "explain", **entries)[0].tolist() == CF
    assert asked(alibi({"cf": {"X": CF}}), "explain", **entries)[0].tolist() == CF
    assert asked(alibi({"cf": None}), "explain", **entries)[0] is None
    assert asked(alibi({"cf": {"X": None}}), "explain", **entries)[0] is None
    assert "no data.cf" in refused(alibi({"anchor": []}), "explain", **entries)
    assert "JSON text" in refused({"outputs": [{"data": [{"cf": 1}]}]}, "explain", **entries)
    assert "no JSON" in refused({"outputs": [{"data": ["{"]}]}, "explain", **entries)
    label, request = asked({"outputs": [{"data": [1]}]}, "classify", **entries)
    assert (label, request.target) == (1, "/v2/models/m/infer")


def dice(rows: Any, **changed: Any) -> dict[str, Any]:
    names = ["debt", "age", "income"]
    reply = {
        "test_data": [[[-2.5, 40.0, 0.1, 0]]],
        "cfs_list": None if rows is None else [rows],
        "local_importance": None,
        "summary_importance": None,
        "data_interface": {"outcome_name": "loan", "data_df": "dummy_data"},
        "feature_names": names,
        "feature_names_including_target": [*names, "loan"],
        "model_type": "classifier",
        "desired_class": 1,
        "desired_range": None,
        "metadata": {"version": "2.0"},
    }
    return {**reply, **changed}


def test_dice() -> None:
    entries = {"preset": "dice-json", "url": "/explain"}
    row = [CF[2], CF[0], CF[1], 1]
    answer, request = asked(dice([row, [0, 0, 0, 1]]), "explain", **entries)
    assert answer.tolist() == CF  # by name: DiCE has the columns in another order
    assert (request.target, request.json) == ("/explain", {"query_instances": [dict(zip(FEATURES, X, strict=True))]})
    assert asked(json.dumps(dice([row])), "explain", **entries)[0].tolist() == CF  # JSON in a JSON text
    assert asked(dice([[str(value) for value in row]]), "explain", **entries)[0].tolist() == CF
    without = dice([row])
    del without["feature_names_including_target"]
    assert asked(without, "explain", **entries)[0].tolist() == CF
    by_order, request = asked(dice([row]), "explain", **entries, features=None, dimension=3)
    assert by_order.tolist() == [CF[2], CF[0], CF[1]]
    assert request.json == {"query_instances": [X]}
    for none in (dice(None), dice([]), dice([], cfs_list=[]), dice([], cfs_list=[None])):
        assert asked(none, "explain", **entries)[0] is None
    assert "feature_names does not fit" in refused(dice([[1, 2]]), "explain", **entries)
    assert "has no 'age'" in refused(
        dice([row], feature_names_including_target=["debt", "years", "income", "loan"]), "explain", **entries
    )
    assert "must be a number" in refused(dice([["married", 1, 2, 1]]), "explain", **entries)


def generic(**explain: Any) -> dict[str, Any]:
    body = {"applicant": "{{record}}", "row": ["{{vector}}"], "options": {"n": 1, "strict": True}}
    return {"preset": "generic", "url": "/score", "explain": {"body": body, **explain}}


def test_a_generic_request_holds_the_point_where_the_file_says() -> None:
    _, request = asked({"cf": CF}, "explain", **generic(answer="cf", path="/why", method="PUT"))
    assert (request.method, request.target) == ("PUT", "/score/why")
    record = dict(zip(FEATURES, X, strict=True))
    assert request.json == {"applicant": record, "row": [X], "options": {"n": 1, "strict": True}}


def test_generic_vectors_and_records() -> None:
    assert asked({"a": [{"b": CF}]}, "explain", **generic(answer="a[0].b"))[0].tolist() == CF
    assert asked({"a": [[CF]]}, "explain", **generic(answer="a"))[0].tolist() == CF
    record = {"debt": CF[2], "age": CF[0], "other": "x", "income": CF[1]}
    assert asked({"cf": record}, "explain", **generic(answer="cf", form="record"))[0].tolist() == CF
    assert asked({"cf": {}}, "explain", **generic(answer="cf", form="record"))[0] is None
    del record["age"]
    assert "has no 'age'" in refused({"cf": record}, "explain", **generic(answer="cf", form="record"))


def test_generic_changes() -> None:
    changes = [{"feature": "income", "value": 0.5}, {"feature": 0, "value": 7}]
    entries = generic(answer="changes", form="changes")
    assert asked({"changes": changes}, "explain", **entries)[0].tolist() == [7.0, 0.5, -2.5]
    assert asked({"changes": []}, "explain", **entries)[0] is None
    twice = refused({"changes": [changes[0], changes[0]]}, "explain", **entries)
    assert "twice" in twice
    assert "does not have" in refused({"changes": [{"feature": "height", "value": 1}]}, "explain", **entries)
    assert "does not have" in refused({"changes": [{"feature": 3, "value": 1}]}, "explain", **entries)
    named = generic(answer="steps", form="changes", feature="on.name", value="by", relative=True)
    steps = [{"on": {"name": "debt"}, "by": -1.5}]
    assert asked({"steps": steps}, "explain", **named)[0].tolist() == [40.0, 0.1, -4.0]


def test_generic_none() -> None:
    entries = generic(answer="cf", none="status == 'infeasible'")
    assert asked({"status": "infeasible", "cf": [1, 2, 3]}, "explain", **entries)[0] is None
    assert asked({"status": "ok", "cf": CF}, "explain", **entries)[0].tolist() == CF
    assert "does not hold" in refused({"status": "error"}, "explain", **entries)
    assert "does not hold" in refused({"status": "ok", "cf": None}, "explain", **entries)
    assert "cannot be applied" in refused({"cf": 5}, "explain", **generic(answer="length(cf)"))


@pytest.mark.parametrize("form", ["vector", "record", "changes"])
@pytest.mark.parametrize("answer", ["cg", "none", "a.b[0]", "[x, y, z]", "{age: x, income: y, debt: z}", "[x]"])
def test_nothing_where_the_answer_should_be_is_none_only_if_the_file_says_so(form: str, answer: str) -> None:
    """A mistyped expression must not look like a service that has no counterfactual."""
    reply = {"cf": CF, "none": None}
    said = refused(reply, "explain", **generic(answer=answer, form=form))
    assert f"nothing where [explain] answer = {answer!r} points" in said
    assert "write none = true" in said
    assert 'begins: {"cf": [41.5' in said
    assert refused(reply, "explain", **generic(answer=answer, form=form, none=False)) == said
    assert asked(reply, "explain", **generic(answer=answer, form=form, none=True))[0] is None


def test_none_does_not_hide_an_answer_and_holds_for_a_preset_s_verb_too() -> None:
    assert asked({"cf": CF}, "explain", **generic(answer="cf", none=True))[0].tolist() == CF
    assert "must be a number" in refused({"cf": ["x"]}, "explain", **generic(answer="cf", none=True))
    replaced = {"answer": "explanations[0].cf"}
    assert "none = true" in refused({"explanations": [{"cf": None}]}, "explain", explain=replaced)
    assert asked({"explanations": [{"cf": None}]}, "explain", explain={**replaced, "none": True})[0] is None


@pytest.mark.parametrize(
    ("said", "entries", "label"),
    [
        (1, {}, 1), (0, {}, -1), (-1, {}, -1), (1.0, {}, 1), (True, {}, 1), (False, {}, -1), ([[1]], {}, 1),
        (2, {"positive": 2}, 1), (1, {"positive": 2}, -1), ("good", {"positive": "good"}, 1), ("bad", {"positive": "good"}, -1),
        ("denied", {"labels": {"approved": 1, "denied": -1}}, -1), (0, {"labels": {"0": 1, "1": -1}}, 1),
        (1.0, {"labels": {"0": 1, "1": -1}}, -1), (True, {"labels": {"true": -1, "false": 1}}, -1),
        (0.5, {"threshold": 0.5}, 1), (0.4999, {"threshold": 0.5}, -1), (-3, {"threshold": -2.0}, -1),
    ],
)  # fmt: skip
def test_labels(said: Any, entries: dict[str, Any], label: int) -> None:
    assert asked({"predictions": [said]}, "classify", **entries)[0] == label


@pytest.mark.parametrize(
    ("said", "entries"),
    [
        ("1", {}),
        (1, {"positive": "1"}),
        ("maybe", {"labels": {"a": 1, "b": -1}}),
        ("high", {"threshold": 0.5}),
        ([0.1, 0.9], {}),
    ],
)
def test_labels_that_are_none(said: Any, entries: dict[str, Any]) -> None:
    assert "cannot be read" in refused({"predictions": [said]}, "classify", **entries)


def test_batches_are_asked_row_by_row() -> None:
    answers = [{"predictions": [1]}, {"predictions": [0]}]
    explained = [{"explanations": [CF]}, {"explanations": [None]}]
    with Loopback([Scripted(one) for one in answers + explained]) as server:
        with HttpOracle.from_dict({"url": server.url + "/m", "features": FEATURES}) as service:
            assert service.classify([X, CF]).tolist() == [1, -1]
            rows = service.explain([X, CF])
        assert len(server.requests) == 4
    assert rows[0].tolist() == CF
    assert np.isnan(rows[1]).all()


def test_an_extraction_over_http_costs_what_the_theorem_says() -> None:
    model = ox.Hyperplane([2.0, -1.0, 0.5], 3.0)
    inside = ox.ModelOracle(model, "l1")

    def reply(request: Any) -> Scripted:
        x = request.json["instances"][0]
        if request.target.endswith(":predict"):
            return Scripted({"predictions": [int(inside.classify(x) > 0)]})
        return Scripted({"explanations": [{"counterfactual": inside.explain(x).tolist()}]})

    with Loopback([reply]) as server:
        entries = {"url": server.url + "/v1/models/m", "features": FEATURES, "mechanism": {"distance": "l1"}}
        with HttpOracle.from_dict(entries) as service:
            found = ox.extract(service, rng=0)
        assert len(server.requests) == 7
        assert found.spent == ox.Spent(explanations=3, labels=1, confirmation=3)
    assert found.hyperplane.is_equivalent(model, 1e-12)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["predictions", "explanations", "counterfactual", "outputs", "data", "cfs_list", "feature_names", "cf"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


def every_way() -> list[tuple[str, Any]]:
    """Both verbs of every preset."""
    found = []
    for preset in ("kserve-v1", "oip-v2", "mlserver-alibi", "dice-json", "generic"):
        verb = {"path": "/x"}
        if preset == "generic":
            verb |= {"answer": "cf.data || explanations", "body": ["{{vector}}"]}
        label = {**verb, "answer": "predictions"} if preset in ("generic", "dice-json") else {"path": "/y"}
        entries = {
            "url": "https://h.example",
            "features": FEATURES,
            "preset": preset,
            "explain": verb,
            "classify": label,
        }
        found += [(name, dialect(read_endpoint(entries), name, Secrets({}))) for name in ("classify", "explain")]
    return found


WAYS = every_way()


@settings(max_examples=200)
@given(reply=json_values)
def test_whatever_a_service_replies_is_an_answer_or_unreadable(reply: Any) -> None:
    for verb, way in WAYS:
        try:
            answer = way.read(reply, np.array(X))
        except Unreadable:
            continue
        assert answer in (1, -1) if verb == "classify" else answer is None or answer.dtype == np.float64
