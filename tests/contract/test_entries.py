"""Whole entries read from a real broker."""

from __future__ import annotations

import time
from collections.abc import Callable

import httpx
import pyarrow as pa
import pytest

from eos.errors import TopicMissing
from eos.pulsar.net.admin import Admin, EntryKind
from eos.pulsar.net.client import Client
from eos.pulsar.net.entries import EntryReader
from eos.pulsar.wire.batch import BatchEncoder
from eos.pulsar.wire.decoding import decode
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from tests.clients import end, transaction
from tests.conftest import MakeTopic
from tests.contract.conftest import Running
from tests.waiting import PATIENCE_S, until


def read_to(reader: EntryReader, last: EntryId) -> list[Entry]:
    """Read on to this entry, which must come."""
    entries: list[Entry] = []
    while not entries or entries[-1].id < last:
        more = reader.read(PATIENCE_S)
        assert more, f"{last} did not come; the last was {entries[-1].id if entries else None}"
        entries += more
    return entries


def read_all(client: Client, topic: str, start: EntryId | None = None, *, compacted: bool = False) -> list[Entry]:
    """Read from `start` to the last entry that can be delivered."""
    with client.entry_reader(topic, start, compacted=compacted) as reader:
        last, _ = reader.last_message_id()
        return [] if last is None else read_to(reader, last)


def values(entries: list[Entry]) -> list[bytes | None]:
    column: list[bytes | None] = decode(entries, ["value"]).column("value").to_pylist()
    return column


def write(client: Client, topic: str, *batches: list[bytes]) -> None:
    """Write each batch as one entry."""
    with client.producer(topic) as producer:
        for batch in batches:
            for chunk in BatchEncoder().chunks(pa.record_batch({"value": batch})):
                producer.send(chunk, None)


