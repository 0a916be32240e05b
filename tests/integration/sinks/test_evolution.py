"""Schemas that change under each of Pulsar's compatibility strategies: what the sink writes, and what it refuses."""

from __future__ import annotations

import json
import uuid
from typing import Any, NamedTuple

import httpx
import pulsar as official
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import eos
from tests.integration.conftest import Register
from tests.integration.sinks.bad_input import identity
from tests.integration.sinks.conftest import InWorld, read_in_this_process, version_of
from tests.reading import received
from tests.waiting import PATIENCE_S, until_batch

CARRIER = {"name": "carrier", "type": ["null", "string"], "default": None}
DELAY = {"name": "delay", "type": "int"}
GATE = {"name": "gate", "type": ["null", "string"], "default": None}
NO_SUCH = "is {}, and the schema has no such field"


class Change(NamedTuple):
    """The columns that another program registers after `carrier` and `delay`, and the sink's words about them.

    Attributes:
        versions: the fields of each.
        words: of the refusal, once the last version is the newest; None where the columns fit it.
        before: the same while the version before is the newest.
    """

    versions: tuple[list[Any], ...]
    words: str | None = None
    before: str | None = None


CHANGES = {
    "a field with a default": Change(([CARRIER, DELAY, GATE],)),
    "a field without a default": Change(
        ([CARRIER, DELAY, {"name": "gate", "type": "string"}],),
        "field 'gate' is missing, and the schema has string, neither null nor a default",
    ),
    "a field less": Change(([CARRIER],), f"field 'delay' {NO_SUCH.format('int')}"),
    "a wider number": Change(([CARRIER, {"name": "delay", "type": "long"}],)),
    "a text for a number": Change(
        ([CARRIER, {"name": "delay", "type": "string"}],), "field 'delay' is int, and the schema has string"
    ),
    "another type two versions later": Change(
        ([DELAY], [{"name": "carrier", "type": "int", "default": 0}, DELAY]),
        "field 'carrier' is string, and the schema has int",
        f"field 'carrier' {NO_SUCH.format('string')}",
    ),
}
LATER = "another type two versions later"
BACKWARD = {"a field with a default", "a field less", "a wider number"}
FORWARD = {"a field with a default", "a field without a default"}
TAKEN = {
    "ALWAYS_COMPATIBLE": CHANGES.keys(),
    "ALWAYS_INCOMPATIBLE": set[str](),
    "BACKWARD": BACKWARD | {LATER},
    "FORWARD": FORWARD | {LATER},
    "FULL": BACKWARD & FORWARD | {LATER},
    "BACKWARD_TRANSITIVE": BACKWARD,
    "FORWARD_TRANSITIVE": FORWARD,
    "FULL_TRANSITIVE": BACKWARD & FORWARD,
}
"""{strategy: the changes whose last version the broker takes}."""

COLUMNS = ("'UA' carrier", "cast(id as int) delay")


def avro(fields: list[Any]) -> str:
    return json.dumps({"type": "record", "name": "Flight", "fields": fields})


def test_the_sink_follows_each_strategy_and_names_what_no_longer_fits(
    pulsar: Any, register: Register, in_world: InWorld
) -> None:
    own = {strategy: namespace_with(pulsar, strategy) for strategy in TAKEN}
    world = in_world(topic_with(pulsar, register, own["FULL"], "first"))
    sink, rows = world.sink(value_format="avro"), world.rows(*COLUMNS).coalesce(1)
    written, refused = [], dict[str, str]()
    with sink.batch(0, identity()) as txn:
        for strategy, namespace in own.items():
            for number, (name, change) in enumerate(CHANGES.items()):
                topic = topic_with(pulsar, register, namespace, str(number))
                newest = taken_by_the_broker(register, topic, change)
                assert (newest == len(change.versions)) == (name in TAKEN[strategy]), (strategy, name)
                wrong = (None, *([change.before] if len(change.versions) == 2 else []), change.words)[newest]
                if wrong is None:
                    sink.check(rows, topic)
                    if newest:
                        txn.write(rows, topic)
                        written.append(topic)
                    continue
                words = f"The rows do not fit version {newest} .*: {wrong}"
                with pytest.raises(eos.InvalidInput, match=words):
                    sink.check(rows, topic)
                refused[topic] = words
    for topic, words in refused.items():
        with pytest.raises(eos.InvalidInput, match=words), sink.batch(1, identity(1)) as txn:
            txn.write(rows, topic)
    assert len(written) == 10
    for topic in written:
        found = [(value["carrier"], value["delay"], value.get("gate")) for value in read_in_this_process(pulsar, topic)]
        assert found == [("UA", number, None) for number in range(3)], topic


