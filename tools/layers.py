"""Lay out a graph in layers, arrows downward: what stands where, so that no two boxes or labels meet.

The way of K. Sugiyama: turn round the arrows that close a circle, give each box a layer, cut long arrows at each layer
that they pass, order the layers so that few arrows cross, then place the boxes below their neighbours. A label is a box
of its own on the way of its arrow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

ROW, GAP, ARROW_GAP, MARGIN = 50.0, 18.0, 8.0, 12.0
"""Pixels from one layer to the next, between two boxes of a layer, between two arrows that pass it, and around all."""
_SWEEPS = 24
_CHARACTER, _PADDING, _POINT = 7.6, 18.0, 2.0

Arrow = tuple[str, str, str]
"""From, to, and the label, which may be empty."""


@dataclass
class Layout:
    """Where everything lies.

    Attributes:
        at: the middle of each box.
        routes: the points of each arrow, from its tail to its head.
        labels: the middle of each arrow's label, where it has one.
        width, height: of the whole, in pixels.
    """

    at: dict[str, tuple[float, float]] = field(default_factory=dict)
    routes: dict[Arrow, list[tuple[float, float]]] = field(default_factory=dict)
    labels: dict[Arrow, tuple[float, float]] = field(default_factory=dict)
    width: float = 0
    height: float = 0


def width_of(words: str) -> float:
    """Return the pixels that a box with these words needs."""
    return len(words) * _CHARACTER + _PADDING


def downward(names: Iterable[str], arrows: Iterable[Arrow]) -> dict[Arrow, tuple[str, str]]:
    """Return the two ends of each arrow, upper one first: an arrow that closes a circle goes up."""
    after: dict[str, list[Arrow]] = defaultdict(list)
    for arrow in arrows:
        after[arrow[0]].append(arrow)
    ends: dict[Arrow, tuple[str, str]] = {}
    seen: set[str] = set()
    on_the_way: set[str] = set()

    def visit(name: str) -> None:
        seen.add(name)
        on_the_way.add(name)
        for arrow in after[name]:
            ends[arrow] = (arrow[1], name) if arrow[1] in on_the_way else (name, arrow[1])
            if arrow[1] not in seen:
                visit(arrow[1])
        on_the_way.discard(name)

    for name in names:
        if name not in seen:
            visit(name)
    return ends


def layers_of(names: Sequence[str], ends: Mapping[Arrow, tuple[str, str]]) -> dict[str, int]:
    """Return each box's layer: the longest way to it from above. A label takes a layer of its own."""
    layer = dict.fromkeys(names, 0)
    for _ in names:
        for (_, _, label), (upper, lower) in ends.items():
            layer[lower] = max(layer[lower], layer[upper] + (2 if label else 1))
    return layer


