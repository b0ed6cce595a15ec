"""The audit of a model of several classes in words: what failed, what stays unknown, and names that try to break the page."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from overexplain.auditing.multiclass import audit_multiclass
from overexplain.auditing.multiclass_report import MulticlassReport
from overexplain.errors import InvalidInput
from overexplain.geometry.argmax import ArgmaxModel
from overexplain.report import multiclass_words as words
from overexplain.report.multiclass import print_multiclass, render
from overexplain.report.terminal import terminal


@cache
def sample() -> MulticlassReport:
    rng = np.random.default_rng(0)
    secret = ArgmaxModel(rng.normal(size=(3, 2)), rng.normal(size=3))
    return audit_multiclass(secret, rng.normal(size=(40, 2)), seed=2)


def changed(**values: object) -> MulticlassReport:
    """The sample with another first service."""
    report = sample()
    return replace(report, services=(replace(report.services[0], **values), *report.services[1:]))


FAILED = {
    "explanations": None, "labels": None, "error": None, "error_bound": None, "method": None, "assumptions": (),
    "failed": "the boundaries that were found do not tie the scores of all classes together",
}  # fmt: skip


def printed(report: MulticlassReport) -> str:
    out = io.StringIO()
    print_multiclass(report, terminal(out))
    return out.getvalue()


def test_every_rendering_has_the_verdict_and_the_counts() -> None:
    report = sample()
    found = report.audited
    title = words.title(report)
    assert title == f"Three explanations and {words.several(found.labels, 'decision')} give this model away"
    for text in (printed(report), render(report, Path("x.md")), render(report, Path("x.html"))):
        assert title in " ".join(text.split())
        assert f"{found.asked:,}" in text
    assert render(report, Path("x.json")) == report.to_json() + "\n"
    with pytest.raises(InvalidInput, match="ends in"):
        render(report, Path("x.xml"))


def test_an_attack_that_failed_is_not_called_a_proof_of_safety() -> None:
    report = changed(
        **FAILED, cases=replace(sample().audited.cases, rebuilt=None), box=replace(sample().audited.box, rebuilt=None)
    )
    for text in (printed(report), render(report, Path("x.md")), render(report, Path("x.html"))):
        shown = " ".join(text.split())
        assert "does not give this model away" in shown
        assert "do not tie the scores of all classes together" in shown
        assert "not found" in shown
    assert "Not found is not impossible." in words.lead(report)
    assert [number.name for number in words.three_numbers(report)] == ["agreement"]
    assert all(len(line) <= 80 for line in printed(report).splitlines())


def test_classes_that_stay_unknown_are_named() -> None:
    report = changed(unreached=tuple(f"class {k}" for k in range(8)), error=None)
    report = replace(
        report, subject=replace(report.subject, classes=tuple(f"class {k}" for k in range(11)), shares=(1 / 11,) * 11)
    )
    assert words.title(report).endswith("part of this model away")
    assert "class 0, class 1, class 2, class 3, class 4, class 5 and 2 more" in words.lead(report)
    assert "3 of 11" in printed(report)
    assert "8 classes never given by any answer" in printed(report)
    assert render(report, Path("x.html"))


def test_names_from_outside_stay_text() -> None:
    evil = '</script><img src=x onerror="alert(1)">|*\u202e\n# x'
    report = sample()
    report = replace(
        report,
        subject=replace(report.subject, model=evil, data=evil, classes=(evil,) * 3),
        services=changed(short="l2", name=evil).services,
    )
    page = render(report, Path("x.html"))
    assert "<img" not in page
    assert "\u202e" not in page
    assert page.count("</script>") == 1
    assert MulticlassReport.from_json(page.split('id="report-data">')[1].split("</script>")[0]) == report
    text = render(report, Path("x.md"))
    assert "<img" not in text
    assert "\n# x" not in text
    assert "\u202e" not in printed(report)
