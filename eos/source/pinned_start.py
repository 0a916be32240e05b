"""Whether the entries after a pinned start are still there. Pure: the brokers are reached by a port.

A pinned start proves nothing by itself. It is where the query's subscription stood before the query had read anything.

- Where the subscription stands there still, the broker has deleted nothing after it.
- Where it stands elsewhere now, or is gone, the start's own entry must still be stored. If the entry is gone too, the
  subscription is not made again until the loss is accepted. Else it would stand at the beginning of what is left, as
  one that the broker has moved, and the next run would go on there.
- One move is the broker's own: a subscription that has read a ledger to its end stands before the next ledger, once the
  first one is closed, and the first one may be deleted then. A message TTL, `skip` and `expire` have the same effect.
  So this is a loss where this process has seen a message between the two places. Otherwise nobody can know, and a
  warning says so. While the start's entry is still stored, nothing keeps it and what comes after it, so it is asked for
  at each look.
- A partition that is gone is as uncertain. A broker removes those that hold nothing, and people delete others.
- The place before the first entry of a ledger, such as 7:-1, is one where brokers put a subscription themselves. Of a
  cursor that is sent there they say that it stands at 6:9, the last entry of the ledger before, while that is stored.
  They delete the oldest ledgers first. So where 6:9 and 7:0 are still stored, nothing is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from eos.pulsar.wire.message_id import EntryId
from eos.source.errors import DataLost, lost, named_by
from eos.source.offsets import BEGINNING, Position
from eos.source.ports import StoredPlaces
from eos.source.ranges import TopicState


def is_before_ledger(pinned: EntryId, found: EntryId, place: Callable[[EntryId], EntryId]) -> bool:
    """Whether a pinned start is the place before a ledger that is stored, as the ledgers before it are.

    On another cluster, or in a topic that was made again, its first entry is not stored, whatever else comes after it.

    Args: the start; where the broker puts a cursor that is sent there; asks the same for a cursor after an entry, which
        stands at that entry where it is stored.
    """
    first = EntryId(pinned.ledger, 0)
    return pinned.entry < 0 and found < pinned and place(first) == first


class PinnedStarts:
    """Proves the pinned starts of one query, as far as that can be done, and remembers what this process has seen."""

    def __init__(
        self, brokers: StoredPlaces, lose: Callable[[str], None], warn: Callable[[str], None], *, lasting: bool
    ) -> None:
        """Args: reaches the brokers; takes losses; takes warnings; whether a loss ends the query."""
        self._brokers = brokers
        self._lose = lose
        self._warn = warn
        self._lasting = lasting
        self._seen: dict[str, dict[int, EntryId]] = {}
        self._told: dict[str, tuple[EntryId, EntryId]] = {}
        self._idle: dict[str, tuple[EntryId, EntryId]] = {}

    def saw(self, topic: str, last: EntryId | None) -> None:
        """Remember the last message of a topic, for each ledger."""
        if last is not None:
            self._seen.setdefault(topic, {})[last.ledger] = last

    def passed(self, topic: str) -> None:
        """Forget what was seen of a topic: the query has read some of it, and its start proves itself."""
        self._seen.pop(topic, None)

    def stored(self, topic: str, start: Position, now: TopicState) -> Position:
        """Return a pinned start; the beginning of the topic, where a loss of what came after it is only warned of."""
        pinned, stands = start.entry, now.stands
        moved = pinned, stands
        if start == BEGINNING or stands == pinned or (not now.made and self._told.get(topic) == moved):
            return start
        comes = now.last is not None and pinned < now.last
        if not comes and not now.made and self._idle.get(topic) == moved:
            return start  # nothing would be read now, so a topic without news is asked about once
        found = self._brokers.place(topic, pinned) if now.left is None else now.left
        own = pinned < stands and stands.entry < 0 and not now.made
        if found == pinned or is_before_ledger(pinned, found, partial(self._brokers.place, topic)):
            if own and comes:  # nothing keeps what is before the place where the subscription stands
                self._see_first(topic, pinned)
            elif own:
                self._idle[topic] = moved
            return start
        if own and not any(pinned < seen < stands for seen in self._seen.get(topic, {}).values()):
            self._warn(_uncertain(topic, pinned, stands))
            self._told[topic] = moved
            return start
        if now.made and now.left is None and self._lasting:  # the start went after the subscription was made again
            self._brokers.unmake(topic)  # it would stand as if it had been moved on, and the next start would go on
        self._lose(_elsewhere(topic, pinned, found) if found < pinned else _unproven(topic, pinned, found, now))
        if now.left is not None:
            self._brokers.look(topic, BEGINNING)  # the loss is accepted, so the subscription is made again
        return BEGINNING

    def _see_first(self, topic: str, pinned: EntryId) -> None:
        with suppress(DataLost):  # it went since the place was asked for, which the next question tells
            self.saw(topic, self._brokers.first(topic, pinned.next).entry)

    def removed(self, topic: str, start: Position) -> Position:
        """Return where a missing partition is read from that the query has read nothing of."""
        last = max(self._seen.pop(topic, {}).values(), default=start.entry)
        if start.entry < last:
            self._lose(
                lost(topic, f"the partition is gone. The query has read it up to {start.entry}, and {last} was there")
            )
        elif start != BEGINNING:
            self._warn(
                f"the partition {topic} is gone. The query has read nothing of it yet. A broker removes partitions "
                "that hold nothing (brokerDeleteInactiveTopicsEnabled). If somebody has deleted it, the messages that "
                "were written to it since the query began are lost. It is read from its beginning when it is there "
                "again."
            )
        return BEGINNING


def _uncertain(topic: str, pinned: EntryId, stands: EntryId) -> str:
    return (
        f"the query was to begin after {pinned} on {topic}. Its subscription stands at {stands} now, and {pinned} is "
        "no longer stored. A broker moves a subscription like this when it closes a ledger that has no unread "
        "messages. A message TTL and commands such as skip do so with a ledger that has some. The source cannot know "
        f"which it was. After a TTL or a command, messages written after {pinned} are lost."
    )


def _elsewhere(topic: str, pinned: EntryId, found: EntryId) -> str:
    return (
        f"the query was to begin after {pinned} on {topic}, but nothing is stored there. The entry before that place "
        f"is {found}. This is another cluster than the one the checkpoint was written with, or the topic was restored "
        "from an older copy. Some messages, or all, would never be read. Start with a new checkpoint."
        f"{named_by('failOnDataLoss')}"
    )


def _unproven(topic: str, pinned: EntryId, found: EntryId, now: TopicState) -> str:
    why = (
        "and the query's subscription was gone: deleted, expired (subscriptionExpirationTimeMinutes), or the topic was "
        "deleted and made again"
        if now.made
        else f"and the query's subscription was moved to {now.stands}, by a message TTL or by a command such as skip, "
        "expire or reset-cursor"
    )
    return lost(
        topic,
        f"the query was to begin after {pinned}, but the topic now begins after {found}, {why}. "
        "Messages between them may have been deleted unread",
    )
