"""What a sink remembers of its topics from batch to batch, and from run to run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import functions
from pyspark.sql.types import LongType, StructType

from eos.commit.decision import Identity
from eos.delivery.delivery import Write
from eos.errors import InvalidInput
from eos.pulsar.protocol.schemas import Declared, Registered
from eos.sinks.columns import roles_of
from eos.sinks.options import SinkOptions, checked
from eos.sinks.sink import Sink
from eos.sinks.write_plan import WritePlan
from eos.spark.pyspark_api import ClassicDataFrame
from tests.unit.sinks.fakes import ROWS, FakeQuery

TOPIC = "persistent://public/default/t"
COLUMNS = StructType().add("id", LongType()).add("more", LongType())


def schema(*fields: str) -> Registered:
    named = ", ".join(f'{{"name": "{name}", "type": "long"}}' for name in fields)
    text = f'{{"type": "record", "name": "r", "fields": [{named}]}}'
    return Registered(TOPIC, len(fields).to_bytes(8, "big"), "AVRO", text.encode(), {})


class FakeClient:
    newest = schema("id")
    asked = 0

    def schema(self, topic: str) -> Registered:
        self.asked += 1
        return self.newest

    def register(self, topic: str, schema: Declared, introduction: Any) -> Registered:
        """Find it again as version 3, and leave the newest one as it is."""
        return Registered(topic, bytes(7) + b"\3", schema.kind, schema.definition, {})


@pytest.fixture
def client() -> FakeClient:
    return FakeClient()


@pytest.fixture
def plan(client: FakeClient, monkeypatch: pytest.MonkeyPatch) -> WritePlan:
    options = checked(SinkOptions(name="s", topic=TOPIC, value_format="avro"))
    roles = roles_of(COLUMNS, "avro", topic=TOPIC, named={})
    monkeypatch.setattr(WritePlan, "message", lambda self, df, topic: (df, roles, TOPIC))
    return WritePlan(cast(Any, client), options)


def test_a_run_keeps_the_schema_and_the_next_one_takes_the_newest(plan: WritePlan, client: FakeClient) -> None:
    """The columns did not fit. Somebody registers a version that they fit, and starts the query with the same sink."""
    rows: Any = SimpleNamespace(schema=COLUMNS)
    plan.begin("first")
    for newest in (client.newest, schema("id", "more")):
        client.newest = newest
        with pytest.raises(InvalidInput, match="do not fit"):
            plan.write(rows, None)
        plan.begin("first")
    plan.begin("second")
    assert plan.write(rows, None) == Write(rows, TOPIC, client.newest)
    assert client.asked == 2


def test_a_version_that_the_broker_had_before_is_written_by(
    client: FakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest version stays another one, which the columns do not fit."""
    options = checked(SinkOptions(name="s", topic=TOPIC, value_format="avro", register_schema="r"))
    roles = roles_of(COLUMNS, "avro", topic=TOPIC, named={})
    monkeypatch.setattr(WritePlan, "message", lambda self, df, topic: (df, roles, TOPIC))
    plan, rows = WritePlan(cast(Any, client), options), cast(Any, SimpleNamespace(schema=COLUMNS))
    for _ in range(2):
        written = plan.write(rows, None).schema
        assert written is not None
        assert written.number == 3
    assert client.asked == 1


@pytest.mark.parametrize("topic", [7, ["t"], functions.lit])
def test_a_topic_that_is_not_a_text_is_told_of_the_column(client: FakeClient, topic: Any) -> None:
    """As where somebody gives Spark's col("topic")."""
    plan = WritePlan(cast(Any, client), checked(SinkOptions(name="s")))
    with pytest.raises(InvalidInput, match=f"topic= is {type(topic).__name__}.* a column 'topic' or '__topic'"):
        plan.message(object.__new__(ClassicDataFrame), topic)


def test_a_column_as_the_topic_of_a_write_is_refused_by_the_plan(
    sink: Sink, query: FakeQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column of Spark raises where it is asked whether it is true."""

    class Column:
        def __bool__(self) -> bool:
            raise ValueError("Cannot convert column into bool")

    given: list[object] = []

    def write(self: WritePlan, df: Any, topic: object) -> Write:
        given.append(topic)
        return Write(df, None)

    monkeypatch.setattr(WritePlan, "write", write)
    topic: Any = Column()
    with sink.batch(0) as txn:
        txn.write(ROWS, topic)
    assert given == [topic]


@pytest.mark.parametrize("in_a_query", [True, False])
def test_the_runs_of_a_sink_are_those_of_its_batches(
    sink: Sink, query: FakeQuery, monkeypatch: pytest.MonkeyPatch, in_a_query: bool
) -> None:
    begun: list[str | None] = []
    monkeypatch.setattr(WritePlan, "begin", lambda self, run_id: begun.append(run_id))
    if not in_a_query:
        monkeypatch.setattr("eos.spark.query.current_query", lambda session=None, known=None: None)
        monkeypatch.setattr("eos.spark.query.query_of", lambda session, query_id=None: None)
    for number, run_id in enumerate(("first", "first", "second")):
        query.run_id, query.in_hand = run_id, number
        with sink.batch(number, None if in_a_query else Identity("query", run_id, "offsets")) as txn:
            txn.write(ROWS)
    assert begun == ["first", "first", "second"]


def test_a_dataframe_of_a_session_that_was_stopped_is_refused(client: FakeClient) -> None:
    """As in a notebook, after spark.stop() and a new session: the old one's context has left the JVM."""
    old = ClassicDataFrame.__new__(ClassicDataFrame)
    old._session = cast(Any, SimpleNamespace(sparkContext=SimpleNamespace(_jsc=None)))
    plan = WritePlan(cast(Any, client), checked(SinkOptions(name="s", topic=TOPIC)))
    with pytest.raises(InvalidInput, match="a Spark session that was stopped"):
        plan.message(old, None)
