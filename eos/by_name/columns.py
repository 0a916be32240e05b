"""Message columns, made from the Arrow batches that Spark hands to a data source.

The columns and their names are those of `eos.sinks.columns`, and those that the source gives a table. What the source
reads and the broker assigns, a row can't set: `INSERT INTO` a table of the source leaves them null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructField, StructType

from eos.errors import InvalidInput
from eos.sinks.columns import BUILT, ValueFormat, payload_of, recognised

ASSIGNED = ("__messageId", "__publishTime")
"""Columns of the source that the broker fills."""

_OF_THE_SOURCE: Mapping[str, str] = {"__orderingKey": "ordering_key", "__partition": "partition"}
"""Columns of the source that the sink knows by the second name only."""


@dataclass(frozen=True, slots=True)
class WrittenColumns:
    """Which columns of a DataFrame become what.

    Attributes:
        written: the columns as the sink has them: without those that the broker assigns, and by its names.
        places: {a message's part: the column's place in a batch}; no "value" where the payload is built.
        payload: {a field of the payload that is built: the column's place}; empty where it is the column `value`.
        assigned: {a column that must be null: its place}.
    """

    written: StructType
    places: Mapping[str, int]
    payload: Mapping[str, int]
    assigned: Mapping[str, int]

    def message(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the message columns of a batch. Raises InvalidInput for a value that has no place in a message."""
        for name, place in self.assigned.items():
            if batch.column(place).null_count < batch.num_rows:
                raise InvalidInput(
                    f"Column {name!r} has values, but the broker assigns it to each message. Leave the column out, or "
                    "set it to null."
                )
        parts = {name: _part(name, batch.column(place)) for name, place in self.places.items()}
        if self.payload:
            values = [batch.column(place) for place in self.payload.values()]
            parts["value"] = pa.StructArray.from_arrays(values, names=list(self.payload))
        return pa.RecordBatch.from_arrays(list(parts.values()), names=list(parts))


def columns_of(schema: StructType, value_format: ValueFormat, *, topic_given: bool) -> WrittenColumns:
    """Return what becomes of the columns of a DataFrame; runs nothing.

    Args: the DataFrame's schema; how a payload comes about; whether an option names a topic.

    Raises InvalidInput: a column is unknown, missing, doubled or of a wrong type.
    """
    assigned = {field.name: place for place, field in enumerate(schema.fields) if field.name in ASSIGNED}
    kept = [(place, field) for place, field in enumerate(schema.fields) if field.name not in ASSIGNED]
    written = StructType([_renamed(field) for _, field in kept])
    found = recognised(written, value_format, topic_given=topic_given)
    place_of = {field.name: place for (place, _), field in zip(kept, written.fields, strict=True)}
    payload = payload_of(written).fieldNames() if value_format in BUILT else []
    return WrittenColumns(
        written,
        {name: place_of[column] for name, column in found.items()},
        {name: place_of[name] for name in payload},
        assigned,
    )


def _renamed(field: StructField) -> StructField:
    return StructField(_OF_THE_SOURCE.get(field.name, field.name), field.dataType, field.nullable)


def _part(name: str, column: pa.Array) -> pa.Array:
    if name != "value" and pa.types.is_timestamp(column.type):
        return _milliseconds(column)
    if name == "partition":
        try:
            return column.cast(pa.int32())
        except pa.ArrowInvalid as error:
            raise InvalidInput(f"Column 'partition' holds a number that no partition has: {error}.") from error
    return column


def _milliseconds(times: pa.Array) -> pa.Array:
    """Return the milliseconds since 1970 of timestamps in microseconds, rounded down as Spark's unix_millis does."""
    micros = times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64())
    towards_zero = pc.divide(micros, 1000)
    above = pc.greater(pc.multiply(towards_zero, 1000), micros)
    return pc.subtract(towards_zero, above.cast(pa.int64()))
