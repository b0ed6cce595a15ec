"""SVG and nothing else: elements as text, every attribute and every letter escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from overexplain.report.html.texts import isolated

Point = tuple[float, float]


def number(value: float) -> str:
    """A coordinate, to a tenth of a pixel.

    >>> number(44.0), number(139.26), number(-0.01)
    ('44', '139.3', '0')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def element(tag: str, content: str = "", **attributes: str | float | None) -> str:
    """An element; `content` is markup already. A trailing underscore in an attribute's name is left out, others become hyphens.

    >>> element("line", class_="g", x1=1.0, data_service='"')
    '<line class="g" x1="1" data-service="&quot;"/>'
    """
    given = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items() if value is not None}
    inside = "".join(f' {k}="{number(v) if isinstance(v, float) else escape(str(v))}"' for k, v in given.items())
    return f"<{tag}{inside}>{content}</{tag}>" if content else f"<{tag}{inside}/>"


def text(x: float, y: float, words: str, style: str = "") -> str:
    """Words at a point; the style's classes say where they begin: `e` ends there, `c` is centred."""
    return element("text", escape(isolated(words)), class_=style or None, x=float(x), y=float(y))


def line(start: Point, end: Point, style: str, **data: str) -> str:
    """A straight line."""
    (x1, y1), (x2, y2) = start, end
    return element("line", class_=style, x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), **data)


def circle(centre: Point, radius: float, style: str, **data: str) -> str:
    """A circle."""
    return element("circle", class_=style, cx=float(centre[0]), cy=float(centre[1]), r=float(radius), **data)


def rectangle(corner: Point, width: float, height: float, style: str | None = None, fill: str | None = None) -> str:
    """A rectangle, from its upper left corner."""
    x, y = corner
    return element("rect", class_=style, x=float(x), y=float(y), width=float(width), height=float(height), fill=fill)


def diamond(centre: Point, radius: float, style: str, **data: str) -> str:
    """A square on its corner."""
    (x, y), r = centre, number(radius)
    return element("path", class_=style, d=f"M{number(x)} {number(y - radius)}l{r} {r} -{r} {r} -{r} -{r}z", **data)


def hatch(id: str, style: str = "hl", ground: str | None = "hb") -> str:
    """A pattern of stripes, on paper or on whatever lies beneath."""
    stripes = "" if ground is None else element("rect", class_=ground, width="7", height="7")
    stripes += element("line", class_=style, x1="0", y1="0", x2="0", y2="7")
    turned = {"patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"}
    return element("pattern", stripes, id=id, width="7", height="7", **turned)


def dots(id: str) -> str:
    """A pattern of dots, on paper."""
    inside = element("rect", class_="hb", width="6", height="6") + circle((3, 3), 1.1, "dt")
    return element("pattern", inside, id=id, width="6", height="6", patternUnits="userSpaceOnUse")


def pointer(tip: Point, style: str, **data: str) -> str:
    """A triangle that points to the right: a value that lies further out."""
    x, y = tip
    return element("path", class_=style, d=f"M{number(x - 12)} {number(y - 6.5)}l12 6.5 -12 6.5z", **data)


def points(places: Iterable[Point]) -> str:
    """Places as the `points` of a polyline or polygon."""
    return " ".join(f"{number(x)},{number(y)}" for x, y in places)


def picture(
    parts: Iterable[str], size: tuple[float, float], title: str, id: str, style: str, **data: str | float | None
) -> str:
    """A whole drawing with its title for who cannot see it."""
    inside = element("title", escape(isolated(title)), id=id) + "\n" + "\n".join(parts) + "\n"
    box = f"0 0 {number(size[0])} {number(size[1])}"
    return element("svg", inside, class_=style or None, viewBox=box, role="img", aria_labelledby=id, **data)
