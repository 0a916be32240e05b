"""Spark and Python talk over Unix sockets: another way to the results on the driver's path, and to the workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eos.steps import Step
from tests.crash.job import prepare
from tests.crash.moments import Witness
from tests.crash.process import account_for, run_to_end

FILES, ROWS = 3, 40


def test_each_row_once_by_the_tasks_and_then_by_the_driver(pulsar: Any, make_topic: Any, tmp_path: Path) -> None:
    topic = make_topic("unix", partitions=3)
    conf = {"spark.python.unix.domain.socket.enabled": "true"}
    witness = Witness(str(tmp_path / "steps"))
    driver = run_to_end(prepare(pulsar.service_url, topic, tmp_path, FILES, ROWS, conf=conf, witness=witness.path))
    senders = [witness.pids(Step.FIRST_SEND, batch_id) for batch_id in range(FILES)]
    assert [pids == {driver.process.pid} for pids in senders] == [False, True, True]
    result = account_for(pulsar.service_url, topic, FILES, ROWS)
    assert result.is_exact(), result
