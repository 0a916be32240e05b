"""Readers of whole entries, as tasks and plans use them."""

from __future__ import annotations

from typing import Protocol

from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId

SILENCE_S = 1.0
"""Seconds without an entry before the broker is asked whether the end is still there."""


class Entries(Protocol):
    """A reader of whole entries, in order (`eos.pulsar.net.entries.EntryReader`)."""

    def read(self, timeout_s: float) -> list[Entry]:
        """Return what has arrived; an empty list after so many seconds of silence.

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
