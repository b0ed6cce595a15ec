"""CopycatCNN of IBM's Adversarial Robustness Toolbox, run as it is, with a logistic regression as the thief.

The victim is a scikit-learn classifier behind ART's own wrapper, and its answers are counted like everybody's. CopycatCNN draws
its questions from rows that it is given (here: uniform points of the data's box, as many as the budget) and needs no explanation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from peers_runs import Cell, Task, cells_of
from peers_services import services
from peers_worlds import World, world

import overexplain as ox
from overexplain.errors import ExtractionFailed
from overexplain.extraction.result import Extraction, Spent

NAME = "copycat"
FloatArray = NDArray[np.float64]


def work_live(task: Task) -> list[Cell]:
    """CopycatCNN at every budget, on the labels of one model."""
    w = world(task.data, task.seed)
    found = list(cells_of(NAME, copycat, services()[task.service], w, task))
    print(f"{task.data}, seed {task.seed}", flush=True)
    return found


def copycat(oracle: Any, w: World, budget: int, seed: int) -> Extraction:
    """The linear model that CopycatCNN trains."""
    from art.attacks.extraction import CopycatCNN
    from art.estimators.classification.scikitlearn import ScikitlearnClassifier
    from sklearn.linear_model import LogisticRegression

    low, high = w.box
    p = w.plane.dimension
    questions = np.random.default_rng(seed).uniform(low, high, (budget, p))
    learner = Learner(LogisticRegression(max_iter=1000), p)
    attack = CopycatCNN(
        ScikitlearnClassifier(Victim(oracle, p)),
        batch_size_query=budget,
        batch_size_fit=budget,
        nb_epochs=1,
        nb_stolen=budget,
    )
    np.random.seed(seed)  # noqa: NPY002  ART draws from the global generator
    attack.extract(questions, thieved_classifier=ScikitlearnClassifier(learner))
    if learner.said is not None and len(set(learner.said.tolist())) < 2:
        raise ExtractionFailed("all questions got the same label: there is nothing to train on")
    plane = ox.Hyperplane.from_intercept(learner.model.coef_[0], float(learner.model.intercept_[0]))
    spent = Spent(0, oracle.labels)
    return Extraction(plane, spent, None, "CopycatCNN", (), False, None, None, True, None, None, np.zeros((0, p)))


class Victim:
    """The service as scikit-learn spells a classifier: probabilities are 0 or 1, for labels are all it gives."""

    classes_ = np.array([0, 1])
    n_classes_ = 2

    def __init__(self, oracle: Any, features: int) -> None:
        self._oracle = oracle
        self.n_features_in_ = features

    def predict_proba(self, x: FloatArray) -> FloatArray:
        """One row a question: certainly No, or certainly Yes."""
        labels = np.asarray(self._oracle.classify(np.asarray(x, dtype=np.float64)))
        return np.asarray(np.eye(2)[(labels == ox.YES).astype(int)])


class Learner:
    """A logistic regression that ART can train: batches and epochs are for networks, and are left aside."""

    classes_ = np.array([0, 1])
    n_classes_ = 2

    def __init__(self, model: Any, features: int) -> None:
        self.model = model
        self.n_features_in_ = features
        self.said: NDArray[np.int64] | None = None

    def fit(self, x: FloatArray, y: NDArray[np.int64], **_: Any) -> None:
        """Train on what CopycatCNN hands over, unless there is only one label."""
        self.said = np.asarray(y)
        if len(set(self.said.tolist())) > 1:
            self.model.fit(x, y)

    def predict_proba(self, x: FloatArray) -> FloatArray:
        """The trained model's probabilities."""
        return np.asarray(self.model.predict_proba(x), dtype=np.float64)
