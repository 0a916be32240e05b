"""Where a read begins and ends: what options say of it, and what that means on one topic. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from eos.errors import InvalidInput
from eos.json_reader import read_json
from eos.option_names import first_doubled, whole_number
from eos.pickling import PickledByName
from eos.pulsar.protocol.topics import persistent_name, split_partition
from eos.pulsar.wire.message_id import EntryId

LATEST_MS = 253_402_300_799_999
"""The end of the year 9999: a later time is a mistake, such as microseconds."""

_SECONDS = range(10_000_000, 100_000_000_000)
"""Numbers that are a mistake, such as seconds, or a date like 20260131. As milliseconds they are times up to 1973."""


@dataclass(frozen=True, slots=True)
class Boundary(PickledByName):
    """Where reading begins, or ends.

    Attributes:
        where: "earliest", "latest", "time" or "entries".
        time_ms: for "time": milliseconds since 1970, of every topic that `times` does not have.
        times: for "time": {topic: milliseconds since 1970}; a topic's name stands for all its partitions.
        entries: for "entries": {topic: an entry, "earliest" or "latest"}; a topic's name stands for all its partitions.
        given: whether an option says so; else it is the default.
    """

    where: Literal["earliest", "latest", "time", "entries"]
    time_ms: int = 0
    entries: Mapping[str, EntryId | Literal["earliest", "latest"]] = field(default_factory=dict)
    given: bool = True
    times: Mapping[str, int] = field(default_factory=dict)

    @property
    def named(self) -> set[str]:
        """The topics that it says something of by their names."""
        return {*self.entries, *self.times}


def parse_boundary(
    given: Mapping[str, str | None], offsets: str, time: str, default: Literal["earliest", "latest"]
) -> Boundary:
    """Return where a read begins or ends. Raises InvalidInput.

    Args: the two options that say so, None where one is not given; their names; where it is if neither is given.
    """
    by_offsets, by_time = given[offsets], given[time]
    if by_offsets is not None and by_time is not None:
        raise InvalidInput(f"{offsets} and {time} are two ways to say the same. Give one of them.")
    if by_time is not None:
        if by_time.lstrip().startswith("{"):
            return Boundary("time", times={name: _time(time, text) for name, text in _object(time, by_time).items()})
        return Boundary("time", time_ms=_time(time, by_time))
    if by_offsets is None:
        return Boundary(default, given=False)
    word = by_offsets.strip()
    if word.lower() == "latest":
        return Boundary("latest")
    if word.lower() == "earliest" and offsets == "startingOffsets":
        return Boundary("earliest")
    return Boundary("entries", entries=_by_topic(offsets, word))


def place_of(boundary: Boundary, topic: str) -> EntryId | Literal["earliest", "latest"]:
    """Return where a boundary, other than a time, lies on a physical topic. Raises InvalidInput when it doesn't say."""
    if boundary.where == "earliest" or boundary.where == "latest":
        return boundary.where
    name = topic if topic in boundary.entries else split_partition(topic)[0]
    if name in boundary.entries:
        place = boundary.entries[name]
        if name == topic or isinstance(place, str):
            return place
    raise InvalidInput(
        f'the offsets by topic say nothing of {topic}. Give an entry such as "8:13", "earliest" or "latest" for it, or '
        "one of the words for all partitions of a topic."
    )


def time_of(boundary: Boundary, topic: str) -> int:
    """Return the time of a boundary on a physical topic, in milliseconds since 1970.

    Raises InvalidInput when it names topics, and not this one.
    """
    if not boundary.times:
        return boundary.time_ms
    for name in (topic, split_partition(topic)[0]):
        if name in boundary.times:
            return boundary.times[name]
    raise InvalidInput(
        f"the times by topic say nothing of {topic}. Give a time for it, or for all partitions of its topic."
    )


def check_named(boundary: Boundary, topics: Iterable[str], option: str) -> None:
    """Raise InvalidInput when offsets or times by topic name a topic that isn't read."""
    read = {name for topic in topics for name in (topic, split_partition(topic)[0])}
    if unread := sorted(boundary.named - read):
        option = option.replace("Offsets", "Time") if boundary.times else option
        raise InvalidInput(f"{option} names {unread[0]}, which is not read. Read are {', '.join(sorted(read))}.")


