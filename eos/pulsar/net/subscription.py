"""A durable subscription as a position that moves on, and keeps the messages after it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Literal

from eos.closing import Closing
from eos.errors import NetworkError
from eos.pulsar.net.broker_lookup import BrokerLookup
from eos.pulsar.net.retaining_subscription import RetainingSubscription
from eos.pulsar.net.transaction_support import hides_uncommitted
from eos.pulsar.wire.message_id import EntryId, MessageId

Initial = EntryId | Literal["earliest", "latest"]


class Subscription(Closing):
    """A durable subscription that reads nothing: the broker keeps every entry that it did not acknowledge.

    Each call joins again after a lost connection. Where the subscription is gone by then, it is made again at the
    earliest message, whatever it began with. Thread-safe.
    """

    def __init__(
        self,
        finder: BrokerLookup,
        topic: str,
        name: str,
        initial: Initial,
        *,
        missing: Callable[[], None] | None = None,
        create: bool = False,
        alone: bool = False,
    ) -> None:
        """Use `Client.subscription`."""
        place: Literal["earliest", "latest"] = "latest" if initial == "latest" else "earliest"
        self._hold = RetainingSubscription(finder, topic, name, place, alone=alone, missing=missing, create=create)
        self._hold.join()
        if isinstance(initial, EntryId):
            try:
                self.acknowledge(initial)
            except BaseException:
                with suppress(NetworkError):
                    self.close()  # nobody else can: the caller gets no cursor
                raise

    def acknowledge(self, entry: EntryId) -> None:
        """Let go of this entry, whole, and of everything before it. One that is acknowledged already changes nothing.

        The broker does not check the position: one beyond the end releases what is not yet written.
        Raises Refused, Unanswered, ConnectionLost.
        """
        self._hold.acknowledge(MessageId(entry.ledger, entry.entry))

    def last_message_id(self) -> tuple[EntryId | None, EntryId | None]:
        """Return the last entry that a reader can get now, and the last that is acknowledged, with all before it.

        The second is None when the broker doesn't say; an entry of -1 there is the place before the first one of its
        ledger. Raises Refused, Unanswered, ConnectionLost.
        """
        return self._hold.positions()

    def hides_uncommitted(self) -> bool:
        """Whether the topic's broker tells no message of an open or aborted transaction for the last one.

        Raises Refused, Unanswered, ConnectionLost.
        """
        return hides_uncommitted(self._hold.connection())

    def seek(self, place: EntryId | int) -> None:
        """Let the subscription go on with this entry, or with what was published at a time (ms since 1970) or later.

        Unlike an acknowledgement this goes back too. Raises Refused, Unanswered, ConnectionLost.
        """
        self._hold.seek(place)

    def delete(self) -> None:
        """Delete the subscription and leave. Raises Refused, Unanswered, ConnectionLost."""
        self._hold.delete()

    def close(self) -> None:
        """Leave; the subscription stays. Raises Unanswered, ConnectionLost."""
        self._hold.close()
