"""Pulsar Proxy as the only way to the cluster, as Helm charts make it: sink, source, jobs and commands."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

import eos
from tests.integration.sparkless import eos as command
from tests.proxy import PulsarProxy
from tests.reading import values_of

ROWS = [str(row) for row in range(50)]


def test_a_first_job_a_stream_and_a_table_go_through_a_proxy(
    spark: SparkSession, pulsar: Any, proxy: PulsarProxy, make_topic: Any, tmp_path: Path
) -> None:
    first, second = make_topic("through", partitions=2), make_topic("through", partitions=2)
    name = f"through-{uuid.uuid4().hex[:8]}"
    # Of its own: `eos sink list` ends with 1 where any log of a namespace can't be read, as other tests leave some.
    logs = f"public/{name}"
    httpx.put(f"{pulsar.admin_url}/admin/v2/namespaces/{logs}", json={}, timeout=30).raise_for_status()
    rows = spark.range(50, numPartitions=3).selectExpr("string(id) key", "string(id) value")
    result = eos.write(rows, proxy.service_url, job_id=name, topic=first, admin_url=proxy.admin_url)
    assert (result.wrote, result.rows) == (True, 50)

    reading = {"service.url": proxy.service_url, "topic": first, "startingOffsets": "earliest"}
    stream = (
        spark.readStream.format("pulsar").options(**reading, subscription=name).load().selectExpr("__key key", "value")
    )
    for _ in range(2):  # the second run takes the sink over, and has nothing to write
        sink = eos.sink(
            proxy.service_url,
            topic=second,
            name=f"{name}-sink",
            admin_url=proxy.admin_url,
            control_namespace=logs,
        )
        started = stream.writeStream.foreachBatch(sink).trigger(availableNow=True)
        started.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    table = spark.read.format("pulsar").options(**(reading | {"topic": second})).load()
    assert sorted(row.value.decode() for row in table.collect()) == sorted(ROWS)

    for words, shown in {
        ("topics",): second.rpartition("/")[2],
        ("peek", second): "value",
        ("sink", "list", "--namespace", logs): f"{name}-sink",
        ("sink", "show", f"{name}-sink", "--namespace", logs): "marker",
        ("sink", "verify", f"{name}-sink", "--namespace", logs): "",
        ("doctor", second): "",
    }.items():
        told = command(proxy, *words)
        assert told.exit_code == 0, f"{words}: {told.output}"
        assert shown.casefold() in told.output.casefold()
    assert sorted(values_of(pulsar.service_url, second)) == sorted(ROWS)


def test_a_missing_topic_is_refused_through_a_proxy_as_without(spark: SparkSession, proxy: PulsarProxy) -> None:
    rows = spark.range(1).selectExpr("string(id) value")
    for topic, words in {"missing": "does not exist", "public/none/missing": "no namespace public/none"}.items():
        with pytest.raises(eos.TopicMissing, match=words):
            eos.sink(proxy.service_url, topic=topic, name="never")
        with pytest.raises(eos.TopicMissing, match=words):
            eos.write(rows, proxy.service_url, job_id="never", topic=topic)
        with pytest.raises(Exception, match=words):
            spark.read.format("pulsar").options(**{"service.url": proxy.service_url, "topic": topic}).load().count()
