"""What a batch read covers."""

from __future__ import annotations

from typing import Literal

import pytest

from eos.errors import InvalidInput
from eos.pulsar.wire.message_id import EntryId
from eos.source.batch_plan import Wanted, batch_ranges
from eos.source.boundaries import Boundary
from eos.source.errors import DataLost
from eos.source.offsets import BEGINNING, Position
from eos.source.ranges import Found, Range
from tests.unit.source.fake_brokers import FakeBrokers, FakeTopic, at, entries

T, P0, P1 = "persistent://a/b/t", "persistent://a/b/t-partition-0", "persistent://a/b/t-partition-1"
EARLIEST, LATEST = Boundary("earliest"), Boundary("latest")


class Timed(FakeBrokers):
    """Published entry by entry, a second apart."""

    def before_time(self, topic: str, time_ms: int) -> EntryId:
        return EntryId(5, min(time_ms // 1000, 100) - 1)

    def must_be_there(self, topic: str, place: EntryId, last: EntryId | None, *, ends: bool = False) -> None:
        if last is None or place > EntryId(last.ledger, last.entry + (not ends)):
            raise InvalidInput(f"{place} is behind the end")


@pytest.fixture
def brokers() -> Timed:
    return Timed(**{P0: FakeTopic([*entries(5, 0, 3), at("5:9")]), P1: FakeTopic()})


def by(**named: str) -> Boundary:
    words = {"t": T, "p0": P0, "p1": P1}
    places: dict[str, EntryId | Literal["earliest", "latest"]] = {"earliest": "earliest", "latest": "latest"}
    return Boundary("entries", entries={words[key]: places.get(text) or at(text) for key, text in named.items()})


def between(start: Position, end: str, first: str, *, delivered: bool = True) -> Range:
    return Range(P0, start, at(end), end_delivered=delivered, first=at(first))


def pinned(text: str) -> Position:
    return Position(at(text), delivered=False)


@pytest.mark.parametrize(
    ("start", "end", "refused"),
    [
        (Boundary("time", time_ms=3_000), Boundary("time", time_ms=2_999), True),
        (Boundary("time", times={T: 3_000, P1: 0}), Boundary("time", time_ms=2_000), True),
        (Boundary("time", time_ms=3_000), Boundary("time", time_ms=3_000), False),  # a window without a message
        (by(p0="5:3", p1="earliest"), Boundary("time", time_ms=2_000), False),
    ],
)
def test_a_read_whose_times_are_exchanged_is_refused(
    brokers: Timed, start: Boundary, end: Boundary, *, refused: bool
) -> None:
    if not refused:
        assert batch_ranges(brokers, start, end) == []
        return
    with pytest.raises(InvalidInput, match=f"endingTime is before startingTime on {P0}, so no message could be read"):
        batch_ranges(brokers, start, end)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (EARLIEST, LATEST, between(BEGINNING, "5:9", "5:0")),
        (by(t="earliest"), by(t="latest"), between(BEGINNING, "5:9", "5:0")),
        (by(p0="5:2", p1="earliest"), LATEST, between(pinned("5:1"), "5:9", "5:2")),
        (by(p0="5:0", t="latest"), by(p0="5:4", t="latest"), between(pinned("5:-1"), "5:4", "5:0", delivered=False)),
        (EARLIEST, by(p0="5:9", p1="9:0"), between(BEGINNING, "5:9", "5:0")),
        (Boundary("time", time_ms=2_000), LATEST, between(pinned("5:1"), "5:9", "5:2")),
        (Boundary("time", times={T: 9_000, P0: 2_000}), LATEST, between(pinned("5:1"), "5:9", "5:2")),
        (EARLIEST, Boundary("time", times={T: 3_000}), between(BEGINNING, "5:2", "5:0", delivered=False)),
        (EARLIEST, Boundary("time", time_ms=3_000), between(BEGINNING, "5:2", "5:0", delivered=False)),
        (EARLIEST, Boundary("time", time_ms=0), None),  # it ends before the first entry of its ledger
        (LATEST, LATEST, None),
        (by(p0="5:5", p1="earliest"), LATEST, between(pinned("5:4"), "5:9", "5:9")),
        (by(p0="5:4", t="earliest"), by(p0="5:3", t="latest"), None),
        # Nothing comes of these: their task tells whether entries, or the ledger, are lost.
        (by(p0="5:5", p1="earliest"), by(p0="5:7", t="latest"), between(pinned("5:4"), "5:7", "5:9", delivered=False)),
        (EARLIEST, by(p0="4:7", t="latest"), between(BEGINNING, "4:7", "5:0", delivered=False)),
    ],
)
def test_boundaries_become_a_range(brokers: Timed, start: Boundary, end: Boundary, expected: Range | None) -> None:
    assert batch_ranges(brokers, start, end) == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        (by(p0="5:0"), LATEST, f"say nothing of {P1}"),
        (by(t="5:0"), LATEST, f"say nothing of {P0}"),
        (Boundary("entries", entries={"x": at("5:0")}), LATEST, "startingOffsets names x, which is not read. Read are"),
        (EARLIEST, Boundary("entries", entries={"x": at("5:0")}), "endingOffsets names x, which is not read"),
    ],
)
def test_boundaries_must_fit_the_topics(brokers: Timed, start: Boundary, end: Boundary, words: str) -> None:
    brokers.held[P1].delivered += entries(6, 0, 1)
    with pytest.raises(InvalidInput, match=words):
        batch_ranges(brokers, start, end)


