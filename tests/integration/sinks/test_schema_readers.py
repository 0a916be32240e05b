"""Values of random schemas are read equal, field by field, by the schema APIs of the Java and the Python client.

`make soak` tries hundreds of schemas; here it is some of each kind.
"""

from __future__ import annotations

import itertools
import json
import struct
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any

import pulsar as official
import pyarrow as pa
import pytest
from google.protobuf import text_format
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pulsar import schema as of_client
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructField, StructType

from eos.schema.description import described
from eos.schema.protobuf_schema import message_descriptor
from eos.schema.spark_types import OF_PRIMITIVES, spark_type
from tests.conftest import MakeTopic
from tests.integration.conftest import Register
from tests.integration.sinks.bad_input import World, identity
from tests.integration.sinks.conftest import InWorld
from tests.java_peer import JavaPeer
from tests.property import random_messages, random_schemas
from tests.property.random_schemas import Kind, as_arrow_has_it
from tests.unit.schema.registered import registered


@dataclass
class Case:
    """A schema, and rows that it allows.

    Attributes:
        value_format: the sink's.
        kind, definition, properties: of the schema, as the registry has them.
        columns: Spark's type of the rows.
        rows: as Arrow has them.
        wanted: as `ReadBySchema` tells them; a message of protobuf itself.
        reader: the schema of the Python client; None where it has none for this one.
        avro: the schema as Avro's JSON, if it is one.
    """

    value_format: str
    kind: str
    definition: str
    columns: StructType
    rows: list[Any]
    wanted: list[Any]
    reader: Any = None
    avro: Any = None
    properties: dict[str, str] = field(default_factory=dict)


def bits(number: float) -> str:
    return struct.pack(">d", number).hex()


def stored(schema: Any, value: Any) -> Any:
    """Return a value as `ReadBySchema` tells it."""
    if isinstance(schema, list):
        return None if value is None else stored(schema[1], value)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind == "record":
        have = value.get if isinstance(value, dict) else lambda name: getattr(value, name)
        return [stored(one["type"], have(one["name"])) for one in schema["fields"]]
    if kind == "array":
        return [stored(schema["items"], item) for item in value]
    if kind == "map":
        return {key: stored(schema["values"], inner) for key, inner in sorted(value.items())}
    if isinstance(value, Decimal):
        unscaled = int(value.scaleb(schema["scale"]))
        size = schema.get("size") or (8 + (unscaled if unscaled >= 0 else ~unscaled).bit_length()) // 8
        return unscaled.to_bytes(size, "big", signed=True).hex()
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        return bits(struct.unpack("f", struct.pack("f", value))[0] if kind == "float" else value)
    return moment(value, millis="millis" in schema.get("logicalType", "")) if isinstance(schema, dict) else value


def moment(value: Any, *, millis: bool = False) -> Any:
    """Return the number that is stored for a date or a time, and any other value as it is."""
    if isinstance(value, datetime):
        since = value - datetime(1970, 1, 1, tzinfo=value.tzinfo)
        micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        return micros // 1_000 if millis else micros
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days
    if isinstance(value, time):
        micros = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        return micros // 1_000 if millis else micros
    return value


def client_class(schema: Any) -> Any:
    """Return a record of the Python client's for a schema of JSON. Raises KeyError where it has no place for it."""
    fields = {}
    for one in schema["fields"]:
        inner, required = (one["type"][1], False) if isinstance(one["type"], list) else (one["type"], True)
        fields[one["name"]] = client_field(inner, required)
    return type(schema["name"], (of_client.Record,), fields)


PLAIN = {
    "boolean": of_client.Boolean,
    "int": of_client.Integer,
    "long": of_client.Long,
    "float": of_client.Float,
    "double": of_client.Double,
    "string": of_client.String,
}


def client_field(schema: Any, required: bool) -> Any:
    if isinstance(schema, str) and (schema != "boolean" or required):  # else it makes False of a null
        return PLAIN[schema](required=required)
    if schema["type"] == "enum":
        return of_client.CustomEnum(Enum(schema["name"], schema["symbols"]), required=required)
    if schema["type"] == "array" and isinstance(schema["items"], str):
        return of_client.Array(PLAIN[schema["items"]](), required=required)
    if schema["type"] == "map" and isinstance(schema["values"], str):
        return of_client.Map(PLAIN[schema["values"]](), required=required)
    if schema["type"] == "record" and required:  # else it makes a record of nulls of a null
        return client_class(schema)(required=True)
    raise KeyError(str(schema))


