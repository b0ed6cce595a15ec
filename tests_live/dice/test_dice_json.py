"""Files of dice-ml itself: what it writes is read, what is written it reads, and nothing changes on the way."""

from __future__ import annotations

import json
from pathlib import Path

import dice_ml
import numpy as np
import pandas as pd
import pytest
from dice_ml.counterfactual_explanations import CounterfactualExplanations
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

from overexplain.errors import InvalidInput
from overexplain.log.dice.files import FLIPS, read_dice, write_dice
from overexplain.log.querylog import QueryLog, Status
from overexplain.oracles.http.endpoint import read_endpoint
from overexplain.oracles.http.foreign_replies import dice_counterfactual

TABLE = load_breast_cancer(as_frame=True)
ROWS = ((TABLE.data - TABLE.data.mean()) / TABLE.data.std()).iloc[:, :5].round(2)
NAMED = TABLE.target.map({0: "malignant", 1: "benign"})


def explanations(
    method: str, target: pd.Series = TABLE.target, count: int = 4, wanted: int = 3
) -> CounterfactualExplanations:
    data = dice_ml.Data(
        dataframe=ROWS.assign(outcome=target), continuous_features=list(ROWS.columns), outcome_name="outcome"
    )
    model = dice_ml.Model(model=LogisticRegression().fit(ROWS, target), backend="sklearn")
    explainer = dice_ml.Dice(data, model, method=method)
    options = {"random_seed": 0} if method == "random" else {}
    return explainer.generate_counterfactuals(
        ROWS.iloc[:: len(ROWS) // count][:count], total_CFs=wanted, desired_class="opposite", **options
    )


def side(points: np.ndarray) -> np.ndarray:
    model = LogisticRegression().fit(ROWS, TABLE.target)
    return np.where(points @ model.coef_[0] + model.intercept_[0] > 0, 1, -1)


@pytest.mark.parametrize("method", ["random", "genetic", "kdtree"])
def test_what_dice_writes_is_what_it_shows(method: str, tmp_path: Path) -> None:
    made = explanations(method)
    (tmp_path / "cfs.json").write_text(made.to_json())
    log = read_dice(tmp_path / "cfs.json")
    assert log.features == tuple(ROWS.columns)
    assert log.mechanisms == (FLIPS,)
    shown = [
        example.final_cfs_df if example.final_cfs_df_sparse is None else example.final_cfs_df_sparse
        for example in made.cf_examples_list
    ]
    assert (
        log.explanations.tolist() == np.vstack([frame[list(ROWS.columns)].to_numpy(float) for frame in shown]).tolist()
    )
    assert (side(log.explanations) == -log.labels).all()
    assert (side(log.points) == log.labels).all()
    assert len(log) == 4 * 3


@pytest.mark.parametrize("method", ["random", "kdtree"])
def test_dice_reads_what_is_written_and_writes_it_again(method: str, tmp_path: Path) -> None:
    (tmp_path / "cfs.json").write_text(explanations(method).to_json())
    log = read_dice(tmp_path / "cfs.json")
    write_dice(log, tmp_path / "ours.json")
    theirs = CounterfactualExplanations.from_json((tmp_path / "ours.json").read_text())  # checks it by its own schema
    assert [example.new_outcome for example in theirs.cf_examples_list] == [
        1.0 - example.test_pred for example in theirs.cf_examples_list
    ]
    (tmp_path / "again.json").write_text(theirs.to_json())
    assert read_dice(tmp_path / "again.json") == log


def test_logs_of_any_kind_pass_through_dice(tmp_path: Path) -> None:
    """Without labels, without answers, with numbers that are hard to write; also no row at all."""
    log = QueryLog(["a", "outcome"], FLIPS)
    log.add_explanation([[1e-300, -0.0], [0.1 + 0.2, 1e300]], [[5e-324, 1 / 3], [np.nan, np.nan]], [1, -1])
    log.add_explanation([2.0, 3.0], [4.0, 5.0])
    for made in (log, QueryLog(["a"], FLIPS)):
        write_dice(made, tmp_path / "ours.json")
        theirs = CounterfactualExplanations.from_json((tmp_path / "ours.json").read_text())
        assert len(theirs.cf_examples_list) == len(made)
        (tmp_path / "again.json").write_text(theirs.to_json())
        back = read_dice(tmp_path / "again.json")
        assert list(back) == list(made)
        assert back.points.tobytes() == made.points.tobytes()


def test_a_query_that_dice_has_no_answer_to_is_one_row(tmp_path: Path) -> None:
    made = explanations("kdtree")
    example = made.cf_examples_list[1]
    example.final_cfs_df = example.final_cfs_df_sparse = None  # as dice-ml leaves it where its search finds nothing
    (tmp_path / "cfs.json").write_text(made.to_json())
    log = read_dice(tmp_path / "cfs.json")
    assert log.status.tolist() == [Status.ASKED] * 3 + [Status.NONE] + [Status.ASKED] * 6


def test_classes_with_names_and_the_older_version(tmp_path: Path) -> None:
    made = explanations("kdtree", NAMED)
    path = tmp_path / "cfs.json"
    path.write_text(made.to_json())
    outcomes = {row[0][-1] for row in json.loads(path.read_text())["test_data"]}
    assert outcomes == {"malignant", "benign"}
    with pytest.raises(InvalidInput, match="say which outcome means Yes"):
        read_dice(path)
    log = read_dice(path, {"yes": "benign"})
    assert (side(log.points) == log.labels).all()
    old = CounterfactualExplanations(made.cf_examples_list, version="1.0")
    path.write_text(old.to_json())
    with pytest.raises(InvalidInput, match=r'version "1\.0"; version 2\.0 is read'):
        read_dice(path)


@pytest.mark.parametrize("method", ["random", "genetic", "kdtree"])
@pytest.mark.parametrize("as_text", [True, False])
def test_an_endpoint_that_answers_in_dice_json_is_read(method: str, as_text: bool) -> None:
    """What the preset dice-json makes of dice-ml's own words, as a JSON value or as a text in one."""
    made = explanations(method, count=1)
    reply = made.to_json() if as_text else json.loads(made.to_json())
    endpoint = read_endpoint({"url": "https://scores.example", "preset": "dice-json", "features": list(ROWS.columns)})
    example = made.cf_examples_list[0]
    shown = example.final_cfs_df if example.final_cfs_df_sparse is None else example.final_cfs_df_sparse
    found = dice_counterfactual(reply, endpoint)
    assert found.tolist() == shown[list(ROWS.columns)].to_numpy(float)[0].tolist()
