"""What the catalog's Java class is answered, by a client and an admin API that only remember."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import DataType, StringType, StructField, StructType

from eos.by_name.data_source import PulsarDataSource
from eos.errors import Refused, RefusedForGood, TopicMissing
from eos.pulsar.protocol.schemas import Registered
from eos.source.columns import ALL
from eos.sql import answers

URL = {"service.url": "pulsar://nowhere:6650", "admin.url": "http://nowhere:8080"}
TOPICS = ("flights", "__hidden", "parts-partition-0", "parts-partition-1", "left-partition-3")


class Cluster:
    """A client, and an admin API."""

    schema_of: Registered | None = None
    refusal: str | None = None

    def __init__(self, *_: Any) -> None: ...

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None: ...

    def topics(self, namespace: str) -> list[str]:
        return [f"persistent://{namespace}/{topic}" for topic in TOPICS]

    def partitions(self, topic: str) -> int:
        numbers = {"flights": 0, "parts": 2, "left-partition-3": 0, "flights ": 0, "my flights": 0}
        if (name := topic.rpartition("/")[2]) not in numbers:
            raise TopicMissing(topic)
        return numbers[name]

    def schema(self, topic: str) -> Registered | None:
        return self.schema_of

    def tenants(self) -> tuple[str, ...]:
        return self._told(("public", "pulsar"))

    def namespaces(self, tenant: str) -> tuple[str, ...]:
        return self._told((f"{tenant}/other", f"{tenant}/default"))

    def _told(self, names: tuple[str, ...]) -> tuple[str, ...]:
        if self.refusal is not None:
            raise Refused("GET", self.refusal, "no")
        return names


@pytest.fixture(autouse=True)
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "Client", Cluster)
    monkeypatch.setattr(answers, "admin_api", Cluster)


def ask(question: str, namespace: str = "public/default", table: str = "flights", **options: str) -> StructType:
    about = {"catalog.question": question, "catalog.namespace": namespace, "catalog.table": table}
    return PulsarDataSource({**URL, **about, **options}).schema()


MARK = "refused"
"""The key of metadata that the Java class takes for a refusal."""


def refused(answer: StructType) -> str:
    (field,) = answer.fields
    return str(field.metadata[MARK])


def texts(answer: DataType) -> dict[str, str]:
    assert isinstance(answer, StructType)
    return {field.name: field.metadata["comment"] for field in answer.fields}


def test_tables_are_the_topics_without_their_partitions_and_without_hidden_ones() -> None:
    assert ask("tables").fieldNames() == ["flights", "left-partition-3", "parts"]


def test_tables_are_told_though_one_of_them_may_not_be_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    partitions = Cluster.partitions

    def forbidden(cluster: Cluster, topic: str) -> int:
        if topic.endswith("/parts"):
            raise RefusedForGood("ask for the partitions", "AuthorizationError", "no right")
        return partitions(cluster, topic)

    monkeypatch.setattr(Cluster, "partitions", forbidden)
    assert ask("tables").fieldNames() == ["flights", "left-partition-3", "parts"]


@pytest.mark.parametrize("question", ["tables", "tenants", "namespaces", "properties"])
def test_no_name_looks_like_a_refusal(monkeypatch: pytest.MonkeyPatch, question: str) -> None:
    names = (MARK, "comment", "catalog.refused")
    monkeypatch.setattr(Cluster, "topics", lambda _, of: [f"persistent://{of}/{name}" for name in names])
    monkeypatch.setattr(Cluster, "tenants", lambda _: names)
    monkeypatch.setattr(Cluster, "namespaces", lambda _, tenant: names)
    monkeypatch.setattr(answers, "described", lambda *_: dict.fromkeys(names, MARK))
    answer = ask(question)
    assert set(answer.fieldNames()) == set(names)
    assert [set(field.metadata) for field in answer.fields] == [{"comment"}] * len(names)


def test_namespaces_come_from_the_admin_api() -> None:
    assert ask("tenants").fieldNames() == ["public", "pulsar"]
    assert ask("namespaces", "public").fieldNames() == ["public/default", "public/other"]


def test_namespaces_without_an_admin_url_are_refused_in_words() -> None:
    about = {"catalog.question": "tenants", "service.url": URL["service.url"]}
    assert "admin.url" in refused(PulsarDataSource(about).schema())


@pytest.mark.parametrize(
    ("namespace", "there"),
    [("public", True), ("nobody", False), ("public/default", True), ("public/no", False), ("a/b/c", False)],
)
def test_a_namespace_is_there_or_not(namespace: str, there: bool) -> None:
    assert (ask("namespace", namespace).fieldNames() != []) == there


@pytest.mark.parametrize(("code", "there"), [("403", True), ("404", False)])
def test_a_namespace_that_the_role_may_not_see_counts_as_there(
    monkeypatch: pytest.MonkeyPatch, code: str, there: bool
) -> None:
    monkeypatch.setattr(Cluster, "refusal", code)
    assert (ask("namespace").fieldNames() != []) == there


def test_another_refusal_is_told() -> None:
    assert "is not a namespace" in refused(ask("tables", "public"))


@pytest.mark.parametrize("options", [{}, {"guarantee": "at-least-once"}, {"valueFormat": "raw"}])
def test_a_topic_without_a_schema_has_the_columns_of_the_source(options: dict[str, str]) -> None:
    answer = ask("table", **options)
    assert answer["columns"].dataType == ALL
    assert texts(answer["options"].dataType) == {"topic": "persistent://public/default/flights"}


def test_a_table_has_no_column_for_what_cannot_be_read() -> None:
    assert "needs the column __damage" in refused(ask("table", onDamagedEntry="keep"))


def test_a_topic_with_a_schema_is_typed_unless_the_catalog_says_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    registered = Registered("persistent://public/default/flights", b"\0" * 8, "INT32", b"", {})
    monkeypatch.setattr(Cluster, "schema_of", registered)
    typed, raw = ask("table"), ask("table", value_format="raw")
    assert typed["columns"].dataType.simpleString().startswith("struct<value:int,")
    assert texts(typed["options"].dataType)["valueFormat"] == "schema"
    assert raw["columns"].dataType == ALL


def test_a_topic_whose_schema_was_deleted_is_read_as_bytes_of_any_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker tells of it as of BYTES. Typed by that, a message of an older version is an error."""
    registered = Registered("persistent://public/default/flights", b"\0" * 7 + b"\2", "BYTES", b"", {})
    monkeypatch.setattr(Cluster, "schema_of", registered)
    answer = ask("table")
    assert answer["columns"].dataType == ALL
    assert texts(answer["options"].dataType) == {"topic": "persistent://public/default/flights"}


