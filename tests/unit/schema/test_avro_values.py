from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType

from eos.errors import InvalidInput
from eos.schema.avro_encoder import AvroEncoder
from eos.schema.avro_vector_decoder import FEWEST
from eos.schema.errors import Undecodable
from eos.schema.fit import misfit
from eos.schema.spark_types import spark_type
from tests.unit.schema.registered import GOLDEN_FLIGHT, avro_decoder, described_as, field, golden, in_avro, record


def read(writer: Any, reader: Any, *values: Any) -> list[Any]:
    data = [None if value is None else in_avro(writer, value) for value in values]
    rows: list[Any] = avro_decoder(writer, reader).decode(pa.array(data, pa.binary())).to_pylist()
    return rows


def test_what_the_java_client_wrote() -> None:
    schema, value = golden("AVRO")
    (flight,) = avro_decoder(schema.definition, schema.definition).decode(pa.array([value])).to_pylist()
    assert flight == GOLDEN_FLIGHT


def test_the_logical_types_that_the_java_client_wrote() -> None:
    schema, value = golden("TICKET")
    assert avro_decoder(schema.definition, schema.definition).decode(pa.array([value, None])).to_pylist() == [
        {
            "at": datetime(2013, 1, 1, 10, 15, 30, 123000, UTC),
            "boarding": 35_100_500,
            "day": date(2013, 1, 1),
            "fare": Decimal("-123.45"),
        },
        None,
    ]


def test_an_older_version_is_resolved_to_the_newer_one() -> None:
    old = record(field("a", "int"), field("gone", "string"), name="Old")
    new = record(field("added", "string", default="x"), field("a", "long"), field("b", ["null", "int"], default=None))
    assert read(old, new, {"a": 1, "gone": "y"}, None) == [{"added": "x", "a": 1, "b": None}, None]


def test_a_newer_version_is_resolved_to_the_older_one() -> None:
    old = record(field("a", "int"))
    inner = {"type": "enum", "name": "n.s.E", "symbols": ["A"]}
    new = record(field("e", inner), field("f", "n.s.E"), field("a", "int"), name="n.s.New")
    assert read(new, old, {"e": "A", "f": "A", "a": 7}) == [{"a": 7}]


def test_a_uuid_is_a_text() -> None:
    schema = record(field("id", {"type": "string", "logicalType": "uuid"}))
    assert read(schema, schema, {"id": UUID(int=5)}) == [{"id": str(UUID(int=5))}]


def test_a_version_that_has_no_field_that_must_be_there_is_refused() -> None:
    with pytest.raises(
        InvalidInput, match=r"^field 'b' is not in the schema of the messages, and the schema of the query"
    ):
        avro_decoder(record(field("a", "int")), record(field("b", "int")))


@pytest.mark.parametrize(
    ("then", "now", "words"),
    [
        (
            "long",
            {"type": "long", "logicalType": "timestamp-millis"},
            "written as long, and the query reads it as timestamp-millis",
        ),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            "long",
            "written as timestamp-micros, and the query reads it as long",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
            "bytes",
            "written as decimal, and the query reads it as bytes",
        ),
    ],
)
def test_a_number_whose_meaning_changed_is_refused(then: Any, now: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=f"field 'a' was {words}: the two do not mean the same"):
        avro_decoder(record(field("a", then)), record(field("a", now)))
    arrays = [
        record(field("in", {"type": "array", "items": record(field("a", kind), name="I")})) for kind in (then, now)
    ]
    with pytest.raises(InvalidInput, match=rf"field 'in\[\].a' was {words}"):
        avro_decoder(*arrays)


def test_milliseconds_become_microseconds() -> None:
    then, now = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
    at = datetime(2013, 1, 1, 10, 15, 30, 123000, UTC)
    assert read(record(field("a", then)), record(field("a", now)), {"a": at}) == [{"a": at}]
    assert read(record(field("a", now)), record(field("a", then)), {"a": at}) == [{"a": at}]


@pytest.mark.parametrize(
    ("kind", "logical", "count"),
    [
        ("int", "date", -800_000),
        ("int", "date", 10_000_000),
        ("long", "timestamp-micros", -(2**63)),
        ("long", "local-timestamp-micros", 2**63 - 1),
    ],
)
def test_days_and_moments_outside_of_the_years_1_to_9999(kind: str, logical: str, count: int) -> None:
    schema = record(field("a", ["null", {"type": kind, "logicalType": logical}], default=None))
    data = in_avro(record(field("a", ["null", kind], default=None)), {"a": count})
    found = avro_decoder(schema, schema).decode(pa.array([data], pa.binary())).field("a")
    assert found.cast(pa.int32() if kind == "int" else pa.int64()).to_pylist() == [count]


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 37}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
AT = datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC)
INNER = record(field("at", MILLIS), field("raw", "bytes", default="\u00ff"), name="Inner")


