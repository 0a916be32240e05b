"""The job of the total-loss drill: count and sum by key over an input that is not lost with the checkpoint.

    python -m statestore.drills.acts.total_loss_job '{"checkpoint": …}'      (the fields of `TotalLossSettings`)

Its input is a function of the batch's number (Spark's source `rate-micro-batch`): what it read before the loss can be
read again after it, as from a topic. Its rows are those of `statestore.drills.judge.rows`, the stateful ones.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from statestore.drills import SPARK
from statestore.drills.judge import rows
from statestore.drills.judge.accounting import Expected

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ROWS = 200
"""Rows in each batch."""
_KEYS = 7
CONF = SPARK | {"spark.master": "local[2]", "spark.log.level": "ERROR"}
EVERY = {"processingTime": "500 milliseconds"}


@dataclass(frozen=True)
class TotalLossSettings:
    """The place of the job.

    Attributes:
        checkpoint: where it runs first.
        service_url, topic, sink: its output.
    """

    checkpoint: str
    service_url: str
    topic: str
    sink: str

    def to_json(self) -> str:
        """The text for the command line."""
        return json.dumps(asdict(self))

    def start(self, spark: SparkSession, checkpoint: str, trigger: Mapping[str, Any]) -> StreamingQuery:
        """Start its query, as `statestore.roll_forward.jobs.Job` wants it."""
        from pyspark.sql import functions as F

        import eos

        sink = eos.sink(self.service_url, topic=self.topic, name=self.sink)
        numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load()
        keyed = numbers.selectExpr(f"concat('k', value % {_KEYS}) as key", "value * 7919 % 1000 as amount")
        sums = keyed.groupBy("key").agg(F.count("*").alias("count"), F.sum("amount").alias("sum"))

        def write(frame: DataFrame, batch: int) -> None:
            value = F.to_json(F.struct("key", "count", "sum", F.lit(batch).alias("batch"))).alias("value")
            sink(frame.select("key", value), batch)

        writer = sums.writeStream.outputMode("update").foreachBatch(write)
        return writer.option("checkpointLocation", checkpoint).trigger(**trigger).start()


def inputs(batches: Collection[int]) -> pd.DataFrame:
    """Return the input of these batches, by plain pandas: key, amount and batch."""
    values = pd.Series([value for batch in batches for value in range(ROWS * batch, ROWS * (batch + 1))], dtype="int64")
    columns = {"batch": values // ROWS, "key": "k" + (values % _KEYS).astype(str), "amount": values * 7919 % 1000}
    return pd.DataFrame(columns)


def expected(batches: Collection[int]) -> Expected:
    """Return what the output must hold once these batches are committed."""
    return rows.stateful(inputs(batches), batches)


def main() -> None:
    """Run the job until the process is killed."""
    from statestore.hadoop.session import session

    given = TotalLossSettings(**json.loads(sys.argv[1]))
    with session({}, CONF) as spark:
        given.start(spark, given.checkpoint, EVERY).awaitTermination()


if __name__ == "__main__":
    main()
