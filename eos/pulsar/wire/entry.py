"""An entry as the broker sends it: one message, or a batch of them, under one metadata."""

from __future__ import annotations

from dataclasses import dataclass

from eos.errors import DamagedEntry, DamagedFrame
from eos.pulsar.wire.checksum import Buffer
from eos.pulsar.wire.compression import MAX_BYTES, decompress
from eos.pulsar.wire.frames import Frame
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata

_HEADER_BYTES = 10  # magic, checksum, size of the metadata
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
    """

    id: EntryId
    metadata: MessageMetadata
    packed: Buffer
    size: int
    topic: str = ""
    most: int = MAX_BYTES
    damage: str = ""

    @classmethod
    def read(cls, frame: Frame, topic: str = "") -> Entry:
        """Take the entry out of a MESSAGE frame; one that is damaged says so when it is read.

        Raises DamagedFrame when the frame carries none.
        """
        where = EntryId.read(frame.command.message.message_id)
        if frame.damage:
            return cls(where, MessageMetadata(), b"", _HEADER_BYTES, topic, damage=frame.damage)
        if frame.metadata is None or frame.payload is None:
            raise DamagedFrame(f"entry {where} of {topic} came without a message")
        return cls(where, frame.metadata, frame.payload, frame.size, topic)

    @property
    def num_messages(self) -> int:
        """How many messages it holds, those that compaction took out included."""
        return self.metadata.num_messages_in_batch

    @property
    def batched(self) -> bool:
        """Whether `payload` is a batch, be it of one, and not a message's own bytes."""
        return self.metadata.HasField("num_messages_in_batch")

    @property
    def credible(self) -> bool:
        """Whether it can have as many messages as it says, by which the broker has counted its permits."""
        least, size = self.metadata.num_messages_in_batch * _MESSAGE_BYTES, len(self.packed)
        if least > size:
            size = max(self.metadata.uncompressed_size, size, _MESSAGE_BYTES)  # one message may be empty
        return not self.damage and 0 <= least <= size

    @property
    def unpacked_size(self) -> int:
        """Bytes that it has once it is decompressed, as it says: at least those that are stored."""
        return max(self.size, self.metadata.uncompressed_size)

    @property
    def chunked(self) -> bool:
        """Whether it is one chunk of a message that has several."""
        return self.metadata.num_chunks_from_msg > 1

    @property
    def payload(self) -> Buffer:
        """Its bytes, decompressed at each call. Raises DamagedFrame, naming the entry."""
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
