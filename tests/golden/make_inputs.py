"""Makes `inputs/`, the small files that every golden case runs on: PYTHONPATH=tests python -m golden.make_inputs

The files are committed and this is how they came about; run it only to add some. All numbers are eighths and all seeds fixed, so
that answers under l1 and linf are exact and the same on every processor.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import overexplain as ox

HERE = Path(__file__).with_name("inputs")
NAMES = ("income", "age", "debts")
PLANE = ox.Hyperplane([2.0, 1.0, -1.0], 0.5)
MIXED = ("income", "age", "job", "home=own", "home=rent")
MIXED_PLANE = ox.Hyperplane([1.0, 0.125, 2.0, 1.0, -1.0], 6.25)

OFF = 1 / 64
"""Moves cases off every boundary: how a rebuilt model decides a tie is up to the last digits."""


def eighths(rng: np.random.Generator, count: int, width: int = 3, reach: int = 24) -> np.ndarray:
    """Random points whose coordinates are multiples of 1/8."""
    return rng.integers(-reach, reach, size=(count, width), endpoint=True) / 8.0


def log_of(
    oracle, seed: int, labels: int, explained: int, *, names=NAMES, terms=None, told: bool = True
) -> ox.QueryLog:
    """What a service says about random points; `told`: explanations come with the label of their question."""
    rng = np.random.default_rng(seed)
    log = ox.QueryLog(names, mechanism=oracle.mechanism if terms is None else terms)
    if labels:
        asked = eighths(rng, labels, len(names))
        log.add_label(asked, oracle.classify(asked))
    if explained:
        asked = eighths(rng, explained, len(names))
        log.add_explanation(asked, oracle.explain(asked), oracle.classify(asked) if told else None)
    return log


def save(log: ox.QueryLog, name: str) -> None:
    (HERE / name).unlink(missing_ok=True)
    log.save(HERE / name)


def table(name: str, names, rows) -> None:
    lines = [",".join(names), *(",".join(map(str, row)) for row in rows)]
    (HERE / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def plain_logs() -> None:
    """One distance each, terms stated; a log of labels; two features for maps."""
    save(log_of(ox.ModelOracle(PLANE, "l1"), 1, 30, 0), "labels.jsonl")
    for seed, distance in enumerate(("l1", "l2", "linf"), 2):
        save(log_of(ox.ModelOracle(PLANE, distance), seed, 8, 1), f"{distance}.jsonl")
    weighted = ox.Mechanism({"norm": "weighted", "base": "l1", "weights": [1.0, 0.25, 2.0]})
    save(log_of(ox.ModelOracle(PLANE, weighted), 6, 8, 1), "weighted.jsonl")
    save(log_of(ox.ModelOracle(PLANE, "l1"), 7, 2, 12), "known.jsonl")
    save(log_of(ox.ModelOracle(PLANE, "l1"), 8, 0, 2, told=False), "unlabelled.jsonl")
    flat = ox.Hyperplane([2.0, -1.0], 0.25)
    save(log_of(ox.ModelOracle(flat, "l1"), 9, 5, 1, names=("income", "debts")), "flat.jsonl")


def inexact_logs() -> None:
    """Answers that are too long, rounded, or merely valid; several mechanisms in one log."""
    exact = ox.ModelOracle(PLANE, "l1")
    save(log_of(ox.Suboptimal(exact, 0.25, rng=10), 10, 10, 4), "slack.jsonl")
    save(log_of(ox.Rounded(ox.ModelOracle(PLANE, "l1"), 1), 11, 8, 2), "rounded.jsonl")
    log = log_of(ox.Suboptimal(exact, 1.0, rng=12), 12, 10, 5)
    bare = ox.QueryLog(NAMES)
    bare.add_label(log.points[:10], log.labels[:10])
    bare.add_explanation(log.points[10:], log.explanations[10:], log.labels[10:])
    save(bare, "bare.csv")
    several = ox.QueryLog(NAMES)
    rng = np.random.default_rng(13)
    for oracle in (exact, ox.ModelOracle(PLANE, "linf"), ox.Rounded(exact, 1)):
        asked = eighths(rng, 1)
        several.add_explanation(asked, oracle.explain(asked), oracle.classify(asked), mechanism=oracle.mechanism)
    asked = eighths(rng, 4)
    several.add_label(asked, exact.classify(asked))
    save(several, "several.jsonl")
    save(several, "several.parquet")


def robust_logs() -> None:
    """A ball around every answer, its radius told or secret."""
    told = ox.Mechanism("linf", robustness="l1", radius=0.25)
    save(log_of(ox.ModelOracle(PLANE, told), 14, 8, 1), "robust.jsonl")
    same = ox.Mechanism("l1", robustness="l1", radius=0.25)
    save(log_of(ox.ModelOracle(PLANE, same), 15, 8, 1), "robust-same.jsonl")
    log = log_of(ox.ModelOracle(PLANE, told), 16, 10, 2)
    hidden = ox.QueryLog(NAMES, mechanism=ox.Mechanism("linf", radius=None))
    hidden.add_label(log.points[:10], log.labels[:10])
    hidden.add_explanation(log.points[10:], log.explanations[10:], log.labels[10:])
    save(hidden, "secret.jsonl")
    flat = ox.Hyperplane([2.0, -1.0], 0.25)
    ball = ox.Mechanism("l1", robustness="linf", radius=0.5)
    save(log_of(ox.ModelOracle(flat, ball), 17, 4, 1, names=("income", "debts")), "robust-flat.jsonl")


def mixed_rows(rng: np.random.Generator, count: int) -> np.ndarray:
    """Income in eighths, age a whole number, job a flag, home one of two."""
    own = rng.integers(0, 1, count, endpoint=True)
    parts = (rng.integers(-24, 24, count) / 8.0, rng.integers(18, 60, count), rng.integers(0, 1, count, endpoint=True))
    return np.column_stack([*parts, own, 1 - own]).astype(float)


def mixed_files() -> None:
    """Whole numbers, flags and one-hot columns: a log whose terms say so, the same without a word of it, cases, models."""
    rng = np.random.default_rng(18)
    plain = ox.ModelOracle(MIXED_PLANE, "l1")
    service = ox.OneHot(plain, [[3, 4]], [1, 2], [-8, 18, 0, 0, 0], [8, 99, 1, 1, 1])
    asked, told = mixed_rows(rng, 14), mixed_rows(rng, 4)
    for name, terms in (("mixed", service.mechanism), ("undeclared", replace(service.mechanism, domain=None))):
        log = ox.QueryLog(MIXED, mechanism=terms)
        log.add_label(asked, plain.classify(asked))
        log.add_explanation(told, service.explain(told), plain.classify(told))
        save(log, f"{name}.jsonl")
    cases = mixed_rows(rng, 60) + [OFF, 0.0, 0.0, 0.0, 0.0]
    table("mixed.csv", MIXED, [[row[0], *map(int, row[1:])] for row in cases.tolist()])
    raw = [[row[0], int(row[1]), int(row[2]), "own" if row[3] else "rent"] for row in cases.tolist()]
    table("raw.csv", ("income", "age", "job", "home"), raw)
    model = {"features": list(MIXED), "coefficients": MIXED_PLANE.normal.tolist(), "intercept": -6.25}
    (HERE / "mixed.json").write_text(json.dumps(model) + "\n")
    lines = ["feature,category,points", "income,,1", "age,,0.125", "job,,2", "home,own,1", "home,rent,-1"]
    (HERE / "scorecard.csv").write_text("\n".join([*lines, "(Intercept),,-6.25"]) + "\n")


def point_files() -> None:
    """The same points as every kind of file, the same as a folder of Parquet, and a few mixed ones."""
    rows = eighths(np.random.default_rng(19), 40)
    rows[-4:] = [[0.25, 0.0, 0.0], [0.0, 0.5, 0.0], [0.5, 1.0, 1.5], [1.0, -1.5, 0.0]]  # on the plane
    table("points.csv", ("debts", "id", "income", "age"), [[d, f"n{i:02}", i_, a] for i, (i_, a, d) in enumerate(rows)])
    few = [dict(zip(NAMES, row, strict=True)) for row in rows[:12].tolist()]
    (HERE / "points.jsonl").write_text("".join(json.dumps(row) + "\n" for row in few))
    write_parquet(HERE / "points.parquet", rows[:12])
    (HERE / "people").mkdir(exist_ok=True)
    write_parquet(HERE / "people" / "2024-01.parquet", rows[:25])
    write_parquet(HERE / "people" / "2024-02.parquet", rows[25:])
    table("few.csv", NAMES, rows[:8].tolist())
    mixed = mixed_rows(np.random.default_rng(20), 12)
    table("mixed-points.csv", MIXED, mixed.tolist())
    (HERE / "at.json").write_text('{"debts": 0.5}\n')


def write_parquet(path: Path, rows: np.ndarray) -> None:
    pq.write_table(pa.table(dict(zip(NAMES, rows.T, strict=True))), path, compression="none")


def model_files() -> None:
    """Coefficients as JSON and as a table, cut at a probability, of several classes; cases; a policy; an endpoint."""
    entries = {"coefficients": dict(zip(NAMES, PLANE.normal.tolist(), strict=True)), "intercept": -0.5}
    (HERE / "model.json").write_text(json.dumps(entries) + "\n")
    logistic = entries | {"link": "logistic", "classes": ["denied", "granted"], "threshold": 0.75}
    (HERE / "logistic.json").write_text(json.dumps(logistic) + "\n")
    (HERE / "model.csv").write_text("feature,coefficient\nincome,2\nage,1\ndebts,-1\n(Intercept),-0.5\n")
    scores = ox.ArgmaxModel([[1.0, 0.5], [-1.0, 0.25], [0.0, -1.5]], [0.0, 0.25, 0.5])
    ox.MulticlassModel(scores, features=("income", "age"), classes=("low", "middle", "high")).save(
        HERE / "classes.json"
    )
    table("cases.csv", NAMES, (eighths(np.random.default_rng(21), 60) + [OFF, 0.0, 0.0]).tolist())
    table("class-cases.csv", ("income", "age"), (eighths(np.random.default_rng(22), 40, 2) + [OFF, 2 * OFF]).tolist())
    policy = ["[audit]", 'services = ["l1", "labels"]', 'fail_on = ["determined@4>99%", "answers-to-extract<2"]']
    policy += ['target = "60%"', "orders = 2", "judged = 20", "maps = 0", "compare = false", "defences = false"]
    (HERE / "policy.toml").write_text("\n".join([*policy, "seed = 3"]) + "\n")
    endpoint = ['url = "https://scores.example/v1/models/loans"', 'features = ["income", "age", "debts"]']
    (HERE / "endpoint.toml").write_text("\n".join([*endpoint, "", "[mechanism]", 'distance = "l1"']) + "\n")


def client_log() -> None:
    """A service's own table: names of its own, five honest clients and one that asks beside the boundary."""
    rng = np.random.default_rng(23)
    service = ox.ModelOracle(PLANE, "l1")
    asked = eighths(rng, 240)
    near = service.explain(eighths(rng, 12)) + np.array([0.0, 0.0, 0.015625])
    asked = np.vstack([asked, near])
    lines = ["ts,client_id,income,age,debts,decision,why_income,why_age,why_debts"]
    for i, (x, y) in enumerate(zip(asked.tolist(), service.classify(asked).tolist(), strict=True)):
        who = "mallory" if i >= 240 else f"client {i % 5}"
        told = service.explain(x).tolist() if i in (3, 51, 133) else [""] * 3
        when = f"2024-03-{1 + i // 12:02}T{8 + i % 12:02}:00:00"
        lines.append(",".join(map(str, [when, who, *x, "granted" if y > 0 else "denied", *told])))
    (HERE / "clients.csv").write_text("\n".join(lines) + "\n")
    records = [json.dumps({"input": [0.5, 1.0, 2.0], "decision": "denied", "cf": [1.25, 1.0, 2.0], "who": "ann"})]
    records.append(json.dumps({"input": [2.0, 1.0, 0.5], "decision": "granted", "cf": None, "who": "bob"}))
    (HERE / "records.jsonl").write_text("\n".join(records) + "\n")


