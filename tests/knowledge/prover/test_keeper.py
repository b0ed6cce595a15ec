"""What the Keeper admits the checker accepts in rationals, and the definition, written a second time, confirms."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import overexplain as ox
from definition import Definition
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.evidence import Finder
from overexplain.knowledge.prover.blocks import blocks_of
from overexplain.knowledge.prover.facts import read
from overexplain.knowledge.prover.keeper import Keeper
from prover_logs import Made, mixed, seeds


def keeper_of(log: ox.QueryLog) -> Keeper | None:
    blocks = blocks_of(log, log.labels, None)
    assert blocks
    with np.errstate(all="ignore"):
        _, ties, _ = read(blocks, log.points.shape[1])
    return None if ties.clash else Keeper(blocks, ties, answers_of(log), Finder())


def unknowns(keeper: Keeper, normals: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Models (a, b) as the search has them: free entries of a, b, lengths."""
    norms = {block.number: block.norm for block in keeper.blocks if block.is_measured}
    lengths = [np.asarray(norms[k].dual(normals)) for k in sorted(norms)]
    return np.column_stack([normals[:, keeper.ties.free], offsets, *lengths])


def near(made: Made, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The true model, and models that are off by 2⁻² … 2⁻⁵⁰ in some of their numbers."""
    rng, p = made.rng, made.plane.dimension
    off = 2.0 ** -rng.integers(2, 51, (count, 1)) * rng.standard_normal((count, p + 1))
    off *= rng.integers(0, 2, (count, p + 1))
    off[0] = 0.0
    size = np.append(np.abs(made.plane.normal) + 1e-3, abs(made.plane.offset) + 1e-3)
    models = np.append(made.plane.normal, made.plane.offset) + off * size
    return models[:, :p], models[:, p]


def check_admitted(keeper: Keeper, models: np.ndarray, log: ox.QueryLog, seed: int) -> int:
    known = Definition(log)
    kept = keeper.kept(models)
    for i, model in enumerate(models[kept]):
        exact = keeper.exactly(model)
        assert keeper.kept_exactly(exact), (seed, model.tolist())
        if i % 8:
            continue  # the second definition is slow
        assert known.judge(*exact) is not False, (seed, model.tolist())
    return int(kept.sum())


@pytest.mark.parametrize("promise", ["label", "valid", "exact", "rounded", "slack", "slack and tolerance", "all"])
def test_what_is_admitted_is_consistent(promise: str) -> None:
    admitted = 0
    for seed in seeds(14):
        made = mixed(
            seed,
            ("label", "valid", "exact", "rounded", "slack") if promise == "all" else (promise,),
            2 if "slack" in promise else 3,
        )
        keeper = keeper_of(made.log)
        if keeper is None:
            continue
        models = keeper.snap(unknowns(keeper, *near(made, 24)))
        admitted += check_admitted(keeper, models, made.log, seed)
        with np.errstate(all="ignore"):
            moved = [keeper.fitted(models, place) for place in (None, 1e-9, 0.5, 1 - 1e-9)]
        admitted += check_admitted(keeper, np.vstack(moved), made.log, seed)
    assert admitted > 20


def test_a_model_that_keeps_every_fact_and_answers_elsewhere() -> None:
    """l1, τ = 2⁻⁴⁰, 0 → (1, 0): a = (1 − 2⁻⁴⁵, 1) is within τ of all facts, and its optimum is (0, 1)."""
    log = ox.QueryLog()
    log.add_explanation([0.0, 0.0], [1.0, 0.0], label=-1, mechanism=ox.Mechanism("l1", tolerance=2.0**-40))
    keeper = keeper_of(log)
    assert keeper is not None
    model = np.array([[1 - 2.0**-45, 1.0, 1 - 2.0**-45]])
    assert Definition(log).judge((Fraction(1 - 2.0**-45), Fraction(1)), Fraction(1 - 2.0**-45)) is False
    assert not keeper.kept(model)[0]
    snapped = keeper.snap(unknowns(keeper, model[:, :2], model[:, 2]))
    assert check_admitted(keeper, snapped, log, 0) == 1
    verdicts = ox.Knowledge(log, threads=1).certify([[0.0, 1.0], [2.0, 0.5], [0.5, 0.75]])
    for i in range(3):
        verdicts.proof(i).verify(log)


def test_entries_that_floats_take_for_the_longest() -> None:
    """l1 with weights: |a_i|/d_i of two entries round to the same number, and the one that is longer decides the optimum."""
    admitted = 0
    for seed in seeds(40):
        rng = np.random.default_rng([seed, 8])
        d = rng.uniform(0.3, 3.0, 2)
        t = rng.uniform(0.5, 2.0, 200)
        normals = np.column_stack([np.nextafter(d[0] * t, rng.choice([0.0, 9.0], 200)), d[1] * t])
        # Nothing moved by more than the tolerance: nothing is tied.
        step = rng.choice([-1.0, 1.0], 2) * rng.uniform(0.1, 0.9, 2) / d
        terms = ox.Mechanism(ox.Weighted(ox.l1, d), tolerance=1.0)
        log = ox.QueryLog()
        log.add_explanation([0.0, 0.0], step, label=-1, mechanism=terms)
        keeper = keeper_of(log)
        assert keeper is not None
        assert not (keeper.ties.number >= 0).any()
        offsets = t * rng.uniform(0.0, 2.5, 200)
        admitted += check_admitted(keeper, np.column_stack([normals, offsets]), log, seed)
    assert admitted > 10
