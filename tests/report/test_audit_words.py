"""The words of an audit: true for whatever numbers come, never more than the numbers say."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit_sample import edge_reports, sample_report
from overexplain.auditing.audit_report import AuditReport, Finding, Gate, Panel, Quota
from overexplain.auditing.findings import with_findings
from overexplain.auditing.gates import judge, parse_gate
from overexplain.report import audit_words as words
from overexplain.report.audit_text import (
    exact_percent,
    inside,
    number_in_words,
    percent_beside,
    percent_range,
    tidy,
)

SECTIONS = ("curve", "map", "known", "defences", "premises", "verify", "glossary")


def everything(report: AuditReport) -> list[str]:
    """Every text that the words of a report consist of."""
    report = with_findings(report)
    texts = [words.title(report), words.lead(report), words.eyebrow(report)]
    texts += [words.gate_sentence(report, gate) for gate in report.gates]
    texts += [words.gate_line(report, gate) for gate in report.gates]
    for number in words.three_numbers(report):
        texts += [number.text, number.label, number.detail, number.brief]
    for section in SECTIONS:
        texts += [words.heading(report, section), *words.paragraphs(report, section)]
        texts.append(words.figure_caption(report, section))
    texts += [text for pair in (*words.premises(report), *words.glossary()) for text in pair]
    texts += [words.finding_sentence(report, finding) for finding in report.findings]
    texts += [words.advice_sentence(report, finding) for finding in report.advice]
    return texts + [words.service_name(service) for service in report.services]


def known(report: AuditReport, **changes) -> AuditReport:
    """The report with the audited service's row of answers until known changed."""
    return replace(report, known=(replace(report.known[0], **changes), *report.known[1:]))


FAILED = dict.fromkeys(("explanations", "labels", "low", "high", "angle_error", "agreement"))


@pytest.mark.parametrize("name", list(edge_reports()))
def test_every_report_has_words_on_one_line_of_bounded_length(name):
    for text in everything(edge_reports()[name]):
        assert text == " ".join(text.split())
        assert len(text) < 2_500
        assert not [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")]
        assert not re.search(r"\b(None(?! of)|nan|inf|True|False)\b", text)


@pytest.mark.parametrize("name", list(edge_reports()))
def test_one_of_something_is_singular_and_no_share_is_above_all(name):
    for text in everything(edge_reports()[name]):
        assert not re.search(
            r"(?<![\d,.])1 (answers|decisions|explanations|cases|orders|runs|features|requests)\b", text
        )
        assert not re.search(r"\b[Oo]ne (answers|decisions|explanations|cases|orders|runs|defences)\b", text)
        for share in re.findall(r"(\d+(?:\.\d+)?) %", text):
            assert float(share) <= 100 or "length" in text or "grows" in text


def test_the_sample_reads_like_a_report():
    report = sample_report()
    assert words.title(report) == "Thirty answers give this model away"
    assert words.lead(report) == (
        "Whoever chooses 30 cases well and gets each answer explained can work out every weight of the model and predict its "
        "decisions. Without explanations it took 647 decisions, to within 0.000001 radian."
    )
    assert words.eyebrow(report) == (
        "overexplain audit. LogisticRegression, 30 features, breast cancer demonstration data. Yes means benign."
    )
    numbers = {number.name: number for number in words.three_numbers(report)}
    assert list(numbers) == ["answers_until_known", "determined_at_13", "quota"]
    assert numbers["answers_until_known"].detail == "Computed, carried out, and proven: no method needs fewer."
    assert (numbers["determined_at_13"].text, numbers["determined_at_13"].unit) == ("76", "%")
    assert numbers["determined_at_13"].value == report.curves[0].median[12]
    assert numbers["determined_at_13"].detail == "70 to 80 % in 8 of 10 orders of asking. With decisions only: 0 %."
    assert (numbers["quota"].value, numbers["quota"].label) == (9, "answers in total keep it at or under 60 %")


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({"explanations": 1}, "One answer gives this model away"),
        ({"explanations": 21}, "21 answers give this model away"),
        ({"explanations": 30, "labels": 1}, "Thirty answers give this model away"),
        ({"explanations": 30, "labels": 300}, "330 answers give this model away"),
        ({"explanations": 0, "labels": 20}, "Twenty decisions give this model away"),
        ({"agreement": 0.9}, "Thirty answers give a rough copy of this model away"),
        ({"failed": "why", **FAILED}, "No attack tried gives this model away"),
        ({"failed": "why", **FAILED, "low": 40, "high": 40}, "Few of the attacks tried give this model away"),
    ],
)
def test_titles(changes, title):
    assert words.title(known(sample_report(), **changes)) == title


