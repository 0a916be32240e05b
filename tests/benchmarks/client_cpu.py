"""The CPU that processes have used, with their children and those that have ended, once their parent knows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import psutil
from pyspark.sql import SparkSession

Meter = Callable[[], float]
"""Tells the seconds of CPU used so far."""
DAEMON = "pyspark.daemon"
"""A word of the command line of what starts Spark's Python workers."""


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
    """Measure a process and its children.

    The daemon of Spark's Python workers ignores their end (SIGCHLD), and so the kernel adds their time to nobody's. A
    worker that has ended counts with what it had used when it was last looked at.
    """
    root = psutil.Process(pid)
    workers: dict[psutil.Process, float] = {}
    return lambda: sum(_used(root, workers))


def _used(root: psutil.Process, workers: dict[psutil.Process, float]) -> Iterator[float]:
    there = {one.pid: one for one in (root, *root.children(recursive=True))}
    for one in there.values():
        with suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            yield times.user + times.system + times.children_user + times.children_system
            parent = there.get(one.ppid())
            if parent is not None and DAEMON in parent.cmdline():
                workers[one] = times.user + times.system
    yield from (used for worker, used in workers.items() if worker not in there.values())
