"""Spark and Python talk over Unix sockets: another way to the results on the driver's path, and to the workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.crash.job import prepare
from tests.crash.process import account_for, run_to_end

FILES, ROWS = 3, 40


@pytest.mark.parametrize("small_batch_rows", [1_000, 0], ids=["driver path", "task path"])
def test_each_row_once(pulsar: Any, make_topic: Any, tmp_path: Path, small_batch_rows: int) -> None:
    topic = make_topic("unix", partitions=3)
    conf = {"spark.python.unix.domain.socket.enabled": "true"}
    run_to_end(prepare(pulsar.service_url, topic, tmp_path, FILES, ROWS, small_batch_rows=small_batch_rows, conf=conf))
    result = account_for(pulsar.service_url, topic, FILES, ROWS)
    assert result.is_exact(), result
