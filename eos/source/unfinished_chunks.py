"""Messages sent in chunks that are not complete where a query stands: their first chunks must stay stored.

A task whose range holds the last chunk looks back for the first ones. An acknowledgement releases whole ledgers only,
and the ledger of the place where it ends stays. So nothing of a message can be lost as long as a query acknowledges
within one ledger, and a look is needed only when it goes on to the next.
"""

from __future__ import annotations

from contextlib import closing

from eos.pulsar.wire.chunks import MessageOfChunks, message_of
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.source.chunked_messages import LOOK_BACK, back_from
from eos.source.silence import SILENCE_S, Open

NOTHING = EntryId(-1, -1)
"""An entry before all that is stored."""

LOOKED_AT = 1_000
"""Entries before the place where a query stands among which a message is found that is not complete."""


class _SilentBroker(Exception):
    """The broker has sent nothing for SILENCE_S, although the entries that it was asked for are stored."""


class Unfinished:
    """The messages of one topic that are not complete, as the acknowledgements of a query find them."""

    def __init__(self, topic: str, open_reader: Open, within: int | None = None) -> None:
        """Args: the physical topic; opens a reader; the ledger where the query's subscription stands, if known."""
        self._topic = topic
        self._open = open_reader
        self._within = within
        self._read: EntryId | None = None
        self._first: dict[MessageOfChunks, EntryId] = {}

    def bound(self, start: EntryId) -> EntryId:
        """Return the place up to which may be acknowledged when a query stands at `start`: 7:-1 is before ledger 7.

        NOTHING where the broker does not show the entries before `start` now. The next call looks again.

        Raises what readers raise.
        """
        try:
            if self._within != start.ledger:
                self._look(start)
                self._within = start.ledger
            elif self._first and self._read is not None and self._read < start:
                self._take(self._read, start)
        except _SilentBroker:
            return NOTHING
        firsts = [EntryId(first.ledger, first.entry - 1) for first in self._first.values()]
        return min([EntryId(start.ledger, start.entry - 1), *firsts])

    def _look(self, start: EntryId) -> None:
        """Read what lies before `start`, further back where a message began before the first entry that was read."""
        for count in (LOOKED_AT, LOOK_BACK[-1]):
            self._read = None
            self._first.clear()
            if self._take(back_from(self._topic, start, count, self._open), start):
                return

    def _take(self, begin: EntryId, end: EntryId) -> bool:
        """Read from an entry to another, and return whether each message that is not complete began there."""
        whole = True
        with closing(self._open(self._topic, begin, None)) as reader:
            while self._read is None or self._read < end:
                arrived = reader.read(SILENCE_S)
                for entry in arrived:
                    if entry.id <= end and (self._read is None or entry.id > self._read):
                        whole = self._note(entry) and whole
                last = arrived[-1].id if arrived else reader.last_message_id()[0]
                if not arrived and last is not None and last >= end:
                    raise _SilentBroker
                if last is None or last >= end or not arrived:
                    break  # the topic ends before it: the task that reads there tells of the loss
        self._read = end
        # A task would not look back further: a message that its producer has given up is kept no longer.
        for name, first in list(self._first.items()):
            if first.ledger != end.ledger and end.entry > LOOK_BACK[-1]:
                del self._first[name]
        return whole or not self._first

    def _note(self, entry: Entry) -> bool:
        if entry.chunked:
            name, number, count = message_of(entry), entry.metadata.chunk_id, entry.metadata.num_chunks_from_msg
            if number + 1 == count:
                self._first.pop(name, None)
            elif name not in self._first:
                self._first[name] = entry.id
                return number == 0
        return True
