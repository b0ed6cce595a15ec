"""The audit of a model of several classes as one HTML page, in the style of the others: no script, nothing from outside."""

from __future__ import annotations

from overexplain.auditing.multiclass_report import MulticlassReport
from overexplain.report import multiclass_words as words
from overexplain.report.html.curve_chart import LOW_NARROW, LOW_WIDE, Layout, axes, written_name
from overexplain.report.html.page import embedded_json, hash_of, shipped, template
from overexplain.report.html.placement import Name, place_names
from overexplain.report.html.scales import Scale
from overexplain.report.html.shapes import circle, element, picture, points
from overexplain.report.html.tables import Cell, Row, Table
from overexplain.report.html.texts import with_symbols
from overexplain.report.multiclass import facts, said

SECTIONS = (
    ("known", "Until it is known"),
    ("curve", "What training learns"),
    ("premises", "Premises"),
    ("again", "Make it again"),
)


def render_html(report: MulticlassReport) -> str:
    """The page: complete without scripts, without a single address, for light, dark, paper and screen readers."""
    from markupsafe import Markup

    style = shipped("style.css")
    return template("multiclass.html.j2").render(
        title=words.title(report),
        eyebrow=words.eyebrow(report),
        lead=words.lead(report),
        numbers=words.three_numbers(report),
        style=Markup(style),
        style_hash=hash_of(style),
        data=Markup(embedded_json(report)),
        sections=SECTIONS,
        known=_table(
            "t-known", "What each service gives away; shares: rebuilt / trained / constant", *words.table(report)
        ),
        methods=[(with_symbols(service.short), said(service)) for service in report.services],
        curve=_table("t-curve", "Share decided alike by a trained copy", *words.curve_table(report)),
        curve_words=words.curve_paragraph(),
        charts=[Markup(_chart(layout, report)) for layout in (LOW_WIDE, LOW_NARROW)],
        premises=words.premises(report),
        facts=facts(report),
        version=report.provenance.overexplain,
    )


def _table(id: str, caption: str, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
    made = []
    for name, *cells in rows:
        is_audited = name.endswith(", audited")
        made.append(Row(with_symbols(name), tuple(Cell(cell) for cell in cells), is_audited))
    return Table(id, f"{caption}, table", caption, tuple(with_symbols(column) for column in head), tuple(made))


def _chart(layout: Layout, report: MulticlassReport) -> str:
    curve = report.curve
    most = max(2, curve.answers[-1])
    across = Scale(1, most, layout.left, layout.right, is_log=True)
    up = Scale(0, 1, layout.bottom, layout.top)
    parts = axes(layout, across, up, most)
    names: list[Name] = []
    for called, shares, style in (("trained: cases", curve.cases, ""), ("trained: random cases", curve.box, "dash")):
        corners = tuple((across(n), up(share)) for n, share in zip(curve.answers, shares, strict=True))
        parts.append(element("polyline", class_=f"ln {style}".rstrip(), points=points(corners)))
        names.append(Name(called, corners, "m", layout.size))
    rings = []
    for service in reversed(report.services):  # the audited ring lies on top
        if service.box.rebuilt is None:
            continue
        x, y = place = across(service.asked), up(service.box.rebuilt)
        parts.append(circle(place, 5, "ring" if service is report.audited else "hol", data_service=service.id))
        rings.append([(x - 6, y), (x, y - 6), (x + 6, y), (x, y + 6)])
        bold = service is report.audited
        names.insert(0, Name(with_symbols(service.short), (place,), "a b" if bold else "", layout.size, bold))
    area = (layout.left + 4, layout.top + 4, layout.right, layout.bottom - 5)
    for placed in place_names(names, area, (area[2] - area[0]) * layout.longest, rings):
        parts += written_name(placed)
    about = "Share decided alike by a trained copy, against answers. All values are in the table below."
    return picture(parts, (layout.width, layout.height), about, f"curve-title-{layout.style}", f"{layout.style} curve")
