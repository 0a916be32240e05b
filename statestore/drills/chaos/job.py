"""The driver process of a drill: its jobs in one Spark application, started and stopped by lines on standard input.

    python -m statestore.drills.chaos.job '{"service_url": …}'      (the fields of `DrillJobSettings`)

Each writes through `eos.sink` into a topic. Two read the same growing folder of files, one file a micro-batch:

- `rows` is stateless: each row as it came, written by tasks.
- `sums` is stateful: count and sum of each key so far, on RocksDB with changelog, written by the driver.

A third one, `copies`, reads a topic through `format("pulsar")` and writes it as it is, by tasks; what is waiting
becomes batches that take some seconds each.

Checkpoints are on `bk://`. When standard input ends, this process and all that belongs to it die.
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eos.local.jvm import QUICK_START
from statestore.drills import SPARK, STORE
from statestore.drills.chaos.driver_events import DriverEvents, Watch, Word, keep_standard_output, say
from statestore.drills.judge.rows import SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from eos.sinks.sink import Sink

_CONF = SPARK | {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.pollingDelay": "100ms",
    "spark.sql.streaming.minBatchesToRetain": "20",
    f"{STORE}minDeltasForSnapshot": "5",
    f"{STORE}maintenanceInterval": "10s",
    "spark.executor.memory": "512m",
}
_ERROR = re.compile(r"\b(?:eos|statestore)\.errors\.(\w+: [^\n]*)")
_SHORT = 400
STANDALONE = "spark://"
"""The beginning of the address of a standalone cluster's master."""
# A peer that is silent for so long is given up: each of these is far longer by default.
_SILENCE = {
    "spark.network.timeout": "6s",
    "spark.network.timeoutInterval": "2s",
    "spark.executor.heartbeatInterval": "1s",
}
_CONNECT_S = 5.0
_BATCH_S = 5  # far less than a transaction lives: on a busy machine one of all that is waiting would never be over


@dataclass(frozen=True)
class JobSpec:
    """A job of the drill, and its place now.

    Attributes:
        sink: the sink's name.
        checkpoint: its address.
        source: the topic that it reads; "" for the folder of files.
    """

    job: str
    stateful: bool
    topic: str
    sink: str
    checkpoint: str
    source: str = ""


@dataclass(frozen=True)
class DrillJobSettings:
    """The input of the process when it starts.

    Attributes:
        service_url, listener: how sinks reach the brokers.
        input: the folder of files.
        hold: a folder; a file in it with a job's name holds a batch of that job, see `Watch`.
        scratch: a folder for all that Spark and Java write besides; it goes with the drill.
        master: Spark's.
        ttl_s, request_timeout_s: of the sinks.
        java: flags for the driver's JVM.
        options: of bk://.
        admin_url: of the admin API, by which the job from topic to topic reads closed segments from the bookies
            (`read.from` is "auto"); None: it reads through the brokers.
    """

    service_url: str
    listener: str
    input: str
    hold: str
    scratch: str
    master: str
    ttl_s: float
    request_timeout_s: float
    java: Sequence[str] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    admin_url: str | None = None

    def to_json(self) -> str:
        """The text for the command line."""
        return json.dumps(asdict(self))


class _Tries(logging.Handler):
    """Says what the sink warns of: tries that have failed."""

    def emit(self, record: logging.LogRecord) -> None:
        say(DriverEvents(Word.TRIED, text=record.getMessage()[:_SHORT]))


class _Driver:
    def __init__(self, settings: DrillJobSettings) -> None:
        self._settings = settings
        self._spark = _session(settings)
        self._queries: dict[str, StreamingQuery] = {}

    def obey(self, command: Mapping[str, Any]) -> None:
        """Do what a line says, each in a thread of its own: Spark may take long over it."""
        action = {"start": self._start, "stop": self._stop, "state": self._state}[command["do"]]
        threading.Thread(target=self._told, args=(action, JobSpec(**command["job"])), daemon=True).start()

    def _told(self, action: Any, spec: JobSpec) -> None:
        try:
            action(spec)
        except Exception as error:
            say(DriverEvents(Word.FAILED, spec.job, text=_reason(error)))

    def _start(self, spec: JobSpec) -> None:
        import eos

        settings = self._settings
        sink = eos.sink(
            settings.service_url,
            topic=spec.topic,
            name=spec.sink,
            listener_name=settings.listener,
            transaction_timeout_s=settings.ttl_s,
            request_timeout_s=settings.request_timeout_s,
            connect_timeout_s=_CONNECT_S,
            attempts=20,
            small_batch_rows=1_000 if spec.stateful else 0,
            observer=Watch(spec.job, str(Path(settings.hold, spec.job))),
        )
        try:
            query = _query(self._spark, settings, spec, sink)
            self._queries[spec.job] = query
            say(DriverEvents(Word.STARTED, spec.job))
            query.awaitTermination()
        finally:
            sink.close()
        say(DriverEvents(Word.STOPPED, spec.job))

    def _stop(self, spec: JobSpec) -> None:
        query = self._queries[spec.job]
        with suppress(Exception):  # a query that has failed says so in its own thread
            query.processAllAvailable()  # so the output is not ahead of the checkpoint
            query.stop()

    def _state(self, spec: JobSpec) -> None:
        import statestore

        rows = statestore.read_state(spec.checkpoint, spark=self._spark).collect()
        state = tuple((str(row.key.key), int(row.value["count"]), int(row.value["sum"])) for row in rows)
        say(DriverEvents(Word.STATE, spec.job, state=state))


