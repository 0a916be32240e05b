"""Batches: many rows in one Pulsar entry, encoded column by column.

A batch entry's payload is, for each message: the size of its SingleMessageMetadata (u32,
big-endian), that metadata, the value's bytes. Protobuf lets a varint be padded with zero groups,
so the numbers in the metadata get the same width in every row of a chunk. Then the headers of all
rows are one numpy array, and the payload is one `binary_join_element_wise` of a few columns:

    header  key  [header  ordering key]  [properties]  value

No row ever becomes a Python object. A field that a row doesn't have must still fill its width:
`compacted_out = false`, the default, takes its place with a padded zero.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError

from eos.config import Compression, CompressionOption
from eos.errors import DamagedFrame, InvalidInput
from eos.pulsar.wire.checksum import Buffer
from eos.pulsar.wire.compression import decompress, shrunk
from eos.pulsar.wire.frames import DEFAULT_MAX_MESSAGE_SIZE
from eos.pulsar.wire.keys import StickyKey, WireKeys, as_bytes, lengths, sticky_key, wire_keys
from eos.pulsar.wire.properties import Properties
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata, SingleMessageMetadata
from eos.pulsar.wire.row_names import row_name
from eos.pulsar.wire.varint import Field, Numbers, header, width

DEFAULT_TARGET_BYTES = 1024 * 1024
"""Bytes of a chunk's payload before compression, unless one message alone is larger."""

FRAME_RESERVE = 4 * 1024
"""Bytes of the maximum message size that are kept for the frame's command and metadata."""

# Tags of SingleMessageMetadata: field number * 8 + wire type (0: varint, 2: bytes).
_PARTITION_KEY = 2 << 3 | 2
_PAYLOAD_SIZE = 3 << 3
_EVENT_TIME = 5 << 3
_KEY_B64_ENCODED = 6 << 3
_ORDERING_KEY = 7 << 3 | 2
_NULL_VALUE = 9 << 3

_SIZE = struct.Struct(">I")
_SIZE_BYTES = _SIZE.size


@dataclass(frozen=True, slots=True)
class Chunk:
    """The payload of one batch entry.

    Attributes:
        messages: how many messages it holds; at least 1.
        payload: its bytes, compressed.
        uncompressed_size: bytes before compression.
        rows_bytes: bytes of the rows' own data: values, keys, ordering keys and properties.
        compression: what `payload` is compressed with; "none" where compressing would have made it longer.
        sticky: the key that all its rows share; None where they needn't.
    """

    messages: int
    payload: Buffer
    uncompressed_size: int
    rows_bytes: int
    compression: Compression
    sticky: StickyKey | None = None


