"""Where a broker puts a cursor that is not durable: where it puts a durable one that is sent to the same place."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.net.position_reader import PositionReader
from eos.pulsar.wire.message_id import EntryId, MessageId
from tests.clients import end, transaction
from tests.conftest import MakeTopic
from tests.contract.conftest import Running
from tests.waiting import until

FAR_MS = 10**15

Ask = Callable[[str, str], None]


def plain(client: Client, topic: str, *values: bytes) -> list[MessageId]:
    with client.producer(topic) as producer:
        ids = []
        for value in values:
            ids.append(producer.send_record(value, None))
            time.sleep(0.002)  # a time of its own
        return ids


def nothing(client: Client, topic: str, ask: Ask) -> list[MessageId]:
    return []


def two_ledgers(client: Client, topic: str, ask: Ask) -> list[MessageId]:
    before = plain(client, topic, b"a", b"b")
    ask("PUT", "unload")
    return before + plain(client, topic, b"c", b"d")


def emptied(client: Client, topic: str, ask: Ask) -> list[MessageId]:
    written = two_ledgers(client, topic, ask)
    ask("DELETE", "truncate")
    return written


def begun_anew(client: Client, topic: str, ask: Ask) -> list[MessageId]:
    return emptied(client, topic, ask) + plain(client, topic, b"e")


def in_transactions(client: Client, topic: str, ask: Ask) -> list[MessageId]:
    written = plain(client, topic, b"a")
    with client.producer(topic) as producer:
        for commit in (False, True, False, None):
            txn = transaction(client, topic)
            written.append(producer.send_record(b"t", txn))
            if commit is not None:
                end(client, txn, commit=commit)
    return written


def compacted(client: Client, topic: str, ask: Ask) -> list[MessageId]:
    written = plain(client, topic, b"a", b"b", b"c")
    ask("PUT", "compaction")
    return written


SHAPES = {one.__name__: one for one in (nothing, two_ledgers, emptied, begun_anew, in_transactions, compacted)}


def places(written: list[MessageId], client: Client, topic: str) -> Iterator[int | EntryId]:
    yield from (0, FAR_MS)
    yield from (EntryId(0, 0), EntryId(10**9, 7))
    now = int(time.time() * 1000)
    yield from (now - back for back in (1, 5, 20, 1000))
    for ledger in sorted({one.ledger for one in written}):
        yield from (EntryId(ledger + step, 0) for step in (-1, 1))
        last = max(one.entry for one in written if one.ledger == ledger)
        yield from (EntryId(ledger, entry) for entry in range(last + 3))
    reader = client.reader(topic)
    last_id = reader.last_message_id()
    while reader.last_message_id() > MessageId(-1, -1):
        message = reader.read(5)
        if message is None:
            break
        yield from (message.publish_time_ms + step for step in (-1, 0, 1))
        if message.message_id >= last_id:
            break
    reader.close()


def by_a_durable_one(client: Client, topic: str, place: int | EntryId) -> EntryId | None:
    cursor = client.subscription(topic, "durable", initial="earliest", alone=True)
    try:
        cursor.seek(place)
        return cursor.last_message_id()[1]
    finally:
        cursor.delete()


def at_first(position: EntryId | None, written: list[MessageId]) -> EntryId | None:
    """Return the place before the first entry for each one before it: a durable cursor may stay in a ledger of its own
    while a topic is being compacted."""
    first = min((EntryId(one.ledger, -1) for one in written), default=None)
    return position if position is None or first is None else max(position, first)


@pytest.mark.parametrize("shape", SHAPES)
def test_it_stands_where_a_durable_one_would_and_leaves_nothing(
    ours: Client, pulsar: Running, make_topic: MakeTopic, shape: str
) -> None:
    topic = make_topic(f"position-{shape.replace('_', '-')}")
    path = f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}"

    def ask(method: str, what: str) -> None:
        httpx.request(method, f"{path}/{what}", timeout=30).raise_for_status()

    written = SHAPES[shape](ours, topic, ask)
    looked = list(places(written, ours, topic))
    assert len(looked) >= 8
    told = {place: at_first(ours.position_of(topic, place), written) for place in looked}
    with Admin(pulsar.admin_url) as admin:
        assert set(admin.subscriptions(topic)) <= {"__compaction"}
    assert told == {place: at_first(by_a_durable_one(ours, topic, place), written) for place in looked}


def test_one_that_is_killed_leaves_nothing_and_none_is_backlog(
    pulsar: Running, ours: Client, make_client: Callable[[], Client], make_topic: MakeTopic
) -> None:
    """A durable one is: producers are refused at a backlog quota's next look, for ever where the planner was killed."""
    topic = make_topic("position-killed")
    plain(ours, topic, *[b"a" * 1000] * 10)
    killed = make_client()
    reader = PositionReader(killed._finder, topic, "place")
    assert reader.sought(0) == by_a_durable_one(ours, topic, 0)
    with Admin(pulsar.admin_url) as admin:
        assert admin.subscriptions(topic) == ("place",)
        assert admin.backlog(topic).bytes == 0
        cursor = ours.subscription(topic, "durable", initial="earliest")
        assert admin.backlog(topic).bytes > 10_000, "a durable one at the same place"
        cursor.delete()
        killed.close()
        until(lambda: admin.subscriptions(topic) == (), "the broker did not drop the cursor of a killed client")