def test_a_version_of_the_sinks_own_is_taken_by_all_strategies_that_take_any(
    pulsar: Any, register: Register, in_world: InWorld
) -> None:
    topics = {one: topic_with(pulsar, register, namespace_with(pulsar, one), "t") for one in TAKEN}
    refused = topics.pop("ALWAYS_INCOMPATIBLE")
    world = in_world(refused)
    rows = world.rows(*COLUMNS, "'A1' gate").coalesce(1)
    words = "field 'gate' is string, and the schema has no such field. The topic takes no new version for it"
    sink = world.sink(value_format="avro", register_schema="Flight")
    with pytest.raises(eos.InvalidInput, match=words), sink.batch(0, identity()) as txn:
        txn.write(rows)
    with sink.batch(0, identity()) as txn:
        for topic in topics.values():
            txn.write(rows, topic)
    for topic in topics.values():
        assert [value["gate"] for value in read_in_this_process(pulsar, topic)] == ["A1"] * 3


def test_a_running_query_keeps_its_version_and_the_next_run_takes_the_newest_or_is_refused(
    spark: SparkSession, pulsar: Any, theirs: official.Client, register: Register, in_world: InWorld
) -> None:
    world = in_world(topic_with(pulsar, register, namespace_with(pulsar, "ALWAYS_COMPATIBLE"), "t"))
    endless = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).option("numPartitions", 1).load()

    def start(*columns: str) -> StreamingQuery:
        writer = endless.selectExpr(*columns).writeStream.foreachBatch(world.sink(value_format="avro"))
        return writer.option("checkpointLocation", str(world.folder / "checkpoint")).start()

    def go_on(query: StreamingQuery) -> None:
        until_batch(query, int((query.lastProgress or {"batchId": 0})["batchId"]) + 2)

    before = ("cast(value as string) carrier", "cast(value as int) delay")
    query = start(*before)
    go_on(query)
    register(world.topic, "AVRO", avro([CARRIER, DELAY, GATE]))
    go_on(query)
    query.stop()
    query = start(*before)
    go_on(query)
    register(world.topic, "AVRO", avro([CARRIER, GATE]))
    go_on(query)
    query.stop()
    with pytest.raises(StreamingQueryException, match=r"not fit version 2 .*: field 'delay' is int, and the schema"):
        start(*before).awaitTermination(int(PATIENCE_S))
    query = start(*before[:1])
    go_on(query)
    query.stop()

    rows = sum(sink.metrics.rows for sink in world.sinks)
    versions = [version_of(message) for message in received(theirs, world.topic, official.schema.BytesSchema(), rows)]
    assert versions == sorted(versions)
    assert set(versions) == {0, 1, 2}
    values = read_in_this_process(pulsar, world.topic)
    assert [int(value["carrier"]) for value in values] == list(range(rows))


def namespace_with(pulsar: Any, strategy: str) -> str:
    """Make a namespace whose topics take new schemas by this strategy."""
    namespace = f"public/evolves-{uuid.uuid4().hex[:10]}"
    with httpx.Client(base_url=f"{pulsar.admin_url}/admin/v2/namespaces/", timeout=30) as admin:
        admin.put(namespace).raise_for_status()
        admin.put(f"{namespace}/schemaCompatibilityStrategy", json=strategy).raise_for_status()
    return namespace


def topic_with(pulsar: Any, register: Register, namespace: str, name: str) -> str:
    """Make a topic whose schema has `carrier` and `delay`."""
    httpx.put(f"{pulsar.admin_url}/admin/v2/persistent/{namespace}/{name}", timeout=30).raise_for_status()
    topic = f"persistent://{namespace}/{name}"
    register(topic, "AVRO", avro([CARRIER, DELAY]))
    return topic


def taken_by_the_broker(register: Register, topic: str, change: Change) -> int:
    """Register the versions of a change in turn; return how many the broker takes."""
    for number, fields in enumerate(change.versions):
        try:
            register(topic, "AVRO", avro(fields))
        except httpx.HTTPStatusError as refused:
            if refused.response.status_code != 409:
                raise
            return number
    return len(change.versions)
