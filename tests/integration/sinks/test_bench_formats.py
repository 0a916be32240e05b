"""`make bench-formats` in small: each contender writes the same records, and each figure is there. Nothing is timed."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from typing import Any

import pulsar as official
import pytest
from pyspark.sql import SparkSession

from tests.benchmarks import formats_results
from tests.benchmarks.flights import FIELDS, SCHEMAS, flights
from tests.benchmarks.formats import SCHEMA_OF, compare, topic_of
from tests.benchmarks.plan import Plan
from tests.reading import messages_of, received

pytestmark = pytest.mark.bench


@pytest.fixture(scope="module")
def plan(pulsar: Any) -> Plan:
    stem = f"smoke-{uuid.uuid4().hex[:8]}"
    return Plan(broker=pulsar, tell=lambda _: None, stem=stem, rows=500, rounds=1, warm_ups=1)


@pytest.fixture(scope="module")
def found(spark: SparkSession, plan: Plan) -> Any:
    return json.loads(json.dumps(formats_results.formats(compare(spark, plan))))


def test_all_figures_are_there(plan: Plan, found: Any) -> None:
    assert found["ratios"].keys() == {"json", "avro", "protobuf"}
    assert found["client_ratios"].keys() == {"avro", "protobuf"}
    assert found["rounds"].keys() == {"raw", *SCHEMA_OF}
    for one in found["rounds"].values():
        assert len(one["seconds"]) == len(one["cpu_seconds"]) == plan.rounds


def test_every_contender_writes_every_record_in_every_round(
    spark: SparkSession, plan: Plan, found: Any, theirs: official.Client
) -> None:
    runs = plan.warm_ups + plan.rounds
    wanted = Counter({tuple(row): runs for row in flights(spark, plan.rows).select(*FIELDS).collect()})
    for name, kind in SCHEMA_OF.items():
        topic = f"persistent://public/default/{topic_of(plan.stem, name)}"
        messages = received(theirs, topic, SCHEMAS[kind](), plan.rows * runs)
        values = [one.value() for one in messages]
        assert Counter(tuple(getattr(one, field) for field in FIELDS) for one in values) == wanted, name
        assert len({one.partition_key() for one in messages}) == plan.rows
    raw = messages_of(plan.broker.service_url, f"persistent://public/default/{topic_of(plan.stem, 'raw')}")
    assert Counter(tuple(json.loads(one.data()).values()) for one in raw) == wanted
