"""Message columns, made from the Arrow batches that Spark hands to a data source.

The columns and their names are those of `eos.sinks.columns`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from eos.errors import InvalidInput
from eos.pickling import PickledByName
from eos.sinks.columns import ColumnRoles, ValueFormat, roles_of


@dataclass(frozen=True, slots=True)
class WrittenColumns(PickledByName):
    """Which columns of a DataFrame become what.

    Attributes:
        given: the columns of the DataFrame.
        roles: the use of each of them.
        places: {a message's part: the column's place in a batch}; no "value" where the payload is built.
        payload: {a field of the payload that is built: the column's place}; empty where it is the column `value`.
    """

    given: StructType
    roles: ColumnRoles
    places: Mapping[str, int]
    payload: Mapping[str, int]

    def message(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the message columns of a batch. Raises InvalidInput for a value that has no place in a message."""
        parts = {name: _part(name, batch.column(place)) for name, place in self.places.items()}
        if self.payload:
            values = [batch.column(place) for place in self.payload.values()]
            parts["value"] = pa.StructArray.from_arrays(values, names=list(self.payload))
        return pa.RecordBatch.from_arrays(list(parts.values()), names=list(parts))


def columns_of(
    schema: StructType, value_format: ValueFormat, *, topic: str | None, named: Mapping[str, str]
) -> WrittenColumns:
    """Return the use of each column of a DataFrame. Runs nothing.

    Args: the DataFrame's schema; how a payload comes about; the topic that an option names, or None; the columns that
    options name, as `roles_of` takes them.

    Raises InvalidInput: a column is unknown, missing, doubled or of a wrong type.
    """
    roles = roles_of(schema, value_format, topic=topic, named=named)
    place_of = {name: place for place, name in enumerate(schema.fieldNames())}
    return WrittenColumns(
        schema,
        roles,
        {part: place_of[column] for part, column in roles.parts.items()},
        {name: place_of[name] for name in roles.payload.fieldNames()},
    )


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
