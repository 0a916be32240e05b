"""A process outlives a Pulsar whose place at the same addresses a new one takes, without data: a notebook does.

Nothing that the process knows of the first one may count for the second: numbers of transactions, which begin again,
versions of schemas, partitions, ledgers, brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.sql import DataFrame, SparkSession

import eos
from eos.by_name.session import CLASS
from eos.local.pulsar import LocalPulsar
from eos.local.settings import Ports
from eos.spark.jar import shipped_jar
from tests.integration.source.streams import Stream

NAME = "orders"
TOPIC = f"persistent://public/default/{NAME}"
CATALOG = "place"
LIVES: list[tuple[int, str, list[Any]]] = [
    (3, "int(id) as number, string(id * 10) as text", [(number, str(number * 10)) for number in range(40)]),
    (2, "string(id * 10) as text, int(id) as number", [(str(number * 10), number) for number in range(40)]),
]
"""The partitions of the topic in each life of Pulsar, its columns, and the rows: the first schema has other fields."""

PORTS = Ports.free()
"""Of all of them: a session's catalog keeps its addresses."""
CHECKPOINT = f"bk://localhost:{PORTS.zookeeper}/place"

Write = Callable[[DataFrame, str, Path], None]


def by_batch(rows: DataFrame, service_url: str, _folder: Path) -> None:
    eos.write(rows, service_url, topic=TOPIC, value_format="avro", register_schema="Order", job_id="job")


def by_stream(rows: DataFrame, service_url: str, folder: Path) -> None:
    rows.write.parquet(str(folder / "rows"))
    sink = eos.sink(service_url, topic=TOPIC, name="stream", value_format="avro", register_schema="Order")
    stream = rows.sparkSession.readStream.schema(rows.schema).parquet(str(folder / "rows"))
    writer = stream.writeStream.foreachBatch(sink).option("checkpointLocation", CHECKPOINT)
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(180)


@pytest.fixture
def short_sessions(spark: SparkSession) -> Iterator[None]:
    """Have a session with ZooKeeper given up soon, which this one never takes back."""
    spark.conf.set("fs.bk.session.timeout.ms", "4000")
    yield
    spark.conf.unset("fs.bk.session.timeout.ms")


@pytest.mark.usefixtures("short_sessions")
@pytest.mark.parametrize("write", [by_batch, by_stream])
@pytest.mark.skipif(shipped_jar() is None, reason="the jar was not built: make jar")
def test_a_process_goes_on_with_a_new_pulsar_at_the_same_addresses(
    spark: SparkSession, start_pulsar: Callable[..., LocalPulsar], tmp_path: Path, write: Write
) -> None:
    for life, (partitions, columns, expected) in enumerate(LIVES):
        broker = start_pulsar(ports=PORTS)
        folder = tmp_path / str(life)
        made = httpx.put(f"{broker.admin_url}/admin/v2/persistent/public/default/{NAME}/partitions", json=partitions)
        made.raise_for_status()
        write(spark.range(40).selectExpr(*columns.split(", ")), broker.service_url, folder)
        for name, read in readings(spark, broker, folder).items():
            assert sorted(tuple(row.value) for row in read()) == sorted(expected), f"{name} in life {life}"
        broker.stop()


def readings(spark: SparkSession, broker: LocalPulsar, folder: Path) -> dict[str, Callable[[], list[Any]]]:
    """Each way to read the topic, with values by its schema."""
    typed = {"service.url": broker.service_url, "topic": TOPIC, "valueFormat": "schema"}
    bookie = f"bk0test=127.0.0.1:{PORTS.bookkeeper}"
    past = {"admin.url": broker.admin_url, "read.from": "bookies", "bookie.addresses": bookie}
    catalog = {"": CLASS, ".service.url": broker.service_url, ".admin.url": broker.admin_url}
    for name, value in catalog.items():
        spark.conf.set(f"spark.sql.catalog.{CATALOG}{name}", value)
    stream = Stream(spark, broker.service_url, folder / "read", topic=TOPIC, valueFormat="schema")
    query = f"select value from {CATALOG}.public.default.{NAME} with ('valueFormat' = 'schema')"
    return {
        "a stream": lambda: stream.run(None),
        "a table": lambda: spark.read.format("pulsar").options(**typed).load().collect(),
        "past brokers": lambda: spark.read.format("pulsar").options(**typed, **past).load().collect(),
        "SQL": lambda: spark.sql(query).collect(),
    }
