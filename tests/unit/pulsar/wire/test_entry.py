"""What an entry knows of itself."""

from __future__ import annotations

from typing import Any

import pytest

from eos.errors import DamagedFrame
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import CompressionType, EncryptionKeys, MessageMetadata

BATCH = b"\0\0\0\2\x18\1a" * 2


def entry(payload: bytes = BATCH, damage: str = "", **metadata: Any) -> Entry:
    described = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1, **metadata)
    return Entry(EntryId(3, 4), described, payload, len(payload) + 50, "t", damage=damage)


def test_a_message_that_stands_alone_is_plain_too() -> None:
    for payload in (b"", b"x"):
        found = entry(payload)
        assert (found.plain, found.credible, found.batched, found.num_messages) == (True, True, False, 1)
        assert found.payload == payload


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_batch_as_it_lies_is_plain(count: int) -> None:
    found = entry(num_messages_in_batch=count)
    assert (found.plain, found.credible, found.batched, found.num_messages) == (True, True, True, count)
    assert found.payload == found.packed
    assert found.unpacked_size == found.size


@pytest.mark.parametrize("metadata", [{}, {"num_messages_in_batch": 2}], ids=["alone", "a batch"])
def test_a_plain_entry_may_have_no_more_bytes_than_any(metadata: dict[str, Any]) -> None:
    found = entry(BATCH, **metadata)
    found.most = len(BATCH)
    assert found.payload == BATCH
    found.most -= 1
    with pytest.raises(DamagedFrame, match=r"a message of 14 bytes once decompressed, .*; 13 are taken"):
        _ = found.payload


@pytest.mark.parametrize(
    "other",
    [
        {"num_messages_in_batch": 3},
        {"num_messages_in_batch": -1},
        {"num_messages_in_batch": 2, "compression": CompressionType.LZ4},
        {"num_messages_in_batch": 2, "encryption_keys": [EncryptionKeys(key="k", value=b"v")]},
        {"num_messages_in_batch": 2, "num_chunks_from_msg": 2},
        {"num_messages_in_batch": 2, "damage": "its checksum is wrong"},
        {"compression": CompressionType.LZ4},
        {"encryption_keys": [EncryptionKeys(key="k", value=b"v")]},
        {"num_chunks_from_msg": 2},
        {"damage": "its checksum is wrong"},
    ],
    ids=[
        *("more than fit", "fewer than none", "compressed", "encrypted", "a chunk", "damaged"),
        *("a compressed message", "an encrypted one", "a message's chunk", "a damaged one"),
    ],
)
def test_all_else_must_be_looked_at(other: dict[str, Any]) -> None:
    """Each of these is refused, decrypted, decompressed or put together, by who asks whether it is plain."""
    assert not entry(**other).plain
