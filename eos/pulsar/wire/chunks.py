"""Messages that were too large for one entry: each of their chunks is an entry of its own (PIP-37).

Chunks of several messages may lie between one another, and a producer that was not sure of a chunk has sent it again,
with those after it. A message whose last chunk never comes is the same as one that had not been sent. A message belongs
to the entry of its last chunk.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from eos.errors import InvalidInput
from eos.pulsar.wire.compression import MAX_BYTES
from eos.pulsar.wire.encryption import TAG_BYTES, Decrypt, as_it_is
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata

_REMEMBERED = 1000  # finished messages whose last chunk may come again


class ChunksMissing(InvalidInput):
    """The last chunk of a message came, and earlier ones did not: reading began between them, or they are gone.

    Attributes:
        entry: where the last chunk is stored.
    """

    def __init__(self, why: str, entry: EntryId) -> None:
        super().__init__(why)
        self.entry = entry

    def __reduce__(self) -> tuple[type[ChunksMissing], tuple[str, EntryId]]:
        return type(self), (str(self), self.entry)


MessageOfChunks = tuple[str, str]
"""Which message a chunk is of: the cluster that it was replicated from, "" for this one, and the id of the message.

The id is made of the producer's name and a number. Producers of two clusters may have one name, where each begins to
count at 0, and replication mixes their chunks in one topic.
"""


def message_of(chunk: Entry) -> MessageOfChunks:
    """Return which message a chunk is of."""
    return chunk.metadata.replicated_from, chunk.metadata.uuid


@dataclass(slots=True)
class _Message:
    chunks: list[Entry] = field(default_factory=list)
    size: int = 0


class ChunkAssembler:
    """Takes entries in their order, and hands them on with each chunked message in one piece."""

    def __init__(self, max_bytes: int = MAX_BYTES, decrypt: Decrypt = as_it_is) -> None:
        """Make one that holds nothing.

        Args:
            max_bytes: of unfinished messages to keep; beyond them the message begun first is given up.
            decrypt: what is handed on. Default: encrypted entries stay so.
        """
        self._max_bytes, self._decrypt = max_bytes, decrypt
        self._unfinished: dict[MessageOfChunks, _Message] = {}
        self._finished: dict[MessageOfChunks, None] = {}
        self._size = 0

    def take(self, entry: Entry) -> Entry | None:
        """Return the entry if it is not a chunk, the whole message for its last chunk, else None.

        Raises ChunksMissing for a last chunk without the earlier ones; DamagedFrame when they don't make
        a message of the size that it should have; and what decrypting raises.
        """
        entry.most = self._max_bytes
        if not entry.chunked:
            return self._decrypt(entry)
        name, number, count = message_of(entry), entry.metadata.chunk_id, entry.metadata.num_chunks_from_msg
        self._check(entry)
        if number == 0:
            self._drop(name)
            self._unfinished[name] = _Message()
        message = self._unfinished.get(name)
        come = 0 if message is None else len(message.chunks)
        if message is not None and number == come:
            message.chunks.append(entry)
            message.size += len(entry.packed)
            self._size += len(entry.packed)
            if number + 1 == count:
                self._drop(name)
                self._remember(name)
                return _whole([self._decrypt(chunk) for chunk in message.chunks])
            self._make_room(name)
        elif number > come:
            self._drop(name)
            if number + 1 == count and name not in self._finished:
                raise ChunksMissing(
                    f"{entry} is the last of {count} chunks of message {entry.metadata.uuid}, and those from {come} on "
                    "did not come",
                    entry.id,
                )
        return None

    def _check(self, entry: Entry) -> None:
        """Raise DamagedFrame for a chunk that can't be one of a message, or is one of a message that is too large."""
        metadata = entry.metadata
        if not 0 <= metadata.chunk_id < metadata.num_chunks_from_msg:
            raise entry.damaged(f"it is chunk {metadata.chunk_id} of {metadata.num_chunks_from_msg}, counted from 0")
        size = max(metadata.total_chunk_msg_size, metadata.uncompressed_size)
        if not metadata.total_chunk_msg_size >= 0 or size > self._max_bytes:
            raise entry.damaged(
                f"its message has {size:,} bytes in its chunks, or once decompressed, by its metadata, and at most "
                f"{self._max_bytes:,} are taken"
            )
        first = self._unfinished.get(message_of(entry))
        if first is not None and metadata.chunk_id == len(first.chunks) > 0:
            said = first.chunks[0].metadata
            if (said.num_chunks_from_msg, said.total_chunk_msg_size) != (
                metadata.num_chunks_from_msg,
                metadata.total_chunk_msg_size,
            ):
                raise entry.damaged("it tells another number of chunks, or of their bytes, than the first chunk")
            most = metadata.total_chunk_msg_size + metadata.num_chunks_from_msg * TAG_BYTES
            if first.size + len(entry.packed) > most:
                raise entry.damaged(
                    f"the chunks up to it have more than the {most:,} bytes that their message can have"
                )

    def _drop(self, name: MessageOfChunks) -> None:
        message = self._unfinished.pop(name, None)
        if message is not None:
            self._size -= message.size

    def _remember(self, name: MessageOfChunks) -> None:
        self._finished[name] = None
        if len(self._finished) > _REMEMBERED:
            del self._finished[next(iter(self._finished))]

    def _make_room(self, name: MessageOfChunks) -> None:
        while self._size > self._max_bytes:
            first = next((other for other in self._unfinished if other != name), None)
            if first is None:
                return
            self._drop(first)


def _whole(chunks: list[Entry]) -> Entry:
    last = chunks[-1]
    # Each chunk is encrypted by itself, and the metadata tells the size before that.
    size = sum(len(chunk.packed) - (TAG_BYTES if chunk.metadata.encryption_keys else 0) for chunk in chunks)
    if size != last.metadata.total_chunk_msg_size:
        raise last.damaged(
            f"its message has {size} bytes in {len(chunks)} chunks. It should have {last.metadata.total_chunk_msg_size}"
        )
    metadata = MessageMetadata()
    metadata.CopyFrom(last.metadata)
    for mark in ("uuid", "num_chunks_from_msg", "total_chunk_msg_size", "chunk_id"):
        metadata.ClearField(mark)
    stored = sum(chunk.size for chunk in chunks)
    return Entry(last.id, metadata, b"".join(chunk.packed for chunk in chunks), stored, last.topic, last.most)
