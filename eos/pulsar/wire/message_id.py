"""Where a message is stored, and the ledgers in which the entries of its topic lie."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from eos.errors import InvalidInput
from eos.option_names import whole_number
from eos.pulsar.wire.pulsar_pb2 import MessageIdData

_TEXT = re.compile(r"(\d+):(-1|\d+)", re.ASCII)


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

    @property
    def place(self) -> str:
        """The id for people: "ledger:entry", and ":batch index" after it for a message in a batch."""
        return f"{self.ledger}:{self.entry}" + (f":{self.batch_index}" if self.batch_index >= 0 else "")

    def written(self) -> MessageIdData:
        """Return the id as it goes over the wire."""
        data = MessageIdData(ledger_id=self.ledger, entry_id=self.entry)
        if self.batch_index >= 0:
            data.batch_index = self.batch_index
        return data


class EntryId(NamedTuple):  # each entry that is read is made one, and is compared with several
    """Where an entry is stored; it holds one message or a batch of them. Its text is "ledger:entry".

    Attributes:
        ledger, entry: the BookKeeper entry; entry -1 stands before the first one of its ledger.
    """

    ledger: int
    entry: int

    @property
    def next(self) -> EntryId:
        """The place right after it in its ledger, whether an entry is there or not."""
        return EntryId(self.ledger, self.entry + 1)

    @classmethod
    def parse(cls, text: str) -> EntryId:
        """Return the id that `str` wrote. Raises InvalidInput."""
        match = _TEXT.fullmatch(text)
        if match is None:
            raise InvalidInput(f'"{text}" is not an entry id. It must be LEDGER:ENTRY, such as 5:3')
        found = cls(whole_number(match[1]) or 0, -1 if match[2] == "-1" else whole_number(match[2]) or 0)
        if max(found) >= 2**63:  # a broker would take it for a negative number
            raise InvalidInput(f'"{text}" is not an entry id: no number in one has more than 63 bits')
        return found

    @classmethod
    def read(cls, data: MessageIdData) -> EntryId:
        """Take an id off the wire."""
        return cls(data.ledger_id, data.entry_id)

    def written(self) -> MessageIdData:
        """Return the id as it goes over the wire."""
        return MessageIdData(ledger_id=self.ledger, entry_id=self.entry)

    def __str__(self) -> str:
        return f"{self.ledger}:{self.entry}"


EARLIEST = MessageId(-1, -1)
"""Before the first message of a topic (MessageId.earliest)."""


@dataclass(frozen=True, slots=True)
class TopicLedger:
    """One ledger of a topic. Its entries are numbered from 0, without a gap.

    Attributes:
        id: of the ledger; later ledgers of a topic have larger ones.
        entries: how many it holds; markers and what was aborted count. The broker says 0 of the one it writes to.
        size: bytes of its entries.
    """

    id: int
    entries: int
    size: int
