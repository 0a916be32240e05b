"""What is written column by column is what Avro's writers make of the rows, and what can't be written is named."""

from __future__ import annotations

import io
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from eos.errors import InvalidInput
from eos.schema.avro_encoder import AvroEncoder
from eos.schema.decoder import Decoder
from eos.schema.description import Record, described
from eos.schema.errors import Unencodable
from tests.unit.schema.registered import arrow_type, described_as, field, golden, in_avro, record

NUMBERS = [0, -1, 1, 63, -64, 64, 2**31 - 1, -(2**31), 2**62, 2**63 - 1, -(2**63)]


def encoded(schema: Any, rows: list[Any], kind: pa.DataType | None = None) -> list[bytes | None]:
    description = described_as(schema)
    column = pa.array(rows, kind or arrow_type(description))
    written: list[bytes | None] = AvroEncoder(description).encode(column).to_pylist()
    return written


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("long", NUMBERS),
        ("int", [n for n in NUMBERS if -(2**31) <= n < 2**31]),
        (["int", "null"], [None, 5, None]),
        (["null", "double"], [0.1, None]),
        ("bytes", [b"", b"\x00\xff" * 100]),
        ({"type": "fixed", "name": "F", "size": 2}, [b"ab", b"\x00\xff"]),
        ({"type": "enum", "name": "E", "symbols": ["LATE", "EARLY"]}, ["EARLY", "LATE"]),
        ({"type": "int", "logicalType": "date"}, [date(1969, 12, 31), date(2013, 1, 1)]),
        ({"type": "int", "logicalType": "time-millis"}, [1, 2]),
        ({"type": "array", "items": ["null", "string"]}, [[], ["a", None], ["größer"]]),
    ],
)
def test_a_type_is_written_as_avros_own_writer_does(kind: Any, values: list[Any]) -> None:
    schema = record(field("a", kind), field("b", "string"))
    rows = [{"a": value, "b": "behind"} for value in values]
    plain = schema | {"fields": [field("a", kind | {"logicalType": ""} if isinstance(kind, dict) else kind)]}
    plain["fields"].append(field("b", "string"))
    days = [value.toordinal() - 719_163 if isinstance(value, date) else value for value in values]
    assert encoded(schema, rows) == [in_avro(plain, {"a": value, "b": "behind"}) for value in days]


DECIMALS = [
    Decimal(text) for text in ("0", "-0.01", "1.27", "1.28", "-1.28", "-1.29", "99999999999.99", "-42949672.96")
]


def decimal(kind: dict[str, Any]) -> dict[str, Any]:
    return record(field("a", kind | {"logicalType": "decimal", "precision": 16, "scale": 2}))


@pytest.mark.parametrize("size", [7, 16, 20])
def test_decimals_of_one_size(size: int) -> None:
    schema = decimal({"type": "fixed", "name": "F", "size": size})
    rows = [{"a": value} for value in DECIMALS]
    assert encoded(schema, rows) == [in_avro(schema, row) for row in rows]
    fewer = pa.struct([("a", pa.decimal128(13, 2))])
    assert encoded(schema, rows, fewer) == [in_avro(schema, row) for row in rows]
    assert encoded(schema, [], fewer) == []


