"""A query that reads topics begins with state from their history, and goes on with the entry after it."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pulsar as official
import pytest
from pulsar.schema import BytesSchema
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import eos
from eos.config import Cluster
from eos.errors import TopicMissing
from statestore import InvalidInput, bootstrap, savepoints, state_difference, verify
from statestore.checkpoint import committed
from statestore.checkpoint.files import HadoopFiles
from statestore.hadoop.file_systems import Hadoop
from statestore.roll_forward import Output, restore_in_step
from tests.conftest import MakeTopic
from tests.reading import received, values_of

KEYS = 7
COLUMNS = "value string, __key string"


def counts(rows: DataFrame) -> DataFrame:
    """Count the messages of each key, and add up their values."""
    return rows.groupBy("__key").agg(F.count("*").alias("n"), F.sum(F.col("value").cast("long")).alias("total"))


def produce(client: official.Client, topic: str, values: range) -> None:
    producer = client.create_producer(topic, batching_enabled=True, batching_max_messages=4)
    for value in values:
        producer.send_async(str(value).encode(), lambda *_: None, partition_key=f"k{value % KEYS}")
    producer.flush()
    producer.close()


def last_entries(spark: SparkSession, service_url: str, topic: str) -> dict[str, tuple[int, int]]:
    """The last entry of each physical topic now, as docs/how-to/rescale-and-bootstrap.md finds it."""
    reader = spark.read.format("pulsar").option("service.url", service_url).option("topic", topic)
    where = "__topic string, __partition int, __messageId struct<ledger: bigint, entry: bigint, batchIndex: int>"
    last = reader.schema(where).load().groupBy("__topic", "__partition").agg(F.max("__messageId").alias("id"))
    return {f"{topic}-partition-{part}": (last.ledger, last.entry) for topic, part, last in last.collect()}


def recomputed(client: official.Client, topic: str, count: int) -> Mapping[str, tuple[int, int]]:
    """The count of the official client: how many messages each key has, and the sum of their values."""
    messages = [(one.partition_key(), int(one.data())) for one in received(client, topic, BytesSchema(), count)]
    assert len({value for _, value in messages}) == len(messages)
    number, total = Counter(key for key, _ in messages), Counter[str]()
    for key, value in messages:
        total[key] += value
    return {key: (number[key], total[key]) for key in number}


@pytest.mark.slow
def test_state_from_a_topics_history_goes_on_with_the_next_entry(
    spark: SparkSession, bk: str, pulsar: Any, theirs: official.Client, make_topic: MakeTopic
) -> None:
    topic, output = make_topic("history", partitions=2), make_topic("totals")
    target, other, url = f"{bk}/made", f"{bk}/other", pulsar.service_url
    sink_name, savepoint = output.rsplit("/", 1)[-1], f"s{uuid.uuid4().hex[:8]}"
    options = {"service.url": url, "topic": topic}
    produce(theirs, topic, range(120))
    ends = last_entries(spark, url, topic)
    assert len(ends) == 2
    produce(theirs, topic, range(120, 150))  # after the history, and before it was read

    upto = json.dumps({name: f"{ledger}:{entry}" for name, (ledger, entry) in ends.items()})
    history = spark.read.format("pulsar").options(**options, endingOffsets=upto).schema(COLUMNS).load()
    made = bootstrap(counts, history, target)
    assert verify(target, operators=1).findings == ()
    produce(theirs, topic, range(150, 170))

    behind = json.dumps({name: f"{ledger}:{entry + 1}" for name, (ledger, entry) in ends.items()})

    def start(spark: SparkSession, checkpoint: str, trigger: Mapping[str, Any]) -> StreamingQuery:
        stream = spark.readStream.format("pulsar").options(**options, subscription="totals", startingOffsets=behind)
        sinks.append(eos.sink(url, topic=output, name=sink_name))
        out = counts(stream.schema(COLUMNS).load())
        out = out.selectExpr("__key as key", "concat_ws(' ', __key, n, total) as value")
        writer = out.writeStream.outputMode("update").foreachBatch(sinks[-1]).option("checkpointLocation", checkpoint)
        return writer.trigger(**trigger).start()

    sinks: list[eos.Sink] = []

    def run() -> None:
        start(spark, target, {"availableNow": True}).awaitTermination()
        sinks[-1].close()

    def in_step() -> None:
        restore_in_step(savepoint, other, start, Output(Cluster(url), sink_name), spark=spark)

    def newest() -> Mapping[str, tuple[int, int]]:
        told = [value.split() for value in values_of(url, output)]
        assert len({(key, n) for key, n, _ in told}) == len(told), "no count twice"
        last = sorted(((key, int(n), int(total)) for key, n, total in told), key=lambda one: one[1])
        return {key: (n, total) for key, n, total in last}

    savepoints.create(savepoint, target)
    with pytest.raises(TopicMissing, match=r"has no control log, .* as after a bootstrap.* as it is"):
        in_step()
    run()
    assert newest() == recomputed(theirs, topic, 170), "none of the messages is lost or counted twice"
    assert len(values_of(url, output)) == KEYS, "what the history had put out is not put out again"
    assert committed(HadoopFiles(Hadoop.of(spark), target))[-1] == made.batch_id + 1
    with pytest.raises(InvalidInput, match=r"nothing was read .*, or after a bootstrap, and batch \d+ of the output"):
        in_step()
    assert Hadoop.of(spark).status(other) is None
    savepoints.delete(savepoint, target)
    produce(theirs, topic, range(170, 200))
    run()
    assert newest() == recomputed(theirs, topic, 200)

    never = f"{bk}/never"
    stream = spark.readStream.format("pulsar").options(**options, subscription="never", startingOffsets="earliest")
    writer = counts(stream.schema(COLUMNS).load()).writeStream.outputMode("update").format("noop")
    writer.option("checkpointLocation", never).trigger(availableNow=True).start().awaitTermination()
    assert state_difference(never, target, spark=spark).collect() == [], (
        "the state of a query that has read all by itself"
    )
