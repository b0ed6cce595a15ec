"""Logs and points of extreme, finite numbers: every command ends with a verdict or one line of error, and warns of nothing.

A case is a log made from its seed alone: numbers from 5e-324 to beyond 1e154, honest labels and random ones, every kind of terms.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import overexplain as ox
from campaigning import SOAK
from overexplain.cli.main import run
from overexplain.errors import OverexplainError
from overexplain.extraction.recover import recover

SIZES = (5e-324, 1e-308, 1e-300, 1e-200, 1e-155, 1e-20, 1.0, 1e20, 1e100, 1e150, 1e153)
BEYOND = (1e155, 1e300, 1.7976931348623157e308)
NORMS = ("l1", "l2", "linf", "lp:3", "lp:1.5")
CODES = (0, 3, 4, 8)


def mechanism(rng: np.random.Generator) -> ox.Mechanism | None:
    """Terms of any kind, their numbers as extreme as those of the log."""
    distance, size = str(rng.choice(NORMS)), float(rng.choice(SIZES))
    match int(rng.integers(5)):
        case 0:
            return None
        case 1:
            return ox.Mechanism(distance)
        case 2:
            return ox.Mechanism(distance, str(rng.choice(NORMS)), size)
        case 3:
            return ox.Mechanism(distance, slack=size)
        case _:
            return ox.Mechanism(distance, tolerance=float(rng.choice([0.0, size])))


@np.errstate(all="ignore")
def extreme_log(seed: int) -> tuple[ox.QueryLog, np.ndarray]:
    """A log, and points to ask about, some of them far off."""
    rng = np.random.default_rng([seed, 20])
    p, kind, common = int(rng.integers(1, 4)), int(rng.integers(4)), float(rng.choice(SIZES))
    largest = BEYOND if rng.random() < 0.15 else ()

    def point() -> np.ndarray:
        spread = 10.0 ** rng.integers(-300, 152, p) if kind == 0 else common if kind == 1 else rng.choice(SIZES, p)
        return rng.normal(size=p) * spread if kind < 3 else rng.choice([0.0, *SIZES, *largest], p) * rng.choice([1, -1])

    terms, normal, is_honest = mechanism(rng), rng.normal(size=p), rng.random() < 0.6
    log = ox.QueryLog(mechanism=terms)
    for _ in range(int(rng.integers(1, 12))):
        x = point()
        said = normal @ (x / (np.abs(x).max() or 1.0)) if is_honest else rng.normal()
        label = 1 if said >= 0 else -1
        if terms is not None and rng.random() < 0.5:
            log.add_explanation(
                x, np.where(rng.random(p) < 0.5, x, point()), label=None if rng.random() < 0.1 else label
            )
        else:
            log.add_label(x, label)
    points = np.array([point() for _ in range(4)])
    points[0] = np.clip(points[0] * 1e200, -BEYOND[-1], BEYOND[-1])
    return log, points


def commands(p: int) -> list[list[str]]:
    """Every command that reads a log."""
    drawn = [["map", "log.jsonl", "--size", "9x5"]] if p > 1 else []
    return [
        ["certify", "log.jsonl", "points.csv", "-o", "v.csv", "--proofs", "p.jsonl", "--time-limit", "5"],
        ["monitor", "log.jsonl"],
        ["log", "check", "log.jsonl"],
        ["log", "show", "log.jsonl"],
        *drawn,
    ]


def save(log: ox.QueryLog, points: np.ndarray) -> None:
    for name in ("v.csv", "p.jsonl"):
        Path(name).unlink(missing_ok=True)
    log.save("log.jsonl")
    rows = [",".join(repr(v) for v in point) for point in points.tolist()]
    Path("points.csv").write_text("\n".join([",".join(f"x{i}" for i in range(points.shape[1])), *rows]) + "\n")


def outcome(arguments: list[str], capfd: pytest.CaptureFixture[str], codes: tuple[int, ...] = CODES) -> int:
    """The exit code of a command that must not warn, and says what is wrong in one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        code = run(arguments)
    out, err = capfd.readouterr()  # of the file descriptors: LAPACK writes to them, too
    assert code in codes, (arguments, err)
    assert "unexpected" not in err, (arguments, err)
    errors = [line for line in err.splitlines() if not line.startswith("note: ")]
    assert len(errors) == (code != 0) or (arguments[:2] == ["log", "check"] and not errors), (arguments, err)
    assert "On entry to" not in out + err, (arguments, out + err)
    return code


