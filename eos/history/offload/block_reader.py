"""The data object of an offloaded ledger, as Pulsar's jcloud offloader writes it: entries in blocks.

    block  0xFBDBABCB  length of the header:u64 = 128  length of the block:u64  first entry:i64  zeros up to 128
           then  length:u32  entry:i64  bytes,  for each entry;  0xFEDCDEAD again and again up to the end

Source: Pulsar's DataBlockHeaderImpl and BlockAwareSegmentInputStreamImpl. An entry has no digest of BookKeeper's there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from eos.history.offload import OffloadDamaged
from eos.history.offload.block_index import BlockIndex, OffloadBlock
from eos.history.offload.stored_object import CHUNK_BYTES, StoredObject, Window

MAGIC, PADDING = 0xFBDBABCB, 0xFEDCDEAD
HEADER_BYTES = 128
_HEADER = struct.Struct(">Iqqq")
_ENTRY = struct.Struct(">Iq")


class BlockReader:
    """Reads the entries of one data object."""

    def __init__(self, source: StoredObject, index: BlockIndex, chunk_bytes: int = CHUNK_BYTES) -> None:
        """Args: the open data object; its index; bytes of a request.

        Raises OffloadDamaged where their lengths differ.
        """
        if source.size != index.data_bytes:
            raise OffloadDamaged(f"{source.path} has {source.size} bytes, but its index says {index.data_bytes}")
        self._source, self._index, self._chunk_bytes = source, index, chunk_bytes

    def read(self, first: int, last: int) -> Iterator[tuple[int, bytes, str]]:
        """Yield the entries `first` to `last` in order: number, bytes as the broker wrote them, and where they are.

        A block is read from its beginning: it says nowhere else where an entry begins.

        Raises OffloadDamaged, and what `StoredObject.read` raises.
        """
        if last > self._index.last_entry:
            raise OffloadDamaged(f"{self._source.path} ends with entry {self._index.last_entry}, before entry {last}")
        for block in self._index.blocks:
            if block.last >= first and block.first <= last:
                yield from self._block(block, first, last)

    def _block(self, block: OffloadBlock, first: int, last: int) -> Iterator[tuple[int, bytes, str]]:
        where = f"the block at byte {block.offset} of {self._source.path}"
        window = Window(self._source, block.offset, block.offset + block.length, self._chunk_bytes)
        head = _HEADER.unpack_from(window.take(HEADER_BYTES)) if block.length >= HEADER_BYTES else ()
        if head != (MAGIC, HEADER_BYTES, block.length, block.first):
            raise OffloadDamaged(f"{where} has another header than its index says")
        for expected in range(block.first, min(block.last, last) + 1):
            begin = window.peek(_ENTRY.size)
            size, number = _ENTRY.unpack(begin) if len(begin) == _ENTRY.size else (PADDING, -1)
            if size == PADDING:
                raise OffloadDamaged(f"{where} ends before entry {expected}")
            if number != expected:
                raise OffloadDamaged(f"{where} has entry {number} where entry {expected} belongs")
            if size > window.end - window.at - _ENTRY.size:
                raise OffloadDamaged(f"{where} has entry {number} of {size} bytes, which pass its end")
            stored = window.take(_ENTRY.size + size)
            if number >= first:
                # A copy: a view would keep the whole chunk in memory for as long as the entry waits.
                yield number, bytes(stored[_ENTRY.size :]), where
