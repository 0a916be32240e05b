"""The figures of a finished batch, before any exporter names them."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from eos import errors
from eos.metrics import figures
from eos.metrics.batch import Outcome
from eos.metrics.figures import FIGURES, JOBS, TOPICS, Labels, OpenTransactions, figures_of, first_figures
from tests.unit.metrics.batches import DELAYS, FLIGHTS, Live, failed, finished

NOW = 1.7e9


def test_every_figure_comes_with_a_value_for_each_of_its_labels() -> None:
    batches = (finished(), failed("NotCommitted"))
    found = [one for batch in batches for one in figures_of(batch, Labels(JOBS, TOPICS), NOW)]
    assert all(len(labels) == len(figure.labels) for figure, labels, _ in found)
    assert {figure for figure, _, _ in found} == set(FIGURES) - {figures.OPEN_AGE, figures.STARTED}
    assert len({figure.name for figure in FIGURES}) == len(FIGURES)


@pytest.mark.parametrize("outcome", ["replayed", "failed", "unknown"])
def test_a_batch_that_this_call_has_not_committed_has_no_duration_and_is_no_commit(outcome: str) -> None:
    found = {figure for figure, _, _ in figures_of(finished(outcome=outcome), Labels(JOBS, TOPICS), NOW)}
    assert not found & {figures.DURATION, figures.LAST_COMMIT}


def test_no_label_names_a_batch_a_run_or_a_transaction() -> None:
    """Each would be a new time series for each batch."""
    values = {value for _, labels, _ in figures_of(finished(), Labels(JOBS, TOPICS), NOW) for value in labels}
    assert values == {"flights", "committed", FLIGHTS, DELAYS, "open", "end-answered", figures.DELIVERY}


def test_topics_without_an_end_share_a_value() -> None:
    labels = Labels(JOBS, topics=2)
    assert [labels.topic(topic) for topic in "abcab"] == ["a", "b", "other", "a", "b"]


def test_all_jobs_share_a_value() -> None:
    """Their ids are new ones each day."""
    labels = Labels("nightly", TOPICS)
    assert [labels.sink("2026-11-23", True), labels.sink("2026-11-24", True)] == ["nightly", "nightly"]
    assert labels.sink("flights", False) == "flights"


def test_the_oldest_open_transaction_of_a_label_is_told_and_none_is_no_age() -> None:
    watched, sinks = OpenTransactions(), [Live("a", 7.0), Live("b", 3.0), Live("c")]
    for sink, label in zip(sinks, ("jobs", "jobs", "c"), strict=True):
        watched.watch(sink, label)
    assert watched.ages() == {"jobs": 7.0, "c": 0.0}


def test_a_sink_that_is_gone_is_asked_no_more() -> None:
    watched, sink = OpenTransactions(), Live("a", 3.0)
    watched.watch(sink, "a")
    del sink
    gc.collect()
    assert watched.ages() == {}


def test_a_counter_is_there_before_it_counts_for_each_outcome_and_each_error_of_the_reference() -> None:
    """Prometheus sees no increase of a series that begins with 1."""
    first = {(figure, labels[1:]) for figure, labels, value in first_figures("flights", False, 7.0) if value == 0}
    page = (Path(__file__).resolve().parents[3] / "docs/reference/sink.md").read_text(encoding="utf-8")
    rows = page.partition("## Errors, and what to do")[2].partition("\n## ")[0].splitlines()[4:]
    named = {name for row in rows if row.startswith("| `") for name in row.split(" | ")[0].split("`")[1::2]}
    assert {labels for figure, labels in first if figure is figures.FAILURES} == {(error,) for error in named}
    assert {labels for figure, labels in first if figure is figures.BATCHES} == {(one,) for one in get_args(Outcome)}


def test_a_sink_tells_when_it_was_made_and_a_job_does_not() -> None:
    assert (figures.STARTED, ("flights",), 7.0) in set(first_figures("flights", False, 7.0))
    assert figures.STARTED not in {figure for figure, _, _ in first_figures("eos.write", True, 7.0)}


def test_a_counter_is_there_for_each_error_that_leaves_a_sink() -> None:
    """What only the network layer knows is translated on the way."""
    kinds = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.EosError)]
    leave = {one for one in kinds if not issubclass(one, errors.NetworkError) or issubclass(one, errors.InvalidInput)}
    assert set(figures.ERRORS) == leave - {errors.EosError}
    assert len(figures.ERRORS) == len(set(figures.ERRORS))


# ---- exporters whose library is not installed

LIBRARIES = {"prometheus": "prometheus_client", "opentelemetry": "opentelemetry"}


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("extra", LIBRARIES)
def test_a_missing_library_is_told_with_the_command_that_installs_it(extra: str) -> None:
    said = run(
        f"import sys; sys.modules[{LIBRARIES[extra]!r}] = None\n"
        "from eos.errors import InvalidInput\n"
        f"try: import eos.metrics.{extra}\n"
        "except InvalidInput as error: print(isinstance(error, ImportError), error)"
    )
    assert said.startswith(f"True eos.metrics.{extra} needs what can't be imported here: ")
    assert f'pip install "spark-pulsar-eos[{extra}]"' in said


def test_no_exporter_is_loaded_unless_it_is_asked_for() -> None:
    loaded = run("import eos, eos.sinks.factory, eos.sinks.job, sys; print(*sys.modules)").split()
    assert "eos.metrics.observers" in loaded
    assert not {*LIBRARIES.values(), "eos.metrics.prometheus", "eos.metrics.opentelemetry"} & set(loaded)
