"""How far a read of a compacted topic goes. The rules are those on top of `eos.source.compacted_topic`."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from eos.errors import EntriesGone, InvalidInput, Unanswered
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata
from eos.source.compacted_topic import LOOKS
from eos.source.offsets import BEGINNING, Position
from eos.source.range_reader import read_range
from eos.source.ranges import Range
from eos.source.silence import ReadTimeout
from tests.unit.source.fake_brokers import at

PLANNED = Range("t", BEGINNING, at("5:9"), compacted=True)


@dataclass
class Live:
    """A topic whose reader is given these entries, some at a time; between two looks more is written.

    Attributes:
        arrivals: what comes with each read; a string: what came in place of entries that are gone.
        lasts: the last message, each time that it is asked for; the last of them is repeated.
        again: how often reading began again.
    """

    arrivals: list[list[str] | str]
    lasts: list[str | None]
    again: int = 0
    opened: list[EntryId | None] = field(default_factory=list)

    def open(self, topic: str, start: EntryId | None, permits: int | None, *, stored: bool = False) -> Live:
        assert not stored
        self.opened.append(start)
        return self

    def read(self, timeout_s: float, until: EntryId | None = None) -> list[Entry]:
        arrived = self.arrivals.pop(0) if self.arrivals else []
        if isinstance(arrived, str):
            raise EntriesGone("t", None, at(arrived) if arrived else None)
        return [Entry(at(text), MessageMetadata(), b"", 100) for text in arrived]

    def last_message_id(self) -> tuple[EntryId | None, EntryId | None]:
        last = self.lasts.pop(0) if len(self.lasts) > 1 else self.lasts[0]
        return (None if last is None else at(last)), None

    def begin_again(self) -> None:
        self.again += 1

    def close(self) -> None:
        pass


def fail(what: str) -> None:
    raise InvalidInput(what)


def read(topic: Live, part: Range = PLANNED) -> list[str]:
    return [str(entry.id) for group in read_range(part, topic.open, fail) for entry in group]


def test_a_key_whose_newest_message_came_after_the_planned_end_is_read() -> None:
    """Compaction has taken its older one away: without the newer one the key would be missing."""
    topic = Live([["5:5", "5:9", "6:1"], ["6:2"]], ["6:2", "6:2"])
    assert read(topic) == ["5:5", "5:9", "6:1", "6:2"]
    assert topic.opened == [None]


def test_where_nothing_came_after_the_planned_end_reading_ends_there() -> None:
    assert read(Live([["5:5"], ["5:9"]], ["5:9"])) == ["5:5", "5:9"]


def test_what_was_written_while_the_last_message_was_asked_for_is_read_as_well() -> None:
    assert read(Live([["5:9"], ["6:0"], ["6:1"]], ["6:0", "6:1", "6:1"])) == ["5:9", "6:0", "6:1"]


def test_a_topic_that_is_written_to_faster_than_it_answers_ends() -> None:
    topic = Live([["5:9"], *([f"6:{entry}"] for entry in range(99))], [f"6:{entry}" for entry in range(99)])
    assert len(read(topic)) == LOOKS


def test_what_compaction_has_taken_away_is_not_waited_for() -> None:
    assert read(Live([["5:4"]], ["5:4"])) == ["5:4"], "the end was the newest message of a key that is deleted"
    assert read(Live([], [None])) == []


def test_the_start_itself_is_left_out() -> None:
    topic = Live([["5:3", "5:4"]], ["5:4"])
    assert read(topic, Range("t", Position(at("5:3")), at("5:9"), compacted=True)) == ["5:4"]
    assert topic.opened == [at("5:3")]


def test_entries_that_are_gone_are_a_loss() -> None:
    for found in ("", "5:7"):
        topic = Live([["5:4"], found, ["5:9"]], ["5:9"])
        with pytest.raises(InvalidInput, match=r"data of t was lost: .* cannot be read whole"):
            read(topic)
        told: list[str] = []
        came = [str(one.id) for some in read_range(PLANNED, Live([["5:4"], found, ["5:9"]], ["5:9"]).open, told.append)
                for one in some]  # fmt: skip
        assert (came, len(told)) == (["5:4", "5:9"] if found else ["5:4"], 1)


def test_a_silence_before_the_last_message_ends_by_itself_or_with_an_error() -> None:
    assert read(Live([["5:4"], [], [], [], [], [], ["5:9"]], ["5:9"])) == ["5:4", "5:9"]
    now = iter(range(0, 10_000, 10))
    silent = ReadTimeout(40.0, lambda: float(next(now)))
    with pytest.raises(Unanswered, match="nothing came"):
        list(read_range(PLANNED, Live([["5:4"]], ["5:9"]).open, fail, timeout=silent))