class BatchEncoder:
    """Encodes record batches as chunks that a broker accepts.

    A Key_Shared subscription hands out whole chunks. A chunk with rows of different keys names none, and the rows
    of one key don't stay on one consumer.

    Args:
        compression: of the chunks; "auto" decides for each of them. Default "none".
        max_message_size: bytes; the broker's limit, which it tells in CONNECTED. The whole entry (checksum,
            metadata and payload, before compression) stays below it.
        target_bytes: bytes of payload, before compression, at which a chunk is full. Default 1 MiB.
        keyed: the rows of each part share their sticky key, see `routing.part_by_sticky_key`, and chunks name it.
            Default False.
    """

    def __init__(
        self,
        compression: CompressionOption = "none",
        max_message_size: int = DEFAULT_MAX_MESSAGE_SIZE,
        target_bytes: int = DEFAULT_TARGET_BYTES,
        keyed: bool = False,
    ) -> None:
        self.compression, self.keyed = compression, keyed
        self.limit = max_message_size - FRAME_RESERVE
        if self.limit <= 0:
            raise InvalidInput(f"a maximum message size of {max_message_size} bytes leaves no room for a message")
        self.target_bytes = min(target_bytes, self.limit)

    def chunks(self, rows: pa.RecordBatch, first_row: int = 0) -> Iterator[Chunk]:
        """Yield the rows, in order, as chunks of about `target_bytes`.

        Columns: `value` (text or binary), and, each of them optional: `key` and `ordering_key` (text or
        binary), `event_time` (int64, ms since 1970), `properties` (map of text to text). All may hold
        nulls: a null value is a message without a value, a null elsewhere is a message without that field.

        Error messages number the rows from `first_row` on, or by the column `row` (any integer type) if there is one.

        Raises InvalidInput before it yields anything, naming the row: for a message that is larger
        than the limit, a negative event time, a property without a value; and for a column of another type.
        """
        for _, chunk in self.chunks_of_parts(rows, [rows.num_rows], first_row):
            yield chunk

    def chunks_of_parts(
        self, rows: pa.RecordBatch, ends: Sequence[int], first_row: int = 0
    ) -> Iterator[tuple[int, Chunk]]:
        """Yield chunks none of which has rows of two parts, each with the number of its part.

        Small parts are encoded together, so that many of them cost little more than one.

        Args:
            rows: as of `chunks`.
            ends: where each part ends, rising; the last is the number of rows.
            first_row: as of `chunks`.

        Raises like `chunks`.
        """
        if rows.num_rows == 0:
            return
        columns = _Columns(rows, first_row)
        sizes, target = columns.sizes, self.target_bytes
        if self.keyed:
            named = columns.sticky_sizes()
            sizes, target = sizes + named, min(target, self.limit - int(named.max()))
        largest = int(sizes.argmax())
        if sizes[largest] > self.limit:
            raise InvalidInput(
                f"{columns.row_name(largest)} makes a message of {sizes[largest]} bytes; the broker's limit "
                f"leaves {self.limit} bytes for one. Split the value, compress it before, or store it elsewhere and "
                "send where it is; or raise maxMessageSize of the brokers and nettyMaxFrameSizeBytes of the bookies"
            )
        offsets = np.concatenate(([0], np.cumsum(columns.sizes)))
        together: list[tuple[int, slice]] = []
        for part, chunk in self._cut(ends, offsets, target):
            if together and offsets[chunk.stop] - offsets[together[0][1].start] > self.target_bytes:
                yield from self._encode(columns, offsets, together)
                together = []
            together.append((part, chunk))
        yield from self._encode(columns, offsets, together)

    def _cut(
        self, ends: Sequence[int], offsets: npt.NDArray[np.int64], target_bytes: int
    ) -> Iterator[tuple[int, slice]]:
        """Yield the rows of each chunk, with the number of its part; `offsets` are the bytes before each row."""
        start = 0
        for part, end in enumerate(ends):
            while start < end:
                full = int(np.searchsorted(offsets, offsets[start] + target_bytes, side="right")) - 1
                stop = min(max(full, start + 1), end)
                yield part, slice(start, stop)
                start = stop

    def _encode(
        self, columns: _Columns, offsets: npt.NDArray[np.int64], together: Sequence[tuple[int, slice]]
    ) -> Iterator[tuple[int, Chunk]]:
        first, last = together[0][1].start, together[-1][1].stop
        joined = columns.join(slice(first, last))
        for part, rows in together:
            plain = joined[offsets[rows.start] - offsets[first] : offsets[rows.stop] - offsets[first]]
            yield part, self._chunk(columns, rows, plain)

    def _chunk(self, columns: _Columns, rows: slice, plain: memoryview) -> Chunk:
        payload, compression = shrunk(plain, self.compression)
        return Chunk(
            messages=rows.stop - rows.start,
            payload=payload,
            uncompressed_size=len(plain),
            rows_bytes=columns.data_bytes(rows),
            compression=compression,
            sticky=columns.sticky(rows.start) if self.keyed else None,
        )


