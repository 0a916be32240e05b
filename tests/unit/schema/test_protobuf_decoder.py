"""The bytes of protobuf are read by the version that they were written with; what is wrong is named by its field."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from eos.errors import InvalidInput
from eos.pulsar.protocol.schemas import Registered
from eos.schema.errors import Undecodable
from eos.schema.protobuf_vector_decoder import FEWEST
from tests.unit.schema.registered import native, registered
from tests.unit.schema.test_protobuf_values import read, written

STATUS = {"Status": ["UNKNOWN", "LATE"]}
BEYOND = b"\x80\x80\x80\x80\x80\x01"  # 2**35


def changed(schema: Registered, change: Callable[[FileDescriptorProto], None]) -> Registered:
    """Return the schema with another description of its first file."""
    given = json.loads(schema.definition)
    files = FileDescriptorSet.FromString(base64.b64decode(given["fileDescriptorSet"]))
    change(files.file[0])
    given["fileDescriptorSet"] = base64.b64encode(files.SerializeToString()).decode()
    return registered("PROTOBUF_NATIVE", json.dumps(given).encode())


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
@pytest.mark.parametrize(
    ("line", "value", "field", "why"),
    [
        ("optional Status a = 1", b"\x08\x09", "a", r"9 is none of its enum's numbers, \[0, 1\]"),
        ("optional Status a = 1", b"\x08\x81\x80\x80\x80\x10", "a", "4294967297 is none of its enum's numbers"),
        ("repeated Status a = 1", b"\x08\x01\x08\x09", "a", "9 is none of its enum's numbers"),
        ("repeated Status a = 1", b"\x0a\x02\x01\x09", "a", "9 is none of its enum's numbers"),
        ("map<string, Status> a = 1", b"\x0a\x05\x0a\x01k\x10\x09", r"a\[\]", "9 is none of its enum's numbers"),
        ("map<string, int32> a = 1", b"\x0a\x03\x0a\x01\xff", r"a\[\]", "not valid UTF-8"),
        ("optional int32 a = 1", b"\x08" + BEYOND, "a", "34359738368, which is beyond int"),
        ("optional sint32 a = 1", b"\x08" + BEYOND, "a", "17179869184, which is beyond int"),
        ("optional uint32 a = 1", b"\x08" + BEYOND, "a", "34359738368, which is beyond uint32"),
        ("optional bool a = 1", b"\x08\x02", "a", "2, where a boolean is 0 or 1"),
        ("optional string a = 1", b"\x0a\x01\xff", "a", "not valid UTF-8"),
        ("optional int32 a = 1", b"\x0d\x01\x00\x00\x00", "a", "it lies there with the wire type 5, which is not its"),
        ("optional google.protobuf.Timestamp a = 1", b"\x0a\x04\x10\x80\xc8\xaf", "", "it can't be read as protobuf"),
        (
            "optional google.protobuf.Timestamp a = 1",
            b"\x0a\x0b\x10" + b"\xff" * 9 + b"\x01",
            "a",
            "0 seconds and -1 n",
        ),
        (
            "optional google.protobuf.Timestamp a = 1",
            b"\x0a\x0a\x08" + b"\xff" * 8 + b"\x7f",
            "a",
            "which is not a moment",
        ),
    ],
)
@pytest.mark.parametrize("before", [1, FEWEST], ids=["few rows", "many rows"])
def test_what_the_schema_has_no_place_for_is_named(
    syntax: str, line: str, value: bytes, field: str, why: str, before: int
) -> None:
    schema = native({"A": [line]}, STATUS, syntax=syntax)
    with pytest.raises(Undecodable, match=f"^row {before}(, field '{field}')?: .*{why}") as raised:
        read(schema, [*[b""] * before, value])
    assert raised.value.field == field.replace("\\", "")


def test_what_is_required_and_missing_is_named() -> None:
    with pytest.raises(Undecodable, match=r"^row 0, field 'a': it is missing"):
        read(native({"A": ["required int32 a = 1"]}, syntax="proto2"), [b""])


@pytest.mark.parametrize(
    ("kind", "zero"),
    [("int32", 0), ("string", ""), ("bytes", b""), ("bool", False), ("double", 0.0), ("Status", "UNKNOWN")],
)
def test_a_zero_of_a_field_without_presence_stays_one_where_the_query_has_presence(kind: str, zero: Any) -> None:
    before, now = (native({"A": [f"{word}{kind} a = 1"]}, STATUS) for word in ("", "optional "))
    data = written(before, [{"a": zero}]).to_pylist()
    assert data == [b""]
    assert read(before, data, by=now) == [{"a": zero}]
    assert read(now, data) == [{"a": None}]
    in_proto2 = native({"A": [f"optional {kind} a = 1"]}, STATUS, syntax="proto2")
    assert read(before, data, by=in_proto2) == [{"a": zero}]


def test_a_null_that_the_query_has_no_place_for_is_named() -> None:
    before, now = (native({"A": [f"{word}int32 a = 1"]}) for word in ("optional ", ""))
    assert read(before, written(before, [{"a": 0}]).to_pylist(), by=now) == [{"a": 0}]
    with pytest.raises(Undecodable, match=r"^row 0, field 'a': it is missing, and the schema of the query has no null"):
        read(before, written(before, [{"a": None}]).to_pylist(), by=now)


def test_an_enum_is_read_by_the_names_that_it_was_written_with() -> None:
    lines = {"A": ["Status a = 1", "repeated Status b = 2", "map<string, Status> c = 3"]}
    before, now = (native(lines, {"Status": names}) for names in (["NONE", "LATE", "GONE"], ["NONE", "GONE", "LATE"]))
    row = {"a": "LATE", "b": ["GONE", "LATE"], "c": [("k", "GONE")]}
    data = written(before, [row]).to_pylist()
    assert read(before, data, by=now) == [row]
    without = native(lines, {"Status": ["NONE", "OTHER", "GONE"]})
    with pytest.raises(
        Undecodable, match=r"^row 0, field 'a': 'LATE', which is none of the names that the query's enum has"
    ):
        read(before, data, by=without)


def test_a_number_that_only_the_querys_enum_has_is_read_by_its_name() -> None:
    before, now = (native({"A": ["Status a = 1"]}, {"Status": names}) for names in (["NONE"], ["NONE", "LATE"]))
    assert read(before, [b"\x08\x01"], by=now) == [{"a": "LATE"}]


def test_a_name_of_an_enum_that_has_two_is_one_that_the_query_has() -> None:
    def with_alias(file: FileDescriptorProto) -> None:
        file.enum_type[0].options.allow_alias = True
        file.enum_type[0].value.add(name="DELAYED", number=1)

    before = changed(native({"A": ["Status a = 1"]}, STATUS), with_alias)
    now = native({"A": ["Status a = 1"]}, {"Status": ["UNKNOWN", "DELAYED"]})
    assert read(before, [b"\x08\x01"]) == [{"a": "LATE"}]
    assert read(before, [b"\x08\x01"], by=now) == [{"a": "DELAYED"}]


def test_the_last_of_several_counts_as_it_does_in_protobufs_own_libraries() -> None:
    schema = native({"A": ["int32 n = 4", "one of p int32 a = 1", "one of p int32 b = 2", "map<string, int32> c = 3"]})
    entry = b"\x1a\x05\x0a\x01k\x10"
    assert read(schema, [b"\x08\x01\x10\x02\x20\x01\x20\x02" + entry + b"\x01" + entry + b"\x02"]) == [
        {"n": 2, "a": None, "b": 2, "c": [("k", 2)]}
    ]


def test_a_default_of_proto2_is_none_of_a_field_that_is_not_there() -> None:
    def with_defaults(file: FileDescriptorProto) -> None:
        for field, default in zip(file.message_type[0].field, ("LATE", "7"), strict=True):
            field.default_value = default

    lines = {"A": ["optional Status a = 1", "optional int32 b = 2"]}
    schema = changed(native(lines, STATUS, syntax="proto2"), with_defaults)
    assert read(schema, [b""]) == [{"a": None, "b": None}]


SCALARS: dict[str, tuple[str, Any]] = {
    **{kind: ("number", -7) for kind in ("int32", "sint32", "sfixed32", "int64", "sint64", "sfixed64")},
    **{kind: ("number", 7) for kind in ("uint32", "fixed32", "uint64", "fixed64")},
    "float": ("float", 0.5),
    "double": ("float", 0.5),
    "bool": ("truth", True),
    "string": ("text", "abc"),
    "bytes": ("bytes", b"abc"),
    "Status": ("enum", "LATE"),
}
"""{type: what its values mean, one that is no zero}. A broker takes any of them for the next version of another."""

ZEROS = {"number": 0, "float": 0.0, "truth": False, "text": "", "bytes": b"", "enum": "UNKNOWN"}


@pytest.mark.parametrize("before", SCALARS)
def test_every_pair_of_types_is_read_with_its_meaning_or_refused(before: str) -> None:
    means, value = SCALARS[before]
    converted = set()
    for now, (meant, _) in SCALARS.items():
        for old, new in ((old, new) for old in ("", "optional ") for new in ("", "optional ")):
            writer, reader = (
                native({"A": [f"{word}{kind} a = 1"]}, STATUS) for word, kind in ((old, before), (new, now))
            )
            rows: list[Any] = [{"a": value}, {"a": ZEROS[means]}]
            data = written(writer, rows).to_pylist()
            try:
                found = read(writer, data, by=reader)
            except InvalidInput:
                continue
            assert meant == means, f"{before} as {now}"
            assert found == rows, f"{old}{before} as {new}{now}"
            converted.add(now)
    other = {"int32": "int64", "sint32": "sint64", "uint32": "uint64"}
    wanted = other | {wide: narrow for narrow, wide in other.items()}
    assert converted == {before, *filter(None, [wanted.get(before)])}


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        (["string a = 1"], b"\x0a\x01\xff\x0a\x01b"),
        (["optional string a = 1"], b"\x0a\x01\xff\x0a\x01b"),
        (["one of p string a = 1", "one of p string b = 2"], b"\x0a\x01\xff\x12\x01b"),
        (["map<string, string> a = 1"], b"\x0a\x09\x0a\x01k\x12\x01\xff\x12\x01b"),
    ],
    ids=["text", "optional", "oneof", "map"],
)
@pytest.mark.parametrize("before", [1, FEWEST], ids=["few rows", "many rows"])
def test_a_text_that_another_replaces_is_a_text_too(lines: list[str], value: bytes, before: int) -> None:
    """Official clients refuse such a message, though the text does not last."""
    schema = native({"A": lines})
    assert len(read(schema, [value.replace(b"\xff", b"c")])) == 1
    with pytest.raises(Undecodable, match=f"^row {before}: .*that another replaces.* is not valid UTF-8"):
        read(schema, [*[b""] * before, value])
