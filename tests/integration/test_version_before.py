"""A checkpoint, its control log and a savepoint on a topic of the version before: this one reads them, and goes on.

The kept query committed batches 0 to 2, and died before Spark knew of batch 2; see tests/vectors/version_before.py.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import eos
from eos.config import Cluster
from statestore.savepoints import topic as topics
from tests.clients import official_client
from tests.local_folder import LocalFolder
from tests.reading import values_of
from tests.vectors import kept

NAME = "version-before"
TOPIC = f"persistent://public/default/{NAME}"
CONTROL = f"persistent://public/default/__eos-{NAME}"
ROWS = 20
KEYS = 7


def put_back(service_url: str, topic: str, messages: list[kept.Message]) -> None:
    """Send messages with the official client, as they were."""
    with official_client(service_url) as client:
        producer = client.create_producer(topic, batching_enabled=False)
        for message in messages:
            producer.send(message.payload, properties=message.properties, partition_key=message.key or None)


@pytest.fixture
def empty_topics(pulsar: Any) -> None:
    """The sink's topics, empty: their names are in the kept records, so they can't have a name of the test's own."""
    for topic in (TOPIC, CONTROL):
        url = f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}"
        httpx.delete(url, params={"force": "true"}, timeout=60)
        httpx.put(url, timeout=60).raise_for_status()


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint"
    for name, data in kept.checkpoint().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


class Enough(Exception):
    """The query has come as far as it should."""


def run(spark: SparkSession, service_url: str, checkpoint: Path, last: int) -> eos.Sink:
    """Run the kept query up to batch `last`; raise what the sink raised."""
    sink = eos.sink(service_url, topic=TOPIC, name=NAME)
    raised: list[Exception] = []

    def write(df: DataFrame, batch_id: int) -> None:
        try:
            if batch_id > last:
                raise Enough
            sink(df.select("key", F.concat_ws("=", "key", "count").alias("value")), batch_id)
        except Exception as error:
            raised.append(error)
            raise

    numbers = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", ROWS)
        .option("numPartitions", 2)
        .option("startTimestamp", 1_700_000_000_000)
        .load()
    )
    counts = numbers.groupBy(F.concat(F.lit("k"), F.col("value") % KEYS).alias("key")).count()
    query = counts.writeStream.outputMode("update").foreachBatch(write).option("checkpointLocation", str(checkpoint))
    running = query.start()
    with contextlib.suppress(Exception):
        running.awaitTermination()
    sink.close()
    if not isinstance(raised[0], Enough):
        raise raised[0]
    return sink


def counts_after(batch: int) -> set[str]:
    """Return what the batch writes, by plain recomputation: the new count of each key."""
    counts = dict.fromkeys(range(KEYS), 0)
    for row in range((batch + 1) * ROWS):
        counts[row % KEYS] += 1
    return {f"k{key}={count}" for key, count in counts.items()}


@pytest.mark.usefixtures("empty_topics")
def test_the_query_goes_on_where_it_was(spark: SparkSession, pulsar: Any, checkpoint: Path) -> None:
    records = kept.messages("control")
    kinds = [json.loads(record.payload)["kind"] for record in records]
    assert kinds == ["owner", *["intent", "marker"] * 2, "intent", "owner", "intent", "marker"]
    put_back(pulsar.service_url, CONTROL, records)
    sink = run(spark, pulsar.service_url, checkpoint, last=3)
    assert (sink.metrics.skipped, sink.metrics.committed) == (1, 1)
    found = values_of(pulsar.service_url, TOPIC)
    assert (len(found), set(found)) == (KEYS, counts_after(3))
    registered = json.loads((checkpoint / "eos-sink.json").read_text())
    assert registered["stateful"] is True, "the version before didn't note it"
    assert registered["last_number"] > json.loads(kept.checkpoint()["eos-sink.json"])["last_number"]


@pytest.mark.usefixtures("empty_topics")
def test_without_its_log_the_query_is_refused(spark: SparkSession, pulsar: Any, checkpoint: Path) -> None:
    """So the registration that the version before wrote is read too."""
    with pytest.raises(eos.DamagedLog, match=r"the control log .* is empty, and this query has seen its record"):
        run(spark, pulsar.service_url, checkpoint, last=3)
    assert values_of(pulsar.service_url, TOPIC) == []


@pytest.mark.usefixtures("empty_topics")
def test_another_input_under_a_committed_batch_is_refused(spark: SparkSession, pulsar: Any, checkpoint: Path) -> None:
    """So the offsets in the MARKERs that the version before wrote are compared too."""
    put_back(pulsar.service_url, CONTROL, kept.messages("control"))
    offsets = checkpoint / "offsets" / "2"
    offsets.write_text(offsets.read_text().replace('"batchTimestampMs":1', '"batchTimestampMs":2', 1))
    with pytest.raises(eos.IdentityMismatch):
        run(spark, pulsar.service_url, checkpoint, last=3)
    assert values_of(pulsar.service_url, TOPIC) == []


def test_a_savepoint_on_a_topic_is_restored(pulsar: Any, tmp_path: Path) -> None:
    cluster = Cluster(pulsar.service_url)
    topic = f"persistent://public/default/kept-{uuid.uuid4().hex[:10]}"
    put_back(pulsar.service_url, topic, kept.messages("savepoint-topic"))
    ((manifest, name, _, lacks),) = topics.list_topic(cluster, topic)
    assert manifest is not None
    assert (name, lacks, manifest.batch_id) == ("kept", "", 1)
    assert topics.read(cluster, topic, None, LocalFolder(tmp_path / "restored")) == manifest
    restored = {
        path.relative_to(tmp_path / "restored").as_posix(): path.read_bytes()
        for path in (tmp_path / "restored").rglob("*")
        if path.is_file()
    }
    original = kept.checkpoint()
    assert {"metadata", "offsets/1", "commits/1", "state/0/0/2.delta"} < set(restored)
    assert "offsets/2" not in restored
    assert {path: original[path] for path in restored} == restored
