"""Which ledgers a query lets a real broker delete."""

from __future__ import annotations

from typing import Any

from eos.pulsar.net.admin import Admin as AdminApi
from eos.pulsar.net.client import Client
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
