"""A stateful aggregation: the delays of each airport, exactly once.

    python examples/delays.py SERVICE_URL TOPIC FLIGHTS_FOLDER CHECKPOINT [--by-day] [--local-dir FOLDER]

In update mode each micro-batch writes the airports whose numbers it changed, with the airport as the key: the newest
message of a key is its truth. With --by-day it is a windowed aggregation in append mode: each airport's numbers of a
day are written once, when the watermark says that the day is over.

CHECKPOINT may be on bk://: then the state is in RocksDB and its changelogs on BookKeeper, and nothing on this machine's
disk, such as Spark's own folder (--local-dir), is needed to go on. The folder is that of examples/flights.py.
"""

from __future__ import annotations

import argparse

from flights import read_flights
from pyspark.sql import DataFrame, GroupedData, SparkSession
from pyspark.sql import functions as F

import eos
import statestore

ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def numbers(groups: GroupedData) -> DataFrame:
    """Count the flights of each group, those that departed, and the minutes that they were late."""
    return groups.agg(
        F.count("*").alias("flights"),
        F.count("dep_delay").alias("departed"),
        F.sum("dep_delay").cast("bigint").alias("delay_minutes"),
    )


def delays(flights: DataFrame) -> DataFrame:
    """The numbers of each airport of departure."""
    return numbers(flights.groupBy(F.col("origin").alias("__key")))


def delays_by_day(flights: DataFrame) -> DataFrame:
    """The same for each day, once no flight of that day is to come."""
    late = flights.withWatermark("time_hour", "1 day")
    return numbers(late.groupBy(F.window("time_hour", "1 day"), "origin")).select(
        F.col("origin").alias("__key"),
        F.col("window.start").alias("__eventTime"),
        F.date_format("window.start", "yyyy-MM-dd").alias("day"),
        "flights",
        "departed",
        "delay_minutes",
    )


def make_session(name: str, checkpoint: str, local_dir: str | None = None) -> SparkSession:
    """A local session; with state in RocksDB where the checkpoint is on BookKeeper."""
    builder = SparkSession.builder.master("local[2]").appName(name).config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", 2)
    if local_dir:
        builder = builder.config("spark.local.dir", local_dir)
    if checkpoint.startswith("bk://"):
        builder = statestore.configure_spark(builder)
        for name, value in ROCKSDB.items():
            builder = builder.config(name, value)
    return builder.getOrCreate()


def main() -> None:
    """Run the job until every file has been counted."""
    parser = argparse.ArgumentParser()
    for name in ("service_url", "topic", "folder", "checkpoint"):
        parser.add_argument(name)
    parser.add_argument("--by-day", action="store_true")
    parser.add_argument("--local-dir")
    given = parser.parse_args()
    spark = make_session("delays", given.checkpoint, given.local_dir)
    spark.sparkContext.setLogLevel("ERROR")
    flights = read_flights(spark, given.folder)
    name = "delays-by-day" if given.by_day else "delays"  # two queries: a sink belongs to one
    query = (
        (delays_by_day(flights) if given.by_day else delays(flights))
        .writeStream.outputMode("append" if given.by_day else "update")
        .foreachBatch(eos.sink(given.service_url, topic=given.topic, name=name, value_format="json"))
        .option("checkpointLocation", given.checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
