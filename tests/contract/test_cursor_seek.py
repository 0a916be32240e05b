"""Moving a durable subscription on a real broker."""

from __future__ import annotations

import time

from eos.pulsar.net.client import Client
from eos.pulsar.wire.message_id import EntryId
from tests.conftest import MakeTopic


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
