"""Proof that a reader was given every message that is stored, none left out.

A broker moves the position of a reader while messages are still stored: a message TTL, the commands expire and skip,
truncate, and the deletion of ledgers each do so, and the reader then goes on after them without a word. All of them
move the reader's own mark-delete position, which `GetLastMessageId` brings (measured on 4.2.4). This reader
acknowledges nothing, and the broker acknowledges for it only what it does not deliver: markers, aborted entries. So as
long as the mark-delete position lies before the first message that came, nothing between that one and the last that
came was left out. A reader that cannot show this begins again with the last entry that it could, which must then come
first.

Where a read begins at a place that need not hold a message, what the broker leaves out before the first one moves
that position rightly. Then the first message counts once two readers in a row were given the same.

So it is with what compaction left, once the ledgers that it came from are deleted. A marker after them follows the
mark-delete position then, and the broker, as it acknowledges the marker, moves that position past messages of the
compacted ledger. Only such messages up to the position can have been left out, so they count once two readers in a row
were given the same and stood there.
"""

from __future__ import annotations

from collections.abc import Sequence

from eos.errors import EntriesGone
from eos.pulsar.wire.message_id import EntryId

LOOKS = 6
"""So many times a reader begins again in a row without any proof, until entries count as gone."""


class ReadProof:
    """The proof of one reader, over all its lines to the broker. Not thread-safe.

    Attributes:
        proven: the last entry that was handed out; None before the first.
        gone: whether entries were just said to be gone, so that the next one that comes counts as it is.
    """

    def __init__(self, topic: str, start: EntryId | None, *, stored: bool, compacted: bool) -> None:
        """Args: the topic; where to begin; whether a message is stored there, which must come first; whether what
        compaction left is read: it may take any message away meanwhile."""
        self._topic = topic
        self._start = start
        self._must_come = start if stored and not compacted else None
        self._compacted = compacted
        self._began_with: EntryId | None = None
        self._moved_to: tuple[EntryId, tuple[EntryId, ...]] | None = None  # of a line, and what came up to there
        self._settled: EntryId | None = None  # where this line stands, moved as the line before it was
        self._looks = 0
        self.gone = False
        self._passed = False
        self._begun = False
        self.proven: EntryId | None = None

    def joined(self) -> None:
        """Say that what arrives from now on comes on a new line."""
        self._begun = False
        self._settled = None

    def arrived(self, first: EntryId, stands: EntryId | None, came: Sequence[EntryId]) -> bool:
        """Take what arrived on a line. False: begin again.

        Args: the line's first entry; the mark-delete position, asked for after all of it had arrived; what arrived.

        Raises EntriesGone when it has begun again often enough; the next call takes what comes then.
        """
        last = came[-1]
        if not self.gone and not self._nothing_left_out(first, stands, came):
            self._look_again(first)
            return False
        self.gone = self._passed = False
        self._begun = True
        self._looks = 0
        self.proven = last
        self._must_come = None if self._compacted else last
        return True

    def passed(self) -> None:
        """Say that the last entry handed out must not come again, so that the next line begins after it."""
        self._must_come = None
        self._passed = True

    def unproven(self, found: EntryId | None) -> None:
        """Note that reading begins again for another reason. Args: the line's first entry.

        Raises EntriesGone when it has begun again often enough.
        """
        self._look_again(found)

    def silent(self, first: EntryId | None, stands: EntryId | None, last: EntryId | None) -> bool:
        """Tell whether more can come on a line on which nothing came for a while. False: begin again.

        Args: the line's first entry; the mark-delete position; the last message that the broker can deliver.

        Raises EntriesGone when it has begun again often enough.
        """
        if stands is None:
            return True
        if first is not None:
            moved = stands >= first and not (self._compacted and self._moved_alike(stands, ()))
        elif self._must_come is not None:
            moved = stands >= self._must_come
        else:  # what is not delivered may have moved it, but never past a message
            moved = last is not None and stands >= last and (self._start is None or last >= self._start)
        if moved:
            self._look_again(None)
        return not moved

    def _nothing_left_out(self, first: EntryId, stands: EntryId | None, came: Sequence[EntryId]) -> bool:
        if stands is None:
            return False
        if stands >= first:
            return self._compacted and self._moved_alike(stands, came)
        if self._begun:  # its first entry was looked at when it came
            return True
        if self._must_come is not None:
            return first == self._must_come
        start = self._start if self.proven is None else self.proven
        if self._passed and start is not None:  # the line begins after it
            start = start.next
        if start is not None and (first == start or stands < start):
            return True
        seen, self._began_with = self._began_with, first
        return first == seen

    def _moved_alike(self, stands: EntryId, came: Sequence[EntryId]) -> bool:
        """Whether this line was moved to where the line before it was, after the same messages had come."""
        if stands == self._settled:
            return True
        moved = stands, tuple(entry for entry in came if entry <= stands)
        alike, self._moved_to = moved == self._moved_to, moved
        if alike:
            self._settled = stands
        return alike

    def _look_again(self, found: EntryId | None) -> None:
        self._looks += 1
        if self._looks < LOOKS:
            return
        after = self._start if self.proven is None else self.proven
        self._looks = 0
        self.gone = True
        self._must_come = None
        raise EntriesGone(self._topic, after, found)
