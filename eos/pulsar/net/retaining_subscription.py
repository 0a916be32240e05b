"""Holding on to what a topic stores, by a durable subscription."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Literal

from eos.errors import Refused
from eos.pulsar.net.broker_lookup import BrokerLookup, subscription_exists, topic_exists
from eos.pulsar.net.connection import Connection
from eos.pulsar.net.consumer import Subscriber
from eos.pulsar.protocol.consumer import ConsumerSession
from eos.pulsar.wire.message_id import EntryId, MessageId
from eos.pulsar.wire.pulsar_pb2 import BaseCommand

_DURABLE = "Durable subscription with the same name already exists"
"""The broker's words to one that is not durable (PersistentTopic.getNonDurableSubscription)."""

_NOT_DURABLE = "NonDurable subscription with the same name already exists"
"""Its words to a durable one, as long as it knows one that is not (PersistentTopic.getDurableSubscription)."""

_LEAVES_WITHIN_S = 10.0


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

    def _line(self, consumer_id: int, broker: str) -> ConsumerSession:
        return ConsumerSession(self.topic, consumer_id, broker)

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
            line.acknowledged(self._ask(line, connection, request, f"acknowledge on {self.topic}"))
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

    def _line(self, consumer_id: int, broker: str) -> ConsumerSession:
        return ConsumerSession(self.topic, consumer_id, broker)

    def _request(self, line: ConsumerSession) -> BaseCommand:
        return line.hold(self.subscription, latest=self._latest, alone=self._alone, create=self._create)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        start = "latest" if self._latest else "earliest"
        with topic_exists(self.topic), subscription_exists(self.topic, self.subscription, start):
            yield
