"""A consumer that reads whole entries, from one of them on, that one included.

The broker begins at the start id itself. After a lost connection the line subscribes again at
the last entry that it reached, and the broker repeats that one.
"""

from __future__ import annotations

from collections.abc import Sequence

from eos.pulsar.protocol.consumer import ConsumerSession, Input
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EARLIEST, EntryId
from eos.pulsar.wire.pulsar_pb2 import BaseCommand, CommandSubscribe

_BEFORE_ALL = EntryId(0, 0)
"""Where a reader of what compaction left begins.

A broker puts one that begins at EARLIEST before the first entry that it still has. Once the ledgers that compaction has
read are deleted, this is after all that compaction left: the reader is given it, and its position says that it was
left out (4.2.4). A place that is named stays as it is.
"""


class EntrySession(ConsumerSession):
    """One such consumer's line to its broker.

    Attributes:
        reached: the last entry that was taken; None before the first.
        first: the first entry that the broker sent on this line, taken or not; None before it.
    """

    def __init__(
        self,
        topic: str,
        consumer_id: int,
        broker: str,
        start: EntryId | None,
        reached: EntryId | None = None,
        *,
        compacted: bool = False,
        passed: bool = False,
    ) -> None:
        """Args: as of ConsumerLine. Then the first entry to read (None: the earliest), the last one that an earlier
        line received, after which this one goes on, whether to read the compacted messages, and whether the last one
        must not come again."""
        super().__init__(topic, consumer_id, broker)
        self.reached = reached
        self.first: EntryId | None = None
        self._start = start if reached is None else reached.next if passed else reached
        self._compacted = compacted

    def read(self, subscription: str) -> BaseCommand:
        """Return SUBSCRIBE. Args: a subscription name that no other consumer uses."""
        command = self._subscribe(subscription, CommandSubscribe.SubType.Exclusive, durable=False)
        start = self._start or (_BEFORE_ALL if self._compacted else EARLIEST)
        command.subscribe.start_message_id.CopyFrom(start.written())
        command.subscribe.read_compacted = self._compacted
        return command

    def arrived(self, entries: Sequence[Entry]) -> None:
        """Take what the broker sent: one entry at least."""
        self._take(Input.MESSAGE)  # once for all: it leads to the state that it comes from
        if self.first is None:
            self.first = entries[0].id
        for entry in entries:
            entry.topic = self.topic

    def fresh(self, entry: Entry) -> bool:
        """Whether the entry is none that arrived before."""
        return self.reached is None or entry.id > self.reached
