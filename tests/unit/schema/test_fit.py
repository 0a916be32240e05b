from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from eos.schema.avro_text import LOGICAL
from eos.schema.description import Form, Pair, Primitive, Record, described
from eos.schema.fit import misfit, value_misfit
from eos.schema.spark_types import OF_PRIMITIVES
from tests.unit.schema.registered import field, record, registered

BOOLEAN, BYTE, SHORT, INT, LONG = BooleanType(), ByteType(), ShortType(), IntegerType(), LongType()
FLOAT, DOUBLE, STRING, BINARY = FloatType(), DoubleType(), StringType(), BinaryType()
DATE, TIMESTAMP, NTZ = DateType(), TimestampType(), TimestampNTZType()


def struct(**kinds: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


FITTING = [
    (BOOLEAN, "boolean"),
    (BYTE, "int"),
    (SHORT, "int"),
    (INT, "int"),
    (INT, "long"),
    (LONG, "long"),
    (FLOAT, "float"),
    (SHORT, "float"),
    (FLOAT, "double"),
    (DOUBLE, "double"),
    (INT, "double"),
    (STRING, "string"),
    (DATE, "string"),
    (TIMESTAMP, "string"),
    (NTZ, "string"),
    (STRING, {"type": "enum", "name": "E", "symbols": ["A"]}),
    (BINARY, "bytes"),
    (BINARY, {"type": "fixed", "name": "F", "size": 2}),
    (DecimalType(5, 2), {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}),
    (INT, {"type": "int", "logicalType": "date"}),
    (LONG, {"type": "long", "logicalType": "timestamp-millis"}),
    (INT, ["null", "int"]),
    (ArrayType(INT), {"type": "array", "items": ["null", "long"]}),
    (MapType(STRING, INT), {"type": "map", "values": "int"}),
    (struct(a=INT), record(field("a", "int"), name="Inner")),
]

NOT_FITTING = [
    (STRING, "int", "field 'c' is string, and the schema has int"),
    (LONG, "int", "field 'c' is bigint, and the schema has int"),
    (LONG, "double", "field 'c' is bigint, and the schema has double"),
    (INT, "float", "field 'c' is int, and the schema has float"),
    (DOUBLE, "float", "field 'c' is double, and the schema has float"),
    (INT, "string", "field 'c' is int, and the schema has string"),
    (BINARY, "string", "field 'c' is binary, and the schema has string"),
    (STRING, "bytes", "field 'c' is string, and the schema has bytes"),
    (
        TIMESTAMP,
        {"type": "long", "logicalType": "timestamp-millis"},
        "field 'c' is timestamp, and the schema has long (timestamp-millis). Write its number, by unix_millis(…)",
    ),
    (
        DATE,
        ["null", {"type": "int", "logicalType": "date"}],
        "field 'c' is date, and the schema has int (date). Write its number, by unix_date(…)",
    ),
    (
        DecimalType(5, 3),
        {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
        "field 'c' is decimal(5,3), and the schema has decimal(6,2)",
    ),
    (
        DecimalType(7, 2),
        {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
        "field 'c' is decimal(7,2), and the schema has decimal(6,2)",
    ),
    (ArrayType(STRING), {"type": "array", "items": "int"}, "field 'c[]' is string, and the schema has int"),
    (MapType(STRING, STRING), {"type": "map", "values": "int"}, "field 'c[]' is string, and the schema has int"),
    (MapType(STRING, INT), {"type": "array", "items": "int"}, "field 'c' is map<string,int>, and the schema has array"),
    (INT, record(field("a", "int"), name="Inner"), "field 'c' is int, and the schema has record"),
    (struct(a=INT), "string", "field 'c' is struct<a:int>, and the schema has string"),
    (
        struct(a=INT, bb=INT),
        record(field("a", "int"), field("bbb", ["null", "int"]), name="Inner"),
        "field 'c.bb' is int, and the schema has no such field. Did you mean 'bbb'?",
    ),
    (
        struct(a=INT),
        record(field("a", "int"), field("b", "int"), name="Inner"),
        "field 'c.b' is missing, and the schema has int, neither null nor a default",
    ),
]


def logical(kind: str, name: str) -> dict[str, str]:
    return {"type": kind, "logicalType": name}


FITTING_AVRO = [
    *((kind, schema) for kind, schema in FITTING[:11]),
    (STRING, "string"),
    (STRING, {"type": "string", "logicalType": "uuid"}),
    (STRING, {"type": "enum", "name": "E", "symbols": ["A"]}),
    (BINARY, "bytes"),
    (BINARY, {"type": "fixed", "name": "F", "size": 2}),
    (DecimalType(5, 2), {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}),
    (DATE, logical("int", "date")),
    (INT, logical("int", "time-millis")),
    (LONG, logical("long", "time-micros")),
    (TIMESTAMP, logical("long", "timestamp-millis")),
    (TIMESTAMP, logical("long", "timestamp-micros")),
    (NTZ, logical("long", "local-timestamp-millis")),
    (NTZ, logical("long", "local-timestamp-micros")),
    (ArrayType(MapType(STRING, INT)), {"type": "array", "items": {"type": "map", "values": ["null", "long"]}}),
]

NOT_FITTING_AVRO = [
    (DATE, "string", "field 'c' is date, and the schema has string"),
    (INT, "string", "field 'c' is int, and the schema has string"),
    (STRING, "bytes", "field 'c' is string, and the schema has bytes"),
    (TIMESTAMP, "long", "field 'c' is timestamp, and the schema has long"),
    (
        LONG,
        logical("long", "timestamp-millis"),
        "field 'c' is bigint, and the schema has long (timestamp-millis). Make it one, by timestamp_millis(…)",
    ),
    (
        INT,
        logical("int", "date"),
        "field 'c' is int, and the schema has int (date). Make it one, by date_from_unix_date(…)",
    ),
    (
        NTZ,
        logical("long", "timestamp-micros"),
        "field 'c' is timestamp_ntz, and the schema has long (timestamp-micros). Make it one, by cast(… as "
        "timestamp_ltz)",
    ),
    (
        TIMESTAMP,
        logical("long", "local-timestamp-millis"),
        "field 'c' is timestamp, and the schema has long (local-timestamp-millis). Make it one, by cast(… as "
        "timestamp_ntz)",
    ),
    (NTZ, logical("int", "date"), "field 'c' is timestamp_ntz, and the schema has int (date)"),
    (MapType(INT, INT), {"type": "map", "values": "int"}, "field 'c' is map<int,int>, and the schema has map"),
    (
        ArrayType(struct(a=STRING)),
        {"type": "array", "items": record(field("a", "int"), name="Inner")},
        "field 'c[].a' is string, and the schema has int",
    ),
    (
        StructType([StructField("a", INT), StructField("a", INT)]),
        record(field("a", "int"), name="Inner"),
        "field 'c.a' is there twice, and the schema has it once",
    ),
]


def wrong(kind: DataType, schema: Any, form: Form = "JSON") -> str | None:
    known = described(registered(form, record(field("c", schema))))
    assert isinstance(known, Record)
    return misfit(struct(c=kind), known.node, form)


@pytest.mark.parametrize(("kind", "schema"), FITTING_AVRO)
def test_what_is_written_as_avro_fits(kind: DataType, schema: Any) -> None:
    assert wrong(kind, schema, "AVRO") is None


@pytest.mark.parametrize(("kind", "schema", "words"), NOT_FITTING_AVRO)
def test_what_is_not_written_as_avro_is_named_with_both_types(kind: DataType, schema: Any, words: str) -> None:
    assert wrong(kind, schema, "AVRO") == f"{words}."


def test_each_logical_type_that_counts_is_written() -> None:
    """A new one in avro_text must get its row in the table of `fit`."""
    for kind, names in LOGICAL.items():
        for name in names - {"decimal"}:
            assert "schema has" in (wrong(BOOLEAN, logical(kind, name), "AVRO") or "")


@pytest.mark.parametrize(("kind", "schema"), FITTING)
def test_what_to_json_writes_as_the_schema_has_it_fits(kind: DataType, schema: Any) -> None:
    assert wrong(kind, schema) is None


@pytest.mark.parametrize(("kind", "schema", "words"), NOT_FITTING)
def test_what_does_not_fit_is_named_with_both_types(kind: DataType, schema: Any, words: str) -> None:
    assert wrong(kind, schema) == (words if words.endswith("?") else f"{words}.")


def test_a_field_may_be_missing_where_the_schema_has_null_or_a_default() -> None:
    known = described(registered("JSON", record(field("a", ["null", "int"]), field("b", "int", default=1))))
    assert isinstance(known, Record)
    assert misfit(StructType(), known.node, "JSON") is None


@pytest.mark.parametrize("kind", OF_PRIMITIVES)
def test_a_primitive_is_written_from_the_type_that_it_is_read_as(kind: str) -> None:
    own = OF_PRIMITIVES[kind]
    assert value_misfit(own, Primitive(kind)) is None
    wrong = f"column 'value' is array<int>, and {kind} is written from {own.simpleString()}."
    assert value_misfit(ArrayType(INT), Primitive(kind)) == wrong


def test_a_primitive_of_a_number_is_written_from_smaller_ones_alone() -> None:
    assert value_misfit(SHORT, Primitive("INT64")) is None
    assert value_misfit(INT, Primitive("DOUBLE")) is None
    assert value_misfit(LONG, Primitive("INT32")) == "column 'value' is bigint, and INT32 is written from int."
    assert value_misfit(INT, Primitive("FLOAT")) == "column 'value' is int, and FLOAT is written from float."
    assert value_misfit(STRING, Primitive("BYTES")) == "column 'value' is string, and BYTES is written from binary."


def test_a_pair_is_written_from_a_struct_of_its_two_parts() -> None:
    flight = described(registered("AVRO", record(field("delay", "int"))))
    assert isinstance(flight, Record)
    pair = Pair(True, Primitive("STRING"), flight)
    of_flight = StructType([StructField("delay", INT)])
    assert value_misfit(StructType([StructField("value", of_flight), StructField("key", STRING)]), pair) is None
    words = "column 'value.key' is int, and STRING is written from string."
    assert value_misfit(StructType([StructField("key", INT), StructField("value", of_flight)]), pair) == words
    words = "field 'value.value' is string, and the schema has record."
    assert value_misfit(StructType([StructField("key", STRING), StructField("value", STRING)]), pair) == words
    for other in (STRING, of_flight, StructType([StructField("key", STRING), StructField("value", INT)] * 2)):
        words = f"column 'value' is {other.simpleString()}, and a pair is written from a struct of key and value."
        assert value_misfit(other, pair) == words
