"""The share of decisions determined, answer by answer: one line per service, names at the lines, a band for the audited one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from overexplain.auditing.audit_report import AuditReport, Curve, Gate, Quota
from overexplain.report.audit_words import service_name
from overexplain.report.html.placement import Name, Placed, place_names
from overexplain.report.html.scales import Scale, counts_up_to, spaced
from overexplain.report.html.shapes import (
    Point,
    circle,
    element,
    hatch,
    line,
    number,
    picture,
    points,
    rectangle,
    text,
)
from overexplain.report.html.texts import brief
from overexplain.report.words import counted, percent

DASHES = ("", "dash", "dot", "mixed")


@dataclass(frozen=True)
class Layout:
    """Size and margins of a drawing, and the steps of its log axis."""

    style: str
    width: float
    height: float
    left: float
    right: float
    top: float
    steps: tuple[int, ...]
    size: float
    longest: float
    """The widest a name may be, as a share of the plot's width."""

    @property
    def bottom(self) -> float:
        """Where the lower axis lies: its texts need fifty pixels."""
        return self.height - 50


WIDE = Layout("wide", 880, 430, 52, 868, 14, (1, 2, 5), 13.0, 0.5)
NARROW = Layout("narrow", 358, 400, 50, 350, 14, (1, 3), 12.5, 0.74)
LOW_WIDE = Layout("wide", 880, 290, 52, 868, 14, (1, 2, 5), 13.0, 0.5)
LOW_NARROW = Layout("narrow", 358, 290, 50, 350, 14, (1, 3), 12.5, 0.74)


@dataclass(frozen=True)
class Series:
    """One line of the chart."""

    id: str
    name: str
    curve: Curve
    style: str
    brief: str
    suffix: str = ""

    @property
    def is_audited(self) -> bool:
        """Whether it stands out."""
        return "acc" in self.style


def curve_charts(report: AuditReport) -> list[str]:
    """The chart of all services, wide and narrow; nothing if nothing was measured."""
    curves = [report.curve_of(service.id) for service in report.services]
    shown = [(service, curve) for service, curve in zip(report.services, curves, strict=True) if curve is not None]
    series: list[Series] = []
    short = brief([service_name(service) for service, _ in shown])
    for (service, curve), few in zip(shown, short, strict=True):
        is_audited = service is report.audited
        style = "acc" if is_audited else DASHES[len(series) % len(DASHES)]
        series.append(Series(service.id, service_name(service), curve, style, few, ", audited" if is_audited else ""))
    gate = next((g for g in report.gates if g.expression.startswith("determined@") and 0 < g.allowed < 1), None)
    about = (
        "Share of decisions determined against answers given, one line per service. All values are in the table below."
    )
    return _both((WIDE, NARROW), series, about, "curve", gate, report.quota_of(report.audited.id))


def pooled_charts(report: AuditReport) -> list[str]:
    """What the denied know who pool their letters, beside everyone's answers; nothing if it was not measured."""
    pooled = report.curve_of(report.audited.id, "denied")
    if pooled is None:
        return []
    series = [Series("denied", "only those denied", pooled, "acc dash", "only those denied")]
    everyone = report.curve_of(report.audited.id)
    if everyone is not None:
        series.append(Series("all", "cases of all kinds", everyone, "", "cases of all kinds"))
    about = "Share of decisions determined by the pooled letters of those denied. All values are in the table below."
    return _both((LOW_WIDE, LOW_NARROW), series, about, "pooled", None, None)


def _both(
    layouts: Sequence[Layout], series: list[Series], about: str, kind: str, gate: Gate | None, quota: Quota | None
) -> list[str]:
    return [_chart(layout, series, about, kind, gate, quota) for layout in layouts] if series else []


