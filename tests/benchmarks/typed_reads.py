"""Values by the topic's schema and the same values as bytes, read through Spark and away: formats, flat and nested.

Columns cost Spark more than bytes do, whoever makes them. So the same columns, and the same bytes, come in turn from
memory too: without what that adds, what is left is what it costs to decode the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pulsar
from pulsar.schema import Array, AvroSchema, Boolean, Double, Integer, JsonSchema, Long, Map, Record, Schema, String
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from eos.sinks.columns import ValueFormat
from tests.benchmarks import client_cpu
from tests.benchmarks.flights import FIELDS, SCHEMAS, flights
from tests.benchmarks.plan import create_topic, published
from tests.benchmarks.readers import READY_ROWS, Reading, from_memory
from tests.benchmarks.rounds import Timed, take_turns
from tests.benchmarks.source_plan import PARTITIONS, SourcePlan
from tests.benchmarks.this_sink import ThisSink

NAME = "typed"
AS_BYTES = "_as_bytes"
FROM_MEMORY = "_from_memory"


class Airport(Record):  # type: ignore[misc]
    """A record within a record."""

    code = String()
    latitude = Double()


class LongFlight(Record):  # type: ignore[misc]
    """A flight with a record, a list and a map. The official client leaves out what a class inherits."""

    carrier = String()
    flight = Integer()
    delay = Integer()
    distance = Long()
    share = Double()
    late = Boolean()
    origin = Airport()
    legs = Array(String())
    seats = Map(Integer())


_MORE: Mapping[str, Callable[[], Column]] = {
    "origin": lambda: F.struct(F.col("carrier").alias("code"), F.col("share").alias("latitude")),
    "legs": lambda: F.array(F.lit("JFK"), F.col("carrier")),
    "seats": lambda: F.create_map(F.lit("economy"), F.col("flight"), F.lit("first"), F.col("delay")),
}


@dataclass(frozen=True)
class Typed:
    """Values of one kind. Attributes: how the sink writes them; their schema; whether they are nested."""

    value_format: ValueFormat
    schema: Callable[[], Schema]
    nested: bool = False


TYPED: Mapping[str, Typed] = {
    "avro": Typed("avro", SCHEMAS["avro"]),
    "protobuf": Typed("protobuf", SCHEMAS["protobuf"]),
    "json": Typed("json", SCHEMAS["json"]),
    "avro_nested": Typed("avro", lambda: AvroSchema(LongFlight), nested=True),
    "json_nested": Typed("json", lambda: JsonSchema(LongFlight), nested=True),
}
"""{name in the results: what is read}."""


def compare(session: SparkSession, plan: SourcePlan, folder: Path) -> dict[str, Timed]:
    """Fill a topic of each kind, and read each in turn by its schema and as bytes; return what each took, of CPU too.

    The name of a read as bytes ends with AS_BYTES, and that of the same rows from memory with FROM_MEMORY besides.
    Raises RuntimeError when rows are missing.

    Args: knows the Python sources (`make_known`); keeps rows in `folder`.
    """
    topics = {name: create_topic(plan.broker, f"{plan.stem}-typed-{name}", PARTITIONS) for name in TYPED}
    df = flights(session, plan.typed_rows)
    with closing(pulsar.Client(plan.broker.service_url)) as client:
        for name, kind in TYPED.items():
            client.create_producer(topics[name], schema=kind.schema()).close()
            _fill(plan, df, topics[name], kind)
    topic_reads = [one for name, topic in topics.items() for one in _readings(session, plan, name, topic)]
    contenders: list[Reading] = []
    for read in topic_reads:
        ready, schema = read.df.limit(READY_ROWS).toArrow(), read.df.schema
        again = from_memory(session, read.name + FROM_MEMORY, ready, schema, plan.typed_rows, folder)
        contenders += [read, again]
    return take_turns(contenders, plan, NAME, plan.typed_rows, cpu=client_cpu.of_session(session))


def _fill(plan: SourcePlan, df: DataFrame, topic: str, kind: Typed) -> None:
    more = {name: column() for name, column in _MORE.items()} if kind.nested else {}
    rows = df.select(F.col("key").alias("__key"), *FIELDS, *(column.alias(name) for name, column in more.items()))
    sink = ThisSink(rows, plan.broker.service_url, topic, value_format=kind.value_format)
    try:
        sink.run()
    finally:
        sink.close()
    if (stored := published(plan.broker, topic)) < plan.typed_rows:
        raise RuntimeError(f"the broker has {stored} messages of {topic}; it should have {plan.typed_rows}")
    plan.tell(f"{topic}: {plan.typed_rows:,} rows are stored")


def _readings(session: SparkSession, plan: SourcePlan, name: str, topic: str) -> Iterator[Reading]:
    read = {"service.url": plan.broker.service_url, "topic": topic}
    by_schema = session.read.format("pulsar").options(**read, valueFormat="schema")
    value = StructType([by_schema.load().schema["value"]])
    yield Reading(name, by_schema.schema(value).load())
    yield Reading(name + AS_BYTES, session.read.format("pulsar").options(**read).schema("value binary").load())
