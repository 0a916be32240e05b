"""How the source words a loss of data."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from eos.errors import DamagedFrame, InvalidInput
from eos.pulsar.wire.decoding import decode
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import MessageId

log = logging.getLogger("eos.source")


class DataLost(InvalidInput):
    """Data can't be read any more. Callers raise it, or only warn, as `failOnDataLoss` says."""


def lost(topic: str, what: str) -> str:
    """Return the message for data that can't be read any more. Args: the physical topic; what is known."""
    return f"data of {topic} was lost: {what}.{named_by('failOnDataLoss')}"


def losses(fail: bool) -> Callable[[str], None]:
    """Return what takes a loss. Args: `failOnDataLoss`: whether it raises DataLost, or only warns."""

    def lose(what: str) -> None:
        if fail:
            raise DataLost(what)
        log.warning(what)

    return lose


class UnreadableMessage(InvalidInput):
    """A message whose entry is whole, and of which a column can't be read: its value isn't as its schema says.

    Attributes:
        row: which message of the entries that were decoded together.
    """

    def __init__(self, row: int, message: str) -> None:
        """Args: as the attribute; the words."""
        super().__init__(message)
        self.row = row


def stored_at(entries: Sequence[Entry], row: int) -> str:
    """Return where a message of these entries is stored, for people. Args: the entries; which of their messages."""
    return MessageId(**decode(entries, ["message_id"]).column("message_id")[row].as_py()).place


Damaged = Callable[[DamagedFrame | UnreadableMessage], None]
"""Is told of an entry or a message that can't be read. It raises, or leaves it out."""


def refused(damage: DamagedFrame | UnreadableMessage) -> None:
    """Raise what is wrong with an entry or a message."""
    raise damage


def named_by(option: str) -> str:
    """Return the sentence that names the option by which a loss is accepted."""
    return f" To go on with what is left, set {option}=false: a loss is then only a warning."
