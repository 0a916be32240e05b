"""Topics in memory, as the plan of a query sees them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from eos.errors import TopicMissing
from eos.pulsar.wire.message_id import EntryId
from eos.source.options import Boundary
from eos.source.ranges import Found


def at(text: str) -> EntryId:
    return EntryId.parse(text)


START = EntryId(5, -1)


@dataclass
class FakeTopic:
    """The entries of one topic that readers get, in order."""

    delivered: list[EntryId] = field(default_factory=list)
    stands: EntryId = START
    size: int = 100

    @property
    def last(self) -> EntryId | None:
        return self.delivered[-1] if self.delivered else None


class FakeBrokers:
    """Remembers what it was asked.

    Attributes:
        deleted: topics that are told to be there, and are not when they are asked.
    """

    def __init__(self, **topics: FakeTopic) -> None:
        self.held = topics
        self.deleted: list[str] = []
        self.pins: list[tuple[str, Boundary]] = []
        self.acknowledged: list[tuple[str, EntryId]] = []
        self.probes: list[tuple[str, EntryId]] = []

    def topics(self, *, all_named: bool) -> Iterable[str]:
        return [*self.held, *self.deleted]

    def pin(self, topic: str, start: Boundary) -> EntryId:
        self._must_be_there(topic)
        self.pins.append((topic, start))
        return self.held[topic].stands

    def last(self, topic: str) -> EntryId | None:
        self._must_be_there(topic)
        return self.held[topic].last

    def first(self, topic: str, entry: EntryId) -> Found:
        self.probes.append((topic, entry))
        return Found(next(one for one in self.held[topic].delivered if one >= entry), self.held[topic].size)

    def acknowledge(self, topic: str, entry: EntryId) -> None:
        self.acknowledged.append((topic, entry))

    def _must_be_there(self, topic: str) -> None:
        if topic in self.deleted:
            raise TopicMissing(f"the topic {topic} does not exist")


def entries(ledger: int, first: int, last: int) -> list[EntryId]:
    return [EntryId(ledger, entry) for entry in range(first, last + 1)]