@pytest.mark.parametrize(
    ("kind", "default", "value"),
    [
        ({"type": "int", "logicalType": "date"}, 5, date(1970, 1, 6)),
        ({"type": "long", "logicalType": "timestamp-micros"}, 5_000_000, AT),
        (MILLIS, 5_000, AT),
        ([MILLIS, "null"], 5_000, AT),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, 5_000, AT.replace(tzinfo=None)),
        ("bytes", "\u00ff\u0000", b"\xff\0"),
        ({"type": "fixed", "name": "F", "size": 1}, "\u00ff", b"\xff"),
        (DECIMAL, "\u00ff" * 16, Decimal("-1E-37")),
        ({"type": "array", "items": MILLIS}, [5_000], [AT]),
        ({"type": "map", "values": MILLIS}, {"x": 5_000}, [("x", AT)]),
        (INNER, {"at": 5_000}, {"at": AT, "raw": b"\xff"}),
    ],
)
def test_a_default_is_the_value_that_would_be_written_for_it(kind: Any, default: Any, value: Any) -> None:
    now = record(field("a", "int"), field("b", kind, default=default))
    assert read(record(field("a", "int")), now, {"a": 1}) == [{"a": 1, "b": value}]


def test_a_default_deep_inside_is_a_value_too() -> None:
    before, now = (record(field("a", "int"), *more, name="I") for more in ((), (field("at", MILLIS, default=5_000),)))
    for outer in ({"type": "array", "items": "?"}, {"type": "map", "values": "?"}, ["null", "?"]):
        then, today = (json.loads(json.dumps(outer).replace('"?"', json.dumps(one))) for one in (before, now))
        given: Any = {"a": 1}
        given = given if isinstance(outer, list) else [given] if outer["type"] == "array" else {"x": given}
        found = str(read(record(field("o", then)), record(field("o", today)), {"o": given}))
        assert "1970, 1, 1, 0, 0, 5" in found


@pytest.mark.parametrize(
    ("kind", "default", "words"),
    [
        (DECIMAL | {"precision": 4, "scale": 2}, "\x7f\0\0", r"no decimal: 83230\.72, which is beyond decimal\(4, 2\)"),
        (MILLIS, 2**62, "no timestamp-millis: .* which Spark has no moment for"),
        ({"type": "int", "logicalType": "time-millis"}, -5, "no time-millis: -5, which is no time-millis of a day"),
        ({"type": "long", "logicalType": "time-micros"}, 86_400_000_000, "no time-micros: .* of a day"),
        ({"type": "array", "items": MILLIS}, [0, -(2**62)], "no array: .* which Spark has no moment for"),
        (INNER, {"at": 2**62}, "no record: .* which Spark has no moment for"),
    ],
)
def test_a_default_beyond_its_logical_type_is_refused_where_it_is_needed(kind: Any, default: Any, words: str) -> None:
    now = record(field("a", "int"), field("b", kind, default=default))
    with pytest.raises(InvalidInput, match=rf"^The default of field 'b', .* is {words}.*\. Correct the schema\."):
        avro_decoder(record(field("a", "int")), now)
    assert read(now, now) == []

    deep = record(field("o", {"type": "array", "items": now | {"name": "Deep"}}))
    part = StructType([StructField("a", IntegerType())])
    for schema, path, without in (
        (now, "b", part),
        (deep, r"o\[\]\.b", StructType([StructField("o", ArrayType(part))])),
    ):
        known = described_as(schema)
        AvroEncoder(known)
        assert misfit(spark_type(known), known.node, "AVRO") is None
        refused = misfit(without, known.node, "AVRO") or "it fits"
        assert re.match(rf"field '{path}' is missing, and its default, .*, is {words}.*\.$", refused), refused


def test_a_default_that_is_none_is_refused_by_name() -> None:
    wrong = record(field("a", "int"), field("b", DECIMAL, default="\u0100"))
    with pytest.raises(InvalidInput, match="The default of field 'b', 'Ā', is no decimal"):
        avro_decoder(record(field("a", "int")), wrong)


