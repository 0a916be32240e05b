"""The rows that the sink makes of a DataFrame's columns."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import DataFrame, SparkSession, types

from eos.errors import InvalidInput
from eos.sinks.columns import ValueFormat, roles_of
from eos.sinks.message_rows import message_columns, message_rows


def rows_of(df: DataFrame, value_format: ValueFormat, *, ignore_null_fields: bool | None = None) -> DataFrame:
    return message_rows(df, roles_of(df.schema, value_format, topic="t", named={}), value_format, ignore_null_fields)


def test_the_columns_of_an_avro_message_become_a_struct(spark: SparkSession) -> None:
    df = spark.sql("select 1 `a.b`, map(1, 2) m, 'k' __key, current_timestamp() __eventTime, 7 key")
    made = rows_of(df, "avro")
    assert (
        made.schema.simpleString()
        == "struct<value:struct<a.b:int,m:map<int,int>,key:int>,key:string,event_time:bigint>"
    )


def test_columns_that_spark_can_not_tell_apart_are_refused(spark: SparkSession) -> None:
    cases = (
        ("1 a, 2 a", "Columns 'a' and 'a' have"),
        ("1 a, 2 A", "Columns 'a' and 'A' have"),
        ("1 KEY, 'k' key", "Columns 'KEY' and 'key' have"),
    )
    for columns, words in cases:
        with pytest.raises(InvalidInput, match=words):
            rows_of(spark.sql(f"select {columns}"), "json")
    spark.conf.set("spark.sql.caseSensitive", "TRUE")  # Spark takes it in any case
    try:
        row = rows_of(spark.sql("select 1 a, 2 A"), "json").first()
        with pytest.raises(InvalidInput, match="Columns 'a' and 'a' have"):
            rows_of(spark.sql("select 1 a, 2 a"), "json")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert row is not None
    assert row.value == b'{"a":1,"A":2}'


def test_names_that_spark_takes_for_patterns_are_refused(spark: SparkSession) -> None:
    option = "spark.sql.parser.quotedRegexColumnNames"
    plain = spark.sql("select 1 a, 2 `größe`, 'k' __key")
    spark.conf.set(option, "TRUE")
    try:
        for name in ("a.b", "p(q)", "c$", "a b"):
            odd = spark.createDataFrame([("1", 2)], [name, "axb"])
            for value_format in ("json", "avro"):
                with pytest.raises(InvalidInput, match=re.escape(f"Column {name!r} can't be selected")):
                    rows_of(odd, value_format)
            with pytest.raises(InvalidInput, match=re.escape(f"Column {name!r} can't be selected")):
                message_rows(odd, roles_of(odd.schema, "json", topic="t", named={"key": name}), "json")
        row = rows_of(plain, "json").first()
    finally:
        spark.conf.unset(option)
    assert row is not None
    assert (row.value.decode(), row.key) == ('{"a":1,"größe":2}', "k")


@pytest.mark.skipif(not hasattr(types, "GeometryType"), reason="types of Spark 4.1")
@pytest.mark.parametrize("name", ["GeometryType", "GeographyType"])
def test_a_place_is_refused_that_json_has_no_text_for(name: str) -> None:
    place = getattr(types, name)(4326)
    for kind in (place, types.ArrayType(types.StructType([types.StructField("p", place)]))):
        columns = types.StructType([types.StructField("where", kind)])
        roles = roles_of(columns, "json", topic="t", named={})
        with pytest.raises(InvalidInput, match=r"Column 'where' holds a geo.*\(4326\), .*st_asbinary"):
            message_columns(columns, roles, "json")


def test_times_become_one_type_and_text_and_partitions_stay_as_they_are(spark: SparkSession) -> None:
    for schema in (
        "value string, key string, ordering_key string, event_time timestamp, partition tinyint, deliver_at timestamp",
        "value binary, __key binary, ordering_key binary, event_time bigint, partition bigint, deliver_at bigint",
    ):
        taken = rows_of(spark.createDataFrame([], schema), "raw")
        types = {field.name: field.dataType.simpleString() for field in taken.schema.fields}
        assert set(types) == {"value", "key", "ordering_key", "event_time", "partition", "deliver_at"}
        assert (types["event_time"], types["deliver_at"]) == ("bigint", "bigint")
        assert types["value"] == schema.split()[1].rstrip(",")
        assert f"partition {types['partition']}" in schema, "a cast wraps a large number around, without ANSI mode"


def test_a_frame_that_fits_is_left_alone(spark: SparkSession) -> None:
    fits = spark.createDataFrame([], "key string, value binary, event_time bigint, partition int")
    assert rows_of(fits, "raw") is fits
    other = spark.createDataFrame([], "__key string, value binary")
    assert rows_of(other, "raw").columns == ["value", "key"]


def test_the_time_of_an_event_is_in_milliseconds(spark: SparkSession) -> None:
    times = spark.sql("select 'x' value, timestamp_micros(1356998400123456) __eventTime")
    row = rows_of(times, "raw").first()
    assert row is not None
    assert row["event_time"] == 1_356_998_400_123


def test_names_with_backticks_dots_and_capitals(spark: SparkSession) -> None:
    odd = spark.sql("select 1 `a.b`, 2 `c``d`, 3 Value, 'k' `__key`")
    row = rows_of(odd, "json").first()
    assert row is not None
    assert row.value == b'{"a.b":1,"c`d":2,"Value":3}'
    assert row.key == "k"


@pytest.mark.parametrize(
    ("ignored", "session", "payload"),
    [
        (None, "true", b'{"a":1,"s":{}}'),
        (None, "false", b'{"a":1,"b":null,"s":{"c":null}}'),
        (True, "false", b'{"a":1,"s":{}}'),
        (False, "true", b'{"a":1,"b":null,"s":{"c":null}}'),
    ],
)
def test_nulls_are_left_out_as_the_option_says_or_else_the_session(
    spark: SparkSession, ignored: bool | None, session: str, payload: bytes
) -> None:
    rows = spark.sql("select 1 a, cast(null as int) b, named_struct('c', cast(null as string)) s")
    spark.conf.set("spark.sql.jsonGenerator.ignoreNullFields", session)
    try:
        row = rows_of(rows, "json", ignore_null_fields=ignored).first()
    finally:
        spark.conf.unset("spark.sql.jsonGenerator.ignoreNullFields")
    assert row is not None
    assert row.value == payload


def test_a_map_with_string_keys_is_an_object(spark: SparkSession) -> None:
    row = rows_of(spark.sql("select map('a', map('b', 1)) m"), "json").first()
    assert row is not None
    assert row.value == b'{"m":{"a":{"b":1}}}'


def test_the_text_of_a_timestamp_in_json_ends_at_milliseconds(spark: SparkSession) -> None:
    times = spark.sql("select timestamp_micros(1356998400123456) t, timestamp_ntz'2013-01-01 00:00:00.123999' n")
    row = rows_of(times, "json").selectExpr("string(value) value").first()
    assert row is not None
    assert ".123" in row.value.split(",")[0]
    assert ".123456" not in row.value
    assert row.value.endswith('"n":"2013-01-01T00:00:00.123"}')
