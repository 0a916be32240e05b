"""A schema made of columns takes them, and evolves so that older and newer readers read both."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from pyspark.sql.pandas.types import to_arrow_type
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
    VariantType,
)

from eos.errors import InvalidInput
from eos.schema.avro_text import parse_avro
from eos.schema.description import Form, Primitive, described
from eos.schema.fit import misfit
from eos.schema.primitives import PRIMITIVES
from eos.schema.proposal import FULL_NAME, extended, new_schema
from eos.schema.spark_types import OF_PRIMITIVES, spark_type
from tests.unit.schema.registered import field, golden, record, registered

INT, STRING = IntegerType(), StringType()


def struct(**kinds: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


EVERY_TYPE = struct(
    a=BooleanType(),
    b=LongType(),
    c=FloatType(),
    d=DoubleType(),
    e=BinaryType(),
    f=DateType(),
    g=TimestampType(),
    h=TimestampNTZType(),
    i=DecimalType(9, 2),
    j=ArrayType(INT),
    k=MapType(STRING, struct(x=INT)),
    l=struct(x=STRING, y=struct(x=INT)),
)
SMALL = struct(a=ByteType(), b=ShortType(), c=ArrayType(INT, containsNull=False))


@pytest.mark.parametrize("form", ["JSON", "AVRO"])
def test_a_new_schema_takes_the_columns_that_it_was_made_of(form: Form) -> None:
    for columns in (EVERY_TYPE, SMALL):
        text = new_schema(columns, form, "org.example.Flight")
        node = parse_avro(text, "it")
        assert misfit(columns, node, form) is None
        assert all(one.node.nullable and one.has_default and one.default is None for one in node.fields)
        fastavro.parse_schema(json.loads(text))  # each name is there once


def test_avro_is_read_as_the_types_that_it_was_made_of() -> None:
    schema = described(registered("AVRO", new_schema(EVERY_TYPE, "AVRO", "R")))
    assert spark_type(schema) == EVERY_TYPE


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (struct(**{"a.b": INT}), "Column 'a.b' can't be a field of an Avro schema"),
        (struct(a=struct(**{"1": INT})), "Column 'a.1' can't be a field of an Avro schema"),
        (struct(a=ArrayType(MapType(INT, INT))), r"Column 'a\[\]' is map<int,int>, which no Avro schema has"),
        (struct(a=VariantType()), "Column 'a' is variant, which no Avro schema has"),
    ],
)
def test_a_column_that_no_schema_has_a_place_for_is_named(columns: StructType, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        new_schema(columns, "AVRO", "R")


def test_a_column_more_becomes_a_field_wherever_it_lies_and_all_else_stays() -> None:
    inner = record(field("x", "int")) | {"name": "Inner", "doc": "kept"}
    nested = {"type": "array", "items": ["null", {"type": "map", "values": inner}]}
    before = record(field("old", "int", default=1), field("a", ["null", nested], default=None), namespace="n")
    columns = struct(a=ArrayType(MapType(STRING, struct(x=INT, y=STRING))), b=INT)
    after = json.loads(extended(json.dumps(before).encode(), columns, "AVRO"))
    kept = inner | {"fields": [field("x", "int"), field("y", ["null", "string"], default=None)]}
    assert after["fields"] == [
        field("old", "int", default=1),
        field("a", ["null", {"type": "array", "items": ["null", {"type": "map", "values": kept}]}], default=None),
        field("b", ["null", "int"], default=None),
    ]
    assert {key: after[key] for key in ("name", "namespace")} == {"name": "R", "namespace": "n"}


@pytest.mark.parametrize(("written", "read"), [("old", "new"), ("new", "old")])
def test_older_and_newer_readers_read_both(written: str, read: str) -> None:
    old = new_schema(struct(a=INT, s=struct(x=INT)), "AVRO", "R")
    new = extended(old, struct(a=INT, s=struct(x=INT, y=STRING), b=struct(z=INT)), "AVRO")
    schemas: dict[str, Any] = {"old": json.loads(old), "new": json.loads(new)}
    out = io.BytesIO()
    row = {"a": 1, "s": {"x": 2}} if written == "old" else {"a": 1, "s": {"x": 2, "y": "y"}, "b": {"z": 3}}
    fastavro.schemaless_writer(out, fastavro.parse_schema(schemas[written]), row)
    found = fastavro.schemaless_reader(io.BytesIO(out.getvalue()), schemas[written], schemas[read])
    more: dict[str, Any] = {} if read == "old" else {"b": None}
    assert found == {"a": 1, "s": {"x": 2} | ({} if read == "old" else {"y": None})} | more


@pytest.mark.parametrize(
    ("name", "good"), [("Flight", True), ("org.x._F1", True), ("1", False), ("a..b", False), ("ä", False)]
)
def test_names_of_records(name: str, good: bool) -> None:
    assert bool(FULL_NAME.fullmatch(name)) is good


# ---- Spark's types of a schema


FLIGHT = (
    "struct<carrier:string,delay:int,destination:struct<code:string,latitude:double>,distance:bigint,gate:int,"
    "late:boolean,legs:array<string>,origin:struct<code:string,latitude:double>,seats:map<string,int>,share:float,"
    "speed:double,status:string,stops:array<struct<code:string,latitude:double>>,tail:{bytes}>"
)


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ("AVRO", FLIGHT.format(bytes="binary")),
        ("JSON", FLIGHT.format(bytes="string")),
        ("TICKET", "struct<at:timestamp,boarding:int,day:date,fare:decimal(9,2)>"),
        ("KEY_VALUE INLINE", "struct<key:string,value:int>"),
    ],
)
def test_types_of_the_java_clients_schemas(asked: str, kind: str) -> None:
    assert spark_type(described(golden(asked)[0])).simpleString() == kind


def test_every_primitive_has_a_type_that_spark_has_as_arrow() -> None:
    assert OF_PRIMITIVES.keys() == PRIMITIVES.keys()
    for kind, layout in PRIMITIVES.items():
        arrow = to_arrow_type(spark_type(Primitive(kind)), timezone="UTC")
        assert layout is None or layout.unit == arrow
