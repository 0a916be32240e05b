"""The messages that a subscription has not acknowledged, counted, beside the broker's own figure.

A broker's `msgBacklog` counts stored entries, transaction markers and the entries of aborted transactions among them. A
reader never gets those, so the figure of a subscription that has read everything need not be 0, and a topic written by
transactions seems to lag more the smaller they are. The command reads the entries after the subscription's position,
and counts those that arrive. It acknowledges nothing. The admin API says where the subscription stands.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from eos.errors import EntriesGone, InvalidInput
from eos.pulsar.net.admin import if_there
from eos.pulsar.net.read_proof import LOOKS
from eos.pulsar.wire.message_id import EntryId
from eos.source.silence import SILENCE_S, USUAL_TIMEOUT, Silence

if TYPE_CHECKING:
    from eos.pulsar.net.admin import Admin
    from eos.pulsar.net.client import Client
    from eos.pulsar.net.entries import EntryReader
    from eos.pulsar.wire.entry import Entry

_RANGE = re.compile(r"\((-?\d+):(-?\d+)\.\.(-?\d+):(-?\d+)\]")  # LongPairRangeSet.toString: open, closed

Progress = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class SubscriptionLag:
    """The messages that a durable subscription has not acknowledged on one physical topic.

    Attributes:
        topic: the physical topic's full name.
        subscription: its name.
        position: the entry up to which everything is acknowledged, "ledger:entry".
        entries: how many it will get of those that were readable when they were counted. An entry counts whole
            where some of its messages are acknowledged, since the broker does not tell which.
        messages: how many these hold; a chunked one counts once.
        oldest_ms: when the oldest of them was published, in milliseconds since 1970; None where there is none.
        whole: False where counting ended at the limit, so that there are at least so many.
        broker_backlog: the broker's own figure, `msgBacklog`.
    """

    topic: str
    subscription: str
    position: str
    entries: int
    messages: int
    oldest_ms: int | None
    whole: bool
    broker_backlog: int


def lag(
    client: Client,
    admin: Admin,
    topic: str,
    subscription: str | None,
    at_most: int,
    progress: Progress = lambda topic, entries: None,
) -> Iterator[SubscriptionLag]:
    """Count what subscriptions of a topic have not read, partition by partition.

    Args:
        topic: its full name, or that of one partition.
        subscription: which one; None for every durable one. A partition that does not have it is left out.
        at_most: messages to count for each partition and subscription.
        progress: called with the physical topic, and how many entries were read so far.

    Raises InvalidInput where no partition has the subscription; TopicMissing; NetworkError where brokers or the admin
    API do not answer, or refuse to tell.
    """
    stats = {one: if_there(admin.internal_stats, one) for one in client.physical_topics(topic)}
    # Brokers tell the cursors by the names of their files in ZooKeeper: encoded, as a part of a URL is.
    cursors = {
        one: {unquote_plus(name): cursor for name, cursor in told["cursors"].items()}
        for one, told in stats.items()
        if told is not None
    }
    durable = {one: [name for name in admin.subscriptions(one) if name in named] for one, named in cursors.items()}
    known = sorted({name for names in durable.values() for name in names})
    if subscription is not None and subscription not in known:
        told = ", ".join(f'"{name}"' for name in known) or "none"
        raise InvalidInput(
            f'{topic} has no durable subscription "{subscription}". Its durable subscriptions are {told}'
        )
    for one, names in durable.items():
        backlogs = admin.backlog(one).subscriptions
        for name in names:
            if subscription in (None, name):
                position, acknowledged = _acknowledged(cursors[one][name])
                count = _Count(at_most)
                for entry in _behind(client, one, position, progress):
                    if not acknowledged(entry.id) and not count.add(entry):
                        break
                yield count.lag(one, name, position, backlogs.get(name, 0))


class _Count:
    """Counts the messages of entries, up to a limit."""

    def __init__(self, at_most: int) -> None:
        self._at_most = at_most
        self._entries = self._messages = 0
        self._oldest_ms: int | None = None
        self._whole = True

    def add(self, entry: Entry) -> bool:
        """Count an entry; False: the limit is reached, and this one was not counted."""
        if self._messages >= self._at_most:
            self._whole = False
            return False
        about = entry.metadata
        self._entries += 1
        self._messages += entry.num_messages if about.chunk_id + 1 >= about.num_chunks_from_msg else 0
        self._oldest_ms = min(about.publish_time, self._oldest_ms or about.publish_time)
        return True

    def lag(self, topic: str, subscription: str, position: EntryId, broker_backlog: int) -> SubscriptionLag:
        """Return what was counted, of a subscription that stands there."""
        counted = self._entries, self._messages, self._oldest_ms, self._whole
        return SubscriptionLag(topic, subscription, str(position), *counted, broker_backlog)


def _behind(client: Client, topic: str, position: EntryId, progress: Progress) -> Iterator[Entry]:
    """Yield the entries after a position that are readable now. Raises Unanswered when they do not come."""

    def opened(topic: str, start: EntryId | None, permits: int | None, *, stored: bool = False) -> EntryReader:
        return client.entry_reader(topic, start, stored=stored)

    with (
        closing(opened(topic, position.next, None)) as reader,
        closing(Silence(topic, opened, USUAL_TIMEOUT)) as silence,
    ):
        end, _ = reader.last_message_id()
        if end is None or end <= position:  # this reader would be given all from the earliest on
            return
        for read, entry in enumerate(_up_to(client, reader, position, end, silence), 1):
            progress(topic, read)
            if entry.id > position:
                yield entry


def _up_to(client: Client, reader: EntryReader, came: EntryId, end: EntryId, silence: Silence) -> Iterator[Entry]:
    while True:
        try:
            arrived = reader.read(SILENCE_S)
        except EntriesGone as gone:  # nobody will get what is deleted
            if gone.found is None and _rest_hidden(client, reader, came):
                return
            continue
        for entry in arrived:
            if entry.id > end:
                return
            yield entry
        if arrived:
            came = arrived[-1].id
            silence.ends()
            done = came >= end
        else:
            last, _ = reader.last_message_id()
            done = last is None or last < end  # what was the end is deleted by now
            if not done and silence.lasts(came, end):
                done = _rest_hidden(client, reader, came)
        if done:
            return


def _rest_hidden(client: Client, reader: EntryReader, came: EntryId) -> bool:
    """Whether a broker leaves out all entries that are stored after an entry, as where an entry filter rejects them.

    A reader that begins there is asked, since the broker acknowledges for it each entry that it leaves out.
    """
    reader.begin_again()  # the topic may have room for one consumer
    with client.entry_reader(reader.topic, came.next) as behind:
        try:
            any(behind.read(SILENCE_S) for _ in range(2 * LOOKS))
        except EntriesGone as gone:
            return gone.found is None
    return False


def _acknowledged(cursor: dict[str, Any]) -> tuple[EntryId, Callable[[EntryId], bool]]:
    """Return a cursor's place, and a function that tells whether it acknowledged a later entry singly."""
    ledger, entry = (int(part) for part in cursor["markDeletePosition"].split(":"))
    ranges = sorted(
        (EntryId(int(one[1]), int(one[2])), EntryId(int(one[3]), int(one[4])))
        for one in _RANGE.finditer(cursor.get("individuallyDeletedMessages") or "")
    )
    firsts = [first for first, _ in ranges]

    def acknowledged(later: EntryId) -> bool:
        place = bisect_left(firsts, later)  # a broker keeps 10,000 ranges, and none overlaps another
        return place > 0 and later <= ranges[place - 1][1]

    return EntryId(ledger, entry), acknowledged
