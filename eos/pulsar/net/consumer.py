"""Joining a topic as a consumer, and holding on to what it stores."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Generic, Literal, TypeVar

from eos.errors import ConnectionLost, EosError, NetworkError, Refused, Unanswered
from eos.pulsar.net.broker_lookup import BrokerLookup, subscription_exists, topic_exists
from eos.pulsar.net.connection import Connection
from eos.pulsar.protocol.consumer import ENDED, ConsumerSession, State
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.frames import Frame
from eos.pulsar.wire.message_id import EntryId, MessageId
from eos.pulsar.wire.pulsar_pb2 import BaseCommand

L = TypeVar("L", bound=ConsumerSession)
A = TypeVar("A")

_DURABLE = "Durable subscription with the same name already exists"
"""The broker's words to one that is not durable (PersistentTopic.getNonDurableSubscription)."""

_NOT_DURABLE = "NonDurable subscription with the same name already exists"
"""Its words to a durable one, as long as it knows one that is not (PersistentTopic.getDurableSubscription)."""

_LEFT = "Consumer was not connected"
"""Its words to a consumer that leaves while its topic is closed (AbstractDispatcherSingleActiveConsumer)."""

_NO_CONSUMER = "Consumer not found"
"""Its words to a consumer that it has dropped, since its topic moves, before it has said so (ServerCnx)."""

_LEAVES_WITHIN_S = 10.0

_NO_TYPE = "sub type"
"""Of the broker's words where a namespace or topic does not allow a type (PersistentTopic.subscribe)."""

_NO_LAST = (
    "A broker does not answer this question while it cannot read the newest message, since bookies are down or its "
    "ledger is lost, and while the topic's transaction buffer has not recovered. Nobody knows until then how far the "
    "topic can be read. The broker's log names the topic and the cause. If the ledger is lost for good, publish a "
    "message to the topic, and the broker answers again"
)
"""ServerCnx.handleGetLastMessageId drops a failed read of that message (seen on 4.2.4)."""


