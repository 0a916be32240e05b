"""How Spark comes to know the source, and what it shows of its errors."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import SparkSession

import eos
from eos.pulsar.net.client import Client
from tests.conftest import MakeTopic
from tests.integration.source.conftest import MakeStream
from tests.integration.source.streams import PATIENCE_S, values, write


def test_registering_what_spark_has_found_already_does_no_harm(
    spark: SparkSession, ours: Client, make_topic: MakeTopic, make_stream: MakeStream
) -> None:
    topic = make_topic("registered")
    write(ours, topic, "a")
    eos.register(spark)
    assert values(make_stream(topic=topic).run()) == ["a"]


def test_the_name_of_another_connector_is_not_taken_from_it(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eos.by_name.data_source.NAME", "parquet")
    with pytest.raises(eos.InvalidInput, match=r'another data source "parquet" already.*PulsarDataSource'):
        eos.register(spark)


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
