"""The index object of an offloaded ledger, as Pulsar's jcloud offloader writes it: where its blocks begin. Pure.

    0xDE47DE47  length of the index:u32  length of the data object:i64  length of a block's header:i64
    blocks:u32  length of the metadata:u32  LedgerMetadataFormat
    for each block: (first entry:i64  part:u32  offset:i64)

Source: Pulsar's OffloadIndexBlockImpl. The index of the streaming offloader, which no broker uses, has another form.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise

from google.protobuf.message import DecodeError

from eos.bookkeeper.wire.bookkeeper_pb2 import LedgerMetadataFormat
from eos.history.offload import OffloadDamaged, OffloadUnknown

MAGIC, STREAMING_MAGIC = 0xDE47DE47, 0x3D1FB0BC
_HEAD = struct.Struct(">IIqqII")
_PLACE = struct.Struct(">qIq")


@dataclass(frozen=True, slots=True)
class OffloadBlock:
    """A block of the data object.

    Attributes:
        first, last: the entries that it holds.
        offset: of its header in the data object.
        length: bytes, with header and padding.
    """

    first: int
    last: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class BlockIndex:
    """The content of an index object.

    Attributes:
        last_entry: the last entry of the ledger.
        data_bytes: length of the data object.
        blocks: in order. Together they hold each entry and each byte once.
    """

    last_entry: int
    data_bytes: int
    blocks: tuple[OffloadBlock, ...]


def parse_index(data: bytes, path: str) -> BlockIndex:
    """Return what an index object says. Args: its bytes; its name, for errors.

    Raises OffloadDamaged, and OffloadUnknown.
    """
    if len(data) < _HEAD.size:
        raise OffloadDamaged(f"the index {path} has only {len(data)} bytes")
    magic, length, data_bytes, header_bytes, count, metadata_bytes = _HEAD.unpack_from(data)
    if magic == STREAMING_MAGIC:
        raise OffloadUnknown(f"the index {path} was written by the streaming offloader, which is not supported")
    if magic != MAGIC:
        raise OffloadDamaged(f"the index {path} begins with {magic:#010x} in place of {MAGIC:#010x}")
    places_at = _HEAD.size + metadata_bytes
    if length != len(data) or places_at + count * _PLACE.size != length or not count:
        raise OffloadDamaged(f"the index {path} has {len(data)} bytes, which {count} blocks and its head do not make")
    try:
        metadata = LedgerMetadataFormat.FromString(data[_HEAD.size : places_at])
    except DecodeError as error:
        raise OffloadDamaged(f"the index {path} has damaged ledger metadata ({error})") from error
    places = [(first, offset) for first, _, offset in _PLACE.iter_unpack(data[places_at:])]
    ends = [*places, (metadata.lastEntryId + 1, data_bytes)]
    blocks = tuple(
        OffloadBlock(first, behind - 1, offset, end - offset) for (first, offset), (behind, end) in pairwise(ends)
    )
    if places[0] != (0, 0) or any(one.last < one.first or one.length <= header_bytes for one in blocks):
        raise OffloadDamaged(f"the blocks of the index {path} are out of order. Entry and offset are {ends}")
    return BlockIndex(metadata.lastEntryId, data_bytes, blocks)
