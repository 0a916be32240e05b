"""Tables and streams read past the brokers, in Spark: the same rows in every column, and brokers where bookies fail."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from eos.bookkeeper.net.zookeeper import ZooKeeperMetadata
from eos.pulsar.net.client import Client
from eos.pulsar.wire.batch import BatchEncoder
from tests.clients import end, transaction
from tests.integration.sparkless import eos
from tests.waiting import until

ROWS = 40


@pytest.fixture
def bookie(pulsar: Any) -> str:
    """The bookie of a standalone Pulsar has an id that is not an address."""
    with ZooKeeperMetadata(pulsar.zookeeper) as zookeeper:
        host, port = zookeeper.address("bk0test")
    return f"bk0test={host}:{port}"


@pytest.fixture
def topic(pulsar: Any, ours: Client, make_topic: Callable[..., str]) -> str:
    """A topic of several ledgers: plain rows, committed, aborted and compressed ones."""
    name = make_topic("segments")
    ours.subscription(name, "keeps", initial="earliest").close()
    for ledger in range(4):
        for kind in ("plain", "committed", "aborted"):
            rows = pa.record_batch(
                {
                    "value": [f"{ledger} {kind} {row}".encode() for row in range(ROWS)],
                    "key": [f"k{row % 3}" for row in range(ROWS)],
                }
            )
            txn = None if kind == "plain" else transaction(ours, name)
            with ours.producer(name) as producer:
                for chunk in BatchEncoder("zstd" if ledger % 2 else "none", target_bytes=400).chunks(rows):
                    producer.send(chunk, txn)
            if txn is not None:
                end(ours, txn, commit=kind == "committed")
        unload(pulsar, name)
    return name


def unload(pulsar: Any, topic: str) -> None:
    """Have the broker end the ledger that it writes to."""
    httpx.put(f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/unload", timeout=30).raise_for_status()


@pytest.fixture
def table(spark: SparkSession, pulsar: Any, topic: str) -> Callable[..., DataFrame]:
    def read(**options: str) -> DataFrame:
        given = {"service.url": pulsar.service_url, "admin.url": pulsar.admin_url, "topic": topic}
        return spark.read.format("pulsar").options(**given, **options).load()

    return read


def rows_of(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, df.collect()), key=repr)


def test_a_table_has_the_same_rows_in_every_column_whatever_reads_it(
    table: Callable[..., DataFrame], bookie: str
) -> None:
    brokers = rows_of(table())
    assert len(brokers) == 4 * 2 * ROWS
    for read_from in ("bookies", "auto"):
        for more in ({}, {"minPartitions": "7"}):
            options = {"read.from": read_from, "bookie.addresses": bookie, **more}
            assert rows_of(table(**options)) == brokers, options


def test_eos_plan_tells_which_segments_bookies_have_and_why_they_are_not_read(pulsar: Any, topic: str) -> None:
    done = eos(pulsar, "plan", topic, "--json")
    assert done.exit_code == 0, done.output
    *closed, written_to = json.loads(done.stdout)
    assert [(one["storage"], one["reader"], one["bookies"]) for one in closed] == [
        ("bookies", "brokers", ["bk0test"])
    ] * len(closed)
    assert all("bookie.addresses" in one["why"] for one in closed)
    assert (written_to["storage"], written_to["reader"]) == ("open", "brokers")
    assert sum(one["entries"] for one in closed) >= 4 * 3


def test_bookies_that_cannot_be_reached_leave_the_rows_to_the_brokers(table: Callable[..., DataFrame]) -> None:
    options = {"read.from": "bookies", "bookie.addresses": "bk0test=127.0.0.1:1"}
    assert rows_of(table(**options)) == rows_of(table())


def test_a_stream_reads_its_backlog_and_its_tail_without_a_gap_or_an_overlap(
    spark: SparkSession,
    pulsar: Any,
    ours: Client,
    topic: str,
    table: Callable[..., DataFrame],
    bookie: str,
    tmp_path: Path,
) -> None:
    source = (
        spark.readStream.format("pulsar")
        .options(**{"service.url": pulsar.service_url, "admin.url": pulsar.admin_url, "read.from": "auto"})
        .options(topic=topic, subscription="segments", startingOffsets="earliest", maxEntriesPerTrigger="11")
        .option("bookie.addresses", bookie)
        .load()
    )
    name = f"segments_{uuid.uuid4().hex}"
    query = source.writeStream.format("memory").queryName(name).option("checkpointLocation", str(tmp_path)).start()
    try:
        until(lambda: spark.table(name).count() >= 4 * 2 * ROWS, "the backlog is not read", patience_s=180)
        with ours.producer(topic) as producer:
            producer.send_record(b"the tail", None)
        until(lambda: spark.table(name).where("value = X'746865207461696C'").count())
        assert rows_of(spark.table(name)) == rows_of(table())
    finally:
        query.stop()
