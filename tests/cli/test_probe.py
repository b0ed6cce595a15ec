"""`overexplain probe` against a model served over real HTTP: the server counts what was asked."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from overexplain.auditing.probing import Probed
from overexplain.cli.main import run
from overexplain.extraction.extract import extract
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.store import file
from overexplain.log.store.run import Run
from overexplain.models.load import load_model
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.served.endpoint_file import endpoint_file
from overexplain.oracles.served.server import listen, url_of
from overexplain.oracles.wrappers import LabelsOnly, Published
from overexplain.report.probed import print_probed
from overexplain.report.terminal import terminal
from served import Served, served

FEATURES = ["age", "income", "debts", "years", "cards"]
PLANE = Hyperplane([0.3, -1.5, 2.25, 0.01, 1.0], 0.7)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


@contextmanager
def endpoint(oracle: Any, *extra: str, idempotent: bool = True, authorized: bool = True) -> Iterator[Served]:
    """The oracle served, and endpoint.toml written for it."""
    with served(oracle, features=FEATURES) as service:
        text = endpoint_file(oracle, service.url, service.name, FEATURES)
        if not idempotent:
            text = text[: text.index("[idempotency]")]
        if not authorized:
            text = text.replace("authorized = true\n", "")
        Path("endpoint.toml").write_text(text + "".join(f"\n{line}" for line in extra))
        yield service


def probed(capsys, *options: str) -> dict[str, Any]:
    """The JSON of a probe that must go well."""
    assert run(["probe", "endpoint.toml", "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def plane_of(found: dict[str, Any]) -> Hyperplane:
    return Hyperplane(found["hyperplane"]["normal"], found["hyperplane"]["offset"])


SERVICES = [
    (Mechanism("l1"), None, 5),
    (Mechanism("l2"), None, 1),
    (Mechanism("linf"), None, 5),
    (Mechanism("l1", "l2", 0.1), None, 5),
    (Mechanism("l2", "l1", 0.25), None, 1),
    (Mechanism("l1", "l2", 0.1), Mechanism("l1", "l2", None), 6),
]


@pytest.mark.parametrize(("mechanism", "published", "explanations"), SERVICES)
@pytest.mark.parametrize("idempotent", [True, False])
def test_the_server_counts_what_the_theorem_says(mechanism, published, explanations, idempotent, capsys) -> None:
    """Theorems A, B and C over HTTP: so many requests, one more for the orientation, and a budget of just that is enough."""
    oracle = ModelOracle(PLANE, mechanism)
    with endpoint(oracle if published is None else Published(oracle, published), idempotent=idempotent) as service:
        found = probed(capsys, "--budget", str(explanations + 1), "--no-confirm")
    assert service.counts.requests == explanations + 1
    assert (service.counts.explain, service.counts.classify) == (explanations, 1)
    assert found["requests"] == explanations + 1
    assert found["retries"] == 0
    assert plane_of(found).is_equivalent(PLANE, 1e-9)
    assert plane_of(found).angle_to(PLANE) <= found["error_bound"] < 1e-8


@pytest.mark.parametrize(("mechanism", "published", "explanations"), SERVICES)
def test_one_more_answer_and_two_labels_confirm_the_model(mechanism, published, explanations, capsys) -> None:
    """What the finished model has to foretell is counted apart; a budget without it leaves the model without bounds."""
    oracle = ModelOracle(PLANE, mechanism)
    with endpoint(oracle if published is None else Published(oracle, published)) as service:
        found = probed(capsys, "--budget", "40")
        assert (service.counts.explain, service.counts.classify) == (explanations + 1, 3)
        bare = probed(capsys, "--budget", str(explanations + 1), "--run", "bare.sqlite")
    assert (found["explanations"], found["labels"], found["confirmation"]) == (explanations, 1, 3)
    assert plane_of(found).angle_to(PLANE) <= found["error_bound"] < 1e-8
    assert found["premise"].startswith("every answer is within")
    assert found["residual"] <= found["tolerance"]
    assert bare["error_bound"] is None
    assert bare["confirmation"] == 0
    assert plane_of(bare).is_equivalent(PLANE, 1e-9)


def test_a_service_that_only_labels_is_asked_for_labels(capsys) -> None:
    oracle = LabelsOnly(ModelOracle(PLANE, Mechanism("l2")))
    with endpoint(oracle) as service:
        found = probed(capsys, "--budget", "1000", "--accuracy", "1e-3")
    assert service.counts.classify == service.counts.requests == found["requests"] == found["labels"]
    assert plane_of(found).angle_to(PLANE) <= found["error_bound"] <= 1e-3


def test_without_orientation_no_label_is_asked(capsys) -> None:
    with endpoint(ModelOracle(PLANE, Mechanism("l1"))) as service:
        found = probed(capsys, "--budget", "5", "--no-orient")
    assert service.counts.classify == 0
    assert not found["oriented"]
    assert plane_of(found).same_plane(PLANE, 1e-9)


def test_the_model_and_the_run_are_saved(capsys) -> None:
    Path("truth.json").write_text(
        json.dumps({"features": FEATURES, "coefficients": PLANE.normal.tolist(), "intercept": -PLANE.offset})
    )
    with endpoint(ModelOracle(PLANE, Mechanism("l1"))):
        options = ["--budget", "6", "--run", "run.sqlite", "-o", "found.json", "--model", "truth.json"]
        assert run(["probe", "endpoint.toml", *options]) == 0
    out, err = capsys.readouterr()
    assert "6 requests rebuild this model." in out
    assert "6 of 6 allowed" in out
    assert "angle error" in out
    assert "run saved: run.sqlite" in out
    assert max(map(len, out.splitlines())) <= 80
    assert err.startswith("asking http://127.0.0.1:")
    assert load_model("found.json").hyperplane.is_equivalent(PLANE, 1e-9)
    assert load_model("found.json").features == tuple(FEATURES)
    assert Path("run.sqlite").stat().st_mode & 0o777 == 0o600
    kept = Run.read("run.sqlite")
    assert (kept.spent, kept.answered, kept.budget) == (6, 6, 6)
    assert kept.plan["seed"] == 0
    assert kept.log().features == tuple(FEATURES)
    assert len(kept.log().explained) == 5


def truth_file(features: list[str] | None, normal: Any) -> None:
    names = {} if features is None else {"features": features}
    entries = {**names, "coefficients": list(normal), "intercept": -PLANE.offset}
    Path("truth.json").write_text(json.dumps(entries))


def test_the_true_model_is_compared_by_the_names_of_its_features(capsys) -> None:
    """In another order, it is the same model; coefficients without names are taken in the service's order."""
    with endpoint(ModelOracle(PLANE, Mechanism("l1"))):
        order = [3, 1, 4, 0, 2]
        truth_file([FEATURES[i] for i in order], PLANE.normal[order])
        found = probed(capsys, "--budget", "6", "--model", "truth.json", "--run", "run.sqlite")
        assert found["compared"]["angle_error"] < 1e-9
        assert found["compared"]["offset_error"] < 1e-9
        assert run(["probe", "--resume", "run.sqlite", "--authorized", "--json", "--model", "truth.json"]) == 0
        assert json.loads(capsys.readouterr().out)["compared"]["angle_error"] < 1e-9
        truth_file(None, PLANE.normal)
        assert run(["probe", "--resume", "run.sqlite", "--authorized", "--json", "--model", "truth.json"]) == 0
        assert json.loads(capsys.readouterr().out)["compared"]["angle_error"] < 1e-9


