from __future__ import annotations

import pytest

from eos.errors import DamagedFrame
from eos.history.stored_entry import entry_of
from eos.pulsar.wire.checksum import crc32c
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import BrokerEntryMetadata, MessageMetadata

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
def test_an_entry_is_read_with_and_without_what_the_broker_put_before_it(broker: bool, checksum: bool) -> None:
    entry = entry_of(WHERE, stored(broker=broker, checksum=checksum), "t")
    assert (entry.id, entry.metadata.producer_name, bytes(entry.payload), entry.topic) == (
        WHERE,
        "p",
        b"the payload",
        "t",
    )


def test_a_changed_or_cut_entry_is_named() -> None:
    whole = stored()
    begin = len(whole) - len(stored(broker=False))
    for at in range(begin + 6, len(whole)):
        with pytest.raises(DamagedFrame, match="entry 7:3 of t is damaged"):
            entry_of(WHERE, whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], "t")
    for size in range(len(whole)):
        with pytest.raises(DamagedFrame, match="entry 7:3 of t is damaged"):
            entry_of(WHERE, whole[:size], "t")
