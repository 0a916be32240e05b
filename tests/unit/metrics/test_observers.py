"""What an observer of batches can't do to the sink."""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import Any

import pytest

from eos.metrics.batch import FinishedBatch, LiveSink
from eos.metrics.observers import ObserverNotifier
from eos.sinks.metrics import Metrics
from tests.waiting import PATIENCE_S, until

HANGS_S = 0.01


def batch(batch_id: int) -> FinishedBatch:
    metrics = Metrics("flights")
    metrics.begin(batch_id)
    return metrics.finished(None)


def of_the_sink(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """What the sink logged: threads that other tests have left may log too."""
    return [record for record in caplog.records if record.name == "eos.sink"]


def test_each_observer_is_told_of_each_batch_before_the_batch_returns() -> None:
    first: list[FinishedBatch] = []
    second: list[FinishedBatch] = []

    def slow(one: FinishedBatch) -> None:
        time.sleep(0.02)
        first.append(one)

    told = ObserverNotifier([slow, second.append], PATIENCE_S)
    for batch_id in range(3):
        told.finished(batch(batch_id))
        assert [one.batch_id for one in first] == [one.batch_id for one in second] == list(range(batch_id + 1))


@pytest.mark.parametrize("observers", [None, (), []])
def test_without_an_observer_nothing_is_told(observers: Any) -> None:
    ObserverNotifier(observers).finished(batch(0))


@pytest.mark.parametrize("error", [ValueError("no registry"), SystemExit(3)])
def test_what_an_observer_raises_goes_no_further_and_is_logged(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[int] = []

    def raising(one: FinishedBatch) -> None:
        raise error

    told = ObserverNotifier([raising, lambda one: seen.append(one.batch_id)])
    for batch_id in range(2):
        told.finished(batch(batch_id))
    assert seen == [0, 1], "the others are told all the same"
    assert f"raised {type(error).__name__}. The batch is not affected" in "\n".join(caplog.messages)


def push(batch: FinishedBatch, password: str) -> None:
    raise ValueError("no gateway")


class Gateway:
    """An observer that shows its secret where it is printed."""

    def __repr__(self) -> str:
        return "Gateway(s3cret)"

    def __call__(self, batch: FinishedBatch) -> None:
        push(batch, "s3cret")

    def tell(self, batch: FinishedBatch) -> None:
        self(batch)


@pytest.mark.parametrize(
    ("observer", "name"), [(partial(push, password="s3cret"), "push"), (Gateway(), "Gateway"), (Gateway().tell, "tell")]
)
def test_an_observer_is_named_without_what_is_bound_to_it(
    observer: Any, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="eos.sink")
    told = ObserverNotifier(observer)
    for batch_id in range(2):
        told.finished(batch(batch_id))
    messages = [record.getMessage() for record in of_the_sink(caplog)]
    assert [message.split(" raised")[0].rpartition(".")[2] for message in messages] == [name, name]
    assert "s3cret" not in "".join(messages)


def test_an_error_is_logged_once_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    def raising(one: FinishedBatch) -> None:
        raise ValueError("no registry")

    caplog.set_level(logging.INFO, logger="eos.sink")
    told = ObserverNotifier(raising)
    for batch_id in range(3):
        told.finished(batch(batch_id))
    (record,) = of_the_sink(caplog)
    assert "raised ValueError. The batch is not affected" in record.getMessage()
    assert record.exc_info is not None
    assert "no registry" in str(record.exc_info[1])


def test_an_observer_that_hangs_is_waited_for_once(caplog: pytest.LogCaptureFixture) -> None:
    let_go, returned = threading.Event(), threading.Event()
    seen: list[int] = []

    def hanging(one: FinishedBatch) -> None:
        seen.append(one.batch_id)
        let_go.wait(PATIENCE_S)
        if one.batch_id == 0:
            returned.set()

    told = ObserverNotifier(hanging, patience_s=HANGS_S)
    for batch_id in range(3):
        told.finished(batch(batch_id))
    until(lambda: seen, "its thread has not begun")
    assert seen == [0], "no thread is left behind for each batch"
    assert [record.levelname for record in of_the_sink(caplog)] == ["WARNING"]
    assert "has not returned for 0.01 s. The batch is not affected" in "\n".join(caplog.messages)
    (thread,) = (one for one in threading.enumerate() if one.name == "eos-observer")
    let_go.set()
    assert returned.wait(PATIENCE_S)
    thread.join(PATIENCE_S)
    told.finished(batch(3))
    until(lambda: seen == [0, 3], "it is told again when it has returned")


def test_a_thread_that_cannot_be_had_fails_no_batch(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    seen: list[int] = []
    told = ObserverNotifier(lambda one: seen.append(one.batch_id))
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        told.finished(batch(0))
    assert "was not called (can't start new thread)" in "\n".join(caplog.messages)
    told.finished(batch(1))
    assert seen == [1]


class Watcher:
    """An observer that wants to ask sinks."""

    def __init__(self) -> None:
        self.sinks: list[LiveSink] = []

    def __call__(self, batch: FinishedBatch) -> None: ...

    def watch(self, sink: LiveSink) -> None:
        self.sinks.append(sink)


def test_only_a_watcher_is_shown_the_sink() -> None:
    watcher, sink = Watcher(), Metrics("flights")
    ObserverNotifier([lambda one: None, watcher]).watch(sink)
    assert watcher.sinks == [sink]
