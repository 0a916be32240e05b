"""A cluster in memory under the real plan and subscriptions of a query, and a query that Spark runs batch by batch."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

from eos.closing import Closing
from eos.errors import TopicMissing
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.topics import full_name, split_partition
from eos.pulsar.wire.message_id import EntryId
from eos.source.brokers import PulsarBrokers
from eos.source.errors import DataLost, lost
from eos.source.offsets import Offsets
from eos.source.options import parse_options
from eos.source.ranges import Found
from eos.source.stream_plan import StreamPlan
from eos.source.subscriptions import Subscriptions
from eos.source.topic_selection import TopicSelection


@dataclass
class StoredTopic:
    """The entries of a topic, each of which holds a message.

    Attributes:
        ledgers: {ledger: its number of entries}, in their order; the last one is open.
        subscriptions: {name: the entry up to which it has acknowledged}.
        times: when entries were published; at 0 where this does not say.
    """

    ledgers: dict[int, int] = field(default_factory=dict)
    subscriptions: dict[str, EntryId] = field(default_factory=dict)
    times: dict[EntryId, int] = field(default_factory=dict)

    def write(self, ledger: int, entries: int) -> None:
        self.ledgers[ledger] = self.ledgers.get(ledger, 0) + entries

    def trim(self) -> None:
        """Delete the closed ledgers that all subscriptions have acknowledged.

        A subscription that has acknowledged a closed ledger whole stands before the next one from then on
        (ManagedLedgerImpl.maybeUpdateCursorBeforeTrimmingConsumedLedger of 4.2.4).
        """
        for (ledger, entries), following in pairwise(list(self.ledgers.items())):
            for name, stands in self.subscriptions.items():
                if stands == EntryId(ledger, entries - 1):
                    self.subscriptions[name] = EntryId(following[0], -1)
        for ledger, entries in list(self.ledgers.items())[:-1]:
            if any(stands < EntryId(ledger, entries - 1) for stands in self.subscriptions.values()):
                return
            del self.ledgers[ledger]

    @property
    def entries(self) -> list[EntryId]:
        return [EntryId(ledger, entry) for ledger, count in self.ledgers.items() for entry in range(count)]

    @property
    def earliest(self) -> EntryId:
        return EntryId(next(iter(self.ledgers)), -1)

    @property
    def last(self) -> EntryId | None:
        return self.entries[-1] if self.entries else None

    def sent_to(self, place: EntryId | int) -> EntryId:
        """Return where a cursor stands that is sent to a place (ManagedCursorImpl.internalResetCursor of 4.2.4)."""
        there = self.entries
        if isinstance(place, int):
            found = next((at for at, entry in enumerate(there) if self.times.get(entry, 0) >= place), len(there))
        else:
            found = bisect_left(there, place)
        if found == len(there):
            return there[-1] if there else self.earliest
        first = there[found]
        before = [entry for entry in there[:found] if entry.ledger < first.ledger]
        return EntryId(first.ledger, first.entry - 1) if first.entry > 0 or not before else before[-1]


def gone(topic: StoredTopic) -> None:
    topic.subscriptions.clear()


def gone_with_messages(topic: StoredTopic) -> None:
    topic.subscriptions.clear()
    topic.ledgers = {ledger: entries for ledger, entries in topic.ledgers.items() if ledger >= 8}


class Cursor:
    """A subscription that is joined again by each call, as after a lost connection."""

    def __init__(self, cluster: MemoryCluster, topic: str, name: str, initial: Any, missing: Any, create: bool) -> None:
        self._cluster, self._topic, self._name, self._missing = cluster, topic, name, missing
        if create:
            cluster.held.setdefault(topic, StoredTopic({1: 0}))
        self._join(latest=initial == "latest")

    def last_message_id(self) -> tuple[EntryId | None, EntryId]:
        topic = self._join()
        self._cluster.ask(f"last of {self._topic}")
        return topic.last, topic.subscriptions[self._name]

    def hides_uncommitted(self) -> bool:
        return True

    def acknowledge(self, entry: EntryId) -> None:
        topic = self._join()
        topic.subscriptions[self._name] = max(topic.subscriptions[self._name], entry)

    def seek(self, place: EntryId | int) -> None:
        topic = self._join()
        topic.subscriptions[self._name] = topic.sent_to(place)

    def delete(self) -> None:
        self._cluster.ask(f"delete on {self._topic}")
        self._join().subscriptions.pop(self._name)

    def close(self) -> None:
        pass

    def _join(self, *, latest: bool = False) -> StoredTopic:
        topic = self._cluster.topic(self._topic)
        if self._name not in topic.subscriptions:
            self._missing()
            self._cluster.ask(f"subscribe to {self._topic}")
            topic.subscriptions[self._name] = (topic.last if latest else None) or topic.earliest
            self._cluster.ask(f"answer to subscribe to {self._topic}")
        return topic


class MemoryCluster:
    """Topics in memory, as `Client` gives them.

    Attributes:
        held: the physical topics by their full names.
        partitions_of: the numbers of partitions of partitioned topics.
        fails: {what is asked: the errors with which it fails, one after the other}.
    """

    def __init__(self, **topics: StoredTopic) -> None:
        self.held = {full_name(name): topic for name, topic in topics.items()}
        self.partitions_of: dict[str, int] = {}
        self.fails: dict[str, list[BaseException]] = {}

    def ask(self, what: str) -> None:
        if self.fails.get(what):
            raise self.fails[what].pop(0)

    def topic(self, name: str) -> StoredTopic:
        if name not in self.held:
            raise TopicMissing(f"the topic {name} does not exist")
        return self.held[name]

    def load(self, topic: str) -> None:
        self.ask(f"load {topic}")

    def partitions(self, topic: str) -> int:
        self.ask(f"partitions of {topic}")
        if topic not in self.partitions_of:
            self.topic(topic)
        return self.partitions_of.get(topic, 0)

    def physical_topics(self, topic: str) -> list[str]:
        return Client.physical_topics(cast(Client, self), topic)

    def is_removed_partition(self, topic: str) -> bool:
        whole, number = split_partition(topic)
        return number is not None and self.partitions_of.get(whole, 0) > number

    def topics(self, namespace: str) -> list[str]:
        return list(self.held)

    def subscription(
        self, topic: str, name: str, *, initial: Any, missing: Callable[[], None], create: bool = False
    ) -> Cursor:
        return Cursor(self, topic, name, initial, missing, create)

    def position_of(self, topic: str, where: EntryId | int, name: str) -> EntryId:
        self.ask(f"position on {topic}")
        return self.topic(topic).sent_to(where)

    def move_subscription(self, topic: str, name: str, to: EntryId) -> bool:
        self.topic(topic).subscriptions[name] = self.topic(topic).sent_to(to)
        return True


class MemoryBrokers(PulsarBrokers):
    """The brokers of a query, which read entries from memory."""

    def __init__(self, cluster: MemoryCluster, options: dict[str, str]) -> None:
        named = {} if "subscriptionPrefix" in options else {"subscription": "job"}
        given = {"service.url": "pulsar://h:1"} | named | options
        super().__init__(parse_options(given, "stream"))
        self.options = self._options
        self.cluster = cluster
        self._client = cast(Client, cluster)
        self._selection = TopicSelection(self._client, self.options, cluster.load)
        self._subscriptions = Subscriptions(self._client, self.options, self)

    def first(self, topic: str, entry: EntryId) -> Found:
        found = next((one for one in self.cluster.topic(topic).entries if one >= entry), None)
        if found is None:
            raise DataLost(lost(topic, f"a message was stored after {entry}"))
        return Found(found, 100)

    def tell_lost(self, topic: str, after: EntryId, up_to: EntryId, came: EntryId) -> None:
        pass

    def open(self, topic: str, start: EntryId | None, *_: Any, **__: Any) -> Any:
        return _Reader(self.cluster.topic(topic), start or EntryId(-1, -1))


class _Reader(Closing):
    def __init__(self, topic: StoredTopic, start: EntryId) -> None:
        self._topic = topic
        self._left = [SimpleNamespace(id=one, chunked=False) for one in topic.entries if one >= start]

    def read(self, timeout_s: float) -> list[SimpleNamespace]:
        arrived, self._left = self._left, []
        return arrived

    def last_message_id(self) -> tuple[EntryId | None, None]:
        return self._topic.last, None

    def close(self) -> None:
        pass


@dataclass
class Job:
    """A query as Spark runs it, with the offsets and commits of its checkpoint.

    Attributes:
        options: those of the source.
        ends: the offsets that the checkpoint has of planned batches, as JSON.
        committed: how many of them are committed.
        told: the warnings of the plan of the run.
    """

    cluster: MemoryCluster
    options: dict[str, str]
    ends: list[str] = field(default_factory=list)
    committed: int = 0
    told: list[str] = field(default_factory=list)

    def start(self, **options: str) -> Job:
        """Begin a run, with these options on top. The driver of the run before is dead."""
        self.brokers = MemoryBrokers(self.cluster, self.options | options)
        self.told = []
        parsed = self.brokers.options
        self.plan = StreamPlan(
            self.brokers, parsed.start, fail_on_data_loss=parsed.fail_on_data_loss, warn=self.told.append
        )
        return self

    def trigger(self, *, dies: bool = False) -> list[str]:
        """Run one micro-batch and return its rows. Args: whether the driver dies before the batch is committed."""
        start = self.end(self.committed - 1) if self.committed else self.plan.first()
        if self.committed == len(self.ends):
            end = self.plan.latest(start, None)
            self.plan.newest()
            if end == start:
                return []
            self.ends.append(json.dumps(end.as_json()))
            start = start if self.committed else self.plan.first()
        rows = self._rows(start, self.end(self.committed))
        self.committed += not dies
        return rows

    def drain(self) -> list[str]:
        """Run micro-batches until none brings anything new; return their rows."""
        rows, planned = self.trigger(), -1
        while planned != len(self.ends):
            planned = len(self.ends)
            rows += self.trigger()
        return rows

    def restored(self, batches: int) -> Job:
        """Return the query with its checkpoint as it was after so many batches."""
        return Job(self.cluster, self.options, self.ends[:batches], batches)

    def end(self, batch: int) -> Offsets:
        return Offsets.from_json(json.loads(self.ends[batch]))

    def _rows(self, start: Offsets, end: Offsets) -> list[str]:
        rows = []
        for part in self.plan.ranges(start, end):
            stored = self.cluster.topic(part.topic).entries
            proof = part.start.entry if part.start.delivered else part.first
            for needed in (proof, part.end):
                if needed is not None and needed not in stored:
                    raise DataLost(lost(part.topic, f"the task of {part} misses {needed}"))
            name = part.topic.rsplit("/", 1)[1]
            rows += [f"{name}@{entry}" for entry in stored if part.start.entry < entry <= part.end]
        return rows
