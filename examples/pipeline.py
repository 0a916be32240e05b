"""From topic to topic: what each aircraft's flights come to, exactly once, with the state on BookKeeper.

    python examples/pipeline.py SERVICE_URL FLIGHTS_TOPIC AIRCRAFT_TOPIC CHECKPOINT

Reads flights as JSON, counts those of each aircraft in Spark's state, and writes the aircraft whose numbers a
micro-batch changed, with the tail number as the key: the newest message of a key is its truth. It ends when everything
that was there at its start is counted. Kill it whenever you like and start it again with the same arguments: it goes
on, and no flight is counted twice or left out. `make demo` does just that (examples/demo.py).

CHECKPOINT is a folder or, better, on bk://: then offsets and state are on BookKeeper, and any machine can go on.
"""

from __future__ import annotations

import sys

from delays import make_session, numbers
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import eos

SCHEMA = "flight_id bigint, tailnum string, dep_delay double"
ENTRIES_PER_BATCH = 20


def read_flights(spark: SparkSession, service_url: str, topic: str) -> DataFrame:
    """Stream the flights of a topic from its beginning, some entries (a producer's batches) for each micro-batch."""
    messages = (
        spark.readStream.format("pulsar")
        .option("service.url", service_url)
        .option("topic", topic)
        .option("subscription", "aircraft")
        .option("startingOffsets", "earliest")
        .option("maxEntriesPerTrigger", ENTRIES_PER_BATCH)
        .schema("value string")
        .load()
    )
    return messages.select(F.from_json("value", SCHEMA).alias("flight")).select("flight.*")


def aircraft(flights: DataFrame) -> DataFrame:
    """The numbers of each aircraft; flights without a tail number are those of "unknown"."""
    return numbers(flights.groupBy(F.coalesce("tailnum", F.lit("unknown")).alias("__key")))


def main(service_url: str, flights_topic: str, aircraft_topic: str, checkpoint: str) -> None:
    """Run the job until every flight has been counted."""
    spark = make_session("pipeline", checkpoint)
    spark.sparkContext.setLogLevel("ERROR")
    sink = eos.sink(service_url, topic=aircraft_topic, name="aircraft", value_format="json")

    def write(df: DataFrame, batch_id: int) -> None:
        sink(df, batch_id)
        print(f"batch {batch_id} committed", flush=True)

    query = (
        aircraft(read_flights(spark, service_url, flights_topic))
        .writeStream.outputMode("update")
        .foreachBatch(write)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
