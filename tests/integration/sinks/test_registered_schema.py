"""JSON on a topic that has a JSON schema: what fits is read by the official client, what doesn't is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pulsar as official
import pytest
from pulsar.schema import Integer, JsonSchema, Record, String
from pyspark.sql import SparkSession

import eos
from tests.conftest import MakeTopic
from tests.integration.sinks.bad_input import World


class Delay(Record):  # type: ignore[misc]
    carrier = String()
    delay = Integer(required=True)


def test_json_is_checked_against_the_topics_schema(
    spark: SparkSession, pulsar: Any, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic("schema", partitions=2)
    client = official.Client(pulsar.service_url, logger=official.ConsoleLogger(official.LoggerLevel.Error))
    try:
        client.create_producer(topic, schema=JsonSchema(Delay)).close()
        world = World(spark, pulsar.service_url, pulsar.admin_url, topic, tmp_path)
        words = (
            f"The rows do not fit version 0 of the schema of {topic}: field 'delay' is string, and the schema has int"
        )
        with pytest.raises(eos.InvalidInput, match=words):
            world.write(world.rows("cast(id as string) delay"), value_format="json")
        world.write(world.rows("cast(id as int) delay", "'UA' carrier", "'k' key"), value_format="json")
        consumer = client.subscribe(
            topic, "all", schema=JsonSchema(Delay), initial_position=official.InitialPosition.Earliest
        )
        read = [consumer.receive(60_000).value() for _ in range(3)]
        assert sorted((one.carrier, one.delay) for one in read) == [("UA", number) for number in range(3)]
        with pytest.raises(official.Timeout):
            consumer.receive(500)
    finally:
        client.close()
