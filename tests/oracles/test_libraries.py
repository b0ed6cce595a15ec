"""Adapters for alibi, NICE and dice-ml, by stand-ins with their interfaces (tests_live/dice has the real dice-ml)."""

from __future__ import annotations

import random
import sys
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import overexplain as ox
from overexplain.oracles.libraries import AlibiOracle, DiceOracle, NiceOracle
from overexplain.oracles.protocol import offers
from overexplain.testing.oracles import check_oracle

MODEL = ox.Hyperplane([1.0, -2.0], 1.0)
NOTHING_PROMISED = ox.Mechanism(None, slack=None)
QUESTION = np.array([3.0, 0.25])  # Yes


def scores(rows: np.ndarray) -> np.ndarray:
    """Class probabilities, as these libraries want them."""
    yes = 1 / (1 + np.exp(MODEL.offset - rows @ MODEL.normal))
    return np.column_stack([1 - yes, yes])


def beyond(x: np.ndarray, factor: float = 1.5) -> np.ndarray:
    """A point on the other side."""
    return x + factor * (MODEL.offset - MODEL.normal @ x) / (MODEL.normal @ MODEL.normal) * MODEL.normal


class Explanation:
    """As alibi returns it: keys of `data` are attributes too, items are deprecated."""

    def __init__(self, data: dict[str, object]) -> None:
        self.meta, self.data = {"name": "Counterfactual"}, data
        for key, value in data.items():
            setattr(self, key, value)

    def __getitem__(self, item: str) -> object:
        warnings.warn("accessing via item will stop working", DeprecationWarning, stacklevel=2)
        return getattr(self, item)


class Alibi:
    """A counterfactual explainer with alibi's interface, in single precision like its TensorFlow."""

    def __init__(self, form: str = "explanation") -> None:
        self.form = form

    def explain(self, X: np.ndarray, target_class: object = "other") -> object:
        assert X.shape == (1, 2)
        found = (
            None if abs(X[0, 0]) > 100 else {"X": beyond(X[0]).astype(np.float32)[None], "class": 0, "distance": 1.0}
        )
        if target_class == "same":
            found = {"X": X.astype(np.float32)}
        data = {"cf": found, "all": {0: []}, "orig_class": 1, "success": True}
        if self.form == "dictionary":
            return data
        explanation = Explanation(data)
        if self.form == "data only":
            del explanation.cf
        return explanation


@pytest.mark.parametrize("form", ["explanation", "dictionary", "data only"])
def test_alibi_answers_lie_under_x(form: str) -> None:
    oracle = AlibiOracle(Alibi(form), dimension=2, predict=scores)
    assert oracle.mechanism == NOTHING_PROMISED
    assert oracle.explain(QUESTION) == pytest.approx(beyond(QUESTION), rel=1e-6)
    assert oracle.explain([500.0, 0.0]) is None
    assert oracle.failures == Counter({"None": 1})
    check_oracle(oracle)
    echoing = AlibiOracle(Alibi(form), dimension=2, predict=scores, target_class="same")
    assert echoing.explain([0.1, 0.2]) is None
    assert echoing.failures == Counter(echo=1)


@pytest.mark.parametrize("found", [{}, {"X": None}, None])
def test_alibi_without_a_point_has_no_answer(found: object) -> None:
    class Empty:
        def explain(self, X: object) -> object:
            return Explanation({"cf": found})

    oracle = AlibiOracle(Empty(), dimension=2)
    assert oracle.explain(QUESTION) is None
    assert oracle.failures == Counter({"None": 1})


def test_another_kind_of_explanation_is_refused() -> None:
    class Anchors:
        def explain(self, X: object) -> object:
            return Explanation({"anchor": ["age > 3"], "precision": 0.9})

    with pytest.raises(ox.InvalidInput, match="Explanation with neither"):
        AlibiOracle(Anchors(), dimension=2).explain(QUESTION)


