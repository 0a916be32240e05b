"""Each value of a schema is decoded as it was written, and damage is an error or another value of the same type."""

from __future__ import annotations

import io
import json
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
from tests.property.random_schemas import AVRO_RECORDS, as_arrow_has_it, messages
from tests.unit.schema.registered import registered


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
    assert JsonDecoder(description.node, description.node, found.type)._one_by_one(data).to_pylist() == expected


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
