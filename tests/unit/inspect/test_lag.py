"""`eos lag` ends where brokers leave out the last messages, and counts what they leave in; the topic is faked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from eos.errors import EntriesGone
from eos.inspect.lag import _acknowledged, lag
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.net.policies import Backlog
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata

TOPIC = "persistent://public/default/t"
LAST = EntryId(5, 3)
NOTHING, FOUND = EntriesGone(TOPIC, None, None), EntriesGone(TOPIC, None, LAST)

Readers = dict[int, Callable[[], Iterator[list[int] | EntriesGone]]]
"""What a reader is given, or raises, at each read: by the entry of ledger 5 with which it begins. Then it is silent."""


class Reader:
    def __init__(self, given: Iterator[list[int] | EntriesGone]) -> None:
        self.topic = TOPIC
        self._given, self._reads = given, 0

    def read(self, timeout_s: float, until: EntryId | None = None) -> list[Entry]:
        self._reads += 1
        assert self._reads < 100, "it waits without end"
        given = next(self._given, [])
        if isinstance(given, EntriesGone):
            raise given
        return [Entry(EntryId(5, number), MessageMetadata(publish_time=1), b"", 1) for number in given]

    def last_message_id(self) -> tuple[EntryId, None]:
        return LAST, None

    def begin_again(self) -> None:
        pass

    def close(self) -> None:
        pass

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Topic:
    """Client and admin API of a topic whose subscription "job" has read nothing."""

    def __init__(self, readers: Readers, encoded: str = "job", name: str = "job") -> None:
        self._readers, self._encoded, self._name = readers, encoded, name

    def physical_topics(self, topic: str) -> list[str]:
        return [topic]

    def internal_stats(self, topic: str) -> dict[str, Any]:
        return {"cursors": {self._encoded: {"markDeletePosition": "5:-1"}}}

    def subscriptions(self, topic: str) -> tuple[str, ...]:
        return (self._name,)

    def backlog(self, topic: str) -> Backlog:
        return Backlog(0, 0, "", {})

    def entry_reader(self, topic: str, start: EntryId, *, stored: bool = False) -> Reader:
        return Reader(self._readers[start.entry]())


def counted(readers: Readers) -> int:
    topic = Topic(readers)
    (found,) = lag(cast(Client, topic), cast(Admin, topic), TOPIC, "job", 1_000)
    return found.messages


def gone_without_end() -> Iterator[list[int] | EntriesGone]:
    while True:
        yield NOTHING


@pytest.mark.parametrize(
    ("readers", "messages"),
    [
        ({0: lambda: iter([[0, 1]]), 2: gone_without_end}, 2),
        ({0: gone_without_end}, 0),
        ({0: lambda: iter([[0], NOTHING, [3]]), 1: lambda: iter([[], [3]])}, 2),
        ({0: lambda: iter([[0], NOTHING, [3]]), 1: lambda: iter([FOUND])}, 2),
        ({0: lambda: iter([[0], FOUND, [3]])}, 2),
    ],
    ids=["the last ones", "all", "some, and the last is late", "some, and the last is found", "some"],
)
def test_the_messages_are_counted_that_brokers_do_not_leave_out(readers: Readers, messages: int) -> None:
    assert counted(readers) == messages


@pytest.mark.parametrize(
    ("name", "encoded"),
    [("team:job @x", "team%3Ajob+%40x"), ("größe/1+1%", "gr%C3%B6%C3%9Fe%2F1%2B1%25"), ("job", "job")],
)
@pytest.mark.parametrize("named", [True, False])
def test_a_subscription_whose_name_brokers_encode_is_counted_too(name: str, encoded: str, named: bool) -> None:
    topic = Topic({0: lambda: iter([[0, 1, 2, 3]])}, encoded, name)
    (found,) = lag(cast(Client, topic), cast(Admin, topic), TOPIC, name if named else None, 1_000)
    assert (found.subscription, found.messages) == (name, 4)


@pytest.mark.parametrize(
    ("ranges", "taken"),
    [
        (None, []),
        ("", []),
        ("[(5:0..5:2]]", [1, 2]),
        ("[(5:0..5:1],(5:2..5:3]]", [1, 3]),
        ("[(4:7..5:0],(5:1..6:0]]", [0, 2, 3, 4]),
        ("[(5:2..5:3],(4:-1..5:0]]", [0, 3]),
    ],
)
def test_entries_that_were_acknowledged_singly_are_told(ranges: str | None, taken: list[int]) -> None:
    place, acknowledged = _acknowledged({"markDeletePosition": "4:3", "individuallyDeletedMessages": ranges})
    assert place == EntryId(4, 3)
    assert [number for number in range(5) if acknowledged(EntryId(5, number))] == taken


def test_a_subscription_with_many_holes_is_counted_in_time() -> None:
    """Of a Shared subscription a broker keeps 10,000 ranges. A million entries after them would take an hour."""
    holes = ",".join(f"(5:{2 * number}..5:{2 * number + 1}]" for number in range(10_000))
    _, acknowledged = _acknowledged({"markDeletePosition": "5:-1", "individuallyDeletedMessages": f"[{holes}]"})
    began = time.process_time()
    assert sum(acknowledged(EntryId(5, number)) for number in range(40_000)) == 10_000
    assert time.process_time() - began < 3
