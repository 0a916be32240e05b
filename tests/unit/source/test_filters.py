"""What filters leave to be read."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta, timezone
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest
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
from pyspark.sql.types import StructType

from eos.by_name.data_source import PulsarDataSource
from eos.source.batch import FilteredReader
from eos.source.boundaries import LATEST_MS
from eos.source.filters import SLACK_MS, what_passes

T, P, V = ("__topic",), ("__partition",), ("value",)
A, B1, B2 = "persistent://p/d/a", "persistent://p/d/b-partition-1", "persistent://p/d/b-partition-2"
B = "persistent://p/d/b"
WORKER = "pyspark.sql.worker.data_source_pushdown_filters"


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ([], [A, B1, B2]),
        ([EqualTo(V, 1), EqualTo(("__topic", "x"), 1)], [A, B1, B2]),
        ([EqualTo(T, B)], [B1, B2]),
        ([Not(EqualTo(T, B))], [A]),
        ([EqualNullSafe(P, None)], [A]),
        ([Not(EqualNullSafe(P, 1))], [A, B2]),
        ([EqualTo(P, None)], []),
        ([Not(EqualTo(P, 1))], [B2]),
        ([In(P, (1, 5))], [B1]),
        ([In(P, (1, None))], [B1]),
        ([Not(In(P, (1, None)))], []),
        ([Not(In(P, (1,)))], [B2]),
        ([IsNull(P)], [A]),
        ([IsNotNull(P)], [B1, B2]),
        ([GreaterThan(P, 1)], [B2]),
        ([GreaterThanOrEqual(P, 1)], [B1, B2]),
        ([LessThan(P, 2)], [B1]),
        ([LessThanOrEqual(P, 1), EqualTo(T, A)], []),
        ([StringStartsWith(T, "persistent://p")], [A, B1, B2]),
        ([StringEndsWith(T, "/a")], [A]),
        ([StringContains(T, "/d/b")], [B1, B2]),
    ],
)
def test_topics_that_can_hold_no_row_are_left_out(filters: list[Filter], left: list[str]) -> None:
    assert list(filter(what_passes(filters).takes, [A, B1, B2])) == left


def test_a_filter_that_is_not_known_leaves_everything() -> None:
    class Odd(Filter):
        attribute = T

    assert what_passes([Odd(), Not(Odd())]).takes(A)


def test_times_are_widened_and_the_narrowest_count() -> None:
    at = ("__publishTime",)
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    ms = int(noon.timestamp() * 1000)

    def bounds(*filters: Filter) -> tuple[int | None, int | None]:
        some = what_passes(filters)
        return some.from_ms, some.to_ms

    assert bounds(GreaterThan(at, noon), GreaterThanOrEqual(at, 7)) == (ms - SLACK_MS, None)
    assert bounds(LessThan(at, ms), LessThanOrEqual(at, ms + 5)) == (None, ms + SLACK_MS)
    paris = noon.astimezone(timezone(timedelta(hours=1)))
    assert bounds(EqualTo(at, paris)) == (ms - SLACK_MS, ms + SLACK_MS)
    assert bounds(Not(EqualTo(at, noon)), EqualTo(at, None), EqualTo(at, noon.replace(tzinfo=None))) == (None, None)


def test_times_that_no_broker_can_be_asked_for_leave_all_rows_in() -> None:
    at, most = ("__publishTime",), 2**63 - 1
    before = what_passes([GreaterThan(at, 0), LessThan(at, most)])
    assert (before.from_ms, before.to_ms) == (0, None)
    behind = what_passes([GreaterThan(at, most), LessThan(at, datetime(1960, 1, 1, tzinfo=UTC))])
    assert (behind.from_ms, behind.to_ms) == (LATEST_MS, 0)


@pytest.mark.parametrize(("module", "spec"), [(WORKER, None), ("__main__", ModuleSpec(WORKER, None))])
def test_filters_are_offered_only_where_spark_asks_for_them(
    monkeypatch: pytest.MonkeyPatch, module: str, spec: ModuleSpec | None
) -> None:
    source = PulsarDataSource({"service.url": "pulsar://h:1", "topic": "t"})
    assert not isinstance(source.reader(StructType()), FilteredReader)
    worker = ModuleType(module)
    worker.__spec__ = spec
    monkeypatch.setitem(sys.modules, module, worker)
    reader = source.reader(StructType())
    assert isinstance(reader, FilteredReader)
    some: list[Filter] = [EqualTo(T, A)]
    assert list(reader.pushFilters(some)) == some
