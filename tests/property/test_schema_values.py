"""Whatever a schema allows is decoded as it was written, and damage is an error or another value of the same type."""

from __future__ import annotations

import io
import itertools
import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import fastavro
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_type

from eos.schema.avro_encoder import AvroEncoder
from eos.schema.decoder import Decoder
from eos.schema.description import Record, described
from eos.schema.errors import Undecodable
from eos.schema.json_values import JsonDecoder
from eos.schema.spark_types import spark_type
from tests.unit.schema.registered import registered


@dataclass
class Kind:
    """A type of Avro's, and what values it has."""

    schema: Any
    values: st.SearchStrategy[Any]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PLAIN = [
    Kind("boolean", st.booleans()),
    Kind("int", st.integers(-(2**31), 2**31 - 1)),
    Kind("long", st.integers(-(2**63), 2**63 - 1)),
    Kind("double", st.floats(allow_nan=False, allow_infinity=False)),
    Kind("float", st.floats(width=32, allow_nan=False, allow_infinity=False)),
    Kind("string", TEXTS),
    Kind({"type": "enum", "symbols": ["LATE", "EARLY"]}, st.sampled_from(["LATE", "EARLY"])),
]


def nullable(kind: Kind) -> Kind:
    return Kind(["null", kind.schema], st.none() | kind.values)


def array(kind: Kind) -> Kind:
    return Kind({"type": "array", "items": kind.schema}, st.lists(kind.values, max_size=3))


def mapping(kind: Kind) -> Kind:
    return Kind({"type": "map", "values": kind.schema}, st.dictionaries(TEXTS, kind.values, max_size=3))


def record(kinds: list[Kind]) -> Kind:
    fields = [{"name": f"f{place}", "type": kind.schema} for place, kind in enumerate(kinds)]
    values = st.fixed_dictionaries({f"f{place}": kind.values for place, kind in enumerate(kinds)})
    return Kind({"type": "record", "fields": fields}, values)


def branches(inner: st.SearchStrategy[Kind]) -> st.SearchStrategy[Kind]:
    records = st.lists(inner, min_size=1, max_size=4).map(record)
    return st.one_of(inner.map(array), inner.map(mapping), records)


def records(leaves: list[Kind]) -> st.SearchStrategy[Kind]:
    kinds = st.recursive(
        st.sampled_from([*leaves, *map(nullable, leaves)]),
        lambda inner: branches(inner).flatmap(lambda kind: st.sampled_from([kind, nullable(kind)])),
        max_leaves=8,
    )
    return st.lists(kinds, min_size=1, max_size=4).map(record)


def logical(kind: str, name: str, values: st.SearchStrategy[Any], **more: Any) -> Kind:
    return Kind({"type": kind, "logicalType": name, **more}, values)


# Away from the first and the last year, where Python has no room for a zone.
MOMENTS = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1))
WHOLE_MS = MOMENTS.map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000))
DECIMALS = st.decimals(-9_999_999, 9_999_999, places=2)
ONLY_AVRO = [
    Kind("bytes", st.binary(max_size=40)),
    Kind({"type": "fixed", "size": 3}, st.binary(min_size=3, max_size=3)),
    logical("int", "date", st.dates(date(2, 1, 1), date(9998, 1, 1))),
    logical("int", "time-millis", st.integers(0, 86_399_999)),
    logical("long", "time-micros", st.integers(0, 86_399_999_999)),
    logical("long", "timestamp-micros", MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC))),
    logical("long", "timestamp-millis", WHOLE_MS.map(lambda moment: moment.replace(tzinfo=UTC))),
    logical("long", "local-timestamp-micros", MOMENTS),
    logical("long", "local-timestamp-millis", WHOLE_MS),
    logical("bytes", "decimal", DECIMALS, precision=9, scale=2),
    logical("fixed", "decimal", DECIMALS, precision=9, scale=2, size=5),
]
RECORDS = records(PLAIN)
AVRO_RECORDS = records([*PLAIN, *ONLY_AVRO])


