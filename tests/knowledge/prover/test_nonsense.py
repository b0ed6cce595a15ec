"""No constant of the search decides, and nothing that it finds is believed: nonsense makes verdicts slower or open, never false."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import overexplain as ox
from campaigning import denied
from definition import Definition
from overexplain.knowledge.prover import (
    ball,
    batch,
    blocks,
    cone,
    core_program,
    lengths,
    likely,
    linear,
    log_prover,
    program,
    projection,
    prover,
    rows,
    stage,
)  # fmt: skip
from prover_logs import Made, consistent_models, mixed, seeds

NONSENSE: list[tuple[Any, str, Any]] = [
    *((projection, "GAIN", v) for v in (0.0, -1.0, 5.0)),
    *((projection, "DEPENDENT", v) for v in (0.0, 1e-3)),
    *((projection, "SLACK", np.float32(v)) for v in (0.0, -1.0, 1.0)),
    *((projection, "NOISE", v) for v in (0.0, 1.0)),
    *((projection, "FOLLOW", v) for v in (0.0, 1.0, 3.0)),
    *((projection, "CLOSE", v) for v in (0.0, 1.0)),
    *((projection, "TINY", v) for v in (0.0, 1e-3, 10.0)),
    *((projection, "SMALL", v) for v in (0.0, 0.5, 2.0)),
    *((projection, "LIKE", np.float32(v)) for v in (-1.0, 2.0)),
    *((projection, "CLEAR", np.float32(v)) for v in (-1.0, 0.5)),
    *((rows, "THIN", v) for v in (0.0, 1e3)),
    *((rows, "WIDER", v) for v in (0.0, 1e3)),
    *((rows, "RANK", v) for v in (1e-16, 0.5)),
    (prover, "ATTEMPTS", 1),
    (prover, "KNOWN", 2),
    (rows, "SMOOTH", 0),
    (prover, "FEW_POINTS", 0),
    (prover, "SHARES", (-3.0, 0.0, 7.0)),
    (prover, "PLACES", (-5.0, 0.0, 1.0, 2.0)),
    (batch, "LIMIT", 1),
    (batch, "POOL", 2),
    (batch, "STORED", 1),
    (stage, "PIECE", 1),
    (linear, "PIECE", 1),
    (cone, "NEWTON", 0),
    *((blocks, "EASED_SLACK", v) for v in (0.0, 0.5)),
    *((blocks, "EASED_TOLERANCE", v) for v in (0.0, 0.5)),
    (log_prover, "FEW", 0),
    (program, "ROUNDS", 1),
    *((program, "TIE", v) for v in (0.0, 1.0)),
    *((core_program, "WIDEST", v) for v in (1e-3, 1e12)),
    (likely, "STEPS", 1),
    (likely, "MOST_STEPS", 1),
    *((ball, "ROOM", v) for v in (0.0, 1e-15, 0.3)),
]
PROMISES = ("label", "valid", "exact", "rounded", "slack")


@pytest.fixture(autouse=True)
def _no_compiled_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba keeps the constants that it was compiled with."""
    monkeypatch.setattr(batch, "WORTH_COMPILING", 10**9)
    monkeypatch.setattr(batch, "WORTH_CALLING", 10**9)


def logs(first: int, count: int, promises: tuple[str, ...] = PROMISES) -> list[tuple[int, Made, Definition, list[Any]]]:
    found = []
    for seed in range(first, first + count):
        made = mixed(seed, promises, 3)
        known = Definition(made.log)
        models = list(consistent_models(made, known, 4))
        if models:
            found.append((seed, made, known, models))
    return found


def check(made: Made, known: Definition, models: list[Any], seed: int, what: Any) -> int:
    """Nothing false, by models that are consistent and by the prover with its own constants."""
    knowledge = ox.Knowledge(made.log, time_limit=0.05, threads=1)
    if knowledge._known.prover is None:
        return 0
    codes = knowledge._known.prover.codes(made.points)
    for q, code in zip(made.points.tolist(), codes.tolist(), strict=True):
        assert not any(denied(code, model, q) for model in models), (what, seed, q, code)
    for i in np.flatnonzero(codes == 0)[:2]:
        for proof in knowledge._known.prover.settle(made.points[i], None):
            if proof.models is not None:
                assert all(known.judge(tuple(a), b) is not False for a, b in proof.models), (what, seed, i)
    return int((np.abs(codes) == 1).sum())


