"""Measures how far a streaming query is behind its topics, for its progress. Never fails a plan, nor delays it much.

It asks the brokers and the admin API only about topics that the batch leaves messages in, and about each place once:
the message after an entry stays the same.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from eos.metrics.source_report import PartitionLag
from eos.pulsar.wire.message_id import EntryId
from eos.source.entry_counts import EntryCounts
from eos.source.offsets import BEGINNING, Offsets, Position
from eos.source.optional_questions import OptionalQuestions

AT_ONCE: Final = 8
"""How many topics are asked about side by side."""

PublishTime = Callable[[str, EntryId], int]


class LagMeter:
    """The lag of one streaming query."""

    def __init__(self, counts: EntryCounts, publish_time: PublishTime | None, questions: OptionalQuestions) -> None:
        """Args: counts entries; returns when the first message at or after an entry was published, in milliseconds
        since 1970, None where nobody is to be asked; asks that."""
        self._counts, self._asks_time, self._questions = counts, publish_time, questions
        self._oldest: dict[str, tuple[EntryId, int]] = {}  # topic → the place after which it was looked for

    def measured(self, ends: Offsets, newest: Offsets) -> tuple[PartitionLag, ...]:
        """Return the lag of each topic that is behind. Raises nothing.

        Args: where the batch ends that is planned; the last message of each topic.
        """
        behind = {
            topic: (ends.topics.get(topic, BEGINNING), last.entry)
            for topic, last in sorted(newest.topics.items())
            if last.entry > ends.topics.get(topic, BEGINNING).entry
        }
        for topic in self._oldest.keys() - behind.keys():
            del self._oldest[topic]
        if not behind:
            return ()
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="eos-lag") as pool:
            return tuple(pool.map(lambda one: self._of(one[0], *one[1]), behind.items()))

    def _of(self, topic: str, end: Position, last: EntryId) -> PartitionLag:
        entries, whole = self._counts.between(topic, end.entry, last)
        return PartitionLag(topic=topic, entries=entries, whole=whole, oldest_ms=self._oldest_after(topic, end.entry))

    def _oldest_after(self, topic: str, end: EntryId) -> int | None:
        if self._asks_time is None:
            return None
        ask, known = self._asks_time, self._oldest.get(topic)
        if known is None or known[0] != end:
            found = self._questions.answer(lambda: ask(topic, end.next))
            if found is None:
                return None
            known = self._oldest[topic] = end, found
        return known[1]
