"""Values by a topic's schema: what fits is read equal by the official client and our source, the rest is refused."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, date, datetime
from enum import Enum
from typing import Any

import httpx
import pulsar as official
import pytest
from pulsar.schema import (
    Array,
    AvroSchema,
    Boolean,
    BytesSchema,
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
from pyspark.sql import Row, SparkSession

import eos
from tests.conftest import MakeTopic
from tests.integration.conftest import Register
from tests.integration.sinks.bad_input import identity
from tests.integration.sinks.conftest import InWorld, read_in_this_process, table, version_of
from tests.reading import received


class Delay(Record):  # type: ignore[misc]
    carrier = String()
    delay = Integer(required=True)


class Status(Enum):
    LATE = 1
    CANCELLED = 2


class Airport(Record):  # type: ignore[misc]
    code = String(required=True)
    latitude = Double()


FIELDS = {
    "carrier": String(),
    "delay": Integer(required=True),
    "distance": Long(),
    "share": Float(required_default=True),
    "late": Boolean(),
    "legs": Array(String()),
    "seats": Map(Integer()),
    "status": CustomEnum(Status),
    "origin": Airport(),
}
Flight: Any = type("Flight", (Record,), {name: kind for name, kind in FIELDS.items() if name != "share"})
FlightNow: Any = type("Flight", (Record,), FIELDS | {"gate": String(required_default=True)})


def test_json_is_checked_against_the_topics_schema(
    theirs: official.Client, make_topic: MakeTopic, in_world: InWorld
) -> None:
    topic = make_topic("schema", partitions=2)
    theirs.create_producer(topic, schema=JsonSchema(Delay)).close()
    world = in_world(topic)
    words = f"The rows do not fit version 0 of the schema of {topic}: field 'delay' is string, and the schema has int"
    with pytest.raises(eos.InvalidInput, match=words):
        world.write(world.rows("cast(id as string) delay"), value_format="json")
    world.write(world.rows("cast(id as int) delay", "'UA' carrier", "'k' __key"), value_format="json")
    read = [one.value() for one in received(theirs, topic, JsonSchema(Delay), 3)]
    assert sorted((one.carrier, one.delay) for one in read) == [("UA", number) for number in range(3)]


COLUMNS = (
    "cast(id as string) __key",
    "if(id % 5 = 4, null, concat('größer ', id)) carrier",
    "cast(-id as int) delay",
    "if(id % 5 = 4, null, shiftleft(id, 40)) distance",
    "cast(if(id % 5 = 4, null, id / 2) as float) share",
    "if(id % 5 = 4, null, id % 2 = 0) late",
    "if(id % 5 = 4, null, array_repeat('JFK', cast(id % 3 as int))) legs",
    "if(id % 5 = 4, null, map('economy', cast(id as int))) seats",
    "if(id % 5 = 4, null, 'CANCELLED') status",
    "if(id % 5 = 4, null, named_struct('code', 'JFK', 'latitude', 40.6D)) origin",
)


def expected(number: int) -> Row:
    null = number % 5 == 4
    return Row(
        carrier=None if null else f"größer {number}",
        delay=-number,
        distance=None if null else number << 40,
        share=None if null else number / 2,
        late=None if null else number % 2 == 0,
        legs=None if null else ["JFK"] * (number % 3),
        seats=None if null else {"economy": number},
        status=None if null else "CANCELLED",
        origin=None if null else Row(code="JFK", latitude=40.6),
        gate=None,
    )


def plain(value: Any) -> Any:
    """Return a value as the official client has it; a boolean that is null is False there."""
    if isinstance(value, Record):
        return {name: plain(getattr(value, name)) for name in type(value)._fields}
    if isinstance(value, Row):
        return {name: plain(inner) if name != "late" else bool(inner) for name, inner in value.asDict().items()}
    return value.name if isinstance(value, Enum) else value


def test_avro_is_read_equal_field_by_field(
    spark: SparkSession, pulsar: Any, theirs: official.Client, make_topic: MakeTopic, in_world: InWorld
) -> None:
    topic = make_topic("avro", partitions=2)
    for version in (Flight, FlightNow):
        theirs.create_producer(topic, schema=AvroSchema(version)).close()
    sink = in_world(topic).sink(value_format="avro")
    for batch, rows in enumerate((spark.range(0, 30, numPartitions=2), spark.range(30, 50))):  # by tasks, then not
        with sink.batch(batch, identity(batch)) as txn:
            txn.write(rows.selectExpr(*COLUMNS))
    messages = received(theirs, topic, AvroSchema(FlightNow), 50)
    assert {version_of(one) for one in messages} == {1}
    wanted = [expected(number) for number in range(50)]
    found = sorted((plain(one.value()) for one in messages), key=lambda row: -row["delay"])
    assert found == [plain(row) for row in wanted]
    names = ", ".join(f"value.{name}" for name in wanted[0].asDict())
    ours = table(spark, pulsar, topic).selectExpr(*names.split(", ")).collect()
    assert sorted(ours, key=lambda row: -row.delay) == wanted


def test_what_does_not_fit_an_avro_schema_is_refused_and_nothing_of_it_is_seen(
    spark: SparkSession, pulsar: Any, theirs: official.Client, make_topic: MakeTopic, in_world: InWorld
) -> None:
    topic, bare = make_topic("avro", partitions=2), make_topic("bare")
    theirs.create_producer(topic, schema=AvroSchema(Delay)).close()
    world = in_world(topic)
    with pytest.raises(eos.InvalidInput, match="field 'delay' is bigint, and the schema has int"):
        world.write(world.rows("id delay"), value_format="avro")
    with pytest.raises(eos.InvalidInput, match=f"{bare} has none"):
        world.write(world.rows("id delay"), bare, value_format="avro")
    nulls = spark.range(0, 9, numPartitions=1).selectExpr("concat('k', id) __key", "cast(nullif(id, 7) as int) delay")
    words = (
        "in Spark's partition 0: row 7 .key \"k7\". can't be written by version 0 .*'delay' of its value: it is null"
    )
    with pytest.raises(eos.InvalidInput, match=words):
        world.write(nulls, value_format="avro")
    assert received(theirs, topic, AvroSchema(Delay), 0) == []


PRIMITIVES: dict[str, tuple[str, Any]] = {
    "BYTES": ("cast('x' as binary)", b"x"),
    "STRING": ("'größer'", "größer"),
    "BOOLEAN": ("true", True),
    "INT8": ("cast(-128 as tinyint)", -128),
    "INT16": ("cast(-3 as tinyint)", -3),
    "INT32": ("-70000", -70000),
    "INT64": ("cast(7 as int)", 7),
    "FLOAT": ("cast(-0.5 as float)", -0.5),
    "DOUBLE": ("0.1D", 0.1),
    "DATE": ("timestamp '2013-01-01 10:15:30.123456Z'", datetime(2013, 1, 1, 10, 15, 30, 123000, UTC)),
    "TIME": ("36930123L", 36_930_123),
    "TIMESTAMP": ("timestamp '1969-12-31 23:59:59.999999Z'", datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)),
    "INSTANT": ("timestamp '2013-01-01 10:15:30.123456Z'", datetime(2013, 1, 1, 10, 15, 30, 123456, UTC)),
    "LOCAL_DATE": ("date '1969-12-31'", date(1969, 12, 31)),
    "LOCAL_TIME": ("86399999999999L", 86_399_999_999_999),
    "LOCAL_DATE_TIME": ("timestamp_ntz '1969-12-31 23:59:59.999999'", datetime(1969, 12, 31, 23, 59, 59, 999999)),
}


def test_each_topic_of_a_batch_is_written_by_its_own_schema(
    pulsar: Any, theirs: official.Client, make_topic: MakeTopic, in_world: InWorld, register: Register
) -> None:
    topics = {kind: make_topic(kind.lower()) for kind in PRIMITIVES}
    for kind, topic in topics.items():
        register(topic, kind)
    world = in_world(topics["STRING"])
    sink = world.sink(value_format="schema")
    with pytest.raises(eos.InvalidInput, match="column 'value' is bigint, and STRING is written from string"):
        world.write(world.rows("id value"), value_format="schema")
    with sink.batch(0, identity()) as txn:
        for kind, (expression, _) in PRIMITIVES.items():
            txn.write(world.rows(f"if(id = 1, null, {expression}) value").coalesce(1), topics[kind])
    for kind, (_, meant) in PRIMITIVES.items():
        assert read_in_this_process(pulsar, topics[kind]) == [meant, None, meant], kind
    texts = received(theirs, topics["STRING"], StringSchema(), 3)
    assert [texts[place].value() for place in (0, 2)] == ["größer"] * 2
    assert {version_of(one) for one in texts} == {0}


@pytest.mark.parametrize(("value_format", "schema"), [("avro", AvroSchema), ("json", JsonSchema)])
def test_a_schema_is_registered_and_followed_by_another_where_the_caller_asks_for_it(
    theirs: official.Client, make_topic: MakeTopic, in_world: InWorld, value_format: str, schema: Any
) -> None:
    topic = make_topic("registers", partitions=2)
    world = in_world(topic)
    sink = world.sink(value_format=value_format, register_schema="Flight")
    more = ("cast(null as int) delay", "'A1' gate", "named_struct('x', 1) seat")
    for batch, columns in enumerate((("cast(id as int) delay",), more, ("7 delay",))):
        with sink.batch(batch, identity(batch)) as txn:
            txn.write(world.rows(*columns))
    with (
        pytest.raises(eos.InvalidInput, match="field 'delay' is string, and the schema has int"),
        sink.batch(3, identity(3)) as txn,
    ):
        txn.write(world.rows("'late' delay", "'new' more"))
    seat: Any = type("seat", (Record,), {"x": Integer()})
    fields = {"delay": Integer(), "gate": String(required_default=True), "seat": seat(required_default=True)}
    messages = received(theirs, topic, schema(type("Flight", (Record,), fields)), 9)
    found = sorted((version_of(one), one.value().delay or 0, one.value().gate) for one in messages)
    assert found == [*((0, number, None) for number in range(3)), *[(1, 0, "A1")] * 3, *[(1, 7, None)] * 3]


def test_an_older_version_that_the_topic_has_is_written_by(
    theirs: official.Client, make_topic: MakeTopic, in_world: InWorld, register: Register
) -> None:
    """The broker takes it for the one that it is, and registers no newer one of the same fields."""
    topic = make_topic("again")
    fields = [{"name": name, "type": ["null", "string"], "default": None} for name in ("carrier", "gate")]
    for part in (fields, fields[:1]):
        register(topic, "AVRO", json.dumps({"type": "record", "name": "Flight", "fields": part}))
    world = in_world(topic)
    sink = world.sink(value_format="avro", register_schema="Flight")
    for batch in range(2):
        with sink.batch(batch, identity(batch)) as txn:
            txn.write(world.rows("'UA' carrier", "'A1' gate"))
    messages = received(theirs, topic, BytesSchema(), 6)
    assert [(version_of(one), one.value()) for one in messages] == [(0, b"\2\4UA\2\4A1")] * 6


def test_a_schema_that_the_topic_does_not_take_is_refused(pulsar: Any, in_world: InWorld) -> None:
    namespace = f"public/takes-none-{uuid.uuid4().hex[:10]}"
    with httpx.Client(base_url=f"{pulsar.admin_url}/admin/v2/", timeout=30) as admin:
        admin.put(f"namespaces/{namespace}").raise_for_status()
        strategy = f"namespaces/{namespace}/schemaCompatibilityStrategy"
        admin.put(strategy, json="ALWAYS_INCOMPATIBLE").raise_for_status()
        admin.put(f"persistent/{namespace}/t").raise_for_status()
    world = in_world(f"persistent://{namespace}/t")
    sink = world.sink(value_format="avro", register_schema="Flight")
    with sink.batch(0, identity()) as txn:
        txn.write(world.rows("id delay"))
    words = "field 'gate' is string, and the schema has no such field. The topic takes no new version for it"
    with pytest.raises(eos.InvalidInput, match=words), sink.batch(1, identity(1)) as txn:
        txn.write(world.rows("id delay", "'A1' gate"))


def test_what_the_first_batch_would_refuse_is_told_before_a_query_starts(
    spark: SparkSession, theirs: official.Client, make_topic: MakeTopic, in_world: InWorld
) -> None:
    topic, bare = make_topic("checked", partitions=2), make_topic("bare")
    theirs.create_producer(topic, schema=AvroSchema(Delay)).close()
    ticks = spark.readStream.format("rate").load().drop("timestamp")
    good = ticks.selectExpr("cast(value as int) delay", "'k' __key")
    sink = in_world(topic).sink(value_format="avro")
    sink.check(good)
    refused = (
        (good, bare, eos.InvalidInput, f"{bare} has none"),
        (good, f"{topic}-not", eos.TopicMissing, "does not exist"),
        (good.selectExpr("*", "1 __eventTime"), topic, eos.InvalidInput, "'__eventTime' is int, but"),
        (ticks.selectExpr("value delay"), topic, eos.InvalidInput, "'delay' is bigint, and the schema has int"),
        (good.selectExpr("*", "'A1' gate"), topic, eos.InvalidInput, "'gate' is string, and the schema has no such"),
    )
    for rows, where, error, words in refused:
        with pytest.raises(error, match=words):
            sink.check(rows, where)
    registers = in_world(topic).sink(value_format="avro", register_schema="Flight")
    registers.check(good, bare)
    registers.check(good.selectExpr("*", "'A1' gate"))
    with pytest.raises(eos.InvalidInput, match="'delay' is bigint, and the schema has int"):
        registers.check(ticks.selectExpr("value delay", "'A1' gate"))
    with pytest.raises(eos.InvalidInput, match=f"{bare} has none"):  # still
        sink.check(good, bare)
    newer: Any = type("Delay", (Delay,), Delay._fields | {"gate": String(required_default=True)})
    theirs.create_producer(topic, schema=AvroSchema(newer)).close()
    sink.check(good.selectExpr("*", "'A1' gate"))
    assert received(theirs, topic, AvroSchema(Delay), 0) == []


def test_pairs_are_read_equal_with_their_keys_where_the_schema_has_them(
    spark: SparkSession, pulsar: Any, make_topic: MakeTopic, in_world: InWorld, register: Register
) -> None:
    topics = {encoding: make_topic(encoding.lower(), partitions=2) for encoding in ("INLINE", "SEPARATED")}
    flight = {"type": "record", "name": "Flight", "fields": [{"name": "delay", "type": ["null", "int"]}]}
    kinds = {"key.schema.type": "STRING", "value.schema.type": "AVRO"}
    for encoding, topic in topics.items():
        definition = json.dumps({"key": "", "value": flight})
        register(topic, "KEY_VALUE", definition, **kinds, **{"kv.encoding.type": encoding})
    world = in_world(topics["INLINE"])
    pair = "named_struct('key', concat('größer ', id), 'value', named_struct('delay', cast(nullif(id, 1) as int)))"
    rows = world.rows(f"if(id = 2, null, {pair}) value")
    sink, words = world.sink(value_format="schema"), "Column 'key' gives the message's key, and so does the pair"
    with pytest.raises(eos.InvalidInput, match=words), sink.batch(0, identity()) as txn:
        txn.write(rows.selectExpr("*", "'k' key"), topics["SEPARATED"])
    with sink.batch(0, identity()) as txn:
        for topic in topics.values():
            txn.write(rows, topic)
    wanted = [None, Row(key="größer 0", value=Row(delay=0)), Row(key="größer 1", value=Row(delay=None))]
    for encoding, topic in topics.items():
        found = table(spark, pulsar, topic).selectExpr("value", "cast(__key as string) key").collect()
        found.sort(key=lambda row: "" if row.value is None else row.value.key)
        assert [row.value for row in found] == wanted
        assert [row.key for row in found] == ([None] * 3 if encoding == "INLINE" else [None, "größer 0", "größer 1"])
