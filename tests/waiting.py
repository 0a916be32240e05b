"""Wait for something that happens elsewhere, and not long for an answer that never comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from eos.pulsar.net.client import Client

Answer = TypeVar("Answer")

PATIENCE_S = 60.0


def until(
    ask: Callable[[], Answer], what: object = "it was not so", patience_s: float = PATIENCE_S, pause_s: float = 0.02
) -> Answer:
    """Ask until the answer is true, and return it.

    Args:
        ask: may assert what would make waiting useless, such as that a process is alive.
        what: the words of the failure, or a function that finds them then.
        patience_s: seconds until it fails. Default: 60, since the machine may be busy.
        pause_s: seconds between two questions.
    """
    deadline = time.monotonic() + patience_s
    while not (answer := ask()):
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(pause_s)
    return answer


def until_batch(query: StreamingQuery, batch: int) -> None:
    """Wait until a streaming query tells of the progress of this batch or a later one."""

    def reached() -> bool:
        assert query.exception() is None, query.exception()
        return bool((query.lastProgress or {"batchId": -1})["batchId"] >= batch)

    until(reached, f"no progress to batch {batch}", patience_s=120)


def until_tasks_end(spark: SparkSession) -> None:
    """Wait until no task runs: a stopped query's tasks, which Spark only asks to end, go on for a while.

    Ask before anything of Spark's is stopped that a task uses. TaskResultGetter logs an error for a task that ends
    while the session stops, and passes over it only once SparkEnv has stopped, too. `StateStore.stop` holds the lock
    that a task needs for its next store while it waits, two minutes and in vain, for the task's first store.
    """
    jvm, context = spark.sparkContext._jvm, spark.sparkContext._jsc
    assert jvm is not None
    executors = context.sc().taskScheduler()
    counts = jvm.scala.jdk.javaapi.CollectionConverters.asJava
    until(lambda: sum(counts(executors.runningTasksByExecutors()).values()) == 0, "a task still runs")


@contextmanager
def in_a_hurry(client: Client, timeout_s: float = 0.2) -> Iterator[None]:
    """Let a client wait only so long for the answers to what it asks in the block.

    For an answer that the test holds back. What must be answered before and after that has the client's own time-out,
    since the machine may be busy.
    """
    cluster = client.cluster
    patient = cluster.request_timeout_s
    object.__setattr__(cluster, "request_timeout_s", timeout_s)
    try:
        yield
    finally:
        object.__setattr__(cluster, "request_timeout_s", patient)
