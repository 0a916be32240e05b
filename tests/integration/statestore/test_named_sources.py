"""A Pulsar source with a name, by which Spark keeps its offsets where sources may evolve, over all that moves state."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import eos
from statestore import rescale, savepoints, verify
from statestore.roll_forward import restore_in_step
from tests.clients import official_client
from tests.conftest import MakeTopic
from tests.integration.statestore.in_step_job import KEYS, CountingJob, newest
from tests.integration.statestore.test_rescaling import rocksdb
from tests.reading import values_of

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1_800)]

ONCE = {"availableNow": True}


class NamedJob(CountingJob):
    """The job that counts, with a topic for its input, of whose source and sink Spark knows the names."""

    inputs = ""

    def __call__(self, spark: SparkSession, checkpoint: str, trigger: Mapping[str, Any]) -> StreamingQuery:
        sink = eos.sink(self.service_url, topic=self.topic, name=self.name)
        self.sinks.append(sink)
        reader = spark.readStream.name("events").format("pulsar").option("service.url", self.service_url)
        reader = reader.option("topic", self.inputs).option("subscription", self.name)
        values = reader.option("startingOffsets", "earliest").load().selectExpr("bigint(string(value)) as value")
        counts = values.groupBy((F.col("value") % KEYS).alias("k")).count()
        rows = counts.selectExpr("cast(k as string) as key", "concat(k, ':', count) as value")
        writer = rows.writeStream.outputMode("update").foreachBatch(sink).option("checkpointLocation", checkpoint)
        return writer.trigger(**trigger).start()

    def send(self, *numbers: int) -> None:
        with official_client(self.service_url) as client:
            producer = client.create_producer(self.inputs)
            for number in numbers:
                producer.send(str(number).encode())

    def run(self, spark: SparkSession, checkpoint: str) -> None:
        """Run until the topic's end is written, and stop."""
        self(spark, checkpoint, ONCE).awaitTermination()
        self.close()


def test_a_named_source_goes_on_over_a_restart_a_roll_forward_and_a_rescaling(
    spark: SparkSession, bk: str, pulsar: Any, make_topic: MakeTopic
) -> None:
    session = rocksdb(spark)
    session.conf.set("spark.sql.streaming.queryEvolution.enableSourceEvolution", "true")
    session.conf.set("spark.sql.streaming.offsetLog.formatVersion", "2")
    eos.register(session)
    job = NamedJob(pulsar.service_url, make_topic("counts"), f"s{uuid.uuid4().hex[:10]}")
    job.inputs = make_topic("events", 2)
    live, restored, wide = f"{bk}/live", f"{bk}/restored", f"{bk}/wide"

    job.send(*range(30))
    job.run(session, live)
    savepoints.create(f"{job.name}-at", live)
    job.send(*range(30, 50))
    job.run(session, live)
    output_at = newest(job.output)
    assert verify(live, operators=1).findings == ()

    done = restore_in_step(f"{job.name}-at", restored, job, job.output, spark=session)
    assert done.batch_id == output_at
    job.close()
    job.send(*range(50, 60))
    job.run(session, restored)
    rescale(restored, wide, 3, spark=session)
    job.send(*range(60, 70))
    job.run(session, wide)
    assert verify(wide, operators=1).findings == ()

    values = values_of(pulsar.service_url, job.topic)
    assert len(values) == len(set(values)), "a count that was written twice"
    counts = {
        key: max(int(value.split(":")[1]) for value in values if value.startswith(f"{key}:")) for key in range(KEYS)
    }
    assert counts == Counter(number % KEYS for number in range(70))
    savepoints.delete(f"{job.name}-at", live)
