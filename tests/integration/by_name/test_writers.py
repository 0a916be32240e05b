"""Rows written by `format("pulsar")` with `guarantee="at-least-once"`, as the official client reads them."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fastavro
import httpx
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from eos.local import LocalPulsar
from tests.integration.by_name.conftest import MakeTopic, ReadAll
from tests.integration.source.streams import PATIENCE_S
from tests.waiting import until

ROWS = 300
Options = Callable[..., dict[str, str]]


@pytest.fixture
def options(plain: LocalPulsar) -> Options:
    """The options of a writer: `options(topic, compression="zstd")`."""
    return lambda topic, **more: {
        "Service.Url": plain.service_url,
        "topic": topic,
        "guarantee": "at-least-once",
        **more,
    }


def save(df: DataFrame, options: Mapping[str, str], mode: str | None = "append") -> None:
    writer = df.write.format("pulsar").options(**options)
    (writer if mode is None else writer.mode(mode)).save()


def in_sql(options: Mapping[str, str]) -> str:
    return ", ".join(f"'{name}' '{value}'" for name, value in options.items())


def payloads(messages: list[Any]) -> Counter[str]:
    return Counter(message.data().decode() for message in messages)


def test_each_part_of_a_message_is_written(
    spark: SparkSession, make_plain: MakeTopic, read_all: ReadAll, options: Options
) -> None:
    topic, other = make_plain("parts", partitions=3), make_plain("others")
    rows = spark.range(ROWS, numPartitions=4).selectExpr(
        "concat('v', id) value",
        "string(id % 10) `__key`",
        "binary(concat('o', id % 5)) ordering_key",
        "timestamp_micros(1500 + id * 1000) event_time",
        "map('id', string(id)) properties",
        f"if(id < 20, '{other}', '{topic}') topic",
    )
    given = options(topic, compression="zstd", key_hash="java")
    save(rows, {name: value for name, value in given.items() if name != "topic"})
    found = {message.properties()["id"]: message for message in [*read_all(topic), *read_all(other)]}
    assert len(found) == ROWS
    for number in range(ROWS):
        message = found[str(number)]
        parts = (message.data(), message.partition_key(), message.ordering_key())
        assert parts == (b"v%d" % number, str(number % 10), f"o{number % 5}")
        assert (message.topic_name() == other) == (number < 20)
        assert message.event_timestamp() == number + 1
    assert len({message.topic_name() for message in found.values()}) > 2, "keys went to one partition"


def test_rows_without_a_time_or_a_key_and_a_frame_of_several_batches(
    spark: SparkSession, make_plain: MakeTopic, read_all: ReadAll, options: Options
) -> None:
    topic = make_plain("wide")
    rows = spark.range(4_000, numPartitions=2).selectExpr(
        "lpad(id, 1000, '.') value", "cast(null as bigint) event_time"
    )
    save(rows, options(topic, max_in_flight_bytes="1048576"))
    assert payloads(read_all(topic)) == Counter(f"{number:.>1000}" for number in range(4_000))


def test_a_topic_that_takes_smaller_frames_than_its_broker(
    spark: SparkSession, plain: LocalPulsar, make_plain: MakeTopic, read_all: ReadAll, options: Options
) -> None:
    """In local mode Spark runs no task twice, and each try of a query begins with the same frames."""
    topic = make_plain("small-frames", partitions=2)
    url = f"{plain.admin_url}/admin/v2/{topic.replace('://', '/')}/maxMessageSize"
    httpx.post(url, json=20_000, timeout=30).raise_for_status()
    until(lambda: httpx.get(url, timeout=30).text == "20000")
    rows = spark.range(4_000, numPartitions=2).selectExpr("lpad(id, 1000, '.') value", "string(id) `__key`")
    save(rows, options(topic, max_in_flight_bytes="1048576"))
    assert set(payloads(read_all(topic))) == {f"{number:.>1000}" for number in range(4_000)}
    with pytest.raises(PySparkException, match=r"is more than the topic allows.*set-max-message-size"):
        save(spark.range(1).selectExpr("repeat('x', 30000) value"), options(topic))


def test_a_dataframe_without_rows_writes_nothing(
    spark: SparkSession, make_plain: MakeTopic, read_all: ReadAll, options: Options
) -> None:
    topic = make_plain("empty")
    for rows in (spark.range(0), spark.range(9).where("false")):
        save(rows.selectExpr("string(id) value"), options(topic))
    assert read_all(topic) == []


def test_a_record_of_the_topics_avro_schema(
    spark: SparkSession, plain: LocalPulsar, make_plain: MakeTopic, read_all: ReadAll, options: Options
) -> None:
    topic = make_plain("avro", partitions=2)
    fields = [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}]
    record = {"type": "record", "name": "Row", "fields": fields}
    where = f"{plain.admin_url}/admin/v2/schemas/{topic.removeprefix('persistent://')}/schema"
    body = {"type": "AVRO", "schema": json.dumps(record), "properties": {}}
    httpx.post(where, json=body, timeout=30, follow_redirects=True).raise_for_status()
    rows = spark.range(ROWS).selectExpr("id", "if(id % 2 = 0, null, concat('n', id)) note", "string(id) `__key`")
    save(rows, options(topic, value_format="avro"))
    parsed = fastavro.parse_schema(record)
    found = {
        message.partition_key(): fastavro.schemaless_reader(io.BytesIO(message.data()), parsed, None)
        for message in read_all(topic)
    }
    assert found == {
        str(number): {"id": number, "note": None if number % 2 == 0 else f"n{number}"} for number in range(ROWS)
    }
    with pytest.raises(PySparkException, match=r"field 'missing'|missing"):
        save(rows.selectExpr("id", "note", "1 missing"), options(topic, value_format="avro"))


def test_insert_into_a_view_that_is_read_too(
    spark: SparkSession, make_plain: MakeTopic, read_all: ReadAll, options: Options
) -> None:
    topic = make_plain("view", partitions=2)
    given = in_sql(options(topic, starting_offsets="earliest", keyHash="java", valueFormat="bytes"))
    spark.sql(f"create or replace temporary view by_name_view using pulsar options ({given})")
    spark.sql("insert into by_name_view (value, __key) select binary(string(id)), binary('k') from range(10)")
    assert payloads(read_all(topic)) == Counter(map(str, range(10)))
    shown = spark.sql("select string(value) value, string(__key) key from by_name_view").collect()
    assert sorted((row.value, row.key) for row in shown) == [(str(number), "k") for number in range(10)]
    spark.sql("insert into by_name_view select * from by_name_view")
    assert payloads(read_all(topic)) == Counter([*map(str, range(10))] * 2)
    spark.sql("drop view by_name_view")


def test_insert_into_a_table_gets_its_options_by_with(
    spark: SparkSession, make_plain: MakeTopic, read_all: ReadAll, options: Options
) -> None:
    """Spark 4.3 hands a Python data source none of a catalog table's own options."""
    topic = make_plain("table")
    given = options(topic)
    spark.sql(f"create table by_name_table (value string, __key string) using pulsar options ({in_sql(given)})")
    try:
        with pytest.raises(PySparkException, match="Spark does not hand over the options"):
            spark.sql("insert into by_name_table values ('lost', 'k')")
        with_options = ", ".join(f"'{name}' = '{value}'" for name, value in given.items())
        spark.sql(f"insert into by_name_table with ({with_options}) values ('a', 'k'), ('b', null)")
    finally:
        spark.sql("drop table by_name_table")
    assert payloads(read_all(topic)) == Counter("ab")


