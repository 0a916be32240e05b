"""The range that one task reads, and the findings of a look at a topic."""

from __future__ import annotations

from dataclasses import dataclass

from eos.pickling import PickledByName
from eos.pulsar.wire.message_id import EntryId
from eos.source.offsets import Position


@dataclass(frozen=True, slots=True)
class Found:
    """The first message at or after an entry.

    Attributes:
        entry: where it is stored.
        size: bytes of its entry.
    """

    entry: EntryId
    size: int


@dataclass(frozen=True, slots=True)
class Range(PickledByName):
    """The range that one task reads: the messages after `start` up to and including `end`.

    Attributes:
        topic: the physical topic.
        start: reading begins after it.
        end: the last entry.
        end_delivered: whether `end` holds a message that readers get; then it must arrive.
        first: the first message after a start that proves nothing, as it was found when the read was planned. Then
            reading begins with it. None where nobody looked.
        compacted: whether what compaction left is read, and later messages. Then nothing must arrive, and reading goes
            on past the end, to the last message there is (`eos.source.compacted_topic`).
    """

    topic: str
    start: Position
    end: EntryId
    end_delivered: bool = True
    first: EntryId | None = None
    compacted: bool = False

    def __str__(self) -> str:
        return f"{self.topic} behind {self.start.entry} to {self.end}"


@dataclass(frozen=True, slots=True)
class TopicState:
    """Where a topic and the query's subscription on it are.

    Attributes:
        last: the last message that can be delivered; None where there is none.
        stands: the entry up to which the subscription has acknowledged.
        made: whether the subscription was gone since the last look. It was made again at the beginning of the topic, if
            `left` does not say otherwise.
        left: where the subscription and the start that was asked for are gone: the entry after which the topic begins
            now, or with which it ends. Then the subscription was not made again.
    """

    last: EntryId | None
    stands: EntryId
    made: bool = False
    left: EntryId | None = None
