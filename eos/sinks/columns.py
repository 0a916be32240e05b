"""Which columns of a DataFrame become which part of a Pulsar message.

    value         binary or string, nullable   the payload (`value_format="raw"`)
    key           binary or string, nullable   routes the row and is kept with the message
    ordering_key  binary or string, nullable   orders Key_Shared consumers
    event_time    timestamp or bigint (ms)     the message's event time
    properties    map<string,string>           the message's properties
    deliver_at    timestamp or bigint (ms)     when Shared and Key_Shared subscriptions are to get it; null: at once
    topic         string                       the row's topic, in place of the sink's own
    partition     integer                      the row's partition, in place of the key's

The names of the other Pulsar connector for Spark are taken as well: `__key`, `__topic`,
`__eventTime`, `__messageProperties`. With `value_format="json"` the payload is the JSON
object of all columns that are not in the table above, as Spark's `to_json` writes it; with
"avro" it is the record of these columns by the AVRO schema of the topic, with "protobuf" the message by its descriptor.
With "schema" the column `value` has the type of the topic's schema, as the source reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from eos.errors import InvalidInput
from eos.nearest import did_you_mean

ValueFormat = Literal["raw", "json", "avro", "protobuf", "schema"]
VALUE_FORMATS: tuple[ValueFormat, ...] = ("raw", "json", "avro", "protobuf", "schema")
BUILT: tuple[ValueFormat, ...] = ("json", "avro", "protobuf")
"""Those whose payload is built from the columns without a meaning of their own."""
_ENCODED: tuple[ValueFormat, ...] = ("avro", "protobuf", "schema")
"""Those whose payload is encoded by the topic's schema, once Spark has made the rows."""
_VALUE: Mapping[ValueFormat, str] = {"raw": "type binary or string", "schema": "the type of the topic's schema"}

ALIASES = {
    "__key": "key",
    "__topic": "topic",
    "__eventTime": "event_time",
    "__messageProperties": "properties",
}

_HEADERS = (
    " Kafka's headers are properties here, whose values are text: map_from_entries(transform(headers, h -> (h.key, "
    "decode(h.value, 'UTF-8')))) as properties."
)

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


def canonical(
    df: DataFrame, value_format: ValueFormat, *, topic_given: bool, ignore_null_fields: bool | None = None
) -> DataFrame:
    """Return `df` with the columns of the table above, and no others.

    Args:
        df: what the user hands to the sink.
        value_format: "raw" takes the column `value`; "json" builds it from the other columns; "avro" and "protobuf"
            make a struct of them, which is still to be encoded, as is the column `value` with "schema".
        topic_given: whether the sink or the write names a topic; without one each row must.
        ignore_null_fields: whether "json" leaves null fields out; None: as the session's
            `spark.sql.jsonGenerator.ignoreNullFields` says, which is true by default.

    Raises:
        InvalidInput: a column is unknown, missing, doubled or of a wrong type.
    """
    columns = message_columns(df.schema, value_format, topic_given=topic_given, ignore_null_fields=ignore_null_fields)
    # Each operator costs a small batch milliseconds of planning, so a DataFrame that fits is left alone.
    if sorted(columns) == sorted(map(_quoted, df.columns)):
        return df
    _refuse_alike(df)
    return df.selectExpr(*columns)


def _refuse_alike(df: DataFrame) -> None:
    """Refuse columns that Spark can't tell apart by their names: none of them could be selected."""
    alike = [name.lower() for name in df.columns]
    if len(set(alike)) == len(alike):
        return
    if (df.sparkSession.conf.get("spark.sql.caseSensitive") or "").lower() == "true":
        alike = df.columns
    for place, name in enumerate(alike):
        if (first := alike.index(name)) < place:
            raise InvalidInput(
                f"Columns {df.columns[first]!r} and {df.columns[place]!r} have one name for Spark, which can't tell "
                "them apart. Rename one of them, or drop it."
            )


def message_columns(
    schema: StructType, value_format: ValueFormat, *, topic_given: bool, ignore_null_fields: bool | None = None
) -> list[str]:
    """Return the SQL expressions behind `canonical`; needs no data, no session, and runs nothing."""
    found = recognised(schema, value_format, topic_given=topic_given)
    if value_format in BUILT:
        columns = [_built(schema, payload_of(schema).fieldNames(), value_format, ignore_null_fields)]
    else:
        columns = [_quoted(found["value"])]
    for name, source in found.items():
        if name != "value":
            expression = _expression(name, source, schema[source].dataType)
            columns.append(expression if expression == _quoted(name) else f"{expression} as {name}")
    return columns


