"""Rows written by a topic's descriptors are read equal by the official clients and by our source."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pulsar as official
import pytest
from google.protobuf import text_format
from google.protobuf.message_factory import GetMessageClass
from pulsar.schema import ProtobufNativeSchema
from pyspark.sql import Row, SparkSession

import eos
from eos.schema.protobuf_schema import message_descriptor
from tests.conftest import MakeTopic
from tests.integration.sinks.bad_input import identity
from tests.integration.sinks.conftest import InWorld, table, version_of
from tests.java_peer import JavaPeer
from tests.protobuf import proto
from tests.reading import received

FLIGHT = [
    "optional string carrier = 1",
    "int32 delay = 2",
    "repeated Status status = 3",
    "map<string, Leg> legs = 4",
    "google.protobuf.Timestamp at = 5",
    "uint64 id = 6",
    "one of place bytes gate = 7",
    "one of place bool remote = 8",
]
PARTS = {"Leg": ["double share = 1", "repeated sint64 parts = 2"]}
STATUS = {"Status": ["UNKNOWN", "LATE"]}


def message(*more: str) -> Any:
    definition = proto({"Flight": [*FLIGHT, *more], **PARTS}, STATUS)
    return GetMessageClass(message_descriptor(definition, "it"))


COLUMNS = (
    "cast(id as string) __key",
    "if(id % 5 = 4, null, concat('größer ', id)) carrier",
    "cast(-id as int) delay",
    "array_repeat('LATE', cast(id % 3 as int)) status",
    "map('JFK', named_struct('share', id / 2D, 'parts', array(-id, 1L))) legs",
    "if(id % 5 = 4, null, timestamp_micros(id - 1)) at",
    "shiftleft(id, 40) id",
    "if(id % 2 = 0, binary('A1'), null) gate",
    "if(id % 2 = 1, false, null) remote",
)


def expected(number: int) -> Row:
    null = number % 5 == 4
    return Row(
        carrier=None if null else f"größer {number}",
        delay=-number,
        status=["LATE"] * (number % 3),
        legs={"JFK": Row(share=number / 2, parts=[-number, 1])},
        at=None if null else number - 1,
        id=Decimal(number << 40),
        gate=b"A1" if number % 2 == 0 else None,
        remote=None if number % 2 == 0 else False,
        late=None,
    )


def made(kind: Any, row: Row) -> Any:
    """Return the message that a program would make of a row."""
    one = kind(
        carrier=row.carrier, delay=row.delay, status=row.status, id=int(row.id), gate=row.gate, remote=row.remote
    )
    for name, leg in row.legs.items():
        one.legs[name].share = leg.share
        one.legs[name].parts.extend(leg.parts)
    if row.at is not None:
        one.at.FromMicroseconds(row.at)
    return one


def test_protobuf_is_read_equal_field_by_field(
    spark: SparkSession,
    pulsar: Any,
    theirs: official.Client,
    make_topic: MakeTopic,
    in_world: InWorld,
    in_java: JavaPeer,
) -> None:
    topic = make_topic("protobuf")
    newest = message("optional bool late = 9")
    for kind in (message(), newest):
        theirs.create_producer(topic, schema=ProtobufNativeSchema(kind)).close()
    sink = in_world(topic).sink(value_format="protobuf")
    for batch, rows in enumerate((spark.range(0, 30, numPartitions=2), spark.range(30, 40))):  # by tasks, then not
        with sink.batch(batch, identity(batch)) as txn:
            txn.write(rows.selectExpr(*COLUMNS))
    wanted = [expected(number) for number in range(40)]
    messages = received(theirs, topic, ProtobufNativeSchema(newest), 40)
    assert {version_of(one) for one in messages} == {1}
    by_delay = sorted((one.value() for one in messages), key=lambda one: -one.delay)
    assert by_delay == [made(newest, row) for row in wanted]
    told = json.loads(in_java.order(f"{topic}\t40", "read"))
    assert {version for version, _ in told} == {1}
    parsed = sorted((text_format.Parse(text, newest()) for _, text in told), key=lambda one: -one.delay)
    assert parsed == by_delay
    names = [f"unix_micros(value.{name}) {name}" if name == "at" else f"value.{name}" for name in wanted[0].asDict()]
    ours = table(spark, pulsar, topic).selectExpr(*names).collect()
    assert sorted(ours, key=lambda row: -row.delay) == wanted


def test_our_source_reads_what_the_official_client_writes_by_two_versions(
    spark: SparkSession, pulsar: Any, theirs: official.Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("protobuf")
    at = datetime(2013, 1, 1, 10, 15, 30, 250_000, UTC)
    for more, fields in ((), {}), (("optional bool late = 9",), {"late": True}):
        kind = message(*more)
        producer = theirs.create_producer(topic, schema=ProtobufNativeSchema(kind))
        one = kind(carrier="UA", delay=len(fields), status=["LATE"], id=2**64 - 1, remote=True, **fields)
        one.at.FromDatetime(at)
        producer.send(one)
        producer.close()
    found = table(spark, pulsar, topic).selectExpr("value.*").collect()
    assert [(row.delay, row.late) for row in found] == [(0, None), (1, True)]
    for row in found:
        assert (row.carrier, row.status, row.legs, row.id) == ("UA", ["LATE"], {}, Decimal(2**64 - 1))
        assert (row["at"].timestamp(), row.gate, row.remote) == (at.timestamp(), None, True)


def test_what_does_not_fit_a_descriptor_is_refused_and_nothing_of_it_is_seen(
    spark: SparkSession, theirs: official.Client, make_topic: MakeTopic, in_world: InWorld
) -> None:
    topic = make_topic("protobuf")
    theirs.create_producer(topic, schema=ProtobufNativeSchema(message())).close()
    world = in_world(topic)
    with pytest.raises(eos.InvalidInput, match="field 'delay' is bigint, and the schema has int"):
        world.write(world.rows("id delay"), value_format="protobuf")
    nulls = spark.range(0, 9, numPartitions=1).selectExpr("concat('k', id) __key", "cast(nullif(id, 7) as int) delay")
    words = "row 7 .key \"k7\". can't be written by version 0 .*'delay' of its value: it is null, and a field without"
    with pytest.raises(eos.InvalidInput, match=words):
        world.write(nulls, value_format="protobuf")
    assert received(theirs, topic, ProtobufNativeSchema(message()), 0) == []