HEADER = '{"format": "overexplain-log", "version": 1, "dimension": 3, "features": ["income", "age", "debts"], "mechanism": null}'
BAD_LOGS = {
    "nan.jsonl": [HEADER, '{"x": [1.0, NaN, 0.0], "y": 1}', '{"x": [1.0, 1.0, 0.0], "y": 1}'],
    "width.jsonl": [HEADER, '{"x": [1.0, 2.0], "y": 1}', '{"x": [1.0, 1.0, 0.0], "y": 1}'],
    "label.jsonl": [HEADER, '{"x": [1.0, 2.0, 0.0], "y": 0}', '{"x": [1.0, 1.0, 0.0], "y": 1}'],
    "key.jsonl": [HEADER, '{"x": [1.0, 2.0, 0.0], "z": 1}', '{"x": [1.0, 1.0, 0.0], "y": 1}'],
    "headless.jsonl": ['{"x": [1.0, 2.0, 0.0], "y": 1}'],
    "future.jsonl": [HEADER.replace('"version": 1', '"version": 99'), '{"x": [1.0, 1.0, 0.0], "y": 1}'],
    "empty.jsonl": [HEADER],
    # Yes between two that are No, on one line: these three rows and no others contradict each other.
    "labels-clash.jsonl": [
        HEADER,
        '{"x": [0.0, 0.0, 0.0], "y": -1}',
        '{"x": [1.0, 0.0, 0.0], "y": 1}',
        '{"x": [2.0, 0.0, 0.0], "y": -1}',
        '{"x": [0.0, 5.0, 0.0], "y": 1}',
    ],
    # The plane passes through (1, 0, 0) and no feature is steeper than income: half of age cannot be Yes.
    "answers-clash.jsonl": [
        HEADER,
        '{"mechanism": {"distance": "l1", "robustness": null, "radius": 0.0, "tolerance": null, "slack": 0.0}}',
        '{"x": [0.0, 0.0, 0.0], "y": -1, "cf": [1.0, 0.0, 0.0], "m": 0}',
        '{"x": [0.0, 0.5, 0.0], "y": 1}',
        '{"x": [9.0, 0.0, 0.0], "y": 1}',
    ],
}
BAD_TABLES = {
    "nan.csv": ["income,age,debts", "1,2,3", "1,nan,3"],
    "infinite.csv": ["income,age,debts", "1,inf,3"],
    "word.csv": ["income,age,debts", "1,2,3", "1,old,3"],
    "short.csv": ["income,age,debts", "1,2,3", "1,2"],
    "missing.csv": ["income,age", "1,2"],
    "twice.csv": ["income,age,debts,age", "1,2,3,4"],
    "comma.csv": ["income;age;debts", "1,5;2;3"],
    "few-cases.csv": ["income,age,debts", "1,2,3", "3,2,1"],
    "category.csv": ["income,age,job,home", *["1,30,1,own"] * 11, "1,30,1,tent"],
}
BAD_MODELS = {
    "zero.json": {"coefficients": {"income": 0.0, "age": 0.0}, "intercept": 1.0},
    "offsetless.json": {"coefficients": {"income": 1.0, "age": 2.0}},
    "entry.json": {"coefficients": {"income": 1.0}, "intercept": 0.0, "colour": "red"},
    "words.json": {"coefficients": {"income": "high"}, "intercept": 0.0},
    "point.json": {"wage": 1.0},
}
BAD_TEXTS = {
    "not.json": '{"coefficients": [1.0,',
    "huge.json": '{"coefficients": {"income": 1e999}, "intercept": 0}\n',
    "noise.onnx": "this is no graph\n",
    "model.pkl": "\x80\x04N.",  # None, pickled: refused by what it is, not by its name
    "run.sqlite": "not a database\n",
    "unknown.toml": '[audit]\nservices = ["l1"]\ncolour = "red"\n',
    "broken.toml": "[audit\n",
    "homeless.toml": 'features = ["income", "age", "debts"]\n',
    "gate.toml": '[audit]\nfail_on = ["determined@five>60%"]\n',
    "words.jsonl": "no proof\n",
}


