"""Reading a topic message by message: for logs and other topics of small messages, in any program's hands."""

from __future__ import annotations

import time
from collections import deque

from eos.closing import Closing
from eos.pulsar.net.entries import EntryReader
from eos.pulsar.protocol.messages import Message, messages_in
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EARLIEST, MessageId

PERMITS = 1000
"""Messages that the broker may send ahead of a reader, unless it says otherwise."""

_LOOK_S = 0.2
"""Seconds of silence until the broker is asked whether more can come. The question takes 0.7 ms."""


class Reader(Closing):
    """Reads what is committed, in order, each message once and none left out, over lost connections.

    Keeps nothing at the broker once closed. One call at a time.
    """

    def __init__(self, entries: EntryReader, after: MessageId) -> None:
        """Use `Client.reader`. Args: begins at the entry of this message, and the message to begin after."""
        self._entries = entries
        self._after = after
        self._arrived: deque[Entry] = deque()
        self._messages: deque[Message] = deque()

    def read(self, timeout_s: float) -> Message | None:
        """Return the next message, or None when none came within the time-out.

        Raises the errors of `EntryReader.read`, EntriesGone among them when messages can't be read any longer. Raises
        DamagedEntry for an entry that is damaged. The next call returns what comes after it.
        """
        deadline = time.monotonic() + timeout_s
        while not self._messages:
            if self._arrived:
                messages = messages_in(self._arrived.popleft())
                self._messages.extend(message for message in messages if message.message_id > self._after)
                continue
            self._arrived.extend(self._entries.read(max(0.0, min(deadline - time.monotonic(), _LOOK_S))))
            if not self._arrived and time.monotonic() >= deadline:
                return None
        return self._messages.popleft()

    def last_message_id(self) -> MessageId:
        """Return where the last message lies that can be read now; (-1, -1) when there is none.

        It is the place of its entry: one of a batch, too, has no index. Raises what `EntryReader.last_message_id`
        raises.
        """
        last, _ = self._entries.last_message_id()
        return EARLIEST if last is None else MessageId(last.ledger, last.entry)

    def close(self) -> None:
        """Leave the topic. Raises Unanswered, ConnectionLost."""
        self._entries.close()
