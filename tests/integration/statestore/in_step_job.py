"""A stateful job with an exactly-once sink, as the roll forward starts it; and what its output must be."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import eos
from eos.config import Cluster
from eos.pulsar.net.client import Client
from statestore.cli.options import settings_of
from statestore.hadoop.session import session
from statestore.roll_forward import Output
from tests.child_process import ChildProcess, python
from tests.waiting import until_batch

ROWS = 10  # in each batch
KEYS = 3
SOURCES = ("rate-micro-batch", "files")


@dataclass
class CountingJob:
    """Counts its input by key on top of its state, and writes each changed count.

    Attributes:
        source: "rate-micro-batch", or "files": one of each batch's rows, from `folder`.
        sinks: those that were made, newest last; a sink stays connected until it is closed.
    """

    service_url: str
    topic: str
    name: str
    source: str = "rate-micro-batch"
    folder: str = ""
    sinks: list[Any] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """What tells a process to run this job."""
        fields = {"service_url": self.service_url, "topic": self.topic, "name": self.name}
        return {"IN_STEP_JOB": json.dumps(fields)}

    @property
    def output(self) -> Output:
        return Output(Cluster(self.service_url), self.name)

    def __call__(self, spark: SparkSession, checkpoint: str, trigger: Mapping[str, Any]) -> StreamingQuery:
        sink = eos.sink(self.service_url, topic=self.topic, name=self.name)
        self.sinks.append(sink)
        counts = self._input(spark).groupBy((F.col("value") % KEYS).alias("k")).count()
        rows = counts.selectExpr("cast(k as string) as key", "concat(k, ':', count) as value")
        writer = rows.writeStream.outputMode("update").foreachBatch(sink).option("checkpointLocation", checkpoint)
        return writer.trigger(**trigger).start()

    def _input(self, spark: SparkSession) -> DataFrame:
        if self.source == "rate-micro-batch":
            return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load()
        reader = spark.readStream.schema("value bigint").option("maxFilesPerTrigger", 1)
        return reader.csv(self.folder)

    def add_files(self, count: int) -> None:
        """Give the file source its next batches: the same rows as the other source has."""
        folder = Path(self.folder)
        folder.mkdir(exist_ok=True)
        for number in range(len(list(folder.glob("[0-9]*"))), len(list(folder.glob("[0-9]*"))) + count):
            scratch = folder / f".{number}"
            scratch.write_text("\n".join(str(value) for value in range(ROWS * number, ROWS * (number + 1))))
            scratch.rename(folder / f"{number:05}.csv")
            time.sleep(0.01)  # Spark takes files by the time they were written

    def close(self) -> None:
        """Let go of the sink, as the end of a driver does."""
        for sink in self.sinks:
            sink.close()

    def run_to(self, spark: SparkSession, checkpoint: str, batch: int) -> None:
        """Run until a batch is committed, and stop."""
        query = self(spark, checkpoint, {"processingTime": "0 seconds"})
        try:
            until_batch(query, batch)
        finally:
            query.stop()
        self.close()

    @contextmanager
    def at_work(self, checkpoint: str, log: Path) -> Iterator[ChildProcess]:
        """Run it in a process of its own, from when that has committed a batch, to the end of the block."""
        before = newest(self.output)
        command = python("tests.integration.statestore.in_step_job", checkpoint)
        with ChildProcess(command, log, self.environment) as child:
            child.until(lambda: newest(self.output) > before)
            yield child


def newest(output: Output) -> int:
    """The newest batch that a sink has committed, -1 where there is none."""
    with Client(output.cluster) as client:
        marker = output.log(client).newest
    return -1 if marker is None else marker.batch_id


def counted(batch: int) -> dict[int, int]:
    """The state after a batch."""
    return dict(Counter(value % KEYS for value in range(ROWS * (batch + 1))))


def written(batches: Iterable[int]) -> list[str]:
    """All that these batches write, sorted: every key changes in every batch."""
    return sorted(f"{key}:{count}" for batch in batches for key, count in counted(batch).items())


def settings() -> list[str]:
    """The settings of a small session."""
    return [
        *("spark.master=local[2]", "spark.sql.shuffle.partitions=2", "spark.ui.enabled=false", "spark.log.level=OFF"),
        *("spark.driver.host=localhost", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1"),
    ]


def start(spark: SparkSession, checkpoint: str, trigger: Mapping[str, Any]) -> StreamingQuery:
    """The job as the command line finds it; the variable IN_STEP_JOB says which."""
    return CountingJob(**json.loads(os.environ["IN_STEP_JOB"]))(spark, checkpoint, trigger)


if __name__ == "__main__":
    with session({}, settings_of(settings())) as own:
        start(own, sys.argv[1], {"processingTime": "1 second"}).awaitTermination()
