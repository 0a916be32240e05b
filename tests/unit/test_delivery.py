"""The driver path: what it collects, what it leaves alone, and that the driver's memory stays bounded."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from eos import delivery
from eos.config import Cluster
from eos.delivery import LARGE_ROW_BYTES, SMALL_ROW_BYTES, Delivery, collect_small
from eos.steps import unobserved
from eos.writer import WriteSettings

SETTINGS = WriteSettings(Cluster("pulsar://nowhere"), "t", "murmur3", "none", 1 << 20)


@pytest.mark.parametrize("thin", [True, False])
def test_rows_up_to_the_limit_are_collected_whole(spark: SparkSession, thin: bool) -> None:
    df = spark.range(0, 20, numPartitions=2).selectExpr(
        "cast(cast(id as string) as binary) value", "cast(id as string) key"
    )
    rows = collect_small(df, 20, thin=thin)
    assert rows is not None
    assert rows.schema.names == ["value", "key"]
    assert sorted(rows.column("key").to_pylist(), key=int) == [str(row) for row in range(20)]


@pytest.mark.parametrize("thin", [True, False])
@pytest.mark.parametrize("partitions", [1, 2, 11])
def test_one_row_more_is_too_many_however_they_are_spread(spark: SparkSession, partitions: int, thin: bool) -> None:
    df = spark.range(0, 11, numPartitions=partitions).selectExpr("cast(id as string) value")
    assert collect_small(df, 10, thin=thin) is None
    assert collect_small(df, 11, thin=thin) is not None


@pytest.mark.parametrize("column", ["value", "key", "ordering_key"])
def test_a_large_row_is_too_much_wherever_its_bytes_are(spark: SparkSession, column: str) -> None:
    parts = {name: "'x'" for name in ("value", "key", "ordering_key")}
    parts[column] = f"repeat('x', {LARGE_ROW_BYTES})"
    large = spark.range(2).selectExpr(*(f"{expression} {name}" for name, expression in parts.items()))
    assert collect_small(large, 10, thin=True) is None
    small = spark.range(2).selectExpr(*(f"substr({expression}, 1, 9) {name}" for name, expression in parts.items()))
    assert collect_small(small, 10, thin=True) is not None


@pytest.mark.parametrize("thin", [True, False])
def test_nulls_are_kept_and_an_empty_frame_is_small(spark: SparkSession, thin: bool) -> None:
    df = spark.sql("select cast(null as binary) value, 'k' key, map('a', 'b') properties")
    rows = collect_small(df, 10, thin=thin)
    assert rows is not None
    assert rows.column("value").to_pylist() == [None]
    none = collect_small(df.where("false"), 10, thin=thin)
    assert none is not None
    assert none.num_rows == 0


@pytest.mark.parametrize("thin", [True, False])
def test_every_row_runs_though_few_are_collected(spark: SparkSession, thin: bool) -> None:
    """A stateful query needs the whole plan to run."""
    seen = spark.sparkContext.accumulator(0)

    def count(batches):  # type: ignore[no-untyped-def]
        for batch in batches:
            seen.add(batch.num_rows)
            yield batch

    rows = spark.range(0, 50_000, numPartitions=2).selectExpr("cast(id as string) value")
    df = rows.mapInArrow(count, "value string")
    assert collect_small(df, 3, thin=thin) is None
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
        assert collect_small(df, 100, thin=True) is None
    assert collected[0] < 100 * 1_000


@pytest.fixture
def looks_taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A cluster whose topics have 64 partitions; lists how the rows of small batches were looked at."""
    monkeypatch.setattr(
        delivery.Client, "shared", staticmethod(lambda cluster: SimpleNamespace(partitions=lambda _: 64))
    )
    looked: list[str] = []

    def collect(df: DataFrame, limit: int, *, thin: bool) -> pa.Table | None:
        looked.append("at each row" if thin else "at the count")
        return collect_small(df, limit, thin=thin)

    monkeypatch.setattr(delivery, "collect_small", collect)
    return looked


@pytest.mark.parametrize(
    ("last_bytes", "bounded", "looks"),
    [
        (None, True, "at each row"),  # the first batch of a run: the one before may have been too much for the driver
        (10 * SMALL_ROW_BYTES, True, "at the count"),
        (10 * SMALL_ROW_BYTES + 1, True, "at each row"),
        (10, False, "at each row"),  # spark.driver.maxResultSize=0
    ],
)
def test_only_after_a_batch_of_small_rows_are_rows_collected_unseen(
    spark: SparkSession, looks_taken: list[str], last_bytes: int | None, bounded: bool, looks: str
) -> None:
    one = Delivery(SETTINGS, unobserved, 10, last_rows=10, last_bytes=last_bytes, spark_bounds_results=bounded)
    prepared = one.prepare(spark.sql("select 'x' value"), "t")
    assert prepared.rows is not None
    assert (prepared.rows.num_rows, prepared.partitions, looks_taken) == (1, {"t": 64}, [looks])


@pytest.mark.parametrize(("last_rows", "collected"), [(None, False), (11, False), (10, True)])
def test_the_last_batch_predicts_the_next(
    spark: SparkSession, looks_taken: list[str], last_rows: int | None, collected: bool
) -> None:
    prepared = Delivery(SETTINGS, unobserved, 10, last_rows=last_rows).prepare(spark.sql("select 'x' value"), "t")
    assert (prepared.rows is not None, prepared.job is None) == (collected, collected)


def test_a_batch_that_turns_out_large_is_planned_for_the_tasks(spark: SparkSession, looks_taken: list[str]) -> None:
    one = Delivery(SETTINGS, unobserved, 10, last_rows=1)
    prepared = one.prepare(spark.range(11).selectExpr("cast(id as string) value"), "t")
    assert prepared.rows is None
    assert prepared.job is not None


def test_after_a_failure_to_collect_the_tasks_are_next(spark: SparkSession, looks_taken: list[str]) -> None:
    one = Delivery(SETTINGS, unobserved, small_batch_rows=10, last_rows=1)
    with pytest.raises(Exception, match="broken row"):
        one.prepare(spark.sql("select cast(raise_error('broken row') as binary) value"), "t")
    assert one.prepare(spark.sql("select 'x' value"), "t").job is not None
