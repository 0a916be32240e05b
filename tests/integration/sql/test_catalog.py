"""The SQL catalog in Spark, on a real Pulsar: each statement that it takes, and those that it refuses in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import Row

from eos.by_name.session import CLASS
from eos.spark.jar import shipped_jar
from tests.conftest import MakeTopic
from tests.integration.conftest import Register
from tests.integration.source.streams import PATIENCE_S

pytestmark = pytest.mark.skipif(shipped_jar() is None, reason="the jar was not built: make jar")

SECRET = "pa55word"
NAME = "topics"


class Sql:
    """Statements about one topic: `{t}` is its table."""

    def __init__(self, spark: SparkSession, topic: str) -> None:
        self.spark = spark
        self.name = topic.rsplit("/", 1)[1]
        self.table = f"{NAME}.public.default.`{self.name}`"

    def __call__(self, statement: str) -> list[Row]:
        return self.spark.sql(statement.replace("{t}", self.table)).collect()

    def text(self, statement: str) -> str:
        return "\n".join(str(value) for row in self(statement) for value in row)

    def refusal(self, statement: str) -> str:
        # Spark wraps what ALTER TABLE refuses into an exception that PySpark knows no class for.
        with pytest.raises((PySparkException, Py4JJavaError)) as refused:
            self(statement)
        return str(refused.value)


@pytest.fixture(scope="module")
def catalog(spark: SparkSession, pulsar: Any) -> Iterator[SparkSession]:
    """The session with the catalog, whose options have a secret that this broker does not ask for, and a default."""
    settings = {
        "": CLASS,
        ".service.url": pulsar.service_url,
        ".admin.url": pulsar.admin_url,
        ".token": SECRET,
        ".failOnDataLoss": "true",
    }
    for name, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{NAME}{name}", value)
    yield spark
    spark.sql("use spark_catalog.default")


@pytest.fixture
def sql(catalog: SparkSession, make_topic: MakeTopic) -> Sql:
    return Sql(catalog, make_topic("table", 3))


INSERT = "insert into {t} with ('guarantee' = 'at-least-once') (value, __partition) "


def test_topics_are_found_described_written_and_read(sql: Sql) -> None:
    assert "public" in sql.text(f"show namespaces in {NAME}")
    assert "public.default" in sql.text(f"show namespaces in {NAME}.public")
    assert sql.name in sql.text(f"show tables in {NAME}.public.default")
    assert [row.col_name for row in sql("describe {t}")][:3] == ["value", "__key", "__topic"]
    sql(INSERT + "select binary(string(id)), int(id % 3) from range(30)")
    assert sql.text("select count(*) from {t}") == "30"
    sql(f"use {NAME}")
    assert sql.text(f"select sum(int(string(value))) from `{sql.name}`") == str(sum(range(30)))
    sql("use spark_catalog.default")


def test_only_what_a_query_needs_is_read(sql: Sql) -> None:
    sql(INSERT + "select binary(string(id)), int(id % 3) from range(6)")
    one = sql.spark.sql(f"select __key from {sql.table} where __partition = 1")
    assert one.rdd.getNumPartitions() == 1, "Spark's own flag for filters of Python sources is off"
    assert one.count() == 2
    scans = {
        "select __key from {t}": ["__key"],
        "select count(*) from {t}": ["__partition"],
        "select __messageId.entry from {t} where __partition = 1": ["__partition", "__messageId"],
    }
    for query, columns in scans.items():
        plan = sql.text(f"explain {query}")
        read = plan[plan.index("BatchScan") :].partition("[")[2].partition("]")[0]
        assert sorted(word.strip().partition("#")[0] for word in read.split(",")) == sorted(columns), query


def test_a_filter_by_a_time_that_python_does_not_have_leaves_the_rows(sql: Sql, register: Register) -> None:
    text = '{"type": "record", "name": "R", "fields": [{"name": "d", "type": {"type": "int", "logicalType": "date"}}]}'
    register(f"persistent://public/default/{sql.name}", "AVRO", text)
    sql(INSERT + "select named_struct('d', date'2026-11-30'), int(id % 3) from range(6)")
    later = "value.d < date'+12345-01-01'"
    sql.spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        for time in (later, "__publishTime < timestamp'9999-12-31 23:59:59'"):
            assert sql.text(f"select count(*) from {{t}} where {time}") == "6"
        one = sql.spark.sql(f"select __key from {sql.table} where __partition = 1 and {later}")
        assert one.rdd.getNumPartitions() == 1, "a filter that Python can't take hides the others"
    finally:
        sql.spark.conf.unset("spark.sql.session.timeZone")
    assert sql.text("select count(*) from {t} timestamp as of '1950-01-01'") == "0"


def test_a_registered_schema_types_the_value(sql: Sql, register: Register) -> None:
    text = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'
    register(f"persistent://public/default/{sql.name}", "AVRO", text)
    sql(INSERT + "select named_struct('a', 7), 0")
    assert sql.text("select value.a from {t}") == "7"


def test_a_table_keeps_its_columns_while_its_schema_evolves(sql: Sql, register: Register) -> None:
    topic, a, b = f"persistent://public/default/{sql.name}", '{"name": "a", "type": "int"}', '{"name": "b", "type": '
    text = '{"type": "record", "name": "R", "fields": [%s]}'
    register(topic, "AVRO", text % a)
    table = sql.spark.table(sql.table)
    sql(INSERT + "select named_struct('a', 7), 0")
    register(topic, "AVRO", text % f'{a}, {b}["null", "int"], "default": null}}')
    sql(INSERT + "select named_struct('a', 8, 'b', 9), 0")
    assert sorted(row.value for row in table.select("value").collect()) == [Row(a=7), Row(a=8)]
    assert sql.text("select sum(value.b) from {t}") == "9"


def test_a_table_is_read_as_a_stream(sql: Sql, tmp_path: Path) -> None:
    sql(INSERT + "select binary('x'), 0 from range(5)")
    reader = sql.spark.readStream.option("subscription", "catalog").option("startingOffsets", "earliest")
    reader = reader.option("fail_on_data_loss", "false")  # wins over the catalog's, which is spelled otherwise
    writer = reader.table(sql.table).writeStream.format("memory").queryName("from_catalog")
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    query.awaitTermination(PATIENCE_S)
    assert sql.text("select count(*) from from_catalog") == "5"


def test_an_older_state_is_read_by_its_last_entries_and_by_a_time(sql: Sql) -> None:
    sql(INSERT + "select binary('old'), int(id % 3) from range(6)")
    ends = sql(
        "select __topic, __partition, max(struct(__messageId.ledger, __messageId.entry)) as end from {t} group by 1, 2"
    )
    version = json.dumps({f"{row[0]}-partition-{row[1]}": f"{row.end.ledger}:{row.end.entry}" for row in ends})
    after = sql.text("select max(__publishTime) + interval 1 millisecond from {t}")
    sql(INSERT + "select binary('new'), int(id % 3) from range(6)")
    assert sql.text(f"select count(*) from {{t}} version as of '{version}'") == "6"
    assert sql.text(f"select count(*) from {{t}} timestamp as of '{after}'") == "6"
    assert sql.text("select count(*) from {t}") == "12"


def test_no_statement_shows_a_secret(sql: Sql) -> None:
    statements = ["describe extended {t}", "show create table {t}", "show tblproperties {t}", "set", "set -v"]
    statements += [f"explain {how} select * from {{t}} where __partition = 1" for how in ("extended", "formatted")]
    shown = {statement: sql.text(statement) for statement in statements}
    assert [statement for statement, text in shown.items() if SECRET in text] == []


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("select * from {t}_missing", "TABLE_OR_VIEW_NOT_FOUND"),
        ("show tables in topics.public.nowhere", "SCHEMA_NOT_FOUND"),
        ("insert into {t} (value) select binary('x')", "eos.write"),
        ("insert overwrite {t} with ('guarantee' = 'at-least-once') (value) select binary('x')", "Nothing is written"),
        ("alter table {t} rename to topics.public.default.other", "Pulsar can't rename a topic"),
        ("create namespace topics.public.more", "pulsar-admin namespaces"),
        ("drop namespace topics.public.default", "pulsar-admin namespaces"),
    ],
)
def test_what_is_not_there_or_can_t_be_done_is_said_in_words(sql: Sql, statement: str, words: str) -> None:
    statement = statement.replace("{t}_missing", f"{NAME}.public.default.missing")
    assert words in sql.refusal(statement)
