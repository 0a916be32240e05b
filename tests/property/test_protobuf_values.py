"""Each message that a schema allows is read by protobuf's own library as it was written, and by this decoder."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_type

from eos.schema.decoder import Decoder
from eos.schema.description import described
from eos.schema.encoder import encoder_of
from eos.schema.errors import Undecodable
from eos.schema.protobuf_schema import message_descriptor
from eos.schema.spark_types import spark_type
from tests.property.random_messages import Drawn, drawn, fill, schema_of


def column_of(rows: list[Any], description: Any) -> pa.Array:
    return pa.array(rows, to_arrow_type(spark_type(description), timezone="UTC"))


def in_order(value: Any) -> Any:
    """Return a value whose maps are sorted by their keys: on the wire they have no order."""
    if isinstance(value, dict):
        return {name: in_order(inner) for name, inner in value.items()}
    if isinstance(value, list):
        items = [in_order(item) for item in value]
        return sorted(items, key=lambda pair: str(pair[0])) if items and isinstance(items[0], tuple) else items
    return (value[0], in_order(value[1])) if isinstance(value, tuple) else value


@given(drawn())
def test_what_is_written_is_read_equal(one: Drawn) -> None:
    schema = schema_of(one)
    description = described(schema)
    column = column_of(one.rows, description)
    written = encoder_of(description).encode(column)
    found = Decoder(description, description, column.type).decode(written.cast(pa.binary()))
    found.validate(full=True)
    assert in_order(found.to_pylist()) == in_order(column.to_pylist())


@given(drawn())
def test_protobufs_own_library_finds_the_message_that_a_program_makes(one: Drawn) -> None:
    schema = schema_of(one)
    written = encoder_of(described(schema)).encode(column_of(one.rows, described(schema))).to_pylist()
    made = GetMessageClass(message_descriptor(schema.definition, "it"))
    assert [data is None for data in written] == [row is None for row in one.rows]
    for row, data in zip(one.rows, written, strict=True):
        if row is not None:
            assert made.FromString(data) == fill(made(), row)


@given(drawn(), st.data())
def test_damaged_values_are_an_error_of_their_row_or_other_values(one: Drawn, data: st.DataObject) -> None:
    description = described(schema_of(one))
    column = column_of(one.rows, description)
    written = encoder_of(description).encode(column).to_pylist()
    present = [row for row, value in enumerate(written) if value]
    if not present:
        return
    row = data.draw(st.sampled_from(present))
    cut = data.draw(st.integers(0, len(written[row]) - 1))
    written[row] = written[row][:cut] + data.draw(st.binary(max_size=3))
    found, wrong = None, row
    try:
        found = Decoder(description, description, column.type).decode(pa.array(written, pa.binary()))
    except Undecodable as error:
        wrong = error.row
    assert wrong == row
    if found is not None:
        found.validate(full=True)
        assert len(found) == len(written)