def test_decimals_have_as_few_bytes_as_java_gives_them() -> None:
    numbers = [int(value * 100) for value in DECIMALS]
    fewest = [one.to_bytes((one + (one < 0)).bit_length() // 8 + 1, "big", signed=True) for one in numbers]
    assert encoded(decimal({"type": "bytes"}), [{"a": value} for value in DECIMALS]) == [
        bytes([2 * len(one)]) + one for one in fewest
    ]


@pytest.mark.parametrize("unit", ["millis", "micros"])
def test_moments_are_counted_and_what_is_finer_is_cut_off(unit: str) -> None:
    moment, before = datetime(2013, 1, 1, 10, 15, 30, 123456), datetime(1969, 12, 31, 23, 59, 59, 999999)
    cut = 1000 if unit == "millis" else 1
    counted = [(1_357_035_330_123_456 // cut), -1]
    for logical, zone in ((f"timestamp-{unit}", UTC), (f"local-timestamp-{unit}", None)):
        schema = record(field("a", {"type": "long", "logicalType": logical}))
        rows = [{"a": one.replace(tzinfo=zone)} for one in (moment, before)]
        plain = record(field("a", "long"))
        assert encoded(schema, rows) == [in_avro(plain, {"a": count}) for count in counted]


def test_a_column_of_a_smaller_type_than_the_schemas() -> None:
    schema = record(field("a", "long"), field("b", "double"))
    kind = pa.struct([("a", pa.int8()), ("b", pa.float32())])
    assert encoded(schema, [{"a": -3, "b": 0.5}], kind) == [in_avro(schema, {"a": -3, "b": 0.5})]
    wide = record(field("a", ["int", "null", "long"]), field("b", ["float", "double"]))
    (written,) = encoded(wide, [{"a": 1, "b": 0.1}])
    assert fastavro.schemaless_reader(io.BytesIO(written or b""), wide, None) == {"a": 1, "b": 0.1}


def test_what_java_wrote_is_written_again() -> None:
    schema, value = golden("AVRO")
    description = described(schema)
    assert isinstance(description, Record)
    target = arrow_type(description)
    read = Decoder(description, description, target).decode(pa.array([value, None], pa.binary()))
    assert AvroEncoder(description).encode(read).to_pylist() == [value, None]


MISSING = [
    field("number", "int", default=-7),
    field("text", ["null", "string"], default=None),
    field("no_default", ["string", "null"]),
    field("first", ["string", "null"], default="größer"),
    field("bytes", "bytes", default="\u00ff\u0001"),
    field("fixed", {"type": "fixed", "name": "F", "size": 1}, default="\u00ff"),
    field("enum", {"type": "enum", "name": "E", "symbols": ["A", "B"]}, default="B"),
    field("array", {"type": "array", "items": "double"}, default=[0.5]),
    field("none", {"type": "array", "items": "double"}, default=[]),
    field("map", {"type": "map", "values": "float"}, default={"a": 0.5}),
    field("record", record(field("x", "boolean", default=True)) | {"name": "Inner"}, default={}),
]


def test_a_field_without_a_column_gets_its_default() -> None:
    schema = record(*MISSING, field("there", "string"))
    (written,) = encoded(schema, [{"there": "x"}], pa.struct([("there", pa.string())]))
    assert fastavro.schemaless_reader(io.BytesIO(written or b""), schema, None) == {
        "number": -7, "text": None, "no_default": None, "first": "größer", "bytes": b"\xff\x01", "fixed": b"\xff",
        "enum": "B", "array": [0.5], "none": [], "map": {"a": 0.5}, "record": {"x": True}, "there": "x",
    }  # fmt: skip


def test_a_default_that_is_none_of_its_type_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"The default of field 'a\[\].b', 'x', is no int"):
        AvroEncoder(
            described_as(record(field("a", {"type": "array", "items": record(field("b", "int", default="x"))})))
        )


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ("boolean", "false"),
        ("boolean", 1),
        ("int", True),
        ("int", 2**31),
        ("long", 1.5),
        ("double", "NaN"),
        ("float", False),
        ("string", 5),
        ({"type": "fixed", "name": "F", "size": 4}, "abc"),
        ({"type": "array", "items": "int"}, {}),
        ({"type": "map", "values": "int"}, []),
    ],
)
def test_a_default_that_would_be_written_as_something_else_is_refused(kind: Any, default: Any) -> None:
    with pytest.raises(InvalidInput, match=r"The default of field 'b', .*, is no \w+: .*Correct the schema"):
        AvroEncoder(described_as(record(field("a", "int"), field("b", kind, default=default))))


MILLIS_OF_DAY = {"type": "int", "logicalType": "time-millis"}
MICROS_OF_DAY = {"type": "long", "logicalType": "time-micros"}


@pytest.mark.parametrize(
    ("kind", "values", "path", "why"),
    [
        ("int", [1, None], "a", "it is null, and the schema has int without null"),
        ({"type": "array", "items": "int"}, [[1], [2, None]], "a[]", "it is null, and the schema has int without"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, ["A", "B"], "a", "'B' is none of the schema's symbols, A"),
        ({"type": "fixed", "name": "F", "size": 2}, [b"ab", b"abc"], "a", "it has 3 bytes, and the schema has fixed"),
        (MILLIS_OF_DAY, [0, -1], "a", "-1, which is no time-millis of a day"),
        (MILLIS_OF_DAY, [86_399_999, 86_400_000], "a", "86400000, which is no time-millis of a day"),
        (["null", MICROS_OF_DAY], [None, 86_400_000_000], "a", "86400000000, which is no time-micros of a day"),
        ({"type": "map", "values": MICROS_OF_DAY}, [[("k", 1)], [("k", -1)]], "a[]", "-1, which is no time-micros"),
        ({"type": "map", "values": "int"}, [[("k", 1)], [("k", 1), ("k", 1)]], "a", "the key 'k' twice"),
        ({"type": "map", "values": "int"}, [[("k", 1), ("l", 1)], [("k", 1), ("k", 2)]], "a", "the key 'k' twice"),
        (["null", {"type": "map", "values": "int"}], [None, [("", 1), ("l", 2), ("", 3)]], "a", "the key '' twice"),
    ],
)  # fmt: skip
def test_what_can_not_be_written_is_named(kind: Any, values: list[Any], path: str, why: str) -> None:
    good, bad = ({"a": value} for value in values)
    for row in range(4):
        rows = [good] * row + [bad] + [good] * 2 + [bad]
        with pytest.raises(Unencodable) as caught:
            encoded(record(field("a", kind)), rows)
        assert (caught.value.row, caught.value.field) == (row, path)
        assert caught.value.why.startswith(why)


def test_a_decimal_that_needs_more_bytes_than_its_type_has_is_named() -> None:
    """Columns with more digits than the schema are refused before: only such a column has one."""
    kind = {"type": "fixed", "name": "F", "size": 1, "logicalType": "decimal", "precision": 2, "scale": 0}
    wide = pa.struct([("a", pa.decimal128(5, 0))])
    assert encoded(record(field("a", kind)), [{"a": Decimal(-128)}], wide) == [b"\x80"]
    with pytest.raises(
        Unencodable, match="row 1, field 'a': the decimal needs more bytes than the schema's fixed of 1"
    ):
        encoded(record(field("a", kind)), [{"a": Decimal(-128)}, {"a": Decimal(128)}], wide)


def test_text_that_is_none_is_named() -> None:
    text = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ok", b"\xff"]).buffers())
    column = pa.StructArray.from_arrays([text], names=["a"])
    enum = {"type": "enum", "name": "E", "symbols": ["ok"]}
    for kind, why in (("string", "it is not valid UTF-8"), (enum, r"'\xff' is none of the schema's symbols, ok")):
        with pytest.raises(Unencodable, match=re.escape(f"row 1, field 'a': {why}")):
            AvroEncoder(described_as(record(field("a", kind)))).encode(column)


def test_a_null_in_a_record_that_is_null_itself_is_none() -> None:
    inner = record(field("b", "int")) | {"name": "Inner"}
    schema = record(field("a", ["null", inner]))
    rows = [{"a": None}, {"a": {"b": 1}}, {"a": None}]
    assert encoded(schema, rows) == [in_avro(schema, row) for row in rows]
