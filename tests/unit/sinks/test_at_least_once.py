"""A run that writes without transactions: what it notes first, when it writes again, and what it says."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from eos.commit.decision import Identity
from eos.commit.registration import REGISTRATION, UNLOGGED, Registration, Unlogged
from eos.delivery.row_writer import WriteReport
from eos.errors import (
    ConnectionLost,
    EosError,
    InvalidInput,
    NotCommitted,
    OutOfTurn,
    RefusedForGood,
    TopicMissing,
    Unacknowledged,
)
from eos.sinks import at_least_once, shared_run
from eos.sinks.at_least_once import RepeatingRun
from eos.sinks.metrics import Metrics
from eos.sinks.options import SinkOptions, checked
from eos.sinks.run import RunContext, WritingRun

IDENTITY = Identity("query", "run", "offsets")
TOPIC = "persistent://public/default/t"
WROTE = WriteReport({TOPIC: 2}, {TOPIC: 20}, {TOPIC: 1})


class FakeQuery:
    """A streaming query whose checkpoint is a dictionary."""

    run_id = "run"

    def __init__(self, events: list[str], **files: str) -> None:
        self.events, self.active = events, True
        names = {REGISTRATION: "registered", UNLOGGED: "unlogged"}
        self.files = {name: files.get(which) for name, which in names.items()}

    def read(self, name: str) -> str | None:
        return self.files.get(name)

    def register(self, name: str, text: str) -> None:
        self.events.append(f"note {text}")
        self.files[name] = text

    def is_active(self, failed: BaseException | None = None) -> bool:
        return self.active


class World:
    """A run on a fake query, whose deliveries fail as they are told to, step by step."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **files: str) -> None:
        self.events: list[str] = []
        self.fails: list[tuple[str, BaseException]] = []
        self.metrics = Metrics("flights")
        self.query = FakeQuery(self.events, **files)
        self.learned: list[tuple[int, int]] = []
        self.known: dict[str, Any] = {}
        monkeypatch.setattr(at_least_once, "BatchDelivery", self.delivery_of)
        monkeypatch.setattr(WritingRun, "_delivery_of", self.deliver)
        monkeypatch.setattr(WritingRun, "_sleep", lambda *_: None)
        monkeypatch.setattr("eos.spark.query.refuse_temporary_checkpoint", lambda _: None)

    def begin(self, batch_id: int = 3, guarantee: str = "at-least-once") -> RepeatingRun:
        given: Any = {"name": "flights", "topic": "t", "attempts": 3, "guarantee": guarantee}
        query: Any = self.query
        none: Any = None
        start = RunContext(checked(SinkOptions(**given)), none, self.metrics, none, query, IDENTITY, batch_id)
        return cast(RepeatingRun, shared_run.begin(start))

    def take(self, run: RepeatingRun, batch_id: int = 3) -> None:
        self.metrics.begin(batch_id)
        self.metrics.identified(IDENTITY)
        run.take(batch_id, [], IDENTITY)

    def deliver(self, start: RunContext, last_rows: int | None, time_limit_s: float) -> Any:
        self.known = {"last_rows": last_rows, "time_limit_s": time_limit_s}
        return SimpleNamespace(
            last_rows=last_rows,
            committed=lambda rows, size, topics: self.learned.append((rows, size)),
            frame_limits={},
        )

    def delivery_of(self, *_: object) -> Any:
        steps = {step: self.step(step) for step in ("prepare", "finish", "abandon")}
        return SimpleNamespace(send=lambda txn: (self.step(f"send {txn}")(), WROTE)[1], seconds=0.5, **steps)

    def step(self, name: str) -> Callable[[], None]:
        def take() -> None:
            self.events.append(name)
            if self.fails and self.fails[0][0] == name.split()[0]:
                raise self.fails.pop(0)[1]

        return take


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_a_batch_is_noted_as_begun_before_anything_of_it_is_sent_and_written_without_a_transaction(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "eos.sink")
    world.take(world.begin())
    assert world.events == ['note {"begun": 3, "rows": null}', "prepare", "send None", "finish"]
    assert world.learned == [(2, 20)]
    assert "batch 3: wrote 2 rows, 20 bytes to t in 0." in "\n".join(caplog.messages)
    batch = world.metrics.finished(None)
    assert (batch.outcome, batch.transaction, batch.attempts) == ("committed", None, 1)
    assert (batch.rows, batch.bytes, batch.frames) == ({TOPIC: 2}, {TOPIC: 20}, {TOPIC: 1})


