"""Encodes whole columns of values by a schema, as `eos.schema.decoder` decodes them."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eos.errors import InvalidInput
from eos.pulsar.wire.varint import binary_array
from eos.schema.avro_encoder import AvroEncoder
from eos.schema.description import Description, Pair, Primitive, Record
from eos.schema.errors import Unencodable
from eos.schema.primitives import encode_primitive
from eos.schema.protobuf_values import ProtobufEncoder


class Encoder(Protocol):
    """Encodes the payloads of one schema."""

    def encode(self, values: pa.Array) -> pa.Array:
        """Return the bytes of each value, as large_binary; a null stays null. Raises Unencodable."""
        ...


class _PrimitiveEncoder:
    def __init__(self, kind: str) -> None:
        self._kind = kind

    def encode(self, values: pa.Array) -> pa.Array:
        return encode_primitive(self._kind, values)


class PairEncoder:
    """Encodes key-value pairs: structs of `key` and `value`.

    Attributes:
        separated: whether the payload is the value alone, and the message's key is the pair's.
    """

    def __init__(self, pair: Pair) -> None:
        """Args: the schema. Raises InvalidInput where nothing here writes one of the two."""
        self.separated = pair.separated
        self._parts = {"key": encoder_of(pair.key), "value": encoder_of(pair.value)}

    def encode(self, values: pa.Array) -> pa.Array:
        """Return the bytes of each payload, as large_binary; a null pair is null. Raises Unencodable."""
        value = self._part("value", values)
        if self.separated:
            return value
        both = pc.binary_join_element_wise(*map(_sized, (self._part("key", values), value)), pa.scalar(b"", value.type))
        return pc.if_else(values.is_valid(), both, pa.scalar(None, value.type))

    def keys(self, values: pa.Array) -> pa.Array:
        """Return the bytes of each pair's key, as large_binary. Raises Unencodable."""
        return self._part("key", values)

    def _part(self, name: str, values: pa.Array) -> pa.Array:
        try:
            return self._parts[name].encode(pc.struct_field(values, name))
        except Unencodable as wrong:
            raise Unencodable(wrong.row, f"{name}.{wrong.field}".rstrip("."), wrong.why) from wrong


def _sized(part: pa.Array) -> pa.Array:
    """Return each part after its size as four bytes, most significant first. -1 stands for null."""
    sizes = pc.fill_null(pc.binary_length(part), -1).to_numpy().astype(">i4")
    four = binary_array(sizes.view(np.uint8), 4 * np.arange(len(part) + 1), part.type)
    empty = pa.scalar(b"", part.type)
    return pc.binary_join_element_wise(four, part.fill_null(empty), empty)


def encoder_of(description: Description) -> Encoder:
    """Return what writes the values that a schema describes. Raises InvalidInput where nothing here does."""
    if isinstance(description, Primitive):
        return _PrimitiveEncoder(description.kind)
    if isinstance(description, Record) and description.format == "AVRO":
        return AvroEncoder(description)
    if isinstance(description, Record) and description.format == "PROTOBUF_NATIVE":
        return ProtobufEncoder(description)
    if isinstance(description, Pair):
        return PairEncoder(description)
    raise InvalidInput(f"values of the schema {description} are not written here")