def check_complete(boundary: Boundary, topics: Iterable[str]) -> None:
    """Raise InvalidInput when offsets or times by topic say nothing of one of these physical topics.

    A stream asks before it makes its first subscription, which would keep messages of a query that never began.
    """
    for topic in topics:
        time_of(boundary, topic) if boundary.where == "time" else place_of(boundary, topic)


def check_order(start: Boundary, end: Boundary, topic: str) -> None:
    """Raise InvalidInput when a read of a physical topic by times ends before it begins: it would have no row."""
    if start.where == end.where == "time" and time_of(end, topic) < time_of(start, topic):
        raise InvalidInput(
            f"endingTime is before startingTime on {topic}, so no message could be read. Give a later endingTime."
        )


def _by_topic(option: str, text: str) -> dict[str, EntryId | Literal["earliest", "latest"]]:
    return {name: _place(option, value) for name, value in _object(option, text).items()}


_EXAMPLES = {
    "startingOffsets": '"persistent://public/default/flights-partition-0": "8:13"}, with "ledger:entry", "earliest" or '
    '"latest"',
    "endingOffsets": '"persistent://public/default/flights-partition-0": "8:13"}, with "ledger:entry" or "latest"',
    "Time": '"persistent://public/default/flights": "2026-01-31T12:00:00+00:00"}, with a time',
}


def _object(option: str, text: str) -> dict[str, str]:
    """Return what a JSON object says of each topic. Raises InvalidInput."""
    example = next(one for kind, one in _EXAMPLES.items() if option.endswith(kind))
    expected = f"{option}={text!r} is neither a word it knows nor a JSON object such as {{{example} for each topic"
    try:
        given = read_json(text, _each_once)
    except ValueError as error:
        raise InvalidInput(f"{expected} ({error}).") from error
    if isinstance(given, dict) and option.endswith("Time"):
        given = {topic: str(value) if type(value) is int else value for topic, value in given.items()}
    if not isinstance(given, dict) or not given or not all(isinstance(value, str) for value in given.values()):
        raise InvalidInput(f"{expected}.")
    named = [persistent_name(topic) for topic in given]
    if (doubled := first_doubled(named)) is not None:
        raise InvalidInput(f"{option} names {doubled} twice. Give one place for it.")
    return dict(zip(named, given.values(), strict=True))


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the members of a JSON object. Of two with one name JSON's own reader would take the last in silence."""
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("it has a name twice")
    return found


def _place(option: str, text: str) -> EntryId | Literal["earliest", "latest"]:
    if text == "latest":
        return "latest"
    if text == "earliest" and option == "startingOffsets":
        return "earliest"
    try:
        entry = EntryId.parse(text)
        # "8:-1" is how brokers and `eos lag` name the place before 8:0. No read begins with such an entry.
        return entry.next if option == "startingOffsets" and entry.entry < 0 else entry
    except InvalidInput as error:
        raise InvalidInput(f"{option}: {error}, or a word such as latest.") from error


def _time(option: str, text: str) -> int:
    milliseconds = whole_number(text)
    if milliseconds is not None:
        if milliseconds > LATEST_MS:
            raise InvalidInput(f"{option}={text!r} is after the year 9999. Give milliseconds since 1970.")
        if milliseconds in _SECONDS:
            means = datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")
            raise InvalidInput(
                f"{option}={text!r} means {means}, when nothing was published. Perhaps it is a number of seconds, or a "
                "date. Give milliseconds since 1970, or ISO 8601 with a zone."
            )
        return milliseconds
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InvalidInput(
            f'{option}={text!r} is not a time. Write ISO 8601 with a zone, such as "2026-01-31T12:00:00+00:00", or '
            "milliseconds since 1970."
        )
    return max(0, int(moment.timestamp() * 1000))  # nothing is published before 1970, and no broker looks for it there
