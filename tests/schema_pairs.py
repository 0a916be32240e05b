"""Every type without parts that a field of AVRO or JSON may have, with values, and what those mean.

A pair of them is what a field may become from one version of a schema to the next. What is read must mean what was
written; that is known here without the code under test.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any

import fastavro
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type

from eos.errors import InvalidInput
from eos.schema.decoder import Decoder
from eos.schema.description import described
from eos.schema.spark_types import spark_type
from tests.unit.schema.registered import field, record, registered


@dataclass(frozen=True)
class Type:
    """One type. Attributes: its schema; what its values are; {a value's number, text or bytes: what it means}."""

    schema: Any
    means: str
    values: dict[Any, Any]


def _logical(kind: str, name: str, means: str, values: dict[Any, Any], **more: Any) -> Type:
    return Type({"type": kind, "logicalType": name, **more}, means, values)


_NUMBERS = {0: 0, -7: -7, 20_000: 20_000}
_LONGS = _NUMBERS | {1_672_531_200_123: 1_672_531_200_123}
_DECIMAL = {b"\x30\x39": 123_450, b"\xff": -10}  # in thousandths

TYPES: dict[str, Type] = {
    "boolean": Type("boolean", "truth", {True: True, False: False}),
    "int": Type("int", "number", _NUMBERS),
    "long": Type("long", "number", _LONGS),
    "float": Type("float", "number", {0.5: 0.5, -7.0: -7}),
    "double": Type("double", "number", {0.5: 0.5, 1e300: 1e300}),
    "string": Type("string", "text", {"abc": b"abc"}),
    "bytes": Type("bytes", "text", {b"abc": b"abc"}),
    "fixed": Type({"type": "fixed", "name": "F", "size": 3}, "text", {b"abc": b"abc"}),
    "larger fixed": Type({"type": "fixed", "name": "F", "size": 4}, "text", {b"abcd": b"abcd"}),
    "enum": Type({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "symbol", {"A": "A", "B": "B"}),
    "other enum": Type({"type": "enum", "name": "E", "symbols": ["B", "C"]}, "symbol", {"B": "B", "C": "C"}),
    "date": _logical("int", "date", "day", {19_358: 19_358}),
    "time-millis": _logical("int", "time-millis", "time of day", {5: 5_000}),
    "time-micros": _logical("long", "time-micros", "time of day", {5: 5}),
    "timestamp-millis": _logical(
        "long", "timestamp-millis", "moment", {1_672_531_200_123: 1_672_531_200_123_000, -1: -1_000}
    ),
    "timestamp-micros": _logical("long", "timestamp-micros", "moment", {1_672_531_200_123_456: 1_672_531_200_123_456}),
    "local-timestamp-millis": _logical("long", "local-timestamp-millis", "local moment", {5: 5_000}),
    "local-timestamp-micros": _logical("long", "local-timestamp-micros", "local moment", {5: 5}),
    "decimal": _logical("bytes", "decimal", "decimal", _DECIMAL, precision=9, scale=2),
    "finer decimal": _logical("bytes", "decimal", "decimal", {b"\x30\x39": 12_345, b"\xff": -1}, precision=12, scale=3),
}


def schema_of(kind: Type) -> Any:
    """Return the record whose one field has a type."""
    return record(field("a", kind.schema))


def written(form: str, kind: Type, value: Any) -> bytes:
    """Return a message with one value. It is written by no code of this project."""
    if form == "AVRO":
        out = io.BytesIO()
        plain = {"decimal": "bytes"}.get(kind.means) or (
            kind.schema["type"] if isinstance(kind.schema, dict) and "logicalType" in kind.schema else kind.schema
        )
        fastavro.schemaless_writer(out, fastavro.parse_schema(record(field("a", plain))), {"a": value})
        return out.getvalue()
    if kind.means == "decimal":
        scale = kind.schema["scale"]
        number = int.from_bytes(value, "big", signed=True)
        return f'{{"a": {number / 10**scale:.{scale}f}}}'.encode()
    return json.dumps({"a": value.decode() if isinstance(value, bytes) else value}).encode()


def meaning(kind: Type, found: pa.Scalar) -> Any:
    """Return what a value means that was read as a type."""
    if pa.types.is_timestamp(found.type):
        return found.cast(pa.int64()).as_py()
    if pa.types.is_date(found.type):
        return found.cast(pa.int32()).as_py()
    value = found.as_py()
    if kind.means == "decimal":
        return int(value * 1000)
    if kind.means == "time of day" and isinstance(kind.schema, dict) and kind.schema["logicalType"] == "time-millis":
        return value * 1000
    return value.encode() if kind.means == "text" and isinstance(value, str) else value


def wrongly_read(form: str, before: str, now: str) -> str | None:
    """Read the values of one type as another one. Return what was read wrong; None where all is well, or refused.

    Refused is a pair before any value is read, and a value that the type has no place for, by its field.
    """
    writer, reader = TYPES[before], TYPES[now]
    theirs, ours = (described(registered(form, schema_of(kind))) for kind in (writer, reader))
    try:
        decoder = Decoder(theirs, ours, to_arrow_type(spark_type(ours), timezone="UTC"))
    except InvalidInput as refused:
        return None if "'a'" in str(refused) else f"{form}: {before} to {now}: {refused}"
    for value, means in writer.values.items():
        try:
            found = decoder.decode(pa.array([written(form, writer, value)], pa.binary())).field("a")[0]
        except ValueError as refused:
            if "field 'a'" not in str(refused):
                return f"{form}: {before} to {now}: {refused}"
            continue
        if writer.means != reader.means or meaning(reader, found) != means:
            return f"{form}: {value!r}, a {before}, was read as {found}, a {now}"
    return None
