"""The figures of sinks and sources for OpenTelemetry. Needs the extra `spark-pulsar-eos[opentelemetry]`: the API alone.

Where they go is the business of the application's SDK: without one, nothing is kept. Set its meter provider before an
`OpenTelemetryMetrics` is made.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from eos.metrics import figures
from eos.metrics.batch import FinishedBatch, LiveSink
from eos.metrics.figures import FIGURES, JOBS, TOPICS, Figure, Labels, OpenTransactions, missing
from eos.metrics.source_figures import SOURCE_FIGURES, SourceFigures
from eos.version import own_version

if TYPE_CHECKING:
    from eos.metrics.progress import Progress

try:
    from opentelemetry import metrics as api
except ImportError as error:
    raise missing("opentelemetry", error) from error

_UNITS: Final = {"seconds": "s", "bytes": "By"}  # of UCUM; what is counted stands in braces

Record = Callable[[float, dict[str, str]], None]


class OpenTelemetryMetrics:
    """An observer for the option `metrics` of `eos.sink` and `eos.write`. One serves many sinks, from any thread.

    Args:
        meter_provider: of the SDK. None: the global one.
        jobs: the attribute `sink` of every job of `eos.write`, in place of its id.
        topics: how many topics keep their names in the attribute `topic`. All others are "other". Those of sources,
            which are partitions, are counted apart.
    """

    def __init__(
        self, meter_provider: api.MeterProvider | None = None, *, jobs: str = JOBS, topics: int = TOPICS
    ) -> None:
        provider = api.get_meter_provider() if meter_provider is None else meter_provider
        meter = api.get_meter("eos", own_version(), provider)
        self._labels = Labels(jobs, topics)
        self._sources = SourceFigures(Labels(jobs, topics))
        self._gauges = _gauges_of(provider)
        self._record: dict[Figure, Record] = {
            figure: _instrument(meter, figure, self._gauges) for figure in (*FIGURES, *SOURCE_FIGURES)
        }

    def __call__(self, batch: FinishedBatch) -> None:
        """Count a finished batch."""
        self._add(figures.figures_of(batch, self._labels, time.time()))

    def on_progress(self, progress: Progress) -> None:
        """Note what a micro-batch says of its sources. Give this method to `eos.listener`."""
        self._add(self._sources.figures_of(progress, time.time()))

    def watch(self, sink: LiveSink) -> None:
        """Show the age of this sink's open transaction whenever the SDK asks."""
        label = self._labels.sink(sink.name, sink.job)
        self._gauges.open.watch(sink, label)
        self._add(figures.first_figures(label, sink.job, time.time()))

    def _add(self, found: Iterable[tuple[Figure, tuple[str, ...], float]]) -> None:
        for figure, labels, value in found:
            self._record[figure](value, dict(zip(figure.labels, labels, strict=True)))


def name_of(figure: Figure) -> str:
    """Return a figure's name as OpenTelemetry has it: words with dots, without the unit."""
    return f"eos.{figure.name}"


def unit_of(figure: Figure) -> str:
    """Return a figure's unit in UCUM."""
    return _UNITS.get(figure.unit, f"{{{figure.unit}}}")


class _Gauges:
    """What the gauges show whenever the SDK asks. All observers of a provider share it.

    Of two gauges of one name the SDK asks only the first (1.45). And before 1.45 it forgot the value of a gauge that is
    set once it had read it, so that an alert on the last commit of a sink that hangs lost its figure.

    Attributes:
        open: the transactions that are open.
    """

    def __init__(self) -> None:
        self.open = OpenTransactions()
        self._values: dict[Figure, dict[tuple[tuple[str, str], ...], float]] = {}
        self._lock = threading.Lock()

    def set(self, figure: Figure, value: float, attributes: dict[str, str]) -> None:
        """Show this value from now on."""
        with self._lock:
            self._values.setdefault(figure, {})[tuple(attributes.items())] = value

    def shown(self, figure: Figure, _: api.CallbackOptions) -> list[api.Observation]:
        """Return the values of a gauge, for the SDK."""
        if figure is figures.OPEN_AGE:
            return [api.Observation(age, {"sink": label}) for label, age in self.open.ages().items()]
        with self._lock:
            return [api.Observation(value, dict(of)) for of, value in self._values.get(figure, {}).items()]


def _instrument(meter: api.Meter, figure: Figure, gauges: _Gauges) -> Record:
    name, unit, meaning = name_of(figure), unit_of(figure), figure.meaning
    match figure.kind:
        case "counter":
            return meter.create_counter(name, unit, meaning).add
        case "gauge":
            meter.create_observable_gauge(name, [partial(gauges.shown, figure)], unit, meaning)
            return partial(gauges.set, figure)
        case "histogram":
            buckets = figures.DURATION_BUCKETS_S
            return meter.create_histogram(name, unit, meaning, explicit_bucket_boundaries_advisory=buckets).record


_providers: weakref.WeakKeyDictionary[api.MeterProvider, _Gauges] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def _gauges_of(provider: api.MeterProvider) -> _Gauges:
    with _making:
        return _providers.setdefault(provider, _Gauges())