def named(schema: Any, numbers: itertools.count[int]) -> Any:
    """Return the schema with a name of its own for each type that needs one."""
    if isinstance(schema, list):
        return [named(branch, numbers) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    name = {"name": f"N{next(numbers)}"} if schema.get("type") in ("record", "enum", "fixed") else {}
    inside = {key: named(part, numbers) for key, part in schema.items() if key in ("items", "values", "type")}
    if "fields" in schema:
        inside["fields"] = [field | {"type": named(field["type"], numbers)} for field in schema["fields"]]
    return schema | name | inside


def as_arrow_has_it(schema: Any, value: Any) -> Any:
    """Return a value with its maps as lists of pairs."""
    if isinstance(schema, list):
        return None if value is None else as_arrow_has_it(schema[1], value)
    if not isinstance(schema, dict):
        return value
    if "items" in schema:
        return [as_arrow_has_it(schema["items"], item) for item in value]
    if "values" in schema:
        return [(key, as_arrow_has_it(schema["values"], item)) for key, item in value.items()]
    if "fields" in schema:
        return {field["name"]: as_arrow_has_it(field["type"], value[field["name"]]) for field in schema["fields"]}
    return value


@st.composite
def messages(draw: st.DrawFn, of: st.SearchStrategy[Kind] = RECORDS) -> tuple[Any, list[Any]]:
    """Draw a schema and some of its values, nulls among them."""
    kind = draw(of)
    return named(kind.schema, itertools.count()), draw(st.lists(st.none() | kind.values, max_size=5))


def decoder(form: str, schema: Any) -> Decoder:
    description = described(registered(form, schema))
    return Decoder(description, description, to_arrow_type(spark_type(description), timezone="UTC"))


def in_json(value: Any) -> bytes | None:
    return None if value is None else json.dumps(value).encode()


def in_avro(schema: Any, value: Any) -> bytes | None:
    if value is None:
        return None
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


def column(values: list[bytes | None]) -> pa.Array:
    return pa.array(values, pa.binary())


@given(messages())
def test_json_is_decoded_as_it_was_written(drawn: tuple[Any, list[Any]]) -> None:
    schema, values = drawn
    data = column([in_json(value) for value in values])
    expected = [None if value is None else as_arrow_has_it(schema, value) for value in values]
    found = decoder("JSON", schema).decode(data, data)
    found.validate(full=True)
    assert found.to_pylist() == expected
    description = described(registered("JSON", schema))
    assert isinstance(description, Record)
    assert JsonDecoder(description.node, found.type)._one_by_one(data).to_pylist() == expected


@given(messages())
def test_avro_is_decoded_as_it_was_written(drawn: tuple[Any, list[Any]]) -> None:
    schema, values = drawn
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    data = column([in_avro(parsed, value) for value in values])
    expected = [None if value is None else as_arrow_has_it(schema, value) for value in values]
    assert decoder("AVRO", schema).decode(data, data).to_pylist() == expected


@given(messages(), st.integers(0, 3))
def test_avro_is_written_as_avros_own_writer_does(drawn: tuple[Any, list[Any]], before: int) -> None:
    schema, values = drawn
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    description = described(registered("AVRO", schema))
    assert isinstance(description, Record)
    kind = to_arrow_type(spark_type(description), timezone="UTC")
    rows = [None if value is None else as_arrow_has_it(schema, value) for value in values]
    within = pa.array([*rows[:before], *rows], kind).slice(len(rows[:before]))  # as Arrow hands on a part of a column
    assert AvroEncoder(description).encode(within).to_pylist() == [in_avro(parsed, value) for value in values]


@given(messages(AVRO_RECORDS))
def test_what_is_written_as_avro_is_read_equal(drawn: tuple[Any, list[Any]]) -> None:
    schema, values = drawn
    description = described(registered("AVRO", schema))
    assert isinstance(description, Record)
    kind = to_arrow_type(spark_type(description), timezone="UTC")
    rows = pa.array([None if value is None else as_arrow_has_it(schema, value) for value in values], kind)
    written = AvroEncoder(description).encode(rows)
    assert decoder("AVRO", schema).decode(written, written).to_pylist() == rows.to_pylist()


@given(messages(), st.sampled_from(["JSON", "AVRO"]), st.data())
def test_damaged_values_are_an_error_of_their_row_or_other_values(
    drawn: tuple[Any, list[Any]], form: str, data: st.DataObject
) -> None:
    schema, values = drawn
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    written = [in_json(value) if form == "JSON" else in_avro(parsed, value) for value in values]
    present = [row for row, value in enumerate(written) if value]
    if not present:
        return
    row = data.draw(st.sampled_from(present))
    whole = written[row] or b""
    cut = data.draw(st.integers(0, len(whole) - 1))
    written[row] = whole[:cut] + data.draw(st.binary(max_size=3))
    found, wrong = None, row
    try:
        found = decoder(form, schema).decode(column(written), column(written))
    except Undecodable as error:
        wrong = error.row
    assert wrong == row
    if found is not None:
        found.validate(full=True)
        assert len(found) == len(written)
