"""The largest memory that a Python worker of Spark needed for one batch, in a process of its own.

    python -m tests.benchmarks.worker_memory SERVICE_URL TOPIC ROWS

The kernel keeps each process's peak (VmHWM); Spark's workers idle on after their tasks, so it
is read when the batch has been committed, and no short peak is missed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil

from tests.benchmarks.plan import Plan, create_topic
from tests.benchmarks.rows import FIXED, make_rows, spark_session
from tests.benchmarks.this_sink import ThisSink


def peaks(plan: Plan) -> dict[int, list[int]]:
    """Return {rows: peak bytes of the largest worker in each process} for `plan.rows` and ten times as many."""
    taken: dict[int, list[int]] = {plan.rows: [], 10 * plan.rows: []}
    for number in range(plan.memory_runs):
        for rows, found in taken.items():
            topic = create_topic(plan.broker, f"{plan.stem}-memory-{rows}-{number}")
            found.append(peak_in_fresh_process(plan.broker.service_url, topic, rows))
            plan.tell(f"memory: {rows:,} rows: a worker used {found[-1] / 2**20:,.0f} MiB at the most")
    return taken


def peak_in_fresh_process(service_url: str, topic: str, rows: int) -> int:
    """Return the peak resident bytes of the largest Python worker while `rows` rows were written."""
    line = [sys.executable, "-m", "tests.benchmarks.worker_memory", service_url, topic, str(rows)]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"writing {rows} rows in a process of its own failed:\n{done.stderr[-4_000:]}")
    return int(done.stdout.split()[-1])


def workers_peak() -> int:
    """Return the peak resident bytes of the largest Python worker of this process's Spark."""
    daemons = [one for one in psutil.Process().children(recursive=True) if _is_daemon(one)]
    return max(_peak(worker.pid) for daemon in daemons for worker in daemon.children())


def _is_daemon(process: psutil.Process) -> bool:
    """Whether it is the process that Spark's Python workers are forked from; its parent is the JVM."""
    try:
        parent = process.parent()
        return "pyspark.daemon" in process.cmdline() and parent is not None and parent.name() == "java"
    except psutil.NoSuchProcess:  # a zombie too
        return False


def _peak(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("this kernel does not tell a process's peak memory (VmHWM)")


def _main(service_url: str, topic: str, rows: int) -> None:
    with spark_session() as session:
        sink = ThisSink(make_rows(session, FIXED, rows), service_url, topic)
        written = sink.run()
        if written != rows:
            raise RuntimeError(f"{written} of {rows} rows were written")
        print(workers_peak())
        sink.close()


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
