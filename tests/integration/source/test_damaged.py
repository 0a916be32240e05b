"""Entries that no official client would write: their readers name them, end, and can go on without them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from eos.by_name.data_source import PulsarDataSource
from eos.errors import InvalidInput
from eos.pulsar.wire.message_id import MessageId
from tests.conftest import MakeTopic
from tests.contract.hostile_entries import HOSTILE, described, packed
from tests.contract.raw import RawProducer
from tests.integration.source.conftest import MakeStream


@pytest.fixture
def with_damage(pulsar: Any, make_topic: MakeTopic) -> Callable[[str], tuple[str, str]]:
    """Write three messages, with a hostile entry after each of the first two. Return topic and the first's place."""

    def write(kind: str) -> tuple[str, str]:
        topic = make_topic("damaged")
        producer = RawProducer(pulsar.service_url, topic)
        places = []
        for number in range(5):
            if number % 2:
                metadata, payload = HOSTILE[kind][0](number, producer.name)
            else:
                metadata, payload = described(number, producer.name), b"%d" % number
            producer.send_described(metadata, payload)
            stored = producer.event()
            assert isinstance(stored, MessageId), stored
            places.append(stored)
        producer.connection.close()
        return topic, f"{places[1].ledger}:{places[1].entry}"

    return write


def table(pulsar: Any, topic: str, **options: str) -> list[bytes]:
    """Return the values of a topic, read in this process."""
    return [row["value"] for row in read(pulsar, topic, None, **options)]


def read(pulsar: Any, topic: str, columns: StructType | None, **options: str) -> list[dict[str, Any]]:
    """Return the rows of a topic, read in this process, with these columns or all."""
    source = PulsarDataSource({"service.url": pulsar.service_url, "topic": topic} | options)
    reader = source.reader(columns or source.schema())
    batches: Any = (batch for part in reader.partitions() for batch in reader.read(part))
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", HOSTILE)
def test_an_entry_that_nobody_can_read_ends_the_query_by_its_name_or_is_left_out(
    pulsar: Any, with_damage: Callable[[str], tuple[str, str]], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic, place = with_damage(kind)
    with pytest.raises(InvalidInput, match=f"^entry {place} of {topic} can't be read: .*{HOSTILE[kind][1]}") as ended:
        table(pulsar, topic)
    assert "Set onDamagedEntry=skip to go on without such entries" in str(ended.value)
    with caplog.at_level(logging.WARNING, "eos.source"):
        assert table(pulsar, topic, ondamagedentry="skip") == [b"0", b"2", b"4"]
    assert f"entry {place} of {topic} can't be read" in "\n".join(caplog.messages)
    assert "onDamagedEntry=skip (2 so far" in "\n".join(caplog.messages)
    columns = StructType([StructField(name, StringType()) for name in ("value", "__damage")])
    kept = read(pulsar, topic, columns, ondamagedentry="keep")
    assert [row["value"] for row in kept if row["__damage"] is None] == ["0", "2", "4"]
    assert [place in row["__damage"] for row in kept if row["__damage"] is not None] == [True, False]


@pytest.mark.timeout(240)
def test_a_stream_goes_on_behind_an_entry_that_it_leaves_out(
    with_damage: Callable[[str], tuple[str, str]], make_stream: MakeStream
) -> None:
    topic, place = with_damage("a negative number of messages")
    with pytest.raises(Exception, match=f"entry {place} of {topic} can't be read"):
        make_stream(topic=topic, startingOffsets="earliest").run(None)
    streamed = make_stream(topic=topic, startingOffsets="earliest", onDamagedEntry="skip").run(None)
    assert [bytes(row.value) for row in streamed] == [b"0", b"2", b"4"]


def test_a_message_may_have_as_many_bytes_as_is_asked_for(pulsar: Any, make_topic: MakeTopic) -> None:
    topic = make_topic("large")
    producer = RawProducer(pulsar.service_url, topic)
    producer.send_described(*packed("zstd", 2**22)(0, producer.name))
    assert isinstance(producer.event(), MessageId)
    producer.connection.close()
    assert table(pulsar, topic, maxmessagebytes=str(2**22)) == [bytes(2**22)]
    with pytest.raises(InvalidInput, match=r"4,194,304 bytes once decompressed, by its metadata; 1,000,000 are taken"):
        table(pulsar, topic, maxmessagebytes="1000000")
