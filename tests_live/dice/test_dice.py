"""dice-ml itself behind DiceOracle: every method, what it answers, how it fails, and that it can be repeated."""

from __future__ import annotations

import random
from collections import Counter

import dice_ml
import numpy as np
import pandas as pd
import pytest
from raiutils.exceptions import UserConfigValidationException
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import Status
from overexplain.oracles.libraries import DiceOracle
from overexplain.oracles.wrappers import Recorded
from overexplain.testing.oracles import check_oracle

METHODS = ("random", "genetic", "kdtree")
# Two decimals, as a service would show them: dice-ml searches in steps of the data's last decimal.
TABLE = load_breast_cancer(as_frame=True)
ROWS = ((TABLE.data - TABLE.data.mean()) / TABLE.data.std()).iloc[:, :8].round(2)
MODEL = LogisticRegression().fit(ROWS, TABLE.target)
QUESTIONS = ROWS.iloc[::28].to_numpy()  # 21 rows


def explainer(
    method: str, rows: pd.DataFrame = ROWS, target: pd.Series = TABLE.target, model: object = MODEL
) -> object:
    data = dice_ml.Data(
        dataframe=rows.assign(outcome=target), continuous_features=list(rows.columns), outcome_name="outcome"
    )
    return dice_ml.Dice(data, dice_ml.Model(model=model, backend="sklearn"), method=method)


def side(points: np.ndarray) -> np.ndarray:
    """The model's labels, computed here."""
    return np.where(points @ MODEL.coef_[0] + MODEL.intercept_[0] > 0, 1, -1)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_flips_or_nothing(method: str, capfd: pytest.CaptureFixture[str]) -> None:
    oracle = DiceOracle(explainer(method), rng=0)
    assert (oracle.dimension, oracle.mechanism) == (8, Mechanism(None, slack=None))
    answers = oracle.explain(QUESTIONS)
    answered = ~np.isnan(answers).any(axis=1)
    assert np.isnan(answers[~answered]).all()
    assert (~answered).sum() == oracle.failures.total()
    assert (side(answers[answered]) == -side(QUESTIONS[answered])).all()
    assert answered.sum() >= 18, (oracle.failures, oracle.last_error)
    assert set(oracle.failures) <= {"exception", "no flip", "echo", "None", "empty"}
    assert capfd.readouterr() == ("", ""), "progress bars and prints are silenced"


@pytest.mark.parametrize("method", METHODS)
def test_it_keeps_an_oracles_contract_and_its_models_labels(method: str) -> None:
    oracle = DiceOracle(explainer(method), rng=1)
    assert oracle.classify(QUESTIONS).tolist() == side(QUESTIONS).tolist()
    assert oracle.classify(ROWS.to_numpy()[3]) == side(ROWS.to_numpy()[3])
    random_points = np.random.default_rng(2).normal(size=(30, 8))
    assert oracle.classify(random_points).tolist() == side(random_points).tolist()
    reversed_labels = DiceOracle(explainer(method), rng=1, positive=0)
    assert reversed_labels.classify(random_points).tolist() == (-side(random_points)).tolist()
    if method == "kdtree":  # the others may find an answer in one try and none in the next
        check_oracle(oracle, QUESTIONS[:6])


@pytest.mark.parametrize("method", METHODS)
def test_a_seed_repeats_a_run_and_touches_nothing_else(method: str) -> None:
    def run(rng: int) -> list[list[float]]:
        return DiceOracle(explainer(method), rng=rng).explain(QUESTIONS[[0, 9, 0]]).tolist()

    state = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    first = run(5)
    assert run(5) == first
    assert not np.isnan(first).any()
    if method == "random":
        assert run(6) != first
        assert first[0] != first[2], "the same question, a new draw"
    assert (random.getstate(), np.random.get_state()[1].tolist()) == state  # noqa: NPY002


def test_its_own_random_seed_makes_one_answer_of_one_question() -> None:
    oracle = DiceOracle(explainer("random"), random_seed=11)
    first, _, again = oracle.explain(QUESTIONS[[4, 5, 4]]).tolist()
    assert first == again
    assert DiceOracle(explainer("random"), random_seed=11).explain(QUESTIONS[4]).tolist() == first


def test_no_counterfactual_found_is_no_answer_in_the_log() -> None:
    """Nothing may move enough: dice-ml raises its own kind of error."""
    stuck = {name: [0.0, 0.01] for name in ROWS.columns}
    far = QUESTIONS[np.argmax(np.abs(QUESTIONS @ MODEL.coef_[0] + MODEL.intercept_[0]))]
    oracle = DiceOracle(explainer("random"), rng=0, permitted_range=stuck, features_to_vary=[ROWS.columns[4]])
    recorded = Recorded(oracle)
    assert recorded.explain(far) is None
    assert oracle.failures == Counter(exception=1)
    assert isinstance(oracle.last_error, UserConfigValidationException)
    assert "No counterfactuals found" in str(oracle.last_error)
    assert recorded.log.status[0] == Status.NONE


def test_the_wanted_class_may_be_the_one_a_point_has() -> None:
    """Asked for class 1 only, dice-ml "explains" a Yes by another Yes: no flip, so no answer; a No is explained."""
    oracle = DiceOracle(explainer("kdtree"), desired=1)
    yes, no = QUESTIONS[side(QUESTIONS) == 1][:4], QUESTIONS[side(QUESTIONS) == -1][:4]
    assert np.isnan(oracle.explain(yes)).all()
    assert oracle.failures.total() == 4
    assert set(oracle.failures) <= {"no flip", "echo"}
    assert (side(oracle.explain(no)) == 1).all()


@pytest.mark.parametrize("method", METHODS)
def test_features_in_another_order_and_classes_with_names(method: str) -> None:
    names = TABLE.target.map({0: "malignant", 1: "benign"})
    model = LogisticRegression().fit(ROWS, names)
    named = explainer(method, target=names, model=model)
    oracle = DiceOracle(named, features=list(ROWS.columns[::-1]), positive="benign", rng=0)
    assert oracle.classify(QUESTIONS[:, ::-1]).tolist() == side(QUESTIONS).tolist()
    answers = oracle.explain(QUESTIONS[:5, ::-1])[:, ::-1]
    assert (side(answers) == -side(QUESTIONS[:5])).all()


def test_labels_may_be_class_scores_of_the_callers_own() -> None:
    oracle = DiceOracle(explainer("kdtree"), predict=MODEL.predict_proba)
    assert oracle.classify(QUESTIONS).tolist() == side(QUESTIONS).tolist()
    assert side(oracle.explain(QUESTIONS[1])) == -side(QUESTIONS[1])


def test_several_counterfactuals_are_one_answer() -> None:
    oracle = DiceOracle(explainer("random"), rng=3, total_CFs=3, posthoc_sparsity_param=None)
    answer = oracle.explain(QUESTIONS[2])
    assert answer.shape == (8,)
    assert side(answer) == -side(QUESTIONS[2])
