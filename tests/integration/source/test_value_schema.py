"""Values typed by a topic's registered schema, as the official client writes them and the registry keeps them."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any

import pulsar as official
import pytest
from pulsar.schema import (
    Array,
    AvroSchema,
    Boolean,
    CustomEnum,
    Double,
    Float,
    Integer,
    JsonSchema,
    Long,
    Map,
    Record,
    String,
    StringSchema,
)
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from eos.by_name.data_source import PulsarDataSource
from eos.errors import InvalidInput
from eos.pulsar.net.client import Client
from tests.conftest import MakeTopic
from tests.integration.conftest import Register
from tests.integration.source.conftest import MakeStream
from tests.integration.source.streams import write


class Status(Enum):
    LATE = 1
    CANCELLED = 2


class Airport(Record):  # type: ignore[misc]
    code = String(required=True)
    latitude = Double()


class Flight(Record):  # type: ignore[misc]
    carrier = String()
    delay = Integer(required=True)
    distance = Long()
    share = Float()
    late = Boolean()
    legs = Array(String())
    seats = Map(Integer())
    status = CustomEnum(Status)
    origin = Airport()


class PlainFlight(Record):  # type: ignore[misc]
    carrier = String()
    delay = Integer(required=True)
    legs = Array(String())


def flight(number: int) -> Flight:
    if number % 5 == 4:
        return Flight(delay=number, origin=None)  # a record that is left out is one of nulls
    return Flight(
        carrier=f"größer {number}",
        delay=-number,
        distance=number << 40,
        share=number / 2,
        late=number % 2 == 0,
        legs=["JFK"] * (number % 3),
        seats={"economy": number},
        status=Status.LATE,
        origin=Airport(code="JFK", latitude=40.6),
    )


def expected(number: int) -> Row:
    if number % 5 == 4:
        return Row(
            carrier=None, delay=number, distance=None, share=None, late=False, legs=None, seats=None, status=None,
            origin=None,
        )  # fmt: skip
    return Row(
        carrier=f"größer {number}",
        delay=-number,
        distance=number << 40,
        share=number / 2,
        late=number % 2 == 0,
        legs=["JFK"] * (number % 3),
        seats={"economy": number},
        status="LATE",
        origin=Row(code="JFK", latitude=40.6),
    )


def send(client: official.Client, topic: str, schema: Any, values: list[Any]) -> None:
    producer = client.create_producer(topic, schema=schema, batching_enabled=True, batching_max_publish_delay_ms=1)
    for value in values:
        producer.send_async(value, lambda result, _: None)
    producer.flush()
    producer.close()


def table(spark: SparkSession, pulsar: Any, **options: str) -> DataFrame:
    given = {"service.url": pulsar.service_url, "valueFormat": "schema"} | options
    return spark.read.format("pulsar").options(**given).load()


@pytest.mark.parametrize("schema", [AvroSchema, JsonSchema])
def test_records_arrive_equal_field_by_field(
    spark: SparkSession,
    pulsar: Any,
    theirs: official.Client,
    make_topic: MakeTopic,
    make_stream: MakeStream,
    schema: Any,
) -> None:
    topic = make_topic(f"typed-{schema.__name__}".lower(), 2)
    if schema is JsonSchema:  # this client writes an enum's number there, where the schema has its names
        send(theirs, topic, schema(PlainFlight), [PlainFlight(carrier="UA", delay=n, legs=["a"] * n) for n in range(3)])
        wanted = [Row(carrier="UA", delay=n, legs=["a"] * n) for n in range(3)]
    else:
        send(theirs, topic, schema(Flight), [flight(number) for number in range(50)])
        wanted = [expected(number) for number in range(50)]
    theirs.create_producer(topic).send(None)
    in_batch = table(spark, pulsar, topic=topic)
    assert in_batch.select("value.*").columns == list(wanted[0].asDict())
    rows = [row.value for row in in_batch.collect()]
    assert sorted((row for row in rows if row is not None), key=lambda row: abs(row.delay)) == wanted
    assert rows.count(None) == 1
    streamed = make_stream(topic=topic, valueFormat="schema").run(None)
    assert sorted((row.value for row in streamed), key=repr) == sorted(rows, key=repr)


def test_each_message_is_read_by_the_version_that_it_was_written_with(
    spark: SparkSession, pulsar: Any, theirs: official.Client, make_topic: MakeTopic, make_stream: MakeStream
) -> None:
    def version(number: int) -> Any:
        fields = {"carrier": String(), "delay": Integer(required=True)}
        if number == 2:
            fields = {"gate": String(required_default=True), **fields}
        return type("Evolving", (Record,), fields)

    old, new = version(1), version(2)
    topic = make_topic("evolves")
    send(theirs, topic, AvroSchema(old), [old(carrier="UA", delay=1)])
    stream = make_stream(topic=topic, valueFormat="schema")
    assert [row.value for row in stream.run(None)] == [Row(carrier="UA", delay=1)]
    with_old = stream.start(None)
    try:
        send(theirs, topic, AvroSchema(new), [new(carrier="AA", delay=2, gate="A1")])
        send(theirs, topic, AvroSchema(old), [old(carrier="DL", delay=3)])
        with_old.processAllAvailable()
    finally:
        with_old.stop()
    running = [row.value for number, rows in sorted(stream.batches.items()) if number > 0 for row in rows]
    assert running == [Row(carrier="AA", delay=2), Row(carrier="DL", delay=3)], "a running query keeps its schema"
    assert [row.value for row in table(spark, pulsar, topic=topic).collect()] == [
        Row(gate=None, carrier="UA", delay=1),
        Row(gate="A1", carrier="AA", delay=2),
        Row(gate=None, carrier="DL", delay=3),
    ]


def test_a_type_that_was_declared_before_the_schema_evolved_is_still_read(
    spark: SparkSession, pulsar: Any, theirs: official.Client, make_topic: MakeTopic, make_stream: MakeStream
) -> None:
    """Else a compatible version of the schema would end the next start of each query that declares its columns."""
    first = type("Evolving", (Record,), {"delay": Integer(required=True)})
    second = type("Evolving", (Record,), {"delay": Integer(required=True), "gate": String(required_default=True)})
    topic = make_topic("declared")
    send(theirs, topic, AvroSchema(first), [first(delay=1)])
    declared = "value struct<delay: int>"
    stream = make_stream(topic=topic, valueFormat="schema")
    assert [row.value for row in stream.run(declared)] == [Row(delay=1)]
    send(theirs, topic, AvroSchema(second), [second(delay=2, gate="A1")])
    assert [row.value for row in stream.run(declared)] == [Row(delay=2)]
    given = {"service.url": pulsar.service_url, "valueFormat": "schema", "topic": topic}
    rows = spark.read.format("pulsar").options(**given).schema(declared).load()
    assert sorted(row.value.delay for row in rows.collect()) == [1, 2]


def test_primitives_and_pairs(
    spark: SparkSession, pulsar: Any, ours: Client, theirs: official.Client, make_topic: MakeTopic, register: Register
) -> None:
    texts = make_topic("texts", 2)
    send(theirs, texts, StringSchema(), ["größer", "", "😀"])
    assert sorted(row.value for row in table(spark, pulsar, topic=texts).collect()) == ["", "größer", "😀"]
    numbers, times, pairs = (make_topic(stem) for stem in ("numbers", "times", "pairs"))
    register(numbers, "INT32")
    register(times, "LOCAL_TIME")
    register(
        pairs, "KEY_VALUE", '{"key": "", "value": ""}', **{"key.schema.type": "STRING", "value.schema.type": "INT64"}
    )
    producer = theirs.create_producer(numbers)
    producer.send((-5).to_bytes(4, "big", signed=True))
    producer.send(None)
    write(ours, times, "\0\0\0\0\0\0\x03\x09")
    write(ours, pairs, "\0\0\0\1k\0\0\0\x08" + "\0" * 7 + "\7")
    found = table(spark, pulsar, topic=numbers)
    assert found.schema["value"].dataType.simpleString() == "int"
    assert [row.value for row in found.collect()] == [-5, None]
    assert [row.value for row in table(spark, pulsar, topic=times).collect()] == [777]
    assert [row.value for row in table(spark, pulsar, topic=pairs).collect()] == [Row(key="k", value=7)]
    chosen = spark.read.format("pulsar").options(**{"service.url": pulsar.service_url}, topic=numbers)
    with_key = chosen.option("valueFormat", "schema").schema("__partition int, value int").load()
    assert [tuple(row) for row in with_key.collect()] == [(None, -5), (None, None)]


def read_in_this_process(pulsar: Any, **options: str) -> list[Any]:
    given = {"service.url": pulsar.service_url, "valueformat": "schema"} | options
    source = PulsarDataSource(given)
    reader = source.reader(source.schema())
    batches: Any = (batch for part in reader.partitions() for batch in reader.read(part))
    return [row for batch in batches for row in batch.to_pylist()]


def test_what_has_no_type_or_several_is_refused(
    pulsar: Any, theirs: official.Client, make_topic: MakeTopic, register: Register
) -> None:
    bare, numbers, texts = (make_topic(stem) for stem in ("bare", "numbers", "texts"))
    register(numbers, "INT32")
    register(texts, "STRING")
    with pytest.raises(InvalidInput, match=f"{bare} has no registered schema, so its values have no type"):
        read_in_this_process(pulsar, topic=bare)
    both = f"version 0 of the schema of {numbers} is INT32, but version 0 of the schema of {texts} is STRING"
    with pytest.raises(InvalidInput, match=f"the topics have different schemas: {both}"):
        read_in_this_process(pulsar, topics=f"{numbers},{texts}")
    declared = PulsarDataSource({"service.url": pulsar.service_url, "valueformat": "schema", "topic": numbers})
    with pytest.raises(InvalidInput, match="'value' can't be string: by the registered schema it is int"):
        declared.reader(StructType([StructField("value", StringType())]))


def test_a_value_that_is_not_as_its_schema_says_is_named(
    pulsar: Any, theirs: official.Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("wrong")
    send(theirs, topic, JsonSchema(PlainFlight), [PlainFlight(carrier="UA", delay=1, legs=[])])
    wrong = theirs.create_producer(topic).send(json.dumps({"carrier": "UA", "delay": "late", "legs": []}).encode())
    place = f"{wrong.ledger_id()}:{wrong.entry_id()}"
    words = f"message {place} of {topic}, without a schema version: field 'delay' of its value can't be decoded: 'late'"
    with pytest.raises(InvalidInput, match=words):
        read_in_this_process(pulsar, topic=topic)
