"""Which columns make a message, and what is said of those that don't."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from eos.errors import InvalidInput
from eos.nearest import did_you_mean
from eos.sinks.columns import ValueFormat, canonical, message_columns

pytestmark = pytest.mark.usefixtures("spark")  # column expressions need a Spark context


def check(schema: str, value_format: ValueFormat = "raw", *, topic_given: bool = True) -> None:
    parsed = StructType.fromDDL(schema)
    assert isinstance(parsed, StructType)
    message_columns(parsed, value_format, topic_given=topic_given)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("key string", r"no column 'value' \(it has \['key'\]\)"),
        ("vlaue string", r"no column 'value'.*Did you mean 'vlaue'\?.*or use value_format='json'"),
        ("value string, kee string", r"Column 'kee' means nothing to the sink\. Did you mean 'key'\?"),
        ("value string, eventTime timestamp", r"Did you mean '__eventTime'\?|Did you mean 'event_time'\?"),
        (
            "value string, headers array<struct<key:string,value:binary>>",
            r"Column 'headers' means nothing to the sink\. Kafka's headers are properties here.*map_from_entries",
        ),
        ("value string, xyzzy int", r"Column 'xyzzy' means nothing to the sink\. The columns it takes are"),
        ("value bigint", "Column 'value' is bigint, but the message's value is binary or string. Cast it first"),
        ("value string, key int", "Column 'key' is int, but the message's key is binary or string"),
        ("value string, __key int", "Column '__key' is int, but the message's key is binary or string"),
        ("value string, event_time date", "event_time is timestamp, or bigint in milliseconds"),
        ("value string, event_time timestamp_ntz", "Column 'event_time' is timestamp_ntz"),
        ("value string, deliver_at string", "deliver_at is timestamp, or bigint in milliseconds"),
        ("value string, __deliverAt timestamp", r"Column '__deliverAt' means nothing to the sink"),
        ("value string, properties map<string,int>", r"map<string,int>, but .* map<string,string>"),
        ("value string, properties string", r"the message's properties is map<string,string>"),
        ("value string, topic binary", "the message's topic is string"),
        ("value string, partition string", "the message's partition is an integer"),
        ("value string, partition double", "the message's partition is an integer"),
        ("value string, key string, __key string", "Columns 'key' and '__key' both give the message's key. Drop one"),
        ("value string, ordering_key array<int>", "the message's ordering_key is binary or string"),
    ],
)
def test_a_wrong_column_is_named(schema: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        check(schema)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("key string", "builds the payload from the other columns, but there are none"),
        ("value string, a int", "makes the column 'value' itself, but the DataFrame has one. Rename it"),
        ("a int, key int", "Column 'key' is int"),
        ("m map<int,string>", r"Column 'm' holds a map<int,string>.*keys of a JSON object are strings.*transform_keys"),
        ("a array<struct<m:map<string,map<date,int>>>>", r"Column 'a' holds a map<date,int>"),
        ("a array<struct<b:struct<c:int,d:int,c:int>>>", r"Column 'a' holds a struct with two fields 'c'"),
    ],
)
def test_a_wrong_column_of_a_json_message_is_named(schema: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        check(schema, "json")


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("key string", "value_format='avro' builds the payload from the other columns, but there are none"),
        ("value string, a int", "value_format='avro' makes the column 'value' itself, but the DataFrame has one"),
        ("a int, __topic string", "Column '__topic' names a topic per row.*by a txn.write"),
    ],
)
def test_a_wrong_column_of_an_avro_message_is_named(schema: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        check(schema, "avro")


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("key string", "has no column 'value'.* Add one of the type of the topic's schema, or use"),
        ("value int, a int", "Column 'a' means nothing to the sink"),
        ("value int, topic string", "value_format='schema' must know the schema before"),
        ("value int, key int", "Column 'key' is int"),
    ],
)
def test_a_wrong_column_beside_a_value_of_the_topics_schema_is_named(schema: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        check(schema, "schema")


def test_a_value_of_the_topics_schema_is_left_as_it_is() -> None:
    check("value struct<a:int>, key string", "schema")


def test_the_columns_of_an_avro_message_become_a_struct(spark: SparkSession) -> None:
    df = spark.sql("select 1 `a.b`, map(1, 2) m, 'k' key, current_timestamp() event_time")
    made = canonical(df, "avro", topic_given=True)
    assert made.schema.simpleString() == "struct<value:struct<a.b:int,m:map<int,int>>,key:string,event_time:bigint>"


def test_columns_that_spark_can_not_tell_apart_are_refused(spark: SparkSession) -> None:
    cases = (
        ("1 a, 2 a", "Columns 'a' and 'a' have"),
        ("1 a, 2 A", "Columns 'a' and 'A' have"),
        ("1 KEY, 'k' key", "Columns 'KEY' and 'key' have"),
    )
    for columns, words in cases:
        with pytest.raises(InvalidInput, match=words):
            canonical(spark.sql(f"select {columns}"), "json", topic_given=True)
    spark.conf.set("spark.sql.caseSensitive", "TRUE")  # Spark takes it in any case
    try:
        row = canonical(spark.sql("select 1 a, 2 A"), "json", topic_given=True).first()
        with pytest.raises(InvalidInput, match="Columns 'a' and 'a' have"):
            canonical(spark.sql("select 1 a, 2 a"), "json", topic_given=True)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert row is not None
    assert row.value == b'{"a":1,"A":2}'


def test_some_topic_must_be_given() -> None:
    with pytest.raises(
        InvalidInput, match=r"No topic: give topic= to eos.sink\(\), txn.write\(\) or eos.write\(\), or add a column"
    ):
        check("value string", topic_given=False)
    check("value string, topic string", topic_given=False)
    check("value string, __topic string", topic_given=False)


def test_times_become_one_type_and_text_and_partitions_stay_as_they_are(spark: SparkSession) -> None:
    for schema in (
        "value string, key string, ordering_key string, event_time timestamp, partition tinyint, deliver_at timestamp",
        "value binary, __key binary, ordering_key binary, event_time bigint, partition bigint, deliver_at bigint",
    ):
        taken = canonical(spark.createDataFrame([], schema), "raw", topic_given=True)
        types = {field.name: field.dataType.simpleString() for field in taken.schema.fields}
        assert set(types) == {"value", "key", "ordering_key", "event_time", "partition", "deliver_at"}
        assert (types["event_time"], types["deliver_at"]) == ("bigint", "bigint")
        assert types["value"] == schema.split()[1].rstrip(",")
        assert f"partition {types['partition']}" in schema, "a cast wraps a large number around, without ANSI mode"


def test_a_frame_that_fits_is_left_alone(spark: SparkSession) -> None:
    fits = spark.createDataFrame([], "key string, value binary, event_time bigint, partition int")
    assert canonical(fits, "raw", topic_given=True) is fits
    other = spark.createDataFrame([], "__key string, value binary")
    assert canonical(other, "raw", topic_given=True).columns == ["value", "key"]


def test_the_time_of_an_event_is_in_milliseconds(spark: SparkSession) -> None:
    times = spark.sql("select 'x' value, timestamp_micros(1356998400123456) __eventTime")
    row = canonical(times, "raw", topic_given=True).first()
    assert row is not None
    assert row["event_time"] == 1_356_998_400_123


def test_names_with_backticks_dots_and_capitals(spark: SparkSession) -> None:
    odd = spark.sql("select 1 `a.b`, 2 `c``d`, 3 Value, 'k' `__key`")
    row = canonical(odd, "json", topic_given=True).first()
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
        row = canonical(rows, "json", topic_given=True, ignore_null_fields=ignored).first()
    finally:
        spark.conf.unset("spark.sql.jsonGenerator.ignoreNullFields")
    assert row is not None
    assert row.value == payload


def test_a_map_with_string_keys_is_an_object(spark: SparkSession) -> None:
    row = canonical(spark.sql("select map('a', map('b', 1)) m"), "json", topic_given=True).first()
    assert row is not None
    assert row.value == b'{"m":{"a":{"b":1}}}'


@pytest.mark.parametrize(
    ("word", "suggestion"),
    [("vlaue", " Did you mean 'value'?"), ("VALUE", " Did you mean 'value'?"), ("zzz", ""), ("observation", "")],
)
def test_a_close_word_is_suggested(word: str, suggestion: str) -> None:
    assert did_you_mean(word, ["value", "key", "observer"]) == suggestion


def test_the_text_of_a_timestamp_in_json_ends_at_milliseconds(spark: SparkSession) -> None:
    times = spark.sql("select timestamp_micros(1356998400123456) t, timestamp_ntz'2013-01-01 00:00:00.123999' n")
    row = canonical(times, "json", topic_given=True).selectExpr("string(value) value").first()
    assert row is not None
    assert ".123" in row.value.split(",")[0]
    assert ".123456" not in row.value
    assert row.value.endswith('"n":"2013-01-01T00:00:00.123"}')
