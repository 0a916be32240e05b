"""Spark and Python talk over Unix sockets: another way to the results on the driver's path, and to the workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.crash.job import Job, prepare_input
from tests.crash.process import account_for, run_to_end

FILES, ROWS = 3, 40


@pytest.mark.parametrize("small_batch_rows", [1_000, 0], ids=["driver path", "task path"])
def test_each_row_once(pulsar: Any, make_topic: Any, tmp_path: Path, small_batch_rows: int) -> None:
    prepare_input(tmp_path / "input", FILES, ROWS)
    topic = make_topic("unix", partitions=3)
    conf = {"spark.python.unix.domain.socket.enabled": "true"}
    job = Job(
        pulsar.service_url,
        topic,
        topic.rsplit("/")[-1],
        str(tmp_path),
        small_batch_rows=small_batch_rows,
        conf=conf,
    )
    run_to_end(job)
    result = account_for(pulsar.service_url, topic, FILES, ROWS)
    assert result.is_exact(), result
