"""How a task reads its range. The rules are those on top of `eos.source.range_reader`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from eos.errors import EntriesGone, InvalidInput, TopicMissing
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata
from eos.source import range_reader
from eos.source.offsets import Position
from eos.source.range_reader import first_behind, read_range
from eos.source.ranges import Range
from tests.unit.source.fake_brokers import at

SILENCE: list[str] = []


@dataclass
class Script:
    """Readers of one topic: each takes the next of `scripts`, and hands out what stands there, and nothing after it.

    Attributes:
        scripts: of each reader: entries that arrive together, or the first entry that comes after a gap.
        last: the last message that the broker can deliver.
        opened: where each reader was to begin, and whether a message must be there.
    """

    scripts: list[list[list[str] | str]]
    last: str | None = None
    size: int = 100
    opened: list[tuple[EntryId | None, bool]] = field(default_factory=list)
    closed: int = 0
    asked: int = 0
    again: int = 0

    def open(self, topic: str, start: EntryId | None, permits: int | None, *, stored: bool = False) -> Reader:
        self.opened.append((start, stored))
        return Reader(self, self.scripts.pop(0), start)


@dataclass
class Reader:
    script: Script
    arrivals: list[list[str] | str]
    start: EntryId | None

    def read(self, timeout_s: float) -> list[Entry]:
        if not self.arrivals:
            return []
        arrived = self.arrivals.pop(0)
        if isinstance(arrived, str):
            raise EntriesGone("t", self.start, at(arrived) if arrived else None)
        self.start = at(arrived[-1]) if arrived else self.start
        return [Entry(at(text), MessageMetadata(), b"", self.script.size) for text in arrived]

    def last_message_id(self) -> tuple[EntryId | None, EntryId | None]:
        self.script.asked += 1
        assert self.script.asked < 100, "it asks for ever"
        return at(self.script.last) if self.script.last is not None else None, None

    def begin_again(self) -> None:
        self.script.again += 1

    def close(self) -> None:
        self.script.closed += 1


def behind(start: str, end: str) -> Range:
    return Range("t", Position.parse(start), at(end))


def fail(what: str) -> None:
    raise InvalidInput(what)


def read(part: Range, script: Script, lose: Callable[[str], None] = fail) -> list[str]:
    return [str(entry.id) for group in read_range(part, script.open, lose) for entry in group]


def test_the_start_is_asked_for_proves_itself_and_is_dropped() -> None:
    script = Script([[["5:3", "5:4"], ["5:6", "5:7"]]])
    assert read(behind("5:3", "5:6"), script) == ["5:4", "5:6"]
    assert (script.opened, script.closed, script.asked) == ([(at("5:3"), True)], 1, 0)


def test_a_start_that_is_gone_is_a_loss_that_names_the_range() -> None:
    words = r"data of t was lost: .*up to 5:3.*begins with 6:0.*after 5:3 and before 6:0.*failOnDataLoss"
    with pytest.raises(InvalidInput, match=words):
        read(behind("5:3", "5:6"), Script([["6:0"]]))


def test_an_accepted_loss_is_told_and_what_is_left_is_read() -> None:
    told: list[str] = []
    assert read(behind("5:3", "6:1"), Script([["6:0", ["6:0", "6:1"]]]), told.append) == ["6:0", "6:1"]
    assert "begins with 6:0" in told[0]


def test_a_gap_in_the_middle_is_a_loss_too() -> None:
    script = Script([[["5:3", "5:4"], "5:8", ["5:8", "5:9"]]])
    with pytest.raises(InvalidInput, match=r"data of t was lost: t behind 5:3 to 5:9 cannot be read whole"):
        read(behind("5:3", "5:9"), script)
    told: list[str] = []
    script = Script([[["5:3", "5:4"], "5:8", ["5:8", "5:9"]]])
    assert read(behind("5:3", "5:9"), script, told.append) == ["5:4", "5:8", "5:9"]
    assert len(told) == 1


@pytest.mark.parametrize("start", ["pinned 5:3", "pinned 5:-1", "beginning"])
def test_a_pin_proves_nothing_so_the_first_message_behind_it_is_looked_for_and_must_come(start: str) -> None:
    looked_from = {"pinned 5:3": at("5:4"), "pinned 5:-1": at("5:0"), "beginning": None}[start]
    script = Script([[["5:5", "5:6"]], [["5:5", "5:6"]]], last="5:6")
    assert read(behind(start, "5:6"), script) == ["5:5", "5:6"]
    assert script.opened == [(looked_from, False), (at("5:5"), True)]


def test_silence_is_no_end_while_the_end_is_there() -> None:
    script = Script([[["5:3"], SILENCE, SILENCE, ["5:9"]]], last="5:9")
    assert read(behind("5:3", "5:9"), script) == ["5:9"]
    assert script.asked == 2


def test_in_a_long_silence_the_end_is_looked_for_by_itself() -> None:
    silences: list[list[str] | str] = [SILENCE] * range_reader.LONG_SILENCE
    script = Script([[["5:3"], *silences, ["5:9"]], [["5:9"]]], last="5:9")
    assert read(behind("5:3", "5:9"), script) == ["5:9"]
    assert (script.opened[1], script.again) == ((at("5:9"), True), 1)
    with pytest.raises(InvalidInput, match="ends with a message that does not come"):
        read(behind("5:3", "5:9"), Script([[["5:3"], *silences], [""]], last="5:9"))


@pytest.mark.parametrize("last", [None, "5:8"])
def test_silence_before_an_end_that_is_gone_proves_a_loss(last: str | None) -> None:
    with pytest.raises(InvalidInput, match=rf"behind 5:3 to 5:9 was to be read, but the last message is now {last}"):
        read(behind("5:3", "5:9"), Script([[["5:3", "5:4"]]], last=last))


def test_an_end_that_is_left_out_proves_a_loss() -> None:
    with pytest.raises(InvalidInput, match="ends with a message, but 6:0 came in its place"):
        read(behind("5:3", "5:9"), Script([[["5:3", "5:4", "6:0"]]]))
    part = Range("t", Position.parse("5:3"), at("5:9"), end_delivered=False)
    assert read(part, Script([[["5:3", "5:4", "6:0"]]])) == ["5:4"], "an end that the user named may be anything"


def test_a_topic_that_vanishes_is_a_loss() -> None:
    class Gone(Script):
        def open(self, *_: object, **__: object) -> Reader:
            raise TopicMissing("the topic t does not exist.")

    with pytest.raises(InvalidInput, match=r"does not exist\. It was deleted before t behind 5:3 to 5:9 was read"):
        read(behind("5:3", "5:9"), Gone([]))
    told: list[str] = []
    assert read(behind("5:3", "5:9"), Gone([]), told.append) == []
    assert len(told) == 1


def test_entries_are_grouped_for_the_decoder() -> None:
    script = Script([[["5:3", *(f"5:{entry}" for entry in range(4, 24))]]], size=range_reader.BATCH_BYTES // 8)
    groups = list(read_range(behind("5:3", "5:23"), script.open, fail))
    assert [len(group) for group in groups] == [8, 8, 4]


def test_the_first_message_behind_an_entry_is_waited_for() -> None:
    found = first_behind("t", at("5:4"), Script([[SILENCE, ["5:3"], ["5:7", "5:8"]]], last="5:8", size=7).open)
    assert (found.entry, found.size) == (at("5:7"), 7)
    with pytest.raises(InvalidInput, match="stored after 5:9, but the last one is now 5:8"):
        first_behind("t", at("5:9"), Script([[]], last="5:8").open)
    assert first_behind("t", EntryId(-1, 0), Script([[["5:3"]]]).open).entry == at("5:3")


@pytest.mark.parametrize("arrivals", [["5:4", "5:5", "6:0"], ["5:4", "5:5"], ["6:1"], []])
def test_compaction_may_take_the_start_and_the_end_away(arrivals: list[str]) -> None:
    part = Range("t", Position(at("4:3")), at("5:9"), compacted=True)
    script = Script([[list(arrivals)] if arrivals else []], last="5:5")
    assert read(part, script) == [one for one in arrivals if one < "5:9"]
    assert script.opened == [(at("4:3"), False)]


def test_the_first_message_of_a_table_is_still_the_one_that_was_planned() -> None:
    part = Range("t", Position.parse("pinned 5:3"), at("5:9"), first=at("5:5"))
    assert read(part, Script([[["5:5", "5:9"]]])) == ["5:5", "5:9"]
    words = r"data of t was lost: .*its first message was 5:5, and now it begins with 6:0\. Messages"
    with pytest.raises(InvalidInput, match=words):
        read(part, Script([["6:0"]]))


def stored(*ids: str) -> Iterator[Entry]:
    return (Entry(at(one), MessageMetadata(), b"", 1) for one in ids)


def test_what_was_read_past_the_brokers_goes_on_through_them_with_the_last_message_that_came() -> None:
    script = Script([[["5:6", "5:7", "5:9"]]])
    part = behind("5:3", "5:9")
    groups = read_range(part, script.open, fail, stored=stored("5:4", "5:6"))
    assert [str(entry.id) for group in groups for entry in group] == ["5:4", "5:6", "5:7", "5:9"]
    assert script.opened == [(at("5:6"), True)]
    script = Script([])
    whole = read_range(part, script.open, fail, stored=stored("5:4", "5:9"))
    assert [str(entry.id) for group in whole for entry in group] == ["5:4", "5:9"]
    assert script.opened == [], "nothing is left for the brokers"
    script = Script([[["5:3", "5:9"]]])
    nothing = read_range(part, script.open, fail, stored=stored())
    assert [str(entry.id) for group in nothing for entry in group] == ["5:9"]
    assert script.opened == [(at("5:3"), True)]
