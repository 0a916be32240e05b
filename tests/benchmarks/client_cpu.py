"""The CPU that processes have used, with their children and those that have ended, once their parent knows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import psutil
from pyspark.sql import SparkSession

Meter = Callable[[], float]
"""Tells the seconds of CPU used so far."""


def of_session(session: SparkSession, *more: int) -> Meter:
    """Measure a Spark driver's side: this process, Spark's JVM and the Python workers, but no broker.

    Args: the session; pids of further processes of clients.
    """
    gateway = session.sparkContext._gateway
    assert gateway is not None
    meters = [of_process(pid) for pid in (gateway.proc.pid, *more)]
    return lambda: time.process_time() + sum(meter() for meter in meters)


def of_processes(pids: Sequence[int]) -> Meter:
    """Measure several processes and their children together."""
    meters = [of_process(pid) for pid in pids]
    return lambda: sum(meter() for meter in meters)


def of_process(pid: int) -> Meter:
    """Measure a process and its children."""
    root = psutil.Process(pid)
    return lambda: sum(_used(root))


def _used(root: psutil.Process) -> Iterator[float]:
    for one in (root, *root.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            yield times.user + times.system + times.children_user + times.children_system
