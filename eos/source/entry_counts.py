"""Counts the stored entries between two places of a topic: they are numbered within a ledger, from 0 and without a gap.

Over several ledgers the count needs the sizes of those that are closed. These never change, so they are asked for once
for each ledger that the topic begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eos.pulsar.wire.message_id import EntryId, TopicLedger
from eos.source.optional_questions import OptionalQuestions

Ledgers = Callable[[str], Sequence[TopicLedger]]


class EntryCounts:
    """Counts entries of one query's topics, from several threads."""

    def __init__(self, ledgers: Ledgers | None, questions: OptionalQuestions) -> None:
        """Args: returns the ledgers of a physical topic, None where nobody can tell; asks for them."""
        self._asks, self._questions = ledgers, questions
        self._known: dict[str, tuple[int, Sequence[TopicLedger]]] = {}  # topic → its newest ledger then, and all

    def between(self, topic: str, start: EntryId, end: EntryId) -> tuple[int, bool]:
        """Return how many entries lie after one and up to another that lies after it, and whether these are all."""
        ledgers = () if start.ledger == end.ledger else self._ledgers(topic, end.ledger)
        return entries_between(start, end, ledgers)

    def _ledgers(self, topic: str, newest: int) -> Sequence[TopicLedger]:
        if self._asks is None:
            return ()
        ask, known = self._asks, self._known.get(topic)
        if known is None or known[0] < newest:
            found = self._questions.answer(lambda: ask(topic))
            if found is None:
                return ()
            known = self._known[topic] = newest, found
        return known[1]


def entries_between(start: EntryId, end: EntryId, ledgers: Sequence[TopicLedger]) -> tuple[int, bool]:
    """Return how many entries lie after one and up to another, and whether these are all.

    Args: the one, and the other, which lies after it; the topic's ledgers, nothing where they are not known. Then only
    entries of the last ledger are counted.
    """
    if start.ledger == end.ledger:
        return end.entry - start.entry, True
    closed = (one for one in ledgers if start.ledger <= one.id < end.ledger)
    before = sum(one.entries - (start.entry + 1 if one.id == start.ledger else 0) for one in closed)
    return max(before, 0) + end.entry + 1, bool(ledgers)
