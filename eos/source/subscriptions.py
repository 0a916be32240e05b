"""The durable subscription of a streaming query on each of its topics: where it begins, and where it stands."""

from __future__ import annotations

import logging
from typing import Literal, Protocol

from eos.errors import InvalidInput, NetworkError, TopicMissing
from eos.pulsar.net.client import Client
from eos.pulsar.net.subscription import Subscription
from eos.pulsar.wire.message_id import EntryId
from eos.source.boundaries import Boundary, place_of, time_of
from eos.source.errors import DataLost, Losses
from eos.source.offsets import before
from eos.source.options import SourceOptions
from eos.source.ranges import Found, TopicState

log = logging.getLogger("eos.source")

BEFORE_ALL = EntryId(-1, -1)
"""The entry that a cursor is sent to, so that it stands before everything that is stored."""


def too_old(topic: str) -> str:
    """Return the message for a broker that does not tell a position. Args: the physical topic."""
    return f"the broker does not say where a subscription stands on {topic}. It is older than Pulsar 2.10"


class TopicEntries(Protocol):
    """The questions to the brokers about places of a topic, apart from the subscription."""

    def last(self, topic: str) -> EntryId | None:
        """Return the last message that can be delivered now, None where there is none."""
        ...

    def first(self, topic: str, entry: EntryId) -> Found:
        """Return the first message at or after an entry. There must be one."""
        ...

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


def undeleted(cursor: Subscription) -> NetworkError | InvalidInput | None:
    """Delete a subscription; return why it may still be there, None where it is gone, perhaps with its topic."""
    try:
        cursor.delete()
    except TopicMissing:
        return None
    except (NetworkError, InvalidInput) as error:
        return error
    return None


