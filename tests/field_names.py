"""Records of ints whose fields have aliases, and every decoder of AVRO and JSON that must match their names."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import fastavro
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type

from eos.schema import json_objects, vector_columns
from eos.schema.avro_vector_decoder import FEWEST, vector_column
from eos.schema.description import Record, described
from eos.schema.json_columns import JsonColumns
from eos.schema.json_text import JsonData
from eos.schema.json_values import JsonDecoder
from eos.schema.json_vector_decoder import top_column
from eos.schema.spark_types import spark_type
from tests.unit.schema.registered import arrow_type, avro_decoder, described_as, in_avro, record, registered

Read = Callable[[Any, Any, Any], Any]
"""Takes the schema of a message, that of the query, and the message's value; returns the value that the query sees."""


def fields(*given: tuple[str, list[str], int | None] | str, **more: Any) -> dict[str, Any]:
    """Return a record of ints. Args: (name, aliases, default) of each field, or its name alone."""
    made: list[dict[str, Any]] = []
    for one in given:
        name, aliases, default = (one, [], None) if isinstance(one, str) else one
        made.append({"name": name, "type": "int", "aliases": aliases})
        made[-1] |= {} if default is None else {"default": default}
    return record(*made, **more)


def fastavros(writer: Any, reader: Any, value: Any) -> Any:
    """Return what fastavro's reader sees."""
    theirs, ours = (fastavro.parse_schema(json.loads(json.dumps(schema))) for schema in (writer, reader))
    return fastavro.schemaless_reader(io.BytesIO(in_avro(writer, value)), theirs, ours)


def _one_by_one(writer: Any, reader: Any, value: Any) -> Any:
    data = pa.array([in_avro(writer, value)], pa.binary())
    (found,) = avro_decoder(writer, reader).one_by_one(data).to_pylist()
    return found


def _in_step(writer: Any, reader: Any, value: Any) -> Any:
    theirs, ours = described_as(writer), described_as(reader)
    avro_decoder(writer, reader)  # refuses what does not go together
    values = pa.array([in_avro(writer, value)] * FEWEST, pa.binary())
    found = vector_columns.decode(values, vector_column(theirs.node, ours.node, arrow_type(ours))).to_pylist()
    assert found == [found[0]] * FEWEST
    return found[0]


def _json(writer: Any, reader: Any) -> tuple[JsonDecoder, pa.DataType]:
    theirs, ours = (described(registered("JSON", schema)) for schema in (writer, reader))
    assert isinstance(theirs, Record)
    assert isinstance(ours, Record)
    target = to_arrow_type(spark_type(ours), timezone="UTC")
    return JsonDecoder(theirs.node, ours.node, target), target


def _by(look: Callable[[JsonDecoder, pa.DataType, pa.Array], pa.Array]) -> Read:
    def read(writer: Any, reader: Any, value: Any) -> Any:
        decoder, target = _json(writer, reader)
        (found,) = look(decoder, target, pa.array([json.dumps(value).encode()], pa.binary())).to_pylist()
        return found

    return read


def _by_msgspec(decoder: JsonDecoder, target: pa.DataType, values: pa.Array) -> pa.Array:
    return JsonColumns(decoder._node, target, json_objects.Structs(decoder._node)).array(values)


def _by_python(decoder: JsonDecoder, target: pa.DataType, values: pa.Array) -> pa.Array:
    return JsonColumns(decoder._node, target, json_objects.Dictionaries()).array(values)


def _by_numpy(decoder: JsonDecoder, target: pa.DataType, values: pa.Array) -> pa.Array:
    found = vector_columns.decode(pa.concat_arrays([values] * FEWEST), top_column(decoder._node, target), JsonData)
    return found.slice(0, 1)


READERS: Mapping[str, Read] = {
    "AVRO one by one": _one_by_one,
    "AVRO in step": _in_step,
    "JSON as it comes": _by(lambda decoder, _, values: decoder.decode(values)),
    "JSON in step": _by(_by_numpy),
    "JSON by msgspec": _by(_by_msgspec),
    "JSON by Python's parser": _by(_by_python),
    "JSON one by one": _by(lambda decoder, _, values: decoder._checked(values)),
}
