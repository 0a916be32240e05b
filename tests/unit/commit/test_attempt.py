from __future__ import annotations

from collections.abc import Callable
from unittest.mock import Mock

import pytest

from eos.commit.attempt import attempt
from eos.commit.control_log import Intent, Marker, decode
from eos.commit.decision import Action
from eos.commit.owner import Owner
from eos.commit.ports import DeliveryPort, Written
from eos.delivery.row_writer import WriteReport
from eos.errors import (
    CommitUnknown,
    DamagedLog,
    Fenced,
    IdentityMismatch,
    InvalidInput,
    NotCommitted,
    OutOfTurn,
    Refused,
    StaleBatch,
    TookTooLong,
)
from eos.pulsar.wire.txn import TxnId
from tests.simulation.client import Client
from tests.simulation.job import CONTROL, DATA, InTurn, Sends, WriteData
from tests.simulation.world import Alone
from tests.unit.commit.driver import LOST, commit, identity, open_transactions, owning


def records(world: Alone) -> list[object]:
    return [decode(e.data) for e in world.broker.topic(CONTROL).readable()]


class Fails(WriteData):
    """Fails with an error, in `prepare`, after half a batch in `send`, or in `finish`."""

    def __init__(self, world: Alone, error: BaseException, where: str = "send") -> None:
        super().__init__(Client(world), 0)
        self.error, self.where = error, where
        self.abandoned = 0

    def prepare(self) -> None:
        if self.where == "prepare":
            raise self.error

    def send(self, txn: TxnId) -> Written:
        assert self.where != "prepare", "not to be called"
        if self.where == "finish":
            return super().send(txn)
        self.add(txn, DATA[:1])
        self.open.append(self.producer(DATA[0]))
        self.open[0].send_record(b"half", txn)
        raise self.error

    def finish(self) -> None:
        raise self.error

    def abandon(self) -> tuple[str, ...]:
        self.abandoned += 1
        return super().abandon()


def raising(error: BaseException, world: Alone) -> DeliveryPort:
    """Write half a batch, and fail."""
    return Fails(world, error)


def slowly(world: Alone, action: Callable[[TxnId], object]) -> DeliveryPort:
    """Write nothing, and do something meanwhile."""

    def send(txn: TxnId) -> Written:
        action(txn)
        return WriteReport()

    return Sends(send)


def test_one_batch_in_the_order_of_the_protocol(world: Alone, owner: Owner) -> None:
    world.log.clear()
    commit(world, owner, 0)
    assert world.log == [
        "NEW_TXN",
        "SEND",  # INTENT
        "ADD_PARTITION",  # the control topic
        "ADD_PARTITION",
        "PRODUCER shared",
        "SEND in transaction",
        "SEND in transaction",
        "CLOSE_PRODUCER",
        "SEND in transaction",  # MARKER
        "END_TXN commit",
    ]


def test_the_delivery_is_prepared_beside_the_opening_and_finished_beside_the_marker(world: Alone) -> None:
    """Each is done before what follows: nothing is sent before `prepare`, nothing committed before `finish`."""
    told: list[str] = []

    class Tells(WriteData):
        def prepare(self) -> None:
            told.append("prepare")

        def send(self, txn: TxnId) -> Written:
            told.append("send")
            return super().send(txn)

        def finish(self) -> None:
            super().finish()
            told.append("finish")

    for second_first in (True, False):
        owner = owning(world, observer=lambda step, phase, _: told.append(f"{phase} {step}"))
        owner.at_once = InTurn(second_first=second_first)
        told.clear()
        batch_id = len(owner.view.markers)
        attempt(owner, batch_id, identity(batch_id), Tells(Client(world), batch_id))
        assert list(owner.view.markers)[-1] == batch_id
        assert set(told[: told.index("send")]) >= {"prepare", "after add-control"}
        assert set(told[: told.index("before end-sent")]) >= {"finish", "after marker"}


