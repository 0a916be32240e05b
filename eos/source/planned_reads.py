"""Counts the entries that the tasks of a micro-batch are to read, by where they are to read them, for its progress.

Spark takes nothing from a task of a Python data source but rows. So these are figures of the plan: the driver has
planned the entries, and does not know what a task made of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from eos.metrics.source_report import READERS, PlannedEntries, Reader
from eos.pulsar.wire.message_id import EntryId, TopicLedger
from eos.source.entry_counts import EntryCounts, entries_between
from eos.source.lag_meter import AT_ONCE
from eos.source.offsets import BEGINNING, Offsets
from eos.source.ranges import Range
from eos.source.segment_path import SegmentPath


class PlannedReads:
    """The entries of the batches of one query."""

    def __init__(
        self, counts: EntryCounts, path: Callable[[Range], SegmentPath | None], *, reads_offloaded: bool
    ) -> None:
        """Args: counts entries; returns how a range is read past the brokers; whether offloaded ledgers are read."""
        self._counts, self._path, self._reads_offloaded = counts, path, reads_offloaded

    def measured(self, start: Offsets, end: Offsets) -> tuple[PlannedEntries, ...]:
        """Return how many entries a batch has, for each kind of place where there are any. Raises nothing.

        Args: where the batch begins and ends, as it was just planned. A topic whose end is not after its start is a
        loss, and has none.
        """
        starts = {**start.topics, **end.starts}
        ranges = [
            Range(topic, starts.get(topic, BEGINNING), finish.entry)
            for topic, finish in sorted(end.topics.items())
            if finish.delivered and topic in starts and starts[topic].entry < finish.entry
        ]
        if not ranges:
            return ()
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="eos-plan") as pool:
            counted = list(pool.map(self._of, ranges))
        entries: Counter[Reader] = Counter()
        for by_reader, _ in counted:
            entries.update(by_reader)
        whole = all(complete for _, complete in counted)  # what is missing would be read through brokers
        return tuple(
            PlannedEntries(reader=one, entries=entries[one], whole=whole or one != "brokers")
            for one in READERS
            if entries[one]
        )

    def _of(self, part: Range) -> tuple[Counter[Reader], bool]:
        found: Counter[Reader] = Counter()
        path = self._path(part)
        if path is None:
            found["brokers"], whole = self._counts.between(part.topic, part.start.entry, part.end)
            return found, whole
        reached = part.start.entry
        for reader, last, entries in self._past_brokers(part, path):
            found[reader] += entries
            reached = last
        if reached < part.end:
            ledgers = [TopicLedger(one.ledger, one.last + 1, one.size) for one in path.segments.segments]
            found["brokers"] += entries_between(reached, part.end, ledgers)[0]
        return found, True

    def _past_brokers(self, part: Range, path: SegmentPath) -> Iterator[tuple[Reader, EntryId, int]]:
        """Yield the reader of each segment, its last entry that is read so, and how many are, until one cannot be."""
        start = part.start.entry
        for segment in path.segments.after(start):
            if segment.ledger > path.end.ledger:
                return
            offloaded = self._reads_offloaded and segment.offloaded is not None
            if segment.metadata is None and not offloaded:
                return  # the task goes on by the brokers
            first = start.entry + 1 if segment.ledger == start.ledger else 0
            last = min(EntryId(segment.ledger, segment.last), path.end)
            yield "offloaded" if offloaded else "bookies", last, last.entry + 1 - first
