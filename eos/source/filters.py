"""The part of a batch read that a query's filters leave. Spark filters the rows again: this only reads
less.

Where filters are not pushed down (`spark.sql.python.filterPushdown.enabled`, off by default), Spark refuses each read
by a reader that would take them. So a reader takes them only in the worker that Spark starts to push filters down.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from eos.pulsar.protocol.topics import split_partition
from eos.source.batch_plan import Wanted
from eos.source.boundaries import LATEST_MS

SLACK_MS = 3_600_000
"""The time that is read beyond the asked times: publish times may be half of it off the order of storage."""

_OPERATORS: dict[type[Filter], Callable[[Any, Any], bool]] = {
    EqualTo: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
    StringStartsWith: str.startswith,
    StringEndsWith: str.endswith,
    StringContains: operator.contains,
}
_OTHERS = (EqualNullSafe, In, IsNull, IsNotNull)


def what_passes(filters: Sequence[Filter]) -> Wanted:
    """Return which topics, and which of their times, can hold a row that passes all these filters."""
    earliest, latest = _times(filters)
    # Times that brokers can't be asked for leave a bound out, or ask for an earlier one: then more is read, never less.
    return Wanted(
        takes=lambda topic: all(_may_pass(one, topic) for one in filters),
        from_ms=None if earliest is None else min(max(0, earliest - SLACK_MS), LATEST_MS),
        to_ms=None if latest is None or latest > LATEST_MS else max(0, latest + SLACK_MS),
    )


def _may_pass(one: Filter, topic: str) -> bool:
    name, partition = split_partition(topic)
    constants: dict[Any, str | int | None] = {("__topic",): name, ("__partition",): partition}
    inner = _inner(one)
    column = getattr(inner, "attribute", None)
    if column not in constants or type(inner) not in (*_OPERATORS, *_OTHERS):
        return True
    return _passes(one, constants[column]) is True


def _inner(one: Filter) -> Filter:
    return _inner(one.child) if isinstance(one, Not) else one


def _passes(one: Filter, value: Any) -> bool | None:
    """Return what a filter says of a value, as SQL does: None is its NULL."""
    match one:
        case Not(child):
            said = _passes(child, value)
            return None if said is None else not said
        case IsNull():
            return value is None
        case IsNotNull():
            return value is not None
        case EqualNullSafe(_, other):
            return bool(value == other)
        case In(_, others):
            return None if value is None else value in others or (None if None in others else False)
    other = one.value  # type: ignore[attr-defined]
    return None if value is None or other is None else _OPERATORS[type(one)](value, other)


def _times(filters: Iterable[Filter]) -> tuple[int | None, int | None]:
    """Return the earliest and the latest publish time that passes, both included, in milliseconds since 1970."""
    earliest: list[int] = []
    latest: list[int] = []
    for one in filters:
        at = (
            _milliseconds(getattr(one, "value", None))
            if getattr(one, "attribute", None) == ("__publishTime",)
            else None
        )
        if at is None:
            continue
        if isinstance(one, EqualTo | EqualNullSafe | GreaterThan | GreaterThanOrEqual):
            earliest.append(at)
        if isinstance(one, EqualTo | EqualNullSafe | LessThan | LessThanOrEqual):
            latest.append(at)
    return max(earliest, default=None), min(latest, default=None)


def _milliseconds(value: Any) -> int | None:
    if isinstance(value, datetime):
        return int(value.timestamp() * 1000) if value.tzinfo is not None else None
    return value if isinstance(value, int) else None
