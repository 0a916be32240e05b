"""Where reading begins, and what is read when more comes; the brokers and their entries are faked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest

from eos.config import Cluster
from eos.errors import InvalidInput
from eos.inspect import rows as module
from eos.inspect.rows import TopicRows
from eos.source.boundaries import Boundary
from eos.source.ranges import Range
from tests.unit.source.fake_brokers import FakeBrokers, FakeTopic, at

NAME = "persistent://public/default/t"
CLUSTER = Cluster("pulsar://nowhere")


@pytest.mark.parametrize(
    ("start", "boundary"),
    [
        ("earliest", Boundary("earliest")),
        ("latest", Boundary("latest")),
        ("5:3", Boundary("entries", entries={NAME: at("5:3")})),
        ("1700000000000", Boundary("time", time_ms=1_700_000_000_000)),
        ("2023-11-14T22:13:20+00:00", Boundary("time", time_ms=1_700_000_000_000)),
    ],
)
def test_a_start_is_a_word_an_entry_or_a_time(start: str, boundary: Boundary) -> None:
    assert TopicRows(CLUSTER, "t", start, lose=pytest.fail)._options.start == boundary


@pytest.mark.parametrize("start", ["yesterday", "2023-11-14", "5:3:1", "", "-1"])
def test_any_other_start_is_refused_with_what_can_be_written(start: str) -> None:
    with pytest.raises(InvalidInput, match="Write earliest, latest, an entry such as 8:13, a time in ISO 8601"):
        TopicRows(CLUSTER, "t", start, lose=pytest.fail)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Range]:
    """The ranges that are read; a row of each names it."""
    ranges: list[Range] = []

    def rows(self: TopicRows, part: Range) -> Iterator[Any]:
        ranges.append(part)
        yield str(part)

    monkeypatch.setattr(TopicRows, "_rows", rows)
    return ranges


def follow(
    monkeypatch: pytest.MonkeyPatch, start: str, held: FakeBrokers, count: int, between: Callable[[], None]
) -> list[Any]:
    monkeypatch.setattr(module, "PulsarBrokers", lambda options: held)
    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=lambda seconds: between()))
    return list(islice(TopicRows(CLUSTER, "t", start, lose=pytest.fail).coming(), count))


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("earliest", ["a behind -1:-1 to 5:1", "a behind 5:1 to 5:4", "b behind -1:-1 to 7:0"]),
        ("latest", ["a behind 5:1 to 5:4", "b behind -1:-1 to 7:0"]),
    ],
)
def test_what_comes_is_read_behind_what_was_read(
    monkeypatch: pytest.MonkeyPatch, read: list[Range], start: str, expected: list[str]
) -> None:
    held = FakeBrokers(a=FakeTopic([at("5:0"), at("5:1")]), b=FakeTopic())

    def more() -> None:
        held.held["a"].delivered.append(at("5:4"))
        held.held["b"].delivered.append(at("7:0"))

    assert follow(monkeypatch, start, held, len(expected), more) == expected
    assert [part.start.delivered for part in read[-2:]] == [True, False]


def test_an_entry_belongs_to_one_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PulsarBrokers", lambda options: FakeBrokers(**{f"{NAME}-partition-0": FakeTopic()}))
    with pytest.raises(InvalidInput, match="Name the partition, such as persistent://public/default/t-partition-0"):
        next(TopicRows(CLUSTER, "t", "5:3", lose=pytest.fail).stored())
