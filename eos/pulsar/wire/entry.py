"""An entry as the broker sends it: one message, or a batch of them, under one metadata."""

from __future__ import annotations

from eos.errors import DamagedEntry, DamagedFrame
from eos.pulsar.wire.checksum import Buffer
from eos.pulsar.wire.compression import MAX_BYTES, decompress
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata

_MESSAGE_BYTES = 6  # of a batch, at least: the size of its metadata, and in it the size of its value


class Entry:
    """One entry of a topic.

    Attributes:
        id: where it is stored.
        packed: its bytes after the metadata, as they came: perhaps compressed.
        size: bytes of the entry as it is stored: checksum, metadata and `packed`.
        topic: the topic it was read from, for messages.
        most: bytes that it may have once it is decompressed.
        damage: why it can't be read, where that is known already; "" where it is not.
        num_messages: how many messages it holds, those that compaction took out included.
        batched: whether `payload` is a batch, be it of one, and not a message's own bytes.
        plain: whether its messages lie in `packed` as they are, and can be as many as it says. So are most entries:
            nothing else need be asked of them.
        transactional: whether it was sent in a transaction.
    """

    __slots__ = (
        "_described",
        "_open",
        "batched",
        "damage",
        "id",
        "most",
        "num_messages",
        "packed",
        "plain",
        "size",
        "topic",
        "transactional",
    )

    def __init__(
        self,
        id: EntryId,
        metadata: MessageMetadata,
        packed: Buffer,
        size: int,
        topic: str = "",
        most: int = MAX_BYTES,
        damage: str = "",
    ) -> None:
        """Args: as of the attributes; what describes it. It is asked once what each entry is asked several times."""
        self.id = id
        self._described: MessageMetadata | bytes = metadata
        self.packed = packed
        self.size = size
        self.topic = topic
        self.most = most
        self.damage = damage
        self.transactional = metadata.HasField("txnid_most_bits")
        self.num_messages = metadata.num_messages_in_batch
        self.batched = self.num_messages != 1 or metadata.HasField("num_messages_in_batch")
        self._open = not (metadata.compression or metadata.encryption_keys or self.chunked or damage)
        self.plain = self._open and (not self.batched or _fits(self.num_messages, packed))

    def like(self, id: EntryId, num_messages: int, described: bytes, packed: Buffer, size: int) -> Entry:
        """Return an entry whose metadata has the same fields as this one's, and is parsed when it is asked for.

        Args: where it is stored; how many messages it holds; its metadata, which may differ from this one's in texts
        and numbers, but not in what is done to the payload; the payload; its size.
        """
        entry = Entry.__new__(Entry)  # each entry comes by here: asking its metadata would take ten times as long
        entry.id = id
        entry._described = described
        entry.packed = packed
        entry.size = size
        entry.topic = self.topic
        entry.most = self.most
        entry.damage = self.damage
        entry.transactional = self.transactional
        entry.num_messages = num_messages
        entry.batched = batched = self.batched
        entry._open = is_open = self._open
        entry.plain = is_open and (not batched or _fits(num_messages, packed))
        return entry

    @property
    def metadata(self) -> MessageMetadata:
        """What describes it."""
        if isinstance(self._described, bytes):
            self._described = MessageMetadata.FromString(self._described)
        return self._described

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

    def __repr__(self) -> str:
        return f"Entry({self.id}, {self.metadata}, {self.packed!r}, {self.size}, {self.topic!r}, {self.damage!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entry) and all(
            getattr(self, name) == getattr(other, name)
            for name in ("id", "metadata", "packed", "size", "topic", "most", "damage")
        )

    __hash__ = None  # type: ignore[assignment]  # it can change: `topic` is set by who receives it


def _fits(num_messages: int, packed: Buffer) -> bool:
    """Whether a batch can lie in these bytes as it is."""
    return 0 <= num_messages * _MESSAGE_BYTES <= len(packed)
