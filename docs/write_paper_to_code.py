"""Writes docs/paper-to-code.md, every labelled claim of the paper and its tests, and docs/errata.md, our notes on the paper.

python docs/write_paper_to_code.py [--check]      --check: write nothing; fail if a page would change

Tests are found by their names: `test_` and the labels in it, joined by `_and_`, other characters than letters and digits as `_`.
`test_lem_CF_basis` and `test_lem_CF_basis_with_ties` are tests of `lem:CF_basis`. Of labels that begin alike the longest counts.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from pathlib import Path
from typing import NamedTuple

from paper_claims import CLAIMS, NOTES, NUMBERS, SUBFIGURES, UNLABELLED, Claim, Note

DOCS = Path(__file__).parent
TESTS = DOCS.parent / "tests" / "paper"
PAGE, NOTES_PAGE = DOCS / "paper-to-code.md", DOCS / "errata.md"
LABELS = [claim.label for _, claims in CLAIMS for claim in claims]
HEAD = """\
# From the paper to the code

The paper: Otto, Kurtz, den Hertog, Birbil, *Linear Model Extraction via Factual and Counterfactual Queries*,
[arXiv 2602.09748](https://arxiv.org/abs/2602.09748). Every claim with a LaTeX label has a test named after it. The number beside it
is that of the typeset paper (–: it has none there). What we noticed in reading is in [notes on the paper](errata.md).
Written by `docs/write_paper_to_code.py` from the names of the tests; if a label has no test, the test of this page fails.
Each test holds the library against the claim itself and against a second opinion (another solver, brute force, exact rationals).
A test of `lem:CF_basis` is named `test_lem_CF_basis` and what it adds; only the latter is shown. Names are those of `overexplain`.

[The figures](paper-figures.md) are drawn by the library; [the theory](theory.md) has what goes beyond the paper, with proofs.

"""
NOTES_HEAD = """\
# Notes on the paper

This library began with the paper of Otto, Kurtz, den Hertog and Birbil, *Linear Model Extraction via Factual and Counterfactual
Queries*, [arXiv 2602.09748](https://arxiv.org/abs/2602.09748), and rests on its ideas: regions by duality, one direction for all
counterfactuals, the touching ball. Its main results hold. Testing every statement, we noted what follows, in the hope that it
is of use to its readers and authors. Most of it is a sign or an index, and some concerns our own definitions more than the paper.
Numbers are kept once given, since code and tests refer to them. [From the paper to the code](paper-to-code.md) has all claims.

"""
KINDS = {
    "slip": (
        "Slips",
        "In each of these tests the printed statement fails and the corrected one holds.",
        ("", "where", "printed", "correct", "tests"),
    ),
    "improvement": (
        "Improvements",
        "The paper is right here; more can be said. What goes further is in [the theory](theory.md).",
        ("", "where", "the paper", "what can be added", "tests"),
    ),
    "remark": (
        "Remarks",
        "No slips: all four were listed as such before. One is harmless, three are withdrawn.",
        ("", "where", "the paper", "note", "tests"),
    ),
}
"""The lists of the notes: title, introduction, heads of the columns."""

REST = """\
## Claims without a label

| what | tests |
|---|---|
"""


class Test(NamedTuple):
    """A test function: its file's name, its own, and the text constants of its module (the cases it may be run on)."""

    file: str
    name: str
    words: frozenset[str]

    def link(self, after: str) -> str:
        """What the name says beyond `after`, as a link to the file: line numbers would be wrong after the next change."""
        words = self.name.removeprefix("test_").removeprefix(slug(after)).strip("_").replace("_", " ")
        if others := sorted(labels_of(self.name, LABELS) - {after}):
            words = f"together with {', '.join(others)}" if after in LABELS else words
        return f"[{words or 'the claim'}](../tests/paper/{self.file})"


def tests() -> list[Test]:
    """All tests in tests/paper, by reading the files: nothing is imported."""
    found = []
    for path in sorted(TESTS.glob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        words = texts(tree)
        names = [n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")]
        found += [Test(path.name, name, words) for name in names]
    return found


def texts(tree: ast.Module) -> frozenset[str]:
    """All text constants of a file of code."""
    return frozenset(n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))


def slug(label: str) -> str:
    """A label as a part of a name.

    >>> slug("thm:region-CF")
    'thm_region_CF'
    """
    return re.sub(r"\W", "_", label)


def labels_of(name: str, labels: list[str]) -> set[str]:
    """The labels that a test is named after.

    >>> sorted(labels_of("test_eq_a_and_eq_a_b_more", ["eq:a", "eq:a-b"]))
    ['eq:a', 'eq:a-b']
    """
    found = set()
    for part in name.removeprefix("test_").split("_and_"):
        fitting = [label for label in labels if f"{part}_".startswith(f"{slug(label)}_")]
        if fitting:
            found.add(max(fitting, key=len))
    return found


def by_label(known: list[Test]) -> dict[str, list[Test]]:
    """The tests of every label; a panel of a figure has the figure's own test, if the panel is one of its cases."""
    found: dict[str, list[Test]] = {label: [] for label in LABELS}
    for test in known:
        for label in labels_of(test.name, LABELS):
            found[label].append(test)
    drawn = texts(ast.parse((DOCS / "figures" / "paper_cases.py").read_text(encoding="utf-8")))
    for label in LABELS:
        if panel := figure_of(label):
            figure, case = panel
            own = [test for test in found[figure] if test.name == f"test_{slug(figure)}"]
            found[label] += [test for test in own if case in test.words | drawn]
    return found


def figure_of(label: str) -> tuple[str, str] | None:
    """For a panel of a figure: the figure's label, and the case of its test that the panel is."""
    for prefix, figure in SUBFIGURES.items():
        if label.startswith(prefix):
            return figure, label.removeprefix(prefix)
    return None


def by_note(known: list[Test]) -> dict[str, list[Test]]:
    """The tests of every note."""
    return {note.number: [t for t in known if f"{t.name}_".startswith(f"test_{note.number}_")] for note in NOTES}


def page() -> str:
    """The text of the page from the paper to the code."""
    known = tests()
    labelled = by_label(known)
    parts = [HEAD]
    for title, claims in CLAIMS:
        parts.append(f"## {title}\n\n" + _table("in the PDF", "label", "says", "tests", "in the library"))
        parts += [_row(claim, labelled[claim.label]) for claim in claims]
        parts.append("\n")
    parts += [REST, *(_cells(UNLABELLED[word], _links(found, word)) for word, found in unlabelled(known).items())]
    return "".join(parts)


def notes_page() -> str:
    """The text of the page of notes: slips, improvements and remarks apart."""
    found = by_note(tests())
    parts = []
    for kind, (title, introduction, heads) in KINDS.items():
        rows = [
            _cells(n.number, _where(n), _plain(n.printed), _plain(n.found), _links(found[n.number], n.number))
            for n in NOTES
            if n.kind == kind
        ]
        parts.append(f"## {title}\n\n{introduction}\n\n" + _table(*heads) + "".join(rows))
    return NOTES_HEAD + "\n".join(parts)


def _where(note: Note) -> str:
    """Where in the paper, every label with its number.

    >>> _where(Note("E0", "slip", "proof of thm:RCF_diff", "", ""))
    'proof of Theorem 17 (`thm:RCF_diff`)'
    """
    return " ".join(
        f"{NUMBERS[w]} (`{w}`)" if NUMBERS.get(w) else f"`{w}`" if w in NUMBERS else w for w in note.where.split()
    )


def _row(claim: Claim, found: list[Test]) -> str:
    panel = figure_of(claim.label)
    case = f", case `{panel[1]}`" if panel else ""
    code = ", ".join(f"`{name.removeprefix('overexplain.')}`" for name in claim.code) or "–"
    says = claim.says
    for kind, words in (("slip", "corrected"), ("improvement", "more"), ("remark", "remark")):
        if notes := ", ".join(n.number for n in NOTES if n.kind == kind and claim.label in n.where.split()):
            says += f" ([{words}: {notes}](errata.md#{KINDS[kind][0].lower()}))"
    links = _links(found, panel[0] if panel else claim.label) + case
    return _cells(NUMBERS[claim.label] or "–", f"`{claim.label}`", says, links, code)


def unlabelled(known: list[Test]) -> dict[str, list[Test]]:
    """The tests of claims without a label, by the first word of their names."""
    rest = [test for test in known if not labels_of(test.name, LABELS)]
    return {word: [test for test in rest if test.name.startswith(f"test_{word}_")] for word in UNLABELLED}


def _links(found: list[Test], after: str) -> str:
    return "; ".join(test.link(after) for test in found)


def _table(*heads: str) -> str:
    return _cells(*heads) + "|" + "---|" * len(heads) + "\n"


def _cells(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |\n"


def _plain(text: str) -> str:
    """Text whose bars, stars and underscores are no Markdown."""
    return re.sub(r"([|*_\\])", r"\\\1", text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page would change")
    check = parser.parse_args().check
    for path, text in ((PAGE, page()), (NOTES_PAGE, notes_page())):
        if not check:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path.name} is not what this script writes: python docs/write_paper_to_code.py")


if __name__ == "__main__":
    main()