def bad_files() -> None:
    """What must be refused, in words that stay; proofs that do not hold."""
    bad = HERE / "bad"
    bad.mkdir(exist_ok=True)
    texts = BAD_TEXTS | {name: "\n".join(lines) + "\n" for name, lines in (BAD_LOGS | BAD_TABLES).items()}
    texts |= {name: json.dumps(entries) + "\n" for name, entries in BAD_MODELS.items()}
    for name, text in texts.items():
        (bad / name).write_bytes(text.encode("latin-1"))
    (bad / "latin.csv").write_bytes("income,age,debts\n1,2,3\n1,2,\xfc\n".encode("latin-1"))
    (bad / "cut.jsonl").write_bytes((HERE / "l1.jsonl").read_bytes()[:-15])
    proofs = (HERE.parent / "old" / "l1.proofs.jsonl").read_text().splitlines(keepends=True)
    certificate = next(i for i, line in enumerate(proofs) if '"certificate"' in line)
    other = {"YES": "NO", "NO": "YES"}[json.loads(proofs[certificate])["verdict"]]
    turned = json.dumps(json.loads(proofs[certificate]) | {"verdict": other}) + "\n"
    (bad / "turned.jsonl").write_text("".join([*proofs[:certificate], turned, *proofs[certificate + 1 :]]))
    (bad / "fewer.jsonl").write_text("".join(proofs[:-1]))
    (bad / "proofs.jsonl").write_text("".join(proofs))


def main() -> None:
    HERE.mkdir(exist_ok=True)
    for part in (plain_logs, inexact_logs, robust_logs, mixed_files, point_files, model_files, client_log, bad_files):
        part()


if __name__ == "__main__":
    main()
