"""The terminal twin: the form it has to have, and no line over 80 columns whatever the numbers and the names."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit_sample import edge_reports, sample_report
from overexplain.auditing.audit_report import AuditReport, Gate
from overexplain.report.audit_terminal import print_audit
from overexplain.report.terminal import terminal

GOLDEN = """\
Thirty answers give this model away.
GATE FAILED  determined@200: at most 60 % allowed, 100 % found

    30    answers until the model is known (proven minimum: 30)
  76 %    of decisions determined after 13 answers (70 to 80 %, 8 of 10 orders)
     9    answers in total keep it at or under 60 % (suggested quota)

                                 answers until known    decisions determined
service                       needed  minimum  paper  after 13     30    400
sum of changes (l1)  audited      30       30     31      76 %  100 %  100 %
straight line (l2)                 1        1      1     100 %  100 %  100 %
largest change (linf)             30       30     31      86 %  100 %  100 %
l1, rounded to one decimal       335        -      -      67 %   98 %  100 %
nearest real case shown       failed        -      -       0 %    0 %   10 %
decisions only                   647      582    905       0 %    0 %    6 %

                                        attacker needs           applicant gets
defence of l1               explained      + decisions      length      invalid
none                               30               30       1.00x          0 %
distance changes                   30               30       1.63x          0 %
secret margin 0.3                  31               31       1.16x          0 %
rounded to 2 decimals              42               42       1.00x         52 %
random, within 10 %               110              110       1.07x          0 %
outward to 1 decimal              790              330       1.01x          0 %
rounded to 1 decimal            1,500              321       1.00x         48 %
random margin 0 to 0.5        > 3,000              352       1.13x          0 %
nearest real case             > 3,000              352       3.18x          0 %

failed: fewer than half of the attacks rebuilt the model; not found is not
impossible.
> 3,000: not found, which is not impossible.
"""


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "TERM"):
        monkeypatch.delenv(name, raising=False)


class Screen(io.StringIO):
    def isatty(self):
        return True


def printed(report: AuditReport, file: io.StringIO | None = None) -> str:
    out = file if file is not None else io.StringIO()
    print_audit(report, terminal(out))
    return out.getvalue()


def test_the_sample():
    assert printed(sample_report()) == GOLDEN


@pytest.mark.parametrize("name", list(edge_reports()))
def test_no_line_is_over_80_columns_and_every_character_is_plain(name):
    text = printed(edge_reports()[name])
    assert text.isascii()
    for line in text.splitlines():
        assert len(line) <= 80
        assert line.isprintable()
        assert line == line.rstrip()


@settings(max_examples=60, deadline=None)
@given(
    count=st.sampled_from([0, 1, 999, 1_000_000, 10**12]),
    length=st.sampled_from([None, 1.0, 12.34, 1e9]),
    limit=st.sampled_from([1, 3000, 10**9]),
    short=st.text(alphabet="aW|[]/ ", max_size=60),
    headline=st.sampled_from([1, 13, 400]),
)
def test_whatever_the_numbers_are_tables_fit(count, length, limit, short, headline):
    report = sample_report(headline=headline)
    known = tuple(
        replace(row, explanations=count, labels=count, minimum=count, paper_explanations=count) for row in report.known
    )
    rows = tuple(replace(row, short=short, length=length, unanswered=0.5) for row in report.defences.rows)
    report = replace(
        report,
        known=known,
        services=tuple(replace(service, short=short) for service in report.services),
        defences=replace(report.defences, rows=rows, limit=limit),
        gates=(Gate(short * 30, False, None, None, 0.0),),
    )
    assert max(map(len, printed(report).splitlines())) <= 80


def test_a_long_name_is_cut_but_the_mark_of_what_was_audited_stays():
    report = sample_report()
    services = (replace(report.services[0], short="a rather long name of mine"), *report.services[1:])
    line = next(line for line in printed(replace(report, services=services)).splitlines() if "audited" in line)
    assert line.startswith("a rather long name...  audited ")


def test_markup_in_names_is_text():
    report = sample_report()
    services = (replace(report.services[0], short="[red]x[/red] :tada:"), *report.services[1:])
    assert "[red]x[/red] :tada:" in printed(replace(report, services=services))


def test_unanswered_cases_get_a_column_only_if_there_are_any():
    report = sample_report()
    rows = (replace(report.defences.rows[0], unanswered=0.37), *report.defences.rows[1:])
    text = printed(replace(report, defences=replace(report.defences, rows=rows)))
    assert "invalid" in text
    assert "37 %" in text
    assert "37 %" not in GOLDEN


def test_a_quota_stops_the_attacker_and_is_not_called_over_the_limit():
    report = sample_report()
    stopped = replace(report.defences.rows[-1], id="quota", short="quota of 9")
    text = printed(replace(report, defences=replace(report.defences, rows=(stopped,))))
    assert "stopped" in text
    assert "> 3,000" not in text


def test_a_share_that_was_not_measured_is_not_made_up():
    report = sample_report()
    short = replace(report.curves[2], answers=(1, 2), median=(0.1, 0.2))
    curves = (*report.curves[:2], short, *report.curves[3:])
    line = next(line for line in printed(replace(report, curves=curves)).splitlines() if "linf" in line)
    assert line.split()[-3:] == ["-", "-", "-"]


def test_colour_on_a_screen_and_none_with_no_color(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")
    shown = printed(sample_report(), Screen())
    assert "\x1b[" in shown
    monkeypatch.setenv("NO_COLOR", "1")
    plain = printed(sample_report(), Screen())
    assert "\x1b" not in plain  # nor bold
    assert max(len(line) for line in GOLDEN.splitlines()) <= 80


def test_unsettled_shares_are_told():
    text = " ".join(printed(edge_reports()["nothing succeeded"]).split())
    assert "a share with >=, or a range, is what is certain" in text
