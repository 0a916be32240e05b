"""Which batches a run of a query takes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from eos.commit.control_log import Marker
from eos.commit.decision import Identity
from eos.commit.owner import Owner
from eos.commit.registration import REGISTRATION, Registration
from eos.config import Cluster
from eos.delivery.delivery import Write
from eos.errors import (
    CommitUnknown,
    ConnectionLost,
    EosError,
    Fenced,
    InvalidInput,
    NotCommitted,
    Refused,
    ReplayFailed,
)
from eos.pulsar.wire.txn import TxnId
from eos.sinks import run as run_module
from eos.sinks.metrics import Metrics
from eos.sinks.run import OwningRun, Run
from eos.spark import capabilities

IDENTITY = Identity("query", "run", "offsets")


class Scripted(Run):
    """A run whose batches end as they are told to."""

    def __init__(self, *ends: BaseException | None) -> None:
        super().__init__("run", None, Metrics())
        self.ends = list(ends)
        self.written: list[int] = []

    def _write(self, batch_id: int, writes: Sequence[Any], identity: Identity) -> None:
        end = self.ends.pop(0) if self.ends else None
        if end is not None:
            raise end
        self.written.append(batch_id)


@pytest.mark.parametrize("kind", [Run, Scripted], ids=["shadow", "owning"])
def test_a_batch_is_taken_once_in_a_run(kind: type[Run]) -> None:
    """Else the second write would be skipped as a replay, and its rows be lost without a word."""
    run = Run("run", None, Metrics()) if kind is Run else Scripted()
    run.take(3, [], IDENTITY)
    with pytest.raises(InvalidInput, match=r"written or skipped batch 3 already.*Put both writes into one `with"):
        run.take(3, [], IDENTITY)
    run.take(4, [], IDENTITY)


@pytest.mark.parametrize("error", [InvalidInput("row 3"), NotCommitted("aborted"), Fenced("refused by the owner")])
def test_a_batch_that_is_known_not_to_be_visible_is_taken_again(error: EosError) -> None:
    run = Scripted(error)
    with pytest.raises(type(error)):
        run.take(3, [], IDENTITY)
    run.take(3, [], IDENTITY)
    assert run.written == [3]


@pytest.mark.parametrize("error", [CommitUnknown("no answer"), ConnectionLost("a defect"), KeyboardInterrupt()])
@pytest.mark.parametrize(
    ("query", "advice"), [(SimpleNamespace(), "Start the query again"), (None, "Give the eos.Identity another run_id")]
)
def test_a_batch_that_may_be_visible_is_not_taken_again(error: BaseException, query: Any, advice: str) -> None:
    """The log may show it as committed, and it would be skipped: with the rows of the first call, not of this."""
    run = Scripted(error)
    run.query = query
    with pytest.raises(type(error)):
        run.take(3, [], IDENTITY)
    for _ in range(2):
        with pytest.raises(InvalidInput, match=rf"The outcome of batch 3 is unknown.*{advice}"):
            run.take(3, [], IDENTITY)
    assert run.written == []


class Unrunnable:
    """A DataFrame whose job fails."""

    @property
    def _jdf(self) -> Any:
        raise OSError("no space left")


def test_a_replay_that_spark_cannot_run_says_that_nothing_was_to_be_written() -> None:
    run = Run("run", None, Metrics())
    writes = [Write(cast(Any, Unrunnable()), None)]
    with pytest.raises(ReplayFailed, match=r"^Nothing of batch 3 was .*a shadow of a live one.*: no space left\."):
        run.take(3, writes, IDENTITY)
    with pytest.raises(InvalidInput, match=r"^Nothing of batch 3 was to be written"):
        run.take(3, [], IDENTITY)


class Trying(OwningRun):
    """An owning run whose tries fail, and whose query is stopped at one of them."""

    tries = 0

    def __init__(self, error: EosError, stopped_at: int) -> None:
        query: Any = SimpleNamespace(is_active=lambda failed=None: self.tries < stopped_at)
        Run.__init__(self, "run", query, Metrics())
        self._options: Any = SimpleNamespace(attempts=5)
        self._delivery: Any = SimpleNamespace(frame_limits={})
        self.error = error

    def _try(self, batch_id: int, identity: Identity, delivery: Any) -> None:
        self.tries += 1
        raise self.error

    def _sleep(self, seconds: float) -> None:
        pass


@pytest.mark.parametrize("error", [NotCommitted("aborted"), CommitUnknown("no answer")])
@pytest.mark.parametrize(("stopped_at", "tries"), [(1, 1), (2, 2), (9, 5)])
def test_a_stopped_query_tries_no_more_and_keeps_what_is_known(error: EosError, stopped_at: int, tries: int) -> None:
    run = Trying(error, stopped_at)
    with pytest.raises(type(error)) as caught:
        run.take(3, [], IDENTITY)
    assert caught.value is error
    assert run.tries == tries


class Cutting(Trying):
    """An owning run each of whose tries is refused, and teaches the next of these limits."""

    def __init__(self, attempts: int, *learned: dict[str, int]) -> None:
        super().__init__(NotCommitted("Exceed maximum message size"), stopped_at=99)
        self._options = SimpleNamespace(attempts=attempts)
        self._learned = iter(learned)

    def _try(self, batch_id: int, identity: Identity, delivery: Any) -> None:
        self._delivery.frame_limits = next(self._learned, self._delivery.frame_limits)
        super()._try(batch_id, identity, delivery)


@pytest.mark.parametrize("attempts", [1, 5])
@pytest.mark.parametrize("learned", [[], [{"a": 128}, {"a": 16}, {"a": 16, "b": 128}]])
def test_a_try_that_teaches_smaller_frames_does_not_count(attempts: int, learned: list[dict[str, int]]) -> None:
    """A new process has learned nothing, so a query whose topics need more tries than `attempts` would never pass."""
    run = Cutting(attempts, *learned)
    with pytest.raises(NotCommitted, match="Exceed maximum message size"):
        run.take(3, [], IDENTITY)
    assert run.tries == len(learned) + attempts


TOPIC = "persistent://public/default/t"


def marker(txn: TxnId) -> Marker:
    return Marker(3, "query", "run", 3, 1, txn, None, {TOPIC: 2}, {TOPIC: 20}, "offsets")


class Settling(OwningRun):
    """An owning run that finds out, after its first try has ended without an answer, whose batch is committed."""

    def __init__(self, sent_in: TxnId, committed_in: TxnId) -> None:
        Run.__init__(self, "run", None, Metrics())
        self._options: Any = SimpleNamespace(attempts=5)
        self._delivery: Any = SimpleNamespace(committed=lambda *_: None, frame_limits={})
        self._observer = lambda *_: None
        self._sent_in, self._found = sent_in, marker(committed_in)
        self.ran: list[Any] = []

    @property
    def newest(self) -> Marker | None:
        return self._found

    def _try(self, batch_id: int, identity: Identity, delivery: Any) -> None:
        if delivery.sent_in is None:
            delivery.sent_in, delivery.frames = self._sent_in, {TOPIC: 1}
            raise CommitUnknown("no answer")

    def _skip(self, batch_id: int, writes: Sequence[Any], why: str) -> int:
        super()._skip(batch_id, [], why)
        self.ran += writes
        return len(self.ran)

    def _sleep(self, seconds: float) -> None:
        pass


def test_a_commit_whose_answer_was_lost_counts_as_this_calls_own() -> None:
    run = Settling(TxnId(0, 7), committed_in=TxnId(0, 7))
    run.take(3, [], IDENTITY)
    seen, batch = run._metrics.snapshot(), run._metrics.finished(None)
    assert (seen.committed, seen.skipped, seen.rows) == (1, 0, 2)
    assert (batch.outcome, batch.rows, batch.frames) == ("committed", {TOPIC: 2}, {TOPIC: 1})


def test_a_batch_of_another_transaction_is_a_replay_whose_rows_spark_must_run() -> None:
    run, write = Settling(TxnId(0, 8), committed_in=TxnId(0, 7)), Write(cast(Any, None), None)
    run.take(3, [write], IDENTITY)
    assert (run._metrics.snapshot().committed, run._metrics.snapshot().skipped, run.ran) == (0, 1, [write])


@pytest.mark.parametrize(("rows", "missing"), [(1, None), (2, None), (3, "1 rows are missing")])
def test_a_replay_of_more_rows_than_are_committed_is_told(
    caplog: pytest.LogCaptureFixture, rows: int, missing: str | None
) -> None:
    """The run before was killed between two calls for the batch, and the function has one block now."""
    run, write = Settling(TxnId(0, 8), committed_in=TxnId(0, 7)), Write(cast(Any, None), None)
    with caplog.at_level(logging.WARNING, "eos.sink"):
        run.take(3, [write] * rows, IDENTITY)
    said = [record.getMessage() for record in caplog.records if "is committed with 2 rows" in record.getMessage()]
    assert [missing in one for one in said if missing is not None] == ([True] if missing else [])
    assert bool(said) is (missing is not None)


def test_a_marker_of_this_run_that_this_object_has_not_sent_is_no_replay() -> None:
    """Something else has written the batch in this run: skipped as a replay, these rows would be lost."""
    run, write = Settling(TxnId(0, 8), committed_in=TxnId(0, 7)), Write(cast(Any, None), None)
    query: Any = SimpleNamespace(is_active=lambda failed=None: True)
    run.query = query
    with pytest.raises(InvalidInput, match=r"written or skipped batch 3 already\..*Put both writes into one `with"):
        run.take(3, [write], IDENTITY)
    assert run.ran == [], "these rows are not skipped as a replay"
    assert run._metrics.snapshot().skipped == 0


class Looking(OwningRun):
    """An owning run that commits each batch, and notes before which it has looked which markers savepoints need."""

    def __init__(self, markers_kept: int) -> None:
        speculates = SimpleNamespace(getConf=lambda: SimpleNamespace(get=lambda *_: "false"))
        options = SimpleNamespace(markers_kept=markers_kept, attempts=1, observer=None, transaction_timeout_s=1)
        start: Any = SimpleNamespace(
            options=options,
            client=None,
            metrics=Metrics(),
            query=None,
            identity=IDENTITY,
            batch_id=0,
            taken={},
            session=SimpleNamespace(sparkContext=speculates),
        )
        self.batch, self.looked = 0, list[int]()
        super().__init__(start, None)

    @property
    def newest(self) -> Marker | None:
        return None

    def _owner_of(self, client: Any) -> Any:
        return SimpleNamespace(log=SimpleNamespace(retain_markers_since=lambda _: self.looked.append(self.batch)))

    def _take_over(self, *_: Any) -> None:
        pass

    def _delivery_of(self, *_: Any) -> Any:
        return SimpleNamespace(frame_limits={})

    def _try(self, batch_id: int, *_: Any) -> None:
        pass

    def _skip(self, batch_id: int, *_: Any) -> int:
        return 0

    def _returns(self, batch_id: int) -> None:
        pass


@pytest.mark.parametrize(
    ("kept", "batches", "looked"),
    [
        (1_000, range(0, 302), [100, 200, 300]),
        (1_000, range(1, 402, 2), [201, 401]),  # a function that calls the sink for each second batch
        (50, range(7, 20), [12, 17]),
        (1, range(3), [1, 2]),
    ],
)
def test_which_markers_savepoints_need_is_looked_up_long_before_the_kept_ones_are_all_new(
    kept: int, batches: Sequence[int], looked: list[int]
) -> None:
    run = Looking(kept)
    for run.batch in batches:
        run.take(run.batch, [], IDENTITY)
    assert run.looked == looked


class TakingOver(OwningRun):
    """An owning run of a query or of none, up to the takeover."""

    def __init__(self, query: Any) -> None:
        self._options = cast(Any, SimpleNamespace(admin_url="http://nowhere", control_topic="control"))
        self._owner = cast(Any, SimpleNamespace(make_log=lambda _: None, insist=lambda do, what: do()))
        self._registered, self.query = None, query


@pytest.mark.parametrize("query", [None, object()])
def test_a_job_has_no_checkpoint_and_so_asks_whether_its_log_stays_while_nobody_uses_it(
    monkeypatch: pytest.MonkeyPatch, query: object | None
) -> None:
    def lost(*_: object) -> None:
        raise InvalidInput("lost")

    def enough(*_: object) -> None:
        raise InvalidInput("enough")

    monkeypatch.setattr(run_module, "check_retention", lambda *_: None)
    monkeypatch.setattr(run_module, "check_expiry", lost)
    monkeypatch.setattr(run_module, "Admin", enough)
    client = cast(Any, SimpleNamespace(cluster=Cluster("pulsar://nowhere")))
    with pytest.raises(InvalidInput, match="lost" if query is None else "enough"):
        TakingOver(query)._take_over(client, IDENTITY, 0, None)


@pytest.mark.parametrize(
    ("away_s", "error", "said"),
    [
        (60.0, InvalidInput, "its policies were told"),
        (1_000.0, CommitUnknown, r"waited for the admin API on control, and gave up\. .*503.*starting again is safe"),
    ],
)
def test_a_start_waits_for_an_admin_api_that_is_away_for_a_while(
    monkeypatch: pytest.MonkeyPatch, away_s: float, error: type[Exception], said: str
) -> None:
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    def answers(*_: object) -> None:
        if now < away_s:
            raise Refused("GET", "503", "Service Unavailable")
        raise InvalidInput("its policies were told")

    monkeypatch.setattr(run_module, "check_retention", answers)
    run: Any = TakingOver(object())
    run._owner = Owner(cast(Any, None), "rows", "control", sleep=sleep, clock=lambda: now)
    monkeypatch.setattr(run._owner, "make_log", lambda _: None)
    with pytest.raises(error, match=said):
        run._take_over(SimpleNamespace(cluster=Cluster("pulsar://nowhere")), IDENTITY, 0, None)
    assert now <= 121


@pytest.mark.parametrize(
    ("topic", "types", "error"),
    [
        ("persistent://air/data/rows", ("Shared",), r"can't write to air/data\. .*--types Exclusive,Shared air/data"),
        ("persistent://air/data/rows", ("Exclusive",), "looked at"),
        (
            "persistent://air/data/rows",
            (),
            r"can't write to air/data\. The brokers allow only .* --value Exclusive,Shared",
        ),
        ("persistent://air/data/rows", None, "looked at"),  # who may not ask is not refused
        (None, ("Shared",), "looked at"),  # each row names its topic
    ],
)
def test_a_sink_does_not_begin_in_a_namespace_whose_topics_brokers_can_not_recover(
    topic: str | None, types: tuple[str, ...] | None, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def subscription_types(namespace: str) -> tuple[str, ...]:
        if types is None:
            raise Refused("GET", "403", "only for administrators")
        return types

    def looked_at(_: object) -> None:
        raise InvalidInput("looked at")

    monkeypatch.setattr(run_module, "check_retention", lambda *_: None)
    admin = SimpleNamespace(subscription_types=subscription_types, broker_subscription_types=lambda: ("Shared",))
    monkeypatch.setattr(run_module, "Admin", lambda *_: nullcontext(admin))
    monkeypatch.setattr(run_module, "danger", looked_at)
    run: Any = TakingOver(object())
    run._options.topic = topic
    with pytest.raises(InvalidInput, match=error):
        run._take_over(SimpleNamespace(cluster=Cluster("pulsar://nowhere")), IDENTITY, 0, None)


@pytest.mark.parametrize(("spark", "noted"), [("3.5.9", None), ("4.0.5", False)])
def test_a_query_is_noted_to_keep_no_state_where_spark_would_have_described_it(
    spark: str, noted: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark 3.5 makes the folder of the state with the tasks of the first batch, which have not begun."""
    monkeypatch.setattr(capabilities, "installed", lambda: spark)
    files: dict[str, str] = {}
    run: Any = object.__new__(OwningRun)
    run._registered, run._options = None, SimpleNamespace(admin_url=None)
    run.query = SimpleNamespace(has_state=lambda: False, operators=lambda: 0, register=files.__setitem__)
    owner = SimpleNamespace(make_log=lambda *given: None, take_over=lambda *given: None)
    owner.registration = Registration("name", "topic", 1)
    run._owner = owner
    run._take_over(None, IDENTITY, 0, None)
    assert Registration.parse(files[REGISTRATION]).stateful is noted
