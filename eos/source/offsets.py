"""Where a query stands: the last entry that it has read, for each physical topic.

An offset is a position *after* a whole entry, so a micro-batch covers the entries after its start, up to and including
its end. There are two kinds, and they differ in what can be proven:

    "8:13" after the message in entry 13 of ledger 8. It was delivered once, so a reader
                    that begins at 8:13 must be given it first; if it isn't, data was lost.
    "pinned 8:14" after the entry at 8:14, be it a message or not: where the query's subscription stood when the topic
                  was first read. It proves nothing.
    "beginning"     before everything that is stored.

In Spark's checkpoint they lie as JSON: {"version": 1, "topics": {physical topic: position}}.

Spark keeps the end of each batch, and takes it as the start of the next one. It keeps no start of batch 0, and asks the
source for it again after a crash. So the end of batch 0 holds this start too, as "start": {physical topic: position}.

Where a query begins is known once its batch 0 is planned. Until then UNPLANNED stands for it. Spark keeps no such
offset in a checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from eos.errors import InvalidInput
from eos.pickling import PickledByName
from eos.pulsar.wire.message_id import EntryId

VERSION = 1
_PINNED = "pinned "
_BEGINNING = "beginning"


@dataclass(frozen=True, slots=True)
class Position(PickledByName):
    """A place after an entry.

    Attributes:
        entry: the entry; nothing up to and including it is read again.
        delivered: whether it holds a message that readers get.
    """

    entry: EntryId
    delivered: bool = True

    @classmethod
    def parse(cls, text: str) -> Position:
        """Read what `str` wrote. Raises InvalidInput."""
        if text == _BEGINNING:
            return BEGINNING
        found = cls(EntryId.parse(text.removeprefix(_PINNED)), not text.startswith(_PINNED))
        if found.delivered and found.entry.entry < 0:
            raise InvalidInput(f'"{text}" holds no message, so no query has read up to it')
        return found

    def __str__(self) -> str:
        if self == BEGINNING:
            return _BEGINNING
        return str(self.entry) if self.delivered else f"{_PINNED}{self.entry}"


BEGINNING = Position(EntryId(-1, -1), delivered=False)
"""Before the first entry of a topic."""


def before(entry: EntryId) -> Position:
    """Return the position from which reading begins with this entry."""
    return Position(EntryId(entry.ledger, entry.entry - 1), delivered=False)


@dataclass(frozen=True, slots=True)
class Offsets(PickledByName):
    """One position for each physical topic.

    Attributes:
        topics: {physical topic: its position}.
        starts: where the batch began that ends here, if it is the first one of its query; else nothing.
        unplanned: whether it is the start of batch 0, which the plan of that batch finds or has found.
    """

    topics: Mapping[str, Position]
    starts: Mapping[str, Position] = field(default_factory=dict)
    unplanned: bool = False

    @classmethod
    def from_json(cls, offset: Mapping[str, Any]) -> Offsets:
        """Read what `as_json` gave.

        Raises InvalidInput for the offset of another source, or of a version that this one does not know.
        """
        version, topics, starts = offset.get("version"), offset.get("topics"), offset.get("start", {})
        if type(version) is not int or version != VERSION or not (_are_texts(topics) and _are_texts(starts)):
            raise InvalidInput(
                f"the checkpoint holds {dict(offset)!r}, which is not an offset of this source. It writes version "
                f'{VERSION}, {{"version": {VERSION}, "topics": {{...}}}}. Was the checkpoint written by another '
                "source, or by a newer version of this one?"
            )
        return cls(_parsed(topics), _parsed(starts), offset.get("unplanned") is True)

    def as_json(self) -> dict[str, Any]:
        """Return what Spark keeps in the checkpoint."""
        start = {"start": _as_json(self.starts)} if self.starts else {}
        unplanned = {"unplanned": True} if self.unplanned else {}
        return {"version": VERSION, "topics": _as_json(self.topics), **start, **unplanned}


UNPLANNED = Offsets({}, unplanned=True)
"""Where a query begins, whether its batch 0 is still to be planned, or was planned before a crash."""


def _are_texts(positions: Any) -> TypeGuard[Mapping[str, str]]:
    return isinstance(positions, Mapping) and all(isinstance(text, str) for text in positions.values())


def _parsed(positions: Mapping[str, str]) -> dict[str, Position]:
    return {topic: Position.parse(text) for topic, text in positions.items()}


def _as_json(positions: Mapping[str, Position]) -> dict[str, str]:
    return {topic: str(positions[topic]) for topic in sorted(positions)}