def client_schema(form: str, schema: Any) -> Any:
    if form == "AVRO":
        return of_client.AvroSchema(None, json.loads(json.dumps(schema)))
    try:
        return of_client.JsonSchema(client_class(schema))
    except (KeyError, TypeError):
        return None


IN_JSON = random_schemas.records(
    [
        *random_schemas.PLAIN,
        Kind("bytes", st.binary(max_size=40)),
        random_schemas.logical("bytes", "decimal", random_schemas.DECIMALS, precision=9, scale=2),
    ]
)


def in_json(value: Any) -> Any:
    """Return a value as the Java client can tell it: it reads the zero of a "-0.0" as any other zero."""
    if isinstance(value, dict):
        return {key: in_json(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [in_json(item) for item in value]
    return value + 0.0 if isinstance(value, float) else value


def for_java(schema: Any) -> Any:
    """Return a schema with nullable items in place of doubles: Avro's own reader, 1.12.0, makes floats of the latter.

    `PrimitivesArrays.DoubleArray.add(int, Double)` takes the `floatValue()`.
    """
    if isinstance(schema, list):
        return [for_java(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("items") == "double":
        return schema | {"items": ["null", "double"]}
    return {key: [*map(for_java, part)] if key == "fields" else for_java(part) for key, part in schema.items()}


@st.composite
def by_avros_text(draw: st.DrawFn, form: str) -> Case:
    kind = draw(IN_JSON if form == "JSON" else random_schemas.AVRO_RECORDS)
    schema = for_java(random_schemas.named(kind.schema, itertools.count()))
    values = draw(st.lists(kind.values.map(in_json) if form == "JSON" else kind.values, min_size=1, max_size=5))
    columns = spark_type(described(registered("AVRO", schema)))  # in JSON too the sink takes bytes, and no text of them
    assert isinstance(columns, StructType)
    return Case(
        value_format=form.lower(),
        kind=form,
        definition=json.dumps(schema),
        columns=columns,
        rows=[as_arrow_has_it(schema, value) for value in values],
        wanted=[stored(schema, value) for value in values],
        reader=client_schema(form, schema),
        avro=schema,
    )


@st.composite
def protobuf(draw: st.DrawFn) -> Case:
    one = draw(random_messages.drawn())
    schema = random_messages.schema_of(one)
    made = GetMessageClass(message_descriptor(schema.definition, "it"))
    columns = spark_type(described(schema))
    assert isinstance(columns, StructType)
    rows = [row for row in one.rows if row is not None]
    return Case(
        value_format="protobuf",
        kind="PROTOBUF_NATIVE",
        definition=schema.definition.decode(),
        columns=columns,
        rows=rows,
        wanted=[random_messages.fill(made(), row) for row in rows],
        reader=of_client.ProtobufNativeSchema(made),
    )


MOMENTS = random_schemas.MOMENTS.map(lambda at: at.replace(tzinfo=UTC))
WHOLE_MS = random_schemas.WHOLE_MS.map(lambda at: at.replace(tzinfo=UTC))
PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "BYTES": st.binary(min_size=1, max_size=9),
    "STRING": random_schemas.TEXTS.filter(bool),
    "BOOLEAN": st.booleans(),
    **{f"INT{size}": st.integers(-(2 ** (size - 1)), 2 ** (size - 1) - 1) for size in (8, 16, 32, 64)},
    "FLOAT": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "DOUBLE": st.floats(allow_nan=False, allow_infinity=False),
    "DATE": WHOLE_MS,
    "TIME": st.integers(0, 86_399_999),
    "TIMESTAMP": WHOLE_MS,
    "INSTANT": MOMENTS,
    "LOCAL_DATE": st.dates(date(2, 1, 1), date(9998, 1, 1)),
    "LOCAL_TIME": st.integers(0, 86_399_999_999_999),
    "LOCAL_DATE_TIME": random_schemas.MOMENTS,
}
CLIENTS = {"BYTES": of_client.BytesSchema, "STRING": of_client.StringSchema}


def told(kind: str, value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return bits(value) if isinstance(value, float) else moment(value, millis=kind in ("DATE", "TIMESTAMP"))


@st.composite
def primitives(draw: st.DrawFn) -> Case:
    kind = draw(st.sampled_from(list(PRIMITIVES)))
    values = draw(st.lists(PRIMITIVES[kind], min_size=1, max_size=5))
    return Case(
        value_format="schema",
        kind=kind,
        definition="",
        columns=StructType([StructField("value", OF_PRIMITIVES[kind])]),
        rows=[{"value": value} for value in values],
        wanted=[told(kind, value) for value in values],
        reader=CLIENTS[kind]() if kind in CLIENTS else None,
    )


@st.composite
def pairs(draw: st.DrawFn) -> Case:
    key, value = draw(primitives()), draw(by_avros_text("AVRO"))
    count = min(len(key.rows), len(value.rows))
    properties = {"key.schema.type": key.kind, "key.schema.name": "key", "key.schema.properties": "{}"}
    properties |= {"value.schema.type": "AVRO", "value.schema.name": "value", "value.schema.properties": "{}"}
    both = StructType([StructField("key", key.columns["value"].dataType), StructField("value", value.columns)])
    return Case(
        value_format="schema",
        kind="KEY_VALUE",
        definition=json.dumps({"key": "", "value": value.avro}),
        columns=StructType([StructField("value", both)]),
        rows=[{"value": {"key": key.rows[row]["value"], "value": value.rows[row]}} for row in range(count)],
        wanted=[[key.wanted[row], value.wanted[row]] for row in range(count)],
        properties=properties | {"kv.encoding.type": draw(st.sampled_from(["INLINE", "SEPARATED"]))},
    )


CASES: dict[str, st.SearchStrategy[Case]] = {
    "JSON": by_avros_text("JSON"),
    "AVRO": by_avros_text("AVRO"),
    "protobuf": protobuf(),
    "primitives": primitives(),
    "pairs": pairs(),
}


@dataclass
class Readers:
    """The writers and readers of the cases."""

    spark: SparkSession
    world: World
    theirs: official.Client
    java: JavaPeer
    make_topic: MakeTopic
    register: Register

    def check(self, cases: list[Case]) -> None:
        """Write each case to a topic of its own, all of them in one transaction, and have them read."""
        world = self.world
        sink = world.sink(value_format=cases[0].value_format, name=self.make_topic("sink").rsplit("/")[-1])
        topics = [self.make_topic("typed") for _ in cases]
        with sink.batch(0, identity()) as txn:
            for case, topic in zip(cases, topics, strict=True):
                self.register(topic, case.kind, case.definition, **case.properties)
                rows = pa.Table.from_struct_array(pa.array(case.rows, to_arrow_type(case.columns, timezone="UTC")))
                txn.write(self.spark.createDataFrame(rows, case.columns).coalesce(1), topic)
        sink.close()
        for case, topic in zip(cases, topics, strict=True):
            self._read(case, topic)

    def _read(self, case: Case, topic: str) -> None:
        avro = [json.dumps(case.avro)] if case.kind == "JSON" else []
        found = json.loads(self.java.order("\t".join([topic, str(len(case.rows)), *avro]), "read"))
        assert {version for version, _ in found} == {0}
        values = [value for _, value in found]
        if case.kind == "PROTOBUF_NATIVE":
            values = [text_format.Parse(text, type(one)()) for text, one in zip(values, case.wanted, strict=True)]
        assert values == case.wanted, (case.kind, case.definition)
        if case.reader is None:
            return
        reader = self.theirs.create_reader(topic, official.MessageId.earliest, schema=case.reader)
        ours = [reader.read_next(60_000).value() for _ in case.rows]
        reader.close()
        if case.avro is not None:
            ours = [stored(case.avro, one) for one in ours]
        elif case.kind != "PROTOBUF_NATIVE":
            ours = [told(case.kind, one) for one in ours]
        assert ours == case.wanted, (case.kind, case.definition)


@pytest.fixture
def readers(
    spark: SparkSession,
    in_world: InWorld,
    theirs: official.Client,
    in_java: JavaPeer,
    make_topic: MakeTopic,
    register: Register,
) -> Readers:
    return Readers(spark, in_world(make_topic("any")), theirs, in_java, make_topic, register)


@pytest.mark.parametrize(("batches", "topics"), [(2, 4), pytest.param(13, 10, marks=pytest.mark.soak)])
@pytest.mark.parametrize("kind", CASES)
def test_what_is_written_by_a_schema_is_read_equal(readers: Readers, kind: str, batches: int, topics: int) -> None:
    """The first batch that Hypothesis draws is of the simplest schemas; the others are random."""
    cases = CASES[kind].filter(lambda case: bool(case.rows))

    @settings(
        max_examples=batches,
        database=None,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(cases, min_size=topics, max_size=topics))
    def check(some: list[Case]) -> None:
        readers.check(some)

    check()
