"""A driver whose shuffle files are deleted in the middle of a batch, and computed anew its shuffle is another one.

lost_shuffle.py '{"service_url": …, "topic": …, "folder": …, "settings": {…}, "options": {…}}'
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

import eos
from tests.crash.job import prepare_input
from tests.driver_session import driver_session
from tests.integration.by_name.job import anywhere, losing

FILES, ROWS, LOST_IN = 3, 400, 1
"""The shuffle files of this batch are lost."""


def main(service_url: str, topic: str, folder: str, settings: dict[str, str], options: dict[str, Any]) -> None:
    """Write numbered rows, each micro-batch spread by chance over tasks."""
    # One slot: beside the first task no other reads, so it is done, and all others find nothing.
    spark = driver_session({**settings, "spark.local.dir": f"{folder}/local"}, master="local[1,4]")
    sink = eos.sink(service_url, topic=topic, name=topic.rsplit("/")[-1], **options)

    def write(df: DataFrame, batch_id: int) -> None:
        spread = df.select("id").repartition(2).mapInArrow(anywhere, "id bigint, place bigint").repartition(8, "place")
        rows = spread.select("id")
        if batch_id == LOST_IN:
            rows = rows.mapInArrow(losing(folder), "id bigint")
        sink(rows.selectExpr("string(id) value"), batch_id)

    given = Path(folder, "input")
    prepare_input(given, FILES, ROWS)
    rows = spark.readStream.schema("id bigint, key string").option("maxFilesPerTrigger", 1).csv(str(given))
    stream = rows.writeStream.foreachBatch(write).option("checkpointLocation", f"{folder}/checkpoint")
    stream.trigger(availableNow=True).start().awaitTermination()
    print(f"attempts {sink.metrics.attempts}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
