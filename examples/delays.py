"""A stateful aggregation in update mode: the running delays of each airport, exactly once.

    python examples/delays.py SERVICE_URL TOPIC FLIGHTS_FOLDER CHECKPOINT

Each micro-batch writes the airports whose numbers it changed, with the airport as the key:
the newest message of a key is its truth. The folder is made by examples/demo.py.
"""

from __future__ import annotations

import sys

from flights import read_flights
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import eos


def delays(flights: DataFrame) -> DataFrame:
    """Count the flights of each airport of departure, and add up their delays."""
    return flights.groupBy(F.col("origin").alias("key")).agg(
        F.count("*").alias("flights"),
        F.count("dep_delay").alias("departed"),
        F.sum("dep_delay").cast("bigint").alias("delay_minutes"),
    )


def main(service_url: str, topic: str, folder: str, checkpoint: str) -> None:
    """Run the job until every file has been counted."""
    spark = SparkSession.builder.master("local[2]").appName("delays").config("spark.ui.enabled", "false").getOrCreate()
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    spark.sparkContext.setLogLevel("ERROR")
    query = (
        delays(read_flights(spark, folder))
        .writeStream.outputMode("update")
        .foreachBatch(eos.sink(service_url, topic=topic, name="delays", value_format="json"))
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
