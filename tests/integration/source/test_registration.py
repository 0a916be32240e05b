"""How Spark comes to know the source, and what it shows of its errors."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import SparkSession

import eos
from eos.local import LocalPulsar
from eos.pulsar.net.client import Client
from tests.conftest import MakeTopic, RunningPulsar
from tests.integration.source.conftest import MakeStream
from tests.integration.source.streams import PATIENCE_S, values, write


def test_registering_what_spark_has_found_already_does_no_harm(
    spark: SparkSession, ours: Client, make_topic: MakeTopic, make_stream: MakeStream
) -> None:
    topic = make_topic("registered")
    write(ours, topic, "a")
    eos.register(spark)
    assert values(make_stream(topic=topic).run()) == ["a"]


def test_another_name_reads_where_pulsar_is_that_of_another_connector(
    spark: SparkSession, ours: Client, pulsar: LocalPulsar | RunningPulsar, make_topic: MakeTopic
) -> None:
    topic = make_topic("renamed")
    write(ours, topic, "a", "b")
    eos.register(spark, "pulsar_eos")
    options = {"service.url": pulsar.service_url, "topic": topic}
    assert sorted(row.value for row in spark.read.format("pulsar_eos").options(**options).load().collect()) == [
        b"a",
        b"b",
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("parquet", r'another data source "parquet" already.*eos\.register\(spark, "pulsar_eos"\)'),
        ("pulsar-eos", "'pulsar-eos' is not a name for a data source"),
        ("", "'' is not a name"),
    ],
)
def test_a_name_that_another_has_or_that_is_none_is_refused(spark: SparkSession, name: str, words: str) -> None:
    with pytest.raises(eos.InvalidInput, match=words):
        eos.register(spark, name)


@pytest.mark.parametrize(
    ("options", "schema", "words"),
    [
        ({"startingOfsets": "latest"}, "value binary", "Did you mean 'startingOffsets'"),
        ({}, "value int", "column 'value' can't be int: the Pulsar source gives it as binary or string"),
    ],
)
def test_mistakes_are_told_in_words(make_stream: MakeStream, options: dict[str, str], schema: str, words: str) -> None:
    with pytest.raises((AnalysisException, StreamingQueryException)) as refused:
        make_stream(topic="t", **options).start(schema, availableNow=True).awaitTermination(PATIENCE_S)
    assert words in str(refused.value)