def _session(settings: DrillJobSettings) -> SparkSession:
    from pyspark.sql import SparkSession

    import statestore

    builder: Any = SparkSession.builder
    builder = builder.master(settings.master).appName("drill")
    places = {
        "spark.local.dir": settings.scratch,
        "spark.sql.warehouse.dir": f"{settings.scratch}/warehouse",
        "spark.executor.extraJavaOptions": " ".join([*QUICK_START, f"-Djava.io.tmpdir={settings.scratch}"]),
    }
    for name, value in (_CONF | places).items():
        builder = builder.config(name, value)
    if settings.master.startswith(STANDALONE):
        # One of two executors on each of two nodes, and Python there as here.
        nodes = {"spark.cores.max": "2", "spark.executor.cores": "1", "spark.executorEnv.PYTHONPATH": _modules()}
        for name, value in (_SILENCE | nodes).items():
            builder = builder.config(name, value)
    made: SparkSession = statestore.configure_spark(builder, options=settings.options).getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def _modules() -> str:
    return os.pathsep.join(part for part in sys.path if part)


def _query(spark: SparkSession, settings: DrillJobSettings, spec: JobSpec, sink: Sink) -> StreamingQuery:
    out = _copies(spark, settings, spec) if spec.source else _of_files(spark, settings, spec)

    def write(frame: DataFrame, batch: int) -> None:
        say(DriverEvents(Word.BEGAN, spec.job, batch))
        before = sink.metrics.skipped
        sink(frame if spec.source else _as_messages(frame, spec, batch), batch)
        after = sink.metrics
        say(DriverEvents(Word.COMMITTED, spec.job, batch, rows=after.rows, skipped=after.skipped > before))

    writer = out.writeStream.queryName(spec.job).outputMode("update").foreachBatch(write)
    return writer.option("checkpointLocation", spec.checkpoint).trigger(processingTime="200 milliseconds").start()


def _of_files(spark: SparkSession, settings: DrillJobSettings, spec: JobSpec) -> DataFrame:
    from pyspark.sql import functions as F

    source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).csv(settings.input)
    if spec.stateful:
        sums = (F.count("*").alias("count"), F.sum("amount").alias("sum"), F.max("at").alias("at"))
        return source.groupBy("key").agg(*sums)
    # Two tasks, so that a batch is written by more than one; a key's rows stay in order.
    keyed = source.select(F.concat(F.lit("p"), "p").alias("key"), "p", "s", "at")
    return keyed.repartition(2, "key")


def _as_messages(frame: DataFrame, spec: JobSpec, batch: int) -> DataFrame:
    """Return the rows of a job that reads files as messages, whose values name the batch."""
    from pyspark.sql import functions as F

    columns = ["key", "count", "sum"] if spec.stateful else ["p", "s"]
    value = F.to_json(F.struct(*columns, F.lit(batch).alias("batch"))).alias("value")
    return frame.select("key", value, F.col("at").alias("event_time"))


def _copies(spark: SparkSession, settings: DrillJobSettings, spec: JobSpec) -> DataFrame:
    options = {
        "service.url": settings.service_url,
        "listener_name": settings.listener,
        "topic": spec.source,
        "subscription": f"drill-{spec.job}",  # the same over new checkpoints and new names of the sink
        "startingOffsets": "earliest",
        "targetBatchSeconds": f"{_BATCH_S}",
        "request_timeout_s": f"{settings.request_timeout_s:g}",
        "connect_timeout_s": f"{_CONNECT_S:g}",
    }
    if settings.admin_url is not None:
        options |= {"read.from": "auto", "admin.url": settings.admin_url}
    return (
        spark.readStream.format("pulsar")
        .options(**options)
        .schema("value binary, __key string, __eventTime bigint")
        .load()
    )


def _reason(error: Exception) -> str:
    """The fault in one line. For an error that Python raised inside Spark, its own words."""
    text = str(error)
    found = _ERROR.findall(text)
    return str(found[-1] if found else " ".join(text.split()))[:_SHORT]


def main() -> None:
    """Run until standard input ends."""
    keep_standard_output()
    settings = DrillJobSettings(**json.loads(sys.argv[1]))
    logging.getLogger("eos").addHandler(_Tries(logging.WARNING))
    # A daemon: the session may take long, and the process that started this one may die meanwhile.
    driver: list[_Driver] = []
    ready = threading.Event()

    def listen() -> None:
        for line in sys.stdin:
            ready.wait()
            driver[0].obey(json.loads(line))
        os.killpg(os.getpgrp(), signal.SIGKILL)

    lines = threading.Thread(target=listen, daemon=True)
    lines.start()
    driver.append(_Driver(settings))
    ready.set()
    say(DriverEvents(Word.READY))
    lines.join()


if __name__ == "__main__":
    main()
