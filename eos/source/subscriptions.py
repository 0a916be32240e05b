"""The durable subscription of a streaming query on each of its topics: where it begins, and where it stands."""

from __future__ import annotations

import logging
from functools import partial

from eos.errors import InvalidInput, NetworkError, Refused, TopicMissing
from eos.pulsar.net.client import Client
from eos.pulsar.net.subscription import Initial, Subscription
from eos.pulsar.wire.message_id import EntryId
from eos.source.boundaries import Boundary, place_of, time_of
from eos.source.errors import DataLost, left_behind
from eos.source.offsets import BEGINNING, Position, before
from eos.source.options import SourceOptions
from eos.source.pinned_start import is_before_ledger
from eos.source.ports import TopicEntries
from eos.source.ranges import TopicState

log = logging.getLogger("eos.source")

BEFORE_ALL = EntryId(-1, -1)
"""The entry that a cursor is sent to, so that it stands before everything that is stored."""

_OTHER_NAME = (
    "the subscription of the old name is still there, and the broker keeps messages for it on each of its topics. "
    "Delete it: pulsar-admin topics unsubscribe."
)
_OTHER_TOPICS = (
    "The name is made of subscriptionPrefix and of the topics' names. If the query has other topics than before, "
    f"{_OTHER_NAME} Give the name by the option subscription, and it stays the same."
)
_OTHER_OPTION = f"If the option subscription had another value before, {_OTHER_NAME}"


def too_old(topic: str) -> str:
    """Return the message for a broker that does not tell a position. Args: the physical topic."""
    return f"the broker does not say where a subscription stands on {topic}. It is older than Pulsar 2.10"


def undeleted(cursor: Subscription) -> NetworkError | InvalidInput | None:
    """Delete a subscription; return why it may still be there, None where it is gone, perhaps with its topic."""
    try:
        cursor.delete()
    except TopicMissing:
        return None
    except (NetworkError, InvalidInput) as error:
        return error
    return None


