"""Rows become messages that protobuf's own library reads, and back; what can't be written is named by row and field."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.internal import api_implementation
from google.protobuf.json_format import MessageToDict
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql.pandas.types import to_arrow_type

from eos.errors import InvalidInput
from eos.pulsar.protocol.schemas import Registered
from eos.schema.decoder import Decoder
from eos.schema.description import described
from eos.schema.encoder import encoder_of
from eos.schema.errors import Undecodable, Unencodable
from eos.schema.protobuf_schema import message_descriptor
from eos.schema.spark_types import spark_type
from tests.unit.schema.registered import native
from tests.unit.schema.test_protobuf_schema import STATUS, WHOLE

YEAR_1, YEAR_10_000 = -62_135_596_800_000_000, 253_402_300_800_000_000
MICRO_BEFORE = datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
ROW = {
    "carrier": None,
    "delay": -7,
    "seats": 2**32 - 1,
    "id": Decimal(2**64 - 1),
    "status": ["LATE", "UNKNOWN"],
    "legs": [("JFK", {"share": 0.1, "parts": [0.5]}), ("größer", {"share": 0.0, "parts": []})],
    "at": MICRO_BEFORE,
    "gate": None,
    "remote": False,
}


def arrow(schema: Registered) -> pa.DataType:
    return to_arrow_type(spark_type(described(schema)), timezone="UTC")


def written(schema: Registered, rows: list[Any], kind: pa.DataType | None = None) -> pa.Array:
    return encoder_of(described(schema)).encode(pa.array(rows, kind or arrow(schema)))


def read(schema: Registered, values: list[bytes | None], *, by: Registered | None = None) -> list[Any]:
    query = by or schema
    decoder = Decoder(described(schema), described(query), arrow(query))
    found: list[Any] = decoder.decode(pa.array(values, pa.binary())).to_pylist()
    for row in found:
        if row is not None and "legs" in row:
            row["legs"].sort(key=lambda pair: pair[0])  # a map has no order
    return found


def test_a_row_is_read_by_protobufs_library_and_by_us() -> None:
    schema = native(WHOLE, STATUS)
    data = written(schema, [None, ROW, None]).to_pylist()
    assert (data[0], data[2]) == (None, None)
    theirs = GetMessageClass(message_descriptor(schema.definition, "it")).FromString(data[1])
    assert MessageToDict(theirs, preserving_proto_field_name=True) == {
        "delay": -7,
        "seats": 2**32 - 1,
        "id": str(2**64 - 1),
        "status": ["LATE", "UNKNOWN"],
        "legs": {"JFK": {"share": 0.1, "parts": [0.5]}, "größer": {}},
        "at": "1969-12-31T23:59:59.999999Z",
        "remote": False,
    }
    assert read(schema, data) == [None, ROW, None]


def test_a_field_that_is_left_out_is_not_there() -> None:
    schema = native(WHOLE, STATUS)
    data = written(schema, [{"seats": 5, "legs": [("a", {})]}], pa.struct({"seats": pa.int32(), "legs": LEGS_OF_NONE}))
    (row,) = read(schema, data.to_pylist())
    there = {"delay": 0, "id": Decimal(0), "status": [], "seats": 5, "legs": [("a", {"share": 0.0, "parts": []})]}
    assert row == dict.fromkeys(("carrier", "at", "gate", "remote")) | there


LEGS_OF_NONE = pa.map_(pa.string(), pa.struct([]))


@pytest.mark.parametrize(
    ("messages", "rows", "field", "why"),
    [
        ({"A": ["int32 a = 1"]}, [{"a": 1}, None, {"a": None}], "a", "it is null, and a field without presence has no"),
        ({"A": ["repeated int32 a = 1"]}, [{"a": []}, {"a": [1]}, {"a": None}], "a", "a field without presence"),
        ({"A": ["repeated int32 a = 1"]}, [{"a": []}, {"a": [1]}, {"a": [1, None]}], "a[]", "an item of protobuf"),
        ({"A": ["B b = 1"], "B": ["bool c = 1"]}, [{"b": None}, {"b": {"c": True}}, {"b": {"c": None}}], "b.c", "null"),
        ({"A": ["uint32 a = 1"]}, [{"a": 0}, {"a": 2**32 - 1}, {"a": 2**32}], "a", "it is no uint32"),
        ({"A": ["uint64 a = 1"]}, [{"a": Decimal(1)}, {"a": Decimal(2)}, {"a": Decimal(-1)}], "a", "it is no uint64"),
        ({"A": ["optional Status a = 1"]}, [{"a": "LATE"}, {"a": None}, {"a": "late"}], "a", "'late' is none of UNKN"),
        (
            {"A": ["google.protobuf.Timestamp a = 1"]},
            [{"a": YEAR_1}, {"a": YEAR_10_000 - 1}, {"a": YEAR_10_000}],
            "a",
            "before the year 1 or after 9999",
        ),
        ({"A": ["google.protobuf.Timestamp a = 1"]}, [{"a": YEAR_1}, {"a": 0}, {"a": YEAR_1 - 1}], "a", "before the"),
        (
            {"A": ["one of p int32 a = 1", "one of p int32 b = 2"]},
            [{"a": 1}, {"b": 1}, {"a": 0, "b": 0}],
            "p",
            "one of a, b may be set, and there are more",
        ),
    ],
)
def test_what_protobuf_has_no_place_for_is_named(
    messages: dict[str, list[str]], rows: list[Any], field: str, why: str
) -> None:
    schema = native(messages, STATUS)
    assert len(written(schema, rows[:2])) == 2
    with pytest.raises(Unencodable) as raised:
        written(schema, [*rows, rows[0]])
    assert (raised.value.row, raised.value.field) == (2, field)
    assert why in raised.value.why


def test_the_first_wrong_row_is_named_with_its_own_field() -> None:
    schema = native({"A": ["int32 a = 1", "int32 b = 2"]})
    with pytest.raises(Unencodable) as raised:
        written(schema, [{"a": 1, "b": 1}, {"a": 1, "b": None}, {"a": None, "b": 1}])
    assert (raised.value.row, raised.value.field) == (1, "b")


def test_a_text_that_is_none_is_named() -> None:
    for lines, at in ((["string a = 1"], "a"), (["map<string, bool> a = 1"], "a[]")):
        bad = pa.array([b"\xff"], pa.binary()).view(pa.string())
        column = bad if at == "a" else pa.MapArray.from_arrays([0, 1], bad, pa.array([True]))
        with pytest.raises(Unencodable, match="not valid UTF-8") as raised:
            encoder_of(described(native({"A": lines}))).encode(pa.StructArray.from_arrays([column], ["a"]))
        assert (raised.value.row, raised.value.field) == (0, at)
        lines = [line.replace("string a", "Status a").replace("bool", "Status") for line in lines]
        column = bad if at == "a" else pa.MapArray.from_arrays([0, 1], pa.array(["k"]), bad)
        with pytest.raises(Unencodable, match=re.escape(r"'\xff' is none of")):
            encoder_of(described(native({"A": lines}, STATUS))).encode(pa.StructArray.from_arrays([column], ["a"]))


def test_maps_are_written_in_the_order_of_their_keys() -> None:
    keys = [f"key {number:02}" for number in range(20)]
    row = {"a": [(key, 1) for key in reversed(keys)]}
    (data,) = written(native({"A": ["map<string, int32> a = 1"]}), [row]).to_pylist()
    assert [key.decode() for key in re.findall(rb"key \d\d", data)] == keys


def test_what_is_required_is_written_and_not_null() -> None:
    schema = native({"A": ["required int32 a = 1", "optional int32 b = 2"]}, syntax="proto2")
    assert written(schema, [{"a": 0, "b": None}, {"a": 0, "b": 0}]).to_pylist() == [b"\x08\x00", b"\x08\x00\x10\x00"]
    with pytest.raises(Unencodable, match="field 'a': it is null"):
        written(schema, [{"a": None, "b": 1}])


def test_a_part_of_a_column_is_written_as_that_part() -> None:
    schema = native(WHOLE, STATUS)
    rows = [ROW, ROW | {"delay": 1, "status": [], "legs": []}, ROW | {"delay": 2}]
    column = pa.array(rows, arrow(schema)).slice(1)
    assert read(schema, encoder_of(described(schema)).encode(column).to_pylist()) == rows[1:]


def test_what_was_written_before_or_after_is_read_by_the_numbers_of_its_fields() -> None:
    old, new = native({"A": ["int32 a = 1"]}), native({"A": ["int32 a = 1", "optional string b = 2"]})
    data = written(new, [{"a": 1, "b": "x"}]).to_pylist()
    assert read(new, data, by=old) == [{"a": 1}]
    assert read(old, written(old, [{"a": 1}]).to_pylist(), by=new) == [{"a": 1, "b": None}]


@pytest.mark.parametrize(
    ("narrow", "wide", "number"), [("int32", "int64", -1), ("sint32", "sint64", -1), ("uint32", "uint64", 2**32 - 1)]
)
def test_a_number_may_become_wider_and_where_it_fits_narrower(narrow: str, wide: str, number: int) -> None:
    before, after = native({"A": [f"{narrow} a = 1"]}), native({"A": [f"{wide} a = 1"]})
    assert read(before, written(before, [{"a": number}]).to_pylist(), by=after) == [{"a": number}]
    assert read(after, written(after, [{"a": number}]).to_pylist(), by=before) == [{"a": number}]
    with pytest.raises(Undecodable, match=r"field 'a': \d+, which is beyond "):
        read(after, written(after, [{"a": 2**32}]).to_pylist(), by=before)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ({"A": ["string a = 1", "B b = 2"], "B": ["int32 c = 1"]}, "field 'a' was written with the number 1, which is"),
        ({"A": ["int32 z = 1", "B b = 2"], "B": ["int32 c = 1"]}, "number 1, which is field 'z' of another name or"),
        ({"A": ["int32 a = 3", "B b = 2"], "B": ["int32 c = 1"]}, "written with the number 1, and is read with 3"),
        ({"A": ["int32 a = 1", "B b = 2"], "B": ["sint32 c = 1"]}, r"field 'b\.c' was written with the number 1"),
        ({"A": ["int32 a = 1", "repeated B b = 2"], "B": ["int32 c = 1"]}, "field 'b' was written with the number 2"),
    ],
)
def test_a_number_that_has_another_meaning_is_refused(messages: dict[str, list[str]], words: str) -> None:
    before = native({"A": ["int32 a = 1", "B b = 2"], "B": ["int32 c = 1"]})
    with pytest.raises(InvalidInput, match=words):
        read(before, [], by=native(messages))


def test_what_can_not_be_read_is_named() -> None:
    schema = native({"A": ["repeated Status a = 1"]}, STATUS)
    with pytest.raises(Undecodable, match=r"row 1: it can't be read as protobuf"):
        read(schema, [b"", b"\x0a\x05"])
    with pytest.raises(Undecodable, match=r"row 1, field 'a': 9 is none of its enum's numbers, \[0, 1\]"):
        read(schema, [None, b"\x08\x09"])


@pytest.mark.parametrize(
    ("messages", "row", "path"),
    [
        ({"M": ["int32 self = 1", "int32 a = 2"]}, {"self": 1, "a": 2}, "self"),
        ({"M": ["Sub sub = 1"], "Sub": ["optional string self = 1"]}, {"sub": {"self": "x"}}, "sub.self"),
        (
            {"M": ["map<string, Sub> m = 1"], "Sub": ["repeated int32 self = 1"]},
            {"m": [("k", {"self": [1]})]},
            "m.self",
        ),
    ],
)
def test_a_field_of_the_name_self_is_written_or_refused_before_any_row(
    messages: dict[str, list[str]], row: dict[str, Any], path: str
) -> None:
    schema = native(messages)
    if api_implementation.Type() == "python":
        with pytest.raises(InvalidInput, match=f"^Field {path!r} can't be written on this machine"):
            encoder_of(described(schema))
    else:
        assert read(schema, written(schema, [row]).to_pylist()) == [row]


def test_a_map_with_a_key_twice_is_refused() -> None:
    rows = [{"a": [("k", 1), ("l", 2)]}, {"a": []}, {"a": [("l", 1), ("k", 2), ("k", 3)]}]
    with pytest.raises(Unencodable, match="row 2, field 'a': the key 'k' twice"):
        written(native({"A": ["map<string, int32> a = 1"]}), rows)


def test_names_of_an_enum_in_a_map_are_written() -> None:
    schema = native({"M": ["map<string, Status> m = 1"]}, STATUS)
    rows = [{"m": [("a", "LATE"), ("b", "UNKNOWN")]}, {"m": []}]
    assert read(schema, written(schema, rows).to_pylist()) == rows
    with pytest.raises(Unencodable, match=r"row 1, field 'm\[\]': 'NONE_SUCH' is none of"):
        written(schema, [rows[0], {"m": [("a", "NONE_SUCH")]}])


_TRIED_IN_PYTHON = "self or map or enum or another_replaces"


@pytest.mark.skipif(api_implementation.Type() == "python", reason="it is this very process")
def test_it_holds_where_protobuf_runs_in_python_alone() -> None:
    """As where no wheel with its C library is to be had: it takes, and raises, other things there.

    Only what was different there is tried: all of it takes such a library half a minute.
    """
    tests = [__file__, str(Path(__file__).with_name("test_protobuf_decoder.py"))]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "-k",
        _TRIED_IN_PYTHON,
        *tests,
    ]
    alone = os.environ | {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    ended = subprocess.run(
        command, env=alone, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout
