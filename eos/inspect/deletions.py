"""How many messages of a topic were published since a time, and whether some may have been deleted or lost.

A topic that stores none of them may never have had one, or has deleted them: by retention, truncation, deletion of the
topic, or the loss of a ledger. Both look the same to a reader. None was deleted if the topic still has what was stored
before that time, since ledgers are deleted from the oldest on; or if its list of ledgers has not changed since, which
only the admin API tells. Otherwise it can't be known.

The times are of several clocks: producers set that of a message, and the metadata store that of a change.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

from eos.config import Cluster
from eos.doctor.check import in_utc
from eos.errors import EosError, InvalidInput
from eos.inspect.rows import TopicRows
from eos.pulsar.net.admin import Admin, EntryKind, LedgerList
from eos.pulsar.wire.message_id import EntryId
from eos.source.errors import named_by

_NAMED = 3
"""Parts of a topic that are named; of the others the number is said."""


@dataclass(frozen=True, slots=True)
class Published:
    """The messages that were published to a topic since a time.

    Attributes:
        stored: how many messages are stored now.
        doubts: why more may have been published, each in words for one part of the topic. Empty: there were no others.
    """

    stored: int
    doubts: tuple[str, ...]

    @property
    def doubt(self) -> str:
        """The doubts in one text, without a full stop."""
        more = len(self.doubts) - _NAMED
        return "; ".join(self.doubts[:_NAMED]) + (f"; and so on for {more} more" if more > 0 else "")


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


def published_since(cluster: Cluster, admin: Admin | None, topic: str, time_ms: int) -> Published:
    """Return what was published to a topic since a time, and what may be deleted of it.

    Args:
        cluster: how to reach the brokers.
        admin: tells whether ledgers are lost, and when they last changed; None: that can't be known.
        topic: its full name.
        time_ms: milliseconds since 1970.

    Raises TopicMissing; what readers raise.
    """
    doubts: list[str] = []
    missing = MissingEntries(admin)

    def lose(words: str) -> None:
        doubts.append(words.removesuffix(named_by("failOnDataLoss")).rstrip("."))

    rows = TopicRows(cluster, topic, str(time_ms), lose, kind_of=missing.kind_of, may_pass_over=missing.may_pass_over)
    partitions = rows.partitions()
    before = {partition: _ledgers(admin, partition) for partition in partitions}  # to read a topic changes its ledgers
    stored = sum(entry.num_messages for _, entries in rows.entries() for entry in entries)
    # Asked afterwards: what is deleted while the messages are counted is in doubt as well.
    doubts.extend(filter(None, (_deleted(cluster, admin, one, before[one], time_ms) for one in partitions)))
    return Published(stored, (*missing.noted, *doubts))


def _ledgers(admin: Admin | None, partition: str) -> LedgerList | str:
    """Return the ledgers of a partition, or why they can't be known."""
    if admin is None:
        return "only the admin API tells whether older ones were deleted"
    try:
        return admin.ledger_list(partition)
    except EosError as error:
        return f"when its ledgers changed cannot be known ({error})"


def _deleted(cluster: Cluster, admin: Admin | None, partition: str, before: LedgerList | str, time_ms: int) -> str:
    """Say why messages since the time may have been deleted from the beginning of a partition; "": none was."""
    first_ms = _first_ms(cluster, partition)
    if first_ms is not None and first_ms < time_ms:
        return ""
    now = _ledgers(admin, partition)
    if first_ms is None:
        begins = f"{partition} stores no message"
    else:
        begins = f"the first message that {partition} stores was published at {in_utc(first_ms)}"
    if isinstance(before, str) or isinstance(now, str):
        return f"{begins}, and {before if isinstance(before, str) else now}"
    if before.changed_ms < time_ms and before.ids <= now.ids:
        return ""
    return f"{begins}, and its list of ledgers changed at {in_utc(max(before.changed_ms, now.changed_ms))}"


def _first_ms(cluster: Cluster, partition: str) -> int | None:
    """Return when the first message that a partition stores was published; None where it stores none."""
    # Lost ledgers before that message don't count. Those after it are reported where messages are counted.
    rows = TopicRows(cluster, partition, "earliest", lambda lost: None, kind_of=lambda topic, entry: "marker")
    for _, entries in rows.entries():
        return entries[0].metadata.publish_time
    return None
