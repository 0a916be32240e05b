"""Messages in chunks belong to the range of their last chunk, whatever ranges there are."""

from __future__ import annotations

from itertools import pairwise

import pytest

from eos.errors import DamagedFrame, InvalidInput
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata
from eos.source import chunked_messages
from eos.source.chunked_messages import whole_messages
from eos.source.offsets import BEGINNING, Position
from eos.source.range_reader import read_range
from eos.source.ranges import Range
from tests.unit.source.fake_brokers import at


def entry(place: str, name: str = "", number: int = 0, count: int = 1) -> Entry:
    """Make an entry. Args: where it is; which message it is a chunk of, "m", or "m@west" if it came from there."""
    metadata = MessageMetadata()
    if name:
        metadata.uuid, _, cluster = name.partition("@")
        metadata.chunk_id, metadata.num_chunks_from_msg, metadata.total_chunk_msg_size = number, count, count
        if cluster:
            metadata.replicated_from = cluster
    return Entry(at(place), metadata, str(number).encode(), 100, "t")


class Topic:
    """Entries that readers get; remembers where each began."""

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries
        self.opened: list[EntryId | None] = []

    def open(self, topic: str, start: EntryId | None, permits: int | None, *, stored: bool = False) -> Reader:
        self.opened.append(start)
        return Reader(self.entries, start or EntryId(-1, -1))

    def read(self, start: Position, end: str) -> list[str]:
        def fail(what: str) -> None:
            raise InvalidInput(what)

        groups = read_range(Range("t", start, at(end)), self.open, fail)
        return [f"{one.id} {bytes(one.payload).decode()}" for group in groups for one in group]


class Reader:
    def __init__(self, entries: list[Entry], start: EntryId) -> None:
        self._left = [one for one in entries if one.id >= start]
        before = [one.id for one in entries if one.id < start]
        self._behind = before[-1] if before else EntryId(start.ledger, -1)
        self._last = entries[-1].id
        self.asked = 0

    def read(self, timeout_s: float, until: EntryId | None = None) -> list[Entry]:
        arrived, self._left = self._left[:2], self._left[2:]
        return arrived

    def last_message_id(self) -> tuple[EntryId | None, EntryId | None]:
        self.asked += 1
        assert self.asked < 5, "it asks for ever"
        return self._last, self._behind

    def begin_again(self) -> None:
        raise AssertionError("nothing is silent here")

    def close(self) -> None:
        self._left = []


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked_messages, "LOOK_BACK", (2, 6))


def tangled(other: str) -> list[Entry]:
    """Return the chunks of the messages "a" and another one, between one another."""
    return [
        entry("5:0"),
        entry("5:1", "a", 0, 3),
        entry("5:2", other, 0, 2),
        entry("7:0", "a", 1, 3),
        entry("7:1"),
        entry("7:2", other, 1, 2),
        entry("7:3", "a", 2, 3),
        entry("7:4", "a", 2, 3),
        entry("7:5"),
    ]


TANGLED = tangled("b")


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("other", ["b", "a@west"])
def test_ranges_cut_anywhere_between_chunks_add_up(other: str) -> None:
    entries = tangled(other)
    expected = ["5:0 0", "7:1 0", "7:2 01", "7:3 012", "7:5 0"]
    assert Topic(entries).read(BEGINNING, "7:5") == expected
    for cut in entries[:-1]:
        first = Topic(entries).read(BEGINNING, str(cut.id))
        assert first + Topic(entries).read(Position(cut.id), "7:5") == expected, cut
    bounds = [BEGINNING, *(Position(one.id) for one in entries)]
    each = [Topic(entries).read(start, str(end.entry)) for start, end in pairwise(bounds)]
    assert [value for part in each for value in part] == expected


@pytest.mark.usefixtures("small_steps")
def test_looking_back_goes_into_the_ledger_before_and_no_further_than_needed() -> None:
    topic = Topic([*(entry(f"3:{number}") for number in range(50)), *TANGLED])
    assert topic.read(Position(at("7:1")), "7:2") == ["7:2 01"]
    steps = [
        at("7:0"),
        at("7:0"),
        at("5:0"),
        at("3:49"),
    ]  # two back; six back, by way of two ledgers
    assert topic.opened[1:] == steps


def test_other_messages_that_began_further_back_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked_messages, "LOOK_BACK", (2,))
    entries = [entry("5:0", "c", 0, 2), entry("5:1", "a", 0, 2), entry("5:2", "c", 1, 2), entry("5:3", "a", 1, 2)]
    assert Topic(entries).read(Position(at("5:2")), "5:3") == ["5:3 01"]


