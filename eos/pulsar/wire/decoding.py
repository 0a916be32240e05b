"""Entries as columns: the messages of many entries become one record batch."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

import pyarrow as pa

from eos.errors import DamagedFrame, InvalidInput
from eos.pulsar.wire.batch import unpack
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata, SingleMessageMetadata

Column = Literal[
    "value",
    "key",
    "ordering_key",
    "event_time",
    "publish_time",
    "properties",
    "message_id",
    "producer_name",
    "sequence_id",
    "schema_version",
]

COLUMNS: Mapping[Column, pa.DataType] = {
    "value": pa.binary(),
    "key": pa.binary(),
    "ordering_key": pa.binary(),
    "event_time": pa.int64(),
    "publish_time": pa.int64(),
    "properties": pa.map_(pa.string(), pa.string()),
    "message_id": pa.struct([("ledger", pa.int64()), ("entry", pa.int64()), ("batch_index", pa.int32())]),
    "producer_name": pa.string(),
    "sequence_id": pa.int64(),
    "schema_version": pa.binary(),
}
"""Each column's type. Times are milliseconds since 1970; a batch index of -1 is a message outside a batch."""

assert set(COLUMNS) == set(get_args(Column))


def decode(entries: Sequence[Entry], wanted: Collection[Column]) -> pa.RecordBatch:
    """Return the messages of these entries, in order, as one record batch.

    Messages that compaction took out are left out.

    Args:
        entries: at least none; chunks of one message must have been assembled (`ChunkAssembler`).
        wanted: the columns, in the order of COLUMNS; what isn't wanted isn't decoded.

    Raises InvalidInput for an encrypted entry and for a single chunk, DamagedFrame for one that can't be read;
    both name topic and entry.
    """
    names = [name for name in COLUMNS if name in wanted]
    rows = [row for entry in entries for row in _rows(entry)]
    columns = [pa.array([row[name] for row in rows], COLUMNS[name]) for name in names]
    if not names:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([(name, COLUMNS[name]) for name in names]))


def _rows(entry: Entry) -> Iterator[dict[str, Any]]:
    metadata = entry.metadata
    if metadata.encryption_keys:
        names = ", ".join(key.key for key in metadata.encryption_keys)
        raise InvalidInput(f"{entry} is encrypted (by the key {names}); eos can't read encrypted messages")
    if entry.chunked:
        raise InvalidInput(f"{entry} is one chunk of a message; assemble its chunks first")
    try:
        messages = list(unpack(metadata, entry.packed))
    except DamagedFrame as damage:
        raise entry.damaged(str(damage)) from damage
    for index, (own, data) in enumerate(messages):
        if isinstance(own, SingleMessageMetadata) and own.compacted_out:
            continue
        yield {
            "value": None if own.null_value else data,
            "key": _key(entry, own),
            "ordering_key": own.ordering_key if own.HasField("ordering_key") else None,
            "event_time": own.event_time if own.HasField("event_time") else None,
            "publish_time": metadata.publish_time,
            "properties": [(pair.key, pair.value) for pair in own.properties],
            "message_id": {
                "ledger": entry.id.ledger,
                "entry": entry.id.entry,
                "batch_index": index if entry.batched else -1,
            },
            "producer_name": metadata.producer_name,
            "sequence_id": own.sequence_id if own.HasField("sequence_id") else metadata.sequence_id + index,
            "schema_version": metadata.schema_version if metadata.HasField("schema_version") else None,
        }


def _key(entry: Entry, own: MessageMetadata | SingleMessageMetadata) -> bytes | None:
    if not own.HasField("partition_key") or own.null_partition_key:
        return None
    if not own.partition_key_b64_encoded:
        return own.partition_key
    try:
        return base64.b64decode(own.partition_key, validate=True)
    except binascii.Error as error:
        raise entry.damaged(f"a key that is no base64, though it says so: {own.partition_key!r}") from error