@pytest.mark.parametrize("seed", range(40 * (SOAK or 1)))
def test_a_verdict_or_one_line_of_error(seed, tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    log, points = extreme_log(seed)
    save(log, points)
    for arguments in commands(points.shape[1]):
        code = outcome(arguments, capfd)
        if arguments[0] == "certify" and code == 0 and Path("p.jsonl").stat().st_size:
            # every proof holds; a verdict that was settled in floats may have none
            assert outcome(["verify", "p.jsonl", "log.jsonl"], capfd) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            recover(log)
        except OverexplainError as error:
            assert str(error)


def test_a_point_too_far_off_leaves_the_others_their_verdicts(tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    service = ox.ModelOracle(ox.Hyperplane([1.0, 2.0], 0.3), ox.Mechanism("l2"))
    log, rng = ox.QueryLog(mechanism=service.mechanism), np.random.default_rng(0)
    for x in rng.normal(size=(3, 2)):
        log.add_explanation(x, service.explain(x), label=service.classify(x))
    save(log, np.array([[0.5, 0.5], [1e155, -1e155], [-2.0, -2.0], [1e308, 1e308]]))
    assert outcome(commands(2)[0], capfd) == 0
    found = [line.split(",")[1] for line in Path("v.csv").read_text().splitlines()[1:]]
    assert (found[0], found[2]) == ("YES", "NO")
    assert found[1] in ("NO", "UNDECIDED")
    assert found[3] in ("YES", "UNDECIDED")
    assert outcome(["verify", "p.jsonl", "log.jsonl", "--verdicts", "v.csv", "--points", "points.csv"], capfd) == 0


def test_a_far_off_point_of_a_data_set_leaves_the_others_their_verdicts(tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    service = ox.ModelOracle(ox.Hyperplane([1.0, 2.0], 0.3), ox.Mechanism("l2"))
    log = ox.QueryLog(features=("a", "b"), mechanism=service.mechanism)
    for x in ([0.0, 0.0], [1.0, -3.0]):
        log.add_explanation(x, service.explain(np.array(x)), label=service.classify(np.array(x)))
    log.save("log.jsonl")
    Path("points").mkdir()
    parquet.write_table(arrow.table({"a": [0.5, 1e155, -2.0], "b": [0.5, -1e155, -2.0]}), "points/one.parquet")
    assert outcome(["certify", "log.jsonl", "points", "-o", "verdicts", "--proofs", "proofs"], capfd) == 0
    found = parquet.read_table(next(Path("verdicts").glob("part-*.parquet"))).column("verdict").to_pylist()
    assert (found[0], found[2]) == ("YES", "NO")
    assert outcome(["verify", "proofs", "log.jsonl", "--verdicts", "verdicts", "--points", "points"], capfd) == 0


@pytest.mark.parametrize("command", ["certify", "monitor", "log check", "map"])
def test_a_number_beyond_what_can_be_squared_is_named(command, tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    log = ox.QueryLog(features=("age", "income"), mechanism=ox.Mechanism("l1"))
    log.add_label([[1.0, 2.0], [-1.0, 1e200]], [1, -1])
    save(log, np.array([[0.0, 0.0]]))
    Path("points.csv").write_text("age,income\n0,0\n")
    arguments = next(a for a in commands(2) if " ".join(a).startswith(command))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(arguments) == 3
    err = capfd.readouterr().err
    assert "row 1: 'income' is 1e+200, beyond" in err
    assert "larger unit" in err


def test_monitor_refuses_many_such_rows_at_once(tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20_000, 3)) * 10.0 ** rng.integers(-300, 300, (20_000, 3))
    log = ox.QueryLog()
    log.add_label(points, np.where(points[:, 0] > 0, 1, -1))
    log.save("log.jsonl")
    assert outcome(["monitor", "log.jsonl"], capfd) == 3
