"""The driver path: what it collects, what it leaves alone, and that the driver's memory stays bounded."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructType

from eos.delivery import delivery
from eos.delivery.delivery import LARGE_ROW_BYTES, SMALL_ROW_BYTES, Care, Delivery, Write, collect_small, least_care
from eos.delivery.path import DriverPath, TaskPath
from eos.delivery.row_writer import WriteSettings
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.schemas import Registered
from eos.spark import jobs
from eos.spark.query import driver_heap, result_limit
from tests.waiting import until

CLIENT = cast(Client, SimpleNamespace(partitions=lambda _: 64))
SETTINGS = WriteSettings("t", "murmur3", "none", 1 << 20)


@pytest.mark.parametrize("care", Care)
def test_rows_up_to_the_limit_are_collected_whole(spark: SparkSession, care: Care) -> None:
    df = spark.range(0, 20, numPartitions=2).selectExpr(
        "cast(cast(id as string) as binary) value", "cast(id as string) key"
    )
    rows = collect_small(df, 20, care)
    assert rows is not None
    assert rows.schema.names == ["value", "key"]
    assert rows.column("key").to_pylist() == [str(row) for row in range(20)]


@pytest.mark.parametrize("care", Care)
@pytest.mark.parametrize("partitions", [1, 2, 11])
def test_one_row_more_is_too_many_however_they_are_spread(spark: SparkSession, partitions: int, care: Care) -> None:
    df = spark.range(0, 11, numPartitions=partitions).selectExpr("cast(id as string) value")
    assert collect_small(df, 10, care) is None
    assert collect_small(df, 11, care) is not None


@pytest.mark.parametrize("column", ["value", "key", "ordering_key"])
def test_a_large_row_is_too_much_wherever_its_bytes_are(spark: SparkSession, column: str) -> None:
    parts = {name: "'x'" for name in ("value", "key", "ordering_key")}
    parts[column] = f"repeat('x', {LARGE_ROW_BYTES})"
    large = spark.range(2).selectExpr(*(f"{expression} {name}" for name, expression in parts.items()))
    assert collect_small(large, 10, Care.SIZES) is None
    small = spark.range(2).selectExpr(*(f"substr({expression}, 1, 9) {name}" for name, expression in parts.items()))
    assert collect_small(small, 10, Care.SIZES) is not None


def test_a_value_that_is_still_to_be_encoded_is_measured_by_its_text(spark: SparkSession) -> None:
    value = "struct(id, map('t', array(repeat('x', {0}))) texts, cast('x' as binary), current_timestamp()) value"
    assert collect_small(spark.range(2).selectExpr(value.format(LARGE_ROW_BYTES)), 10, Care.SIZES) is None
    rows = collect_small(spark.range(2).selectExpr(value.format(9)), 10, Care.SIZES)
    assert rows is not None
    assert [one["id"] for one in rows.column("value").to_pylist()] == [0, 1]


@pytest.mark.parametrize("care", Care)
def test_nulls_are_kept_and_an_empty_frame_is_small(spark: SparkSession, care: Care) -> None:
    df = spark.sql("select cast(null as binary) value, 'k' key, map('a', 'b') properties")
    rows = collect_small(df, 10, care)
    assert rows is not None
    assert rows.column("value").to_pylist() == [None]
    none = collect_small(df.where("false"), 10, care)
    assert none is not None
    assert none.num_rows == 0


@pytest.mark.parametrize("care", Care)
def test_every_row_runs_though_few_are_collected(spark: SparkSession, care: Care) -> None:
    """A stateful query needs the whole plan to run."""
    seen = spark.sparkContext.accumulator(0)

    def count(batches):  # type: ignore[no-untyped-def]
        for batch in batches:
            seen.add(batch.num_rows)
            yield batch

    rows = spark.range(0, 50_000, numPartitions=2).selectExpr("cast(id as string) value")
    df = rows.mapInArrow(count, "value string")
    assert collect_small(df, 3, care) is None
    assert seen.value == 50_000


def test_what_reaches_the_driver_is_bounded(spark: SparkSession) -> None:
    """Of a thousand large rows in each partition the driver gets no payload but the first rows' flags."""
    df = spark.range(0, 2_000, numPartitions=2).selectExpr(f"repeat('x', {LARGE_ROW_BYTES + 1}) value")
    collected: list[int] = []

    def measured(frame: DataFrame, limit: int) -> pa.Table | None:
        table = frame.toArrow()
        collected.append(table.nbytes)
        return table if table.num_rows <= limit else None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "collect", measured)
        assert collect_small(df, 100, Care.SIZES) is None
    assert collected[0] < 100 * 1_000


