"""Messages in chunks, inside transactions: what the official Python and Java clients read, and what the broker does."""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pulsar as official
import pyarrow as pa
import pytest

from eos.config import Cluster
from eos.delivery.producers import FreshProducers
from eos.delivery.row_writer import BatchTransaction, RowWriter, WriteSettings, send_all
from eos.errors import FrameTooLarge, InvalidInput
from eos.local import jars
from eos.pulsar.net.client import Client
from eos.pulsar.net.producer import Producer
from eos.pulsar.wire.batch import FRAME_RESERVE, BatchEncoder
from tests.clients import end, transaction
from tests.conftest import MakeTopic
from tests.contract.conftest import Running
from tests.contract.official import read_until, readable_now
from tests.java_peer import JavaPeer
from tests.reading import messages_of
from tests.topic_commands import deduplicate
from tests.waiting import PATIENCE_S, until

SMALL_LIMIT = FRAME_RESERVE + 20_000
"""A broker's limit that makes messages of 20 kB large."""
TTL_MS = 60_000
TICK_MS = 1_000
"""How much before its time the broker may deliver, see `test_delayed_delivery`."""
KEYS = [b"a", b"b", b"\xff\x00", None]


class Row(NamedTuple):
    """A row as every reader should see it."""

    key: bytes | None
    ordering_key: bytes | None
    event_time: int
    properties: dict[str, str]
    value: bytes | None


@pytest.fixture(scope="module")
def java(pulsar: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaPeer]:
    folder = tmp_path_factory.mktemp("java")
    source = Path(__file__).with_name("ReadWhole.java")
    with JavaPeer(source, folder, jars.classpath(), [pulsar.service_url], ["-Xmx300m"]) as peer:
        yield peer


@pytest.fixture
def client(pulsar: Running) -> Client:
    return Client.shared(Cluster(pulsar.service_url, request_timeout_s=PATIENCE_S))


