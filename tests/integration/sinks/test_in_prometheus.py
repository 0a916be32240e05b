"""A query from Pulsar to Pulsar in a real Prometheus: the panels of the dashboard have values, and an alert fires."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry, start_http_server
from pyspark.sql import DataFrame, SparkSession

import eos
from eos.local.checks import pick_ports
from eos.metrics.prometheus import PrometheusMetrics
from tests.unit.metrics.test_dashboard import asked, dashboard
from tests.waiting import until, until_batch

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="prometheus is not on the PATH; on Debian: apt-get install prometheus"
)

WINDOW = "20s"
"""What Grafana puts in place of $__rate_interval: it depends on the width of the panel."""


@dataclass(frozen=True)
class Prometheus:
    url: str

    def ask(self, path: str, **parameters: str) -> Any:
        answer = httpx.get(f"{self.url}/api/v1/{path}", params=parameters, timeout=30)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def values(self, expression: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("query", query=expression)["result"]
        return found

    def firing(self) -> set[str]:
        return {one["labels"]["alertname"] for one in self.ask("alerts")["alerts"] if one["state"] == "firing"}


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def prometheus(registry: CollectorRegistry, tmp_path: Path) -> Iterator[Prometheus]:
    """One that asks for the figures of the registry each second, with the alerts that ship with the package."""
    port, figures_port = pick_ports(2)
    server, thread = start_http_server(figures_port, "127.0.0.1", registry)
    (tmp_path / "alerts.yml").write_text(files("eos.metrics").joinpath("alerts.yml").read_text(encoding="utf-8"))
    scraped = {"job_name": "spark", "static_configs": [{"targets": [f"127.0.0.1:{figures_port}"]}]}
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["alerts.yml"],
        "scrape_configs": [scraped],
    }
    (tmp_path / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
    command = ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=figures"]
    with open(tmp_path / "prometheus.log", "wb") as log:
        process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], cwd=tmp_path, stderr=log)
    running = Prometheus(f"http://127.0.0.1:{port}")

    def ready() -> bool:
        assert process.poll() is None, (tmp_path / "prometheus.log").read_text()
        try:
            return httpx.get(f"{running.url}/-/ready", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    try:
        until(ready, "Prometheus does not answer")
        yield running
    finally:
        process.terminate()
        process.wait(60)
        server.shutdown()
        server.server_close()
        thread.join()


def test_the_dashboard_shows_a_query_and_a_failed_batch_raises_its_alert(
    spark: SparkSession,
    pulsar: Any,
    make_topic: Any,
    tmp_path: Path,
    registry: CollectorRegistry,
    prometheus: Prometheus,
) -> None:
    source, target = make_topic("watched", 2), make_topic("written", 2)
    name = target.rpartition("/")[2]
    metrics = PrometheusMetrics(registry)
    listener = eos.listener(metrics.on_progress)
    rows = spark.range(400).selectExpr("string(id) value")
    eos.write(rows, pulsar.service_url, topic=source, job_id=f"fill-{name}", batching="none")
    sink = eos.sink(pulsar.service_url, topic=target, name=name, metrics=metrics)

    def write(df: DataFrame, batch_id: int) -> None:
        sink(df.select("value") if batch_id < 6 else df.selectExpr("value", "9 as partition"), batch_id)

    options = {"service.url": pulsar.service_url, "admin.url": pulsar.admin_url, "topic": source, "subscription": name}
    stream = spark.readStream.format("pulsar").options(**options, startingOffsets="earliest", maxEntriesPerTrigger="20")
    writer = stream.load().writeStream.queryName("watched").foreachBatch(write).trigger(processingTime="2 seconds")
    spark.streams.addListener(listener)
    try:
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        until_batch(query, 4)
        until(lambda: not without_values(prometheus), lambda: "\n".join(without_values(prometheus)))
        assert "EosQueryFailed" not in prometheus.firing()
        until(lambda: not query.isActive, "the query went on after a batch for a partition that there is not")
        assert "partition 9" in str(query.exception())
        until(lambda: "EosQueryFailed" in prometheus.firing(), "no alert told of the batch that failed")
    finally:
        spark.streams.removeListener(listener)
    health = {rule["health"] for group in prometheus.ask("rules")["groups"] for rule in group["rules"]}
    assert health == {"ok"}


UNSEEN = ("eos_sink_failures_total", "eos_source_damaged_rows_total")
"""Figures that a query has only once something went wrong."""


def without_values(prometheus: Prometheus) -> list[str]:
    """Expressions of the dashboard's panels for which Prometheus has no value."""
    replaced = {"$sink": ".*", "$query": ".*", "$__rate_interval": WINDOW}
    missing = []
    for expression in asked(dashboard()):
        if expression.startswith("label_values") or any(name in expression for name in UNSEEN):
            continue
        for variable, value in replaced.items():
            expression = expression.replace(variable, value)
        if not prometheus.values(expression):
            missing.append(expression)
    return missing
