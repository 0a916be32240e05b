"""The writer, as the broker's own stats show it while a batch is written."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from pyspark.sql import SparkSession

import eos
from eos.steps import Phase, Step


@dataclass(frozen=True)
class AsksForStats:
    """Keeps what the broker says of a topic's producers once the rows of a batch are all acknowledged.

    Attributes:
        url: of the topic's stats.
        folder: where the answers are kept, one file for each batch and asker.
    """

    url: str
    folder: str

    def __call__(self, step: Step, phase: Phase, batch_id: int | None) -> None:
        if (step, phase) == (Step.ALL_SENT, "after"):
            answer = httpx.get(self.url, timeout=30).raise_for_status().json()
            publishers = [one for part in answer["partitions"].values() for one in part["publishers"]]
            Path(self.folder, f"{batch_id}.json").write_text(json.dumps(publishers))


def test_stats_tell_the_sink_the_query_and_the_task(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path
) -> None:
    topic = make_topic("who", partitions=2)
    name = topic.rsplit("/")[-1]
    url = f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/partitioned-stats?perPartition=true"
    rows = tmp_path / "rows"
    rows.mkdir()
    for number in range(2):
        (rows / f"{number}.txt").write_text("a\nb\nc\n")
    sink = eos.sink(
        pulsar.service_url,
        topic=topic,
        name=name,
        producer_properties={"team": "air"},
        observer=AsksForStats(url, str(tmp_path)),
    )
    query = (
        spark.readStream.option("maxFilesPerTrigger", 1)
        .text(str(rows))
        .selectExpr("value", "value as key")
        .writeStream.foreachBatch(sink)
        .queryName("hourly")
        .trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    query.awaitTermination(120)
    assert query.exception() is None
    by_task, by_driver = (json.loads((tmp_path / f"{batch}.json").read_text()) for batch in range(2))
    common = {
        "team": "air",
        "eos.sink": name,
        "eos.version": eos.__version__,
        "spark.app.id": spark.sparkContext.applicationId,
        "spark.query.name": "hourly",
        "spark.query.id": str(query.id),
        "spark.run.id": str(query.runId),
    }
    assert by_task
    assert by_driver
    for one in by_task:
        assert one["producerName"].startswith(f"{name}:batch-0-task-{one['metadata']['eos.task']}:")
        assert one["metadata"] == common | {"eos.batch": "0", "eos.task": one["metadata"]["eos.task"]}
    for one in by_driver:
        assert one["producerName"].startswith(f"{name}:driver:")
        assert one["metadata"] == common
    names = [one["producerName"] for one in by_task + by_driver]
    assert len(set(names)) == len(names)