def rows(count: int, seed: int) -> list[Row]:
    """Return large and small rows, keyed and not; values that shrink and some that don't; null and empty ones."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        head = b"%06d " % number
        value = chance.choice(
            [
                None,
                b"",
                head,
                head + chance.randbytes(chance.randrange(100)),
                head + chance.randbytes(chance.randrange(19_000, 90_000)),
                head * chance.randrange(3_000, 12_000),
            ]
        )
        made.append(
            Row(
                chance.choice(KEYS),
                chance.choice([None, None, b"order"]),
                chance.choice([0, 1_790_000_000_000 + number]),
                chance.choice([{}, {"n": str(number), "ключ": ""}]),
                value,
            )
        )
    return made


def as_batch(made: list[Row], **more: Any) -> pa.RecordBatch:
    columns = {
        "value": pa.array([row.value for row in made], pa.binary()),
        "key": pa.array([row.key for row in made], pa.binary()),
        "ordering_key": pa.array([row.ordering_key for row in made], pa.binary()),
        "event_time": pa.array([row.event_time or None for row in made], pa.int64()),
        "properties": pa.array([list(row.properties.items()) for row in made], pa.map_(pa.string(), pa.string())),
    }
    return pa.RecordBatch.from_pydict(columns | more)


def write(client: Client, topic: str, batch: pa.RecordBatch, *, commit: bool, **options: Any) -> None:
    coordinator = client.coordinator(0)
    txn = coordinator.new_transaction(TTL_MS)
    settings = WriteSettings(topic, "murmur3", options.pop("compression", "none"), 1 << 20, **options)
    writer = RowWriter(settings, BatchTransaction(txn, 0), FreshProducers(client, 1 << 20))
    try:
        send_all(writer, [batch])
        writer.finish()
    except BaseException:
        writer.abandon()
        coordinator.end(txn, commit=False)
        raise
    coordinator.end(txn, commit=commit)


def line(row: Row) -> str:
    """Return a row as `ReadWhole.java` writes it."""
    pairs = "".join(f"{name}={value}," for name, value in sorted(row.properties.items()))
    value = "-" if row.value is None else f"{len(row.value)} {hashlib.sha256(row.value).hexdigest()}"
    keys = ["-" if key is None else key.hex() for key in (row.key, row.ordering_key)]
    return "\t".join([*keys, str(row.event_time), pairs, value])


def by_key(lines: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in lines:
        found.setdefault(one.split("\t")[0], []).append(one)
    return found


@pytest.mark.parametrize(
    ("compression", "batching"),
    [
        ("none", "default"),
        ("lz4", "default"),
        ("zlib", "key-based"),
        ("zstd", "default"),
        ("auto", "key-based"),
        ("none", "none"),
        ("zstd", "none"),
    ],
)
def test_the_official_clients_read_what_was_committed_and_nothing_of_what_was_aborted(
    pulsar: Running,
    client: Client,
    java: JavaPeer,
    make_topic: MakeTopic,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    compression: str,
    batching: str,
) -> None:
    monkeypatch.setattr(Producer, "max_message_size", SMALL_LIMIT)
    topic = make_topic("p-large")
    first, hidden, second = rows(60, 1), rows(30, 2), rows(60, 3)
    for made, commit in ((first, True), (hidden, False), (second, True)):
        write(client, topic, as_batch(made), commit=commit, compression=compression, batching=batching, chunking=True)
    expected = [line(row) for row in first + second]
    listed = tmp_path / "java"  # the Java client comes first: the other reading ends transactions on the topic
    assert java.order(f"{topic} {listed}", "read") == str(len(expected))
    by_java = listed.read_text(encoding="utf-8").splitlines()
    by_python = [
        line(
            Row(
                m.partition_key().encode() if m.partition_key() else None,
                m.ordering_key().encode() or None,
                m.event_timestamp(),
                dict(m.properties()),
                None if m.has_null_value() else m.data(),
            )
        )
        for m in messages_of(pulsar.service_url, topic)
    ]
    assert sorted(by_java) == sorted(expected)
    # The Python client gives keys as text: one that is none is not compared.
    told = [one.split("\t")[2:] for one in by_python]
    assert sorted(told) == sorted(one.split("\t")[2:] for one in expected)
    if batching != "key-based":
        assert by_java == expected
        assert told == [one.split("\t")[2:] for one in expected]
    else:  # a key's rows with one ordering key keep their order
        sticky = {line(row): row.ordering_key or row.key for row in first + second}
        for key in (b"order", b"a", b"b", b"\xff\x00"):
            assert [one for one in by_java if sticky[one] == key] == [one for one in expected if sticky[one] == key]


def test_a_message_of_several_megabytes_is_cut_at_the_brokers_own_limit(
    pulsar: Running, client: Client, java: JavaPeer, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic("p-megabytes")
    made = [Row(b"k", None, 0, {}, value) for value in (b"before", os.urandom(11_000_000), b"behind")]
    write(client, topic, as_batch(made), commit=True, chunking=True)
    assert java.order(f"{topic} {tmp_path / 'java'}", "read") == "3"
    assert (tmp_path / "java").read_text().splitlines() == [line(row) for row in made]
    assert [message.data() for message in messages_of(pulsar.service_url, topic)] == [row.value for row in made]


@pytest.mark.parametrize(("batching", "read"), [("default", 0), ("none", 40)])
def test_a_consumer_without_a_queue_reads_messages_that_are_in_no_batch(
    client: Client, java: JavaPeer, make_topic: MakeTopic, tmp_path: Path, batching: str, read: int
) -> None:
    """Of a batch it gets nothing: it closes (apache/pulsar#11850)."""
    topic = make_topic("p-no-queue")
    made = [one._replace(value=one.value and one.value[:9]) for one in rows(40, 7)]
    write(client, topic, as_batch(made), commit=True, batching=batching)
    assert java.order(f"{topic} {tmp_path / 'java'} 40", "read") == str(read)
    assert (tmp_path / "java").read_text(encoding="utf-8").splitlines() == [line(row) for row in made][:read]


def test_without_a_transaction_they_are_read_as_well(
    client: Client, pulsar: Running, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Producer, "max_message_size", SMALL_LIMIT)
    topic = make_topic("p-large-plain")
    made = [row for row in rows(40, 4) if row.value is not None]
    settings = WriteSettings(topic, "murmur3", "none", 1 << 20, chunking=True)
    writer = RowWriter(settings, BatchTransaction(None, 0), FreshProducers(client, 1 << 20))
    send_all(writer, [as_batch(made)])
    writer.finish()
    assert [message.data() for message in messages_of(pulsar.service_url, topic)] == [row.value for row in made]


def test_a_topic_with_deduplication_keeps_each_chunk(
    pulsar: Running, client: Client, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Producer, "max_message_size", SMALL_LIMIT)
    topic = make_topic("p-large-dedup")
    deduplicate(pulsar.admin_url, topic)
    values = [b"a", os.urandom(70_000), b"b", os.urandom(50_000)]
    for commit in (False, True):
        write(client, topic, as_batch([Row(None, None, 0, {}, one) for one in values]), commit=commit, chunking=True)
    assert [message.data() for message in messages_of(pulsar.service_url, topic)] == values


def test_what_a_topic_takes_only_in_smaller_frames_is_cut_after_the_first_refusal(
    pulsar: Running, client: Client, make_topic: Callable[..., str]
) -> None:
    topic = make_topic("p-large-limited")
    url = f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/maxMessageSize"
    httpx.post(url, json=2_000, timeout=30).raise_for_status()
    until(lambda: httpx.get(url, timeout=30).text == "2000")
    values = [os.urandom(5_000), b"small"]
    batch = as_batch([Row(b"k", None, 0, {}, one) for one in values])
    tries = 0
    while True:
        tries += 1
        try:
            write(client, topic, batch, commit=True, chunking=True)
            break
        except FrameTooLarge:
            assert tries < 5
    assert tries > 1
    assert [message.data() for message in messages_of(pulsar.service_url, topic)] == values


def test_chunks_without_the_last_one_are_no_message(pulsar: Running, ours: Client, make_topic: MakeTopic) -> None:
    """A writer that dies between two chunks: its transaction is aborted, by a successor or by its ttl."""
    topic = make_topic("p-large-died")
    txn = transaction(ours, topic)
    encoder = BatchEncoder(max_message_size=SMALL_LIMIT, cut_above=SMALL_LIMIT)
    pieces = list(encoder.chunks(pa.record_batch({"value": [os.urandom(70_000)]})))
    assert len(pieces) == 4
    died = ours.producer(topic)
    for piece in pieces[:2]:
        died.send(piece, txn)
    died.flush()
    died.abandon()
    end(ours, txn, commit=False)
    assert readable_now(pulsar.service_url, topic) == []
    with ours.producer(topic) as producer:
        for piece in pieces:
            producer.send(piece, None)
        producer.send_record(b"last", None)
    found = read_until(pulsar.service_url, topic, b"last")
    assert list(map(len, found)) == [70_000, 4]


@pytest.mark.parametrize("kind", [official.ConsumerType.Shared, official.ConsumerType.KeyShared])
def test_a_large_message_is_delivered_at_its_time(
    theirs: official.Client, client: Client, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    monkeypatch.setattr(Producer, "max_message_size", SMALL_LIMIT)
    topic = make_topic("p-large-delayed")
    consumer = theirs.subscribe(topic, "s", kind)
    due = time.time_ns() // 1_000_000 + 3_000
    value = os.urandom(70_000)
    made = [Row(b"k", None, 0, {}, value), Row(b"k", None, 0, {}, b"now")]
    times = pa.array([due, None], pa.int64())
    write(client, topic, as_batch(made, deliver_at=times), commit=True, chunking=True)
    came = {consumer.receive(60_000).data(): time.time_ns() // 1_000_000 for _ in made}
    assert came.keys() == {value, b"now"}
    assert came[value] >= due - TICK_MS


def test_without_chunking_it_is_refused_with_the_option_that_allows_it(
    client: Client, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Producer, "max_message_size", SMALL_LIMIT)
    with pytest.raises(InvalidInput, match=r"row 1 makes a message of .* Use chunking=True"):
        write(client, make_topic("p-large-refused"), pa.record_batch({"value": [b"", b"x" * 50_000]}), commit=True)


def test_a_consumer_gives_up_messages_when_the_chunks_of_too_many_are_mixed(
    theirs: official.Client, ours: Client, make_topic: MakeTopic
) -> None:
    """As tasks mix them that write to one partition: clients keep ten that are not whole, unless told otherwise."""
    topic = make_topic("p-large-mixed")
    encoder = BatchEncoder(max_message_size=SMALL_LIMIT, cut_above=SMALL_LIMIT)
    made = [list(encoder.chunks(pa.record_batch({"value": [b"%02d" % number * 15_000]}))) for number in range(12)]
    producers = [ours.producer(topic) for _ in made]
    for pieces in zip(*made, strict=True):
        for producer, piece in zip(producers, pieces, strict=True):
            producer.send(piece, None)
            producer.flush()
    for producer in producers:
        producer.close()
    begin = {"initial_position": official.InitialPosition.Earliest}
    more = theirs.subscribe(topic, "more", max_pending_chunked_message=12, **begin)
    assert {more.receive(60_000).data()[:2] for _ in made} == {b"%02d" % number for number in range(12)}
    usual = theirs.subscribe(topic, "usual", **begin)
    came = {usual.receive(60_000).data()[:2] for _ in range(10)}
    with pytest.raises(official.Timeout):
        usual.receive(500)
    assert came == {b"%02d" % number for number in range(2, 12)}
