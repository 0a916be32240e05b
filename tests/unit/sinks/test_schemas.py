from __future__ import annotations

import pytest
from pyspark.sql.types import DataType, DecimalType, IntegerType, StringType, StructField, StructType, TimestampType

from eos.errors import InvalidInput
from eos.pulsar.protocol.schemas import Registered
from eos.sinks.columns import ValueFormat, roles_of
from eos.sinks.schemas import check_columns, new_version, not_taken
from tests.unit.schema.registered import TOPIC, field, golden, native, record, registered

FLIGHT = record(field("carrier", ["null", "string"]), field("delay", "int"))


TEXT, NUMBER = StringType(), IntegerType()


def columns(**kinds: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def check(given: StructType, value_format: ValueFormat, schema: Registered | None) -> Registered | None:
    if value_format == "schema" and "value" not in given.names:
        given = columns(value=given)
    return check_columns(given, roles_of(given, value_format, topic=TOPIC, named={}), value_format, TOPIC, schema)


@pytest.mark.parametrize(("value_format", "kind"), [("json", "JSON"), ("avro", "AVRO")])
def test_the_columns_of_the_payload_are_checked_and_those_of_the_message_are_not(
    value_format: ValueFormat, kind: str
) -> None:
    given = columns(__key=TEXT, __eventTime=TimestampType(), carrier=TEXT, delay=NUMBER, __partition=NUMBER)
    schema = registered(kind, FLIGHT)
    assert check(given, value_format, schema) is schema
    with pytest.raises(
        InvalidInput, match=f"The rows do not fit version 2 of the schema of {TOPIC}: field 'delay' is string, "
    ):
        check(columns(__key=TEXT, delay=TEXT), value_format, registered(kind, FLIGHT, number=2))


@pytest.mark.parametrize("kind", [None, "STRING", "BYTES"])
def test_a_topic_without_a_schema_or_with_one_of_text_takes_any_json(kind: str | None) -> None:
    schema = None if kind is None else registered(kind)
    assert check(columns(a=NUMBER), "json", schema) is schema


def test_raw_values_are_of_no_schema() -> None:
    assert check(columns(value=TEXT), "raw", registered("AVRO", FLIGHT)) is None


@pytest.mark.parametrize(
    ("value_format", "kind", "writes"),
    [
        ("json", "AVRO", "JSON"),
        ("json", "INT32", "JSON"),
        ("avro", "JSON", "AVRO"),
        ("avro", "BYTES", "AVRO"),
        ("protobuf", "AVRO", "PROTOBUF_NATIVE"),
        ("schema", "JSON", "primitives, AVRO, PROTOBUF_NATIVE and pairs of these"),
    ],
)
def test_what_the_readers_of_a_topic_could_not_read_is_refused(
    value_format: ValueFormat, kind: str, writes: str
) -> None:
    with pytest.raises(
        InvalidInput, match=f"writes {writes}, but version 0 of the schema of {TOPIC} is {kind}. Its readers"
    ):
        check(columns(carrier=TEXT, delay=NUMBER), value_format, registered(kind, FLIGHT))


def test_the_way_to_write_a_json_schema_is_one_that_insert_into_has_not() -> None:
    """Of INSERT INTO each value_format is refused there, one by the words of the other."""
    with pytest.raises(InvalidInput, match=r"Use eos\.write or eos\.sink with value_format='json' for a JSON schema"):
        check(columns(carrier=TEXT, delay=NUMBER), "schema", registered("JSON", FLIGHT))


def test_a_value_has_the_type_of_the_topics_schema() -> None:
    flight = StructType([StructField("delay", NUMBER)])
    for kind, value in (("INT64", NUMBER), ("STRING", TEXT), ("AVRO", flight)):
        schema = registered(kind, FLIGHT)
        assert check(columns(value=value, key=TEXT), "schema", schema) is schema
    with pytest.raises(InvalidInput, match=r"column 'value' is string, and INT64 is written from bigint\. Nothing is"):
        check(columns(value=TEXT), "schema", registered("INT64"))
    with pytest.raises(InvalidInput, match=r"field 'value' is string, and the schema has record\. Nothing is"):
        check(columns(value=TEXT), "schema", registered("AVRO", FLIGHT))


def test_a_message_of_protobuf_is_checked_by_its_descriptor() -> None:
    schema = native({"Flight": ["string carrier = 1", "uint64 delay = 2", "Leg leg = 3"], "Leg": ["bool x = 1"]})
    given = columns(__key=TEXT, carrier=TEXT, delay=NUMBER)
    assert check(given, "protobuf", schema) is schema
    assert check(columns(value=StructType(given.fields[1:])), "schema", schema) is schema
    for kind, words in ((TEXT, "is string"), (DecimalType(9, 2), r"is decimal\(9,2\)")):
        with pytest.raises(InvalidInput, match=f"field 'delay' {words}, and the schema has uint64"):
            check(columns(delay=kind), "protobuf", schema)
    assert check(columns(delay=DecimalType(9, 0)), "protobuf", schema) is schema
    with pytest.raises(InvalidInput, match="field 'leg' is string, and the schema has record"):
        check(columns(leg=TEXT), "protobuf", schema)
    with pytest.raises(InvalidInput, match="field 'late' is string, and the schema has no such field"):
        check(columns(late=TEXT), "protobuf", schema)


def test_a_column_that_protobuf_requires_is_not_left_out() -> None:
    schema = native({"Flight": ["required int32 delay = 1", "optional string carrier = 2"]}, syntax="proto2")
    assert check(columns(delay=NUMBER), "protobuf", schema) is schema
    with pytest.raises(InvalidInput, match="field 'delay' is missing, and the schema has int, neither null nor a def"):
        check(columns(carrier=TEXT), "protobuf", schema)


def test_a_pair_is_checked_part_by_part_and_may_have_the_messages_key() -> None:
    pair = StructType([StructField("key", TEXT), StructField("value", NUMBER)])
    inline, separated = (golden(f"KEY_VALUE {encoding}")[0] for encoding in ("INLINE", "SEPARATED"))
    assert check(columns(value=pair, key=TEXT), "schema", inline) is inline
    assert check(columns(value=pair), "schema", separated) is separated
    for name in ("key", "__key"):
        with pytest.raises(InvalidInput, match=f"Column '{name}' gives the message's key, and so does the pair"):
            check(StructType([StructField("value", pair), StructField(name, TEXT)]), "schema", separated)
    with pytest.raises(InvalidInput, match=r"column 'value' is int, and a pair is written from a struct of key and"):
        check(columns(value=NUMBER), "schema", inline)
    with pytest.raises(InvalidInput, match=r"writes AVRO, but .* is KEY_VALUE of STRING and INT32. Its readers"):
        check(columns(delay=NUMBER), "avro", inline)


@pytest.mark.parametrize("value_format", ["avro", "protobuf", "schema"])
def test_what_is_encoded_needs_a_schema(value_format: ValueFormat) -> None:
    with pytest.raises(InvalidInput, match=f"writes by the schema of the topic, but {TOPIC} has none. Register"):
        check(columns(a=NUMBER), value_format, None)


@pytest.mark.parametrize(("value_format", "kind"), [("json", "JSON"), ("avro", "AVRO")])
def test_a_schema_that_can_not_be_checked_is_refused_with_a_way_out(value_format: ValueFormat, kind: str) -> None:
    with pytest.raises(
        InvalidInput, match=r"field 'a' is a union of int, string.*can't be checked.*value_format='raw'"
    ):
        check(columns(a=NUMBER), value_format, registered(kind, record(field("a", ["int", "string"]))))


def test_a_default_that_is_none_is_refused_before_anything_is_written() -> None:
    schema = registered("AVRO", record(field("a", "int"), field("b", "int", default="x")))
    with pytest.raises(InvalidInput, match="The default of field 'b', 'x', is no int"):
        check(columns(a=NUMBER), "avro", schema)


def test_a_default_that_no_message_can_have_is_refused_only_where_the_rows_lack_the_field() -> None:
    time = {"type": "int", "logicalType": "time-millis"}
    schema = registered("AVRO", record(field("a", "int"), field("b", time, default=-1)))
    assert check(columns(a=NUMBER, b=NUMBER), "avro", schema) is schema
    with pytest.raises(InvalidInput, match=r"field 'b' is missing, and its default, -1, is no time-.*"):
        check(columns(a=NUMBER), "avro", schema)


WITH_GATE = columns(carrier=TEXT, delay=NUMBER, gate=TEXT)


@pytest.mark.parametrize(("value_format", "kind"), [("json", "JSON"), ("avro", "AVRO")])
def test_a_schema_is_made_where_there_is_none_and_follows_one_that_lacks_a_column(
    value_format: ValueFormat, kind: str
) -> None:
    first = new_version(WITH_GATE, value_format, None, "org.Flight")
    assert first is not None
    assert (first.kind, first.properties) == (kind, ())
    known = Registered(TOPIC, bytes(8), first.kind, first.definition, {"a": "b"})
    assert check(WITH_GATE, value_format, known) is known
    assert new_version(WITH_GATE, value_format, known, "org.Flight") is None
    assert new_version(columns(gate=TEXT), value_format, known, "org.Flight") is None
    wider = StructType([*WITH_GATE.fields, StructField("seat", NUMBER)])
    second = new_version(wider, value_format, known, "ignored")
    assert second is not None
    assert (second.kind, second.properties) == (kind, (("a", "b"),))
    newer = Registered(TOPIC, bytes(8), second.kind, second.definition, {})
    assert check(wider, value_format, newer) is newer
    assert check(WITH_GATE, value_format, newer) is newer


@pytest.mark.parametrize("value_format", ["json", "avro"])
def test_a_schema_of_a_record_or_null_is_followed_by_one_with_the_columns_that_it_lacks(
    value_format: ValueFormat,
) -> None:
    known = registered(value_format.upper(), ["null", FLIGHT])
    second = new_version(WITH_GATE, value_format, known, "ignored")
    assert second is not None
    newer = registered(value_format.upper(), second.definition)
    assert check(WITH_GATE, value_format, newer) is newer


def test_no_version_is_made_where_no_field_more_would_help() -> None:
    assert new_version(columns(a=TEXT), "avro", registered("AVRO", "string"), "R") is None
    assert new_version(columns(delay=TEXT), "avro", registered("AVRO", FLIGHT), "R") is None
    assert new_version(columns(carrier=TEXT, gate=TEXT), "avro", registered("AVRO", FLIGHT), "R") is None
    assert new_version(columns(a=TEXT), "avro", registered("JSON", FLIGHT), "R") is None
    assert new_version(columns(Carrier=TEXT), "avro", registered("AVRO", FLIGHT), "R") is None
    assert new_version(columns(a=TEXT), "json", registered("STRING"), "R") is None


@pytest.mark.parametrize("value_format", ["json", "avro"])
@pytest.mark.parametrize("other", ["A", "a"])
def test_no_schema_is_registered_that_could_not_be_written_by(value_format: ValueFormat, other: str) -> None:
    alike = StructType([StructField("a", TEXT), StructField(other, TEXT)])
    with pytest.raises(
        InvalidInput, match=r"field 's' is a record with two fields whose names .*Nothing is registered"
    ):
        new_version(columns(s=alike), value_format, None, "R")
    with pytest.raises(InvalidInput, match=r"it is a record with two fields whose names .*Rename such fields"):
        new_version(alike, value_format, None, "R")


def test_a_version_that_is_not_taken_is_told_with_field_types_and_reason() -> None:
    assert f"{TOPIC} takes no schema from its producers (no auto updating)" in not_taken(
        WITH_GATE, "avro", TOPIC, None, "no auto updating\nat org.apache"
    )
    told = not_taken(WITH_GATE, "avro", TOPIC, registered("AVRO", FLIGHT), "")
    assert "field 'gate' is string, and the schema has no such field. The topic takes no new version for it" in told
