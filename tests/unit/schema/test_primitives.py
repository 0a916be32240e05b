from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_type

from eos.schema.errors import Undecodable, Unencodable
from eos.schema.primitives import PRIMITIVES, decode_primitive, encode_primitive
from eos.schema.spark_types import OF_PRIMITIVES
from tests.unit.schema.registered import GOLDEN, golden

MOMENT = datetime(2013, 1, 1, 10, 15, 30, 123000, UTC)

# What the Java client wrote, and what it means; nanoseconds are cut to microseconds.
MEANT: dict[str, Any] = {
    "STRING größer 😀": "größer 😀",
    "BYTES 00ff": b"\x00\xff",
    "BOOLEAN true": True,
    "BOOLEAN false": False,
    "INT8 -128": -128,
    "INT16 -32768": -(2**15),
    "INT32 -2147483648": -(2**31),
    "INT64 -9223372036854775808": -(2**63),
    "INT64 42": 42,
    "FLOAT -0.5": -0.5,
    "DOUBLE 0.1": 0.1,
    "DATE 2013-01-01T10:15:30.123Z": MOMENT,
    "DATE 1969-12-31T23:59:59.999Z": datetime(1969, 12, 31, 23, 59, 59, 999000, UTC),
    "TIME 36930123": 36_930_123,
    "TIMESTAMP 2013-01-01T10:15:30.123Z": MOMENT,
    "INSTANT 2013-01-01T10:15:30.123456789Z": datetime(2013, 1, 1, 10, 15, 30, 123456, UTC),
    "INSTANT 1969-12-31T23:59:59.999999999Z": datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
    "LOCAL_DATE 1969-12-31": date(1969, 12, 31),
    "LOCAL_TIME 23:59:59.999999999": 86_399_999_999_999,
    "LOCAL_DATE_TIME 1969-12-31T23:59:59.999999999": datetime(1969, 12, 31, 23, 59, 59, 999999),
}


@pytest.mark.parametrize("asked", MEANT)
def test_what_the_java_client_wrote(asked: str) -> None:
    _, value = golden(asked)
    kind = asked.split()[0]
    among = pa.array([b"outside", value, None, value], pa.binary()).slice(1)
    found = decode_primitive(kind, among)
    found.validate(full=True)
    assert found.to_pylist() == [MEANT[asked], None, MEANT[asked]]


def test_values_in_a_slice_of_a_column_without_nulls() -> None:
    among = pa.array([b"abcd", b"\0\0\0\1", b"\0\0\0\2"], pa.binary()).slice(1)
    assert decode_primitive("INT32", among).to_pylist() == [1, 2]


def test_the_java_client_wrote_every_kind() -> None:
    assert {vector["kind"] for vector in GOLDEN} >= PRIMITIVES.keys()


@pytest.mark.parametrize("kind", PRIMITIVES)
def test_nulls_alone_and_nothing_at_all(kind: str) -> None:
    assert decode_primitive(kind, pa.array([None, None], pa.binary())).to_pylist() == [None, None]
    assert decode_primitive(kind, pa.array([], pa.binary())).to_pylist() == []