@pytest.mark.parametrize("label", [None, "NEW_TXN", "SEND", "ADD_PARTITION"])
def test_when_work_beside_the_opening_fails_the_transaction_is_aborted(
    world: Alone, owner: Owner, label: str | None
) -> None:
    if label is not None:
        world.failing = {label: [(LOST, False)]}
    with pytest.raises(InvalidInput, match="row 3"):
        attempt(owner, 0, identity(0), Fails(world, InvalidInput("row 3"), "prepare"))
    assert open_transactions(world) == 0
    commit(world, owner, 0)


@pytest.mark.parametrize("second_first", [True, False])
@pytest.mark.parametrize("error", [LOST, NotCommitted("a task ran twice"), OutOfTurn("a mistake")])
def test_what_cannot_be_finished_is_abandoned_and_aborted(
    world: Alone, owner: Owner, error: Exception, second_first: bool
) -> None:
    owner.at_once = InTurn(second_first=second_first)
    delivery = Fails(world, error, "finish")
    with pytest.raises(NotCommitted if error is LOST else type(error)):
        attempt(owner, 0, identity(0), delivery)
    assert delivery.abandoned == 1
    assert open_transactions(world) == 0
    assert "END_TXN commit" not in world.log
    commit(world, owner, 0)
    assert [e.data for e in world.broker.topic(DATA[0]).readable()] == [b"0/data-0/0", b"0/data-0/1"]


@pytest.mark.parametrize("label", [None, "SEND in transaction"])
def test_whatever_fails_before_the_commit_the_delivery_is_abandoned(
    world: Alone, owner: Owner, label: str | None
) -> None:
    delivery = WriteData(Client(world), 0)
    world.failing = {"SEND in transaction" if label else "ADD_PARTITION": [(LOST, False)]}
    with pytest.raises(NotCommitted):
        attempt(owner, 0, identity(0), delivery)
    while world.broker.late:
        world.broker.deliver(0)
    assert not any(world.broker.topic(topic).producers for topic in DATA)


def test_the_log_tells_what_was_written(world: Alone, owner: Owner) -> None:
    commit(world, owner, 1)
    _, intent, marker = records(world)
    assert isinstance(intent, Intent)
    assert (intent.batch_id, intent.attempt, intent.principal) == (1, 1, "me")
    assert marker == Marker(
        3,
        "query",
        "run-1",
        1,
        1,
        intent.txn,
        "me",
        {"data-0": 2, "data-1": 2},
        {"data-0": 20, "data-1": 20},
        "offsets 1",
    )
    assert owner.view.newest == marker
    assert owner.registration.last_number == 3


def test_a_committed_batch_is_skipped_and_never_written_again(world: Alone, owner: Owner) -> None:
    commit(world, owner, 3)
    successor = owning(world, "run-2")
    assert attempt(successor, 3, identity(3), raising(AssertionError("not to be called"), world)) is Action.SKIP
    with pytest.raises(StaleBatch):
        attempt(successor, 2, identity(2), raising(AssertionError("not to be called"), world))
    with pytest.raises(IdentityMismatch):
        attempt(successor, 3, identity(4), raising(AssertionError("not to be called"), world))
    assert successor.decide(8, identity(8)) is Action.WRITE


def test_a_batch_without_rows_commits_like_any_other(world: Alone, owner: Owner) -> None:
    attempt(owner, 0, identity(0), slowly(world, lambda txn: None))
    assert list(owning(world, "run-2").view.markers) == [0]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RuntimeError("boom"), NotCommitted),
        (Refused("SEND", "PersistenceError", ""), NotCommitted),
        (LOST, NotCommitted),
        (NotCommitted("a stage was run twice"), NotCommitted),
        (InvalidInput("row 3"), InvalidInput),
        (OutOfTurn("a mistake"), OutOfTurn),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (SystemExit(143), SystemExit),
    ],
)
def test_when_writing_fails_the_transaction_is_aborted(
    world: Alone, owner: Owner, error: BaseException, expected: type[BaseException]
) -> None:
    with pytest.raises(expected) as raised:
        attempt(owner, 0, identity(0), raising(error, world))
    assert type(raised.value) is expected
    assert raised.value is error or raised.value.__cause__ is error
    assert open_transactions(world) == 0
    commit(world, owner, 0)
    assert [e.data for e in world.broker.topic(DATA[0]).readable()] == [b"0/data-0/0", b"0/data-0/1"]


