"""The figures of sources, made from progress, and in both exporters."""

from __future__ import annotations

from types import SimpleNamespace

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry

from eos.metrics.figures import JOBS, TOPICS, Labels
from eos.metrics.opentelemetry import OpenTelemetryMetrics
from eos.metrics.opentelemetry import name_of as name_of_otel
from eos.metrics.partition_lag import PartitionLag
from eos.metrics.prometheus import PrometheusMetrics, name_of
from eos.metrics.source_figures import LAG, LAST_BATCH, OLDEST_AGE, ROWS, SOURCE_FIGURES, SourceFigures
from tests.unit.metrics.batches import FLIGHTS, read, source

NOW = 1_700_000_000.0
FIRST, SECOND = f"{FLIGHTS}-0", f"{FLIGHTS}-1"


def lag(topic: str, entries: int, age_s: float | None = None) -> PartitionLag:
    return PartitionLag(topic=topic, entries=entries, oldest_ms=None if age_s is None else int((NOW - age_s) * 1_000))


def test_each_partition_that_is_read_has_a_lag_and_none_is_0() -> None:
    found = list(SourceFigures(Labels(JOBS, TOPICS)).figures_of(read(lag(SECOND, 7, 34.0)), NOW))
    assert found == [
        (ROWS, ("counts",), 100),
        (LAST_BATCH, ("counts",), NOW),
        (LAG, ("counts", FIRST), 0),
        (OLDEST_AGE, ("counts", FIRST), 0),
        (LAG, ("counts", SECOND), 7),
        (OLDEST_AGE, ("counts", SECOND), 34.0),
    ]


def test_a_partition_that_is_no_longer_read_goes_back_to_0() -> None:
    figures = SourceFigures(Labels(JOBS, TOPICS))
    list(figures.figures_of(read(lag(SECOND, 7)), NOW))
    later = list(figures.figures_of(read(sources=[source(FIRST)]), NOW))
    assert (LAG, ("counts", SECOND), 0) in later


def test_partitions_without_an_end_share_a_value() -> None:
    figures = SourceFigures(Labels(JOBS, 1))
    found = list(figures.figures_of(read(lag(FIRST, 5, 1.0), lag(SECOND, 7, 2.0), lag("x", 2, 3.0)), NOW))
    assert [one for one in found if one[0] in (LAG, OLDEST_AGE)] == [
        (LAG, ("counts", "other"), 9),
        (OLDEST_AGE, ("counts", "other"), 3.0),
        (LAG, ("counts", FIRST), 5),
        (OLDEST_AGE, ("counts", FIRST), 1.0),
    ]


def test_a_clock_that_is_behind_makes_no_negative_age_and_a_query_without_a_name_has_its_id() -> None:
    found = list(SourceFigures(Labels(JOBS, TOPICS)).figures_of(read(lag(FIRST, 1, -5.0), name=None), NOW))
    assert (OLDEST_AGE, ("0a1b", FIRST), 0) in found


def test_a_query_without_a_source_of_ours_has_no_figures() -> None:
    others = [SimpleNamespace(endOffset=text, numInputRows=3) for text in (None, "null", "17", '{"t": {"0": 2}}')]
    assert not list(SourceFigures(Labels(JOBS, TOPICS)).figures_of(read(sources=others), NOW))


def test_both_exporters_show_them() -> None:
    reader, registry = InMemoryMetricReader(), CollectorRegistry()
    for metrics in (PrometheusMetrics(registry), OpenTelemetryMetrics(MeterProvider([reader]))):
        for _ in range(2):
            metrics.on_progress(read(lag(SECOND, 7, 34.0)))
    data = reader.get_metrics_data()
    assert data is not None
    told = {
        (metric.name, *(point.attributes or {}).values()): point.value  # type: ignore[union-attr]
        for one in data.resource_metrics
        for scope in one.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    }
    assert {name for name, *_ in told} == set(map(name_of_otel, SOURCE_FIGURES))
    assert told["eos.source.rows", "counts"] == registry.get_sample_value(name_of(ROWS), {"query": "counts"}) == 200
    here = {"query": "counts", "topic": SECOND}
    assert told["eos.source.lag.entries", "counts", SECOND] == registry.get_sample_value(name_of(LAG), here) == 7
    assert [name_of(figure) for figure in SOURCE_FIGURES] == [
        "eos_source_rows_total",
        "eos_source_lag_entries",
        "eos_source_oldest_unread_age_seconds",
        "eos_source_last_batch_timestamp_seconds",
    ]
