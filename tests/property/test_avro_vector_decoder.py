"""What numpy decodes is what the decoder of single values says: random schemas, their evolutions, damaged bytes."""

from __future__ import annotations

import io
from collections import Counter
from random import Random
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_type

from eos.errors import InvalidInput
from eos.schema import vector_columns
from eos.schema.avro_values import AvroDecoder
from eos.schema.avro_vector_decoder import vector_column
from eos.schema.description import Record, described
from eos.schema.errors import Undecodable
from eos.schema.spark_types import spark_type
from tests.property import evolving_avro
from tests.property.random_schemas import as_arrow_has_it
from tests.unit.schema.registered import registered

ROWS = 110
MANY = pytest.mark.parametrize("schemas", [30, pytest.param(3_000, marks=pytest.mark.soak)])


def description(schema: Any) -> Record:
    found = described(registered("AVRO", schema))
    assert isinstance(found, Record)
    return found


def arrow_type(record: Record) -> pa.DataType:
    return to_arrow_type(spark_type(record), timezone="UTC")


def same(one: pa.Array, other: pa.Array) -> bool:
    """Compare two arrays; a NaN is a NaN."""
    if one.type != other.type or len(one) != len(other) or one.is_valid() != other.is_valid():
        return False
    one, other = one.drop_null(), other.drop_null()
    if pa.types.is_floating(one.type):
        return np.array_equal(one.to_numpy(), other.to_numpy(), equal_nan=True)
    if pa.types.is_struct(one.type):
        return all(same(mine, theirs) for mine, theirs in zip(one.flatten(), other.flatten(), strict=True))
    if pa.types.is_list(one.type):
        return one.value_lengths() == other.value_lengths() and same(one.flatten(), other.flatten())
    if pa.types.is_map(one.type):
        lengths = [np.diff(np.asarray(column.offsets)).tolist() for column in (one, other)]
        return lengths[0] == lengths[1] and same(one.keys, other.keys) and same(one.items, other.items)
    return bool(one.equals(other))


def by_numpy(decoder: AvroDecoder, writer: Record, reader: Record, values: pa.Array) -> pa.Array | None:
    try:
        return vector_columns.decode(values, vector_column(writer.node, reader.node, arrow_type(reader)))
    except vector_columns.Unsure:
        return None


def outcome(decode: Any, values: pa.Array) -> pa.Array | str:
    try:
        return decode(values)
    except Undecodable as error:
        return str(error)


@MANY
def test_numpy_gives_what_the_decoder_of_single_values_gives(schemas: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(schemas):
        random = Random(seed)
        theirs, ours = evolving_avro.pair(random)
        writer, reader = description(theirs), description(ours)
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
        single, quick = outcome(decoder.one_by_one, values), by_numpy(decoder, writer, reader, values)
        where = f"seed {seed}: {theirs} as {ours}"
        if quick is not None:
            assert not isinstance(single, str), f"{where}: {single}"
            quick.validate(full=True)
            assert same(quick, single), where
        whole = outcome(decoder.decode, values)
        assert whole == single if isinstance(single, str) else same(whole, single), where
        kind = "damaged" if damaged else "whole"
        told = "refused" if isinstance(single, str) else "decoded"
        seen[f"{kind}, {told}, {'by numpy' if quick is not None else 'one by one'}"] += 1
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
        writer, reader = description(theirs), description(ours)
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
