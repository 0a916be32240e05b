"""Topics in memory, as the plan of a query sees them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from eos.errors import InvalidInput, TopicMissing
from eos.pulsar.wire.message_id import EntryId
from eos.source.boundaries import Boundary
from eos.source.errors import DataLost, lost
from eos.source.offsets import BEGINNING
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
        lost: topics whose messages are gone when one is looked for.
        reset: where a subscription is moved to when the first batch is planned; None where it is not.
        refused: topics on which a new query may not begin: where it stands, or where its first batch is planned.
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
        self.lost: list[str] = []
        self.reset: EntryId | None = None
        self.refused: dict[str, str] = {}
        self.given_up = 0
        self.pins: list[tuple[str, Boundary]] = []
        self.acknowledged: list[tuple[str, EntryId]] = []
        self.probes: list[tuple[str, EntryId]] = []
        self.places: list[str] = []

    def topics(self, *, all_named: bool) -> Iterable[str]:
        return [*self.held, *self.deleted]

    def selects(self, topic: str) -> bool:
        return topic not in self.unselected

    def pin(self, topic: str, start: Boundary, *, new_query: bool) -> EntryId:
        self._must_be_there(topic)
        self._refuse(topic, "pin")
        self.pins.append((topic, start))
        return BEGINNING.entry if new_query and self.reset is not None else self.held[topic].stands

    def begin(self, topic: str, start: Boundary, pinned: EntryId) -> EntryId:
        self._refuse(topic, "begin")
        if self.reset is not None:
            self.held[topic].stands = self.reset
            return self.reset
        return pinned

    @contextmanager
    def beginning(self) -> Iterator[None]:
        try:
            yield
        except InvalidInput:
            self.given_up += 1
            raise

    def look(self, topic: str) -> TopicState:
        return TopicState(self.last(topic), self.held[topic].stands, topic in self.made)

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

    def _refuse(self, topic: str, step: str) -> None:
        if self.refused.get(topic) == step:
            raise InvalidInput(f"no query begins on {topic}")

    def _must_be_there(self, topic: str) -> None:
        if topic in (*self.deleted, *self.gone):
            raise TopicMissing(f"the topic {topic} does not exist")


def entries(ledger: int, first: int, last: int) -> list[EntryId]:
    return [EntryId(ledger, entry) for entry in range(first, last + 1)]
