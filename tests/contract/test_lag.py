"""`eos lag` counts what a subscription will get, where the broker's backlog counts more."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pulsar as official
import pyarrow as pa
import pytest

from eos.config import Cluster
from eos.inspect.lag import SubscriptionLag, lag
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.wire.batch import FRAME_RESERVE, BatchEncoder
from tests.clients import end, official_client, transaction
from tests.conftest import create_topic
from tests.contract.conftest import Running
from tests.integration.sparkless import eos
from tests.waiting import until

SMALL_LIMIT = FRAME_RESERVE + 20_000
ABORTED, COMMITTED, PLAIN, BATCHED = 7, 10, 3, 20
TOTAL = COMMITTED + PLAIN + BATCHED + 1
_QUIET_MS = 2000


@pytest.fixture
def topic(pulsar: Running) -> str:
    """A topic with rows of an aborted transaction, of a committed one, of none, one row in chunks, and a batch."""
    name = create_topic(pulsar.admin_url, "lag")
    with Client(Cluster(pulsar.service_url)) as client, client.producer(name) as producer:
        client.subscription(name, "job", initial="earliest").close()
        for rows, committed in ((ABORTED, False), (COMMITTED, True)):
            txn = transaction(client, name)
            for number in range(rows):
                producer.send_record(b"row %d" % number, txn)
            end(client, txn, commit=committed)
        for number in range(PLAIN):
            producer.send_record(b"plain %d" % number, None)
        chunks = BatchEncoder(max_message_size=SMALL_LIMIT, cut_above=SMALL_LIMIT)
        whole = BatchEncoder(max_message_size=1 << 20, cut_above=1 << 20)
        in_chunks = list(chunks.chunks(pa.record_batch({"value": [b"x" * 70_000]})))
        in_one = list(whole.chunks(pa.record_batch({"value": [b"batched %d" % number for number in range(BATCHED)]})))
        assert (len(in_chunks), len(in_one)) == (4, 1)
        for one in in_chunks + in_one:
            producer.send(one, None)
        producer.flush()
    return name


def receive(consumer: official.Consumer) -> Iterator[official.Message]:
    while True:
        try:
            yield consumer.receive(timeout_millis=_QUIET_MS)
        except official.Timeout:
            return


def test_the_messages_are_counted_that_the_subscription_will_get(pulsar: Running, topic: str) -> None:
    with Client(Cluster(pulsar.service_url)) as client, Admin(pulsar.admin_url) as admin:

        def now(at_most: int = 1_000) -> SubscriptionLag:
            [found] = lag(client, admin, topic, "job", at_most)
            return found

        before = now()
        assert (before.messages, before.whole) == (TOTAL, True)
        assert before.broker_backlog > before.entries, "the broker counts markers and aborted entries"
        assert before.oldest_ms is not None
        assert 0 < time.time() * 1000 - before.oldest_ms < 600_000
        assert (now(5).messages, now(5).whole) == (5, False)

        with official_client(pulsar.service_url) as opened:
            consumer = opened.subscribe(topic, "job")
            got = list(receive(consumer))
            assert len(got) == before.messages
            for row in (got[1], got[3]):
                consumer.acknowledge(row)
            until(lambda: now().messages == TOTAL - 2, "two rows are acknowledged singly")
            for row in got:
                consumer.acknowledge(row)
            until(lambda: now().messages == 0, "every row is acknowledged")
        assert now().oldest_ms is None


def test_a_subscription_whose_name_is_no_word_is_counted(pulsar: Running, topic: str) -> None:
    name = "team:größe @1+1%/x"
    with Client(Cluster(pulsar.service_url)) as client, Admin(pulsar.admin_url) as admin:
        client.subscription(topic, name, initial="earliest").close()
        for asked in (name, None):
            found = {one.subscription: one.messages for one in lag(client, admin, topic, asked, 1_000)}
            assert found[name] == TOTAL


def test_the_command_names_the_subscriptions_that_there_are(pulsar: Running, topic: str) -> None:
    done = eos(pulsar, "lag", topic, "--json")
    assert done.exit_code == 0, done.output
    [found] = json.loads(done.stdout)
    assert (found["subscription"], found["messages"]) == ("job", TOTAL)
    missing = eos(pulsar, "lag", topic, "other")
    assert 'has no durable subscription "other". Its durable subscriptions are "job"' in str(missing.exception)
