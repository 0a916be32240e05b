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
from google.protobuf.message import DecodeError

from eos.config import Compression, CompressionOption
from eos.errors import DamagedFrame, InvalidInput
from eos.pulsar.wire.checksum import Buffer
from eos.pulsar.wire.columns import PayloadColumns
from eos.pulsar.wire.compression import decompress, shrunk
from eos.pulsar.wire.encryption import Envelope
from eos.pulsar.wire.frames import DEFAULT_MAX_MESSAGE_SIZE
from eos.pulsar.wire.keys import StickyKey
from eos.pulsar.wire.large_messages import MAX_BYTES, Piece, cut
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata, SingleMessageMetadata

DEFAULT_TARGET_BYTES = 1024 * 1024
"""Bytes of a chunk's payload before compression, unless one message alone is larger."""

FRAME_RESERVE = 4 * 1024
"""Bytes of the maximum message size that are kept for the frame's command and metadata."""

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
        deliver_at_ms: when its messages are to be delivered, in milliseconds since 1970; None: at once.
        can_be_cut: whether a message that is too large alone can be sent in smaller pieces.
        piece: of a message that stands alone, which this is; None for a batch. The pieces of a message together have
            one of the `messages` and all of the `rows_bytes`; `uncompressed_size` is the whole value's.
        envelope: what a reader needs to decrypt the payload; None where it is in the clear.
    """

    messages: int
    payload: Buffer
    uncompressed_size: int
    rows_bytes: int
    compression: Compression
    sticky: StickyKey | None = None
    deliver_at_ms: int | None = None
    can_be_cut: bool = False
    piece: Piece | None = None
    envelope: Envelope | None = None


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
        cut_above: bytes of a message above which it is sent alone, and cut into pieces where it is too large for one
            entry; at most what one entry holds. None, the default: a message that is larger than an entry is refused.
        alone: each row is a message of its own, in no batch. Default False.
    """

    def __init__(
        self,
        compression: CompressionOption = "none",
        max_message_size: int = DEFAULT_MAX_MESSAGE_SIZE,
        target_bytes: int = DEFAULT_TARGET_BYTES,
        keyed: bool = False,
        cut_above: int | None = None,
        alone: bool = False,
    ) -> None:
        self.compression, self.keyed, self.alone = compression, keyed, alone
        self.limit = max_message_size - FRAME_RESERVE
        if self.limit <= 0:
            raise InvalidInput(f"a maximum message size of {max_message_size} bytes leaves no room for a message")
        self.cut_above = None if cut_above is None else min(cut_above, self.limit)
        self.target_bytes = min(target_bytes, self.cut_above or self.limit)

    def chunks(self, rows: pa.RecordBatch, first_row: int = 0) -> Iterator[Chunk]:
        """Yield the rows, in order, as chunks of about `target_bytes`.

        Columns: `value` (text or binary), and, each of them optional: `key` and `ordering_key` (text or
        binary), `event_time` (int64, ms since 1970), `properties` (map of text to text), `deliver_at` (int64, ms since
        1970; the same for all rows of a part). All may hold nulls: a null value is a message without a value, a null
        elsewhere is a message without that field.

        Error messages number the rows from `first_row` on, or by the column `row` (any integer type) if there is one.

        Raises InvalidInput before it yields anything, naming the row: for a message that is larger
        than the limit, a negative event time, a delivery beyond the year 9999, a property without a value; and for a
        column of another type.
        """
        for _, chunk in self.chunks_of_parts(rows, [rows.num_rows], first_row):
            yield chunk

    def chunks_of_parts(
        self, rows: pa.RecordBatch, ends: Sequence[int], first_row: int = 0
    ) -> Iterator[tuple[int, Chunk]]:
        """Yield chunks without rows of two parts, each with the number of its part.

        Small parts are encoded together, so that many of them cost little more than one.

        Args:
            rows: as of `chunks`.
            ends: where each part ends, rising; the last is the number of rows.
            first_row: as of `chunks`.

        Raises like `chunks`.
        """
        if rows.num_rows == 0:
            return
        columns = PayloadColumns(rows, first_row)
        sizes, target = columns.sizes, self.target_bytes
        if self.keyed:
            named = columns.sticky_sizes()
            sizes, target = sizes + named, min(target, (self.cut_above or self.limit) - int(named.max()))
        largest = int(sizes.argmax())
        if self.cut_above is None and sizes[largest] > self.limit:
            raise InvalidInput(
                f"{columns.row_name(largest)} makes a message of {sizes[largest]} bytes. The broker's limit "
                f"leaves {self.limit} bytes for one. Use chunking=True, which sends such a message in several entries. "
                "Or split the value, compress it before, or store it elsewhere and send where it is. Or raise "
                "maxMessageSize of the brokers and nettyMaxFrameSizeBytes of the bookies"
            )
        # A row that is larger than that is larger than `target`, so no chunk holds it beside other rows.
        cuts = np.zeros(len(sizes), dtype=np.bool_) if self.cut_above is None else sizes > self.cut_above
        for row in np.flatnonzero(cuts):
            self._refuse_too_large(columns, int(row))
        offsets = np.concatenate(([0], np.cumsum(columns.sizes)))
        together: list[tuple[int, slice]] = []
        for part, chunk in self._cut(ends, offsets, target):
            if together and offsets[chunk.stop] - offsets[together[0][1].start] > self.target_bytes:
                yield from self._encode(columns, offsets, together)
                together = []
            if cuts[chunk.start]:
                for piece in self._pieces(columns, chunk.start, *columns.alone(chunk.start)):
                    yield part, piece
            elif self.alone:
                for at, (described, value) in enumerate(columns.each_alone(chunk), chunk.start):
                    for piece in self._pieces(columns, at, described, value):
                        yield part, piece
            else:
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
        self, columns: PayloadColumns, offsets: npt.NDArray[np.int64], together: Sequence[tuple[int, slice]]
    ) -> Iterator[tuple[int, Chunk]]:
        if not together:
            return
        first, last = together[0][1].start, together[-1][1].stop
        joined = columns.join(slice(first, last))
        for part, rows in together:
            plain = joined[offsets[rows.start] - offsets[first] : offsets[rows.stop] - offsets[first]]
            yield part, self._chunk(columns, rows, plain)

    def _chunk(self, columns: PayloadColumns, rows: slice, plain: memoryview) -> Chunk:
        payload, compression = shrunk(plain, self.compression)
        return Chunk(
            messages=rows.stop - rows.start,
            payload=payload,
            uncompressed_size=len(plain),
            rows_bytes=columns.data_bytes(rows),
            compression=compression,
            sticky=columns.sticky(rows.start) if self.keyed else None,
            deliver_at_ms=columns.deliver_at_ms(rows.start),
            can_be_cut=self.cut_above is not None,
        )

    def _pieces(self, columns: PayloadColumns, row: int, described: MessageMetadata, value: Buffer) -> Iterator[Chunk]:
        packed, compression = shrunk(value, self.compression)
        room = self.limit - described.ByteSize()
        for piece, payload in cut(described, packed, min(self.cut_above or room, room)):
            yield Chunk(
                messages=int(piece.is_last),
                payload=payload,
                uncompressed_size=len(value),
                rows_bytes=columns.data_bytes(slice(row, row + 1)) if piece.is_last else 0,
                compression=compression,
                deliver_at_ms=columns.deliver_at_ms(row),
                can_be_cut=self.cut_above is not None,
                piece=piece,
            )

    def _refuse_too_large(self, columns: PayloadColumns, row: int) -> None:
        """Refuse a message that can't be cut: too much of it goes into each piece, or no client holds it."""
        value_bytes = columns.value_bytes(row)
        rest = int(columns.sizes[row]) - value_bytes
        if rest > self.limit // 2:
            raise InvalidInput(
                f"{columns.row_name(row)} has {rest} bytes of keys and properties, which each chunk of its message "
                f"would carry. There is room for {self.limit // 2} bytes. Make them smaller, or part of the value"
            )
        if value_bytes > MAX_BYTES:
            raise InvalidInput(
                f"{columns.row_name(row)} has a value of {value_bytes} bytes. A message in chunks has at most "
                f"{MAX_BYTES}. Split the value, or store it elsewhere and send where it is"
            )


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
    if metadata.num_messages_in_batch < 0:
        raise DamagedFrame(f"a batch of {metadata.num_messages_in_batch} messages")
    at = 0
    try:
        for _ in range(metadata.num_messages_in_batch):
            (size,) = _SIZE.unpack_from(plain, at)
            start = at + _SIZE_BYTES + size
            single = SingleMessageMetadata.FromString(bytes(plain[at + _SIZE_BYTES : start]))
            at = start + single.payload_size
            if not start <= at <= len(plain):
                raise DamagedFrame(f"a batch of {len(plain)} bytes ends inside a message")
            yield single, bytes(plain[start:at])
    except (struct.error, DecodeError) as error:
        raise DamagedFrame(f"a batch of {len(plain)} bytes can't be read: {error}") from error