class Subscriber(ABC, Generic[L]):
    """A subscription that the next call makes again after the connection was lost. Thread-safe.

    Attributes:
        topic: the physical topic.
    """

    def __init__(self, finder: BrokerLookup, topic: str) -> None:
        """Args: finds brokers; the topic."""
        self.topic = topic
        self._finder = finder
        self._turn = threading.RLock()
        self._arrived = threading.Condition(threading.Lock())
        self._joined: tuple[L, Connection] | None = None
        self._other_type = False

    @property
    def _any_type(self) -> bool:
        """Whether it may be of type Exclusive or Failover, as the namespace allows.

        A reader may not: a broker (4.2.4) does not answer where the last message is to one of type Failover.
        """
        return False

    @abstractmethod
    def _line(self, connection: Connection, before: L | None) -> L:
        """Return a new line on this connection, to go on after the line that was lost, if there was one."""

    @abstractmethod
    def _request(self, line: L) -> BaseCommand:
        """Return SUBSCRIBE."""

    def _take(self, line: L, entries: Sequence[Entry]) -> None:
        """Take what came; called by the reading thread, which holds `_arrived`. Nothing comes without permits."""

    def _explained(self) -> AbstractContextManager[None]:
        """Return what says in our words why SUBSCRIBE is refused."""
        return topic_exists(self.topic)

    def close(self) -> None:
        """Leave the topic and wait for the broker's confirmation.

        Does nothing when it was never joined, is closed, or its connection is lost already.
        Raises Unanswered, ConnectionLost.
        """
        self._leave(unsubscribe=False)

    def abandon(self) -> None:
        """Give it up: ask the broker to close the consumer, wait for nothing, raise nothing."""
        self._give_up(ConnectionLost(f"the consumer on {self.topic} was given up"))

    def received(self, frames: Sequence[Frame]) -> None:
        """Take frames from the reading thread; what comes after the consumer has ended says nothing new."""
        with self._arrived:
            try:
                for frame in frames:
                    if self._joined is None or self._joined[0].state in ENDED:
                        return
                    line = self._joined[0]
                    if frame.entries:
                        self._take(line, frame.entries)
                    else:
                        line.closed_by_broker()
            finally:
                self._arrived.notify_all()

    def lost(self, why: EosError) -> None:
        """Learn from the connection that it has ended."""
        with self._arrived:
            if self._joined is not None:
                self._joined[0].lost(why)
            self._arrived.notify_all()

    def _join(self) -> tuple[L, Connection]:
        """Return the live line and its connection, subscribing first where there is none."""
        if self._joined is None or self._joined[0].state is not State.READY:
            self._joined = self._finder.patiently(f"subscribe to {self.topic}", self._join_once)
        return self._joined

    def _join_once(self) -> tuple[L, Connection]:
        try:
            return self._subscribe()
        except Refused as refused:
            if self._other_type or not self._any_type or _NO_TYPE not in refused.detail:
                raise
        # The namespace allows only some types of subscriptions, and one of Exclusive and Failover is enough.
        self._other_type = True
        return self._subscribe()

    def _subscribe(self) -> tuple[L, Connection]:
        connection = self._finder.owner(self.topic)
        before = None
        if self._joined is not None:
            before = self._joined[0]
            self._joined[1].ignore_consumer(before.consumer_id)
        line = self._line(connection, before)
        line.other_type = self._other_type
        with self._arrived:
            self._joined = line, connection
        try:
            answer = connection.ask(self._request(line), f"subscribe to {self.topic}")
            with self._arrived, self._explained():
                line.subscribed(answer)
        except BaseException as error:
            connection.ignore_consumer(line.consumer_id)
            if isinstance(error, Unanswered) or not isinstance(error, EosError):  # the broker may know it, or soon will
                _dismiss(line, connection)
            if isinstance(error, EosError):
                self.lost(error)
            raise
        return line, connection

    def _give_up(self, why: EosError) -> bool:
        """Let the next call join anew, and tell the broker; returns whether it may have known the consumer until now.

        A consumer that is merely forgotten here stays there as long as the connection: it counts for the limits of its
        topic, and nobody else can join an exclusive subscription.
        """
        with self._turn:
            if self._joined is None or self._joined[0].state in ENDED or _NO_CONSUMER in str(why):
                self.lost(why)
                return False
            _dismiss(*self._joined)
            self.lost(why)
            return True

    def _once_more_if_dropped(self, ask: Callable[[], A]) -> A:
        """Ask the broker something; once more as a new consumer where it had dropped this one.

        A broker that unloads a topic drops its consumers first, and tells them a moment later: of 60 questions right
        after an unload 4 met that moment, and 2 of 50 acknowledgements, which it does not answer then (4.2.4). To do
        any of it twice does no harm.
        """
        try:
            return ask()
        except (Refused, Unanswered) as error:
            if self._joined is None or self._joined[0].state not in ENDED:  # the broker has not told so
                if _NO_CONSUMER not in str(error):
                    raise
                self.lost(error)
        return ask()

    def _positions(self) -> tuple[EntryId | None, EntryId | None]:
        line, connection = self._join()
        with self._arrived:
            request = line.ask_last()
        try:
            answer = _ask(line, connection, request, f"ask for the last message of {self.topic}")
        except Unanswered as silence:
            raise Unanswered(f"{silence}. {_NO_LAST}") from None
        return line.positions(answer)

    def _seek(self, place: EntryId | int) -> None:
        line, connection = self._join()
        with self._arrived:
            request = line.seek(place)
        # Awaited to the end: before it answers, the broker closes every consumer of a subscription it moves.
        line.sought(connection.ask(request, f"move the subscription on {self.topic}"))
        connection.ignore_consumer(line.consumer_id)
        with self._arrived:
            self._joined = None

    def _leave(self, *, unsubscribe: bool) -> None:
        with self._turn:
            if self._joined is None or self._joined[0].state is not State.READY:
                return
            line, connection = self._joined
            with self._arrived:
                request = line.close(unsubscribe=unsubscribe)
            try:
                answer = _ask(line, connection, request, f"close the consumer on {self.topic}")
                with self._arrived:
                    line.closed(answer)
            except (Refused, Unanswered) as error:
                # Its topic was closed meanwhile, and it has left. Whether a subscription is deleted, that does not say.
                left = line.state in ENDED if isinstance(error, Unanswered) else _LEFT in error.detail
                if unsubscribe or not left:
                    if line.state is not State.CLOSED_BY_BROKER:
                        _dismiss(line, connection)
                    raise
            connection.ignore_consumer(line.consumer_id)


def _ask(line: ConsumerSession, connection: Connection, request: BaseCommand, what: str) -> BaseCommand:
    """Ask a broker something about a consumer, and return its answer, for which nobody waits once the consumer ended.

    A broker that unloads a topic drops what it is asked meanwhile about a consumer of it, tells the consumer of its
    end, and never answers (4.2.4: acknowledgements, and where the last message is). Raises Unanswered, ConnectionLost.
    """
    return connection.ask(request, what, moot=lambda: line.state in ENDED)


def _dismiss(line: ConsumerSession, connection: Connection) -> None:
    """Stop listening for a consumer, and ask the broker to close it. A broker that does not know it does nothing."""
    connection.ignore_consumer(line.consumer_id)
    with suppress(NetworkError):
        connection.tell(line.close_command())


