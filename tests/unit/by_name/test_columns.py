"""Message columns from Arrow batches: the sink's columns, and those of the source's tables."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from eos.by_name.columns import columns_of
from eos.errors import InvalidInput

TYPES: dict[str, DataType] = {
    "string": StringType(),
    "binary": BinaryType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "timestamp": TimestampType(),
    "map<string,string>": MapType(StringType(), StringType()),
    "struct<ledger:bigint>": StructType().add("ledger", LongType()),
}


def schema(columns: str) -> StructType:
    """Return the schema of columns such as "value string; key binary": Spark's own parser needs a session."""
    pairs = (column.strip().split(" ") for column in columns.split(";"))
    return StructType([StructField(name, TYPES[kind]) for name, kind in pairs])


def message(declared: str, value_format: Any = "raw", **columns: pa.Array) -> dict[str, list[Any]]:
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    found = columns_of(schema(declared), value_format, topic="out", named={}).message(batch)
    return {name: found.column(name).to_pylist() for name in found.schema.names}


def test_aliases_and_names_of_the_source() -> None:
    found = message(
        "__key string; value string; __orderingKey binary; __partition bigint; __messageProperties map<string,string>; "
        "__publishTime timestamp",
        __key=pa.array(["k"]),
        value=pa.array(["v"]),
        __orderingKey=pa.array([b"o"]),
        __partition=pa.array([3], pa.int64()),
        __messageProperties=pa.array([[("a", "b")]], pa.map_(pa.string(), pa.string())),
        __publishTime=pa.array([None], pa.timestamp("us", "UTC")),
    )
    assert found == {
        "key": ["k"],
        "value": ["v"],
        "ordering_key": [b"o"],
        "partition": [3],
        "properties": [[("a", "b")]],
    }


@pytest.mark.parametrize(("micros", "millis"), [(0, 0), (1_999, 1), (-1, -1), (-1_000, -1), (-1_001, -2), (None, None)])
def test_a_time_is_rounded_down_to_milliseconds(micros: int | None, millis: int | None) -> None:
    times = pa.array([micros], pa.int64()).cast(pa.timestamp("us", "Europe/Berlin"))
    assert message("value string; event_time timestamp", value=pa.array(["v"]), event_time=times)["event_time"] == [
        millis
    ]


def test_milliseconds_stay_as_they_are() -> None:
    found = message("value string; __eventTime bigint", value=pa.array(["v"]), __eventTime=pa.array([7]))
    assert found["event_time"] == [7]


def test_a_record_is_built_from_the_other_columns_in_their_order() -> None:
    found = message(
        "b int; __key string; a string; __messageId struct<ledger:bigint>",
        "avro",
        b=pa.array([1, None], pa.int32()),
        __key=pa.array(["k", None]),
        a=pa.array(["x", "y"]),
        __messageId=pa.array([None, None], pa.struct([("ledger", pa.int64())])),
    )
    assert found == {"key": ["k", None], "value": [{"b": 1, "a": "x"}, {"b": None, "a": "y"}]}


def test_what_the_broker_assigns_is_not_written() -> None:
    ids = pa.array([None, {"ledger": 1}], pa.struct([("ledger", pa.int64())]))
    columns = {"value": pa.array(["a", "b"]), "__messageId": ids}
    assert message("value string; __messageId struct<ledger:bigint>", **columns) == {"value": ["a", "b"]}


def test_a_partition_beyond_all_numbers_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'partition' holds a number that no partition has"):
        message("value string; partition bigint", value=pa.array(["v"]), partition=pa.array([1 << 40]))


@pytest.mark.parametrize(
    ("columns", "value_format", "words"),
    [
        ("valu string", "raw", "no column 'value'"),
        ("value string; extra int", "raw", "'extra' means nothing to the sink"),
        ("value string; key int", "raw", "'key' is int"),
        ("value string; key string; __key string", "raw", "both give the message's key"),
        ("value string; partition int; __partition int", "raw", "both give the message's partition"),
        ("__key string", "avro", "builds the payload from the other columns"),
    ],
)
def test_columns_are_refused_as_the_sink_does(columns: str, value_format: Any, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        columns_of(schema(columns), value_format, topic="out", named={})
    assert words in str(refused.value)


def test_without_a_topic_each_row_names_one() -> None:
    assert columns_of(schema("value string; topic string"), "raw", topic=None, named={}).places == {
        "value": 0,
        "topic": 1,
    }
    with pytest.raises(InvalidInput, match="No topic"):
        columns_of(schema("value string"), "raw", topic=None, named={})


def test_a_topic_that_is_given_wins_over_a_column() -> None:
    assert columns_of(schema("topic string; value string"), "raw", topic="out", named={}).places == {"value": 1}
