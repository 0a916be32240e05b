from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from eos.errors import InvalidInput
from eos.schema.avro_text import AvroField, Node, parse_avro
from tests.unit.schema.registered import field, record

WHERE = "version 0 of the schema of t"
BYTES = {"type": "bytes", "logicalType": "decimal"}
FIXED = {"type": "fixed", "name": "F", "logicalType": "decimal"}


def parsed(schema: Any) -> Node:
    return parse_avro(json.dumps(schema).encode(), WHERE)


@pytest.mark.parametrize(
    ("schema", "node"),
    [
        ("long", Node("long")),
        ({"type": "string"}, Node("string")),
        ({"type": {"type": "int"}}, Node("int")),
        (["null", "int"], Node("int", nullable=True)),
        (["int", "null"], Node("int", nullable=True)),
        (["string"], Node("string")),
        (["int", "long", "null"], Node("long", nullable=True)),
        (["float", "double"], Node("double")),
        ({"type": "array", "items": ["null", "int"]}, Node("array", items=Node("int", nullable=True))),
        ({"type": "map", "values": "bytes"}, Node("map", items=Node("bytes"))),
        ({"type": "int", "logicalType": "date"}, Node("int", "date")),
        ({"type": "string", "logicalType": "uuid"}, Node("string")),
        ({"type": "string", "logicalType": "date"}, Node("string")),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, Node("enum", symbols=("A",))),
        ({"type": "enum", "name": "E", "symbols": ["A"], "default": None}, Node("enum", symbols=("A",))),
        (
            {"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2},
            Node("fixed", "decimal", precision=9, scale=2, size=4),
        ),
    ],
)
def test_types(schema: Any, node: Node) -> None:
    assert parsed(schema) == node


@pytest.mark.parametrize(
    ("kind", "valid"),
    [
        (BYTES | {"precision": 38, "scale": 38}, True),
        (BYTES | {"precision": 1}, True),
        (BYTES | {"precision": 0}, False),
        (BYTES | {"precision": -1, "scale": -1}, False),
        (BYTES | {"precision": 2, "scale": 5}, False),
        (BYTES | {"precision": 2, "scale": -1}, False),
        (BYTES | {"precision": 2, "scale": None}, False),
        (BYTES | {"precision": 40, "scale": 50}, False),
        (BYTES | {"precision": "5"}, False),
        (BYTES | {"precision": 5.0}, False),
        (BYTES | {"precision": True}, False),
        (BYTES | {"precision": None}, False),
        (BYTES, False),
        (FIXED | {"size": 4, "precision": 9}, True),
        (FIXED | {"size": 4, "precision": 10}, False),
        (FIXED | {"size": 16, "precision": 38}, True),
        (FIXED | {"size": 0, "precision": 1}, False),
    ],
)
def test_a_decimal_that_avro_does_not_allow_is_its_type_without_it_as_in_java(
    kind: dict[str, Any], *, valid: bool
) -> None:
    """As Java's LogicalTypes.fromSchemaIgnoreInvalid does."""
    below = parsed({key: value for key, value in kind.items() if key != "logicalType"})
    decimal = replace(below, logical="decimal", precision=kind.get("precision", 0), scale=kind.get("scale", 0))
    assert parsed(kind) == (decimal if valid else below)
    assert parsed(record(field("a", ["null", kind]))).fields[0].node.logical == ("decimal" if valid else "")


@pytest.mark.parametrize(
    ("union", "branch", "null"),
    [
        (["null", "int"], 1, 0),
        (["int", "null"], 0, 1),
        (["string"], 0, 0),
        (["int", "null", "long"], 2, 1),
        ([{"type": "null"}, {"type": "double"}, "float"], 1, 0),
    ],
)
def test_a_type_keeps_its_place_and_that_of_null_in_a_union(union: Any, branch: int, null: int) -> None:
    node = parsed(union)
    assert (node.branch, node.null_branch) == (branch, null)
    assert parsed("string").branch is None


def test_a_record_keeps_its_fields_in_order_and_their_defaults() -> None:
    schema = record(field("b", "int", default=5), field("a", ["null", "string"], default=None), field("c", "int"))
    assert parsed(schema).fields == (
        AvroField("b", Node("int"), True, 5),
        AvroField("a", Node("string", nullable=True), True, None),
        AvroField("c", Node("int")),
    )


def test_a_name_stands_for_the_type_that_it_was_given_to_in_its_namespace() -> None:
    inner = {"type": "enum", "name": "E", "symbols": ["A"]}
    schema = record(field("a", inner), field("b", "E"), field("c", "n.s.E"), namespace="n.s")
    assert [one.node for one in parsed(schema).fields] == [Node("enum", symbols=("A",))] * 3


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (record(field("a", ["int", "string"])), "field 'a' is a union of int, string"),
        (
            record(field("a", {"type": "array", "items": ["int", "bytes"]})),
            "field 'a.element' is a union of int, bytes",
        ),
        (record(field("a", "null")), "field 'a' is null alone"),
        (record(field("a", ["null"])), "field 'a' is a union of null alone"),
        (record(field("a", ["null", "R"])), "field 'a' is the record R inside itself"),
        (
            record(field("a", "int"), field("A", "int")),
            "it is a record with two fields whose names differ in case alone",
        ),
        (
            record(field("a", {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 2})),
            r"field 'a' is decimal\(39, 2\), which has more than 38 digits",
        ),
    ],
)
def test_what_spark_has_no_counterpart_for_is_refused_by_name(schema: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{WHERE} can't be read as Spark's types: {words}"):
        parsed(schema)


@pytest.mark.parametrize(
    "text",
    [
        b"{",
        b"{}",
        b"5",
        b'{"type": "record", "name": "R"}',
        b'"nosuch"',
        b"[" * 100_000,
        *(
            json.dumps(schema).encode()
            for schema in (
                record(field("\ud800", "int")),
                {"type": "enum", "name": "E", "symbols": ["\ud800"]},
                {"type": "enum", "name": "E", "symbols": ["A"], "default": "\ud800"},
                {"type": "enum", "name": "E", "symbols": [1]},
                {"type": "fixed", "name": "F", "size": "4"},
                {"type": "fixed", "name": "F", "size": -1},
            )
        ),
    ],
)
def test_what_is_no_schema_is_said_to_be_none(text: bytes) -> None:
    with pytest.raises(InvalidInput, match=f"^{WHERE} is not an Avro schema"):
        parse_avro(text, WHERE)