def test_a_title_without_any_attack_claims_none():
    assert words.title(replace(sample_report(), known=())) == "No attack on this model was carried out"


def test_weights_that_are_only_near_are_told_with_their_angle():
    lead = words.lead(known(sample_report(), angle_error=0.002, agreement=0.995))
    assert "to within 0.002 radian: >99 % of the cases were then decided alike" in lead
    assert "every weight" not in lead


def test_a_failure_is_not_called_impossible():
    texts = everything(known(sample_report(), failed="refused", **FAILED))
    assert sum("ot found is not impossible" in text for text in texts) >= 3
    assert not any("proven" in text for text in texts[:2])


def test_a_minimum_is_called_proven_only_by_a_theorem_and_only_if_it_is_met():
    report = sample_report()
    above = words.three_numbers(known(report, explanations=31))[0]
    assert "no method needs fewer" not in above.detail
    assert above.brief == "proven minimum: 30"
    bits = words.three_numbers(known(report, minimum_is="information bound"))[0]
    assert "proven" not in bits.detail + bits.brief
    assert words.heading(known(report, minimum_is="information bound"), "known").endswith("to know the model")
    assert words.heading(report, "known").endswith("and fewer are not")
    assert "proven minimum" in words.three_numbers(known(report, minimum=None))[0].detail


def curved(report: AuditReport, share: float, answers: int = 13, **changes) -> AuditReport:
    lists = dict.fromkeys(("median", "low", "high", "highest", "first"), (share,))
    curve = replace(report.curves[0], answers=(answers,), **lists, **changes)
    return replace(report, curves=(curve,))


@pytest.mark.parametrize(
    ("share", "undecided", "heading"),
    [
        (0.0, 0.0, "Thirteen explained answers determine none of the decisions nobody asked about"),
        (0.004, 0.0, "Thirteen explained answers determine <1 % of the decisions nobody asked about"),
        (0.999, 0.0, "Thirteen explained answers determine >99 % of the decisions nobody asked about"),
        (1.0, 0.0, "Thirteen explained answers determine all of the decisions nobody asked about"),
        (0.5, 0.1, "Thirteen explained answers determine at least 50 % of the decisions nobody asked about"),
        (0.0, 0.1, "What thirteen explained answers determine was not settled"),
    ],
)
def test_headings_of_the_curve(share, undecided, heading):
    assert words.heading(curved(sample_report(), share, undecided=undecided), "curve") == heading


def test_the_number_quoted_is_the_one_measured_not_the_one_wanted():
    report = curved(sample_report(), 0.5, answers=11)
    number = words.three_numbers(report)[1]
    assert (number.name, number.label) == ("determined_at_11", "of decisions determined after 11 answers")
    assert words.heading(report, "curve").startswith("Eleven explained answers")
    assert (
        words.three_numbers(curved(sample_report(), 0.5, answers=14))[1].name == "quota"
    )  # more than the verdict's 13


def test_headings_of_maps():
    report = sample_report()
    one = report.maps[0]

    def drawn(*unknown):
        panels = tuple(Panel(12, k, ("Y",), 1 - share, 0.0, share) for k, share in enumerate(unknown))
        return words.heading(replace(report, maps=(replace(one, panels=panels),)), "map")

    assert drawn(0.4, 0.2, 0.0) == "Two explanations close the map"
    assert drawn(0.4, 0.0, 0.0) == "One explanation closes the map"
    assert drawn(0.0, 0.0) == "Decisions alone close the map"
    assert drawn(0.4, 0.2) == "Explanations shrink what is unknown"
    assert drawn(0.4, 0.4) == "What is known on a map of two features"
    both = tuple(replace(one, panels=(Panel(12, 2, ("Y",), 1 - u, 0.0, u),)) for u in (0.0, 0.01))
    assert "close" not in words.heading(replace(report, maps=both), "map")  # one of the two is not closed
    assert words.heading(replace(report, maps=()), "map") == "No map was drawn"


