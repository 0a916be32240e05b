"""What numpy takes of protobuf's bytes, and what it leaves to Google's library."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pyarrow as pa
import pytest

from eos.pulsar.protocol.schemas import Registered
from eos.schema import vector_columns
from eos.schema.description import Record, described
from eos.schema.protobuf_decoder import ProtobufDecoder
from eos.schema.protobuf_vector_decoder import FEWEST
from eos.schema.vector_columns import Unsure
from tests.property.vector_comparison import outcome
from tests.unit.schema.registered import arrow_type, native

STATUS = {"Status": ["UNKNOWN", "LATE"]}


def decoder(schema: Registered) -> ProtobufDecoder:
    record = described(schema)
    assert isinstance(record, Record)
    return ProtobufDecoder(record, record, arrow_type(record))


def by_numpy(schema: Registered, rows: list[bytes]) -> list[Any]:
    found: list[Any] = vector_columns.decode(pa.array(rows, pa.binary()), decoder(schema).vector_column()).to_pylist()
    return found


def test_fields_in_any_order_with_others_between_them() -> None:
    schema = native({"A": ["int32 a = 1", "string b = 2", "repeated int32 c = 3", "optional bool d = 300"]})
    others = b"\x98\x06\x05" + b"\x99\x06" + bytes(8) + b"\x9a\x06\x02xy" + b"\x9d\x06" + bytes(4)
    row = {"a": 5, "b": "x", "c": [1, 2, 300], "d": True}
    parts = [b"\x08\x05", b"\x12\x01x", b"\x18\x01", b"\x1a\x03\x02\xac\x02", b"\xe0\x12\x01"]
    orders = [parts, [parts[4], others, parts[2], parts[1], parts[3], parts[0]], [others, *parts, others]]
    assert by_numpy(schema, [b"".join(order) for order in orders]) == [row] * 3
    assert by_numpy(schema, [b"", others]) == [{"a": 0, "b": "", "c": [], "d": None}] * 2


def test_what_is_not_there_is_0_false_or_nothing_in_the_order_of_the_rows() -> None:
    schema = native({"A": ["uint64 a = 1", "Status b = 2", "B c = 3"], "B": ["sint32 a = 1", "bytes b = 2"]}, STATUS)
    rows = [b"", b"\x08\x07\x10\x01", b"", b"\x1a\x00", b"\x1a\x02\x08\x03", b"\x08\x09"]
    inner = [None, None, None, {"a": 0, "b": b""}, {"a": -2, "b": b""}, None]
    numbers, names = [0, 7, 0, 0, 0, 9], ["UNKNOWN", "LATE", *["UNKNOWN"] * 4]
    assert by_numpy(schema, rows) == [
        {"a": number, "b": name, "c": c} for number, name, c in zip(numbers, names, inner, strict=True)
    ]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        pytest.param("int32 a = 1", b"\x08\x01\x08\x02", id="a field twice"),
        pytest.param("B a = 1", b"\x0a\x00\x0a\x00", id="a message twice, which is merged"),
        pytest.param("one of p int32 a = 1", b"\x08\x01\x10\x01", id="two of a oneof"),
        pytest.param("int32 a = 1", b"\x88\x80\x00\x01", id="a tag with groups of zeros"),
        pytest.param("int32 a = 1", b"\x0b\x0c", id="a group"),
        pytest.param("int32 a = 1", b"\x9b\x06\x9c\x06", id="a group that the schema does not have"),
        pytest.param("int32 a = 1", b"\x00\x01", id="field number 0"),
        pytest.param("int32 a = 1", b"\xf8\xff\xff\xff\x7f\x01", id="a tag beyond 32 bits"),
        pytest.param("string a = 1", b"\x0a\x80\x80\x80\x80\x80\x00", id="a size of six bytes"),
        pytest.param("string a = 1", b"\x0a\x05a", id="a size beyond the end"),
        pytest.param("string a = 1", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", id="a size that leads back"),
        pytest.param("repeated double a = 1", b"\x0a\x09" + bytes(9), id="no whole number of doubles"),
        pytest.param("repeated int32 a = 1", b"\x0a\x02\x01\x80", id="a packed number that goes on behind its block"),
        pytest.param("repeated int32 a = 1", b"\x0a\x0b" + b"\x80" * 10 + b"\x01", id="a number of eleven bytes"),
        pytest.param("map<string, B> a = 1", b"\x0a\x02\x0a\x00", id="a pair without its message"),
        pytest.param("map<string, int32> a = 1", b"\x0a\x02\x18\x00", id="a pair with a third field"),
        pytest.param("map<string, int32> a = 1", b"\x0a\x02\x0a\x00" * 2, id="a key twice"),
        pytest.param("google.protobuf.Timestamp a = 1", b"\x0a\x03\x08\x01\x10", id="a moment that is cut"),
    ],
)
def test_what_is_rare_or_damaged_is_left_to_googles_library(line: str, value: bytes) -> None:
    schema = native({"A": [line, "one of p int32 b = 2"], "B": ["int32 x = 1"]})
    for rows in ([*[b""] * FEWEST, value], [value, *[b""] * FEWEST]):
        with pytest.raises(Unsure):
            by_numpy(schema, rows)
        reader, values = decoder(schema), pa.array(rows, pa.binary())
        single, whole = outcome(reader.one_by_one, values), outcome(reader.decode, values)
        assert whole == single if isinstance(single, str) else single.equals(whole)


def test_a_size_beyond_the_end_takes_no_memory() -> None:
    schema = native({"A": ["repeated int32 a = 1"]})
    tracemalloc.start()
    try:
        with pytest.raises(Unsure):
            by_numpy(schema, [b"\x0a\x80\x80\x80\x08\x01"])  # 16 MiB of packed numbers, of which each takes 8 bytes
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
