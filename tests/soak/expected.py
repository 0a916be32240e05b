"""What each query must give, computed anew from all rows at once, without Spark and without state."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.soak.queries import ROWS, START

Rows = list[tuple[int, ...]]


def results(query: str, batch: int) -> Rows:
    """What a batch of a query must output, sorted."""
    return sorted(_OUTPUTS[query](batch))


def _values(first: int, last: int) -> range:
    return range(first * ROWS, (last + 1) * ROWS)


def _aggregation(batch: int) -> Iterator[tuple[int, ...]]:
    """Update mode: each group that the batch touches, with all rows of its window so far."""
    opened = batch - batch % 5
    for k in range(7):
        group = [value for value in _values(opened, batch) if value % 7 == k]
        yield START + opened, k, len(group), sum(group)


def _deduplication(batch: int) -> Iterator[tuple[int, ...]]:
    """A key is let through in the batch that its first value comes in."""
    return ((value // 3,) for value in _values(batch, batch) if value % 3 == 0)


def _join(batch: int) -> Iterator[tuple[int, ...]]:
    """Each row but the first thirty has a partner, which came before it."""
    return ((value,) for value in _values(batch, batch) if value >= 30)


def _transform(batch: int) -> Iterator[tuple[int, ...]]:
    return ((k, sum(value for value in _values(0, batch) if value % 5 == k)) for k in range(5))


_OUTPUTS: dict[str, Callable[[int], Iterator[tuple[int, ...]]]] = {
    "aggregation": _aggregation,
    "deduplication": _deduplication,
    "join": _join,
    "transform": _transform,
}
