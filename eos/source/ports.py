"""The questions of the source's plans and subscriptions to the brokers. They know the brokers by these alone."""

from __future__ import annotations

from collections.abc import Container, Iterable
from contextlib import AbstractContextManager
from typing import Protocol

from eos.pulsar.wire.message_id import EntryId
from eos.source.boundaries import Boundary
from eos.source.errors import Losses
from eos.source.offsets import Position
from eos.source.ranges import Found, TopicState


class StoredMessages(Protocol):
    """The questions about the messages that a topic stores."""

    def last(self, topic: str) -> EntryId | None:
        """Return the last message that can be delivered now, None where there is none. Raises TopicMissing."""
        ...

    def first(self, topic: str, entry: EntryId) -> Found:
        """Return the first message at or after an entry. There must be one. Raises DataLost when it was lost."""
        ...


class StoredPlaces(StoredMessages, Protocol):
    """The questions about what a topic stores where a query begins."""

    def place(self, topic: str, entry: EntryId) -> EntryId:
        """Return the entry after which the broker puts a cursor that is sent past an entry.

        It is the same one, if the topic stores it, the end of the topic, or the place before the first entry left.
        """
        ...

    def look(self, topic: str, start: Position) -> TopicState:
        """Return where a topic ends and the query's subscription stands.

        It is made again if it is gone, unless the start is gone as well. Args: the physical topic; where the next batch
        begins. Raises TopicMissing.
        """
        ...

    def unmake(self, topic: str) -> None:
        """Delete the query's subscription again that a look has made; warn where that fails."""
        ...


class StreamBrokers(StoredPlaces, Protocol):
    """The questions of a stream's plan."""

    def topics(self, *, all_named: bool, read: Container[str] = ()) -> Iterable[str]:
        """Return the physical topics that the options select now. Args: `read`: none of these is left out.

        Raises TopicMissing for a named one that is missing, if all of them must be there.
        """
        ...

    def selects(self, topic: str) -> bool:
        """Whether the options select a physical topic by its name, be it there or not."""
        ...

    def begin(self, topic: str, start: Boundary) -> EntryId:
        """Make sure that the query's subscription exists. Return where the first batch of the query begins.

        It is the last entry that the subscription has acknowledged. A subscription that exists stays where it is, and a
        new one begins at `start`. A query is refused where the two differ. Called where the first batch is planned, and
        never where it was planned before. Raises TopicMissing, InvalidInput.
        """
        ...

    def pin(self, topic: str) -> EntryId:
        """Return the place before the first message of a topic that appears while the query runs.

        The query's subscription is made there, or moved back to it. Raises TopicMissing, DataLost.
        """
        ...

    def is_removed_partition(self, topic: str) -> bool:
        """Whether a physical topic that is missing is a partition that its topic still has."""
        ...

    def release(self, topic: str, start: EntryId) -> None:
        """Let the brokers delete what lies before the entry up to which the query has read, except for the chunks of
        messages that are not complete there."""
        ...

    def beginning(self) -> AbstractContextManager[None]:
        """Return a block in which a new query begins. Where it can't, the subscriptions it has made are deleted.

        Else they would keep all messages of their topics for a query that never began.
        """
        ...


class BatchBrokers(StoredMessages, Protocol):
    """The questions of a batch read while it is planned."""

    def topics(self, *, all_named: bool) -> Iterable[str]:
        """Return the physical topics that the options select. Raises TopicMissing for a named one that is missing."""
        ...

    def before_time(self, topic: str, time_ms: int) -> EntryId:
        """Return the entry after which all was published at that time or later."""
        ...

    def place(self, topic: str, entry: EntryId) -> EntryId:
        """Return the entry after which the broker puts a cursor that is sent past an entry.

        It is a later one, where the entries after it were deleted.
        """
        ...

    def must_be_there(self, topic: str, place: EntryId, last: EntryId | None, *, ends: bool = False) -> None:
        """Raise InvalidInput when a read is to begin past the stored entries and the next, or to end past them."""
        ...


class TopicEntries(StoredMessages, Protocol):
    """The questions to the brokers about places of a topic, apart from the subscription."""

    def before_time(self, topic: str, time_ms: int) -> EntryId:
        """Return the entry after which all was published at that time or later."""
        ...

    def sought(self, topic: str, where: int | EntryId) -> EntryId:
        """Return the entry after which the broker puts a cursor that is sent to a time or an entry."""
        ...

    def must_be_there(self, topic: str, place: EntryId, last: EntryId | None) -> None:
        """Raise InvalidInput when a read is to begin with an entry past the stored ones and the next."""
        ...

    @property
    def lose(self) -> Losses:
        """Takes the losses that are found while a query begins."""
        ...

    def tell_lost(self, topic: str, after: EntryId, up_to: EntryId, came: EntryId) -> None:
        """Raise DataLost, or only warn, where ledgers between two entries are lost: see `PulsarBrokers`."""
        ...

    def is_removed_partition(self, topic: str) -> bool:
        """Whether a physical topic that is missing is a partition that its topic still has."""
        ...
