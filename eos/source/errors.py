"""How the source words a loss of data, and what it can no longer read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from eos.errors import DamagedFrame, InvalidInput
from eos.pulsar.wire.decoding import decode
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId, MessageId

log = logging.getLogger("eos.source")


class DataLost(InvalidInput):
    """Data can't be read any longer. Callers raise it, or only warn, as `failOnDataLoss` says."""


def lost(topic: str, what: str) -> str:
    """Return the message for data that can't be read any longer. Args: the physical topic; what is known."""
    return f"data of {topic} was lost: {what}.{named_by('failOnDataLoss')}"


class Losses:
    """Takes the losses of data that a driver or a task finds.

    Attributes:
        count: how many it has warned of.
    """

    def __init__(self, fail: bool) -> None:
        """Args: `failOnDataLoss`: whether a loss raises DataLost. Otherwise it is only a warning."""
        self._fail = fail
        self.count = 0

    def __call__(self, what: str) -> None:
        """Take a loss. Raises DataLost. Args: the words."""
        if self._fail:
            raise DataLost(what)
        self.count += 1
        log.warning(what)


class UnreadableMessage(InvalidInput):
    """A message of an undamaged entry with a column that can't be read, since its value isn't as its schema says.

    Attributes:
        row: which message of the entries that were decoded together.
    """

    def __init__(self, row: int, message: str) -> None:
        """Args: as the attribute; the words."""
        super().__init__(message)
        self.row = row

    def __reduce__(self) -> tuple[type[UnreadableMessage], tuple[int, str]]:
        return type(self), (self.row, str(self))


def stored_at(entries: Sequence[Entry], row: int) -> str:
    """Return where a message of these entries is stored, for people. Args: the entries; which of their messages."""
    return MessageId(**decode(entries, ["message_id"]).column("message_id")[row].as_py()).place


Damaged = Callable[[DamagedFrame | UnreadableMessage], None]
"""Called with an entry or a message that can't be read. It raises, or leaves it out."""


def refused(damage: DamagedFrame | UnreadableMessage) -> None:
    """Raise what is wrong with an entry or a message."""
    raise damage


def named_by(option: str) -> str:
    """Return the sentence that names the option by which a loss is accepted."""
    return f" To go on with what is left, set {option}=false. A loss is then only a warning."


def gone(topic: str, read: EntryId) -> str:
    """Return the words for a physical topic that is gone. Args: the topic; the entry up to which the query has read."""
    return (
        f"the topic {topic} is gone. The query had read it up to {read}, and it can't be known whether later messages "
        "were deleted with it. A command deletes a topic. A broker does it too, once every message is acknowledged, "
        "where the policy inactive-topic-policies says delete_when_subscriptions_caught_up. Choose "
        f"delete_when_no_subscriptions instead.{named_by('failOnDataLoss')}"
    )


def unselected(topic: str, read: EntryId) -> str:
    """Return the words for a physical topic of the checkpoint that the options do not select. Args: as of `gone`."""
    return (
        f"the options of the query no longer select the topic {topic}, which the query has read up to {read}. "
        f"Later messages in it would be left out. Select the topic again.{named_by('failOnDataLoss')}"
    )


def left_behind(topic: str, stands: EntryId, left: EntryId) -> str:
    """Return the words for a subscription of an earlier run on a topic that is new to the checkpoint.

    Args: the topic; the entry up to which it is acknowledged, which is gone; the entry after which the topic begins.
    """
    return lost(
        topic,
        f"the topic is new to the checkpoint, but the query's subscription exists and stands at {stands}, which is no "
        f"longer stored. The topic now begins after {left}. Messages before it may have been deleted, and nothing "
        "shows whether the query of this checkpoint has read them",
    )


def no_start(topic: str, end: EntryId) -> str:
    """Return the words for a batch whose start the checkpoint lacks. Args: the physical topic; the batch's end."""
    return (
        f"the checkpoint has a batch that ends with {end} on {topic}, but not where it begins. The source writes "
        "both. Restore the checkpoint from a backup, or start with a new one."
    )