def test_a_stream_writes_each_micro_batch(
    spark: SparkSession, make_plain: MakeTopic, read_all: ReadAll, options: Options, tmp_path: Path
) -> None:
    topic, files = make_plain("stream", partitions=2), tmp_path / "input"
    files.mkdir()
    for number in range(3):
        (files / f"{number}.txt").write_text("".join(f"{number}-{row}\n" for row in range(50)))
    for _ in range(2):  # the second run goes on from the checkpoint, and finds nothing new
        lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(files)).selectExpr("value", "value key")
        writer = lines.writeStream.format("pulsar").options(**options(topic)).queryName("by name")
        query = writer.option("checkpointLocation", str(tmp_path / "ck")).trigger(availableNow=True).start()
        assert query.awaitTermination(PATIENCE_S)
    assert payloads(read_all(topic)) == Counter(f"{number}-{row}" for number in range(3) for row in range(50))


def test_a_row_that_cant_be_written_fails_the_save_at_once_and_says_what_is_visible(
    spark: SparkSession, make_plain: MakeTopic, read_all: ReadAll, options: Options
) -> None:
    topic = make_plain("refused")
    rows = spark.range(6, numPartitions=2).selectExpr(
        "string(id) value", f"if(id = 4, 'persistent://public/default/nowhere', '{topic}') topic"
    )
    given = options(topic)
    del given["topic"]
    with pytest.raises(PySparkException) as refused:
        save(rows, given)
    assert "persistent://public/default/nowhere" in str(refused.value)
    assert "Rows of this DataFrame that were sent before may be visible" in str(refused.value)
    assert payloads(read_all(topic)) == Counter("012")


@pytest.mark.parametrize(
    ("mode", "more", "words"),
    [
        ("overwrite", {}, "Nothing takes messages back out of a topic"),
        (None, {}, 'cannot be written in the "ErrorIfExists" mode. Please use either the "Append"'),
        ("append", {"guarante": "x"}, "Did you mean 'guarantee'?"),
        ("append", {"topic": "nowhere"}, "persistent://public/default/nowhere"),
        ("append", {"path": "/t"}, "Name the topic by the option topic"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_written(
    spark: SparkSession,
    make_plain: MakeTopic,
    read_all: ReadAll,
    options: Options,
    mode: str | None,
    more: dict[str, str],
    words: str,
) -> None:
    topic = make_plain("wrong")
    with pytest.raises(PySparkException) as refused:
        save(spark.range(3).selectExpr("string(id) value"), {**options(topic), **more}, mode)
    assert words in str(refused.value)
    assert read_all(topic) == []


def test_nothing_is_written_where_spark_would_not_see_that_a_shuffle_changed(
    spark: SparkSession, make_plain: MakeTopic, read_all: ReadAll, options: Options
) -> None:
    topic, conf = make_plain("unseen"), "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch"
    spark.conf.set(conf, "false")
    try:
        with pytest.raises(PySparkException, match="leave it at its default, true"):
            save(spark.range(3).selectExpr("string(id) value"), options(topic))
    finally:
        spark.conf.unset(conf)
    assert read_all(topic) == []
