"""A digest of rows in their order, the same however they were cut into frames, compressed and padded.

Each column goes into a hash of its own, its bytes and their lengths apart. Both sides of a comparison come off the
wire's form, so that equal digests mean what a reader would call equal messages: key, ordering key, event time,
properties, value, and when they are delivered.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eos.pulsar.wire.batch import Chunk
from eos.pulsar.wire.compression import TYPES
from eos.pulsar.wire.decoding import Column, decode
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata

_BYTES: tuple[Column, ...] = ("value", "key", "ordering_key")
_COLUMNS: tuple[Column, ...] = (*_BYTES, "event_time", "properties")
_NONE = b"[]\n"  # of a row without properties


class RowDigest:
    """Takes rows in, some at a time.

    Attributes:
        rows: how many it has taken.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._hashes = {column: (sha256(), sha256()) for column in _COLUMNS}
        self._delivered = sha256()

    def take(self, entries: Sequence[Entry]) -> None:
        """Take the rows of entries. Raises what `decode` does."""
        rows = decode(entries, _COLUMNS)
        self.rows += rows.num_rows
        for column in _BYTES:
            lengths, data = self._hashes[column]
            values = rows.column(column)
            lengths.update(_numbers(pc.binary_length(values)))
            data.update(_joined(values))
        for entry in entries:
            when = entry.metadata.deliver_at_time if entry.metadata.HasField("deliver_at_time") else -1
            self._delivered.update(np.full(entry.num_messages, when, dtype=np.int64).tobytes())
        times, _ = self._hashes["event_time"]
        times.update(_numbers(rows.column("event_time")))
        properties, _ = self._hashes["properties"]
        column_of = rows.column("properties")
        if len(column_of.keys):
            for row in column_of.to_pylist():
                properties.update(json.dumps(row or []).encode() + b"\n")
        else:
            properties.update(_NONE * rows.num_rows)

    def take_chunk(self, chunk: Chunk) -> None:
        """Take rows that could be sent, as a reader would see them."""
        metadata = MessageMetadata(num_messages_in_batch=chunk.messages, compression=TYPES[chunk.compression])
        metadata.uncompressed_size = chunk.uncompressed_size
        if chunk.deliver_at_ms is not None:
            metadata.deliver_at_time = chunk.deliver_at_ms
        self.take([Entry(EntryId(0, 0), metadata, chunk.payload, len(chunk.payload))])

    @property
    def text(self) -> str:
        """The digest of all rows that were taken."""
        whole = sha256(self._delivered.digest())
        for pair in self._hashes.values():
            for part in pair:
                whole.update(part.digest())
        return whole.hexdigest()


def _numbers(column: pa.Array) -> bytes:
    """Return a column of numbers as bytes, -1 for a null."""
    return bytes(np.asarray(pc.fill_null(column.cast(pa.int64()), -1)).tobytes())


def _joined(column: pa.Array) -> bytes:
    """Return the bytes of a column's values one behind the other."""
    filled = pc.fill_null(column, b"")
    lists = pa.ListArray.from_arrays(pa.array([0, len(filled)], pa.int32()), filled)
    return bytes(pc.binary_join(lists, b"")[0].as_py())
