"""Where a message is stored."""

from __future__ import annotations

from dataclasses import dataclass

from eos.pulsar.wire.pulsar_pb2 import MessageIdData


@dataclass(frozen=True, order=True, slots=True)
class MessageId:
    """Where a message is stored; ids of one partition are ordered as the messages are.

    Attributes:
        ledger, entry: the BookKeeper entry; (-1, -1) before the first message.
        batch_index: place in its batch, from 0; -1 for a message that stands alone.
    """

    ledger: int
    entry: int
    batch_index: int = -1

    @classmethod
    def read(cls, data: MessageIdData) -> MessageId:
        """Take an id off the wire."""
        return cls(data.ledger_id, data.entry_id, data.batch_index)

    def written(self) -> MessageIdData:
        """Return the id as it goes over the wire."""
        data = MessageIdData(ledger_id=self.ledger, entry_id=self.entry)
        if self.batch_index >= 0:
            data.batch_index = self.batch_index
        return data


EARLIEST = MessageId(-1, -1)
"""Before the first message of a topic (MessageId.earliest)."""
