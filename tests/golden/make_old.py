"""Makes `old/`: files as today's version writes them, which every later version must read and verify.

    PYTHONPATH=tests python -m golden.make_old

Run once a release at most, to ADD files: one that is there is never written again, or it would not be old.
"""

from __future__ import annotations

import contextlib
import io
import shlex
import shutil
import tempfile
from pathlib import Path

import numpy as np

import overexplain as ox
from golden.cases import MAPPED, PROVED
from overexplain.cli.main import run

HERE = Path(__file__).parent
OLD = HERE / "old"
QUICK = "--orders 2 --judged 15 --maps 1 --answers 2,4"


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        shutil.copytree(HERE / "inputs", folder, dirs_exist_ok=True)
        with contextlib.chdir(folder):
            made = [*proofs(), *data_set(), *audits(), *logs(), *models(), *runs()]
        for name in made:
            add(folder / name, OLD / name)


def add(source: Path, target: Path) -> None:
    """Copy a file, or the files of a folder, that is not there yet."""
    if source.is_dir():
        for path in sorted(source.iterdir()):
            add(path, target / path.name)
    elif not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def do(command: str) -> None:
    """Run a command line that must go well."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = run(shlex.split(command))
    if code:
        raise SystemExit(f"{command}: {said.getvalue()}")


def proofs() -> list[str]:
    """Logs with verdicts and proofs of a few points, under every kind of terms."""
    made = ["few.csv", "mixed-points.csv", "mixed.jsonl", "robust.jsonl", "bare.csv"]
    cases = [(name, f"{name}.jsonl few.csv") for name in PROVED]
    cases += [("mixed", "mixed.jsonl mixed-points.csv"), ("robust", "robust.jsonl few.csv --robust exact")]
    cases += [("valid", "bare.csv few.csv --slack any")]
    for name, rest in cases:
        do(f"certify {rest} -o {name}.verdicts.csv --proofs {name}.proofs.jsonl")
        made += [f"{name}.verdicts.csv", f"{name}.proofs.jsonl"]
    return made + [f"{name}.jsonl" for name in PROVED]


def data_set() -> list[str]:
    """The verdicts on a folder of Parquet files."""
    do("certify l1.jsonl people -o verdicts --proofs proofs")
    return ["people", "verdicts", "proofs"]


def audits() -> list[str]:
    """Reports, a policy, a folder of proofs behind a report."""
    do(f"audit model.json --data cases.csv --service l1 --report audit.json --proofs audit-proofs {QUICK}")
    do("audit classes.json --data class-cases.csv --report multiclass.json")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        run(shlex.split(f"monitor clients.csv {MAPPED} --distance l1 --json"))
    Path("monitor.json").write_text(said.getvalue(), encoding="utf-8")
    made = ["audit.json", "audit-proofs", "multiclass.json", "monitor.json", "policy.toml"]
    return [*made, "cases.csv", "class-cases.csv", "clients.csv"]


def logs() -> list[str]:
    """One log in every format."""
    made = ["several.csv", "several.parquet", "l1.sqlite", "l1.dice.json"]
    for name in made:
        Path(name).unlink(missing_ok=True)
        do(f"log convert {name.split('.')[0]}.jsonl {name}")
    return made


def models() -> list[str]:
    """Coefficient files as they are saved, and models of two libraries."""
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import DoubleTensorType
    from sklearn.linear_model import LogisticRegression
    from skops.io import dump

    do("model inspect logistic.json -o saved.json")
    do("extract model.json --distance l1 -o found.json --log asked.jsonl")
    rows = np.random.default_rng(24).integers(-24, 24, size=(60, 3)) / 8.0
    fitted = LogisticRegression().fit(rows, rows @ [2.0, 1.0, -1.0] >= 0.5)
    dump(fitted, "model.skops")
    onnx = to_onnx(fitted, initial_types=[("x", DoubleTensorType([None, 3]))], options={"zipmap": False})
    Path("model.onnx").write_bytes(onnx.SerializeToString())
    names = ["model.json", "model.csv", "logistic.json", "scorecard.csv", "classes.json"]
    return [*names, "saved.json", "found.json", "asked.jsonl", "model.skops", "model.onnx"]


def runs() -> list[str]:
    """A run of probe that found the model, and one whose budget ended before."""
    from overexplain.oracles.served.endpoint_file import endpoint_file
    from served import served

    names = ["income", "age", "debts"]
    service = ox.ModelOracle(ox.Hyperplane([2.0, 1.0, -1.0], 0.5), "l1")
    with served(service, features=names) as endpoint:
        Path("live.toml").write_text(endpoint_file(service, endpoint.url, endpoint.name, names), encoding="utf-8")
        do("probe live.toml --budget 40 --authorized --run done.sqlite")
        with contextlib.redirect_stderr(io.StringIO()):
            run(shlex.split("probe live.toml --budget 2 --authorized --run stopped.sqlite"))
    return ["done.sqlite", "stopped.sqlite", "endpoint.toml"]


if __name__ == "__main__":
    main()