def test_a_range_that_begins_with_whole_messages_looks_nowhere_else() -> None:
    topic = Topic(TANGLED)
    topic.read(BEGINNING, "7:5")
    # The first looks for the message with which the second must begin, the others for ledgers that were passed over.
    assert topic.opened == [None, at("5:0"), at("5:0"), at("7:0")]


@pytest.mark.usefixtures("small_steps")
def test_a_message_whose_first_chunks_are_too_far_or_gone_is_named_as_lost() -> None:
    far = [entry("5:0", "a", 0, 2), *(entry(f"5:{number}") for number in range(1, 8)), entry("5:8", "a", 1, 2)]
    words = r"data of t was lost: entry 5:8 of t is the last of 2 chunks .*6 entries before.*failOnDataLoss=false"
    with pytest.raises(InvalidInput, match=words):
        Topic(far).read(Position(at("5:3")), "5:8")
    with pytest.raises(InvalidInput, match=r"5:8 of t is the last of 2 chunks"):
        Topic(far[1:]).read(BEGINNING, "5:8")
    told: list[str] = []
    topic = Topic([*far[1:], entry("5:9")])
    groups = read_range(Range("t", BEGINNING, at("5:9")), topic.open, told.append)
    assert [str(one.id) for group in groups for one in group] == [*(f"5:{number}" for number in range(1, 8)), "5:9"]
    assert len(told) == 1


class Silent(Reader):
    """Says nothing twice, once so many entries have come."""

    def __init__(self, entries: list[Entry], start: EntryId, after: int) -> None:
        super().__init__(entries, start)
        self._silent_at, self._pauses = len(self._left) - after, 2

    def read(self, timeout_s: float, until: EntryId | None = None) -> list[Entry]:
        if self._pauses and len(self._left) <= self._silent_at:
            self._pauses -= 1
            return []
        return super().read(timeout_s)


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("after", [0, 2, 4])
def test_a_broker_that_is_silent_while_a_task_looks_back_loses_no_message(after: int) -> None:
    """One second of silence was taken for a loss wherever the topic went on after the last chunk."""

    class Busy(Topic):
        def open(self, topic: str, start: EntryId | None, permits: int | None, *, stored: bool = False) -> Reader:
            self.opened.append(start)
            return Silent(self.entries, start or EntryId(-1, -1), after)

    assert Busy(TANGLED).read(Position(at("7:1")), "7:3") == ["7:2 01", "7:3 012"]


@pytest.mark.parametrize("left", [[entry("7:5")], [entry("6:0")]])
def test_a_last_chunk_that_is_deleted_while_its_task_looks_back_is_lost(left: list[Entry]) -> None:
    class Truncated(Topic):
        def open(self, topic: str, start: EntryId | None, permits: int | None, *, stored: bool = False) -> Reader:
            reader = super().open(topic, start, permits)
            self.entries = left
            return reader

    with pytest.raises(InvalidInput, match=r"entry 7:2 of t is the last of 2 chunks"):
        Truncated(TANGLED).read(Position(at("7:1")), "7:2")


@pytest.mark.parametrize("damaged", [0, 1])
@pytest.mark.parametrize("start", [BEGINNING, Position(at("5:1"))])
def test_a_chunk_that_nobody_can_read_takes_its_message_along_and_is_no_loss(damaged: int, start: Position) -> None:
    """It was told as a loss, "retention has deleted them", which no option for damaged entries passes over."""
    entries = [entry("5:0", "m", 0, 3), entry("5:1", "m", 1, 3), entry("5:2", "m", 2, 3), entry("5:3")]
    entries[damaged] = Entry(at(f"5:{damaged}"), MessageMetadata(), b"", 100, "t", damage="checksum")
    topic, told = Topic(entries), list[str]()

    def fail(what: str) -> None:
        raise InvalidInput(what)

    part = Range("t", start, at("5:3"))
    groups = read_range(part, topic.open, fail, damaged=lambda damage: told.append(str(damage)))
    assert [str(one.id) for group in groups for one in group if not one.damage] == ["5:3"]
    assert "entry 5:2 of t is the last of 3 chunks of message m" in told[-1]
    assert told[-1].endswith(f"before it lie entries that can't be read (5:{damaged})")


@pytest.mark.parametrize("batch", [False, True])
def test_an_entry_of_more_bytes_than_a_message_may_have_is_damaged_when_it_is_decoded(batch: bool) -> None:
    metadata = MessageMetadata(num_messages_in_batch=2) if batch else MessageMetadata()
    large = Entry(at("5:0"), metadata, bytes(500), 600, "t")
    for most, damaged in ((500, False), (499, True)):
        (one,) = whole_messages(
            "t", iter([[large]]), Topic([large]).open, pytest.fail, lambda entry: entry, max_bytes=most
        )
        if damaged:
            with pytest.raises(DamagedFrame, match="500 bytes once decompressed"):
                _ = one.payload
        else:
            assert one.payload == bytes(500)
