"""The rows that the sink writes: its DataFrame with one column for each part of a message, as Spark expressions."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType, TimestampType

from eos.errors import InvalidInput
from eos.sinks.columns import BUILT, ENCODED, ColumnRoles, ValueFormat

_NAMES_ARE_PATTERNS = "spark.sql.parser.quotedRegexColumnNames"
_PLAIN_NAME = re.compile(r"\w+")
"""What matches itself alone, even if Spark takes it for a pattern."""
_NOT_IN_JSON = ("geometry", "geography")
"""The names of types, from Spark 4.1 on, at which to_json fails when it writes the first row."""


def message_rows(
    df: DataFrame, roles: ColumnRoles, value_format: ValueFormat, ignore_null_fields: bool | None = None
) -> DataFrame:
    """Return `df` with a column for each part of a message that its columns give, and no others.

    Args:
        df: what the user hands to the sink.
        roles: the use of its columns, by `roles_of` for the same format.
        value_format: "raw" takes the column `value`; "json" builds it from the payload's columns; "avro" and "protobuf"
            make a struct of them, which is still to be encoded, as is the column `value` with "schema".
        ignore_null_fields: whether "json" leaves null fields out; None: as the session's
            `spark.sql.jsonGenerator.ignoreNullFields` says, which is true by default.

    Raises:
        InvalidInput: Spark can't tell two columns apart, or takes a column's name for a pattern, or JSON has no place
            for what a column holds.
    """
    columns = message_columns(df.schema, roles, value_format, ignore_null_fields)
    # Each operator costs a small batch milliseconds of planning, so a DataFrame that fits is left alone.
    if sorted(columns) == sorted(map(_quoted, df.columns)):
        return df
    _refuse_alike(df)
    _refuse_patterns(df, [*roles.parts.values(), *roles.payload.fieldNames()])
    return df.selectExpr(*columns)


def message_columns(
    schema: StructType, roles: ColumnRoles, value_format: ValueFormat, ignore_null_fields: bool | None = None
) -> list[str]:
    """Return the SQL expressions of `message_rows`. Needs no data, no session, and runs nothing."""
    columns = [_built(roles.payload, value_format, ignore_null_fields)] if value_format in BUILT else []
    for name, source in sorted(roles.parts.items(), key=lambda part: part[0] != "value"):
        expression = _expression(name, source, schema[source].dataType)
        columns.append(expression if expression == _quoted(name) else f"{expression} as {name}")
    return columns


def _built(payload: StructType, value_format: ValueFormat, ignore_null_fields: bool | None) -> str:
    row = f"struct({', '.join(map(_quoted, payload.fieldNames()))})"
    if value_format in ENCODED:
        return f"{row} as value"
    for field in payload.fields:
        _check_objects(field.name, field.dataType)
    option = "" if ignore_null_fields is None else f", map('ignoreNullFields', '{str(ignore_null_fields).lower()}')"
    return f"cast(to_json({row}{option}) as binary) as value"


def _expression(name: str, source: str, actual: DataType) -> str:
    column = _quoted(source)
    if name in ("event_time", "deliver_at") and isinstance(actual, TimestampType):
        return f"unix_millis({column})"
    return column


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


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


def _refuse_patterns(df: DataFrame, names: list[str]) -> None:
    """Refuse names that Spark takes for patterns: `a.b` would also be the column axb, and `a(b)` no column at all."""
    odd = next((name for name in names if not _PLAIN_NAME.fullmatch(name)), None)
    if odd is not None and (df.sparkSession.conf.get(_NAMES_ARE_PATTERNS) or "").lower() == "true":
        raise InvalidInput(
            f"Column {odd!r} can't be selected by its name. {_NAMES_ARE_PATTERNS} is true, so Spark takes the name for "
            "a pattern, which may match other columns or none. Nothing is written. Set the option to false, or rename "
            "the column to letters, digits and underscores."
        )


def _check_objects(column: str, part: DataType) -> None:
    """Refuse what a JSON object can't hold, anywhere in a column: a map without string keys, a struct with one name
    twice, and types that `to_json` fails at.
    """
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
                f"Column {column!r} holds a struct with two fields {twice!r}. A JSON object would have the name twice, "
                "and readers take one of them. Rename one of them, or drop it."
            )
        for field in part.fields:
            _check_objects(column, field.dataType)
    elif part.typeName() in _NOT_IN_JSON:
        raise InvalidInput(
            f"Column {column!r} holds a {part.simpleString()}, which Spark's to_json does not write. Write its bytes, "
            "by st_asbinary(…), or leave the column out."
        )
