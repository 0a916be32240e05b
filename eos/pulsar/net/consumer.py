"""Joining a topic as a consumer, again after each lost connection."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Generic, TypeVar

from eos.errors import ConnectionLost, EosError, NetworkError, Refused, Unanswered
from eos.pulsar.net.broker_lookup import BrokerLookup, topic_exists
from eos.pulsar.net.connection import Connection
from eos.pulsar.protocol.consumer import ENDED, ConsumerSession, State
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.frames import Frame
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import BaseCommand

L = TypeVar("L", bound=ConsumerSession)
A = TypeVar("A")

_LEFT = "Consumer was not connected"
"""The broker's words to a consumer that leaves while its topic is closed (AbstractDispatcherSingleActiveConsumer)."""

_NO_CONSUMER = "Consumer not found"
"""Its words to a consumer that it has dropped, since its topic moves, before it has said so (ServerCnx)."""

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
        self._listener: _Listener | None = None  # of the line that is joined
        self._other_type = False

    @property
    def _any_type(self) -> bool:
        """Whether it may be of type Exclusive or Failover, as the namespace allows.

        A reader may not: a broker (4.2.4) does not answer where the last message is to one of type Failover.
        """
        return False

    @abstractmethod
    def _line(self, consumer_id: int, broker: str) -> L:
        """Return a new line, to go on after the one that was lost. Args: its number on the connection; who answers."""

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

    def received(self, frames: Sequence[Frame], listener: _Listener) -> None:
        """Take frames from a reading thread; what comes after the consumer has ended says nothing new."""
        with self._arrived:
            try:
                for frame in frames:
                    if self._joined is None or self._joined[0].state in ENDED or listener is not self._listener:
                        return
                    line = self._joined[0]
                    if frame.entries:
                        self._take(line, frame.entries)
                    else:
                        line.closed_by_broker()
            finally:
                self._arrived.notify_all()

    def lost(self, why: EosError, listener: _Listener | None = None) -> None:
        """Learn that the line has ended; from a connection, that the one of this listener has."""
        with self._arrived:
            if self._joined is not None and listener in (None, self._listener):
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
        if self._joined is not None:
            self._joined[1].ignore_consumer(self._joined[0].consumer_id)
        listener = _Listener(self)
        line = self._line(connection.listen_as_consumer(listener), connection.broker)
        line.other_type = self._other_type
        with self._arrived:
            self._joined, self._listener = (line, connection), listener
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
            answer = self._ask(line, connection, request, f"ask for the last message of {self.topic}")
        except Unanswered as silence:
            raise Unanswered(f"{silence}. {_NO_LAST}") from None
        return line.positions(answer)

    @staticmethod
    def _ask(line: ConsumerSession, connection: Connection, request: BaseCommand, what: str) -> BaseCommand:
        """Ask about a consumer, and return the answer, for which nobody waits once the consumer has ended.

        A broker that unloads a topic drops what it is asked meanwhile about a consumer of it, tells the consumer of its
        end, and never answers (4.2.4: acknowledgements, and where the last message is).
        Raises Unanswered, ConnectionLost.
        """
        return connection.ask(request, what, moot=lambda: line.state in ENDED)

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
                answer = self._ask(line, connection, request, f"close the consumer on {self.topic}")
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


def _dismiss(line: ConsumerSession, connection: Connection) -> None:
    """Stop listening for a consumer, and ask the broker to close it. A broker that does not know it does nothing."""
    connection.ignore_consumer(line.consumer_id)
    with suppress(NetworkError):
        connection.tell(line.close_command())


class _Listener:
    """Passes on what one connection tells about one line.

    A connection that ends tells so by its own thread. A question that failed with it may have told the subscriber
    before, and the subscriber may have joined again. If it took the news for that of the new line, it would join a
    third time, and the broker would keep the consumer of the line between.
    """

    def __init__(self, subscriber: Subscriber[L]) -> None:
        self._subscriber = subscriber

    def received(self, frames: Sequence[Frame]) -> None:
        self._subscriber.received(frames, self)

    def lost(self, why: EosError) -> None:
        self._subscriber.lost(why, self)
