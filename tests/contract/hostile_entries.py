"""Entries that no official client would write, and that brokers take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eos.config import Compression
from eos.pulsar.wire.compression import TYPES, compress
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata

BATCH = b"\0\0\0\2\x18\1a"


def described(number: int, name: str, **more: Any) -> MessageMetadata:
    return MessageMetadata(producer_name=name, sequence_id=number, publish_time=1, **more)


def packed(compression: Compression, size: int) -> Callable[[int, str], tuple[MessageMetadata, bytes]]:
    def one(number: int, name: str) -> tuple[MessageMetadata, bytes]:
        told = described(number, name, compression=TYPES[compression], uncompressed_size=size)
        return told, bytes(compress(bytes(2**22), compression))

    return one


HOSTILE: dict[str, tuple[Callable[[int, str], tuple[MessageMetadata, bytes]], str]] = {
    "a negative number of messages": (
        lambda number, name: (described(number, name, num_messages_in_batch=-(2**31)), BATCH),
        "it says that it has -2,147,483,648 messages",
    ),
    "the largest number of messages": (
        lambda number, name: (described(number, name, num_messages_in_batch=2**31 - 1), BATCH),
        "it says that it has 2,147,483,647 messages",
    ),
    "4 GiB by its metadata": (packed("zstd", 2**32 - 1), "4,294,967,295 bytes once decompressed"),
    "more than its metadata says": (packed("zlib", 1000), "1001 bytes or more once decompressed"),
    "a batch without an end": (
        lambda number, name: (described(number, name, num_messages_in_batch=1), BATCH[:-1]),
        "message 0 of its batch has no end",
    ),
    "a chunk before the first": (
        lambda number, name: (
            described(number, name, uuid="u", chunk_id=-1, num_chunks_from_msg=2, total_chunk_msg_size=5),
            b"x",
        ),
        "it is chunk -1 of 2",
    ),
}
