from __future__ import annotations

import pytest
from pyspark.sql.types import DataType, IntegerType, StringType, StructField, StructType, TimestampType

from eos.errors import InvalidInput
from eos.sinks.schemas import check_json
from tests.unit.schema.registered import TOPIC, field, record, registered

FLIGHT = record(field("carrier", ["null", "string"]), field("delay", "int"))


TEXT, NUMBER = StringType(), IntegerType()


def columns(**kinds: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def test_the_columns_of_the_payload_are_checked_and_those_of_the_message_are_not() -> None:
    check_json(
        columns(key=TEXT, event_time=TimestampType(), carrier=TEXT, delay=NUMBER, partition=NUMBER),
        registered("JSON", FLIGHT),
    )
    with pytest.raises(
        InvalidInput, match=f"The rows do not fit version 2 of the schema of {TOPIC}: field 'delay' is string, "
    ):
        check_json(columns(key=TEXT, delay=TEXT), registered("JSON", FLIGHT, number=2))


@pytest.mark.parametrize("kind", [None, "STRING", "BYTES"])
def test_a_topic_without_a_schema_or_with_one_of_text_takes_any_json(kind: str | None) -> None:
    check_json(columns(a=NUMBER), None if kind is None else registered(kind))


@pytest.mark.parametrize("kind", ["AVRO", "INT32"])
def test_json_is_refused_where_its_readers_could_not_read_it(kind: str) -> None:
    with pytest.raises(
        InvalidInput, match=f"writes JSON, but version 0 of the schema of {TOPIC} is {kind}: its readers"
    ):
        check_json(columns(carrier=TEXT, delay=NUMBER), registered(kind, FLIGHT))


def test_a_schema_that_can_not_be_checked_is_refused_with_a_way_out() -> None:
    with pytest.raises(
        InvalidInput, match=r"field 'a' is a union of int, string.*can't be checked.*value_format='raw'"
    ):
        check_json(columns(a=NUMBER), registered("JSON", record(field("a", ["int", "string"]))))
