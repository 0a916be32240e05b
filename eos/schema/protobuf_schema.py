"""A topic's protobuf schema: the descriptors that the registry keeps, as they are used and as a tree.

Pulsar keeps PROTOBUF_NATIVE as JSON: the files of the message and of all that they import as a FileDescriptorSet in
base64, the message's full name, and its file's (the Java client's `ProtobufNativeSchemaUtils`).

A message without a counterpart in Spark is refused with the path of its field: a message inside itself, one without
fields, a group, and a map whose keys are not strings.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError

from eos.errors import InvalidInput
from eos.schema.avro_text import AvroField, Node, below

TIMESTAMP = "google.protobuf.Timestamp"
"""The one message that does not become a struct in Spark: a moment, in seconds and nanoseconds since 1970."""

FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
"""Of the years 1 and 9999, between which timestamp.proto has its moments: other libraries refuse what is beyond."""

_KINDS: Mapping[int, str] = {
    FieldDescriptor.TYPE_BOOL: "boolean",
    FieldDescriptor.TYPE_INT32: "int",
    FieldDescriptor.TYPE_SINT32: "int",
    FieldDescriptor.TYPE_SFIXED32: "int",
    FieldDescriptor.TYPE_INT64: "long",
    FieldDescriptor.TYPE_SINT64: "long",
    FieldDescriptor.TYPE_SFIXED64: "long",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_FIXED32: "uint32",
    FieldDescriptor.TYPE_UINT64: "uint64",
    FieldDescriptor.TYPE_FIXED64: "uint64",
    FieldDescriptor.TYPE_FLOAT: "float",
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
}


_Type = descriptor_pb2.FieldDescriptorProto
_AS_IT_LIES = {
    _Type.TYPE_BOOL: _Type.TYPE_UINT64,
    _Type.TYPE_ENUM: _Type.TYPE_INT64,
    _Type.TYPE_INT32: _Type.TYPE_INT64,
    _Type.TYPE_SINT32: _Type.TYPE_SINT64,
    _Type.TYPE_UINT32: _Type.TYPE_UINT64,
    _Type.TYPE_STRING: _Type.TYPE_BYTES,
}
"""{type: the one that reads the same bytes, and cuts nothing off}."""


def is_repeated(field: Any) -> bool:
    """Whether it is a list or a map. Protobuf 5 tells by the label, which protobuf 6 calls deprecated."""
    if hasattr(field, "is_repeated"):
        return bool(field.is_repeated)
    return bool(field.label == FieldDescriptor.LABEL_REPEATED)


def is_required(field: Any) -> bool:
    """Whether a message without it can't be read, in the way of `is_repeated`."""
    if hasattr(field, "is_required"):
        return bool(field.is_required)
    return bool(field.label == FieldDescriptor.LABEL_REQUIRED)


def message_descriptor(definition: bytes, where: str) -> Descriptor:
    """Return what describes the messages. Args: the registry's JSON; whose it is, for errors. Raises InvalidInput."""
    return _descriptor(definition, where, lambda file: None)


def raw_descriptor(definition: bytes, where: str) -> Descriptor:
    """Return what reads the same messages as they lie in their bytes, so that nothing is cut off or left out unseen.

    Each field tells whether it was there; whole numbers, booleans and enums are numbers of 64 bits, texts are bytes,
    and a map is a list of its entries. With the descriptor itself the library cuts numbers to 32 bits, takes any number
    for true, and treats an enum's number that it does not know as if the field were missing. Args, errors: as above.
    """
    return _descriptor(definition, where, _as_it_lies)


def _descriptor(
    definition: bytes, where: str, change: Callable[[descriptor_pb2.FileDescriptorProto], None]
) -> Descriptor:
    try:
        schema = json.loads(definition)
        root = schema["rootMessageTypeName"]
        files = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(schema["fileDescriptorSet"]))
        pool = descriptor_pool.DescriptorPool()  # of its own: two topics may call different messages by one name
        for file in _imported_first({file.name: file for file in files.file}):
            change(file)
            pool.Add(file)
        return pool.FindMessageTypeByName(root)
    except (ValueError, KeyError, TypeError, AttributeError, DecodeError, RecursionError) as error:
        raise InvalidInput(f"{where} is not a protobuf schema: {error!r} in {definition[:200]!r}") from error


def _as_it_lies(file: descriptor_pb2.FileDescriptorProto) -> None:
    file.syntax = "proto2"  # of its fields each tells whether it is there
    for part in ("edition", "options", "enum_type", "extension", "service"):
        file.ClearField(part)
    for message in file.message_type:
        _message_as_it_lies(message)


