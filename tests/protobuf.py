"""Messages of protobuf for tests, from the lines that one writes in a .proto file, as Pulsar registers them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence

from google.protobuf import timestamp_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

_LINE = re.compile(r"(?:(optional|repeated|required|one of (\w+)) )?(?:map<(\w+), ([\w.]+)>|([\w.]+)) (\w+) = (\d+)")
_LABELS = {"repeated": FieldDescriptorProto.LABEL_REPEATED, "required": FieldDescriptorProto.LABEL_REQUIRED}

Messages = Mapping[str, Sequence[str]]


def proto(
    messages: Messages, enums: Mapping[str, Sequence[str]] | None = None, *, package: str = "t", syntax: str = "proto3"
) -> bytes:
    """Return the registry's JSON of the first message.

    Args: {message: lines such as "optional string carrier = 1", "map<string, Leg> legs = 2", "one of at int32 x = 3"};
    {enum: its names, numbered from 0}; the package; "proto2" or "proto3".
    """
    file = FileDescriptorProto(name="t.proto", package=package, syntax=syntax)
    for name, symbols in (enums or {}).items():
        enum = file.enum_type.add(name=name)
        for number, symbol in enumerate(symbols):
            enum.value.add(name=symbol, number=number)
    for name, lines in messages.items():
        _fill(file.message_type.add(name=name), lines, file, f".{package}.{name}")
    stamp = FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(stamp)
    file.dependency.append(stamp.name)
    files = FileDescriptorSet(file=[file, stamp])  # the importing one first, as no reader may rely on
    given = {
        "fileDescriptorSet": base64.b64encode(files.SerializeToString()).decode(),
        "rootMessageTypeName": f"{package}.{next(iter(messages))}",
        "rootFileDescriptorName": file.name,
    }
    return json.dumps(given).encode()


def _fill(message: DescriptorProto, lines: Sequence[str], file: FileDescriptorProto, full_name: str) -> None:
    for line in lines:
        found = _LINE.fullmatch(line)
        assert found is not None, line
        label, group, key, value, kind, name, number = found.groups()
        field = message.field.add(
            name=name, number=int(number), label=_LABELS.get(label, FieldDescriptorProto.LABEL_OPTIONAL)
        )
        if key:
            entry = message.nested_type.add(name=f"{name.title()}Entry")
            entry.options.map_entry = True
            for place, (part, of) in enumerate((("key", key), ("value", value)), 1):
                _set_type(entry.field.add(name=part, number=place, label=FieldDescriptorProto.LABEL_OPTIONAL), of, file)
            field.label, field.type = FieldDescriptorProto.LABEL_REPEATED, FieldDescriptorProto.TYPE_MESSAGE
            field.type_name = f"{full_name}.{entry.name}"
            continue
        _set_type(field, kind, file)
        if group:
            known = [one.name for one in message.oneof_decl]
            if group not in known:
                message.oneof_decl.add(name=group)
            field.oneof_index = known.index(group) if group in known else len(known)
    for field in message.field:  # behind the oneofs that are there on purpose
        if file.syntax == "proto3" and f"optional {_named(field)}" in map(_without_type, lines):
            field.proto3_optional, field.oneof_index = True, len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")


def _named(field: FieldDescriptorProto) -> str:
    return f"{field.name} = {field.number}"


def _without_type(line: str) -> str:
    return re.sub(r"^(\w+) [\w.]+ ", r"\1 ", line)


def _set_type(field: FieldDescriptorProto, kind: str, file: FileDescriptorProto) -> None:
    if f"TYPE_{kind.upper()}" in FieldDescriptorProto.Type.keys():  # noqa: SIM118  an enum of protobuf is no dict
        field.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
        if kind == "group":  # its message has its name
            field.type_name = f".{file.package}.{kind}"
        return
    is_enum = kind in [enum.name for enum in file.enum_type]
    field.type = FieldDescriptorProto.TYPE_ENUM if is_enum else FieldDescriptorProto.TYPE_MESSAGE
    field.type_name = f".{kind}" if "." in kind else f".{file.package}.{kind}"
