"""Every labelled claim of the paper has a test, every slip a counterexample, and the pages that list them are up to date."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

from docs_scripts import DOCS, docs_module

CLAIMS = docs_module("paper_claims")
WRITER = docs_module("write_paper_to_code")
KNOWN = WRITER.tests()


def test_every_labelled_claim_has_a_test() -> None:
    assert [label for label, found in WRITER.by_label(KNOWN).items() if not found] == []


def test_every_note_has_a_test() -> None:
    assert [note.number for note in CLAIMS.NOTES] == [f"E{i}" for i in range(1, len(CLAIMS.NOTES) + 1)]
    assert {note.kind for note in CLAIMS.NOTES} == set(WRITER.KINDS)
    assert [number for number, found in WRITER.by_note(KNOWN).items() if not found] == []


def test_numbers_are_those_of_one_count() -> None:
    """Every label has its place; what shares a counter has every number once, and sub-figures the letters of their figure."""
    labels = [claim.label for _, claims in CLAIMS.CLAIMS for claim in claims]
    assert list(CLAIMS.NUMBERS) == labels
    numbers = [number for number in CLAIMS.NUMBERS.values() if number]
    assert len(set(numbers)) == len(numbers)
    shared = "Theorem", "Lemma", "Corollary", "Remark", "Definition", "Example"
    elsewhere = " ".join([*CLAIMS.UNLABELLED.values(), *(note.where for note in CLAIMS.NOTES)])
    counted = {int(n.split()[1]) for n in numbers if n.startswith(shared)}
    counted |= {1, 2, 3, 4, *(int(n) for n in re.findall(r"(?:Remarks?|Examples?) (\d+)", elsewhere))}
    counted |= {int(n) for n in re.findall(r"(?:Remarks|Examples) \d+ and (\d+)", elsewhere)}
    assert counted == set(range(1, 25))
    equations = sorted(int(n[1:-1]) for n in numbers if n.startswith("("))
    assert equations == list(range(1, 22))
    for label, number in CLAIMS.NUMBERS.items():
        if panel := WRITER.figure_of(label):
            assert re.fullmatch(CLAIMS.NUMBERS[panel[0]] + "[a-i]", number)


def test_every_test_of_the_paper_is_on_the_page() -> None:
    """A test whose name has a typing error in its label would otherwise vanish from the page."""
    named = [*WRITER.by_label(KNOWN).values(), *WRITER.by_note(KNOWN).values(), *WRITER.unlabelled(KNOWN).values()]
    assert {test.name for test in KNOWN} - {test.name for found in named for test in found} == set()
    assert len({test.name for test in KNOWN}) == len(KNOWN)


def test_the_pages_are_what_the_script_writes() -> None:
    assert (DOCS / "paper-to-code.md").read_text(encoding="utf-8") == WRITER.page()
    assert (DOCS / "errata.md").read_text(encoding="utf-8") == WRITER.notes_page()


def test_labels_and_notes_are_what_the_tests_and_the_library_call_them() -> None:
    """A label that a docstring of the package mentions is listed; so is every note."""
    listed = {claim.label for _, claims in CLAIMS.CLAIMS for claim in claims}
    assert len(listed) == sum(len(claims) for _, claims in CLAIMS.CLAIMS)
    for path in [*(DOCS.parent / "src").rglob("*.py"), *(DOCS.parent / "tests" / "paper").glob("*.py")]:
        text = path.read_text(encoding="utf-8")
        mentioned = set(re.findall(r"\b((?:thm|lem|cor|crl|alg|tab|example):[A-Za-z]\w*(?:-\w+)*)", text))
        assert mentioned <= listed, path
        assert {int(n) for n in re.findall(r"\bE(\d\d?)\b(?=[):,;.])", text)} <= set(range(1, len(CLAIMS.NOTES) + 1)), (
            path
        )


@pytest.mark.parametrize(
    "name", sorted({code for _, claims in CLAIMS.CLAIMS for claim in claims for code in claim.code})
)
def test_code_that_the_page_names_exists(name: str) -> None:
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[n:]:
            found = getattr(found, attribute)
        return
    pytest.fail(name)


@pytest.mark.parametrize(
    "page",
    [*sorted((DOCS / "theory").glob("*.md")), DOCS / "multiclass.md", DOCS / "quadratic.md"],
    ids=lambda path: path.stem,
)
def test_tests_and_modules_that_a_proof_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    files = list((DOCS.parent / "tests").rglob("test_*.py"))
    known = {name for path in files for name in re.findall(r"^def test_(\w+)", path.read_text(encoding="utf-8"), re.M)}
    named = [name.removeprefix("test_") for name in re.findall(r"`((?:test|theorem|E\d+)_\w+…?)`", text)]
    assert named
    for name in named:
        assert name in known or (name.endswith("…") and any(test.startswith(name[:-1]) for test in known)), name
    for name in re.findall(r"`(tests/[\w/]+\.py|test_\w+\.py)`", text):
        assert Path(name).name in {path.name for path in files}, name
    for name in re.findall(r"`((?:knowledge|extraction)/[\w/]+\.py)`", text):
        assert (DOCS.parent / "src" / "overexplain" / name).exists(), name


def test_a_missing_test_is_noticed() -> None:
    """Without its tests a label has none, and the page is another one."""
    rest = [test for test in KNOWN if not test.name.startswith("test_lem_CF_basis")]
    assert len(rest) == len(KNOWN) - 1
    assert [label for label, found in WRITER.by_label(rest).items() if not found] == ["lem:CF_basis"]


@pytest.mark.parametrize("name", ["write_paper_to_code", "panels"])
def test_examples_in_the_scripts_run(name: str) -> None:
    done = doctest.testmod(docs_module(name))
    assert done.attempted
    assert not done.failed
