"""The sink goes on with the checkpoint of a query that wrote by another sink: docs/how-to/migrate.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import eos
from eos.sinks.columns import roles_of
from tests.reading import values_of


@pytest.fixture
def lines(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """A stream of two micro-batches: "0" and "1"."""
    folder = tmp_path / "input"
    folder.mkdir()
    (folder / "0").write_text("0\n")
    (folder / "1").write_text("1\n")
    return spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder))


def test_a_query_goes_on_with_this_sink(lines: DataFrame, tmp_path: Path, pulsar: Any, make_topic: Any) -> None:
    """Batch 1 was begun by the other sink, which may have written any part of it; this one writes it whole."""
    checkpoint, topic = tmp_path / "checkpoint", make_topic("migrate")

    def run(writer: Any) -> None:
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        assert query.awaitTermination(120)

    run(lines.writeStream.format("noop"))
    (checkpoint / "commits/1").unlink()
    (checkpoint / "commits/.1.crc").unlink()
    sink = eos.sink(pulsar.service_url, topic=topic, name=topic.rpartition("/")[2])
    run(lines.writeStream.foreachBatch(sink))
    sink.close()
    assert (sink.metrics.committed, sink.metrics.skipped) == (1, 0)
    assert values_of(pulsar.service_url, topic) == ["1"]


def test_the_answer_to_headers_is_an_expression_of_spark(spark: SparkSession) -> None:
    """Kafka's columns as Spark's Kafka source gives them, with includeHeaders."""
    rows = spark.sql("select 'v' value, array(struct('trace' as key, cast('é' as binary) as value)) headers")
    with pytest.raises(eos.InvalidInput) as refused:
        roles_of(rows.schema, "raw", topic="t", named={})
    expression = str(refused.value).partition("text: ")[2].partition(" as properties.")[0]
    moved = rows.selectExpr("value", f"{expression} as properties")
    assert roles_of(moved.schema, "raw", topic="t", named={})
    assert moved.head() == ("v", {"trace": "é"})
