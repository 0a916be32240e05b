"""Entries within ledgers that a broker passed over between two messages that it gave one after the other.

With `autoSkipNonRecoverableData=true` a broker that lacks one entry passes over the whole read in which it lies, up to
a hundred entries, also those that it could read. Where a bookie lacks the ledger, it passes over the rest of it.
To a reader that looks like markers and aborted messages: the broker acknowledges each for it (measured on 4.2.4). Only
the admin API tells what an entry is. So each entry that did not come is asked for, where the broker may pass over any:
that is one question for each marker and each aborted message, side by side, and up to a bound. Of a gap beyond the
bound some entries are asked for, spread over it, and a warning tells what was not.

Without the admin API nobody can tell. A gap between two messages of transactions is most likely their marker. Between
messages without transactions nothing is expected, so a warning tells of the first such gap of a range.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eos.errors import EosError, InvalidInput
from eos.pulsar.wire.message_id import EntryId
from eos.source.errors import lost
from eos.source.lost_ledgers import KindOf, passed_between
from eos.source.offsets import Position
from eos.source.silence import Open

if TYPE_CHECKING:
    from eos.pulsar.net.admin import EntryKind

log = logging.getLogger("eos.source")

MOST_ASKED = 10_000
"""Entries of one range that are asked for, at most."""

_TOGETHER = 1_000  # entries that are collected until they are asked for
_SIDE_BY_SIDE = 8


def no_admin_api() -> None:
    """Return that nobody can tell what an entry is: of a caller that has no admin API."""


@dataclass(frozen=True, slots=True)
class EntryGap:
    """Entries of one ledger that did not come.

    Attributes:
        first, last: both of them among these entries.
        expected: a marker or aborted messages are likely there: a message next to it is one of a transaction.
    """

    first: EntryId
    last: EntryId
    expected: bool

    @property
    def count(self) -> int:
        """How many entries."""
        return self.last.entry - self.first.entry + 1


class Gaps:
    """The entries of one range that did not come. It asks for them some at a time."""

    def __init__(
        self,
        topic: str,
        lose: Callable[[str], None],
        open_reader: Open,
        kind_of: KindOf,
        may_pass_over: Callable[[], bool | None],
    ) -> None:
        """Nothing is asked yet.

        Args: the physical topic; takes what was lost; opens a reader; tells what an entry is, from several threads;
        whether the broker may pass over entries; None where no admin API tells that, and what they are.
        """
        self._topic, self._lose, self._open, self._kind_of = topic, lose, open_reader, kind_of
        self._may_pass_over = may_pass_over
        self._looks: bool | None = None
        self._warns = False
        self._gaps: list[EntryGap] = []
        self._waiting = self._asked = 0

    def note(self, behind: Position, came: EntryId, end: EntryId, *, expected: bool = True) -> None:
        """Note what did not come of a range between a position and the message that came next; tell lost ledgers.

        Args: the last message before it, or where reading began; the message; the end of the range; whether a marker
        or aborted messages are likely there, as next to a message of a transaction.

        Raises what readers raise, and what taking a loss does.
        """
        if came.ledger != behind.entry.ledger:
            passed = passed_between(self._topic, behind, came, end, self._open, self._kind_of)
            for words in passed.lost:
                self._lose(words)
            for first, last in passed.others:
                self._add(EntryGap(first, last, expected))
        first = EntryId(came.ledger, behind.entry.entry + 1 if came.ledger == behind.entry.ledger else 0)
        self._add(EntryGap(first, min(EntryId(came.ledger, came.entry - 1), end), expected))

    def look(self) -> None:
        """Ask for what has been noted. Raises what taking a loss does; it warns of what can't be known."""
        gaps, self._gaps, self._waiting = self._gaps, [], 0
        if not gaps:
            return
        if not self._wanted():
            self._warn(gaps)
            return
        with ThreadPoolExecutor(_SIDE_BY_SIDE, thread_name_prefix="eos-source") as pool:
            for gap in gaps:
                entries = _spread(gap, MOST_ASKED - self._asked)
                self._asked += len(entries)
                kinds = list(pool.map(self._kind, entries))
                unknown = next((kind for kind in kinds if isinstance(kind, EosError)), None)
                if unknown is None and len(entries) < gap.count:
                    unknown = InvalidInput(
                        f"It has asked for {len(entries)} of these {gap.count} entries, since a read asks for "
                        f"{MOST_ASKED} at most"
                    )
                for entry, kind in zip(entries, kinds, strict=True):
                    if (kind == "gone" or kind == "message") and self._is_listed(gap):
                        self._lose(lost(self._topic, _words(gap, entry, kind)))
                        unknown = None
                        break
                if unknown is not None:
                    self._stop(gap, str(unknown))
                    return

    def _add(self, gap: EntryGap) -> None:
        if gap.last < gap.first:
            return
        self._gaps.append(gap)
        self._waiting += gap.count
        if self._waiting >= _TOGETHER:
            self.look()

    def _wanted(self) -> bool:
        if self._looks is None:
            try:
                told = self._may_pass_over()
            except EosError:
                told = True  # then asking for an entry tells why not
            self._looks, self._warns = told is True, told is None
        return self._looks

    def _warn(self, gaps: list[EntryGap]) -> None:
        unexpected = next((gap for gap in gaps if not gap.expected), None)
        if self._warns and unexpected is not None:
            self._warns = False
            log.warning(
                "The entries %s to %s of %s did not come, and the messages next to them belong to no transaction. The "
                "source cannot know what they are without the admin API: messages of aborted transactions, markers of "
                "replicated subscriptions, messages that an entry filter rejects, or lost messages that the broker "
                "passes over (autoSkipNonRecoverableData=true). It tells of no further ones of this range. Give the "
                "address of the admin API (admin.url, or --admin-url of a command), so that a loss is an error",
                unexpected.first,
                unexpected.last,
                self._topic,
            )

    def _kind(self, entry: EntryId) -> EntryKind | EosError:
        try:
            return self._kind_of(self._topic, entry)
        except EosError as error:
            return error

    def _is_listed(self, gap: EntryGap) -> bool:
        """Whether the topic still lists the ledger. One that retention has deleted meanwhile is not a loss."""
        ledger = gap.last.ledger
        with closing(self._open(self._topic, EntryId(ledger + 1, 0), 1)) as reader:
            last, stands = reader.last_message_id()
        if last is not None and last.ledger == ledger:
            return True  # a reader past the end stands at the beginning of the topic
        return stands is not None and stands.ledger == ledger

    def _stop(self, gap: EntryGap, why: str) -> None:
        self._looks = False
        log.warning(
            "The entries %s to %s of %s did not come, nor did others after them. They are markers and messages of "
            "aborted transactions, or the broker passes over lost entries (autoSkipNonRecoverableData=true). The "
            "source cannot know which, and looks at no further ones of this range. %s. Set autoSkipNonRecoverableData "
            "to false in the brokers",
            gap.first,
            gap.last,
            self._topic,
            why.rstrip("."),
        )


def _spread(gap: EntryGap, most: int) -> list[EntryId]:
    """Return the entries of a gap; where they are more than `most`, so many of them with even steps between them.

    A gap of thousands of entries that are lost is one piece, as the rest of a ledger is, so some of them tell.
    """
    count = min(gap.count, max(most, 0))
    return [EntryId(gap.first.ledger, gap.first.entry + place * gap.count // count) for place in range(count)]


def _words(gap: EntryGap, entry: EntryId, kind: str) -> str:
    what = "can no longer be read" if kind == "gone" else "is stored and is a message"
    return (
        f"none of the entries {gap.first} to {gap.last} came, and {entry} {what}. The broker passes over the reads in "
        "which it finds no entry (autoSkipNonRecoverableData=true)"
    )