def test_constants_decide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    truth: dict[int, np.ndarray] = {}
    some = logs(seeds(6)[0], len(seeds(6)))
    for seed, made, _, _ in some:
        own = ox.Knowledge(made.log, time_limit=0.05, threads=1)._known.prover
        if own is not None:
            truth[seed] = own.codes(made.points)
    for module, name, value in NONSENSE:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            for seed, made, known, models in some:
                check(made, known, models, seed, (name, value))
                changed = ox.Knowledge(made.log, time_limit=0.05, threads=1)._known.prover
                if changed is None or seed not in truth:
                    continue
                codes = changed.codes(made.points)
                decided = (codes != 3) & (truth[seed] != 3)
                assert (codes == truth[seed])[decided].all(), (name, value, seed)


def nonsense_sweep(seed: int, mode: str) -> Any:
    """A search that returns anything: rows, weights of least squares of any sign, models."""
    rng = np.random.default_rng(seed)

    def sweep(A, columns, depth, z0, C, heights, G, Q, T, scale, pool, pool_columns, known, sets, limit):  # type: ignore[no-untyped-def]
        count, r = C.shape
        codes = rng.choice([0, 1, 3], count).astype(np.int8)
        models = np.full(count, -1, np.int64)
        held = np.full((count, r + 1), -1, np.int64)
        weights, proved = np.zeros((count, r + 1)), np.zeros(count, bool)
        for k in range(count):
            if codes[k] == 0 and known < len(pool):
                pool[known] = rng.standard_normal(r) if rng.random() < 0.5 else -z0
                models[k], known = known, known + 1
            elif codes[k] == 0:
                models[k] = int(rng.integers(known)) if known else -1
            else:
                size = int(rng.integers(0, min(r, len(A)) + 1))
                rows = rng.choice(len(A), size, replace=False)
                held[k, :size] = rows
                weights[k, :size] = np.linalg.lstsq(A[rows].T, C[k], rcond=None)[0] if size else 0.0
                if mode == "random":
                    weights[k] = rng.standard_normal(r + 1) * 10.0 ** float(rng.integers(-5, 5))
                elif mode == "broken":
                    weights[k] = rng.choice([np.nan, np.inf, 0.0, 1.0], r + 1)
                if len(G) and size:
                    dual = np.linalg.pinv(A[rows].T) if mode == "solved" else rng.standard_normal((size, r))
                    proved[k] = projection.prove_whole(G[rows], Q[k], T, scale[rows], dual)
        return codes, models, held, weights, proved, known, count

    return sweep


@pytest.mark.parametrize("mode", ["solved", "random", "broken"])
def test_nothing_that_a_search_finds_is_believed(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for promises in (("label",), ("valid", "label"), PROMISES):
        for seed, made, known, models in logs(seeds(6)[0] + 50, len(seeds(6)), promises):
            monkeypatch.setattr(projection, "sweep", nonsense_sweep(seed, mode))
            check(made, known, models, seed, mode)


def test_a_payer_counts_no_negative_weight() -> None:
    """−1 times a row holds its opposite, if one lets it."""
    log = ox.QueryLog()
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 2))
    log.add_label(X, np.where(X[:, 0] >= 0.1, 1, -1))
    facts = ox.Knowledge(log, threads=1)._known.prover
    assert facts is not None
    one = facts._linear
    assert one is not None
    assert one.ball is not None
    target = -one.ball.A[:1]
    held, weights = np.array([[0, -1]]), np.array([[-1.0, 0.0]])
    aims = one.ball.behind(target)
    lean = np.linalg.norm(aims, axis=1)
    assert not one.ball.pays(aims / lean[:, None], lean, np.zeros(1), held, weights / lean[:, None]).any()
    assert lengths.usable(held, weights).tolist() == [[0.0, 0.0]]
