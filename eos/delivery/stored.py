"""What topics have of a batch that was begun with `guarantee="deduplicated"`: found by reading them from there on.

A topic is deleted from its beginning on, ledger by ledger. So if the ledger of the position where the batch began is
still there after the topic was read, nothing that was stored since is gone. If it isn't, rows may have been there that
were not found, and nobody knows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from eos.delivery.digest import RowDigest
from eos.delivery.numbering import Kept, Stored, batch_of, first_number, writer_named
from eos.errors import DamagedLog, StaleBatch
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.net.entries import EntryReader
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId

_SILENCE_S = 1.0  # without an entry, after which the broker is asked whether the end is still there

Where = tuple[int, str, str]
"""Write, place of the writer, physical topic."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was found of a batch.

    Attributes:
        kept: by write and place of the writer and physical topic.
        deleted_from: physical topics where rows may have been that are deleted now.
    """

    kept: Mapping[Where, Kept] = field(default_factory=dict)
    deleted_from: tuple[str, ...] = ()

    def of(self, write: int) -> Stored:
        """Return what was found of one write."""
        stored: dict[str, dict[str, Kept]] = defaultdict(dict)
        for (one, place, topic), kept in self.kept.items():
            if one == write:
                stored[place][topic] = kept
        return stored

    @property
    def rows(self) -> int:
        """How many rows were found."""
        return sum(kept.rows for kept in self.kept.values())


class Positions:
    """Asks topics for their ends, batch after batch, by readers that stay."""

    def __init__(self, client: Client, admin: Admin) -> None:
        """Args: of the cluster; knows the ledgers of topics that hold nothing."""
        self._client, self._admin = client, admin
        self._readers: dict[str, EntryReader] = {}

    def now(self, topics: Sequence[str]) -> dict[str, EntryId]:
        """Return the last entry of each physical topic; entry -1 of its ledger where it holds nothing."""
        return {topic: self._last(topic) for topic in topics}

    def close(self) -> None:
        """Leave the topics. They can be asked again afterwards."""
        with ExitStack() as leaving:
            for reader in self._readers.values():
                leaving.callback(reader.close)
            self._readers = {}

    def _last(self, topic: str) -> EntryId:
        if topic not in self._readers:
            self._readers[topic] = self._client.entry_reader(topic, None, subscription="eos-positions")
        last, _ = self._readers[topic].last_message_id()
        return last if last is not None else EntryId(self._admin.ledgers(topic)[-1].id, -1)


def look(client: Client, admin: Admin, sink: str, batch_id: int, begun: int, since: Mapping[str, EntryId]) -> Found:
    """Return what topics have of a batch.

    Args:
        client: of the cluster.
        admin: knows which ledgers are still there.
        sink: the name that its writers' names begin with.
        batch_id: of the batch.
        begun: the batch that the checkpoint says was begun last: this one, or one before it.
        since: where to read from, by physical topic: the last entry before the batch.

    Raises:
        StaleBatch: there are rows of a later batch, or of one that this checkpoint has not begun.
        DamagedLog: there are rows of the batch, but not its first ones.
        NetworkError: a topic could not be read.
    """
    kept: dict[Where, Kept] = {}
    deleted_from = []
    for topic, position in since.items():
        digests: dict[tuple[int, str], RowDigest] = defaultdict(RowDigest)
        with client.entry_reader(topic, position if position.entry >= 0 else None) as reader:
            for entry in _behind(reader, position):
                writer = writer_named(sink, entry.metadata.producer_name)
                if writer is not None:
                    _take(entry, batch_id, begun, digests[writer])
        kept |= {(*writer, topic): Kept(one.rows, one.text) for writer, one in digests.items() if one.rows}
        if position.ledger not in [ledger.id for ledger in admin.ledgers(topic)]:
            deleted_from.append(topic)
    return Found(kept, tuple(deleted_from))


def _behind(reader: EntryReader, position: EntryId) -> Iterator[Entry]:
    """Yield the entries behind a position, up to what is the last one now."""
    last, _ = reader.last_message_id()
    while last is not None and last > position:
        entries = reader.read(_SILENCE_S)
        for entry in entries:
            if entry.id > position:
                yield entry
            if entry.id >= last:
                return
        if not entries:
            now, _ = reader.last_message_id()
            if now is None or now < last:
                return  # it was deleted meanwhile, and the ledger of the position before it


def _take(entry: Entry, batch_id: int, begun: int, digest: RowDigest) -> None:
    first = entry.metadata.sequence_id
    batch = batch_of(first)
    if batch > batch_id or begun < batch < batch_id:
        raise StaleBatch(
            f"Spark hands over batch {batch_id}, and {entry} holds rows of batch {batch} under this sink's name: the"
            f" checkpoint, of which batch {begun} was begun last, is older than the output, as one from a backup or one"
            " that was rescaled while its query went on. Give the checkpoint that belongs to the output; or start with"
            " a new one and another name, and the rows come again"
        )
    if batch < batch_id:
        return
    number = first - first_number(batch_id)
    if number != digest.rows:
        raise DamagedLog(
            f"{entry} holds rows of batch {batch_id} from number {number} on, and none from number {digest.rows}"
            " on: the topic was deleted from in the middle of the batch, by retention or by hand. So what is"
            " stored can't be compared with what would be written. Read the topic, decide by hand, and start with a"
            ' new checkpoint and another name; or write the batch again with guarantee="at-least-once"'
        )
    digest.take([entry])
