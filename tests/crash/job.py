"""The driver process of the crash tests: one streaming query through the sink, killed where its plan says.

    python -m tests.crash.job '{"service_url": …, "topic": …, …}'      (the fields of `Job`)

Rows are numbered CSV files, one file for each micro-batch. A stateless job writes each row;
a stateful one counts rows by key in update mode and writes each new count. Prints a line for
each batch that has returned to Spark, and the sink's counters at the end. A job with an id writes all
rows by `eos.write`, twice, and prints what each call returned.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eos.steps import Observer, Phase, Step
from tests.crash.moments import Gate, KillWorker, Moment, Witness

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    import eos

KEYS = 7
COLUMNS, MESSAGE = "id bigint, key string", ("key", "cast(id as string) value")
"""Of a file's rows, and what a stateless job makes of them."""


@dataclass
class Crash:
    """Kill the driver's process group, and the worker that is there, at the first such moment; `trace` says so.

    Attributes:
        batch: in which micro-batch of this process, counted from 1; taking over comes before the first.
    """

    step: Step
    phase: Phase
    group: int
    trace: str
    batch: int = 1
    begun: set[int] = field(default_factory=set)

    def __call__(self, step: Step, phase: Phase, batch_id: int | None) -> None:
        if batch_id is not None:
            self.begun.add(batch_id)
        if (step, phase) == (self.step, self.phase) and max(1, len(self.begun)) >= self.batch:
            mine = Path(f"{self.trace}.{os.getpid()}")
            mine.write_text(f"{step} {phase} {batch_id}")
            mine.rename(self.trace)  # whole at once: a second task may come here while the first one's is read
            os.killpg(self.group, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)  # Spark gives its Python workers a group of their own


@dataclass(frozen=True)
class Job:
    """The task of one driver process.

    Attributes:
        crash: step and phase at which the driver dies.
        crash_in: in which micro-batch of its run it dies there, counted from 1.
        fault: "kill-worker" or "gate", step, phase, and the batch it is for; see `tests.crash.moments`.
        spread: rows are shuffled into this many partitions before they are written; 0: not at all.
        witness: a file for each moment and the process it happened in; "": none.
        bk: the checkpoint's address on bk://; "": it is in the folder.
        by_id: all input is written as one job, by `eos.write` with the job id `name`, and once more at the end.
    """

    service_url: str
    topic: str
    name: str
    folder: str
    stateful: bool = False
    small_batch_rows: int = 1_000
    crash: tuple[str, str] | None = None
    crash_in: int = 1
    master: str = "local[2]"
    conf: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    fault: tuple[str, str, str, int] | None = None
    spread: int = 0
    witness: str = ""
    by_id: bool = False
    bk: str = ""

    @property
    def input(self) -> Path:
        return Path(self.folder, "input")

    @property
    def checkpoint(self) -> Path:
        return Path(self.folder, "checkpoint")

    @property
    def trace(self) -> Path:
        return Path(self.folder, "crashed-at")

    @property
    def fault_folder(self) -> str:
        return str(Path(self.folder, "fault"))

    @property
    def gate(self) -> Gate:
        """The gate that a job with such a fault stops at."""
        assert self.fault is not None
        _, step, phase, batch_id = self.fault
        return Gate(Moment(Step(step), phase, batch_id), self.fault_folder)  # type: ignore[arg-type]


def prepare_input(folder: Path, files: int, rows: int) -> None:
    """Write `files` files of `rows` numbered rows each, in the order Spark will take them."""
    folder.mkdir(parents=True)
    for number in range(files):
        path = folder / f"{number:04}.csv"
        ids = range(number * rows, (number + 1) * rows)
        path.write_text("".join(f"{row},k{row % KEYS}\n" for row in ids))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def prepare(service_url: str, topic: str, folder: Path, files: int, rows: int, **fields: Any) -> Job:
    """Write the input of a job, and return the job; its sink is named after its topic."""
    job = Job(service_url, topic, topic.rsplit("/")[-1], str(folder), **fields)
    prepare_input(job.input, files, rows)
    return job


