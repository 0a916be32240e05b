"""Measures how far a streaming query is behind its topics, for its progress. Never fails a plan, nor delays it much.

It asks the brokers and the admin API only about topics that the batch leaves messages in, and about each place once:
the message after an entry stays the same, and so does the size of a closed ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from eos.errors import EosError
from eos.metrics.partition_lag import PartitionLag
from eos.pulsar.wire.message_id import EntryId, TopicLedger
from eos.source.offsets import BEGINNING, Offsets, Position

AT_ONCE: Final = 8
"""How many topics are asked about side by side."""

REST_S: Final = 60.0
"""How long nothing is asked after a question that failed."""

Ledgers = Callable[[str], Sequence[TopicLedger]]
PublishTime = Callable[[str, EntryId], int]

_Answer = TypeVar("_Answer")


class LagMeter:
    """The lag of one streaming query."""

    def __init__(self, ledgers: Ledgers | None, publish_time: PublishTime | None, clock: Callable[[], float]) -> None:
        """Args: returns the ledgers of a physical topic, None where nobody can tell; returns when the first message at
        or after an entry was published, in milliseconds since 1970, None where nobody is to be asked; tells the time in
        seconds."""
        self._asks_ledgers, self._asks_time, self._clock = ledgers, publish_time, clock
        self._ledgers: dict[str, tuple[int, Sequence[TopicLedger]]] = {}  # topic → its newest ledger then, and all
        self._oldest: dict[str, tuple[EntryId, int]] = {}  # topic → the place after which it was looked for
        self._asks_again_at = 0.0

    def measured(self, ends: Offsets, newest: Offsets) -> list[PartitionLag]:
        """Return the lag of each topic that is behind. Raises nothing.

        Args: where the batch ends that is planned; the last message of each topic.
        """
        behind = {
            topic: (ends.topics.get(topic, BEGINNING), last.entry)
            for topic, last in sorted(newest.topics.items())
            if last.entry > ends.topics.get(topic, BEGINNING).entry
        }
        for known in (self._oldest, self._ledgers):
            for topic in known.keys() - behind.keys():
                del known[topic]
        if not behind:
            return []
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="eos-lag") as pool:
            return list(pool.map(lambda one: self._of(one[0], *one[1]), behind.items()))

    def _of(self, topic: str, end: Position, last: EntryId) -> PartitionLag:
        entries, whole = entries_between(end.entry, last, self._known_ledgers(topic, end.entry, last))
        return PartitionLag(topic=topic, entries=entries, whole=whole, oldest_ms=self._oldest_after(topic, end.entry))

    def _known_ledgers(self, topic: str, end: EntryId, last: EntryId) -> Sequence[TopicLedger]:
        if end.ledger == last.ledger or self._asks_ledgers is None:
            return ()
        ask, known = self._asks_ledgers, self._ledgers.get(topic)
        if known is None or known[0] != last.ledger:
            found = self._answer(lambda: ask(topic))
            if found is None:
                return ()
            known = self._ledgers[topic] = last.ledger, found
        return known[1]

    def _oldest_after(self, topic: str, end: EntryId) -> int | None:
        if self._asks_time is None:
            return None
        ask, known = self._asks_time, self._oldest.get(topic)
        if known is None or known[0] != end:
            found = self._answer(lambda: ask(topic, end.next))
            if found is None:
                return None
            known = self._oldest[topic] = end, found
        return known[1]

    def _answer(self, question: Callable[[], _Answer]) -> _Answer | None:
        if self._clock() < self._asks_again_at:
            return None
        try:
            return question()
        except EosError:  # what is wrong there ends the query elsewhere, or slows it no more than it must
            self._asks_again_at = self._clock() + REST_S
            return None


def entries_between(end: EntryId, last: EntryId, ledgers: Sequence[TopicLedger]) -> tuple[int, bool]:
    """Return how many entries lie after one and up to another, and whether these are all.

    Args: the one, and the other, which lies after it; the topic's ledgers, nothing where they are not known. Then only
    entries of the last ledger are counted.
    """
    if end.ledger == last.ledger:
        return last.entry - end.entry, True
    closed = (one for one in ledgers if end.ledger <= one.id < last.ledger)
    before = sum(one.entries - (end.entry + 1 if one.id == end.ledger else 0) for one in closed)
    return max(before, 0) + last.entry + 1, bool(ledgers)