class _Columns:
    """The columns of one record batch as parts of the payload: headers, and the bytes between them."""

    def __init__(self, rows: pa.RecordBatch, first_row: int) -> None:
        if "value" not in rows.schema.names:
            raise InvalidInput('there is no column "value"')
        self._rows = rows
        self._first_row = first_row
        value = as_bytes(rows.column("value"), "value")
        value_sizes = lengths(value)
        self._data_sizes = value_sizes
        self._fields = [Field(_PAYLOAD_SIZE, value_sizes)]
        self._parts: list[list[Field] | pa.Array | Properties] = []
        if value.null_count:
            self._fields.append(Field(_NULL_VALUE, _ones(value.is_null())))
        if (column := self._present("event_time")) is not None:
            self._fields.append(self._event_time(column))
        self._keys: WireKeys | None = None
        if (column := self._present("key")) is not None:
            self._keys = keys = wire_keys(column)
            if keys.encoded is not None:
                self._fields.append(Field(_KEY_B64_ENCODED, _ones(keys.encoded)))
            self._add_bytes(_PARTITION_KEY, keys.text)
        if (column := self._present("ordering_key")) is not None:
            self._add_bytes(_ORDERING_KEY, as_bytes(column, "ordering_key"))
        headers = [part for part in self._parts if isinstance(part, list)]
        if self._fields:
            headers.append(self._fields)
            self._parts.append(self._fields)
        metadata_sizes = self._data_sizes - value_sizes + sum(width(fields) for fields in headers)
        if (column := self._present("properties")) is not None:
            properties = Properties(column, self.row_name)
            self._parts.append(properties)
            self._data_sizes = self._data_sizes + properties.data_sizes
            metadata_sizes = metadata_sizes + properties.sizes
        self._parts.append(value)
        self._metadata_sizes = metadata_sizes
        self.sizes = _SIZE_BYTES + metadata_sizes + value_sizes
        """Bytes of each message on the wire; shape (rows,)."""
        large = any(pa.types.is_large_binary(part.type) for part in self._parts if isinstance(part, pa.Array))
        self._kind = pa.large_binary() if large else pa.binary()

    def row_name(self, index: int) -> str:
        """Name a row for an error message."""
        return row_name(self._rows, index, self._first_row)

    def join(self, rows: slice) -> memoryview:
        """Return the payload of these rows."""
        sizes: Numbers | None = self._metadata_sizes
        columns = []
        for part in self._parts:
            if isinstance(part, list):
                columns.append(header(part, rows, self._kind, sizes))
                sizes = None
            elif isinstance(part, Properties):
                columns.append(part.encoded(rows, self._kind))
            else:
                columns.append(part.slice(rows.start, rows.stop - rows.start).cast(self._kind))
        empty = pa.scalar(b"", self._kind)
        joined = pc.binary_join_element_wise(*columns, empty, null_handling="replace", null_replacement=b"")
        return memoryview(joined.buffers()[2]).cast("B")[: int(self.sizes[rows].sum())]

    def sticky(self, row: int) -> StickyKey | None:
        """Return what a Key_Shared subscription goes by for a row; None for a row without."""
        return sticky_key(self._present("ordering_key"), self._keys, row)

    def sticky_sizes(self) -> npt.NDArray[np.int64]:
        """Return the bytes of what `sticky` returns for each row, at most; shape (rows,)."""
        ordering = self._present("ordering_key")
        sizes = np.zeros(self._rows.num_rows, dtype=np.int64)
        for column in (ordering, None if self._keys is None else self._keys.text):
            if column is not None:
                sizes = np.maximum(sizes, lengths(as_bytes(column, "ordering_key")))
        return sizes

    def data_bytes(self, rows: slice) -> int:
        """Return the bytes of these rows' own data."""
        return int(self._data_sizes[rows].sum())

    def _present(self, name: str) -> pa.Array | None:
        if name not in self._rows.schema.names:
            return None
        column = self._rows.column(name)
        return None if column.null_count == len(column) else column

    def _add_bytes(self, tag: int, column: pa.Array) -> None:
        sizes = lengths(column)
        missing = np.asarray(column.is_null()) if column.null_count else None
        self._parts += [[*self._fields, Field(tag, sizes, missing)], column]
        self._fields = []
        self._data_sizes = self._data_sizes + sizes

    def _event_time(self, column: pa.Array) -> Field:
        if not pa.types.is_int64(column.type):
            raise InvalidInput(f'column "event_time" is {column.type}; it must be int64, in milliseconds since 1970')
        times = np.asarray(pc.fill_null(column, 0))
        earliest = int(times.argmin())
        if times[earliest] < 0:
            raise InvalidInput(
                f"{self.row_name(earliest)} has the event time {times[earliest]}; Pulsar has none before 1970"
            )
        return Field(_EVENT_TIME, times, np.asarray(column.is_null()) if column.null_count else None)


def _ones(flags: pa.BooleanArray) -> npt.NDArray[np.uint8]:
    return np.asarray(flags).astype(np.uint8)


def unpack(
    metadata: MessageMetadata, payload: Buffer
) -> Iterator[tuple[MessageMetadata | SingleMessageMetadata, bytes]]:
    """Yield each message of a received payload: what describes it, and its bytes (empty for a null value).

    For a message outside a batch that is the frame's own metadata. Messages that compaction took out
    of a batch are yielded too, with `compacted_out` set. Raises DamagedFrame.
    """
    plain = decompress(payload, metadata.compression, metadata.uncompressed_size)
    if not metadata.HasField("num_messages_in_batch"):
        yield metadata, bytes(plain)
        return
    at = 0
    try:
        for _ in range(metadata.num_messages_in_batch):
            (size,) = _SIZE.unpack_from(plain, at)
            start = at + _SIZE_BYTES + size
            single = SingleMessageMetadata.FromString(bytes(plain[at + _SIZE_BYTES : start]))
            at = start + single.payload_size
            if at > len(plain):
                raise DamagedFrame(f"a batch of {len(plain)} bytes ends inside a message")
            yield single, bytes(plain[start:at])
    except (struct.error, DecodeError) as error:
        raise DamagedFrame(f"a batch of {len(plain)} bytes can't be read: {error}") from error