def expected_rows(files: int, rows: int, stateful: bool) -> dict[str, int]:
    """Return every value the topic must hold, and the micro-batch it belongs to, by plain recomputation."""
    if not stateful:
        return {str(row): row // rows for row in range(files * rows)}
    expected: dict[str, int] = {}
    counts = [0] * KEYS
    for number in range(files):
        before = list(counts)
        for row in range(number * rows, (number + 1) * rows):
            counts[row % KEYS] += 1
        expected.update({f"k{key}={counts[key]}": number for key in range(KEYS) if counts[key] != before[key]})
    return expected


def expected_state(files: int, rows: int) -> dict[str, int]:
    """Return the count of each key after the last batch."""
    counts: dict[str, int] = {}
    for row in range(files * rows):
        counts[f"k{row % KEYS}"] = counts.get(f"k{row % KEYS}", 0) + 1
    return counts


def start(
    spark: SparkSession, job: Job, write: Callable[[DataFrame, int], None], every: str | None = None
) -> StreamingQuery:
    """Start the job's query over all of its input, with `write` as its batch function.

    Args: the session; the job; the function; how often a batch begins, for a query that ends by a stop alone.
    """
    from pyspark.sql import functions as F

    rows = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).csv(str(job.input))
    if job.stateful:
        counts = rows.groupBy("key").count()
        out = counts.select("key", F.concat_ws("=", "key", "count").alias("value"))
    else:
        out = rows.selectExpr(*MESSAGE)
    if job.spread:
        out = out.repartition(job.spread)
    return (
        out.writeStream.outputMode("update")
        .foreachBatch(write)
        .option("checkpointLocation", job.bk or str(job.checkpoint))
        .trigger(**({"processingTime": every} if every else {"availableNow": True}))
        .start()
    )


def run(job: Job) -> None:
    """Run the query until every file is written, or until the crash."""
    import eos
    from tests.driver_session import driver_session

    spark = driver_session(job.conf, master=job.master, bk={} if job.bk else None)
    observer = _observer(job)
    extra: dict[str, Any] = {"observer": observer} if observer else {}
    if job.by_id:
        rows = spark.read.schema(COLUMNS).csv(str(job.input)).selectExpr(*MESSAGE)
        for _ in range(2):
            done = eos.write(rows, job.service_url, job_id=job.name, topic=job.topic, **extra, **job.options)
            print(f"wrote {done.wrote} {done.rows}", flush=True)
        spark.stop()
        return
    sink = eos.sink(
        job.service_url,
        topic=job.topic,
        name=job.name,
        small_batch_rows=job.small_batch_rows,
        **extra,
        **job.options,
    )

    def write(df: DataFrame, batch_id: int) -> None:
        sink(df, batch_id)
        print(f"batch {batch_id}", flush=True)

    start(spark, job, write).awaitTermination()
    print(f"metrics {json.dumps(asdict(sink.metrics))}", flush=True)
    spark.stop()


def _observer(job: Job) -> Observer | None:
    if job.crash is not None:
        step, phase = job.crash
        return Crash(Step(step), phase, os.getpgid(0), str(job.trace), job.crash_in)  # type: ignore[arg-type]
    if job.fault is None:
        return Witness(job.witness) if job.witness else None
    if job.fault[0] == "gate":
        return job.gate
    return KillWorker(job.gate.moment, job.fault_folder, os.getpid())


class Enough(Exception):
    """The query has come as far as it should."""


def run_here(spark: SparkSession, job: Job, *, last: int | None = None, unnoted: int | None = None) -> eos.Sink:
    """Run the query with a new sink over its input, or into the batch after `last`; return the closed sink.

    It runs in this process: what the sink raises is raised as it is, and not as Spark's words about it.
    Of the batch `unnoted` the sink has returned, but Spark doesn't get to note it.
    """
    import eos

    sink = eos.sink(job.service_url, topic=job.topic, name=job.name, **job.options)
    raised: list[Exception] = []

    def write(df: DataFrame, batch_id: int) -> None:
        try:
            if last is not None and batch_id > last:
                raise Enough
            sink(df, batch_id)
            if batch_id == unnoted:
                raise Enough
        except Exception as error:
            raised.append(error)
            raise

    query = start(spark, job, write)
    try:
        query.awaitTermination()
    except Exception:
        if not raised:
            raise
        if not isinstance(raised[0], Enough):
            raise raised[0] from None
    finally:
        sink.close()
    return sink


if __name__ == "__main__":
    run(Job(**json.loads(sys.argv[1])))
