"""The figures of sinks and sources for Prometheus. Needs the extra `spark-pulsar-eos[prometheus]`.

The metrics lie in a registry of prometheus_client. How they get out of the process is the caller's choice:
`start_http_server`, a web framework's route, or `push_to_gateway` at the end of a job.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from eos.metrics import figures
from eos.metrics.batch import FinishedBatch, LiveSink
from eos.metrics.figures import FIGURES, JOBS, TOPICS, Figure, Labels, OpenTransactions, missing
from eos.metrics.source_figures import SOURCE_FIGURES, SourceFigures

if TYPE_CHECKING:
    from eos.metrics.progress import Progress

try:
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.registry import Collector
except ImportError as error:
    raise missing("prometheus", error) from error

_UNITS: Final = ("seconds", "bytes")


def name_of(figure: Figure) -> str:
    """Return a figure's name as Prometheus has it: base unit, and `_total` for what only grows."""
    words = ["eos", figure.name.replace(".", "_")]
    if figure.unit in _UNITS:
        words.append(figure.unit)
    if figure.kind == "counter":
        words.append("total")
    return "_".join(words)


class PrometheusMetrics:
    """An observer for the option `metrics` of `eos.sink` and `eos.write`. One serves many sinks, from any thread.

    Args:
        registry: where the metrics are. Several of these objects on one registry share them.
        jobs: the label `sink` of every job of `eos.write`, in place of its id.
        topics: how many topics keep their names in the label `topic`. All others are "other". Those of sources, which
            are partitions, are counted apart.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY, *, jobs: str = JOBS, topics: int = TOPICS) -> None:
        self._metrics = _in(registry)
        self._labels = Labels(jobs, topics)
        self._sources = SourceFigures(Labels(jobs, topics))

    def __call__(self, batch: FinishedBatch) -> None:
        """Count a finished batch."""
        self._metrics.add(figures.figures_of(batch, self._labels, time.time()))

    def on_progress(self, progress: Progress) -> None:
        """Note what a micro-batch says of its sources. Give this method to `eos.listener`."""
        self._metrics.add(self._sources.figures_of(progress, time.time()))

    def watch(self, sink: LiveSink) -> None:
        """Show the age of this sink's open transaction whenever the registry is asked."""
        label = self._labels.sink(sink.name, sink.job)
        self._metrics.open.watch(sink, label)
        self._metrics.add(figures.first_figures(label, sink.job, time.time()))


class _Metrics:
    """The metrics of one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.open = OpenTransactions()
        self._of: dict[Figure, Counter | Gauge | Histogram] = {}
        for figure in (*FIGURES, *SOURCE_FIGURES):
            if figure is not figures.OPEN_AGE:
                self._of[figure] = _made(figure, registry)
        registry.register(_Ages(self.open))

    def add(self, found: Iterable[tuple[Figure, tuple[str, ...], float]]) -> None:
        for figure, labels, value in found:
            match self._of[figure].labels(*labels):
                case Counter() as counter:
                    counter.inc(value)
                case Gauge() as gauge:
                    gauge.set(value)
                case Histogram() as histogram:
                    histogram.observe(value)


def _made(figure: Figure, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
    name, meaning = name_of(figure), _sentence(figure)
    match figure.kind:
        case "counter":
            return Counter(name, meaning, figure.labels, registry=registry)
        case "gauge":
            return Gauge(name, meaning, figure.labels, registry=registry)
        case "histogram":
            return Histogram(name, meaning, figure.labels, registry=registry, buckets=figures.DURATION_BUCKETS_S)


class _Ages(Collector):
    """Asks sinks for the age of their open transactions when the registry is asked."""

    def __init__(self, open_: OpenTransactions) -> None:
        self._open = open_

    def collect(self) -> Iterator[GaugeMetricFamily]:
        figure = figures.OPEN_AGE
        family = GaugeMetricFamily(name_of(figure), _sentence(figure), labels=figure.labels)
        for label, age in self._open.ages().items():
            family.add_metric([label], age)
        yield family


def _sentence(figure: Figure) -> str:
    return f"{figure.meaning[0].upper()}{figure.meaning[1:]}."


_registries: weakref.WeakKeyDictionary[CollectorRegistry, _Metrics] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def _in(registry: CollectorRegistry) -> _Metrics:
    with _making:
        if registry not in _registries:
            _registries[registry] = _Metrics(registry)
        return _registries[registry]
