"""The figures of sources, made from progress, and in both exporters."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry
from pyspark.sql import Row

from eos.metrics.figures import JOBS, TOPICS, Labels
from eos.metrics.opentelemetry import OpenTelemetryMetrics
from eos.metrics.opentelemetry import name_of as name_of_otel
from eos.metrics.prometheus import PrometheusMetrics, name_of
from eos.metrics.source_figures import (
    DAMAGED,
    LAG,
    LAST_BATCH,
    LOSSES,
    OLDEST_AGE,
    PLANNED,
    ROWS,
    SOURCE_FIGURES,
    VALUES,
    SourceFigures,
)
from eos.metrics.source_report import PartitionLag, PlannedEntries, SourceReport
from tests.unit.metrics.batches import FLIGHTS, read, source

NOW = 1_700_000_000.0
FIRST, SECOND = f"{FLIGHTS}-0", f"{FLIGHTS}-1"


def lag(topic: str, entries: int, age_s: float | None = None) -> PartitionLag:
    return PartitionLag(topic=topic, entries=entries, oldest_ms=None if age_s is None else int((NOW - age_s) * 1_000))


def test_each_partition_that_is_read_has_a_lag_and_none_is_0() -> None:
    found = list(SourceFigures(Labels(JOBS, TOPICS)).figures_of(read(lag(SECOND, 7, 34.0)), NOW))
    assert [one for one in found if one[0] not in (PLANNED, LOSSES, DAMAGED, VALUES)] == [
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


def test_a_source_without_a_report_says_nothing_of_what_is_unread() -> None:
    """Spark has run the batch again after a restart. A value of 0 would end an alert, as if the query kept up."""
    figures = SourceFigures(Labels(JOBS, TOPICS))
    two = read(sources=[source(FIRST), source(SECOND)])
    both = (SourceReport(lags=(lag(FIRST, 5, 1.0),)), SourceReport(lags=(lag(SECOND, 7, 2.0),)))

    def unread(*reports: SourceReport | None) -> list[str]:
        found = figures.figures_of(replace(two, reports=reports), NOW)
        return [labels[1] for figure, labels, _ in found if figure in (LAG, OLDEST_AGE)]

    assert unread(None, None) == []
    assert unread(*both) == [FIRST, FIRST, SECOND, SECOND]
    assert unread(None, both[1]) == [SECOND, SECOND]
    assert unread(both[0], None) == [FIRST, FIRST]
    assert unread(None, None) == []
    assert unread(replace(both[0], lags=(), lags_known=False), both[1]) == [SECOND, SECOND]
    shared = SourceFigures(Labels(JOBS, 0))
    found = list(shared.figures_of(replace(two, reports=(None, both[1])), NOW))
    assert not [one for one in found if one[0] in (LAG, OLDEST_AGE)], "a part of the shared value is not known"


def test_partitions_without_an_end_share_a_value() -> None:
    figures = SourceFigures(Labels(JOBS, 1))
    found = list(figures.figures_of(read(lag(FIRST, 5, 1.0), lag(SECOND, 7, 2.0), lag("x", 2, 3.0)), NOW))
    assert [one for one in found if one[0] in (LAG, OLDEST_AGE)] == [
        (LAG, ("counts", "other"), 9),
        (OLDEST_AGE, ("counts", "other"), 3.0),
        (LAG, ("counts", FIRST), 5),
        (OLDEST_AGE, ("counts", FIRST), 1.0),
    ]


def test_an_age_that_nobody_knows_keeps_its_value() -> None:
    """Brokers that are too slow to answer would end the alert that the query is late."""
    figures = SourceFigures(Labels(JOBS, TOPICS))

    def ages(*lags: PartitionLag) -> dict[str, float]:
        found = figures.figures_of(read(*lags), NOW)
        return {labels[1]: value for figure, labels, value in found if figure is OLDEST_AGE}

    assert ages(lag(FIRST, 5, 700.0), lag(SECOND, 7, 900.0)) == {FIRST: 700.0, SECOND: 900.0}
    assert ages(lag(FIRST, 5, 710.0), lag(SECOND, 7)) == {FIRST: 710.0}
    assert ages(lag(SECOND, 7)) == {FIRST: 0}
    assert ages() == {FIRST: 0, SECOND: 0}
    shared = SourceFigures(Labels(JOBS, 0))
    found = list(shared.figures_of(read(lag(FIRST, 5, 700.0), lag(SECOND, 7)), NOW))
    assert (OLDEST_AGE, ("counts", "other"), 700.0) in found


def test_planned_entries_count_for_the_reader_that_tasks_were_to_use_and_each_reader_has_a_value() -> None:
    figures = SourceFigures(Labels(JOBS, TOPICS))
    planned = (PlannedEntries(reader="brokers", entries=5), PlannedEntries(reader="bookies", entries=900))
    found = list(figures.figures_of(read(report=SourceReport(planned=planned)), NOW))
    assert [one for one in found if one[0] is PLANNED] == [
        (PLANNED, ("counts", "brokers"), 5),
        (PLANNED, ("counts", "bookies"), 900),
        (PLANNED, ("counts", "offloaded"), 0),
    ]


def test_losses_are_counted_once_over_the_reports_of_each_run() -> None:
    """A report has all losses of its run: Spark shows none of the reports of batches without new input."""
    figures = SourceFigures(Labels(JOBS, TOPICS))
    told: list[float] = []
    for run, losses in (
        ("one", 0),
        ("one", 2),
        ("one", None),
        ("one", 2),
        ("one", 3),
        ("two", 3),
        ("two", 4),
        ("two", 1),
    ):
        reports = (None if losses is None else SourceReport(losses=losses),)
        progress = replace(read(runId=run), reports=reports)
        told += [value for figure, _, value in figures.figures_of(progress, NOW) if figure is LOSSES]
    assert told == [0, 2, 0, 0, 1, 3, 1, 1], "a count that has begun again is new as a whole"


def test_each_source_of_a_query_has_its_own_losses() -> None:
    figures = SourceFigures(Labels(JOBS, TOPICS))
    told: list[float] = []
    for losses in ((1, 5), (2, 5), (2, 6)):
        progress = replace(read(), reports=tuple(SourceReport(losses=one) for one in losses))
        told += [value for figure, _, value in figures.figures_of(progress, NOW) if figure is LOSSES]
    assert told == [6, 1, 1]


def test_what_a_query_observes_of_its_rows_counts() -> None:
    seen = {"eos.source": Row(damaged=2, value_bytes=70), "eos.source.b": Row(value_bytes=5), "eos.sources": Row(n=1)}
    found = list(SourceFigures(Labels(JOBS, TOPICS)).figures_of(read(observedMetrics=seen), NOW))
    assert (DAMAGED, ("counts",), 2) in found
    assert (VALUES, ("counts",), 75) in found


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
        metrics.on_progress(replace(read(), reports=(None,)))
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
    assert told["eos.source.rows", "counts"] == registry.get_sample_value(name_of(ROWS), {"query": "counts"}) == 300
    here = {"query": "counts", "topic": SECOND}
    assert told["eos.source.lag.entries", "counts", SECOND] == registry.get_sample_value(name_of(LAG), here) == 7
    assert [name_of(figure) for figure in SOURCE_FIGURES] == [
        "eos_source_rows_total",
        "eos_source_planned_entries_total",
        "eos_source_losses_total",
        "eos_source_damaged_rows_total",
        "eos_source_values_bytes_total",
        "eos_source_lag_entries",
        "eos_source_oldest_unread_age_seconds",
        "eos_source_last_batch_timestamp_seconds",
    ]
