"""What numpy must not take: values that are damaged so that their bytes come out even, or that lie at the very end."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest

from eos.schema import vector_columns
from eos.schema.avro_vector_decoder import FEWEST, vector_column
from eos.schema.errors import Undecodable
from eos.schema.vector_columns import Unsure
from tests.unit.schema.registered import arrow_type, avro_decoder, described_as, field, record

LEAST = b"\xff" * 9 + b"\1"  # the least number of 64 bits
LIST = {"type": "array", "items": "int"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}
ABC, BCD = ({"type": "enum", "name": "E", "symbols": list(symbols)} for symbols in ("ABC", "BCD"))


def of(*kinds: Any) -> dict[str, Any]:
    return record(*(field(f"f{place}", kind) for place, kind in enumerate(kinds)))


def by_numpy(writer: Any, reader: Any, values: list[bytes | None]) -> pa.Array:
    theirs, ours = described_as(writer), described_as(reader)
    column = vector_column(theirs.node, ours.node, arrow_type(ours))
    return vector_columns.decode(pa.array(values, pa.binary()), column)


@pytest.mark.parametrize(
    ("writer", "reader", "value", "words"),
    [
        pytest.param(of("string", "int"), None, b"\1", "it has -1 bytes", id="a size that leads back"),
        pytest.param(of("string", "int"), None, LEAST[:-1] + b"\1", "it has -", id="a size that leads far back"),
        pytest.param(
            of("string", "int"), None, b"\xfe" + b"\xff" * 8 + b"\1", "it has 92", id="a size beyond all data"
        ),
        pytest.param(of(*["double"] * 9), None, b"\0", "it ends within a field", id="an end far behind the data"),
        pytest.param(of(["null", "int"]), None, b"\1", "it names type -1", id="a type of a union that is none"),
        pytest.param(
            of(LIST), None, LEAST + b"\2\2\0", "it has 9223372036854775808 items", id="a number without bounds"
        ),
        pytest.param(of("string", "int"), of("string"), b"\2a", "it ends", id="no bytes for what the query leaves out"),
        pytest.param(
            record(field("x", "string"), field("f0", "int")), of("int"), b"\2\xff\0", "not valid", id="no text"
        ),
        pytest.param(
            record(field("x", DECIMAL), field("f0", "int")), of("int"), b"\4\x7f\xff\0", "beyond", id="digits"
        ),
        pytest.param(of(ABC), of(BCD), b"\0", "'A', which is none of the enum's symbols", id="a symbol of old"),
        pytest.param(of("int"), of("float"), b"\x82\x80\x80\x10", "not exact as a float", id="2^24 + 1 as a float"),
        pytest.param(
            of("long"), of("double"), b"\xfe" + b"\xff" * 7 + b"\x7f", "not exact", id="beyond 2^53 as a double"
        ),
        pytest.param(of("long"), of("int"), b"\x80\x80\x80\x80\x10", "beyond int", id="2^31 as an int"),
        pytest.param(of(["null", "int"]), of("int"), b"\0", "no null", id="null that the query does not have"),
        pytest.param(of("long"), None, b"\xff" * 9 + b"\2", "more than 64 bits", id="a number of 65 bits"),
    ],
)
def test_numpy_is_not_sure_and_the_decoder_of_single_values_names_the_field(
    writer: Any, reader: Any, value: bytes, words: str
) -> None:
    reader = reader or writer
    for before, after in ((FEWEST, 0), (0, FEWEST), (3, FEWEST)):
        values = [*[None] * before, value, *[None] * after]
        with pytest.raises(Unsure):
            by_numpy(writer, reader, values)
        with pytest.raises(Undecodable, match=rf"^row {before}[^0-9].*{words}"):
            avro_decoder(writer, reader).decode(pa.array(values, pa.binary()))


def test_a_row_that_ends_within_the_next_one_is_not_taken() -> None:
    """The bytes of both rows together are right, and neither row is."""
    schema = of("string", "string")
    with pytest.raises(Unsure):
        by_numpy(schema, schema, [b"\x04ab\x04c", b"d"])
    with pytest.raises(Undecodable, match=r"^row 0"):
        avro_decoder(schema, schema).decode(pa.array([b"\x04ab\x04c", b"d", *[None] * FEWEST]))


def test_few_long_lists_among_many_rows_are_left_to_the_decoder_of_single_values() -> None:
    schema = of(LIST)
    long = b"\xd0\x0f" + b"\2" * 1000 + b"\0"
    with pytest.raises(Unsure):
        by_numpy(schema, schema, [long, *[b"\0"] * FEWEST])
    found = avro_decoder(schema, schema).decode(pa.array([long, *[b"\0"] * FEWEST]))
    assert found.field("f0").value_lengths().to_pylist() == [1000, *[0] * FEWEST]


def test_a_record_without_fields_and_rows_that_are_all_null() -> None:
    schema = of({"type": "record", "name": "N", "fields": []}, ["null", "string"])
    assert by_numpy(schema, schema, [None, b"\0", None]).to_pylist() == [None, {"f0": {}, "f1": None}, None]
    assert by_numpy(schema, schema, [None] * 3).to_pylist() == [None] * 3


def test_more_items_than_their_list_has_bytes_are_not_believed_even_if_each_has_none() -> None:
    schema = of({"type": "array", "items": {"type": "record", "name": "N", "fields": []}})
    assert by_numpy(schema, schema, [b"\2\0"] * FEWEST).to_pylist() == [{"f0": [{}]}] * FEWEST
    with pytest.raises(Unsure):
        by_numpy(schema, schema, [b"\xc0\x9a\x0c\0"] * FEWEST)  # 100,000 items


@pytest.mark.parametrize("counts", [(0, 0), (3, 3), (1, 3), (0, 5), (5, 0, 2)])
def test_lists_of_as_many_items_and_of_more_and_fewer(counts: tuple[int, ...]) -> None:
    lists = [list(range(count)) for count in counts * FEWEST]
    for sized in (False, True):  # a block may name its bytes
        values: list[bytes | None] = []
        for items in lists:
            block = [2 * len(items) - 1, 2 * len(items)] if sized else [2 * len(items)]
            values.append(bytes([*block, *(2 * item for item in items), 0] if items else [0]))
        assert by_numpy(of(LIST), of(LIST), values).to_pylist() == [{"f0": items} for items in lists]


@pytest.mark.parametrize("size", range(1, 11))
def test_numbers_of_up_to_so_many_bytes(size: int) -> None:
    """The least of a size has only zeros in its first bytes: 80 01 for 64, for one."""
    schema = of("long", "double")
    bounds = [1 << bits for bits in (0, *range(6, 7 * size, 7), 56, 63) if bits < 7 * size]
    numbers = [number for bound in bounds for number in (bound - 1, -bound, bound, -bound - 1)]
    numbers = [number for number in numbers if -(2**63) <= number < 2**63 and len(varint(number)) <= size]
    rows: list[bytes | None] = [varint(number) + struct.pack("<d", 0.5) for number in numbers]
    assert max(len(row or b"") for row in rows) == size + 8
    assert by_numpy(schema, schema, rows).field("f0").to_pylist() == numbers
    assert [by_numpy(schema, schema, [row]).field("f0")[0].as_py() for row in rows] == numbers


def test_maps_whose_keys_are_those_of_the_one_before_or_its_keys_in_part() -> None:
    schema = of({"type": "map", "values": "int"})
    for keys, twice in (
        (["ab", "ab", "ba"], False),
        (["aa", "aa"], True),
        (["ab", "cc", "ab"], True),
        (["ab", "bca", "b"], False),
        (["ab", "aba", "aba"], True),
        (["ab", "abab"], True),
    ):
        maps: list[bytes | None] = [
            varint(len(one)) + b"".join(b"\2" + key.encode() + b"\2" for key in one) + b"\0" for one in keys
        ]
        if twice:
            with pytest.raises(Unsure):
                by_numpy(schema, schema, maps)
        else:
            assert by_numpy(schema, schema, maps).field("f0").to_pylist() == [[(key, 1) for key in one] for one in keys]


def varint(number: int) -> bytes:
    left, out = (number << 1) ^ (number >> 63), bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])
