"""Start driver processes, wait for their end, and account for what they wrote."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

from statestore.drills.judge.accounting import Expected, OutputRow, account
from statestore.drills.judge.findings import Account
from statestore.drills.judge.oracle import read_all
from statestore.drills.later_transactions import end_later_transactions
from tests.child_process import ChildProcess, python
from tests.crash.job import Job, expected_rows
from tests.spark_session import quick_start


class Driver(ChildProcess):
    """One driver process."""

    def __init__(self, job: Job) -> None:
        super().__init__(python("tests.crash.job", job), Path(job.folder, "driver.log"), quick_start())

    def metrics(self) -> dict[str, Any]:
        """Return the sink's counters, which the driver printed at its end."""
        (line,) = (line for line in self.output.splitlines() if line.startswith("metrics "))
        return dict(json.loads(line.removeprefix("metrics ")))


def run_to_end(job: Job) -> Driver:
    """Run a driver that must finish by itself, and return it."""
    driver = Driver(job)
    driver.finish()
    return driver


def run_into_crash(job: Job) -> None:
    """Run a driver that must die at the step its job names, and nowhere else."""
    assert job.crash is not None
    job.trace.unlink(missing_ok=True)
    driver = Driver(job)
    code = driver.wait()
    where = job.trace.read_text() if job.trace.exists() else "nowhere"
    assert where.startswith(" ".join(job.crash)), (
        f"asked to die at {job.crash}, died at {where} ({code}):\n{driver.tail()}"
    )
    assert code == -signal.SIGKILL


def account_for(
    service_url: str, topic: str, files: int, rows: int, *, stateful: bool = False, coordinators: int | None = None
) -> Account:
    """Count the topic with the official client, after later transactions have ended on it.

    A topic that can't be read to its end fails the test: an account of a part of it calls no row lost.
    """
    end_later_transactions(service_url, topic, coordinators)
    values = expected_rows(files, rows, stateful)
    expected = {value: OutputRow(batch, "", 0, value) for value, batch in values.items()}

    def parse(_key: str, data: bytes) -> OutputRow:
        value = data.decode()
        return expected.get(value, OutputRow(-1, "", 0, value))

    everything = Expected(frozenset(expected.values()), committed=frozenset(values.values()))
    found = read_all(service_url, topic, parse)
    assert not found.shortfall, found.shortfall
    return account("rows", everything, found)
