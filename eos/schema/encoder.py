"""Encodes whole columns of values by a schema, as `eos.schema.decoder` decodes them."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from eos.errors import InvalidInput
from eos.schema.avro_encoder import AvroEncoder
from eos.schema.description import Description, Primitive, Record
from eos.schema.primitives import encode_primitive
from eos.schema.protobuf_values import ProtobufEncoder


class Encoder(Protocol):
    """Encodes the values of one schema."""

    def encode(self, values: pa.Array) -> pa.Array:
        """Return the bytes of each value, as large_binary; a null stays null. Raises Unencodable."""
        ...


class _PrimitiveEncoder:
    def __init__(self, kind: str) -> None:
        self._kind = kind

    def encode(self, values: pa.Array) -> pa.Array:
        return encode_primitive(self._kind, values)


def encoder_of(description: Description) -> Encoder:
    """Return what writes the values that a schema describes. Raises InvalidInput where nothing here does."""
    if isinstance(description, Primitive):
        return _PrimitiveEncoder(description.kind)
    if isinstance(description, Record) and description.format == "AVRO":
        return AvroEncoder(description)
    if isinstance(description, Record) and description.format == "PROTOBUF_NATIVE":
        return ProtobufEncoder(description)
    raise InvalidInput(f"values of the schema {description} are not written here")
