"""A small stateful streaming query: `python -m eos.local.first_query` has a JVM load what any query needs."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from eos.spark.jobs import collect


def main() -> None:
    """Count two rows by key in one micro-batch, and end the session in good order."""
    with tempfile.TemporaryDirectory(prefix="first-query-") as folder:
        rows = Path(folder, "rows")
        rows.mkdir()
        (rows / "0.csv").write_text("1,a\n2,b\n")
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.driver.host", "localhost")
        spark = builder.config("spark.local.dir", folder).getOrCreate()
        query = (
            spark.readStream.schema("id bigint, key string")
            .csv(str(rows))
            .groupBy("key")
            .count()
            .writeStream.outputMode("update")
            .foreachBatch(_take)
            .option("checkpointLocation", str(Path(folder, "checkpoint")))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        spark.stop()


def _take(counts: DataFrame, _: int) -> None:
    collect(counts, 2)  # by Arrow, as a sink does


if __name__ == "__main__":
    main()
