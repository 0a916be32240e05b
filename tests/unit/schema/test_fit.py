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

from eos.schema.description import Record, described
from eos.schema.fit import misfit
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
        "field 'c' is timestamp, and the schema has long (timestamp-millis): write its number, by unix_millis(…)",
    ),
    (
        DATE,
        ["null", {"type": "int", "logicalType": "date"}],
        "field 'c' is date, and the schema has int (date): write its number, by unix_date(…)",
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


def wrong(kind: DataType, schema: Any) -> str | None:
    known = described(registered("JSON", record(field("c", schema))))
    assert isinstance(known, Record)
    return misfit(struct(c=kind), known.node)


@pytest.mark.parametrize(("kind", "schema"), FITTING)
def test_what_to_json_writes_as_the_schema_has_it_fits(kind: DataType, schema: Any) -> None:
    assert wrong(kind, schema) is None


@pytest.mark.parametrize(("kind", "schema", "words"), NOT_FITTING)
def test_what_does_not_fit_is_named_with_both_types(kind: DataType, schema: Any, words: str) -> None:
    assert wrong(kind, schema) == (words if words.endswith("?") else f"{words}.")


def test_a_field_may_be_missing_where_the_schema_has_null_or_a_default() -> None:
    known = described(registered("JSON", record(field("a", ["null", "int"]), field("b", "int", default=1))))
    assert isinstance(known, Record)
    assert misfit(StructType(), known.node) is None
