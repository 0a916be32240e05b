"""Statements that replace a topic, or make and fill one, in Spark and on a real Pulsar."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession

from eos.spark.jar import shipped_jar
from tests.integration.sql.test_catalog import INSERT, NAME, Sql
from tests.integration.sql.test_catalog import catalog as catalog

pytestmark = pytest.mark.skipif(shipped_jar() is None, reason="the jar was not built: make jar")

AT_LEAST_ONCE = ("guarantee", "at-least-once")
Call = Callable[[Sql, str], Any]


@pytest.fixture(scope="module")
def full(catalog: SparkSession) -> Iterator[Sql]:
    """A topic with three rows, which DROP TABLE may delete."""
    sql = Sql(catalog, f"persistent://public/default/staged-{uuid.uuid4().hex[:10]}")
    sql("create table {t} (value binary) tblproperties ('droppable' = 'true')")
    sql(INSERT.replace(", __partition", "") + "select binary(string(id)) from range(3)")
    yield sql
    sql("drop table {t}")


def says(statement: str) -> Call:
    return lambda sql, table: sql.spark.sql(statement.replace("{t}", table).replace("{full}", sql.table))


def writes(call: Callable[[DataFrame, str], Any], columns: str = "value") -> Call:
    return lambda sql, table: call(sql.spark.table(sql.table).select(columns), table)


def to(call: Callable[[DataFrameWriterV2], Any], columns: str = "value", asked: bool = True) -> Call:
    """A write by `writeTo`."""

    def write(frame: DataFrame, table: str) -> Any:
        return call(frame.writeTo(table).option(*AT_LEAST_ONCE) if asked else frame.writeTo(table))

    return writes(write, columns)


def refusal(sql: Sql, call: Call, table: str) -> str:
    with pytest.raises((PySparkException, Py4JJavaError)) as refused:
        call(sql, table)
    return str(refused.value)


def topics(sql: Sql) -> list[str]:
    return sorted(row.tableName for row in sql(f"show tables in {NAME}.public.default like '{sql.name}*'"))


REPLACING = {
    "create or replace table {t} (value binary)": "CREATE OR REPLACE TABLE",
    "create or replace table {t} as select binary('x') as value": "CREATE OR REPLACE TABLE",
    "create or replace table {t} as select * from {full}": "CREATE OR REPLACE TABLE",
}
REPLACING_EXISTING = {
    "replace table {t} (value binary)": "REPLACE TABLE is refused",
    "replace table {t} as select binary('x') as value": "REPLACE TABLE is refused",
}
REPLACING_CALLS: list[tuple[Call, str]] = [
    (writes(lambda frame, table: frame.write.mode("overwrite").saveAsTable(table)), "mode('overwrite').saveAsTable"),
    (to(lambda writer: writer.createOrReplace()), "CREATE OR REPLACE TABLE"),
    (to(lambda writer: writer.createOrReplace(), "*"), "CREATE OR REPLACE TABLE"),
]
ON_EXISTING = [
    *((says(text), words) for text, words in REPLACING.items()),
    *REPLACING_CALLS,
    *((says(text), words) for text, words in REPLACING_EXISTING.items()),
    (to(lambda writer: writer.replace()), "REPLACE TABLE is refused"),
]


def test_a_topic_is_not_replaced_and_keeps_its_rows(full: Sql) -> None:
    for call, words in ON_EXISTING:
        said = refusal(full, call, full.table)
        for part in (words, "Nothing takes messages back out of a topic", "Nothing is changed", "INSERT INTO"):
            assert part in said
    for call, words in REPLACING_CALLS[:2]:
        assert words in refusal(full, call, full.table[:-1] + "-new`")
    assert full.text("select count(*) from {t}") == "3"
    assert topics(full) == [full.name]


UNFILLED: list[Call] = [
    says("create table {t} as select binary('x') as value"),
    says("create table {t} as select 7 as id, 'a' as name"),
    says("create table {t} as select * from {full}"),
    says("create table {t} options ('guarantee' = 'at-least-once') as select * from {full}"),
    to(lambda writer: writer.create()),
    to(lambda writer: writer.create(), "*", asked=False),
    writes(lambda frame, table: frame.write.saveAsTable(table)),
]


def test_a_topic_that_could_not_be_filled_is_not_made(full: Sql) -> None:
    for call in UNFILLED:
        said = refusal(full, call, full.table[:-1] + "-new`")
        for part in ("CREATE TABLE ... AS SELECT", "No topic is made", "INSERT INTO", "eos.write"):
            assert part in said
    assert topics(full) == [full.name]


def test_a_topic_is_copied_where_the_writer_or_the_catalog_asks_for_at_least_once(full: Sql) -> None:
    conf = full.spark.conf
    for key, value in {"": conf.get(f"spark.sql.catalog.{NAME}") or "", ".guarantee": AT_LEAST_ONCE[1]}.items():
        conf.set(f"spark.sql.catalog.copying{key}", value)
    for key in (".service.url", ".admin.url"):
        conf.set(f"spark.sql.catalog.copying{key}", conf.get(f"spark.sql.catalog.{NAME}{key}") or "")
    copy = full.table[:-1] + "-copy`"
    by_call: Call = to(lambda writer: writer.tableProperty("droppable", "true").create(), "*")
    statement = "create table {t} tblproperties ('partitions' = '2', 'droppable' = 'true') as select * from {full}"
    for call, table in ((by_call, copy), (says(statement), copy.replace(NAME, "copying", 1))):
        call(full, table)
        assert full.text(f"select count(*), count(distinct value) from {copy}") == "3\n3"
        assert "[TABLE_OR_VIEW_ALREADY_EXISTS]" in refusal(full, call, table)
        full(f"drop table {copy}")
    assert topics(full) == [full.name]
