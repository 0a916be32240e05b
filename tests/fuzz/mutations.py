"""Random damage: to bytes, and to each number that a reader trusts."""

from __future__ import annotations

from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError

from eos.pulsar.wire.pulsar_pb2 import MessageMetadata
from eos.schema.protobuf_schema import is_repeated

_NUMBERS = (0, 1, 2, 5, 127, 128, 2**16, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1)
_TOKENS = (
    b"\0", b"\1", b"\xff", b"\x7f", b"\x80", b"\0" * 8, b"\xff" * 10, b"\xff" * 9 + b"\x01", b"\x80" * 12 + b"\0",
    b"\0\0\0\x02\x18\0", b"\0\0\0\x02\x18\1", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xc3",
    b"{", b"]", b'"', b"null", b"1e999", b"1e-99999999999999999999", b"-9223372036854775809", b"\x0a\x00", b"\x08\x09",
)  # fmt: skip
_FIELDS: list[Any] = list(MessageMetadata.DESCRIPTOR.fields)
_RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


def mutated(data: bytes, random: Random, others: list[bytes]) -> bytes:
    """Return bytes with some damage. Args: the bytes; chance; bytes of others, to be mixed in."""
    out = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        at = random.randrange(len(out) + 1)
        match random.randrange(7):
            case 0 if out:
                out[at % len(out)] ^= 1 << random.randrange(8)
            case 1 if out:
                out[at % len(out)] = random.randrange(256)
            case 2:
                out[at:at] = random.choice(_TOKENS) * random.choice((1, 1, 1, 50))
            case 3:
                token = random.choice(_TOKENS)
                out[at : at + len(token)] = token
            case 4:
                del out[at : at + random.choice((1, 1, 2, 4, 100))]
            case 5:
                del out[at:]
            case 6:
                other = random.choice(others)
                start = random.randrange(len(other) + 1)
                out[at : at + random.randrange(20)] = other[start : start + random.randrange(40)]
    return bytes(out)


def with_other_metadata(metadata: MessageMetadata, random: Random) -> MessageMetadata:
    """Return metadata with another value, or other bytes, in one field or some."""
    if random.randrange(4) == 0:
        try:
            return MessageMetadata.FromString(mutated(metadata.SerializeToString(), random, [b"\x58\x01\x40\x03"]))
        except DecodeError:
            pass  # a frame with such metadata is refused: that is tried with whole frames
    changed = MessageMetadata()
    changed.CopyFrom(metadata)
    for _ in range(random.choice((1, 1, 2, 4))):
        one = random.choice(_FIELDS)
        if is_repeated(one) or random.randrange(6) == 0:
            changed.ClearField(one.name)
        elif one.cpp_type in _RANGES:
            least, most = _RANGES[one.cpp_type]
            number = random.choice(_NUMBERS) * random.choice((1, 1, -1))
            setattr(changed, one.name, min(max(number, least), most))
        elif one.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
            setattr(changed, one.name, random.randrange(5))
        elif one.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
            setattr(changed, one.name, random.randrange(2) == 1)
        elif one.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            text = "other" if one.type == FieldDescriptor.TYPE_STRING else random.randbytes(12)
            setattr(changed, one.name, text)
    return changed