def _middle(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def ordered(layers: list[list[str]], near: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Return the layers in an order with few crossings: each box at the mean place of its neighbours, up and down."""
    above, below = defaultdict(list), defaultdict(list)
    for upper, lower in near:
        below[upper].append(lower)
        above[lower].append(upper)
    best, fewest = layers, crossings(layers, below)
    for sweep in range(_SWEEPS):
        neighbours = above if sweep % 2 == 0 else below
        layers = [list(layer) for layer in layers]
        place = {name: float(number) for layer in layers for number, name in enumerate(layer)}
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wish = {name: _middle([place[one] for one in neighbours[name] or [name]]) for name in layer}
            layer.sort(key=wish.__getitem__)
            place.update((name, float(number)) for number, name in enumerate(layer))
        if (count := crossings(layers, below)) < fewest:
            best, fewest = layers, count
    return best


def crossings(layers: Sequence[Sequence[str]], below: Mapping[str, Sequence[str]]) -> int:
    """Count the pairs of arrows that cross between two layers."""
    count = 0
    for upper, lower in pairwise(layers):
        place = {name: number for number, name in enumerate(lower)}
        heads = [sorted(place[one] for one in below.get(name, ())) for name in upper]
        for number, left in enumerate(heads):
            count += sum(a > b for right in heads[number + 1 :] for a in left for b in right)
    return count


def apart(wishes: Sequence[float], weights: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """Return the places nearest to the wishes, by least squares, that leave these gaps from one to the next.

    The way of pooled neighbours: boxes that would meet become one block, at the mean of their wishes.
    """
    offsets = [sum(gaps[:number]) for number in range(len(wishes))]
    blocks: list[tuple[float, float, int]] = []
    for wish, weight, offset in zip(wishes, weights, offsets, strict=True):
        place, count = wish - offset, 1
        while blocks and blocks[-1][0] > place:
            before, mass, number = blocks.pop()
            place, weight, count = (before * mass + place * weight) / (mass + weight), mass + weight, count + number
        blocks.append((place, weight, count))
    places = [place for place, _, count in blocks for _ in range(count)]
    return [place + offset for place, offset in zip(places, offsets, strict=True)]


def laid_out(names: Mapping[str, str], arrows: Sequence[Arrow]) -> Layout:
    """Lay out boxes, `names` by id, and the arrows between them."""
    ends = downward(names, arrows)
    layer = layers_of(list(names), ends)
    width = {name: width_of(words) for name, words in names.items()}
    chains: dict[Arrow, list[str]] = {}
    label_at: dict[Arrow, str] = {}
    for number, (arrow, (upper, lower)) in enumerate(ends.items()):
        between = range(layer[upper] + 1, layer[lower])
        points = [f"{number} {row}" for row in between]
        layer.update(zip(points, between, strict=True))
        width.update(dict.fromkeys(points, _POINT))
        if arrow[2]:
            label_at[arrow] = points[(len(points) - 1) // 2]
            width[label_at[arrow]] = width_of(arrow[2])
        chains[arrow] = [upper, *points, lower]
    near = [pair for chain in chains.values() for pair in pairwise(chain)]
    rows: list[list[str]] = [[] for _ in range(max(layer.values()) + 1)]
    for name, row in layer.items():
        rows[row].append(name)
    rows = ordered(rows, near)
    x = _placed(rows, near, width, set(names))
    left = min(x[name] - width[name] / 2 for name in x) - MARGIN
    at = {name: (x[name] - left, MARGIN + ROW / 2 + layer[name] * ROW) for name in x}
    made = Layout(at={name: at[name] for name in names}, labels={arrow: at[one] for arrow, one in label_at.items()})
    for arrow, chain in chains.items():
        points_of = [at[name] for name in chain]
        made.routes[arrow] = points_of if chain[0] == arrow[0] else points_of[::-1]
    made.width = max(at[name][0] + width[name] / 2 for name in at) + MARGIN
    made.height = MARGIN * 2 + len(rows) * ROW
    return made


def _gap(left: float, right: float) -> float:
    """Return the pixels between the middles of two neighbours."""
    return (left + right) / 2 + (ARROW_GAP if left == right == _POINT else GAP)


def _placed(
    rows: list[list[str]], near: Sequence[tuple[str, str]], width: Mapping[str, float], boxes: set[str]
) -> dict[str, float]:
    """Return the middle of each box across: near its neighbours, and long arrows straight."""
    neighbours: dict[str, list[str]] = defaultdict(list)
    for upper, lower in near:
        neighbours[upper].append(lower)
        neighbours[lower].append(upper)
    x: dict[str, float] = {}
    gaps = {id(row): [_gap(width[a], width[b]) for a, b in pairwise(row)] for row in rows}
    for row in rows:
        x.update(zip(row, apart([0.0] * len(row), [1.0] * len(row), gaps[id(row)]), strict=True))
    for sweep in range(_SWEEPS * 2):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wishes = [_middle([x[one] for one in neighbours[name] or [name]]) for name in row]
            weights = [1.0 if name in boxes else 3.0 for name in row]
            x.update(zip(row, apart(wishes, weights, gaps[id(row)]), strict=True))
    return x
