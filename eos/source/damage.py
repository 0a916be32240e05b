"""What becomes of the entries and messages of a range that can't be read, as `onDamagedEntry` says."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import pyarrow as pa

from eos.errors import DamagedEntry, DamagedFrame, InvalidInput
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.source.columns import SourceColumns
from eos.source.errors import UnreadableMessage
from eos.source.ranges import Range

log = logging.getLogger("eos.source")


class DamagePolicy:
    """Takes what can't be read of one range (`eos.source.errors.Damaged`).

    Attributes:
        count: how many entries and messages could not be read so far.
    """

    def __init__(self, policy: str, part: Range, columns: SourceColumns) -> None:
        """Args: one of `eos.source.options.ON_DAMAGED`; the range; makes its rows."""
        self._policy, self._part, self._columns = policy, part, columns
        self._rows: list[pa.RecordBatch] = []
        self.count = 0

    def __call__(self, damage: DamagedFrame | UnreadableMessage) -> None:
        """Take an entry, or a message. Raises InvalidInput where it ends the query."""
        words = str(damage).rstrip(".")
        if self._policy == "fail":
            what = "messages" if isinstance(damage, UnreadableMessage) else "entries"
            raise InvalidInput(
                f"{words}. Set onDamagedEntry=skip to go on without such {what}. Each is then named in the log of its "
                "task. Set onDamagedEntry=keep to get each as a row that says why."
            ) from damage
        self.count += 1
        if self._policy == "skip":
            log.warning("%s. It is left out: onDamagedEntry=skip (%d so far in %s).", words, self.count, self._part)
        elif not isinstance(damage, UnreadableMessage):
            place = EntryId(damage.ledger, damage.entry) if isinstance(damage, DamagedEntry) else None
            self._rows.append(self._columns.of_damaged_entry(place, f"{words}."))

    def readable(self, entries: Sequence[Entry]) -> Iterator[pa.RecordBatch]:
        """Yield the messages of entries, without those that can't be read, and the rows in place of these.

        Entries are halved until the one that can't be read as a whole is alone.
        """
        if len(entries) == 1:
            yield from self._of_one(entries[0])
            return
        try:
            yield self._columns.batch(entries)
        except (DamagedFrame, UnreadableMessage):
            middle = len(entries) // 2
            yield from self.readable(entries[:middle])
            yield from self.readable(entries[middle:])

    def rows_of_entries(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in place of entries that could not be read since the last call."""
        rows, self._rows = self._rows, []
        yield from rows

    def _of_one(self, entry: Entry) -> Iterator[pa.RecordBatch]:
        """Yield the messages of one entry that can be read: it is decoded once more for each one that can't."""
        wrong: dict[int, pa.RecordBatch | None] = {}
        while True:
            try:
                batch = self._columns.batch([entry], list(wrong))
                break
            except DamagedFrame as damage:
                self(damage)
                yield from self.rows_of_entries()
                return
            except UnreadableMessage as damage:
                self(damage)
                keeps = self._policy == "keep"
                wrong[damage.row] = (
                    self._columns.of_unreadable_message(entry, damage.row, str(damage)) if keeps else None
                )
        begin = 0
        for before, (row, instead) in enumerate(sorted(wrong.items(), key=lambda one: one[0])):
            if instead is not None:
                yield batch.slice(begin, row - before - begin)
                yield instead
                begin = row - before
        yield batch.slice(begin)
