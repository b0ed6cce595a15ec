"""Services in writing: what a line says, what is refused, and that the oracle answers so."""

from __future__ import annotations

import numpy as np
import pytest

from overexplain.errors import InvalidInput
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import Weighted, l1
from overexplain.models.linear import LinearModel
from overexplain.oracles.degradations import DEGRADATIONS
from overexplain.oracles.imitations import IMITATIONS
from overexplain.oracles.protocol import offers
from overexplain.oracles.services import Service

MODEL = LinearModel(Hyperplane([1.0, -2.0, 0.5], 0.25), ("age", "income", "debts"))
ROWS = np.random.default_rng(0).normal(size=(60, 3))


@pytest.mark.parametrize(
    ("text", "mechanism"),
    [
        ("l1", Mechanism("l1")),
        (" linf ", Mechanism("linf")),
        ("lp:1.5", Mechanism("lp:1.5")),
        ("l1; robust=l2:0.1", Mechanism("l1", "l2", 0.1)),
        ("l1;robust = lp:1.5:0.25", Mechanism("l1", "lp:1.5", 0.25)),
    ],
)
def test_a_line_is_a_mechanism(text: str, mechanism: Mechanism) -> None:
    service = Service.parse(text)
    assert service.mechanism == mechanism
    assert service.explains
    assert service.is_plain
    assert Service.parse(service.spec) == service


def test_a_secret_radius_is_kept_and_not_told() -> None:
    service = Service.parse("l1; robust=l2:0.1; secret")
    oracle = service.oracle(MODEL)
    assert service.mechanism is not None
    assert service.mechanism.radius == 0.1
    assert oracle.mechanism.radius is None
    assert Service.parse(service.spec) == service


def test_labels_only_explains_nothing() -> None:
    service = Service.parse("labels")
    oracle = service.oracle(MODEL)
    assert not service.explains
    assert not offers(oracle, "explain")
    assert oracle.mechanism is None
    assert oracle.classify([10.0, 0.0, 0.0]) == 1


def test_degradations_are_applied_in_turn_with_colon_or_equals_sign() -> None:
    service = Service.parse("l2; rounded=1; one-sided; name=ours")
    assert service.degrade == ("rounded:1", "one-sided")
    assert service.name == "ours"
    oracle = service.oracle(MODEL, ROWS, 0)
    assert oracle.explain([10.0, 0.0, 0.0]) is None  # a Yes: only the denied are told
    assert Service.parse(service.spec).degrade == service.degrade


@pytest.mark.parametrize("name", sorted(IMITATIONS))
def test_every_imitation_can_be_named(name: str) -> None:
    service = Service.parse(f"imitate={name}")
    answers = service.oracle(MODEL, ROWS, 0).explain(ROWS[:4])
    assert answers.shape == (4, 3)
    with pytest.raises(InvalidInput, match="needs data"):
        service.oracle(MODEL)


def test_every_degradation_can_be_written_in_a_line() -> None:
    values = {"boxed": ":-3:3", "immutable": ":age", "sparse": ":2", "switching": ":l1,l2", "rounded": ":2"}
    for name, known in DEGRADATIONS.items():
        value = values.get(name, ":0.1" if known.least else "")
        assert Service.parse(f"l2; {name}{value}").oracle(MODEL, ROWS, 0).mechanism is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "norm"),
        ("l0", "l0"),
        ("l1; robust=l2", "robust=NORM:RADIUS"),
        ("l1; robust=l2:much", "robust=NORM:RADIUS"),
        ("l1; robust=l2:-1", "robust=NORM:RADIUS"),
        ("l1; robust=l7z:1", "l7z"),
        ("l1; secret", "must stand before"),
        ("labels; rounded:2", "cannot be read"),
        ("labels; robust=l2:0.1", "after a distance"),
        ("l1; ", "cannot be read"),
        ("imitate=", "imitate="),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_text(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Service.parse(text)
    assert said in str(caught.value)
    assert repr(text) in str(caught.value)


def test_an_unknown_degradation_is_refused_when_the_service_is_made() -> None:
    with pytest.raises(InvalidInput, match="degrade 'polished:2': unknown"):
        Service.parse("l1; polished=2").oracle(MODEL)


def test_norms_with_numbers_of_their_own_are_named() -> None:
    assert Service(Mechanism(Weighted(l1, [1.0, 2.0, 3.0]))).spec == "weighted"
