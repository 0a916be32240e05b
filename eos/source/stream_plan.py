"""The extent of a micro-batch: its end, and the range of each task. Pure: the brokers are reached by a port.

The rules. A broker taught each of them by breaking something else:

- The end is the last message that can be delivered now, never a marker or an aborted entry, so a
  task that reads towards it always arrives. It is never before the start.
- A start that is a delivered message must still be stored. If it lies after the last message, this is another cluster,
  or the topic was made again.
- The first position of a topic is pinned in the query's durable subscription before anything is
  planned. The end of the first batch holds it too, and the checkpoint has that end before anything is read. So a batch
  0 that is read again begins where it was planned to, wherever the subscription stands by then.
- Spark asks where a query begins before it has batch 0 planned, and again after a crash if batch 0 was planned and not
  committed. The question is the same, so nothing is looked at for it. No subscription is made, moved or compared with
  the options until Spark has batch 0 planned, since batch 0 may still need what the subscription keeps.
- Acknowledged is what lies before `start`, in `latest(start)`: Spark asks that once its commit log
  has `start`. The start itself stays, as the proof for the next batch. A run that has acknowledged nothing yet asks
  first whether the start is stored, since it may have been started on another cluster.
- A topic that appears while the query runs is first pinned, with no data, and read from the next
  micro-batch on. So the start of every range is in the checkpoint. It is read from its first message on, wherever the
  subscription of an earlier run stands.
- A topic that is deleted goes partition by partition, and last its number of partitions. So one that is told to be
  there may be gone when it is asked, and is a loss like one that is not told of. Not so a partition that the query has
  read nothing of: a broker removes those that hold nothing.
- A pinned position proves nothing by itself: `eos.source.pinned_start` has what is known of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from eos.errors import InvalidInput, TopicMissing
from eos.pulsar.wire.message_id import EntryId
from eos.source.batch_pace import Limits, Minimum, Pace
from eos.source.boundaries import Boundary, check_complete, check_named
from eos.source.errors import DataLost, gone, lost, no_start, unselected
from eos.source.offsets import BEGINNING, UNPLANNED, Offsets, Position
from eos.source.pinned_start import PinnedStarts
from eos.source.ports import StreamBrokers
from eos.source.range_splitter import Splitter, whole
from eos.source.ranges import Range

_MOST_ENTRIES = 2**31 - 1
"""More than a ledger has. A number of 63 bits after a start would be a negative one for the broker."""


class StreamPlan:
    """The plan of one query, in its planner process. `losses` counts the losses of data that it has warned of."""

    def __init__(
        self,
        brokers: StreamBrokers,
        start: Boundary,
        *,
        fail_on_data_loss: bool,
        warn: Callable[[str], None],
        split: Splitter = whole,
        pace: Pace | None = None,
        minimum: Minimum | None = None,
    ) -> None:
        """Args: reaches the brokers; where a new query begins; whether a loss ends the query; takes warnings; cuts
        ranges; limits batches to what takes the wanted time; has batches wait until there is enough."""
        self._brokers = brokers
        self._start = start
        self._fail_on_data_loss = fail_on_data_loss
        self._warn = warn
        self.losses = 0
        self._split = split
        self._pinned_starts = PinnedStarts(brokers, self._lose, warn, lasting=fail_on_data_loss)
        self._pace = pace
        self._minimum = minimum
        self._acknowledged: dict[str, EntryId] = {}
        self._sizes: dict[str, int] = {}
        self._until: dict[str, EntryId | None] | None = None
        self._turn = 0
        self._begins: Offsets | None = None

    def first(self) -> Offsets:
        """Return that the query begins where the plan of its first batch finds, or has found."""
        return UNPLANNED

    def stop_at_what_is_there(self) -> None:
        """From now on behave as if nothing came after what the topics hold now (Trigger.AvailableNow)."""
        self._until = self._lasts()

    def latest(self, start: Offsets, limits: Limits | None) -> Offsets:
        """Return the end of the batch that begins at `start`, and acknowledge everything before `start`.

        Args: what Spark's commit log has; the options' limits, or None for all that there is.
        Raises InvalidInput for what is lost, unless a loss is only warned of. Raises TopicMissing, InvalidInput where
        a query can't begin.
        """
        if start != UNPLANNED:
            found = self._ends(start, limits)
            return start if found == start.topics else Offsets(found)
        if self._begins is not None:
            return Offsets(self._ends(self._begins, limits), self._begins.topics)
        with self._brokers.beginning():  # to the end of the plan: Spark keeps nothing of a batch 0 that has none
            begins = self._begun()
            found = self._ends(begins, limits)
        self._begins = begins  # from here on Spark may have the plan, which needs the subscriptions
        return Offsets(found, begins.topics)

    def newest(self) -> Offsets:
        """Return the position after the last message of each topic that has one, for Spark's progress."""
        return Offsets({topic: Position(last) for topic, last in self._lasts().items() if last is not None})

    def ranges(self, start: Offsets, end: Offsets) -> list[Range]:
        """Return what the tasks of a batch read. The same offsets give the same ranges.

        Raises InvalidInput when an end lies before its start, unless a loss is only warned of, and when there is no
        start.
        """
        if start == end:
            return []
        starts = {**start.topics, **end.starts}  # the first batch begins where it was planned to
        ranges = []
        for topic, finish in sorted(end.topics.items()):
            begin, first = starts.get(topic), None
            if not finish.delivered or begin == finish:
                continue  # the topic is only pinned in this batch, or brought nothing
            if begin is None:
                raise InvalidInput(no_start(topic, finish.entry))
            if finish.entry <= begin.entry:
                self._lose(_moved(topic, begin, finish.entry))
                if begin.delivered and begin.entry.ledger == finish.entry.ledger:
                    continue  # what is left lies before the start in its own ledger, and was read
                begin = BEGINNING
            elif not begin.delivered:
                begin, first = self._proven(topic, begin)
            ranges.append(Range(topic, begin, finish.entry, first=first))
        return self._split(ranges)

    def _begun(self) -> Offsets:
        topics = sorted(self._brokers.topics(all_named=True))
        check_named(self._start, topics, "startingOffsets")
        check_complete(self._start, topics)
        begins = {}
        for topic in topics:
            try:
                begins[topic] = Position(self._brokers.begin(topic, self._start), delivered=False)
            except TopicMissing:
                if not self._brokers.is_removed_partition(topic):
                    raise  # else it holds nothing, and is pinned when it comes again
        return Offsets(begins)

    def _ends(self, start: Offsets, limits: Limits | None) -> dict[str, Position]:
        """Return where a batch that begins at `start` ends, with the topics that it pins."""
        there = sorted(self._topics_now(start))
        starts = {topic: start.topics[topic] for topic in there if topic in start.topics}
        ends = {}
        for topic, position in starts.items():
            try:
                ends[topic] = self._end(topic, position)
            except TopicMissing:
                if not position.delivered and self._brokers.is_removed_partition(topic):
                    ends[topic] = self._pinned_starts.removed(topic, position)
                else:
                    self._lose(gone(topic, position.entry))
        if limits is not None:
            if self._waits(starts, ends):
                ends |= {topic: starts[topic] for topic in _moving(starts, ends)}
            self._limit(starts, ends, limits)
        fresh = {}
        for topic in there:
            if topic not in start.topics:
                with suppress(TopicMissing):
                    fresh[topic] = Position(self._brokers.pin(topic), delivered=False)
        return {**ends, **fresh}

    def _there(self) -> list[str]:
        return sorted(self._brokers.topics(all_named=False))

    def _topics_now(self, start: Offsets) -> set[str]:
        there = set(self._brokers.topics(all_named=False, read=start.topics))
        for topic in sorted(start.topics.keys() - there):
            position = start.topics[topic]
            if not self._brokers.selects(topic):
                self._lose(unselected(topic, position.entry))
            elif not position.delivered and self._brokers.is_removed_partition(topic):
                there.add(topic)  # no list has a topic of a pattern all of whose partitions are removed
            else:
                self._lose(gone(topic, position.entry))
        return there if self._until is None else there & (self._until.keys() | start.topics.keys())

    def _lasts(self) -> dict[str, EntryId | None]:
        """Return the last message of each topic, None where there is none; nothing of a topic that is gone."""
        lasts = {}
        for topic in self._there():
            with suppress(TopicMissing):
                lasts[topic] = self._brokers.last(topic)
                self._pinned_starts.saw(topic, lasts[topic])
        return lasts

    def _end(self, topic: str, start: Position) -> Position:
        now = self._brokers.look(topic, start)
        last = now.last
        if now.made:
            self._acknowledged.pop(topic, None)
        if not start.delivered:
            start = self._pinned_starts.stored(topic, start, now)
            self._pinned_starts.saw(topic, last)
        else:
            self._pinned_starts.passed(topic)
            if last is None or last < start.entry:
                self._lose(_moved(topic, start, last))
                return BEGINNING if last is None else Position(last)
            self._release(topic, start.entry, last)
        if self._until is not None:
            bound = self._until.get(topic)
            last = None if bound is None or last is None else min(last, bound)
        return start if last is None or last <= start.entry else Position(last)

    def _proven(self, topic: str, start: Position) -> tuple[Position, EntryId | None]:
        """Return the pinned start of a range, and the message with which the task must begin; None: with any.

        The start is checked again, since a batch may be read again without being planned again. It is checked after the
        message was looked up: what is removed before the task reads takes that message too, and the task tells.
        """
        first = None
        try:
            with suppress(DataLost):  # the task finds nothing either, and tells
                first = self._brokers.first(topic, start.entry.next).entry
            proven = self._pinned_starts.stored(topic, start, self._brokers.look(topic, start))
        except TopicMissing:
            return start, None  # the task that reads it tells
        return proven, first if proven == start else None

    def _release(self, topic: str, start: EntryId, last: EntryId) -> None:
        # The start stays stored, as the proof of the next batch.
        if self._acknowledged.get(topic) == start:
            return
        # On another cluster than the one the checkpoint was written with nothing before such an entry was read.
        if topic not in self._acknowledged and start != last and self._brokers.place(topic, start) != start:
            return  # the task tells
        self._brokers.release(topic, start)
        self._acknowledged[topic] = start

    def _waits(self, starts: Mapping[str, Position], ends: Mapping[str, Position]) -> bool:
        if self._minimum is None or self._until is not None:
            return False
        waiting = [_most_entries(starts[topic], ends[topic].entry) for topic in _moving(starts, ends)]
        known = None if None in waiting else sum(one for one in waiting if one is not None)
        return bool(waiting) and not self._minimum.reached(known)

    def _limit(self, starts: Mapping[str, Position], ends: dict[str, Position], limits: Limits) -> None:
        """Move the ends back so that the batch has at most so many entries, or about so many bytes."""
        pace = self._pace.entries() if self._pace is not None else None
        moving = _moving(starts, ends)
        if not moving:
            return
        self._turn += 1
        turn = self._turn % len(moving)
        moving = moving[turn:] + moving[:turn]  # the first is served when there is not one entry for each
        uncut = dict(ends)
        entries = min((limit for limit in (limits.entries, pace) if limit is not None), default=None)
        if entries is not None:
            sizes = {topic: _most_entries(starts[topic], ends[topic].entry) for topic in moving}
            for topic, share in shares(sizes, entries).items():
                ends[topic] = self._cut(topic, starts[topic], ends[topic], share)
        paced = dict(ends)
        if limits.bytes is not None:
            for topic in moving:
                share = max(1, limits.bytes // len(moving) // self._size(topic, starts[topic]))
                ends[topic] = self._cut(topic, starts[topic], ends[topic], share)
        if self._pace is not None and entries == pace and uncut != paced == ends:
            self._pace.has_cut()

    def _cut(self, topic: str, start: Position, end: Position, entries: int) -> Position:
        """Return the end of at most so many entries after `start`: a delivered one, or `start` for none.

        Entries are numbered without a gap within a ledger, so the first message at or after `start` plus `entries` ends
        a range of at most that many, also where the ledger ends before it.
        """
        if entries == 0:
            return start
        place = EntryId(start.entry.ledger, start.entry.entry + min(entries, _MOST_ENTRIES))
        if place >= end.entry:
            return end
        try:
            found = self._brokers.first(topic, place)
        except DataLost as loss:
            self._lose(str(loss))
            return end
        self._sizes[topic] = found.size
        return Position(found.entry)  # never after `end`, which is a message too

    def _size(self, topic: str, start: Position) -> int:
        if topic not in self._sizes:
            behind = start.entry.next
            try:
                self._sizes[topic] = self._brokers.first(topic, behind).size
            except DataLost as loss:
                self._lose(str(loss))
                return 1
        return max(1, self._sizes[topic])

    def _lose(self, what: str) -> None:
        if self._fail_on_data_loss:
            raise DataLost(what)
        self.losses += 1
        self._warn(what)


def shares(sizes: Mapping[str, int | None], budget: int) -> dict[str, int]:
    """Divide a number of entries among topics: evenly, but none gets more than it has.

    Where there is less than one for each, the first topics get one.

    Args: {topic: entries that it has at most, None where that is not known}; entries to divide.
    """
    if budget < len(sizes):
        return {topic: int(place < budget) for place, topic in enumerate(sizes)}
    given: dict[str, int] = {}
    order = sorted(sizes, key=lambda topic: (sizes[topic] is None, sizes[topic] or 0))
    for served, topic in enumerate(order):
        share = -(-budget // (len(order) - served))
        size = sizes[topic]
        given[topic] = min(share, budget) if size is None else min(share, size, budget)
        budget -= given[topic]
    return given


def _moving(starts: Mapping[str, Position], ends: Mapping[str, Position]) -> list[str]:
    return [topic for topic in ends if starts[topic].entry < ends[topic].entry]


def _most_entries(start: Position, end: EntryId) -> int | None:
    return end.entry - start.entry.entry if end.ledger == start.entry.ledger else None


def _moved(topic: str, start: Position, last: EntryId | None) -> str:
    found = "no message at all" if last is None else f"nothing behind {last}"
    return lost(
        topic,
        f"the query has read up to {start.entry}, but the topic now holds {found}. It was made again or truncated, its "
        "subscription was moved, or this is another cluster than the one the checkpoint was written with",
    )
