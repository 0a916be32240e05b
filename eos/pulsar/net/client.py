"""A client of one Pulsar cluster: the way into `eos.pulsar.net`."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable
from functools import partial
from typing import ClassVar, Literal
from weakref import WeakValueDictionary

from eos.closing import Closing
from eos.config import Cluster
from eos.errors import EncryptionRequired, InvalidInput, Refused, TopicMissing
from eos.pulsar.net.broker_lookup import BrokerLookup, coordinators_allowed, topic_exists
from eos.pulsar.net.coordinator import Coordinator
from eos.pulsar.net.entries import MAX_BYTES, MAX_PERMITS, EntryReader
from eos.pulsar.net.in_flight import InFlight
from eos.pulsar.net.pool import Pool
from eos.pulsar.net.position_reader import PositionReader
from eos.pulsar.net.producer import FrameLimits, Producer
from eos.pulsar.net.reader import PERMITS, Reader
from eos.pulsar.net.retaining_subscription import RetainingSubscription
from eos.pulsar.net.subscription import Initial, Subscription
from eos.pulsar.net.transactions import Transactions
from eos.pulsar.protocol.producer import ProducerIdentity
from eos.pulsar.protocol.schemas import Declared, Registered
from eos.pulsar.protocol.topics import COORDINATOR_TOPIC, full_name, is_partition, physical_topics, split_partition
from eos.pulsar.wire.message_id import EARLIEST, EntryId, MessageId

__all__ = [
    "Access",
    "Client",
    "Coordinator",
    "EntryReader",
    "InFlight",
    "Producer",
    "Reader",
    "RetainingSubscription",
    "Subscription",
]

Access = Literal["shared", "exclusive", "exclusive-with-fencing"]

_JOINED_OTHERWISE = "Subscription is of different type"
"""The broker's words to an exclusive consumer beside others (AbstractSubscription); the code stands for limits too."""


SHARED_CLIENTS = 8
"""How many shared clients of a process keep their connections though nothing is open on them."""


