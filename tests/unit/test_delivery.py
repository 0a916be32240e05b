"""The driver path: what it collects, what it leaves alone, and that the driver's memory stays bounded."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from eos.config import Cluster
from eos.delivery import LARGE_ROW_BYTES, Delivery, collect_small
from eos.writer import WriteSettings


def test_rows_up_to_the_limit_are_collected_whole(spark: SparkSession) -> None:
    df = spark.range(0, 20, numPartitions=2).selectExpr(
        "cast(cast(id as string) as binary) value", "cast(id as string) key"
    )
    rows = collect_small(df, 20)
    assert rows is not None
    assert rows.schema.names == ["value", "key"]
    assert sorted(rows.column("key").to_pylist(), key=int) == [str(row) for row in range(20)]


@pytest.mark.parametrize("partitions", [1, 2, 11])
def test_one_row_more_is_too_many_however_they_are_spread(spark: SparkSession, partitions: int) -> None:
    df = spark.range(0, 11, numPartitions=partitions).selectExpr("cast(id as string) value")
    assert collect_small(df, 10) is None
    assert collect_small(df, 11) is not None


@pytest.mark.parametrize("column", ["value", "key", "ordering_key"])
def test_a_large_row_is_too_much_wherever_its_bytes_are(spark: SparkSession, column: str) -> None:
    parts = {name: "'x'" for name in ("value", "key", "ordering_key")}
    parts[column] = f"repeat('x', {LARGE_ROW_BYTES})"
    large = spark.range(2).selectExpr(*(f"{expression} {name}" for name, expression in parts.items()))
    assert collect_small(large, 10) is None
    small = spark.range(2).selectExpr(*(f"substr({expression}, 1, 9) {name}" for name, expression in parts.items()))
    assert collect_small(small, 10) is not None


def test_nulls_are_kept_and_an_empty_frame_is_small(spark: SparkSession) -> None:
    df = spark.sql("select cast(null as binary) value, 'k' key, map('a', 'b') properties")
    rows = collect_small(df, 10)
    assert rows is not None
    assert rows.column("value").to_pylist() == [None]
    none = collect_small(df.where("false"), 10)
    assert none is not None
    assert none.num_rows == 0


def test_every_row_runs_though_few_are_collected(spark: SparkSession) -> None:
    """A stateful query needs the whole plan to run."""
    seen = spark.sparkContext.accumulator(0)

    def count(batches):  # type: ignore[no-untyped-def]
        for batch in batches:
            seen.add(batch.num_rows)
            yield batch

    rows = spark.range(0, 50_000, numPartitions=2).selectExpr("cast(id as string) value")
    df = rows.mapInArrow(count, "value string")
    assert collect_small(df, 3) is None
    assert seen.value == 50_000


def test_what_reaches_the_driver_is_bounded(spark: SparkSession) -> None:
    """Of a thousand large rows in each partition the driver gets no payload but the first rows' flags."""
    df = spark.range(0, 2_000, numPartitions=2).selectExpr(f"repeat('x', {LARGE_ROW_BYTES + 1}) value")
    collected: list[int] = []
    to_arrow = type(df).toArrow

    def measured(frame):  # type: ignore[no-untyped-def]
        table = to_arrow(frame)
        collected.append(table.nbytes)
        return table

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(df), "toArrow", measured)
        assert collect_small(df, 100) is None
    assert collected[0] < 100 * 1_000


def test_after_a_failure_to_collect_the_tasks_are_next(spark: SparkSession) -> None:
    settings = WriteSettings(Cluster("pulsar://nowhere"), "t", "murmur3", "none", 1 << 20)
    delivery = Delivery(settings, small_batch_rows=10, last_rows=1)
    assert delivery.expects_few()
    with pytest.raises(Exception, match="broken row"):
        delivery.collect(spark.sql("select cast(raise_error('broken row') as binary) value"))
    assert not delivery.expects_few()
