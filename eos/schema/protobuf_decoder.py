"""Protobuf values, read by Google's library as they lie in their bytes (`raw_descriptor`), and then by the schemas.

A field is known by its number. The version that it was written with says what it means: whether a missing field is null
or 0, and which name a number of an enum has. The names of an enum are taken over, so two versions may number them
differently. Which types go together is in `eos.schema.conversions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, EnumDescriptor, EnumValueDescriptor, FieldDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from eos.errors import InvalidInput
from eos.pulsar.wire.spans import Payloads, as_column
from eos.schema import vector_columns
from eos.schema.avro_text import below
from eos.schema.conversions import check_leaf, text
from eos.schema.description import Record
from eos.schema.errors import Undecodable, Wrong
from eos.schema.garbage import no_collection
from eos.schema.protobuf_schema import (
    FIRST_SECOND,
    LAST_SECOND,
    TIMESTAMP,
    entry_of,
    is_repeated,
    is_required,
    leaf_node,
    message_descriptor,
    raw_descriptor,
)
from eos.schema.protobuf_vector_decoder import FEWEST, vector_message
from eos.schema.vector_columns import Unsure, VectorColumn

_MICROS = 1_000_000
_NANOS = 1_000_000_000
_CODED_ALIKE = (
    (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64),
    (FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_UINT64),
    (FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SINT64),
)
"""Types whose numbers lie in the same bytes."""

_RANGES = {"int": (-(2**31), 2**31), "uint32": (0, 2**32)}

_UNREADABLE = (DecodeError, UnicodeDecodeError, RecursionError)
"""What Google's library raises for bytes that are none of a message: in Python alone it has more errors than in C."""

_Read = Callable[[Any], Any]


class ProtobufDecoder:
    """Decodes values, those of older and newer versions too."""

    def __init__(self, writer: Record, reader: Record, target: pa.DataType) -> None:
        """Args: the schema of the messages; that of the query; the Arrow type of the values.

        Raises InvalidInput where a number does not mean the same in both.
        """
        theirs = message_descriptor(writer.text, "the schema of the messages")
        ours = message_descriptor(reader.text, "the schema of the query")
        _check_numbers(theirs, ours, "")
        self._message = GetMessageClass(raw_descriptor(reader.text, "the schema of the query"))
        self._strict = GetMessageClass(ours)
        self._read = _reading(theirs, ours, "")
        self._theirs, self._ours, self._target = theirs, ours, target

    def decode(self, values: pa.Array | Payloads) -> pa.Array:
        """Return the values. Args: the bytes, with nulls. Raises Undecodable."""
        if len(values) >= FEWEST:
            try:
                return vector_columns.decode(values, self.vector_column())
            except Unsure:
                pass  # each value is looked at: that says what is wrong, or that all is well
        return self.one_by_one(as_column(values))

    def vector_column(self) -> VectorColumn:
        """Return an empty column that reads values by numpy."""
        return vector_message(self._theirs, self._ours, self._target, _names_of)

    def one_by_one(self, values: pa.Array) -> pa.Array:
        """Return the values, as `decode` does; without numpy."""
        with no_collection():
            return pa.array(self._rows(values), self._target)

    def _rows(self, values: pa.Array) -> list[Any]:
        rows: list[Any] = []
        for row, value in enumerate(values.to_pylist()):
            try:
                rows.append(None if value is None else self._read(self._message.FromString(value)))
                self._check_replaced_texts(row, value)
            except _UNREADABLE as error:
                raise Undecodable(row, "", f"it can't be read as protobuf: {error}") from error
            except Wrong as wrong:
                raise Undecodable(row, wrong.path, wrong.why) from wrong
        return rows

    def _check_replaced_texts(self, row: int, value: bytes | None) -> None:
        """Raise Undecodable where a text does not last, and is none: what was read shows the last of a field alone.

        Official clients refuse such a value: proto3 wants each text to be UTF-8, as it is parsed.
        """
        try:
            if value is not None:
                self._strict.FromString(value)
        except _UNREADABLE as error:
            why = "it can't be read as protobuf: a text that another replaces in the same message is not valid UTF-8"
            raise Undecodable(row, "", why) from error


def _reading(theirs: Descriptor | None, ours: Descriptor, path: str) -> _Read:
    """Return what makes a row of a message. Args: it as it was written, None where it is new; as it is read."""
    known = {} if theirs is None else theirs.fields_by_number
    fields = [
        (field.name, _reading_field(known.get(field.number), field, below(path, field.name))) for field in ours.fields
    ]
    numbers = ours.fields_by_number

    def read(message: Any) -> dict[str, Any]:
        unknown = UnknownFieldSet(message)
        for place in range(len(unknown)):
            if (number := unknown[place].field_number) in numbers:
                wire_type = unknown[place].wire_type
                raise Wrong(
                    below(path, numbers[number].name),
                    f"it lies there with the wire type {wire_type}, which is not its type's",
                )
        return {name: one(message) for name, one in fields}

    return read


