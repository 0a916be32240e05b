"""Entries that a reader was not given: of aborted transactions, of a lost ledger, or nobody can tell which."""

from __future__ import annotations

from eos.errors import EosError, InvalidInput
from eos.pulsar.net.admin import Admin, EntryKind
from eos.pulsar.wire.message_id import EntryId


class MissingEntries:
    """Notes the ledgers that are or may be lost, where a read has passed over them.

    Attributes:
        noted: in words, without a full stop.
    """

    def __init__(self, admin: Admin | None) -> None:
        """Args: tells what an entry is; None: that can't be known."""
        self._admin = admin
        self.noted: list[str] = []

    def kind_of(self, topic: str, entry: EntryId) -> EntryKind:
        """Say what an entry is that did not come (`eos.source.lost_ledgers.KindOf`): none is a loss that is known."""
        entries = f"the entries of {topic} from {entry} to the end of its ledger were not delivered"
        try:
            if self._admin is None:
                raise InvalidInput("Only the admin API can tell")
            kind = self._admin.entry_kind(topic, entry)
        except EosError as error:
            which = f"They belong to aborted transactions, or their ledger is lost ({error})"
            self.noted.append(f"{entries}. {which}")
            return "marker"
        if kind == "gone":
            self.noted.append(f"{entries}. Their ledger is lost")
            return "marker"
        return kind
