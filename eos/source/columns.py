"""The columns of the source: which part of a message each one is, and in which types it is given.

A query gets the columns that it names by `.schema("value binary, __key string")`, in that order, and
what it doesn't name isn't decoded. Without a schema it gets all of them, each in its first type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    TimestampType,
)

from eos.errors import InvalidInput
from eos.option_names import did_you_mean
from eos.pulsar.protocol.topics import split_partition
from eos.pulsar.wire.decoding import Column, decode
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.fields import Places
from eos.source.errors import UnreadableMessage, stored_at
from eos.source.value_schema import TypedValues
from eos.spark.pyspark_api import arrow_schema, arrow_type

_ID = StructType(
    [StructField("ledger", LongType()), StructField("entry", LongType()), StructField("batchIndex", IntegerType())]
)
_BYTES: tuple[DataType, ...] = (BinaryType(), StringType())
_TIME: tuple[DataType, ...] = (TimestampType(), LongType())


@dataclass(frozen=True, slots=True)
class MessagePart:
    """One column.

    Attributes:
        name: of the column.
        types: the types it is given in; the first is the default.
        decoded: the decoder's column; None where the topic's name says it all.
        meaning: one line of the docs.
    """

    name: str
    types: tuple[DataType, ...]
    decoded: Column | None
    meaning: str


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
)
"""Every column, in the order of a read without a schema."""

_BY_NAME = {part.name: part for part in PARTS}

ALL = StructType([StructField(part.name, part.types[0]) for part in PARTS])
"""The columns of a read without a schema."""


def all_with(value: DataType) -> StructType:
    """Return what a read without a schema gives where `value` has another type."""
    return StructType([StructField("value", value), *ALL.fields[1:]])


def checked(schema: StructType, value: DataType | None = None) -> None:
    """Raise InvalidInput for a column that the source doesn't have, or not in this type.

    Args: the declared schema; the type of `value` where the topics' schema gives it.
    """
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
            given = " or ".join(kind.simpleString() for kind in types)
            raise InvalidInput(
                f"column {field.name!r} can't be {field.dataType.simpleString()}: "
                f"{'by the registered schema it is' if typed else 'the Pulsar source gives it as'} {given}."
            )
        if not field.nullable:
            raise InvalidInput(f"column {field.name!r} is declared not null; the Pulsar source's columns are nullable.")


class SourceColumns:
    """Turns entries of one physical topic into record batches of exactly the declared schema."""

    def __init__(self, schema: StructType, topic: str, typed: TypedValues | None = None) -> None:
        """Args: a checked schema; the physical topic; what decodes `value`, None where it is bytes."""
        self._schema: pa.Schema = arrow_schema(schema)
        self._parts = [_BY_NAME[field.name] for field in schema.fields]
        self._wanted = {part.decoded for part in self._parts if part.decoded is not None}
        self._typed = typed if "value" in self._wanted else None
        if self._typed is not None:
            self._wanted |= self._typed.needs
        self._topic = topic
        self._name, self._partition = split_partition(topic)

    def batch(self, entries: Sequence[Entry], without: Sequence[int] = ()) -> pa.RecordBatch:
        """Return the messages of these entries.

        Args: the entries; which of their messages to leave out. Default: none.

        Raises UnreadableMessage, InvalidInput, DamagedFrame.
        """
        decoded = decode(entries, self._wanted)
        messages: Places = np.arange(decoded.num_rows)
        if without:
            messages = np.delete(messages, without)
            decoded = decoded.take(pa.array(messages))
        if self._typed is not None:
            value = self._typed.decode(decoded, entries, messages, self._schema.field("value").type)
            decoded = decoded.set_column(decoded.schema.get_field_index("value"), "value", value)
        columns = [
            self._column(part, field, decoded, entries, messages)
            for part, field in zip(self._parts, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _column(
        self, part: MessagePart, field: pa.Field, decoded: pa.RecordBatch, entries: Sequence[Entry], messages: Places
    ) -> pa.Array:
        if part.decoded is None:
            constant = self._name if part.name == "__topic" else self._partition
            return pa.repeat(pa.scalar(constant, field.type), decoded.num_rows)
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


_CONVERSIONS: dict[Column, Callable[[pa.Array, pa.DataType], pa.Array]] = {
    "publish_time": _time,
    "event_time": _time,
    "message_id": _message_id,
}
