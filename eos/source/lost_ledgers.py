"""Whole ledgers of a topic that a broker passed over between two messages that it gave one after the other.

With `autoSkipNonRecoverableData=true` a broker passes over a ledger whose data are gone. To a reader that looks like a
ledger of markers and aborted messages, which are not given either: the broker acknowledges both for it, and the
positions of the reader are the same (measured on 4.2.4). So two questions are asked, where messages of two ledgers
follow one another, and nowhere else:

1. Which ledgers lie between? A cursor that a broker makes at the first entry of a ledger stands after the entry before
   it: the last one of the nearest earlier ledger that has entries, whether these can still be read or not. So a reader
   there, which reads nothing, tells whether a ledger was passed over, and asked again from there on it tells all.
2. Only for a ledger that was passed over whole: what is its first entry? The admin API reads it. A marker, or a message
   of an aborted transaction, does not count as a loss. "Gone" is one, if the topic still lists the ledger: what
   retention deletes is no longer listed. A message that readers should have got is one, too. Without an admin API
   nobody can tell, and a warning says so.

Whether the other entries of a ledger are there is another question (`eos.source.lost_entries`). This does not see a
ledger that is no longer listed at all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eos.errors import EosError, InvalidInput
from eos.pulsar.wire.message_id import EntryId
from eos.source.errors import lost
from eos.source.offsets import Position
from eos.source.silence import Open

if TYPE_CHECKING:
    from eos.pulsar.net.admin import EntryKind  # not at run time: with httpx, a third of what a worker's start takes

KindOf = Callable[[str, EntryId], "EntryKind"]
"""Tells what an entry of a physical topic is. Raises EosError where that can't be known."""

log = logging.getLogger("eos.source")


def not_known(topic: str, entry: EntryId) -> EntryKind:
    """Raise InvalidInput: of a caller that has no admin API."""
    raise InvalidInput("Only the admin API can tell")


@dataclass(slots=True)
class Passed:
    """The entries that a broker passed over.

    Attributes:
        lost: the words of each ledger that is lost.
        others: the first and the last entry that did not come, for each other ledger. It is not known whether all of
            them are rightly left out.
    """

    lost: list[str] = field(default_factory=list)
    others: list[tuple[EntryId, EntryId]] = field(default_factory=list)


def passed_between(
    topic: str, behind: Position, before: EntryId, end: EntryId, open_reader: Open, kind_of: KindOf
) -> Passed:
    """Return which entries after a position did not come before a message of a later ledger.

    Args:
        topic: the physical topic.
        behind: the last message that came, or the place where reading began.
        before: the message that came next. The entries before it in its own ledger are not looked at.
        end: of the range: entries after it are not looked at.
        open_reader: opens a reader.
        kind_of: tells what an entry is.

    Raises what the reader raises.
    """
    passed = Passed()
    later = before.ledger
    while (last := _last_before(topic, EntryId(later, 0), open_reader)) > behind.entry and last.entry >= 0:
        own = last.ledger == behind.entry.ledger
        first = EntryId(last.ledger, behind.entry.entry + 1 if own else 0)
        following, later = later, last.ledger
        if first > end:
            continue
        # Of the ledger of the last message the reader proves that it is there, but not its end.
        words = "" if own and behind.delivered else _loss(topic, first, last, kind_of)
        if not words:
            passed.others.append((first, min(last, end)))
        elif _last_before(topic, EntryId(following, 0), open_reader) == last:
            passed.lost.append(lost(topic, f"{words} before {before}"))
        else:
            log.warning("%s of %s. The topic has deleted the ledger meanwhile", words, topic)
        if own:
            break
    passed.lost.reverse()
    passed.others.reverse()
    return passed


def _last_before(topic: str, entry: EntryId, open_reader: Open) -> EntryId:
    """Return the last entry that a topic lists before an entry; one with the number -1 where there is none."""
    with closing(open_reader(topic, entry, 1)) as reader:
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
