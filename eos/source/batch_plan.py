"""The extent of a batch read. Pure: the brokers are reached by a port.

A batch read ends with the last message that can be delivered when it is planned. An end that the caller names, by an
entry or a time, may be any stored entry. Then reading ends before the first message after it, which there is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from eos.pulsar.wire.message_id import EntryId
from eos.source.boundaries import Boundary, check_named, check_order, place_of, time_of
from eos.source.errors import DataLost
from eos.source.offsets import BEGINNING, Position, before
from eos.source.ports import BatchBrokers
from eos.source.ranges import Range

log = logging.getLogger("eos.source")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The needs of a read for the entries at its boundaries.

    Attributes:
        takes: whether it needs anything of a physical topic.
        from_ms, to_ms: what was published before or after is not needed, where it lies there: milliseconds since 1970.
        compacted: whether it needs only the messages that compaction left, whose times are not known.
    """

    takes: Callable[[str], bool] = lambda topic: True
    from_ms: int | None = None
    to_ms: int | None = None
    compacted: bool = False


EVERYTHING = Wanted()


def fail(what: str) -> None:
    """Raise DataLost. Args: what was lost."""
    raise DataLost(what)


def batch_ranges(
    brokers: BatchBrokers,
    start: Boundary,
    end: Boundary,
    wanted: Wanted = EVERYTHING,
    lose: Callable[[str], None] = fail,
) -> list[Range]:
    """Return one range for each topic partition that has something between the two boundaries, as far as it is wanted.

    Args: reaches the brokers; the two boundaries; what is wanted; takes what is lost while this looks, and raises it,
    or only warns. Default: it is raised.

    Raises TopicMissing. Raises InvalidInput for a boundary that names other topics than are read, and for one past the
    end of the stored entries.
    """
    topics = sorted(brokers.topics(all_named=True))
    check_named(start, topics, "startingOffsets")
    check_named(end, topics, "endingOffsets")
    ranges = []
    for topic in filter(wanted.takes, topics):
        check_order(start, end, topic)
        last = brokers.last(topic)
        if last is None and start.where == "time":
            continue  # perhaps a partition that is missing since it holds nothing: no time can be looked for there
        begin = _begin(brokers, topic, start, last)
        if last is None:
            continue
        finish = min(_finish(brokers, topic, end, last), last)
        if wanted.from_ms is not None and not wanted.compacted:
            begin = max(begin, Position(brokers.before_time(topic, wanted.from_ms), delivered=False), key=_entry)
        if wanted.to_ms is not None and not wanted.compacted:
            finish = min(finish, brokers.before_time(topic, wanted.to_ms + 1))
        if begin.entry < finish:
            part = Range(topic, begin, finish, end_delivered=finish == last, compacted=wanted.compacted)
            if wanted.compacted:
                ranges.append(part)
            else:
                try:
                    ranges += _begun(brokers, part)
                except DataLost as gone:
                    lose(str(gone))
        _warn_if_gone(brokers, topic, start)  # last: what is removed after it takes the first message of the range too
    return ranges


def _begun(brokers: BatchBrokers, part: Range) -> list[Range]:
    """Return a range with the message that its task must begin with; nothing for a range without any."""
    first = brokers.first(part.topic, part.start.entry.next).entry
    # Also where nothing is left before the end: the task of such a range tells what was lost of it.
    wanted = first <= part.end or part.end.ledger < first.ledger or part.end.entry >= 0
    return [replace(part, first=first)] if wanted else []


def _entry(position: Position) -> EntryId:
    return position.entry


def _begin(brokers: BatchBrokers, topic: str, start: Boundary, last: EntryId | None) -> Position:
    if start.where == "time":
        return Position(brokers.before_time(topic, time_of(start, topic)), delivered=False)
    place = place_of(start, topic)
    if place == "earliest":
        return BEGINNING
    if isinstance(place, str):
        return BEGINNING if last is None else Position(last)
    brokers.must_be_there(topic, place, last)
    return before(place)


def _warn_if_gone(brokers: BatchBrokers, topic: str, start: Boundary) -> None:
    """Warn where a read was to begin with an entry that is no longer stored."""
    place = place_of(start, topic) if start.where == "entries" else "earliest"
    if isinstance(place, str):
        return
    begin = before(place)
    if (first := brokers.place(topic, begin.entry)) > begin.entry:
        log.warning(
            "startingOffsets begins at %s on %s, which is no longer stored: the topic begins after %s now. Messages "
            "after %s that retention or a command has deleted are not read. The source cannot know whether there were "
            'any. To read what is left without this warning, name "earliest".',
            *(place, topic, first, begin.entry),
        )


def _finish(brokers: BatchBrokers, topic: str, end: Boundary, last: EntryId) -> EntryId:
    if end.where == "time":
        return brokers.before_time(topic, time_of(end, topic))
    place = place_of(end, topic)
    if isinstance(place, str):
        return last
    brokers.must_be_there(topic, place, last, ends=True)
    return place
