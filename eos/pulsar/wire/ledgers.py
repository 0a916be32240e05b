"""The ledgers in which a topic's entries lie."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TopicLedger:
    """One ledger of a topic. Its entries are numbered from 0, without a gap.

    Attributes:
        id: of the ledger; later ledgers of a topic have larger ones.
        entries: how many it holds; markers and what was aborted count. The broker says 0 of the one it writes to.
        size: bytes of its entries.
    """

    id: int
    entries: int
    size: int
