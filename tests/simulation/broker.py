"""A broker and its transaction coordinators as plain data: what Pulsar 4.2.4 does with transactions.

One call is one step of the broker. What the broker does by itself (ending a transaction partition by
partition, letting one time out, delivering frames of a connection its client gave up) waits in a queue until
`work` or `deliver` is called, so that a test decides when it happens.

Each rule is checked against a real broker by tests/contract/test_simulation_matches_broker.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from eos.errors import ConnectionLost, Fenced, Refused, RefusedForGood, Unanswered
from eos.pulsar.wire.message_id import EARLIEST, MessageId
from eos.pulsar.wire.txn import TxnId


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a topic: a record, or the mark of a transaction's end."""

    message_id: MessageId
    data: bytes
    txn: TxnId | None
    kind: Literal["record", "commit", "abort"] = "record"
    replicated_from: str | None = None

    @property
    def publish_time_ms(self) -> int:
        """The simulation has no clock; its entries follow each other."""
        return self.message_id.entry


@dataclass(slots=True)
class Topic:
    """A physical topic with its transaction buffer (TopicTransactionBuffer)."""

    name: str
    entries: list[Entry] = field(default_factory=list)
    ongoing: dict[TxnId, int] = field(default_factory=dict)
    aborted: set[TxnId] = field(default_factory=set)
    held_a_transaction: bool = False
    low_water: dict[int, int] = field(default_factory=dict)
    epoch: int = -1
    producers: set[int] = field(default_factory=set)
    exclusive: bool = False
    acknowledged: MessageId = EARLIEST
    first: int = 0
    terminated: bool = False

    def _add(self, data: bytes, txn: TxnId | None, kind: Literal["record", "commit", "abort"] = "record") -> MessageId:
        entry = Entry(MessageId(1, len(self.entries)), data, txn, kind)
        self.entries.append(entry)
        return entry.message_id

    def append(self, data: bytes, txn: TxnId | None) -> MessageId:
        """Store a record. The coordinator is not asked whether its transaction is still open."""
        message_id = self._add(data, txn)
        if txn is not None:
            self.held_a_transaction = True
            if txn not in self.ongoing and txn not in self.aborted:
                self.ongoing[txn] = message_id.entry
        return message_id

    def end(self, txn: TxnId, commit: bool, low_water: int) -> None:
        """Mark the end of a transaction, and abort what the low watermark has left behind."""
        if commit:
            self._add(b"", txn, "commit")
            self.ongoing.pop(txn, None)
        elif not self.held_a_transaction:
            return
        else:
            self._abort(txn)
        self.low_water[txn.coordinator] = max(low_water, self.low_water.get(txn.coordinator, -1))
        while self.ongoing:
            first = next(iter(self.ongoing))
            if first.least > self.low_water.get(first.coordinator, -1):
                break
            self._abort(first)

    def _abort(self, txn: TxnId) -> None:
        self._add(b"", txn, "abort")
        self.aborted.add(txn)
        self.ongoing.pop(txn, None)

    def readable(self) -> list[Entry]:
        """What a reader gets: up to the first open transaction, without what was aborted."""
        end = min(self.ongoing.values(), default=len(self.entries))
        return [e for e in self.entries[self.first : end] if e.kind == "record" and e.txn not in self.aborted]

    def trim(self) -> None:
        """Delete what no subscription holds any more."""
        self.first = self.acknowledged.entry + 1


@dataclass(slots=True)
class Transaction:
    """A transaction that its coordinator still knows."""

    deadline: float
    partitions: list[str] = field(default_factory=list)
    state: Literal["open", "committing", "aborting"] = "open"
    left: deque[str] = field(default_factory=deque)

    def stuck(self, topics: Mapping[str, Topic]) -> bool:
        """Tell whether it is ending, and has only terminated topics left, which take no note of it."""
        return bool(self.left) and all(one in topics and topics[one].terminated for one in self.left)


@dataclass(slots=True)
class Coordinator:
    """One transaction coordinator. What it has stored survives a crash."""

    index: int
    loaded: bool = True
    count: int = 0
    open: dict[TxnId, Transaction] = field(default_factory=dict)