@pytest.fixture
def looks_taken(monkeypatch: pytest.MonkeyPatch) -> list[Care]:
    """Lists how the rows of small batches were looked at."""
    looked: list[Care] = []

    def collect(df: DataFrame, limit: int, care: Care) -> pa.Table | None:
        looked.append(care)
        return collect_small(df, limit, care)

    monkeypatch.setattr(delivery, "collect_small", collect)
    return looked


@pytest.mark.parametrize("least", Care)
@pytest.mark.parametrize(
    ("batches", "small"),
    [
        ([], False),  # the first batch of a run: the one before may have been too much for the driver
        ([(10, 10 * SMALL_ROW_BYTES)], True),
        ([(10, 10 * SMALL_ROW_BYTES + 1)], False),
        ([(10, 10), (0, 0)], True),  # a batch without rows says nothing of rows
        ([(0, 0)], False),
        ([(10, 10), (10, 10 * SMALL_ROW_BYTES + 1)], False),
    ],
)
def test_only_after_a_batch_of_small_rows_is_less_care_taken(
    spark: SparkSession, looks_taken: list[Care], batches: list[tuple[int, int]], small: bool, least: Care
) -> None:
    one = Delivery(CLIENT, SETTINGS, 10, last_rows=10, least_care=least)
    for rows, size in batches:
        one.committed(rows, size)
    prepared = one.prepare(Write(spark.sql("select 'x' value"), "t"))
    assert isinstance(prepared, DriverPath)
    assert (prepared.rows.num_rows, prepared.partitions) == (1, {"t": 64})
    assert looks_taken == [least if small else Care.SIZES]


def test_a_new_run_takes_care_again(spark: SparkSession, looks_taken: list[Care]) -> None:
    Delivery(CLIENT, SETTINGS, 10, 10, least_care=Care.SPARK).committed(10, 10)
    Delivery(CLIENT, SETTINGS, 10, 10, least_care=Care.SPARK).prepare(Write(spark.sql("select 'x' value"), "t"))
    assert looks_taken == [Care.SIZES]


GIB = 1 << 30


@pytest.mark.parametrize(
    ("limit", "heap", "least"),
    [(GIB, 2 * GIB, Care.SPARK), (GIB, 2 * GIB - 1, Care.ROWS), (None, 64 * GIB, Care.SIZES)],
)
def test_spark_s_own_limit_is_trusted_where_the_heap_is_large_enough(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, limit: int | None, heap: int, least: Care
) -> None:
    monkeypatch.setattr("eos.delivery.delivery.spark.result_limit", lambda _: limit)
    monkeypatch.setattr("eos.delivery.delivery.spark.driver_heap", lambda _: heap)
    assert least_care(spark) is least


def test_spark_s_limit_and_the_heap_are_read(spark: SparkSession) -> None:
    assert result_limit(spark) == GIB
    assert driver_heap(spark) > 100 << 20


@pytest.mark.parametrize(("last_rows", "collected"), [(None, False), (11, False), (10, True)])
def test_the_last_batch_predicts_the_next(
    spark: SparkSession, looks_taken: list[Care], last_rows: int | None, collected: bool
) -> None:
    prepared = Delivery(CLIENT, SETTINGS, 10, last_rows=last_rows).prepare(Write(spark.sql("select 'x' value"), "t"))
    assert isinstance(prepared, DriverPath if collected else TaskPath)


