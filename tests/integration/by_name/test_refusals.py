"""Spark's report of the refusal to write by `format("pulsar")`, where it could not be exactly-once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.integration.source.streams import PATIENCE_S

OPTIONS = {"service.url": "pulsar://nowhere", "topic": "t"}


def _save(spark: SparkSession, folder: Path, mode: str) -> None:
    spark.range(3).selectExpr("string(id) value").write.format("pulsar").options(**OPTIONS).mode(mode).save()


def _stream(spark: SparkSession, folder: Path) -> None:
    rows = spark.readStream.format("rate").load().selectExpr("string(value) value")
    writer = rows.writeStream.format("pulsar").options(**OPTIONS).option("checkpointLocation", str(folder))
    query = writer.trigger(availableNow=True).start()
    try:
        query.awaitTermination(PATIENCE_S)
    finally:
        query.stop()


def _insert(spark: SparkSession, folder: Path) -> None:
    spark.sql("create table by_name using pulsar options ('service.url' 'pulsar://nowhere', 'topic' 't')")
    try:
        spark.sql("insert into by_name (value) values (cast('x' as binary))")
    finally:
        spark.sql("drop table by_name")


BATCH = ('df.write.format("pulsar") and INSERT INTO are refused', "eos.write(df, service_url", "job_id=")


@pytest.mark.parametrize(
    ("write", "words"),
    [
        pytest.param(lambda spark, folder: _save(spark, folder, "append"), BATCH, id="append"),
        pytest.param(lambda spark, folder: _save(spark, folder, "overwrite"), BATCH, id="overwrite"),
        pytest.param(_insert, BATCH, id="insert into"),
        pytest.param(_stream, ('df.writeStream.format("pulsar") is refused', "foreachBatch(eos.sink("), id="stream"),
    ],
)
def test_a_writer_by_name_is_refused_with_the_call_to_use(
    spark: SparkSession, tmp_path: Path, write: Callable[[SparkSession, Path], None], words: tuple[str, ...]
) -> None:
    with pytest.raises(PySparkException) as refused:
        write(spark, tmp_path)
    assert [word for word in words if word not in str(refused.value)] == []
    assert "Nothing is written" in str(refused.value)
