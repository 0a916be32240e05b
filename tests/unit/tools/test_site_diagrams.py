from __future__ import annotations

from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tools import site_diagrams
from tools.layers import ROW, apart, laid_out, width_of

DOCS = Path(__file__).parents[3] / "docs"
BLOCKS = [
    pytest.param(block[1], id=f"{page.stem} {number}")
    for page in sorted(DOCS.rglob("*.md"))
    for number, block in enumerate(site_diagrams._BLOCK.finditer(page.read_text(encoding="utf-8")))
]
STATES = """stateDiagram-v2
    NEW : new
    OPEN : wide open
    SHUT : shut
    [*] --> NEW
    NEW --> OPEN : <b>open</b>
    OPEN --> NEW : lost
    OPEN --> SHUT : closed / a < b
    NEW --> SHUT : refused
    SHUT --> [*]
"""


@pytest.mark.parametrize("text", BLOCKS)
def test_a_diagram_of_a_page_has_all_its_boxes_labels_and_arrows_and_none_meet(text: str) -> None:
    diagram = site_diagrams.understood(text)
    svg = ElementTree.fromstring(site_diagrams.drawn(diagram))
    shown = ["".join(one.itertext()) for one in svg.iter("text")]
    labels = [site_diagrams.plain(label) for _, _, label in diagram.arrows if label]
    assert sorted(shown) == sorted([*diagram.names.values(), *labels])
    assert len(svg.findall("path")) == len(diagram.arrows)
    layout = laid_out(diagram.names, diagram.arrows)
    boxes = [(*layout.at[name], width_of(words)) for name, words in diagram.names.items()]
    boxes += [(*layout.labels[arrow], width_of(arrow[2])) for arrow in diagram.arrows if arrow[2]]
    for (x, y, width), (other_x, other_y, other) in combinations(boxes, 2):
        assert abs(y - other_y) >= ROW or abs(x - other_x) > (width + other) / 2
    for x, y, width in boxes:
        assert width / 2 <= x <= layout.width - width / 2
        assert 0 < y < layout.height


def test_all_diagrams_of_the_pages_are_looked_at() -> None:
    assert len(BLOCKS) == sum(page.read_text(encoding="utf-8").count("```mermaid") for page in DOCS.rglob("*.md")) > 0


def test_a_diagram_says_who_asks_where_it_begins_and_where_it_ends() -> None:
    svg = ElementTree.fromstring(site_diagrams.drawn(site_diagrams.understood(STATES)))
    assert [one.text for one in svg.iter("tspan")] == ["open"]
    assert len(svg.findall("circle")) == 1
    assert [box.get("class") for box in svg.findall("rect")] == ["box", "box", "end"]
    assert svg.get("aria-label") == (
        "new, open, → wide open. wide open, lost, → new. wide open, closed / a < b, → shut. new, refused, → shut"
    )


def test_arrows_lead_down_but_for_those_that_close_a_circle() -> None:
    diagram = site_diagrams.understood(STATES)
    routes = laid_out(diagram.names, diagram.arrows).routes
    up = [arrow[2] for arrow, points in routes.items() if points[0][1] > points[-1][1]]
    assert up == ["lost"]


def test_an_arrow_is_faint_where_others_lead_there_too() -> None:
    text = 'flowchart TD\n    a["a"]\n    b["b"]\n    c["c"]\n    a --> b\n    b --> c\n    a --> c\n'
    diagram = site_diagrams.understood(text)
    assert site_diagrams.shortcuts(diagram.arrows) == {("a", "c", "")}
    svg = ElementTree.fromstring(site_diagrams.drawn(diagram))
    assert [one.get("class") for one in svg.findall("path")] == ["implied", "arrow", "arrow"]


@pytest.mark.parametrize("text", ["sequenceDiagram\n    a->>b: x", "stateDiagram-v2\n    state fork <<fork>>"])
def test_a_diagram_that_is_not_understood_ends_the_build(text: str) -> None:
    with pytest.raises(ValueError, match="the site cannot draw"):
        site_diagrams.on_page_markdown(f"Words.\n\n```mermaid\n{text}\n```\n")


def test_a_page_keeps_its_words_around_a_diagram() -> None:
    page = site_diagrams.on_page_markdown(f"Before.\n\n```mermaid\n{STATES}```\n\nAfter.\n")
    assert page.startswith('Before.\n\n<div class="diagram"><svg ')
    assert page.endswith("</svg></div>\n\nAfter.\n")
    assert len(page.splitlines()) == 5


def test_boxes_come_as_near_to_their_wishes_as_the_gaps_allow() -> None:
    assert apart([0, 1, 50], [1, 1, 1], [10, 10]) == [-4.5, 5.5, 50]
    assert apart([0, 3], [3, 1], [5]) == [-0.5, 4.5]
