"""Which columns of a DataFrame become which part of a Pulsar message.

    value         binary or string, nullable   the payload (`value_format="raw"`)
    key           binary or string, nullable   routes the row and is kept with the message
    ordering_key  binary or string, nullable   orders Key_Shared consumers
    event_time    timestamp or bigint (ms)     the message's event time
    properties    map<string,string>           the message's properties
    deliver_at    timestamp or bigint (ms)     when Shared and Key_Shared subscriptions are to get it; null: at once
    topic         string                       the row's topic, where neither the sink nor the write names one
    partition     integer                      the row's partition, in place of the key's

The names that the source gives its columns, such as `__key` and `__eventTime`, mean the same. So the rows of
`select("*")` from a source can be written as they are. An option of the sink, such as `key="id"`, names another column.

With `value_format="json"`, "avro" and "protobuf" the payload is built from columns. Then only the names with two
underscores and the options make a column a part of the message. Every other column is a field of the payload, whatever
its name. JSON is written as by Spark's `to_json`, AVRO by the schema of the topic, protobuf by its descriptor.
With "schema" the column `value` has the type of the topic's schema, as the source reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pyspark.sql.types import (
    BinaryType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from eos.errors import InvalidInput
from eos.option_names import did_you_mean
from eos.pickling import PickledByName

ValueFormat = Literal["raw", "json", "avro", "protobuf", "schema"]
VALUE_FORMATS: tuple[ValueFormat, ...] = ("raw", "json", "avro", "protobuf", "schema")
BUILT: tuple[ValueFormat, ...] = ("json", "avro", "protobuf")
"""Those whose payload is built from columns."""
ENCODED: tuple[ValueFormat, ...] = ("avro", "protobuf", "schema")
"""Those whose payload is encoded by the topic's schema, once Spark has made the rows."""
_VALUE: Mapping[ValueFormat, str] = {"raw": "type binary or string", "schema": "the type of the topic's schema"}

ALIASES = {
    "__key": "key",
    "__orderingKey": "ordering_key",
    "__eventTime": "event_time",
    "__messageProperties": "properties",
    "__deliverAt": "deliver_at",
    "__topic": "topic",
    "__partition": "partition",
}
"""{a column's name: the part of a message that the column gives, whatever the format}. The source's names, and one."""

NAMED = ("key", "ordering_key", "event_time", "properties", "deliver_at", "partition")
"""The parts of a message whose column an option of the same name can name."""

ASSIGNED = ("__messageId", "__publishTime")
"""Columns of the source that no row can set."""

_HEADERS = (
    " Kafka's headers are properties here, whose values are text: map_from_entries(transform(headers, h -> (h.key, "
    "decode(h.value, 'UTF-8')))) as properties."
)

_ROW_TOPIC = {True: "__topic", False: "topic"}
"""{whether the payload is built: the column by which a row names its topic}."""

_BYTES = (BinaryType, StringType)
_WHOLE = (ByteType, ShortType, IntegerType, LongType)
_EXPECTED: dict[str, tuple[tuple[type[DataType], ...], str]] = {
    "value": (_BYTES, "binary or string"),
    "key": (_BYTES, "binary or string"),
    "ordering_key": (_BYTES, "binary or string"),
    "event_time": ((TimestampType, LongType), "timestamp, or bigint in milliseconds"),
    "properties": ((MapType,), "map<string,string>"),
    "deliver_at": ((TimestampType, LongType), "timestamp, or bigint in milliseconds"),
    "topic": ((StringType,), "string"),
    "partition": (_WHOLE, "an integer"),
}


@dataclass(frozen=True, slots=True)
class ColumnRoles(PickledByName):
    """The role of each column of a DataFrame.

    Attributes:
        parts: {a part of the message, such as "key": the column that gives it}; "value" only where a column is the
            payload as it is.
        payload: the columns of a payload that is built; without fields where a column is the payload.
        unused: {a column that is not written: why}.
        taken_out: {a part of the message: the column that an option names}, where these columns would else be fields of
            the payload.
    """

    parts: Mapping[str, str]
    payload: StructType
    unused: Mapping[str, str]
    taken_out: Mapping[str, str]

    @property
    def notes(self) -> dict[str, str]:
        """Remarks for the log that a caller may miss: {a column: a sentence about it, without a full stop}."""
        taken_out = {
            column: f"column {column!r} is the message's {part} by the option {part}, and no field of the payload"
            for part, column in self.taken_out.items()
        }
        return taken_out | {column: f"column {column!r} is not written, {why}" for column, why in self.unused.items()}

    def __str__(self) -> str:
        """Return a line for each part of the message, and for each column that is not written."""
        told = [f"{part}: column {column!r}" for part, column in self.parts.items()]
        if fields := self.payload.fieldNames():
            told.insert(0, f"value: built from {', '.join(map(repr, fields))}")
        return "\n".join([*told, *(f"not written: column {column!r}, {why}" for column, why in self.unused.items())])