@pytest.mark.parametrize(
    ("features", "said"),
    [
        (["age", "income", "debts", "years", "cats"], "missing: 'cards'; not known: 'cats'"),
        (["age", "income"], "missing: 'debts', 'years', 'cards'"),
        (None, "the model has 4 features, the service has 5"),
    ],
)
def test_another_model_is_refused_before_anything_is_sent(features, said, capsys) -> None:
    truth_file(features, [1.0, 2.0, 3.0, 4.0] if features is None else range(1, len(features) + 1))
    with endpoint(ModelOracle(PLANE, Mechanism("l1"))) as service:
        assert run(["probe", "endpoint.toml", "--budget", "6", "--run", "run.sqlite", "--model", "truth.json"]) == 3
        assert said in capsys.readouterr().err
        assert not Path("run.sqlite").exists()
        assert run(["probe", "endpoint.toml", "--budget", "2", "--run", "run.sqlite"]) == 6
        before = service.counts.requests
        options = ["--resume", "run.sqlite", "--authorized", "--budget", "6", "--model", "truth.json"]
        capsys.readouterr()
        assert run(["probe", *options]) == 3
        assert said in capsys.readouterr().err
        assert service.counts.requests == before
    with Run.read("run.sqlite") as kept:
        assert kept.budget == 2


