"""Ranges that are cut, on a topic that holds everything a ledger can hold."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from eos.pulsar.net.client import Client
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata
from eos.pulsar.wire.txn import TxnId
from eos.source.offsets import BEGINNING
from eos.source.range_splitter import cut_at
from eos.source.ranges import Range
from tests.clients import end, transaction
from tests.conftest import MakeTopic
from tests.contract.conftest import Produce
from tests.integration.source.conftest import Admin, MakeStream, Run
from tests.integration.source.queries import read
from tests.integration.source.streams import values, write
from tests.waiting import until

LEDGERS = 4
LONG_MS = 600_000  # a busy machine takes long for what lies between begin and end


@pytest.fixture
def topic(ours: Client, make_topic: MakeTopic, admin: Admin) -> str:
    """Plain, committed, aborted and marker entries in several ledgers. One transaction spans some of these."""
    name = make_topic("everything")
    for ledger in range(LEDGERS):
        with ours.producer(name) as producer:
            committed, aborted = (transaction(ours, name, ttl_ms=LONG_MS) for _ in range(2))
            for step in range(3):
                producer.send_record(f"{ledger} committed {step}".encode(), committed)
                producer.send_record(f"{ledger} aborted {step}".encode(), aborted)
                producer.send_record(f"{ledger} plain {step}".encode(), None)
        if ledger % 2:  # a ledger ends within both transactions
            admin("PUT", name, "unload")
        end(ours, committed, commit=True)
        end(ours, aborted, commit=False)
        if not ledger % 2:
            admin("PUT", name, "unload")
    return name


@pytest.fixture
def held_up(ours: Client, topic: str) -> TxnId:
    """A transaction that is open before the last messages."""
    txn = transaction(ours, topic, ttl_ms=LONG_MS)
    write(ours, topic, "before")
    with ours.producer(topic) as producer:
        producer.send_record(b"open", txn)
    write(ours, topic, "behind")
    return txn


def test_a_range_cut_at_any_entry_adds_up_to_one_read_from_the_start(
    run: Run, pulsar: Any, ours: Client, topic: str, held_up: TxnId
) -> None:
    query = run(topic=topic, startingOffsets="earliest", **{"admin.url": pulsar.admin_url})
    last = query.brokers.last(topic)
    assert last is not None
    everything = Range(topic, BEGINNING, last)
    expected = read(query.brokers, [everything])
    assert len(expected) == 6 * LEDGERS + 1
    assert expected[-1] == "before"
    ledgers = query.brokers.ledgers(topic)
    places = [EntryId(one.id, entry) for one in ledgers for entry in range(one.entries)]
    places = [place for place in places if place < last]
    places += [EntryId(last.ledger, entry) for entry in range(last.entry)]
    assert len({place.ledger for place in places}) >= LEDGERS
    assert len(places) == 11 * LEDGERS  # nine messages and two markers in each
    for place in places:
        parts = cut_at(everything, [place], query.brokers)
        assert read(query.brokers, parts) == expected, place
    parts = cut_at(everything, sorted(places), query.brokers)
    assert len(parts) == len(expected), "a part for each message"
    assert read(query.brokers, parts) == expected
    end(ours, held_up, commit=True)
    later = query.brokers.last(topic)
    assert later is not None
    rest = read(query.brokers, cut_at(Range(topic, BEGINNING, later), sorted(places), query.brokers))
    assert rest == [*expected, "open", "behind"]


def test_a_batch_that_is_read_again_is_cut_at_the_same_places(
    run: Run, pulsar: Any, ours: Client, topic: str, admin: Admin
) -> None:
    options = {"topic": topic, "startingOffsets": "earliest", "admin.url": pulsar.admin_url, "minPartitions": "8"}
    query = run(**options)
    start = query.plan.first()
    until = query.latest(start)
    ranges = query.plan.ranges(start, until)
    assert len(ranges) == 8
    expected = [read(query.brokers, [part]) for part in ranges]
    assert [value for part in expected for value in part] == read(
        query.brokers, [Range(topic, BEGINNING, until.topics[topic].entry)]
    )
    query.brokers.close()
    write(ours, topic, "later")
    admin("PUT", topic, "unload")  # the ledger that was open has a size now
    write(ours, topic, "latest")
    again = run(**options)
    assert again.plan.ranges(start, until) == ranges
    assert [read(again.brokers, [part]) for part in ranges] == expected


def test_streams_and_tables_have_more_tasks_than_the_topic_has_partitions(
    spark: SparkSession, pulsar: Any, topic: str, make_stream: MakeStream
) -> None:
    options = {"admin.url": pulsar.admin_url, "minPartitions": "8"}
    table = spark.read.format("pulsar").options(**{"service.url": pulsar.service_url}, topic=topic, **options)
    frame = table.schema("value binary").load()
    assert frame.rdd.getNumPartitions() == 8
    expected = sorted(values(frame.collect()))
    assert len(expected) == 6 * LEDGERS
    stream = make_stream(topic=topic, **options)
    tasks: list[int] = []
    rows = stream.run(each=lambda batch, _: tasks.append(batch.rdd.getNumPartitions()))
    assert sorted(values(rows)) == expected
    assert tasks == [8]


def test_a_message_in_chunks_is_read_once_wherever_a_range_is_cut(
    run: Run, produce: Produce, ours: Client, make_topic: MakeTopic, admin: Admin
) -> None:
    topic = make_topic("chunks")
    write(ours, topic, "first")
    for numbers in ([0], [1, 2], [3, 4]):  # a chunk in the first ledger, two in each of the others
        producer = produce(topic)
        for number in numbers:
            metadata = MessageMetadata(producer_name=producer.name, sequence_id=number, publish_time=1)
            metadata.uuid, metadata.chunk_id, metadata.num_chunks_from_msg = "large", number, 5
            metadata.total_chunk_msg_size = 5
            producer.send_described(metadata, b"%d" % number)
            producer.event()
            write(ours, topic, f"behind {number}")
        admin("PUT", topic, "unload")
    query = run(topic=topic, startingOffsets="earliest")
    start = query.plan.first()
    (everything,) = query.plan.ranges(start, query.latest(start))
    places = everything_in(ours, topic)
    assert len({place.ledger for place in places}) == 3
    assert len(places) == 11
    expected = ["first", *(f"behind {number}" for number in range(4)), "01234", "behind 4"]
    for place in places:
        assert read(query.brokers, cut_at(everything, [place], query.brokers)) == expected, place
    parts = cut_at(everything, places, query.brokers)
    assert [len(read(query.brokers, [part])) for part in parts] == [1, 0, 1, 0, 1, 0, 1, 0, 1, 1, 1]


def everything_in(client: Client, topic: str) -> list[EntryId]:
    """Return where each entry that readers get is stored."""
    with client.entry_reader(topic, None) as reader:
        last, _ = reader.last_message_id()
        assert last is not None
        places: list[EntryId] = []
        while not places or places[-1] < last:
            places += [entry.id for entry in reader.read(20)]
    return places


def test_history_is_read_by_many_tasks_and_what_comes_then_by_one(
    pulsar: Any, ours: Client, make_topic: MakeTopic, make_stream: MakeStream, admin: Admin
) -> None:
    topic = make_topic("history")
    expected: list[str] = []

    def more(*names: str) -> None:
        expected.extend(names)
        write(ours, topic, *names)

    for ledger in range(4):
        more(*(f"{ledger} {number} {'x' * 500}" for number in range(6)))
        admin("PUT", topic, "unload")
    stream = make_stream(topic=topic, maxBytesPerPartition="2000", **{"admin.url": pulsar.admin_url})
    tasks: list[int] = []

    def read(batch: DataFrame, _: int) -> None:
        tasks.append(batch.rdd.getNumPartitions())

    query = stream.start(each=read)

    def until_read() -> None:
        until(
            lambda: query.exception() is not None or sum(map(len, stream.batches.values())) >= len(expected),
            lambda: f"{stream.batches} {query.exception()}",
            patience_s=120,
        )

    until_read()
    more("live 1")
    until_read()
    admin("PUT", topic, "unload")
    more("live 2", "live 3")
    until_read()
    query.stop()
    assert [value for _, rows in sorted(stream.batches.items()) for value in values(rows)] == expected
    assert tasks[0] >= 6, "the history has more than 12,000 bytes"
    assert set(tasks[1:]) <= {0, 1}
