"""A query from topic to topic goes on, exactly once, while its brokers get other versions of Pulsar one by one."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pulsar as official
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import eos
from eos.local import LocalCluster, checks, jars
from eos.pulsar.net.admin import Admin
from tests.clients import official_client
from tests.conftest import START_S, create_topic
from tests.reading import values_of
from tests.waiting import until

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]

BROKERS = ("broker-0", "broker-1")
ROLLS = ("4.0.0", "4.2.4", "5.0.0-M1")
"""The versions that both brokers get, in this order: back to the oldest, forth, and to the next."""
BATCHES = 3
"""Micro-batches that the query finishes after each change of a broker."""


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(start_timeout_s=START_S) as started:
        yield started


def give_version(cluster: LocalCluster, name: str, version: str) -> None:
    """Stop a broker as an operator does, and start it with the jars of another version on the same metadata."""
    member = cluster[name]
    member.end(30)
    member.launch(checks.java(), jars.classpath(version=version))
    member.wait_until_ready()
    with Admin(str(member.admin_url)) as admin:
        assert admin.version() == version


@contextmanager
def fed(service_url: str, topic: str) -> Iterator[None]:
    """Send numbers to the topic until the block ends. A number that a broker may have stored twice stays so."""
    ended = threading.Event()
    failures: list[official.Timeout] = []

    def feed(producer: official.Producer) -> None:
        number = 0
        while not ended.wait(0.02):
            try:
                producer.send(str(number).encode(), partition_key=str(number % 7))
            except official.Timeout as error:
                failures.append(error)
            number += 1

    with official_client(service_url) as client:
        producer = client.create_producer(topic, send_timeout_millis=120_000)
        thread = threading.Thread(target=feed, args=(producer,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(150)
    assert not failures, f"{len(failures)} numbers were not taken within two minutes: {failures[0]}"


class Supervised:
    """A query that is started again on its checkpoint when it ends with an error, as a supervisor does."""

    def __init__(self, spark: SparkSession, cluster: LocalCluster, source: str, target: str, checkpoint: Path) -> None:
        self._spark, self._cluster, self._source, self._target = spark, cluster, source, target
        self._checkpoint = checkpoint
        self.ended_with: list[str] = []
        self.query = self._started()

    def _started(self) -> StreamingQuery:
        sink = eos.sink(self._cluster.service_url, topic=self._target, name="rolled", small_batch_rows=10)
        stream = self._spark.readStream.format("pulsar").option("service.url", self._cluster.service_url)
        stream = stream.option("topic", self._source).option("subscription", "rolled")

        def write(df: DataFrame, batch_id: int) -> None:
            sink(df.select("value", "__key"), batch_id)

        writer = stream.option("startingOffsets", "earliest").load().writeStream.foreachBatch(write)
        return writer.option("checkpointLocation", str(self._checkpoint)).start()

    def last_batch(self) -> int:
        if not self.query.isActive:
            self.ended_with.append(str(self.query.exception()).partition("\n")[0])
            assert len(self.ended_with) < 10, self.ended_with
            self.query = self._started()
        return int((self.query.lastProgress or {"batchId": -1})["batchId"])

    def go_on(self, batches: int) -> None:
        """Wait for so many more micro-batches."""
        wanted = self.last_batch() + batches
        until(lambda: self.last_batch() >= wanted, lambda: f"no batch {wanted}: {self.ended_with}", 300)


def test_a_query_goes_on_while_its_brokers_are_given_other_versions(
    spark: SparkSession, cluster: LocalCluster, tmp_path: Path
) -> None:
    source, target = (create_topic(cluster.admin_url, stem, 4) for stem in ("rolled-in", "rolled-out"))
    with fed(cluster.service_url, source):
        running = Supervised(spark, cluster, source, target, tmp_path / "checkpoint")
        try:
            running.go_on(BATCHES)
            for version in ROLLS:
                for broker in BROKERS:
                    give_version(cluster, broker, version)
                    running.go_on(BATCHES)
                print(
                    f"all brokers have {version}: batch {running.last_batch()}, ended {len(running.ended_with)} times"
                )
        finally:
            running.query.stop()
    rest = Supervised(spark, cluster, source, target, tmp_path / "checkpoint")
    rest.query.processAllAvailable()
    rest.query.stop()
    given, taken = (Counter(values_of(cluster.service_url, topic)) for topic in (source, target))
    assert len(given) > 1_000
    assert taken == given
