"""The content of a registered schema, typed.

Read off Pulsar's own classes: a primitive is named by its kind alone (`SchemaType`). JSON and AVRO carry Avro's text. A
key-value schema carries both schemas in its data, each after its size as four bytes, and the rest in its properties
(`KeyValueSchemaInfo`).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from eos.errors import InvalidInput
from eos.pickling import PickledByName
from eos.pulsar.protocol.schemas import Registered
from eos.schema.avro_text import Node, parse_avro
from eos.schema.primitives import PRIMITIVES
from eos.schema.protobuf_schema import message_descriptor, protobuf_node

Form = Literal["JSON", "AVRO", "PROTOBUF_NATIVE"]

_BY_HAND = {
    "PROTOBUF": "Read the bytes, and decode them by from_protobuf() in Spark; or register the message as "
    "PROTOBUF_NATIVE: of PROTOBUF the registry has the numbers of the outermost fields alone",
}


@dataclass(frozen=True, slots=True)
class Primitive(PickledByName):
    """A value that is one number, text, time or bytes.

    Attributes:
        kind: a key of `PRIMITIVES`.
    """

    kind: str

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True, slots=True)
class Record(PickledByName):
    """A value with fields.

    Attributes:
        format: how it is written.
        text: the schema: Avro's, or the registry's JSON with a message's descriptors.
        node: the same as a tree.
    """

    format: Form
    text: bytes
    node: Node

    def __str__(self) -> str:
        told = json.loads(self.text)["rootMessageTypeName"] if self.format == "PROTOBUF_NATIVE" else self.text.decode()
        return f"{self.format} {told}"


@dataclass(frozen=True, slots=True)
class Pair(PickledByName):
    """A key and a value, each with a schema.

    Attributes:
        separated: whether the key is the message's key, and the payload the value alone; else the payload has both.
        key, value: what the two are.
    """

    separated: bool
    key: Primitive | Record
    value: Primitive | Record

    def __str__(self) -> str:
        return f"KEY_VALUE ({'separated' if self.separated else 'inline'}) of {self.key} and {self.value}"


Description = Primitive | Record | Pair


def described(schema: Registered) -> Description:
    """Return what a registered schema says. Raises InvalidInput for what has no counterpart in Spark."""
    if schema.kind == "KEY_VALUE":
        return _pair(schema)
    return _single(schema.kind, schema.definition, str(schema))


def _single(kind: str, definition: bytes, where: str) -> Primitive | Record:
    if kind in PRIMITIVES:
        return Primitive(kind)
    if kind in ("JSON", "AVRO"):
        return Record("JSON" if kind == "JSON" else "AVRO", definition, parse_avro(definition, where))
    if kind == "PROTOBUF_NATIVE":
        return Record("PROTOBUF_NATIVE", definition, protobuf_node(message_descriptor(definition, where), where))
    advice = _BY_HAND.get(kind, "Read the bytes, and decode them in Spark")
    raise InvalidInput(f"{where} is of the type {kind}, which has no counterpart in Spark's types. {advice}.")


def _pair(schema: Registered) -> Pair:
    encoding = schema.properties.get("kv.encoding.type", "INLINE")
    if encoding not in ("INLINE", "SEPARATED"):
        raise InvalidInput(f"{schema} has the key-value encoding {encoding!r}; known are INLINE and SEPARATED.")
    data = schema.definition
    try:
        key_data, rest = _sized(data)
        value_data, rest = _sized(rest)
    except struct.error as error:
        raise InvalidInput(f"{schema} is not a key-value schema: {error} in {data!r}") from error
    parts = []
    for name, definition in (("key", key_data), ("value", value_data)):
        kind = schema.properties.get(f"{name}.schema.type", "BYTES")
        parts.append(_single(kind, definition, f"the {name} of {schema}"))
    return Pair(encoding == "SEPARATED", parts[0], parts[1])


def _sized(data: bytes) -> tuple[bytes, bytes]:
    (size,) = struct.unpack_from(">i", data)
    size = max(size, 0)  # -1 stands for none
    if len(data) < 4 + size:
        raise struct.error(f"{size} bytes announced, {len(data) - 4} there")
    return data[4 : 4 + size], data[4 + size :]


def same(one: Description, other: Description) -> bool:
    """Return whether two schemas say the same, but for the order of JSON's keys and for documentation."""
    if isinstance(one, Record) and isinstance(other, Record):
        return one.format == other.format and _essence(json.loads(one.text)) == _essence(json.loads(other.text))
    if isinstance(one, Pair) and isinstance(other, Pair):
        return one.separated == other.separated and same(one.key, other.key) and same(one.value, other.value)
    return one == other


def _essence(schema: object) -> object:
    if isinstance(schema, Mapping):
        return {key: _essence(inside) for key, inside in schema.items() if key != "doc"}
    return [_essence(inside) for inside in schema] if isinstance(schema, list) else schema
