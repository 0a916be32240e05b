"""A hook of mkdocs: the site shows each Mermaid diagram of a page as SVG, drawn here, so that no page loads a script.

A Git host draws the same text by itself. Only what the pages have is understood: `stateDiagram-v2` and `flowchart TD`.
Any other line ends the build. The colours are those of the theme, in docs/site.css.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from tools.layers import Arrow, Layout, laid_out, width_of

_BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_STATE = re.compile(r"(\w+) : (.+)")
_BOX = re.compile(r'(\w+)\["(.+)"\]')
_ARROW = re.compile(r"(\w+|\[\*\]) --> (\w+|\[\*\])(?: : (.+))?")
_HEIGHT = 30.0


@dataclass
class Diagram:
    """What a diagram says.

    Attributes:
        names: the words of each box, by id.
        arrows: from, to and label.
        starts, ends: the boxes where it begins, and those where it ends.
    """

    names: dict[str, str] = field(default_factory=dict)
    arrows: list[Arrow] = field(default_factory=list)
    starts: set[str] = field(default_factory=set)
    ends: set[str] = field(default_factory=set)


def understood(text: str) -> Diagram:
    """Read a diagram. Raises ValueError where a line is not understood."""
    kind, *lines = text.strip().splitlines()
    if kind not in ("stateDiagram-v2", "flowchart TD"):
        raise ValueError(f"the site cannot draw a Mermaid diagram that begins with {kind!r}")
    made = Diagram()
    for line in map(str.strip, lines):
        if arrow := _ARROW.fullmatch(line):
            tail, head, label = arrow[1], arrow[2], arrow[3] or ""
            if tail == "[*]":
                made.starts.add(head)
            elif head == "[*]":
                made.ends.add(tail)
            else:
                made.arrows.append((tail, head, label))
        elif box := _STATE.fullmatch(line) or _BOX.fullmatch(line):
            made.names[box[1]] = box[2]
        else:
            raise ValueError(f"the site cannot draw the line {line!r} of a Mermaid diagram")
    return made


def plain(label: str) -> str:
    """Return a label without the marks of bold type."""
    return re.sub(r"</?b>", "", label)


def drawn(diagram: Diagram) -> str:
    """Return the SVG of a diagram, in one line, since an empty line would end the block in Markdown."""
    arrows = [(tail, head, plain(label)) for tail, head, label in diagram.arrows]
    layout = laid_out(diagram.names, arrows)
    parts = [*_routes(layout, shortcuts(arrows))]
    for (tail, head, label), (_, _, marked) in zip(arrows, diagram.arrows, strict=True):
        if label:
            x, y = layout.labels[tail, head, label]
            words = escape(marked, quote=False).replace("&lt;b&gt;", '<tspan class="ours">')
            words = words.replace("&lt;/b&gt;", "</tspan>")
            parts.append(f'<text x="{x:.1f}" y="{y + 4:.1f}" class="label">{words}</text>')
    for name, words in diagram.names.items():
        (x, y), width = layout.at[name], width_of(words)
        if name in diagram.starts:
            parts.append(f'<circle cx="{x:.1f}" cy="{y - _HEIGHT / 2 - 6:.1f}" r="6" class="start"/>')
        box = f'<rect x="{x - width / 2:.1f}" y="{y - _HEIGHT / 2:.1f}" width="{width:.1f}" height="{_HEIGHT:g}" rx="6"'
        parts.append(f'{box} class="{"end" if name in diagram.ends else "box"}"/>')
        parts.append(f'<text x="{x:.1f}" y="{y + 5:.1f}">{escape(words)}</text>')
    size = f'viewBox="0 0 {layout.width:.0f} {layout.height:.0f}" width="{layout.width:.0f}"'
    return f'<svg {size} role="img" aria-label="{escape(told(diagram))}">{_MARKER}{"".join(parts)}</svg>'


_MARKER = (
    '<defs><marker id="head" viewBox="0 0 9 10" refX="9" refY="5" markerWidth="9" markerHeight="10" '
    'orient="auto" markerUnits="userSpaceOnUse"><path d="M0,0 L9,5 L0,10 z" class="head"/></marker></defs>'
)


def _routes(layout: Layout, implied: set[Arrow]) -> Iterator[str]:
    """Give the lines of the arrows, those that are implied first, so that the others lie on top.

    At a box they begin and end side by side, in the order of where they lead.
    """
    sides: dict[tuple[float, float, bool], list[tuple[float, Arrow, int]]] = {}
    for arrow, points in layout.routes.items():
        for end, beside in ((0, 1), (-1, -2)):
            (x, y), (to_x, to_y) = points[end], points[beside]
            sides.setdefault((x, y, to_y > y), []).append((to_x, arrow, end))
    port: dict[tuple[Arrow, int], tuple[float, float]] = {}
    for (x, y, down), all_here in sides.items():
        for number, (_, arrow, end) in enumerate(sorted(all_here)):
            room = min(14.0, 50.0 / len(all_here))
            shift = (number - (len(all_here) - 1) / 2) * room
            port[arrow, end] = (x + shift, y + (_HEIGHT / 2 if down else -_HEIGHT / 2))
    for arrow, points in sorted(layout.routes.items(), key=lambda one: one[0] not in implied):
        way = [port[arrow, 0], *points[1:-1], port[arrow, -1]]
        name = "implied" if arrow in implied else "arrow"
        yield f'<path d="{_curve(way)}" class="{name}" marker-end="url(#head)"/>'


def _curve(way: list[tuple[float, float]]) -> str:
    """Return a path through these points, upright at both ends and where it turns, and without a bend elsewhere."""
    leans = [0.0] * len(way)
    for number, ((x, y), (here, _), (to_x, to_y)) in enumerate(zip(way, way[1:], way[2:], strict=False), 1):
        leans[number] = (to_x - x) / (to_y - y) if (here - x) * (to_x - here) > 0 else 0.0
    path = [f"M{way[0][0]:.1f},{way[0][1]:.1f}"]
    for ((x, y), lean), ((to_x, to_y), to_lean) in pairwise(zip(way, leans, strict=True)):
        half = (to_y - y) / 2
        path.append(
            f"C{x + lean * half:.1f},{y + half:.1f} {to_x - to_lean * half:.1f},{to_y - half:.1f} {to_x:.1f},{to_y:.1f}"
        )
    return " ".join(path)


def shortcuts(arrows: Iterable[Arrow]) -> set[Arrow]:
    """Return the arrows without a label that lead where a way of several arrows leads too."""
    plain_ones = [arrow for arrow in arrows if not arrow[2]]
    after: dict[str, set[str]] = {}
    for tail, head, _ in plain_ones:
        after.setdefault(tail, set()).add(head)

    def reached(name: str) -> set[str]:
        found: set[str] = set()
        waiting = [name]
        while waiting:
            new = after.get(waiting.pop(), set()) - found
            found |= new
            waiting += new
        return found

    return {
        (tail, head, label)
        for tail, head, label in plain_ones
        if any(head in reached(other) for other in after[tail] - {head})
    }


def told(diagram: Diagram) -> str:
    """Return the arrows in words, for a reader who does not see them."""
    names = diagram.names
    return ". ".join(
        f"{names[tail]}{f', {plain(label)},' if label else ''} → {names[head]}" for tail, head, label in diagram.arrows
    )


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the text of a page with its diagrams drawn."""
    return _BLOCK.sub(lambda block: f'<div class="diagram">{drawn(understood(block[1]))}</div>', markdown)