class Subscriptions:
    """Joins them when they are first needed, and leaves them at the end."""

    def __init__(self, client: Client, options: SourceOptions, places: TopicEntries) -> None:
        """Args: this process's client; the checked options; answers about places."""
        self._client = client
        self._options = options
        self._places = places
        self._cursors: dict[str, Subscription] = {}
        self._ours: set[str] = set()
        self._new: set[str] = set()

    def pin(self, topic: str, start: Boundary, *, new_query: bool) -> EntryId:
        """Make sure that the subscription exists; a new one begins at `start`. Return where it stands.

        An early crash may come between any two steps, and the query then asks again. So a new subscription for "latest"
        or a time begins after everything, and is only ever moved back, to a place after all that an earlier try can
        have read.

        Args:
            new_query: whether the query has no checkpoint yet. Then a subscription that was there before must stand
                where the query is to begin: else the query would skip messages, or read some that it does not want.
                One that is to be reset stays as it is: Spark asks also where batch 0 was planned before a crash.
                `begin` resets it, and the place before all that is stored stands for the one that is not known yet.

        Raises TopicMissing; InvalidInput for a start that isn't there, and for a subscription that stands elsewhere.
        """
        if new_query and self._to_reset(topic):
            return BEFORE_ALL
        return self._found_or_made(topic, start, new_query=new_query)

    def begin(self, topic: str, start: Boundary, pinned: EntryId) -> EntryId:
        """Return where the first batch of a query begins, which Spark has not planned yet.

        Args: the physical topic; where the query is to begin; what `pin` has returned.

        Raises TopicMissing; InvalidInput as `pin`, and for a subscription that can't be reset.
        """
        if self._options.reset_subscription:  # also where it was reset, and what came after that has failed
            return self._found_or_made(topic, start, new_query=True)
        if start.given and topic not in self._ours and start.where != "time" and place_of(start, topic) == "latest":
            last = self._places.last(topic)
            if last is not None and self._messages_between(topic, pinned, last, last):
                raise self._stands_elsewhere(topic, "startingOffsets", last, pinned)
        return pinned

    def _to_reset(self, topic: str) -> bool:
        return self._options.reset_subscription and topic not in self._ours

    def _found_or_made(self, topic: str, start: Boundary, *, new_query: bool) -> EntryId:
        place: EntryId | str = "time" if start.where == "time" else place_of(start, topic)
        try:
            return self._begin(topic, place, start, new_query=new_query)
        except TopicMissing:
            if not new_query or isinstance(place, EntryId) or not self._places.is_removed_partition(topic):
                raise
        # The broker has removed the partition, since it held nothing. As the official clients do, have it made again:
        # a subscription then keeps what will be written there, also while the query is stopped.
        self._join(topic, "earliest", create=True)
        self._ours.add(topic)
        self._new.add(topic)
        return self._stands(topic)[1]

    def look(self, topic: str) -> TopicState:
        """Return where the topic ends and the subscription stands; it is made again, at the beginning, if it is gone.

        Raises TopicMissing.
        """
        cursor = self._join(topic, "earliest")
        last, stands = self._stands(topic)
        made = cursor.made()
        if made:
            log.warning(
                'the subscription "%s" was missing on %s. It was deleted, it expired '
                "(subscriptionExpirationTimeMinutes), or the topic was made again. It "
                "is made again at the beginning of the topic.",
                self._options.subscription,
                topic,
            )
        return TopicState(last, stands, made)

    def unmake(self, topic: str) -> None:
        """Delete the subscription again that a look has made."""
        self._join(topic, "earliest").delete()
        del self._cursors[topic]

    def unmake_new(self) -> None:
        """Delete the subscriptions that were made for a new query, which is refused. Those that were there stay."""
        for topic in sorted(self._new):
            error = undeleted(self._cursors[topic])
            if error is None:
                del self._cursors[topic]
            else:
                log.warning(
                    'the query never began, and its new subscription "%s" on %s could not be deleted: %s. The broker '
                    "keeps messages for it, as backlog. Delete it, unless you start the query again.",
                    *(self._options.subscription, topic, error),
                )
        self._ours -= self._new
        self._new = set()

    def joined(self, topic: str) -> Subscription | None:
        """Return the subscription of a topic if it is in use."""
        return self._cursors.get(topic)

    def acknowledge(self, topic: str, entry: EntryId) -> None:
        """Let go of this entry and all before it."""
        self._join(topic, "earliest").acknowledge(entry)

    def close(self) -> None:
        """Leave the topics; the subscriptions stay."""
        cursors, self._cursors = self._cursors, {}
        for cursor in cursors.values():
            cursor.close()

    def _begin(self, topic: str, place: EntryId | str, start: Boundary, *, new_query: bool) -> EntryId:
        if isinstance(place, EntryId):
            self._places.must_be_there(topic, place, self._places.last(topic))  # before a subscription is left behind
        back = self._places.before_time(topic, time_of(start, topic)) if place == "time" else None
        if new_query and self._to_reset(topic):
            self._reset(topic, place, back)
        cursor = self._join(topic, "earliest" if isinstance(place, EntryId) or place == "earliest" else "latest")
        if cursor.made():
            self._ours.add(topic)
            if new_query:
                self._new.add(topic)
        last, stands = self._stands(topic)
        if topic not in self._ours:
            wanted = before(place).entry if isinstance(place, EntryId) else back
            return self._found(topic, place, wanted, last, stands, start, new_query=new_query)
        if isinstance(place, EntryId):
            return self._forward(cursor, place)
        if place == "latest":
            back = last  # an open transaction may come after it, some part of it stored already
        if back is None or back >= stands:
            return stands
        cursor.seek(back.next)
        return self._stands(topic)[1]

    def _found(
        self,
        topic: str,
        place: EntryId | str,
        wanted: EntryId | None,
        last: EntryId | None,
        stands: EntryId,
        start: Boundary,
        *,
        new_query: bool,
    ) -> EntryId:
        """Return where a query begins whose subscription was there before: after a crash, or of another query."""
        if place == "latest":
            if not start.given:
                self._say_where(topic, stands)
            return stands  # `begin` tells another query from a start of this one that crashed in its first batch
        first = self._places.sought(topic, BEFORE_ALL)
        wanted = first if wanted is None else wanted
        if not self._messages_between(topic, wanted, stands, last):
            return stands
        if not new_query:
            self._say_where(topic, stands)
            return stands
        if isinstance(place, EntryId) and stands < wanted and not self._messages_between(topic, first, stands, last):
            return self._forward(self._cursors[topic], place)  # our own: a crash came before it was moved
        option = "startingTime" if place == "time" else "startingOffsets"
        raise self._stands_elsewhere(topic, option, wanted, stands)

    def _stands_elsewhere(self, topic: str, option: str, wanted: EntryId, stands: EntryId) -> InvalidInput:
        self._cursors.pop(topic).close()
        return InvalidInput(
            f"{option} begins after {wanted} on {topic}, but the subscription {self._options.subscription!r} exists "
            f"already and stands at {stands}, with messages between the two places. It belongs to another query, "
            "to a checkpoint that was removed, or to a first start that ended before its first batch was planned, or a "
            "command moved it. Choose another subscription for a new query, "
            "or set resetSubscription=true for its first start, which moves the subscription. "
            f"Leave {option} out to go on where the subscription stands."
        )

    def _say_where(self, topic: str, stands: EntryId) -> None:
        log.warning(
            'the subscription "%s" of a new query exists already on %s, and the query begins where it stands, after '
            "%s. To begin elsewhere choose another subscription, or set resetSubscription=true for the first start.",
            self._options.subscription,
            topic,
            stands,
        )

    def _reset(self, topic: str, place: EntryId | str, back: EntryId | None) -> None:
        if isinstance(place, EntryId):
            to = place
        else:
            behind = self._places.last(topic) if place == "latest" else back
            to = BEFORE_ALL if behind is None else behind.next
        if not self._client.move_subscription(topic, self._options.subscription, to):
            raise InvalidInput(
                f"resetSubscription=true must not move the subscription {self._options.subscription!r} on {topic}. A "
                "consumer is connected to it, perhaps of another query. Stop that query first. The connection of a "
                "driver that was killed may take a minute to end."
            )
        self._ours.add(topic)
        log.warning(
            'resetSubscription=true has moved the subscription "%s" on %s to before %s, where the first batch of this '
            "query begins.",
            self._options.subscription,
            topic,
            "everything that is stored" if to == BEFORE_ALL else to,
        )

    def _forward(self, cursor: Subscription, place: EntryId) -> EntryId:
        pinned = before(place).entry
        if place.entry > 0:
            cursor.acknowledge(pinned)
        return pinned

    def _messages_between(self, topic: str, one: EntryId, other: EntryId, last: EntryId | None) -> bool:
        low, high = min(one, other), max(one, other)
        if low == high or last is None or last <= low:
            return False
        try:
            came = self._places.first(topic, low.next).entry
        except DataLost as gone:
            self._places.lose(str(gone))
            return False
        if came <= high:
            return True
        # A broker that passes over a lost ledger acknowledges it for each subscription. It may have held messages.
        self._places.tell_lost(topic, low, high, came)
        return False

    def _stands(self, topic: str) -> tuple[EntryId | None, EntryId]:
        last, stands = self._cursors[topic].last_message_id()
        if stands is None:
            raise InvalidInput(too_old(topic))
        return last, stands

    def _join(self, topic: str, initial: Literal["earliest", "latest"], *, create: bool = False) -> Subscription:
        if topic not in self._cursors:
            self._cursors[topic] = self._client.subscription(
                topic, self._options.subscription, initial=initial, watched=True, create=create
            )
        return self._cursors[topic]
