from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_type

from eos.errors import InvalidInput
from eos.schema.avro_values import AvroDecoder
from eos.schema.description import Record, described
from eos.schema.errors import Undecodable
from eos.schema.spark_types import spark_type
from tests.unit.schema.registered import field, golden, record, registered


def described_as(schema: Any) -> Record:
    given = described(registered("AVRO", schema))
    assert isinstance(given, Record)
    return given


def decoder(writer: Any, reader: Any) -> AvroDecoder:
    ours = described_as(reader)
    return AvroDecoder(described_as(writer), ours, to_arrow_type(spark_type(ours), timezone="UTC"))


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return out.getvalue()


def read(writer: Any, reader: Any, *values: Any) -> list[Any]:
    data = [None if value is None else written(writer, value) for value in values]
    rows: list[Any] = decoder(writer, reader).decode(pa.array(data, pa.binary())).to_pylist()
    return rows


def test_what_the_java_client_wrote() -> None:
    schema, value = golden("AVRO")
    (flight,) = decoder(schema.definition, schema.definition).decode(pa.array([value])).to_pylist()
    airport = {"code": "JFK", "latitude": 40.6}
    assert flight == {
        "carrier": "größer",
        "delay": -7,
        "destination": None,
        "distance": 2**40,
        "gate": None,
        "late": True,
        "legs": ["JFK", ""],
        "origin": airport,
        "seats": [("economy", 120), ("first", 8)],
        "share": 0.5,
        "speed": 0.1,
        "status": "LATE",
        "stops": [airport],
        "tail": b"\x00\xff",
    }


def test_the_logical_types_that_the_java_client_wrote() -> None:
    schema, value = golden("TICKET")
    assert decoder(schema.definition, schema.definition).decode(pa.array([value, None])).to_pylist() == [
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


def test_a_version_that_has_no_field_that_must_be_there_is_refused_with_the_row() -> None:
    with pytest.raises(
        Undecodable, match=r"^row 1: it can't be read as AVRO: SchemaResolutionError\(.*No default value"
    ):
        read(record(field("a", "int")), record(field("b", "int")), None, {"a": 1})


@pytest.mark.parametrize(
    ("then", "now", "words"),
    [
        (
            "long",
            {"type": "long", "logicalType": "timestamp-millis"},
            "written as long, and is read as timestamp-millis",
        ),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            "long",
            "written as timestamp-micros, and is read as long",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
            {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 1},
            "written as decimal, and is read as decimal",
        ),
    ],
)
def test_a_number_whose_meaning_changed_is_refused(then: Any, now: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=f"field 'a' was {words}: the numbers do not mean the same"):
        decoder(record(field("a", then)), record(field("a", now)))
    arrays = [
        record(field("in", {"type": "array", "items": record(field("a", kind), name="I")})) for kind in (then, now)
    ]
    with pytest.raises(InvalidInput, match=rf"field 'in\[\].a' was {words}"):
        decoder(*arrays)


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
    data = written(record(field("a", ["null", kind], default=None)), {"a": count})
    found = decoder(schema, schema).decode(pa.array([data], pa.binary())).field("a")
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


def test_a_default_that_is_none_is_refused_by_name() -> None:
    wrong = record(field("a", "int"), field("b", DECIMAL, default="\u0100"))
    with pytest.raises(InvalidInput, match="The default of field 'b', 'Ā', is no bytes"):
        decoder(record(field("a", "int")), wrong)


@pytest.mark.parametrize("value", [b"", b"\x02", b"\x00\x08ab"])
def test_bytes_that_end_early_are_named(value: bytes) -> None:
    schema = record(field("a", "int"), field("b", "string"))
    with pytest.raises(Undecodable, match=r"^row 1: it can't be read as AVRO"):
        decoder(schema, schema).decode(pa.array([None, value], pa.binary()))


def test_bytes_behind_the_end_are_named() -> None:
    schema = record(field("a", "int"))
    with pytest.raises(Undecodable, match=r"^row 0: 2 bytes are left behind its end"):
        decoder(schema, schema).decode(pa.array([written(schema, {"a": 1}) + b"xx"], pa.binary()))