def test_what_is_not_wanted_is_not_read_nor_asked_for(brokers: Timed) -> None:
    def published(**times: int) -> list[str]:
        return [str(part) for part in batch_ranges(brokers, EARLIEST, LATEST, Wanted(**times))]  # type: ignore[arg-type]

    assert published(from_ms=2_000) == [f"{P0} behind 5:1 to 5:9"]
    assert published(to_ms=2_000) == [f"{P0} behind -1:-1 to 5:1"]
    assert published(from_ms=2_000, to_ms=3_999) == [f"{P0} behind 5:1 to 5:3"]
    assert published(from_ms=99_000) == []
    start = by(p0="5:2", t="earliest")
    (part,) = batch_ranges(brokers, start, LATEST, Wanted(from_ms=1_000))
    assert part.start == pinned("5:1"), "never before the start"
    (part,) = batch_ranges(brokers, EARLIEST, LATEST, Wanted(to_ms=99_000))
    assert part.end == at("5:9"), "never behind the end"
    assert part.end_delivered
    (part,) = batch_ranges(brokers, EARLIEST, LATEST, Wanted(from_ms=2_000, to_ms=3_999, compacted=True))
    assert part == Range(P0, BEGINNING, at("5:9"), compacted=True), "no broker looks for times in what is compacted"
    brokers.lost = [P0]  # compaction takes away each message whose key has a newer one
    assert batch_ranges(brokers, EARLIEST, LATEST, Wanted(compacted=True)) == [part]
    assert batch_ranges(brokers, EARLIEST, LATEST, Wanted(takes=lambda topic: topic == P1)) == []


@pytest.mark.parametrize("start", [by(p0="5:11", p1="earliest"), by(p0="earliest", p1="7:0")])
def test_a_start_behind_the_end_is_refused_on_an_empty_topic_too(brokers: Timed, start: Boundary) -> None:
    with pytest.raises(InvalidInput, match="is behind the end"):
        batch_ranges(brokers, start, LATEST)


def test_an_end_behind_the_end_is_refused(brokers: Timed) -> None:
    with pytest.raises(InvalidInput, match="5:10 is behind the end"):
        batch_ranges(brokers, EARLIEST, by(p0="5:10", t="latest"))


def test_a_start_right_behind_the_end_is_an_empty_read(brokers: Timed) -> None:
    assert batch_ranges(brokers, by(p0="5:10", p1="earliest"), LATEST) == []


def test_a_loss_that_is_found_while_a_read_is_planned_is_told_and_the_rest_is_read(brokers: Timed) -> None:
    brokers.held[P1] = FakeTopic(entries(6, 0, 3))
    brokers.lost = [P0]
    with pytest.raises(DataLost, match=f"data of {P0} was lost"):
        batch_ranges(brokers, EARLIEST, LATEST)
    told: list[str] = []
    (part,) = batch_ranges(brokers, EARLIEST, LATEST, lose=told.append)
    assert (part.topic, len(told)) == (P1, 1)


@pytest.mark.parametrize(("place", "said"), [("3:4", True), ("5:0", True), ("5:1", False), ("6:0", False)])
def test_a_named_start_that_is_no_longer_stored_is_said(
    caplog: pytest.LogCaptureFixture, place: str, said: bool
) -> None:
    brokers = Timed(**{P0: FakeTopic(entries(5, 1, 3) + entries(6, 0, 1), place=at("5:0"))})
    assert len(batch_ranges(brokers, by(p0=place), LATEST)) == 1
    words = f"startingOffsets begins at {place} on {P0}, which is no longer stored: the topic begins after 5:0 now"
    assert (words in caplog.text) is said


def test_a_named_start_that_is_removed_while_the_read_is_planned_is_said(caplog: pytest.LogCaptureFixture) -> None:
    class Trimmed(Timed):
        def first(self, topic: str, entry: EntryId) -> Found:
            self.held[topic] = FakeTopic(entries(6, 0, 1), place=at("6:-1"))
            return super().first(topic, entry)

    brokers = Trimmed(**{P0: FakeTopic(entries(5, 0, 3) + entries(6, 0, 1))})
    (part,) = batch_ranges(brokers, by(p0="5:2"), LATEST)
    assert part == between(pinned("5:1"), "6:1", "6:0")
    assert f"startingOffsets begins at 5:2 on {P0}, which is no longer stored" in caplog.text