class Client(Closing):
    """Connects when first asked for something, and again after a connection was lost. Thread-safe.

    Every call may raise Unreachable (a ConnectionLost: the message names the address),
    Refused (the broker's own words), Unanswered (what was waited for, from whom, how long),
    and ConnectionLost, when the connection ends during the call.

    A client that is pickled, as into a Spark task, arrives as the other process's client of the same cluster: `shared`.

    Attributes:
        cluster: how to reach it.
        frame_limits: what its producers have learned of topics that take smaller frames than their brokers.
    """

    _shared: ClassVar[dict[tuple[int, Cluster], Client]] = {}
    _left: ClassVar[WeakValueDictionary[tuple[int, Cluster], Client]] = WeakValueDictionary()  # in holders' hands alone
    _sharing: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, cluster: Cluster) -> None:
        """Args: the cluster. Raises InvalidInput for a wrong service URL."""
        self.cluster = cluster
        self._pool = Pool(cluster)
        self._finder = BrokerLookup(cluster, self._pool)
        self._transactions = Transactions()
        self.frame_limits = FrameLimits()
        self._coordinators: dict[int, Coordinator] = {}
        self._guard = threading.Lock()

    @classmethod
    def shared(cls, cluster: Cluster) -> Client:
        """Return this process's client of the cluster; a forked child gets one of its own.

        A cluster with other credentials is another one, so a token that is renewed as an option leaves an old client.
        So of the clients that were not asked for lately those end their connections on which nothing is open. A holder
        of such a client may go on with it: it connects again, and counts as asked for.
        """
        key = (os.getpid(), cluster)
        with cls._sharing:
            client = cls._shared.pop(key, None) or cls._left.get(key) or cls(cluster)
            client._pool.dialled = partial(cls.shared, cluster)  # else nobody would end what a holder connects again
            cls._shared[key] = client  # the one that was asked for last comes last
            for old in list(cls._shared)[:-SHARED_CLIENTS]:
                if cls._shared[old]._pool.close_idle():
                    cls._left[old] = cls._shared.pop(old)
            return client

    def __reduce__(self) -> tuple[Callable[[Cluster], Client], tuple[Cluster]]:
        return Client.shared, (self.cluster,)

    @classmethod
    def _forked(cls) -> None:
        cls._shared, cls._left = {}, WeakValueDictionary()
        cls._sharing = threading.Lock()

    def connect(self) -> None:
        """Connect to one of the service URL's hosts, if this client is not connected."""
        self._finder.patiently(f"connect to {self.cluster.service_url}", self._pool.service)

    def partitions(self, topic: str) -> int:
        """Return the number of partitions, 0 for a topic that is not partitioned. Creates nothing.

        Raises TopicMissing; InvalidInput for a broker that can't be asked this safely (PIP-344).
        """
        name = full_name(topic)
        return self._finder.patiently(f"ask for the partitions of {name}", lambda: self._finder.partitions(name))

    def is_removed_partition(self, topic: str) -> bool:
        """Whether a physical topic that is missing is a partition that its topic still has.

        A broker with default settings removes partitions that nobody uses and that hold nothing.
        """
        whole, number = split_partition(full_name(topic))
        if number is None:
            return False
        try:
            return self.partitions(whole) > number
        except TopicMissing:
            return False

    def physical_topics(self, topic: str) -> list[str]:
        """Return the physical topics of a topic, or of one partition of it, by their full names.

        Partitions that the broker has removed since they held nothing are among them. Raises as `partitions`.
        """
        name = full_name(topic)
        try:
            return physical_topics(name, self.partitions(name))
        except TopicMissing:
            if self.is_removed_partition(name):
                return [name]
            raise

    def topics(self, namespace: str) -> list[str]:
        """Return the persistent topics of a "tenant/namespace", each partition by its own name; no system topics."""
        return self._finder.patiently(f"ask for the topics of {namespace}", lambda: self._finder.topics(namespace))

    def schema(self, topic: str, version: bytes | None = None) -> Registered | None:
        """Return the newest version of a topic's schema, or the one that a message names; None where there is none."""
        name = full_name(topic)
        return self._finder.patiently(f"ask for the schema of {name}", lambda: self._finder.schema(name, version))

    def register(self, topic: str, schema: Declared, introduction: ProducerIdentity | None = None) -> Registered:
        """Return the version of a topic's schema that this is, registered if it is new. Sends no message.

        Args: the topic by its full name, the schema, and the caller's introduction to the broker. Raises Refused, with
        the code IncompatibleSchema, where the topic takes none, or none such.
        """
        first = physical_topics(topic, self.partitions(topic))[0]
        (producer := self.producer(first, schema=schema, introduction=introduction)).close()
        return Registered(topic, producer.schema_version, schema.kind, schema.definition, dict(schema.properties))

    def coordinators(self) -> int:
        """Return the number of transaction coordinators. Raises InvalidInput when the cluster has none."""
        try:
            with coordinators_allowed():
                number = self.partitions(COORDINATOR_TOPIC)
        except TopicMissing:
            number = 0
        if number == 0:
            raise InvalidInput(
                f"the cluster at {self.cluster.service_url} has no transaction coordinators. Set "
                "transactionCoordinatorEnabled=true in broker.conf, run `pulsar initialize-transaction-coordinator-"
                "metadata` and restart the brokers"
            )
        return number

    def coordinator(self, index: int) -> Coordinator:
        """Return this client's coordinator of that number, connected. Raises Unanswered when it does not load."""
        with self._guard:
            coordinator = self._coordinators.setdefault(index, Coordinator(self._finder, self._transactions, index))
        coordinator.connect()
        return coordinator

    def producer(
        self,
        topic: str,
        *,
        access: Access = "shared",
        topic_epoch: int | None = None,
        budget: InFlight | None = None,
        schema: Declared | None = None,
        stamped: bool = True,
        introduction: ProducerIdentity | None = None,
    ) -> Producer:
        """Open a producer on a physical topic.

        Args:
            topic: a partition's name, or that of a topic that is not partitioned. The broker
                may create it if it is missing: ask `partitions` first.
            access: "exclusive-with-fencing" throws out the producers that are connected, and moves the topic's epoch.
            topic_epoch: the epoch of an earlier producer of this caller, to come back if no other took the topic since.
            budget: bytes without a receipt, shared with other producers; default: 64 MiB of its own.
            schema: by which its values are written; the broker registers it if it is new and the topic lets it in.
                Default: none is declared.
            stamped: whether each frame carries the version of that schema. Default True.
            introduction: the writer's introduction to the broker. A fresh name is made of it. Default: none, and the
                broker makes a name.

        Raises Fenced when the topic's epoch has moved past `topic_epoch`, TopicMissing.
        """
        name_of_topic = full_name(topic)

        def attempt() -> Producer:
            # Anew at each attempt: the broker may still know the producer of one that had no answer.
            chosen = None if introduction is None else introduction.fresh_name()
            connection = self._finder.last_owner(name_of_topic)
            producer = Producer(
                connection,
                topic,
                budget if budget is not None else InFlight(),
                self._transactions,
                self.frame_limits,
                self.cluster.request_timeout_s,
            )
            try:
                with topic_exists(name_of_topic):
                    producer.open(access, topic_epoch, chosen, schema, stamped=stamped, introduction=introduction)
            except BaseException:
                self._finder.forget(name_of_topic)
                raise
            return producer

        return self._finder.patiently(f"open a producer on {name_of_topic}", attempt)

    def reader(
        self, topic: str, *, permits: int = PERMITS, after: MessageId = EARLIEST, stored: bool = False
    ) -> Reader:
        """Return a reader of a physical topic, message by message; it joins at its first call.

        Args:
            permits: messages that the broker may send ahead; fewer for large ones. Default 1000.
            after: the message after which it starts. Default: at the earliest.
            stored: whether that message must still be stored: if it is not, `read` raises EntriesGone. Default False.
        """
        start = None if after == EARLIEST else EntryId(after.ledger, after.entry)
        name = self.cluster.subscription_name("eos-reader")
        return Reader(self.entry_reader(topic, start, stored=stored, permits=permits, subscription=name), after)

    def hold(self, topic: str, subscription: str) -> RetainingSubscription:
        """Make sure that the durable subscription exists, at the earliest message if new, and join it.

        Its name begins with the cluster's subscription prefix. Raises TopicMissing.
        """
        hold = RetainingSubscription(self._finder, full_name(topic), self.cluster.subscription_name(subscription))
        hold.join()
        return hold

    def is_held(self, topic: str, subscription: str) -> bool:
        """Tell whether any client has joined a durable subscription, by joining it as the only one, and leaving again.

        A client that comes in that moment is refused and asks again. The subscription is made, at the earliest message,
        where it is missing. Its name begins with the cluster's subscription prefix. Raises TopicMissing, and Refused
        where it can't be known.
        """
        alone = self._joined_alone(topic, self.cluster.subscription_name(subscription))
        if alone is not None:
            alone.close()
        return alone is None

    def move_subscription(self, topic: str, subscription: str, to: EntryId) -> bool:
        """Let a durable subscription go on with an entry, unless a client has joined it; return whether it was moved.

        (-1, -1) stands for the earliest message. The subscription is made where it is missing. Raises TopicMissing,
        and Refused where it can't be known.
        """
        alone = self._joined_alone(topic, subscription)
        if alone is None:
            return False
        try:
            alone.seek(to)
        finally:
            alone.abandon()  # where it was not moved: nobody else could join the subscription
        return True

    def entry_reader(
        self,
        topic: str,
        start: EntryId | None,
        *,
        stored: bool = False,
        permits: int = MAX_PERMITS,
        max_bytes: int = MAX_BYTES,
        compacted: bool = False,
        subscription: str | None = None,
    ) -> EntryReader:
        """Return a reader of whole entries of a physical topic; it joins at its first call.

        Args:
            start: the first entry to read; None: the earliest. If it is gone, the broker begins at the next one that is
                there. If it lies after the last one, it begins at the earliest.
            stored: whether a message is known to be stored at the start: then it must come first, and if it does not,
                the first `read` raises EntriesGone. Default False.
            permits: messages that the broker may send ahead, at most. Default 100,000.
            max_bytes: bytes that wait for the caller, about. Default 16 MiB.
            compacted: read what compaction left of the topic, and then the rest. Default False.
            subscription: what the names of its subscriptions, which are not durable, begin with.
        """
        return EntryReader(
            self._finder,
            full_name(topic),
            start,
            stored=stored,
            permits=permits,
            max_bytes=max_bytes,
            compacted=compacted,
            subscription=subscription or self.cluster.subscription_name("eos-entries"),
            patience_s=self.cluster.request_timeout_s,
        )

    def subscription(
        self,
        topic: str,
        name: str,
        *,
        initial: Initial,
        missing: Callable[[], None] | None = None,
        create: bool = False,
        alone: bool = False,
    ) -> Subscription:
        """Make sure that a durable subscription exists on a physical topic, and join it.

        Args:
            name: of the subscription.
            initial: where a new one begins: at the "earliest" message, after the "latest", or after an entry. One that
                exists keeps its place, except that it moves up to the place after that entry.
            missing: called before a join makes the subscription, also when a lost connection is made again. What it
                raises keeps the subscription from being made. Whether a call was followed by a subscription is unknown
                where the join fails. Default: no join asks whether the subscription exists.
            create: whether the broker may make a topic that is missing. Default False.
            alone: whether it is of type Exclusive, which readers need as well. Default: Failover where that is allowed.

        Raises TopicMissing.
        """
        finder, name_of_topic = self._finder, full_name(topic)
        return Subscription(finder, name_of_topic, name, initial, missing=missing, create=create, alone=alone)

    def position_of(self, topic: str, place: EntryId | int, subscription: str = "eos-position") -> EntryId | None:
        """Return the entry after which the broker puts a cursor that is sent to an entry or a time (ms since 1970).

        Nothing is kept for it, and nothing is left of it. None where the broker does not say. Args: the physical topic;
        the place; how the cursor's name begins. Raises TopicMissing.
        """
        with PositionReader(self._finder, full_name(topic), f"{subscription}-{uuid.uuid4().hex}") as reader:
            return reader.sought(place)

    def ensure_topic(self, topic: str) -> None:
        """Create a topic without partitions if it is missing.

        Raises InvalidInput when it is partitioned, TopicMissing when the broker does not create topics.
        """
        name = full_name(topic)
        try:
            partitions = self.partitions(name)
        except TopicMissing:
            self._create(name)
            return
        if partitions:
            raise InvalidInput(f"the topic {name} has {partitions} partitions. It must have none")

    def close(self) -> None:
        """End every connection. All that is open on them is lost."""
        self._pool.close()

    def _joined_alone(self, topic: str, subscription: str) -> RetainingSubscription | None:
        """Join a durable subscription as its only client; None where another one has joined it. Raises as `is_held`."""
        alone = RetainingSubscription(self._finder, full_name(topic), subscription, alone=True)
        try:
            alone.join()
        except Refused as error:
            if _JOINED_OTHERWISE not in error.detail:
                raise
            return None
        return alone

    def _create(self, name: str) -> None:
        try:
            self.producer(name).close()
        except EncryptionRequired:
            raise
        except (TopicMissing, Refused) as error:
            way = f"({error}). Create it: pulsar-admin topics create {name}"
            if is_partition(name):  # that command refuses it too
                way = "since its name is that of a partition of another topic. Choose a name without -partition-N"
            raise TopicMissing(f"the topic {name} does not exist and the broker does not create it {way}") from error


os.register_at_fork(after_in_child=Client._forked)
