"""Variants with one rule of the protocol removed. The property test must find a fault in each.

Each stands for a mistake that is easy to make, and says which rule it breaks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eos.commit import decision as commit
from eos.commit.attempt import Written
from eos.commit.control_log import LogView, OwnerRecord
from eos.commit.decision import Ending
from eos.commit.owner import Owner, bound_coordinator
from eos.commit.ports import CoordinatorPort
from eos.errors import NetworkError
from eos.pulsar.wire.message_id import EARLIEST, MessageId
from eos.pulsar.wire.txn import TxnId
from eos.steps import Observer, unobserved
from tests.simulation.client import Client, CoordinatorClient, Producer
from tests.simulation.job import CONTROL, ROWS, partitions_of, rows_of


class TrustsAtOnce(Owner):
    """Believes the log before its own OWNER record is readable: hidden markers are overlooked."""

    def _trusted(self, view: LogView, record: OwnerRecord) -> bool:
        return True


class SettlesBlindly(Owner):
    """Takes "the transaction has ended" for "it was aborted", and doesn't ask the log."""

    def settle(self) -> None:
        """End the transaction, and leave it at that."""
        if self.in_hand is not None and self.end(self.in_hand.txn, self.in_hand.commit_sent) is not Ending.NOT_YET:
            self.in_hand = None
        if self.lost_log:
            super().settle()


class LeavesIntent(Owner):
    """Leaves the transaction of the last INTENT to its ttl: readers of the data wait behind it."""

    def _end_last_intent(self) -> None:
        return


class ReopensWithoutEpoch(Owner):
    """Reopens a broken producer as if taking over: two live drivers fence each other for ever."""

    def _open(self) -> None:
        self._epoch = None
        super()._open()


class MovesCoordinator(Owner):
    """Chooses the coordinator anew in each run: what one coordinator left frozen no other heals."""

    def _bound(self, seen: LogView) -> int:
        return bound_coordinator(self._who.run_id, self.client.coordinators())


class Unfenced(Client):
    """Opens the control topic with a shared producer: a former owner goes on writing."""

    def producer(self, topic: str, *, access: str = "shared", topic_epoch: int | None = None) -> Producer:
        """Forget the access mode."""
        return super().producer(topic)


class MarkerNotAwaited(Client):
    """Sends MARKER and doesn't wait for its receipt: the commit may overtake it."""

    def producer(self, topic: str, *, access: str = "shared", topic_epoch: int | None = None) -> Producer:
        """Give a producer that doesn't wait."""
        opened = super().producer(topic, access=access, topic_epoch=topic_epoch)
        return _Hasty(opened) if topic == CONTROL else opened


class _Hasty(Producer):
    def __init__(self, opened: Producer) -> None:
        super().__init__(opened._world, opened.topic, opened._number, opened.topic_epoch)

    def send_record(self, data: bytes, txn: TxnId | None) -> MessageId:
        if txn is None:
            return super().send_record(data, txn)
        self._world.pause()
        broker = self._world.broker
        broker.late.append(lambda: broker.send(self.topic, self._number, data, txn))
        return EARLIEST


class ControlNotAdded(Client):
    """Sends MARKER without ADD_PARTITION for the control topic: the commit doesn't reach it."""

    def coordinator(self, index: int) -> CoordinatorClient:
        """Give a coordinator that adds data only."""
        return _DataOnly(self._world, index)


class _DataOnly(CoordinatorClient):
    def add_partitions(self, txn: TxnId, topics: Sequence[str]) -> None:
        super().add_partitions(txn, [topic for topic in topics if topic != CONTROL])


def resends(client: Client, batch_id: int, observer: Observer = unobserved) -> Callable[..., Written]:
    """Sends a row again into the same transaction when its receipt got lost: the first copy may still arrive."""

    def write(txn: TxnId, coordinator: CoordinatorPort) -> Written:
        partitions = partitions_of(batch_id)
        coordinator.add_partitions(txn, partitions)
        for partition in partitions:
            for row in rows_of(batch_id, partition):
                try:
                    client.producer(partition).send_record(row, txn)
                except NetworkError:
                    client.producer(partition).send_record(row, txn)
        return Written(dict.fromkeys(partitions, ROWS), dict.fromkeys(partitions, 20))

    return write


def leaves_sends_under_way(client: Client, batch_id: int, observer: Observer = unobserved) -> Callable[..., Written]:
    """Reports before the receipt of the last row is there, and doesn't close its producer."""

    def write(txn: TxnId, coordinator: CoordinatorPort) -> Written:
        partitions = partitions_of(batch_id)
        coordinator.add_partitions(txn, partitions)
        for partition in partitions:
            producer = client.producer(partition)
            *rows, last = rows_of(batch_id, partition)
            for row in rows:
                producer.send_record(row, txn)
            try:
                producer.send_record(last, txn)
            except NetworkError:
                continue
        return Written(dict.fromkeys(partitions, ROWS), dict.fromkeys(partitions, 20))

    return write


def adds_nothing(client: Client, batch_id: int, observer: Observer = unobserved) -> Callable[..., Written]:
    """Sends data without ADD_PARTITION: the commit doesn't reach the partitions."""

    def write(txn: TxnId, coordinator: CoordinatorPort) -> Written:
        partitions = partitions_of(batch_id)
        for partition in partitions:
            for row in rows_of(batch_id, partition):
                client.producer(partition).send_record(row, txn)
        return Written(dict.fromkeys(partitions, ROWS), dict.fromkeys(partitions, 20))

    return write


def without_rules(*names: str) -> tuple[commit.Rule, ...]:
    """The decision table without some of its rows."""
    return tuple(rule for rule in commit.DECISION if rule.name not in names)