def _message_as_it_lies(message: descriptor_pb2.DescriptorProto) -> None:
    for part in ("options", "enum_type", "extension", "extension_range"):
        message.ClearField(part)
    made = {field.oneof_index for field in message.field if field.proto3_optional}  # after those of the file itself
    kept = [oneof.name for place, oneof in enumerate(message.oneof_decl) if place not in made]
    message.ClearField("oneof_decl")
    for name in kept:
        message.oneof_decl.add(name=name)
    for field in message.field:
        if field.proto3_optional:
            field.ClearField("oneof_index")
        if field.type in _AS_IT_LIES:
            field.type = _AS_IT_LIES[field.type]
            field.ClearField("type_name")
        if field.label == _Type.LABEL_REQUIRED:
            field.label = _Type.LABEL_OPTIONAL
        field.ClearField("options")
        field.ClearField("default_value")
        field.ClearField("proto3_optional")
    for inner in message.nested_type:
        _message_as_it_lies(inner)


def protobuf_node(descriptor: Descriptor, where: str) -> Node:
    """Return the tree of a message. Args: what describes it; whose it is, for errors. Raises InvalidInput.

    A field that tells whether it is there may be null; one that does not, as most of proto3, may be left out and
    never null: its readers get 0, false or nothing in it.
    """
    return _Tree(where).message(descriptor, "", ())


def leaf_node(field: FieldDescriptor) -> Node:
    """Return the type of a field other than a message."""
    return Node("enum" if field.enum_type is not None else _KINDS[field.type])


def entry_of(field: FieldDescriptor) -> Mapping[str, FieldDescriptor] | None:
    """Return the fields `key` and `value` of a map, on the wire a list of such pairs; None of another field."""
    inner = field.message_type
    return inner.fields_by_name if inner is not None and inner.GetOptions().map_entry else None


def _imported_first(
    files: dict[str, descriptor_pb2.FileDescriptorProto],
) -> Iterator[descriptor_pb2.FileDescriptorProto]:
    """Yield each file after those that it imports, in whatever order they come."""
    while files:
        ready = [name for name, file in files.items() if not files.keys() & set(file.dependency)]
        if not ready:
            raise ValueError(f"the files {sorted(files)} import each other")
        yield from (files.pop(name) for name in ready)


class _Tree:
    def __init__(self, where: str) -> None:
        self._where = where

    def message(self, descriptor: Descriptor, path: str, around: tuple[str, ...]) -> Node:
        if descriptor.full_name in around:
            raise self._refused(path, f"the message {descriptor.full_name} inside itself")
        if not descriptor.fields:
            raise self._refused(path, f"the message {descriptor.full_name} without fields")
        if len({field.name.lower() for field in descriptor.fields}) < len(descriptor.fields):
            raise self._refused(path, "a message with two fields whose names differ in case alone")
        inside = (*around, descriptor.full_name)
        return Node("record", fields=tuple(self._field(field, path, inside) for field in descriptor.fields))

    def _field(self, field: FieldDescriptor, path: str, around: tuple[str, ...]) -> AvroField:
        at = below(path, field.name)
        if entry := entry_of(field):
            if entry["key"].type != FieldDescriptor.TYPE_STRING:
                raise self._refused(at, "a map whose keys are not strings")
            return AvroField(field.name, Node("map", items=self._one(entry["value"], f"{at}[]", around)), True)
        if is_repeated(field):
            return AvroField(field.name, Node("array", items=self._one(field, f"{at}[]", around)), True)
        nullable = field.has_presence and not is_required(field)
        return AvroField(field.name, self._one(field, at, around, nullable=nullable), not is_required(field))

    def _one(self, field: FieldDescriptor, path: str, around: tuple[str, ...], *, nullable: bool = False) -> Node:
        if field.type == FieldDescriptor.TYPE_GROUP:
            raise self._refused(path, "a group")
        if field.enum_type is not None:
            return Node("enum", nullable=nullable, symbols=tuple(field.enum_type.values_by_name))
        if field.message_type is None:
            return Node(_KINDS[field.type], nullable=nullable)
        if field.message_type.full_name == TIMESTAMP:
            return Node("long", "timestamp-micros", nullable=nullable)
        found = self.message(field.message_type, path, around)
        return Node("record", nullable=nullable, fields=found.fields)

    def _refused(self, path: str, what: str) -> InvalidInput:
        place = f"field {path!r}" if path else "it"
        return InvalidInput(f"{self._where} can't be read as Spark's types: {place} is {what}")