@pytest.mark.parametrize(
    ("options", "said", "code"),
    [
        (["-o", "nowhere/found.json"], "there is no folder nowhere", 3),
        (["-o", "found.pkl"], "ends in .json", 3),
        (["-o", "there.json"], "exists already", 3),
        (["--run", "run.txt"], "ends in .sqlite", 3),
        (["--run", "nowhere/run.sqlite"], "nowhere", 3),
        (["--accuracy", "0"], "--accuracy must be positive and finite, got 0", 2),
        (["--accuracy", "-1e-3"], "--accuracy", 2),
        (["--accuracy", "nan"], "--accuracy", 2),
        (["--accuracy", "inf"], "--accuracy", 2),
    ],
)
def test_slips_are_found_before_anything_is_sent(options, said, code, capsys) -> None:
    Path("there.json").write_text("{}")
    with endpoint(ModelOracle(PLANE, Mechanism("l1"))) as service:
        before = sorted(Path().iterdir())
        assert run(["probe", "endpoint.toml", "--budget", "6", "--json", *options]) == code
        assert service.counts.requests == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize(
    ("idempotent", "said"),
    [
        (True, "6 of 20 allowed; besides, 2 sent again under their key, which count once"),
        (False, "6 of 20 allowed, 2 of them brought nothing and were sent again"),
    ],
)
def test_what_is_sent_again_under_a_key_is_no_part_of_the_count(idempotent, said, capsys) -> None:
    found = extract(ModelOracle(PLANE, Mechanism("l1")))
    told = Probed(found, "run", budget=20, requests=6, retries=2, lost=(), idempotent=idempotent)
    print_probed(told, Mechanism("l1"), terminal(), FEATURES, None)
    assert said in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("idempotent", "said"), [(True, "retries under one key count once"), (False, "every retry costs one more")]
)
def test_a_dry_run_says_what_retries_cost(idempotent, said, capsys) -> None:
    with endpoint(ModelOracle(PLANE, Mechanism("l1")), idempotent=idempotent):
        assert run(["probe", "endpoint.toml", "--dry-run", "--budget", "9"]) == 0
    assert said in " ".join(capsys.readouterr().out.split())


def test_sigterm_is_as_it_was_after_a_probe(capsys) -> None:
    """Put back when the probe is over; a handler that somebody else installed is left alone."""
    with endpoint(ModelOracle(PLANE, Mechanism("l2"))):
        before = signal.getsignal(signal.SIGTERM)
        try:
            for handler in (signal.SIG_DFL, signal.SIG_IGN):
                signal.signal(signal.SIGTERM, handler)
                probed(capsys, "--budget", "2", "--run", f"{handler.name}.sqlite")
                assert signal.getsignal(signal.SIGTERM) == handler
        finally:
            signal.signal(signal.SIGTERM, before)


def test_a_finished_run_is_told_again_without_a_request(capsys) -> None:
    with endpoint(ModelOracle(PLANE, Mechanism("l1"))) as service:
        first = probed(capsys, "--budget", "6", "--run", "run.sqlite")
        before = service.counts.requests
        assert run(["probe", "--resume", "run.sqlite", "--authorized", "--json"]) == 0
        assert service.counts.requests == before
    assert json.loads(capsys.readouterr().out) == first