@pytest.mark.parametrize("kind", [kind for kind, layout in PRIMITIVES.items() if layout is not None])
def test_a_wrong_size_is_named_with_its_row(kind: str) -> None:
    layout = PRIMITIVES[kind]
    assert layout is not None
    good = bytes(layout.parts.itemsize)
    for wrong in (b"", good + b"x"):
        with pytest.raises(Undecodable, match=f"^row 2: {len(wrong)} bytes, where a value of the type {kind} has"):
            decode_primitive(kind, pa.array([good, None, wrong], pa.binary()))


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        ("TIMESTAMP", [(-(2**63), 8)]),
        ("DATE", [(2**63 // 1000 + 1, 8)]),
        ("INSTANT", [(2**62, 8), (0, 4)]),
        ("INSTANT", [(0, 8), (10**9, 4)]),
        ("INSTANT", [(0, 8), (-1, 4)]),
        ("LOCAL_DATE", [(2**31, 8)]),
        ("LOCAL_DATE_TIME", [(-(2**63), 8), (0, 8)]),
        ("LOCAL_DATE_TIME", [(0, 8), (86_400_000_000_000, 8)]),
    ],
)
def test_a_time_that_spark_has_no_place_for_is_named(kind: str, numbers: list[tuple[int, int]]) -> None:
    wrong = b"".join(number.to_bytes(size, "big", signed=True) for number, size in numbers)
    with pytest.raises(Undecodable, match=rf"^row 2: \(.*\) is no {kind} that Spark has a place for"):
        decode_primitive(kind, pa.array([None, bytes(len(wrong)), wrong], pa.binary()))


def test_text_that_is_no_utf_8_is_named() -> None:
    with pytest.raises(Undecodable, match=r"^row 2: .*it is not valid UTF-8"):
        decode_primitive("STRING", pa.array([b"a", None, b"\xff"], pa.binary()))


@pytest.mark.parametrize(
    ("kind", "good", "wrong"),
    [
        ("BOOLEAN", b"\1", b"\2"),
        ("LOCAL_TIME", bytes(8), b"\xff" * 8),
        ("LOCAL_TIME", bytes(8), (86_400 * 10**9).to_bytes(8, "big")),
    ],
)
def test_a_number_that_stands_for_no_value_is_named(kind: str, good: bytes, wrong: bytes) -> None:
    with pytest.raises(Undecodable, match=rf"^row 2: .* is no {kind} that Spark has a place for"):
        decode_primitive(kind, pa.array([good, None, wrong], pa.binary()))


@pytest.mark.parametrize("asked", MEANT)
def test_it_is_written_as_the_java_client_writes_it(asked: str) -> None:
    _, value = golden(asked)
    kind = asked.split()[0]
    values = pa.array([None, MEANT[asked], None, MEANT[asked]], to_arrow_type(OF_PRIMITIVES[kind], timezone="UTC"))
    cut = bytes.fromhex(value.hex().replace("075bcd15", "075bca00").replace("3b9ac9ff", "3b9ac618"))  # to microseconds
    if kind == "LOCAL_DATE_TIME":
        cut = value[:8] + (int.from_bytes(value[8:], "big") // 1000 * 1000).to_bytes(8, "big")
    written = encode_primitive(kind, values.slice(1))
    written.validate(full=True)
    assert written.to_pylist() == [cut, None, cut]
    assert encode_primitive(kind, values.slice(1, 1)).to_pylist() == [cut]


@pytest.mark.parametrize("kind", PRIMITIVES)
def test_nulls_alone_and_nothing_at_all_are_written(kind: str) -> None:
    type_ = to_arrow_type(OF_PRIMITIVES[kind], timezone="Asia/Tokyo")
    assert encode_primitive(kind, pa.array([None, None], type_)).to_pylist() == [None, None]
    assert encode_primitive(kind, pa.array([], type_)).to_pylist() == []


def test_a_smaller_type_and_another_zone_are_written_as_the_kind() -> None:
    assert encode_primitive("INT64", pa.array([-1, None], pa.int8())).to_pylist() == [b"\xff" * 8, None]
    assert encode_primitive("DOUBLE", pa.array([0.5], pa.float32())).to_pylist() == [b"\x3f\xe0" + bytes(6)]
    in_tokyo = pa.array([MOMENT], pa.timestamp("us", "Asia/Tokyo"))
    assert encode_primitive("TIMESTAMP", in_tokyo).to_pylist() == [golden("TIMESTAMP 2013-01-01T10:15:30.123Z")[1]]


@pytest.mark.parametrize("wrong", [-1, 86_400_000_000_000])
def test_a_time_that_no_day_has_is_named(wrong: int) -> None:
    with pytest.raises(Unencodable, match=f"^row 2: {wrong} is no LOCAL_TIME. That is nanoseconds since midnight"):
        encode_primitive("LOCAL_TIME", pa.array([0, None, wrong, wrong]))


def test_text_that_is_none_is_not_written() -> None:
    text = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ok", b"\xff"]).buffers())
    with pytest.raises(Unencodable, match=r"^row 1: .*it is not valid UTF-8"):
        encode_primitive("STRING", text)
