"""Where the broker puts a cursor: asked of one that is not durable, so that nothing is kept for it or left of it."""

from __future__ import annotations

from functools import partial

from eos.closing import Closing
from eos.pulsar.net.broker_lookup import BrokerLookup
from eos.pulsar.net.consumer import Subscriber
from eos.pulsar.protocol.entries import EntrySession
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import BaseCommand


class PositionReader(Subscriber[EntrySession], Closing):
    """A reader that is moved and reads nothing, as Java's `Reader.seek`.

    The broker closes each consumer of a cursor that it moves, and keeps a cursor that is not durable where it was
    moved until a consumer joins it by its name and leaves (PersistentSubscription.removeConsumer, isResetCursor). Of a
    process that dies between the two the cursor stays in the broker's memory until the topic is unloaded. It keeps no
    message.
    """

    def __init__(self, finder: BrokerLookup, topic: str, subscription: str) -> None:
        """Use `Client.position_of`."""
        super().__init__(finder, topic)
        self._subscription = subscription

    def sought(self, place: EntryId | int) -> EntryId | None:
        """Return the entry after which the broker puts a cursor that is sent to an entry, or to a time (ms).

        None where the broker does not say. Raises TopicMissing, Refused, Unanswered, ConnectionLost.
        """
        with self._turn:
            return self._once_more_if_dropped(partial(self._sought, place))

    def _sought(self, place: EntryId | int) -> EntryId | None:
        self._seek(place)
        return self._positions()[1]

    def close(self) -> None:
        """Leave: the broker drops the cursor. Raises Unanswered, ConnectionLost."""
        self._leave(unsubscribe=False)

    def _line(self, consumer_id: int, broker: str) -> EntrySession:
        return EntrySession(self.topic, consumer_id, broker, None, None)

    def _request(self, line: EntrySession) -> BaseCommand:
        return line.read(self._subscription)