@pytest.mark.parametrize(
    ("also", "expected"),
    [
        (RuntimeError("can't start new thread"), NotCommitted),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (SystemExit(143), SystemExit),
    ],
)
def test_a_delivery_that_cannot_be_given_up_is_aborted_all_the_same(
    world: Alone,
    owner: Owner,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    also: BaseException,
    expected: type[BaseException],
) -> None:
    """Readers would wait for as long as the transaction lives. The user may interrupt the giving up, too."""

    def abandon(delivery: Fails) -> tuple[str, ...]:
        raise also

    monkeypatch.setattr(Fails, "abandon", abandon)
    with pytest.raises(expected, match=None if expected is not NotCommitted else "batch 0 was aborted: boom"):
        attempt(owner, 0, identity(0), raising(RuntimeError("boom"), world))
    assert open_transactions(world) == 0
    assert ("could not be given up before: can't start new thread" in caplog.text) == (expected is NotCommitted)


def test_the_abort_is_repeated_until_the_transaction_has_ended(world: Alone, owner: Owner) -> None:
    world.failing = {
        "END_TXN abort": [(LOST, False), (LOST, True), (Refused("END_TXN", "InvalidTxnStatus", ""), False)]
    }
    with pytest.raises(NotCommitted):
        attempt(owner, 0, identity(0), raising(RuntimeError("boom"), world))
    assert open_transactions(world) == 0
    assert not owner.unsettled


def test_attempts_are_counted(world: Alone, owner: Owner) -> None:
    for _ in range(2):
        with pytest.raises(NotCommitted):
            attempt(owner, 4, identity(4), raising(RuntimeError("boom"), world))
    commit(world, owner, 4)
    assert [r.attempt for r in records(world) if isinstance(r, Intent)] == [1, 2, 3]
    commit(world, owner, 5)
    assert owner.view.newest is not None
    assert (owner.view.newest.batch_id, owner.view.newest.attempt) == (5, 1)


def test_each_attempt_has_a_transaction_of_its_own(world: Alone, owner: Owner) -> None:
    with pytest.raises(NotCommitted):
        attempt(owner, 4, identity(4), raising(RuntimeError("boom"), world))
    commit(world, owner, 4)
    first, second = [r.txn for r in records(world) if isinstance(r, Intent)]
    assert first != second


@pytest.mark.parametrize("label", ["NEW_TXN", "SEND", "ADD_PARTITION", "SEND in transaction", "CLOSE_PRODUCER"])
@pytest.mark.parametrize("carried_out", [True, False])
def test_a_failure_before_the_commit_is_not_committed(
    world: Alone, owner: Owner, label: str, carried_out: bool
) -> None:
    world.failing = {label: [(LOST, carried_out)]}
    with pytest.raises(NotCommitted):
        commit(world, owner, 0)
    commit(world, owner, 0)
    assert [e.data for e in world.broker.topic(DATA[0]).readable()] == [b"0/data-0/0", b"0/data-0/1"]


@pytest.mark.parametrize("carried_out", [True, False])
def test_a_lost_answer_to_the_commit_is_settled_by_the_log(world: Alone, owner: Owner, carried_out: bool) -> None:
    world.failing = {"END_TXN commit": [(LOST, carried_out)]}
    commit(world, owner, 0)
    assert list(owner.view.markers) == [0]
    assert world.log.count("END_TXN commit") >= 2
    assert world.log.count("NEW_TXN") == 2  # the priming, and the batch: it was not written again


def test_a_commit_that_came_too_late_is_not_committed(world: Alone, owner: Owner) -> None:
    ends = slowly(world, lambda txn: world.broker.start_end(txn, False))  # as its ttl would
    with pytest.raises(NotCommitted):
        attempt(owner, 0, identity(0), ends)
    assert not owner.view.markers