def _chart(layout: Layout, series: list[Series], about: str, kind: str, gate: Gate | None, quota: Quota | None) -> str:
    most = max(2, *(each.curve.answers[-1] for each in series))
    across = Scale(1, most, layout.left, layout.right, is_log=True)
    up = Scale(0, 1, layout.bottom, layout.top)

    def corners(curve: Curve, shares: Sequence[float]) -> list[Point]:
        return [(across(n), up(share)) for n, share in zip(curve.answers, shares, strict=True)]

    parts = axes(layout, across, up, most)
    edges = [corners(s.curve, shares) for s in series if s.is_audited for shares in (s.curve.high_ceiling, s.curve.low)]
    parts += [_band(edges[0], edges[1])] if edges else []
    for each in (each for each in series if each.curve.undecided):
        ends = [corners(each.curve, shares) for shares in (each.curve.median_ceiling, each.curve.median)]
        parts.append(_unsettled(ends[0], ends[1], f"{kind}-{layout.style}-{each.id}", each))
    named = []
    for each in sorted(series, key=lambda each: each.is_audited):  # the audited line lies on top
        drawn = corners(each.curve, each.curve.median)
        parts.append(
            element("polyline", class_=f"ln {each.style}".rstrip(), data_service=each.id, points=points(drawn))
        )
        if len(drawn) == 1:
            parts.append(circle(drawn[0], 4, "pt acc" if each.is_audited else "pt"))
        bold, words = each.is_audited, each.name if layout.style == "wide" else each.brief
        named.append(Name(words, tuple(drawn), "a b" if bold else "", layout.size, bold, each.suffix))
    marks = []
    if gate is not None:
        level = ((layout.left, up(gate.allowed)), (layout.right, up(gate.allowed)))
        parts.append(line(*level, "gl"))
        marks.append(Name(f"gate: at most {percent(gate.allowed)}", level, "m", layout.size))
    audited = next((each for each in series if each.is_audited), None)
    at = audited.curve.at(quota.answers) if audited is not None and quota is not None else None
    if audited is not None and quota is not None and at is not None and not (quota.is_limit or quota.is_unsettled):
        place = across(quota.answers), up(audited.curve.median[at])
        parts.append(circle(place, 5, "ring"))
        edges.append(
            [(place[0] - 6, place[1]), (place[0], place[1] - 6), (place[0] + 6, place[1]), (place[0], place[1] + 6)]
        )
        marks.append(Name(f"quota: {counted(quota.answers, 'answer')}", (place,), "m", layout.size))
    *others, last = named
    names = [last, *marks, *others]  # the first choose their places first
    parts.append(_cursor(layout, series))
    area = (layout.left + 4, layout.top + 4, layout.right, layout.bottom - 5)
    for placed in place_names(names, area, (area[2] - area[0]) * layout.longest, edges):
        parts += written_name(placed)
    plot = layout.left - 10, 0.0
    parts.append(rectangle(plot, layout.right - layout.left + 20, layout.bottom, "hit", fill="transparent"))
    size = layout.width, layout.height
    frame = {"left": layout.left, "right": layout.right, "top": layout.top, "bottom": layout.bottom, "max": most}
    data = {f"data_{name}": number(edge) for name, edge in frame.items()}
    return picture(parts, size, about, f"{kind}-title-{layout.style}", f"{layout.style} {kind}", **data)


def axes(layout: Layout, across: Scale, up: Scale, most: int) -> list[str]:
    """Shares upwards, answers to the right."""
    parts = []
    for share in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        words = "100 %" if share == 1 else f"{100 * share:.0f}"
        parts.append(line((layout.left, up(share)), (layout.right, up(share)), "g" if share else "ax"))
        parts.append(text(layout.left - 8, up(share) + 4.5, words, "m e"))
    values = counts_up_to(most, layout.steps)
    for tick in spaced(values, [f"{value:,}" for value in values], across, limit=layout.width):
        parts.append(line((tick.place, layout.bottom), (tick.place, layout.bottom + 5), "ax"))
        parts.append(text(tick.middle, layout.bottom + 20, tick.words, "m c"))
    parts.append(text(layout.right, layout.bottom + 44, "answers given (log scale)", "m e"))
    return parts


def _band(upper: list[Point], lower: list[Point]) -> str:
    """The range between two lines; with one point a stroke."""
    if len(upper) == 1:
        return line(upper[0], lower[0], "span")
    return element("polygon", class_="band", points=points([*upper, *reversed(lower)]))


def _unsettled(upper: list[Point], lower: list[Point], id: str, series: Series) -> str:
    """What a limit left open, from the median that is sure to what it may be."""
    if len(upper) == 1:
        return line(upper[0], lower[0], "openl", data_unsettled=series.id)
    stripes = element("defs", hatch(id, "openl acc" if series.is_audited else "openl", ground=None))
    shape = points([*upper, *reversed(lower)])
    return stripes + element("polygon", class_="open", points=shape, fill=f"url(#{id})", data_unsettled=series.id)


def _cursor(layout: Layout, series: list[Series]) -> str:
    """What the read-out moves: hidden until the script shows it."""
    dots = "".join(element("circle", class_="acc" if s.is_audited else None, data_service=s.id, r=4.5) for s in series)
    return element("g", element("line", y1=layout.top, y2=layout.bottom) + dots, class_="cur", visibility="hidden")


def written_name(placed: Placed) -> list[str]:
    """A placed name, with its leader if it has one."""
    style = " ".join(filter(None, ["halo", placed.style, "e" if placed.at_end else ""]))
    words = text(placed.x, placed.y, placed.words, style)
    return [words] if placed.leader is None else [line(*placed.leader, "leader"), words]
