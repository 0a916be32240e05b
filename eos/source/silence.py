"""Readers of whole entries, and how long a read waits when nothing comes of it, although its end is stored.

A broker is silent while it skips aborted entries, which is right and may last, and while it can't read what comes next:
its bookies are down, or a ledger is lost. To a reader both look the same. They differ in where a reader stands that
begins after the last message that came: the broker acknowledges for it each entry that it skips (measured on 4.2.4), so
it moves while the broker gets on, and stays before entries that the broker can't read. So in a long silence such a
reader is opened beside, and the time counts from the last message, or the last move.

A range ends with a message that could be delivered when it was planned, so no open transaction lies within it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from eos.errors import NetworkError, Unanswered
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId

log = logging.getLogger("eos.source")

SILENCE_S = 1.0
"""Seconds without an entry before the broker is asked whether the end is still there."""

READ_TIMEOUT_S = 300.0
"""Seconds without a message, or a move, until a read fails, unless said otherwise: longer than a bookie's restart."""

LEAST_READ_TIMEOUT_S = 10.0
"""A shorter wait would be over before a read has looked for the cause of its silence."""

LONG_SILENCE = 4
"""Silences in a row until a read looks for their cause."""

_SAID_AFTER = 64
_LEAST_STEPS = 4  # of a time: a longer step is a process that was stopped, not a broker that is silent


class Entries(Protocol):
    """A reader of whole entries, in order (`eos.pulsar.net.entries.EntryReader`)."""

    def read(self, timeout_s: float, until: EntryId | None = None) -> list[Entry]:
        """Return what has arrived; an empty list after so many seconds of silence.

        Args: the seconds; the last entry that is wanted, where many are: they come in larger groups, for less CPU.

        Raises EntriesGone when entries were left out. The next call goes on after them.
        """
        ...

    def last_message_id(self) -> tuple[EntryId | None, EntryId | None]:
        """Return the last entry that can be delivered, and the reader's own position."""
        ...

    def begin_again(self) -> None:
        """Join the topic again, at the next read, after the last entry that was read."""
        ...

    def close(self) -> None:
        """Leave the topic."""
        ...


class Open(Protocol):
    """Opens a reader."""

    def __call__(self, topic: str, start: EntryId | None, permits: int | None, *, stored: bool = False) -> Entries:
        """Open a reader.

        Args: the physical topic; the first entry, None for the earliest; how many messages to send ahead; whether a
        message is known to be stored at the first entry. Then the reader begins with it, or raises EntriesGone.
        """
        ...


@dataclass(frozen=True, slots=True)
class ReadTimeout:
    """How long reads wait.

    Attributes:
        limit_s: seconds.
        clock: seconds. Default: the machine's.
    """

    limit_s: float = READ_TIMEOUT_S
    clock: Callable[[], float] = time.monotonic


USUAL_TIMEOUT = ReadTimeout()
"""Of a caller that gives none."""


class Silence:
    """The silences of one read of a topic."""

    def __init__(self, topic: str, open_reader: Open, timeout: ReadTimeout) -> None:
        """Args: the physical topic; opens a reader; how long it may last."""
        self._topic, self._open, self._timeout = topic, open_reader, timeout
        self._scout: Entries | None = None
        self._stands: EntryId | None = None
        self._scout_done = False
        self._begin()

    def _begin(self) -> None:
        self._count, self._waited_s, self._looked_s = 0, 0.0, self._timeout.clock()

    def ends(self) -> None:
        """Say that messages came."""
        self.close()
        self._begin()

    def lasts(self, after: EntryId, end: EntryId) -> bool:
        """Say that nothing came for SILENCE_S. Warns from time to time.

        Returns whether to look for the cause: after LONG_SILENCE, and each time that the silence has doubled.

        Args: the last entry that came, or the place after which reading began. Then the stored entry up to which is
            read.

        Raises Unanswered when neither a message nor a move came for the time that a read may wait.
        """
        now = self._timeout.clock()
        self._waited_s += min(now - self._looked_s, self._timeout.limit_s / _LEAST_STEPS)
        self._looked_s = now
        self._count += 1
        if self._count >= LONG_SILENCE and self._moved(after):
            self._waited_s = 0.0
        if self._waited_s >= self._timeout.limit_s:
            raise Unanswered(self._words(after, end))
        doubled = self._count >= LONG_SILENCE and self._count & (self._count - 1) == 0
        if doubled and self._count >= _SAID_AFTER:
            log.warning(
                "nothing of %s has come for %d s after %s, although %s is stored. The broker skips many aborted "
                "entries, its bookies do not answer, or a ledger is lost. The read waits on, and fails once the broker "
                "has not moved for %g s (read_timeout_s)",
                self._topic,
                self._count * SILENCE_S,
                _place(after),
                end,
                self._timeout.limit_s,
            )
        return doubled

    def _moved(self, after: EntryId) -> bool:
        """Whether a reader that begins after the last message stands further than ever."""
        if self._scout_done:
            return False
        try:
            if self._scout is None:
                start = None if after.ledger < 0 else after.next
                self._scout = self._open(self._topic, start, None)
            came = self._scout.read(0.0)
            _, stands = self._scout.last_message_id()
        except NetworkError:  # such as that the topic has room for one consumer
            return False
        self._scout_done = bool(came)  # no further, or the time would begin again with each message of a live topic
        if stands is not None and stands > (after if self._stands is None else self._stands):
            self._stands = stands
            return True
        return bool(came)

    def _words(self, after: EntryId, end: EntryId) -> str:
        return (
            f"read {self._topic} after {_place(after)}: nothing came for {self._waited_s:.0f} s "
            f"(read_timeout_s={self._timeout.limit_s:g}), although {end} is stored. Whether data is lost is not "
            "known. The bookies that store the next entries do not answer, or the ledger is lost. The broker's log "
            "names the ledger that it cannot read. Start the bookies, and run the query or the read again. If the "
            "ledger is lost for good, set autoSkipNonRecoverableData=true in the broker, which then passes over the "
            "ledger. That is a loss, which failOnDataLoss=false accepts. To wait longer, raise read_timeout_s"
        )

    def close(self) -> None:
        """Leave the topic."""
        if self._scout is not None:
            with suppress(NetworkError):
                self._scout.close()
        self._scout = self._stands = None
        self._scout_done = False


def _place(after: EntryId) -> str:
    return "its start" if after.ledger < 0 else str(after)