def recognised(schema: StructType, value_format: ValueFormat, *, topic_given: bool) -> dict[str, str]:
    """Return {a message's part: the column that carries it}; without "value" where the format builds that itself.

    Raises InvalidInput as `canonical` does.
    """
    found = _recognise(schema, value_format)
    payload = payload_of(schema).fieldNames()
    if value_format in BUILT:
        if not payload:
            raise InvalidInput(
                f"value_format={value_format!r} builds the payload from the other columns, but there are none: "
                f"the DataFrame has only {schema.fieldNames()}. Add the columns that belong in the payload."
            )
    else:
        if "value" not in found:
            raise InvalidInput(
                f"The DataFrame has no column 'value' (it has {schema.fieldNames()})."
                f"{did_you_mean('value', schema.fieldNames())} "
                f"Add one of {_VALUE[value_format]}, or use value_format='json'."
            )
        if payload:
            known = [*_EXPECTED, *ALIASES]
            near = _HEADERS if payload[0] == "headers" else did_you_mean(payload[0], known)
            raise InvalidInput(
                f"Column {payload[0]!r} means nothing to the sink.{near} "
                f"The columns it takes are {known}. Drop it, or use value_format='json' to put it in the payload."
            )
    if "topic" in found and value_format in _ENCODED:
        raise InvalidInput(
            f"Column {found['topic']!r} names a topic per row, but value_format={value_format!r} must know the schema "
            "before anything is written. Drop it, and write each topic's rows by a txn.write(df, topic) of their own."
        )
    if "topic" not in found and not topic_given:
        raise InvalidInput(
            "No topic: give topic= to eos.sink(), txn.write() or eos.write(), or add a column 'topic' that names one "
            "per row."
        )
    return found


def payload_of(schema: StructType) -> StructType:
    """Return the columns that mean nothing of their own to the sink: those of a payload that is built."""
    return StructType([f for f in schema.fields if f.name not in ALIASES and f.name not in _EXPECTED])


def _recognise(schema: StructType, value_format: ValueFormat) -> dict[str, str]:
    """Map each known name to the column that carries it, types checked."""
    found: dict[str, str] = {}
    for field in schema.fields:
        name = ALIASES.get(field.name, field.name)
        if name not in _EXPECTED:
            continue
        if name == "value" and value_format in BUILT:
            raise InvalidInput(
                f"value_format={value_format!r} makes the column 'value' itself, but the DataFrame has one. "
                "Rename it, or use value_format='raw'."
            )
        if name in found:
            raise InvalidInput(
                f"Columns {found[name]!r} and {field.name!r} both give the message's {name}. Drop one of them."
            )
        if name != "value" or value_format != "schema":
            _check_type(name, field.name, field.dataType)
        found[name] = field.name
    return found


def _check_type(name: str, column: str, actual: DataType) -> None:
    types, words = _EXPECTED[name]
    strings = (
        isinstance(actual, MapType)
        and isinstance(actual.keyType, StringType)
        and isinstance(actual.valueType, StringType)
    )
    if not isinstance(actual, types) or (name == "properties" and not strings):
        raise InvalidInput(
            f"Column {column!r} is {actual.simpleString()}, but the message's {name} is {words}. Cast it first."
        )


def _check_objects(column: str, part: DataType) -> None:
    """Refuse a map without string keys anywhere in a column, and a struct with one name twice: no object of JSON."""
    if isinstance(part, MapType):
        if not isinstance(part.keyType, StringType):
            raise InvalidInput(
                f"Column {column!r} holds a {part.simpleString()}, but the keys of a JSON object are strings. Cast "
                "them first: transform_keys(the_map, (k, v) -> cast(k as string))."
            )
        _check_objects(column, part.valueType)
    elif isinstance(part, ArrayType):
        _check_objects(column, part.elementType)
    elif isinstance(part, StructType):
        names = part.fieldNames()
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise InvalidInput(
                f"Column {column!r} holds a struct with two fields {twice!r}: a JSON object would have the name twice, "
                "and readers take one of them. Rename one of them, or drop it."
            )
        for field in part.fields:
            _check_objects(column, field.dataType)


def _built(
    schema: StructType, payload: Sequence[str], value_format: ValueFormat, ignore_null_fields: bool | None
) -> str:
    row = f"struct({', '.join(map(_quoted, payload))})"
    if value_format in _ENCODED:
        return f"{row} as value"
    for column in payload:
        _check_objects(column, schema[column].dataType)
    option = "" if ignore_null_fields is None else f", map('ignoreNullFields', '{str(ignore_null_fields).lower()}')"
    return f"cast(to_json({row}{option}) as binary) as value"


def _expression(name: str, source: str, actual: DataType) -> str:
    column = _quoted(source)
    if name in ("event_time", "deliver_at") and isinstance(actual, TimestampType):
        return f"unix_millis({column})"
    return column


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