def test_too_small_a_budget_stops_with_6_and_more_goes_on(capsys) -> None:
    with endpoint(ModelOracle(PLANE, Mechanism("l1"))) as service:
        assert run(["probe", "endpoint.toml", "--budget", "4", "--run", "run.sqlite"]) == 6
        err = capsys.readouterr().err
        assert service.counts.requests <= 4
        assert "run saved: run.sqlite" in err
        assert "--budget 6" in err
        assert run(["probe", "--resume", "run.sqlite", "--authorized", "--budget", "6", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert service.counts.requests == 6
    assert plane_of(found).is_equivalent(PLANE, 1e-9)
    assert found["budget"] == 6


def test_a_service_that_does_not_answer_stops_with_5_and_comes_back(capsys) -> None:
    oracle = ModelOracle(PLANE, Mechanism("l1"))
    listener = listen(port=0)  # takes connections, and answers nobody
    text = endpoint_file(oracle, url_of(listener), "model", FEATURES)
    Path("endpoint.toml").write_text(text + "\n[limits]\nretries = 1\ntimeout = 0.2\n")
    assert run(["probe", "endpoint.toml", "--budget", "9", "--run", "run.sqlite"]) == 5
    err = capsys.readouterr().err
    assert "no whole reply within 0.2 s" in err
    assert "run saved: run.sqlite (0 answers, 1 of 9 requests spent)" in err
    with served(oracle, features=FEATURES, listener=listener) as service:
        assert run(["probe", "--resume", "run.sqlite", "--authorized", "--json"]) == 0
        assert service.counts.keys == 9
    assert plane_of(json.loads(capsys.readouterr().out)).is_equivalent(PLANE, 1e-9)


def test_nothing_is_sent_without_authorization(capsys) -> None:
    with endpoint(ModelOracle(PLANE, Mechanism("l1")), authorized=False) as service:
        assert run(["probe", "endpoint.toml", "--budget", "6", "--run", "run.sqlite"]) == 3
        assert "--authorized" in capsys.readouterr().err
        assert service.counts.requests == 0
        assert not Path("run.sqlite").exists()
        assert run(["probe", "endpoint.toml", "--budget", "6", "--authorized", "--json"]) == 0
        assert service.counts.requests == 6


def test_a_run_from_elsewhere_sends_no_secret_unless_told_to(capsys, monkeypatch) -> None:
    """What the run says of the owner does not count: first it is said where this user's secret would go."""
    monkeypatch.setenv("SCORES_TOKEN", "s3cret-0815")
    header = ("[headers]", 'Authorization = "Bearer ${SCORES_TOKEN}"')
    with endpoint(ModelOracle(PLANE, Mechanism("l1")), *header) as service:
        assert run(["probe", "endpoint.toml", "--budget", "1", "--run", "run.sqlite"]) == 6
        assert (
            f"asking {service.url}, with the value of SCORES_TOKEN; at most 1 more request" in capsys.readouterr().err
        )
        before = service.counts.requests
        assert run(["probe", "--resume", "run.sqlite", "--budget", "9"]) == 3
        out, err = capsys.readouterr()
        assert (out, err.count("\n"), service.counts.requests) == ("", 1, before)
        assert f"{service.url}, with the value of SCORES_TOKEN" in err
        assert "--authorized" in err
        assert "s3cret" not in err
        assert Run.read("run.sqlite").budget == 1
        assert run(["probe", "--resume", "run.sqlite", "--budget", "9", "--authorized"]) == 0
        assert capsys.readouterr().err.startswith(f"asking {service.url}, with the value of SCORES_TOKEN; at most")


def test_a_disk_that_is_full_from_the_start_leaves_nothing_to_go_on_with_and_says_so(capsys, monkeypatch) -> None:
    def two_pages(connection: Any, prepare: Any = file._for_writing) -> None:
        prepare(connection)
        connection.execute("PRAGMA max_page_count = 2")

    monkeypatch.setattr(file, "_for_writing", two_pages)
    with endpoint(ModelOracle(PLANE, Mechanism("l1"))) as service:
        assert run(["probe", "endpoint.toml", "--budget", "6", "--run", "run.sqlite"]) == 3
        assert service.counts.requests == 0
    full = "the disk is full; nothing was stored or sent, and no file is left; start again when there is room"
    assert capsys.readouterr() == ("", f"error: run.sqlite: {full}\n")
    assert [path.name for path in Path().iterdir()] == ["endpoint.toml"]


def test_a_dry_run_says_what_it_costs_and_sends_nothing(capsys) -> None:
    with endpoint(ModelOracle(PLANE, Mechanism("l1")), "[limits]", 'rate = "2/s"') as service:
        assert run(["probe", "endpoint.toml", "--dry-run", "--budget", "4"]) == 0
        out = capsys.readouterr().out
        assert run(["probe", "endpoint.toml", "--dry-run", "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert service.counts.requests == 0
    assert "5 explanations and 1 label (a theorem)" in out
    assert "3 more to confirm" in " ".join(out.split())
    assert "too few: 9 are needed" in out
    assert "4 s at 2 requests a second" in out
    assert (said["explanations"], said["labels"], said["confirmation"], said["proved"]) == (5, 1, 3, True)
    assert not list(Path().glob("*.sqlite*"))


def test_a_dry_run_of_a_run_says_what_is_left(capsys) -> None:
    with endpoint(ModelOracle(PLANE, Mechanism("l1"))) as service:
        assert run(["probe", "endpoint.toml", "--budget", "1", "--run", "run.sqlite"]) == 6
        capsys.readouterr()
        assert run(["probe", "--resume", "run.sqlite", "--dry-run"]) == 0
        assert service.counts.requests == 1
    assert "1 question; 1 request spent" in capsys.readouterr().out


def test_debug_tells_of_every_request(capsys) -> None:
    with endpoint(ModelOracle(PLANE, Mechanism("l2"))):
        assert run(["probe", "endpoint.toml", "--budget", "2", "--debug"]) == 0
    err = capsys.readouterr().err
    assert err.count("debug: POST /v1/models/model:explain 200") == 1
    assert err.count("debug: POST /v1/models/model:predict 200") == 1


def test_the_rate_is_kept(capsys) -> None:
    with endpoint(ModelOracle(PLANE, Mechanism("l1"))):
        begin = time.monotonic()
        probed(capsys, "--budget", "6", "--rate", "20/s", "--run", "run.sqlite")
        assert time.monotonic() - begin >= 5 / 20
    times = Run.read("run.sqlite").log().times
    assert np.diff(times).min() >= 1 / 20 - 1e-3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "name an endpoint file"),
        (["endpoint.toml"], "--budget"),
        (["endpoint.toml", "--resume", "run.sqlite"], "name an endpoint file"),
        (["--resume", "run.sqlite", "--seed", "1"], "--resume keeps to the run's own plan"),
        (["endpoint.toml", "--budget", "-1"], "--budget"),
    ],
)
def test_wrong_usage_is_2(options, said, capsys) -> None:
    assert run(["probe", *options]) == 2
    assert said in capsys.readouterr().err


def test_bad_input_is_3_and_one_line(capsys) -> None:
    Path("endpoint.toml").write_text('url = "http://127.0.0.1:1/v1/models/m"\ndimension = 2\nauthorised = true\n')
    Path("run.sqlite").write_bytes(b"not a run")
    for options in (
        ["endpoint.toml", "--budget", "1"],
        ["missing.toml", "--budget", "1"],
        ["--resume", "run.sqlite"],
        ["--resume", "missing.sqlite"],
        ["endpoint.toml", "--budget", "1", "--run", "run.sqlite"],
        ["endpoint.toml", "--budget", "1", "--rate", "fast"],
    ):
        assert run(["probe", *options]) == 3
        err = capsys.readouterr().err
        assert err.startswith("error: ")
        assert err.count("\n") == 1


def test_a_run_that_is_in_use_is_refused(capsys) -> None:
    with endpoint(ModelOracle(PLANE, Mechanism("l2"))):
        probed(capsys, "--budget", "2", "--run", "run.sqlite")
        with Run.open("run.sqlite"):
            code = "import sys; from overexplain.cli.main import run; sys.exit(run(sys.argv[1:]))"
            done = subprocess.run(
                [sys.executable, "-c", code, "probe", "--resume", "run.sqlite"],
                capture_output=True,
                text=True,
                timeout=60,
            )
    assert done.returncode == 3
    assert "in use by another process" in done.stderr


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_save_what_came(stop, capsys) -> None:
    """A real signal in the middle of a slow run: 130, one line, everything there, and it goes on."""
    with endpoint(ModelOracle(PLANE, Mechanism("l1")), "[limits]", 'rate = "2/s"') as service:
        command = [
            sys.executable,
            "-m",
            "overexplain",
            "probe",
            "endpoint.toml",
            "--budget",
            "9",
            "--run",
            "run.sqlite",
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while service.counts.explain < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(stop)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert out == ""
        assert "Traceback" not in err
        assert err.rstrip().endswith("interrupted")
        assert "run saved: run.sqlite" in err
        answered = Run.read("run.sqlite").answered
        assert answered >= 1
        assert run(["probe", "--resume", "run.sqlite", "--authorized", "--rate", "1000/s", "--json"]) == 0
        assert service.counts.keys <= 9
    assert plane_of(json.loads(capsys.readouterr().out)).is_equivalent(PLANE, 1e-9)