def test_a_commit_refused_is_settled_by_the_log(world: Alone, owner: Owner) -> None:
    def end_before_the_commit(step: str, phase: str, batch_id: int | None) -> None:
        if (step, phase) == ("marker", "after") and owner.in_hand is not None:
            world.broker.start_end(owner.in_hand.txn, False)

    owner.observer = end_before_the_commit
    with pytest.raises(NotCommitted, match="came to nothing"):
        commit(world, owner, 0)
    assert open_transactions(world) == 0
    assert not owner.unsettled


def test_a_batch_that_outlived_its_transaction_names_the_option(world: Alone, owner: Owner) -> None:
    with pytest.raises(TookTooLong, match=r"took 61 s, and its transaction lives 60 s. Raise .*transaction_timeout_s"):
        attempt(owner, 0, identity(0), slowly(world, lambda txn: world.sleep(61)))


def test_a_failure_for_want_of_time_names_the_option_too(world: Alone, owner: Owner) -> None:
    def slow(txn: TxnId) -> None:
        world.sleep(61)
        owner.coordinator().add_partitions(txn, DATA)
        raise AssertionError("the transaction is over")

    with pytest.raises(TookTooLong, match="transaction_timeout_s"):
        attempt(owner, 0, identity(0), slowly(world, slow))


def test_a_zombie_learns_that_it_is_one(world: Alone, owner: Owner) -> None:
    commit(world, owner, 0)
    successor = owning(world, "run-2")
    commit(world, successor, 1)
    with pytest.raises(Fenced):
        commit(world, owner, 1)
    assert list(owning(world, "run-3").view.markers) == [0, 1]


def test_a_zombie_in_the_middle_of_its_commit_leaves_the_word_to_its_successor(world: Alone, owner: Owner) -> None:
    def be_overtaken(step: str, phase: str, batch_id: int | None) -> None:
        if (step, phase) == ("marker", "after"):
            owner.observer = lambda *_: None
            successor = owning(world, "run-2")
            assert not successor.view.markers
            commit(world, successor, 0)

    owner.observer = be_overtaken
    with pytest.raises(Fenced):
        commit(world, owner, 0)
    assert list(owning(world, "run-3").view.markers) == [0]
    assert [e.data for e in world.broker.topic(DATA[0]).readable()] == [b"0/data-0/0", b"0/data-0/1"]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt(), SystemExit(143)])
def test_an_interrupt_after_the_commit_was_sent_does_not_abort_it(
    world: Alone, owner: Owner, interrupt: BaseException
) -> None:
    world.failing = {"END_TXN commit": [(interrupt, True)]}
    with pytest.raises(type(interrupt)):
        commit(world, owner, 0)
    assert owner.unsettled
    commit(world, owner, 0)
    assert world.log.count("NEW_TXN") == 2  # the priming, and the batch: it was not written again


def test_a_log_that_cannot_tell_of_a_commit_any_more_leaves_it_unknown(
    world: Alone, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> None:
        raise DamagedLog("a record that eos did not write")

    world.failing = {"END_TXN commit": [(LOST, True)], "SEND": [(LOST, False)]}
    with monkeypatch.context() as patched:
        patched.setattr(owner.log, "read_on", fail)
        with pytest.raises(DamagedLog):  # no commit was asked for: nothing is in doubt
            commit(world, owner, 0)
        for _ in range(2):
            with pytest.raises(CommitUnknown, match=r"did not write\. Whether the batch is committed is not known$"):
                commit(world, owner, 0)
    assert owner.decide(0, identity(0)) is Action.SKIP


@pytest.mark.parametrize("error", [InvalidInput("no file ca.pem"), LOST, KeyError("partitions")])
def test_who_holds_the_log_is_asked_for_the_message_alone(world: Alone, owner: Owner, error: Exception) -> None:
    owner._holders = Mock(side_effect=error)
    world.failing = {"END_TXN commit": [(LOST, False)] * 1000}
    with pytest.raises(CommitUnknown, match=r"The last problem was: planned\. Whether the batch is committed is not"):
        commit(world, owner, 0)
    owner._holders.assert_called()
