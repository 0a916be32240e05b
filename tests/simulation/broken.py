"""Variants with one rule of the protocol removed. The property test must find a fault in each.

Each stands for a mistake that is easy to make, and says which rule it breaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eos.commit import decision as commit
from eos.commit.control_log import LogView
from eos.commit.owner import Owner
from eos.commit.takeover import bound_coordinator
from eos.commit.transaction import TransactionEnd
from eos.errors import NetworkError
from eos.pulsar.wire.message_id import EARLIEST, MessageId
from eos.pulsar.wire.txn import TxnId
from tests.simulation.client import Client, CoordinatorClient, Producer
from tests.simulation.job import CONTROL, WriteData


class TrustsAtOnce(Owner):
    """Believes the log before its own OWNER record is readable: hidden markers are overlooked."""

    def __init__(self, *args: Any, **parts: Any) -> None:
        super().__init__(*args, **parts)
        self._takeover._trusted = lambda view, record: True  # type: ignore[method-assign]


class SettlesBlindly(Owner):
    """Takes "the transaction has ended" for "it was aborted", and doesn't ask the log."""

    def settle(self) -> None:
        """End the transaction, and leave it at that."""
        hand = self.in_hand
        if hand is not None and self._end(hand.txn, hand.commit_sent).ending is not TransactionEnd.NOT_YET:
            self.in_hand = None
        if self.log.lost:
            super().settle()


class LeavesIntent(Owner):
    """Leaves the transaction of the last INTENT to its ttl: readers of the data wait behind it."""

    def __init__(self, *args: Any, **parts: Any) -> None:
        super().__init__(*args, **parts)
        self._takeover._end_last_intent = lambda: None  # type: ignore[method-assign]


class ReopensWithoutEpoch(Owner):
    """Reopens a broken producer as if taking over: two live drivers fence each other for ever."""

    def __init__(self, *args: Any, **parts: Any) -> None:
        super().__init__(*args, **parts)
        reopen = self.log.reopen

        def forgetful() -> None:
            self.log._epoch = None
            reopen()

        self.log.reopen = forgetful  # type: ignore[method-assign]


class MovesCoordinator(Owner):
    """Chooses the coordinator anew in each run: what one coordinator left frozen no other heals."""

    def __init__(self, *args: Any, **parts: Any) -> None:
        super().__init__(*args, **parts)
        taking = self._takeover

        def bound(seen: LogView) -> int:
            return bound_coordinator(taking._who.run_id, self.client.coordinators())

        taking._bound = bound  # type: ignore[method-assign]


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

    def send_record(self, data: bytes, txn: TxnId | None, *, local: bool = False) -> MessageId:
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


class Resends(WriteData):
    """Sends a row again into the same transaction when its receipt got lost: the first copy may still arrive."""

    def send_row(self, producer: Producer, row: bytes, txn: TxnId) -> None:
        """Send, and send again."""
        try:
            producer.send_record(row, txn)
        except NetworkError:
            self.client.producer(producer.topic).send_record(row, txn)


class LeavesSendsUnderWay(WriteData):
    """Reports though a receipt is missing, and doesn't close its producers."""

    def finish(self) -> None:
        """Await nothing."""


class AddsNothing(WriteData):
    """Sends data without ADD_PARTITION: the commit doesn't reach the partitions."""

    def add(self, txn: TxnId, partitions: tuple[str, ...]) -> None:
        """Leave it out."""


def without_rules(*names: str) -> tuple[commit.Rule, ...]:
    """The decision table without some of its rows."""
    return tuple(rule for rule in commit.DECISION if rule.name not in names)
