"""How a task reads its range. The rules are those on top of `eos.source.reading`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from eos.errors import InvalidInput, TopicMissing
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata
from eos.source import reading
from eos.source.offsets import BEGINNING, Position
from eos.source.ranges import Range
from eos.source.reading import first_behind, read_range
from tests.unit.source.fake_brokers import at

SILENCE: list[str] = []


@dataclass
class Script:
    """Readers of one topic. Each hands out `arrivals` from its start on, and nothing after them."""

    arrivals: list[list[str]]
    last: str | None = None
    size: int = 100
    opened: list[EntryId | None] = field(default_factory=list)
    closed: int = 0
    asked: int = 0
    when_silent: Callable[[Script], None] | None = None
    later: list[list[list[str]]] = field(default_factory=list)

    def open(self, topic: str, start: EntryId | None, permits: int | None) -> Script:
        self.opened.append(start)
        if len(self.opened) > 1 and self.later:
            self.arrivals = self.later.pop(0)
        return self

    def read(self, timeout_s: float) -> list[Entry]:
        if not self.arrivals:
            return []
        return [Entry(at(text), MessageMetadata(), b"", self.size) for text in self.arrivals.pop(0)]

    def last_message_id(self) -> tuple[EntryId | None, EntryId | None]:
        self.asked += 1
        assert self.asked < 10, "it asks for ever"
        if self.when_silent is not None:
            self.when_silent(self)
        return at(self.last) if self.last is not None else None, None

    def close(self) -> None:
        self.closed += 1


def behind(start: str, end: str) -> Range:
    return Range("t", Position.parse(start), at(end))


def fail(what: str) -> None:
    raise InvalidInput(what)


def read(part: Range, script: Script, lose: Callable[[str], None] = fail) -> list[str]:
    return [str(entry.id) for group in read_range(part, script.open, lose) for entry in group]


def test_the_start_is_asked_for_proves_itself_and_is_dropped() -> None:
    script = Script([["5:3", "5:4"], ["5:6", "5:7"]])
    assert read(behind("5:3", "5:6"), script) == ["5:4", "5:6"]
    assert (script.opened, script.closed, script.asked) == ([at("5:3")], 1, 0)


@pytest.mark.parametrize("first", ["5:4", "6:0", "5:2"])
def test_another_first_entry_proves_a_loss_and_names_the_range(first: str) -> None:
    words = rf"data of t was lost: .*up to 5:3.*begins with {first}.*behind 5:3 and before {first}.*failOnDataLoss"
    with pytest.raises(InvalidInput, match=words):
        read(behind("5:3", "5:6"), Script([[first, "6:6"]]))


def test_an_accepted_loss_is_told_and_what_is_left_is_read() -> None:
    told: list[str] = []
    assert read(behind("5:3", "6:1"), Script([["6:0", "6:1"]], later=[[["6:0"]]]), told.append) == ["6:0", "6:1"]
    assert "begins with 6:0" in told[0]


@pytest.mark.parametrize(
    ("start", "asked", "arrivals"),
    [
        ("pinned 5:3", at("5:3"), ["5:5", "5:6"]),
        ("pinned 5:3", at("5:3"), ["5:3", "5:5", "5:6"]),
        ("pinned 5:-1", at("5:0"), ["5:5", "5:6"]),
        ("beginning", None, ["5:5", "5:6"]),
    ],
)
def test_a_pin_proves_nothing(start: str, asked: EntryId | None, arrivals: list[str]) -> None:
    script = Script([arrivals])
    assert read(behind(start, "5:6"), script) == ["5:5", "5:6"]
    assert script.opened == [asked]


def test_silence_is_no_end_while_the_end_is_there() -> None:
    script = Script([["5:3"], SILENCE, SILENCE, ["5:9"]], last="5:9")
    assert read(behind("5:3", "5:9"), script) == ["5:9"]
    assert script.asked == 2


@pytest.mark.parametrize("last", [None, "5:8"])
def test_silence_before_an_end_that_is_gone_proves_a_loss(last: str | None) -> None:
    with pytest.raises(InvalidInput, match=rf"behind 5:3 to 5:9 was to be read, but the last message is now {last}"):
        read(behind("5:3", "5:9"), Script([["5:3", "5:4"]], last=last))


def test_an_end_that_is_left_out_proves_a_loss() -> None:
    with pytest.raises(InvalidInput, match="ends with a message, but 6:0 came in its place"):
        read(behind("5:3", "5:9"), Script([["5:3", "5:4", "6:0"]]))
    part = Range("t", BEGINNING, at("5:9"), end_delivered=False)
    assert read(part, Script([["5:3", "5:4", "6:0"]])) == ["5:3", "5:4"], "an end that the user named may be anything"


def test_over_several_ledgers_the_start_is_looked_for_once_more() -> None:
    script = Script([["5:3", "6:0"]], later=[[["5:3"]]])
    assert read(behind("5:3", "6:0"), script) == ["6:0"]
    assert script.opened == [at("5:3"), at("5:3")]
    with pytest.raises(InvalidInput, match="behind 5:3 and before 6:0 are gone"):
        read(behind("5:3", "6:0"), Script([["5:3", "6:0"]], later=[[["6:0"]]]))


@pytest.mark.parametrize("start", ["pinned 5:3", "pinned 5:-1", "beginning"])
def test_where_the_start_proves_nothing_the_first_message_that_came_is_looked_for_once_more(start: str) -> None:
    """A ledger between them that is deleted before it was read is skipped by the broker without a word."""
    script = Script([["5:5", "5:6", "7:0"]], later=[[["5:5"]]])
    assert read(behind(start, "7:0"), script) == ["5:5", "5:6", "7:0"]
    assert script.opened[1:] == [at("5:5")]
    words = r"data of t was lost: .*to 7:0 began with 5:5, and now it would begin with 7:0.*before it was read"
    with pytest.raises(InvalidInput, match=words):
        read(behind(start, "7:0"), Script([["5:5", "5:6", "7:0"]], later=[[["7:0"]]]))
    script = Script([["7:0", "7:1"]])
    assert read(behind(start, "7:1"), script) == ["7:0", "7:1"]
    assert len(script.opened) == 1, "one ledger is deleted as a whole, with its end"


def test_an_accepted_loss_of_all_that_was_read_is_told_too() -> None:
    told: list[str] = []
    script = Script([["5:3", "6:0"]], last="5:2", later=[[]])
    assert read(behind("5:3", "6:0"), script, told.append) == ["6:0"]
    assert told == [told[0]]
    assert "a message was stored behind 5:3, but the last one is now 5:2" in told[0]


def test_a_topic_that_vanishes_is_a_loss() -> None:
    class Gone(Script):
        def read(self, timeout_s: float) -> list[Entry]:
            raise TopicMissing("the topic t does not exist.")

    with pytest.raises(InvalidInput, match=r"does not exist\. It was deleted before t behind 5:3 to 5:9 was read"):
        read(behind("5:3", "5:9"), Gone([]))
    told: list[str] = []
    assert read(behind("5:3", "5:9"), Gone([]), told.append) == []
    assert len(told) == 1


def test_entries_are_grouped_for_the_decoder() -> None:
    script = Script([["5:3", *(f"5:{entry}" for entry in range(4, 24))]], size=reading.BATCH_BYTES // 8)
    groups = list(read_range(behind("5:3", "5:23"), script.open, fail))
    assert [len(group) for group in groups] == [8, 8, 4]


def test_the_first_message_behind_an_entry_is_waited_for() -> None:
    found = first_behind("t", at("5:4"), Script([SILENCE, ["5:3"], ["5:7", "5:8"]], last="5:8", size=7).open)
    assert (found.entry, found.size) == (at("5:7"), 7)
    with pytest.raises(InvalidInput, match="stored behind 5:9, but the last one is now 5:8"):
        first_behind("t", at("5:9"), Script([], last="5:8").open)


@pytest.mark.parametrize("arrivals", [["5:4", "5:5", "6:0"], ["5:4", "5:5"], ["6:1"], []])
def test_compaction_may_take_the_start_and_the_end_away(arrivals: list[str]) -> None:
    part = Range("t", Position(at("4:3")), at("5:9"), compacted=True)
    script = Script([list(arrivals)] if arrivals else [], last="5:5")
    assert read(part, script) == [one for one in arrivals if one < "5:9"]
    assert len(script.opened) == 1


def test_the_first_message_of_a_table_is_still_the_one_that_was_planned() -> None:
    part = Range("t", Position.parse("pinned 5:3"), at("5:9"), first=at("5:5"))
    assert read(part, Script([["5:3", "5:5", "5:9"]])) == ["5:5", "5:9"]
    words = r"data of t was lost: .*its first message was 5:5, and now it begins with 6:0\. Messages between"
    with pytest.raises(InvalidInput, match=words):
        read(part, Script([["6:0"]]))
    assert first_behind("t", EntryId(-1, 0), Script([["5:3"]]).open).entry == at("5:3")