def test_values_that_must_be_typed_and_are_not_are_refused() -> None:
    assert "has no registered schema" in refused(ask("table", value_format="schema"))


@pytest.mark.parametrize("value", [StringType(), StructType([StructField("a", StringType())])])
def test_a_topic_of_as_select_takes_all_columns_of_a_message_in_any_order(value: DataType) -> None:
    answer = ask("columns", **{"catalog.columns": StructType([*ALL.fields[1:], StructField("value", value)]).json()})
    assert answer["columns"].dataType == StructType([StructField("value", value), *ALL.fields[1:]])


@pytest.mark.parametrize(
    "columns", [StructType(ALL.fields[:1]), StructType([*ALL.fields, StructField("a", StringType())])]
)
def test_other_columns_make_no_topic_of_as_select(columns: StructType) -> None:
    assert "No topic is made" in refused(ask("columns", **{"catalog.columns": columns.json()}))


def test_as_select_without_a_guarantee_makes_no_topic() -> None:
    about = {"catalog.as.select": "true", "catalog.columns": ALL.json(), "catalog.properties": StructType([]).json()}
    assert "only with guarantee=at-least-once" in refused(ask("create", **about))


@pytest.mark.parametrize("table", ["flights ", "my flights"])
@pytest.mark.parametrize("question", ["table", "create"])
def test_a_topic_whose_name_the_source_does_not_take_is_no_table(question: str, table: str) -> None:
    """Without the blank at its end the name is that of another topic, whose rows would be read in silence."""
    about = {"catalog.columns": ALL.json(), "catalog.properties": StructType([]).json()}
    assert f"default/{table}' is not a topic name. It has a blank" in refused(ask(question, table=table, **about))


@pytest.mark.parametrize(
    ("namespace", "table"),
    [("public/default", "no thing"), ("public/default", "nothing"), ("public", "flights"), ("", "t")],
)
def test_no_topic_is_no_table(namespace: str, table: str) -> None:
    assert ask("table", namespace, table).fieldNames() == []