def test_a_run_remembers_how_large_the_last_batch_of_the_run_before_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its first batch would start Python workers, however small it is."""
    world = World(monkeypatch, unlogged=Unlogged(2, 40).text)
    world.begin()
    assert world.known["last_rows"] == 40


@pytest.mark.parametrize("error", [ConnectionLost("gone"), NotCommitted("a task was lost")])
@pytest.mark.parametrize("step", ["prepare", "send", "finish"])
def test_a_try_that_fails_is_given_up_and_the_whole_batch_written_again(
    world: World, step: str, error: EosError
) -> None:
    """Wherever the connection broke: of what has no receipt nobody knows whether it is there."""
    world.fails = [(step, error)]
    world.take(world.begin())
    assert world.events[-4:] == ["abandon", "prepare", "send None", "finish"]
    assert (world.metrics.snapshot().committed, world.metrics.snapshot().attempts) == (1, 2)


def test_a_batch_whose_tries_all_fail_is_told_as_unacknowledged_and_taken_again(world: World) -> None:
    world.fails = [("finish", ConnectionLost("gone"))] * 3
    run = world.begin()
    with pytest.raises(Unacknowledged, match=r"^not all rows of batch 3 were acknowledged, and some .* visible\. gone"):
        world.take(run)
    assert world.metrics.finished(Unacknowledged()).outcome == "unknown"
    world.take(run)
    assert world.metrics.snapshot().committed == 1


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InvalidInput("row 7 is wrong."), InvalidInput),
        (TopicMissing("no such topic."), TopicMissing),
        (RefusedForGood("send", "NotAllowedError", "too large."), InvalidInput),
    ],
)
def test_what_the_caller_must_change_says_that_rows_may_be_visible(
    world: World, error: EosError, kind: type[EosError]
) -> None:
    world.fails = [("send", error)]
    with pytest.raises(kind, match=r"\. Rows of batch 3 that were sent before may be visible") as caught:
        world.take(world.begin())
    assert type(caught.value) is kind
    assert (world.events.count("send None"), world.events[-1]) == (1, "abandon")
    assert world.metrics.finished(caught.value).outcome == "unknown"


@pytest.mark.parametrize("error", [OutOfTurn("a defect"), KeyboardInterrupt()])
def test_a_defect_and_an_interrupt_are_not_tried_again(world: World, error: BaseException) -> None:
    world.fails = [("send", error)]
    with pytest.raises(type(error)):
        world.take(world.begin())
    assert (world.events.count("send None"), world.events[-1]) == (1, "abandon")


def test_a_stopped_query_tries_no_more(world: World) -> None:
    world.fails = [("send", NotCommitted("cancelled"))]
    run = world.begin()
    world.query.active = False
    with pytest.raises(Unacknowledged, match="cancelled"):
        world.take(run)
    assert world.events.count("send None") == 1


def test_a_batch_that_was_written_is_not_taken_twice_in_a_run(world: World) -> None:
    run = world.begin()
    world.take(run)
    with pytest.raises(InvalidInput, match="Put both writes into one"):
        world.take(run)


# ---- from one guarantee to the other


CONTROL = "persistent://public/default/__eos-flights"


def test_a_checkpoint_of_an_exactly_once_sink_goes_on_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    World(monkeypatch, registered=Registration("flights", CONTROL, 9).text).begin()
    assert "That batch may be visible already" in "\n".join(caplog.messages)
    assert "`eos sink abort flights` ends it now" in "\n".join(caplog.messages)


@pytest.mark.parametrize(
    ("registered", "words"),
    [
        (Registration("others", CONTROL, 9), "One query has one sink"),
        (Registration("flights", CONTROL, 9, rolls_forward_from=5), "is being rolled forward from batch 5 on"),
    ],
)
def test_a_checkpoint_that_is_another_sinks_or_is_rolled_forward_is_refused(
    monkeypatch: pytest.MonkeyPatch, registered: Registration, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        World(monkeypatch, registered=registered.text).begin()


def test_a_shadow_writes_nothing_by_any_guarantee(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, registered=Registration("flights", CONTROL, 9, shadow=True).text)
    run = world.begin()
    world.take(run)
    assert (type(run).__name__, world.events) == ("Run", [])


def test_exactly_once_begins_behind_the_last_batch_that_was_begun_without_a_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch, unlogged=Unlogged(3, 40).text)
    monkeypatch.setattr(shared_run, "OwningRun", lambda start, *said: (start.batch_id, *said))
    with pytest.raises(InvalidInput, match=r"batch 3 was begun with guarantee=\"at-least-once\""):
        world.begin(3, "exactly-once")
    assert cast(Any, world.begin(4, "exactly-once")) == (4, None, 3)


@pytest.mark.parametrize("run_id", [IDENTITY.run_id, "an earlier run"])
def test_exactly_once_beside_a_sink_of_the_same_function_without_a_log_is_told_so(
    monkeypatch: pytest.MonkeyPatch, run_id: str
) -> None:
    """As where a sink was added to the function. A restart would end in the same way, however the run ended."""
    world = World(monkeypatch, unlogged=Unlogged(3, 40).text)
    options = checked(SinkOptions(name="others", topic="t", guarantee="at-least-once"))
    beside = shared_run.shared_run("pulsar://nowhere", options, run_id, None)
    words = 'calls the sink "others" with guarantee="at-least-once", and the sink "flights" with "exactly-once"'
    with pytest.raises(InvalidInput, match=words if run_id == IDENTITY.run_id else "Spark did not note its end"):
        world.begin(3, "exactly-once")
    assert beside.has_no_log