class Nice:
    """The nearest unlike row, its features put in one by one until the class changes; NaN where there is none, as NICE does."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows

    def explain(self, X: np.ndarray, target_class: str = "other") -> np.ndarray:
        X[:, :] = X[:, :].astype(np.float64)  # NICE writes into what it is given
        assert target_class == "other"
        here = scores(X).argmax()
        unlike = self.rows[scores(self.rows).argmax(axis=1) != here]
        if len(unlike) == 0:
            X[:] = np.nan
            return X
        row = X.copy()
        nearest = unlike[np.abs(unlike - X).sum(axis=1).argmin()]
        for k in range(X.shape[1]):
            row[0, k] = nearest[k]
            if scores(row).argmax() != here:
                break
        return row


def test_nice_answers_are_rows() -> None:
    rows = np.random.default_rng(0).normal(size=(40, 2)) * 3
    oracle = NiceOracle(Nice(rows), dimension=2, predict=scores, target_class="other")
    check_oracle(oracle, rows)
    answers = oracle.explain(rows)
    assert (MODEL.labels(answers) != MODEL.labels(rows)).all()
    assert oracle.classify(rows).tolist() == MODEL.labels(rows).tolist()
    lonely = NiceOracle(Nice(rows[MODEL.labels(rows) == 1]), dimension=2, predict=scores)
    question = QUESTION.copy()
    assert lonely.explain(question) is None
    assert lonely.failures == Counter({"NaN row": 1})
    assert question.tolist() == QUESTION.tolist()


@pytest.mark.parametrize("adapter", [AlibiOracle, NiceOracle])
def test_an_explainer_must_explain(adapter: type) -> None:
    with pytest.raises(ox.InvalidInput, match="method explain, got object"):
        adapter(object(), dimension=2)


# dice-ml


class Dice:
    """generate_counterfactuals as dice-ml does it: frames, noise on every channel, global generators, made-sparse answers."""

    class Examples:
        def __init__(self, final: object, sparse: object) -> None:
            self.final_cfs_df, self.final_cfs_df_sparse = final, sparse
            self.cf_examples_list = [self]

    class Interface:
        feature_names = ("b", "a")  # trained on columns in another order than the points

    class Model:
        class Fitted:
            classes_ = np.array([0, 1])

        model = Fitted()

        def get_output(self, frame: pd.DataFrame, model_score: bool = True) -> np.ndarray:
            assert list(frame.columns) == ["b", "a"]
            rows = frame[["a", "b"]].to_numpy()
            return scores(rows) if model_score else scores(rows).argmax(axis=1)

    def __init__(self, spoil: str = "") -> None:
        self.data_interface, self.model, self.spoil = self.Interface(), self.Model(), spoil
        self.asked: list[dict[str, object]] = []

    def generate_counterfactuals(
        self, frame: pd.DataFrame, total_CFs: int, desired_class: object, **more: object
    ) -> object:
        assert list(frame.columns) == ["b", "a"]
        assert len(frame) == 1
        self.asked.append({"total_CFs": total_CFs, "desired_class": desired_class, **more})
        print("No Counterfactuals found")  # noqa: T201
        print("100%|###| 1/1", file=sys.stderr)  # noqa: T201
        warnings.warn("pandas will change", FutureWarning, stacklevel=2)
        if self.spoil == "raise":
            raise ValueError("No counterfactuals found for any of the query points!")
        x = frame[["a", "b"]].to_numpy()[0]
        past = [beyond(x, 1 + random.random() + np.random.random()) for _ in range(total_CFs)]  # noqa: NPY002
        final = pd.DataFrame(past, columns=["a", "b"]).assign(outcome=1)[["b", "a", "outcome"]]
        sparse = final.copy()
        if self.spoil == "sparse":
            sparse[["a", "b"]] = x + 0.0
        if self.spoil == "none":
            return self.Examples(None, None)
        if self.spoil == "empty":
            return self.Examples(final[:0], None)
        if self.spoil == "columns":
            return self.Examples(final.drop(columns="b"), None)
        return self.Examples(final, sparse)


def test_dice_speaks_frames_and_keeps_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    dice = Dice()
    oracle = DiceOracle(dice, features=["a", "b"], rng=0, permitted_range={"a": [0, 1]})
    assert (oracle.dimension, oracle.mechanism) == (2, NOTHING_PROMISED)
    answer = oracle.explain(QUESTION)
    assert MODEL.label(answer) == -1
    assert dice.asked == [{"total_CFs": 1, "desired_class": "opposite", "permitted_range": {"a": [0, 1]}}]
    points = np.random.default_rng(1).normal(size=(20, 2)) * 3
    assert oracle.classify(points).tolist() == MODEL.labels(points).tolist()
    assert (MODEL.labels(oracle.explain(points)) != MODEL.labels(points)).all()
    check_oracle(oracle)
    assert capfd.readouterr() == ("", "")


def test_dice_takes_its_own_order_of_features_if_none_is_given() -> None:
    oracle = DiceOracle(Dice(), rng=0)
    assert oracle.classify(QUESTION[::-1]) == MODEL.label(QUESTION)
    assert oracle.explain(QUESTION[::-1])[::-1] == pytest.approx(
        DiceOracle(Dice(), features=["a", "b"], rng=0).explain(QUESTION)
    )


@pytest.mark.parametrize(("spoil", "spelling"), [("raise", "exception"), ("none", "None"), ("empty", "empty")])
def test_dice_without_an_answer(spoil: str, spelling: str) -> None:
    oracle = DiceOracle(Dice(spoil), features=["a", "b"])
    assert oracle.explain(QUESTION) is None
    assert oracle.failures == Counter({spelling: 1})
    assert (oracle.last_error is None) == (spoil != "raise")


def test_dice_answers_as_found_where_making_them_sparse_undid_the_flip() -> None:
    oracle = DiceOracle(Dice("sparse"), features=["a", "b"], rng=3, total_CFs=2)
    assert MODEL.label(oracle.explain(QUESTION)) == -1
    assert not oracle.failures


def test_dice_without_its_columns_is_refused() -> None:
    with pytest.raises(ox.InvalidInput, match="no columns \\['b'\\]"):
        DiceOracle(Dice("columns"), features=["a", "b"]).explain(QUESTION)


def test_dice_is_reproducible_and_leaves_the_global_generators_alone() -> None:
    def answers(rng: int | None) -> list[list[float]]:
        oracle = DiceOracle(Dice(), features=["a", "b"], rng=rng)
        return [oracle.explain(QUESTION).tolist() for _ in range(4)]

    state = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    first = answers(7)
    assert answers(7) == first
    assert len({tuple(answer) for answer in first}) == 4  # a random service stays one
    assert answers(8) != first
    assert answers(None) != answers(None)
    assert DiceOracle(Dice("raise"), features=["a", "b"]).explain(QUESTION) is None
    assert (random.getstate(), np.random.get_state()[1].tolist()) == state  # noqa: NPY002


def test_dice_labels_may_come_from_elsewhere_or_not_at_all() -> None:
    asked = []

    def predict(frame: pd.DataFrame) -> list[str]:
        asked.append(list(frame.columns))
        return ["good" if MODEL.label(frame[["a", "b"]].to_numpy()[0]) == 1 else "bad"]

    oracle = DiceOracle(Dice(), features=["a", "b"], predict=predict, positive="good")
    assert (oracle.classify(QUESTION), oracle.classify([0.0, 0.0])) == (1, -1)
    assert asked == [["b", "a"], ["b", "a"]]
    modelless = Dice()
    modelless.model = None
    assert not offers(DiceOracle(modelless, features=["a", "b"]), "classify")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": ["a"]}, "in any order"),
        ({"features": ["a", "c"]}, "in any order"),
        ({"features": ["a", "b", "b"]}, "in any order"),
        ({"positive": 2}, "none of the model's classes"),
        ({"positive": "good"}, "none of the model's classes"),
        ({"rng": -1}, "rng must be"),
    ],
)
def test_dice_arguments_are_checked(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ox.InvalidInput, match=message):
        DiceOracle(Dice(), **arguments)


def test_what_is_not_dice_is_refused() -> None:
    with pytest.raises(ox.InvalidInput, match="generate_counterfactuals, got Alibi"):
        DiceOracle(Alibi())
    nameless = Dice()
    nameless.data_interface = None
    with pytest.raises(ox.InvalidInput, match="give features"):
        DiceOracle(nameless)
