"""`benchmarks/peers.py`: the page tells every loss, with a reason, and nothing else than what was measured."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import overexplain as ox

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.delenv("OVEREXPLAIN_DATA", raising=False)


def cell(attack: str, angles: list[float | None], multiple: int = 10, service: str = "exact l1", **other: float):
    from peers_runs import Cell, Run

    rest = {"offset": 1e-12, "held_out": 1.0, "in_box": 1.0, "explanations": 11} | other
    runs = [Run(angle=a, **rest) if a is not None else Run(failure="BudgetExhausted") for a in angles]
    return Cell("synthetic 10", 10, service, attack, multiple, 0.6, 0.7, runs)


def test_a_run_is_counted_by_the_service_itself_and_measured_against_the_true_model() -> None:
    from peers_runs import one_run, ours
    from peers_services import services
    from peers_worlds import world

    w = world("synthetic 10", 1)
    run = one_run(ours, services()["exact l1"], w, 11, 1)
    assert (run.explanations, run.labels, run.scores) == (10, 1, 0)
    assert run.angle is not None
    assert run.angle < 1e-12
    assert (run.held_out, run.in_box) == (1.0, 1.0)
    failed = one_run(ours, services()["labels only"], w, 5, 1)
    assert failed.angle is None
    assert failed.labels <= 5
    assert failed.failure == "BudgetExhausted"


def test_an_attack_that_overspends_stops_the_benchmark() -> None:
    from peers_runs import one_run
    from peers_services import services
    from peers_worlds import world

    def greedy(oracle, w, budget, seed):
        oracle.classify(np.zeros((budget + 1, w.plane.dimension)))

    with pytest.raises(SystemExit, match="12 requests were sent, the budget was 11"):
        one_run(greedy, services()["labels only"], world("synthetic 10", 1), 11, 1)


def test_every_service_answers_for_its_model() -> None:
    from peers_services import Counted, services
    from peers_worlds import world

    w = world("synthetic 10", 1)
    for name, service in services().items():
        oracle = Counted(service.make(w, 1))
        said = oracle.classify(w.held_out[:3])
        assert np.array_equal(np.asarray(said) == ox.YES, w.plane.labels(w.held_out[:3]) == ox.YES), name
        assert oracle.labels == 3
        if "scores" in service.gives:
            assert np.all(
                (np.asarray(oracle.score(w.held_out[:3])) >= 0.5) == (w.plane.labels(w.held_out[:3]) == ox.YES)
            )
            assert oracle.scores == 3
        if "explanations" in service.gives:
            oracle.explain(w.held_out[0])
            assert oracle.explanations == 1


def test_text_columns_become_numbers(tmp_path: Path) -> None:
    from peers_worlds import read_csv

    path = tmp_path / "loans.csv"
    path.write_text("age,sex,purpose,good\n30,m,car,1\n40,f,tv,0\n50,f,house,1\n20,m,car,0\n")
    rows, outcome = read_csv(path)
    assert rows.tolist() == [[30, 1, 1, 0, 0], [40, 0, 0, 0, 1], [50, 0, 0, 1, 0], [20, 1, 1, 0, 0]]
    assert outcome.tolist() == [True, False, True, False]


def test_what_is_stored_comes_back() -> None:
    from peers_runs import restored, stored

    for kept in (cell("ours", [1e-16, 0.25, None]), cell("dualcf", [0.1, 0.2, 0.3], offset=0.0)):
        assert restored(json.loads(json.dumps(stored(kept)))) == kept


def test_a_seed_without_a_model_counts_as_worst() -> None:
    assert cell("ours", [None, 0.1, 0.2]).median("angle") == 0.2
    assert cell("ours", [None, None, 0.2]).median("angle") is None
    assert cell("ours", [None, 0.1, 0.2]).median("in_box") == 1.0


def test_losses_are_found_in_every_column_and_only_there() -> None:
    from peers_losses import Field, losses

    ours, other = cell("ours", [5e-3] * 3, seconds=1.0), cell("dualcf", [5e-3] * 3, seconds=1.0)
    assert losses(Field([ours, other]))[0] == []
    for change, columns in {
        "angle": {"angle"},
        "offset": {"offset"},
        "held_out": {"held_out"},
        "in_box": {"in_box"},
        "explanations": {"requests"},
        "seconds": {"seconds"},
    }.items():
        worse = {"angle": 8e-3, "offset": 1e-3, "held_out": 0.9, "in_box": 0.9, "explanations": 99, "seconds": 9.0}[
            change
        ]
        behind = replace(ours, runs=[replace(run, **{change: worse}) for run in ours.runs])
        found = losses(Field([behind, other]))[0]
        assert {loss.column for loss in found} == columns, change
        assert losses(Field([replace(other, attack="ours"), replace(behind, attack="dualcf")]))[0] == []


def test_better_than_was_asked_for_is_no_loss_and_no_model_is_one() -> None:
    from peers_losses import Field, losses

    assert losses(Field([cell("ours", [9e-7] * 3), cell("dualcf", [1e-16] * 3)]))[0] == []
    found = losses(Field([cell("ours", [None] * 3), cell("dualcf", [1.0] * 3)]))[0]
    assert {(loss.column, loss.ours) for loss in found} >= {("angle", None), ("in_box", None)}


def test_attacks_by_labels_stand_beside_every_service() -> None:
    from peers_losses import BY_LABELS, Field

    cells = [
        cell("ours", [1e-3]), cell("dualcf", [1e-2]), cell("ours", [1e-1], service="labels only"),
        cell("retraining", [0.5], service="labels only"), cell("equations", [1e-9], service="probabilities"),
    ]  # fmt: skip
    field = Field(cells)
    assert set(field.side_by_side("synthetic 10", "exact l1")) == {"ours", BY_LABELS, "dualcf", "retraining"}
    assert set(field.side_by_side("synthetic 10", "labels only")) == {"ours", "retraining"}
    beside = field.side_by_side("synthetic 10", "probabilities")
    assert set(beside) == {"ours", "retraining", "equations"}
    assert beside["ours"][10].median("angle") == 0.1


def test_a_loss_without_a_reason_is_refused() -> None:
    from peers_losses import Field, Reason, explained, losses

    found = losses(Field([cell("ours", [1e-3]), cell("dualcf", [1e-4])]))[0]
    with pytest.raises(SystemExit, match="have no reason"):
        explained(found, [Reason("another attack", attacks=("averaging",)), Reason("too few", up_to=5)])
    reason = Reason("it asks twice", attacks=("dualcf",), kind=("exact",), up_to=10)
    assert explained(found, [reason]) == {reason: found}


def test_the_page_is_what_was_measured() -> None:
    from peers import check

    check(BENCHMARKS / "results", BENCHMARKS.parent / "docs")


def test_the_page_names_loss_and_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import peers_page
    from peers_losses import Field, Reason
    from peers_plot import draw

    cells = [cell(name, [angle] * 5, m) for m in (1, 10, 50) for name, angle in (("ours", 1e-3), ("dualcf", 1e-2 / m))]
    monkeypatch.setattr(peers_page, "REASONS", (Reason("It asks about its answers, too.", attacks=("dualcf",)),))
    machine = {"cpu": "a processor", "cores": "2", "load": "0.0", "python": "3.11"}
    field = Field(cells)
    text = peers_page.page(field, machine)
    assert "It asks about its answers, too." in text
    assert "synthetic 10, exact l1, angle after 50 (p + 1): dualcf 2.0e-04, ours 1.0e-03" in text
    assert "| exact l1 | **1.0e-03** | **1.0e-03** |" in text
    draw(field, "peers-data.svg", tmp_path / "drawn.svg")
    assert "dualcf" in (tmp_path / "drawn.svg").read_text()
