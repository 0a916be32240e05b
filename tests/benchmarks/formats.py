"""`make bench-formats`: the sink's value formats side by side, and the official client with the same records.

    python -m tests.benchmarks.formats [--rows 500000] [--rounds 5] [--out build/bench/formats.json]

Prints a table and writes every raw figure as JSON. docs/benchmarks.md says what is measured and how.
"""

from __future__ import annotations

import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pulsar
import typer
from pyspark.sql import SparkSession
from rich.console import Console

from eos.local import LocalPulsar
from eos.sinks.columns import ValueFormat
from tests.benchmarks import client_cpu, formats_results, results
from tests.benchmarks.flights import FIELDS, SCHEMAS, flights, in_avro, in_protobuf
from tests.benchmarks.formats_results import AVRO, CLIENT_AVRO, CLIENT_PROTOBUF, PROTOBUF, RAW, show
from tests.benchmarks.official_client import OfficialClient
from tests.benchmarks.plan import Plan, create_topic
from tests.benchmarks.rounds import Contender, Timed, take_turns
from tests.benchmarks.rows import cached, spark_session
from tests.benchmarks.state import write
from tests.benchmarks.this_sink import ThisSink
from tests.benchmarks.throughput import look_for_all, wake_workers

OUT = Path("build/bench/formats.json")
ROWS = 500_000
FORMATS: tuple[ValueFormat, ...] = ("json", "avro", "protobuf")
SCHEMA_OF: dict[str, str] = dict(zip(FORMATS, FORMATS, strict=True)) | {CLIENT_AVRO: AVRO, CLIENT_PROTOBUF: PROTOBUF}
"""{contender: the schema of its topic}; that of `raw` has none."""


def main(rows: int = ROWS, rounds: int = Plan.rounds, out: Path = OUT) -> None:
    """Measure everything; takes some ten minutes."""
    console = Console()
    began = time.monotonic()

    def tell(line: str) -> None:
        console.print(f"[dim]{time.monotonic() - began:6.0f} s[/dim]  {line}", highlight=False)

    found: results.Json = {"machine": results.machine()}
    tell("starting Pulsar")
    with LocalPulsar(memory="2g", flags=(), tell=tell) as broker, spark_session() as session:
        plan = Plan(broker, tell, rows=rows, rounds=rounds)
        found |= formats_results.formats(compare(session, plan))
    write(out, found)
    show(console, found)
    console.print(f"every figure: {out}")


def topic_of(stem: str, contender: str) -> str:
    """Return the last part of the name of a contender's topic."""
    return f"{stem}-formats-{contender}"


def compare(session: SparkSession, plan: Plan) -> dict[str, Timed]:
    """Let all contenders write the same records in turn; return what each took, of CPU too.

    Raises RuntimeError when the broker has not got every row of every run.
    """
    broker = plan.broker
    topics = {name: create_topic(broker, topic_of(plan.stem, name)) for name in (RAW, *SCHEMA_OF)}
    with closing(pulsar.Client(broker.service_url)) as client:
        for name, kind in SCHEMA_OF.items():
            client.create_producer(topics[name], schema=SCHEMAS[kind]()).close()
    with cached(flights(session, plan.rows)) as df:
        texts, fields = df.selectExpr("key", "text value"), df.select("key", *FIELDS)
        keyed = fields.withColumnRenamed("key", "__key")
        sinks = [
            ThisSink(texts, broker.service_url, topics[RAW], name=RAW),
            *(ThisSink(keyed, broker.service_url, topics[name], name=name, value_format=name) for name in FORMATS),
        ]
        clients = (
            OfficialClient(fields, broker.service_url, topics[name], name=name, values=values)
            for name, values in ((CLIENT_AVRO, in_avro), (CLIENT_PROTOBUF, in_protobuf))
        )
        contenders: list[Contender] = [*sinks, *clients]
        cpu = client_cpu.of_session(session)
        try:
            timed = take_turns(contenders, plan, "formats", plan.rows, before=partial(wake_workers, session), cpu=cpu)
        finally:
            for sink in sinks:
                sink.close()
    look_for_all(plan, "formats", topics)
    return timed


if __name__ == "__main__":
    typer.run(main)
