"""Entries between two places of a topic."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from eos.pulsar.wire.message_id import EntryId, TopicLedger
from eos.source.entry_counts import EntryCounts, entries_between
from eos.source.offsets import BEGINNING
from eos.source.optional_questions import OptionalQuestions

LEDGERS = [TopicLedger(5, 10, 0), TopicLedger(7, 4, 0), TopicLedger(8, 0, 0)]
"""The broker says 0 entries of the ledger that it writes to."""


@pytest.mark.parametrize(
    ("end", "last", "ledgers", "entries", "whole"),
    [
        (EntryId(8, 3), EntryId(8, 9), (), 6, True),
        (EntryId(8, -1), EntryId(8, 9), (), 10, True),
        (EntryId(5, 3), EntryId(8, 9), LEDGERS, 6 + 4 + 10, True),
        (EntryId(5, -1), EntryId(7, 0), LEDGERS, 10 + 1, True),
        (BEGINNING.entry, EntryId(8, 9), LEDGERS, 10 + 4 + 10, True),
        (EntryId(3, 77), EntryId(8, 9), LEDGERS, 10 + 4 + 10, True),
        (EntryId(3, 77), EntryId(8, 9), LEDGERS[2:], 10, True),
        (EntryId(5, 3), EntryId(8, 9), (), 10, False),
    ],
)
def test_entries_are_counted_over_ledgers(
    end: EntryId, last: EntryId, ledgers: Sequence[TopicLedger], entries: int, whole: bool
) -> None:
    assert entries_between(end, last, ledgers) == (entries, whole)


def test_closed_ledgers_are_asked_for_once_for_each_ledger_that_begins() -> None:
    asked: list[str] = []

    def ledgers(topic: str) -> Sequence[TopicLedger]:
        asked.append(topic)
        return LEDGERS

    counts = EntryCounts(ledgers, OptionalQuestions(lambda: 0.0))
    assert counts.between("a", EntryId(8, 1), EntryId(8, 4)) == (3, True)
    assert asked == []
    for end in (EntryId(8, 4), EntryId(8, 5), EntryId(7, 3)):
        counts.between("a", EntryId(5, 3), end)
    assert asked == ["a"]
    counts.between("a", EntryId(5, 3), EntryId(9, 0))
    assert asked == ["a", "a"]