def _reading_field(theirs: FieldDescriptor | None, ours: FieldDescriptor, path: str) -> _Read:
    name = ours.name
    if entry := entry_of(ours):
        before = theirs and entry_of(theirs)
        value = _reading_one(before["value"] if before else None, entry["value"], f"{path}[]")
        return lambda message: list(dict(_pair(pair, value, f"{path}[]") for pair in getattr(message, name)).items())
    one = _reading_one(theirs, ours, path)
    if is_repeated(ours):
        return lambda message: [one(item) for item in getattr(message, name)]
    absent = _absent(theirs, ours, path, one)
    return lambda message: one(getattr(message, name)) if message.HasField(name) else absent(message)


def _pair(pair: Any, value: _Read, path: str) -> tuple[str, Any]:
    if len(UnknownFieldSet(pair)):
        raise Wrong(path, "a pair of a map with more than a key and a value, or with others than its types")
    return text(pair.key, path), value(pair.value)


def _absent(theirs: FieldDescriptor | None, ours: FieldDescriptor, path: str, one: _Read) -> _Read:
    """Return what a field is that a message does not have."""
    name = ours.name
    if not (ours if theirs is None else theirs).has_presence:
        return lambda message: one(getattr(message, name))  # as its bytes say it is 0, false or nothing
    if ours.has_presence and not is_required(ours):
        return lambda message: None

    def refused(message: Any) -> None:
        raise Wrong(path, "it is missing, and the schema of the query has no null for it")

    return refused


def _reading_one(theirs: FieldDescriptor | None, ours: FieldDescriptor, path: str) -> _Read:
    if ours.message_type is not None:
        if ours.message_type.full_name == TIMESTAMP:
            return lambda moment: _moment(moment.seconds, moment.nanos, path)
        return _reading(None if theirs is None else theirs.message_type, ours.message_type, path)
    if ours.enum_type is not None:
        return _reading_enum(None if theirs is None else theirs.enum_type, ours.enum_type, path)
    kind = leaf_node(ours).kind
    if kind == "string":
        return lambda value: text(value, path)
    if kind == "boolean":
        return lambda number: _boolean(number, path)
    if kind in _RANGES:
        least, end = _RANGES[kind]
        return lambda number: number if least <= number < end else _beyond(number, kind, path)
    return Decimal if kind == "uint64" else lambda value: value


def _moment(seconds: int, nanos: int, path: str) -> int:
    if not FIRST_SECOND <= seconds <= LAST_SECOND or not 0 <= nanos < _NANOS:
        raise Wrong(path, f"{seconds} seconds and {nanos} nanoseconds, which is not a moment of the years 1 to 9999")
    return seconds * _MICROS + nanos // 1000


def _boolean(number: int, path: str) -> bool:
    if number > 1:
        raise Wrong(path, f"{number}, where a boolean is 0 or 1")
    return number == 1


def _beyond(number: int, kind: str, path: str) -> None:
    raise Wrong(path, f"{number}, which is beyond {kind}")


def _names(values: Sequence[EnumValueDescriptor]) -> dict[int, str]:
    """Return the name of each number; of several the first one, as protobuf has it."""
    return {value.number: value.name for value in reversed(values)}


def _names_of(theirs: EnumDescriptor | None, ours: EnumDescriptor) -> dict[int, str]:
    """Return the name of each number of an enum: as it was written, None where it is new, and as it is read."""
    names: dict[int, str] = {}
    for enum in filter(None, (ours, theirs)):  # as it was written counts more
        names |= _names(enum.values)
    if theirs is not None:  # of several names of one number one that the query has
        names |= _names([value for value in theirs.values if value.name in ours.values_by_name])
    return names


def _reading_enum(theirs: EnumDescriptor | None, ours: EnumDescriptor, path: str) -> _Read:
    symbols = set(ours.values_by_name)
    names = _names_of(theirs, ours)

    def read(number: int) -> str:
        name = names.get(number)
        if name is None:
            raise Wrong(path, f"{number} is none of its enum's numbers, {sorted(names)}")
        if name not in symbols:
            raise Wrong(path, f"{name!r}, which is none of the names that the query's enum has, {sorted(symbols)}")
        return name

    return read


def _check_numbers(writer: Descriptor, reader: Descriptor, path: str) -> None:
    """Raise InvalidInput for a number that has another type, or another name, in two versions of a message."""
    for number, theirs in writer.fields_by_number.items():
        ours = reader.fields_by_number.get(number)
        at = below(path, theirs.name)
        if ours is None:
            if theirs.name in reader.fields_by_name:
                moved = reader.fields_by_name[theirs.name].number
                raise InvalidInput(f"field {at!r} was written with the number {number}, and is read with {moved}")
            continue
        alike = ours.type == theirs.type or any({ours.type, theirs.type} == set(pair) for pair in _CODED_ALIKE)
        if not alike or (ours.name, is_repeated(ours)) != (theirs.name, is_repeated(theirs)):
            raise InvalidInput(
                f"field {at!r} was written with the number {number}, which is field {below(path, ours.name)!r} of "
                "another name or type for the query"
            )
        if ours.message_type is not None and theirs.message_type is not None:
            _check_numbers(theirs.message_type, ours.message_type, at)
        else:
            check_leaf("PROTOBUF_NATIVE", leaf_node(theirs), leaf_node(ours), at)
