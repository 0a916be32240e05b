"""A declarative pipeline that copies one topic to another, at least once: `spark-pipelines run` in the folder above."""

from __future__ import annotations

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

PULSAR = "pulsar://localhost:6650"

dp.create_sink(
    "copies",
    format="pulsar",
    options={
        "service.url": PULSAR,
        "topic": "persistent://public/default/copies",
        "guarantee": "at-least-once",
    },
)


@dp.append_flow(target="copies")
def readings() -> DataFrame:
    """Read each message of the topic from where the last run ended."""
    spark = SparkSession.active()
    reader = spark.readStream.format("pulsar").option("service.url", PULSAR).option("subscription", "copies")
    topic = reader.option("topic", "persistent://public/default/readings").option("startingOffsets", "earliest")
    return topic.load().select("value", "__key")
