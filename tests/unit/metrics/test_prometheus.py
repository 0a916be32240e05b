"""The figures in a real registry of prometheus_client."""

from __future__ import annotations

import gc

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from eos.metrics.figures import FIGURES
from eos.metrics.prometheus import PrometheusMetrics, name_of
from tests.unit.metrics.batches import DELAYS, FLIGHTS, Live, failed, finished


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def shown(registry: CollectorRegistry) -> dict[tuple[str, ...], float]:
    """What a scrape gives: {(name, the sink, values of its other labels …): value}."""
    text = generate_latest(registry).decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(one.name, one.labels.pop("sink"), *one.labels.values()): one.value for one in samples}


def test_the_names_are_those_of_prometheus() -> None:
    assert [name_of(figure) for figure in FIGURES] == [
        "eos_sink_batches_total",
        "eos_sink_failures_total",
        "eos_sink_transactions_total",
        "eos_sink_rows_total",
        "eos_sink_payload_bytes_total",
        "eos_sink_frames_total",
        "eos_sink_batch_duration_seconds",
        "eos_sink_step_time_seconds_total",
        "eos_sink_last_commit_timestamp_seconds",
        "eos_sink_start_timestamp_seconds",
        "eos_sink_open_transaction_age_seconds",
    ]


def test_a_scrape_shows_what_batches_have_added_up_to(registry: CollectorRegistry) -> None:
    metrics = PrometheusMetrics(registry)
    for batch in (finished(), finished(), failed("CommitUnknown", "unknown")):
        metrics(batch)
    found = shown(registry)
    assert found["eos_sink_batches_total", "flights", "committed"] == 2
    assert found["eos_sink_batches_total", "flights", "unknown"] == 1
    assert found["eos_sink_failures_total", "flights", "CommitUnknown"] == 1
    assert found["eos_sink_transactions_total", "flights"] == 5
    assert found["eos_sink_rows_total", "flights", FLIGHTS] == 40
    assert found["eos_sink_payload_bytes_total", "flights", DELAYS] == 100
    assert found["eos_sink_frames_total", "flights", FLIGHTS] == 4
    assert found["eos_sink_step_time_seconds_total", "flights", "open"] == 0.25
    assert found["eos_sink_step_time_seconds_total", "flights", "delivery"] == 0.5
    assert found["eos_sink_batch_duration_seconds_sum", "flights"] == 0.8
    assert found["eos_sink_batch_duration_seconds_count", "flights"] == 2
    assert found["eos_sink_batch_duration_seconds_bucket", "flights", "0.25"] == 0
    assert found["eos_sink_batch_duration_seconds_bucket", "flights", "0.5"] == 2
    assert found["eos_sink_last_commit_timestamp_seconds", "flights"] > 1.7e9


def test_the_age_of_the_open_transaction_is_asked_at_each_scrape(registry: CollectorRegistry) -> None:
    name, metrics, sink = "eos_sink_open_transaction_age_seconds", PrometheusMetrics(registry), Live("flights")
    metrics.watch(sink)
    assert shown(registry)[name, "flights"] == 0
    assert shown(registry)["eos_sink_batches_total", "flights", "unknown"] == 0, "or its first increase is not seen"
    assert shown(registry)["eos_sink_start_timestamp_seconds", "flights"] > 1.7e9
    sink.age = 61.0
    assert shown(registry)[name, "flights"] == 61
    del sink
    gc.collect()
    assert (name, "flights") not in shown(registry)


def test_two_observers_share_one_registry(registry: CollectorRegistry) -> None:
    """A notebook's cell is run twice, or each of two sinks gets an observer of its own."""
    sinks = [Live("a", 1.0), Live("b", 2.0)]
    for sink in sinks:
        metrics = PrometheusMetrics(registry)
        metrics.watch(sink)
        metrics(finished(sink=sink.name))
    found = shown(registry)
    assert [found["eos_sink_transactions_total", sink.name] for sink in sinks] == [2, 2]
    assert [found["eos_sink_open_transaction_age_seconds", sink.name] for sink in sinks] == [1, 2]


def test_jobs_and_topics_without_end_are_no_labels(registry: CollectorRegistry) -> None:
    metrics = PrometheusMetrics(registry, jobs="nightly", topics=1)
    for day in ("2026-11-23", "2026-11-24"):
        job = Live(day, 5.0, job=True)
        metrics.watch(job)
        metrics(finished(sink=day, job=True))
    found = shown(registry)
    assert found["eos_sink_rows_total", "nightly", FLIGHTS] == 40
    assert found["eos_sink_rows_total", "nightly", "other"] == 10
    assert found["eos_sink_open_transaction_age_seconds", "nightly"] == 5
    assert not any("2026-11-23" in labels for labels in found)
