"""A client of the simulated cluster, shaped like `eos.pulsar.net.client.Client`; a call is a request of the world."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from eos.errors import ConnectionLost, EntriesGone, Unanswered
from eos.pulsar.wire.message_id import EARLIEST, EntryId, MessageId
from eos.pulsar.wire.txn import TxnId
from tests.simulation.broker import Entry
from tests.simulation.world import Alone, Scheduler

T = TypeVar("T")

_TIMEOUT_S = 30


class Client:
    """See ClientPort."""

    def __init__(self, world: Scheduler | Alone) -> None:
        self._world = world

    def coordinators(self) -> int:
        """See ClientPort."""
        return self._world.request("PARTITIONS", lambda: len(self._world.broker.coordinators))

    def ensure_topic(self, topic: str) -> None:
        """See ClientPort: here each topic is there from the beginning."""
        self._world.request("PARTITIONS", lambda: None)

    def coordinator(self, index: int) -> CoordinatorClient:
        """See ClientPort."""
        return CoordinatorClient(self._world, index)

    def producer(self, topic: str, *, access: str = "shared", topic_epoch: int | None = None) -> Producer:
        """See ClientPort."""
        number, epoch = self._world.request(
            f"PRODUCER {access}", lambda: self._world.broker.open_producer(topic, access, topic_epoch)
        )
        return Producer(self._world, topic, number, epoch)

    def reader(self, topic: str, *, after: MessageId = EARLIEST, stored: bool = False) -> Reader:
        """See ClientPort."""
        return self._world.request("SUBSCRIBE", lambda: Reader(self._world, topic, after, stored=stored))

    def hold(self, topic: str, subscription: str) -> Hold:
        """See ClientPort."""
        return self._world.request("SUBSCRIBE durable", lambda: Hold(self._world, topic))


class CoordinatorClient:
    """See CoordinatorPort. Connects again by itself when the coordinator is not loaded."""

    def __init__(self, world: Scheduler | Alone, index: int) -> None:
        self._world, self.index = world, index

    def _request(self, label: str, action: Callable[[], T], sent: Callable[[], None] | None = None) -> T:
        broker = self._world.broker
        if not broker.coordinators[self.index].loaded:
            self._world.request("TC_CLIENT_CONNECT", lambda: broker.connect(self.index))
        return self._world.request(label, action, sent)

    def new_transaction(self, ttl_ms: int) -> TxnId:
        """See CoordinatorPort."""
        return self._request("NEW_TXN", lambda: self._world.broker.new_transaction(self.index, ttl_ms))

    def add_partitions(self, txn: TxnId, topics: Sequence[str]) -> None:
        """See CoordinatorPort."""
        self._request("ADD_PARTITION", lambda: self._world.broker.add_partitions(txn, topics))

    def end(self, txn: TxnId, commit: bool, sent: Callable[[], None] | None = None) -> None:
        """See CoordinatorPort."""
        broker = self._world.broker

        def start() -> None:
            broker.start_end(txn, commit)

        self._request("END_TXN commit" if commit else "END_TXN abort", start, sent)
        while broker.knows(txn):
            if not broker.coordinators[self.index].loaded:
                raise ConnectionLost("END_TXN: the coordinator crashed")
            if broker.stuck(txn):
                self._world.sleep(_TIMEOUT_S)
                raise Unanswered("END_TXN: no answer within 30 s")
            self._world.pause()


class Producer:
    """See ControlProducerPort; also used for data."""

    def __init__(self, world: Scheduler | Alone, topic: str, number: int, epoch: int | None) -> None:
        self._world, self.topic, self._number, self.topic_epoch = world, topic, number, epoch
        self.name = f"simulated-0-{number}"

    def send_record(self, data: bytes, txn: TxnId | None, *, local: bool = False) -> MessageId:
        """See ControlProducerPort."""
        return self._world.request(
            "SEND" if txn is None else "SEND in transaction",
            lambda: self._world.broker.send(self.topic, self._number, data, txn),
        )

    def close(self) -> None:
        """See ControlProducerPort."""
        self._world.request("CLOSE_PRODUCER", lambda: self._world.broker.close_producer(self.topic, self._number))

    def abandon(self) -> None:
        """See ControlProducerPort: the request arrives when it arrives."""
        broker = self._world.broker
        broker.late.append(lambda: broker.close_producer(self.topic, self._number))


class Reader:
    """See ControlReaderPort."""

    def __init__(self, world: Scheduler | Alone, topic: str, after: MessageId, *, stored: bool) -> None:
        self._world, self._topic = world, topic
        self._next = after.entry + 1
        self._must_be_stored = after if stored else None

    def read(self, timeout_s: float) -> Entry | None:
        """See ControlReaderPort."""
        after = self._must_be_stored
        if after is not None and after.entry < self._world.broker.topic(self._topic).first:
            raise EntriesGone(self._topic, after.place, None)
        found = self._readable()
        if not found:
            self._world.sleep(timeout_s)
            found = self._readable()
        if not found:
            return None
        self._next = found[0].message_id.entry + 1
        return found[0]

    def _readable(self) -> list[Entry]:
        return [e for e in self._world.broker.topic(self._topic).readable() if e.message_id.entry >= self._next]

    def last_message_id(self) -> MessageId:
        """See ControlReaderPort."""
        return self._world.request("GET_LAST_MESSAGE_ID", self._last)

    def _last(self) -> MessageId:
        readable = self._world.broker.topic(self._topic).readable()
        return readable[-1].message_id if readable else EARLIEST

    def close(self) -> None:
        """See ControlReaderPort."""


class Hold:
    """See RetainingSubscriptionPort."""

    def __init__(self, world: Scheduler | Alone, topic: str) -> None:
        self._world, self._topic = world, topic

    def join(self) -> None:
        """See RetainingSubscriptionPort. A subscription of the simulation is never lost."""

    def acknowledge(self, message_id: MessageId) -> None:
        """See RetainingSubscriptionPort."""
        self._world.request("ACK", lambda: self._acknowledge(message_id))

    def positions(self) -> tuple[EntryId | None, EntryId | None]:
        """See HoldPort."""
        return self._world.request("GET_LAST_MESSAGE_ID", self._positions)

    def _positions(self) -> tuple[EntryId | None, EntryId | None]:
        topic = self._world.broker.topic(self._topic)
        last = topic.readable()[-1].message_id
        passed = topic.acknowledged
        return EntryId(last.ledger, last.entry), None if passed == EARLIEST else EntryId(passed.ledger, passed.entry)

    def _acknowledge(self, message_id: MessageId) -> None:
        topic = self._world.broker.topic(self._topic)
        topic.acknowledged = max(topic.acknowledged, message_id)

    def close(self) -> None:
        """See RetainingSubscriptionPort."""

    def abandon(self) -> None:
        """See RetainingSubscriptionPort."""
