"""A sink that knows the admin API says at its start when a broker may show readers aborted rows."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from pyspark.sql import SparkSession

import eos


def test_a_sink_that_knows_the_admin_api_warns_at_its_start(
    spark: SparkSession, pulsar: Any, make_topic: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("eos.preflight.recovery.SETTING", "numIOThreads")  # of which a broker has two or more
    topic = make_topic("warned")
    name = topic.rsplit("/")[-1]
    sink = eos.sink(pulsar.service_url, topic=topic, name=name, admin_url=pulsar.admin_url)
    with (
        closing(sink),
        sink.batch(0, eos.Identity("query", "run", "offsets 0")) as txn,
    ):
        txn.write(spark.range(3).selectExpr("cast(id as string) value"))
    assert "The broker recovers topics in" in "\n".join(caplog.messages)