@pytest.mark.parametrize(
    ("last_rows", "query", "told"),
    [
        (11, "select 'x' value, 'b' topic", {"t", "a", "b"}),
        (11, "select 'x' value", {"t"}),
        (10, "select 'x' value, 'b' topic", {"t"}),  # by the driver, which sees what its rows name
    ],
)
def test_the_driver_asks_once_for_the_topics_that_the_rows_of_tasks_will_likely_name(
    spark: SparkSession, looks_taken: list[Care], last_rows: int, query: str, told: set[str]
) -> None:
    one = Delivery(CLIENT, SETTINGS, 10)
    one.committed(last_rows, last_rows, ["a", "b"])
    prepared = one.prepare(Write(spark.sql(query), "t"))
    assert prepared.partitions == dict.fromkeys(told, 64)
    if isinstance(prepared, TaskPath):
        assert prepared.topics == told, "where frames of its tasks may be on their way if the batch is given up"


def test_a_batch_that_turns_out_large_is_planned_for_the_tasks(spark: SparkSession, looks_taken: list[Care]) -> None:
    one = Delivery(CLIENT, SETTINGS, 10, last_rows=1)
    assert isinstance(one.prepare(Write(spark.range(11).selectExpr("cast(id as string) value"), "t")), TaskPath)


def test_after_a_failure_to_collect_the_tasks_are_next(spark: SparkSession, looks_taken: list[Care]) -> None:
    one = Delivery(CLIENT, SETTINGS, small_batch_rows=10, last_rows=1)
    with pytest.raises(Exception, match="broken row"):
        one.prepare(Write(spark.sql("select cast(raise_error('broken row') as binary) value"), "t"))
    assert isinstance(one.prepare(Write(spark.sql("select 'x' value"), "t")), TaskPath)


def test_a_broken_row_is_named_when_rows_are_collected(spark: SparkSession) -> None:
    broken = spark.range(0, 20, numPartitions=2).selectExpr(
        "if(id = 15, raise_error('row 15 is broken'), cast(id as string)) value"
    )
    with pytest.raises(Exception, match="row 15 is broken"):
        jobs.collect(broken, 100)


def test_a_thread_of_the_jvm_that_died_is_not_waited_for(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one does of a full heap: it ends the rows as if these were all, and what it was to say is never said."""
    monkeypatch.setattr(jobs, "_SAYS_WHY_S", 1)
    jobs._patience.cache_clear()
    threads = spark._jvm.java.lang.Thread  # type: ignore[union-attr]

    def end_it() -> None:
        def serving() -> list[Any]:
            return [one for one in threads.getAllStackTraces().keySet() if one.getName() == "serve-Arrow"]

        until(lambda: any("runJob" in str(frame) for one in serving() for frame in one.getStackTrace()))
        serving()[0].interrupt()

    ending = threading.Thread(target=end_it, daemon=True)
    ending.start()
    slow = spark.range(1).selectExpr("java_method('java.lang.Thread', 'sleep', 60000 + id) value")
    try:
        with pytest.raises(Exception, match="timed out"):
            jobs.collect(slow, 100)
    finally:
        ending.join()
        spark.sparkContext.cancelAllJobs()
        jobs._patience.cache_clear()


def test_a_function_goes_to_the_jvm_once_for_each_topic_schema_and_context(spark: SparkSession) -> None:
    one = Delivery(CLIENT, SETTINGS, 10)
    schema = Registered("t", b"\0\0\0\0\0\0\0\1", "INT64", b"", {})
    context, other = spark.sparkContext, cast(Any, SimpleNamespace())
    first = one._function(SETTINGS, context)
    assert one._function(SETTINGS, context) is first
    assert one._function(replace(SETTINGS, topic="u"), context) is not first
    by_schema = replace(SETTINGS, schema=schema)
    assert one._function(by_schema, context) is not first
    assert one._function(by_schema, context) is one._function(by_schema, context)
    assert one._function(SETTINGS, other) is not first


def test_one_function_serves_many_frames(spark: SparkSession) -> None:
    def count(batches):  # type: ignore[no-untyped-def]
        yield pa.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]})

    counting = jobs.ArrowFunction(count, StructType().add("rows", LongType()))
    for rows in (3, 5):
        df = spark.range(0, rows, numPartitions=2).selectExpr("cast(id as string) value", "'k' key")
        assert sum(row.rows for row in counting.planned(df).collect()) == rows