class Probe(Subscriber[ConsumerSession]):
    """Asks whether a durable subscription exists, which no request does: one that is not durable can't have its name.

    Where the name is free, the broker makes a subscription that is not durable, and drops it when the probe leaves.
    """

    def __init__(self, finder: BrokerLookup, topic: str, subscription: str) -> None:
        """Args: finds brokers; the topic; the name of the subscription."""
        super().__init__(finder, topic)
        self._subscription = subscription

    def exists(self) -> bool:
        """Ask once. Raises TopicMissing, Refused where the answer is unknown, Unanswered, ConnectionLost."""
        try:
            with self._turn:
                self._joined = self._join_once()
        except Refused as refused:
            if _DURABLE in refused.detail:
                return True
            raise
        self.close()
        return False

    def _line(self, connection: Connection, before: ConsumerSession | None) -> ConsumerSession:
        return ConsumerSession(self.topic, connection.listen_as_consumer(self), connection.broker)

    def _request(self, line: ConsumerSession) -> BaseCommand:
        return line.read(self._subscription)


class RetainingSubscription(Subscriber[ConsumerSession]):
    """A durable subscription that keeps the broker from deleting what it has not acknowledged.

    A lost connection is made again, and with it the subscription, where it was deleted meanwhile or has expired. It
    then begins at the earliest message: "latest" is a place of the first use, and by now messages may lie before it.
    """

    def __init__(
        self,
        finder: BrokerLookup,
        topic: str,
        subscription: str,
        initial: Literal["earliest", "latest"] = "earliest",
        *,
        alone: bool = False,
        missing: Callable[[], None] | None = None,
        create: bool = False,
    ) -> None:
        """Use `Client.hold`, `Client.subscription` or `Client.is_held`."""
        super().__init__(finder, topic)
        self.subscription = subscription
        self._latest = initial == "latest"
        self._alone = alone
        self._missing = missing
        self._create = create

    @property
    def _any_type(self) -> bool:
        return not self._alone  # of type Failover others could join beside

    def join(self) -> None:
        """Subscribe now; a new subscription holds everything, or with `initial` "latest" what comes from now on."""
        with self._turn:
            self._join()

    def connection(self) -> Connection:
        """Return the connection by which it is joined."""
        with self._turn:
            return self._join()[1]

    def acknowledge(self, message_id: MessageId) -> None:
        """Let go of this message and everything before it. Raises Refused, Unanswered, ConnectionLost.

        One that is acknowledged already changes nothing. Pulsar 4.2.4 says so by a success; 5.0.0-M1 answers
        UnknownError, which can mean anything else too, so the broker is asked where the subscription stands.
        """
        with self._turn:
            self._once_more_if_dropped(partial(self._acknowledge, message_id))

    def _acknowledge(self, message_id: MessageId) -> None:
        line, connection = self._join()
        with self._arrived:
            request = line.acknowledge(message_id)
        try:
            line.acknowledged(_ask(line, connection, request, f"acknowledge on {self.topic}"))
        except Refused as refused:
            stands = self._positions()[1] if refused.code == "UnknownError" else None
            if stands is None or EntryId(message_id.ledger, message_id.entry) > stands:
                raise

    def positions(self) -> tuple[EntryId | None, EntryId | None]:
        """Return the last entry that a reader can get, and the last that is acknowledged; None where there is none.

        An entry of -1 is the place before the first one of its ledger.
        Raises Refused, Unanswered, ConnectionLost.
        """
        with self._turn:
            return self._once_more_if_dropped(self._positions)

    def seek(self, place: EntryId | int) -> None:
        """Let the subscription go on with this entry, or with what was published at a time (ms) or later.

        Raises Refused, Unanswered, ConnectionLost.
        """
        with self._turn:
            self._once_more_if_dropped(partial(self._seek, place))

    def delete(self) -> None:
        """Delete the subscription and leave. Raises Refused, Unanswered, ConnectionLost."""
        with self._turn:
            self._once_more_if_dropped(self._unsubscribe)

    def _unsubscribe(self) -> None:
        self._join()
        self._leave(unsubscribe=True)

    def _join_once(self) -> tuple[ConsumerSession, Connection]:
        joined = self._join_where_missing()
        self._create = False
        self._latest = False  # a subscription that a later join makes must not skip what came since this one
        return joined

    def _join_where_missing(self) -> tuple[ConsumerSession, Connection]:
        if self._missing is None or self._create or Probe(self._finder, self.topic, self.subscription).exists():
            return super()._join_once()
        self._missing()
        return self._join_behind_probe()

    def _join_behind_probe(self) -> tuple[ConsumerSession, Connection]:
        """Join, once the broker has dropped what the probe left: it does so a moment after it has confirmed."""
        deadline = time.monotonic() + _LEAVES_WITHIN_S
        while True:
            try:
                return super()._join_once()
            except Refused as refused:
                if _NOT_DURABLE not in refused.detail or time.monotonic() > deadline:
                    raise
            time.sleep(0.01)

    def _line(self, connection: Connection, before: ConsumerSession | None) -> ConsumerSession:
        return ConsumerSession(self.topic, connection.listen_as_consumer(self), connection.broker)

    def _request(self, line: ConsumerSession) -> BaseCommand:
        return line.hold(self.subscription, latest=self._latest, alone=self._alone, create=self._create)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        start = "latest" if self._latest else "earliest"
        with topic_exists(self.topic), subscription_exists(self.topic, self.subscription, start):
            yield
