"""What a terminal shows: the golden text of fixed data, 80 columns, no colour where nobody asked for it."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from overexplain.auditing.rebuilt import compare
from overexplain.auditing.survey import SurveyRow
from overexplain.extraction.extract import extract
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import l1, l2, linf
from overexplain.oracles.exact import ModelOracle
from overexplain.report.terminal import print_rebuilt, print_survey, print_text, terminal

ROW = SurveyRow(
    mechanism=Mechanism(l1),
    name=None,
    answers=30,
    labels=1,
    paper_answers=31,
    paper_labels=1,
    minimum=30,
    angle_error=6.2e-16,
    error_bound=1e-11,
    agreement=1.0,
    constant_agreement=0.6198,
)
ROWS = (
    ROW,
    replace(ROW, mechanism=Mechanism(l2), answers=1, paper_answers=1, minimum=1, angle_error=0.0, agreement=0.996),
    replace(ROW, mechanism=Mechanism(linf, l1, 0.001), paper_labels=31, agreement=0.004),
    replace(ROW, mechanism=Mechanism(l1, l2, None), answers=31, paper_answers=None, paper_labels=None, minimum=31),
    replace(ROW, mechanism=Mechanism(None), name="what we call it", minimum=None, agreement=0.0),
)
GOLDEN = """\
1 to 31 answers give this model away, depending on the service.

                                        answers  + labels  proven  angle    same
service                                    here     paper   least  error  labels
sum of changes (l1)                      30 + 1    31 + 1      30  6e-16   100 %
straight line (l2)                        1 + 1     1 + 1       1      0   >99 %
largest change (linf), robust l1 0.001   30 + 1   31 + 31      30  6e-16    <1 %
sum of changes (l1), secret radius       31 + 1         -      31  6e-16   100 %
what we call it                          30 + 1    31 + 1       -  6e-16     0 %
always the more common label                  -         -       -      -    62 %

here          explanations"""


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "TERM"):
        monkeypatch.delenv(name, raising=False)


class Screen(io.StringIO):
    """A file that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def shown(rows, file=None) -> str:
    file = io.StringIO() if file is None else file
    print_survey(rows, terminal(file))
    return file.getvalue()


def test_survey_is_as_it_should_look() -> None:
    assert shown(ROWS).startswith(GOLDEN)


def test_plain_text_within_80_columns_without_trailing_spaces() -> None:
    text = shown(ROWS)
    assert text.isascii()
    assert "\x1b" not in text
    assert all(len(line) <= 80 and line == line.rstrip() for line in text.splitlines())


def test_no_colour_on_a_terminal_either(monkeypatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    codes = {part.split("m")[0] for part in shown(ROWS, Screen()).split("\x1b[")[1:]}
    assert codes == {"1", "0"}  # bold and back: the headings


def test_wide_terminals_get_80_columns_and_narrow_ones_lose_no_number(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert shown(ROWS).startswith(GOLDEN)
    monkeypatch.setenv("COLUMNS", "60")
    text = shown(ROWS)
    assert all(len(line) <= 60 for line in text.splitlines())
    assert all(number in text for number in ("31 + 31", "6e-16", ">99 %", "62 %"))


def test_long_names_and_large_counts_wrap_instead_of_being_cut() -> None:
    row = replace(ROW, name="a service with a name " * 4, answers=123_456, paper_answers=123_457, minimum=123_456)
    text = shown([row])
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "123,456 + 1" in text
    assert text.replace("\n", " ").count("name") == 4


def test_names_are_taken_literally() -> None:
    assert "[bold]x[/] :smile:" in shown([replace(ROW, name="[bold]x[/] :smile:")])


def test_the_notes_speak_only_of_what_is_there() -> None:
    text = shown([ROW])
    assert text.startswith("30 answers give this model away, whatever the service.")
    assert "robust" not in text
    assert "secret" not in text
    assert shown([replace(ROW, answers=1)]).startswith("1 answer gives this model away")
    assert shown([]) == "No service was tried.\n"


def test_rebuilt() -> None:
    plane = Hyperplane([3.0, -4.0, 0.5], 10.0)
    oracle = ModelOracle(plane, Mechanism(l1, l2, 0.5), published=Mechanism(l1, l2, None))
    found = extract(oracle, orient=False)
    file = io.StringIO()
    print_rebuilt(compare(found, plane, oracle.mechanism, found.log), terminal(file))
    lines = file.getvalue().splitlines()
    assert lines[0] == "4 answers rebuild this model."
    starts = [
        "service",
        "method",
        "spent",
        "proven minimum",
        "angle error",
        "offset error",
        "radius",
        "Yes and No",
        "assumes",
    ]
    for start in starts:
        assert sum(line.startswith(start) for line in lines) == 1
    assert any(line.startswith("radius          0.5 (found; error bound ") for line in lines)
    assert all(len(line) <= 80 and line == line.rstrip() for line in lines)


def test_text_wraps_at_words() -> None:
    file = io.StringIO()
    print_text("scikit-learn " * 20, terminal(file))
    lines = file.getvalue().splitlines()
    assert len(lines) == 4
    assert all(set(line.split()) == {"scikit-learn"} for line in lines)
