"""Every page runs: its code, its commands, with the files that it speaks of; and prints what it shows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import overexplain as ox
from pages import NOT_RUN, Block, Runner, assert_shown, blocks, session, shell_lines

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
WRITTEN_BY_THE_BUILD = {DOCS / "gallery", DOCS / "results"}
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted(DOCS.rglob("*.md")) if not WRITTEN_BY_THE_BUILD.intersection(page.parents)),
]
FEATURES = ["income", "age", "debts"]
MODEL = ox.Hyperplane([1.0, 0.5, -1.5], 0.4)


def runs(page: Path) -> bool:
    return any(block.language == "python" or block.is_shell for block in blocks(page))


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that pages speak of without making them: a model, the cases it decides, and logs of what it answered."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    coefficients = dict(zip(FEATURES, MODEL.normal.tolist(), strict=True))
    (folder / "scorecard.json").write_text(json.dumps({"coefficients": coefficients, "intercept": -MODEL.offset}))
    header = ",".join(FEATURES)
    np.savetxt(folder / "applicants.csv", rng.normal(size=(24, 3)).round(1), "%.1f", ",", header=header, comments="")
    service = ox.ModelOracle(MODEL, "l1")
    asked = rng.normal(size=(30, 3)).round(1)
    log = ox.QueryLog(FEATURES, mechanism=service.mechanism)
    log.add_label(asked[:26], service.classify(asked[:26]))
    log.add_explanation(asked[26:28], service.explain(asked[26:28]), service.classify(asked[26:28]))
    log.save(folder / "march.jsonl")
    tables(folder, service, asked)
    terms = ox.Mechanism("linf", robustness="l1", radius=0.3)
    robust = ox.ModelOracle(MODEL, terms)
    log = ox.QueryLog(FEATURES, mechanism=terms)
    log.add_label(asked[:17], robust.classify(asked[:17]))
    log.add_explanation(asked[17:19], robust.explain(asked[17:19]), robust.classify(asked[17:19]))
    log.save(folder / "robust.jsonl")
    return folder


def tables(folder: Path, service: ox.ModelOracle, asked: np.ndarray) -> None:
    """march.parquet, and march.csv and april.parquet as another system writes them: its own columns for who, what, when."""
    import pandas as pd

    answers = service.explain(asked)
    frame = pd.DataFrame(asked, columns=FEATURES)
    frame[[f"cf_{name}" for name in FEATURES]] = answers
    frame["client_id"] = [f"client {i % 4}" for i in range(len(asked))]
    labels = service.classify(asked)
    frame.assign(label=labels).to_parquet(folder / "march.parquet")
    frame.assign(decision=labels, ts=np.arange(30) + 1.7e9).to_parquet(folder / "with-times.parquet")
    decisions = frame.drop(columns="client_id").assign(decision=np.where(labels > 0, "granted", "denied"))
    decisions[:15].to_csv(folder / "march.csv", index=False)
    decisions[15:].to_parquet(folder / "april.parquet")


@pytest.mark.parametrize("page", [page for page in PAGES if runs(page)], ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_runs_and_prints_what_it_shows(
    page: Path, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(files, tmp_path / "here")
    if page.name == "monitor.md":
        (folder / "with-times.parquet").replace(folder / "march.parquet")
    if page.name == "logs.md":
        (folder / "march.jsonl").unlink()  # the page writes it
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    with Runner() as runner:
        for block in blocks(page):
            try:
                runner.run(block)
            except (Exception, SystemExit) as error:
                raise AssertionError(f"{page.relative_to(ROOT)}, line {block.line}: {error}") from error


def test_every_page_of_the_documentation_is_among_them() -> None:
    names = {str(page.relative_to(ROOT)) for page in PAGES if runs(page)}
    assert {"README.md", "docs/tutorial.md", "docs/audit.md", "docs/endpoints.md", "docs/howto/quota.md"} <= names
    assert sum(1 for page in PAGES for line in shell_lines(page) if not line.startswith(NOT_RUN)) > 40


def test_what_is_shown_must_be_what_is_printed() -> None:
    assert_shown("one\n…\nfour", "one  \ntwo\nthree\nfour\n")
    assert_shown("3 answers, …", "3 answers, 2 s")
    for shown in ("one\nthree", "one", "two\n…"):
        with pytest.raises(AssertionError, match="the page shows"):
            assert_shown(shown, "one\ntwo\nthree")


def test_a_wrong_page_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Runner() as runner:
        for text, words in [
            ("print(1)\n# 2\n", "but this was printed"),
            ("print('Verdicts(1 YES)')  # Verdicts(2 YES)\n", "2 YES"),
        ]:
            with pytest.raises(AssertionError, match=words):
                runner.run(Block("python", text, 1))
        with pytest.raises(AssertionError, match=r"exit code 3.*certify"):
            runner.run(Block("", "overexplain certify none.jsonl none.csv\n", 1))
        runner.unshown = ""
        runner.run(Block("console", "$ overexplain certify none.jsonl none.csv\nerror: …\n$ echo $?\n3\n", 1))
        with pytest.raises(AssertionError, match="no test can run"):
            runner.run(Block("console", "$ rm march.jsonl\n", 1))


def test_a_session_is_read_as_a_shell_would() -> None:
    assert session("$ overexplain a \\\n  b\nsaid\n\n$ overexplain c\n") == [
        ("overexplain a    b", "said"),
        ("overexplain c", None),
    ]
    assert session("overexplain a   # why\noverexplain b\n") == [
        ("overexplain a   # why", None),
        ("overexplain b", None),
    ]


def test_every_degradation_and_imitation_is_in_the_docs() -> None:
    from overexplain.oracles.degradations import DEGRADATIONS

    page = (DOCS / "services.md").read_text(encoding="utf-8")
    for form in [known.form for known in DEGRADATIONS.values()] + list(ox.IMITATIONS):
        assert f"`{form}`" in page
