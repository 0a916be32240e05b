"""Protobuf values, written by Google's library: each becomes a message of the class that the topic's descriptors make.

Columns become Python's lists and messages of them; what is checked is checked by the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from eos.errors import InvalidInput
from eos.pulsar.wire.keys import is_text, shown
from eos.schema.avro_text import below
from eos.schema.description import Record
from eos.schema.errors import Wrong, naming_the_row
from eos.schema.map_keys import refuse_twice
from eos.schema.protobuf_schema import (
    FIRST_SECOND,
    LAST_SECOND,
    TIMESTAMP,
    entry_of,
    is_repeated,
    is_required,
    message_descriptor,
)

_MICROS = 1_000_000
_UINT32 = (FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_FIXED32)
_UINT64 = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)


class ProtobufEncoder:
    """Writes values by a protobuf schema; the columns have been found to fit it (`eos.schema.fit`)."""

    def __init__(self, record: Record) -> None:
        """Args: the schema. Raises InvalidInput for a field that the library can't set on this machine."""
        self._of = message_descriptor(record.text, "the schema")
        self._message = GetMessageClass(self._of)
        _refuse_self(self._of, "")

    def encode(self, values: pa.Array) -> pa.Array:
        """Return the bytes of each value; a null stays null. Raises Unencodable."""
        return naming_the_row(self._encoded, values)

    def _encoded(self, values: pa.Array) -> pa.Array:
        message = self._message
        rows = _messages(self._of, values.drop_null(), "")
        # Maps in the order of their keys: so a row that is tried again has the same bytes.
        written = (message(**row).SerializeToString(deterministic=True) for row in rows)
        return pa.array(_spread(written, values), pa.large_binary())


def _refuse_self(descriptor: Descriptor, path: str) -> None:
    """Raise InvalidInput for a field `self` where the library runs in Python alone: no constructor takes it there."""
    for field in descriptor.fields:
        at = below(path, field.name)
        if field.name == "self":
            try:
                GetMessageClass(descriptor)(**{"self": None})
            except TypeError as error:
                raise InvalidInput(
                    f"Field {at!r} can't be written on this machine. The package protobuf runs without its C library, "
                    "and has no way to set a field of the name self then. Install a wheel of protobuf that has the C "
                    "library, or unset PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION."
                ) from error
        of = entry["value"].message_type if (entry := entry_of(field)) else field.message_type
        if of is not None:
            _refuse_self(of, at)


def _spread(found: Iterable[Any], column: pa.Array) -> Iterable[Any]:
    """Return the values in the places of those of a column that are not null, and None in the others."""
    if not column.null_count:
        return found
    each = iter(found)
    return (next(each) if there else None for there in column.is_valid().to_pylist())


def _messages(descriptor: Descriptor, column: pa.Array, path: str) -> list[dict[str, Any]]:
    """Return the fields of each struct of a column without nulls, as the constructor of the message takes them."""
    names = [field.name for field in descriptor.fields if column.type.get_field_index(field.name) >= 0]
    columns = {name: column.field(column.type.get_field_index(name)) for name in names}
    for group in descriptor.oneofs:
        _refuse_two(column, [columns[field.name] for field in group.fields if field.name in columns], group, path)
    parts = [_field(descriptor.fields_by_name[name], columns[name], below(path, name)) for name in names]
    if not parts:
        return [{}] * len(column)
    return [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)]


def _refuse_two(column: pa.Array, members: list[pa.Array], group: Any, path: str) -> None:
    given = np.zeros(len(column), dtype=np.int64)
    for member in members:
        given += np.asarray(member.is_valid())
    if given.max(initial=0) > 1:
        names = ", ".join(field.name for field in group.fields)
        raise Wrong(below(path, group.name), f"one of {names} may be set, and there are more")


def _field(field: FieldDescriptor, column: pa.Array, path: str) -> Iterable[Any]:
    if column.null_count and (is_required(field) or not field.has_presence):
        raise Wrong(path, "it is null, and a field without presence has no null")
    if entry := entry_of(field):
        keys, items = _inner(column, column.keys), _inner(column, column.items)
        found = _items(entry["value"], items, f"{path}[]")
        if (enum := entry["value"].enum_type) is not None:  # in Python alone the library takes no names in a map
            found = (enum.values_by_name[name].number for name in found)
        if (of := entry["value"].message_type) is not None:  # protobuf 5 takes no dict for a message in a map
            message = GetMessageClass(of)
            found = (message(**fields) for fields in found)
        pairs = zip(_texts(keys, f"{path}[]"), found, strict=True)
        refuse_twice(keys, np.diff(np.asarray(column.offsets)).astype(np.int64), path)
        return (dict(part) for part in _cut(list(pairs), column))
    if is_repeated(field):
        return _cut(list(_items(field, _inner(column, column.values), f"{path}[]")), column)
    return _spread(_values(field, column.drop_null(), path), column)


def _inner(column: pa.Array, inner: pa.Array) -> pa.Array:
    """Return the items of a column of lists or maps, those of all its rows and no others."""
    offsets = column.offsets
    first = offsets[0].as_py()
    return inner.slice(first, offsets[-1].as_py() - first)


def _cut(items: list[Any], column: pa.Array) -> Iterator[list[Any]]:
    """Yield the items of each row."""
    ends = np.asarray(column.offsets) - column.offsets[0].as_py()
    return (items[start:end] for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))


def _items(field: FieldDescriptor, column: pa.Array, path: str) -> Iterable[Any]:
    if column.null_count:
        raise Wrong(path, "it is null, and an item of protobuf has no null")
    return _values(field, column, path)


def _values(field: FieldDescriptor, column: pa.Array, path: str) -> Iterable[Any]:
    """Return what a field holds, as the constructor of its message takes it. Args: its column, without nulls."""
    if field.message_type is not None:
        if field.message_type.full_name != TIMESTAMP:
            return _messages(field.message_type, column, path)
        micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_numpy()
        if ((micros < FIRST_SECOND * _MICROS) | (micros > LAST_SECOND * _MICROS + _MICROS - 1)).any():
            raise Wrong(path, "it is before the year 1 or after 9999, where google.protobuf.Timestamp has no moments")
        parts = zip((micros // _MICROS).tolist(), (micros % _MICROS * 1000).tolist(), strict=True)
        return ({"seconds": seconds, "nanos": nanos} for seconds, nanos in parts)
    if field.type == FieldDescriptor.TYPE_STRING:
        return _texts(column, path)
    if field.enum_type is not None:
        known = pc.is_in(column, pa.array(list(field.enum_type.values_by_name), column.type))
        if known.false_count:
            wrong = shown(column, known.index(False).as_py())
            raise Wrong(path, f"'{wrong}' is none of {', '.join(field.enum_type.values_by_name)}")
    if field.type in (*_UINT32, *_UINT64):
        kind = pa.uint32() if field.type in _UINT32 else pa.uint64()
        try:
            column = column.cast(kind)
        except pa.ArrowInvalid as error:
            raise Wrong(path, f"it is no {kind}: {error}") from error
    found: Iterable[Any] = column.to_pylist()
    return found


def _texts(column: pa.Array, path: str) -> Iterable[str]:
    if not is_text(column.cast(pa.large_binary())):
        raise Wrong(path, "it is not valid UTF-8")
    found: Iterable[str] = column.to_pylist()
    return found
