"""Entries read message by message, with protobuf: slow, plain, and what the decoder's columns must equal."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import Any

from eos.pulsar.wire.batch import unpack
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata, SingleMessageMetadata


def rows_one_by_one(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return each message as a row with every column."""
    return [row for entry in entries for row in _rows(entry)]


def _rows(entry: Entry) -> Iterator[dict[str, Any]]:
    metadata = entry.metadata
    for index, (own, data) in enumerate(unpack(metadata, bytes(entry.packed))):
        if isinstance(own, SingleMessageMetadata) and own.compacted_out:
            continue
        alone = not metadata.HasField("num_messages_in_batch")
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


def _text(given: str | bytes) -> str:
    """Return a text; what is none in UTF-8 comes from protobuf as bytes, and is shown with marks in it."""
    return given.decode("utf-8", "replace") if isinstance(given, bytes) else given


def _key(own: MessageMetadata | SingleMessageMetadata) -> bytes | None:
    if not own.HasField("partition_key") or own.null_partition_key:
        return None
    return base64.b64decode(own.partition_key) if own.partition_key_b64_encoded else own.partition_key
