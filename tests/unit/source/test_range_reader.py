"""How a task reads its range. The rules are those on top of `eos.source.range_reader`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from eos.errors import EntriesGone, InvalidInput, Refused, TopicMissing, Unreachable
from eos.pulsar.net.admin import EntryKind
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata
from eos.source import range_reader
from eos.source.offsets import Position
from eos.source.range_reader import first_behind, read_range
from eos.source.ranges import Range
from eos.source.silence import LONG_SILENCE
from tests.unit.source.fake_brokers import at

SILENCE: list[str] = []


@dataclass
class Script:
    """Readers of one topic: each takes the next of `scripts`, and hands out what stands there, and nothing after it.

    Attributes:
        scripts: of each reader: entries that arrive together, or the first entry that comes after a gap.
        last: the last message that the broker can deliver.
        ledgers: the last entry of each ledger that the topic lists.
        kinds: what an entry is that the admin API is asked for; None: it does not answer.
        opened: where each reader was to begin, and whether a message must be there.
        wanted: the last entry that was wanted, at each read.
    """

    scripts: list[list[list[str] | str]]
    last: str | None = None
    ledgers: tuple[str, ...] = ()
    kinds: dict[str, EntryKind | None] = field(default_factory=dict)
    size: int = 100
    opened: list[tuple[EntryId | None, bool]] = field(default_factory=list)
    wanted: set[EntryId | None] = field(default_factory=set)
    closed: int = 0
    asked: int = 0
    again: int = 0

    def open(self, topic: str, start: EntryId | None, permits: int | None, *, stored: bool = False) -> Reader:
        self.opened.append((start, stored))
        return Reader(self, start)

    def entry(self, text: str) -> Entry:
        return Entry(at(text), MessageMetadata(), b"", self.size)

    def kind(self, topic: str, entry: EntryId) -> EntryKind:
        kind = self.kinds.pop(str(entry))
        if kind is None:
            raise Unreachable("the admin API does not answer")
        return kind


@dataclass
class Reader:
    script: Script
    start: EntryId | None
    arrivals: list[list[str] | str] | None = None

    def read(self, timeout_s: float, until: EntryId | None = None) -> list[Entry]:
        self.script.wanted.add(until)
        if self.arrivals is None:
            self.arrivals = self.script.scripts.pop(0)
        if not self.arrivals:
            return []
        arrived = self.arrivals.pop(0)
        if isinstance(arrived, str):
            raise EntriesGone("t", self.start, at(arrived) if arrived else None)
        self.start = at(arrived[-1]) if arrived else self.start
        return [self.script.entry(text) for text in arrived]

    def last_message_id(self) -> tuple[EntryId | None, EntryId | None]:
        self.script.asked += 1
        assert self.script.asked < 100, "it asks for ever"
        last = at(self.script.last) if self.script.last is not None else None
        start = self.start or EntryId(-1, -1)
        if last is not None and start > last:  # behind the end a reader stands at the beginning
            start = EntryId(-1, -1)
        before = [at(one) for one in self.script.ledgers if at(one) < start]
        return last, max(before) if before else None

    def begin_again(self) -> None:
        self.script.again += 1

    def close(self) -> None:
        self.script.closed += 1


def behind(start: str, end: str) -> Range:
    return Range("t", Position.parse(start), at(end))


def fail(what: str) -> None:
    raise InvalidInput(what)


def read(part: Range, script: Script, lose: Callable[[str], None] = fail) -> list[str]:
    return [str(entry.id) for group in read_range(part, script.open, lose, kind_of=script.kind) for entry in group]


def test_the_start_is_asked_for_proves_itself_and_is_dropped() -> None:
    script = Script([[["5:3", "5:4"], ["5:6", "5:7"]]])
    assert read(behind("5:3", "5:6"), script) == ["5:4", "5:6"]
    assert (script.opened, script.closed, script.asked) == ([(at("5:3"), True)], 1, 0)


def test_the_reader_is_told_where_the_range_ends() -> None:
    script = Script([[["5:3", "5:4"], ["5:6"]]])
    read(behind("5:3", "5:6"), script)
    assert script.wanted == {at("5:6")}


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
    looks = [(at("5:0"), False)] if start == "beginning" else []  # for a ledger before the first one that came
    assert script.opened == [(looked_from, False), (at("5:5"), True), *looks]


def test_silence_is_no_end_while_the_end_is_there() -> None:
    script = Script([[["5:3"], SILENCE, SILENCE, ["5:9"]]], last="5:9")
    assert read(behind("5:3", "5:9"), script) == ["5:9"]
    assert script.asked == 2


def test_in_a_long_silence_the_end_is_looked_for_by_itself() -> None:
    silences: list[list[str] | str] = [SILENCE] * LONG_SILENCE
    stays: list[list[str] | str] = []  # of the reader that looks whether the broker gets on
    script = Script([[["5:3"], *silences, ["5:9"]], stays, [["5:9"]]], last="5:9")
    assert read(behind("5:3", "5:9"), script) == ["5:9"]
    assert (script.opened[2], script.again) == ((at("5:9"), True), 1)
    with pytest.raises(InvalidInput, match="ends with a message that does not come"):
        read(behind("5:3", "5:9"), Script([[["5:3"], *silences], stays, [""]], last="5:9"))


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


def test_a_group_of_small_entries_ends_with_so_many_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_reader, "BATCH_ROWS", 5)
    script = Script([[["5:3", *(f"5:{entry}" for entry in range(4, 16))]]])
    groups = list(read_range(behind("5:3", "5:15"), script.open, fail))
    assert [len(group) for group in groups] == [5, 5, 2]


def test_the_first_message_behind_an_entry_is_waited_for() -> None:
    found = first_behind("t", at("5:4"), Script([[SILENCE, ["5:3"], ["5:7", "5:8"]]], last="5:8", size=7).open)
    assert (found.entry, found.size) == (at("5:7"), 7)
    with pytest.raises(InvalidInput, match="stored after 5:9, but the last one is now 5:8"):
        first_behind("t", at("5:9"), Script([[]], last="5:8").open)
    assert first_behind("t", EntryId(-1, 0), Script([[["5:3"]]]).open).entry == at("5:3")


def test_the_first_message_of_a_table_is_still_the_one_that_was_planned() -> None:
    part = Range("t", Position.parse("pinned 5:3"), at("5:9"), first=at("5:5"))
    assert read(part, Script([[["5:5", "5:9"]]])) == ["5:5", "5:9"]
    words = r"data of t was lost: .*its first message was 5:5, and now it begins with 6:0\. Messages"
    with pytest.raises(InvalidInput, match=words):
        read(part, Script([["6:0"]]))


LISTED = ("4:7", "5:3", "6:1", "8:0", "9:9")


@pytest.mark.parametrize("kind", ["gone", "message"])
def test_a_ledger_of_which_nothing_came_is_a_loss_where_its_entries_are_gone_or_are_messages(kind: EntryKind) -> None:
    def script() -> Script:
        return Script([[["5:3", "9:0", "9:1"]]], ledgers=LISTED, kinds={"6:0": kind, "8:0": "marker"})

    with pytest.raises(InvalidInput, match=r"data of t was lost: .*6:0 to 6:1.* before 9:0"):
        read(behind("5:3", "9:1"), script())
    told: list[str] = []
    assert read(behind("5:3", "9:1"), script(), told.append) == ["9:0", "9:1"]
    assert len(told) == 1


def test_ledgers_that_hold_nothing_for_readers_are_no_loss_and_others_are_not_asked_about() -> None:
    script = Script([[["5:1", "5:3", "8:0", "9:0"]]], ledgers=LISTED, kinds={"6:0": "aborted"})
    assert read(behind("5:1", "9:0"), script) == ["5:3", "8:0", "9:0"]
    assert not script.kinds
    assert read(behind("5:1", "5:3"), Script([[["5:1", "5:2", "5:3"]]])) == ["5:2", "5:3"], "one ledger: no question"


def test_whether_a_ledger_is_lost_can_stay_unknown_and_a_warning_says_so(caplog: pytest.LogCaptureFixture) -> None:
    script = Script([[["5:3", "8:0"]]], ledgers=LISTED, kinds={"6:0": None})
    assert read(behind("5:3", "8:0"), script) == ["8:0"]
    assert "None of the entries 6:0 to 6:1 of t came" in caplog.text
    assert "The source cannot know which. the admin API does not answer" in caplog.text
    caplog.clear()
    assert list(read_range(behind("5:3", "8:0"), Script([[["5:3", "8:0"]]], ledgers=LISTED).open, fail))
    assert "The source cannot know which. Only the admin API can tell" in caplog.text


@pytest.mark.parametrize(("start", "first"), [("beginning", "4:0"), ("pinned 5:-1", "5:0"), ("pinned 5:1", "5:2")])
def test_a_lost_ledger_at_the_start_of_a_range_is_a_loss(start: str, first: str) -> None:
    kinds: dict[str, EntryKind | None] = {"4:0": "marker", "5:0": "marker"}
    script = Script([[["6:0"]], [["6:0"]]], ledgers=LISTED, kinds=kinds | {first: "gone"})
    with pytest.raises(InvalidInput, match=rf"the ledger of the entries {first} to "):
        read(behind(start, "6:0"), script)


def test_a_lost_ledger_at_an_end_that_the_user_named_is_a_loss_and_one_after_it_is_not_asked_about() -> None:
    part = Range("t", Position.parse("5:3"), at("6:0"), end_delivered=False)
    with pytest.raises(InvalidInput, match="6:0 to 6:1"):
        read(part, Script([[["5:3", "9:0"]]], ledgers=LISTED, kinds={"6:0": "gone"}))


def test_a_ledger_that_the_topic_has_deleted_meanwhile_is_no_loss(caplog: pytest.LogCaptureFixture) -> None:
    script = Script([[["5:3", "8:0"]]], ledgers=LISTED)

    def deleted(topic: str, entry: EntryId) -> EntryKind:
        script.ledgers = ("8:0",)
        return "gone"

    groups = read_range(behind("5:3", "8:0"), script.open, fail, kind_of=deleted)
    assert [str(entry.id) for group in groups for entry in group] == ["8:0"]
    assert "deleted the ledger meanwhile" in caplog.text


def test_a_topic_that_has_room_for_one_consumer_is_left_while_its_ledgers_are_looked_for() -> None:
    class Full(Script):
        def open(self, topic: str, start: EntryId | None, permits: int | None, *, stored: bool = False) -> Reader:
            if len(self.opened) > self.again:
                raise Refused("subscribe", "ConsumerBusy", "too many consumers")
            return super().open(topic, start, permits, stored=stored)

    script = Full([[["5:3", "6:0"]]], ledgers=LISTED)
    assert read(behind("5:3", "6:0"), script) == ["6:0"]
    assert script.again == 1


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
