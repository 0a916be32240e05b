"""Batches that are given up at a random moment, each the first of a topic that never held a transaction.

A batch is stopped with its query, has a row that can't be written, loses a Python worker, or is a job that Ctrl-C
interrupts. None is followed by another batch.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import eos
from eos.steps import WRITER_STEPS, Phase, Step
from tests.crash.moments import Moment, first, wait_for

DRIVER_STEPS = (Step.OPEN, Step.INTENT, Step.ADD_CONTROL, Step.MARKER, Step.END_SENT)
LONGEST_DELAY_S = 0.08
TTL_S = 30.0
"""A transaction that an interrupt leaves open in mid-request soon ends by itself. Readers wait for that, and go on."""


@dataclass(frozen=True)
class Tell:
    """Makes a file when the first process comes to a moment; a worker may be killed a little later."""

    moment: Moment
    folder: str
    kills_after_s: float | None
    driver: int

    @property
    def path(self) -> Path:
        return Path(self.folder, "at")

    def __call__(self, step: Step, phase: Phase, batch_id: int | None) -> None:
        if not self.moment.is_at(step, phase, batch_id) or not first(self.folder, "at"):
            return
        if self.kills_after_s is not None and os.getpid() != self.driver:
            threading.Timer(self.kills_after_s, os.kill, (os.getpid(), signal.SIGKILL)).start()


@dataclass(frozen=True)
class Round:
    """One batch that is given up.

    Attributes:
        topic: of its own.
        folder: of its own.
        kind: a name in `KINDS`.
        by_driver: whether the driver sends the rows.
        moment: something happens soon after it; a row that is bad does so by itself.
        delay_s: how soon.
    """

    topic: str
    folder: Path
    kind: str
    by_driver: bool
    moment: Moment
    delay_s: float

    @classmethod
    def draw(cls, topic: str, folder: Path, place: int, moments: random.Random) -> Round:
        """Draw one: the kinds take turns, everything else is random."""
        kind = list(KINDS)[place % len(KINDS)]
        by_driver = kind in ("stop", "bad row") and moments.random() < 0.5
        steps = WRITER_STEPS if kind == "dead worker" else (*WRITER_STEPS, *WRITER_STEPS, *DRIVER_STEPS)
        phase: Phase = "before" if moments.random() < 0.5 else "after"
        moment = Moment(moments.choice(steps), phase, 1 if by_driver else 0)
        delay_s = moments.choice((0.0, moments.uniform(0, LONGEST_DELAY_S)))
        return cls(topic, folder, kind, by_driver, moment, delay_s)

    def run(self, spark: SparkSession, service_url: str) -> str:
        """Begin the batch and have it given up. Returns how it ended, in a word."""
        kills_after_s = self.delay_s if self.kind == "dead worker" else None
        tell = Tell(self.moment, str(self.folder / "moment"), kills_after_s, os.getpid())
        return KINDS[self.kind](self, spark, service_url, tell)

    @property
    def name(self) -> str:
        return self.topic.rsplit("/")[-1]

    def sink(self, service_url: str, tell: Tell) -> eos.Sink:
        return eos.sink(
            service_url,
            topic=self.topic,
            name=self.name,
            observer=tell,
            attempts=1,
            small_batch_rows=1_000 if self.by_driver else 0,
            transaction_timeout_s=TTL_S,
        )


def _stop(one: Round, spark: SparkSession, service_url: str, tell: Tell) -> str:
    sink = one.sink(service_url, tell)
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).option("numPartitions", 2).load()
    # An empty batch before it: the driver sends those that it expects to be small.
    rows = rate.where(f"value >= {100 if one.by_driver else 0}").selectExpr("cast(value as string) value")
    writer = rows.writeStream.foreachBatch(sink).option("checkpointLocation", str(one.folder / "checkpoint"))
    query = writer.start()
    wait_for(tell.path)
    time.sleep(one.delay_s)
    query.stop()
    sink.close()
    return "stopped" if query.exception() is None else f"failed: {query.exception()}"


def _rows(spark: SparkSession, bad: bool) -> DataFrame:
    """Two tasks of a hundred rows; in the second one may be a row of a partition that is not there."""
    partition = "if(id = 150, 7, cast(id % 2 as int))" if bad else "cast(id % 2 as int)"
    return spark.range(0, 200, numPartitions=2).selectExpr("cast(id as string) value", f"{partition} partition")


def _batch(one: Round, spark: SparkSession, service_url: str, tell: Tell) -> str:
    sink = one.sink(service_url, tell)
    bad = one.kind == "bad row"
    try:
        for batch_id in range(2 if one.by_driver else 1):
            with sink.batch(batch_id, eos.Identity(one.name, "run", f"offsets of batch {batch_id}")) as txn:
                if one.by_driver and batch_id == 0:
                    txn.write(_rows(spark, False).where("false"))
                else:
                    txn.write(_rows(spark, False))
                    txn.write(_rows(spark, bad))
    except eos.EosError as why:
        return type(why).__name__
    finally:
        sink.close()
    return "committed"


def _job(one: Round, spark: SparkSession, service_url: str, tell: Tell) -> str:
    def interrupt() -> None:
        wait_for(tell.path)
        time.sleep(one.delay_s)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    try:
        with _interruptible():
            thread.start()
            eos.write(
                _rows(spark, False),
                service_url,
                topic=one.topic,
                job_id=one.name,
                observer=tell,
                attempts=1,
                transaction_timeout_s=TTL_S,
            )
    except KeyboardInterrupt:
        return "interrupted"
    except eos.EosError as why:
        return type(why).__name__
    finally:
        thread.join()
    return "committed"


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C through while the block runs, as Spark has set it up, and none that comes too late."""
    usual: Any = signal.getsignal(signal.SIGINT)
    inside = True

    def handle(number: int, frame: Any) -> None:
        if inside:
            usual(number, frame)

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        inside = False
        with suppress(KeyboardInterrupt):
            time.sleep(2 * LONGEST_DELAY_S)  # one that is on its way comes now, and is dropped
        signal.signal(signal.SIGINT, usual)


KINDS: dict[str, Callable[[Round, SparkSession, str, Tell], str]] = {
    "stop": _stop,
    "bad row": _batch,
    "dead worker": _batch,
    "Ctrl-C": _job,
}
