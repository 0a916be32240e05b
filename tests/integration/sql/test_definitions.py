"""CREATE, ALTER and DROP TABLE in Spark, on a real Pulsar."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from pyspark.sql import SparkSession

from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.spark.jar import shipped_jar
from tests.integration.sql.test_catalog import Sql
from tests.integration.sql.test_catalog import catalog as catalog

pytestmark = pytest.mark.skipif(shipped_jar() is None, reason="the jar was not built: make jar")


@pytest.fixture
def sql(catalog: SparkSession) -> Sql:
    return Sql(catalog, f"persistent://public/default/made-{uuid.uuid4().hex[:10]}")


def test_a_table_is_made_changed_described_and_dropped(sql: Sql, pulsar: Any, ours: Client) -> None:
    topic = f"persistent://public/default/{sql.name}"
    sql("create table {t} (id bigint, name string, __key string) tblproperties ('partitions' = '2', 'Team' = 'ops')")
    schema = ours.schema(topic)
    assert schema is not None
    assert (ours.partitions(topic), schema.kind) == (2, "AVRO")
    assert "[TABLE_OR_VIEW_ALREADY_EXISTS]" in sql.refusal("create table {t} (id bigint)")
    sql("create table if not exists {t} (id bigint)")
    sql("insert into {t} with ('guarantee' = 'at-least-once') (value) select named_struct('id', 7L, 'name', 'a')")
    assert sql.text("select value.id from {t}") == "7"
    sql("alter table {t} set tblproperties ('partitions' = '3', 'more' = 'x')")
    sql("alter table {t} unset tblproperties ('more')")
    assert ours.partitions(topic) == 3
    with Admin(pulsar.admin_url) as admin:
        assert admin.properties(topic) == {"Team": "ops"}
    known = {row.key: row.value for row in sql("show tblproperties {t}")}
    assert (known["partitions"], known["schema"], known["schema.version"]) == ("3", "AVRO", "0")
    assert "minutes" in known["retention"]
    assert int(known["size"].removesuffix(" bytes")) > 0
    assert int(known["segments"]) >= 1
    assert "takes none away" in sql.refusal("alter table {t} set tblproperties ('partitions' = '1')")
    assert "no columns" in sql.refusal("alter table {t} add columns (x int)")
    assert "The topic does not allow it. Nothing is deleted" in sql.refusal("drop table {t}")
    sql("alter table {t} set tblproperties ('droppable' = 'true')")
    sql("drop table {t}")
    assert sql(f"show tables in topics.public.default like '{sql.name}'") == []
    sql("drop table if exists {t}")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("create table {t} (a int) partitioned by (a)", "TBLPROPERTIES ('partitions' = '3')"),
        ("create table {t} (`a-b` int)", "Rename it"),
        ("create table {t} (a int) using parquet", "another data source"),
        ("create table {t} (a string collate utf8_lcase)", "COLLATE UTF8_LCASE of a"),
        ("create table {t} (a int) tblproperties ('valueFormat' = 'protobuf')", "Give 'avro' or 'json'"),
        ("create table {t} (a int) tblproperties ('partitions' = '0')", "a whole number of 1 or more"),
        ("create table topics.public.nowhere.t (a int)", "nowhere"),
    ],
)
def test_what_no_topic_can_be_made_of_is_refused_and_none_is_made(sql: Sql, statement: str, words: str) -> None:
    assert words in sql.refusal(statement)
    assert sql(f"show tables in topics.public.default like '{sql.name}'") == []


def test_a_topic_and_a_property_may_be_named_like_the_mark_of_a_refusal(sql: Sql) -> None:
    table = sql.table.replace(sql.name, "refused")
    sql(f"create table {table} (value binary) tblproperties ('refused' = 'x', 'columns' = 'y', 'droppable' = 'true')")
    try:
        assert "refused" in [row.tableName for row in sql("show tables in topics.public.default")]
        known = {row.key: row.value for row in sql(f"show tblproperties {table}")}
        assert (known["refused"], known["columns"]) == ("x", "y")
        assert "refused=x" in sql.text(f"describe extended {table}")
    finally:
        sql(f"drop table {table}")