def test_quota_numbers():
    report = sample_report()

    def number(*values):
        return words.three_numbers(replace(report, quotas=(Quota("s1", *values),)))[-1]

    none = number(0.6, 0, False, 0.0, 0.4, 20, 30)  # nothing went over the target
    assert (none.value, none.text, none.brief) == (None, "no", "not settled")
    assert none.label == "quota can be suggested to keep it at or under 60 %"
    some = number(0.6, 7, False, 0.2, 0.4, 20, 5)
    assert some.detail == "7 answers are sure to; whether more do is not known: a limit left too many cases unsettled."
    assert some.brief == "7 answers are sure to; more is not settled"
    nothing = number(0.6, 0, False, 0.0, 0.604, 20, 30)
    assert (nothing.value, nothing.brief) == (0, "the fewest tried exceed it")
    assert nothing.detail == "The smallest number of answers tried, 1, already exceeds it: 60.4 %."
    limit = number(0.6, 400, True, 0.1, None, 20, 30)
    assert limit.label == "answers in total kept it at or under 60 %"
    assert limit.detail.startswith("The most that was tried: the limit was not reached.")
    assert limit.detail.endswith("Whoever chooses the questions needs only 30.")
    one = number(0.125, 1, False, 0.1249, 0.3, 1, None)
    assert one.label == "answer in total keeps it at or under 12.5 %"
    assert one.detail.endswith("Highest of 1 order: 12.49 %.")


def test_gate_sentences_and_lines():
    report = sample_report()

    def told(text, changed=report):
        gate = judge(parse_gate(text), changed)
        return words.gate_sentence(changed, gate), words.gate_line(changed, gate)

    assert told("determined@200>60%") == (
        "Allowed: at most 60 % of decisions determined after 200 answers. Found: 100 %.",
        "determined@200: at most 60 % allowed, 100 % found",
    )
    assert told("answers-to-extract<=30") == (
        "Required: more than 30 answers until the model is known. Found: 30.",
        "answers-to-extract: more than 30 required, 30 found",
    )
    assert told("quota<1")[0] == "Required: at least 1 answer as quota. Found: 9."
    assert told("agreement>=99%")[0].startswith("Allowed: less than 99 % of cases decided alike by a rebuilt model.")
    beyond, line = told("determined@500>60%", curved(report, 0.5))
    assert beyond.endswith(
        "Could not be measured: the most tried was 13 answers. Measure more answers, or ask about fewer."
    )
    assert line.endswith("not measured")
    between = told("determined@7>60%", curved(report, 0.5))[0]
    assert between.endswith("Found: 50 %, measured after 13.")
    unsettled = curved(report, 0.5, undecided=0.25, at_most=(0.75,))
    open_, line = told("determined@13>60%", unsettled)
    assert open_.endswith("Cannot be told, so it fails: 50 to 75 %; a limit left cases unsettled.")
    assert line == "determined@13: at most 60 % allowed, cannot be told: 50 to 75 %"
    assert told("determined@13>40%", unsettled)[0].endswith("Found: at least 50 %.")
    assert told("determined@13>80%", unsettled)[1].endswith("at most 75 % found")
    failed = known(report, failed="refused", **FAILED)
    assert told("answers-to-extract<20", failed)[0].endswith(
        "No attack tried rebuilt the model; not found is not impossible."
    )
    stand_in = known(report, failed="refused", **FAILED)
    assert told("agreement>50%", stand_in)[0].endswith(
        "Found: 63 %, by always giving the commoner answer; no attack tried rebuilt the model."
    )
    limit = replace(report, quotas=(replace(report.quotas[0], is_limit=True),))
    assert told("quota<10", limit)[0].endswith("Found: 9, the most that was tried.")
    runs = known(report, low=28, runs=3)
    assert told("answers-to-extract<20", runs)[0].endswith("Found: 28, the least of 3 runs.")


def test_a_share_just_over_the_bound_does_not_look_like_the_bound():
    report = curved(sample_report(), 0.6004)
    gate = judge(parse_gate("determined@13>60%"), report)
    assert not gate.passed
    assert "Found: 60.04 %." in words.gate_sentence(report, gate)


def test_the_service_that_decided_a_gate_is_named_only_among_several():
    report = sample_report()
    both = replace(report, services=(report.services[0], replace(report.services[1], role="also audited")))
    gate = judge(parse_gate("answers-to-extract<20"), both)
    assert "Found (straight line (ℓ2)): 1." in words.gate_sentence(both, gate)


def test_a_gate_from_elsewhere_still_has_words():
    gate = Gate("leak > much", False, None, None, 3.0)
    assert words.gate_sentence(sample_report(), gate) == "The condition leak > much: could not be measured."


def test_codes_from_a_later_version_still_have_words():
    finding = Finding("new-thing", {"share": 0.5, "name": "a\nb"})
    assert words.finding_sentence(sample_report(), finding) == "New thing (share = 0.5, name = a b)."
    assert words.advice_sentence(sample_report(), Finding("other", {})) == "Other."


def test_every_code_has_words_of_its_own():
    reports = [with_findings(report) for report in (*edge_reports().values(), sample_report())]
    for report in reports:
        for finding, sentence in [(f, words.finding_sentence(report, f)) for f in report.findings] + [
            (f, words.advice_sentence(report, f)) for f in report.advice
        ]:
            assert not sentence.startswith(finding.code.replace("-", " ").capitalize() + " (")
            assert not sentence.startswith(finding.code.replace("-", " ").capitalize() + ".")