class StartGone(Exception):
    """The subscription is missing, and so is the place where the query is to begin. It was not made again.

    It is no EosError, since asking again changes nothing.

    Attributes:
        left: the entry after which the topic begins now, or with which it ends.
    """

    def __init__(self, left: EntryId) -> None:
        """Args: as the attribute."""
        super().__init__(left)
        self.left = left


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
        self._made: set[str] = set()
        self._unread: dict[str, EntryId] = {}

    def begin(self, topic: str, start: Boundary) -> EntryId:
        """Make sure that the subscription of a new query exists. Return where it stands, and the first batch begins.

        Called where Spark plans batch 0, and never where batch 0 was planned before a crash. A crash may come between
        any two steps here, and the query then begins again. So a new subscription for "latest" or a time begins after
        everything, and is only ever moved back, to a place after all that an earlier try can have read. A subscription
        that was there before must stand where the query is to begin, unless it is to be reset. Else the query would
        skip messages, or read some that it does not want.

        Raises TopicMissing; InvalidInput for a start that isn't there, for a subscription that stands elsewhere, and
        for one that can't be reset.
        """
        pinned = self._found_or_made(topic, start)
        if self._options.reset_subscription:  # also where it was reset, and what came after that has failed
            return pinned
        if start.given and topic not in self._ours and start.where != "time" and place_of(start, topic) == "latest":
            last = self._places.last(topic)
            if last is not None and self._messages_between(topic, pinned, last, last):
                raise self._stands_elsewhere(topic, "startingOffsets", last, pinned)
        return pinned

    def pin(self, topic: str) -> EntryId:
        """Return the place before the first message of a topic that appears while the query runs.

        The subscription is made there, or moved back to it: an earlier run of the query may have left one. It has read
        the topic where the checkpoint is an older one, or where the topic was taken out of the options for a while.
        Raises TopicMissing.
        """
        self._unread.pop(topic, None)  # of a topic of this name that is gone
        cursor = self._join(topic, "earliest")
        if topic in self._made:
            self._new.add(topic)
        last, stands = self._stands(topic)
        if topic in self._made:
            self._made.discard(topic)
            return stands
        first = self._places.sought(topic, BEFORE_ALL)
        if stands.entry >= 0 and (left := self._places.sought(topic, stands.next)) != stands:
            self._places.lose(left_behind(topic, stands, left))
        elif not self._messages_between(topic, first, stands, last):
            if stands.entry < 0 and stands <= first:
                self._say_perhaps_moved(topic, stands)
            return stands
        log.warning(
            'the topic %s is new to the checkpoint, but the subscription "%s" exists and stands at %s. An earlier run '
            "of the query has read the topic, or a command has moved the subscription. The query reads the topic from "
            "its first stored message on. Rows that the earlier run has read come again. If messages before %s were "
            "deleted, they are missing. The source cannot know whether there were any.",
            *(topic, self._options.subscription, stands, first.next),
        )
        cursor.seek(first.next)
        return self._stands(topic)[1]

    def _say_perhaps_moved(self, topic: str, stands: EntryId) -> None:
        """Warn of a place before the first ledger that is stored, where a broker also moves a subscription itself."""
        log.warning(
            'the topic %s is new to the checkpoint, but the subscription "%s" exists and stands at %s, before the '
            "first message. An earlier run of the query has made it, and may have read nothing yet. If there were "
            "messages before %s, the earlier run has read them, or a message TTL or a command such as skip has moved "
            "the subscription past them, and they are deleted. They are missing then. The source cannot know whether "
            "there were any.",
            *(topic, self._options.subscription, stands, stands.next),
        )

    def _to_reset(self, topic: str) -> bool:
        return self._options.reset_subscription and topic not in self._ours

    def _found_or_made(self, topic: str, start: Boundary) -> EntryId:
        place: EntryId | str = "time" if start.where == "time" else place_of(start, topic)
        try:
            return self._begin(topic, place, start)
        except TopicMissing:
            if isinstance(place, EntryId) or not self._places.is_removed_partition(topic):
                raise
        # The broker has removed the partition, since it held nothing. As the official clients do, have it made again:
        # a subscription then keeps what will be written there, also while the query is stopped.
        self._join_or_make(topic, "earliest", create=True)
        return self._stands(topic)[1]

    def look(self, topic: str, start: Position) -> TopicState:
        """Return where the topic ends and the subscription stands. It is made again, at the beginning, if it is gone.

        It is not made again where this would hide a loss: it would stand as if a broker had moved it, and the next run
        would go on with what is left.

        Args: the physical topic; where the next batch begins. Raises TopicMissing.
        """
        self._unread.pop(topic, None)
        if not start.delivered and start != BEGINNING:
            self._unread[topic] = start.entry
        try:
            self._join(topic, "earliest")
            last, stands = self._stands(topic)
        except StartGone as gone:
            self._cursors.pop(topic, None)
            return TopicState(self._places.last(topic), gone.left, made=True, left=gone.left)
        made = topic in self._made
        if made:
            self._made.discard(topic)
            log.warning(
                'the subscription "%s" was missing on %s. It was deleted, it expired '
                "(subscriptionExpirationTimeMinutes), or the topic was made again. It "
                "is made again at the beginning of the topic. %s",
                self._options.subscription,
                topic,
                _OTHER_TOPICS if self._options.subscription != self._options.prefix else _OTHER_OPTION,
            )
        return TopicState(last, stands, made)

    def unmake(self, topic: str) -> None:
        """Delete the subscription again that a look has made; warn where that fails."""
        if (error := self._deleted(topic)) is not None:
            log.warning(
                'the subscription "%s" on %s was missing and was made again, which hides a loss from the next run. It '
                "could not be deleted: %s. Delete it before you start the query again.",
                *(self._options.subscription, topic, error),
            )

    def unmake_new(self) -> None:
        """Delete the subscriptions that were made for a new query, which is refused. Those that were there stay."""
        unreached: NetworkError | InvalidInput | None = None
        for topic in sorted(self._new):
            if (error := unreached or self._deleted(topic)) is None:
                continue
            if not isinstance(error, Refused | InvalidInput):
                unreached = error  # to ask for each of them would take as long again
            log.warning(
                'the query never began, and its new subscription "%s" on %s could not be deleted: %s. The broker '
                "keeps messages for it, as backlog. Delete it, unless you start the query again.",
                *(self._options.subscription, topic, error),
            )
        self._ours -= self._new
        self._new = set()

    def _deleted(self, topic: str) -> NetworkError | InvalidInput | None:
        """Delete a subscription; return why it may still be there, None where it is gone."""
        self._unread.pop(topic, None)
        try:
            error = undeleted(self._join(topic, "earliest"))
        except TopicMissing:
            error = None
        except (NetworkError, InvalidInput) as unjoined:
            error = unjoined
        if error is None:
            self._cursors.pop(topic, None)
        self._made.discard(topic)
        return error

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

    def _begin(self, topic: str, place: EntryId | str, start: Boundary) -> EntryId:
        if isinstance(place, EntryId):
            self._places.must_be_there(topic, place, self._places.last(topic))  # before a subscription is left behind
        back = self._places.before_time(topic, time_of(start, topic)) if place == "time" else None
        if self._to_reset(topic):
            self._reset(topic, place, back)
        cursor = self._join_or_make(topic, "latest" if place in ("latest", "time") else "earliest")
        last, stands = self._stands(topic)
        if topic not in self._ours:
            wanted = before(place).entry if isinstance(place, EntryId) else back
            return self._found(topic, place, wanted, last, stands, start)
        if isinstance(place, EntryId):
            return self._forward(topic, cursor, place)
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
    ) -> EntryId:
        """Return where a query begins whose subscription was there before: after a crash, or of another query."""
        if place == "latest":
            if not start.given:
                self._say_where(topic, stands)
            return stands  # `begin` tells another query from a start of this one that crashed before its first batch
        first = self._places.sought(topic, BEFORE_ALL)
        wanted = first if wanted is None else wanted
        if not self._messages_between(topic, wanted, stands, last):
            return stands
        if isinstance(place, EntryId) and stands < wanted and not self._messages_between(topic, first, stands, last):
            return self._forward(topic, self._cursors[topic], place)  # our own: a crash came before it was moved
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

    def _forward(self, topic: str, cursor: Subscription, place: EntryId) -> EntryId:
        pinned = before(place).entry
        if pinned.entry < 0:  # before the first entry of a ledger: a cursor stands after the ledger before, if there is
            pinned = min(pinned, self._places.sought(topic, place))  # a later place is a loss, which the look tells
        if pinned.entry >= 0:
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

    def _join_or_make(self, topic: str, initial: Initial, *, create: bool = False) -> Subscription:
        """Join the subscription of a new query, and note if the query makes it, or perhaps does: no answer says so."""
        if create:
            self._made.add(topic)
        try:
            return self._join(topic, initial, create=create)
        except (Refused, TopicMissing):
            self._made.discard(topic)
            raise
        finally:
            if topic in self._made:
                self._made.discard(topic)
                self._ours.add(topic)
                self._new.add(topic)

    def _join(self, topic: str, initial: Initial, *, create: bool = False) -> Subscription:
        if topic not in self._cursors:
            name, missing = self._options.subscription, partial(self._is_missing, topic)
            self._cursors[topic] = self._client.subscription(
                topic, name, initial=initial, missing=missing, create=create
            )
        return self._cursors[topic]

    def _is_missing(self, topic: str) -> None:
        """Note that a join is about to make the subscription. Raises StartGone where it must not."""
        if (pinned := self._unread.get(topic)) is not None:
            # Asked before it is made: a kill, or a question without an answer, then leaves nothing that hides the loss.
            left = self._places.sought(topic, pinned.next)
            if left != pinned and not is_before_ledger(pinned, left, lambda one: self._places.sought(topic, one.next)):
                raise StartGone(left)
        self._made.add(topic)
