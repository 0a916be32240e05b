"""numpy decodes the same as the decoder of single values: random schemas, their evolutions, damaged bytes."""

from __future__ import annotations

import io
from collections import Counter
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from eos.errors import InvalidInput
from eos.schema import vector_columns
from eos.schema.avro_values import AvroDecoder
from eos.schema.avro_vector_decoder import vector_column
from eos.schema.description import Record
from eos.schema.errors import Undecodable
from tests.between import between
from tests.property import evolving_avro
from tests.property.random_schemas import as_arrow_has_it
from tests.property.vector_comparison import compared, same
from tests.unit.schema.registered import arrow_type, described_as

ROWS = 110
MANY = pytest.mark.parametrize("schemas", [30, pytest.param(3_000, marks=pytest.mark.soak)])


def by_numpy(decoder: AvroDecoder, writer: Record, reader: Record, values: pa.Array) -> pa.Array | None:
    try:
        return vector_columns.decode(between(values), vector_column(writer.node, reader.node, arrow_type(reader)))
    except vector_columns.Unsure:
        return None


@MANY
def test_numpy_gives_what_the_decoder_of_single_values_gives(schemas: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(schemas):
        random = Random(seed)
        theirs, ours = evolving_avro.pair(random)
        writer, reader = described_as(theirs), described_as(ours)
        try:
            decoder = AvroDecoder(writer, reader, arrow_type(reader))
        except InvalidInput:
            seen["refused pair"] += 1
            continue
        rows: list[bytes | None] = [evolving_avro.written(theirs, random) for _ in range(ROWS)]
        damaged = seed % 3 == 0
        for _ in range(random.choice([1, 1, 3]) if damaged else 0):
            row = random.randrange(ROWS)
            rows[row] = evolving_avro.damaged(rows[row] or b"", random)
        if random.random() < 0.3:
            rows = [None if random.random() < 0.2 else row for row in rows]
        values = pa.array([b"before", *rows], pa.binary()).slice(1)  # as Arrow hands on a part of a column
        kind = "damaged" if damaged else "whole"
        quick = by_numpy(decoder, writer, reader, values)
        became = compared(decoder, quick, values, f"seed {seed}: {theirs} as {ours}")
        seen[f"{kind}, {became}"] += 1
    print(schemas, "schemas:", dict(sorted(seen.items())))
    assert seen["damaged, refused, one by one"] > schemas // 10
    assert seen["whole, decoded, by numpy"] > 4 * seen["whole, decoded, one by one"]


@MANY
def test_numpy_gives_what_avros_own_reader_gives(schemas: int) -> None:
    """The types are as they are stored: what logical types mean is compared above, and in test_schema_values."""
    compared = 0
    ours_alone: list[str] = []
    for seed in range(schemas):
        random = Random(1_000_000 + seed)
        theirs, ours = map(evolving_avro.without_logical_types, evolving_avro.pair(random))
        if evolving_avro.has_old_names_back(ours):
            continue  # tests/unit/schema/test_field_names.py
        writer, reader = described_as(theirs), described_as(ours)
        rows = [evolving_avro.written(theirs, random) for _ in range(ROWS)]
        try:
            decoder = AvroDecoder(writer, reader, arrow_type(reader))
            expected = fastavros(theirs, ours, rows)
        except (InvalidInput, fastavro.read.SchemaResolutionError, UnicodeDecodeError):
            continue
        values = pa.array(rows, pa.binary())
        try:
            found = decoder.decode(values)
        except Undecodable as error:
            ours_alone.append(error.why)
            continue
        compared += 1
        assert same(found, pa.array([as_arrow_has_it(ours, row) for row in expected], found.type)), f"seed {seed}"
    print(compared, "of", schemas, "schemas were compared with fastavro")
    # fastavro takes a number that is not exact as a float.
    assert [why for why in ours_alone if "not exact" not in why] == []
    assert compared > schemas // 2


def fastavros(theirs: Any, ours: Any, rows: list[bytes]) -> list[Any]:
    writer, reader = (fastavro.parse_schema(schema) for schema in (theirs, ours))
    return [fastavro.schemaless_reader(io.BytesIO(row), writer, reader) for row in rows]
