from __future__ import annotations

from collections.abc import Callable

import pytest

from eos.errors import DamagedFrame
from eos.pulsar.wire.checksum import Buffer, crc32c
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import BrokerEntryMetadata, MessageMetadata
from eos.pulsar.wire.stored_entry import entry_of

WHERE = EntryId(7, 3)


def stored(*, broker: bool = True, checksum: bool = True) -> bytes:
    metadata = MessageMetadata(producer_name="p", sequence_id=1, publish_time=2).SerializeToString()
    message = len(metadata).to_bytes(4) + metadata + b"the payload"
    if checksum:
        message = b"\x0e\x01" + crc32c([message]).to_bytes(4) + message
    if broker:
        told = BrokerEntryMetadata(broker_timestamp=5, index=6).SerializeToString()
        message = b"\x0e\x02" + len(told).to_bytes(4) + told + message
    return message


@pytest.mark.parametrize("broker", [True, False])
@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("view", [bytes, memoryview])
def test_an_entry_is_read_with_and_without_what_the_broker_put_before_it(
    broker: bool, checksum: bool, view: Callable[[bytes], Buffer]
) -> None:
    data = stored(broker=broker, checksum=checksum)
    entry = entry_of(WHERE, view(b"before" + data + b"after"), 6, 6 + len(data), "t")
    assert (entry.id, entry.metadata.producer_name, bytes(entry.payload), entry.topic) == (
        WHERE,
        "p",
        b"the payload",
        "t",
    )


@pytest.mark.parametrize("after", [b"", stored(), bytes(100)], ids=["the end", "another entry", "zeros"])
def test_a_changed_or_cut_entry_is_damaged_whatever_comes_after_it(after: bytes) -> None:
    whole = stored()
    begin = len(whole) - len(stored(broker=False))
    for at in range(begin + 6, len(whole)):
        with pytest.raises(DamagedFrame):
            entry_of(WHERE, whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] + after, 0, len(whole), "t")
    for size in range(len(whole)):
        with pytest.raises(DamagedFrame):
            entry_of(WHERE, whole[:size] + after, 0, size, "t")