class Broker:
    """A whole cluster: coordinators and topics, and a clock that tests move."""

    def __init__(self, coordinators: int = 2) -> None:
        self.now = 0.0
        self.coordinators = [Coordinator(index) for index in range(coordinators)]
        self.topics: dict[str, Topic] = {}
        self.late: list[Callable[[], object]] = []
        self._producers = 0

    def topic(self, name: str) -> Topic:
        """Give a topic, and create it when it is new."""
        return self.topics.setdefault(name, Topic(name))

    # ---- coordinators

    def connect(self, index: int) -> None:
        """TC_CLIENT_CONNECT: loads the coordinator."""
        self.coordinators[index].loaded = True

    def crash_coordinator(self, index: int) -> None:
        """Lose what is in its memory; it stays away until a client connects."""
        self.coordinators[index].loaded = False

    def _loaded(self, index: int, asked: str) -> Coordinator:
        coordinator = self.coordinators[index]
        if not coordinator.loaded:
            raise Refused(asked, "TransactionCoordinatorNotFound", "not loaded")
        return coordinator

    def _find(self, txn: TxnId, asked: str) -> Transaction:
        found = self._loaded(txn.coordinator, asked).open.get(txn)
        if found is None:
            raise Refused(asked, "TransactionNotFound", str(txn))
        return found

    def new_transaction(self, index: int, ttl_ms: int) -> TxnId:
        """NEW_TXN."""
        coordinator = self._loaded(index, "NEW_TXN")
        txn = TxnId(index, coordinator.count)
        coordinator.count += 1
        coordinator.open[txn] = Transaction(self.now + ttl_ms / 1000)
        return txn

    def add_partitions(self, txn: TxnId, topics: Sequence[str]) -> None:
        """ADD_PARTITION_TO_TXN."""
        found = self._find(txn, "ADD_PARTITION_TO_TXN")
        if found.state != "open":
            raise Refused("ADD_PARTITION_TO_TXN", "InvalidTxnStatus", found.state)
        found.partitions += [topic for topic in topics if topic not in found.partitions]

    def start_end(self, txn: TxnId, commit: bool) -> None:
        """END_TXN, up to where the coordinator has written down which way it goes."""
        found = self._find(txn, "END_TXN")
        if found.state != "open":
            raise Refused("END_TXN", "InvalidTxnStatus", found.state)
        self._turn(found, "committing" if commit else "aborting")

    def _turn(self, found: Transaction, state: Literal["committing", "aborting"]) -> None:
        found.state = state
        found.left = deque(found.partitions)

    def knows(self, txn: TxnId) -> bool:
        """Whether the coordinator still has the transaction."""
        return txn in self.coordinators[txn.coordinator].open

    def work(self) -> bool:
        """Take one step of a transaction that is ending; False when there is nothing to do."""
        for coordinator in self.coordinators:
            if not coordinator.loaded:
                continue
            for txn, found in coordinator.open.items():
                if found.state == "open":
                    continue
                if found.stuck(self.topics):
                    continue
                if found.left:
                    while self.topic(found.left[0]).terminated:
                        found.left.rotate(-1)
                    low_water = min(other.least for other in coordinator.open) - 1
                    self.topic(found.left.popleft()).end(txn, found.state == "committing", low_water)
                else:
                    del coordinator.open[txn]
                return True
        return False

    def pass_time(self, seconds: float) -> None:
        """Move the clock; transactions past their ttl begin to abort."""
        self.now += seconds
        for coordinator in self.coordinators:
            for found in coordinator.open.values():
                if found.state == "open" and found.deadline <= self.now:
                    self._turn(found, "aborting")

    # ---- producers

    def open_producer(self, name: str, access: str, topic_epoch: int | None) -> tuple[int, int | None]:
        """PRODUCER: its id and the topic's epoch."""
        topic = self.topic(name)
        fencing = access == "exclusive-with-fencing"
        if not fencing and topic.exclusive and topic.producers:
            raise Refused("PRODUCER", "ProducerFenced", "an exclusive producer is connected")
        if fencing:
            # AbstractTopic.incrementTopicEpochIfNeeded: even a stranger who is then refused throws every producer out.
            topic.producers.clear()
            if topic_epoch is None:
                topic.epoch += 1
            elif topic_epoch < topic.epoch:
                raise Fenced(f"Topic epoch has already moved. Current epoch {topic.epoch}")
        topic.exclusive = fencing
        self._producers += 1
        topic.producers.add(self._producers)
        return self._producers, topic.epoch if fencing else None

    def send(self, name: str, producer: int, data: bytes, txn: TxnId | None) -> MessageId:
        """SEND: refused from a closed producer, and met with silence from one that was fenced."""
        topic = self.topic(name)
        if topic.terminated:
            raise RefusedForGood("SEND", "TopicTerminatedError", "Topic was already terminated", "Use another topic")
        if producer not in topic.producers:
            raise Unanswered(f"no receipt from {name}: the producer was closed")
        return topic.append(data, txn)

    def close_producer(self, name: str, producer: int) -> None:
        """CLOSE_PRODUCER."""
        self.topic(name).producers.discard(producer)

    def terminate(self, name: str) -> None:
        """Take nothing more, and close the producers."""
        self.topic(name).terminated = True
        self.topic(name).producers.clear()

    def stuck(self, txn: TxnId) -> bool:
        """Whether a transaction is ending, and can't."""
        found = self.coordinators[txn.coordinator].open.get(txn)
        return found is not None and found.stuck(self.topics)

    def unload(self, name: str) -> None:
        """The topic moves to another broker: every producer has to come back."""
        self.topic(name).producers.clear()

    # ---- frames that arrive late

    def deliver(self, which: int) -> None:
        """Let one frame in whose sender gave up waiting."""
        frame = self.late.pop(which)
        try:
            frame()
        except (Refused, Unanswered, Fenced, ConnectionLost):
            return
