"""The entries and messages that a reader hands out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eos.errors import DamagedFrame
from eos.pulsar.wire.batch import unpack
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata, SingleMessageMetadata
from eos.pulsar.wire.txn import TxnId


@dataclass(frozen=True, slots=True)
class Message:
    """One message, as a consumer sees it.

    Attributes:
        message_id: where it is stored.
        data: its bytes; None for a null value.
        key: its partition key as bytes, or None.
        properties: its properties, in no particular order.
        publish_time_ms: when its producer sent it, in milliseconds since 1970.
        event_time_ms: the application's own time, or None.
        txn: the transaction that it was written in, or None.
        producer_name: who wrote it.
        replicated_from: the cluster that a replicator brought it from; None for one that was written here.
    """

    message_id: MessageId
    data: bytes | None
    key: bytes | None
    properties: Mapping[str, str]
    publish_time_ms: int
    event_time_ms: int | None
    txn: TxnId | None
    producer_name: str
    replicated_from: str | None


def messages_in(entry: Entry) -> list[Message]:
    """Take an entry apart, in order. Raises DamagedEntry."""
    if entry.damage:
        raise entry.damaged(entry.damage)
    where, metadata = entry.id, entry.metadata
    try:
        return [
            _message(MessageId(where.ledger, where.entry, index if entry.batched else -1), metadata, own, data)
            for index, (own, data) in enumerate(unpack(metadata, entry.packed))
            if not (isinstance(own, SingleMessageMetadata) and own.compacted_out)
        ]
    except DamagedFrame as damage:
        raise entry.damaged(str(damage)) from damage


def _message(
    message_id: MessageId, frame: MessageMetadata, own: MessageMetadata | SingleMessageMetadata, data: bytes
) -> Message:
    return Message(
        message_id=message_id,
        data=None if own.null_value else data,
        key=own.partition_key if own.HasField("partition_key") else None,
        properties={pair.key: pair.value for pair in own.properties},
        publish_time_ms=frame.publish_time,
        event_time_ms=own.event_time if own.HasField("event_time") else None,
        txn=TxnId.of(frame),
        producer_name=frame.producer_name,
        replicated_from=frame.replicated_from if frame.HasField("replicated_from") else None,
    )
