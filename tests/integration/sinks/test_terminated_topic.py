"""A topic that was terminated: what else the sink writes to goes on."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

import eos
from tests.reading import values_of


@pytest.mark.parametrize("small_batch_rows", [1_000, 0], ids=["driver path", "task path"])
def test_the_other_topics_are_written_as_soon_as_no_row_goes_to_the_terminated_one(
    spark: SparkSession, pulsar: Any, make_topic: Any, small_batch_rows: int
) -> None:
    alive, dead = make_topic("alive"), make_topic("dead")
    sink = eos.sink(pulsar.service_url, name=alive.rsplit("/")[-1], small_batch_rows=small_batch_rows)

    def write(batch_id: int, *topics: str) -> None:
        with sink.batch(batch_id, eos.Identity("query", "run", f"offsets of batch {batch_id}")) as txn:
            for topic in topics:
                txn.write(spark.sql(f"select 'batch {batch_id}' as value"), topic)

    write(0, alive, dead)
    path = dead.replace("persistent://", "persistent/")
    httpx.post(f"{pulsar.admin_url}/admin/v2/{path}/terminate", timeout=30).raise_for_status()
    with pytest.raises(eos.InvalidInput, match="Topic was already terminated"):
        write(1, alive, dead)
    assert sink.metrics.attempts == 2
    write(1, alive)
    sink.close()
    assert values_of(pulsar.service_url, alive) == ["batch 0", "batch 1"]