def unload(pulsar: Running, topic: str) -> None:
    httpx.put(f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/unload", timeout=30).raise_for_status()


def test_entries_come_whole_and_from_the_start_inclusive(ours: Client, make_topic: MakeTopic) -> None:
    topic = make_topic("e-start")
    write(ours, topic, [b"a", b"b"], [b"c"], [b"d", b"e", b"f"])
    entries = read_all(ours, topic)
    assert [entry.num_messages for entry in entries] == [2, 1, 3]
    assert values(entries) == [b"a", b"b", b"c", b"d", b"e", b"f"]
    for place, entry in enumerate(entries):
        assert [one.id for one in read_all(ours, topic, entry.id)] == [one.id for one in entries[place:]]


def test_silence_is_an_empty_list(ours: Client, make_topic: MakeTopic) -> None:
    topic = make_topic("e-silence")
    with ours.entry_reader(topic, None) as reader:
        assert reader.last_message_id()[0] is None
        assert reader.read(0.2) == []
        write(ours, topic, [b"a"])
        assert values(reader.read(PATIENCE_S)) == [b"a"]


def test_an_open_transaction_stops_reading_and_aborted_entries_do_not_come(ours: Client, make_topic: MakeTopic) -> None:
    topic = make_topic("e-txn")
    with ours.producer(topic) as producer, ours.entry_reader(topic, None) as reader:
        before = producer.send_record(b"before", None)
        aborted, left_open = transaction(ours, topic), transaction(ours, topic)
        producer.send_record(b"aborted", aborted)
        producer.send_record(b"open", left_open)
        producer.send_record(b"behind", None)
        assert values(reader.read(PATIENCE_S)) == [b"before"]
        assert reader.read(0.3) == []
        assert reader.last_message_id()[0] == EntryId(before.ledger, before.entry)
        end(ours, aborted, commit=False)
        assert reader.read(0.3) == []
        end(ours, left_open, commit=True)
        last = reader.last_message_id()[0]
        assert last is not None
        assert values(read_to(reader, last)) == [b"open", b"behind"]


def test_reading_goes_on_without_gap_or_double_when_the_topic_is_unloaded(
    pulsar: Running, ours: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("e-unload")
    batches = [[b"%d-%d-%s" % (batch, row, b"x" * 500) for row in range(20)] for batch in range(60)]
    write(ours, topic, *batches[:40])
    with ours.entry_reader(topic, None, max_bytes=20_000) as reader:
        entries = reader.read(PATIENCE_S)
        unload(pulsar, topic)
        write(ours, topic, *batches[40:50])
        entries += reader.read(PATIENCE_S)
        unload(pulsar, topic)
        write(ours, topic, *batches[50:])
        while sum(entry.num_messages for entry in entries) < 1200:
            more = reader.read(PATIENCE_S)
            assert more
            entries += more
    assert values(entries) == [value for batch in batches for value in batch]


def test_a_topic_of_several_ledgers_that_has_room_for_one_consumer_is_read_whole(
    pulsar: Running, ours: Client, make_topic: MakeTopic
) -> None:
    """Whether a ledger that was left is stored still is asked by a consumer of its own."""
    topic = make_topic("e-one")
    for row in range(3):
        write(ours, topic, [b"%d" % row])
        unload(pulsar, topic)
    limit = f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/maxConsumers"
    httpx.post(limit, json=1, timeout=30).raise_for_status()
    until(lambda: httpx.get(f"{limit}?applied=true", timeout=30).json() == 1)
    with ours.entry_reader(topic, None) as reader:
        found: list[Entry] = []
        while len(found) < 3:
            more = reader.read(PATIENCE_S)
            assert more
            found += more
    assert values(found) == [b"0", b"1", b"2"]
    assert len({entry.id.ledger for entry in found}) == 3


def test_what_lies_before_a_ledger_and_what_an_entry_is(pulsar: Running, ours: Client, make_topic: MakeTopic) -> None:
    """By this the source tells ledgers that were lost from those that hold nothing for readers."""
    topic = make_topic("e-kinds")
    ours.subscription(topic, "keeps", initial="earliest").close()
    kinds: dict[EntryKind, EntryId] = {}
    with Admin(pulsar.admin_url) as admin:

        def unloaded(kind: EntryKind) -> EntryId:
            unload(pulsar, topic)
            newest = max(one.id for one in admin.ledgers(topic) if one.entries)
            kinds[kind] = EntryId(newest, 0)
            return kinds[kind]

        with ours.producer(topic) as producer:
            producer.send_record(b"a", None)
        unloaded("message")
        txn = transaction(ours, topic)
        with ours.producer(topic) as producer:
            producer.send_record(b"aborted", txn)
        unloaded("aborted")
        end(ours, txn, commit=False)
        kinds["gone"] = EntryId((last := unloaded("marker")).ledger, 1)
        with ours.producer(topic) as producer:
            producer.send_record(b"b", None)
        assert {kind: admin.entry_kind(topic, entry) for kind, entry in kinds.items()} == {kind: kind for kind in kinds}
        assert admin.entry_kind(topic, EntryId(last.ledger + 10**6, 0)) == "gone"
        listed = [one.id for one in admin.ledgers(topic)]
    for ledger, before in zip(listed[1:], listed, strict=False):
        with ours.entry_reader(topic, EntryId(ledger, 0)) as reader:
            assert reader.last_message_id()[1] == EntryId(before, 0)
    assert values(read_all(ours, topic)) == [b"a", b"b"]


def test_a_topic_that_vanished_is_missing_at_the_next_read(
    pulsar: Running, ours: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("e-gone")
    write(ours, topic, [b"a"])
    with ours.entry_reader(topic, None) as reader:
        assert reader.read(PATIENCE_S)
        path = topic.replace("://", "/")
        httpx.delete(f"{pulsar.admin_url}/admin/v2/{path}?force=true", timeout=30).raise_for_status()
        with pytest.raises(TopicMissing):
            reader.read(PATIENCE_S)


def test_a_cursor_begins_where_it_is_told_and_moves_with_whole_entries(ours: Client, make_topic: MakeTopic) -> None:
    topic = make_topic("e-cursor")
    write(ours, topic, [b"a", b"b"], [b"c"], [b"d", b"e"])
    ids = [entry.id for entry in read_all(ours, topic)]
    with ours.subscription(topic, "first", initial="earliest") as first:
        assert first.last_message_id()[1] == EntryId(ids[0].ledger, -1)
        first.acknowledge(ids[0])
        assert first.last_message_id() == (ids[2], ids[0])
    with ours.subscription(topic, "latest", initial="latest") as latest:
        assert latest.last_message_id()[1] == ids[2]
    with ours.subscription(topic, "there", initial=ids[1]) as there:
        assert there.last_message_id()[1] == ids[1]
    with ours.subscription(topic, "there", initial=ids[0]) as there:
        assert there.last_message_id()[1] == ids[1]


def test_a_cursor_goes_on_after_its_topic_was_unloaded(
    pulsar: Running, make_client: Callable[[], Client], make_topic: MakeTopic
) -> None:
    client, topic = make_client(), make_topic("e-cursor-unload")
    write(client, topic, [b"a"], [b"b"])
    ids = [entry.id for entry in read_all(client, topic)]
    with client.subscription(topic, "keep", initial="earliest") as cursor:
        cursor.acknowledge(ids[0])
        unload(pulsar, topic)
        # A broker may forget in an unload what it has acknowledged a moment before (seen once): then it keeps more.
        assert cursor.last_message_id()[1] in (ids[0], EntryId(ids[0].ledger, -1))
        cursor.acknowledge(ids[1])
        assert cursor.last_message_id()[1] == ids[1]


# ---- moving a subscription


def test_a_subscription_goes_back_to_an_entry_and_to_a_time(ours: Client, make_topic: MakeTopic) -> None:
    topic = make_topic("seek")
    with ours.producer(topic) as producer:
        first = producer.send_record(b"a", None)
        time.sleep(0.01)
        between = int(time.time() * 1000)
        time.sleep(0.01)
        second, third = (producer.send_record(value, None) for value in (b"b", b"c"))
    with ours.subscription(topic, "moved", initial="latest") as cursor:
        assert cursor.last_message_id()[1] == EntryId(third.ledger, third.entry)
        cursor.seek(EntryId(third.ledger, third.entry))
        assert cursor.last_message_id()[1] == EntryId(second.ledger, second.entry)
        cursor.seek(between)
        assert cursor.last_message_id()[1] == EntryId(first.ledger, first.entry)
        cursor.acknowledge(EntryId(second.ledger, second.entry))
        assert cursor.last_message_id()[1] == EntryId(second.ledger, second.entry)
        cursor.delete()
