"""Readers of whole entries, as tasks and plans use them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId

SILENCE_S = 1.0
"""Seconds without an entry before the broker is asked whether the end is still there."""


class Entries(Protocol):
    """A reader of whole entries, in order (`eos.pulsar.net.entries.EntryReader`)."""

    def read(self, timeout_s: float) -> list[Entry]:
        """Return what has arrived; an empty list after so many seconds of silence."""
        ...

    def last_message_id(self) -> tuple[EntryId | None, EntryId | None]:
        """Return the last entry that can be delivered, and the reader's own position."""
        ...

    def close(self) -> None:
        """Leave the topic."""
        ...


Open = Callable[[str, EntryId | None, int | None], Entries]
"""Opens a reader. Args: the physical topic; the first entry, None for the earliest; how many messages to send ahead."""