@pytest.mark.parametrize("units", ["as given", "standard deviations"])
def test_premises_tell_the_units(units):
    report = sample_report()
    told = dict(words.premises(replace(report, subject=replace(report.subject, units=units))))
    assert ("standard deviations" in told["Units"]) == (units == "standard deviations")


def test_broken_terms_are_told():
    report = sample_report()
    report = with_findings(replace(report, curves=(replace(report.curves[0], terms_broken=3),)))
    told = words.finding_sentence(report, report.findings[0])
    assert "in 3 of 20 orders the answers broke the published terms" in told
    assert "broke the published terms" in dict(words.premises(report))["Determined"]


def test_premises_tell_wrong_and_unsettled_decisions():
    report = sample_report()
    assert "None of the determined decisions contradicted the model" in dict(words.premises(report))["Determined"]
    wrong = replace(report, curves=(replace(report.curves[0], wrong=1, undecided=0.004),))
    told = dict(words.premises(wrong))["Determined"]
    assert "1 determined decision contradicted the model" in told
    assert "<1 % of the judged cases" in told


@given(st.integers(0, 10**9))
def test_numbers_in_words_mean_the_number(number):
    text = number_in_words(number)
    assert text.isalpha() == (number <= 20 or number in range(30, 100, 10))
    if not text.isalpha():
        assert int(text.replace(",", "")) == number


@given(st.floats(0, 1), st.integers(0, 1000))
def test_a_share_beside_a_bound_is_on_its_side_of_it(share, permille):
    bound = permille / 1000
    text = percent_beside(share, bound)
    if text.startswith(("more", "less")):
        assert text.startswith("more") == (share > bound)
    elif text[0] in "<>":
        assert share < 0.01 or share > 0.99
    else:
        shown = float(text.removesuffix(" %"))
        assert (shown > 100 * bound - 1e-9) if share > bound else (shown < 100 * bound + 1e-9)
        assert (text == exact_percent(bound)) <= (share == bound)
        assert (shown in (0.0, 100.0)) <= (share in (0.0, 1.0))


@given(st.text(max_size=300), st.integers(2, 80))
def test_tidy_names_are_one_short_visible_line(name, longest):
    text = tidy(name, longest)
    assert 0 < len(text) <= max(longest, len("(no name)"))
    assert text == " ".join(text.split())
    assert tidy(text, max(longest, 9)) == text


def test_small_helpers():
    assert inside("A distance") == "a distance"
    assert inside("") == ""
    assert percent_range(0.0, 1.0) == "0 to 100 %"


def test_all_rows_are_counted_in_words() -> None:
    counts = edge_reports()["huge counts"].all_cases
    of_all = "Of all 1,000,000,000 rows of the data, asked ones included,"
    assert words.all_cases(sample_report()) == ""
    assert words.all_cases(sample_report(all_cases=counts[:2])) == (
        f"{of_all} the first order of asking determined 760,000,001 (76 %) after 13 answers, "
        "1,000,000,000 (100 %) after 30 answers."
    )
    assert words.all_cases(sample_report(all_cases=counts[1:])) == (
        f"{of_all} so many are determined by the first order of asking. Sum of changes (ℓ1): 1,000,000,000 (100 %) after 30 "
        "answers. Largest change (ℓ∞): at least 999,999,999 (≥ 99 %) after 13 answers, with 1 unsettled."
    )


@pytest.mark.parametrize(
    ("source", "kind", "title"),
    [
        ("categories", "Valid cases", "26 answers give every valid decision away, thirty the whole model"),
        (
            "cases",
            "Cases like those given",
            "26 answers give every decision on cases like these away, thirty the whole model",
        ),
    ],
)
def test_what_valid_cases_need_is_told_apart_from_the_whole_model(source: str, kind: str, title: str) -> None:
    report = known(sample_report(), valid=26)
    report = replace(report, subject=replace(report.subject, directions=25, directions_from=source))
    assert words.title(report) == title
    assert words.heading(report, "known").endswith(f"and fewer are not; {kind[:1].lower()}{kind[1:]} need 26")
    number = words.three_numbers(report)[0]
    assert number.label == "answers until the whole model is known"
    assert f"{kind} need fewer: they differ in 25 of 30 directions, and by rank 26 answers" in number.detail
    assert [name for name, _ in words.premises(report)].count("By rank") == 1
    plain = sample_report()
    assert "rank" not in " ".join(
        (words.title(plain), words.lead(plain), *(n.detail for n in words.three_numbers(plain)))
    )
