"""Whole ledgers of a topic that a broker passed over between two messages that it gave one after the other.

With `autoSkipNonRecoverableData=true` a broker passes over a ledger whose data are gone. To a reader that looks like a
ledger of markers and aborted messages, which are not given either: the broker acknowledges both for it, and the
positions of the reader are the same (measured on 4.2.4). So two questions are asked, where messages of two ledgers
follow one another, and nowhere else:

1. Which ledgers lie between? A cursor that a broker makes at the first entry of a ledger stands behind the entry before
   it: the last one of the nearest earlier ledger that has entries, whether these can still be read or not. So a reader
   there, which reads nothing, tells whether a ledger was passed over, and asked again from there on it tells all.
2. Only for a ledger that was passed over whole: what is its first entry? The admin API reads it. A marker, or a message
   of an aborted transaction, is no loss. "Gone" is one, if the topic still lists the ledger: what retention deletes is
   no longer listed. A message that readers should have got is one, too. Without an admin API nobody can tell, and a
   warning says so.

What this does not see: single entries that are lost within a ledger that is there, and a ledger that is no longer
listed at all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

from eos.errors import EosError, InvalidInput
from eos.pulsar.wire.message_id import EntryId
from eos.source.entry_port import Open
from eos.source.errors import lost
from eos.source.offsets import Position

if TYPE_CHECKING:
    from eos.pulsar.net.admin import EntryKind  # not at run time: with httpx, a third of what a worker's start takes

KindOf = Callable[[str, EntryId], "EntryKind"]
"""Tells what an entry of a physical topic is. Raises EosError where that can't be known."""

log = logging.getLogger("eos.source")


def not_known(topic: str, entry: EntryId) -> EntryKind:
    """Raise InvalidInput: of a caller that has no admin API."""
    raise InvalidInput("Only the admin API can tell")


def lost_between(
    topic: str, behind: Position, before: EntryId, end: EntryId, open_reader: Open, kind_of: KindOf
) -> list[str]:
    """Return the words of each loss: ledgers with entries after a position, of which nothing came before a message.

    Args:
        topic: the physical topic.
        behind: the last message that came, or where reading began.
        before: the message that came next.
        end: of the range: ledgers after it are not looked at.
        open_reader: opens a reader.
        kind_of: tells what an entry is.

    Raises what the reader raises.
    """
    found = []
    later = before.ledger
    while (last := _last_before(topic, later, open_reader)) > behind.entry and last.entry >= 0:
        if last.ledger == behind.entry.ledger and behind.delivered:
            break  # the reader proves that its ledger is there
        first = EntryId(last.ledger, behind.entry.entry + 1 if last.ledger == behind.entry.ledger else 0)
        if first <= end and (words := _loss(topic, first, last, kind_of)):
            if _last_before(topic, later, open_reader) == last:
                found.append(lost(topic, f"{words} before {before}"))
            else:
                log.warning("%s of %s. The topic has deleted the ledger meanwhile", words, topic)
        later = last.ledger
    return found[::-1]


def _last_before(topic: str, ledger: int, open_reader: Open) -> EntryId:
    """Return the last entry that a topic lists before a ledger; one with the number -1 where there is none."""
    with closing(open_reader(topic, EntryId(ledger, 0), 1)) as reader:
        _, stands = reader.last_message_id()
    return EntryId(-1, -1) if stands is None else stands


def _loss(topic: str, first: EntryId, last: EntryId, kind_of: KindOf) -> str:
    """Return what is known to be lost of entries that did not come, which begin with this one; "" for nothing."""
    try:
        kind = kind_of(topic, first)
    except EosError as error:
        log.warning(
            "None of the entries %s to %s of %s came. They are markers and messages of aborted transactions, or their "
            "ledger is lost and the broker passes over it (autoSkipNonRecoverableData=true). The source cannot know "
            "which. %s",
            first,
            last,
            topic,
            error,
        )
        return ""
    if kind == "gone":
        return (
            f"the ledger of the entries {first} to {last} is gone, and the broker passes over it "
            "(autoSkipNonRecoverableData=true). None of them came"
        )
    if kind == "message":
        return f"{first} is stored and is a message, but none of the entries {first} to {last} came"
    return ""
