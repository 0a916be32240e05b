"""Frames that send: what the command and the metadata say of the messages."""

from __future__ import annotations

from eos.pulsar.wire.batch import BatchEncoder, unpack
from eos.pulsar.wire.frames import FrameDecoder
from eos.pulsar.wire.pulsar_pb2 import BaseCommand
from eos.pulsar.wire.sending import single_message_frame
from eos.pulsar.wire.txn import TxnId
from tests.vectors.frames import rows
from tests.wire import frame_of


def test_a_send_names_its_transaction_in_command_and_metadata() -> None:
    (chunk,) = BatchEncoder().chunks(rows("value"))
    frame = frame_of(chunk, TxnId(1 << 48, 9), sequence_id=40)
    for described in (frame.command.send, frame.entries[0].metadata):
        assert (described.txnid_most_bits, described.txnid_least_bits) == (1 << 48, 9)
        assert (described.sequence_id, described.highest_sequence_id) == (40, 44)
    assert (frame.command.type, frame.command.send.num_messages) == (BaseCommand.SEND, 5)
    assert frame.entries[0].metadata.num_messages_in_batch == 5


def test_a_send_outside_a_transaction_names_none() -> None:
    (chunk,) = BatchEncoder().chunks(rows("value"))
    frame = frame_of(chunk)
    for described in (frame.command.send, frame.entries[0].metadata):
        assert not described.HasField("txnid_most_bits")
        assert not described.HasField("txnid_least_bits")


def test_a_batch_of_one_is_still_a_batch() -> None:
    (chunk,) = BatchEncoder().chunks(rows("value").slice(0, 1))
    metadata = frame_of(chunk).entries[0].metadata
    assert metadata.HasField("num_messages_in_batch")


def test_a_single_message_is_none() -> None:
    buffers = single_message_frame(
        b"{}",
        producer_id=4,
        producer_name="p",
        sequence_id=3,
        publish_time_ms=5,
        txn=None,
        key="k",
        properties={"kind": "intent"},
    )
    (frame,) = FrameDecoder().feed(b"".join(buffers))
    assert not frame.entries[0].metadata.HasField("num_messages_in_batch")
    assert frame.command.send.num_messages == 1
    ((own, data),) = unpack(frame.entries[0].metadata, frame.entries[0].packed)
    assert own.partition_key == b"k"
    assert [(pair.key, pair.value) for pair in own.properties] == [("kind", "intent")]
    assert data == b"{}"
