"""Whatever a caller gives that is wrong: the right error, with the words that help, soon, and nothing written."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.integration.sinks.bad_input import TABLE, Bad, World

PATIENCE = 4
"""A busy machine may take so many times as long as the table says."""


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.what)
def test_bad_input_is_refused(row: Bad, spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path) -> None:
    world = World(spark, pulsar.service_url, pulsar.admin_url, make_topic("bad", partitions=2), tmp_path)
    began = time.monotonic()
    with pytest.raises(row.error) as caught:
        row.give(world)
    took_s = time.monotonic() - began
    assert type(caught.value) is row.error
    missing = [word for word in row.words if word not in str(caught.value)]
    assert not missing, f"{missing} not in: {caught.value}"
    assert took_s < PATIENCE * row.within_s, f"it took {took_s:.1f} s"


def test_the_table_is_long_and_names_each_row_once() -> None:
    names = [row.what for row in TABLE]
    assert len(names) == len(set(names)) >= 60