@pytest.mark.parametrize("before", [1, FEWEST], ids=["few rows", "many rows"])
@pytest.mark.parametrize("value", [b"", b"\x02", b"\x00\x08ab"])
def test_bytes_that_end_early_are_named(value: bytes, before: int) -> None:
    schema = record(field("a", "int"), field("b", "string"))
    with pytest.raises(
        Undecodable,
        match=rf"^row {before}(, field 'b')?: it (can't be read as AVRO: it ends within a field|has 4 bytes by)",
    ):
        avro_decoder(schema, schema).decode(pa.array([*[None] * before, value], pa.binary()))


ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
NOTHING = {"type": "record", "name": "N", "fields": []}
LIST, MAP = {"type": "array", "items": "int"}, {"type": "map", "values": "int"}


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (ENUM, b"\x01", "it names symbol -1 of its enum, which has 2"),
        (ENUM, b"\x04", "it names symbol 2 of its enum"),
        (["null", "int"], b"\x01\x04", r"it names type -1 of its union, which has \[0, 1\]"),
        (["int", "null", "long"], b"\x06\x04", r"it names type 3 of its union, which has \[0, 1, 2\]"),
        (["int", "null", "long"], b"\x00\x80\x80\x80\x80\x40", "8589934592, which is beyond int"),
        ("long", b"\x82" + b"\x80" * 11 + b"\x00", "it is a number of more than ten bytes"),
        ("long", b"\xff" * 9 + b"\x7f", "it is a number of more than 64 bits"),
        ("int", b"\x80\x80\x80\x80\x40", "8589934592, which is beyond int"),
        ("boolean", b"\x02", "the byte 2, where a boolean is 0 or 1"),
        ("string", b"\x01abc", "it has -1 bytes by its size, and 3 are left of the value"),
        ("bytes", b"\xfe\xff\xff\xff\x1f", "it has 4294967295 bytes by its size, and 0 are left"),
        ("string", b"\x02\xff", "not valid UTF-8"),
        ({"type": "fixed", "name": "F", "size": 3}, b"ab", "it has 3 bytes by its type, and 2 are left"),
        (DECIMAL | {"precision": 3, "scale": 0}, b"\x06\x01\x00\x00", r"65536, which is beyond decimal\(3, 0\)"),
        (DECIMAL, b"\x80\x02" + b"\x01" * 128, "a number of 128 bytes, which is beyond decimal"),
        (MILLIS, b"\xff" * 9 + b"\x01", "-9223372036854775808 milliseconds since 1970, which Spark has no moment for"),
        (LIST, b"\xfe\xff\xff\xff\x1f\x02", "it has 4294967295 items by its size, and 1 bytes are left"),
        (LIST, b"\x03\x08\x02\x04\x00", "a block of its items ends 2 bytes before the end that it names"),
        (MAP, b"\x04\x02a\x02\x02a\x04\x00", "the key 'a' twice"),
        (LIST, b"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02\x00", "it has|a block of its items ends"),
        (MAP, b"\x02\x02\xff\x02\x00", "a key that is not valid UTF-8"),
    ],
)
@pytest.mark.parametrize("before", [1, FEWEST], ids=["few rows", "many rows"])
def test_bytes_that_say_what_the_schema_has_no_place_for_are_named_by_row_and_field(
    kind: Any, value: bytes, words: str, before: int
) -> None:
    inside = record(field("in", record(field("a", kind), name="I")))
    with pytest.raises(Undecodable, match=rf"^row {before}, field 'in\.a': {words}"):
        avro_decoder(inside, inside).decode(pa.array([*[None] * before, value], pa.binary()))


def test_a_list_whose_number_of_items_nothing_bounds_is_refused() -> None:
    schema = record(field("a", {"type": "array", "items": NOTHING}))
    with pytest.raises(InvalidInput, match=r"^field 'a' is an array of items that have no bytes"):
        avro_decoder(schema, schema)


def test_lists_in_blocks_that_name_their_size() -> None:
    schema = record(field("a", LIST), field("b", MAP))
    data = b"\x03\x04\x02\x04" + b"\x02\x06\x00" + b"\x01\x06\x02k\x02\x00"
    found = avro_decoder(schema, schema).decode(pa.array([None, data], pa.binary())).to_pylist()
    assert found == [None, {"a": [1, 2, 3], "b": [("k", 1)]}]


def test_a_null_that_the_query_has_no_place_for_is_named() -> None:
    with pytest.raises(Undecodable, match=r"^row 1, field 'a': null, where the schema of the query has no null"):
        read(record(field("a", ["null", "int"])), record(field("a", "int")), {"a": 1}, {"a": None})


def test_a_union_of_two_numbers_is_read_as_the_wider_one() -> None:
    schema = record(field("a", ["int", "null", "long"]), field("b", ["double", "float"]))
    rows = [{"a": 5, "b": 0.5}, {"a": None, "b": 0.1}, {"a": 2**40, "b": -1.0}]
    assert read(schema, schema, *rows) == rows
    narrow = b"\x00\x0a\x02\x00\x00\x00\x3f"
    assert avro_decoder(schema, schema).decode(pa.array([narrow])).to_pylist() == [rows[0]]


def test_bytes_behind_the_end_are_named() -> None:
    schema = record(field("a", "int"))
    with pytest.raises(Undecodable, match=r"^row 0: 2 bytes are left behind its end"):
        avro_decoder(schema, schema).decode(pa.array([in_avro(schema, {"a": 1}) + b"xx"], pa.binary()))
