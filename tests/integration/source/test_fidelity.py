"""Every part of a message comes out as the official client put it in."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pulsar as official
import pytest
from pyspark.sql import SparkSession

from eos.local import checks, jars
from tests.conftest import MakeTopic
from tests.integration.source.streams import Stream

AT_MS = 1_357_043_400_250


def test_every_column_of_a_message(
    spark: SparkSession, pulsar: Any, theirs: official.Client, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic("columns", 2)
    producer = theirs.create_producer(
        f"{topic}-partition-1", batching_enabled=False, compression_type=official.CompressionType.ZSTD
    )
    first = producer.send(
        b"\x00\xff", partition_key="a key", ordering_key="order", event_timestamp=AT_MS, properties={"from": "JFK"}
    )
    producer.send(None)
    producer.send(b"", properties={"": "empty name", "ключ": "значение"})

    rows = Stream(spark, pulsar.service_url, tmp_path / "c", topic=topic).run(None)
    assert [bytes(row.value) if row.value is not None else None for row in rows] == [b"\x00\xff", None, b""]
    one, none, last = rows
    assert (bytes(one["__key"]), bytes(one["__orderingKey"])) == (b"a key", b"order")
    assert one["__eventTime"].astimezone(UTC) == datetime.fromtimestamp(AT_MS / 1000, UTC)
    assert one["__messageProperties"] == {"from": "JFK"}
    assert last["__messageProperties"] == {"": "empty name", "ключ": "значение"}
    assert (one["__topic"], one["__partition"]) == (topic, 1)
    assert tuple(one["__messageId"]) == (first.ledger_id(), first.entry_id(), -1)
    assert abs(one["__publishTime"].timestamp() - datetime.now(UTC).timestamp()) < 600
    assert [none[column] for column in ("__key", "__orderingKey", "__eventTime")] == [None] * 3
    assert none["__messageProperties"] == {}


def java_writes(pulsar: Any, topic: str, count: int, listed: Path) -> None:
    """Let the Java client write so many messages, and list them in the topic's order."""
    command = [str(checks.java()), "-cp", jars.classpath(), str(Path(__file__).with_name("Messages.java"))]
    said = subprocess.run(
        [*command, pulsar.service_url, topic, str(count), str(listed)], capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr[-4_000:]


def expected(line: str) -> tuple[Any, ...]:
    """Return what one line of the list says, as the source's columns."""
    ledger, entry, index, published, event, key, ordering, named, value = line.rstrip("\n").split("\t")

    def binary(text: str) -> bytes | None:
        return None if text == "-" else bytes.fromhex(text)

    pairs = [] if named == "-" else [pair.split("=") for pair in named.split(",")]
    return (
        {"ledger": int(ledger), "entry": int(entry), "batchIndex": int(index)},
        int(published),
        None if event == "-" else int(event),
        binary(key),
        binary(ordering),
        [(bytes.fromhex(name).decode(), bytes.fromhex(text).decode()) for name, text in pairs],
        binary(value),
    )


@pytest.mark.parametrize("count", [4_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_what_the_java_client_writes_comes_field_by_field(
    spark: SparkSession, pulsar: Any, make_topic: MakeTopic, tmp_path: Path, count: int
) -> None:
    topic, listed = make_topic("java"), tmp_path / "list.tsv"
    java_writes(pulsar, topic, count, listed)
    schema = (
        "__messageId struct<ledger: bigint, entry: bigint, batchIndex: int>, __publishTime bigint, __eventTime bigint, "
        "__key binary, __orderingKey binary, __messageProperties map<string, string>, value binary"
    )
    source = spark.read.format("pulsar").options(
        **{"service.url": pulsar.service_url, "admin.url": pulsar.admin_url, "minPartitions": "7"}, topic=topic
    )
    read = 0
    with listed.open(encoding="utf-8") as lines:
        for batch in source.schema(schema).load().toArrow().to_batches(max_chunksize=10_000):
            columns = [column.to_pylist() for column in batch.columns]
            columns[5] = [sorted(pairs) for pairs in columns[5]]
            for row in zip(*columns, strict=True):
                assert row == expected(next(lines)), f"row {read}"
                read += 1
        assert next(lines, None) is None
    assert read == count
