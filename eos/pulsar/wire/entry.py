"""An entry as the broker sends it: one message, or a batch of them, under one metadata."""

from __future__ import annotations

from dataclasses import dataclass, field

from eos.errors import DamagedEntry, DamagedFrame
from eos.pulsar.wire.checksum import Buffer
from eos.pulsar.wire.compression import MAX_BYTES, decompress
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata

_MESSAGE_BYTES = 6  # of a batch, at least: the size of its metadata, and in it the size of its value


@dataclass(slots=True)  # not frozen: that makes each one several times as dear
class Entry:
    """One entry of a topic.

    Attributes:
        id: where it is stored.
        metadata: what describes it, parsed once.
        packed: its bytes after the metadata, as they came: perhaps compressed.
        size: bytes of the entry as it is stored: checksum, metadata and `packed`.
        topic: the topic it was read from, for messages.
        most: bytes that it may have once it is decompressed.
        damage: why it can't be read, where that is known already; "" where it is not.
        num_messages: how many messages it holds, those that compaction took out included.
        batched: whether `payload` is a batch, be it of one, and not a message's own bytes.
        plain: whether its messages lie in `packed` as they are, and can be as many as it says. So are most entries:
            nothing else need be asked of them.
    """

    id: EntryId
    metadata: MessageMetadata
    packed: Buffer
    size: int
    topic: str = ""
    most: int = MAX_BYTES
    damage: str = ""
    num_messages: int = field(init=False)
    batched: bool = field(init=False)
    plain: bool = field(init=False)

    def __post_init__(self) -> None:
        """Ask the metadata once what each entry is asked several times."""
        metadata = self.metadata
        self.num_messages = metadata.num_messages_in_batch
        self.batched = self.num_messages != 1 or metadata.HasField("num_messages_in_batch")
        fits = 0 <= self.num_messages * _MESSAGE_BYTES <= len(self.packed)
        self.plain = (fits or not self.batched) and not (
            metadata.compression or metadata.encryption_keys or self.chunked or self.damage
        )

    @property
    def credible(self) -> bool:
        """Whether it can have as many messages as it says, by which the broker has counted its permits."""
        if self.plain:
            return True
        least, size = self.num_messages * _MESSAGE_BYTES, len(self.packed)
        if least > size:
            size = max(self.metadata.uncompressed_size, size, _MESSAGE_BYTES)  # one message may be empty
        return not self.damage and 0 <= least <= size

    @property
    def unpacked_size(self) -> int:
        """Bytes that it has once it is decompressed, as it says: at least those that are stored."""
        return self.size if self.plain else max(self.size, self.metadata.uncompressed_size)

    @property
    def chunked(self) -> bool:
        """Whether it is one chunk of a message that has several."""
        return self.metadata.num_chunks_from_msg > 1

    @property
    def payload(self) -> Buffer:
        """Its bytes, decompressed at each call. Raises DamagedFrame, naming the entry."""
        if self.plain and self.size <= self.most:
            return self.packed
        metadata = self.metadata
        if self.damage:
            raise self.damaged(self.damage)
        try:
            return decompress(self.packed, metadata.compression, metadata.uncompressed_size, self.most)
        except DamagedFrame as damage:
            raise self.damaged(str(damage)) from damage

    def damaged(self, why: str) -> DamagedEntry:
        """Return the error that says what is wrong with this entry."""
        return DamagedEntry(f"{self} can't be read: {why}", self.id.ledger, self.id.entry)

    def __str__(self) -> str:
        return f"entry {self.id} of {self.topic}" if self.topic else f"entry {self.id}"
