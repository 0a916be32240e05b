"""The columns of the source: which part of a message each one is, and in which types it is given.

A query gets the columns that it names by `.schema("value binary, __key string")`, in that order, and
what it doesn't name isn't decoded. Without a schema it gets all of them, each in its first type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from eos.errors import InvalidInput
from eos.option_names import did_you_mean
from eos.pulsar.protocol.topics import split_partition
from eos.pulsar.wire.decoding import Column, decode, decode_with_payloads
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.fields import Places
from eos.pulsar.wire.message_id import EntryId
from eos.source.errors import UnreadableMessage, stored_at
from eos.source.value_schema import TypedValues
from eos.spark.pyspark_api import arrow_schema, arrow_type

_ID = StructType(
    [StructField("ledger", LongType()), StructField("entry", LongType()), StructField("batchIndex", IntegerType())]
)
_BYTES: tuple[DataType, ...] = (BinaryType(), StringType())
_TIME: tuple[DataType, ...] = (TimestampType(), LongType())

DAMAGE, DAMAGED_VALUE = "__damage", "__damagedValue"


@dataclass(frozen=True, slots=True)
class MessagePart:
    """One column.

    Attributes:
        name: of the column.
        types: the types it is given in; the first is the default.
        decoded: the decoder's column; None where every message of a topic partition has the same.
        meaning: one line of the docs.
        asked: whether only a query that names it gets it.
    """

    name: str
    types: tuple[DataType, ...]
    decoded: Column | None
    meaning: str
    asked: bool = False


PARTS: tuple[MessagePart, ...] = (
    MessagePart("value", _BYTES, "value", "the payload; null where the producer sent null"),
    MessagePart("__key", _BYTES, "key", "the key, or null"),
    MessagePart("__topic", (StringType(),), None, "the topic's full name, without the partition"),
    MessagePart("__partition", (IntegerType(),), None, "the partition's number; null for a topic without partitions"),
    MessagePart(
        "__messageId", (_ID,), "message_id", "where it is stored; `batchIndex` is -1 for a message outside a batch"
    ),
    MessagePart(
        "__publishTime", _TIME, "publish_time", "when the producer sent it; a `bigint` is milliseconds since 1970"
    ),
    MessagePart("__eventTime", _TIME, "event_time", "the event time that the producer gave, or null"),
    MessagePart(
        "__messageProperties", (MapType(StringType(), StringType()),), "properties", "the properties; perhaps none"
    ),
    MessagePart("__orderingKey", _BYTES, "ordering_key", "the ordering key, or null"),
    MessagePart(
        "__producerName", (StringType(),), "producer_name", "the name of the producer that sent it", asked=True
    ),
    MessagePart(
        "__schemaVersion",
        (LongType(), BinaryType()),
        "schema_version",
        "the version of the topic's schema that the producer named, from 0, or null",
        asked=True,
    ),
    MessagePart(
        DAMAGE,
        (StringType(),),
        None,
        "with `onDamagedEntry=keep` why an entry or a message cannot be read, otherwise null",
        asked=True,
    ),
    MessagePart(
        DAMAGED_VALUE,
        (BinaryType(),),
        None,
        "with `onDamagedEntry=keep` the payload of a message that cannot be read, as far as it is known",
        asked=True,
    ),
)
"""Every column: in the order of a read without a schema, and then those that a query must name."""

_BY_NAME = {part.name: part for part in PARTS}

ALL = StructType([StructField(part.name, part.types[0]) for part in PARTS if not part.asked])
"""The columns of a read without a schema."""


def all_with(value: DataType) -> StructType:
    """Return what a read without a schema gives where `value` has another type."""
    return StructType([StructField("value", value), *ALL.fields[1:]])


def checked(schema: StructType, value: DataType | None = None, *, keeps_damaged: bool = False) -> None:
    """Raise InvalidInput for a column that the source doesn't have, or not in this type, and for one that is missing.

    Args: the declared schema; the type of `value` where the topics' schema gives it; whether what can't be read comes
    as a row that only the column for it tells from others.
    """
    if keeps_damaged != (DAMAGE in schema.fieldNames()):
        raise InvalidInput(
            f"onDamagedEntry=keep and the column {DAMAGE} belong together: a row of what can't be read has nulls, and "
            f'{DAMAGE} says why. Set the option and name the column, such as .schema("value binary, {DAMAGE} string"), '
            "or neither."
        )
    for field in schema.fields:
        part = _BY_NAME.get(field.name)
        if part is None:
            raise InvalidInput(
                f"the Pulsar source has no column {field.name!r}.{did_you_mean(field.name, _BY_NAME)} "
                f"It has {', '.join(_BY_NAME)}."
            )
        typed = value is not None and part.name == "value"
        types = (value,) if value is not None and typed else part.types
        if field.dataType not in types:
            declared, given = field.dataType.simpleString(), [kind.simpleString() for kind in types]
            unseen = ", where each part may be null and has no comment. Leave NOT NULL and COMMENT out"
            raise InvalidInput(
                f"column {field.name!r} can't be {declared}: "
                f"{'by the registered schema it is' if typed else 'the Pulsar source gives it as'} "
                f"{' or '.join(given)}{unseen if declared in given else ''}{_LTZ if _is_ntz(field, types) else ''}."
            )
        if not field.nullable:
            raise InvalidInput(f"column {field.name!r} is declared not null; the Pulsar source's columns are nullable.")


_LTZ = ". Where spark.sql.timestampType is TIMESTAMP_NTZ, write timestamp_ltz"


def _is_ntz(field: StructField, types: tuple[DataType, ...]) -> bool:
    return isinstance(field.dataType, TimestampNTZType) and TimestampType() in types


class SourceColumns:
    """Turns entries of one physical topic into record batches of exactly the declared schema."""

    def __init__(self, schema: StructType, topic: str, typed: TypedValues | None = None) -> None:
        """Args: a checked schema; the physical topic; what decodes `value`, None where it is bytes."""
        self._schema: pa.Schema = arrow_schema(schema)
        self._parts = [_BY_NAME[field.name] for field in schema.fields]
        self._wanted = {part.decoded for part in self._parts if part.decoded is not None}
        self._typed = typed if "value" in self._wanted else None
        if self._typed is not None:
            self._wanted.remove("value")
        self._topic = topic
        self._constants = dict(zip(("__topic", "__partition"), split_partition(topic), strict=True))

    def batch(self, entries: Sequence[Entry], without: Sequence[int] = ()) -> pa.RecordBatch:
        """Return the messages of these entries.

        Args: the entries; which of their messages to leave out. Default: none.

        Raises UnreadableMessage, InvalidInput, DamagedFrame.
        """
        if self._typed is None:
            decoded, typed = decode(entries, self._wanted), None
        else:
            decoded, values = decode_with_payloads(entries, self._wanted | self._typed.needs(entries))
        messages: Places = np.arange(decoded.num_rows)
        if without:
            messages = np.delete(messages, without)
            decoded = decoded.take(pa.array(messages))
        if self._typed is not None:
            kind = self._schema.field("value").type
            typed = self._typed.decode(values.only(messages) if without else values, decoded, entries, messages, kind)
        columns = [
            typed
            if part.name == "value" and typed is not None
            else self._column(part, field, decoded, entries, messages)
            for part, field in zip(self._parts, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def of_unreadable_message(self, entry: Entry, row: int, why: str) -> pa.RecordBatch:
        """Return the row of a message that can't be read: the columns that can, nulls for the others, and why.

        Args: its entry; which of its messages; the words.
        """
        decoded = decode([entry], self._wanted | {"value"}).slice(row, 1)
        known = {DAMAGED_VALUE: decoded.column("value")}
        for part, field in zip(self._parts, self._schema, strict=True):
            if part.decoded is not None and (part.name != "value" or self._typed is None):
                with suppress(pa.ArrowInvalid):
                    known[part.name] = _CONVERSIONS.get(part.decoded, _cast)(decoded.column(part.decoded), field.type)
        return self._damaged(known, why)

    def of_damaged_entry(self, entry: EntryId | None, why: str) -> pa.RecordBatch:
        """Return the row of an entry that can't be read: where it is stored, where that is known, and why."""
        if entry is None:
            return self._damaged({}, why)
        place = {"ledger": entry.ledger, "entry": entry.entry, "batchIndex": -1}
        return self._damaged({"__messageId": pa.array([place], arrow_type(_ID))}, why)

    def _damaged(self, known: Mapping[str, pa.Array], why: str) -> pa.RecordBatch:
        """Return a row. Its columns stay Arrow's: Python has no such time as a hostile producer may name."""
        constants = {**self._constants, DAMAGE: why}
        columns = [
            known[field.name] if field.name in known else pa.array([constants.get(field.name)], field.type)
            for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _column(
        self, part: MessagePart, field: pa.Field, decoded: pa.RecordBatch, entries: Sequence[Entry], messages: Places
    ) -> pa.Array:
        if part.decoded is None:
            return pa.repeat(pa.scalar(self._constants.get(part.name), field.type), decoded.num_rows)
        column = decoded.column(part.decoded)
        convert = _CONVERSIONS.get(part.decoded, _cast)
        try:
            return convert(column, field.type)
        except pa.ArrowInvalid as error:
            row = int(messages[_first_wrong(column, field.type, convert)])
            others = [kind for kind in part.types if arrow_type(kind) != field.type]
            raise UnreadableMessage(
                row,
                f"message {stored_at(entries, row)} of {self._topic}: column {part.name!r} can't be read as "
                f"{field.type}: {error}. "
                f"Declare it as {(others or part.types)[0].simpleString()} by .schema(…).",
            ) from error


def _first_wrong(column: pa.Array, target: pa.DataType, convert: Callable[[pa.Array, pa.DataType], pa.Array]) -> int:
    for row in range(len(column)):
        try:
            convert(column.slice(row, 1), target)
        except pa.ArrowInvalid:
            return row
    return 0


def _cast(column: pa.Array, target: pa.DataType) -> pa.Array:
    return column if column.type.equals(target) else pc.cast(column, target)


def _time(column: pa.Array, target: pa.DataType) -> pa.Array:
    return column if pa.types.is_integer(target) else column.cast(pa.timestamp("ms", target.tz)).cast(target)


def _message_id(column: pa.Array, target: pa.DataType) -> pa.Array:
    return pa.StructArray.from_arrays(column.flatten(), fields=list(target))


def _version(column: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_binary(target):
        return column
    versions = column.dictionary_encode()  # few, of many messages
    numbers = [_number(one.as_py()) for one in versions.dictionary]
    return pa.array(numbers, target).take(versions.indices)


def _number(version: bytes) -> int | None:
    """Return a schema version, which the broker's registry writes in 8 bytes, as its number. Empty: there is none."""
    if len(version) > 8:
        raise pa.ArrowInvalid(f"a schema version of {len(version)} bytes")
    return int.from_bytes(version, "big", signed=True) if version else None


_CONVERSIONS: dict[Column, Callable[[pa.Array, pa.DataType], pa.Array]] = {
    "publish_time": _time,
    "event_time": _time,
    "message_id": _message_id,
    "schema_version": _version,
}
