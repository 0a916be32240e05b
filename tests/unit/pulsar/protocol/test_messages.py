"""What a reader hands out of an entry."""

from __future__ import annotations

import pytest

from eos.errors import DamagedFrame
from eos.pulsar.protocol.messages import messages_in
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId, MessageId
from eos.pulsar.wire.pulsar_pb2 import KeyValue, MessageMetadata, SingleMessageMetadata
from eos.pulsar.wire.txn import TxnId


def entry(ledger: int, number: int, payload: bytes = b"data", **metadata: object) -> Entry:
    described = MessageMetadata(producer_name="p", publish_time=11, **metadata)  # type: ignore[arg-type]
    return Entry(EntryId(ledger, number), described, payload, len(payload), "t")


def batch(ledger: int, number: int, *messages: bytes, compacted: int | None = None) -> Entry:
    payload = b""
    for index, data in enumerate(messages):
        single = SingleMessageMetadata(payload_size=len(data), compacted_out=index == compacted).SerializeToString()
        payload += len(single).to_bytes(4, "big") + single + data
    return entry(ledger, number, payload, num_messages_in_batch=len(messages))


def test_a_message_tells_all_about_itself() -> None:
    (message,) = messages_in(
        entry(
            1,
            2,
            b"x",
            partition_key=b"k",
            event_time=9,
            properties=[KeyValue(key="a", value="b")],
            txnid_most_bits=0,
            txnid_least_bits=4,
        )
    )
    assert (message.message_id, message.data, message.key) == (MessageId(1, 2), b"x", b"k")
    assert (message.publish_time_ms, message.event_time_ms, message.producer_name) == (11, 9, "p")
    assert (message.properties, message.txn) == ({"a": "b"}, TxnId(0, 4))
    (plain,) = messages_in(entry(1, 2, b"", null_value=True))
    assert (plain.data, plain.key, plain.event_time_ms, plain.txn) == (None, None, None, None)


def test_messages_of_a_batch_are_numbered_and_compacted_ones_left_out() -> None:
    messages = messages_in(batch(1, 2, b"a", b"b", b"c", compacted=1))
    assert [(message.message_id.batch_index, message.data) for message in messages] == [(0, b"a"), (2, b"c")]


@pytest.mark.parametrize(
    "given",
    [
        Entry(EntryId(1, 2), MessageMetadata(), b"", 10, "t", damage="its checksum is wrong"),
        entry(1, 2, b"no batch", num_messages_in_batch=1),
        entry(1, 2, num_messages_in_batch=-1),
        entry(1, 2, compression=3, uncompressed_size=9),
    ],
    ids=["on the way", "no batch", "of a negative number", "badly compressed"],
)
def test_what_is_wrong_with_messages_names_their_entry(given: Entry) -> None:
    with pytest.raises(DamagedFrame, match=r"^entry 1:2 of t can't be read: "):
        messages_in(given)
