"""An audit report as one HTML page, drawn from the report and nothing else: the same report gives the same bytes.

The page allows itself one style and one script, by their hashes; whatever a name from outside contains, it stays text.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from overexplain.auditing.audit_report import AuditReport
from overexplain.report import audit_words
from overexplain.report.audit_text import tidy
from overexplain.report.html.curve_chart import curve_charts, pooled_charts
from overexplain.report.html.defence_chart import defence_charts
from overexplain.report.html.known_chart import known_charts
from overexplain.report.html.map_chart import map_panel
from overexplain.report.html.tables import panel_words, tables_of
from overexplain.report.html.texts import glued, isolated, presentable

if TYPE_CHECKING:
    from jinja2 import Template

SECTIONS = (
    ("curve", "What leaks, answer by answer"),
    ("map", "Map"),
    ("known", "Until it is known"),
    ("defences", "Defences"),
    ("premises", "Premises"),
    ("verify", "Verify"),
    ("glossary", "Glossary"),
)
_INVISIBLE = (
    *range(0x7F, 0xA0),
    0x61C,
    *range(0x200B, 0x2010),
    *range(0x2028, 0x202F),
    *range(0x2060, 0x2070),
    0xFEFF,
    0xFFFE,
    0xFFFF,
)
_ESCAPED = {code: f"\\u{code:04x}" for code in (*map(ord, "<>&"), *_INVISIBLE)}
"""What could end a script element, and what could make the source read otherwise than it is."""


def render_html(report: AuditReport) -> str:
    """The page: complete without scripts, without a single address, for light, dark, paper and screen readers."""
    from markupsafe import Markup

    shown = presentable(report)
    style, script = shipped("style.css") + _choices(len(shown.maps)), shipped("script.js")
    return template("report.html.j2").render(
        report=shown,
        style=Markup(style),
        style_hash=hash_of(style),
        script=Markup(script),
        script_hash=hash_of(script),
        data=Markup(embedded_json(report)),
        sections=[(id, name) for id, name in SECTIONS if _has(shown, id)],
        words=_Words(shown),
        glossary=audit_words.glossary(),
        tables=tables_of(shown),
        curve_charts=[Markup(chart) for chart in curve_charts(shown)],
        pooled_charts=[Markup(chart) for chart in pooled_charts(shown)],
        pooled_open=any(curve.undecided for curve in shown.curves if curve.population == "denied"),
        known_charts=[Markup(chart) for chart in known_charts(shown)],
        defence_charts=[Markup(chart) for chart in defence_charts(shown)],
        maps=_maps(shown, Markup),
        unsettled=any(panel.undecided for one in shown.maps for panel in one.panels),
        readout=_readout(shown),
    )


def embedded_json(report: Any) -> str:
    """The report's JSON in a form that cannot end a script element; any JSON reader gives it back."""
    return msgspec.json.encode(report).decode().translate(_ESCAPED)


class _Words:
    """The words of `audit_words` for one report, as the template asks for them."""

    def __init__(self, report: AuditReport) -> None:
        self._report = report

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(audit_words, name)
        return lambda *arguments: function(self._report, *arguments)


def _has(report: AuditReport, section: str) -> bool:
    """Whether a section has something to show; words alone are enough for the last three."""
    match section:
        case "curve":
            return bool(report.curves or report.findings)
        case "map":
            return bool(report.maps)
        case "known":
            return bool(report.known)
        case "defences":
            return bool(report.advice) or (report.defences is not None and bool(report.defences.rows))
        case _:
            return True


def _maps(report: AuditReport, markup: Callable[[str], str]) -> list[dict[str, Any]]:
    """The maps with their drawings and the words under each."""
    maps = []
    for i, one in enumerate(report.maps, 1):
        panels = []
        for j, panel in enumerate(one.panels):
            name, asked = panel_words(panel.decisions, panel.explanations)
            drawing = markup(map_panel(one, panel, f"map-{i}-{j}"))
            _, _, unknown, unsettled = audit_words.panel_shares(panel)
            open_ = f"Unknown: {unknown}" + f", not settled: {unsettled}" * bool(panel.undecided)
            panels.append({"drawing": drawing, "name": name, "open": open_, "asked": asked})
        maps.append({"across": tidy(one.across), "up": tidy(one.up), "panels": panels})
    return maps


def _choices(maps: int) -> str:
    """The rules by which a radio button shows its map, where the browser can; others show all maps."""
    chosen: Iterable[str] = (f"#maps:has(#pair-{i}:checked) .maps-{i}" for i in range(1, maps + 1))
    return f"{','.join(chosen)}{{display:block}}\n" if maps else ""


def _readout(report: AuditReport) -> dict[str, int]:
    """Where the read-out's slider ends and begins: positions in the list of all numbers of answers."""
    answers = sorted({n for curve in report.curves if curve.population == "all" for n in curve.answers})
    start = sum(n <= report.headline for n in answers) - 1
    return {"last": max(len(answers) - 1, 0), "start": max(start, 0)}


def hash_of(text: str) -> str:
    """The hash by which a page's policy allows one style or script."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


@cache
def shipped(name: str) -> str:
    """The text of a file beside this one: style.css, script.js."""
    return files("overexplain.report.html").joinpath(name).read_text(encoding="utf-8")


@cache
def template(name: str) -> Template:
    """A template in which every text is escaped, and kept from turning its neighbours around."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("overexplain.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: isolated(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["glued"] = glued
    return environment.get_template(name)
