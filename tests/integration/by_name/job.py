"""A driver of its own that writes by name, and whose tasks or whole process die once on the way.

    job.py save|stream|shuffle '{"options": {…}, "folder": …, "dies": "" | "task" | "driver", "at": 900}'

Rows are numbered, and wide enough that those before the row `at`, at which it dies, are sent by then. With "shuffle"
the files of a shuffle are deleted once a task is done, and computed anew it is another one.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

ROWS, PARTITIONS = 2_000, 2
"""Of a DataFrame, and of a file of a stream; its partitions."""
WIDE = ("id", "lpad(id, 1000, '.') value")


def dying(folder: str, dies: str, at: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that passes a column of numbers on, and dies at one of them, once in a folder's life."""
    group = os.getpgrp()

    def pass_on(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if dies and at in batch.column(0).to_pylist() and not Path(folder, "died").exists():
                time.sleep(3)  # the rows before it are sent meanwhile
                Path(folder, "died").touch()
                if dies == "driver":
                    os.killpg(group, signal.SIGKILL)
                raise RuntimeError("this task dies here")
            yield batch

    return pass_on


def anywhere(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add a random number to each row."""
    for batch in batches:
        yield batch.append_column("place", pa.array(random.choices(range(1_000), k=batch.num_rows)))


def losing(folder: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that passes rows on, and deletes all their shuffle files, once in a folder's life.

    For a session of one slot: beside it no task reads, so the first task is done and all others find nothing.
    """

    def pass_on(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        if not Path(folder, "died").exists():
            Path(folder, "died").touch()
            for file in Path(folder, "local").rglob("shuffle_*"):
                file.unlink()

    return pass_on


def main(kind: str, given: dict[str, Any]) -> None:
    from tests.driver_session import driver_session

    settings = {"spark.sql.execution.arrow.maxRecordsPerBatch": "50", "spark.local.dir": f"{given['folder']}/local"}
    spark = driver_session(settings, master="local[1,2]" if kind == "shuffle" else "local[2,2]")
    through = dying(given["folder"], given["dies"], given["at"])
    if kind == "save":
        numbers = spark.range(ROWS, numPartitions=PARTITIONS)
        rows = numbers.selectExpr(*WIDE).mapInArrow(through, "id bigint, value string").select("value")
        rows.write.format("pulsar").options(**given["options"]).mode("append").save()
    elif kind == "shuffle":
        spread = spark.range(ROWS, numPartitions=PARTITIONS).mapInArrow(anywhere, "id bigint, place bigint")
        rows = spread.repartition(8, "place").select("id").mapInArrow(losing(given["folder"]), "id bigint")
        rows.selectExpr("string(id) value").write.format("pulsar").options(**given["options"]).mode("append").save()
    else:
        lines = spark.readStream.schema("id bigint").option("maxFilesPerTrigger", 1).csv(f"{given['folder']}/input")
        rows = lines.selectExpr(*WIDE).mapInArrow(through, "id bigint, value string").select("value")
        writer = rows.writeStream.format("pulsar").options(**given["options"])
        query = writer.option("checkpointLocation", f"{given['folder']}/ck").trigger(availableNow=True).start()
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
