"""Topics in memory, as the plan of a query sees them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from eos.errors import EosError, TopicMissing
from eos.pulsar.wire.message_id import EntryId
from eos.source.boundaries import Boundary
from eos.source.errors import DataLost, lost
from eos.source.offsets import BEGINNING, Position
from eos.source.ranges import Found, TopicState


def at(text: str) -> EntryId:
    return EntryId.parse(text)


START = EntryId(5, -1)


@dataclass
class FakeTopic:
    """The entries of one topic that readers get, in order."""

    delivered: list[EntryId] = field(default_factory=list)
    stands: EntryId = START
    size: int = 100
    place: EntryId | None = None

    @property
    def last(self) -> EntryId | None:
        return self.delivered[-1] if self.delivered else None


class FakeBrokers:
    """Remembers what it was asked.

    Attributes:
        deleted: topics that are told to be there, and are not when they are asked.
        removed: those of them that are partitions which their topic still has.
        gone: topics that are not told to be there, and are not.
        unselected: topics that the options do not select.
        made: topics on which the subscription had to be made again.
        unmade: topics on which that was undone.
        gone_with_start: topics on which the subscription is gone, and the start too.
        remade: those of them on which the subscription was made again all the same.
        lost: topics whose messages are gone when one is looked for.
        reset: where a subscription is moved to when the first batch is planned; None where it is not.
        refused: the errors with which a new query may not begin, by topic.
        given_up: how often a new query was refused, and its subscriptions were deleted.
    """

    def __init__(self, **topics: FakeTopic) -> None:
        self.held = topics
        self.deleted: list[str] = []
        self.removed: list[str] = []
        self.gone: list[str] = []
        self.unselected: list[str] = []
        self.made: list[str] = []
        self.unmade: list[str] = []
        self.gone_with_start: list[str] = []
        self.remade: list[str] = []
        self.lost: list[str] = []
        self.reset: EntryId | None = None
        self.refused: dict[str, Exception] = {}
        self.given_up = 0
        self.begun: list[tuple[str, Boundary]] = []
        self.pins: list[str] = []
        self.acknowledged: list[tuple[str, EntryId]] = []
        self.probes: list[tuple[str, EntryId]] = []
        self.places: list[str] = []

    def topics(self, *, all_named: bool, read: Container[str] = ()) -> Iterable[str]:
        return [*self.held, *self.deleted]

    def selects(self, topic: str) -> bool:
        return topic not in self.unselected

    def begin(self, topic: str, start: Boundary) -> EntryId:
        self._must_be_there(topic)
        self._refuse(topic)
        self.begun.append((topic, start))
        if self.reset is not None:
            self.held[topic].stands = self.reset
        return self.held[topic].stands

    def pin(self, topic: str) -> EntryId:
        self._must_be_there(topic)
        self.pins.append(topic)
        return self.held[topic].stands

    @contextmanager
    def beginning(self) -> Iterator[None]:
        try:
            yield
        except EosError:
            self.given_up += 1
            raise

    def look(self, topic: str, start: Position) -> TopicState:
        last, left = self.last(topic), self.held[topic].place
        if topic in self.gone_with_start and start != BEGINNING:
            return TopicState(last, left or START, made=True, left=left or START)
        if topic in self.gone_with_start:
            self.remade.append(topic)
        return TopicState(last, self.held[topic].stands, topic in self.made)

    def unmake(self, topic: str) -> None:
        self.unmade.append(topic)

    def place(self, topic: str, entry: EntryId) -> EntryId:
        self.places.append(topic)
        return self.held[topic].place or entry

    def is_removed_partition(self, topic: str) -> bool:
        return topic in self.removed

    def last(self, topic: str) -> EntryId | None:
        self._must_be_there(topic)
        return self.held[topic].last

    def first(self, topic: str, entry: EntryId) -> Found:
        self.probes.append((topic, entry))
        if topic in self.lost:
            raise DataLost(lost(topic, f"nothing is left behind {entry}"))
        return Found(next(one for one in self.held[topic].delivered if one >= entry), self.held[topic].size)

    def release(self, topic: str, start: EntryId) -> None:
        self.acknowledged.append((topic, EntryId(start.ledger, start.entry - 1)))

    def _refuse(self, topic: str) -> None:
        if topic in self.refused:
            raise self.refused[topic]

    def _must_be_there(self, topic: str) -> None:
        if topic in (*self.deleted, *self.gone):
            raise TopicMissing(f"the topic {topic} does not exist")


def entries(ledger: int, first: int, last: int) -> list[EntryId]:
    return [EntryId(ledger, entry) for entry in range(first, last + 1)]
