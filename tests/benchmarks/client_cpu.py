"""The CPU that a Spark driver's side has used: this process, Spark's JVM and the Python workers, but no broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import psutil
from pyspark.sql import SparkSession


def of_session(session: SparkSession) -> Callable[[], float]:
    """Return what tells the seconds of CPU used so far; of processes that have ended too, once their parent knows."""
    gateway = session.sparkContext._gateway
    assert gateway is not None
    jvm = psutil.Process(gateway.proc.pid)
    return lambda: time.process_time() + sum(_used(jvm))


def _used(root: psutil.Process) -> Iterator[float]:
    for one in (root, *root.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            yield times.user + times.system + times.children_user + times.children_system
