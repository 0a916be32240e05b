"""Which ledgers a query lets a real broker delete."""

from __future__ import annotations

from typing import Any

from eos.pulsar.net.admin import Admin as AdminApi
from eos.pulsar.net.client import Client
from eos.pulsar.wire.message_id import EntryId
from eos.source.offsets import Offsets, Position
from tests.conftest import MakeTopic
from tests.integration.source.conftest import Admin, Run
from tests.integration.source.streams import write
from tests.topic_commands import retain_nothing, until_deleted


def test_a_topic_with_one_message_in_each_ledger_keeps_no_ledger_that_was_read(
    run: Run, ours: Client, make_topic: MakeTopic, admin: Admin, pulsar: Any
) -> None:
    topic = make_topic("rare")
    retain_nothing(pulsar.admin_url, topic)
    query, read = run(topic=topic, startingOffsets="earliest"), []
    start = query.begins()
    for number in range(6):
        write(ours, topic, str(number))
        end = query.latest(start)
        read += query.read(start, end)
        start = end
        admin("PUT", topic, "unload")
    assert read == list("012345")
    stands = start.topics[topic].entry
    assert stands.entry == 0
    query.latest(start)
    with AdminApi(pulsar.admin_url) as api:
        until_deleted(pulsar.admin_url, topic, {one.id for one in api.ledgers(topic) if one.id < stands.ledger})
    write(ours, topic, "6")
    assert run(topic=topic).behind(start) == ["6"]


def stands(ours: Client, topic: str) -> EntryId | None:
    with ours.subscription(topic, "job", initial="latest") as cursor:
        return cursor.last_message_id()[1]


def test_a_run_releases_what_was_read_and_nothing_where_its_place_is_not_stored(
    run: Run, ours: Client, make_topic: MakeTopic, admin: Admin
) -> None:
    """As on another cluster than the one its checkpoint was written with."""
    topic = make_topic("elsewhere")
    query = run(topic=topic, startingOffsets="earliest")
    start = query.begins()
    write(ours, topic, "a", "b", "c")
    end = query.latest(start)
    assert query.read(start, end) == ["a", "b", "c"]
    admin("PUT", topic, "unload")
    write(ours, topic, "d")
    read = end.topics[topic].entry
    run(topic=topic).latest(Offsets({topic: Position(EntryId(read.ledger, read.entry + 50))}))
    assert stands(ours, topic) == start.topics[topic].entry
    run(topic=topic).latest(end)
    assert stands(ours, topic) == EntryId(read.ledger, read.entry - 1)