def roles_of(
    schema: StructType, value_format: ValueFormat, *, topic: str | None, named: Mapping[str, str]
) -> ColumnRoles:
    """Return the use of each column of a DataFrame. Needs no session, and runs nothing.

    Args:
        schema: of the DataFrame.
        value_format: how a payload comes about.
        topic: the topic that the sink or the write names, which counts for all rows; None: each row must name one.
        named: {a part of `NAMED`: the column that an option names for it}.

    Raises:
        InvalidInput: a column is unknown, missing, doubled or of a wrong type.
    """
    built = value_format in BUILT
    parts, payload, unused = _sorted_out(schema, value_format, topic, named)
    if built:
        _check_payload(payload, schema, value_format)
    else:
        if "value" not in parts:
            raise InvalidInput(
                f"The DataFrame has no column 'value' (it has {schema.fieldNames()})."
                f"{did_you_mean('value', schema.fieldNames())} "
                f"Add one of {_VALUE[value_format]}, or use value_format='json'."
            )
        if payload:
            _refuse_unknown(payload[0].name)
    if "topic" in parts and value_format in ENCODED:
        raise InvalidInput(
            f"Column {parts['topic']!r} names a topic per row, but value_format={value_format!r} must know the schema "
            "before anything is written. Give topic= to the sink, or write each topic's rows by a txn.write(df, topic) "
            "of their own."
        )
    if "topic" not in parts and topic is None:
        raise InvalidInput(
            f"No topic: give topic= to eos.sink(), txn.write() or eos.write(), or add a column {_ROW_TOPIC[built]!r} "
            "that names one per row."
        )
    return ColumnRoles(parts, StructType(payload), unused, named if built else {})


def _check_payload(payload: list[StructField], schema: StructType, value_format: ValueFormat) -> None:
    if not payload:
        raise InvalidInput(
            f"value_format={value_format!r} builds the payload from the other columns, but there are none. "
            f"The DataFrame has only {schema.fieldNames()}. Add the columns that belong in the payload."
        )
    if [field.name for field in payload] == ["value"] and isinstance(payload[0].dataType, BinaryType):
        raise InvalidInput(
            f"value_format={value_format!r} would make a field of the column 'value', which is binary and the only "
            "one. It looks like a payload that is built already. Use value_format='raw', or rename the column."
        )


def _refuse_unknown(name: str) -> None:
    known = [*_EXPECTED, *ALIASES, *ASSIGNED]
    near = _HEADERS if name == "headers" else did_you_mean(name, known)
    raise InvalidInput(
        f"Column {name!r} means nothing to the sink.{near} "
        f"The columns it takes are {known}. Drop it, or use value_format='json' to put it in the payload."
    )


def _sorted_out(
    schema: StructType, value_format: ValueFormat, topic: str | None, named: Mapping[str, str]
) -> tuple[dict[str, str], list[StructField], dict[str, str]]:
    """Return the attributes of `ColumnRoles`, types checked."""
    parts: dict[str, str] = {}
    payload: list[StructField] = []
    unused: dict[str, str] = {}
    for part, column in named.items():
        if column not in schema.fieldNames():
            raise InvalidInput(
                f"{part}={column!r} names no column of the DataFrame, which has {schema.fieldNames()}."
                f"{did_you_mean(column, schema.fieldNames())} Nothing is written. Correct the option, or leave it out."
            )
        if schema.fieldNames().count(column) > 1:
            raise InvalidInput(
                f"{part}={column!r} names more than one column of the DataFrame. Rename or drop the others."
            )
        _check(part, schema[column], value_format, parts)
        parts[part] = column
    for field in schema.fields:
        name = ALIASES.get(field.name) if value_format in BUILT else ALIASES.get(field.name, field.name)
        # A payload as it is can be the key too, as key="value" says. No other column is two parts of a message.
        if field.name in named.values() and name != "value":
            continue
        if field.name in ASSIGNED:
            unused[field.name] = "which the broker assigns to each message"
        elif name is None or name not in _EXPECTED:
            payload.append(field)
        elif name == "topic" and topic is not None:
            unused[field.name] = f"since topic={topic!r} is given, and counts for all rows"
        else:
            _check(name, field, value_format, parts)
            parts[name] = field.name
    return parts, payload, unused


def _check(name: str, field: StructField, value_format: ValueFormat, parts: Mapping[str, str]) -> None:
    """Refuse a column that can't be the part of a message that it is named for."""
    if name in parts:
        raise InvalidInput(
            f"Columns {parts[name]!r} and {field.name!r} both give the message's {name}. Drop one of them."
        )
    if name == "value" and value_format == "schema":
        return  # the topic's schema tells its type
    (types, words), actual = _EXPECTED[name], field.dataType
    strings = (
        isinstance(actual, MapType)
        and isinstance(actual.keyType, StringType)
        and isinstance(actual.valueType, StringType)
    )
    if not isinstance(actual, types) or (name == "properties" and not strings):
        raise InvalidInput(
            f"Column {field.name!r} is {actual.simpleString()}, but the message's {name} is {words}. Cast it first"
            f"{', to timestamp_ltz' if isinstance(actual, TimestampNTZType) and TimestampType in types else ''}."
        )
