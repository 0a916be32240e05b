"""Frames on their way: what a producer sends of a chunk, what a broker stores of it, and what a consumer gets."""

from __future__ import annotations

import base64
from typing import Any

from eos.pulsar.wire.batch import Chunk
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.frames import Frame, FrameDecoder, encode_message
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandMessage,
    MessageIdData,
    MessageMetadata,
    SingleMessageMetadata,
)
from eos.pulsar.wire.sending import send_frame
from eos.pulsar.wire.txn import TxnId


def frame_of(chunk: Chunk, txn: TxnId | None = None, sequence_id: int = 0) -> Frame:
    """Return the frame that a producer sends."""
    buffers = send_frame(
        chunk, producer_id=4, producer_name="p-1", sequence_id=sequence_id, publish_time_ms=1_000, txn=txn
    )
    (frame,) = FrameDecoder().feed(b"".join(buffers))
    return frame


def stored(chunk: Chunk, place: int = 0, txn: TxnId | None = None, sequence_id: int = 0) -> Entry:
    """Return the entry that a broker makes of it, the one of this number in ledger 1."""
    (sent,) = frame_of(chunk, txn, sequence_id).entries
    return Entry(EntryId(1, place), sent.metadata, sent.packed, len(sent.packed), "t")


def received(entry: Entry) -> bytes:
    """Return the frame by which a consumer gets an entry."""
    where = MessageIdData(ledger_id=entry.id.ledger, entry_id=entry.id.entry)
    command = BaseCommand(type=BaseCommand.MESSAGE, message=CommandMessage(consumer_id=1, message_id=where))
    return b"".join(bytes(part) for part in encode_message(command, entry.metadata, [entry.packed]))


def as_row(own: MessageMetadata | SingleMessageMetadata, data: bytes) -> dict[str, Any]:
    """Return what a consumer sees of a message."""
    key = base64.b64decode(own.partition_key) if own.partition_key_b64_encoded else own.partition_key
    return {
        "value": None if own.null_value else data,
        "key": key if own.HasField("partition_key") else None,
        "ordering_key": own.ordering_key if own.HasField("ordering_key") else None,
        "event_time": own.event_time if own.HasField("event_time") else None,
        "properties": [(pair.key, pair.value) for pair in own.properties],
    }
