"""Entries that a reader was not given: of aborted transactions, lost ones, or nobody can tell which."""

from __future__ import annotations

from threading import Lock

from eos.errors import EosError, InvalidInput
from eos.pulsar.net.admin import Admin, EntryKind
from eos.pulsar.wire.message_id import EntryId


class MissingEntries:
    """Notes each ledger with entries that are or may be lost, once, where a read has passed over them.

    Attributes:
        noted: in words, without a full stop.
    """

    def __init__(self, admin: Admin | None) -> None:
        """Args: tells what an entry is; None: that can't be known."""
        self._admin = admin
        self._one_at_a_time = Lock()  # entries are asked for side by side
        self._ledgers: set[tuple[str, int]] = set()
        self.noted: list[str] = []

    def may_pass_over(self) -> bool | None:
        """Say whether entries that did not come are asked for (`eos.source.lost_entries`); None: nobody can tell."""
        return None if self._admin is None else self._admin.may_pass_over()

    def kind_of(self, topic: str, entry: EntryId) -> EntryKind:
        """Say what an entry is that did not come (`eos.source.lost_ledgers.KindOf`): none is a loss that is known."""
        entries = f"the entries of {topic} from {entry} to the end of its ledger were not all delivered"
        try:
            if self._admin is None:
                raise InvalidInput("Only the admin API can tell")
            kind = self._admin.entry_kind(topic, entry)
        except EosError as error:
            self._note(topic, entry, f"{entries}. They belong to aborted transactions, or are lost ({error})")
            return "marker"
        if kind == "gone":
            self._note(topic, entry, f"{entries}. They are lost")
            return "marker"
        return kind

    def _note(self, topic: str, entry: EntryId, words: str) -> None:
        with self._one_at_a_time:
            if (topic, entry.ledger) not in self._ledgers:
                self._ledgers.add((topic, entry.ledger))
                self.noted.append(words)
