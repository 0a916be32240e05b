"""The figures in the real SDK of OpenTelemetry."""

from __future__ import annotations

import gc
import time
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from eos.metrics.figures import FIGURES
from eos.metrics.opentelemetry import OpenTelemetryMetrics, name_of, unit_of
from tests.unit.metrics.batches import DELAYS, FLIGHTS, Live, failed, finished


class Sdk:
    """A meter provider, and what it would export."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.provider = MeterProvider([self._reader])

    def metrics(self) -> dict[str, Any]:
        """Each metric by name; none when there is nothing to export."""
        data = self._reader.get_metrics_data()
        scopes = [] if data is None else [scope for one in data.resource_metrics for scope in one.scope_metrics]
        assert {scope.scope.name for scope in scopes} <= {"eos"}
        return {metric.name: metric for scope in scopes for metric in scope.metrics}

    def shown(self) -> dict[tuple[Any, ...], Any]:
        """{(name, values of attributes …): the data point}."""
        metrics = self.metrics()
        return {
            (name, *(point.attributes or {}).values()): point
            for name, metric in metrics.items()
            for point in metric.data.data_points
        }


@pytest.fixture
def sdk() -> Sdk:
    return Sdk()


def test_names_have_dots_and_units_are_of_ucum() -> None:
    assert {name_of(figure): unit_of(figure) for figure in FIGURES} == {
        "eos.sink.batches": "{batch}",
        "eos.sink.failures": "{failure}",
        "eos.sink.transactions": "{transaction}",
        "eos.sink.rows": "{row}",
        "eos.sink.payload": "By",
        "eos.sink.frames": "{frame}",
        "eos.sink.batch.duration": "s",
        "eos.sink.step.time": "s",
        "eos.sink.last_commit.timestamp": "s",
        "eos.sink.start.timestamp": "s",
        "eos.sink.open_transaction.age": "s",
    }


def test_the_sdk_gets_what_batches_have_added_up_to(sdk: Sdk) -> None:
    metrics, sink = OpenTelemetryMetrics(sdk.provider), Live("flights", 61.0)
    metrics.watch(sink)
    assert sdk.shown()["eos.sink.batches", "flights", "unknown"].value == 0
    for batch in (finished(), finished(), failed("Fenced", "unknown")):
        metrics(batch)
    found = sdk.shown()
    assert set(sdk.metrics()) == {name_of(figure) for figure in FIGURES}
    assert found["eos.sink.batches", "flights", "committed"].value == 2
    assert found["eos.sink.failures", "flights", "Fenced"].value == 1
    assert found["eos.sink.transactions", "flights"].value == 5
    assert found["eos.sink.rows", "flights", FLIGHTS].value == 40
    assert found["eos.sink.payload", "flights", DELAYS].value == 100
    assert found["eos.sink.frames", "flights", DELAYS].value == 2
    assert found["eos.sink.step.time", "flights", "delivery"].value == 0.5
    assert found["eos.sink.last_commit.timestamp", "flights"].value > 1.7e9
    assert found["eos.sink.open_transaction.age", "flights"].value == 61
    duration = found["eos.sink.batch.duration", "flights"]
    assert (duration.count, duration.sum) == (2, 0.8)
    assert 0.5 in duration.explicit_bounds
    assert sdk.metrics()["eos.sink.rows"].data.is_monotonic


def test_a_gauge_is_shown_each_time_the_sdk_asks_until_it_is_set_anew(
    sdk: Sdk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An alert on the last commit would else lose its figure as soon as a sink hangs."""
    metrics = OpenTelemetryMetrics(sdk.provider)
    for now in (1000.0, 2000.0):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        metrics(finished())
        for _ in range(3):
            assert sdk.shown()["eos.sink.last_commit.timestamp", "flights"].value == now


def test_the_units_reach_the_sdk(sdk: Sdk) -> None:
    OpenTelemetryMetrics(sdk.provider)(finished())
    metrics = sdk.metrics()
    assert (metrics["eos.sink.payload"].unit, metrics["eos.sink.step.time"].unit) == ("By", "s")
    assert metrics["eos.sink.rows"].description == "rows committed"


def test_two_observers_share_one_provider(sdk: Sdk) -> None:
    """The SDK asks only the first of two gauges with one name."""
    sinks = [Live("a", 1.0), Live("b", 2.0)]
    for sink in sinks:
        metrics = OpenTelemetryMetrics(sdk.provider)
        metrics.watch(sink)
        metrics(finished(sink=sink.name))
    del metrics
    gc.collect()
    found = sdk.shown()
    assert [found["eos.sink.transactions", sink.name].value for sink in sinks] == [2, 2]
    assert [found["eos.sink.open_transaction.age", sink.name].value for sink in sinks] == [1, 2]


def test_without_an_sdk_nothing_is_kept_and_nothing_fails() -> None:
    OpenTelemetryMetrics()(finished())
