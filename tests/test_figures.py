"""The pictures in docs/figures are what the library says, and what the golden grids of the paper's figures say."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import overexplain as ox
from docs_scripts import DOCS, docs_module

CASES, CLAIMS, PANELS, WRITER = (docs_module(name) for name in ("paper_cases", "paper_claims", "panels", "write"))
FIGURES = DOCS / "figures"


@pytest.mark.parametrize("name", ["definitions", "regions-counterfactual"])
def test_a_picture_is_what_the_script_draws(name: str) -> None:
    """Those that take a second; `make figures` draws all of them again."""
    assert (FIGURES / f"{name}.svg").read_text(encoding="utf-8") == WRITER.PICTURES[name]()


@pytest.mark.parametrize("name", WRITER.PICTURES)
def test_a_picture_is_small_and_readable_by_everyone(name: str) -> None:
    text = (FIGURES / f"{name}.svg").read_text(encoding="utf-8")
    assert len(text) < 150_000
    root = ET.fromstring(text)
    title, about = (root.find(f"{{http://www.w3.org/2000/svg}}{tag}") for tag in ("title", "desc"))
    assert title is not None
    assert title.text
    assert about is not None
    assert about.text
    assert "prefers-color-scheme:dark" in text
    assert not re.search(r"(href|url\((?!#)|<script|<image)", text)


def areas_of(name: str) -> list[dict[str, np.ndarray]]:
    """The corners of the areas in each panel, in pixels, as they stand in the file."""
    text = (FIGURES / f"{name}.svg").read_text(encoding="utf-8")
    found = []
    for panel in text.split("<g transform=")[1:]:
        paths = re.findall(r'<path class="(yes|no)" d="M([^z]*)z"/>', panel)
        found.append({kind: np.array(d.split(), dtype=float).reshape(-1, 2) for kind, d in paths})
    return found


def depth(corners: np.ndarray, points: np.ndarray) -> np.ndarray:
    """How many pixels each point lies inside a convex area, negative outside."""
    edges = np.roll(corners, -1, axis=0) - corners
    out = np.stack([edges[:, 1], -edges[:, 0]], axis=1) / np.linalg.norm(edges, axis=1)[:, None]
    sign = np.sign(((corners.mean(axis=0) - corners) * out).sum(axis=1))
    return ((points[:, None, :] - corners[None]) * out[None] * sign[None, :, None]).sum(axis=2).min(axis=1)


@pytest.mark.parametrize(
    "name", ["regions-factual", "regions-robust", "example-counterfactual", "example-robust", "regions-counterfactual"]
)
def test_areas_in_the_files_are_what_the_library_says_now(name: str) -> None:
    """At random points, a pixel or more off the rims: inside an area if and only if certified so."""
    rng = np.random.default_rng(3)
    logs = {
        "regions-factual": [CASES.factuals()],
        "regions-robust": [case.log() for case in CASES.ROBUST_CASES.values()],
        "regions-counterfactual": [CASES.counterfactual(distance) for distance in CASES.COUNTERFACTUALS],
        "example-counterfactual": [conversation(CASES.CF_EXAMPLE, n) for n in (1, 2)],
        "example-robust": [conversation(CASES.RCF_EXAMPLE, n) for n in (1, 2)],
    }[name]
    reach = WRITER.ROBUST_REACH if name == "regions-robust" else WRITER.REACH
    panels = areas_of(name)[: len(logs) if name == "regions-factual" else None]  # the hulls beside it have no areas
    assert len(panels) == len(logs)
    for log, areas in zip(logs, panels, strict=True):
        assert set(areas) == {"yes", "no"}
        pixels = rng.uniform(0, PANELS.SIDE, size=(25, 2))
        points = (pixels / PANELS.SIDE * 2 - 1) * [reach, -reach]
        codes = ox.Knowledge(log, robust="exact").certify(points).codes
        step = PANELS.SIDE / (2 * reach * WRITER.EXAMPLE_PER_UNIT) if "example" in name else 4.0
        for kind, code in (("yes", ox.YES), ("no", ox.NO)):
            inside = depth(areas[kind], pixels)
            assert (codes[inside > 0.2] == code).all()
            assert (codes[inside < -1.5 * step] != code).all()


def conversation(case, answers: int) -> ox.QueryLog:
    log = ox.QueryLog(mechanism=case.mechanism)
    service = ox.ModelOracle(case.model, case.mechanism)
    for x in case.asked[:answers]:
        log.add_explanation(x, service.explain(x), int(case.model.label(x)))
    return log


def test_every_figure_of_the_paper_is_on_the_page_with_its_picture() -> None:
    page = (DOCS / "paper-figures.md").read_text(encoding="utf-8")
    labels = [c.label for _, claims in CLAIMS.CLAIMS for c in claims if c.label.startswith("fig:")]
    panels = tuple(CLAIMS.SUBFIGURES)
    assert [label for label in labels if f"`{label}`" not in page and not label.startswith(panels)] == []
    for name in WRITER.PICTURES:
        assert f"(figures/{name}.svg)" in page
