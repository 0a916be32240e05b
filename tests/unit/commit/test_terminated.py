"""A topic is terminated in the middle of a batch: its transaction never ends, and the sink goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eos.commit.attempt import attempt
from eos.commit.owner import Owner
from eos.commit.ports import Written
from eos.delivery.row_writer import WriteReport
from eos.errors import ConnectionLost, NotCommitted, RefusedForGood
from eos.pulsar.wire.txn import TxnId
from tests.simulation.client import Client
from tests.simulation.job import CONTROL, DATA, WriteData, rows_of
from tests.simulation.world import Alone
from tests.unit.commit.driver import SETTINGS, identity, open_transactions, owning


class Terminates(WriteData):
    """Sends a batch's rows, and has one of its topics terminated meanwhile."""

    def finish(self) -> None:
        for producer in self.open:
            if producer.topic == DATA[1]:
                self.client._world.broker.terminate(producer.topic)
                producer.send_record(b"one more", None)
        super().finish()


def test_a_batch_with_a_terminated_topic_is_not_committed_and_the_next_ones_are_written(
    world: Alone, owner: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(RefusedForGood, match="already terminated"):
        attempt(owner, 1, identity(1), Terminates(Client(world), 1))
    assert open_transactions(world) == 1
    attempt(owner, 1, identity(1), Alive(Client(world), 1))
    assert ["is not committed, and has not ended in time" in line for line in caplog.messages] == [True]
    assert list(owner.view.markers) == [1]
    attempt(owning(world, "run-2"), 2, identity(2), Alive(Client(world), 2))
    assert [e.data for e in world.broker.topic(DATA[0]).readable()] == [*rows_of(1, DATA[0]), *rows_of(2, DATA[0])]


def test_a_control_topic_that_was_terminated_is_not_taken_for_a_topic_of_rows(world: Alone, owner: Owner) -> None:
    """No row goes there, so the sink would not go on once no row does."""
    attempt(owner, 1, identity(1), Alive(Client(world), 1))
    world.broker.terminate(CONTROL)
    with pytest.raises(RefusedForGood, match=r"own control topic was terminated.* delete eos-sink\.json") as told:
        owning(world, "run-2")
    assert "as soon as no row goes" not in str(told.value)


class ClosedBy(WriteData):
    """Sends a batch's rows, and has its producer on a terminated topic closed, as a broker does first."""

    def finish(self) -> None:
        for producer in self.open:
            if producer.topic == DATA[1]:
                self.client._world.broker.terminate(producer.topic)
        raise ConnectionLost("closed by the broker")


def test_the_wait_for_a_transaction_that_never_ends_is_not_counted_as_time_of_the_batch(world: Alone) -> None:
    """With more of its time the batch would fail in the same way: it is tried again, and the topic says what it is."""
    owner = owning(world, settings=replace(SETTINGS, patience_s=90))
    with pytest.raises(NotCommitted) as failed:
        attempt(owner, 1, identity(1), ClosedBy(Client(world), 1))
    assert type(failed.value) is NotCommitted
    assert world.clock() > 60


def test_a_driver_takes_over_from_one_whose_batch_has_a_terminated_topic(
    world: Alone, owner: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(RefusedForGood, match="already terminated"):
        attempt(owner, 1, identity(1), Terminates(Client(world), 1))
    successor = owning(world, "run-2")
    assert sum("is not committed, and has not ended in time" in line for line in caplog.messages) == 1
    attempt(successor, 1, identity(1), Alive(Client(world), 1))
    assert list(owning(world, "run-3").view.markers) == [1]
    assert [e.data for e in world.broker.topic(DATA[0]).readable()] == rows_of(1, DATA[0])


class Alive(WriteData):
    """Writes to the topic that is still there."""

    def send(self, txn: TxnId) -> Written:
        self.add(txn, DATA[:1])
        self.open.append(self.producer(DATA[0]))
        for row in rows_of(self.batch_id, DATA[0]):
            self.send_row(self.open[0], row, txn)
        return WriteReport({DATA[0]: 2}, {DATA[0]: 20})
