"""Entries as columns: the messages of many entries become one record batch.

A column of bytes is taken from the entries' own bytes in one go: where its parts begin and end, in
turn, are the offsets of an Arrow array whose every other row is a part. No row becomes a Python
object, except a property that is not valid UTF-8.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.fields import Bytes, Flags, MessageField, Places, parse
from eos.pulsar.wire.headers import (
    EVENT_TIME,
    KEY_B64_ENCODED,
    NULL_KEY,
    NULL_VALUE,
    ORDERING_KEY,
    PARTITION_KEY,
    PROPERTIES,
    SEQUENCE_ID,
)
from eos.pulsar.wire.keys import first_not_base64, undo_base64
from eos.pulsar.wire.rows import MessageRows, rows_of
from eos.pulsar.wire.spans import Payloads, spans

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

GROUP_BYTES = 4 * 1024 * 1024
"""Bytes of entries that are decoded together, their messages decompressed."""

# glibc gives freed memory back once more lies free than twice the largest block that it ever took on its own
# (mallopt(3), M_TRIM_THRESHOLD), so each group would fault in its arrays again: a third of the time. Others don't care.
np.empty(16 * 1024 * 1024, dtype=np.uint8)

_FIELDS: Mapping[Column, frozenset[int]] = {
    "value": frozenset({NULL_VALUE}),
    "key": frozenset({PARTITION_KEY, KEY_B64_ENCODED, NULL_KEY}),
    "ordering_key": frozenset({ORDERING_KEY}),
    "event_time": frozenset({EVENT_TIME}),
    "sequence_id": frozenset({SEQUENCE_ID}),
}
_NONE = pa.array([], pa.binary())
_NAME, _VALUE = 1, 2  # field numbers of KeyValue
_PAIR_TAGS = np.zeros(256, dtype=np.bool_)
_PAIR_TAGS[[_NAME << 3 | 2, _VALUE << 3 | 2]] = True


def decode(entries: Sequence[Entry], wanted: Collection[Column]) -> pa.RecordBatch:
    """Return the messages of these entries, in order, as one record batch of less than 2 GB.

    Messages that compaction took out are left out. Where an entry's messages have no sequence ids of their
    own, they are counted on from the entry's. Of two properties of one name the last one counts.

    Args:
        entries: any number; the chunks of a message must have been assembled (`ChunkAssembler`).
        wanted: the columns, which come in the order of COLUMNS; what isn't wanted isn't decoded.

    Raises InvalidInput for an encrypted entry and for a single chunk, DamagedFrame for an entry that can't be read;
    both name topic and entry.
    """
    return _batch([_columns(group, wanted) for group in _groups(entries)], wanted)


def decode_with_payloads(entries: Sequence[Entry], wanted: Collection[Column]) -> tuple[pa.RecordBatch, Payloads]:
    """Return what `decode` does, and the messages' values apart: most often where they lie, without a copy.

    Args, Raises: as of `decode`; `value` is not among the columns.
    """
    groups = [_columns(group, wanted, {NULL_VALUE}) for group in _groups(entries)]
    values = [_payloads(rows) for rows, _ in groups]
    both = values[0] if len(values) == 1 else Payloads.of(pa.concat_arrays([one.column for one in values] or [_NONE]))
    return _batch(groups, wanted), both


_Group = tuple[MessageRows, list[pa.Array]]


def _batch(groups: Sequence[_Group], wanted: Collection[Column]) -> pa.RecordBatch:
    names = [name for name in COLUMNS if name in wanted]
    if not names:
        count = sum(len(rows) for rows, _ in groups)
        return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), count, [None]))
    empty = [pa.array([], COLUMNS[name]) for name in names]
    parts = [columns for _, columns in groups] or [empty]
    arrays = [column[0] if len(parts) == 1 else pa.concat_arrays(column) for column in zip(*parts, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([(name, COLUMNS[name]) for name in names]))


def _groups(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    first = size = 0
    for place, entry in enumerate(entries):
        more = entry.unpacked_size
        if place > first and size + more > GROUP_BYTES:
            yield entries[first:place]
            first, size = place, 0
        size += more
    if first < len(entries):
        yield entries[first:]


def _columns(entries: Sequence[Entry], wanted: Collection[Column], more: Collection[int] = ()) -> _Group:
    """Return the messages, with the fields that their columns are made of and these, and the columns."""
    names = [name for name in COLUMNS if name in wanted]
    keep = frozenset(more).union(*(_FIELDS.get(name, ()) for name in names))
    each = {PROPERTIES} if "properties" in names else frozenset[int]()
    try:
        rows = rows_of(entries, keep, each)
        return rows, [_BUILD[name](entries, rows) for name in names]
    except _Unusual:
        rows = rows_of(entries, keep, each, quick=False)
        return rows, [_BUILD[name](entries, rows) for name in names]


class _Unusual(Exception):
    """A property holds something that only protobuf itself can read, or nothing can."""


def _field_bytes(rows: MessageRows, number: int, missing: Flags | None = None) -> pa.Array:
    field = rows.headers.fields.of(number)
    absent = field.at < 0 if missing is None else (field.at < 0) | missing
    if not absent.any():
        return spans(rows.data, field.at, field.number, None)
    at, sizes = np.where(absent, rows.headers.starts, field.at), np.where(absent, 0, field.number)
    return spans(rows.data, at, sizes, absent)


def _flags(rows: MessageRows, number: int) -> Flags | None:
    """Return which messages have this flag set; None when none has."""
    field = rows.headers.fields.by_number.get(number)
    return field.number != 0 if field is not None and field.number.any() else None


def _payloads(rows: MessageRows) -> Payloads:
    return Payloads(rows.data, rows.headers.values, rows.headers.sizes, _flags(rows, NULL_VALUE))


def _value(entries: Sequence[Entry], rows: MessageRows) -> pa.Array:
    return _payloads(rows).column


def _key(entries: Sequence[Entry], rows: MessageRows) -> pa.Array:
    keys = _field_bytes(rows, PARTITION_KEY, _flags(rows, NULL_KEY))
    in_base64 = _flags(rows, KEY_B64_ENCODED)
    if in_base64 is None:
        return keys
    encoded = pc.and_(pa.array(in_base64), keys.is_valid())
    texts = keys.filter(encoded)
    plain = undo_base64(texts)
    if plain is None:
        wrong = first_not_base64(texts)
        row = int(np.flatnonzero(encoded)[wrong])
        why = f"the key of message {rows.index[row]} is marked as base64, and is not base64: {texts[wrong].as_py()!r}"
        raise entries[rows.entry[row]].damaged(why)
    return pc.replace_with_mask(keys, encoded, plain)


def _ordering_key(entries: Sequence[Entry], rows: MessageRows) -> pa.Array:
    return _field_bytes(rows, ORDERING_KEY)


def _event_time(entries: Sequence[Entry], rows: MessageRows) -> pa.Array:
    field = rows.headers.fields.of(EVENT_TIME)
    return pa.array(field.number, mask=field.at < 0)


def _publish_time(entries: Sequence[Entry], rows: MessageRows) -> pa.Array:
    times = np.array([entry.metadata.publish_time for entry in entries], dtype=np.uint64)
    return pa.array(times.astype(np.int64)[rows.entry])


def _sequence_id(entries: Sequence[Entry], rows: MessageRows) -> pa.Array:
    first = np.array([entry.metadata.sequence_id for entry in entries], dtype=np.uint64).astype(np.int64)
    field = rows.headers.fields.of(SEQUENCE_ID)
    return pa.array(np.where(field.at < 0, first[rows.entry] + rows.index, field.number))


def _producer_name(entries: Sequence[Entry], rows: MessageRows) -> pa.Array:
    # A name that is not text comes as bytes, and is shown as other clients' properties are.
    given: list[str | bytes] = [entry.metadata.producer_name for entry in entries]
    names = [name.decode("utf-8", "replace") if isinstance(name, bytes) else name for name in given]
    return _of_entries(pa.array(names, pa.string()), rows)


def _schema_version(entries: Sequence[Entry], rows: MessageRows) -> pa.Array:
    versions = [
        entry.metadata.schema_version if entry.metadata.HasField("schema_version") else None for entry in entries
    ]
    return _of_entries(pa.array(versions, pa.binary()), rows)


def _of_entries(told: pa.Array, rows: MessageRows) -> pa.Array:
    """Return for each message what its entry tells. Most groups are of one producer, by one schema."""
    if len(told.unique()) == 1:
        return pa.repeat(told[0], len(rows))
    return told.take(pa.array(rows.entry))


def _message_id(entries: Sequence[Entry], rows: MessageRows) -> pa.Array:
    batched = np.array([entry.batched for entry in entries], dtype=np.bool_)
    parts = [
        np.array([entry.id.ledger for entry in entries], dtype=np.int64)[rows.entry],
        np.array([entry.id.entry for entry in entries], dtype=np.int64)[rows.entry],
        np.where(batched[rows.entry], rows.index, -1).astype(np.int32),
    ]
    kind = COLUMNS["message_id"]
    return pa.StructArray.from_arrays([pa.array(part) for part in parts], fields=list(kind))


def _properties(entries: Sequence[Entry], rows: MessageRows) -> pa.Array:
    owner, at, sizes = rows.headers.fields.each[PROPERTIES]
    pairs = parse(rows.data, at, at + sizes, _PAIR_TAGS, {_NAME, _VALUE})
    if not pairs.valid.all():
        raise _Unusual
    names, texts = (_pair_text(rows.data, at, pairs.of(number)) for number in (_NAME, _VALUE))
    if not (owner[:-1] < owner[1:]).all():
        last = _last_of_each(owner, names)
        owner, names, texts = owner[last], names.take(pa.array(last)), texts.take(pa.array(last))
    offsets = np.searchsorted(owner, np.arange(len(rows) + 1)).astype(np.int32)
    return pa.MapArray.from_arrays(pa.array(offsets), names, texts)


def _pair_text(data: Bytes, starts: Places, field: MessageField) -> pa.Array:
    missing = field.at < 0
    found = spans(data, np.where(missing, starts, field.at), np.where(missing, 0, field.number), None)
    try:
        return found.cast(pa.string())
    except pa.ArrowInvalid:  # other clients put any bytes into properties
        return pa.array([text.decode("utf-8", "replace") for text in found.to_pylist()], pa.string())


def _last_of_each(owner: Places, names: pa.Array) -> Places:
    """Return the places, rising, of the last property of each name in each message."""
    codes = names.dictionary_encode().indices.to_numpy().astype(np.int64)
    one = owner * (int(codes.max(initial=0)) + 1) + codes
    _, behind = np.unique(one[::-1], return_index=True)
    return np.sort(len(one) - 1 - behind)


_BUILD: Mapping[Column, Callable[[Sequence[Entry], MessageRows], pa.Array]] = {
    "value": _value,
    "key": _key,
    "ordering_key": _ordering_key,
    "event_time": _event_time,
    "publish_time": _publish_time,
    "properties": _properties,
    "message_id": _message_id,
    "producer_name": _producer_name,
    "sequence_id": _sequence_id,
    "schema_version": _schema_version,
}
