"""The control log in its owner's hands: what it retains, and what is left of it after a failure."""

from __future__ import annotations

import threading
from dataclasses import replace
from unittest.mock import Mock

import pytest

from eos.commit.control_log import Intent
from eos.commit.owner import Owner
from eos.errors import ConnectionLost, EosError, InvalidInput, TopicMissing
from eos.pulsar.wire.txn import TxnId
from tests.simulation.job import CONTROL
from tests.simulation.world import Alone
from tests.unit.commit.driver import LOST, SETTINGS, commit, owning


@pytest.fixture
def owner(world: Alone) -> Owner:
    """A driver that has taken the sink over, and retains two markers."""
    return owning(world, settings=replace(SETTINGS, markers_retained=2))


def test_markers_are_retained_from_a_batch_on_as_soon_as_a_savepoint_needs_them(world: Alone, owner: Owner) -> None:
    commit(world, owner, 0, 1)
    owner.log.retain_markers_since(1)
    commit(world, owner, 2, 3, 4)
    assert list(owner.view.markers) == [1, 2, 3, 4]
    assert list(owner.log.read().markers) == [1, 2, 3, 4], "a log that is read again forgets them"
    owner.log.retain_markers_since(None)
    commit(world, owner, 5)
    assert list(owner.view.markers) == [4, 5]
    assert list(owner.log.read().markers) == [4, 5]


@pytest.mark.parametrize(
    "error", [LOST, TopicMissing("the control topic is gone"), InvalidInput("a certificate is being replaced")]
)
def test_what_is_not_retained_is_let_go_once_and_after_a_failure_again(
    world: Alone, owner: Owner, error: EosError
) -> None:
    """No failure of it makes a batch that is committed look as if it were not."""
    commit(world, owner, 0, 1)
    world.failing["ACK"] = [(error, False)]
    commit(world, owner, 2)
    assert world.broker.topic(CONTROL).acknowledged < owner.view.expired  # type: ignore[operator]
    owner.log.retain()
    assert world.broker.topic(CONTROL).acknowledged == owner.view.expired
    world.log.clear()
    owner.log.retain()
    assert world.log == []


@pytest.mark.parametrize("request_", ["join", "acknowledge", "positions"])
def test_a_subscription_that_failed_is_left_before_it_is_joined_anew(
    world: Alone, owner: Owner, monkeypatch: pytest.MonkeyPatch, request_: str
) -> None:
    """Else each failure would leave one more consumer at the broker, which counts for the limits of the topic."""
    commit(world, owner, 0, 1, 2)
    left: list[str] = []
    failing = owner.log.hold()

    def fails(*_: object) -> None:
        raise LOST

    monkeypatch.setattr(failing, request_, fails)
    monkeypatch.setattr(failing, "abandon", lambda: left.append("left"))
    commit(world, owner, 3)  # trims
    owner.log.warn_of_expiry(owner.view)
    owner.log.reopen()
    assert left == ["left"]
    assert owner.log.hold() is not failing


def test_a_log_that_broke_takes_nothing_until_it_is_reopened(world: Alone, owner: Owner) -> None:
    world.failing["SEND"] = [(LOST, False)]
    with pytest.raises(ConnectionLost, match="planned"):
        owner.log.send(b"{}", None)
    assert owner.log.lost
    world.log.clear()
    with pytest.raises(ConnectionLost, match=f"the producer of {CONTROL} is not open"):
        owner.log.send(b"{}", None)
    assert world.log == []
    epoch = owner.log.epoch
    owner.log.reopen()
    assert (owner.log.lost, owner.log.epoch) == (False, epoch)


def test_an_owner_that_comes_back_joins_the_subscription_again_where_that_can_be(
    world: Alone, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By it `eos sink abort` sees an owner whose producer a fenced driver's last try has closed."""
    joined: list[str] = []
    monkeypatch.setattr(owner.log.hold(), "join", lambda: joined.append("again"))
    owner.log.reopen()
    assert joined == ["again"]

    for error in (ConnectionLost("planned"), InvalidInput("planned")):
        monkeypatch.setattr(owner.log.hold(), "join", Mock(side_effect=error))
        owner.log.reopen()
        assert not owner.log.lost, "it can write all the same"


def test_a_question_about_the_subscription_that_fails_refuses_no_takeover(world: Alone, owner: Owner) -> None:
    commit(world, owner, 0)
    for error in (LOST, InvalidInput("a certificate is being replaced")):
        owner.log.hold().positions = Mock(side_effect=error)  # type: ignore[method-assign]
        owner.log.warn_of_expiry(owner.view)


@pytest.mark.parametrize("error", [LOST, InvalidInput("planned")])
def test_what_fails_to_close_keeps_nothing_else_open(
    world: Alone,
    owner: Owner,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: EosError,
) -> None:
    closed: list[str] = []
    monkeypatch.setattr(owner.log.hold(), "close", lambda: closed.append("hold"))
    world.failing["CLOSE_PRODUCER"] = [(error, False)]
    with caplog.at_level("INFO", "eos.commit"):
        owner.log.close()
    assert closed == ["hold"]
    messages = [record.getMessage() for record in caplog.records if record.thread == threading.get_ident()]
    assert messages == [f"closing {CONTROL}: planned"]
    assert owner.log.lost


def test_a_producer_that_failed_is_given_up(world: Alone, owner: Owner) -> None:
    """The broker would keep it, and what it sent late could follow the records of its successor."""
    world.failing["SEND"] = [(LOST, False)]
    intent = Intent(owner.log.next_number(), "query", "run-1", 0, 1, TxnId(0, 1), None)
    with pytest.raises(ConnectionLost):
        owner.log.append(intent)
    assert owner.log.lost
    while world.broker.late:
        world.broker.deliver(0)
    assert not world.broker.topic(CONTROL).producers
