"""Entries read message by message, with protobuf: slow, plain, and what the decoder's columns must equal."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from eos.pulsar.wire.batch import unpack
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata, SingleMessageMetadata

_SIZE = struct.Struct(">I")


def rows_one_by_one(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return each message as a row with every column."""
    return [row for entry in entries for row in _rows(entry)]


def _rows(entry: Entry) -> Iterator[dict[str, Any]]:
    metadata = entry.metadata
    alone = not metadata.HasField("num_messages_in_batch")
    messages = unpack(metadata, bytes(entry.packed)) if alone else _batch(entry)
    for index, (own, data) in enumerate(messages):
        if isinstance(own, SingleMessageMetadata) and own.compacted_out:
            continue
        has_own = isinstance(own, SingleMessageMetadata) and own.HasField("sequence_id")
        yield {
            "value": None if own.null_value else data,
            "key": _key(own),
            "ordering_key": own.ordering_key if own.HasField("ordering_key") else None,
            "event_time": own.event_time if own.HasField("event_time") else None,
            "publish_time": metadata.publish_time,
            "properties": sorted({_text(pair.key): _text(pair.value) for pair in own.properties}.items()),
            "message_id": {
                "ledger": entry.id.ledger,
                "entry": entry.id.entry,
                "batch_index": -1 if alone else index,
            },
            "producer_name": _text(metadata.producer_name),
            "sequence_id": own.sequence_id if has_own else metadata.sequence_id + index,
            "schema_version": metadata.schema_version if metadata.HasField("schema_version") else None,
        }


def _batch(entry: Entry) -> Iterator[tuple[MessageMetadata | SingleMessageMetadata, bytes]]:
    """Yield the messages of a batch. The decoder reads no property of a message that compaction took out.

    So such a property may hold anything. Protobuf refuses the whole message for it: here that message is left bare.
    """
    plain, bare, at = bytes(entry.payload), bytearray(), 0
    for _ in range(entry.num_messages):
        (size,) = _SIZE.unpack_from(plain, at)
        start = at + _SIZE.size + size
        described = plain[at + _SIZE.size : start]
        own = _parsed(described)
        at = start + own.payload_size
        if own.compacted_out:
            described = SingleMessageMetadata(payload_size=own.payload_size, compacted_out=True).SerializeToString()
        bare += _SIZE.pack(len(described)) + described + plain[start:at]
    return unpack(MessageMetadata(num_messages_in_batch=entry.num_messages), bytes(bare))


def _parsed(described: bytes) -> SingleMessageMetadata:
    try:
        return SingleMessageMetadata.FromString(described)
    except DecodeError:
        fields: Any = UnknownFieldSet(Empty.FromString(described))
        numbers = {one.field_number: one.data for one in fields}
        own = SingleMessageMetadata(
            payload_size=numbers.get(SingleMessageMetadata.PAYLOAD_SIZE_FIELD_NUMBER, 0),
            compacted_out=bool(numbers.get(SingleMessageMetadata.COMPACTED_OUT_FIELD_NUMBER, 0)),
        )
        if not own.compacted_out:
            raise
        return own


def _text(given: str | bytes) -> str:
    """Return a text; what is none in UTF-8 comes from protobuf as bytes, and is shown with marks in it."""
    return given.decode("utf-8", "replace") if isinstance(given, bytes) else given


def _key(own: MessageMetadata | SingleMessageMetadata) -> bytes | None:
    if not own.HasField("partition_key") or own.null_partition_key:
        return None
    return base64.b64decode(own.partition_key) if own.partition_key_b64_encoded else own.partition_key
