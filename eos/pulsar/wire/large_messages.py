"""Messages that are larger than one entry: cut into chunks, each an entry of its own (PIP-37).

Such a message stands alone, in no batch: what describes it is the entry's own metadata. It is compressed as a whole
and then cut; each chunk carries all of what describes the message, which message it is of (uuid), its number and how
many there are. All have one sequence id (ProducerImpl of the Java client). `chunks` puts them together again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eos.pulsar.wire.checksum import Buffer
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata, SingleMessageMetadata

MAX_BYTES = 0x7E000000
"""Bytes of the largest value that is cut: what LZ4 compresses at most, and less than the int32 of
`total_chunk_msg_size` holds."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Which piece an entry is of a message that stands alone, in one piece or in several.

    Attributes:
        described: what describes the message, apart from its compression; the same in all pieces.
        number: of this piece, from 0.
        count: of pieces.
        total_bytes: of the value once it is compressed.
    """

    described: MessageMetadata
    number: int
    count: int
    total_bytes: int

    @property
    def is_last(self) -> bool:
        """Whether it completes the message."""
        return self.number + 1 == self.count


def cut(described: MessageMetadata, packed: Buffer, piece_bytes: int) -> Iterator[tuple[Piece, Buffer]]:
    """Yield the pieces of a message, each with its bytes.

    Args: what describes it; the bytes of its value, compressed; bytes of a piece, at least 1.
    """
    view = memoryview(packed)
    count = max(1, -(-len(view) // piece_bytes))
    for number in range(count):
        yield Piece(described, number, count, len(view)), view[number * piece_bytes : (number + 1) * piece_bytes]


def alone(own: SingleMessageMetadata) -> MessageMetadata:
    """Return what describes a message of a batch as that of a message that stands alone."""
    described = MessageMetadata(properties=own.properties)
    for field in ("partition_key", "partition_key_b64_encoded", "ordering_key", "event_time", "null_value"):
        if own.HasField(field):
            setattr(described, field, getattr(own, field))
    return described
