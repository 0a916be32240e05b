"""Broker deduplication, as `guarantee="deduplicated"` leans on it: names, sequence ids, and what the broker forgets."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pyarrow as pa
import pytest

from eos.errors import NetworkError, Refused
from eos.local import LocalPulsar
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.wire.batch import BatchEncoder, Chunk
from tests.contract.conftest import Running
from tests.contract.raw import client
from tests.deduplication import deduplicate
from tests.reading import values_of
from tests.waiting import until

NAME = "one-name"
MakeClient = Callable[[], Client]


def chunk(*values: str) -> Chunk:
    """One frame with a message for each value."""
    (only,) = BatchEncoder().chunks(pa.record_batch({"value": pa.array(values)}))
    return only


@pytest.fixture
def topic(pulsar: Running, make_topic: Callable[..., str]) -> str:
    """A topic that deduplicates."""
    name = make_topic("dedup")
    deduplicate(pulsar.admin_url, name)
    return name


def send(client: Client, topic: str, number: int | None, *values: str) -> int:
    """Send one frame under the name, numbered from `number` on; return what the broker said was the newest number."""
    producer = client.producer(topic, name=NAME)
    newest = producer.last_sequence_id
    if number is not None:
        producer.number_from(number)
    producer.send(chunk(*values), None)
    producer.close()
    return newest


def test_the_broker_tells_the_highest_number_of_a_name_to_whoever_opens_it_next(
    make_client: MakeClient, topic: str
) -> None:
    assert send(make_client(), topic, 7 << 32, "a", "b", "c") == -1
    assert send(make_client(), topic, None, "d") == (7 << 32) + 2, "of the frame's last message"
    other = make_client().producer(topic, name="another")
    assert other.last_sequence_id == -1
    other.close()


def test_a_frame_whose_lowest_number_was_sent_is_dropped_whole(
    pulsar: Running, make_client: MakeClient, topic: str
) -> None:
    """So rows behind what is stored must not share a frame with rows that are."""
    send(make_client(), topic, 10, "a", "b")
    again = make_client().producer(topic, name=NAME)
    again._line._next = 11  # as a client numbers it that does not ask
    again.send(chunk("b", "c"), None)
    with pytest.raises(NetworkError, match="dropped by the broker as a duplicate"):
        again.flush()
    assert values_of(pulsar.service_url, topic) == ["a", "b"]


def test_a_name_has_one_producer_at_a_time_until_its_connection_ends(make_client: MakeClient, topic: str) -> None:
    first, second = make_client(), make_client()
    producer = first.producer(topic, name=NAME)
    producer.number_from(4)
    producer.send(chunk("a"), None)
    producer.flush()
    with pytest.raises(Refused, match="ProducerBusy"):
        second.producer(topic, name=NAME)
    first.close()  # as the death of its process does
    opened = until(lambda: _opened(second, topic))
    assert opened == 4, "what it had sent"


def _opened(client: Client, topic: str) -> int | None:
    try:
        producer = client.producer(topic, name=NAME)
    except Refused:
        return None
    return producer.last_sequence_id


def test_without_deduplication_the_broker_knows_of_no_numbers_and_says_so(
    pulsar: Running, make_client: MakeClient, admin: Admin, make_topic: Callable[..., str]
) -> None:
    plain = make_topic("plain")
    send(make_client(), plain, 5, "a")
    assert send(make_client(), plain, 5, "a") == -1
    assert values_of(pulsar.service_url, plain) == ["a", "a"]
    assert admin.deduplication(plain) == "Disabled"


def test_a_broker_that_forgot_a_name_takes_its_numbers_again(
    pulsar: Running, make_client: MakeClient, topic: str
) -> None:
    """As after brokerDeduplicationProducerInactivityTimeoutMinutes: switching it off and on forgets at once."""
    send(make_client(), topic, 5, "a")
    deduplicate(pulsar.admin_url, topic, on=False)
    deduplicate(pulsar.admin_url, topic)
    assert send(make_client(), topic, 5, "a") == -1
    assert values_of(pulsar.service_url, topic) == ["a", "a"]


def test_each_partition_has_the_setting_of_its_topic_namespace_or_broker_and_its_numbers_over_a_restart(
    start_pulsar: Callable[..., LocalPulsar],
) -> None:
    broker = start_pulsar(settings={"brokerDeduplicationEnabled": "true", "transactionCoordinatorEnabled": "false"})
    topic = "persistent://public/default/plain"
    httpx.put(f"{broker.admin_url}/admin/v2/persistent/public/default/plain/partitions", json=2, timeout=30)
    part = f"{topic}-partition-1"
    with client(broker.service_url) as ours, Admin(broker.admin_url) as admin:
        assert admin.deduplication(part) == "Enabled"
        send(ours, part, 9, "a", "b")
        subscribed = ours.hold(part, "keep")
        subscribed.close()
    broker.kill()
    broker.start()
    with client(broker.service_url) as ours:
        assert send(ours, part, None, "c") == 10
