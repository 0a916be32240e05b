"""Decodes whole columns of values by a schema."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eos.errors import InvalidInput
from eos.pulsar.wire.fields import Bytes, Flags, Places
from eos.pulsar.wire.spans import Payloads, as_column, column_bytes, spans
from eos.schema.avro_values import AvroDecoder
from eos.schema.description import Description, Pair, Primitive, Record
from eos.schema.errors import Undecodable
from eos.schema.json_values import JsonDecoder
from eos.schema.primitives import decode_primitive
from eos.schema.protobuf_decoder import ProtobufDecoder


class Values(Protocol):
    """Decodes the values of one kind."""

    def decode(self, values: pa.Array | Payloads) -> pa.Array:
        """Return the values. Args: the bytes, with nulls. Raises Undecodable."""
        ...


class Decoder:
    """Decodes what was written with one schema as another one has it."""

    def __init__(self, writer: Description, reader: Description, target: pa.DataType) -> None:
        """Args: the schema of the messages; that of the query; the Arrow type of the values.

        Raises InvalidInput when the two do not go together.
        """
        self._pair = reader if isinstance(reader, Pair) else None
        if isinstance(reader, Pair):
            if not isinstance(writer, Pair) or writer.separated != reader.separated:
                raise _differ(writer, reader)
            self._target = target
            self._key = _single(writer.key, reader.key, target.field("key").type)
            self._value = _single(writer.value, reader.value, target.field("value").type)
        else:
            self._value = _single(writer, reader, target)

    def decode(self, values: pa.Array | Payloads, keys: pa.Array | None = None) -> pa.Array:
        """Return the decoded values; a null stays null.

        Args: the payloads; the messages' keys, where the schema is a separated key-value one.

        Raises Undecodable.
        """
        if self._pair is None:
            return self._value.decode(values)
        values = as_column(values)
        if self._pair.separated:
            assert keys is not None
            missing = pc.and_(keys.is_null(), values.is_null())
        else:
            missing = values.is_null()
            keys, values = _split(values)
        parts = []
        for name, decoder, column in (("key", self._key, keys), ("value", self._value, values)):
            try:
                parts.append(decoder.decode(column))
            except Undecodable as wrong:
                raise Undecodable(wrong.row, f"{name}.{wrong.field}".rstrip("."), wrong.why) from wrong
        return pa.StructArray.from_arrays(parts, fields=list(self._target), mask=missing)


class _PrimitiveDecoder:
    def __init__(self, kind: str, target: pa.DataType) -> None:
        self._kind = kind
        self._target = target

    def decode(self, values: pa.Array | Payloads) -> pa.Array:
        return decode_primitive(self._kind, as_column(values)).cast(self._target)


def _single(writer: Description, reader: Description, target: pa.DataType) -> Values:
    if isinstance(reader, Primitive) and reader == writer:
        return _PrimitiveDecoder(reader.kind, target)
    if isinstance(reader, Record) and isinstance(writer, Record) and writer.format == reader.format:
        if reader.format == "JSON":
            return JsonDecoder(writer.node, reader.node, target)
        if reader.format == "PROTOBUF_NATIVE":
            return ProtobufDecoder(writer, reader, target)
        return AvroDecoder(writer, reader, target)
    raise _differ(writer, reader)


def _differ(writer: Description, reader: Description) -> InvalidInput:
    return InvalidInput(f"messages were written with the schema {writer}, and the query reads them by {reader}")


def _split(payloads: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the keys and the values of payloads with both: each comes after its size as four bytes, -1 for null."""
    valid = payloads.is_valid().to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(valid)
    data = np.frombuffer(column_bytes(payloads.drop_null()), dtype=np.uint8)
    sizes = pc.binary_length(payloads.drop_null()).to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.cumsum(sizes)
    keys, at = _sized(data, ends - sizes, ends, rows)
    values, at = _sized(data, at, ends, rows)
    if (wrong := at != ends).any():
        row = int(np.flatnonzero(wrong)[0])
        raise Undecodable(int(rows[row]), "", f"{int(ends[row] - at[row])} bytes are left behind the value")
    back = pa.array(np.cumsum(valid) - 1, mask=~valid)
    return keys.take(back), values.take(back)


def _sized(data: Bytes, at: Places, ends: Places, rows: Places) -> tuple[pa.Array, Places]:
    """Return the parts that begin with their sizes at these places, and the places after them."""
    if (short := at + 4 > ends).any():
        raise _ends_early(short, rows)
    four = data[at[:, None] + np.arange(4)]
    sizes = np.ascontiguousarray(four).view(">i4").ravel().astype(np.int64)
    lengths = np.maximum(sizes, 0)
    if (short := at + 4 + lengths > ends).any():
        raise _ends_early(short, rows)
    return spans(data, at + 4, lengths, sizes < 0), at + 4 + lengths


def _ends_early(short: Flags, rows: Places) -> Undecodable:
    return Undecodable(int(rows[np.flatnonzero(short)[0]]), "", "it ends within its key or its value")
