"""Taking over a log that is deleted, of a newer version, or behind an ended transaction; test_owner has the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from eos.commit.control_log import Intent, Marker, OwnerRecord, encode
from eos.commit.owner import Owner
from eos.commit.registration import Registration
from eos.errors import CommitUnknown, DamagedLog, NewerVersion, TopicMissing
from eos.pulsar.wire.txn import TxnId
from tests.simulation.client import Client
from tests.simulation.job import CONTROL, NAME
from tests.simulation.world import Alone
from tests.unit.commit.driver import LOST, commit, driver, owning


def hidden(world: Alone, owner: Owner, txn: TxnId) -> None:
    """End the transaction of a batch before the control topic is part of it, and send its MARKER late."""
    owner.log.append(Intent(owner.log.next_number(), "query", "run-1", 0, 1, txn, None))
    world.broker.start_end(txn, False)  # by its ttl, before it was told of the control topic
    while world.broker.work():
        pass
    late = Marker(owner.log.next_number(), "query", "run-1", 0, 1, txn, None, {}, {}, "offsets 0")
    owner.log.append(late, txn)
    assert world.broker.topic(CONTROL).ongoing
    world.log.clear()


def test_a_late_marker_is_freed_by_another_transaction_once_its_own_has_ended(world: Alone) -> None:
    """Asking for its end again and again would free nothing: the coordinator has forgotten it."""
    first = owning(world)
    hidden(world, first, first.coordinator().new_transaction(60_000))
    second = owning(world, "run-2")
    assert not world.broker.topic(CONTROL).ongoing
    assert second.view.newest is None
    assert second.view.owner is not None
    assert second.view.owner.run_id == "run-2"
    assert world.log.count("END_TXN abort") == 1, "what has ended is asked for once"
    assert world.log.count("NEW_TXN") == 1, "one empty transaction is enough"


def test_an_owner_that_settles_knows_that_the_transaction_in_hand_has_ended(world: Alone) -> None:
    owner = owning(world)
    hidden(world, owner, owner.open())
    owner.settle()
    assert not owner.unsettled
    assert not world.broker.topic(CONTROL).ongoing
    assert owner.view.newest is None
    assert world.log.count("END_TXN abort") == 1, "what has ended is asked for once"
    assert world.log.count("NEW_TXN") == 1, "one empty transaction is enough"


@pytest.mark.parametrize("lost", [2, 1])
def test_a_log_that_has_lost_a_marker_which_its_driver_knows_is_damaged(world: Alone, lost: int) -> None:
    """Such as in a ledger that is gone: the batch in hand may have been committed there as well."""
    owner = owning(world)
    commit(world, owner, 0, 1)
    topic = world.broker.topic(CONTROL)
    markers = [place for place, one in enumerate(topic.entries) if b'"kind":"marker"' in one.data]
    for place in markers[-lost:]:
        topic.entries[place] = replace(topic.entries[place], kind="commit")  # readers pass over it
    owner.open()
    with pytest.raises(DamagedLog, match=r"no longer has the MARKER of batch 1.*Writing on could repeat batches"):
        owner.settle()


class MakesNoTopics(Client):
    """Of a broker that does not make topics, and has no control topic any more."""

    def ensure_topic(self, topic: str) -> None:
        raise TopicMissing(f"{topic} does not exist and the broker does not create it. Create it: pulsar-admin ...")

    def producer(self, topic: str, *, access: str = "shared", topic_epoch: int | None = None) -> Any:
        raise TopicMissing(f"{topic} does not exist. Check its name, or create it first: pulsar-admin ...")


def test_a_log_that_was_deleted_and_is_not_made_again_is_no_topic_to_create(world: Alone) -> None:
    """Created by hand it would be empty, and refused as well: what to do is told at once."""
    words = f"the control log {CONTROL} is gone.*could repeat batches.*Find out which rows readers have.*new name"
    owner = owning(world)
    owner.log.close()
    owner.log._client = MakesNoTopics(world)
    with pytest.raises(DamagedLog, match=words):
        owner.settle()
    starting = driver(world, MakesNoTopics(world))
    with pytest.raises(DamagedLog, match=words):
        starting.make_log(Registration(NAME, CONTROL, 1))
    for before in (None, Registration(NAME, CONTROL, 0)):
        with pytest.raises(TopicMissing, match="Create it: pulsar-admin"):
            starting.make_log(before)


NEWER = encode(OwnerRecord(99, "query", "later", 0, 0)).replace(b'"v":1', b'"v":2')


def test_a_log_that_a_newer_version_has_written_is_refused_at_once(world: Alone) -> None:
    owning(world).close()
    topic = world.broker.topic(CONTROL)
    topic.append(NEWER, None)
    before = list(topic.entries)
    with pytest.raises(NewerVersion, match="version 2"):
        owning(world, "run-2")
    assert topic.entries == before


def test_a_newer_version_says_nothing_of_a_commit_that_was_sent(world: Alone) -> None:
    """The error of an input that is wrong would say that nothing of the batch is visible."""
    owner = owning(world)
    owner.open()
    world.failing = {"END_TXN commit": [(LOST, True)]}
    owner.commit(lambda: None)
    world.broker.topic(CONTROL).append(NEWER, None)
    with pytest.raises(CommitUnknown, match=r"version 2.* Whether the batch is committed is not known"):
        owner.settle()


def test_records_that_a_ttl_has_taken_from_the_subscription_are_told_of_before_they_are_gone(
    world: Alone, caplog: pytest.LogCaptureFixture
) -> None:
    owner = owning(world)
    commit(world, owner, 0)
    owning(world, "run-2")
    assert not any("no longer retains the newest MARKER" in line for line in caplog.messages)
    topic = world.broker.topic(CONTROL)
    topic.acknowledged = topic.entries[-1].message_id
    owning(world, "run-3")
    assert sum("set-message-ttl --ttl 0 " + CONTROL in line for line in caplog.messages) == 1
