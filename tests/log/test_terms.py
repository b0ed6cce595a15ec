"""Terms stated from outside reach the rows that have none, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from overexplain.errors import DimensionMismatch
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import Weighted, l1
from overexplain.log.querylog import QueryLog, Status
from overexplain.log.terms import with_terms, without_terms

L1, L2 = Mechanism("l1"), Mechanism("l2", tolerance=0.5)


def mixed() -> QueryLog:
    log = QueryLog(features=["a", "b"])
    log.add_label([1.0, 2.0], 1, client="ann", time=3.0)
    log.add_explanation([0.0, 0.0], [1.0, 0.0], label=-1, source="api")
    log.add_explanation([0.0, 1.0], [1.0, 1.0], mechanism=L1)
    log.add_explanation([5.0, 5.0], None)
    return log


def test_only_explained_rows_without_a_mechanism_get_one() -> None:
    log = mixed()
    stated = with_terms(log, L2)
    assert [stated.mechanism_of(i) for i in range(4)] == [None, L2, L1, None]
    assert (without_terms(log), without_terms(stated)) == (1, 0)
    assert stated.mechanism == L2
    for name in ("points", "labels", "explanations", "status", "clients", "times", "sources"):
        np.testing.assert_array_equal(getattr(stated, name), getattr(log, name))
    assert stated.features == log.features
    assert [log.mechanism_of(i) for i in range(4)] == [None, None, L1, None]  # the log itself is as it was
    assert stated.status[3] == Status.NONE


def test_a_log_that_says_everything_stays_the_same() -> None:
    log = QueryLog(mechanism=L1)
    log.add_explanation([0.0, 0.0], [1.0, 0.0], label=-1)
    assert with_terms(log, L2) == log
    assert len(with_terms(QueryLog(), L2)) == 0


def test_terms_for_another_number_of_features_are_refused() -> None:
    with pytest.raises(DimensionMismatch):
        with_terms(mixed(), Mechanism(Weighted(l1, [1.0, 2.0, 3.0])))
